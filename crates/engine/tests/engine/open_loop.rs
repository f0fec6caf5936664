//! Planned requests on every backend: each has one outcome, and the server saw those that were
//! sent. How long they took is the simulation's to show.

use std::num::NonZeroU32;

use brunt_engine::{Progress, prepare, prepare_simulated};
use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, LoadModel, Plan, Reuse, Schedule, Spin, Stage, Stamps};
use brunt_record::{ArrivalCounts, FailureKind, Run};
use brunt_testkit::{ServiceTime, SimMachine, SimServer, SimSettings};

use crate::common::{
    Kind, MS, S, Served, broken, choice, expect_equal_connections, expect_equal_counts,
    expect_valid, failures, lifetime, load, many, many_long, on_every_backend, plan, serve, served,
    simulated, url,
};

on_every_backend! {
    every_planned_request_is_sent_once,
    low_and_fractional_rates_are_kept,
    stages_are_followed,
    a_count_of_requests_ends_the_run,
    a_silent_server_leaves_nothing_uncounted,
    beyond_the_queue_requests_are_skipped,
    further_connections_are_opened_when_none_is_free,
    idle_connections_never_time_out,
    replaced_connections_lose_no_request,
    resets_and_closes_are_accounted_for,
    an_interrupt_leaves_nothing_uncounted,
    the_highest_rate_is_an_honest_overload,
}

/// Requests at `schedule`, in place of the closed loop.
fn open(plan: &mut Plan, schedule: Schedule, queue_max: u32) {
    plan.model = LoadModel::Open {
        schedule,
        connections_max: plan.connections,
        queue_max: many(queue_max),
    };
    // Those of others who share the CPUs come first.
    plan.spin = Spin::Off;
}

fn rate(process: ArrivalProcess, rate_per_s: f64) -> Schedule {
    Schedule::constant_rate(process, rate_per_s, 11).expect("a rate")
}

fn even(rate_per_s: f64) -> Schedule {
    rate(ArrivalProcess::Constant, rate_per_s)
}

/// Refuses a run in which an arrival has no outcome, or two.
fn expect_accounted(run: &Run, what: &str) {
    let summary = run.summary();
    for arrivals in [summary.arrivals, summary.arrivals_all] {
        let ended = arrivals.sent + arrivals.skipped_full + arrivals.skipped_late + arrivals.unsent;
        assert_eq!(arrivals.planned, ended, "{what}: {arrivals:?}");
    }
    let population = summary.population;
    assert_eq!(summary.arrivals.sent, population.issued, "{what}");
    let ended = population.recorded + population.failed + population.censored;
    assert_eq!(population.issued, ended, "{what}: {population:?}");
    assert_eq!(
        summary.arrivals_all.sent, summary.lifetime.requests_sent,
        "{what}"
    );
    assert_eq!(
        run.latencies.service.count(),
        run.latencies.response.count(),
        "{what}"
    );
}

/// Refuses a run in which a request was not sent, or not answered.
fn expect_all_answered(run: &Run, served: Served, what: &str) -> ArrivalCounts {
    expect_valid(run, what);
    expect_accounted(run, what);
    expect_equal_counts(run, served, what);
    assert_eq!(failures(run), [], "{what}");
    let arrivals = run.summary().arrivals;
    assert_eq!(arrivals.sent, arrivals.planned, "{what}");
    assert_eq!(
        run.summary().population.recorded,
        arrivals.planned,
        "{what}"
    );
    arrivals
}

fn every_planned_request_is_sent_once(kind: Kind) {
    for (process, connections, workers, stamps) in [
        (ArrivalProcess::Constant, 4, 1, Stamps::Sampled),
        (ArrivalProcess::Constant, 1, 1, Stamps::Full),
        (ArrivalProcess::Poisson, 20, 2, Stamps::Full),
        (ArrivalProcess::Uniform, 5, 3, Stamps::Off),
    ] {
        let what = format!("{process}, {connections} connections, {workers} workers");
        let (run, served) = load(kind, "/bytes/100", |plan| {
            plan.connections = many(connections);
            plan.workers = many(workers);
            plan.stamps = stamps;
            open(plan, rate(process, 2_000.0), 100_000);
        });
        let arrivals = expect_all_answered(&run, served, &what);
        match process {
            // 2,000 per second for 200 ms, and 30 ms before.
            ArrivalProcess::Constant => {
                assert_eq!(arrivals.planned, 400, "{what}");
                assert_eq!(run.summary().arrivals_all.planned, 460, "{what}");
            }
            ArrivalProcess::Uniform => assert!(arrivals.planned.abs_diff(400) <= 2, "{what}"),
            ArrivalProcess::Poisson => assert!(arrivals.planned.abs_diff(400) <= 100, "{what}"),
        }
        let split = run.latencies.split.count();
        match stamps {
            Stamps::Off => assert_eq!(split, 0, "{what}"),
            Stamps::Sampled => assert!(split > 0, "{what}"),
            Stamps::Full => assert_eq!(split, run.latencies.response.count(), "{what}"),
        }
    }
}

