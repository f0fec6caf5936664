//! `brunt report` of what is no stored run: exit code 2 and a message that says what to do.

use serde_json::{Value, json};

use crate::support::process::{brunt, brunt_with};
use crate::support::run::run;

/// Reports `bytes` as a file, and checks that it is refused with all of `words`.
fn refused(bytes: &[u8], words: &[&str]) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("it is ours");
    let name = file.path().to_str().expect("a path in UTF-8");
    let outcome = brunt_with(&["report", name]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    for word in [&[name], words].concat() {
        assert!(outcome.stderr.contains(word), "{word:?}: {outcome:?}");
    }
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
}

/// A run of the simulated network would do as well; this one is small.
fn stored() -> Value {
    run("-c 2 -n 50").json
}

#[test]
fn a_file_that_is_missing() {
    let outcome = brunt("report /nonexistent/run.json");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(
        outcome.stderr.contains("/nonexistent/run.json"),
        "{outcome:?}"
    );
}

#[test]
fn a_directory() {
    let outcome = brunt("report /");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
}

#[test]
fn garbage() {
    refused(b"this is not JSON", &["not JSON", "--format json"]);
    refused(&[0xff, 0x00, 0x80, 0x1b], &["not JSON"]);
    refused(b"target      http://127.0.0.1/\n", &["not JSON"]);
}

#[test]
fn an_empty_file() {
    refused(b"", &["truncated"]);
}

#[test]
fn json_of_something_else() {
    refused(b"{}", &["not a stored run"]);
    refused(b"[1, 2, 3]", &["not a stored run"]);
    refused(b"{\"format\": \"json\"}", &["not a stored run"]);
}

#[test]
fn a_run_of_another_format() {
    let mut run = stored();
    run["format"] = json!(999);
    refused(run.to_string().as_bytes(), &["999", "newer version"]);
    run["format"] = json!(2);
    refused(
        run.to_string().as_bytes(),
        &[
            "stored in format 2 ",
            ", which this version does not read; run it again",
        ],
    );
}

#[test]
fn a_run_without_one_of_its_fields() {
    let run = stored();
    let names: Vec<_> = run
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    for name in names {
        // The summary is derived.
        if ["format", "summary"].contains(&name.as_str()) {
            continue;
        }
        let mut changed = run.clone();
        changed.as_object_mut().expect("an object").remove(&name);
        refused(
            changed.to_string().as_bytes(),
            &["not a complete run", &name],
        );
    }
}

#[test]
fn a_run_whose_counts_were_changed_is_invalid() {
    let mut run = stored();
    run["agents"][0]["workers"][0]["tallies"]["measure"]["requests_sent"] = json!(1_000_000);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), run.to_string()).expect("it is ours");
    let name = file.path().to_str().expect("a path in UTF-8");
    let outcome = brunt_with(&["report", name]);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    assert!(outcome.stdout.starts_with("INVALID"), "{}", outcome.stdout);
    let (head, figures) = outcome.stdout.split_once("\nthroughput").expect("a line");
    assert!(head.contains("W6"), "{}", outcome.stdout);
    assert!(figures.trim_start().starts_with("withheld"), "{figures}");
    assert!(!figures.contains(" req/s"), "{figures}");
    let outcome = brunt_with(&["report", "--format", "json", name]);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    let summary = serde_json::from_str::<Value>(&outcome.stdout).expect("JSON")["summary"].take();
    assert!(summary["successes_per_s"].is_null(), "{summary}");
    let reason = summary["absent"]["successes_per_s"].as_str();
    assert!(
        reason.is_some_and(|reason| reason.contains("W6")),
        "{summary}"
    );
}
