//! zrk's JSON: the summary of a run, and the rows of its intervals.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use brunt_load::Target;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::figures::error_rate;
use super::report::max_us;
use super::tally::{Row, Tally};
use super::{Figures, Format, Options, VERSION};
use crate::recorded::Recorded;

impl Format {
    /// The report in this form.
    pub fn report(self, options: &Options, figures: &Figures) -> String {
        match self {
            Self::Text => super::report(options, figures),
            Self::Json => summary(options, figures),
        }
    }
}

fn summary(options: &Options, figures: &Figures) -> String {
    let counts = &figures.counts;
    let recorded = &figures.recorded;
    let end = &figures.end;
    let is_ramp = options.rate_end_per_s.is_some();
    let rate_end_per_s = options.rate_end_per_s.unwrap_or(options.rate_per_s);
    // Of a rate that changes, the whole run's mean describes no part of it.
    let (achieved, bytes_per_s) = match is_ramp {
        true => (end.per_s, end.bytes_per_s),
        false => (figures.mean_per_s, figures.mean_bytes_per_s),
    };
    let offered_at_end = match options.is_closed {
        true => end.per_s,
        false => offered_per_s(options, end.at_s - end.length_s / 2.0),
    };
    let (offered, target, target_end) = match options.is_closed {
        true => (
            figures.mean_per_s,
            figures.mean_per_s.round() as u64,
            end.per_s.round() as u64,
        ),
        false if is_ramp => (offered_at_end, options.rate_per_s, rate_end_per_s),
        false => (
            options.rate_per_s as f64,
            options.rate_per_s,
            rate_end_per_s,
        ),
    };
    let interrupted = match figures.is_interrupted {
        true => "  \"interrupted\": true,\n",
        false => "",
    };
    let percentile = |percent| recorded.percentile_us(percent);
    let [_, class_1, class_2, class_3, class_4, class_5] = figures.classes;
    format!(
        "{{\n  \"zrk_version\": \"{VERSION}\",\n  \
         \"target\": {{ \"url\": {}, \"method\": {} }},\n  \
         \"config\": {{ \"connections\": {connections}, \"streams\": {}, \"launched\": \
         {connections}, \"duration_s\": {:.3}, \"interval_s\": {:.3}, \"closed\": {}, \
         \"disable_keepalive\": {}, \"target_rate\": {}, \"target_rate_end\": {rate_end_per_s}, \
         \"timeout_ms\": {}, \"deadline_ms\": {}, \"deadline_abort\": {}, \"record_timeouts\": {} \
         }},\n  \
         \"duration_s\": {:.3},\n{interrupted}  \
         \"requests\": {},\n  \
         \"bytes\": {},\n  \
         \"achieved_rate\": {achieved:.2},\n  \
         \"target_rate\": {target},\n  \
         \"target_rate_end\": {target_end},\n  \
         \"rate_ratio\": {:.4},\n  \
         \"achieved_rate_end\": {:.2},\n  \
         \"rate_ratio_end\": {:.4},\n  \
         \"end_window_s\": {:.3},\n  \
         \"bytes_per_sec\": {bytes_per_s:.2},\n  \
         \"error_rate\": {:.6},\n  \
         \"max_schedule_lag_us\": {},\n  \
         \"latency_us\": {{\n    \
         \"min\": {}, \"mean\": {:.1}, \"stdev\": {:.1}, \"max\": {},\n    \
         \"p50\": {}, \"p75\": {}, \"p90\": {}, \"p99\": {}, \"p99_9\": {}, \"p99_99\": {}\n  \
         }},\n  \
         \"status_codes\": {{ \"1xx\": {class_1}, \"2xx\": {class_2}, \"3xx\": {class_3}, \
         \"4xx\": {class_4}, \"5xx\": {class_5} }},\n  \
         \"errors\": {{ \"connect\": {}, \"read\": {}, \"write\": 0, \"timeout\": {}, \
         \"deadline\": {}, \"non_2xx_3xx\": {} }},\n  \
         \"latency_histogram\": \"{}\"\n}}\n",
        text(&url(&options.target)),
        text(&options.method),
        options.streams,
        seconds(options.duration_ns),
        seconds(options.interval_ns),
        options.is_closed,
        options.closes,
        options.rate_per_s,
        options.timeout_ns / 1_000_000,
        options.deadline_ns / 1_000_000,
        options.aborts,
        options.records_timeouts,
        seconds(counts.duration_ns),
        counts.requests,
        counts.bytes,
        ratio(achieved, offered),
        end.per_s,
        ratio(end.per_s, offered_at_end),
        end.length_s,
        figures.error_rate(),
        figures.lag_us,
        min_us(recorded),
        recorded.mean_us(),
        recorded.stdev_us(),
        max_us(recorded),
        percentile(50.0),
        percentile(75.0),
        percentile(90.0),
        percentile(99.0),
        percentile(99.9),
        percentile(99.99),
        counts.connect,
        counts.read,
        counts.timeout,
        figures.deadline,
        counts.status,
        histogram(recorded),
        connections = options.connections,
    )
}

