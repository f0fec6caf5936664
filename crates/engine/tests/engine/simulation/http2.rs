//! HTTP/2, in clear text and over TLS, HTTP/3, and HTTP/1.1 over TLS, where the figures are known
//! beforehand.

use brunt_judge::RunFigures;
use brunt_load::{HttpChoice, Plan, Reuse, Target, TlsVersion};
use brunt_record::{FailureKind, Protocol};
use brunt_server::Http2Options;
use brunt_testkit::SimSettings;

use super::reference::{exact, run_in, sum};
use super::{closed as closed_loop, faithful, run, textbook};
use crate::common::{
    MS, S, US, ask, by_count, change_request, expect_valid, failed, failures, lifetime, many,
    many_long,
};

/// Kinds of malformed answers that fail their stream, and that fail the connection.
const OF_STREAM: [&str; 3] = ["no-status", "short-body", "short-length"];
const OF_CONNECTION: &str = "bad-hpack large-frame stream-zero idle-stream window-overflow garbage";

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Http2,
    TlsHttp1,
    TlsHttp2,
    Http3,
}

const WIRES: [Wire; 3] = [Wire::Http2, Wire::TlsHttp1, Wire::TlsHttp2];
/// Those that carry several requests at once on a connection.
const OF_STREAMS: [Wire; 3] = [Wire::Http2, Wire::TlsHttp2, Wire::Http3];

/// The kinds of reset streams, by their code (RFC 9113 section 7); the last one is of others.
const OF_RESETS: [FailureKind; 15] = [
    FailureKind::StreamNoError,
    FailureKind::StreamProtocolError,
    FailureKind::StreamInternalError,
    FailureKind::StreamFlowControlError,
    FailureKind::StreamSettingsTimeout,
    FailureKind::StreamClosed,
    FailureKind::StreamFrameSizeError,
    FailureKind::StreamRefused,
    FailureKind::StreamCancelled,
    FailureKind::StreamCompressionError,
    FailureKind::StreamConnectError,
    FailureKind::StreamEnhanceYourCalm,
    FailureKind::StreamInadequateSecurity,
    FailureKind::StreamHttp11Required,
    FailureKind::StreamOtherCode,
];

/// The plan, spoken so; in HTTP/2 and HTTP/3 with so many streams per connection.
fn over(wire: Wire, streams: u32, mut plan: Plan) -> Plan {
    if wire != Wire::Http2 {
        plan.target = Target::parse("https://simulated/", None).expect("a URL");
    }
    let http = match wire {
        Wire::TlsHttp1 => HttpChoice::HTTP1,
        Wire::Http2 | Wire::TlsHttp2 => HttpChoice::HTTP2,
        Wire::Http3 => HttpChoice::HTTP3,
    };
    plan.connection.protocol = http.into();
    plan.traffic.streams = many(streams);
    plan
}

fn closed(connections: u32) -> Plan {
    closed_loop(connections, 1)
}

fn http2(connections: u32, streams: u32) -> Plan {
    over(Wire::Http2, streams, closed(connections))
}

/// The plan, which asks for `path`.
fn to(path: &str, mut plan: Plan) -> Plan {
    change_request(&mut plan, |request| request.path = path.to_owned());
    plan
}

/// The plan with so many requests, without a warm-up.
fn counted(requests: u64, mut plan: Plan) -> Plan {
    by_count(&mut plan, requests);
    plan
}

/// The reference server, 100 us away, with these options.
fn reference(change: impl FnOnce(&mut Http2Options)) -> SimSettings {
    let mut http2 = Http2Options::default();
    change(&mut http2);
    SimSettings {
        reference: Some(http2),
        ..textbook(0)
    }
}

