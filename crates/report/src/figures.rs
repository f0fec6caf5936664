//! The derived figures of the stored form and of the table: plain numbers, or null with a reason.

use std::collections::BTreeMap;

use brunt_measure::{FailureScope, Figure, Finding, Histogram, Quantile, Run, Standing, Summary};
use serde::Serialize;

/// Figures derived from the run, for readers that do not want to add up workers themselves. A
/// figure that is undefined is null and `absent` says why. Ignored when a stored run is read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoredSummary {
    /// Whether no invariant is broken. If false, the rates are withheld.
    pub valid: bool,
    /// Names of the broken invariants.
    pub broken: Vec<String>,
    /// Names of the invariants that hold, but not well.
    pub flagged: Vec<String>,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// Successful replies (status below 400) per second of the window: the headline.
    pub successes_per_s: Option<f64>,
    /// Requests sent per second of the window, whatever became of them.
    pub attempts_per_s: Option<f64>,
    /// Bytes read from sockets per second of the window.
    pub bytes_received_per_s: Option<f64>,
    /// What became of the requests sent in the window.
    pub requests: Requests,
    /// Replies that were complete in the window, whenever their request was sent: the numerator
    /// of the headline.
    pub replies: Replies,
    /// Requests of all phases.
    pub all_phases: AllPhases,
    /// Open connections over the window.
    pub live: LiveRange,
    /// Mean of the requests under way over the window.
    pub under_way_mean: Option<f64>,
    /// Response time of successful replies to requests sent in the window.
    pub response: Latency,
    /// Response time of error replies (status 400 and above) to requests sent in the window.
    pub response_error: Latency,
    /// Time to open a connection, over all phases.
    pub connect: Latency,
    /// CPU of the process (user and system) per complete reply of the window, nanoseconds.
    pub cpu_ns_per_reply: Option<f64>,
    /// Most memory resident at any time, bytes.
    pub peak_resident_bytes: u64,
    /// Why a figure is null, by its path, such as `response.p99_9_ns`.
    pub absent: BTreeMap<String, String>,
}

/// What became of the requests sent in the window:
/// `issued = successes + errors + failed + censored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requests {
    /// Sent in the window.
    pub issued: u64,
    /// Answered with a status below 400 by the end of drain.
    pub successes: u64,
    /// Answered with a status of 400 and above by the end of drain.
    pub errors: u64,
    /// Failed.
    pub failed: u64,
    /// Neither answered nor failed when drain ended.
    pub censored: u64,
    /// Of a number of requests that was asked for, never sent.
    pub unsent: u64,
}

/// Replies that were complete in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replies {
    /// Status below 400.
    pub successes: u64,
    /// Status 400 and above.
    pub errors: u64,
}

/// Requests and connections of all phases: `sent = answered + failed + under_way`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllPhases {
    /// Requests handed to the kernel.
    pub sent: u64,
    /// Complete final replies.
    pub answered: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests still under way when drain ended.
    pub under_way: u64,
    /// Attempts to open a connection that failed.
    pub connect_failures: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Of these, opened beyond the number asked for: each took the place of an earlier one.
    pub connections_replaced: u64,
    /// Connections that the server closed while no request was under way.
    pub connections_closed_by_server: u64,
}

/// Open connections over the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveRange {
    /// Connections asked for.
    pub asked: u32,
    /// Fewest, as the sum of the workers' fewest: never more than were open at any instant.
    pub min: u32,
    /// Mean over the window.
    pub mean: Option<f64>,
    /// Most, as the sum of the workers' most: never fewer than were open at any instant.
    pub max: u32,
}

/// A distribution, nanoseconds. A quantile is null when there are too few samples for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Samples.
    pub count: u64,
    /// The smallest, exact.
    pub min_ns: Option<u64>,
    /// The mean.
    pub mean_ns: Option<f64>,
    /// The median.
    pub p50_ns: Option<u64>,
    /// Nine in ten are not above it.
    pub p90_ns: Option<u64>,
    /// 99 in 100 are not above it.
    pub p99_ns: Option<u64>,
    /// 999 in 1,000 are not above it.
    pub p99_9_ns: Option<u64>,
    /// 9,999 in 10,000 are not above it.
    pub p99_99_ns: Option<u64>,
    /// The largest, exact.
    pub max_ns: Option<u64>,
}

/// The findings of `run` with this standing.
pub(crate) fn standing_at(run: &Run, standing: Standing) -> impl Iterator<Item = &Finding> {
    run.findings
        .iter()
        .filter(move |finding| finding.standing == standing)
}

