//! WebSocket with the reference server in virtual time, where the figures are known beforehand.

use brunt_engine::RunError;
use brunt_judge::RunFigures;
use brunt_load::{
    Plan, ProtocolSpec, ReplyMatch, Reuse, Target, WebSocketExchange, WebSocketOpening,
};
use brunt_proto::messages::Template;
use brunt_record::{FailureKind, Run};
use brunt_server::{Counters, Http2Options};
use brunt_testkit::malformed;

use super::reference::{run, run_in};
use super::{closed, even_rate, expect_silences, messages_of, open_loop};
use crate::common::{
    MS, S, US, expect_valid, failed, failures, lifetime, many, many_long, reference,
};

/// The plan with `texts` as messages over WebSocket, one reply each.
fn exchanging(mut plan: Plan, matching: ReplyMatch, texts: &[&str]) -> Plan {
    plan.target = Target::parse_websocket("ws://simulated/websocket", None).expect("a URL");
    plan.connection.protocol = ProtocolSpec::WebSocket(WebSocketExchange {
        headers: Vec::new().into(),
        subprotocols: Vec::new(),
        is_binary: false,
        replies: 1,
        matching,
        opening: None,
        ping_interval_ns: None,
        seed: 1,
    });
    plan.traffic.requests = messages_of(texts);
    plan
}

/// Changes how messages are exchanged.
fn change(mut plan: Plan, change: impl FnOnce(&mut WebSocketExchange)) -> Plan {
    if let ProtocolSpec::WebSocket(exchange) = &mut plan.connection.protocol {
        change(exchange);
    }
    plan
}

/// Runs a plan whose messages get `path`: a run that keeps every invariant, and what the server
/// counted, which found nothing wrong.
fn run_at(path: &str, mut plan: Plan) -> (Run, Counters) {
    let url = format!("ws://simulated/websocket{path}");
    plan.target = Target::parse_websocket(&url, None).expect("a URL");
    let (run, counters) = run(plan);
    expect_valid(&run, path);
    assert_eq!(counters.websocket_refused, 0, "{path}");
    (run, counters)
}

fn rate(run: &Run) -> f64 {
    run.summary().successes_per_s.known().expect("a rate")
}

/// A message takes 800 us of the server and 200 us of the network.
#[test]
fn each_connection_gives_a_reply_per_round_trip() {
    for (matching, is_binary) in [
        (ReplyMatch::Echo, false),
        (ReplyMatch::Echo, true),
        (ReplyMatch::Any, false),
        (ReplyMatch::Any, true),
    ] {
        let plan = exchanging(closed(4, 1), matching, &["größer"]);
        let plan = change(plan, |exchange| exchange.is_binary = is_binary);
        let (run, counters) = run_at("/delay/800us", plan);
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        assert!((rate(&run) - 4_000.0).abs() < 10.0, "{}", rate(&run));
        let quantile_ns = run.latencies.response.quantile_ns(0.5).expect("latencies");
        assert!(quantile_ns.abs_diff(MS) < 2 * US, "{quantile_ns}");
        // All are ended by Close frames.
        assert_eq!(counters.websocket_closes, 4);
        // An upgrade takes the way there and back.
        let greeting_ns = run.latencies.greeting.quantile_ns(0.5).expect("upgrades");
        assert!(greeting_ns.abs_diff(200 * US) < 2 * US, "{greeting_ns}");
    }
}

#[test]
fn messages_come_back_when_they_are_due() {
    let planned = open_loop(even_rate(1_000.0), 10, 5 * S);
    let planned = exchanging(planned, ReplyMatch::Echo, &["ping", "{seq} {rand:5}"]);
    let (run, counters) = run_at("/delay/800us", planned);
    assert_eq!(failures(&run), []);
    let response = &run.latencies.response;
    assert_eq!(response.count(), 5_000);
    assert_eq!((response.min_ns(), response.max_ns()), (Some(MS), Some(MS)));
    let sent = lifetime(&run).requests_sent;
    assert_eq!(counters.websocket_messages_received, sent);
    assert_eq!(counters.websocket_messages_answered, sent);
    assert_eq!(counters.websocket_closes, 10);
}

/// In however many frames and messages it is answered.
#[test]
fn a_reply_may_consist_of_several_frames_and_messages() {
    for (path, replies, bytes) in [("/chunked/40000", 1, 40_000), ("/interim/2", 3, 12)] {
        let plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
        let plan = change(plan, |exchange| exchange.replies = replies);
        let (run, _) = run_at(path, plan);
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        let lifetime = lifetime(&run);
        let replies = lifetime.replies.total();
        assert!(replies > 1_000, "{replies}");
        assert_eq!(lifetime.reply_body_bytes, replies * bytes);
        assert_eq!(lifetime.pushes, 0);
    }
}

