//! WebSocket, where the figures are known beforehand.

use brunt_engine::RunError;
use brunt_judge::RunFigures;
use brunt_load::{
    MessageSpec, Plan, ReplyMatch, RequestOrder, RequestSet, Reuse, Spoken, Target,
    WebSocketExchange, WebSocketOpening,
};
use brunt_proto::messages::Template;
use brunt_proto::websocket::{Reader, Rules, Side};
use brunt_record::FailureKind;
use brunt_testkit::{Costs, ServiceTime, SimFaults, SimServer, SimSettings, SimWebSocket, Stall};

use super::{at_the_door, even_rate, faithful, open_loop, plan, run, textbook};
use crate::common::{MS, S, US, broken, failed, failures, lifetime, many, many_long, simulate};

/// What a server must not send (RFC 6455).
pub(super) const MALFORMED: [&[u8]; 10] = [
    // A bit of an extension is set.
    b"\xc1\x01a",
    // An opcode without a meaning.
    b"\x83\x01a",
    // A frame is masked.
    b"\x81\x81\x01\x02\x03\x04a",
    // A ping of 126 bytes.
    &long_ping(),
    // A ping that is not the last frame of its message.
    b"\x09\x01a",
    // A continuation of nothing.
    b"\x80\x01a",
    // A message inside of another one.
    b"\x01\x01a\x81\x01b",
    // A Close with a code that stands for a connection without one.
    b"\x88\x02\x03\xed",
    // A Close with half a code.
    b"\x88\x01\x03",
    // A length with the highest of its 64 bits set.
    b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
];

const fn long_ping() -> [u8; 130] {
    let mut bytes = [b'a'; 130];
    (bytes[0], bytes[1], bytes[2], bytes[3]) = (0x89, 0x7e, 0, 126);
    bytes
}

#[test]
fn what_is_malformed_is_refused() {
    let rules = Rules {
        side: Side::Client,
        is_strict: false,
    };
    for malformed in MALFORMED {
        let received = Reader::default().receive(malformed, rules, |_| {});
        assert!(received.is_err(), "{malformed:x?}: {received:?}");
    }
}

/// The plan with `texts` as messages over WebSocket, one reply each.
pub(super) fn exchanging(mut plan: Plan, matching: ReplyMatch, texts: &[&str]) -> Plan {
    plan.target = Target::parse_websocket("ws://simulated/", None).expect("a URL");
    plan.spoken = Spoken::WebSocket(WebSocketExchange {
        headers: Vec::new().into(),
        subprotocols: Vec::new(),
        is_binary: false,
        replies: 1,
        matching,
        opening: None,
        ping_interval_ns: None,
        seed: 1,
    });
    let messages = texts.iter().map(|text| MessageSpec {
        name: (*text).to_owned(),
        template: Template::parse(text).expect("a message"),
    });
    let set = RequestSet::messages_in(RequestOrder::Turns, messages.collect());
    plan.requests = set.expect("messages");
    plan
}

/// Changes how messages are exchanged.
fn change(mut plan: Plan, change: impl FnOnce(&mut WebSocketExchange)) -> Plan {
    if let Spoken::WebSocket(exchange) = &mut plan.spoken {
        change(exchange);
    }
    plan
}

/// A closed loop for a second.
fn closed(connections: u32, depth: u32) -> Plan {
    let mut plan = plan();
    plan.connections = many(connections);
    plan.pipeline = many(depth);
    plan.stop.duration_ns = Some(S);
    plan
}

/// A server that takes 800 us for a message.
fn server(websocket: SimWebSocket, change: impl FnOnce(&mut SimServer)) -> SimSettings {
    let mut settings = textbook(800 * US);
    settings.server.websocket = websocket;
    change(&mut settings.server);
    settings
}

