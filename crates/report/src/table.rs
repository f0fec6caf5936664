//! CSV: a header and one row per run. Column names are stable and end in their unit; a cell is
//! empty where the figure is undefined or withheld.

use std::io;

use brunt_judge::{Interval, Judged};
use brunt_load::Schedule;
use brunt_record::{NegotiatedTls, Run, cpu_list};

use crate::figures::data_name;
use crate::foreign;
use crate::{ReportError, StoredSummary};

type Cell = fn(&Run, &StoredSummary) -> String;

/// A column of a figure. A question mark stands behind what may be absent.
macro_rules! figure {
    ($name:literal, $of:ident?.$inner:ident?.$field:ident?) => {
        ($name, |_, figures| {
            let inner = figures.$of.as_ref().and_then(|it| it.$inner.as_ref());
            cell(inner.and_then(|it| it.$field.as_ref()))
        })
    };
    ($name:literal, $of:ident?.$field:ident?) => {
        ($name, |_, figures| {
            cell(figures.$of.as_ref().and_then(|it| it.$field.as_ref()))
        })
    };
    ($name:literal, $of:ident?.$field:ident) => {
        ($name, |_, figures| {
            cell(figures.$of.as_ref().map(|it| &it.$field))
        })
    };
    ($name:literal, $($field:ident).+?) => {
        ($name, |_, figures| cell(figures.$($field).+.as_ref()))
    };
    ($name:literal, $($field:ident).+) => {
        ($name, |_, figures| figures.$($field).+.to_string())
    };
}

/// A column of an end of the interval of a quantile of the response time.
macro_rules! interval {
    ($name:literal, $quantile:literal, $end:ident) => {
        ($name, |_, figures| {
            interval(figures, $quantile, |it| it.$end)
        })
    };
}

/// A column of the least that a figure of the response time can be.
macro_rules! at_least {
    ($name:literal, $figure:literal) => {
        ($name, |_, figures| {
            cell(figures.response.at_least_ns.get($figure))
        })
    };
}

