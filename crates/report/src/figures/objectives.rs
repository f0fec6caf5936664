//! The outcome of each objective, as stored.

use brunt_judge::{Figure, Judged};
use serde::Serialize;

use crate::objective;

/// Whether an objective was reached. What was asked as numbers stands in the run's `objectives`, in
/// the same order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectiveFigures {
    /// What was asked, in words.
    pub asked: String,
    /// Whether the objective was reached.
    pub met: bool,
    /// What was measured, in the unit of the limit: nanoseconds, a share (0 to 1), or per second;
    /// null where that is not known.
    pub measured: Figure,
    /// The end of its 95 % interval that was compared with the limit; null without an interval.
    pub bound: Figure,
}

impl ObjectiveFigures {
    pub(super) fn all(judged: &Judged<'_>) -> Vec<Self> {
        let figures = judged.objectives().into_iter().map(|outcome| {
            let reason = outcome.reason.as_deref().unwrap_or("it has no interval");
            Self {
                asked: objective::asked(&outcome.objective),
                met: outcome.is_met,
                measured: Figure::of(outcome.measured, reason),
                bound: Figure::of(outcome.bound, reason),
            }
        });
        figures.collect()
    }
}
