//! CSV: a header and one row per run. Column names are stable and end in their unit; a cell is
//! empty where the figure is undefined or withheld.

use std::io;

use brunt_judge::{Held, Interval, Judged};
use brunt_load::Schedule;
use brunt_record::{ArrivalCounts, CarriedIn, NegotiatedTls, Run, cpu_list};

use crate::figures::data_name;
use crate::foreign;
use crate::{
    BandwidthFigures, CleanSummary, GeneratorFigures, ReportError, ServerFigures, StoredSummary,
};

type Cell = fn(&Run, &StoredSummary) -> String;

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
    ("bytes_sent_per_s", |_, figures| {
        cell(figures.bytes_sent_per_s)
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
    ("in_flight_mean", |_, figures| cell(figures.in_flight_mean)),
    ("requests_sent", |_, figures| {
        figures.all_phases.sent.to_string()
    }),
    ("requests_answered", |_, figures| {
        figures.all_phases.answered.to_string()
    }),
    ("requests_failed", |_, figures| {
        figures.all_phases.failed.to_string()
    }),
    ("requests_in_flight", |_, figures| {
        figures.all_phases.in_flight.to_string()
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
    ("model", |_, figures| figures.model.to_owned()),
    ("arrival_process", |run, _| {
        schedule(run, |schedule| schedule.process().name().to_owned())
    }),
    ("seed", |run, _| cell(run.seed(|seeds| seeds.arrivals))),
    ("stages", |run, _| {
        schedule(run, |schedule| schedule.stages().len().to_string())
    }),
    ("connections_most", |_, figures| {
        figures.live.most.to_string()
    }),
    ("requests_per_connection", |run, _| {
        cell(run.plan.requests_per_connection())
    }),
    ("think_time_ns", |run, _| run.plan.think_time_ns.to_string()),
    ("stamps_every", |run, _| cell(run.plan.stamps.every())),
    ("planned_per_s", |_, figures| cell(figures.planned_per_s)),
    ("arrivals_sent_per_s", |_, figures| {
        cell(figures.arrivals_sent_per_s)
    }),
    ("arrivals_planned", |_, figures| {
        arrivals(figures, |arrivals| arrivals.planned)
    }),
    ("arrivals_sent", |_, figures| {
        arrivals(figures, |arrivals| arrivals.sent)
    }),
    ("arrivals_waited", |_, figures| {
        arrivals(figures, |arrivals| arrivals.waited)
    }),
    ("arrivals_skipped_full", |_, figures| {
        arrivals(figures, |arrivals| arrivals.skipped_full)
    }),
    ("arrivals_skipped_late", |_, figures| {
        arrivals(figures, |arrivals| arrivals.skipped_late)
    }),
    ("arrivals_unsent", |_, figures| {
        arrivals(figures, |arrivals| arrivals.unsent)
    }),
    ("waited_share", |_, figures| cell(figures.waited_share)),
    ("overload_capacity_per_s", |_, figures| {
        cell(figures.overload.map(|overload| overload.capacity_per_s))
    }),
    ("overload_growth_ns_per_s", |_, figures| {
        cell(figures.overload.and_then(|it| it.growth_ns_per_s))
    }),
    ("response_p50_low_ns", |_, figures| {
        interval(figures, "p50", |interval| interval.low_ns)
    }),
    ("response_p50_high_ns", |_, figures| {
        interval(figures, "p50", |interval| interval.high_ns)
    }),
    ("response_p90_low_ns", |_, figures| {
        interval(figures, "p90", |interval| interval.low_ns)
    }),
    ("response_p90_high_ns", |_, figures| {
        interval(figures, "p90", |interval| interval.high_ns)
    }),
    ("response_p99_low_ns", |_, figures| {
        interval(figures, "p99", |interval| interval.low_ns)
    }),
    ("response_p99_high_ns", |_, figures| {
        interval(figures, "p99", |interval| interval.high_ns)
    }),
    ("response_p99_9_low_ns", |_, figures| {
        interval(figures, "p99_9", |interval| interval.low_ns)
    }),
    ("response_p99_9_high_ns", |_, figures| {
        interval(figures, "p99_9", |interval| interval.high_ns)
    }),
    ("response_p99_99_low_ns", |_, figures| {
        interval(figures, "p99_99", |interval| interval.low_ns)
    }),
    ("response_p99_99_high_ns", |_, figures| {
        interval(figures, "p99_99", |interval| interval.high_ns)
    }),
    ("response_p50_at_least_ns", |_, figures| {
        at_least(figures, "p50")
    }),
    ("response_p90_at_least_ns", |_, figures| {
        at_least(figures, "p90")
    }),
    ("response_p99_at_least_ns", |_, figures| {
        at_least(figures, "p99")
    }),
    ("response_p99_9_at_least_ns", |_, figures| {
        at_least(figures, "p99_9")
    }),
    ("response_p99_99_at_least_ns", |_, figures| {
        at_least(figures, "p99_99")
    }),
    ("response_max_at_least_ns", |_, figures| {
        at_least(figures, "max")
    }),
    ("service_p50_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.p50_ns))
    }),
    ("service_p90_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.p90_ns))
    }),
    ("service_p99_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.p99_ns))
    }),
    ("service_p99_9_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.p99_9_ns))
    }),
    ("service_max_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.max_ns))
    }),
    ("own_p50_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.p50_ns))
    }),
    ("own_p90_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.p90_ns))
    }),
    ("own_p99_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.p99_ns))
    }),
    ("own_p99_9_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.p99_9_ns))
    }),
    ("own_max_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.max_ns))
    }),
    ("first_reply_p50_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.p50_ns))
    }),
    ("first_reply_p90_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.p90_ns))
    }),
    ("first_reply_p99_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.p99_ns))
    }),
    ("first_reply_p99_9_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.p99_9_ns))
    }),
    ("first_reply_max_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.max_ns))
    }),
    ("lag_p50_ns", |_, figures| cell(figures.lag.p50_ns)),
    ("lag_p90_ns", |_, figures| cell(figures.lag.p90_ns)),
    ("lag_p99_ns", |_, figures| cell(figures.lag.p99_ns)),
    ("lag_p99_9_ns", |_, figures| cell(figures.lag.p99_9_ns)),
    ("lag_max_ns", |_, figures| cell(figures.lag.max_ns)),
    ("own_count", |_, figures| {
        cell(figures.own.as_ref().map(|own| own.count))
    }),
    ("above_p99_response_mean_ns", |_, figures| {
        cell(figures.above_p99.map(|parts| parts.response_ns))
    }),
    ("above_p99_wait_mean_ns", |_, figures| {
        cell(figures.above_p99.map(|parts| parts.wait_ns))
    }),
    ("above_p99_lag_send_mean_ns", |_, figures| {
        cell(figures.above_p99.map(|parts| parts.lag_send_ns))
    }),
    ("above_p99_send_mean_ns", |_, figures| {
        cell(figures.above_p99.map(|parts| parts.send_ns))
    }),
    ("above_p99_server_mean_ns", |_, figures| {
        cell(figures.above_p99.map(|parts| parts.server_ns))
    }),
    ("above_p99_lag_receive_mean_ns", |_, figures| {
        cell(figures.above_p99.map(|parts| parts.lag_receive_ns))
    }),
    ("above_p99_parse_mean_ns", |_, figures| {
        cell(figures.above_p99.map(|parts| parts.parse_ns))
    }),
    ("stamps_clamped", |_, figures| {
        figures.stamps_clamped.to_string()
    }),
    ("spun_ns", |_, figures| figures.spun_ns.to_string()),
    ("rest_p50_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.p50_ns))
    }),
    ("rest_p90_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.p90_ns))
    }),
    ("rest_p99_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.p99_ns))
    }),
    ("rest_p99_9_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.p99_9_ns))
    }),
    ("rest_max_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.max_ns))
    }),
    ("verdict", |_, figures| {
        data_name(figures.verdict.verdict).to_owned()
    }),
    ("because", |_, figures| figures.verdict.because.clone()),
    ("successes_low_per_s", |_, figures| {
        cell(figures.successes_interval_95.map(|it| it.low_per_s))
    }),
    ("successes_high_per_s", |_, figures| {
        cell(figures.successes_interval_95.map(|it| it.high_per_s))
    }),
    ("drifts", |_, figures| {
        cell(figures.steadiness.map(|it| it.drifts))
    }),
    ("client_cpu_user_s", |_, figures| {
        cell(figures.client.cpu_user_s)
    }),
    ("client_cpu_system_s", |_, figures| {
        cell(figures.client.cpu_system_s)
    }),
    ("server", |_, figures| server(figures, |it| Some(&it.name))),
    ("server_cpu_user_s", |_, figures| {
        server(figures, |it| it.cpu_user_s)
    }),
    ("server_cpu_system_s", |_, figures| {
        server(figures, |it| it.cpu_system_s)
    }),
    ("server_resident_bytes_max", |_, figures| {
        server(figures, |it| it.resident_bytes_max)
    }),
    ("server_descriptors_max", |_, figures| {
        server(figures, |it| it.descriptors_max)
    }),
    ("requests_per_server_cpu_s", |_, figures| {
        server(figures, |it| it.requests_per_cpu_s)
    }),
    ("server_counted", |_, figures| cell(figures.server_counted)),
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
    ("tls_count", |_, figures| {
        cell(figures.tls.as_ref().map(|it| it.count))
    }),
    ("tls_p50_ns", |_, figures| {
        cell(figures.tls.as_ref().and_then(|it| it.p50_ns))
    }),
    ("tls_p99_ns", |_, figures| {
        cell(figures.tls.as_ref().and_then(|it| it.p99_ns))
    }),
    ("tls_max_ns", |_, figures| {
        cell(figures.tls.as_ref().and_then(|it| it.max_ns))
    }),
    ("handshakes_full", |_, figures| {
        figures.all_phases.handshakes_full.to_string()
    }),
    ("handshakes_resumed", |_, figures| {
        figures.all_phases.handshakes_resumed.to_string()
    }),
    ("first_byte_p50_ns", |_, figures| {
        cell(figures.first_byte.p50_ns)
    }),
    ("first_byte_p90_ns", |_, figures| {
        cell(figures.first_byte.p90_ns)
    }),
    ("first_byte_p99_ns", |_, figures| {
        cell(figures.first_byte.p99_ns)
    }),
    ("first_byte_p99_9_ns", |_, figures| {
        cell(figures.first_byte.p99_9_ns)
    }),
    ("first_byte_max_ns", |_, figures| {
        cell(figures.first_byte.max_ns)
    }),
    ("transfer_p50_ns", |_, figures| {
        cell(figures.transfer.p50_ns)
    }),
    ("transfer_p90_ns", |_, figures| {
        cell(figures.transfer.p90_ns)
    }),
    ("transfer_p99_ns", |_, figures| {
        cell(figures.transfer.p99_ns)
    }),
    ("transfer_p99_9_ns", |_, figures| {
        cell(figures.transfer.p99_9_ns)
    }),
    ("transfer_max_ns", |_, figures| {
        cell(figures.transfer.max_ns)
    }),
    ("goaways", |_, figures| {
        figures.all_phases.goaways.to_string()
    }),
    ("overhead_bytes", |_, figures| {
        figures.all_phases.overhead_bytes.to_string()
    }),
    ("connections_shut", |_, figures| {
        figures.all_phases.connections_shut.to_string()
    }),
    ("greeting_count", |_, figures| {
        cell(figures.greeting.as_ref().map(|it| it.count))
    }),
    ("greeting_p50_ns", |_, figures| {
        cell(figures.greeting.as_ref().and_then(|it| it.p50_ns))
    }),
    ("greeting_p99_ns", |_, figures| {
        cell(figures.greeting.as_ref().and_then(|it| it.p99_ns))
    }),
    ("greeting_max_ns", |_, figures| {
        cell(figures.greeting.as_ref().and_then(|it| it.max_ns))
    }),
    ("response_p75_ns", |_, figures| {
        cell(figures.response.p75_ns)
    }),
    ("response_p75_low_ns", |_, figures| {
        interval(figures, "p75", |interval| interval.low_ns)
    }),
    ("response_p75_high_ns", |_, figures| {
        interval(figures, "p75", |interval| interval.high_ns)
    }),
    ("response_p75_at_least_ns", |_, figures| {
        at_least(figures, "p75")
    }),
    ("response_p95_ns", |_, figures| {
        cell(figures.response.p95_ns)
    }),
    ("response_p95_low_ns", |_, figures| {
        interval(figures, "p95", |interval| interval.low_ns)
    }),
    ("response_p95_high_ns", |_, figures| {
        interval(figures, "p95", |interval| interval.high_ns)
    }),
    ("response_p95_at_least_ns", |_, figures| {
        at_least(figures, "p95")
    }),
    ("response_mean_at_least_ns", |_, figures| {
        at_least(figures, "mean")
    }),
    ("response_error_mean_ns", |_, figures| {
        cell(figures.response_error.mean_ns)
    }),
    ("response_error_p75_ns", |_, figures| {
        cell(figures.response_error.p75_ns)
    }),
    ("response_error_p95_ns", |_, figures| {
        cell(figures.response_error.p95_ns)
    }),
    ("lag_mean_ns", |_, figures| cell(figures.lag.mean_ns)),
    ("lag_p75_ns", |_, figures| cell(figures.lag.p75_ns)),
    ("lag_p95_ns", |_, figures| cell(figures.lag.p95_ns)),
    ("first_byte_mean_ns", |_, figures| {
        cell(figures.first_byte.mean_ns)
    }),
    ("first_byte_p75_ns", |_, figures| {
        cell(figures.first_byte.p75_ns)
    }),
    ("first_byte_p95_ns", |_, figures| {
        cell(figures.first_byte.p95_ns)
    }),
    ("transfer_mean_ns", |_, figures| {
        cell(figures.transfer.mean_ns)
    }),
    ("transfer_p75_ns", |_, figures| {
        cell(figures.transfer.p75_ns)
    }),
    ("transfer_p95_ns", |_, figures| {
        cell(figures.transfer.p95_ns)
    }),
    ("service_mean_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.mean_ns))
    }),
    ("service_p75_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.p75_ns))
    }),
    ("service_p95_ns", |_, figures| {
        cell(figures.service.as_ref().and_then(|it| it.p95_ns))
    }),
    ("own_mean_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.mean_ns))
    }),
    ("own_p75_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.p75_ns))
    }),
    ("own_p95_ns", |_, figures| {
        cell(figures.own.as_ref().and_then(|it| it.p95_ns))
    }),
    ("rest_mean_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.mean_ns))
    }),
    ("rest_p75_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.p75_ns))
    }),
    ("rest_p95_ns", |_, figures| {
        cell(figures.rest.as_ref().and_then(|it| it.p95_ns))
    }),
    ("first_reply_mean_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.mean_ns))
    }),
    ("first_reply_p75_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.p75_ns))
    }),
    ("first_reply_p95_ns", |_, figures| {
        cell(figures.first_reply.as_ref().and_then(|it| it.p95_ns))
    }),
    ("connect_mean_ns", |_, figures| {
        cell(figures.connect.mean_ns)
    }),
    ("tls_mean_ns", |_, figures| {
        cell(figures.tls.as_ref().and_then(|it| it.mean_ns))
    }),
    ("greeting_mean_ns", |_, figures| {
        cell(figures.greeting.as_ref().and_then(|it| it.mean_ns))
    }),
    ("carried_in_in_flight", |_, figures| {
        carried_in(figures, |it| it.in_flight)
    }),
    ("carried_in_answered", |_, figures| {
        carried_in(figures, |it| it.answered)
    }),
    ("carried_in_failed", |_, figures| {
        carried_in(figures, |it| it.failed)
    }),
    ("carried_in_unanswered", |_, figures| {
        carried_in(figures, |it| it.unanswered)
    }),
    ("arrivals_sent_by_end", |_, figures| {
        cell(figures.arrivals.and_then(|it| it.sent_by_end))
    }),
    ("with_connect_min_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.min_ns))
    }),
    ("with_connect_mean_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.mean_ns))
    }),
    ("with_connect_p50_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.p50_ns))
    }),
    ("with_connect_p75_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.p75_ns))
    }),
    ("with_connect_p90_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.p90_ns))
    }),
    ("with_connect_p95_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.p95_ns))
    }),
    ("with_connect_p99_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.p99_ns))
    }),
    ("with_connect_p99_9_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.p99_9_ns))
    }),
    ("with_connect_p99_99_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.p99_99_ns))
    }),
    ("with_connect_max_ns", |_, figures| {
        cell(figures.with_connect.as_ref().and_then(|it| it.max_ns))
    }),
    ("placement", |run, _| {
        let placement = run.first().placement.as_ref();
        cell(placement.map(|placement| placement.reason.name()))
    }),
    ("worker_cpus", |run, _| {
        cell(run.first().bound_cpus().map(|cpus| cpu_list(&cpus)))
    }),
    ("clean_ns", |_, figures| clean(figures, |it| it.clean_ns)),
    ("clean_successes_per_s", |_, figures| {
        clean(figures, |it| it.successes_per_s)
    }),
    ("clean_own_share", |_, figures| {
        clean(figures, |it| it.own_share)
    }),
    ("clean_response_p50_ns", |_, figures| {
        clean(figures, |it| it.response.as_ref()?.p50_ns)
    }),
    ("clean_response_p90_ns", |_, figures| {
        clean(figures, |it| it.response.as_ref()?.p90_ns)
    }),
    ("clean_response_p99_ns", |_, figures| {
        clean(figures, |it| it.response.as_ref()?.p99_ns)
    }),
    ("clean_response_p99_9_ns", |_, figures| {
        clean(figures, |it| it.response.as_ref()?.p99_9_ns)
    }),
    ("script_ns_per_request", |_, figures| {
        generator(figures, |it| it.ns_per_request)
    }),
    ("script_workers_share", |_, figures| {
        generator(figures, |it| it.workers_share)
    }),
    ("objectives", |_, figures| {
        cell(Some(figures.objectives.len()))
    }),
    ("objectives_missed", |_, figures| {
        let missed = figures.objectives.iter().filter(|it| !it.met);
        cell(Some(missed.count()))
    }),
    ("up_bytes_per_s", |_, figures| {
        bandwidth(figures, |it| it.up_bytes_per_s)
    }),
    ("down_bytes_per_s", |_, figures| {
        bandwidth(figures, |it| it.down_bytes_per_s)
    }),
    ("up_bytes", |_, figures| {
        bandwidth(figures, |it| Some(it.up_bytes))
    }),
    ("down_bytes", |_, figures| {
        bandwidth(figures, |it| Some(it.down_bytes))
    }),
    ("fairness", |_, figures| {
        bandwidth(figures, |it| it.fairness)
    }),
    ("segments_sent", |_, figures| {
        bandwidth(figures, |it| Some(it.segments_sent))
    }),
    ("segments_retransmitted", |_, figures| {
        bandwidth(figures, |it| Some(it.segments_retransmitted))
    }),
    ("smoothed_rtt_ns", |_, figures| {
        bandwidth(figures, |it| it.smoothed_rtt_ns)
    }),
    ("receive_window_limited_share", |_, figures| {
        bandwidth(figures, |it| it.receive_window_limited_share)
    }),
    ("send_buffer_limited_share", |_, figures| {
        bandwidth(figures, |it| it.send_buffer_limited_share)
    }),
    ("client_cpu_s_per_gb", |_, figures| {
        bandwidth(figures, |it| it.client_cpu_s_per_gb)
    }),
    ("server_cpu_s_per_gb", |_, figures| {
        bandwidth(figures, |it| it.server_cpu_s_per_gb)
    }),
    ("held_open_at_end", |_, figures| {
        held(figures, |it| Some(it.open_at_end))
    }),
    ("held_opened", |_, figures| {
        held(figures, |it| Some(it.opened))
    }),
    ("held_closed_by_server", |_, figures| {
        held(figures, |it| Some(it.closed_by_server))
    }),
    ("held_attempts_failed", |_, figures| {
        held(figures, |it| Some(it.attempts_failed))
    }),
    ("held_set_up_ns", |_, figures| {
        held(figures, |it| it.set_up_ns)
    }),
    ("held_client_bytes", |_, figures| {
        held(figures, |it| it.client_bytes_per_connection)
    }),
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

