//! What a run is asked to reach.

use serde::{Deserialize, Serialize};

/// Most objectives of a run.
pub const OBJECTIVES_MAX: usize = 100;

/// An objective that a run is asked to reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// A quantile of the response time lies below a limit.
    ResponseQuantile {
        /// The quantile, 0 to 1, both excluded.
        q: f64,
        /// The limit, nanoseconds.
        below_ns: u64,
    },
    /// The longest response time lies below a limit, and every request was answered.
    ResponseMax {
        /// The limit, nanoseconds.
        below_ns: u64,
    },
    /// The mean response time lies below a limit, and every request was answered.
    ResponseMean {
        /// The limit, nanoseconds.
        below_ns: u64,
    },
    /// The share of the requests that did not succeed, 0 to 1, lies below a limit.
    Errors {
        /// The limit.
        below: f64,
    },
    /// Every request succeeded. Says nothing of those that were not sent.
    NoErrors,
    /// The rate of successful replies per second lies above a limit.
    SuccessesPerS {
        /// The limit.
        above: f64,
    },
    /// The requests of one name reach an objective, which is not a rate and of no name.
    Named {
        /// The name, as reports have it.
        name: String,
        /// The objective for requests of this name.
        objective: Box<Self>,
    },
}

impl Objective {
    /// What is asked, of whichever requests.
    pub fn plain(&self) -> &Self {
        match self {
            Self::Named { objective, .. } => objective,
            other => other,
        }
    }
}
