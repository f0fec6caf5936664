//! `--diagnose`: the experiment after the run, and what is said when it cannot be made.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::process::{Process, brunt};
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;

/// The parts of a report's diagnosis by connections and whether work was added, each level once per
/// round; or why there is none.
fn levels(report: &RunReport) -> Result<BTreeMap<(u64, bool), usize>, String> {
    let diagnosis = report.at("/diagnosis");
    if diagnosis.is_null() {
        return Err(missing(report));
    }
    let mut levels = BTreeMap::new();
    for part in diagnosis["parts"].as_array().expect("a list") {
        let number = |name: &str| part[name].as_u64().expect("a count");
        assert_eq!(number("length_ns"), 300_000_000, "{part}");
        let level = (number("connections"), number("delay_ns") > 0);
        *levels.entry(level).or_default() += 1;
    }
    Ok(levels)
}

fn missing(report: &RunReport) -> String {
    let reason = &report.at("/agents/0/evidence/missing")["diagnosis"];
    let reason = reason.as_str().unwrap_or_else(|| panic!("no reason"));
    reason.to_owned()
}

#[test]
fn every_level_has_its_parts() {
    let server = Serve::start();
    let report = run(&format!(
        "-c 4 -t 1 -d 300ms --warmup 50ms --diagnose {}",
        server.url("/")
    ));
    // The run itself is what it is without an experiment.
    assert_eq!(report.number("/plan/connections"), 4);
    assert_eq!(report.number("/plan/stop/duration_ns"), 300_000_000);
    match levels(&report) {
        Ok(levels) => {
            let expected = [(2, false), (4, false), (4, true), (6, false)];
            assert_eq!(levels, expected.map(|level| (level, 4)).into());
            assert_eq!(report.number("/diagnosis/connections"), 4);
            assert_eq!(report.number("/diagnosis/workers"), 1);
        }
        // A machine under heavy load may upset the experiment, or the run before it.
        Err(reason) => assert!(
            reason.contains("broke") || reason.contains("invalid"),
            "{reason}"
        ),
    }
}

#[test]
fn one_connection_cannot_be_fewer() {
    let server = Serve::start();
    let report = run(&format!(
        "-c 1 -n 50 --diagnose {}",
        server.url("/delay/1ms")
    ));
    // A machine under heavy load may upset the experiment.
    if let Ok(levels) = levels(&report) {
        let mut connections: Vec<_> = levels.keys().map(|&(connections, _)| connections).collect();
        connections.dedup();
        assert_eq!(connections, [1, 2]);
    }
}

#[test]
fn a_limit_that_is_too_low_for_the_experiment_is_no_failure() {
    let server = Serve::start();
    let script = format!(
        "ulimit -n 150; exec '{}' --backend epoll --format json -t 1 -c 100 -n 500 --diagnose {}",
        env!("CARGO_BIN_EXE_brunt"),
        server.url("/")
    );
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(script);
    let report = RunReport::of(Process::start(command).wait());
    assert_eq!(report.requests().answered, 500);
    assert_eq!(report.at("/diagnosis"), &Value::Null);
    let reason = missing(&report);
    assert!(
        reason.contains("file descriptors") || reason.contains("invalid"),
        "{reason}"
    );
}

#[test]
fn without_the_option_there_is_no_word_of_it() {
    let server = Serve::start();
    let report = run(&format!("-c 4 -n 50 {}", server.url("/")));
    assert!(report.at("/diagnosis").is_null());
    assert!(
        report
            .at("/agents/0/evidence/missing")
            .get("diagnosis")
            .is_none()
    );
}

#[test]
fn the_warm_up_is_an_experiment_unless_it_is_plain() {
    let server = Serve::start();
    let load = "-c 4 -d 200ms --warmup 500ms";
    for (options, is_made) in [
        ("", true),
        ("--plain-warmup", false),
        ("--rate 100", false),
        ("--think-time 1ms", false),
        ("--warmup 200ms", false),
    ] {
        let load = match options.contains("--warmup") {
            true => load.replace("--warmup 500ms", ""),
            false => load.to_owned(),
        };
        let report = run(&format!("{load} {options} {}", server.url("/")));
        let made = report.at("/agents/0/workers/0/halving");
        assert_eq!(!made.is_null(), is_made, "{options}: {made}");
    }
}

#[test]
fn a_rate_that_changes_leaves_nothing_to_compare() {
    let outcome = brunt("--stages 1s:10..100 --diagnose http://127.0.0.1:1/");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("--diagnose"), "{outcome:?}");
}
