//! `brunt tcp --send` and its like: what is reported is what the other side counted.

use std::io::{Read, Write};
use std::net::SocketAddr;

use serde_json::Value;

use crate::support::csv_row;
use crate::support::listener::serve_each;
use crate::support::process::{brunt, success};
use crate::support::run::RunReport;
use crate::support::serve::ServeTcp;

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
fn both_sides_counts_stand_side_by_side() {
    for (service, direction, rows) in [
        ("sink", "--send", &[("receiver", "read")][..]),
        ("source", "--receive", &[("sender", "sent")]),
        (
            "echo",
            "--both",
            &[("receiver", "read"), ("sender", "sent")],
        ),
    ] {
        let server = ServeTcp::start(service, &[]);
        let words = format!(
            "tcp {direction} -c 2 -d 400ms --warmup 50ms -q --verify-url {}/counters {}",
            server.http, server.address
        );
        let outcome = success(&words);
        for (label, verb) in rows {
            let mut lines = outcome.stdout.lines();
            let row = lines.position(|line| line.trim_start().starts_with(label));
            let from = row.unwrap_or_else(|| panic!("{service}: no {label} in {outcome:?}"));
            let row: Vec<&str> = outcome.stdout.lines().skip(from).take(4).collect();
            let row = row.join(" ");
            for part in ["bit/s in the window", &format!("{verb} all of the ")] {
                assert!(row.contains(part), "{service}: {part} in {row}");
            }
        }
        // Each is the server's own count of the whole run.
        let run = RunReport::of(brunt(&format!("{words} --format json"))).json;
        let figures = &run["summary"]["bandwidth"];
        for (own, of_server) in [("up", "read"), ("down", "sent")] {
            let of_server = &figures[format!("server_{of_server}_bytes")];
            if of_server.is_null() {
                assert_ne!(rows.len(), 2, "{service}: {figures}");
            } else {
                assert_eq!(figures[format!("{own}_bytes_whole_run")], *of_server);
                assert!(of_server.as_u64().is_some_and(|bytes| bytes > 0));
            }
        }
    }
}

#[test]
fn what_is_received_is_told_in_every_form() {
    let address = peer(true);
    let run = run("--receive", address);
    let figures = &run["summary"]["bandwidth"];
    assert!(
        figures["down_bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 0)
    );
    assert_eq!(run["summary"]["bandwidth"]["streams"], 1);
    for (form, part) in [
        ("text", "bandwidth"),
        ("csv", "received_bytes_per_s"),
        ("html", "Bandwidth"),
    ] {
        let words = "tcp --receive -d 300ms --warmup 0s -q";
        let outcome = success(&format!("{words} --format {form} {address}"));
        assert!(outcome.stdout.contains(part), "{form}: {outcome:?}");
    }
}

#[test]
fn a_line_comes_each_second() {
    let address = peer(false);
    let outcome = success(&format!("tcp --send -d 2500ms --warmup 0s {address}"));
    let lines: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("brunt: ") && line.contains(" · up "))
        .collect();
    // A busy machine may join two seconds into one.
    assert!((1..=2).contains(&lines.len()), "{outcome:?}");
    assert!(lines[0].starts_with("brunt: 0.0 s to "), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("sent again")));
    let quiet = brunt(&format!("tcp --send -d 1200ms --warmup 0s -q {address}"));
    assert!(!quiet.stderr.contains(" · up "), "{quiet:?}");
}

/// A peer that closes each connection when it has read so many bytes.
fn closing_peer(most: usize) -> SocketAddr {
    serve_each(move |mut socket| {
        let (mut buffer, mut bytes) = (vec![0; 100_000], 0);
        while bytes < most {
            match socket.read(&mut buffer) {
                Ok(more @ 1..) => bytes += more,
                _ => break,
            }
        }
    })
}

#[test]
fn what_streams_do_not_have_is_absent() {
    let address = peer(false);
    let words = format!("tcp --send -c 2 -d 500ms --warmup 50ms -q {address}");
    let run = RunReport::of(brunt(&format!("{words} --format json"))).json;
    let summary = &run["summary"];
    for path in [
        "successes_per_s",
        "successes_interval_95",
        "attempts_per_s",
        "in_flight_mean",
    ] {
        assert!(summary[path].is_null(), "{path}: {}", summary[path]);
        assert_eq!(
            summary["absent"][path], "streams carry no requests",
            "{path}"
        );
    }
    assert!(summary["agents"][0]["successes_per_s"].is_null());
    if let Some(server) = summary["server"].as_object() {
        assert!(server["requests_per_cpu_s"].is_null(), "{server:?}");
    }
    let csv = brunt(&format!("{words} --format csv")).stdout;
    let row = csv_row(&csv);
    let cell = |column: &str| {
        let found = row.iter().find(|(name, _)| name == column);
        found.map(|(_, cell)| cell.as_str())
    };
    assert_eq!(cell("rate_per_s"), Some(""), "{csv}");
    assert_eq!(cell("valid"), Some("true"), "{csv}");
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
        .map(|it| it["up_bytes_per_s"].as_f64().expect("a rate") * length(it) as f64 / 1e9)
        .sum();
    let all = figures["up_bytes"].as_u64().expect("a count") as f64;
    assert!((bytes - all).abs() <= all * 0.001 + 10.0, "{bytes} {all}");
}

#[test]
fn a_server_that_closes_streams_is_failing() {
    for bytes in [1, 3_000_000] {
        let address = closing_peer(bytes);
        let words = format!("tcp --send -c 2 -d 600ms --warmup 0s -q {address}");
        let text = brunt(&words).exits(1);
        text.assert_prints(&[
            "SERVER-FAILED",
            "streams do not last",
            "stream cut by a reset: ",
        ]);
        assert!(!text.stdout.contains("worker idle"), "{text:?}");
        assert!(!text.stdout.contains("down "), "nothing came: {text:?}");
        let run = RunReport::of(brunt(&format!("{words} --format json"))).json;
        let summary = &run["summary"];
        let count = |name: &str| summary["failures"][name].as_u64().unwrap_or(0);
        let (ended, reset) = (count("stream_ended"), count("stream_reset"));
        let opened = summary["all_phases"]["connections_opened"].as_u64();
        // Each waits longer than the one before: 20, 40, 80, 160, 320 ms.
        assert!(ended + reset >= 4, "{ended} {reset}");
        assert!(opened.is_some_and(|opened| opened <= 2 * 8), "{opened:?}");
    }
}
