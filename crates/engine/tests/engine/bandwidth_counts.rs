//! Streams against the reference server: what it counts on its side is what brunt reports, byte for
//! byte.

use brunt_engine::prepare;
use brunt_judge::{CountBeside, InvariantStatus, RunFigures};
use brunt_load::{Plan, ServerCounter, Spoken, Streams, Target};
use brunt_record::Run;
use brunt_server::{BackendKind, ListenAddress, Options, Running, Stall, TcpOptions, start};

use crate::common::{Kind, MS, choice, expect_valid, many, plan, status};

/// A server that does this with raw TCP, and stalls so.
fn server(service: &str, stall: Option<Stall>) -> Running {
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let mut tcp = TcpOptions::new(address.clone(), service.parse().expect("a service"));
    tcp.stall = stall;
    let options = Options {
        workers: many(1),
        // What it runs on is not what is tested.
        backend: Some(BackendKind::Epoll),
        tcp: Some(tcp),
        ..Options::new(address)
    };
    start(&options).expect("a server")
}

fn url(address: &ListenAddress, path: &str) -> Target {
    let ListenAddress::Tcp(address) = address else {
        panic!("a TCP address");
    };
    Target::parse(&format!("http://{address}{path}"), None).expect("a URL")
}

fn run(kind: Kind, server: &Running, directions: (bool, bool), change: fn(&mut Plan)) -> Run {
    let raw = server.tcp_address().expect("raw TCP");
    let mut plan = plan("http://127.0.0.1:1/", choice(kind));
    plan.target = url(raw, "/");
    plan.connections = many(3);
    plan.spoken = Spoken::Streams(Streams {
        sends: directions.0,
        receives: directions.1,
        paced_bits_per_s: None,
        is_arranged: false,
    });
    plan.server_counter = Some(ServerCounter {
        target: url(server.address(), "/counters"),
        path: None,
    });
    // Streams end before it: a machine that is busy may take long.
    plan.drain_limit_ns = 20_000 * MS;
    change(&mut plan);
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&control, true, &mut |_, _: &_| {});
    run.expect("a run")
}

/// The counts agree to the byte, and therefore within 1 %.
fn expect_equal(counts: Option<CountBeside>, what: &str) {
    let counts = counts.unwrap_or_else(|| panic!("{what}: the server's count was read"));
    assert!(counts.own > 0, "{what}");
    assert_eq!(counts.own, counts.server, "{what}");
    assert!(counts.difference().is_some_and(|off| off.abs() < 0.01));
}

fn both_sides_count_the_same(kind: Kind) {
    for (service, sends, receives) in [
        ("sink", true, false),
        ("source", false, true),
        ("source=30m", false, true),
        ("echo", true, true),
    ] {
        let server = server(service, None);
        let run = run(kind, &server, (sends, receives), |_| {});
        expect_valid(&run, service);
        assert_eq!(status(&run, "T1"), InvariantStatus::Held, "{service}");
        let found = run.bandwidth().expect("streams");
        if sends {
            expect_equal(found.up_counts, service);
        }
        if receives {
            expect_equal(found.down_counts, service);
        }
        assert_eq!(found.up_counts.is_some(), sends, "{service}");
        assert_eq!(found.down_counts.is_some(), receives, "{service}");
        let records = run.workers().filter_map(|worker| worker.streams.as_ref());
        assert_eq!(records.map(|it| it.ended_in_order).sum::<u64>(), 3);
        // What the server says of the window is part of what it says of the run.
        let window = run.server_window().expect("it was read at both edges");
        assert!(window.interval_ns > 0);
        for (in_window, counts) in [
            (window.bytes_received, found.up_counts),
            (window.bytes_sent, found.down_counts),
        ] {
            let whole = counts.map_or(u64::MAX, |it| it.server);
            assert!(in_window <= whole, "{service}: {in_window} of {whole}");
        }
        let totals = server.counters().tcp.expect("raw TCP");
        assert_eq!(totals.bytes_received, found.lifetime.bytes_acked);
        let lifetime = run.summary().lifetime;
        assert_eq!(lifetime.connections_closed_idle, 0, "{service}");
    }
}

fn what_a_peer_leaves_unread_is_in_its_buffers(kind: Kind) {
    // It reads nothing.
    let stall = Stall {
        silence_ns: 1_000 * MS,
        period_ns: 1_000 * MS,
    };
    let server = server("sink", Some(stall));
    let run = run(kind, &server, (true, false), |plan| {
        plan.drain_limit_ns = 100 * MS;
        plan.stop.duration_ns = Some(100 * MS);
    });
    expect_valid(&run, "unread");
    assert_eq!(status(&run, "T1"), InvariantStatus::Held);
    let found = run.bandwidth().expect("streams");
    let counts = found.up_counts.expect("the server's count");
    assert!(counts.server < counts.own, "{counts:?}");
    let records = run.workers().filter_map(|worker| worker.streams.as_ref());
    assert_eq!(records.map(|it| it.ended_in_order).sum::<u64>(), 0);
    let most = run.agents[0].limits.server_buffer_bytes_max;
    assert!(counts.own - counts.server <= 3 * (most.expect("loopback") + (128 << 10)));
}

crate::common::on_both_kernels![
    both_sides_count_the_same,
    what_a_peer_leaves_unread_is_in_its_buffers,
];