#[test]
fn each_stream_gives_a_reply_per_service_time() {
    for (connections, streams, workers) in
        [(1, 1, 1), (1, 100, 1), (7, 3, 1), (7, 3, 3), (20, 100, 2)]
    {
        for wire in [Wire::Http2, Wire::TlsHttp2] {
            let what = format!("{wire:?}: {connections} x {streams}, {workers} workers");
            let mut plan = to("/delay/800us", over(wire, streams, closed(connections)));
            plan.workers.count = many(workers);
            plan.load.stop.duration_ns = Some(S / 4);
            let (run, counts) = faithful(&plan, &textbook(0), &what);
            assert_eq!(run.agents[0].negotiated.protocol, Protocol::HTTP2);
            let is_secure = run.agents[0].negotiated.tls.is_some();
            assert_eq!(is_secure, wire == Wire::TlsHttp2);
            let places = u64::from(connections * streams);
            let replies = run.summary().window.replies.successes();
            let apart = replies.abs_diff(250 * places);
            assert!(apart <= places, "{what}: {replies}");
            let response = &run.latencies.response;
            assert_eq!((response.min_ns(), response.max_ns()), (Some(MS), Some(MS)));
            assert_eq!(counts.connections_accepted, u64::from(connections));
            assert_eq!(failures(&run), [], "{what}");
        }
    }
}

#[test]
fn after_a_goaway_the_server_has_answered_what_it_took() {
    for (connections, streams, after) in [(1, 1, 10), (1, 100, 1_000), (5, 20, 7), (10, 10, 1_000)]
    {
        for wire in OF_STREAMS {
            let what = format!("{wire:?}: {connections} x {streams}, {after}");
            let settings = reference(|http2| http2.requests_max = Some(many_long(after)));
            let plan = to("/delay/800us", over(wire, streams, closed(connections)));
            let (run, counters) = exact(plan, &settings, &what);
            let lifetime = lifetime(&run);
            let not_processed = lifetime.failures.get(FailureKind::NotProcessed);
            let ignored = sum(&counters, |server| server.streams_ignored);
            assert_eq!(failed(&run), not_processed, "{what}: {:?}", failures(&run));
            assert_eq!(not_processed, ignored, "{what}");
            let requests = sum(&counters, |server| server.requests);
            assert_eq!(lifetime.replies.total(), requests, "{what}");
            assert_eq!(lifetime.requests_sent, requests + ignored, "{what}");
            let goaways = sum(&counters, |server| server.goaways);
            assert_eq!(lifetime.goaways, goaways, "{what}");
            assert!(goaways > 0, "{what}");
        }
    }
}

#[test]
fn resets_are_counted_by_their_code() {
    let codes = (0..).zip(OF_RESETS);
    let resets = codes.map(|(code, kind)| (format!("/reset-stream/{code}"), kind));
    let cut = (
        "/truncate/1000".to_owned(),
        FailureKind::StreamInternalError,
    );
    for (path, kind) in resets.chain([cut]) {
        let plan = to(&path, counted(200, http2(4, 10)));
        let (run, counters) = exact(plan, &reference(|_| {}), &path);
        assert_eq!(failures(&run), [(kind, 200)], "{path}");
        assert_eq!(sum(&counters, |server| server.faults), 200, "{path}");
        // The connections went on.
        let accepted = sum(&counters, |server| server.connections_accepted);
        assert_eq!(accepted, 4, "{path}");
    }
}

#[test]
fn refused_streams_are_counted() {
    for wire in OF_STREAMS {
        let plan = to("/random-refuse/10", over(wire, 10, closed(4)));
        let (run, counters) = exact(plan, &reference(|_| {}), "refused");
        // HTTP/3 has one way to say this, be it by a reset or by GOAWAY.
        let kind = match wire {
            Wire::Http3 => FailureKind::NotProcessed,
            _ => FailureKind::StreamRefused,
        };
        let refused = lifetime(&run).failures.get(kind);
        assert_eq!(failed(&run), refused, "{:?}", failures(&run));
        assert_eq!(refused, sum(&counters, |server| server.faults));
        assert!(refused > 1_000, "{refused}");
    }
}

