//! Experiments on a run: fewer connections in use for a while, and work added to each request.

use brunt_engine::backend::sim::{ServiceTime, SimServer};
use brunt_load::{Experiment, Level, LoadModel, Schedule};
use brunt_measure::{Run, SeriesPoint};

use crate::common::{
    Kind, MS, US, broken, expect_equal_counts, expect_valid, load, many, on_every_backend,
};

on_every_backend! {
    connections_out_of_use_lose_nothing,
    planned_requests_find_the_connections_in_use,
    work_added_to_requests_is_charged_to_brunt,
}

const PART_NS: u64 = 200 * MS;

fn levels(connections: [u32; 2]) -> Vec<Level> {
    let level = |connections| Level {
        connections: many(connections),
        delay_ns: 0,
    };
    connections.map(level).to_vec()
}

fn delay_server() -> SimServer {
    SimServer {
        service: ServiceTime::Constant(MS),
        ..SimServer::default()
    }
}

/// Replies in each part, without its first 100 ms.
fn replies(run: &Run) -> Vec<u64> {
    let series = run.summary().series;
    let points = (PART_NS / series.interval_ns) as usize;
    let counted = |part: &[SeriesPoint]| part[points / 2..].iter().map(|it| it.successes).sum();
    series.points.chunks_exact(points).map(counted).collect()
}

fn connections_out_of_use_lose_nothing(kind: Kind) {
    let experiment = Experiment::new(levels([8, 4]), PART_NS, 2);
    let (run, served) = load(kind, "/delay/1ms", delay_server(), |plan| {
        plan.connections = many(8);
        plan.workers = many(2);
        plan.stop.duration_ns = Some(experiment.length_ns());
        plan.experiment = Some(experiment);
    });
    // Half of the connections idle for half of the time: Little's law says so, and is right.
    let broken = broken(&run, &["I1"]);
    assert!(broken.is_empty(), "{broken:#?}");
    expect_equal_counts(&run, served, "an experiment");
    let replies = replies(&run);
    assert_eq!(replies.len(), 4, "{replies:?}");
    // 8, 4, 4, 8 connections, each with a reply per millisecond at most.
    let most = [808, 404, 404, 808];
    let within = replies.iter().zip(most).all(|(given, most)| *given <= most);
    assert!(within, "{replies:?}");
    if kind == Kind::Sim {
        for (given, half) in [(replies[0], replies[1]), (replies[3], replies[2])] {
            let ratio = given as f64 / half as f64;
            assert!((1.98..2.02).contains(&ratio), "{replies:?}");
        }
    }
}

fn planned_requests_find_the_connections_in_use(kind: Kind) {
    let experiment = Experiment::new(levels([8, 2]), PART_NS, 2);
    let (run, served) = load(kind, "/delay/1ms", delay_server(), |plan| {
        plan.connections = many(8);
        plan.model = LoadModel::Open {
            schedule: Schedule::constant_rate(Default::default(), 1_000.0, 0).expect("a rate"),
            connections_max: many(8),
            queue_max: many(1_000),
        };
        plan.stop.duration_ns = Some(experiment.length_ns());
        plan.experiment = Some(experiment);
    });
    expect_valid(&run, "an open loop with an experiment");
    expect_equal_counts(&run, served, "an open loop with an experiment");
    let arrivals = run.summary().arrivals;
    assert_eq!((arrivals.planned, arrivals.sent), (800, 800));
}

fn work_added_to_requests_is_charged_to_brunt(kind: Kind) {
    const WORK_NS: u64 = 400 * US;
    let busy = |busy| {
        let (run, served) = load(kind, "/", delay_server(), |plan| {
            plan.connections = many(4);
            plan.stamps = brunt_load::Stamps::Full;
            plan.stop.duration_ns = Some(200 * MS);
            plan.faults.busy = busy;
        });
        expect_valid(&run, "a busy client");
        expect_equal_counts(&run, served, "a busy client");
        run
    };
    let (free, slowed) = (busy(None), busy(Some((0, WORK_NS))));
    let count = |run: &Run| run.latencies.response.count();
    assert!(count(&slowed) <= 200 * MS / WORK_NS + 4);
    assert!(count(&slowed) < count(&free));
    let own_ns = |run: &Run| {
        let split = &run.latencies.split;
        split.mean().map_or(0.0, |parts| parts.own_ns())
    };
    // Each request is at least sent later by its own work.
    assert!(
        own_ns(&slowed) >= WORK_NS as f64 * 0.99,
        "{}",
        own_ns(&slowed)
    );
    assert!(own_ns(&slowed) > own_ns(&free));
}
