//! Figures of what made the requests while the run went on, such as a script.

use brunt_judge::Summary;
use brunt_record::{Run, SessionUse};
use serde::Serialize;

use super::absent::Absent;

/// What made the requests, over the window, of all workers. Times are estimates: some of the calls
/// are timed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratorFigures {
    /// Calls for the next requests.
    pub calls: u64,
    /// Responses that were reported to it.
    pub reported: u64,
    /// Time in all of these calls and reports, nanoseconds.
    pub time_ns: u64,
    /// Time in all of these calls and reports per request that was issued in the window,
    /// nanoseconds; null without such a request.
    pub ns_per_request: Option<f64>,
    /// The generator's share of the workers' time, which is part of brunt's own share; null without
    /// a window.
    pub workers_share: Option<f64>,
    /// Contents of responses that were longer than is kept for it, of all phases.
    pub truncated: u64,
    /// Why it ended the run; null where it did not.
    pub error: Option<String>,
    /// Sessions that it replayed, of all phases; null where it knows none.
    pub sessions: Option<SessionUse>,
}

impl GeneratorFigures {
    /// Says what of it is not known.
    pub(super) fn new(run: &Run, summary: &Summary, absent: &mut Absent) -> Option<Self> {
        let Some(used) = Self::of(run, summary) else {
            return absent.note("generator", "the requests were those of the plan");
        };
        for (name, is_known, reason) in [
            (
                "ns_per_request",
                used.ns_per_request.is_some(),
                "no request was issued",
            ),
            (
                "workers_share",
                used.workers_share.is_some(),
                "there was no window",
            ),
            ("error", used.error.is_some(), "there was none"),
            (
                "sessions",
                used.sessions.is_some(),
                "no sessions were replayed",
            ),
        ] {
            let path = format!("generator.{name}");
            absent.known(&path, is_known.then_some(()), reason);
        }
        Some(used)
    }

    /// The figures of a run whose requests a generator made. Absent where they were those of the
    /// plan.
    pub(crate) fn of(run: &Run, summary: &Summary) -> Option<Self> {
        let (used, workers) = run.generator_use()?;
        let issued = summary.population.issued;
        Some(Self {
            calls: used.calls,
            reported: used.reported,
            time_ns: used.time_ns(),
            ns_per_request: (issued > 0).then(|| used.time_ns() as f64 / issued as f64),
            workers_share: used.share(workers, run.window_ns),
            truncated: used.truncated,
            error: used.error,
            sessions: used.sessions,
        })
    }
}
