//! Planned connections on every backend: each is opened once and carries its requests.

use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, LoadModel, Plan, Reuse, Schedule, Stage};
use brunt_record::{FailureKind, Run};

use crate::common::{
    Kind, MS, S, at_ns, broken, connections_by_plan, expect_equal_connections, expect_equal_counts,
    expect_valid, failures, lifetime, load, many, many_long, on_every_backend,
};

on_every_backend! {
    each_connection_is_opened_once_and_carries_its_requests,
    the_most_at_once_is_kept,
    a_count_of_requests_ends_the_run,
    broken_connections_are_not_opened_again,
    a_closed_loop_opens_its_connections_at_a_rate,
    think_time_keeps_a_closed_loop_slow,
}

/// Connections at this rate for 150 ms, so that all are done by the end of the window.
fn sessions(plan: &mut Plan, rate_per_s: f64, requests: u64) {
    let stage = Stage {
        duration_ns: 150 * MS,
        from_per_s: rate_per_s,
        to_per_s: rate_per_s,
    };
    connections_by_plan(
        plan,
        Schedule::staged(ArrivalProcess::Constant, vec![stage], 1).expect("stages"),
        100_000,
    );
    plan.reuse = Reuse::Requests(many_long(requests));
    plan.warmup_ns = 0;
    plan.stop.duration_ns = Some(600 * MS);
}

fn expect_accounted(run: &Run, what: &str) {
    let arrivals = run.summary().arrivals;
    let ended = arrivals.sent + arrivals.skipped_full + arrivals.skipped_late + arrivals.unsent;
    assert_eq!(arrivals.planned, ended, "{what}: {arrivals:?}");
    let population = run.summary().population;
    let ended = population.recorded + population.failed + population.censored;
    assert_eq!(population.issued, ended, "{what}: {population:?}");
}

fn each_connection_is_opened_once_and_carries_its_requests(kind: Kind) {
    for (requests, workers, think_time_ns) in [(1, 1, 0), (4, 2, 0), (3, 1, 5 * MS)] {
        let what = format!("{requests} requests");
        let (run, served) = load(kind, "/bytes/10", |plan| {
            plan.connections = many(100);
            plan.workers = many(workers);
            plan.think_time_ns = think_time_ns;
            sessions(plan, 200.0, requests);
        });
        expect_valid(&run, &what);
        expect_accounted(&run, &what);
        expect_equal_counts(&run, served, &what);
        assert_eq!(failures(&run), [], "{what}");
        assert_eq!(run.summary().arrivals.planned, 30, "{what}");
        assert_eq!(lifetime(&run).connections_opened, 30, "{what}");
        assert_eq!(served.connections, 30, "{what}");
        assert_eq!(run.summary().population.recorded, 30 * requests, "{what}");
        let latencies = &run.latencies;
        assert_eq!(latencies.connect.count(), 30, "{what}");
        assert_eq!(latencies.first_reply.count(), 30, "{what}");
        // To connect is a part of it.
        assert!(
            latencies.first_reply.min_ns() >= latencies.connect.min_ns(),
            "{what}"
        );
        assert_eq!(run.summary().live.min, 0, "{what}");
    }
}

fn the_most_at_once_is_kept(kind: Kind) {
    let (run, served) = load(kind, "/delay/10ms", |plan| {
        plan.connections = many(3);
        sessions(plan, 1_000.0, 2);
    });
    expect_valid(&run, "at most 3");
    expect_accounted(&run, "at most 3");
    let arrivals = run.summary().arrivals;
    assert_eq!(arrivals.planned, 150);
    // Three at once, 20 ms each.
    assert!(arrivals.sent <= 3 * 600 / 20 + 3, "{arrivals:?}");
    assert_eq!(arrivals.unsent, 150 - arrivals.sent);
    assert!(run.summary().live.max <= 3);
    assert!(served.connections <= arrivals.sent);
}

fn a_count_of_requests_ends_the_run(kind: Kind) {
    for (connections, requests) in [(50, 3), (2, 40)] {
        let what = format!("{connections} connections of {requests}");
        let (run, served) = load(kind, "/", |plan| {
            plan.connections = many(connections);
            sessions(plan, 1_000.0, requests);
            plan.stop.requests = Some(100);
        });
        expect_valid(&run, &what);
        expect_accounted(&run, &what);
        assert_eq!(run.summary().population.recorded, 100, "{what}");
        assert_eq!(served.requests, 100, "{what}");
        assert_eq!(run.summary().unsent, 0, "{what}");
    }
}

fn broken_connections_are_not_opened_again(kind: Kind) {
    let (run, served) = load(kind, "/reset", |plan| {
        plan.connections = many(50);
        sessions(plan, 400.0, 5);
    });
    let broken = broken(&run, &[]);
    assert!(broken.is_empty(), "{broken:#?}");
    expect_accounted(&run, "resets");
    expect_equal_connections(&run, served, "resets");
    let lifetime = lifetime(&run);
    assert_eq!(lifetime.connections_opened, 60);
    assert_eq!(served.connections, 60);
    // The first request of each fails, and the others are never sent.
    assert_eq!(lifetime.requests_sent, 60);
    assert_eq!(run.summary().population.failed, 60);
    let failed = lifetime.failures.get(FailureKind::Reset)
        + lifetime.failures.get(FailureKind::ClosedBeforeReply);
    assert_eq!(failed, 60);
    assert_eq!(run.latencies.first_reply.count(), 0);
}

fn a_closed_loop_opens_its_connections_at_a_rate(kind: Kind) {
    let (run, served) = load(kind, "/", |plan| {
        plan.connections = many(21);
        plan.model = LoadModel::Closed {
            connect_per_s: Some(100.0),
        };
    });
    expect_valid(&run, "a ramp");
    expect_equal_counts(&run, served, "a ramp");
    assert_eq!(lifetime(&run).connections_opened, 21);
    let edges = &run.agents[0].clock.edges;
    let set_up_ns = at_ns(&run, edges.warmup_start) - at_ns(&run, edges.setup_start);
    assert!((200 * MS..S).contains(&set_up_ns), "{set_up_ns}");
}

fn think_time_keeps_a_closed_loop_slow(kind: Kind) {
    // A user thinks as well where each reply ends its connection.
    for reuse in [Reuse::Unlimited, Reuse::Requests(many_long(1))] {
        let (run, served) = load(kind, "/", |plan| {
            plan.think_time_ns = 20 * MS;
            plan.warmup_ns = 0;
            plan.workers = many(2);
            plan.reuse = reuse;
        });
        let what = format!("think time, {reuse:?}");
        expect_valid(&run, &what);
        expect_equal_counts(&run, served, &what);
        assert_eq!(failures(&run), []);
        // At most every 20 ms on each of 4 connections.
        let recorded = run.summary().population.recorded;
        assert!((4..=4 * 10).contains(&recorded), "{what}: {recorded}");
    }
}