/// What opens a connection is no message of the load, and its reply is a part of the opening.
#[test]
fn a_first_message_opens_each_connection() {
    let plan = exchanging(closed(4, 1), ReplyMatch::Echo, &["ping"]);
    let plan = change(plan, |exchange| {
        exchange.opening = Some(WebSocketOpening {
            message: Template::parse("user {conn}").expect("one").into(),
            replies: 1,
        });
    });
    let (run, _) = run_at("/delay/800us", plan);
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    assert!((rate(&run) - 4_000.0).abs() < 10.0, "{}", rate(&run));
    assert_eq!(lifetime(&run).pushes, 0);
    let greeting_ns = run.latencies.greeting.quantile_ns(0.5).expect("upgrades");
    assert!(greeting_ns >= 1_200 * US, "{greeting_ns}");
}

/// With several in flight the server is never idle.
#[test]
fn depth_keeps_the_server_busy() {
    for texts in [&["ping"][..], &["ping", "{seq} {rand:5}"], &["a", "bb", ""]] {
        let plan = exchanging(closed(2, 8), ReplyMatch::Echo, texts);
        let (run, _) = run_at("/locked/800us", plan);
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        assert!((rate(&run) - 1.0 / 800e-6).abs() < 20.0, "{}", rate(&run));
        let named = if texts.len() > 1 { texts.len() } else { 0 };
        assert_eq!(run.names.len(), named);
    }
}

/// L4: with an even rate, 1 % of the messages meet a silence of 10 ms in each second; pings that
/// brunt sends beside them change nothing.
#[test]
fn response_times_show_every_silence() {
    let loop_of = open_loop(even_rate(1_000.0), 10, 20 * S);
    let mut plan = exchanging(loop_of, ReplyMatch::Echo, &["a"]);
    plan.load.warmup_ns = 200 * MS;
    let plan = change(plan, |exchange| exchange.ping_interval_ns = Some(70 * MS));
    let (run, counters) = run_at("/stall/100ms/1s", plan);
    expect_silences(&run, 2 * MS, "stalls");
    let controls = lifetime(&run).controls;
    assert_eq!(controls.pings_sent, counters.websocket_pings);
    assert_eq!(controls.pongs_received, counters.websocket_pings);
    // On ten connections for 20 s.
    let pings = counters.websocket_pings;
    assert!(pings.abs_diff(10 * 20_200 / 70) <= 20, "{pings}");
}

/// Pings of the server are answered, and end nothing.
#[test]
fn a_ping_before_each_reply_is_answered() {
    let plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    let (run, counters) = run_at("/malformed/ping", plan);
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    let sent = lifetime(&run).requests_sent;
    assert!(sent > 1_000 && counters.websocket_pongs <= sent, "{sent}");
    assert!(sent - counters.websocket_pongs <= 4, "{sent}");
}

/// A message that needs no reply is done when the network took it.
#[test]
fn one_way_messages_are_done_when_they_are_taken() {
    for (depth, path) in [(1, "/never"), (4, "/never"), (4, "")] {
        let mut plan = open_loop(even_rate(2_000.0), 2, S);
        plan.traffic.pipeline = many(depth);
        let plan = exchanging(plan, ReplyMatch::Any, &["ping"]);
        let plan = change(plan, |exchange| exchange.replies = 0);
        let (run, counters) = run_at(path, plan);
        let lifetime = lifetime(&run);
        assert_eq!(lifetime.requests_sent, counters.websocket_messages_received);
        assert_eq!(lifetime.replies.total(), lifetime.requests_sent);
        assert_eq!(lifetime.reply_body_bytes, 0);
        // What is echoed all the same is counted and thrown away.
        assert_eq!(lifetime.overhead_bytes, lifetime.bytes_received);
        assert_eq!(lifetime.pushes > 0, path.is_empty());
        assert_eq!(failed(&run), 0);
    }
}

/// Connections that are replaced are ended by Close frames, and what was sent before is received.
#[test]
fn connections_are_parted_from() {
    for requests in [1, 7, 100] {
        let mut plan = exchanging(closed(3, 2), ReplyMatch::Any, &["ping"]);
        plan.traffic.reuse = Reuse::Requests(many_long(requests));
        let (run, counters) = run_at("", plan);
        let lifetime = lifetime(&run);
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        assert_eq!(lifetime.requests_sent, counters.websocket_messages_received);
        assert_eq!(lifetime.requests_sent, counters.websocket_messages_answered);
        // The last ones may be opened when all is counted.
        let (opened, closed) = (lifetime.connections_opened, counters.websocket_closes);
        assert!(opened > 3, "{opened}");
        assert!((opened..=opened + 3).contains(&closed), "{closed}");
    }
}

