//! `brunt find`: searches that nothing limits, and what is said of others.

use serde_json::Value;

use crate::support::process::brunt;
use crate::support::serve::Serve;

#[test]
fn a_search_ends_at_the_highest_rate_that_may_be_tried() {
    let server = Serve::start();
    let url = server.url("/");
    let options = "-t 1 -r 1k --max-rate 4k -d 300ms --warmup 20ms --objective p90<900ms";
    let outcome = brunt(&format!("find {options} --format json {url}"));
    let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(found["kind"], "capacity");
    // A busy machine may spoil steps: experiments with simulated servers show what is found.
    if found["result"]["kind"] != "at_least" {
        assert_ne!(outcome.code, Some(0), "{}", found["result"]);
        return;
    }
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(found["result"]["rate_per_s"], 4_000.0);
    let steps = found["steps"].as_array().expect("a list");
    let rates: Vec<f64> = steps
        .iter()
        .map(|it| it["rate_per_s"].as_f64().expect("one"))
        .collect();
    // Low load, of which so few replies are no more than not against it.
    assert!(rates.starts_with(&[10.0, 1e3, 2e3, 4e3]), "{rates:?}");
    assert_eq!(steps[0]["stage"], "low_load");
    let text = brunt(&format!("find {options} {url}"));
    let is_spoiled = text.stdout.contains("no result");
    assert!(
        is_spoiled || text.stdout.contains("4,000 req/s holds"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn the_answer_is_in_every_form() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (csv, junit) = (file("found.csv"), file("found.xml"));
    let server = Serve::start();
    let url = server.url("/");
    let options = "-t 1 -r 1k --max-rate 2k -d 300ms --warmup 20ms";
    let found = brunt(&format!(
        "find {options} --objective p90<900ms --junit {junit} -o {csv} -o - --format summary {url}"
    ));
    if found.code != Some(0) {
        // A busy machine spoiled it.
        assert!(found.stdout.contains("could not be trusted"), "{found:?}");
        return;
    }
    let summary: Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(summary.as_object().map(serde_json::Map::len), Some(34));
    assert_eq!(summary["target_rate_per_s"], 2_000.0);
    let because = summary["because"].as_str().expect("words");
    assert!(because.starts_with("2,000 req/s holds"), "{because}");
    assert!(because.contains("p90 < 900 ms"), "{because}");
    let table = std::fs::read_to_string(csv).expect("a table");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("tool,version,url,"), "{table}");
    assert!(lines[1].contains("2,000 req/s holds"), "{table}");
    let results = std::fs::read_to_string(junit).expect("results");
    let rate = "<property name=\"rate_per_s\" value=\"2000\"/>";
    assert!(
        results.contains("failures=\"0\"") && results.contains(rate),
        "{results}"
    );
}

#[test]
fn why_requests_failed_is_told() {
    let server = Serve::start();
    let url = server.url("/status/409");
    let options = "-t 1 -c 2 -r 50 -d 200ms --warmup 50ms --budget 5s";
    let stored = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    let path = stored.path().display();
    let found = brunt(&format!(
        "find {options} --objective errors<1% -o {path} {url}"
    ));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stdout.contains("had status 409"), "{}", found.stdout);
    let again = brunt(&format!("report {path}"));
    assert_eq!(again.code, Some(1), "the same from the file: {again:?}");
}

#[test]
fn what_is_missed_at_every_rate_has_no_capacity() {
    let server = Serve::start();
    let outcome = brunt(&format!(
        "find -t 1 -r 10k -d 300ms --warmup 20ms --objective p50<1ns {}",
        server.url("/")
    ));
    let text = &outcome.stdout;
    if text.contains("could not be trusted") {
        // A busy machine spoiled it.
        return;
    }
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(text.contains("no rate can meet this"), "{text}");
    assert!(text.contains(" req/s replies take"), "{text}");
    let steps = text.lines().filter(|line| line.starts_with("low load"));
    assert_eq!(steps.count(), 3, "{text}");
}
