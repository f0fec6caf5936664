//! The capacity of simulated servers, which is known.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_engine::{Phase, Progress, Rounds, prepare_simulated};
use brunt_experiment::{SearchCourse, capacity_plan, make_rounds};
use brunt_judge::{CapacityEnd, CapacityOutcome, CapacityResult, CapacityStep, Verdict};
use brunt_load::{ArrivalProcess, LoadModel, Plan, RequestSet, RequestSpec, Schedule, Target};
use brunt_record::{Environment, Objective};
use brunt_testkit::{Costs, LateWakeUps, ServiceTime, SimMachine, SimServer, SimSettings, Stall};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const MOST_PER_S: f64 = 100_000.0;
const BUDGET_NS: u64 = 180 * S;

fn plan(process: ArrivalProcess, seed: u64) -> Plan {
    let target = Target::parse("http://simulated/", None).expect("a URL");
    let requests = RequestSet::one(RequestSpec::get(&target.path));
    let mut plan = Plan::new(target, requests);
    plan.load.connections = NonZeroU32::new(64).expect("some");
    plan.load.model = LoadModel::Open {
        schedule: Schedule::constant_rate(process, MOST_PER_S, seed).expect("a rate"),
        connections_max: NonZeroU32::new(256).expect("some"),
        queue_max: NonZeroU32::new(1_000_000).expect("some"),
    };
    plan.load.stop.duration_ns = Some(2 * S);
    plan.load.warmup_ns = 200 * MS;
    plan
}

/// A server with one worker that takes the same time for each request.
fn server(service_ns: u64, seed: u64) -> SimSettings {
    SimSettings {
        server: SimServer {
            service: ServiceTime::Constant(service_ns),
            concurrency: NonZeroU32::new(1),
            ..SimServer::default()
        },
        ..SimSettings::new(seed)
    }
}

fn p99_below(ms: u64) -> Vec<Objective> {
    vec![Objective::ResponseQuantile {
        q: 0.99,
        below_ns: ms * MS,
    }]
}

fn found(
    plan: Plan,
    settings: &SimSettings,
    objectives: Vec<Objective>,
) -> (CapacityResult, Vec<CapacityStep>) {
    let (result, steps) = found_within(plan, settings, objectives, BUDGET_NS);
    assert!(took_ns(&steps) <= BUDGET_NS, "{:#?}", shown(&steps));
    (result, steps)
}

fn took_ns(steps: &[CapacityStep]) -> u64 {
    steps.iter().map(|step| step.took_ns).sum()
}