fn low_and_fractional_rates_are_kept(kind: Kind) {
    // Below the number of workers and connections; arrival k is due at k / R.
    for (rate_per_s, planned) in [(5.0, 1), (12.5, 3), (1_000.0 / 7.0, 29)] {
        let what = format!("{rate_per_s} per second");
        let (run, served) = load(kind, "/", |plan| {
            plan.connections = many(6);
            plan.workers = many(3);
            plan.warmup_ns = 0;
            open(plan, even(rate_per_s), 100_000);
        });
        let arrivals = expect_all_answered(&run, served, &what);
        assert_eq!(arrivals.planned, planned, "{what}");
        assert_eq!(lifetime(&run).connections_opened, 6, "{what}");
    }
}

fn stages_are_followed(kind: Kind) {
    let stage = |from_per_s, to_per_s| Stage {
        duration_ns: 100 * MS,
        from_per_s,
        to_per_s,
    };
    let stages = vec![
        stage(0.0, 2_000.0),
        stage(500.0, 500.0),
        stage(2_000.0, 0.0),
    ];
    let schedule = Schedule::staged(ArrivalProcess::Constant, stages, 0).expect("stages");
    let (run, served) = load(kind, "/", |plan| {
        plan.stop.duration_ns = Some(300 * MS);
        open(plan, schedule, 100_000);
    });
    let arrivals = expect_all_answered(&run, served, "stages");
    assert_eq!(arrivals.planned, 250);
}

fn a_count_of_requests_ends_the_run(kind: Kind) {
    for (requests, workers, warmup_ns) in [(1, 1, 0), (150, 1, 0), (151, 2, 20 * MS)] {
        let what = format!("{requests} requests");
        let (run, served) = load(kind, "/", |plan| {
            plan.workers = many(workers);
            plan.warmup_ns = warmup_ns;
            plan.stop.requests = Some(requests);
            plan.stop.duration_ns = None;
            open(plan, even(2_000.0), 100_000);
        });
        let arrivals = expect_all_answered(&run, served, &what);
        assert_eq!(arrivals.planned, requests, "{what}");
        assert_eq!(run.summary().unsent, 0, "{what}");
    }
}

fn a_silent_server_leaves_nothing_uncounted(kind: Kind) {
    for timeout_ns in [5 * S, 60 * MS] {
        let what = format!("a time-out of {timeout_ns} ns");
        let (run, served) = load(kind, "/never", |plan| {
            plan.timeout_ns = timeout_ns;
            plan.drain_limit_ns = 100 * MS;
            plan.workers = many(2);
            open(plan, even(1_000.0), 100_000);
        });
        let broken = broken(&run, &[]);
        assert!(broken.is_empty(), "{what}: {broken:#?}");
        expect_accounted(&run, &what);
        assert_eq!(served.replies, 0, "{what}");
        let (arrivals, population) = (run.summary().arrivals, run.summary().population);
        assert_eq!(arrivals.planned, 200, "{what}");
        assert_eq!(population.recorded, 0, "{what}");
        // Whatever became of them, none was answered, and that is not forgotten.
        assert_eq!(run.latencies.unfinished.count(), 200, "{what}");
        if timeout_ns == 5 * S {
            assert_eq!(run.summary().in_flight_at_end, 4, "{what}");
            assert_eq!(served.requests, 4, "{what}");
            assert_eq!(arrivals.skipped_late, 0, "{what}");
        } else {
            let timed_out = lifetime(&run).failures.get(FailureKind::TimedOut);
            assert!(
                timed_out > 4 && timed_out >= population.failed,
                "{what}: {timed_out}"
            );
        }
        let drain_ns = run.drain_ns_most();
        assert!(drain_ns <= (100 + 100) * MS, "{what}");
    }
}