#[test]
fn a_stream_without_an_answer_is_cancelled_and_the_others_go_on() {
    let mut plan = http2(2, 10);
    ask(&mut plan, &[("/delay/800us", 99), ("/never", 1)]);
    plan.limits.timeout_ns = 20 * MS;
    let (run, counters) = exact(plan, &reference(|_| {}), "silent streams");
    let timed_out = lifetime(&run).failures.get(FailureKind::TimedOut);
    let in_flight = run.summary().in_flight_at_end;
    let faults = sum(&counters, |server| server.faults);
    assert_eq!(timed_out + in_flight, faults);
    assert_eq!(failed(&run), timed_out, "{:?}", failures(&run));
    assert!(timed_out > 50, "{timed_out}");
    // Nobody else was hurt.
    assert_eq!(sum(&counters, |server| server.connections_accepted), 2);
    let cancelled = sum(&counters, |server| server.streams_cancelled);
    let apart = timed_out.abs_diff(cancelled);
    assert!(apart <= 20, "{timed_out}, {cancelled}");
    assert_eq!(run.latencies.response.max_ns(), Some(MS));
}

#[test]
fn a_silent_connection_is_replaced() {
    let mut plan = to("/never", counted(200, http2(2, 10)));
    plan.limits.timeout_ns = 20 * MS;
    let (run, counters) = exact(plan, &reference(|_| {}), "silent connections");
    assert_eq!(failed(&run), 200);
    let accepted = sum(&counters, |server| server.connections_accepted);
    assert!(accepted > 2 * 5, "{accepted}");
}

#[test]
fn the_server_s_limit_of_streams_is_kept() {
    for (wire, streams_max, path, later) in [
        (Wire::Http2, 10, "/", 10),
        (Wire::Http2, 100, "/", 100),
        (Wire::Http2, 5, "/malformed/one-stream", 1),
        (Wire::Http3, 3, "/", 3),
    ] {
        let what = format!("{wire:?}, {streams_max}, {path}");
        let settings = reference(|http2| http2.streams_max = many(streams_max));
        let plan = to(path, over(wire, 100, closed(2)));
        let (run, counters) = exact(plan, &settings, &what);
        assert_eq!(run.agents[0].negotiated.depth, streams_max, "{what}");
        assert_eq!(failures(&run), [], "{what}");
        assert_eq!(sum(&counters, |server| server.streams_refused), 0, "{what}");
        let in_flight = run.summary().in_flight_mean.known().expect("a mean");
        // Over QUIC, credit for another stream comes behind the reply.
        if wire != Wire::Http3 {
            let expected = f64::from(2 * later);
            assert!((in_flight - expected).abs() <= 0.1, "{what}: {in_flight}");
        }
    }
}

#[test]
fn heads_are_understood_however_they_are_coded() {
    let answers = [
        ("/interim/2", 1),
        ("/bytes/100", 1),
        ("/chunked/100", 1),
        ("/status/503", 1),
        ("/malformed/pinged", 1),
    ];
    for no_table in [0, 1] {
        let mut settings = reference(|_| {});
        settings.server.pieces_max = many(4);
        let mut plan = http2(3, 10);
        change_request(&mut plan, |request| {
            request.headers = vec![("x-token".to_owned(), "t".repeat(100))]
        });
        let table = ("/malformed/no-table", 1);
        ask(&mut plan, &[&answers[..], &[table][..no_table]].concat());
        let what = format!("{no_table}");
        let (run, counters) = exact(plan, &settings, &what);
        assert_eq!(failures(&run), [], "{what}");
        let errors = counters[0].replies_by_status[&503];
        assert_eq!(lifetime(&run).replies.errors(), errors, "{what}");
    }
}

#[test]
fn large_bodies_pass_the_windows_both_ways() {
    for window_bytes in [1_000, 65_535, 1 << 20] {
        for wire in WIRES {
            let what = format!("{wire:?}, {window_bytes}");
            let settings = reference(|http2| http2.window_bytes = window_bytes);
            let mut plan = over(wire, 5, closed(2));
            plan.load.stop.duration_ns = Some(300 * MS);
            change_request(&mut plan, |request| {
                request.path = "/bytes/300000".to_owned();
                request.method = "POST".to_owned();
                request.body = vec![b'b'; 300_000];
            });
            let (run, counters) = exact(plan, &settings, &what);
            assert_eq!(failures(&run), [], "{what}");
            let replies = lifetime(&run).replies.total();
            assert!(replies >= 2, "{what}: {replies}");
            let requests = sum(&counters, |server| server.requests);
            let received = sum(&counters, |server| server.bytes_received);
            assert!(received >= 300_000 * requests, "{what}");
        }
    }
}

