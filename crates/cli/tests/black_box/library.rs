//! A plan that a program made by itself: the run holds what `brunt -o` stores of the same load.

use std::time::Duration;

use brunt_engine::Origin;
use brunt_load::{ArrivalProcess, Plan};
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
    let short = Duration::from_millis(200);
    let closed = Plan::to(&url)
        .connections(3)
        .workers(1)
        .method("POST")
        .header("X-A", "b")
        .body("abc")
        .warmup(short)
        .duration(short);
    let open = Plan::to(&url)
        .connections(3)
        .rate(200.0)
        .arrivals(ArrivalProcess::Poisson, 5)
        .warmup(short)
        .duration(short)
        .timeout(Duration::from_secs(3));
    let counted = Plan::to(&url)
        .connections(2)
        .requests(40)
        .requests_per_connection(10);
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
    for (builder, options) in cases {
        let ours = stored(builder.build().expect("a plan"));
        let mut theirs = run(&format!("{options} {url}")).json["plan"].clone();
        if !options.contains("--seed") {
            // The command line draws one.
            theirs["think_seed"] = 0.into();
        }
        assert_eq!(ours, theirs, "{options}");
    }
}
