//! The warm-up as an experiment.

use crate::support::run::run;
use crate::support::serve::Serve;

#[test]
fn the_warm_up_of_a_closed_loop_is_an_experiment() {
    let server = Serve::start();
    let load = format!("-c 4 -d 100ms --warmup 500ms {}", server.url("/"));
    for (options, is_made) in [
        ("", true),
        ("--rate 100", false),
        ("--think-time 1ms", false),
        ("--warmup 200ms", false),
    ] {
        let load = match options.contains("--warmup") {
            true => load.replace("--warmup 500ms", ""),
            false => load.clone(),
        };
        let report = run(&format!("{load} {options}"));
        let made = report.at("/agents/0/workers/0/halving");
        assert_eq!(!made.is_null(), is_made, "{options}: {made}");
    }
}
