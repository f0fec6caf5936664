//! `brunt tcp --send` and its like: what is reported is what the other side counted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::support::process::brunt;
use crate::support::run::RunReport;
use crate::support::serve::ServeTcp;

/// A peer for the rest of the process that reads all that comes, or sends without end; its address,
/// and what it read.
fn peer(sends: bool) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let read = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&read);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                let mut buffer = vec![0; 100_000];
                if sends {
                    while socket.write_all(&buffer).is_ok() {}
                }
                while let Ok(bytes @ 1..) = socket.read(&mut buffer) {
                    count.fetch_add(bytes as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (address, read)
}

fn run(words: &str, address: SocketAddr) -> Value {
    let words = format!("tcp {words} -d 400ms --warmup 50ms -q --format json {address}");
    RunReport::of(brunt(&words)).json
}

#[test]
fn what_is_sent_is_what_the_peer_read() {
    let (address, read) = peer(false);
    let run = run("--send -c 2", address);
    let figures = &run["summary"]["bandwidth"];
    assert_eq!(run["summary"]["valid"], true, "{figures}");
    assert_eq!(figures["streams"], 2);
    assert!(
        figures["up_bytes_per_s"]
            .as_f64()
            .is_some_and(|rate| rate > 0.0)
    );
    let acked = figures["up_bytes"].as_u64().expect("a count");
    let read = read.load(Ordering::Relaxed);
    assert!(acked > 0 && read > 0, "{acked} {read}");
    assert_eq!(run["plan"]["one_way"]["sends"], true);
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
        let outcome = brunt(&words);
        assert_eq!(outcome.code, Some(0), "{service}: {outcome:?}");
        for (label, verb) in rows {
            let mut lines = outcome.stdout.lines();
            let row = lines.position(|line| line.trim_start().starts_with(label));
            let from = row.unwrap_or_else(|| panic!("{service}: no {label} in {outcome:?}"));
            let row: Vec<&str> = outcome.stdout.lines().skip(from).take(4).collect();
            let row = row.join(" ");
            for part in [
                "bit/s in the window",
                verb,
                "over the whole run",
                "(+0.0 %)",
            ] {
                assert!(row.contains(part), "{service}: {part} in {row}");
            }
        }
        let run = RunReport::of(brunt(&format!("{words} --format json"))).json;
        let figures = &run["summary"]["bandwidth"];
        for (own, of_server, rate, is_there) in [
            (
                "up_bytes_whole_run",
                "server_read_bytes",
                "server_read_bytes_per_s",
                direction != "--receive",
            ),
            (
                "down_bytes_whole_run",
                "server_sent_bytes",
                "server_sent_bytes_per_s",
                direction != "--send",
            ),
        ] {
            if is_there {
                assert!(figures[own].as_u64().is_some_and(|bytes| bytes > 0));
                assert_eq!(figures[own], figures[of_server], "{service}: {figures}");
                assert!(figures[rate].as_f64().is_some_and(|rate| rate > 0.0));
            } else {
                assert!(figures[of_server].is_null(), "{service}: {figures}");
            }
        }
    }
}

#[test]
fn what_is_received_is_told_in_every_form() {
    let (address, _) = peer(true);
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
        ("csv", "down_bytes_per_s"),
        ("markdown", "| up | down |"),
        ("html", "Bandwidth"),
    ] {
        let words = "tcp --receive -d 300ms --warmup 0s -q";
        let outcome = brunt(&format!("{words} --format {form} {address}"));
        assert_eq!(outcome.code, Some(0), "{form}: {outcome:?}");
        assert!(outcome.stdout.contains(part), "{form}: {outcome:?}");
    }
}

#[test]
fn what_streams_have_no_use_for_is_refused() {
    for (words, part) in [
        ("--send -r 10", "--rate is about messages"),
        ("--send --tls", "--tls is about messages"),
        ("--send --receive", "cannot be used with"),
        ("--bandwidth 1g -m x --reply none", "--bandwidth is a limit"),
        ("--send --congestion nosuch", "--congestion nosuch"),
        ("--send --sndbuf 2g", "net.core.wmem_max"),
    ] {
        let (address, _) = peer(false);
        let words = format!("tcp {words} -d 100ms {address}");
        let outcome = brunt(&words);
        assert_eq!(outcome.code, Some(2), "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{words}: {outcome:?}");
    }
}
