//! Messages over TCP, where the figures are known beforehand.

use std::error::Error;

use brunt_engine::prepare_simulated;
use brunt_judge::RunFigures;
use brunt_load::{MessageExchange, OpeningMessage, Plan, ProtocolSpec, Reuse, Target};
use brunt_proto::messages::Template;
use brunt_record::FailureKind;
use brunt_testkit::{
    Costs, ServiceTime, SimFaults, SimMachine, SimMessages, SimServer, SimSettings,
};

use super::{
    SILENCES, at_the_door, closed, even_rate, expect_silences, faithful, messages_of, open_loop,
    run, textbook,
};
use crate::common::{MS, S, US, expect_valid, failed, failures, lifetime, many_long};

/// The plan with `texts` as messages. `reply` says how the end of a reply is found.
fn exchanging(mut plan: Plan, reply: &str, texts: &[&str]) -> Plan {
    plan.target = Target::parse_tcp(Some("simulated:1"), false, None).expect("a server");
    plan.connection.protocol = ProtocolSpec::Messages(MessageExchange {
        reply: reply.parse().expect("a framing"),
        opening: None,
        seed: 1,
    });
    plan.traffic.requests = messages_of(texts);
    plan
}

/// The plan with a first message on each connection. `reply` says how the end of its reply is
/// found.
fn opened(mut plan: Plan, reply: &str) -> Plan {
    if let ProtocolSpec::Messages(exchange) = &mut plan.connection.protocol {
        exchange.opening = Some(OpeningMessage {
            message: Template::parse("hello {conn}\\n")
                .expect("a message")
                .into(),
            reply: reply.parse().expect("a framing"),
        });
    }
    plan
}

/// A server that takes 800 us for a message and answers like this.
fn server(messages: SimMessages, change: impl FnOnce(&mut SimServer)) -> SimSettings {
    let mut settings = textbook(800 * US);
    settings.server.messages = Some(messages);
    change(&mut settings.server);
    settings
}

fn answering(reply: &[u8]) -> SimMessages {
    SimMessages {
        reply: Some(reply.to_vec()),
        ..SimMessages::default()
    }
}

/// A message takes 800 us of the server and 200 us of the network.
#[test]
fn each_connection_gives_a_reply_per_round_trip() {
    for (reply, settings) in [
        ("echo", server(SimMessages::default(), |_| {})),
        ("line", server(answering(b"fine\n"), |_| {})),
        ("fixed=3", server(answering(b"abc"), |_| {})),
        ("len8", server(answering(b"\x02ab"), |_| {})),
    ] {
        let plan = exchanging(closed(4, 1), reply, &["ping\\n"]);
        let (run, counts) = faithful(&plan, &settings, reply);
        assert_eq!(failed(&run), 0, "{reply}: {:?}", failures(&run));
        let rate = run.summary().successes_per_s.known().expect("a rate");
        assert!((rate - 4_000.0).abs() < 10.0, "{reply}: {rate}");
        let quantile_ns = run.latencies.response.quantile_ns(0.5).expect("latencies");
        assert!(quantile_ns.abs_diff(MS) < 2 * US, "{reply}: {quantile_ns}");
        assert_eq!(counts.bytes_sent, 5 * counts.requests_sent, "{reply}");
    }
}

/// With several in flight the server is never idle.
#[test]
fn depth_keeps_the_server_of_a_connection_busy() {
    let settings = server(SimMessages::default(), |_| {});
    for texts in [
        &["ping\\n"][..],
        &["ping\\n", "{seq} {rand:5}\\n"],
        &["a\\n", "bb\\n", "ccc\\n"],
    ] {
        let plan = exchanging(closed(2, 8), "echo", texts);
        let (run, _) = faithful(&plan, &settings, "8 in flight");
        assert_eq!(failed(&run), 0, "{:?}", failures(&run));
        let rate = run.summary().successes_per_s.known().expect("a rate");
        assert!((rate - 2.0 / 800e-6).abs() < 20.0, "{rate}");
        let named = if texts.len() > 1 { texts.len() } else { 0 };
        assert_eq!(run.names.len(), named);
    }
}

/// L4: with an even rate, 1 % of the messages meet a silence of 10 ms in each second.
#[test]
fn response_times_show_every_silence() {
    let settings = at_the_door(|server| {
        server.service = ServiceTime::Constant(US);
        server.stall = Some(SILENCES);
    });
    let mut plan = exchanging(open_loop(even_rate(1_000.0), 10, 20 * S), "echo", &["a\\n"]);
    plan.load.warmup_ns = 200 * MS;
    let (run, _) = faithful(&plan, &settings, "stalls");
    expect_silences(&run, 2 * MS, "stalls");
}

/// What opens a connection is a greeting: it is waited for, timed, and no message.
#[test]
fn the_first_message_of_a_connection_is_part_of_its_opening() {
    let messages = SimMessages {
        has_opening: true,
        ..answering(b"fine\n")
    };
    let mut plan = opened(exchanging(closed(3, 1), "line", &["ping\\n"]), "line");
    plan.traffic.reuse = Reuse::Requests(many_long(10));
    let (run, counts) = faithful(&plan, &server(messages, |_| {}), "first messages");
    assert_eq!(failed(&run), 0);
    let lifetime = lifetime(&run);
    assert_eq!(run.latencies.greeting.count(), lifetime.connections_opened);
    // At its door: the way there and back.
    let greeting_ns = run.latencies.greeting.quantile_ns(0.5).expect("greetings");
    assert!(greeting_ns.abs_diff(200 * US) < 2 * US, "{greeting_ns}");
    assert_eq!(counts.requests_sent, lifetime.requests_sent);
    assert!(lifetime.requests_sent <= 10 * lifetime.connections_opened);
}

