//! `brunt compare OLD.json NEW.json`: stored runs, and those that cannot be compared.

use brunt_load::Plan;
use serde_json::{Value, json};

use crate::support::process::{Outcome, brunt, success};
use crate::support::serve::Serve;
use crate::support::simulated::{at_rate, plan, simulate, with_method};
use crate::support::stored::Stored;

/// A load that is long enough for intervals.
const LOAD: &str = "-c 4 -t 1 -d 1s --warmup 50ms";
/// Stores a simulated run under this name, as if it had been made on some machine.
fn store(files: &Stored, name: &str, plan: Plan) -> String {
    simulate(plan, None, &files.place(name));
    change(files, name, |agent| {
        agent["command"] = json!(["brunt", "http://a/"]);
        agent["machine"] = json!({
            "processor": "a", "cpus": 2, "memory_bytes": 1, "kernel": "6", "distribution": "b",
        });
    })
}

/// Makes a stored run another one, by an id of its own and as `edit` says; gives its path.
fn change(files: &Stored, name: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut run = files.read(name);
    let agent = &mut run["agents"][0];
    agent["id"] = name.into();
    edit(agent);
    files.write(name, run.to_string())
}

/// A load that is long enough for intervals.
fn load(url: &str, connections: u32) -> Plan {
    plan(url, [connections, 1], [50, 4_000])
}

/// The JSON of a comparison of these files.
fn compared(options: &str, files: &[&str]) -> (Value, Outcome) {
    let files = files.join(" ");
    let outcome = brunt(&format!("compare {options} --format json {files}"));
    (outcome.json(), outcome)
}

#[test]
fn a_slower_server_is_told_from_a_run_of_each() {
    let (server, files) = (Serve::start(), Stored::new());
    let [old, new] = ["5ms", "10ms"].map(|delay| {
        let (path, url) = (files.path(delay) + ".json", server.url("/delay/"));
        success(&format!("{LOAD} -o {path} {url}{delay}"));
        path
    });
    let (found, outcome) = compared("--fail-if rate<-5%", &[&old, &new]);
    let only = &found["comparisons"][0];
    assert_eq!(only["basis"], "single_runs");
    assert_eq!(found["sides"][1]["single_run"]["file"], new.as_str());
    // A busy machine may spoil a run, but never turns the answer; what it spoils does not pass.
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let says = only["says"].as_str().expect("words");
    match only["claim"].as_str() {
        Some("differs") => {
            assert!(says.starts_with("B is "), "{says}");
            for part in [" % slower (95 % CI ", "how runs vary from one to the next"] {
                assert!(says.contains(part), "{says}");
            }
            outcome.assert_says(&["failed --fail-if rate < -5.0 %"]);
        }
        _ => outcome.assert_says(&["not judged --fail-if rate < -5.0 %"]),
    }
}

#[test]
fn runs_of_one_server_do_not_differ_in_any_form() {
    let files = Stored::new();
    let store = |name, plan| store(&files, name, plan);
    let load = || load("http://a/x?token=hush", 4);
    let (old, new) = (store("old.json", load()), store("new.json", load()));
    let (found, outcome) = compared("--fail-if rate<-5%", &[&old, &new]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(found["comparisons"][0]["claim"], "no_difference", "{found}");
    let stored = files.path("compared.json");
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
    let compared = |place: usize| &found["comparisons"][place]["compared"];
    assert_eq!(compared(0), "response_p50_ns");
    assert_eq!(compared(2), "response_p90_ns");
}

#[test]
fn what_is_not_alike_is_refused() {
    let files = Stored::new();
    let store = |name, plan| store(&files, name, plan);
    let url = "http://a/";
    let plain = store("plain.json", load(url, 4));
    let other = store("other.json", with_method(load(url, 8), "POST"));
    let paced = store("paced.json", at_rate(load(url, 4), 500.0));
    store("unknown.json", load(url, 4));
    let unknown = change(&files, "unknown.json", |agent| {
        agent["backend"] = "uring".into();
        agent["machine"] = Value::Null;
    });
    let comparison = files.path("compared.json");
    let again = store("again.json", load(url, 4));
    success(&format!("compare -q -o {comparison} {plain} {again}"));
    for (words, reasons) in [
        (
            format!("{plain} {other}"),
            &[
                "plan.load.connections is 4 and 8",
                "plan.traffic.requests.first.method is GET and POST",
                "repeat one of them",
            ][..],
        ),
        (
            format!("{plain} {paced}"),
            &["plan.load.model is closed and open"],
        ),
        (
            format!("{unknown} {again}"),
            &[
                "backend is io_uring and sim",
                "machine is not known of both",
            ],
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
        (
            format!("--fail-if p99>+5% {plain} {again}"),
            &["response times are compared at equal rates"],
        ),
    ] {
        let outcome = brunt(&format!("compare {words}")).exits(2);
        outcome.assert_says(reasons);
    }
}
