//! Runs of several agents that share a plan out among them, merged, are the run of the whole plan.

use std::ops::Range;

use brunt_engine::prepare_simulated_part;
use brunt_judge::{InvariantStatus, Judged, Quantile, ResponseQuantiles, RunFigures};
use brunt_load::{
    ArrivalProcess, LoadModel, Part, Plan, RequestOrder, RequestSet, RequestSpec, Reuse, Schedule,
    Stage, Stamps, ThinkSpread,
};
use brunt_record::{AgentRecord, MergeError, Run};
use brunt_testkit::{ServiceTime, SimFaults, SimMachine, SimServer, SimSettings};

use super::plan;
use crate::common::{
    MS, S, US, connections_by_plan, many, many_long, requests_of, serving, simulate,
};

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
    closed.load.connections = many(8 * WORKERS);
    closed.workers.count = many(WORKERS);
    closed.load.stop.duration_ns = Some(S);
    closed.limits.timeout_ns = 200 * MS;
    closed.load.drain_limit_ns = 500 * MS;
    closed.observation.stamps = Stamps::Full;
    let mut thinking = closed.clone();
    thinking.traffic.think_time_ns = 3 * MS;
    thinking.traffic.think_spread = ThinkSpread::Exponential;
    thinking.traffic.think_seed = 5;
    let mut listed = closed.clone();
    let requests = (0..7)
        .map(|number| RequestSpec::get(&format!("/{number}")))
        .collect();
    let order = RequestOrder::Random { seed: 3 };
    listed.traffic.requests = RequestSet::of(requests, order).expect("a list");
    let open = |schedule: Schedule| {
        let mut open = closed.clone();
        open.load.model = requests_of(schedule, 12 * WORKERS, 1_000 * WORKERS);
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
    sessions.traffic.reuse = Reuse::Requests(many_long(5));
    connections_by_plan(
        &mut sessions,
        super::rate(ArrivalProcess::Poisson, 800.0, 7),
        1_000 * WORKERS,
    );
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

/// What the agent with these workers does of the plan.
fn part_of(plan: &Plan, workers: Range<u32>, settings: SimSettings) -> Run {
    let mut machine = SimMachine::new(settings);
    let part = Part::new(workers.start, many(workers.end - workers.start));
    let part = prepare_simulated_part(plan.clone(), Some(part), &mut machine);
    let part = part.expect("a plan that fits");
    let control = part.control();
    part.run_in(&mut machine, &control).expect("a run")
}

/// The plan shared out: an agent for each worker.
fn parts(plan: &Plan) -> Vec<Run> {
    let workers = 0..plan.workers.count.get();
    workers
        .map(|worker| part_of(plan, worker..worker + 1, settings()))
        .collect()
}

#[test]
fn four_merged_runs_are_one_run_of_the_same_workers() {
    for (what, plan) in plans() {
        let (whole, parts) = (whole(&plan), parts(&plan));
        for part in &parts {
            assert_eq!(part.plan.workers.count.get(), 1, "{what}");
            assert_eq!(part.check_sound(), Ok(()), "{what}");
            assert_eq!(part.part_of, Some(plan.amounts()), "{what}");
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
            if of_merged.id == "F2" {
                assert_eq!(of_merged.status, InvariantStatus::Held, "{what}");
                continue;
            }
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
    (plan.load.stop.duration_ns, plan.load.stop.requests) = (None, Some(1_003));
    let parts = parts(&plan);
    let shares = parts.iter().map(|part| part.plan.load.stop.requests);
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
    for (first, workers, last) in [(3, 2, 4), (4, 1, 4), (0, 5, 4), (u32::MAX, 1, u32::MAX - 1)] {
        let mut machine = SimMachine::new(settings());
        let part = Some(Part::new(first, many(workers)));
        let refused = prepare_simulated_part(plan.clone(), part, &mut machine).map(drop);
        let error = refused.expect_err("it has none").to_string();
        let words = format!("a plan of {WORKERS} workers has no workers up to number {last}");
        assert_eq!(error, words, "{first}, {workers}");
    }
}

/// Agents need not have as many workers each, nor come in order; rates that no sum of shares gives
/// exactly are those of the plan all the same.
#[test]
fn uneven_parts_are_one_run_in_any_order() {
    for (what, mut plan) in plans() {
        plan.workers.count = many(7);
        plan.load.connections = many(53);
        if let LoadModel::Open { schedule, .. } | LoadModel::Sessions { schedule, .. } =
            &mut plan.load.model
            && schedule.rate_per_s().is_some()
        {
            let rate = Schedule::constant_rate(schedule.process(), 1_000.1, schedule.seed());
            *schedule = rate.expect("a rate");
        }
        let whole = whole(&plan);
        let [first, second, third] =
            [0..1, 1..4, 4..7].map(|workers| part_of(&plan, workers, settings()));
        let two = Run::merge(vec![third, first]).expect("runs of one plan");
        assert_eq!(two.check_sound(), Ok(()), "{what}");
        assert_eq!(two.part_of, Some(plan.amounts()), "{what}");
        let merged = Run::merge(vec![two, second]).expect("runs of one plan");
        assert_eq!(merged.check_sound(), Ok(()), "{what}");
        assert_eq!(
            (&merged.plan, &merged.part_of),
            (&whole.plan, &None),
            "{what}"
        );
        assert_eq!(merged.latencies, whole.latencies, "{what}");
        let summaries = [&merged, &whole].map(|run| run.summary());
        assert_eq!(summaries[0].window, summaries[1].window, "{what}");
        assert_eq!(summaries[0].population, summaries[1].population, "{what}");
        assert_eq!(summaries[0].arrivals, summaries[1].arrivals, "{what}");
    }
}

/// How invariant F2 stands.
fn completeness(run: &Run) -> (InvariantStatus, String) {
    let findings = Judged::of(run).findings;
    let found = findings.into_iter().find(|finding| finding.id == "F2");
    let found = found.expect("it is checked");
    (found.status, found.detail)
}

#[test]
fn a_part_that_is_missing_is_named() {
    let (_, plan) = plans().swap_remove(0);
    assert_eq!(
        completeness(&whole(&plan)).0,
        InvariantStatus::NotApplicable
    );
    let mut parts = parts(&plan);
    let (status, detail) = completeness(&parts[1]);
    assert_eq!(status, InvariantStatus::NotApplicable);
    assert!(detail.contains("without 0, 2, 3"), "{detail}");
    let again = Run::merge(vec![parts[1].clone(), part_of(&plan, 0..2, settings())]);
    let twice = MergeError::SameWorker {
        worker: 1,
        first: 0,
        second: 1,
    };
    assert_eq!(again.map(drop), Err(twice));
    parts.remove(2);
    let merged = Run::merge(parts).expect("runs of one plan");
    let (status, detail) = completeness(&merged);
    assert_eq!(status, InvariantStatus::Broken);
    assert!(detail.contains("without 2"), "{detail}");
    assert_eq!(merged.plan.workers.count, many(3));
}

#[test]
fn parts_of_other_plans_are_refused() {
    let (_, plan) = plans().swap_remove(4);
    let first = part_of(&plan, 0..1, settings());
    let mut faster = plan.clone();
    faster.load.connections = many(9 * WORKERS);
    let mut of_other_seed = plan.clone();
    if let LoadModel::Open { schedule, .. } = &mut of_other_seed.load.model {
        let rate = Schedule::constant_rate(ArrivalProcess::Poisson, 8_000.0, 8);
        *schedule = rate.expect("a rate");
    }
    let [faster, of_other_seed] =
        [faster, of_other_seed].map(|plan| part_of(&plan, 1..2, settings()));
    for (other, what) in [
        (whole(&plan), "the plan that it is a part of"),
        (faster, "the plan that it is a part of"),
        (of_other_seed, "the seed of a part"),
    ] {
        match Run::merge(vec![first.clone(), other]) {
            Err(MergeError::Differs { field, .. }) => assert_eq!(field, what),
            other => panic!("{what}: {:?}", other.map(drop)),
        }
    }
}

/// Where one agent has the slow path to a server, few requests go over it: the quantiles of all are
/// far from the mean of the agents' quantiles.
#[test]
fn quantiles_are_those_of_all_requests() {
    let (_, mut plan) = plans().swap_remove(0);
    plan.workers.count = many(2);
    plan.load.connections = many(8);
    plan.load.stop.duration_ns = Some(4 * S);
    plan.limits.timeout_ns = S;
    let at = |ns| serving(|server| server.service = ServiceTime::Constant(ns));
    let slow = part_of(&plan, 1..2, at(200 * MS));
    let runs = vec![part_of(&plan, 0..1, at(MS)), slow];
    let p99 = |run: &Run| match run.response_quantile(0.99) {
        Quantile::Known { ns, .. } => ns as f64,
        other => panic!("{other:?}"),
    };
    let slow_ns = runs[1].latencies.response.max_ns().unwrap_or(0);
    let each = [p99(&runs[0]), slow_ns as f64];
    let averaged = (each[0] + each[1]) / 2.0;
    let all = p99(&Run::merge(runs).expect("runs of one plan"));
    assert!((all / each[0] - 1.0).abs() < 0.02, "{all} {each:?}");
    assert!(averaged > 10.0 * all, "{all} {each:?}");
}
