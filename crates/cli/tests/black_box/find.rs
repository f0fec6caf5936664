//! `brunt find`: searches that nothing limits, and what is said of others.

use crate::support::process::brunt;
use crate::support::serve::Serve;
use crate::support::stored::Stored;

#[test]
fn a_search_ends_at_the_highest_rate_that_may_be_tried() {
    let server = Serve::start();
    let url = server.url("/");
    let options = "-t 1 -r 1k --max-rate 4k -d 300ms --warmup 20ms --objective p90<900ms";
    let outcome = brunt(&format!("find {options} --format json {url}"));
    let found = outcome.json();
    assert_eq!(found["kind"], "capacity");
    // A busy machine may spoil steps: experiments with simulated servers show what is found.
    if found["result"]["kind"] != "at_least" {
        assert_ne!(outcome.code, Some(0), "{}", found["result"]);
        return;
    }
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(found["result"]["met_per_s"], 4_000.0);
    let steps = found["steps"].as_array().expect("a list");
    let rates = steps.iter().filter_map(|step| step["rate_per_s"].as_f64());
    // Low load, of which so few replies are no more than not against it.
    assert!(rates.take(4).eq([10.0, 1e3, 2e3, 4e3]), "{steps:?}");
    assert_eq!(steps[0]["stage"], "low_load");
    let text = brunt(&format!("find {options} {url}"));
    let is_printed = |words: &str| text.stdout.contains(words);
    assert!(
        is_printed("no result") || is_printed("4,000 req/s meets"),
        "{text:?}"
    );
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn the_answer_is_in_every_form() {
    let files = Stored::new();
    let (csv, junit) = (files.path("found.csv"), files.path("found.xml"));
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
    let summary = found.json();
    assert_eq!(summary.as_object().map(serde_json::Map::len), Some(34));
    assert_eq!(summary["target_rate_per_s"], 2_000.0);
    let because = summary["because"].as_str().expect("words");
    assert!(because.starts_with("2,000 req/s meets"), "{because}");
    assert!(because.contains("p90 < 900 ms"), "{because}");
    let table = files.text("found.csv");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("tool,version,url,"), "{table}");
    assert!(lines[1].contains("2,000 req/s meets"), "{table}");
    let results = files.text("found.xml");
    let rate = "<property name=\"rate_per_s\" value=\"2000\"/>";
    for part in ["failures=\"0\"", rate] {
        assert!(results.contains(part), "{results}");
    }
}

#[test]
fn why_requests_failed_is_told() {
    let server = Serve::start();
    let url = server.url("/status/409");
    let options = "-t 1 -c 2 -r 50 -d 200ms --warmup 50ms --budget 5s";
    let files = Stored::new();
    let path = files.path("found.json");
    let options = format!("{options} --objective errors<1% -o {path}");
    let found = brunt(&format!("find {options} {url}")).exits(1);
    assert!(found.stdout.contains("had status 409"), "{}", found.stdout);
    // The same from the file.
    brunt(&format!("report {path}")).exits(1);
}
