//! Figures over time, in a bounded number of equal intervals.

use serde::{Deserialize, Serialize};

/// Length of an interval at the start of a run: 100 ms.
const INTERVAL_NS: u64 = 100_000_000;
/// Beyond this many intervals neighbours are joined and the interval doubles.
const POINTS_MAX: usize = 1_200;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Length of an interval, nanoseconds: 100 ms, doubled as often as the run's length asks.
    pub interval_ns: u64,
    /// The intervals, oldest first; at most 1,200.
    pub points: Vec<SeriesPoint>,
}

impl Default for Series {
    fn default() -> Self {
        Self { interval_ns: INTERVAL_NS, points: Vec::new() }
    }
}

impl Series {
    /// The interval that holds `offset_ns` from the window's start. New intervals begin with
    /// `live` open connections.
    pub fn at(&mut self, offset_ns: u64, live: u32) -> &mut SeriesPoint {
        while offset_ns / self.interval_ns >= POINTS_MAX as u64 {
            self.double();
        }
        let index = (offset_ns / self.interval_ns) as usize;
        if self.points.len() <= index {
            let quiet = SeriesPoint { live_min: live, live_max: live, ..SeriesPoint::default() };
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
            self.points.resize(other.points.len(), SeriesPoint::default());
        }
        for (own, theirs) in self.points.iter_mut().zip(&other.points) {
            own.successes += theirs.successes;
            own.errors += theirs.errors;
            own.failures += theirs.failures;
            own.bytes_received += theirs.bytes_received;
            own.live_min += theirs.live_min;
            own.live_max += theirs.live_max;
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
                    joined.successes += next.successes;
                    joined.errors += next.errors;
                    joined.failures += next.failures;
                    joined.bytes_received += next.bytes_received;
                    joined.live_min = joined.live_min.min(next.live_min);
                    joined.live_max = joined.live_max.max(next.live_max);
                }
                joined
            })
            .collect();
    }
}
