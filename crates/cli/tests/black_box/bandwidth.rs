//! `brunt tcp --send` and its like: what is reported is what the other side counted.

use std::io::{Read, Write};
use std::net::SocketAddr;

use serde_json::Value;

use crate::support::listener::serve_each;
use crate::support::process::brunt;
use crate::support::run::RunReport;

/// A peer for the rest of the process that reads all that comes, or sends without end.
fn peer(sends: bool) -> SocketAddr {
    serve_each(move |mut socket| {
        let mut buffer = vec![0; 100_000];
        if sends {
            while socket.write_all(&buffer).is_ok() {}
        }
        while let Ok(1..) = socket.read(&mut buffer) {}
    })
}

fn run(words: &str, address: SocketAddr) -> Value {
    let words = format!("tcp {words} -d 400ms --warmup 50ms -q --format json {address}");
    RunReport::of(brunt(&words)).json
}

#[test]
fn no_interval_is_a_sliver_and_all_together_are_the_window() {
    let address = peer(false);
    let run = run("--send -c 2", address);
    let figures = &run["summary"]["bandwidth"];
    let intervals = figures["intervals"].as_array().expect("intervals");
    let length = |of: &Value| {
        let (from, to) = (of["from_ns"].as_u64(), of["to_ns"].as_u64());
        to.expect("an end") - from.expect("a begin")
    };
    assert!(intervals.len() >= 3, "{figures}");
    let longest = intervals.iter().map(length).max().expect("intervals");
    for interval in intervals {
        assert!(length(interval) > longest / 10, "{interval} of {figures}");
    }
    let bytes: f64 = intervals
        .iter()
        .map(|interval| {
            interval["up_bytes_per_s"].as_f64().expect("a rate") * length(interval) as f64 / 1e9
        })
        .sum();
    let all = figures["up_bytes"].as_u64().expect("a count") as f64;
    assert!((bytes - all).abs() <= all * 0.001 + 10.0, "{bytes} {all}");
}
