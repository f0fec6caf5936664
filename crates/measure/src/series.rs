//! Figures over time, in a bounded number of equal intervals.

use serde::{Deserialize, Serialize};

/// Length of an interval at the start of a run: 100 ms.
const INTERVAL_NS: u64 = 100_000_000;
/// Beyond this many intervals neighbours are joined and the interval doubles.
const POINTS_MAX: usize = 1_200;
/// The interval with which 1,200 points reach over every `u64`.
const INTERVAL_MAX_NS: u64 = INTERVAL_NS << 28;

/// What happened in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesPoint {
    /// Complete replies with status below 400.
    pub successes: u64,
    /// Complete replies with status 400 and above.
    pub errors: u64,
    /// Failures of any scope.
    pub failures: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
    /// Fewest open connections.
    pub live_min: u32,
    /// Most open connections.
    pub live_max: u32,
}

/// Figures over the window. Point `i` covers `[i, i + 1) * interval_ns` from the window's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Length of an interval, nanoseconds: 100 ms, doubled as often as the run's length asks.
    pub interval_ns: u64,
    /// The intervals, oldest first; at most 1,200.
    pub points: Vec<SeriesPoint>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            interval_ns: INTERVAL_NS,
            points: Vec::new(),
        }
    }
}

impl Series {
    /// The interval that holds `offset_ns` from the window's start. New intervals begin with
    /// `live` open connections.
    pub fn at(&mut self, offset_ns: u64, live: u32) -> &mut SeriesPoint {
        // The only division of an event's way through the recorder.
        let mut index = offset_ns / self.interval_ns;
        while index >= POINTS_MAX as u64 {
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
            own.successes = own.successes.saturating_add(theirs.successes);
            own.errors = own.errors.saturating_add(theirs.errors);
            own.failures = own.failures.saturating_add(theirs.failures);
            own.bytes_received = own.bytes_received.saturating_add(theirs.bytes_received);
            own.live_min = own.live_min.saturating_add(theirs.live_min);
            own.live_max = own.live_max.saturating_add(theirs.live_max);
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
                    joined.successes = joined.successes.saturating_add(next.successes);
                    joined.errors = joined.errors.saturating_add(next.errors);
                    joined.failures = joined.failures.saturating_add(next.failures);
                    joined.bytes_received =
                        joined.bytes_received.saturating_add(next.bytes_received);
                    joined.live_min = joined.live_min.min(next.live_min);
                    joined.live_max = joined.live_max.max(next.live_max);
                }
                joined
            })
            .collect();
    }
}

/// What a stored series says, before it is believed: merging relies on the interval's form.
#[derive(Deserialize)]
struct Stored {
    interval_ns: u64,
    points: Vec<SeriesPoint>,
}

impl<'de> Deserialize<'de> for Series {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored {
            interval_ns,
            points,
        } = Stored::deserialize(deserializer)?;
        let doublings = interval_ns / INTERVAL_NS;
        if interval_ns % INTERVAL_NS != 0
            || !doublings.is_power_of_two()
            || interval_ns > INTERVAL_MAX_NS
        {
            return Err(serde::de::Error::custom(format!(
                "no such interval of a series: {interval_ns} ns"
            )));
        }
        if points.len() > POINTS_MAX {
            return Err(serde::de::Error::custom(format!(
                "a series of {} points, over the limit of {POINTS_MAX}",
                points.len()
            )));
        }
        Ok(Self {
            interval_ns,
            points,
        })
    }
}
