//! The figures of each stage of a schedule.

use brunt_load::{Schedule, Stage};
use brunt_record::{ArrivalCounts, Run, STAGES_RECORDED_MAX, StageRecord};
use serde::Serialize;

use super::absent::Absent;
use super::latency::Latency;

/// The outcome of the requests that were due in one stage, whenever they were answered.
/// `issued = successes + errors + failed + censored`.
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
    /// Requests issued of these arrivals.
    pub issued: u64,
    /// Answered with a status below 400 by the end of drain.
    pub successes: u64,
    /// Answered with a status of 400 and above by the end of drain.
    pub errors: u64,
    /// Failed.
    pub failed: u64,
    /// Neither answered nor failed when drain ended.
    pub censored: u64,
    /// Successes per second of the stage, as far as it lay in the window.
    pub successes_per_s: Option<f64>,
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
    pub(crate) fn successes_per_s(&self) -> Option<f64> {
        let successes = self.record.response.count() as f64;
        (self.measured_ns > 0).then(|| successes * 1e9 / self.measured_ns as f64)
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
    /// The figures of all stages, with the reasons for what is null.
    pub(super) fn all(run: &Run, absent: &mut Absent) -> Option<Vec<Self>> {
        let stages = match recorded_stages(run) {
            Ok(stages) => stages,
            Err(reason) => return absent.note("stages", &reason),
        };
        let figures = stages.iter().enumerate().map(|(index, stage)| {
            let path = format!("stages.{index}");
            Self::new(&path, stage, absent)
        });
        Some(figures.collect())
    }

    fn new(path: &str, stage: &RecordedStage<'_>, absent: &mut Absent) -> Self {
        let StageRecord {
            arrivals,
            population,
            response,
            ..
        } = stage.record;
        let rate_path = format!("{path}.successes_per_s");
        let successes_per_s = absent.unless_withheld(&rate_path).and_then(|()| {
            let reason = "the window ended before it";
            absent.known(&rate_path, stage.successes_per_s(), reason)
        });
        Self {
            from_per_s: stage.asked.from_per_s,
            to_per_s: stage.asked.to_per_s,
            duration_ns: stage.asked.duration_ns,
            measured_ns: stage.measured_ns,
            arrivals: *arrivals,
            issued: population.issued,
            successes: response.count(),
            errors: stage.record.errors(),
            failed: population.failed,
            censored: population.censored,
            successes_per_s,
            response: Latency::of_stage(&format!("{path}.response"), stage.record, absent),
        }
    }
}
