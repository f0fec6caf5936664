//! The figures of each stage of a schedule.

use brunt_judge::{Figure, Judged};
use brunt_load::{Schedule, Stage};
use brunt_record::{ArrivalCounts, Run, STAGES_RECORDED_MAX, StageRecord};
use serde::Serialize;

use super::Outcomes;
use super::latency::Latency;

/// The outcome of the requests that were due in one stage, whenever they were answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageFigures {
    /// Arrivals per second asked for at its start.
    pub from_per_s: f64,
    /// Arrivals per second asked for at its end.
    pub to_per_s: f64,
    /// Length of the stage as asked for, nanoseconds.
    pub duration_ns: u64,
    /// How much of it lay in the window, nanoseconds: less in a run that ended early.
    pub measured_ns: u64,
    /// The outcome of the arrivals planned in it.
    pub arrivals: ArrivalCounts,
    /// What became of those that were issued.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// Successes per second of the stage, as far as it lay in the window.
    pub successes_per_s: Figure,
    /// Response time of the successes, from the planned instant, to two significant digits;
    /// minimum, maximum and mean are exact. It has no intervals.
    pub response: Latency,
}

/// A stage with its record, and how much of it lay in the window.
pub(crate) struct RecordedStage<'a> {
    pub(crate) asked: &'a Stage,
    pub(crate) record: &'a StageRecord,
    pub(crate) measured_ns: u64,
}

impl RecordedStage<'_> {
    /// Successes per second; absent where none of the stage lay in the window.
    pub(crate) fn successes_per_s(&self) -> Figure {
        let successes = self.record.response.count() as f64;
        let measured_s = self.measured_ns as f64 / 1e9;
        Figure::ratio(successes, measured_s, "the window ended before it")
    }
}

/// The stages of `run`, first to last.
///
/// # Errors
///
/// Why there are none.
pub(crate) fn recorded_stages(run: &Run) -> Result<Vec<RecordedStage<'_>>, String> {
    let asked = run.plan.model.schedule().map_or(&[][..], Schedule::stages);
    let records = &run.latencies.stages;
    if asked.is_empty() {
        return Err("no stages".to_owned());
    }
    if asked.len() > STAGES_RECORDED_MAX {
        return Err(format!("recorded of up to {STAGES_RECORDED_MAX} stages"));
    }
    if records.is_empty() {
        return Err("not recorded".to_owned());
    }
    let mut left_ns = run.window_ns;
    let stages = asked.iter().zip(records).map(|(asked, record)| {
        let measured_ns = asked.duration_ns.min(left_ns);
        left_ns -= measured_ns;
        RecordedStage {
            asked,
            record,
            measured_ns,
        }
    });
    Ok(stages.collect())
}

impl StageFigures {
    /// The figures of all stages.
    pub(super) fn all(judged: &Judged<'_>) -> Figure<Vec<Self>> {
        let stages = Figure::from(recorded_stages(judged.run));
        stages.map(|stages| stages.iter().map(|it| Self::new(judged, it)).collect())
    }

    fn new(judged: &Judged<'_>, stage: &RecordedStage<'_>) -> Self {
        let StageRecord {
            arrivals,
            population,
            response,
            ..
        } = stage.record;
        Self {
            from_per_s: stage.asked.from_per_s,
            to_per_s: stage.asked.to_per_s,
            duration_ns: stage.asked.duration_ns,
            measured_ns: stage.measured_ns,
            arrivals: *arrivals,
            outcomes: Outcomes::of(*population, response.count(), stage.record.errors()),
            successes_per_s: judged.rate(stage.successes_per_s()),
            response: Latency::of_stage(stage.record),
        }
    }
}
