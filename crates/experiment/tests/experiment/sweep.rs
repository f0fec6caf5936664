//! A sweep of a simulated server, whose scaling is known.

use std::num::NonZeroU32;

use brunt_engine::{Phase, Progress, Rounds, prepare_simulated};
use brunt_experiment::{SweepCourse, make_rounds};
use brunt_judge::{SweepAxis, SweepPlan};
use brunt_load::{Plan, RequestSet, RequestSpec, Target};
use brunt_record::Environment;
use brunt_testkit::{SimMachine, SimSettings};

const MS: u64 = 1_000_000;

#[test]
fn nothing_limits_a_server_but_its_connections() {
    let target = Target::parse("http://simulated/", None).expect("a URL");
    let requests = RequestSet::one(RequestSpec::get(&target.path));
    let mut plan = Plan::new(target, requests);
    plan.load.connections = NonZeroU32::new(64).expect("some");
    plan.load.stop.duration_ns = Some(200 * MS);
    plan.load.warmup_ns = 100 * MS;
    let planned = SweepPlan {
        url: plan.target.url.clone(),
        varied: SweepAxis::Connections,
        values: [1, 2, 4, 8, 16, 32, 64].map(f64::from).to_vec(),
        rounds: 6,
        seed: Some(3),
        window_ns: plan.load.stop.duration_ns,
        warmup_ns: 0,
        round_warmup_ns: plan.load.warmup_ns,
    };
    let mut machine = SimMachine::new(SimSettings::new(1));
    let prepared = prepare_simulated(plan.clone(), &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let mut session = prepared.open_in(&mut machine, &control);
    let mut course = SweepCourse::new(plan, planned, Environment::default());
    let ignore = &mut |_: Phase, _: &Progress| {};
    let measured = make_rounds(&mut course, &|| 0, &mut |next| {
        session.round(&next.plan.load, ignore)
    });
    measured.expect("rounds");
    let rounds = course.finish().rounds;
    assert_eq!(rounds.len(), 42);
    let rate = |value: f64| {
        let rounds = rounds.iter().filter(|round| round.value == value);
        let rates = rounds.filter_map(|round| round.record.successes_per_s);
        rates.sum::<f64>() / 6.0
    };
    // 64 connections have 64 times the rate of one.
    let times = rate(64.0) / rate(1.0);
    assert!((times / 64.0 - 1.0).abs() < 0.05, "{times}");
}
