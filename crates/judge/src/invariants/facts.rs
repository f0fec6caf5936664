//! What several checks need of a run, worked out once.

use brunt_load::LoadModel;
use brunt_record::{AgentRecord, Histogram, Run, WorkerRecord};

use crate::behaviour::overload::overload_of;
use crate::{Overload, Quantile, ResponseQuantiles, Summary};

/// The quantiles that are looked at: those that reports print.
const QUANTILES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// The population that requests without an end belong to as well.
const RESPONSE: &str = "response time of successes";

/// A quantile of the response time as a report would print it.
#[derive(Clone, Debug)]
pub(super) struct PrintedQuantile {
    /// Which quantile, 0 to 1.
    pub(super) q: f64,
    /// What would be printed.
    pub(super) printed: Quantile,
}

/// A run with what is derived from it, for all of its agents or for one of them.
pub(crate) struct Facts<'a> {
    pub(super) run: &'a Run,
    /// The agents that are looked at; never none.
    pub(super) agents: &'a [AgentRecord],
    /// The summary of these agents.
    pub(crate) summary: Summary,
    pub(super) quantiles: Vec<PrintedQuantile>,
    pub(super) overload: Option<Overload>,
}

impl<'a> Facts<'a> {
    /// The facts of all agents together.
    pub(crate) fn of(run: &'a Run) -> Self {
        let summary = Summary::of(run, &run.agents);
        let quantiles = QUANTILES.into_iter().map(|q| PrintedQuantile {
            q,
            printed: run.response_quantile(q),
        });
        Self {
            run,
            agents: &run.agents,
            overload: overload_of(run, &summary),
            summary,
            quantiles: quantiles.collect(),
        }
    }

    /// The facts of each agent, without those that are known of all together only: quantiles and
    /// overload.
    pub(super) fn of_agents(run: &'a Run) -> impl Iterator<Item = Self> {
        run.agents.chunks(1).map(move |agents| Self {
            run,
            agents,
            summary: Summary::of(run, agents),
            overload: None,
            quantiles: Vec::new(),
        })
    }

