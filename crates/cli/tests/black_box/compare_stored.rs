//! `brunt compare OLD.json NEW.json`: stored runs, and those that cannot be compared.

use std::path::Path;

use brunt_load::Plan;
use serde_json::{Value, json};

use crate::support::process::{Outcome, brunt, success};
use crate::support::serve::Serve;
use crate::support::simulated::{at_rate, plan, simulate, with_method};

/// A load that is long enough for intervals.
const LOAD: &str = "-c 4 -t 1 -d 1s --warmup 50ms";
/// Stores a run in a file of this name.
fn store(directory: &Path, name: &str, options: &str, url: &str) -> String {
    let path = directory.join(name).display().to_string();
    success(&format!("{options} -q -o {path} {url}"));
    path
}

/// Stores a simulated run under this name, as if it had been made on some machine.
fn store_simulated(directory: &Path, name: &str, plan: Plan) -> String {
    let path = directory.join(name);
    simulate(plan, None, &path);
    let path = path.display().to_string();
    change(&path, name, |agent| {
        agent["command"] = json!(["brunt", "http://a/"]);
        agent["machine"] = json!({
            "processor": "a", "cpus": 2, "memory_bytes": 1, "kernel": "6", "distribution": "b",
        });
    });
    path
}

/// Makes a stored run another one, by an id of its own and as `edit` says.
fn change(path: &str, id: &str, edit: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(path).expect("it was stored");
    let mut run: Value = serde_json::from_str(&text).expect("JSON");
    let agent = &mut run["agents"][0];
    agent["id"] = id.into();
    edit(agent);
    std::fs::write(path, run.to_string()).expect("the directory is ours");
}

/// A load that is long enough for intervals.
fn load(url: &str, connections: u32) -> Plan {
    plan(url, [connections, 1], [50, 4_000])
}

/// The JSON of a comparison of these files.
fn compared(options: &str, files: &[&str]) -> (Value, Outcome) {
    let files = files.join(" ");
    let outcome = brunt(&format!("compare {options} --format json {files}"));
    let found = serde_json::from_str(&outcome.stdout);
    (
        found.unwrap_or_else(|error| panic!("{error}: {outcome:?}")),
        outcome,
    )
}

#[test]
fn a_slower_server_is_told_from_a_run_of_each() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = |name, path| store(directory.path(), name, LOAD, &server.url(path));
    let (old, new) = (
        store("old.json", "/delay/5ms"),
        store("new.json", "/delay/10ms"),
    );
    let (found, outcome) = compared("--fail-if rate<-5%", &[&old, &new]);
    let only = &found["comparisons"][0];
    assert_eq!(only["basis"], "single_runs");
    assert_eq!(found["sides"][1]["single_run"]["file"], new.as_str());
    // A busy machine may spoil a run, but never turns the answer; what it spoils does not pass.
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let says = only["says"].as_str().expect("words");
    match only["claim"].as_str() {
        Some("differs") => {
            assert!(
                says.starts_with("B is ") && says.contains(" % slower (95 % CI "),
                "{says}"
            );
            assert!(
                says.contains("how runs vary from one to the next is not shown"),
                "{says}"
            );
            outcome.assert_says(&["exceeded rate < -5.0 %"]);
        }
        _ => assert!(
            outcome.stderr.contains("not judged rate < -5.0 %"),
            "{outcome:?}"
        ),
    }
}

#[test]
fn runs_of_one_server_do_not_differ_in_any_form() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = |name, plan| store_simulated(directory.path(), name, plan);
    let load = || load("http://a/x?token=hush", 4);
    let (old, new) = (store("old.json", load()), store("new.json", load()));
    let (found, outcome) = compared("--fail-if rate<-5%", &[&old, &new]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(found["comparisons"][0]["claim"], "no_difference", "{found}");
    let stored = directory.path().join("compared.json").display().to_string();
    let text = brunt(&format!("compare -o {stored} {old} {new}"));
    text.assert_prints(&["\nruns        one of each"]);
    assert!(text.stdout.contains("old.json"), "{text:?}");
    assert_eq!(brunt(&format!("report {stored}")).stdout, text.stdout);
    for format in ["csv", "markdown", "html"] {
        let printed = success(&format!("compare --format {format} {old} {new}"));
        let again = brunt(&format!("report --format {format} {stored}"));
        // The command is another one.
        if format == "csv" {
            assert_eq!(again.stdout, printed.stdout);
        }
        assert!(again.stdout.contains("http://a/x"), "{again:?}");
    }
    let redacted = brunt(&format!("compare --redact --format html {old} {new}"));
    assert!(!redacted.stdout.contains("hush"), "{redacted:?}");
    // At equal rates it is the response time that is compared.
    let paced = || at_rate(load(), 500.0);
    let (old, new) = (store("slow.json", paced()), store("fast.json", paced()));
    let (found, _) = compared("--fail-if p90>+5%", &[&old, &new]);
    let names: Vec<_> = found["comparisons"]
        .as_array()
        .expect("a list")
        .iter()
        .collect();
    assert_eq!(names[0]["compared"], "response_p50_ns");
    assert_eq!(names[2]["compared"], "response_p90_ns");
}

#[test]
fn what_is_not_alike_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = |name, plan| store_simulated(directory.path(), name, plan);
    let url = "http://a/";
    let plain = store("plain.json", load(url, 4));
    let other = store("other.json", with_method(load(url, 8), "POST"));
    let paced = store("paced.json", at_rate(load(url, 4), 500.0));
    let unknown = store("unknown.json", load(url, 4));
    change(&unknown, "unknown", |agent| {
        agent["backend"] = "uring".into();
        agent["machine"] = Value::Null;
    });
    let comparison = directory.path().join("compared.json").display().to_string();
    let again = store("again.json", load(url, 4));
    success(&format!("compare -q -o {comparison} {plain} {again}"));
    for (words, reasons) in [
        (
            format!("{plain} {other}"),
            &[
                "plan.connections is 4 and 8",
                "plan.requests.first.method is \"GET\" and \"POST\"",
                "repeat one of them",
            ][..],
        ),
        (
            format!("{plain} {paced}"),
            &["plan.model is \"closed\" and \"open\""],
        ),
        (
            format!("{unknown} {again}"),
            &[" and \"sim\"", "machine is not known of both"],
        ),
        (format!("{plain} {plain}"), &["hold the same run"]),
        (
            format!("{plain} {comparison}"),
            &["a comparison is stored here, not a run"],
        ),
        (plain.clone(), &["2 to 26 stored runs"]),
        (format!("{plain} http://a/"), &["compared with stored runs"]),
        (format!("{plain} {other}.json"), &["cannot open"]),
        (
            format!("-c 4 {plain} {again}"),
            &["--connections is about load"],
        ),
        (
            format!("--pairs 7 {plain} {again}"),
            &["--pairs is about load"],
        ),
        (format!("--hgrm x {plain} {again}"), &["--hgrm is about"]),
        (
            format!("--fail-if p99>+5% {plain} {again}"),
            &["response times are compared at equal rates"],
        ),
    ] {
        let outcome = brunt(&format!("compare {words}"));
        assert_eq!(outcome.code, Some(2), "{words}: {outcome:?}");
        for reason in reasons {
            outcome.assert_says(&[reason]);
        }
    }
}