fn arrivals(figures: &StoredSummary, content: fn(&ArrivalCounts) -> u64) -> String {
    cell(figures.arrivals.as_ref().map(content))
}

/// A cell that only a run has that counted what its warm-up left in flight.
fn carried_in(figures: &StoredSummary, content: fn(&CarriedIn) -> u64) -> String {
    cell(figures.carried_in.as_ref().map(content))
}

/// A cell that only a run with a watched server has.
fn server<'a, T: ToString>(
    figures: &'a StoredSummary,
    content: fn(&'a ServerFigures) -> Option<T>,
) -> String {
    cell(figures.server.as_ref().and_then(content))
}

/// A cell that only a run has of which the hypervisor took something.
fn clean<T: ToString>(figures: &StoredSummary, content: fn(&CleanSummary) -> Option<T>) -> String {
    cell(figures.clean.as_ref().and_then(content))
}

/// A cell that only a run has whose requests were made while it went on.
fn generator<T: ToString>(
    figures: &StoredSummary,
    content: fn(&GeneratorFigures) -> Option<T>,
) -> String {
    cell(figures.generator.as_ref().and_then(content))
}

/// A cell that only a run of streams has.
fn bandwidth<T: ToString>(
    figures: &StoredSummary,
    content: fn(&BandwidthFigures) -> Option<T>,
) -> String {
    cell(figures.bandwidth.as_ref().and_then(content))
}

/// A cell that only a run has that kept connections open.
fn held(figures: &StoredSummary, content: fn(&Held) -> Option<u64>) -> String {
    cell(figures.held.as_ref().and_then(content))
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

fn at_least(figures: &StoredSummary, name: &str) -> String {
    cell(figures.response.at_least_ns.get(name))
}

fn cell<T: ToString>(figure: Option<T>) -> String {
    figure.map_or_else(String::new, |value| value.to_string())
}
