//! `brunt report` of what is no stored run, or of runs that were made to do harm: each ends soon,
//! within a bound on its memory, with a report or with exit code 2 and a line that says what is
//! wrong.

use serde_json::{Value, json};

use crate::support::process::{Outcome, assert_refused, brunt, limited};
use crate::support::run::run;
use crate::support::stored::Stored;

/// Address space of the process, KiB. The binary itself has 30 MiB of it, and each worker that is
/// read a count for each kind of failure.
const SPACE_KIB: u64 = 200 << 10;
/// Address space of the process for files at the limit of what is read, KiB.
const SPACE_LARGE_KIB: u64 = 3 << 20;
/// CPU time, seconds: far more than any of these files takes, far less than the worst once took.
const CPU_S: u64 = 20;

/// Reports the file within the limits.
fn report_within(space_kib: u64, path: &str, format: &str) -> Outcome {
    let limits = format!("ulimit -v {space_kib} && ulimit -t {CPU_S}");
    limited(&limits, &format!("report {path} -v --format {format}"))
}

fn report(bytes: &[u8]) -> Outcome {
    let files = Stored::new();
    let outcome = report_within(SPACE_KIB, &files.write("run", bytes), "text");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    outcome
}

#[track_caller]
fn refused(name: &str, bytes: &[u8], words: &str) {
    let outcome = report(bytes);
    assert_refused(&outcome, &[words]);
    assert!(outcome.stderr.len() < 1_500, "{name}: {outcome:?}");
}

/// A run with every kind of list in it.
fn whole() -> Value {
    let mut whole = run("-c 2 -n 200 --rate 2000").json;
    whole.as_object_mut().expect("an object").remove("summary");
    whole
}

/// The run with the value at `pointer` replaced by `text`, which need not be JSON.
fn with(whole: &Value, pointer: &str, text: &str) -> Vec<u8> {
    const MARK: &str = "what comes here";
    let mut changed = whole.clone();
    *changed
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = json!(MARK);
    let mark = format!("\"{MARK}\"");
    changed.to_string().replacen(&mark, text, 1).into_bytes()
}

const MIB: usize = 1 << 20;

#[test]
fn what_is_no_run_is_refused_in_a_line() {
    for path in ["/nonexistent/run.json", "/"] {
        assert_refused(&brunt(&format!("report {path}")), &[path]);
    }
    refused("no JSON", b"this is not JSON", "--format json");
    refused("blanks", &[b' '; 10 * MIB], "cannot read");
    let endless = report_within(SPACE_LARGE_KIB, "/dev/zero", "text");
    assert_refused(&endless, &["no stored run is that large"]);
}

#[test]
fn histograms_that_hold_too_much() {
    let whole = whole();
    for (name, buckets) in [
        ("more buckets than there are", "1 ".repeat(5 * MIB)),
        ("far beyond the last one", format!("-{} 1", u64::MAX)),
        (
            "more values than any run has",
            format!("{} ", i64::MAX).repeat(3),
        ),
    ] {
        for place in [
            "/latencies/response/buckets",
            "/latencies/split/own/buckets",
            "/latencies/intervals/buckets/0",
        ] {
            let json = with(&whole, place, &json!(buckets).to_string());
            refused(&format!("{name} at {place}"), &json, "histogram");
        }
    }
    // Many in one file: each is within its limit, all together are not.
    let full = vec!["1 ".repeat(4_000); 600];
    let json = with(
        &whole,
        "/latencies/intervals/buckets",
        &json!(full).to_string(),
    );
    refused("600 full intervals", &json, "filled buckets");
}

#[test]
fn what_no_run_holds() {
    let whole = whole();
    let list = |element: &str, count: usize| format!("[{}]", vec![element; count].join(","));
    let stage = r#"{"duration_ns":1,"from_per_s":1,"to_per_s":1}"#;
    let unknown = format!("\"{}\"", "\\u001b[31m".repeat(10_000));
    for (pointer, value, words) in [
        (
            "/plan/load/model/open/schedule/stages",
            list(stage, 90_000),
            "stages are too many",
        ),
        (
            "/latencies/intervals/buckets",
            list("\"\"", 100_000),
            "over the limit of 600",
        ),
        ("/agents/0/backend", unknown, "unknown variant"),
    ] {
        refused(pointer, &with(&whole, pointer, &value), words);
    }
    // Fields that no run has are skipped.
    let junk = format!(
        "{{\"junk\":{},\"kind\":\"loopback\"}}",
        list("0", 1_000_000)
    );
    let outcome = report(&with(&whole, "/agents/0/evidence/network/route", &junk));
    outcome.exits_unless_late(0);
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let (open, close) = (open.repeat(1_000_000), close.repeat(1_000_000));
        for pointer in ["/format", "/plan", "/agents/0/workers"] {
            let nested = with(&whole, pointer, &format!("{open}1{close}"));
            refused(pointer, &nested, "cannot read");
            report(&with(&whole, pointer, &open)).exits(2);
        }
    }
}

/// As many workers as there may be: accepted, printed in every form, and still bounded.
#[test]
fn the_largest_runs_are_read() {
    let whole = whole();
    let worker = whole["agents"][0]["workers"][0].to_string();
    let workers = format!("[{}]", vec![worker; 4_096].join(","));
    let files = Stored::new();
    let path = files.write("run", with(&whole, "/agents/0/workers", &workers));
    // JSON is the largest of the forms that it can be written in again.
    let outcome = report_within(SPACE_LARGE_KIB, &path, "json");
    // The workers' sums are not those of the histograms.
    assert_eq!(outcome.code, Some(3), "{:.2000}", outcome.stderr);
    assert!(outcome.took.as_secs() < 60, "{:?}", outcome.took);
}
