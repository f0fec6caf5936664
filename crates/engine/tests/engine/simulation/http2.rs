//! HTTP/2, in clear text and over TLS, and HTTP/1.1 over TLS, where the figures are known
//! beforehand.

use brunt_judge::RunFigures;
use brunt_load::{HttpChoice, Plan, Target};
use brunt_record::{FailureKind, Protocol};
use brunt_testkit::{Framing, ServiceTime, SettingsChange, SimServer, SimSettings, Stall};

use super::{at_the_door, even_rate, faithful, open_loop, plan, reconcile, run, textbook};
use crate::common::{
    MS, S, US, broken, change_request, failed, failures, lifetime, many, many_long,
};

/// Kinds of malformed answers that fail their stream, and that fail the connection.
pub(super) const OF_STREAM: [&str; 3] = ["no-status", "short-body", "short-length"];
pub(super) const OF_CONNECTION: [&str; 6] = [
    "bad-hpack",
    "large-frame",
    "stream-zero",
    "idle-stream",
    "window-overflow",
    "garbage",
];

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Http2,
    TlsHttp1,
    TlsHttp2,
}

const WIRES: [Wire; 3] = [Wire::Http2, Wire::TlsHttp1, Wire::TlsHttp2];

/// The plan, spoken so; in HTTP/2 with so many streams per connection.
fn over(wire: Wire, streams: u32, mut plan: Plan) -> Plan {
    if wire != Wire::Http2 {
        plan.target = Target::parse("https://simulated/", None).expect("a URL");
    }
    if wire == Wire::TlsHttp1 {
        plan.spoken = HttpChoice::HTTP1.into();
    } else {
        plan.spoken = HttpChoice::HTTP2.into();
        plan.streams = many(streams);
    }
    plan
}

/// A closed loop for a second.
fn closed(connections: u32) -> Plan {
    let mut plan = plan();
    plan.connections = many(connections);
    plan.stop.duration_ns = Some(S);
    plan
}

fn http2(connections: u32, streams: u32) -> Plan {
    over(Wire::Http2, streams, closed(connections))
}

/// A textbook server that also does this.
fn server(change: impl FnOnce(&mut SimServer)) -> SimSettings {
    let mut settings = textbook(800 * US);
    change(&mut settings.server);
    settings
}

#[test]
fn each_stream_gives_a_reply_per_service_time() {
    for (connections, streams, workers) in
        [(1, 1, 1), (1, 100, 1), (7, 3, 1), (7, 3, 3), (20, 100, 2)]
    {
        for wire in [Wire::Http2, Wire::TlsHttp2] {
            let what = format!("{wire:?}: {connections} x {streams}, {workers} workers");
            let mut plan = over(wire, streams, closed(connections));
            plan.workers = many(workers);
            plan.stop.duration_ns = Some(S / 4);
            let (run, counts) = faithful(&plan, &textbook(800 * US), &what);
            assert_eq!(run.agents[0].negotiated.protocol, Protocol::HTTP2);
            assert_eq!(
                run.agents[0].negotiated.tls.is_some(),
                wire == Wire::TlsHttp2
            );
            let places = u64::from(connections * streams);
            let replies = run.summary().window.replies.successes();
            assert!(
                replies.abs_diff(250 * places) <= places,
                "{what}: {replies}"
            );
            let response = &run.latencies.response;
            assert_eq!((response.min_ns(), response.max_ns()), (Some(MS), Some(MS)));
            assert_eq!(counts.connections_accepted, u64::from(connections));
            assert_eq!(failures(&run), [], "{what}");
        }
    }
}

#[test]
fn a_planned_millisecond_is_a_millisecond() {
    for wire in WIRES {
        for (connections, streams) in [(10, 1), (1, 100), (10, 10)] {
            let what = format!("{wire:?}: {connections} x {streams}");
            let connections = if wire == Wire::TlsHttp1 {
                10
            } else {
                connections
            };
            let plan = over(
                wire,
                streams,
                open_loop(even_rate(1_000.0), connections, 20 * S),
            );
            let (run, _) = faithful(&plan, &textbook(800 * US), &what);
            let response = &run.latencies.response;
            assert_eq!(response.count(), 20_000, "{what}");
            assert_eq!((response.min_ns(), response.max_ns()), (Some(MS), Some(MS)));
        }
    }
}