/// A server that does not answer a Close frame is waited for, but not for ever.
#[test]
fn a_server_that_does_not_part_holds_nothing_up_for_long() {
    let mut plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    plan.limits.timeout_ns = 10 * S;
    plan.traffic.reuse = Reuse::Requests(many_long(1));
    plan.load.stop.duration_ns = Some(5 * S);
    let (run, counters) = run_at("/malformed/last", plan);
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    // A message and a silence of 1 s.
    let opened = lifetime(&run).connections_opened;
    assert!((16..=24).contains(&opened), "{opened}");
    assert!(counters.websocket_closes >= opened - 4, "{counters:?}");
}

/// What is not the echo of the message in flight is no reply to it.
#[test]
fn pushes_are_counted_and_end_nothing() {
    for depth in [1, 3] {
        let plan = exchanging(closed(4, depth), ReplyMatch::Echo, &["ping", "{seq}"]);
        let (run, counters) = run_at("/interim/1", plan);
        let lifetime = lifetime(&run);
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        assert!(lifetime.pushes > 1_000, "{}", lifetime.pushes);
        assert_eq!(lifetime.pushes, counters.websocket_messages_pushed);
        let upgrades_bytes = 129 * lifetime.connections_opened;
        let pushed_bytes = 6 * lifetime.pushes;
        assert_eq!(lifetime.overhead_bytes, pushed_bytes + upgrades_bytes);
    }
}

#[test]
fn closes_are_failures_by_their_code() {
    for (path, kind) in [
        ("/goaway/1000", FailureKind::CloseNormal),
        ("/goaway/1001", FailureKind::CloseGoingAway),
        ("/goaway/1011", FailureKind::CloseServerError),
        ("/goaway/1013", FailureKind::CloseTryLater),
        ("/goaway/4321", FailureKind::CloseOtherCode),
        (
            "/malformed/close-without-code",
            FailureKind::CloseWithoutCode,
        ),
    ] {
        for depth in [1, 4] {
            let plan = exchanging(closed(4, depth), ReplyMatch::Any, &["ping"]);
            let (run, _) = run_at(path, plan);
            let lifetime = lifetime(&run);
            let of_kind = lifetime.failures.get(kind);
            assert!(of_kind > 50, "{path}: {of_kind}");
            let behind = lifetime.failures.get(FailureKind::Unanswered);
            assert_eq!(failed(&run), of_kind + behind, "{:?}", failures(&run));
            assert_eq!(behind > 0, depth > 1);
        }
    }
}

/// A server that closes each connection after its answer, and says so, makes nothing fail that was
/// not in flight.
#[test]
fn a_close_without_anything_in_flight_is_no_failure() {
    let mut plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    plan.traffic.think_time_ns = MS;
    let (run, counters) = run_at("/close", plan);
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    let closes = counters.websocket_messages_answered;
    assert!(closes > 300, "{counters:?}");
    // The others are those of the end.
    let others = closes - lifetime(&run).controls.closes_received;
    assert!(others <= 4, "{others}");
}

#[test]
fn what_breaks_the_protocol_is_a_failure_of_its_own() {
    let [.., names] = malformed::names();
    assert_eq!(names.len(), 10);
    for name in names {
        for matching in [ReplyMatch::Any, ReplyMatch::Echo] {
            let plan = exchanging(closed(4, 1), matching, &["ping"]);
            let (run, _) = run_at(&format!("/malformed/{name}"), plan);
            let wrong = lifetime(&run).failures.get(FailureKind::WebSocketError);
            assert_eq!(failed(&run), wrong, "{name}: {:?}", failures(&run));
            assert!(wrong > 50, "{name}: {wrong}");
        }
    }
}

#[test]
fn replies_that_are_cut_short_or_late_are_failures() {
    for (path, kind) in [
        ("/truncate/1k", FailureKind::TruncatedReply),
        ("/random-close/20", FailureKind::ClosedBeforeReply),
        ("/reset", FailureKind::Reset),
        ("/never", FailureKind::TimedOut),
    ] {
        let mut plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
        plan.limits.timeout_ns = 50 * MS;
        let (run, _) = run_at(path, plan);
        let kinds: Vec<FailureKind> = failures(&run).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [kind]);
    }
}

#[test]
fn upgrades_that_are_refused_are_failed_attempts() {
    let mut plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    let target = Target::parse_websocket("ws://simulated/status/503", None);
    plan.target = target.expect("a URL");
    let none = run_in(reference(Http2Options::default()), plan);
    let Err(RunError::NoConnection { set_up, .. }) = none else {
        panic!("a connection was opened");
    };
    let failure = set_up.main_failure().map(|(kind, _)| kind);
    assert_eq!(failure, Some(FailureKind::UpgradeRefused));
}