#[test]
fn a_malformed_reply_hurts_its_stream_and_a_malformed_frame_the_connection() {
    let of_stream = OF_STREAM.map(|kind| (kind, true));
    let of_connection = OF_CONNECTION.split(' ').map(|kind| (kind, false));
    for (malformed, is_of_stream) in of_stream.into_iter().chain(of_connection) {
        let mut plan = http2(2, 10);
        let path = format!("/malformed/{malformed}");
        ask(&mut plan, &[("/delay/800us", 999), (&path, 1)]);
        let (run, counters) = run_in(reference(|_| {}), plan).expect("a run");
        expect_valid(&run, malformed);
        let faults = sum(&counters, |server| server.faults);
        assert!(faults >= 5, "{malformed}: {counters:?}");
        let accepted = sum(&counters, |server| server.connections_accepted);
        if is_of_stream {
            assert_eq!(accepted, 2, "{malformed}");
            assert_eq!(failed(&run), faults, "{malformed}");
        } else {
            let broken = lifetime(&run).failures.get(FailureKind::Http2Error);
            assert_eq!(broken, failed(&run), "{malformed}: {:?}", failures(&run));
            assert!(broken > faults, "{malformed}");
            assert_eq!(accepted, 2 + faults, "{malformed}");
        }
    }
}

#[test]
fn an_error_told_by_goaway_fails_what_was_in_flight() {
    let mut plan = http2(2, 10);
    ask(&mut plan, &[("/delay/800us", 999), ("/goaway/2", 1)]);
    let (run, counters) = run_in(reference(|_| {}), plan).expect("a run");
    expect_valid(&run, "an error");
    let goaways = sum(&counters, |server| server.goaways);
    assert!(goaways > 5, "{counters:?}");
    assert_eq!(lifetime(&run).goaways, goaways);
    let replies = sum(&counters, |server| server.replies);
    assert_eq!(lifetime(&run).replies.total(), replies);
    assert!(failed(&run) >= goaways, "{:?}", failures(&run));
}

#[test]
fn handshakes_that_fail_are_failed_attempts() {
    let mut settings = textbook(800 * US);
    let faults = &mut settings.server.faults;
    (faults.handshake_cut, faults.handshake_silent, faults.reset) = (0.2, 0.1, 0.01);
    let mut plan = over(Wire::TlsHttp1, 4, closed(5));
    plan.limits.connect_timeout_ns = 20 * MS;
    let (run, counts) = faithful(&plan, &settings, "handshakes");
    let lifetime = lifetime(&run);
    let cut = lifetime.failures.get(FailureKind::HandshakeCut);
    let silent = lifetime.failures.get(FailureKind::HandshakeTimedOut);
    // One attempt per connection may be in flight at the end.
    assert!((cut..=cut + 5).contains(&counts.handshakes_cut));
    assert!((silent..=silent + 5).contains(&counts.handshakes_silent));
    assert!(cut > 5, "{counts:?}");
}

#[test]
fn sessions_of_tls_are_resumed_when_that_is_asked_for() {
    let (tls12, tls13) = (TlsVersion::Tls12, TlsVersion::Tls13);
    for (wire, version, resumption) in [
        (Wire::TlsHttp1, tls12, false),
        (Wire::TlsHttp1, tls13, false),
        (Wire::TlsHttp1, tls12, true),
        (Wire::TlsHttp1, tls13, true),
        (Wire::TlsHttp2, tls12, true),
        (Wire::TlsHttp2, tls13, true),
    ] {
        let mut plan = over(wire, 1, closed(1));
        (
            plan.connection.tls.version_min,
            plan.connection.tls.version_max,
        ) = (version, version);
        plan.connection.tls.resumption = resumption;
        plan.traffic.reuse = Reuse::Requests(many_long(10));
        let (run, _) = run(plan, &textbook(800 * US));
        let lifetime = lifetime(&run);
        let handshakes = lifetime.handshakes_full + lifetime.handshakes_resumed;
        assert_eq!(handshakes, lifetime.connections_opened);
        let full = if resumption { 1 } else { handshakes };
        assert_eq!(lifetime.handshakes_full, full, "{wire:?}");
        assert!(handshakes > 50, "{handshakes}");
    }
}
