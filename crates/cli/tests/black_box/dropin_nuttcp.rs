//! `brunt nuttcp` over a table of command lines, beside the real one, against a real server of
//! nuttcp's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::foreign::{free_address, program, start_accepting};
use crate::support::process::{Outcome, Process, brunt, start};
use crate::support::stored::Stored;

/// A server of nuttcp's, which serves one client after the other.
struct Server {
    control: SocketAddr,
    /// The first of the ports of its streams.
    data_port: u16,
    _process: Process,
}

impl Server {
    fn start() -> Self {
        let control = free_address();
        let mut command = Command::new(program("nuttcp"));
        command.args(["-S", "--nofork"]);
        command.arg(format!("-P{}", control.port()));
        // Streams have ports of their own, one behind the other: none of those that the kernel
        // gives to others.
        static SERVERS: AtomicU16 = AtomicU16::new(0);
        let own = (std::process::id() % 1_000) as u16 * 20;
        let data_port = 6_000 + own + 4 * SERVERS.fetch_add(1, Ordering::Relaxed);
        Self {
            control,
            data_port,
            _process: start_accepting(command, control),
        }
    }

    /// The command line behind the program's name.
    fn words(&self, options: &str) -> String {
        let (port, host) = (self.control.port(), self.control.ip());
        format!("{options} -P{port} -p{} {host}", self.data_port)
    }

    /// What the real one makes of a command line.
    fn real(&self, options: &str) -> Outcome {
        between_clients(|| {
            let mut command = Command::new(program("nuttcp"));
            command.args(self.words(options).split_whitespace());
            Process::start(command).wait()
        })
    }

    fn ours(&self, options: &str) -> Outcome {
        between_clients(|| brunt(&format!("nuttcp {}", self.words(options))))
    }
}

/// Runs a client, again where the server was still busy with the one before.
fn between_clients(run: impl Fn() -> Outcome) -> Outcome {
    const ATTEMPTS: usize = 5;
    let mut outcome = run();
    for _ in 1..ATTEMPTS {
        if outcome.code == Some(0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(300));
        outcome = run();
    }
    outcome
}

/// The lines with their numbers masked, and blanks together.
fn masked(text: &str) -> Vec<String> {
    let word = |word: &str| -> String {
        let mut masked = String::new();
        for letter in word.chars() {
            match letter {
                '0'..='9' | '.' if masked.ends_with('#') => {}
                '0'..='9' => masked.push('#'),
                letter => masked.push(letter),
            }
        }
        masked
    };
    let line = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        words.join(" ")
    };
    text.lines().map(line).collect()
}

/// Lines whose text is that of the real one.
const BRIEF: &[&str] = &[
    "-T0.4",
    "-t -T0.4",
    "-T0.4 -N3",
    "-T0.4 -ws128 -l8k -D",
    "-T0.4 -R50m",
    "-T0.4 -f-retrans -Iname",
    "-T0.4 -fparse -N2 -B",
    "-T0.7 -i0.3 -N2",
    "-T0.7 -i0.3 -fparse -Iname",
    "-r -F -T0.4",
    "-r -T0.4 -fparse",
    "-r -T0.4 -w256 -f-rtt",
];

#[test]
fn text_and_exit_codes_are_those_of_nuttcp() {
    let server = Server::start();
    for options in BRIEF {
        let (real, ours) = (server.real(options), server.ours(options));
        assert_eq!(real.code, Some(0), "{options}: {real:?}");
        assert_eq!(ours.code, real.code, "{options}: {ours:?}");
        let (expected, found) = (masked(&real.stdout), masked(&ours.stdout));
        let last = |lines: &[String]| lines.last().cloned();
        assert_eq!(last(&found), last(&expected), "{options}: {ours:?}");
        // Lines over time have no segments sent again here, and the machine may make one more or
        // less of them.
        let shapes = |lines: &[String]| {
            let without = |line: &String| line.replace(" # retrans", "").replace(" retrans=#", "");
            let over_time = &lines[..lines.len().saturating_sub(1)];
            let mut shapes: Vec<String> = over_time.iter().map(without).collect();
            shapes.extend(last(lines));
            shapes.dedup();
            shapes
        };
        assert_eq!(shapes(&found), shapes(&expected), "{options}: {ours:?}");
        let mut messages = ours.stderr.lines();
        assert!(messages.all(|line| line.starts_with("brunt: ")), "{ours:?}");
    }
}

#[test]
fn verbose_text_has_the_servers_report() {
    let server = Server::start();
    for (options, ours, theirs) in [
        ("-v -r -T0.4", "nuttcp-r", "nuttcp-t"),
        ("-v -T0.4 -fparse", "nuttcp-t", "nuttcp-r"),
    ] {
        let outcome = server.ours(options).exits(0);
        let real = masked(&server.real(options).stdout);
        let found = masked(&outcome.stdout);
        for side in [ours, theirs] {
            let is_of = |line: &&String| {
                let is_rate = line.contains("real seconds") || line.contains("real_seconds");
                line.starts_with(side) && is_rate
            };
            let lines: Vec<&String> = found.iter().filter(is_of).collect();
            let expected: Vec<&String> = real.iter().filter(is_of).collect();
            assert_eq!(lines, expected, "{options}: {outcome:?}");
            assert_eq!(lines.len(), 1, "{options}");
        }
    }
}

#[test]
fn what_the_server_received_is_what_brunt_had_acknowledged() {
    let (server, files) = (Server::start(), Stored::new());
    let outcome = server
        .ours(&format!("-T0.5 --brunt-report {}", files.path("run.json")))
        .exits(0);
    let first = outcome.stdout.split_whitespace().next();
    let megabytes: f64 = first.and_then(|word| word.parse().ok()).expect("a number");
    let json = files.read("run.json");
    let figures = &json["summary"]["bandwidth"];
    let acked = figures["up_bytes_whole_run"].as_u64().expect("a count");
    // It prints four digits. What is in its buffer when it stops is acknowledged and not read.
    let unread = acked as f64 - megabytes * 1_048_576.0;
    assert!((-200.0..8e6).contains(&unread), "{megabytes} {acked}");
    assert_eq!(json["summary"]["broken"], serde_json::json!([]));
    assert_eq!(figures["streams"], 1);
    assert_eq!(json["summary"]["failures"], serde_json::json!({}));
}

#[test]
fn the_first_signal_ends_a_control_line_that_drips() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let process = start(&format!("nuttcp -P{} {}", address.port(), address.ip()));
    let (mut stream, _) = listener.accept().expect("it connects");
    let mut hello = [0; 4];
    stream.read_exact(&mut hello).expect("it greets");
    let dripping = std::thread::spawn(move || {
        while stream.write_all(b"H").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    process.signal(Signal::INT);
    process.wait().exits(130);
    dripping.join().expect("no panic");
}
