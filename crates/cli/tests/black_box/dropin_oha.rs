//! `brunt oha`: its JSON, requests without an answer, and where its result goes.

use serde_json::Value;

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, Process, binary};
use crate::support::serve::Serve;

fn oha(words: &str, url: &str) -> Outcome {
    let mut command = binary();
    command.arg("oha");
    command.args(
        words
            .split_whitespace()
            .map(|word| word.replace("URL", url)),
    );
    Process::start(command).wait()
}

fn json(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let found = serde_json::from_str(&outcome.stdout);
    found.unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} of {value}"))
}

#[test]
fn the_json_has_what_scripts_read() {
    let server = Serve::start();
    let words = "--no-tui -n 120 -c 8 --output-format json URL";
    let found = json(&oha(words, &server.url("/delay/2ms")));
    assert_eq!(server.settled().requests, 120);
    assert_eq!(found["statusCodeDistribution"]["200"], 120);
    assert_eq!(number(&found, "/summary/successRate"), 1.0);
    let per_s = 120.0 / number(&found, "/summary/total");
    for pointer in ["/summary/requestsPerSec", "/metrics/requests_per_sec"] {
        assert!(
            (number(&found, pointer) / per_s - 1.0).abs() < 1e-6,
            "{found}"
        );
    }
    let times = [
        "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99",
    ];
    let times = times.map(|name| number(&found, &format!("/latencyPercentiles/{name}")));
    assert!(
        times.is_sorted() && times[0] > 0.0 && times[8] < 5.0,
        "{times:?}"
    );
    let slowest = number(&found, "/summary/slowest");
    assert!(times[8] <= slowest && slowest >= number(&found, "/summary/average"));
    let ms = number(&found, "/metrics/latency_ms/p99");
    assert!((ms / 1e3 - times[6]).abs() < 1e-6, "{found}");
    let bins = found["responseTimeHistogram"].as_object().expect("bins");
    assert_eq!(bins.values().filter_map(Value::as_u64).sum::<u64>(), 120);
    for pointer in [
        "/rps/mean",
        "/details/firstByte/average",
        "/details/DNSDialup/average",
    ] {
        assert!(number(&found, pointer) > 0.0, "{pointer}: {found}");
    }
    assert_eq!(found["errorDistribution"], serde_json::json!({}));
    let size = number(&found, "/summary/totalData") / 120.0;
    assert_eq!(number(&found, "/summary/sizePerRequest"), size.floor());
}

#[test]
fn what_is_never_answered_is_an_error() {
    let server = Keeping::start();
    let url = format!("http://{}/silent", server.address);
    let found = json(&oha("-n 3 -c 3 -t 200ms -j URL", &url));
    assert_eq!(found["errorDistribution"]["timeout"], 3, "{found}");
    assert_eq!(number(&found, "/summary/successRate"), 0.0);
    assert!(found["summary"]["average"].is_null(), "{found}");
}

#[test]
fn the_result_goes_where_it_is_asked_for() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("result");
    let words = format!("-n 5 -c 1 --http2 -j -o {} URL", file.display());
    let outcome = oha(&words, &server.url("/"));
    assert_eq!(
        (outcome.code, &*outcome.stdout),
        (Some(0), ""),
        "{outcome:?}"
    );
    let text = std::fs::read_to_string(file).expect("it was written");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["statusCodeDistribution"]["200"], 5);
    let outcome = oha("-n 5 --output-format quiet URL", &server.url("/"));
    assert_eq!(
        (outcome.code, &*outcome.stdout),
        (Some(0), ""),
        "{outcome:?}"
    );
}
