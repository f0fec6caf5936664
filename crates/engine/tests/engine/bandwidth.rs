//! One-way streams on a kernel: what the reference server counts on its side is what brunt reports,
//! byte for byte, and the kernel does what it was asked for.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_judge::{CountBeside, InvariantStatus, RunFigures};
use brunt_load::{Plan, ProtocolSpec, ServerCounter, SocketOptions, Streams, Target};
use brunt_record::Run;
use brunt_server::{BackendKind, ListenAddress, Running, ServeOptions, Stall, TcpOptions, start};

use crate::common::{self, Kind, MS, choice, expect_valid, many, plan, status};

/// A server that does this with raw TCP, and stalls so.
fn server(service: &str, stall: Option<Stall>) -> Running {
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let mut tcp = TcpOptions::new(address.clone(), service.parse().expect("a service"));
    tcp.stall = stall;
    let options = ServeOptions {
        workers: many(1),
        // What it runs on is not what is tested.
        backend: Some(BackendKind::Epoll),
        tcp: Some(tcp),
        ..ServeOptions::new(address)
    };
    start(&options).expect("a server")
}

fn url(address: &ListenAddress, path: &str) -> Target {
    let ListenAddress::Tcp(address) = address else {
        panic!("a TCP address");
    };
    Target::parse(&format!("http://{address}{path}"), None).expect("a URL")
}

/// Three streams, in these directions.
fn streams(kind: Kind, target: Target, sends: bool, receives: bool) -> Plan {
    let mut plan = plan("http://127.0.0.1:1/", choice(kind));
    plan.target = target;
    plan.load.connections = many(3);
    plan.connection.protocol = ProtocolSpec::Streams(Streams {
        sends,
        receives,
        paced_bits_per_s: None,
        is_arranged: false,
    });
    plan
}

fn run(kind: Kind, server: &Running, directions: (bool, bool), change: fn(&mut Plan)) -> Run {
    let raw = url(server.tcp_address().expect("raw TCP"), "/");
    let mut plan = streams(kind, raw, directions.0, directions.1);
    plan.observation.server_counter = Some(ServerCounter {
        target: url(server.address(), "/counters"),
        path: None,
    });
    // Streams end before it: a machine that is busy may take long.
    plan.load.drain_limit_ns = 20_000 * MS;
    change(&mut plan);
    let run = common::run(plan);
    expect_valid(&run, "streams");
    assert_eq!(status(&run, "T1"), InvariantStatus::Held);
    run
}

/// An upload to a server that reads all that comes, and counts as much of it as brunt does.
fn upload(kind: Kind, change: fn(&mut Plan)) -> Run {
    let run = run(kind, &server("sink", None), (true, false), change);
    expect_equal(run.bandwidth().expect("streams").up_counts, "sink");
    run
}

/// The counts agree to the byte, and therefore within 1 %.
fn expect_equal(counts: Option<CountBeside>, what: &str) {
    let counts = counts.unwrap_or_else(|| panic!("{what}: the server's count was read"));
    assert!(counts.own > 0, "{what}");
    assert_eq!(counts.own, counts.server, "{what}");
    assert!(counts.difference().is_some_and(|off| off.abs() < 0.01));
}

fn ended_in_order(run: &Run) -> u64 {
    let records = run.workers().filter_map(|worker| worker.streams.as_ref());
    records.map(|record| record.ended_in_order).sum()
}