fn beyond_the_queue_requests_are_skipped(kind: Kind) {
    let (run, served) = load(kind, "/never", |plan| {
        plan.drain_limit_ns = 50 * MS;
        plan.warmup_ns = 0;
        open(plan, even(1_000.0), 10);
    });
    expect_valid(&run, "a full queue");
    expect_accounted(&run, "a full queue");
    let arrivals = run.summary().arrivals;
    assert_eq!(served.requests, 4);
    assert_eq!(
        (arrivals.planned, arrivals.sent, arrivals.unsent),
        (200, 4, 10)
    );
    assert_eq!(arrivals.skipped_full, 186);
    assert_eq!(run.summary().population.censored, 4);
    assert_eq!(run.latencies.unfinished.count(), 200);
}

fn further_connections_are_opened_when_none_is_free(kind: Kind) {
    for (connections_max, opened) in [(4, 4..=4), (8, 8..=8), (200, 9..=30)] {
        let what = format!("at most {connections_max}");
        let (run, served) = load(kind, "/delay/50ms", |plan| {
            open(plan, even(200.0), 100_000);
            if let LoadModel::Open {
                connections_max: most,
                ..
            } = &mut plan.model
            {
                *most = many(connections_max);
            }
        });
        expect_all_answered(&run, served, &what);
        let connections = lifetime(&run).connections_opened;
        // 200 per second that take 50 ms each are 10 at once. A machine that is busy with other
        // things may need more; one that is not must not open them.
        let is_late = run.latencies.lag.max_ns() > Some(5 * MS);
        assert!(
            opened.contains(&connections) || is_late && connections <= u64::from(connections_max),
            "{what}: {connections} opened"
        );
    }
}

fn idle_connections_never_time_out(kind: Kind) {
    let (run, served) = load(kind, "/", |plan| {
        plan.connections = many(10);
        plan.timeout_ns = 100 * MS;
        plan.connect_timeout_ns = 100 * MS;
        plan.warmup_ns = 0;
        plan.stop.duration_ns = Some(400 * MS);
        open(plan, even(5.0), 100);
    });
    let arrivals = expect_all_answered(&run, served, "idle");
    assert_eq!(arrivals.planned, 2);
    assert_eq!(lifetime(&run).connections_opened, 10);
}

fn replaced_connections_lose_no_request(kind: Kind) {
    for (path, uses) in [("/", Some(3)), ("/", Some(1)), ("/close", None)] {
        let what = format!("{path}, {uses:?} requests per connection");
        let (run, served) = load(kind, path, |plan| {
            if let Some(uses) = uses {
                plan.reuse = Reuse::Requests(many_long(uses));
            }
            open(plan, even(1_000.0), 100_000);
        });
        let broken = broken(&run, &[]);
        assert!(broken.is_empty(), "{what}: {broken:#?}");
        expect_accounted(&run, &what);
        expect_equal_counts(&run, served, &what);
        assert_eq!(run.summary().population.recorded, 200, "{what}");
        assert_eq!(failures(&run), [], "{what}");
    }
}

fn resets_and_closes_are_accounted_for(kind: Kind) {
    for path in ["/reset", "/truncate/1k", "/random-close/30"] {
        let (run, served) = load(kind, path, |plan| {
            plan.warmup_ns = 0;
            open(plan, even(1_000.0), 100_000);
        });
        let broken = broken(&run, &[]);
        assert!(broken.is_empty(), "{path}: {broken:#?}");
        expect_accounted(&run, path);
        expect_equal_connections(&run, served, path);
        let population = run.summary().population;
        assert_eq!(population.issued, 200, "{path}");
        assert_eq!(population.recorded, served.replies, "{path}");
        assert_eq!(population.failed, 200 - served.replies, "{path}");
        assert!(population.failed > 20, "{path}");
    }
}

