//! The summary for machines: one flat object of 34 keys, as one line of JSON.
//!
//! Its keys and units are an interface that changes with a major version only
//! (`docs/stability.md`). A figure that is unknown or withheld is null, never 0.

use std::io;

use brunt_judge::{
    Capacity, CapacityOutcome, Figure, Judged, ResponseQuantiles, RoundUse, Verdict,
};
use brunt_load::LoadModel;
use brunt_record::StatusCounts;
use serde_json::Value;

use crate::ReportError;
use crate::figures::Object;
use crate::figures::{data_name, server_cpus_used};
use crate::foreign::{self, printable};

/// The summary of a run: what a program wants to know of it.
pub(crate) fn of(judged: &Judged<'_>) -> Object {
    let (run, summary) = (judged.run, &judged.summary);
    let replies = &summary.window.replies;
    let responses = replies.successes().saturating_add(replies.errors());
    let statuses = Some(replies).filter(|_| run.protocol().has_statuses);
    let is_open = matches!(run.plan.model, LoadModel::Open { .. });
    let target_rate_per_s = summary.planned_per_s.known().filter(|_| is_open);
    let planned = Some(summary.arrivals.planned as f64).filter(|_| target_rate_per_s.is_some());
    let rate = |figure: Figure| judged.rate(figure).known().map(rounded);
    let clean = judged.undisturbed().filter(|_| judged.withheld().is_none());
    let response = clean.map_or(&run.latencies.response, |clean| &clean.response);
    let quantile_ns = |q| match clean {
        Some(clean) => clean.response_quantile(q).known_ns(),
        None => run.response_quantile(q).known_ns(),
    };
    let own_share = match judged.undisturbed() {
        Some(clean) => clean.own_share,
        None => run.latencies.split.mean().and_then(|it| it.own_share()),
    };
    let quantiles_ns = [
        quantile_ns(0.5),
        quantile_ns(0.9),
        quantile_ns(0.99),
        quantile_ns(0.999),
        response.max_ns(),
    ];
    let lag_max_us = run.latencies.lag.max_ns().map(whole_us);
    let mean_us = response.mean_ns().map(|ns| rounded(ns / 1e3));
    let received_bytes_per_s = rate(summary.bytes_received_per_s.clone());
    let client_cpus = run.client_cpu().ok().map(|cpu| rounded(cpu.cpus()));
    let own_share = own_share.map(rounded);
    let p99_whole_us = clean
        .and(run.response_quantile(0.99).known_ns())
        .map(whole_us);
    let is_latency_valid = judged.is_valid() && judged.judgement.mostly_own.is_none();
    let head = Object::new()
        .with("tool", "brunt")
        .with("version", printable(&run.brunt_version))
        .with("url", printable(&run.plan.urls()))
        .with("protocol", run.protocol().name)
        // That were asked for; with planned connections, the most at once.
        .with("connections", run.plan.connections.get())
        .with("duration_s", run.window_ns as f64 / 1e9)
        // Requests (messages, in such a run) that were issued in the window.
        .with("requests", summary.population.issued);
    let counts = of_responses(head, responses, statuses)
        // Requests issued in the window that failed: refused, reset, closed, malformed, timed out.
        .with("failures", summary.population.failed)
        // Sends in the window of requests that the server had not processed before. Each such
        // request counts once, with its last outcome.
        .with("sent_again", summary.window.sent_again)
        // Successful responses (status below 400) per second of the window.
        .with("rate_per_s", rate(judged.successes_per_s()))
        // Requests per second of the window; null in a closed loop.
        .with("target_rate_per_s", target_rate_per_s.map(rounded))
        .with("rate_ratio", rate_ratio(responses, planned))
        // The longest time from the first instant at which brunt could have sent a request until
        // it did.
        .with("schedule_lag_max_us", lag_max_us)
        // Of successful responses. With a planned rate it counts from the planned instant, else
        // from the send.
        .with("latency_mean_us", mean_us);
    of_quantiles(counts, quantiles_ns)
        .with("received_bytes_per_s", received_bytes_per_s)
        .with("client_cpus", client_cpus)
        // Null where brunt could not see it.
        .with("server_cpus", server_cpus_used(run).map(rounded))
        // Brunt's own part of the mean response time, 0 to 1, by time stamps of the kernel.
        .with("own_share", own_share)
        // Seconds that the rate and the latencies are of, where that is not the whole window: those
        // in which the hypervisor took nothing, on which the verdict rests.
        .with("undisturbed_s", clean.map(|it| it.clean_ns as f64 / 1e9))
        // Over the whole window, where `undisturbed_s` is not null.
        .with("latency_p99_whole_us", p99_whole_us)
        // Whether the latencies are those of what was measured: false where `valid` is, and where
        // most of p50, p90, p99 or p99.9 is brunt's own.
        .with("latency_valid", is_latency_valid)
        // Whether no invariant is broken. If false, rates are null.
        .with("valid", judged.is_valid())
        // What limited the run, such as `server_limited`.
        .with("verdict", data_name(judged.judgement.verdict))
        .with("because", printable(&judged.judgement.because))
}

