//! Two-sided 95 % confidence intervals: why a figure has none, the ranks of order statistics at the
//! ends of one, and how many samples they need.

/// Half the width of a two-sided 95 % interval, in standard deviations.
pub(crate) const Z_95: f64 = 1.96;

/// A two-sided 95 % confidence interval of a quantile: in 95 of 100 runs it holds the one of a much
/// longer run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Interval {
    /// The lower end of the interval, nanoseconds.
    pub low_ns: u64,
    /// The upper end of the interval, nanoseconds.
    pub high_ns: u64,
}

/// A two-sided 95 % confidence interval of a rate.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct RateInterval {
    /// The lower end of the interval, per second.
    pub low_per_s: f64,
    /// The upper end of the interval, per second.
    pub high_per_s: f64,
}

/// Why a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoInterval {
    /// It is not recorded when the durations were measured, so that neighbours may have been alike.
    #[error("how it varied over the window is not recorded")]
    NotOverTime,
    /// What varies over the window was planned to vary.
    #[error("the rate is planned to vary over the window")]
    PlannedToVary,
    /// The run has no requests.
    #[error("streams carry no requests")]
    NoRequests,
    /// The window has no length.
    #[error("the measure phase has no length")]
    NoWindow,
    /// What is not seen often over the window cannot be seen to vary.
    #[error("too few parts of the window have replies ({parts}, need {needed})")]
    TooFewParts {
        /// Parts of the window that hold the replies.
        parts: u64,
        /// Parts needed.
        needed: u64,
    },
    /// Replies that are near in time are alike, so that the interval would reach beyond them all.
    #[error(
        "it varied over the window; a run about {} times as long would tell",
        self.times_longer().unwrap_or(2)
    )]
    TooAlike {
        /// Replies at hand.
        samples: u64,
        /// Effective sample size: as many independent replies would tell as much.
        worth: u64,
        /// Independent ones needed.
        needed: u64,
    },
    /// The upper end of the interval is among requests that were never answered.
    #[error("requests that were never answered may lie within it")]
    Unanswered,
}

impl NoInterval {
    /// A run that is about so many times as long would have an interval, where length is what is
    /// missing: 2 or more.
    pub fn times_longer(self) -> Option<u64> {
        match self {
            Self::TooAlike { worth, needed, .. } => Some(needed.div_ceil(worth.max(1)).max(2)),
            _ => None,
        }
    }
}

/// The ranks (from 1) of the `q`-quantile of `samples` values, at least one, and of the ends of
/// its interval, if they tell as much as `worth` independent ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranks {
    pub(crate) low: u64,
    pub(crate) middle: u64,
    pub(crate) high: u64,
}

impl Ranks {
    pub(crate) fn of(samples: u64, q: f64, worth: f64) -> Self {
        let expected = samples as f64 * q;
        let margin = Z_95 * samples as f64 * (q * (1.0 - q) / worth).sqrt();
        let rank = |rank: f64| (rank as u64).clamp(1, samples);
        Self {
            low: rank((expected - margin).floor()),
            // As `value_at_quantile` has it: 0.99 of 100 is the 99th for all that floats say.
            middle: rank((expected - 1e-9 * expected).ceil()),
            high: rank((expected + margin).ceil() + 1.0),
        }
    }
}

/// The fewest samples with which a two-sided 95 % interval of the `q`-quantile (0 < q < 1) lies
/// within the samples on both sides: `max(q, 1-q)^n <= 0.025`, so 368 for p99 and 3,688 for p99.9.
/// For any other `q` no number suffices (`u64::MAX`).
pub fn samples_needed(q: f64) -> u64 {
    if !(q > 0.0 && q < 1.0) {
        return u64::MAX;
    }
    (0.025_f64.ln() / q.max(1.0 - q).ln()).ceil() as u64
}