/// Their names.
pub(crate) fn ids<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<String> {
    findings.map(|finding| finding.id.clone()).collect()
}

impl StoredSummary {
    /// Derives the figures of `run`.
    pub fn new(run: &Run) -> Self {
        let summary = run.summary();
        let broken = ids(standing_at(run, Standing::Broken));
        let mut absent = Absent::default();
        let withheld =
            (!broken.is_empty()).then(|| format!("withheld: {} broken", broken.join(", ")));
        let mut rate = |path, figure: &Figure| match &withheld {
            Some(reason) => absent.note(path, reason.clone()),
            None => absent.figure(path, figure),
        };
        let successes_per_s = rate("successes_per_s", &summary.successes_per_s);
        let attempts_per_s = rate("attempts_per_s", &summary.attempts_per_s);
        let bytes_received_per_s = rate("bytes_received_per_s", &summary.bytes_received_per_s);
        Self {
            valid: broken.is_empty(),
            broken,
            flagged: ids(standing_at(run, Standing::Flagged)),
            window_ns: run.window.length_ns(),
            successes_per_s,
            attempts_per_s,
            bytes_received_per_s,
            requests: Requests {
                issued: summary.population.issued,
                successes: run.response.count(),
                errors: run.response_error.count(),
                failed: summary.population.failed,
                censored: summary.population.censored,
                unsent: summary.unsent,
            },
            replies: Replies {
                successes: summary.window.replies.successes(),
                errors: summary.window.replies.errors(),
            },
            all_phases: AllPhases::new(&summary),
            live: LiveRange {
                asked: summary.live.asked,
                min: summary.live.min,
                mean: absent.figure("live.mean", &summary.live_mean),
                max: summary.live.max,
            },
            under_way_mean: absent.figure("under_way_mean", &summary.under_way_mean),
            response: absent.latency("response", &run.response),
            response_error: absent.latency("response_error", &run.response_error),
            connect: absent.latency("connect", &run.connect),
            cpu_ns_per_reply: absent.figure("cpu_ns_per_reply", &summary.cpu_ns_per_reply),
            peak_resident_bytes: run.host.peak_resident_bytes,
            absent: absent.0,
        }
    }
}

impl AllPhases {
    /// Adds up what `summary` holds of all phases.
    pub(crate) fn new(summary: &Summary) -> Self {
        let opened = summary.lifetime.connections_opened;
        Self {
            sent: summary.lifetime.requests_sent,
            answered: summary.lifetime.replies.total(),
            failed: summary.lifetime.failures.total(FailureScope::Request),
            under_way: summary.under_way_at_end,
            connect_failures: summary.lifetime.failures.total(FailureScope::Connect),
            connections_opened: opened,
            connections_replaced: opened.saturating_sub(u64::from(summary.live.asked)),
            connections_closed_by_server: summary.lifetime.connections_closed_idle,
        }
    }
}

/// The reasons collected so far.
#[derive(Default)]
struct Absent(BTreeMap<String, String>);

impl Absent {
    fn note<T>(&mut self, path: &str, reason: String) -> Option<T> {
        self.0.insert(path.to_owned(), reason);
        None
    }

    fn figure(&mut self, path: &str, figure: &Figure) -> Option<f64> {
        match figure {
            Figure::Known(value) => Some(*value),
            Figure::Absent(reason) => self.note(path, reason.clone()),
        }
    }

    fn latency(&mut self, path: &str, histogram: &Histogram) -> Latency {
        let mut quantile = |name: &str, q: f64| match histogram.quantile(q) {
            Quantile::Known(ns) => Some(ns),
            Quantile::TooFew { samples, needed } => self.note(
                &format!("{path}.{name}"),
                format!("too few samples ({samples}, need {needed})"),
            ),
        };
        let mut latency = Latency {
            count: histogram.count(),
            min_ns: histogram.min_ns(),
            mean_ns: histogram.mean_ns(),
            p50_ns: quantile("p50_ns", 0.5),
            p90_ns: quantile("p90_ns", 0.9),
            p99_ns: quantile("p99_ns", 0.99),
            p99_9_ns: quantile("p99_9_ns", 0.999),
            p99_99_ns: quantile("p99_99_ns", 0.9999),
            max_ns: histogram.max_ns(),
        };
        if latency.count == 0 {
            for name in ["min_ns", "max_ns"] {
                self.note::<u64>(&format!("{path}.{name}"), "no sample".to_owned());
            }
            latency.mean_ns = self.note(&format!("{path}.mean_ns"), "no sample".to_owned());
        }
        latency
    }
}