#[test]
fn response_times_show_every_silence() {
    // As in HTTP/1.1: of a silence of 100 ms in each second, the q-quantile is 100 ms - (1 - q) s.
    let settings = at_the_door(SimServer {
        service: ServiceTime::Constant(US),
        stall: Some(Stall {
            silence_ns: 100 * MS,
            period_ns: many_long(S),
        }),
        ..SimServer::default()
    });
    for wire in WIRES {
        for (connections, streams, workers) in [(1, 1, 1), (1, 100, 1), (10, 10, 2), (200, 4, 1)] {
            let what = format!("{wire:?}: {connections} x {streams}, {workers} workers");
            let mut plan = open_loop(even_rate(1_000.0), connections, 20 * S);
            plan.workers = many(workers);
            plan.warmup_ns = 200 * MS;
            let (run, _) = faithful(&over(wire, streams, plan), &settings, &what);
            let response = &run.latencies.response;
            assert_eq!(response.count(), 20_000, "{what}");
            for (q, truth_ns) in [(0.95, 50 * MS), (0.99, 90 * MS), (0.999, 99 * MS)] {
                let quantile_ns = response.quantile_ns(q).expect("latencies");
                let tolerance_ns = MS + 100 * US + truth_ns / 1_000;
                assert!(
                    quantile_ns.abs_diff(truth_ns) <= tolerance_ns,
                    "{what}: the {q}-quantile is {quantile_ns}, not {truth_ns}"
                );
            }
            let silences = response.buckets().count_between(200 * US, u64::MAX);
            assert!(
                (99 * 20..=100 * 20).contains(&silences),
                "{what}: {silences}"
            );
        }
    }
}

#[test]
fn after_a_goaway_the_server_has_answered_what_it_took() {
    for (connections, streams, after) in [(1, 1, 10), (1, 100, 1_000), (5, 20, 7), (10, 10, 1_000)]
    {
        for wire in [Wire::Http2, Wire::TlsHttp2] {
            let what = format!("{wire:?}: {connections} x {streams}, {after}");
            let settings = server(|server| server.close_after = Some(many_long(after)));
            let plan = over(wire, streams, closed(connections));
            let (run, counts) = run(plan.clone(), &settings);
            let problems = broken(&run, &[]);
            assert!(problems.is_empty(), "{what}: {problems:?}");
            assert_eq!(
                reconcile::mismatches(&plan, &run, &counts),
                Vec::<String>::new()
            );
            let lifetime = lifetime(&run);
            let not_processed = lifetime.failures.get(FailureKind::NotProcessed);
            assert_eq!(lifetime.replies.total(), counts.replies, "{what}");
            assert_eq!(failed(&run), not_processed, "{what}: {:?}", failures(&run));
            assert_eq!(not_processed, counts.not_processed, "{what}");
            assert_eq!(lifetime.requests_sent, counts.requests, "{what}");
            assert_eq!(lifetime.goaways, counts.goaways, "{what}");
            assert!(counts.goaways > 0 && counts.abandoned == 0, "{what}");
        }
    }
}

#[test]
fn resets_are_counted_by_their_code() {
    for cuts in [false, true] {
        let settings = server(|server| {
            if cuts {
                server.faults.stream_cut = 0.05;
            } else {
                server.faults.stream_reset = 0.05;
            }
        });
        let what = format!("in mid-reply: {cuts}");
        let (run, counts) = faithful(&http2(4, 10), &settings, &what);
        let lifetime = lifetime(&run);
        for (kind, count) in reconcile::OF_RESETS.into_iter().zip(counts.stream_resets) {
            assert_eq!(lifetime.failures.get(kind), count, "{what}: {kind:?}");
            // The reference server cuts with one code.
            let is_sent = !cuts || kind == FailureKind::StreamInternalError;
            assert_eq!(count > 50, is_sent, "{what}: {kind:?}");
        }
        assert_eq!(lifetime.replies.total(), counts.replies);
        // The connections went on.
        assert_eq!(counts.connections_accepted, 4);
    }
}