fn both_sides_count_the_same(kind: Kind) {
    for (service, sends, receives) in [
        ("sink", true, false),
        ("source", false, true),
        ("echo", true, true),
    ] {
        let server = server(service, None);
        let run = run(kind, &server, (sends, receives), |_| {});
        let found = run.bandwidth().expect("streams");
        if sends {
            expect_equal(found.up_counts, service);
            assert!(found.min_rtt_ns.is_some() && found.window.segments_sent > 0);
        }
        assert_eq!(found.streams, 3);
        if receives {
            expect_equal(found.down_counts, service);
            assert_eq!(status(&run, "I5"), InvariantStatus::Held, "{service}");
        }
        assert_eq!(found.up_counts.is_some(), sends, "{service}");
        assert_eq!(found.down_counts.is_some(), receives, "{service}");
        assert_eq!(found.window.bytes_received > 0, receives, "{service}");
        assert_eq!(found.lifetime.bytes_acked > 0, sends, "{service}");
        assert_eq!(ended_in_order(&run), 3);
        // What the server says of the window is part of what it says of the run.
        let window = run.server_window().expect("it was read at both edges");
        assert!(window.interval_ns > 0);
        for (in_window, counts) in [
            (window.bytes_received, found.up_counts),
            (window.bytes_sent, found.down_counts),
        ] {
            let whole = counts.map_or(u64::MAX, |count| count.server);
            assert!(in_window <= whole, "{service}: {in_window} of {whole}");
        }
        let totals = server.counters().tcp.expect("raw TCP");
        assert_eq!(totals.bytes_received, found.lifetime.bytes_acked);
        let lifetime = run.summary().lifetime;
        assert_eq!(lifetime.connections_closed_idle, 0, "{service}");
    }
}

fn one_stream_does_not_hold_up_the_readings(kind: Kind) {
    let run = upload(kind, |plan| plan.load.connections = many(1));
    let streams = run.agents[0].workers[0].streams.as_ref().expect("streams");
    assert!(streams.readings.len() >= 3, "{:?}", streams.readings);
}

const PACED_BITS_PER_S: u64 = 80_000_000;

fn the_kernel_paces_what_is_sent(kind: Kind) {
    let run = upload(kind, |plan| {
        plan.connection.protocol = ProtocolSpec::Streams(Streams {
            sends: true,
            receives: false,
            paced_bits_per_s: NonZeroU64::new(PACED_BITS_PER_S),
            is_arranged: false,
        });
        plan.load.stop.duration_ns = Some(1_000 * MS);
        plan.load.warmup_ns = 200 * MS;
    });
    let found = run.bandwidth().expect("streams");
    let rate = found.up_bytes_per_s.known().expect("it was read") * 8.0;
    // TCP sends its first segments without pauses.
    assert!(rate < 1.2 * PACED_BITS_PER_S as f64, "{rate} bit/s");
}

fn options_of_sockets_are_in_force(kind: Kind) {
    let run = upload(kind, |plan| {
        plan.connection.sockets = SocketOptions {
            segment_bytes: NonZeroU32::new(1_000),
            congestion: Some("reno".to_owned()),
            ..SocketOptions::default()
        };
    });
    let window = run.bandwidth().expect("streams").window;
    assert!(window.segments_sent >= window.bytes_acked / 1_000 / 2);
    assert_eq!(
        run.plan.connection.sockets.segment_bytes,
        NonZeroU32::new(1_000)
    );
}

fn what_a_peer_leaves_unread_is_in_its_buffers(kind: Kind) {
    // It reads nothing.
    let stall = Stall {
        silence_ns: 1_000 * MS,
        period_ns: 1_000 * MS,
    };
    let server = server("sink", Some(stall));
    let run = run(kind, &server, (true, false), |plan| {
        plan.load.drain_limit_ns = 100 * MS;
        plan.load.stop.duration_ns = Some(100 * MS);
    });
    let found = run.bandwidth().expect("streams");
    let counts = found.up_counts.expect("the server's count");
    assert!(counts.server < counts.own, "{counts:?}");
    assert_eq!(ended_in_order(&run), 0);
    let most = run.agents[0].limits.server_buffer_bytes_max;
    assert!(counts.own - counts.server <= 3 * (most.expect("loopback") + (128 << 10)));
    // Nothing moved in the window, or the peer's buffers took a last part of it.
    let window = found.window;
    assert!(window.bytes_acked == 0 || window.receive_window_limited_ns > window.busy_ns / 10);
}

crate::common::on_both_kernels![
    both_sides_count_the_same,
    one_stream_does_not_hold_up_the_readings,
    the_kernel_paces_what_is_sent,
    options_of_sockets_are_in_force,
    what_a_peer_leaves_unread_is_in_its_buffers,
];