/// A message takes 800 us of the server and 200 us of the network, in however many frames it is
/// answered, and however many messages.
#[test]
fn each_connection_gives_a_reply_per_round_trip() {
    let echo = SimWebSocket::default();
    let parts = SimWebSocket {
        frame_bytes: many(2),
        ping_every: Some(many_long(3)),
        ..echo.clone()
    };
    let three = SimWebSocket {
        reply: Some("größer".as_bytes().to_vec()),
        replies: 3,
        frame_bytes: many(3),
        ..echo.clone()
    };
    let cases = [
        (ReplyMatch::Echo, 1, false, echo.clone()),
        (ReplyMatch::Any, 1, true, echo),
        (ReplyMatch::Echo, 1, true, parts.clone()),
        (ReplyMatch::Any, 1, false, parts),
        (ReplyMatch::Any, 3, false, three),
    ];
    for (matching, replies, is_binary, websocket) in cases {
        let plan = change(exchanging(closed(4, 1), matching, &["ping"]), |exchange| {
            exchange.replies = replies;
            exchange.is_binary = is_binary;
        });
        let settings = server(websocket, |_| {});
        let (run, counts) = faithful(&plan, &settings, "replies");
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        let rate = run.summary().successes_per_s.known().expect("a rate");
        assert!((rate - 4_000.0).abs() < 10.0, "{rate}");
        let quantile_ns = run.latencies.response.quantile_ns(0.5).expect("latencies");
        assert!(quantile_ns.abs_diff(MS) < 2 * US, "{quantile_ns}");
        assert_eq!(counts.pings_acknowledged, counts.pings);
        // All are ended by Close frames, which are answered.
        let closes = (counts.client_closes, counts.closes, counts.closes_unsaid);
        assert_eq!(closes, (4, 4, 0));
        // An upgrade takes the way there and back.
        let greeting_ns = run.latencies.greeting.quantile_ns(0.5).expect("upgrades");
        assert!(greeting_ns.abs_diff(200 * US) < 2 * US, "{greeting_ns}");
    }
}

/// What opens a connection is no message of the load, and its reply is a part of the opening.
#[test]
fn a_first_message_opens_each_connection() {
    let settings = server(SimWebSocket::default(), |_| {});
    let plan = exchanging(closed(4, 1), ReplyMatch::Echo, &["ping"]);
    let plan = change(plan, |exchange| {
        exchange.opening = Some(WebSocketOpening {
            message: Template::parse("user {conn}").expect("one").into(),
            replies: 1,
        });
    });
    let (run, _) = run(plan, &settings);
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    let rate = run.summary().successes_per_s.known().expect("a rate");
    assert!((rate - 4_000.0).abs() < 10.0, "{rate}");
    assert_eq!(lifetime(&run).pushes, 0);
    let greeting_ns = run.latencies.greeting.quantile_ns(0.5).expect("upgrades");
    assert!(greeting_ns >= 1_200 * US, "{greeting_ns}");
}

/// With several in flight the server is never idle.
#[test]
fn depth_keeps_the_server_of_a_connection_busy() {
    let settings = server(SimWebSocket::default(), |_| {});
    for texts in [&["ping"][..], &["ping", "{seq} {rand:5}"], &["a", "bb", ""]] {
        let plan = exchanging(closed(2, 8), ReplyMatch::Echo, texts);
        let (run, _) = faithful(&plan, &settings, "8 in flight");
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        let rate = run.summary().successes_per_s.known().expect("a rate");
        assert!((rate - 2.0 / 800e-6).abs() < 20.0, "{rate}");
        let named = if texts.len() > 1 { texts.len() } else { 0 };
        assert_eq!(run.names.len(), named);
    }
}

/// L4: with an even rate, 1 % of the messages meet a silence of 10 ms in each second; pings that
/// brunt sends beside them change nothing.
#[test]
fn response_times_show_every_silence() {
    let settings = at_the_door(SimServer {
        service: ServiceTime::Constant(US),
        stall: Some(Stall {
            silence_ns: 100 * MS,
            period_ns: many_long(S),
        }),
        ..SimServer::default()
    });
    let loop_of = open_loop(even_rate(1_000.0), 10, 20 * S);
    let mut plan = exchanging(loop_of, ReplyMatch::Echo, &["a"]);
    plan.warmup_ns = 200 * MS;
    let plan = change(plan, |exchange| exchange.ping_interval_ns = Some(70 * MS));
    let (run, counts) = faithful(&plan, &settings, "stalls");
    for (q, truth_ns) in [(0.95, 50 * MS), (0.99, 90 * MS), (0.999, 99 * MS)] {
        let quantile_ns = run.latencies.response.quantile_ns(q).expect("latencies");
        assert!(
            quantile_ns.abs_diff(truth_ns) <= 2 * MS,
            "{q}: {quantile_ns}"
        );
    }
    let controls = lifetime(&run).controls;
    assert_eq!(controls.pings_sent, counts.client_pings);
    assert_eq!(controls.pongs_received, counts.client_pings);
    // On ten connections for 20 s.
    assert!(
        counts.client_pings.abs_diff(10 * 20_200 / 70) <= 20,
        "{counts:?}"
    );
}

