//! `brunt find`: simulated servers, in virtual time.

use serde_json::Value;

use crate::support::process::brunt;

#[test]
fn a_search_ends_at_the_highest_rate_that_may_be_tried() {
    // Nothing limits the simulated server.
    let options = "--backend sim -t 1 -r 1k --max-rate 4k -d 500ms --warmup 50ms";
    let outcome = brunt(&format!(
        "find {options} --objective p90<20ms --format json http://simulated/"
    ));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(found["kind"], "capacity");
    assert_eq!(found["result"]["kind"], "at_least", "{}", found["result"]);
    assert_eq!(found["result"]["rate_per_s"], 4_000.0);
    let steps = found["steps"].as_array().expect("a list");
    let rates: Vec<f64> = steps
        .iter()
        .map(|it| it["rate_per_s"].as_f64().expect("one"))
        .collect();
    assert_eq!(rates, [1e3, 2e3, 4e3, 4e3, 4e3, 4e3]);
    let text = brunt(&format!(
        "find {options} --objective p90<20ms http://simulated/"
    ));
    assert!(text.stdout.contains("4,000 req/s holds"), "{}", text.stdout);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn what_is_missed_at_every_rate_has_no_capacity() {
    let outcome = brunt(
        "find --backend sim -t 1 -d 500ms --warmup 50ms --objective p50<1ns http://simulated/",
    );
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("missed even at"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn what_is_no_search_is_refused() {
    for (words, reason) in [
        ("http://a/", "say what is to be met"),
        ("--objective p99<1ms", "give the URL"),
        (
            "--objective rate>5 http://a/",
            "leave it out of --objective",
        ),
        ("--objective p99<1ms --stages 1s:5 http://a/", "--stages"),
        ("--objective p99<1ms http://a/ http://b/", "one server"),
        ("--objective p99<1ms --junit x http://a/", "--junit"),
        ("--objective p99<1 http://a/", "write p99 < 1ms"),
        (
            "--objective p99<1ms -r 9 --max-rate 5 http://a/",
            "above the 5",
        ),
        ("--objective p99<1ms --sessions x http://a/", "--sessions"),
    ] {
        let outcome = brunt(&format!("find {words}"));
        assert_eq!(outcome.code, Some(2), "{words}");
        assert!(
            outcome.stderr.contains(reason),
            "{words}: {}",
            outcome.stderr
        );
    }
}
