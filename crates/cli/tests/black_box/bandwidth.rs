//! `brunt tcp --send` and its like: what is reported is what the other side counted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
        ("--send --tls", "of TLS the kernel counts records"),
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

#[test]
fn streams_can_be_simulated() {
    // 64 KiB of send buffer per round trip of 100 us, and 100 MB/s from the server.
    let (up, down) = (655_360_000.0, 100_000_000.0);
    for (direction, rates) in [
        ("--send", (Some(up), None)),
        ("--receive", (None, Some(down))),
        ("--both", (Some(up), Some(down))),
    ] {
        let words = format!("tcp {direction} --backend sim -d 1s --warmup 100ms -q host:1");
        let figures = [(); 2].map(|()| {
            let run = RunReport::of(brunt(&format!("{words} --format json"))).json;
            assert_eq!(run["summary"]["valid"], true, "{direction}");
            run["summary"]["bandwidth"].clone()
        });
        // Equal plans give equal runs.
        assert_eq!(figures[0], figures[1]);
        for (name, expected) in [("up_bytes_per_s", rates.0), ("down_bytes_per_s", rates.1)] {
            let rate = figures[0][name].as_f64().unwrap_or(0.0);
            let expected = expected.unwrap_or(0.0);
            assert!((rate - expected).abs() <= 0.02 * expected, "{name} {rate}");
        }
    }
}

#[test]
fn a_line_comes_each_second() {
    let (address, _) = peer(false);
    let outcome = brunt(&format!("tcp --send -d 2500ms --warmup 0s {address}"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
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

#[test]
fn a_server_that_does_not_read_is_named() {
    // It reads 100,000 bytes every 5 ms.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let slow = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = vec![0; 100_000];
                while let Ok(1..) = socket.read(&mut buffer) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
    });
    let deaf = ServeTcp::start("sink", &["--tcp-fault", "unread/1m"]);
    for address in [slow, deaf.address] {
        let words = "tcp --send -c 2 -t 1 -d 2s --warmup 1s --drain 100ms -q --format json";
        let run = RunReport::of(brunt(&format!("{words} {address}"))).json;
        let figures = &run["summary"]["bandwidth"];
        let share = figures["receive_window_limited_share"].as_f64();
        assert!(share.is_some_and(|share| share > 0.5), "{figures}");
        // What else limits it is up to the machine.
        let signals = run["summary"]["verdict"]["signals"].as_array();
        let signal = signals.and_then(|all| all.iter().find(|it| it["id"] == "receive_window"));
        let grade = signal.and_then(|it| it["grade"].as_str());
        assert_eq!(grade, Some("fail"), "{signal:?}");
    }
}