fn an_interrupt_leaves_nothing_uncounted(kind: Kind) {
    // Much waits when it comes: 4 connections carry some 400 per second of 2,000.
    let busy = SimServer {
        service: ServiceTime::Constant(10 * MS),
        ..SimServer::default()
    };
    let change = |plan: &mut Plan| {
        plan.stop.duration_ns = Some(20 * S);
        plan.drain_limit_ns = 50 * MS;
        plan.workers = many(2);
        open(plan, even(2_000.0), 50);
    };
    let (run, served) = if kind == Kind::Sim {
        let settings = SimSettings {
            interrupt_ns: Some(300 * MS),
            ..SimSettings::new(1)
        };
        simulated(settings, busy, change)
    } else {
        let serving = serve(kind);
        let mut plan = plan(&url(&serving, "/delay/10ms"), choice(kind));
        change(&mut plan);
        let prepared = prepare(plan).expect("a plan that fits");
        let control = prepared.control();
        let run = prepared.run(&control, true, &mut |_, progress: &Progress| {
            if progress.successes > 40 {
                control.interrupt();
            }
        });
        (run.expect("a run"), served(serving))
    };
    let broken = broken(&run, &[]);
    assert!(broken.is_empty(), "{broken:#?}");
    expect_accounted(&run, "interrupted");
    assert!(run.agents[0].interrupted);
    assert!(run.window_ns < 10 * S);
    let arrivals = run.summary().arrivals;
    assert!(
        arrivals.skipped_full > 0 && arrivals.planned > arrivals.sent,
        "{arrivals:?}"
    );
    assert_eq!(lifetime(&run).requests_sent, served.requests);
    // What was skipped cannot have waited for longer than the run lasted.
    let unfinished_ns = run.latencies.unfinished.max_ns().unwrap_or(0);
    let lasted_ns = run.window_ns + run.drain_ns_most();
    assert!(unfinished_ns <= lasted_ns, "{unfinished_ns} in {lasted_ns}");
}

/// The planned instants of one worker do not depend on how many connections it has.
#[test]
fn connections_change_no_planned_instant() {
    let planned = |connections: u32, stamps: Option<NonZeroU32>| {
        let (run, _) = simulated(SimSettings::new(1), SimServer::default(), |plan| {
            plan.connections = many(connections);
            plan.stamps = stamps.map_or(Stamps::Off, |_| Stamps::Full);
            open(plan, rate(ArrivalProcess::Poisson, 3_000.0), 100_000);
        });
        run.summary().arrivals.planned
    };
    assert_eq!(planned(1, None), planned(50, None));
    assert_eq!(planned(1, None), planned(7, Some(NonZeroU32::MIN)));
}

fn the_highest_rate_is_an_honest_overload(kind: Kind) {
    const PER_S: f64 = 10_000_000.0;
    let (run, served) = load(kind, "/", |plan| {
        open(plan, even(PER_S), 500);
        plan.drain_limit_ns = 10 * S;
    });
    let unexpected = broken(&run, &[]);
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    expect_accounted(&run, "the highest rate");
    expect_equal_counts(&run, served, "the highest rate");
    let summary = run.summary();
    // In 200 ms, on whatever machine.
    assert_eq!(summary.arrivals.planned, 2_000_000);
    assert_eq!(summary.arrivals_all.planned, 2_300_000);
    assert!(summary.arrivals.skipped_full > 1_000_000);
    assert!(summary.window.replies.successes() > 10);
}

#[test]
fn every_process_is_accounted_for_at_the_highest_rate() {
    for &process in ArrivalProcess::ALL {
        for requests in [None, Some(1_000_000)] {
            let server = SimServer {
                service: ServiceTime::Constant(MS),
                ..SimServer::default()
            };
            let (run, _) = simulated(SimSettings::new(1), server, |plan| {
                open(plan, rate(process, 10_000_000.0), 500);
                plan.stop.requests = requests;
            });
            expect_valid(&run, "the highest rate");
            expect_accounted(&run, "the highest rate");
            let planned = run.summary().arrivals.planned;
            match (requests, process) {
                (Some(requests), _) => assert_eq!(planned, requests),
                (None, ArrivalProcess::Poisson) => {
                    assert!(planned.abs_diff(2_000_000) < 10_000, "{planned}");
                }
                (None, _) => assert_eq!(planned, 2_000_000),
            }
        }
    }
}

#[test]
fn a_rate_that_no_worker_can_plan_is_refused() {
    for (workers, per_s, is_refused) in [
        (1, 10_000_000.0, false),
        (1, 10_000_001.0, true),
        (2, 20_000_000.0, false),
        (2, 1e9, true),
    ] {
        let mut plan = plan("http://simulated/", brunt_load::BackendChoice::Auto);
        plan.workers = many(workers);
        open(&mut plan, even(per_s), 10);
        let mut machine = SimMachine::new(SimSettings::new(1));
        let refusal = prepare_simulated(plan, &mut machine)
            .err()
            .map(|error| error.to_string());
        assert_eq!(refusal.is_some(), is_refused, "{refusal:?}");
        if let Some(refusal) = refusal {
            assert!(refusal.contains("more workers (-t)"), "{refusal}");
        }
    }
}
