//! What the invariants and the verdict need of a run, worked out once.

use brunt_load::LoadModel;
use brunt_record::{AgentRecord, Histogram, Run, WorkerRecord};

use crate::behaviour::steadiness::overload_of;
use crate::{Overload, Summary};

/// A run with what is derived from it, for all of its agents or for one of them.
pub(crate) struct Facts<'a> {
    pub(crate) run: &'a Run,
    /// The agents that are looked at; never none.
    pub(crate) agents: &'a [AgentRecord],
    /// The summary of these agents.
    pub(crate) summary: Summary,
    /// Absent for one of several agents: it is known of all together only.
    pub(crate) overload: Option<Overload>,
}

impl<'a> Facts<'a> {
    /// The facts of all agents together.
    pub(crate) fn of(run: &'a Run) -> Self {
        let summary = Summary::of(run, &run.agents);
        Self {
            run,
            agents: &run.agents,
            overload: overload_of(run, &summary),
            summary,
        }
    }

    /// The facts of each agent.
    pub(crate) fn of_agents(run: &'a Run) -> impl Iterator<Item = Self> {
        run.agents.chunks(1).map(move |agents| Self {
            run,
            agents,
            summary: Summary::of(run, agents),
            overload: None,
        })
    }

    /// The agent that is looked at, where it is one.
    pub(crate) fn agent(&self) -> &'a AgentRecord {
        &self.agents[0]
    }

    /// The workers of the agents that are looked at.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &'a WorkerRecord> + Clone {
        self.agents.iter().flat_map(|agent| &agent.workers)
    }

    /// The sum of something over the workers of the agents that are looked at.
    pub(crate) fn sum(&self, of: impl Fn(&WorkerRecord) -> u64) -> u128 {
        self.workers().map(|worker| u128::from(of(worker))).sum()
    }

    /// Whether any of the agents was cut short.
    pub(crate) fn interrupted(&self) -> bool {
        self.agents.iter().any(|agent| agent.interrupted)
    }

    /// The longest drain of the agents, nanoseconds.
    pub(crate) fn drain_ns(&self) -> u64 {
        let agents = self.agents.iter();
        let drains = agents.filter_map(|agent| agent.clock.drain_ns());
        drains.max().unwrap_or(0)
    }

    /// Replies after the window.
    pub(crate) fn drained(&self) -> u128 {
        self.sum(|worker| worker.tallies.after.replies.total())
    }

    /// The end of the window as an instant.
    pub(crate) fn window_end_ns(&self) -> i64 {
        i64::try_from(self.run.window_ns).unwrap_or(i64::MAX)
    }

    /// Whether the run was cut short before there was a window.
    pub(crate) fn no_window(&self) -> bool {
        self.run.window_ns == 0
    }

    /// The histograms of response time.
    pub(crate) fn latencies(&self) -> [(&'static str, &'a Histogram); 2] {
        let latencies = &self.run.latencies;
        let errors = "response time of error replies";
        [
            ("response time of successes", &latencies.response),
            (errors, &latencies.response_error),
        ]
    }

    /// The longest response time, nanoseconds.
    pub(crate) fn longest_ns(&self) -> u64 {
        let longest = self.latencies().map(|(_, histogram)| histogram.max_ns());
        longest[0].max(longest[1]).unwrap_or(0)
    }

    /// Whether the window ended because the requests asked for were done, so that its end is that
    /// of the last reply.
    pub(crate) fn ended_by_count(&self) -> bool {
        let shares = self.agents.iter().map(|agent| agent.share.requests);
        let asked = shares
            .reduce(|sum, share| Some(sum?.saturating_add(share?)))
            .flatten();
        let by_duration = self.run.plan.load.stop.duration_ns.is_some();
        let Some(asked) = asked else {
            // Without either, what makes the requests ended it.
            return !by_duration && !self.interrupted();
        };
        let before_plan = self.agents.iter().all(|agent| {
            let edges = &agent.clock.edges;
            match (edges.measure_end.get(), edges.measure_end_planned.get()) {
                (Some(end), Some(planned)) => end < planned,
                _ => true,
            }
        });
        let is_done = before_plan && self.accounted_of_count() >= asked;
        !self.interrupted() && (!by_duration || is_done)
    }

    /// The requests of a run by count (`--requests`) that were sent, given up or left over.
    pub(crate) fn accounted_of_count(&self) -> u64 {
        let sent = self.summary.population.issued;
        let sent = sent.saturating_add(self.summary.unsent);
        if self.is_open() {
            // With a schedule of requests, one is drawn when it is planned.
            let never_sent = self.never_sent();
            sent.saturating_add(u64::try_from(never_sent).unwrap_or(u64::MAX))
        } else {
            sent
        }
    }

    /// Arrivals of the window that were skipped or left.
    pub(crate) fn never_sent(&self) -> u128 {
        let arrivals = &self.summary.arrivals;
        let skipped = u128::from(arrivals.skipped_full) + u128::from(arrivals.skipped_late);
        skipped + u128::from(arrivals.unsent)
    }

    /// Whether each connection sends its next request when a reply is in.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.run.plan.load.model, LoadModel::Closed { .. })
    }

    /// Whether the run had a schedule of requests.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.run.plan.load.model, LoadModel::Open { .. })
    }

    /// Whether the run had a schedule of connections.
    pub(crate) fn is_sessions(&self) -> bool {
        matches!(self.run.plan.load.model, LoadModel::Sessions { .. })
    }

    /// The service times of successes, in whichever histogram they are: in that of their own, or
    /// in that of the response times where both count from the send.
    pub(crate) fn service(&self) -> &'a Histogram {
        let latencies = &self.run.latencies;
        if self.is_open() {
            &latencies.service
        } else {
            &latencies.response
        }
    }

    /// Requests that were due before the window and neither answered nor failed when it began:
    /// in flight or, with a schedule of requests, still waiting.
    pub(crate) fn left_by_warmup(&self) -> u128 {
        self.sum(|worker| {
            let before = &worker.tallies.before;
            let sent = if self.is_open() {
                let of_window = worker.arrivals.sent;
                worker.arrivals_all.sent.saturating_sub(of_window)
            } else {
                before.requests_sent
            };
            let failed = before.failures.of_requests(self.run.work());
            sent.saturating_sub(before.replies.total())
                .saturating_sub(failed)
        })
    }
}
