//! The diagnosis of simulated runs, whose limits are known.

use std::num::NonZeroU32;

use brunt_engine::{Phase, Progress, Rounds, prepare_simulated};
use brunt_experiment::{Diagnose, DiagnoseError};
use brunt_load::{Plan, RequestSet, RequestSpec, Round, Stop, Target};
use brunt_record::{Diagnosis, Run};
use brunt_testkit::{Costs, ServiceTime, SimMachine, SimServer, SimSettings};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn plan() -> Plan {
    let target = Target::parse("http://simulated/", None).expect("a URL");
    let requests = RequestSet::one(RequestSpec::get(&target.path));
    let mut plan = Plan::new(target, requests);
    plan.connections = NonZeroU32::new(8).expect("some");
    plan.stop.duration_ns = Some(S);
    plan.warmup_ns = 100 * MS;
    plan
}

fn in_session<T>(plan: Plan, settings: &SimSettings, body: impl FnOnce(&mut dyn Rounds) -> T) -> T {
    let mut machine = SimMachine::new(settings.clone());
    let prepared = prepare_simulated(plan, &mut machine).expect("a plan that fits");
    let control = prepared.control();
    body(&mut prepared.open(&mut machine, &control))
}

fn run(plan: &Plan, settings: &SimSettings) -> Run {
    let round = Round::of(plan);
    in_session(plan.clone(), settings, |session| {
        session.round(&round, &mut |_: Phase, _: &Progress| {})
    })
    .expect("a run")
}

fn diagnosed(plan: Plan, settings: &SimSettings) -> Diagnosis {
    let run = run(&plan, settings);
    let diagnose = Diagnose::of(&run, plan).expect("a run to be diagnosed");
    in_session(diagnose.plan().clone(), settings, |session| {
        diagnose.measure(session, &mut |_: Phase, _: &Progress| {})
    })
    .expect("a diagnosis")
}

fn server_of(places: Option<u32>) -> SimSettings {
    let server = SimServer {
        service: ServiceTime::Constant(MS),
        concurrency: places.and_then(NonZeroU32::new),
        ..SimServer::default()
    };
    SimSettings {
        server,
        ..SimSettings::new(1)
    }
}

#[test]
fn a_server_without_a_limit_grows_with_the_connections() {
    let diagnosis = diagnosed(plan(), &server_of(None));
    let elasticity = brunt_judge::connections_elasticity(&diagnosis).expect("two numbers");
    assert!((0.95..=1.05).contains(&elasticity.value), "{elasticity:?}");
}

#[test]
fn a_server_at_its_limit_does_not() {
    let diagnosis = diagnosed(plan(), &server_of(Some(2)));
    let elasticity = brunt_judge::connections_elasticity(&diagnosis).expect("two numbers");
    assert!(elasticity.value.abs() < 0.05, "{elasticity:?}");
}

#[test]
fn work_added_to_a_busy_client_shows_in_full() {
    let mut settings = server_of(None);
    settings.host = Some(Default::default());
    settings.costs = Costs {
        send_ns: 300 * US,
        ..Costs::NONE
    };
    let mut many = plan();
    many.connections = NonZeroU32::new(32).expect("some");
    let diagnosis = diagnosed(many, &settings);
    let effect = brunt_judge::delay_effect(&diagnosis).expect("parts with work");
    assert!((0.8..=1.2).contains(&effect.value), "{effect:?}");
    let elasticity = brunt_judge::connections_elasticity(&diagnosis).expect("two numbers");
    assert!(elasticity.value.abs() < 0.1, "{elasticity:?}");
}

#[test]
fn what_cannot_be_diagnosed_is_refused() {
    let mut failing = server_of(None);
    failing.server.faults.error_status = 1.0;
    let of_errors = run(&plan(), &failing);
    assert!(matches!(
        Diagnose::of(&of_errors, plan()),
        Err(DiagnoseError::Run(_))
    ));
    let mut slow = server_of(None);
    slow.server.service = ServiceTime::Constant(5 * S);
    let mut patient = plan();
    patient.stop = Stop {
        duration_ns: Some(20 * S),
        requests: None,
    };
    let refusal = Diagnose::of(&run(&patient, &slow), patient).expect_err("too slow");
    assert!(
        refusal.to_string().contains("60 s is the most"),
        "{refusal}"
    );
}
