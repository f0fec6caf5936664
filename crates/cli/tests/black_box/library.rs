//! A plan that a program made by itself: the run holds what `brunt -o` stores of the same load.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_engine::Origin;
use brunt_load::{ArrivalProcess, Placement, Plan, RequestSet, RequestSpec, Reuse, Schedule, Stop};
use serde_json::Value;

use crate::support::run::run;
use crate::support::serve::Serve;

fn stored(plan: Plan) -> Value {
    let run = brunt_engine::run(plan, &Origin::default()).expect("a run");
    assert!(run.agents[0].machine.is_some());
    serde_json::to_value(&run.plan).expect("a plan has a form")
}

#[test]
fn a_plan_of_a_program_is_stored_as_that_of_the_command_line() {
    let server = Serve::start();
    let url = server.url("/bytes/10");
    let of = |connections| {
        let connections = NonZeroU32::new(connections).expect("some");
        let plan = Plan::to(&url).expect("a URL");
        plan.with_connections(connections)
    };
    let short = |plan| {
        let mut plan: Plan = plan;
        plan.load.warmup_ns = 200_000_000;
        plan.load.stop.duration_ns = Some(200_000_000);
        plan
    };
    let mut closed = short(of(3));
    (closed.workers.count, closed.workers.placement) = (NonZeroU32::MIN, Placement::Given);
    closed.traffic.requests = RequestSet::one(RequestSpec {
        method: "POST".to_owned(),
        headers: vec![("X-A".to_owned(), "b".to_owned())],
        body: b"abc".to_vec(),
        ..RequestSpec::get(&closed.target.path)
    });
    let schedule = Schedule::constant_rate(ArrivalProcess::Poisson, 200.0, 5);
    let mut open = short(of(3)).with_schedule(schedule.expect("a rate"));
    open.traffic.think_seed = 5;
    (open.limits.timeout_ns, open.load.drain_limit_ns) = (3_000_000_000, 3_000_000_000);
    let mut counted = of(2);
    counted.load.stop = Stop {
        duration_ns: None,
        requests: Some(40),
    };
    counted.load.warmup_ns = 0;
    counted.traffic.reuse = Reuse::Requests(NonZeroU64::new(10).expect("some"));
    let cases = [
        (
            closed,
            "-c 3 -t 1 -m POST -H X-A:b -b abc --warmup 200ms -d 200ms",
        ),
        (
            open,
            "-c 3 -r 200 --arrivals poisson --seed 5 --warmup 200ms -d 200ms -T 3s",
        ),
        (counted, "-c 2 -n 40 --requests-per-connection 10"),
    ];
    for (plan, options) in cases {
        let ours = stored(plan);
        let mut theirs = run(&format!("{options} {url}")).json["plan"].clone();
        if !options.contains("--seed") {
            // The command line draws one.
            theirs["traffic"]["think_seed"] = 0.into();
        }
        assert_eq!(ours, theirs, "{options}");
    }
}