/// A message that needs no reply is done when the network took it.
#[test]
fn one_way_messages_are_done_when_they_are_taken() {
    for (depth, replies) in [(1, 0), (4, 0), (4, 1)] {
        let plan = exchanging(closed(2, depth), ReplyMatch::Any, &["ping"]);
        let plan = change(plan, |exchange| exchange.replies = 0);
        let websocket = SimWebSocket {
            replies,
            ..SimWebSocket::default()
        };
        // Where work takes no time, sends that wait for nothing would take none.
        let settings = SimSettings {
            costs: Costs::default(),
            ..server(websocket, |_| {})
        };
        let (run, counts) = run(plan, &settings);
        assert!(broken(&run, &[]).is_empty(), "{:?}", broken(&run, &[]));
        let lifetime = lifetime(&run);
        assert_eq!(lifetime.requests_sent, counts.requests_sent);
        assert_eq!(counts.requests_lost, 0);
        assert_eq!(lifetime.replies.total(), lifetime.requests_sent);
        assert_eq!(lifetime.reply_body_bytes, 0);
        // What is echoed all the same is counted and thrown away.
        assert_eq!(lifetime.overhead_bytes, lifetime.bytes_received);
        assert_eq!(lifetime.pushes > 0, replies > 0);
        assert_eq!(failed(&run), 0);
    }
}

/// Connections that are replaced are ended by Close frames, and what was sent before is received.
#[test]
fn connections_are_parted_from() {
    for (replies, requests) in [(1, 1), (1, 7), (0, 7), (0, 100)] {
        let mut plan = exchanging(closed(3, 2), ReplyMatch::Any, &["ping"]);
        plan.reuse = Reuse::Requests(many_long(requests));
        let plan = change(plan, |exchange| exchange.replies = replies);
        let settings = SimSettings {
            costs: Costs::default(),
            ..server(SimWebSocket::default(), |_| {})
        };
        let (run, counts) = run(plan, &settings);
        assert!(broken(&run, &[]).is_empty(), "{:?}", broken(&run, &[]));
        let lifetime = lifetime(&run);
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        assert_eq!(lifetime.requests_sent, counts.requests_sent);
        assert_eq!(counts.requests_lost, 0);
        // Closes overtake nothing, but the simulated server does not answer what waits behind it.
        let answered = counts.replies + counts.abandoned;
        assert_eq!(answered, counts.requests_sent);
        assert_eq!(counts.abandoned > 0, replies == 0);
        // The last ones may be opened when all is counted.
        let opened = lifetime.connections_opened;
        let closed = counts.client_closes;
        assert!(
            opened > 3 && (opened..=opened + 3).contains(&closed),
            "{closed}"
        );
        assert_eq!(counts.closes_unsaid, 0);
    }
}

/// A server that does not answer a Close frame is waited for, but not for ever.
#[test]
fn a_server_that_does_not_part_holds_nothing_up_for_long() {
    let mut plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    plan.timeout_ns = 10 * S;
    plan.reuse = Reuse::Requests(many_long(10));
    plan.stop.duration_ns = Some(5 * S);
    let settings = server(
        SimWebSocket {
            answers_closes: false,
            ..SimWebSocket::default()
        },
        |_| {},
    );
    let (run, counts) = faithful(&plan, &settings, "it does not part");
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    // Ten messages and a silence of 1 s.
    let opened = lifetime(&run).connections_opened;
    assert!((16..=24).contains(&opened), "{opened}");
    assert_eq!(counts.closes_unsaid, 0);
    assert_eq!(counts.closes, 0);
}

/// What is not the echo of the message in flight is no reply to it.
#[test]
fn pushes_are_counted_and_end_nothing() {
    let settings = server(SimWebSocket::default(), |server| {
        server.faults = SimFaults {
            extra_bytes: 0.2,
            ..SimFaults::default()
        };
    });
    for depth in [1, 3] {
        let plan = exchanging(closed(4, depth), ReplyMatch::Echo, &["ping", "{seq}"]);
        let (run, counts) = faithful(&plan, &settings, "pushes");
        let lifetime = lifetime(&run);
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        assert!(counts.extra_bytes > 100, "{counts:?}");
        assert_eq!(lifetime.pushes, counts.extra_bytes);
        let upgrades_bytes = 129 * lifetime.connections_opened;
        assert_eq!(
            lifetime.overhead_bytes,
            6 * lifetime.pushes + upgrades_bytes
        );
    }
}