#[test]
fn refused_streams_are_counted() {
    let settings = server(|server| server.faults.stream_refused = 0.1);
    for wire in [Wire::Http2, Wire::TlsHttp2] {
        let plan = over(wire, 10, closed(4));
        let (run, counts) = faithful(&plan, &settings, "refused");
        let refused = lifetime(&run).failures.get(FailureKind::StreamRefused);
        assert_eq!(refused, counts.stream_refused);
        assert_eq!(lifetime(&run).replies.total(), counts.replies);
        assert!(refused > 1_000, "{refused}");
    }
}

#[test]
fn a_stream_without_an_answer_is_cancelled_and_the_others_go_on() {
    let settings = server(|server| server.faults.stream_silent = 0.01);
    let mut plan = http2(2, 10);
    plan.timeout_ns = 20 * MS;
    let (run, counts) = faithful(&plan, &settings, "silent streams");
    let timed_out = lifetime(&run).failures.get(FailureKind::TimedOut);
    let in_flight = run.summary().in_flight_at_end;
    assert_eq!(timed_out + in_flight, counts.stream_silent);
    assert_eq!(failed(&run), timed_out, "{:?}", failures(&run));
    assert!(timed_out > 50, "{timed_out}");
    // Nobody else was hurt.
    assert_eq!(counts.connections_accepted, 2);
    assert_eq!(run.latencies.response.max_ns(), Some(MS));
}

#[test]
fn a_silent_connection_is_replaced() {
    let settings = server(|server| server.faults.silent = 0.002);
    let mut plan = http2(2, 10);
    plan.timeout_ns = 20 * MS;
    let (run, counts) = run(plan.clone(), &settings);
    assert_eq!(broken(&run, &[]), Vec::<brunt_judge::Finding>::new());
    assert_eq!(
        reconcile::mismatches(&plan, &run, &counts),
        Vec::<String>::new()
    );
    assert!(counts.silent > 5, "{counts:?}");
    assert!(counts.connections_accepted > 2, "{counts:?}");
    assert_eq!(lifetime(&run).replies.total(), counts.replies_delivered);
}

#[test]
fn a_pause_under_overload_costs_no_connection() {
    // Each request is sent when its time-out has nearly gone by, so that a pause of the server
    // fails the latest of each connection, on which nothing was heard since it was sent.
    let settings = server(|server| {
        server.service = ServiceTime::Constant(MS);
        server.concurrency = Some(many(2));
        server.stall = Some(Stall {
            silence_ns: 60 * MS,
            period_ns: many_long(500 * MS),
        });
    });
    let mut plan = open_loop(even_rate(6_000.0), 4, 3 * S);
    plan.timeout_ns = 200 * MS;
    let plan = over(Wire::Http2, 10, plan);
    let (run, counts) = run(plan.clone(), &settings);
    assert_eq!(broken(&run, &[]), Vec::<brunt_judge::Finding>::new());
    assert_eq!(
        reconcile::mismatches(&plan, &run, &counts),
        Vec::<String>::new()
    );
    let kinds: Vec<_> = failures(&run).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [FailureKind::TimedOut]);
    assert_eq!(counts.connections_accepted, 4);
}

#[test]
fn a_server_that_allows_no_more_streams_is_left_by_what_it_does_not_answer() {
    let settings = server(|server| {
        server.faults.stream_silent = 0.3;
        server.http2.change = Some(SettingsChange {
            after: 50,
            streams_max: 0,
            table_bytes: 4_096,
        });
    });
    let mut plan = http2(2, 10);
    plan.stop.duration_ns = None;
    plan.stop.requests = Some(2_000);
    plan.warmup_ns = 0;
    plan.timeout_ns = 20 * MS;
    let (run, counts) = run(plan, &settings);
    assert_eq!(lifetime(&run).requests_sent, 2_000);
    assert!(lifetime(&run).connections_shut >= 10, "{counts:?}");
    assert!(counts.connections_accepted >= 20, "{counts:?}");
}

