//! Planned requests and connections on every backend: each has one outcome, and the server saw
//! those that were sent. What they meet, and how long they took, is the simulation's to show.

use brunt_engine::prepare_simulated;
use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, BackendChoice, Plan, Reuse, Schedule, Spin, Stamps};
use brunt_record::Run;
use brunt_testkit::{ServiceTime, SimMachine, SimSettings};

use crate::common::{
    Kind, MS, connections_by_plan, expect_faultless, expect_valid, load, many, many_long,
    on_every_backend, plan, rate_for, requests_by_plan, serving, simulated,
};

on_every_backend! {
    every_planned_request_is_sent_once,
    each_planned_connection_is_opened_once_and_carries_its_requests,
}

/// Requests at `schedule`, in place of the closed loop.
fn open(plan: &mut Plan, schedule: Schedule, queue_max: u32) {
    requests_by_plan(plan, schedule, queue_max);
    // Those of others who share the CPUs come first.
    plan.workers.spin = Spin::Off;
}

fn rate(process: ArrivalProcess, rate_per_s: f64) -> Schedule {
    Schedule::constant_rate(process, rate_per_s, 11).expect("a rate")
}

fn even(rate_per_s: f64) -> Schedule {
    rate(ArrivalProcess::Constant, rate_per_s)
}

/// Refuses a run that is broken, or in which an arrival has no outcome, or two.
fn expect_accounted(run: &Run, what: &str) {
    expect_valid(run, what);
    let summary = run.summary();
    for arrivals in [summary.arrivals, summary.arrivals_all] {
        let ended = arrivals.sent + arrivals.skipped_full + arrivals.skipped_late + arrivals.unsent;
        assert_eq!(arrivals.planned, ended, "{what}: {arrivals:?}");
    }
    let population = summary.population;
    let ended = population.recorded + population.failed + population.censored;
    assert_eq!(population.issued, ended, "{what}: {population:?}");
}

/// Refuses one, too, in which planned requests are not those that were sent and timed.
fn expect_sent_once(run: &Run, what: &str) {
    expect_accounted(run, what);
    let summary = run.summary();
    let issued = [summary.population.issued, summary.lifetime.requests_sent];
    assert_eq!([summary.arrivals.sent, summary.arrivals_all.sent], issued);
    let latencies = &run.latencies;
    assert_eq!(latencies.service.count(), latencies.response.count());
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
            plan.load.connections = many(connections);
            plan.workers.count = many(workers);
            plan.observation.stamps = stamps;
            open(plan, rate(process, 2_000.0), 100_000);
        });
        expect_faultless(&run, served, &what);
        expect_sent_once(&run, &what);
        let (summary, arrivals) = (run.summary(), run.summary().arrivals);
        assert_eq!(arrivals.sent, arrivals.planned, "{what}");
        assert_eq!(summary.population.recorded, arrivals.planned, "{what}");
        match process {
            // 2,000 per second for 200 ms, and 30 ms before.
            ArrivalProcess::Constant => {
                let planned = (arrivals.planned, summary.arrivals_all.planned);
                assert_eq!(planned, (400, 460), "{what}");
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

fn each_planned_connection_is_opened_once_and_carries_its_requests(kind: Kind) {
    for (requests, workers, think_time_ns) in [(1, 1, 0), (4, 2, 0), (3, 1, 5 * MS)] {
        let what = format!("{requests} requests");
        let (run, served) = load(kind, "/bytes/10", |plan| {
            plan.load.connections = many(100);
            plan.workers.count = many(workers);
            plan.traffic.think_time_ns = think_time_ns;
            plan.load.warmup_ns = 0;
            plan.load.stop.duration_ns = Some(600 * MS);
            plan.traffic.reuse = Reuse::Requests(many_long(requests));
            // All are done by the end of the window.
            connections_by_plan(plan, rate_for(150 * MS, 200.0), 100_000);
        });
        expect_faultless(&run, served, &what);
        expect_accounted(&run, &what);
        let (summary, latencies) = (run.summary(), &run.latencies);
        assert_eq!(summary.arrivals.planned, 30, "{what}");
        assert_eq!(summary.lifetime.connections_opened, 30, "{what}");
        assert_eq!(served.connections, 30, "{what}");
        assert_eq!(summary.population.recorded, 30 * requests, "{what}");
        let (connect, first_reply) = (&latencies.connect, &latencies.first_reply);
        assert_eq!((connect.count(), first_reply.count()), (30, 30), "{what}");
        // To connect is a part of it.
        assert!(first_reply.min_ns() >= connect.min_ns(), "{what}");
        assert_eq!(summary.live.min, 0, "{what}");
    }
}

/// The planned instants of one worker do not depend on how many connections it has.
#[test]
fn connections_change_no_planned_instant() {
    let planned = |connections: u32, stamps: Stamps| {
        let (run, _) = simulated(SimSettings::new(1), |plan| {
            plan.load.connections = many(connections);
            plan.observation.stamps = stamps;
            open(plan, rate(ArrivalProcess::Poisson, 3_000.0), 100_000);
        });
        run.summary().arrivals.planned
    };
    assert_eq!(planned(1, Stamps::Off), planned(50, Stamps::Off));
    assert_eq!(planned(1, Stamps::Off), planned(7, Stamps::Full));
}

#[test]
fn every_process_is_accounted_for_at_the_highest_rate() {
    for &process in ArrivalProcess::ALL {
        for requests in [None, Some(1_000_000)] {
            let settings = serving(|server| server.service = ServiceTime::Constant(MS));
            let (run, _) = simulated(settings, |plan| {
                open(plan, rate(process, 10_000_000.0), 500);
                plan.load.stop.requests = requests;
            });
            expect_sent_once(&run, "the highest rate");
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
        let mut plan = plan("http://simulated/", BackendChoice::Auto);
        plan.workers.count = many(workers);
        open(&mut plan, even(per_s), 10);
        let mut machine = SimMachine::new(SimSettings::new(1));
        let refusal = prepare_simulated(plan, &mut machine).err();
        let refusal = refusal.map(|error| error.to_string());
        assert_eq!(refusal.is_some(), is_refused, "{refusal:?}");
        assert!(refusal.is_none_or(|words| words.contains("more workers (-t)")));
    }
}
