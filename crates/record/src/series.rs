//! Figures over time, in a bounded number of equal intervals.

use serde::{Deserialize, Serialize};

use crate::grid;
use crate::merged::{Merge, merge_fields};

/// Beyond this many intervals neighbours are joined and the interval doubles; intervals that are
/// shorter than the usual 100 ms sooner.
const POINTS_MAX: usize = 1_200;

/// What happened in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Complete replies with status below 400.
    pub successes: u64,
    /// Complete replies with status 400 and above.
    pub errors: u64,
    /// Failures of any scope.
    pub failures: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
    /// Most arrivals that waited for a free connection at once.
    pub waiting_max: u64,
    /// Fewest open connections.
    pub live_min: u32,
    /// Most open connections.
    pub live_max: u32,
    /// Sum of the response times of successful replies on connections with kernel stamps, of
    /// requests issued in the window, nanoseconds.
    pub stamped_response_ns: u64,
    /// Brunt's own share of `stamped_response_ns`, nanoseconds.
    pub stamped_own_ns: u64,
}

impl SeriesPoint {
    /// What failed or had an error status. At most 2^32, which no interval of a real run reaches,
    /// so that sums over a series fit.
    pub fn failed(&self) -> u64 {
        self.errors.saturating_add(self.failures).min(1 << 32)
    }

    /// Adds what is counted in `other`, which is not connections.
    fn add_counts(&mut self, other: &Self) {
        merge_fields!(self, other:
            successes errors failures bytes_received stamped_response_ns stamped_own_ns
        );
    }
}

/// Figures over the window. Point `i` covers `[i, i + 1) * interval_ns` from the window's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval, nanoseconds: 100 ms, doubled as often as the run's length asks, and
    /// less in runs of less than 16 s.
    #[serde(deserialize_with = "grid::length")]
    pub interval_ns: u64,
    /// The intervals, oldest first; at most 1,200.
    pub points: Vec<SeriesPoint>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            interval_ns: grid::USUAL_NS,
            points: Vec::new(),
        }
    }
}

impl Series {
    /// A series as it suits a window of this length, nanoseconds; 0 for a length that is not known:
    /// its intervals begin short then.
    pub fn over(window_ns: u64) -> Self {
        Self {
            interval_ns: grid::over(window_ns, POINTS_MAX),
            points: Vec::new(),
        }
    }

    /// This series with intervals of at least 100 ms, the usual length in long runs.
    pub fn coarsened(&self) -> Self {
        self.coarsened_to(grid::USUAL_NS)
    }

    /// This series with intervals of at least `interval_ns`.
    pub fn coarsened_to(&self, interval_ns: u64) -> Self {
        let mut coarse = self.clone();
        while coarse.interval_ns < interval_ns.min(grid::LONGEST_NS) {
            coarse.double();
        }
        coarse
    }

    /// The interval that holds `offset_ns` from the window's start. New intervals begin with
    /// `live` open connections.
    pub fn at(&mut self, offset_ns: u64, live: u32) -> &mut SeriesPoint {
        // The only division of an event's way through the recorder.
        let mut index = offset_ns / self.interval_ns;
        while index >= grid::most(self.interval_ns, POINTS_MAX) as u64 {
            self.double();
            index /= 2;
        }
        let index = index as usize;
        if self.points.len() <= index {
            let quiet = SeriesPoint {
                live_min: live,
                live_max: live,
                ..SeriesPoint::default()
            };
            self.points.resize(index + 1, quiet);
        }
        &mut self.points[index]
    }

    /// Adds the figures of `other`; connections add up, as the two held them side by side.
    pub fn merge(&mut self, other: &Self) {
        if other.points.is_empty() {
            return;
        }
        if self.points.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut other = other.clone();
        while self.interval_ns < other.interval_ns {
            self.double();
        }
        while other.interval_ns < self.interval_ns {
            other.double();
        }
        if self.points.len() < other.points.len() {
            self.points
                .resize(other.points.len(), SeriesPoint::default());
        }
        for (own, theirs) in self.points.iter_mut().zip(&other.points) {
            own.add_counts(theirs);
            merge_fields!(own, theirs: waiting_max live_min live_max);
        }
    }

