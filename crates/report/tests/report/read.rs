//! Stored runs that are cut, changed or no runs at all are refused with the right error.

use brunt_judge::Judged;
use brunt_record::Run;
use brunt_report::{Format, ReadError, read};
use serde_json::{Value, json};

use crate::fixtures;
use crate::golden::{PIPED, written};

fn stored() -> String {
    written(&Judged::of(&fixtures::few()), Format::Json, &PIPED)
}

fn error(json: &str) -> ReadError {
    match read(&mut json.as_bytes()) {
        Ok(_) => panic!("accepted: {json:.100}"),
        Err(error) => error,
    }
}

/// The stored run with the value at `pointer` replaced.
fn changed(pointer: &str, value: Value) -> String {
    let mut stored: Value = serde_json::from_str(&stored()).unwrap();
    *stored
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = value;
    stored.to_string()
}

#[test]
fn what_is_no_run_is_refused() {
    for text in [
        "GET / HTTP/1.1\r\n",
        "{]",
        "\u{0}",
        "{} {}",
        "target  http://h/",
    ] {
        assert!(
            matches!(error(text), ReadError::NotJson(_)),
            "{text}: {}",
            error(text)
        );
    }
    for text in [
        "[]",
        "1",
        "null",
        "{}",
        "{\"format\": \"1\"}",
        "{\"format\": -1}",
    ] {
        assert!(
            matches!(error(text), ReadError::NotARun),
            "{text}: {}",
            error(text)
        );
    }
    assert!(error("[]").to_string().contains("--format json"));
}

/// Bytes from one place at which a run is cut to the next: each check has other places.
const STEP: usize = 199;

#[test]
fn a_run_that_is_cut_anywhere_is_refused() {
    let stored = stored();
    let text = stored.trim_end();
    let first = fixtures::part_of(STEP);
    let lengths = (first..text.len()).step_by(STEP);
    let lengths = lengths.chain([0, 1, text.len() - 1]);
    for length in lengths.filter(|&length| text.is_char_boundary(length)) {
        let error = error(&text[..length]);
        assert!(
            matches!(error, ReadError::Truncated(_)),
            "{length}: {error}"
        );
    }
}

#[test]
fn deep_nesting_is_refused() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    for field in ["format", "workers"] {
        for end in ["", &format!("{close}}}")] {
            let format = Run::FORMAT;
            error(&format!("{{\"format\": {format}, \"{field}\": {open}{end}"));
        }
    }
}

#[test]
fn another_format_is_named() {
    for (other, words) in [
        (
            3,
            "stored in format 3 of an older version, which this version does not read; \
             run it again",
        ),
        (
            5,
            "stored in format 5 of a newer version, which this version does not read; use the \
             version of brunt that wrote the file",
        ),
    ] {
        let error = error(&changed("/format", json!(other)));
        assert!(
            matches!(error, ReadError::OtherFormat { found, known: 4 } if found == other),
            "{error}"
        );
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let mut twice: Value = serde_json::from_str(&stored()).unwrap();
    let agent = twice["agents"][0].clone();
    twice["agents"].as_array_mut().unwrap().push(agent);
    let mut other = twice.clone();
    other["agents"][1]["id"] = json!("other");
    let mut protocols = other.clone();
    protocols["agents"][1]["negotiated"]["protocol"] = json!("HTTP/2");
    for (run, words) in [
        (twice, "two agents have the id"),
        (other, "shares of its agents"),
        (protocols, "differ in the protocol"),
    ] {
        let error = error(&run.to_string());
        assert!(matches!(error, ReadError::Unsound(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let none = error(&changed("/agents", json!([])));
    assert!(matches!(none, ReadError::Unsound(_)), "{none}");
}

#[test]
fn a_missing_field_is_named() {
    let whole: Value = serde_json::from_str(&stored()).unwrap();
    for field in ["plan", "window_ns", "latencies", "agents", "names"] {
        let mut stored = whole.clone();
        stored.as_object_mut().unwrap().remove(field);
        let error = error(&stored.to_string());
        assert!(matches!(error, ReadError::Field(_)), "{field}: {error}");
        assert!(error.to_string().contains(&format!("`{field}`")), "{error}");
    }
}

#[test]
fn the_summary_is_not_needed() {
    for summary in [json!(null), json!({"valid": false}), json!([1, 2])] {
        assert!(read(&mut changed("/summary", summary).as_bytes()).is_ok());
    }
}

const COUNTER: &str = "/agents/0/workers/0/tallies/measure/requests_sent";

#[test]
fn values_that_no_run_can_have_are_refused() {
    for (pointer, value) in [
        (COUNTER, json!(-1)),
        (COUNTER, json!(1.5)),
        (COUNTER, json!("many")),
        ("/latencies/response/count", json!(101)),
        ("/latencies/response/min_ns", json!(u64::MAX)),
        ("/latencies/response/max_ns", json!(null)),
        ("/latencies/response/buckets", json!("%")),
        ("/latencies/response/buckets", json!("AAAA")),
        ("/agents/0/backend", json!("kqueue")),
        ("/plan/load/model", json!("half-open")),
        ("/agents/0/workers/0/series/interval_ns", json!(0)),
        ("/agents/0/workers/0/series/interval_ns", json!(150_000_000)),
        (
            "/agents/0/workers/0/tallies/measure/replies",
            json!({"99": 1}),
        ),
        (
            "/agents/0/workers/0/tallies/measure/failures",
            json!({"no_such_kind": 1}),
        ),
    ] {
        let error = error(&changed(pointer, value.clone()));
        assert!(
            matches!(error, ReadError::Field(_)),
            "{pointer} {value}: {error}"
        );
    }
}