#[test]
fn the_server_s_limit_of_streams_is_kept() {
    for (streams_max, later) in [(10, None), (100, Some(1)), (100, Some(30)), (5, Some(100))] {
        let what = format!("{streams_max}, then {later:?}");
        let settings = server(|server| {
            server.http2.streams_max = Some(many(streams_max));
            server.http2.change = later.map(|streams_max| SettingsChange {
                after: 500,
                streams_max,
                table_bytes: 4_096,
            });
        });
        let (run, counts) = run(http2(2, 100), &settings);
        assert_eq!(
            run.agents[0].negotiated.depth,
            streams_max.min(100),
            "{what}"
        );
        assert_eq!(counts.violations, 0, "{what}");
        assert_eq!(failures(&run), [], "{what}");
        assert_eq!(lifetime(&run).replies.total(), counts.replies, "{what}");
        let places = 2 * later
            .unwrap_or(streams_max)
            .min(run.agents[0].negotiated.depth);
        // As from the second on which all connections had their new limit.
        let in_flight = run.summary().in_flight_mean.known().expect("a mean");
        let expected = f64::from(places);
        assert!(
            (in_flight - expected).abs() <= 0.2 * expected + 2.0,
            "{what}: {in_flight}, not {expected}"
        );
    }
}

#[test]
fn heads_are_understood_however_they_are_coded() {
    for (framing, body_bytes) in [
        (Framing::Length, 0),
        (Framing::Length, 100),
        (Framing::Chunked, 100),
    ] {
        for (after, table_bytes) in [(0, 0), (0, 64), (0, 4_096), (100, 0), (100, 64)] {
            let what = format!("{framing:?}, {body_bytes}; {table_bytes} after {after}");
            let settings = server(|server| {
                server.framing = framing;
                server.body_bytes = body_bytes;
                server.interim = 2;
                server.http2.change = Some(SettingsChange {
                    after,
                    streams_max: 128,
                    table_bytes,
                });
                server.faults.error_status = 0.2;
                server.pieces_max = many(4);
            });
            let mut plan = http2(3, 10);
            change_request(&mut plan, |request| {
                request.headers = vec![("x-token".to_owned(), "t".repeat(100))]
            });
            let (run, counts) = faithful(&plan, &settings, &what);
            let lifetime = lifetime(&run);
            assert_eq!(failures(&run), [], "{what}");
            assert_eq!(lifetime.replies.errors(), counts.replies_error, "{what}");
            assert_eq!(lifetime.replies.total(), counts.replies, "{what}");
        }
    }
}

#[test]
fn large_bodies_pass_the_windows_both_ways() {
    for window_bytes in [1_000, 65_535, 1 << 20] {
        for wire in WIRES {
            let what = format!("{wire:?}, {window_bytes}");
            let settings = server(|server| {
                server.body_bytes = 300_000;
                server.http2.window_bytes = window_bytes;
            });
            let mut plan = over(wire, 5, closed(2));
            plan.stop.duration_ns = Some(300 * MS);
            change_request(&mut plan, |request| request.method = "POST".to_owned());
            change_request(&mut plan, |request| request.body = vec![b'b'; 300_000]);
            let (run, counts) = faithful(&plan, &settings, &what);
            assert_eq!(failures(&run), [], "{what}");
            let replies = lifetime(&run).replies.total();
            assert_eq!(replies, counts.replies, "{what}");
            assert!(replies >= 2, "{what}: {replies}");
            assert!(counts.bytes_sent >= 300_000 * counts.requests, "{what}");
        }
    }
}

#[test]
fn pings_and_settings_are_acknowledged() {
    let settings = server(|server| server.http2.ping_every = Some(many_long(10)));
    let (_, counts) = faithful(&http2(3, 10), &settings, "PINGs");
    assert!(counts.pings > 1_000);
    assert_eq!(counts.pings_acknowledged, counts.pings);
    assert_eq!((counts.settings, counts.settings_acknowledged), (3, 3));
}

