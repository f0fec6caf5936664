//! The summary for machines: one flat object of 34 keys, as one line of JSON.
//!
//! Its keys and units are an interface that changes with a major version only
//! (`docs/stability.md`). A figure that is unknown or withheld is null, never 0.

use std::io;

use brunt_judge::{Capacity, CapacityOutcome, Figure, Judged, RoundUse, Verdict};
use brunt_load::LoadModel;
use serde::Serialize;

use crate::figures::{Latency, data_name, server_cpus_used};
use crate::{ReportError, foreign};

/// What a program wants to know of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// `brunt`.
    pub tool: &'static str,
    /// The version of brunt that ran.
    pub version: String,
    /// What was loaded.
    pub url: String,
    /// The protocol that was spoken, such as `HTTP/1.1`.
    pub protocol: String,
    /// Connections that were asked for; with planned connections, the most at once.
    pub connections: u32,
    /// Length of the window that all figures are about, seconds.
    pub duration_s: f64,
    /// Requests (messages, in such a run) that were issued in the window.
    pub requests: u64,
    /// Responses that were complete in the window, whatever their status.
    pub responses: u64,
    /// Responses of status 200 to 299; null where responses have no status.
    pub responses_2xx: Option<u64>,
    /// Responses of status 300 to 399; null where responses have no status.
    pub responses_3xx: Option<u64>,
    /// Responses of status 400 to 499; null where responses have no status.
    pub responses_4xx: Option<u64>,
    /// Responses of status 500 to 599; null where responses have no status.
    pub responses_5xx: Option<u64>,
    /// Requests issued in the window that failed: refused, reset, closed, malformed, timed out.
    pub failures: u64,
    /// Sends in the window of requests that the server had not processed before. Each such request
    /// counts once, with its last outcome.
    pub sent_again: u64,
    /// Successful responses (status below 400) per second of the window.
    pub rate_per_s: Option<f64>,
    /// The planned rate: requests per second of the window; null in a closed loop.
    pub target_rate_per_s: Option<f64>,
    /// Responses in the window, whatever their status, per planned request: 1 where the rate was
    /// reached. Null in a closed loop.
    pub rate_ratio: Option<f64>,
    /// The longest time from the first instant at which brunt could have sent a request until it
    /// did, microseconds.
    pub schedule_lag_max_us: Option<f64>,
    /// Mean response time of successful responses, microseconds. With a planned rate it counts
    /// from the planned instant, else from the send.
    pub latency_mean_us: Option<f64>,
    /// Median response time of successful responses, microseconds.
    pub latency_p50_us: Option<f64>,
    /// 90th percentile of the response time of successful responses, microseconds.
    pub latency_p90_us: Option<f64>,
    /// 99th percentile of the response time of successful responses, microseconds.
    pub latency_p99_us: Option<f64>,
    /// 99.9th percentile of the response time of successful responses, microseconds; null with
    /// under 3,688 samples.
    pub latency_p99_9_us: Option<f64>,
    /// The longest.
    pub latency_max_us: Option<f64>,
    /// Bytes read from sockets per second of the window.
    pub received_bytes_per_s: Option<f64>,
    /// CPUs that brunt used on average.
    pub client_cpus: Option<f64>,
    /// CPUs that the server used on average; null where brunt could not see it.
    pub server_cpus: Option<f64>,
    /// Brunt's own part of the mean response time, 0 to 1, by time stamps of the kernel.
    pub own_share: Option<f64>,
    /// Seconds that the rate and the latencies are of, where that is not the whole window: those
    /// in which the hypervisor took nothing, on which the verdict rests. Else null.
    pub undisturbed_s: Option<f64>,
    /// The 99th percentile over the whole window, microseconds, where `undisturbed_s` is not null.
    pub latency_p99_whole_us: Option<f64>,
    /// Whether the latencies are those of what was measured: false where `valid` is, and where most
    /// of p50, p90, p99 or p99.9 is brunt's own.
    pub latency_valid: bool,
    /// Whether no invariant is broken. If false, rates are null.
    pub valid: bool,
    /// What limited the run, such as `server_limited`.
    pub verdict: String,
    /// Why, in words.
    pub because: String,
}

