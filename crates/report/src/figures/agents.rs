//! What each agent of a run did, and whether they did it at once.

use brunt_judge::{Figure, Judged, Summary};
use brunt_record::{Backend, Run};
use serde::Serialize;

/// The figures of one agent. Of a plain run there is one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentFigures {
    /// Id of the agent.
    pub id: String,
    /// What it is called in its fleet; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The wall clock when its window began, milliseconds since 1970-01-01 UTC.
    pub window_start_unix_ms: u64,
    /// Connections of the agent.
    pub connections: u32,
    /// Workers of the agent.
    pub workers: u32,
    /// The backend that ran.
    pub backend: Backend,
    /// Successful replies in its window.
    pub successes: u64,
    /// Successful replies in its window, per second; null where the run has no rates.
    pub successes_per_s: Figure,
}

impl AgentFigures {
    /// All agents of `run`. Each has a rate of its own, though all together may have none, unless
    /// invariants are broken.
    pub(super) fn all(judged: &Judged<'_>) -> Vec<Self> {
        let run = judged.run;
        let figures = run.agents.chunks(1).map(|alone| {
            let (agent, summary) = (&alone[0], Summary::of(run, alone));
            Self {
                id: agent.id.clone(),
                name: agent.fleet.as_ref().map(|fleet| fleet.name.clone()),
                window_start_unix_ms: agent.clock.window_start_unix_ms,
                connections: agent.share.connections,
                workers: agent.share.workers,
                backend: agent.backend,
                successes: summary.window.replies.successes(),
                successes_per_s: match judged.is_valid() {
                    true => summary.successes_per_s,
                    false => judged.rate(summary.successes_per_s),
                },
            }
        });
        figures.collect()
    }
}

/// Share of the window in which all agents measured at once.
pub(super) fn overlap_share(run: &Run) -> Figure {
    let share = run.overlap().map(|overlap| overlap.share);
    Figure::of(share, "there is one agent")
}
