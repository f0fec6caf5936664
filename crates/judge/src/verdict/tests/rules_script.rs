//! A script that takes the workers' time is named, both ways.

use brunt_record::{GeneratorUse, Run};

use super::bend::*;
use super::rules::{situation, verify};
use crate::verdict::Verdict;

/// Has workers spend this share of the window in a script.
fn in_script(run: &mut Run, share: f64) {
    let calls_ns = (run.window_ns as f64 * share) as u64;
    for worker in &mut run.agents[0].workers {
        worker.generator = Some(GeneratorUse {
            calls_ns,
            ..GeneratorUse::default()
        });
    }
}

#[test]
fn a_script_is_named_where_it_takes_the_time() {
    verify([
        situation(
            "a third of the time of workers at their end",
            |run| {
                busy_for(run, 1_960);
                in_script(run, 0.33);
            },
            Verdict::ClientLimited,
            "worker_idle | brunt was the limit, 33 % of its workers' time in the script; the server can | a cheaper script",
        ),
        situation(
            "workers at their end for other reasons",
            |run| {
                busy_for(run, 1_960);
                in_script(run, 0.05);
            },
            Verdict::ClientLimited,
            "worker_idle | brunt was the limit; the server can do more | more machines",
        ),
    ]);
}
