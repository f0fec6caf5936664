//! Connections that are opened and closed again: each attempt is a request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use brunt_judge::{RunFigures, Verdict};
use brunt_load::{ArrivalProcess, BackendChoice, Plan, ProtocolSpec, RequestSet, Reuse, Target};
use brunt_record::{FailureKind, Run};
use brunt_testkit::{Costs, SimFaults, SimSettings};

use crate::common::{
    self, Kind, MS, S, by_count, choice, expect_valid, failures, lifetime, many, many_long,
    on_every_backend, plan, rate, requests_by_plan, serving, simulate, simulated,
};

on_every_backend! {
    each_connection_is_a_request_that_the_server_accepted,
    what_is_in_flight_at_the_end_of_the_window_is_waited_for,
}

fn connecting(plan: &mut Plan) {
    plan.traffic.requests = RequestSet::nothing();
    plan.connection.protocol = ProtocolSpec::Connections;
    plan.traffic.reuse = Reuse::Requests(many_long(1));
}

/// Plans so many connections a second, with as many attempts at once as the plan has connections.
fn open_loop(plan: &mut Plan, process: ArrivalProcess, per_s: f64) {
    requests_by_plan(plan, rate(process, per_s, 7), 100_000);
}

/// A server that counts the connections on which nothing comes, until something does.
fn counting() -> (SocketAddr, JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let thread = std::thread::spawn(move || {
        let is_silent = |socket: &TcpStream| {
            let mut socket = socket;
            socket.read(&mut [0]).unwrap_or(0) == 0
        };
        let silent = listener.incoming().flatten().take_while(is_silent);
        silent.count() as u64
    });
    (address, thread)
}

/// A run, and how many connections its server accepted, without the one before the run.
fn counted(kind: Kind, change: impl Fn(&mut Plan)) -> (Run, u64) {
    if kind == Kind::Sim {
        let (run, served) = simulated(SimSettings::new(1), |plan| {
            connecting(plan);
            change(plan);
        });
        return (run, served.connections);
    }
    let (address, thread) = counting();
    let mut plan = plan("http://127.0.0.1/", choice(kind));
    plan.target = Target::parse_tcp(Some(&address.to_string()), false, None).expect("an address");
    connecting(&mut plan);
    change(&mut plan);
    let run = common::run(plan);
    // It is accepted behind all others.
    let mut last = TcpStream::connect(address).expect("a connection");
    last.write_all(b"x").expect("it is taken");
    (run, thread.join().expect("it counts") - 1)
}

fn expect_counts(run: &Run, accepted: u64, what: &str) {
    expect_valid(run, what);
    let found = lifetime(run);
    assert_eq!(failures(run), [], "{what}");
    assert_eq!(found.connections_opened, accepted, "{what}");
    assert_eq!(found.requests_sent, accepted, "{what}");
    assert_eq!(found.replies.successes(), accepted, "{what}");
    assert_eq!((found.bytes_sent, found.bytes_received), (0, 0), "{what}");
    assert_eq!(run.unit().per_s, "connections/s");
}

fn each_connection_is_a_request_that_the_server_accepted(kind: Kind) {
    for workers in [1, 2] {
        for is_open in [false, true] {
            let what = format!("{kind:?}, {workers} workers, open loop: {is_open}");
            let (run, accepted) = counted(kind, |plan| {
                plan.workers.count = many(workers);
                by_count(plan, 300);
                if is_open {
                    open_loop(plan, ArrivalProcess::Poisson, 3_000.0);
                }
            });
            expect_counts(&run, accepted, &what);
            assert_eq!(accepted, 300, "{what}");
            let (response, connect) = (&run.latencies.response, &run.latencies.connect);
            assert_eq!(response.count(), 300, "{what}");
            // It is what is measured, from the planned instant on.
            assert!(response.min_ns() >= connect.min_ns(), "{what}");
            assert!(response.sum_ns() >= connect.sum_ns(), "{what}");
        }
    }
}

fn what_is_in_flight_at_the_end_of_the_window_is_waited_for(kind: Kind) {
    let (run, accepted) = counted(kind, |_| {});
    expect_counts(&run, accepted, "a window");
    assert!(accepted > 4);
}