#[test]
fn closes_are_failures_by_their_code() {
    for (code, kind) in [
        (Some(1_000), FailureKind::CloseNormal),
        (Some(1_001), FailureKind::CloseGoingAway),
        (Some(1_011), FailureKind::CloseServerError),
        (Some(1_013), FailureKind::CloseTryLater),
        (Some(4_321), FailureKind::CloseOtherCode),
        (None, FailureKind::CloseWithoutCode),
    ] {
        let websocket = SimWebSocket {
            close_code: code,
            ..SimWebSocket::default()
        };
        let settings = server(websocket, |server| server.faults.goaway = 0.1);
        for depth in [1, 4] {
            let plan = exchanging(closed(4, depth), ReplyMatch::Any, &["ping"]);
            let (run, counts) = faithful(&plan, &settings, "closes");
            let lifetime = lifetime(&run);
            let of_kind = lifetime.failures.get(kind);
            assert!(of_kind > 50 && of_kind <= counts.goaway_errors, "{of_kind}");
            let behind = lifetime.failures.get(FailureKind::Unanswered);
            assert_eq!(failed(&run), of_kind + behind, "{:?}", failures(&run));
            assert_eq!(behind > 0, depth > 1);
            // The others are those of the end.
            let others = counts.client_closes - counts.goaway_errors;
            assert!(
                others <= 4 && counts.closes_unsaid == 0,
                "{code:?}: {others}"
            );
        }
    }
}

/// A server that closes each connection after a few answers, and says so, makes nothing fail that
/// was not in flight.
#[test]
fn a_close_without_anything_in_flight_is_no_failure() {
    let settings = server(SimWebSocket::default(), |server| {
        server.close_after = Some(many_long(5));
    });
    let mut plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    plan.think_time_ns = MS;
    let (run, counts) = faithful(&plan, &settings, "closes after 5");
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    assert!(counts.closes > 300, "{counts:?}");
    // The others are those of the end.
    let others = counts.closes - lifetime(&run).controls.closes_received;
    assert!(others <= 4, "{others}");
    assert_eq!(
        (counts.client_closes, counts.closes_unsaid),
        (counts.closes, 0)
    );
}

#[test]
fn what_breaks_the_protocol_is_a_failure_of_its_own() {
    for malformed in MALFORMED {
        let websocket = SimWebSocket {
            malformed,
            ..SimWebSocket::default()
        };
        let settings = server(websocket, |server| server.faults.malformed = 0.1);
        for matching in [ReplyMatch::Any, ReplyMatch::Echo] {
            let plan = exchanging(closed(4, 1), matching, &["ping"]);
            let (run, counts) = faithful(&plan, &settings, "malformed");
            let wrong = lifetime(&run).failures.get(FailureKind::WebSocketError);
            assert_eq!(failed(&run), wrong, "{malformed:x?}: {:?}", failures(&run));
            assert!(wrong > 50 && wrong <= counts.malformed, "{wrong}");
        }
    }
}

#[test]
fn replies_that_are_cut_short_or_late_are_failures() {
    let faults = |change: fn(&mut SimFaults)| {
        let websocket = SimWebSocket {
            reply: Some(b"a long answer".to_vec()),
            ..SimWebSocket::default()
        };
        server(websocket, |server| change(&mut server.faults))
    };
    let mut plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    plan.timeout_ns = 50 * MS;
    type Change = fn(&mut SimFaults);
    let cases: [(Change, FailureKind); 4] = [
        (|it| it.truncated = 0.1, FailureKind::TruncatedReply),
        (|it| it.closed = 0.1, FailureKind::ClosedBeforeReply),
        (|it| it.reset = 0.1, FailureKind::Reset),
        (|it| it.silent = 0.01, FailureKind::TimedOut),
    ];
    for (change, kind) in cases {
        let (run, _) = faithful(&plan, &faults(change), "faults");
        let kinds: Vec<FailureKind> = failures(&run).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [kind]);
    }
}

#[test]
fn upgrades_that_are_refused_are_failed_attempts() {
    let settings = |refused| {
        server(SimWebSocket::default(), |server| {
            server.faults.upgrade_refused = refused;
            server.close_after = Some(many_long(10));
        })
    };
    let plan = exchanging(closed(4, 1), ReplyMatch::Any, &["ping"]);
    let (run, counts) = faithful(&plan, &settings(0.3), "some are refused");
    let refused = lifetime(&run).failures.get(FailureKind::UpgradeRefused);
    assert!(
        refused > 20 && refused <= counts.upgrades_refused,
        "{refused}"
    );
    let none = simulate(plan, &settings(1.0));
    let Err(RunError::NoConnection { set_up, .. }) = none else {
        panic!("{none:?}");
    };
    let failure = set_up.main_failure().map(|(kind, _)| kind);
    assert_eq!(failure, Some(FailureKind::UpgradeRefused));
}