#[test]
fn a_malformed_reply_hurts_its_stream_and_a_malformed_frame_the_connection() {
    let of_stream = OF_STREAM.map(|kind| (kind, true));
    let of_connection = OF_CONNECTION.map(|kind| (kind, false));
    for (malformed, is_of_stream) in of_stream.into_iter().chain(of_connection) {
        let settings = server(|server| {
            server.faults.malformed = 0.001;
            server.http2.malformed = malformed;
            server.after_malformed = brunt_testkit::AfterMalformed::Continue;
        });
        let plan = http2(2, 10);
        let (run, counts) = run(plan.clone(), &settings);
        assert_eq!(broken(&run, &[]), Vec::<brunt_judge::Finding>::new());
        let wrong = reconcile::mismatches(&plan, &run, &counts);
        assert_eq!(wrong, Vec::<String>::new(), "{malformed}");
        assert!(counts.malformed >= 5, "{malformed}: {counts:?}");
        if is_of_stream {
            assert_eq!(counts.connections_accepted, 2, "{malformed}");
            assert_eq!(failed(&run), counts.malformed, "{malformed}");
        } else {
            let broken = lifetime(&run).failures.get(FailureKind::Http2Error);
            assert_eq!(broken, failed(&run), "{malformed}: {:?}", failures(&run));
            assert!(broken > counts.malformed, "{malformed}");
            assert_eq!(counts.connections_accepted, 2 + counts.malformed);
        }
    }
}

#[test]
fn an_error_told_by_goaway_fails_what_was_in_flight() {
    let settings = server(|server| server.faults.goaway = 0.001);
    let plan = http2(2, 10);
    let (run, counts) = run(plan.clone(), &settings);
    assert_eq!(
        reconcile::mismatches(&plan, &run, &counts),
        Vec::<String>::new()
    );
    assert!(counts.goaway_errors > 5, "{counts:?}");
    assert_eq!(lifetime(&run).goaways, counts.goaway_errors);
    assert_eq!(lifetime(&run).replies.total(), counts.replies);
    assert_eq!(
        failed(&run),
        counts.goaway_errors + counts.not_processed + counts.requests_lost
    );
}

#[test]
fn handshakes_that_fail_are_failed_attempts() {
    for wire in WIRES {
        let settings = server(|server| {
            server.faults.handshake_cut = 0.2;
            server.faults.handshake_silent = 0.1;
            server.faults.reset = 0.01;
        });
        let mut plan = over(wire, 4, closed(5));
        plan.connect_timeout_ns = 20 * MS;
        let (run, counts) = run(plan.clone(), &settings);
        let problems = broken(&run, &[]);
        assert!(problems.is_empty(), "{wire:?}: {problems:?}");
        let wrong = reconcile::mismatches(&plan, &run, &counts);
        assert_eq!(wrong, Vec::<String>::new(), "{wire:?}");
        let lifetime = lifetime(&run);
        let cut = lifetime.failures.get(FailureKind::HandshakeCut);
        let silent = lifetime.failures.get(FailureKind::HandshakeTimedOut);
        // One attempt per connection may be in flight at the end.
        assert!((cut..=cut + 5).contains(&counts.handshakes_cut), "{wire:?}");
        assert!((silent..=silent + 5).contains(&counts.handshakes_silent));
        assert!(cut > 5, "{wire:?}: {counts:?}");
    }
}

#[test]
fn sessions_of_tls_are_resumed_when_that_is_asked_for() {
    for (wire, resumption) in [
        (Wire::TlsHttp1, false),
        (Wire::TlsHttp1, true),
        (Wire::TlsHttp2, true),
    ] {
        let mut plan = over(wire, 1, closed(1));
        plan.tls.resumption = resumption;
        let settings = server(|server| server.close_after = Some(many_long(10)));
        let (run, counts) = run(plan, &settings);
        let lifetime = lifetime(&run);
        let handshakes = lifetime.handshakes_full + lifetime.handshakes_resumed;
        assert_eq!(handshakes, counts.connections_established);
        let full = if resumption { 1 } else { handshakes };
        assert_eq!(lifetime.handshakes_full, full, "{wire:?}");
        assert!(handshakes > 50, "{handshakes}");
    }
}