/// Name and content of every column. Names are an interface: add at the end, never rename.
const COLUMNS: &[(&str, Cell)] = &[
    ("brunt_version", |run, _| run.brunt_version.clone()),
    ("started_unix_ms", |run, _| {
        run.first().clock.started_unix_ms().to_string()
    }),
    ("target", |run, _| run.plan.urls()),
    ("address", |run, _| run.first().negotiated.address.clone()),
    ("protocol", |run, _| run.protocol().name.to_owned()),
    ("method", |run, _| {
        run.plan.requests.outline().methods().join(" ")
    }),
    ("backend", |run, _| run.first().backend.name().to_owned()),
    ("connections", |run, _| run.plan.connections.to_string()),
    ("workers", |run, _| run.plan.workers.to_string()),
    ("depth", |run, _| run.depth().to_string()),
    ("keepalive", |run, _| run.plan.keepalive().to_string()),
    ("interrupted", |run, _| run.interrupted().to_string()),
    figure!("valid", valid),
    ("broken", |_, figures| figures.broken.join(" ")),
    ("flagged", |_, figures| figures.flagged.join(" ")),
    figure!("window_ns", window_ns),
    figure!("successes_per_s", successes_per_s?),
    figure!("attempts_per_s", attempts_per_s?),
    figure!("bytes_received_per_s", bytes_received_per_s?),
    figure!("bytes_sent_per_s", bytes_sent_per_s?),
    figure!("window_requests_issued", requests.issued),
    figure!("window_requests_ok", requests.successes),
    figure!("window_requests_error_status", requests.errors),
    figure!("window_requests_failed", requests.failed),
    figure!("window_requests_censored", requests.censored),
    figure!("requests_unsent", requests.unsent),
    figure!("window_replies_ok", replies.successes),
    figure!("window_replies_error_status", replies.errors),
    figure!("response_min_ns", response.min_ns?),
    figure!("response_mean_ns", response.mean_ns?),
    figure!("response_p50_ns", response.p50_ns?),
    figure!("response_p90_ns", response.p90_ns?),
    figure!("response_p99_ns", response.p99_ns?),
    figure!("response_p99_9_ns", response.p99_9_ns?),
    figure!("response_p99_99_ns", response.p99_99_ns?),
    figure!("response_max_ns", response.max_ns?),
    figure!("response_error_p50_ns", response_error.p50_ns?),
    figure!("response_error_p99_ns", response_error.p99_ns?),
    figure!("response_error_max_ns", response_error.max_ns?),
    figure!("connect_count", connect.count),
    figure!("connect_p50_ns", connect.p50_ns?),
    figure!("connect_p99_ns", connect.p99_ns?),
    figure!("connect_max_ns", connect.max_ns?),
    figure!("live_min", live.min),
    figure!("live_mean", live.mean?),
    figure!("live_max", live.max),
    figure!("in_flight_mean", in_flight_mean?),
    figure!("requests_sent", all_phases.sent),
    figure!("requests_answered", all_phases.answered),
    figure!("requests_failed", all_phases.failed),
    figure!("requests_in_flight", all_phases.in_flight),
    figure!("connect_failures", all_phases.connect_failures),
    figure!("connections_opened", all_phases.connections_opened),
    figure!("connections_replaced", all_phases.connections_replaced),
    figure!(
        "connections_closed_by_server",
        all_phases.connections_closed_by_server
    ),
    figure!("cpu_ns_per_reply", cpu_ns_per_reply?),
    figure!("peak_resident_bytes", peak_resident_bytes),
    figure!("model", model),
    ("arrival_process", |run, _| {
        schedule(run, |schedule| schedule.process().name().to_owned())
    }),
    ("seed", |run, _| cell(run.seed(|seeds| seeds.arrivals))),
    ("stages", |run, _| {
        schedule(run, |schedule| schedule.stages().len().to_string())
    }),
    figure!("connections_most", live.most),
    ("requests_per_connection", |run, _| {
        cell(run.plan.requests_per_connection())
    }),
    ("think_time_ns", |run, _| run.plan.think_time_ns.to_string()),
    ("stamps_every", |run, _| cell(run.plan.stamps.every())),
    figure!("planned_per_s", planned_per_s?),
    figure!("arrivals_sent_per_s", arrivals_sent_per_s?),
    figure!("arrivals_planned", arrivals?.planned),
    figure!("arrivals_sent", arrivals?.sent),
    figure!("arrivals_waited", arrivals?.waited),
    figure!("arrivals_skipped_full", arrivals?.skipped_full),
    figure!("arrivals_skipped_late", arrivals?.skipped_late),
    figure!("arrivals_unsent", arrivals?.unsent),
    figure!("waited_share", waited_share?),
    figure!("overload_capacity_per_s", overload?.capacity_per_s),
    figure!("overload_growth_ns_per_s", overload?.growth_ns_per_s?),
    interval!("response_p50_low_ns", "p50", low_ns),
    interval!("response_p50_high_ns", "p50", high_ns),
    interval!("response_p90_low_ns", "p90", low_ns),
    interval!("response_p90_high_ns", "p90", high_ns),
    interval!("response_p99_low_ns", "p99", low_ns),
    interval!("response_p99_high_ns", "p99", high_ns),
    interval!("response_p99_9_low_ns", "p99_9", low_ns),
    interval!("response_p99_9_high_ns", "p99_9", high_ns),
    interval!("response_p99_99_low_ns", "p99_99", low_ns),
    interval!("response_p99_99_high_ns", "p99_99", high_ns),
    at_least!("response_p50_at_least_ns", "p50"),
    at_least!("response_p90_at_least_ns", "p90"),
    at_least!("response_p99_at_least_ns", "p99"),
    at_least!("response_p99_9_at_least_ns", "p99_9"),
    at_least!("response_p99_99_at_least_ns", "p99_99"),
    at_least!("response_max_at_least_ns", "max"),
    figure!("service_p50_ns", service?.p50_ns?),
    figure!("service_p90_ns", service?.p90_ns?),
    figure!("service_p99_ns", service?.p99_ns?),
    figure!("service_p99_9_ns", service?.p99_9_ns?),
    figure!("service_max_ns", service?.max_ns?),
    figure!("own_p50_ns", own?.p50_ns?),
    figure!("own_p90_ns", own?.p90_ns?),
    figure!("own_p99_ns", own?.p99_ns?),
    figure!("own_p99_9_ns", own?.p99_9_ns?),
    figure!("own_max_ns", own?.max_ns?),
    figure!("first_reply_p50_ns", first_reply?.p50_ns?),
    figure!("first_reply_p90_ns", first_reply?.p90_ns?),
    figure!("first_reply_p99_ns", first_reply?.p99_ns?),
    figure!("first_reply_p99_9_ns", first_reply?.p99_9_ns?),
    figure!("first_reply_max_ns", first_reply?.max_ns?),
    figure!("lag_p50_ns", lag.p50_ns?),
    figure!("lag_p90_ns", lag.p90_ns?),
    figure!("lag_p99_ns", lag.p99_ns?),
    figure!("lag_p99_9_ns", lag.p99_9_ns?),
    figure!("lag_max_ns", lag.max_ns?),
    figure!("own_count", own?.count),
    figure!("above_p99_response_mean_ns", above_p99?.response_ns),
    figure!("above_p99_wait_mean_ns", above_p99?.wait_ns),
    figure!("above_p99_lag_send_mean_ns", above_p99?.lag_send_ns),
    figure!("above_p99_send_mean_ns", above_p99?.send_ns),
    figure!("above_p99_server_mean_ns", above_p99?.server_ns),
    figure!("above_p99_lag_receive_mean_ns", above_p99?.lag_receive_ns),
    figure!("above_p99_parse_mean_ns", above_p99?.parse_ns),
    figure!("stamps_clamped", stamps_clamped),
    figure!("spun_ns", spun_ns),
    figure!("rest_p50_ns", rest?.p50_ns?),
    figure!("rest_p90_ns", rest?.p90_ns?),
    figure!("rest_p99_ns", rest?.p99_ns?),
    figure!("rest_p99_9_ns", rest?.p99_9_ns?),
    figure!("rest_max_ns", rest?.max_ns?),
    ("verdict", |_, figures| {
        data_name(figures.verdict.verdict).to_owned()
    }),
    figure!("because", verdict.because),
    figure!("successes_low_per_s", successes_interval_95?.low_per_s),
    figure!("successes_high_per_s", successes_interval_95?.high_per_s),
    figure!("drifts", steadiness?.drifts),
    figure!("client_cpu_user_s", client.cpu_user_s?),
    figure!("client_cpu_system_s", client.cpu_system_s?),
    figure!("server", server?.name),
    figure!("server_cpu_user_s", server?.cpu_user_s?),
    figure!("server_cpu_system_s", server?.cpu_system_s?),
    figure!("server_resident_bytes_max", server?.resident_bytes_max?),
    figure!("server_descriptors_max", server?.descriptors_max?),
    figure!("requests_per_server_cpu_s", server?.requests_per_cpu_s?),
    figure!("server_counted", server_counted?),
    ("tls_version", |run, _| tls(run, |it| Some(&it.version))),
    ("tls_cipher_suite", |run, _| {
        tls(run, |it| Some(&it.cipher_suite))
    }),
    ("tls_group", |run, _| tls(run, |it| it.group.as_ref())),
    ("tls_insecure", |run, _| {
        cell(run.plan.tls().map(|it| it.insecure))
    }),
    ("tls_resumption", |run, _| {
        cell(run.plan.tls().map(|it| it.resumption))
    }),
    figure!("tls_count", tls?.count),
    figure!("tls_p50_ns", tls?.p50_ns?),
    figure!("tls_p99_ns", tls?.p99_ns?),
    figure!("tls_max_ns", tls?.max_ns?),
    figure!("handshakes_full", all_phases.handshakes_full),
    figure!("handshakes_resumed", all_phases.handshakes_resumed),
    figure!("first_byte_p50_ns", first_byte.p50_ns?),
    figure!("first_byte_p90_ns", first_byte.p90_ns?),
    figure!("first_byte_p99_ns", first_byte.p99_ns?),
    figure!("first_byte_p99_9_ns", first_byte.p99_9_ns?),
    figure!("first_byte_max_ns", first_byte.max_ns?),
    figure!("transfer_p50_ns", transfer.p50_ns?),
    figure!("transfer_p90_ns", transfer.p90_ns?),
    figure!("transfer_p99_ns", transfer.p99_ns?),
    figure!("transfer_p99_9_ns", transfer.p99_9_ns?),
    figure!("transfer_max_ns", transfer.max_ns?),
    figure!("goaways", all_phases.goaways),
    figure!("overhead_bytes", all_phases.overhead_bytes),
    figure!("connections_shut", all_phases.connections_shut),
    figure!("greeting_count", greeting?.count),
    figure!("greeting_p50_ns", greeting?.p50_ns?),
    figure!("greeting_p99_ns", greeting?.p99_ns?),
    figure!("greeting_max_ns", greeting?.max_ns?),
    figure!("response_p75_ns", response.p75_ns?),
    interval!("response_p75_low_ns", "p75", low_ns),
    interval!("response_p75_high_ns", "p75", high_ns),
    at_least!("response_p75_at_least_ns", "p75"),
    figure!("response_p95_ns", response.p95_ns?),
    interval!("response_p95_low_ns", "p95", low_ns),
    interval!("response_p95_high_ns", "p95", high_ns),
    at_least!("response_p95_at_least_ns", "p95"),
    at_least!("response_mean_at_least_ns", "mean"),
    figure!("response_error_mean_ns", response_error.mean_ns?),
    figure!("response_error_p75_ns", response_error.p75_ns?),
    figure!("response_error_p95_ns", response_error.p95_ns?),
    figure!("lag_mean_ns", lag.mean_ns?),
    figure!("lag_p75_ns", lag.p75_ns?),
    figure!("lag_p95_ns", lag.p95_ns?),
    figure!("first_byte_mean_ns", first_byte.mean_ns?),
    figure!("first_byte_p75_ns", first_byte.p75_ns?),
    figure!("first_byte_p95_ns", first_byte.p95_ns?),
    figure!("transfer_mean_ns", transfer.mean_ns?),
    figure!("transfer_p75_ns", transfer.p75_ns?),
    figure!("transfer_p95_ns", transfer.p95_ns?),
    figure!("service_mean_ns", service?.mean_ns?),
    figure!("service_p75_ns", service?.p75_ns?),
    figure!("service_p95_ns", service?.p95_ns?),
    figure!("own_mean_ns", own?.mean_ns?),
    figure!("own_p75_ns", own?.p75_ns?),
    figure!("own_p95_ns", own?.p95_ns?),
    figure!("rest_mean_ns", rest?.mean_ns?),
    figure!("rest_p75_ns", rest?.p75_ns?),
    figure!("rest_p95_ns", rest?.p95_ns?),
    figure!("first_reply_mean_ns", first_reply?.mean_ns?),
    figure!("first_reply_p75_ns", first_reply?.p75_ns?),
    figure!("first_reply_p95_ns", first_reply?.p95_ns?),
    figure!("connect_mean_ns", connect.mean_ns?),
    figure!("tls_mean_ns", tls?.mean_ns?),
    figure!("greeting_mean_ns", greeting?.mean_ns?),
    figure!("carried_in_in_flight", carried_in?.in_flight),
    figure!("carried_in_answered", carried_in?.answered),
    figure!("carried_in_failed", carried_in?.failed),
    figure!("carried_in_unanswered", carried_in?.unanswered),
    figure!("arrivals_sent_by_end", arrivals?.sent_by_end?),
    figure!("with_connect_min_ns", with_connect?.min_ns?),
    figure!("with_connect_mean_ns", with_connect?.mean_ns?),
    figure!("with_connect_p50_ns", with_connect?.p50_ns?),
    figure!("with_connect_p75_ns", with_connect?.p75_ns?),
    figure!("with_connect_p90_ns", with_connect?.p90_ns?),
    figure!("with_connect_p95_ns", with_connect?.p95_ns?),
    figure!("with_connect_p99_ns", with_connect?.p99_ns?),
    figure!("with_connect_p99_9_ns", with_connect?.p99_9_ns?),
    figure!("with_connect_p99_99_ns", with_connect?.p99_99_ns?),
    figure!("with_connect_max_ns", with_connect?.max_ns?),
    ("placement", |run, _| {
        let placement = run.first().placement.as_ref();
        cell(placement.map(|placement| placement.reason.name()))
    }),
    ("worker_cpus", |run, _| {
        cell(run.first().bound_cpus().map(|cpus| cpu_list(&cpus)))
    }),
    figure!("clean_ns", clean?.clean_ns?),
    figure!("clean_successes_per_s", clean?.successes_per_s?),
    figure!("clean_own_share", clean?.own_share?),
    figure!("clean_response_p50_ns", clean?.response?.p50_ns?),
    figure!("clean_response_p90_ns", clean?.response?.p90_ns?),
    figure!("clean_response_p99_ns", clean?.response?.p99_ns?),
    figure!("clean_response_p99_9_ns", clean?.response?.p99_9_ns?),
    figure!("script_ns_per_request", generator?.ns_per_request?),
    figure!("script_workers_share", generator?.workers_share?),
    ("objectives", |_, figures| {
        cell(Some(figures.objectives.len()))
    }),
    ("objectives_missed", |_, figures| {
        let missed = figures.objectives.iter().filter(|it| !it.met);
        cell(Some(missed.count()))
    }),
    figure!("up_bytes_per_s", bandwidth?.up_bytes_per_s?),
    figure!("down_bytes_per_s", bandwidth?.down_bytes_per_s?),
    figure!("up_bytes", bandwidth?.up_bytes),
    figure!("down_bytes", bandwidth?.down_bytes),
    figure!("fairness", bandwidth?.fairness?),
    figure!("segments_sent", bandwidth?.segments_sent),
    figure!("segments_retransmitted", bandwidth?.segments_retransmitted),
    figure!("smoothed_rtt_ns", bandwidth?.smoothed_rtt_ns?),
    figure!(
        "receive_window_limited_share",
        bandwidth?.receive_window_limited_share?
    ),
    figure!(
        "send_buffer_limited_share",
        bandwidth?.send_buffer_limited_share?
    ),
    figure!("client_cpu_s_per_gb", bandwidth?.client_cpu_s_per_gb?),
    figure!("server_cpu_s_per_gb", bandwidth?.server_cpu_s_per_gb?),
    figure!("held_open_at_end", held?.open_at_end),
    figure!("held_opened", held?.opened),
    figure!("held_closed_by_server", held?.closed_by_server),
    figure!("held_attempts_failed", held?.attempts_failed),
    figure!("held_set_up_ns", held?.set_up_ns?),
    figure!("held_client_bytes", held?.client_bytes_per_connection?),
];

