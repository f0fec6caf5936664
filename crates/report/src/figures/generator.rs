//! Figures of what made the requests while the run went on, such as a script.

use brunt_judge::{Figure, Summary};
use brunt_record::{Run, SessionCounts};
use serde::Serialize;

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
    pub ns_per_request: Figure,
    /// The generator's share of the workers' time, which is part of brunt's own share; null without
    /// a window.
    pub workers_share: Figure,
    /// Contents of responses that were longer than is kept for it, of all phases.
    pub truncated: u64,
    /// Why it ended the run; null where it did not.
    pub error: Figure<String>,
    /// Sessions that it replayed, of all phases; null where it knows none.
    pub sessions: Figure<SessionCounts>,
}

impl GeneratorFigures {
    /// The figures of a run whose requests a generator made.
    pub(crate) fn of(run: &Run, summary: &Summary) -> Figure<Self> {
        let Some((used, workers)) = run.generator_use() else {
            return Figure::Absent("the requests were those of the plan".to_owned());
        };
        let issued = summary.population.issued;
        let time_ns = used.time_ns();
        let share = used.share(workers, run.window_ns);
        Figure::Known(Self {
            calls: used.calls,
            reported: used.reported,
            time_ns,
            ns_per_request: Figure::ratio(time_ns as f64, issued as f64, "no request was issued"),
            workers_share: Figure::of(share, "there was no window"),
            truncated: used.truncated,
            error: Figure::of(used.error, "there was none"),
            sessions: Figure::of(used.sessions, "no sessions were replayed"),
        })
    }
}
