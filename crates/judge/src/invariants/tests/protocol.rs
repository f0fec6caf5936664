//! What TLS and HTTP/2 add, holding on a sound run and caught when broken.

use brunt_load::{MessageExchange, ReplyMatch, Spoken, WebSocketExchange};
use brunt_record::Protocol;

use super::*;
use crate::invariants::sample::over_tls;

fn http1(run: &mut Run) {
    run.agents[0].negotiated.protocol = Protocol::HTTP1;
}

fn broken(id: &'static str, fault: &'static str, make: fn(&mut Run)) -> Case {
    super::broken(id, fault, make).on(http2_run)
}

fn held(id: &'static str, fault: &'static str, make: fn(&mut Run)) -> Case {
    super::held(id, fault, make).on(http2_run)
}

/// A histogram with one value less than `histogram`, in which each is `value_ns`.
fn without_one(histogram: &Histogram, value_ns: u64) -> Histogram {
    let mut fewer = Histogram::default();
    (1..histogram.count()).for_each(|_| fewer.record(value_ns));
    fewer
}

#[test]
fn the_first_byte_divides_service_times() {
    let cases = [
        broken("S2", "a first byte lost", |run| {
            run.latencies.first_byte = without_one(&run.latencies.first_byte, 950 * US);
        }),
        broken("S2", "a transfer lost", |run| {
            run.latencies.transfer = without_one(&run.latencies.transfer, 50 * US);
        }),
        broken("S2", "a transfer longer than any service", |run| {
            run.latencies.transfer = with_one_at(&run.latencies.transfer, 2 * MS);
        }),
        broken("S2", "transfers that are also in the first bytes", |run| {
            run.latencies.first_byte = all_at(&run.latencies.first_byte, MS);
        }),
        broken("S2", "parts of the response time from the plan", |run| {
            run.latencies.service = all_at(&run.latencies.service, 2 * MS);
        })
        .on(open_run),
        held("S2", "sums that are saturated", |run| {
            let mut stored = serde_json::to_value(&run.latencies.response).expect("a histogram");
            stored["sum_ns"] = u64::MAX.into();
            run.latencies.response = serde_json::from_value(stored).expect("a histogram");
        })
        .breaking(&["A3", "I1"]),
    ];
    verify(cases);
}

#[test]
fn connections_and_failures_are_those_of_the_protocol() {
    let cases = [
        broken("P1", "a handshake forgotten", |run| {
            first(run).tallies.before.handshakes_full -= 1;
        }),
        broken("P1", "a handshake counted twice", |run| {
            first(run).tallies.measure.handshakes_full += 1;
        }),
        broken("P1", "a handshake that was not timed", |run| {
            run.latencies.tls = without_one(&run.latencies.tls, 900 * US);
        }),
        broken("P1", "settings that were not timed", |run| {
            run.latencies.greeting = without_one(&run.latencies.greeting, 100 * US);
        }),
        broken("P1", "HTTP/2 settings over HTTP/1.1", |run| {
            run.latencies.greeting.record(100 * US);
        })
        .on(run),
        broken("P1", "resumed, though that is off", |run| {
            run.plan.tls.resumption = false;
        }),
        broken("P1", "handshakes in clear text", |run| {
            run.agents[0].negotiated.tls = None
        }),
        broken("P1", "no handshake over TLS", |run| {
            over_tls(run);
        })
        .on(run),
        broken("P1", "more GOAWAYs than connections", |run| {
            first(run).tallies.measure.goaways = 6;
        }),
        broken("P1", "streams and GOAWAYs over HTTP/1.1", http1),
        broken("P1", "datagrams over HTTP/2", |run| {
            first(run).tallies.measure.quic.datagrams_sent = 1;
        }),
        broken("P1", "TLS that breaks in clear text", |run| {
            let tally = &mut first(run).tallies.measure;
            tally.failures = Default::default();
            tally.failures.add(FailureKind::TlsBroken);
        })
        .on(run),
        held("P1", "a handshake that failed", |run| {
            for kind in [FailureKind::TlsAlert, FailureKind::TlsCertificate] {
                first(run).tallies.before.failures.add(kind);
            }
        }),
        broken("I4", "overhead forgotten", |run| {
            first(run).tallies.before.overhead_bytes -= 1;
        }),
        held("I4", "the shortest reply in HTTP/2", |run| {
            first(run).reply_bytes_min = Some(10);
        }),
        broken("I4", "a reply without a status", |run| {
            first(run).reply_bytes_min = Some(9);
        }),
        broken("I4", "that reply in HTTP/1.1", |run| {
            first(run).reply_bytes_min = Some(10);
        })
        .on(run),
        broken("W6", "a request that was not processed vanished", |run| {
            let tally = &mut first(run).tallies.measure;
            tally.failures = Default::default();
            tally.failures.add(FailureKind::StreamRefused);
            let points = &mut first(run).series.points;
            let failed = points.iter_mut().find(|point| point.failures > 0);
            failed.expect("failures").failures -= 1;
        }),
        broken("I1", "more in flight than streams", |run| {
            for worker in &mut run.agents[0].workers {
                worker.in_flight_ns *= 2;
            }
        }),
        // 4 MB of each connection's bytes, framed and encrypted, and the copies of all workers.
        held("R1", "a large body", |run| {
            run.agents[0].negotiated.request_bytes = 1 << 20;
            run.agents[0].host.peak_resident_bytes = 200 << 20;
        }),
        broken("R1", "memory beyond every budget", |run| {
            run.agents[0].host.peak_resident_bytes = 140 << 20;
        }),
    ];
    verify(cases);
}

