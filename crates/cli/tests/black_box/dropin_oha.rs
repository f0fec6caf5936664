//! `brunt oha`: its JSON, requests without an answer, and where its result goes.

use serde_json::Value;

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, tool};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

fn oha(words: &str, url: &str) -> Outcome {
    let words: Vec<&str> = words.split_whitespace().collect();
    tool("oha", false, &words, url).exits(0)
}

fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} of {value}"))
}

#[test]
fn the_json_has_what_scripts_read() {
    let server = Serve::start();
    let words = "--no-tui -n 120 -c 8 --output-format json URL";
    let found = oha(words, &server.url("/delay/2ms")).json();
    assert_eq!(server.settled().requests, 120);
    assert_eq!(found["statusCodeDistribution"]["200"], 120);
    assert_eq!(number(&found, "/summary/successRate"), 1.0);
    let per_s = 120.0 / number(&found, "/summary/total");
    for pointer in ["/summary/requestsPerSec", "/metrics/requests_per_sec"] {
        let off = number(&found, pointer) / per_s - 1.0;
        assert!(off.abs() < 1e-6, "{found}");
    }
    let times = "p10 p25 p50 p75 p90 p95 p99 p99.9 p99.99".split(' ');
    let times = times.map(|name| number(&found, &format!("/latencyPercentiles/{name}")));
    let times: Vec<f64> = times.collect();
    assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
    assert!(times[8] < 5.0, "{times:?}");
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
    let found = oha("-n 3 -c 3 -t 200ms -j URL", &server.url("/silent")).json();
    assert_eq!(found["errorDistribution"]["timeout"], 3, "{found}");
    assert_eq!(number(&found, "/summary/successRate"), 0.0);
    assert!(found["summary"]["average"].is_null(), "{found}");
}

#[test]
fn the_result_goes_where_it_is_asked_for() {
    let (server, files) = (Serve::start(), Stored::new());
    let words = format!("-n 5 -c 1 --http2 -j -o {} URL", files.path("result"));
    for words in [&words, "-n 5 --output-format quiet URL"] {
        assert_eq!(oha(words, &server.url("/")).stdout, "");
    }
    assert_eq!(files.read("result")["statusCodeDistribution"]["200"], 5);
}