fn found_within(
    plan: Plan,
    settings: &SimSettings,
    objectives: Vec<Objective>,
    budget_ns: u64,
) -> (CapacityResult, Vec<CapacityStep>) {
    let mut machine = SimMachine::new(settings.clone());
    let prepared = prepare_simulated(plan.clone(), &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let mut session = prepared.open_in(&mut machine, &control);
    let wanted = capacity_plan(&plan, objectives, None, MOST_PER_S, budget_ns);
    let mut course = SearchCourse::new(plan, wanted, Environment::default());
    let ignore = &mut |_: Phase, _: &Progress| {};
    let measured = make_rounds(&mut course, &|| 0, &mut |next| {
        session.round(&next.plan.load, ignore)
    });
    measured.expect("rounds");
    let found = course.finish();
    (found.result(), found.steps)
}

fn shown(steps: &[CapacityStep]) -> Vec<String> {
    let steps = steps.iter();
    steps
        .map(|step| {
            format!(
                "{:?} {:.1} {:?} {} ({:.1} s)",
                step.stage,
                step.rate_per_s,
                step.outcome,
                step.because,
                step.took_ns as f64 / 1e9
            )
        })
        .collect()
}

#[test]
fn a_fixed_service_time_is_found_within_three_percent() {
    for (seed, service_us) in [(1, 1_000), (2, 1_000), (3, 400), (4, 2_500), (5, 700)] {
        let capacity_per_s = 1e6 / service_us as f64;
        let plan = plan(ArrivalProcess::Constant, seed);
        let (result, steps) = found(plan, &server(service_us * US, seed), p99_below(50));
        assert_eq!(result.end, CapacityEnd::Found, "{:#?}", shown(&steps));
        let rate_per_s = result.met_per_s.expect("a rate");
        assert!(steps.len() <= 23, "{seed}: {:#?}", shown(&steps));
        // With the upper end measured for longer four times.
        assert!(took_ns(&steps) <= 180 * S, "{seed}: {:#?}", shown(&steps));
        let off = rate_per_s / capacity_per_s - 1.0;
        assert!(
            off.abs() <= 0.03,
            "{seed}: {rate_per_s} {:#?}",
            shown(&steps)
        );
    }
}

#[test]
fn random_arrivals_wait_so_that_less_is_sustained() {
    // M/D/1 with a service time of 1 ms: p99 of the response time reaches 10 ms at a load of some
    // 0.81, by the queue's own law (waiting times beyond 9 ms with a probability of 1 %).
    let plan = plan(ArrivalProcess::Poisson, 7);
    let (result, steps) = found(plan, &server(MS, 7), p99_below(10));
    // Replies that wait together are alike, so that windows are long: the budget may end with the
    // two rates that are known.
    let ended = [CapacityEnd::Found, CapacityEnd::Bracket];
    let rates = result.met_per_s.zip(result.missed_per_s);
    let is_near =
        rates.is_some_and(|(met, missed)| (650.0..850.0).contains(&met) && missed < 1.12 * met);
    let context = format!("{result:?} {:#?}", shown(&steps));
    assert!(is_near && ended.contains(&result.end), "{context}");
}

#[test]
fn an_objective_below_the_service_time_is_impossible_after_few_steps() {
    for (service_ms, limit_ms) in [(60, 50), (20, 10), (3_000, 500)] {
        let plan = plan(ArrivalProcess::Constant, 1);
        let objectives = p99_below(limit_ms);
        let (result, steps) = found(plan, &server(service_ms * MS, 1), objectives);
        let context = format!("{service_ms}: {result:?} {:#?}", shown(&steps));
        assert_eq!(result.end, CapacityEnd::Impossible, "{context}");
        assert_eq!(result.missed_per_s, Some(1.0), "{context}");
        assert!(steps.len() == 3 && took_ns(&steps) < 20 * S, "{context}");
    }
}

#[test]
fn what_takes_one_request_at_a_time_is_not_impossible() {
    // At 10 requests/s it falls behind, at 1 it does not: but there is no time to measure a p99.
    let plan = plan(ArrivalProcess::Constant, 1);
    let (result, steps) = found(plan, &server(150 * MS, 1), p99_below(200));
    assert_eq!(result.end, CapacityEnd::NotMet, "{:#?}", shown(&steps));
}

#[test]
fn what_no_rate_misses_holds_up_to_the_highest() {
    let mut settings = server(1, 1);
    settings.server.concurrency = None;
    let mut plan = plan(ArrivalProcess::Constant, 1);
    plan.load.stop.duration_ns = Some(500 * MS);
    let (result, steps) = found(plan, &settings, p99_below(50));
    assert_eq!(result.end, CapacityEnd::AtLeast, "{:#?}", shown(&steps));
    assert_eq!(result.met_per_s, Some(MOST_PER_S));
}

#[test]
fn a_budget_ends_a_search_with_the_best_that_is_known() {
    for budget_s in [12, 20, 30] {
        let plan = plan(ArrivalProcess::Constant, 1);
        let settings = server(700 * US, 1);
        let (result, steps) = found_within(plan, &settings, p99_below(50), budget_s * S);
        let context = format!("{budget_s}: {result:?} {:#?}", shown(&steps));
        assert!(took_ns(&steps) <= budget_s * S, "{context}");
        assert_eq!(result.end, CapacityEnd::Bracket, "{context}");
        let (met, missed) = (result.met_per_s, result.missed_per_s);
        let is_right = met.is_none_or(|met| met <= 1.01 * 1e6 / 700.0);
        assert!(is_right && missed >= Some(0.98 * 1e6 / 700.0), "{context}");
        assert!(budget_s < 20 || met.is_some(), "{context}");
    }
}

#[test]
fn every_step_that_does_not_hold_says_why() {
    let plan = plan(ArrivalProcess::Poisson, 11);
    let (_, steps) = found(plan, &server(MS, 11), p99_below(10));
    for step in &steps {
        let is_said = !step.because.is_empty() || step.objectives.iter().any(|found| !found.is_met);
        let is_met = step.outcome == CapacityOutcome::Met;
        assert!(is_met || is_said, "{:#?}", shown(&steps));
    }
}

#[test]
fn a_client_that_is_the_limit_is_not_the_server() {
    let mut settings = server(10 * US, 1);
    settings.host = Some(Default::default());
    settings.costs = Costs {
        send_ns: 400 * US,
        ..Costs::NONE
    };
    let plan = plan(ArrivalProcess::Constant, 1);
    let (result, steps) = found(plan, &settings, p99_below(50));
    let ended = CapacityEnd::ClientLimited;
    assert_eq!(result.end, ended, "{:#?}", shown(&steps));
}

#[test]
fn a_client_that_is_late_at_the_median_is_not_the_limit_of_p99() {
    // Its wake-ups are late, by a large share of the median. But p99 is that of a server that
    // stands still for 20 ms of each second.
    let mut settings = server(200 * US, 5);
    settings.server.concurrency = None;
    settings.server.stall = Some(Stall {
        silence_ns: 20 * MS,
        period_ns: NonZeroU64::new(S).expect("some"),
    });
    settings.late_wake_ups = Some(LateWakeUps {
        probability: 0.6,
        delay_ns: 300 * US,
    });
    let plan = plan(ArrivalProcess::Poisson, 5);
    let (result, steps) = found(plan, &settings, p99_below(5));
    let context = format!("{result:?} {:#?}", shown(&steps));
    let is_late = |step: &CapacityStep| step.record.verdict == Verdict::ClientLimited;
    assert!(steps.iter().any(is_late), "{context}");
    let of_brunt = |step: &CapacityStep| step.outcome == CapacityOutcome::ClientLimited;
    assert!(!steps.iter().any(of_brunt), "{context}");
    assert_eq!(result.end, CapacityEnd::NotMet, "{context}");
}
