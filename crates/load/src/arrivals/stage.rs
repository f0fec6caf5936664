//! A stage of a schedule: a rate that changes linearly over a time.

use serde::{Deserialize, Serialize};

/// A rate that changes linearly over a time; equal rates at both ends hold it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// How long it lasts, nanoseconds; above 0.
    pub duration_ns: u64,
    /// The rate at its start, arrivals per second; 0 to [`super::Schedule::RATE_MAX_PER_S`].
    pub from_per_s: f64,
    /// The rate at its end, arrivals per second; 0 to [`super::Schedule::RATE_MAX_PER_S`].
    pub to_per_s: f64,
}

impl Stage {
    /// The rate at an offset from its start.
    pub(super) fn rate_at(&self, offset_ns: u64) -> f64 {
        let part = offset_ns as f64 / self.duration_ns as f64;
        self.from_per_s + (self.to_per_s - self.from_per_s) * part
    }

    /// Expected number of arrivals.
    pub(super) fn expected(&self) -> f64 {
        expected(self.duration_ns, (self.from_per_s + self.to_per_s) / 2.0)
    }
}

/// Expected number of arrivals at a rate.
pub(super) fn expected(duration_ns: u64, rate_per_s: f64) -> f64 {
    // Divided last: exact for whole rates and times of usual size.
    duration_ns as f64 * rate_per_s / 1e9
}
