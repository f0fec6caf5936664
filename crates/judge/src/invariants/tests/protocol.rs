//! What protocols and streams add, holding on a sound run and caught when broken.

use brunt_load::{MessageExchange, ProtocolSpec, ReplyMatch, WebSocketExchange};
use brunt_record::{Protocol, ServerCount, ServerWindow, StreamRecord};

use crate::invariants::InvariantStatus::{Broken, Held, NotApplicable};
use crate::invariants::sample::{over_tls, streamed};
use crate::invariants::tests::*;
use crate::{Figure, RunFigures};

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
            run.latencies.first_byte = without_one(&run.latencies.first_byte, 950 * US)
        }),
        broken("S2", "a transfer lost", |run| {
            run.latencies.transfer = without_one(&run.latencies.transfer, 50 * US)
        }),
        broken("S2", "a transfer longer than any service", |run| {
            run.latencies.transfer = with_one_at(&run.latencies.transfer, 2 * MS)
        }),
        broken("S2", "transfers that are also in the first bytes", |run| {
            run.latencies.first_byte = all_at(&run.latencies.first_byte, MS)
        }),
        broken("S2", "parts of the response time from the plan", |run| {
            run.latencies.service = all_at(&run.latencies.service, 2 * MS)
        })
        .on(open_run),
        held("S2", "sums that are saturated", |run| {
            run.latencies.response = with_one_at(&run.latencies.response, u64::MAX)
        })
        .breaking(&["I1", "I2", "L7"]),
    ];
    verify(cases);
}

#[test]
fn connections_have_their_handshakes() {
    let cases = [
        broken("L1", "a handshake forgotten", |run| {
            first(run).tallies.before.handshakes_full -= 1
        })
        .breaking(&["A4"]),
        broken("L1", "a handshake counted twice", |run| {
            first(run).tallies.measure.handshakes_full += 1
        })
        .breaking(&["A4"]),
        broken("A4", "a handshake that was not timed", |run| {
            run.latencies.tls = without_one(&run.latencies.tls, 900 * US)
        }),
        broken("A4", "settings that were not timed", |run| {
            run.latencies.greeting = without_one(&run.latencies.greeting, 100 * US)
        }),
        broken("A4", "HTTP/2 settings over HTTP/1.1", |run| {
            run.latencies.greeting.record(100 * US)
        })
        .on(run),
        broken("L1", "no handshake over TLS", over_tls).on(run),
        held("L1", "a handshake that failed", |run| {
            for kind in [FailureKind::TlsAlert, FailureKind::TlsCertificate] {
                first(run).tallies.before.failures.add(kind);
            }
        }),
        broken("I4", "overhead forgotten", |run| {
            first(run).tallies.before.overhead_bytes -= 1
        }),
        held("I4", "the shortest reply in HTTP/2", |run| {
            first(run).reply_bytes_min = Some(10)
        }),
        broken("I4", "a reply without a status", |run| {
            first(run).reply_bytes_min = Some(9)
        }),
        broken("I4", "that reply in HTTP/1.1", |run| {
            first(run).reply_bytes_min = Some(10)
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
            run.agents[0].host.peak_resident_bytes = 140 << 20
        }),
    ];
    verify(cases);
}

#[test]
fn messages_have_exchanges_of_their_own() {
    let cases = [
        broken("A4", "a first exchange that is not in the plan", |run| {
            of_messages(run, "echo");
            run.latencies.greeting.record(100 * US);
        }),
        not_applicable("I3", "a message without a reply", |run| {
            of_messages(run, "none");
            round_trip(run, 2_010);
        }),
        not_applicable("I3", "a message of WebSocket without a reply", |run| {
            of_websocket(run, 0);
            round_trip(run, 2_010);
        }),
        flagged("I3", "one with a reply that came too early", |run| {
            of_websocket(run, 1);
            round_trip(run, 2_010);
        }),
    ];
    verify(cases.map(|case| case.on(run)));
}

/// A push that comes while a message is in flight is not a fault of brunt's.
#[test]
fn what_may_be_a_push_breaks_nothing() {
    let cases = [
        flagged("I3", "a line that may have been unasked", |run| {
            of_messages(run, "line");
            round_trip(run, 2_010);
        }),
        flagged("I3", "a message of WebSocket that may have been", |run| {
            of_websocket(run, 1);
            round_trip(run, 2_010);
        }),
        flagged("I3", "an echo faster than the way", |run| {
            of_messages(run, "echo");
            round_trip(run, 2_010);
        }),
    ];
    verify(cases.map(|case| case.on(steady_run)));
}

