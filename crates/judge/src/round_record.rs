//! The outcome of one round of an experiment, as it is stored: figures and verdict, without the
//! histograms of a whole run.

use std::collections::BTreeMap;

use brunt_record::{CpuUse, FailureCounts, StatusCounts, counted};
use serde::{Deserialize, Serialize};

use crate::elasticity::Elasticity;
use crate::verdict::own_part_of;
use crate::{Grade, Judged, Quantile, ResponseQuantiles, SignalId, Verdict};

/// Why a round in which brunt was the limit is no measurement.
pub(crate) const CLIENT_LIMITED: &str = "brunt was the limit";
/// Why a round in which others took CPU time is no measurement.
pub(crate) const DISTURBED: &str = "other programs or CPU steal took CPU time that was needed";
/// The quantiles that are stored of each round, by their names.
pub const ROUND_QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The place of a quantile in [`ROUND_QUANTILES`].
pub(crate) fn round_quantile(q: f64) -> Option<usize> {
    let mut quantiles = ROUND_QUANTILES.iter();
    quantiles.position(|(_, known)| (known - q).abs() < 1e-9)
}

/// What kind of experiment a stored file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentKind {
    /// A sweep: rounds at several values of one setting.
    Sweep,
    /// A comparison of servers.
    Comparison,
    /// A search for the highest rate that holds objectives.
    Capacity,
}

/// One round. A figure that is not known is null, and `missing` says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// When the round began, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Length of its window, nanoseconds.
    pub window_ns: u64,
    /// The protocol that was spoken, such as `HTTP/1.1`.
    pub protocol: Option<String>,
    /// Length of the parts of the window that its rate and response times are of, nanoseconds:
    /// those in which the hypervisor took nothing, where the verdict rests on them. Null where they
    /// are of the whole window.
    pub undisturbed_ns: Option<u64>,
    /// What limited it, as judged when it was measured.
    pub verdict: Verdict,
    /// Why, in words.
    pub because: String,
    /// The verdicts that other numbers of connections would give it; null with a schedule.
    pub verdict_if: Option<VerdictIf>,
    /// Successful replies per second.
    pub successes_per_s: Option<f64>,
    /// Requests planned per second; null without a schedule.
    pub planned_per_s: Option<f64>,
    /// Response times of successful replies.
    pub response: RoundResponse,
    /// Requests issued in the window.
    pub issued: u64,
    /// Issued requests that were answered with success.
    pub successes: u64,
    /// Replies with an error status.
    pub errors: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that were sent again, since the server did not process them.
    pub sent_again: u64,
    /// Replies of the window by status.
    pub statuses: StatusCounts,
    /// What failed in the window, by kind.
    pub failures: FailureCounts,
    /// Where brunt kept the rate, and is the limit all the same: the quantiles of the response time
    /// that are not the server's, by name, and how much of each is brunt's own. Absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_parts: Option<BTreeMap<String, String>>,
    /// What brunt used.
    pub client: RoundUse,
    /// What the server used; null where it was not watched.
    pub server: Option<RoundUse>,
    /// Why a figure is null, by its name, such as `p99` or `successes_per_s`.
    pub missing: BTreeMap<String, String>,
}

/// The verdicts of a round by what rounds with other numbers of connections show: by the same
/// rules and the same evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictIf {
    /// Where the rate follows the connections in step.
    pub in_step: Verdict,
    /// The verdict if the rate stays with other numbers of connections.
    pub flat: Verdict,
}

/// Response times of a round, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundResponse {
    /// The shortest.
    pub min_ns: Option<u64>,
    /// The mean response time, nanoseconds.
    pub mean_ns: Option<u64>,
    /// The median.
    pub p50_ns: Option<u64>,
    /// The 90th percentile.
    pub p90_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// What client or server used in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundUse {
    /// CPUs used in user space on average.
    pub user_cpus: Option<f64>,
    /// CPUs used in the kernel on average.
    pub system_cpus: Option<f64>,
    /// Most resident memory, bytes.
    pub resident_bytes: Option<u64>,
}

impl RoundUse {
    /// CPUs used on average; absent where a part of them is not known.
    pub fn cpus(&self) -> Option<f64> {
        Some(self.user_cpus? + self.system_cpus?)
    }
}

/// Whether all was sent and answered as planned, and brunt is the limit by its own part of the
/// response times alone.
fn is_late(judged: &Judged<'_>) -> bool {
    let judgement = &judged.judgement;
    let planned_rate = judgement.signal(SignalId::PlannedRate);
    judgement.verdict == Verdict::ClientLimited
        && planned_rate.is_some_and(|signal| signal.grade == Grade::Fail)
}

impl RoundResponse {
    /// A quantile of [`ROUND_QUANTILES`], nanoseconds.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        [self.p50_ns, self.p90_ns, self.p99_ns, self.p99_9_ns][round_quantile(q)?]
    }
}

