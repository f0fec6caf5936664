//! The outcome of each objective, as stored.

use brunt_judge::Judged;
use serde::Serialize;

use super::absent::Absent;
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
    pub measured: Option<f64>,
    /// The end of its 95 % interval that was compared with the limit; null without an interval.
    pub bound: Option<f64>,
}

impl ObjectiveFigures {
    pub(super) fn all(judged: &Judged<'_>, absent: &mut Absent) -> Vec<Self> {
        let outcomes = judged.objectives().into_iter().enumerate();
        let figures = outcomes.map(|(place, outcome)| {
            let reason = outcome.reason.as_deref().unwrap_or("it has no interval");
            let mut known = |name: &str, value: Option<f64>| {
                value.or_else(|| absent.note(&format!("objectives.{place}.{name}"), reason))
            };
            Self {
                asked: objective::asked(&outcome.objective),
                met: outcome.is_met,
                measured: known("measured", outcome.measured),
                bound: known("bound", outcome.bound),
            }
        });
        figures.collect()
    }
}