/// Writes the header and the row of `run`.
pub(crate) fn write(judged: &Judged<'_>, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let run = judged.run;
    let figures = StoredSummary::new(judged);
    let mut writer = csv::Writer::from_writer(out);
    let row = COLUMNS.iter().map(|(_, content)| content(run, &figures));
    writer
        .write_record(COLUMNS.iter().map(|(name, _)| name))
        .map_err(io::Error::from)?;
    let row = row.map(|content| foreign::cell(&content).into_owned());
    writer.write_record(row).map_err(io::Error::from)?;
    Ok(writer.flush()?)
}

/// A cell that only a run with a schedule has.
fn schedule(run: &Run, content: fn(&Schedule) -> String) -> String {
    run.plan.model.schedule().map_or_else(String::new, content)
}

/// A cell that only a run over TLS has.
fn tls<'a, T: ToString>(run: &'a Run, content: fn(&'a NegotiatedTls) -> Option<T>) -> String {
    cell(run.first().negotiated.tls.as_ref().and_then(content))
}

/// An end of the interval of a quantile of the response time.
fn interval(figures: &StoredSummary, name: &str, end: fn(&Interval) -> u64) -> String {
    let interval = figures.response.interval_95.get(name);
    cell(interval.and_then(Option::as_ref).map(end))
}

fn cell<T: ToString>(figure: Option<T>) -> String {
    figure.map_or_else(String::new, |value| value.to_string())
}