#[test]
fn replies_may_end_with_their_connection() {
    let messages = SimMessages {
        ends_connection: true,
        ..answering(b"all of it")
    };
    let mut plan = exchanging(closed(3, 1), "until-close", &["ping\\n"]);
    plan.traffic.reuse = Reuse::Requests(many_long(1));
    let (run, _) = faithful(&plan, &server(messages, |_| {}), "until close");
    let lifetime = lifetime(&run);
    assert!(lifetime.replies.total() > 1_000, "{lifetime:?}");
    assert_eq!(lifetime.reply_body_bytes, 9 * lifetime.replies.total());
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
}

/// A message that needs no reply is done when the network took it.
#[test]
fn one_way_messages_are_done_when_they_are_taken() {
    for depth in [1, 4] {
        let plan = exchanging(closed(2, depth), "none", &["ping\\n"]);
        // Where work takes no time, sends that wait for nothing would take none.
        let settings = SimSettings {
            costs: Costs::default(),
            ..server(SimMessages::default(), |_| {})
        };
        let (run, counts) = run(plan, &settings);
        expect_valid(&run, "one way");
        let lifetime = lifetime(&run);
        assert_eq!(lifetime.requests_sent, counts.requests_sent);
        assert_eq!(lifetime.replies.total(), lifetime.requests_sent);
        assert_eq!(lifetime.reply_body_bytes, 0);
        // What is echoed all the same is counted and thrown away.
        assert_eq!(lifetime.overhead_bytes, lifetime.bytes_received);
        assert!(lifetime.overhead_bytes > 0);
        assert_eq!(failed(&run), 0);
    }
}

#[test]
fn a_wrong_echo_is_a_failure_of_its_own() {
    let settings = server(SimMessages::default(), |server| {
        server.faults.malformed = 0.1
    });
    for text in ["ping\\n", "{seq} {rand:7}\\n"] {
        let plan = exchanging(closed(4, 3), "echo", &[text]);
        let (run, counts) = faithful(&plan, &settings, text);
        let wrong = lifetime(&run).failures.get(FailureKind::WrongEcho);
        assert!(wrong > 50 && wrong <= counts.malformed, "{wrong}");
    }
}

/// What comes when nothing is in flight answers nothing; what comes later is answered all the same.
#[test]
fn pushes_are_counted_and_end_nothing() {
    let settings = server(answering(b"fine\n"), |server| {
        server.faults.extra_bytes = 0.2
    });
    let mut plan = exchanging(closed(4, 1), "line", &["ping\\n"]);
    // The push comes before the next message is sent.
    plan.traffic.think_time_ns = MS;
    let (run, counts) = faithful(&plan, &settings, "pushes");
    let lifetime = lifetime(&run);
    assert_eq!(failed(&run), 0, "{:?}", failures(&run));
    assert!(counts.extra_bytes > 100, "{counts:?}");
    assert_eq!(lifetime.pushes, counts.extra_bytes);
    assert_eq!(lifetime.overhead_bytes, 5 * lifetime.pushes);
}

#[test]
fn replies_that_are_cut_short_or_late_are_failures() {
    let mut plan = exchanging(closed(4, 1), "line", &["ping\\n"]);
    plan.limits.timeout_ns = 50 * MS;
    let long = |change: fn(&mut SimFaults)| {
        let change = |server: &mut SimServer| change(&mut server.faults);
        server(answering(b"a long answer\n"), change)
    };
    let endless = server(answering(b"\xff"), |_| {});
    for (settings, kind) in [
        (
            long(|faults| faults.truncated = 0.1),
            FailureKind::TruncatedReply,
        ),
        (
            long(|faults| faults.closed = 0.1),
            FailureKind::ClosedBeforeReply,
        ),
        (long(|faults| faults.reset = 0.1), FailureKind::Reset),
        (long(|faults| faults.silent = 0.01), FailureKind::TimedOut),
        (endless, FailureKind::TimedOut),
    ] {
        let (run, counts) = faithful(&plan, &settings, &format!("{kind:?}"));
        let kinds: Vec<_> = failures(&run).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [kind]);
        assert!(kind != FailureKind::TruncatedReply || failed(&run) <= counts.truncated);
    }
}

#[test]
fn messages_that_cannot_be_exchanged_are_refused() {
    let refused = |plan: Plan| {
        let mut machine = SimMachine::new(SimSettings::new(1));
        let refusal = prepare_simulated(plan, &mut machine).err();
        let reason = refusal.as_ref().and_then(Error::source);
        reason.expect("a reason").to_string()
    };
    let empty = refused(exchanging(closed(1, 1), "line", &[""]));
    assert!(empty.contains("is empty"), "{empty}");
    let shared = refused(exchanging(closed(1, 1), "until-close", &["a"]));
    assert!(shared.contains("--no-keepalive"), "{shared}");
    let opening = refused(opened(
        exchanging(closed(1, 1), "line", &["a"]),
        "until-close",
    ));
    assert!(opening.contains("--first-reply"), "{opening}");
}