/// What a search found, as the summary of the run at the highest rate that holds: the planned rate
/// is the answer, and `because` says it in words. Where none holds, both rates are null, and the
/// counts are those of the last step.
pub(crate) fn of_search(capacity: &Capacity, because: &str) -> Option<Object> {
    let held_per_s = capacity.result().held_per_s();
    let step = capacity.step_at(held_per_s)?;
    let (record, response) = (&step.record, &step.record.response);
    let statuses = Some(&record.statuses).filter(|it| it.iter().next().is_some());
    let answered = record.successes.saturating_add(record.errors);
    let responses = statuses.map_or(answered, |statuses| statuses.total());
    let cpus = |used: RoundUse| Some(rounded(used.user_cpus? + used.system_cpus?));
    let window_s = record.window_ns as f64 / 1e9;
    let planned = record.planned_per_s.map(|per_s| per_s * window_s);
    let connections = capacity
        .load
        .as_ref()
        .map_or(0, |plan| plan.connections.get());
    let quantiles_ns = [
        response.p50_ns,
        response.p90_ns,
        response.p99_ns,
        response.p99_9_ns,
        response.max_ns,
    ];
    let is_valid = step.outcome != CapacityOutcome::Invalid;
    let unknown = None::<f64>;
    let protocol = printable(record.protocol.as_deref().unwrap_or(""));
    let rate_per_s = held_per_s.and(record.successes_per_s).map(rounded);
    let undisturbed_s = record.undisturbed_ns.map(|ns| ns as f64 / 1e9);
    let is_latency_valid = is_valid && record.verdict != Verdict::ClientLimited;
    let head = Object::new()
        .with("tool", "brunt")
        .with("version", printable(&capacity.brunt_version))
        .with("url", printable(&capacity.plan.url))
        .with("protocol", protocol)
        .with("connections", connections)
        .with("duration_s", window_s)
        .with("requests", record.issued);
    let counts = of_responses(head, responses, statuses)
        .with("failures", record.failed)
        .with("sent_again", record.sent_again)
        .with("rate_per_s", rate_per_s)
        .with("target_rate_per_s", held_per_s.map(rounded))
        .with("rate_ratio", rate_ratio(responses, planned))
        .with("schedule_lag_max_us", unknown)
        .with("latency_mean_us", response.mean_ns.map(whole_us));
    let summary = of_quantiles(counts, quantiles_ns)
        .with("received_bytes_per_s", unknown)
        .with("client_cpus", cpus(record.client))
        .with("server_cpus", record.server.and_then(cpus))
        .with("own_share", unknown)
        .with("undisturbed_s", undisturbed_s)
        .with("latency_p99_whole_us", unknown)
        .with("latency_valid", is_latency_valid)
        .with("valid", is_valid)
        .with("verdict", data_name(record.verdict))
        .with("because", printable(because));
    Some(summary)
}

/// Adds the responses that were complete in the window, whatever their status, and those of each
/// class; null where responses have no status.
fn of_responses(object: Object, responses: u64, statuses: Option<&StatusCounts>) -> Object {
    let of_class = |class| statuses.map(|statuses| statuses.class(class));
    object
        .with("responses", responses)
        .with("responses_2xx", of_class(2))
        .with("responses_3xx", of_class(3))
        .with("responses_4xx", of_class(4))
        .with("responses_5xx", of_class(5))
}

/// Adds p50, p90, p99, p99.9 (null with under 3,688 samples) and the longest of the response times
/// of successful responses.
fn of_quantiles(object: Object, quantiles_ns: [Option<u64>; 5]) -> Object {
    let names = ["p50", "p90", "p99", "p99_9", "max"];
    let quantiles = names.into_iter().zip(quantiles_ns);
    quantiles.fold(object, |object, (name, ns)| {
        object.with(&format!("latency_{name}_us"), ns.map(whole_us))
    })
}

/// Responses in the window, whatever their status, per planned request: 1 where the rate was
/// reached. Null in a closed loop.
fn rate_ratio(responses: u64, planned: Option<f64>) -> Option<f64> {
    let planned = planned.filter(|&planned| planned > 0.0)?;
    Some(responses as f64 / planned)
}

/// Microseconds; exact, as a nanosecond is their third decimal.
fn whole_us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// `value` with three decimals: more are noise.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Writes a summary as one line.
pub(crate) fn write(summary: &Object, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let line = foreign::json_line(summary).map_err(ReportError::Encode)?;
    Ok(out.write_all(line.as_bytes())?)
}

/// Writes a summary as a table: a header and one row, in which what is null is empty.
pub(crate) fn write_table(summary: Object, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let fields = summary.fields().map_err(ReportError::Encode)?;
    let mut writer = csv::Writer::from_writer(out);
    writer
        .write_record(fields.keys())
        .map_err(io::Error::from)?;
    let cells = fields.values().map(|value| match value {
        Value::Null => String::new(),
        Value::String(text) => foreign::cell(text).into_owned(),
        number => number.to_string(),
    });
    writer.write_record(cells).map_err(io::Error::from)?;
    Ok(writer.flush()?)
}