    fn double(&mut self) {
        self.interval_ns *= 2;
        self.points = self
            .points
            .chunks(2)
            .map(|pair| {
                let mut joined = pair[0];
                for next in &pair[1..] {
                    joined.add_counts(next);
                    joined.waiting_max = joined.waiting_max.max(next.waiting_max);
                    joined.live_min = joined.live_min.min(next.live_min);
                    joined.live_max = joined.live_max.max(next.live_max);
                }
                joined
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTERVAL_NS: u64 = grid::USUAL_NS;

    fn totals(series: &Series) -> [u64; 4] {
        series.points.iter().fold([0; 4], |[a, b, c, d], point| {
            [
                a + point.successes,
                b + point.errors,
                c + point.failures,
                d + point.bytes_received,
            ]
        })
    }

    fn series() -> impl Strategy<Value = Series> {
        // Up to ten minutes: the interval doubles up to three times.
        prop::collection::vec((0_u64..600_000_000_000, 0_u64..3, 0_u32..50), 0..60).prop_map(
            |events| {
                let mut series = Series::default();
                for (offset_ns, count, live) in events {
                    let point = series.at(offset_ns, live);
                    point.successes += count;
                    point.errors += 1;
                    point.failures += 2 * count;
                    point.bytes_received += 100 * count;
                }
                series
            },
        )
    }

    #[test]
    fn events_fall_into_their_interval() {
        let mut series = Series::default();
        for offset_ns in [0, 99_999_999, 100_000_000, 350_000_000] {
            series.at(offset_ns, 1).successes += 1;
        }
        let successes: Vec<_> = series.points.iter().map(|point| point.successes).collect();
        assert_eq!(successes, [2, 1, 0, 1]);
    }

    #[test]
    fn the_interval_doubles_with_the_length() {
        // (offset, interval in units of 100 ms)
        let cases = [
            (119_999_999_999, 1),
            (120_000_000_000, 2),
            (240_000_000_000, 4),
            (3_600_000_000_000, 32),
            (u64::MAX, 1 << 28),
        ];
        for (offset_ns, units) in cases {
            let mut series = Series::default();
            series.at(0, 3).successes = 1;
            series.at(offset_ns, 5).successes += 1;
            assert_eq!(series.interval_ns, units * INTERVAL_NS, "{offset_ns}");
            assert_eq!(
                series.points.len() as u64,
                offset_ns / series.interval_ns + 1
            );
            assert_eq!(totals(&series)[0], 2);
        }
    }

    #[test]
    fn a_short_window_has_short_intervals() {
        // (length told beforehand, last event, interval in shares of 100 ms)
        for (window_ns, last_ns, share) in [
            (1_000_000_000, 999_999_999, 16),
            (10_000_000_000, 9_999_999_999, 1),
            (120_000_000_000, 119_999_999_999, 1),
            (0, 999_999_999, 16),
            (0, 119_999_999_999, 1),
        ] {
            let mut series = Series::over(window_ns);
            for index in 0..1_000 {
                series.at(index * last_ns / 999, 1).successes += 1;
            }
            assert_eq!(series.interval_ns, INTERVAL_NS / share, "{window_ns}");
            assert_eq!(series.points.len() as u64, last_ns / series.interval_ns + 1);
            assert_eq!(totals(&series)[0], 1_000);
            let coarse = series.coarsened();
            assert_eq!(
                (coarse.interval_ns, totals(&coarse)[0]),
                (INTERVAL_NS, 1_000)
            );
        }
    }

    #[test]
    fn joined_intervals_keep_their_extremes() {
        let mut series = Series::default();
        for (index, live) in [(0, 5), (1, 2), (2, 7)] {
            series.at(index * INTERVAL_NS, live);
        }
        series.double();
        let live: Vec<_> = series
            .points
            .iter()
            .map(|p| (p.live_min, p.live_max))
            .collect();
        assert_eq!(live, [(2, 5), (7, 7)]);
    }

    proptest! {
        #[test]
        fn merging_keeps_totals_and_commutes(a in series(), b in series()) {
            let mut ab = a.clone();
            ab.merge(&b);
            let mut ba = b.clone();
            ba.merge(&a);
            prop_assert_eq!(&ab, &ba);
            prop_assert!(ab.points.len() <= POINTS_MAX);
            for (sum, (a, b)) in totals(&ab).into_iter().zip(totals(&a).into_iter().zip(totals(&b)))
            {
                prop_assert_eq!(sum, a + b);
            }
        }

        #[test]
        fn doubling_keeps_totals(series in series()) {
            let mut doubled = series.clone();
            doubled.double();
            prop_assert_eq!(totals(&doubled), totals(&series));
            prop_assert_eq!(doubled.points.len(), series.points.len().div_ceil(2));
        }

        #[test]
        fn a_series_is_bounded(offsets in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut series = Series::default();
            for (index, &offset_ns) in offsets.iter().enumerate() {
                series.at(offset_ns, 1).successes += 1;
                prop_assert!(series.points.len() <= POINTS_MAX);
                prop_assert_eq!(totals(&series)[0], index as u64 + 1);
            }
        }
    }
}
