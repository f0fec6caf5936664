//! CSV: a header and one row per run. Column names are stable and end in their unit; a cell is
//! empty where the figure is undefined or withheld.

use std::io;

use brunt_measure::Run;

use crate::{ReportError, StoredSummary};

type Cell = fn(&Run, &StoredSummary) -> String;

/// Name and content of every column. Names are an interface: add at the end, never rename.
const COLUMNS: &[(&str, Cell)] = &[
    ("brunt_version", |run, _| run.brunt_version.clone()),
    ("started_unix_ms", |run, _| {
        run.wall.started_unix_ms.to_string()
    }),
    ("target", |run, _| run.load.target.clone()),
    ("address", |run, _| run.load.address.clone()),
    ("protocol", |run, _| run.load.protocol.clone()),
    ("method", |run, _| run.load.method.clone()),
    ("backend", |run, _| run.load.backend.name().to_owned()),
    ("connections", |run, _| run.load.connections.to_string()),
    ("workers", |run, _| run.load.workers.to_string()),
    ("pipeline", |run, _| run.load.pipeline.to_string()),
    ("keepalive", |run, _| run.load.keepalive.to_string()),
    ("interrupted", |run, _| run.interrupted.to_string()),
    ("valid", |_, figures| figures.valid.to_string()),
    ("broken", |_, figures| figures.broken.join(" ")),
    ("flagged", |_, figures| figures.flagged.join(" ")),
    ("window_ns", |_, figures| figures.window_ns.to_string()),
    ("successes_per_s", |_, figures| {
        cell(figures.successes_per_s)
    }),
    ("attempts_per_s", |_, figures| cell(figures.attempts_per_s)),
    ("bytes_received_per_s", |_, figures| {
        cell(figures.bytes_received_per_s)
    }),
    ("window_requests_issued", |_, figures| {
        figures.requests.issued.to_string()
    }),
    ("window_requests_ok", |_, figures| {
        figures.requests.successes.to_string()
    }),
    ("window_requests_error_status", |_, figures| {
        figures.requests.errors.to_string()
    }),
    ("window_requests_failed", |_, figures| {
        figures.requests.failed.to_string()
    }),
    ("window_requests_censored", |_, figures| {
        figures.requests.censored.to_string()
    }),
    ("requests_unsent", |_, figures| {
        figures.requests.unsent.to_string()
    }),
    ("window_replies_ok", |_, figures| {
        figures.replies.successes.to_string()
    }),
    ("window_replies_error_status", |_, figures| {
        figures.replies.errors.to_string()
    }),
    ("response_min_ns", |_, figures| {
        cell(figures.response.min_ns)
    }),
    ("response_mean_ns", |_, figures| {
        cell(figures.response.mean_ns)
    }),
    ("response_p50_ns", |_, figures| {
        cell(figures.response.p50_ns)
    }),
    ("response_p90_ns", |_, figures| {
        cell(figures.response.p90_ns)
    }),
    ("response_p99_ns", |_, figures| {
        cell(figures.response.p99_ns)
    }),
    ("response_p99_9_ns", |_, figures| {
        cell(figures.response.p99_9_ns)
    }),
    ("response_p99_99_ns", |_, figures| {
        cell(figures.response.p99_99_ns)
    }),
    ("response_max_ns", |_, figures| {
        cell(figures.response.max_ns)
    }),
    ("response_error_p50_ns", |_, figures| {
        cell(figures.response_error.p50_ns)
    }),
    ("response_error_p99_ns", |_, figures| {
        cell(figures.response_error.p99_ns)
    }),
    ("response_error_max_ns", |_, figures| {
        cell(figures.response_error.max_ns)
    }),
    ("connect_count", |_, figures| {
        figures.connect.count.to_string()
    }),
    ("connect_p50_ns", |_, figures| cell(figures.connect.p50_ns)),
    ("connect_p99_ns", |_, figures| cell(figures.connect.p99_ns)),
    ("connect_max_ns", |_, figures| cell(figures.connect.max_ns)),
    ("live_min", |_, figures| figures.live.min.to_string()),
    ("live_mean", |_, figures| cell(figures.live.mean)),
    ("live_max", |_, figures| figures.live.max.to_string()),
    ("under_way_mean", |_, figures| cell(figures.under_way_mean)),
    ("requests_sent", |_, figures| {
        figures.all_phases.sent.to_string()
    }),
    ("requests_answered", |_, figures| {
        figures.all_phases.answered.to_string()
    }),
    ("requests_failed", |_, figures| {
        figures.all_phases.failed.to_string()
    }),
    ("requests_under_way", |_, figures| {
        figures.all_phases.under_way.to_string()
    }),
    ("connect_failures", |_, figures| {
        figures.all_phases.connect_failures.to_string()
    }),
    ("connections_opened", |_, figures| {
        figures.all_phases.connections_opened.to_string()
    }),
    ("connections_replaced", |_, figures| {
        figures.all_phases.connections_replaced.to_string()
    }),
    ("connections_closed_by_server", |_, figures| {
        figures.all_phases.connections_closed_by_server.to_string()
    }),
    ("cpu_ns_per_reply", |_, figures| {
        cell(figures.cpu_ns_per_reply)
    }),
    ("peak_resident_bytes", |_, figures| {
        figures.peak_resident_bytes.to_string()
    }),
];

/// Writes the header and the row of `run`.
pub(crate) fn write(run: &Run, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let figures = StoredSummary::new(run);
    let mut writer = csv::Writer::from_writer(out);
    let row = COLUMNS.iter().map(|(_, cell)| cell(run, &figures));
    writer
        .write_record(COLUMNS.iter().map(|(name, _)| name))
        .map_err(io::Error::from)?;
    writer.write_record(row).map_err(io::Error::from)?;
    Ok(writer.flush()?)
}

fn cell<T: ToString>(figure: Option<T>) -> String {
    figure.map_or_else(String::new, |value| value.to_string())
}