    /// The agent that is looked at, where it is one.
    pub(super) fn agent(&self) -> &'a AgentRecord {
        &self.agents[0]
    }

    /// The workers of the agents that are looked at.
    pub(super) fn workers(&self) -> impl Iterator<Item = &'a WorkerRecord> + Clone {
        self.agents.iter().flat_map(|agent| &agent.workers)
    }

    /// The number of a worker, in words where several agents have one of that number.
    pub(super) fn number(&self, worker: &WorkerRecord) -> String {
        let number = worker.worker;
        let is_here =
            |agent: &&AgentRecord| agent.workers.iter().any(|it| std::ptr::eq(it, worker));
        match self.agents {
            [_] => number.to_string(),
            agents => match agents.iter().position(|agent| is_here(&agent)) {
                Some(agent) => format!("{number} of agent {}", agent + 1),
                None => number.to_string(),
            },
        }
    }

    /// Whether any of the agents was cut short.
    pub(super) fn interrupted(&self) -> bool {
        self.agents.iter().any(|agent| agent.interrupted)
    }

    /// The longest drain of the agents, nanoseconds.
    pub(super) fn drain_ns(&self) -> u64 {
        let drains = self
            .agents
            .iter()
            .filter_map(|agent| agent.clock.drain_ns());
        drains.max().unwrap_or(0)
    }

    /// The end of the window as an instant.
    pub(super) fn window_end_ns(&self) -> i64 {
        i64::try_from(self.run.window_ns).unwrap_or(i64::MAX)
    }

    /// The histograms with their names in words.
    pub(super) fn histograms(&self) -> [(&'static str, &'a Histogram); 14] {
        let [success, error] = self.latencies();
        let latencies = &self.run.latencies;
        [
            success,
            error,
            ("service time", &latencies.service),
            ("time without an end", &latencies.unfinished),
            ("schedule lag", &latencies.lag),
            ("time to connect", &latencies.connect),
            ("time of the TLS handshake", &latencies.tls),
            ("time to the HTTP/2 settings", &latencies.greeting),
            ("response time with connecting", &latencies.with_connect),
            ("time to first byte", &latencies.first_byte),
            ("time of transfer", &latencies.transfer),
            ("time to first reply", &latencies.first_reply),
            ("own share", &latencies.split.own),
            ("response time without it", &latencies.split.rest),
        ]
    }

    /// The histograms of response time.
    pub(super) fn latencies(&self) -> [(&'static str, &'a Histogram); 2] {
        [
            (RESPONSE, &self.run.latencies.response),
            (
                "response time of error replies",
                &self.run.latencies.response_error,
            ),
        ]
    }

    /// Length of the common window, nanoseconds.
    pub(super) fn window_ns(&self) -> u64 {
        self.run.window_ns
    }

    /// Whether the run was cut short before there was a window.
    pub(super) fn no_window(&self) -> bool {
        self.window_ns() == 0
    }

    /// Whether the window ended because the requests asked for were done, so that its end is that
    /// of the last reply.
    pub(super) fn ended_by_count(&self) -> bool {
        let shares = self.agents.iter().map(|agent| agent.share.requests);
        let asked = shares
            .reduce(|sum, share| Some(sum?.saturating_add(share?)))
            .flatten();
        let Some(asked) = asked else {
            // Without either, what makes the requests ended it.
            return self.run.plan.stop.duration_ns.is_none() && !self.interrupted();
        };
        let done = self.accounted_of_count();
        let before_plan = self.agents.iter().all(|agent| {
            let edges = &agent.clock.edges;
            match (edges.measure_end.get(), edges.measure_end_planned.get()) {
                (Some(end), Some(planned)) => end < planned,
                _ => true,
            }
        });
        !self.interrupted()
            && (self.run.plan.stop.duration_ns.is_none() || (before_plan && done >= asked))
    }

    /// The requests of a run by count (`--requests`) that were sent, given up or left over.
    pub(super) fn accounted_of_count(&self) -> u64 {
        let summary = &self.summary;
        let sent = summary.population.issued.saturating_add(summary.unsent);
        if self.is_open() {
            // With a schedule of requests, one is drawn when it is planned.
            sent.saturating_add(summary.arrivals.skipped_full)
                .saturating_add(summary.arrivals.skipped_late)
                .saturating_add(summary.arrivals.unsent)
        } else {
            sent
        }
    }

    /// Whether the run had a schedule of requests.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.run.plan.model, LoadModel::Open { .. })
    }

    /// The service times of successes, in whichever histogram they are: in that of their own, or
    /// in that of the response times where both count from the send.
    pub(super) fn service(&self) -> &'a Histogram {
        let latencies = &self.run.latencies;
        if self.is_open() {
            &latencies.service
        } else {
            &latencies.response
        }
    }

    /// Whether the run had a schedule of connections.
    pub(super) fn is_sessions(&self) -> bool {
        matches!(self.run.plan.model, LoadModel::Sessions { .. })
    }

    /// Requests that were due before the window and neither answered nor failed when it began:
    /// in flight or, with a schedule of requests, still waiting.
    pub(super) fn left_by_warmup(&self, worker: &WorkerRecord) -> u64 {
        let before = &worker.tallies.before;
        let sent = if self.is_open() {
            let (all, of_window) = (worker.arrivals_all.sent, worker.arrivals.sent);
            all.saturating_sub(of_window)
        } else {
            before.requests_sent
        };
        sent.saturating_sub(before.replies.total())
            .saturating_sub(before.failures.of_requests(self.run.plan.connects_only()))
    }
}

/// The sum, in a type that cannot overflow.
pub(super) fn sum(values: impl IntoIterator<Item = u64>) -> u128 {
    values.into_iter().map(u128::from).sum()
}