#[test]
fn messages_have_failures_and_pushes_of_their_own() {
    let cases = [
        held("P1", "a wrong echo and a push", |run| {
            of_messages(run, "echo");
            let tally = &mut first(run).tallies.measure;
            tally.failures = Default::default();
            tally.failures.add(FailureKind::WrongEcho);
            tally.pushes += 1;
        }),
        broken("P1", "a first exchange that is not in the plan", |run| {
            of_messages(run, "echo");
            run.latencies.greeting.record(100 * US);
        }),
        broken("P1", "GOAWAYs among messages", |run| {
            of_messages(run, "echo");
            first(run).tallies.measure.goaways = 1;
        }),
        broken("P1", "a push over HTTP/1.1", |run| {
            first(run).tallies.before.pushes += 1
        }),
        broken("P1", "a reply that is cut short over HTTP/1.1", |run| {
            let tally = &mut first(run).tallies.measure;
            tally.failures = Default::default();
            tally.failures.add(FailureKind::TruncatedReply);
        }),
        not_applicable("I3", "a message without a reply", |run| {
            of_messages(run, "none");
            for worker in &mut run.agents[0].workers {
                worker.kernel.min_rtt_ns = Some(2_010 * US);
            }
        }),
        not_applicable("I3", "a message of WebSocket without a reply", |run| {
            of_websocket(run, 0);
            for worker in &mut run.agents[0].workers {
                worker.kernel.min_rtt_ns = Some(2_010 * US);
            }
        }),
        flagged("I3", "one with a reply that came too early", |run| {
            of_websocket(run, 1);
            for worker in &mut run.agents[0].workers {
                worker.kernel.min_rtt_ns = Some(2_010 * US);
            }
        }),
    ];
    verify(cases.map(|case| case.on(run)));
}

/// A push that comes while a message is in flight is not a fault of brunt's.
#[test]
fn what_may_be_a_push_breaks_nothing() {
    fn slow_way(run: &mut Run) {
        for worker in &mut run.agents[0].workers {
            worker.kernel.min_rtt_ns = Some(2_010 * US);
        }
    }
    let cases = [
        flagged("I3", "a line that may have been unasked", |run| {
            of_messages(run, "line");
            slow_way(run);
        }),
        flagged("I3", "a message of WebSocket that may have been", |run| {
            of_websocket(run, 1);
            slow_way(run);
        }),
        flagged("I3", "an echo faster than the way", |run| {
            of_messages(run, "echo");
            slow_way(run);
        }),
    ];
    verify(cases.map(|case| case.on(steady_run)));
}

/// The run as one over WebSocket.
fn of_websocket(run: &mut Run, replies: u32) {
    run.agents[0].negotiated.protocol = Protocol::WEBSOCKET;
    let upgrades = run.latencies.connect.count();
    (0..upgrades).for_each(|_| run.latencies.greeting.record(3_000 * US));
    run.plan.spoken = Spoken::WebSocket(WebSocketExchange {
        headers: Vec::new().into(),
        subprotocols: Vec::new(),
        is_binary: false,
        replies,
        matching: ReplyMatch::Any,
        opening: None,
        ping_interval_ns: None,
        seed: 0,
    });
}

/// The run as one of messages.
fn of_messages(run: &mut Run, reply: &str) {
    run.agents[0].negotiated.protocol = Protocol::MESSAGES;
    run.plan.spoken = Spoken::Messages(MessageExchange {
        reply: reply.parse().expect(reply),
        opening: None,
        seed: 0,
    });
}

#[test]
fn little_counts_streams() {
    let run = http2_run();
    let mut facts = Facts::of(&run);
    assert_eq!(outcome_of("I1", &facts).status, InvariantStatus::Held);
    // 32 in flight are too many for 8 connections of one stream.
    let mut alone = run.clone();
    alone.agents[0].negotiated.depth = 1;
    facts = Facts::of(&alone);
    assert_eq!(outcome_of("I1", &facts).status, InvariantStatus::Broken);
}

#[test]
fn memory_of_sessions_is_budgeted() {
    // Connections, and whether TLS and HTTP/2 are spoken; the budget, MiB.
    let budget = |is_tls: bool, protocol: Protocol| {
        let mut run = http2_run();
        run.agents[0].negotiated.protocol = protocol;
        run.agents[0].share.connections = 10_000;
        run.agents[0].negotiated.depth = 1;
        if !is_tls {
            run.agents[0].negotiated.tls = None;
        }
        let outcome = outcome_of("R1", &Facts::of(&run));
        let (_, words) = outcome.detail.split_once("budget ").expect("a budget");
        let mib = words.split(' ').next().expect("a number");
        mib.parse::<f64>().expect("a number")
    };
    let plain = budget(false, Protocol::HTTP1);
    let http2 = budget(false, Protocol::HTTP2);
    let tls = budget(true, Protocol::HTTP1);
    let both = budget(true, Protocol::HTTP2);
    assert!(plain < http2 && http2 < tls && tls < both);
    assert!(both < 500.0, "{both}");
}
