//! Runs of several agents that share a plan out among them, merged, are the run of the whole plan.

use brunt_engine::prepare_simulated;
use brunt_judge::{InvariantStatus, Judged, RunFigures};
use brunt_load::{
    ArrivalProcess, LoadModel, Plan, RequestOrder, RequestSet, RequestSpec, Reuse, Schedule, Stage,
    Stamps, ThinkSpread,
};
use brunt_record::{AgentRecord, MergeError, Run};
use brunt_sim::{ServiceTime, SimFaults, SimMachine, SimServer, SimSettings};

use super::plan;
use crate::common::{MS, S, US, many, many_long, simulate};

const WORKERS: u32 = 4;

/// A server whose answers are drawn: their times, and what becomes of them.
fn settings() -> SimSettings {
    let mut settings = SimSettings::new(11);
    settings.server = SimServer {
        service: ServiceTime::Exponential { mean_ns: 700 * US },
        faults: SimFaults {
            error_status: 0.05,
            reset: 0.01,
            silent: 0.002,
            ..SimFaults::default()
        },
        ..SimServer::default()
    };
    settings
}

/// Plans of every kind, by name.
fn plans() -> Vec<(&'static str, Plan)> {
    let mut closed = plan();
    closed.connections = many(8 * WORKERS);
    closed.workers = many(WORKERS);
    closed.stop.duration_ns = Some(S);
    closed.timeout_ns = 200 * MS;
    closed.drain_limit_ns = 500 * MS;
    closed.stamps = Stamps::Full;
    let mut thinking = closed.clone();
    thinking.think_time_ns = 3 * MS;
    thinking.think_spread = ThinkSpread::Exponential;
    thinking.think_seed = 5;
    let mut listed = closed.clone();
    let requests = (0..7)
        .map(|number| RequestSpec::get(&format!("/{number}")))
        .collect();
    let order = RequestOrder::Random { seed: 3 };
    listed.requests = RequestSet::of(requests, order).expect("a list");
    let open = |schedule: Schedule| {
        let mut open = closed.clone();
        open.model = LoadModel::Open {
            schedule,
            connections_max: many(12 * WORKERS),
            queue_max: many(1_000 * WORKERS),
        };
        open
    };
    let rate = |process| Schedule::constant_rate(process, 8_000.0, 7).expect("a rate");
    let stage = |from_per_s, to_per_s| Stage {
        duration_ns: S / 2,
        from_per_s,
        to_per_s,
    };
    let stages = vec![stage(1_000.0, 9_000.0), stage(9_000.0, 9_000.0)];
    let staged = Schedule::staged(ArrivalProcess::Uniform, stages, 7).expect("stages");
    let mut sessions = closed.clone();
    sessions.reuse = Reuse::Requests(many_long(5));
    sessions.model = LoadModel::Sessions {
        schedule: Schedule::constant_rate(ArrivalProcess::Poisson, 800.0, 7).expect("a rate"),
        queue_max: many(1_000 * WORKERS),
    };
    vec![
        ("closed", closed.clone()),
        ("thinking", thinking),
        ("listed", listed),
        ("even", open(rate(ArrivalProcess::Constant))),
        ("poisson", open(rate(ArrivalProcess::Poisson))),
        ("staged", open(staged)),
        ("sessions", sessions),
    ]
}

/// The whole plan in one process.
fn whole(plan: &Plan) -> Run {
    simulate(plan.clone(), &settings()).expect("a run").0
}

/// The plan shared out: an agent for each worker.
fn parts(plan: &Plan) -> Vec<Run> {
    (0..WORKERS)
        .map(|worker| {
            let mut machine = SimMachine::new(settings());
            let prepared = prepare_simulated(plan.clone(), &mut machine);
            let prepared = prepared.expect("a plan that fits");
            let part = prepared.only_workers(worker..worker + 1);
            let part = part.expect("a worker of it");
            let control = part.control();
            part.run(&mut machine, &control).expect("a run")
        })
        .collect()
}

