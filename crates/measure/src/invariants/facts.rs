//! What several checks need of a run, worked out once.

use crate::{FailureScope, Figure, Histogram, Quantile, Run, Summary, WorkerRecord};

/// The quantiles that are looked at: those that reports print.
const QUANTILES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// A quantile as a report would print it.
#[derive(Clone, Debug)]
pub(super) struct PrintedQuantile {
    /// The population it is of.
    pub(super) of: &'static str,
    /// Which quantile, 0 to 1.
    pub(super) q: f64,
    /// Samples at hand.
    pub(super) samples: u64,
    /// What would be printed.
    pub(super) printed: Quantile,
}

/// A run with what is derived from it.
pub(super) struct Facts<'a> {
    pub(super) run: &'a Run,
    pub(super) summary: Summary,
    pub(super) quantiles: Vec<PrintedQuantile>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let mut facts = Self {
            run,
            summary: run.summary(),
            quantiles: Vec::new(),
        };
        facts.quantiles = facts
            .histograms()
            .into_iter()
            .flat_map(|(of, histogram)| {
                QUANTILES.into_iter().map(move |q| PrintedQuantile {
                    of,
                    q,
                    samples: histogram.count(),
                    printed: histogram.quantile(q),
                })
            })
            .collect();
        facts
    }

    /// The histograms with their names in words.
    pub(super) fn histograms(&self) -> [(&'static str, &'a Histogram); 3] {
        let [success, error] = self.latencies();
        [
            success,
            error,
            ("time to connect", &self.run.latencies.connect),
        ]
    }

    /// The histograms of response time.
    pub(super) fn latencies(&self) -> [(&'static str, &'a Histogram); 2] {
        [
            ("response time of successes", &self.run.latencies.response),
            (
                "response time of error replies",
                &self.run.latencies.response_error,
            ),
        ]
    }

    /// The figures that a report may print.
    pub(super) fn figures(&self) -> [(&'static str, &Figure); 6] {
        let summary = &self.summary;
        [
            ("successes per second", &summary.successes_per_s),
            ("attempts per second", &summary.attempts_per_s),
            ("bytes received per second", &summary.bytes_received_per_s),
            ("mean of open connections", &summary.live_mean),
            ("mean of requests under way", &summary.under_way_mean),
            ("CPU per reply", &summary.cpu_ns_per_reply),
        ]
    }

    /// Length of the common window, nanoseconds.
    pub(super) fn window_ns(&self) -> u64 {
        self.run.window.length_ns()
    }

    /// Whether the run was cut short before there was a window.
    pub(super) fn no_window(&self) -> bool {
        self.window_ns() == 0
    }

    /// Whether the window ended because the requests asked for were done, so that its end is that
    /// of the last reply.
    pub(super) fn ended_by_count(&self) -> bool {
        let edges = &self.run.edges;
        let Some(asked) = self.run.load.requests else {
            return false;
        };
        let done = self
            .summary
            .population
            .issued
            .saturating_add(self.summary.unsent);
        let before_plan = match (edges.measure_end.get(), edges.measure_end_planned.get()) {
            (Some(end), Some(planned)) => end < planned,
            _ => true,
        };
        !self.run.interrupted
            && (self.run.load.duration_ns.is_none() || (before_plan && done >= asked))
    }

    /// Requests of set-up and warm-up that were still under way when the window began.
    pub(super) fn under_way_at_start(worker: &WorkerRecord) -> u64 {
        let before = &worker.tallies.before;
        before
            .requests_sent
            .saturating_sub(before.replies.total())
            .saturating_sub(before.failures.total(FailureScope::Request))
    }
}

/// The sum, in a type that cannot overflow.
pub(super) fn sum(values: impl IntoIterator<Item = u64>) -> u128 {
    values.into_iter().map(u128::from).sum()
}