impl RunSummary {
    /// The summary of a run.
    pub fn of(judged: &Judged<'_>) -> Self {
        let run = judged.run;
        let summary = &judged.summary;
        let replies = &summary.window.replies;
        let responses = replies.successes().saturating_add(replies.errors());
        let has_statuses = run.protocol().has_statuses;
        let of_class = |class| has_statuses.then(|| replies.class(class));
        let is_open = matches!(run.plan.model, LoadModel::Open { .. });
        let target_rate_per_s = summary.planned_per_s.known().filter(|_| is_open);
        let planned = Some(summary.arrivals.planned).filter(|&planned| planned > 0);
        let rate = |figure: Figure| judged.rate(figure).known().map(rounded);
        let clean = judged.undisturbed().filter(|_| judged.withheld().is_none());
        let whole = Latency::of_response(run);
        let of_clean = clean.map(Latency::of_clean);
        let response = of_clean.as_ref().unwrap_or(&whole);
        let own = match judged.undisturbed() {
            Some(clean) => clean.own_share,
            None => {
                let parts = run.latencies.split.mean();
                parts.map(|parts| parts.own_ns() / parts.response_ns())
            }
        };
        Self {
            tool: "brunt",
            version: foreign::printable(&run.brunt_version).into_owned(),
            url: foreign::printable(&run.plan.urls()).into_owned(),
            protocol: run.protocol().name.to_owned(),
            connections: run.plan.connections.get(),
            duration_s: run.window_ns as f64 / 1e9,
            requests: summary.population.issued,
            responses,
            responses_2xx: of_class(2),
            responses_3xx: of_class(3),
            responses_4xx: of_class(4),
            responses_5xx: of_class(5),
            failures: summary.population.failed,
            sent_again: summary.window.sent_again,
            rate_per_s: rate(judged.successes_per_s()),
            target_rate_per_s: target_rate_per_s.map(rounded),
            rate_ratio: planned
                .filter(|_| target_rate_per_s.is_some())
                .map(|planned| responses as f64 / planned as f64),
            schedule_lag_max_us: run.latencies.lag.max_ns().map(whole_us),
            latency_mean_us: response.mean_ns.known().map(|ns| rounded(ns / 1e3)),
            latency_p50_us: response.p50_ns.known().map(whole_us),
            latency_p90_us: response.p90_ns.known().map(whole_us),
            latency_p99_us: response.p99_ns.known().map(whole_us),
            latency_p99_9_us: response.p99_9_ns.known().map(whole_us),
            latency_max_us: response.max_ns.known().map(whole_us),
            received_bytes_per_s: rate(summary.bytes_received_per_s.clone()),
            client_cpus: run.client_cpu().ok().map(|cpu| rounded(cpu.cpus())),
            server_cpus: server_cpus_used(run).map(rounded),
            own_share: own.filter(|share| share.is_finite()).map(rounded),
            undisturbed_s: clean.map(|it| it.clean_ns as f64 / 1e9),
            latency_p99_whole_us: clean.and(whole.p99_ns.known()).map(whole_us),
            latency_valid: judged.is_valid() && judged.judgement.mostly_own.is_none(),
            valid: judged.is_valid(),
            verdict: data_name(judged.judgement.verdict),
            because: foreign::printable(&judged.judgement.because).into_owned(),
        }
    }
}

impl RunSummary {
    /// What a search found, as the summary of the run at the highest rate that holds: the planned
    /// rate is the answer, and `because` says it in words. Where none holds, both rates are null,
    /// and the counts are those of the last step.
    pub(crate) fn of_search(capacity: &Capacity, because: &str) -> Option<Self> {
        let held_per_s = capacity.result().held_per_s();
        let step = capacity.step_at(held_per_s)?;
        let record = &step.record;
        let statuses = &record.statuses;
        let has_statuses = statuses.iter().next().is_some();
        let of_class = |class| has_statuses.then(|| statuses.class(class));
        let us = |ns: Option<u64>| ns.map(whole_us);
        let cpus = |used: RoundUse| Some(rounded(used.user_cpus? + used.system_cpus?));
        let response = &record.response;
        let responses = if has_statuses {
            statuses.total()
        } else {
            record.successes.saturating_add(record.errors)
        };
        let planned = record
            .planned_per_s
            .map(|per_s| per_s * record.window_ns as f64 / 1e9);
        let load = capacity.load.as_ref();
        Some(Self {
            tool: "brunt",
            version: foreign::cell(&capacity.brunt_version).into_owned(),
            url: foreign::cell(&capacity.plan.url).into_owned(),
            protocol: foreign::cell(record.protocol.as_deref().unwrap_or("")).into_owned(),
            connections: load.map_or(0, |plan| plan.connections.get()),
            duration_s: record.window_ns as f64 / 1e9,
            requests: record.issued,
            responses,
            responses_2xx: of_class(2),
            responses_3xx: of_class(3),
            responses_4xx: of_class(4),
            responses_5xx: of_class(5),
            failures: record.failed,
            sent_again: record.sent_again,
            rate_per_s: held_per_s.and(record.successes_per_s).map(rounded),
            target_rate_per_s: held_per_s.map(rounded),
            rate_ratio: planned
                .filter(|&planned| planned > 0.0)
                .map(|planned| responses as f64 / planned),
            schedule_lag_max_us: None,
            latency_mean_us: us(response.mean_ns),
            latency_p50_us: us(response.p50_ns),
            latency_p90_us: us(response.p90_ns),
            latency_p99_us: us(response.p99_ns),
            latency_p99_9_us: us(response.p99_9_ns),
            latency_max_us: us(response.max_ns),
            received_bytes_per_s: None,
            client_cpus: cpus(record.client),
            server_cpus: record.server.and_then(cpus),
            own_share: None,
            undisturbed_s: record.undisturbed_ns.map(|ns| ns as f64 / 1e9),
            latency_p99_whole_us: None,
            latency_valid: record.verdict != Verdict::ClientLimited
                && step.outcome != CapacityOutcome::Invalid,
            valid: step.outcome != CapacityOutcome::Invalid,
            verdict: data_name(record.verdict),
            because: foreign::cell(because).into_owned(),
        })
    }
}

/// Microseconds; exact, as a nanosecond is their third decimal.
fn whole_us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// `value` with three decimals: more are noise.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Writes the summary as one line.
pub(crate) fn write(judged: &Judged<'_>, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let line = foreign::json_line(&RunSummary::of(judged)).map_err(ReportError::Encode)?;
    Ok(out.write_all(line.as_bytes())?)
}

/// Writes a summary as a table: a header and one row, in which what is null is empty.
pub(crate) fn write_table(
    summary: &RunSummary,
    out: &mut dyn io::Write,
) -> Result<(), ReportError> {
    let mut plain = csv::Writer::from_writer(Vec::new());
    plain.serialize(summary).map_err(io::Error::from)?;
    let plain = plain.into_inner().map_err(|error| error.into_error())?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(&plain[..]);
    let mut writer = csv::Writer::from_writer(out);
    for row in reader.records() {
        let row = row.map_err(io::Error::from)?;
        let cells = row.iter().map(|cell| foreign::cell(cell).into_owned());
        writer.write_record(cells).map_err(io::Error::from)?;
    }
    Ok(writer.flush()?)
}