#[test]
fn four_merged_runs_are_one_run_of_the_same_workers() {
    for (what, plan) in plans() {
        let (whole, parts) = (whole(&plan), parts(&plan));
        for part in &parts {
            assert_eq!(part.plan.workers.get(), 1, "{what}");
            assert_eq!(part.check_sound(), Ok(()), "{what}");
        }
        let merged = Run::merge(parts).expect("runs of one plan");
        // Every bucket of every histogram, every interval, every stage.
        assert_eq!(merged.latencies, whole.latencies, "{what}");
        assert!(whole.latencies.response.count() > 500, "{what}");
        assert_eq!(merged.names, whole.names, "{what}");
        assert_eq!(merged.names.is_empty(), what != "listed");
        assert_eq!(merged.plan, whole.plan, "{what}");
        assert_eq!(merged.window_ns, whole.window_ns, "{what}");
        assert_eq!(
            merged.expected_arrivals(),
            whole.expected_arrivals(),
            "{what}"
        );
        // Every counter, point of a series and kind of failure, worker by worker.
        let mut of_merged: Vec<_> = merged.workers().cloned().collect();
        of_merged.sort_by_key(|worker| worker.worker);
        for (of_merged, of_whole) in of_merged.iter().zip(whole.workers()) {
            assert_eq!(of_merged.worker, of_whole.worker, "{what}");
            assert_eq!(of_merged.tallies, of_whole.tallies, "{what}");
            assert_eq!(of_merged.population, of_whole.population, "{what}");
            assert_eq!(of_merged.arrivals, of_whole.arrivals, "{what}");
            assert_eq!(of_merged.arrivals_all, of_whole.arrivals_all, "{what}");
            assert_eq!(of_merged.series, of_whole.series, "{what}");
            assert_eq!(of_merged.live, of_whole.live, "{what}");
        }
        assert_eq!(of_merged.len(), WORKERS as usize);
        let (merged, whole) = (Judged::of(&merged), Judged::of(&whole));
        assert_eq!(merged.summary, whole.summary, "{what}");
        for (of_merged, of_whole) in merged.findings.iter().zip(&whole.findings) {
            assert_ne!(
                of_merged.status,
                InvariantStatus::Broken,
                "{what}: {of_merged:?}"
            );
            assert_eq!(of_merged.status, of_whole.status, "{what}: {of_merged:?}");
        }
        assert_eq!(merged.judgement.verdict, whole.judgement.verdict, "{what}");
    }
}

#[test]
fn a_run_by_count_is_shared_out() {
    let (_, mut plan) = plans().swap_remove(0);
    (plan.stop.duration_ns, plan.stop.requests) = (None, Some(1_003));
    let parts = parts(&plan);
    let shares = parts.iter().map(|part| part.plan.stop.requests);
    assert_eq!(shares.sum::<Option<u64>>(), Some(1_003));
    let issued = parts.iter().map(|part| part.summary().population.issued);
    assert_eq!(issued.sum::<u64>(), 1_003);
}

#[test]
fn the_same_simulation_is_the_same_agent() {
    let (_, plan) = plans().swap_remove(0);
    let id = |run: &Run| {
        run.agents
            .iter()
            .map(|agent: &AgentRecord| agent.id.clone())
            .collect::<Vec<_>>()
    };
    let (once, again) = (whole(&plan), whole(&plan));
    assert_eq!(id(&once), id(&again));
    let error = Run::merge(vec![once, again]).map(drop);
    assert!(
        matches!(error, Err(MergeError::SameAgent { .. })),
        "{error:?}"
    );
    let ids: std::collections::BTreeSet<_> = parts(&plan).iter().flat_map(id).collect();
    assert_eq!(ids.len(), WORKERS as usize);
}

#[test]
fn a_plan_has_no_other_workers_than_its_own() {
    let (_, plan) = plans().swap_remove(0);
    for workers in [0..0, 2..2, 3..5, 4..5] {
        let mut machine = SimMachine::new(settings());
        let prepared = prepare_simulated(plan.clone(), &mut machine);
        let part = prepared
            .expect("a plan that fits")
            .only_workers(workers.clone());
        assert!(part.is_none(), "{workers:?}");
    }
}