/// The row of an interval.
pub(super) fn row(options: &Options, row: &Row<'_>) -> String {
    let Tally {
        requests,
        bytes,
        connect,
        read,
        timeout,
        deadline,
        status,
    } = *row.tally;
    let failures = connect + read + timeout + deadline;
    let length_s = row.at_s - row.from_s;
    let per_s = |count: u64| ratio(count as f64, length_s);
    let achieved = per_s(requests);
    let offered = match options.is_closed {
        true => achieved,
        false => offered_per_s(options, row.at_s - length_s / 2.0),
    };
    let recorded = row.recorded;
    let percentile = |percent| recorded.percentile_us(percent);
    let blob = match options.series_histogram {
        true => format!(",\"latency_histogram\":\"{}\"", histogram(recorded)),
        false => String::new(),
    };
    format!(
        "{{\"t\":{:.3},\"target_rate\":{offered:.1},\"achieved_rate\":{achieved:.1},\
         \"requests\":{requests},\"errors\":{},\"error_rate\":{:.6},\
         \"errors_by_kind\":{{\"connect\":{connect},\"read\":{read},\"write\":0,\
         \"timeout\":{timeout},\"deadline\":{deadline},\"non_2xx_3xx\":{status}}},\
         \"bytes\":{bytes},\"bytes_per_sec\":{:.1},\"max_schedule_lag_us\":{},\
         \"latency_us\":{{\"p50\":{},\"p90\":{},\"p99\":{},\"p99_9\":{},\"max\":{}}}{blob}}}\n",
        row.at_s,
        failures + status,
        error_rate(requests, status, failures),
        per_s(bytes),
        row.lag_us,
        percentile(50.0),
        percentile(90.0),
        percentile(99.0),
        percentile(99.9),
        max_us(recorded),
    )
}

/// Requests per second that are planned at this time, seconds from the start.
pub(super) fn offered_per_s(options: &Options, at_s: f64) -> f64 {
    let from_per_s = options.rate_per_s as f64;
    match options.rate_end_per_s {
        None => from_per_s,
        Some(end_per_s) => {
            let share = (at_s / seconds(options.duration_ns)).clamp(0.0, 1.0);
            from_per_s + (end_per_s as f64 - from_per_s) * share
        }
    }
}

fn url(target: &Target) -> String {
    let host = match target.host.contains(':') {
        true => format!("[{}]", target.host),
        false => target.host.clone(),
    };
    let (scheme, port, path) = (target.scheme.name(), target.port, &target.path);
    format!("{scheme}://{host}:{port}{path}")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { 0.0 }
}

fn min_us(recorded: &Recorded) -> u64 {
    match recorded.buckets().is_empty() {
        true => 0,
        false => recorded.buckets().min(),
    }
}

/// The text as a string of JSON.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// All durations: HdrHistogram V2, compressed, base64.
fn histogram(recorded: &Recorded) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = V2DeflateSerializer::new().serialize(recorded.buckets(), &mut bytes);
    BASE64_STANDARD.encode(bytes)
}
