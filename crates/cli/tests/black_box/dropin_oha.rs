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
