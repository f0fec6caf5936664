//! The summary for programs: the page about it names its keys, and the adapter in `bench/adapters`
//! makes of it what public benchmarks read.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::documents::page;
use crate::support::process::brunt;
use crate::support::serve::Serve;

const ADAPTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/adapters/summary");
/// Runs until one is valid: a machine that is busy with other things may spoil some.
const ATTEMPTS: usize = 5;

/// The summary of a run at a planned rate, as printed.
fn printed() -> String {
    let server = Serve::start();
    for _ in 0..ATTEMPTS {
        let load = "--format summary -q -r 1k -c 4 -d 1s --warmup 0s";
        let outcome = brunt(&format!("{load} {}", server.url("/")));
        if outcome.stdout.contains("\"valid\":true") {
            return outcome.stdout;
        }
    }
    panic!("no run is valid");
}

fn adapt(summary: &str, benchmark: &str) -> Output {
    let mut command = Command::new(ADAPTER);
    command.arg(benchmark).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut adapter = command.spawn().expect("python3 is installed");
    let mut stdin = adapter.stdin.take().expect("it is piped");
    stdin.write_all(summary.as_bytes()).expect("it reads");
    drop(stdin);
    adapter.wait_with_output().expect("it ends")
}

#[test]
fn the_page_names_every_key_and_no_other() {
    let summary: Value = serde_json::from_str(&printed()).expect("JSON");
    let keys = summary.as_object().expect("an object").keys();
    let page = page("docs/summary.md");
    let table = page.lines().skip_while(|line| !line.starts_with("| key |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let named = rows.map(|row| row.split('`').nth(1).expect("a key").to_owned());
    let named: Vec<String> = named.collect();
    let different: BTreeSet<&String> = named.iter().collect();
    assert_eq!(different, keys.collect());
    assert_eq!(different.len(), named.len(), "{named:?}");
}

#[test]
fn benchmarks_get_what_they_read() {
    let printed = printed();
    let run: Value = serde_json::from_str(&printed).expect("JSON");
    let lines = String::from_utf8(adapt(&printed, "httparena").stdout).expect("text");
    let line = |key: &str| {
        let mut lines = lines.lines().filter_map(|line| line.split_once('='));
        let value = lines.find(|(name, _)| *name == key).map(|(_, value)| value);
        value.unwrap_or_else(|| panic!("no {key}: {lines:?}"))
    };
    let rate = run["rate_per_s"].as_f64().expect("a rate").round();
    assert_eq!(line("rps"), format!("{rate}"));
    assert_eq!(line("status_2xx"), run["responses_2xx"].to_string());
    assert_eq!(line("duration"), "1s");
    let p99 = run["latency_p99_us"].as_f64().expect("enough samples");
    assert_eq!(line("p99_lat"), format!("{p99:.2}us"));
    assert_eq!(line("target_rate"), "1000.0");

    let form = adapt(&printed, "web-frameworks").stdout;
    let form: Value = serde_json::from_slice(&form).expect("JSON");
    assert_eq!(form["achieved_rate"], run["rate_per_s"]);
    assert_eq!(form["latency_us"]["p90"], run["latency_p90_us"]);
    assert_eq!(form["requests"], run["responses"]);
    assert_eq!(form["config"]["closed"], false);
}

#[test]
fn no_benchmark_gets_a_rate_that_is_not_known() {
    let mut run: Value = serde_json::from_str(&printed()).expect("JSON");
    run["rate_per_s"] = Value::Null;
    for benchmark in ["httparena", "web-frameworks"] {
        let output = adapt(&run.to_string(), benchmark);
        assert_eq!(output.status.code(), Some(1), "{benchmark}");
        assert!(output.stdout.is_empty(), "{benchmark}");
    }
}