impl RoundRecord {
    /// The figures of a round.
    pub fn of(judged: &Judged<'_>) -> Self {
        let (run, summary) = (judged.run, &judged.summary);
        let mut missing = BTreeMap::new();
        let withheld = judged.withheld();
        let mut rate = |name: &str, figure: &crate::Figure| match (&withheld, figure) {
            (None, crate::Figure::Known(value)) => Some(*value),
            (Some(reason), _) | (None, crate::Figure::Absent(reason)) => {
                missing.insert(name.to_owned(), reason.clone());
                None
            }
        };
        let successes_per_s = rate("successes_per_s", &judged.successes_per_s());
        let schedule = run.plan.load.model.schedule();
        let planned_per_s = schedule.and_then(|_| rate("planned_per_s", &summary.planned_per_s));
        let [p50_ns, p90_ns, p99_ns, p99_9_ns] = ROUND_QUANTILES.map(|(name, q)| {
            let reason = match judged.response_quantile(q) {
                Quantile::Known { ns, .. } => return Some(ns),
                Quantile::AtLeast { .. } => "requests were never answered".to_owned(),
                Quantile::TooFew { samples, needed } => {
                    let replies = counted(samples, "reply", "replies");
                    format!("{replies}, {needed} needed")
                }
            };
            missing.insert(name.to_owned(), reason);
            None
        });
        let responses = judged.response();
        let client_cpu = run.client_cpu();
        if let Err(reason) = client_cpu {
            missing.insert("client".to_owned(), reason.to_owned());
        }
        let resident_bytes = Some(run.peak_resident_bytes()).filter(|&bytes| bytes > 0);
        let server = run.evidence_of_server().server.as_ref();
        // The quantiles of which brunt's own part is large, with that part in words.
        let part = |(name, q)| Some((String::from(name), own_part_of(run, name, q)?));
        let own_parts = || ROUND_QUANTILES.into_iter().filter_map(part).collect();
        let used = |cpu: Option<CpuUse>, resident_bytes| RoundUse {
            user_cpus: cpu.map(|cpu| cpu.user_cpus),
            system_cpus: cpu.map(|cpu| cpu.system_cpus),
            resident_bytes,
        };
        Self {
            started_unix_ms: run.first().clock.started_unix_ms(),
            window_ns: run.window_ns,
            protocol: Some(run.protocol().name.to_owned()),
            undisturbed_ns: judged.undisturbed().map(|clean| clean.clean_ns),
            verdict: judged.judgement.verdict,
            because: judged.judgement.because.clone(),
            verdict_if: judged.verdict_if,
            successes_per_s,
            planned_per_s,
            response: RoundResponse {
                min_ns: responses.min_ns(),
                mean_ns: responses.mean_ns().map(|ns| ns as u64),
                p50_ns,
                p90_ns,
                p99_ns,
                p99_9_ns,
                max_ns: responses.max_ns(),
            },
            issued: summary.population.issued,
            successes: run.latencies.response.count(),
            errors: run.latencies.response_error.count(),
            failed: summary.population.failed,
            sent_again: summary.window.sent_again,
            statuses: summary.window.replies.clone(),
            failures: summary.window.failures.clone(),
            own_parts: is_late(judged).then(own_parts),
            client: used(client_cpu.ok(), resident_bytes),
            server: server.map(|server| used(server.cpu_use(), server.resident_bytes_max)),
            missing,
        }
    }

    /// CPU time of the server per successful reply, nanoseconds; absent where either is unknown.
    pub fn server_cpu_ns_per_reply(&self) -> Option<f64> {
        let cpus = self.server?.cpus()?;
        // The CPU time is that of the whole window.
        let per_s = match self.undisturbed_ns {
            Some(_) => self.successes as f64 * 1e9 / self.window_ns as f64,
            None => self.successes_per_s?,
        };
        let ns = cpus * 1e9 / per_s;
        ns.is_finite().then_some(ns)
    }

    /// Why the round says nothing about the server, if so.
    pub fn is_no_measurement(&self) -> Option<String> {
        let missing = self.missing.get("successes_per_s").map(String::as_str);
        let reason = match self.verdict {
            Verdict::Invalid => missing.unwrap_or("an invariant is broken"),
            Verdict::ClientLimited if self.own_parts.is_some() => &self.because,
            Verdict::ClientLimited => CLIENT_LIMITED,
            Verdict::Disturbed => DISTURBED,
            Verdict::NoSuccess => "no request succeeded",
            Verdict::ServerFailed => "the server failed",
            _ => missing.filter(|_| self.successes_per_s.is_none())?,
        };
        Some(reason.to_owned())
    }

    /// The verdict of the round, with what other numbers of connections show.
    pub(crate) fn verdict_with(&self, show: Option<Elasticity>) -> Verdict {
        match (self.verdict_if, show) {
            (Some(verdicts), Some(found)) if found.gives_more() => verdicts.in_step,
            (Some(verdicts), Some(found)) if found.gives_nothing() => verdicts.flat,
            _ => self.verdict,
        }
    }

    /// Whether its rate is that of the server: brunt, network and machine have room, and nothing
    /// makes it doubtful.
    pub(crate) fn is_of_server(&self) -> bool {
        let by_server = [Verdict::ServerLimited, Verdict::ConcurrencyLimited];
        let if_flat = self.verdict_if.map(|verdicts| verdicts.flat);
        by_server.contains(&self.verdict) || if_flat.is_some_and(|flat| by_server.contains(&flat))
    }

    /// Share of the requests that did not succeed; absent without any.
    pub fn error_share(&self) -> Option<f64> {
        let others = self.issued.saturating_sub(self.successes);
        (self.issued > 0).then(|| others as f64 / self.issued as f64)
    }
}