/// The run as one over WebSocket.
fn of_websocket(run: &mut Run, replies: u32) {
    run.agents[0].negotiated.protocol = Protocol::WEBSOCKET;
    let upgrades = run.latencies.connect.count();
    (0..upgrades).for_each(|_| run.latencies.greeting.record(3_000 * US));
    run.plan.connection.protocol = ProtocolSpec::WebSocket(WebSocketExchange {
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
    run.plan.connection.protocol = ProtocolSpec::Messages(MessageExchange {
        reply: reply.parse().expect(reply),
        opening: None,
        seed: 0,
    });
}

#[test]
fn little_counts_streams() {
    let run = http2_run();
    let mut facts = Facts::of(&run);
    assert_eq!(outcome_of("I1", &facts).status, Held);
    // 32 in flight are too many for 8 connections of one stream.
    let mut alone = run.clone();
    alone.agents[0].negotiated.depth = 1;
    facts = Facts::of(&alone);
    assert_eq!(outcome_of("I1", &facts).status, Broken);
}

fn streams() -> Run {
    streamed(steady_run())
}

fn first_record(run: &mut Run) -> &mut StreamRecord {
    let streams = run.agents[0].workers[0].streams.as_mut();
    streams.expect("streams")
}

/// How an invariant must stand in a run of streams of which this was made.
#[track_caller]
fn stands(id: &str, status: InvariantStatus, make: fn(&mut Run)) {
    let mut run = streams();
    make(&mut run);
    assert_eq!(standing_of(&run, id), status);
}

/// The receiver's count of what it read: so many bytes more than were acknowledged, or fewer.
fn counted(run: &mut Run, more: i64) {
    let acked = run.bandwidth().expect("streams").lifetime.bytes_acked;
    run.agents[0].evidence.server_count = Some(ServerCount {
        url: "http://127.0.0.1:1/counters".to_owned(),
        path: "bytes_read".to_owned(),
        before: 1_000,
        after: 1_000_u64.saturating_add_signed(acked as i64 + more),
        own_reads: 0,
    });
}

/// All streams ended in order.
fn ended(run: &mut Run) {
    for worker in &mut run.agents[0].workers {
        worker.streams.as_mut().expect("streams").ended_in_order = 4;
    }
}

/// The sender's count of what it sent: so many bytes more than were received, or fewer.
fn sent(run: &mut Run, more: i64) {
    let received = run.summary().lifetime.bytes_received;
    run.agents[0].evidence.server_sent = Some(ServerCount {
        url: "http://127.0.0.1:1/counters".to_owned(),
        path: "bytes_sent".to_owned(),
        before: 1_000,
        after: 1_000_u64.saturating_add_signed(received as i64 + more),
        own_reads: 0,
    });
}

#[test]
fn a_run_of_streams_is_sound_and_has_no_response_times() {
    let run = streams();
    let findings = check(&run);
    assert!(is_valid(&findings), "{findings:#?}");
    for (id, status) in [
        ("T1", Held),
        ("I5", Held),
        ("I1", NotApplicable),
        ("I4", NotApplicable),
        ("I8", NotApplicable),
    ] {
        assert_eq!(standing_of(&run, id), status, "{id}");
    }
    assert_eq!(standing_of(&super::run(), "T1"), NotApplicable);
    let found = run.bandwidth().expect("streams");
    assert_eq!(found.up_bytes_per_s, Figure::Known(200_000_000.0));
    assert_eq!(found.down_bytes_per_s, Figure::Known(200_000_000.0));
    assert_eq!(found.streams, 8);
    assert_eq!(found.smoothed_rtt_ns, Some(50 * US));
    let intervals = run.bandwidth_intervals();
    assert_eq!(intervals.len(), 20);
    for interval in intervals {
        let rates = [interval.up_bytes_per_s, interval.down_bytes_per_s];
        assert_eq!(rates, [200_000_000.0; 2]);
    }
}

#[test]
fn workers_that_read_at_other_instants_add_up() {
    let mut run = streams();
    for reading in &mut first_record(&mut run).readings[1..20] {
        // Half a step late, with what came in it.
        reading.at_ns += 50 * MS as i64;
        reading.bytes_acked += 5_000_000;
    }
    for interval in run.bandwidth_intervals() {
        let off = (interval.up_bytes_per_s / 200_000_000.0 - 1.0).abs();
        assert!(off < 1e-9, "{interval:?}");
    }
}

#[test]
fn what_was_read_is_what_was_acknowledged() {
    let stands = |status, make: fn(&mut Run)| stands("T1", status, make);
    // Exactly as much, or some waits in the receiver's buffers.
    stands(Held, |run| counted(run, 0));
    stands(Held, |run| counted(run, -9_000_000));
    // More than buffers hold is missing: eight streams, with 8 MB in each buffer and a last segment
    // of 128 KiB.
    let missing: fn(&mut Run) = |run| counted(run, -8 * (8_000_000 + (128 << 10)) - 1);
    stands(Broken, missing);
    // The server is elsewhere, and its buffers may be larger.
    stands(Held, |run| {
        run.agents[0].limits.server_buffer_bytes_max = None;
        counted(run, -8 * (8_000_000 + (128 << 10)) - 1);
    });
    // Streams that ended have nothing in buffers, and were read to the end.
    stands(Broken, |run| {
        ended(run);
        counted(run, -1);
    });
    stands(Held, |run| {
        ended(run);
        counted(run, 0);
        sent(run, 0);
    });
    // One stream that did not end may have something in its buffers, and not more than two hold.
    stands(Held, |run| {
        ended(run);
        first_record(run).ended_in_order = 3;
        counted(run, -7_000_000);
        sent(run, 15_000_000);
    });
    stands(Broken, |run| {
        ended(run);
        first_record(run).ended_in_order = 3;
        sent(run, 17_000_000);
    });
    // More was received than the server sent, or the sender's count went back.
    stands(Broken, |run| sent(run, -1));
    stands(Broken, |run| {
        sent(run, 0);
        let count = run.agents[0].evidence.server_sent.as_mut();
        count.expect("it was read").after = 0;
    });
    // The acknowledgement is on its way.
    stands(Held, |run| {
        first_record(run).unacknowledged_bytes = 50_000;
        counted(run, 40_000);
    });
    // More was read, or the count went back.
    stands(Broken, |run| counted(run, 1));
    stands(Broken, |run| {
        counted(run, 0);
        read(run).after = 0;
    });
    // More was acknowledged than sent.
    stands(Broken, |run| first_record(run).lifetime.bytes_acked += 1);
}

#[test]
fn counts_beside_each_other_are_told() {
    let mut run = streams();
    let found = run.bandwidth().expect("streams");
    assert_eq!((found.up_counts, found.down_counts), (None, None));
    assert!(found.server_read_bytes_per_s.known().is_none());
    counted(&mut run, -4_000_000);
    sent(&mut run, 0);
    run.agents[0].evidence.server_window = Some(ServerWindow {
        interval_ns: 2_000_000_000,
        bytes_received: 390_000_000,
        bytes_sent: 400_000_000,
    });
    let found = run.bandwidth().expect("streams");
    let up = found.up_counts.expect("it was read");
    assert_eq!(up.own, found.lifetime.bytes_acked);
    assert_eq!(up.difference(), Some(-0.01));
    let down = found.down_counts.expect("it was read");
    assert_eq!(down.difference(), Some(0.0));
    assert_eq!(found.server_read_bytes_per_s, Figure::Known(195_000_000.0));
    assert_eq!(found.server_sent_bytes_per_s, Figure::Known(200_000_000.0));
}

#[test]
fn what_came_in_was_taken_or_waits() {
    let stands = |status, make: fn(&mut Run)| stands("I5", status, make);
    // An end counts as a byte.
    stands(Held, |run| first_record(run).lifetime.bytes_received += 1);
    // Some was not read, or is lost.
    stands(Held, |run| {
        first_record(run).lifetime.bytes_received += 30_000_000;
        first_record(run).unread_bytes = 30_000_000;
    });
    let lost: fn(&mut Run) = |run| first_record(run).lifetime.bytes_received += 30_000_000;
    stands(Broken, lost);
    // Of streams that ended all was looked at.
    stands(Broken, |run| {
        ended(run);
        first_record(run).lifetime.bytes_received += 9;
    });
    // More was taken than came.
    stands(Broken, |run| first_record(run).lifetime.bytes_received -= 1);
    // An account could not be read.
    stands(NotApplicable, |run| first_record(run).unread_accounts = 1);
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
    assert!(plain < http2.min(tls) && http2.max(tls) < both);
    assert!(both < 2_300.0, "{both}");
}