/// A server 5 ms away, loaded by a client whose work takes no time.
fn far(faults: SimFaults) -> SimSettings {
    SimSettings {
        network_ns: 5 * MS,
        costs: Costs::NONE,
        ..serving(|server| server.faults = faults)
    }
}

/// A second in simulation, without warm-up.
fn far_run(faults: SimFaults, change: impl FnOnce(&mut Plan)) -> Run {
    let mut plan = plan("http://simulated/", BackendChoice::Auto);
    connecting(&mut plan);
    plan.load.warmup_ns = 0;
    plan.load.stop.duration_ns = Some(S);
    change(&mut plan);
    let (run, counts) = simulate(plan, &far(faults)).expect("a run");
    expect_valid(&run, "a server far away");
    let opened = lifetime(&run).connections_opened;
    assert_eq!(opened, counts.connections_accepted);
    run
}

#[test]
fn the_latency_is_a_round_trip_and_counts_from_the_planned_instant() {
    let closed = far_run(SimFaults::default(), |_| {});
    assert_eq!(closed.latencies.response.min_ns(), Some(10 * MS));
    assert_eq!(closed.latencies.response.max_ns(), Some(10 * MS));
    assert_eq!(closed.latencies.response.count(), 400);
    let even = |plan: &mut Plan, per_s| open_loop(plan, ArrivalProcess::Constant, per_s);
    let open = far_run(SimFaults::default(), |plan| even(plan, 300.0));
    assert_eq!(open.latencies.response.max_ns(), Some(10 * MS));
    assert_eq!(open.latencies.response.count(), 300);
    // One place takes 100 a second: the last of 200 begins a second late.
    let late = far_run(SimFaults::default(), |plan| {
        plan.load.connections = many(1);
        even(plan, 200.0);
    });
    assert_eq!(late.latencies.response.count(), 200);
    let longest_ns = late.latencies.response.max_ns().expect("there are some");
    let possible_ns = 990 * MS..=1_015 * MS;
    assert!(possible_ns.contains(&longest_ns), "{longest_ns}");
    assert_eq!(late.latencies.connect.max_ns(), Some(10 * MS));
}

#[test]
fn attempts_that_fail_are_failed_requests() {
    let refusing = SimFaults {
        connect_refused: 0.25,
        ..SimFaults::default()
    };
    for is_open in [false, true] {
        let run = far_run(refusing, |plan| {
            if is_open {
                open_loop(plan, ArrivalProcess::Poisson, 300.0);
            }
        });
        let found = lifetime(&run);
        let refused = found.failures.get(FailureKind::ConnectRefused);
        assert!(refused > 20, "{refused}");
        assert_eq!(found.requests_sent, found.replies.successes() + refused);
        assert_eq!(run.summary().population.failed, refused);
        assert_ne!(run.judge().verdict, Verdict::Invalid);
    }
}

#[test]
fn attempts_without_an_answer_time_out_or_are_left_over() {
    let silent = SimFaults {
        connect_unanswered: 1.0,
        ..SimFaults::default()
    };
    let run = far_run(silent, |plan| {
        plan.limits.connect_timeout_ns = 100 * MS;
        open_loop(plan, ArrivalProcess::Constant, 20.0);
    });
    assert_eq!(failures(&run), [(FailureKind::ConnectTimedOut, 20)]);
    let run = far_run(silent, |plan| {
        plan.limits.timeout_ns = 100 * MS;
        plan.limits.connect_timeout_ns = 60 * S;
        open_loop(plan, ArrivalProcess::Constant, 20.0);
    });
    assert_eq!(failures(&run), [(FailureKind::TimedOut, 20)]);
    let run = far_run(silent, |plan| {
        plan.limits.connect_timeout_ns = 60 * S;
        plan.limits.timeout_ns = 60 * S;
        plan.load.drain_limit_ns = 100 * MS;
    });
    assert_eq!(failures(&run), []);
    assert_eq!(run.summary().in_flight_at_end, 4);
}
