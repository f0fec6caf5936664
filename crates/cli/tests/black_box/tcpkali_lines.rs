//! `brunt tcpkali` over a table of command lines, compared with the shapes that the real one left:
//! what the server saw, what was printed, numbers masked, and exit codes.
//!
//! `tcpkali_lines.json` was recorded by `bench/drop-ins/command-lines --tool tcpkali --record`.

use std::sync::Mutex;
use std::thread;

use serde::Deserialize;

use crate::support::process::{Outcome, Process, binary};
use crate::support::streams::{Stream, StreamServer};

/// Runs at once.
const AT_ONCE: usize = 6;
/// Of each stream, so many bytes were recorded.
const SHOWN_BYTES: usize = 60;
/// What only one of the two says.
const OWN_LINES: [&str; 6] = [
    "brunt:",
    "Interface ",
    "Using interface ",
    "WARNING: ",
    "NOTE: ",
    "Decrease --connections",
];

/// What the real one left of a command line.
#[derive(Debug, Deserialize)]
struct Shape {
    words: Vec<String>,
    /// What brunt is to differ in; the table of the bench has the reasons.
    differs: Vec<String>,
    exit_code: i32,
    stdout: Vec<String>,
    stderr: Vec<String>,
    /// The lines of upgrades to WebSocket, in lower case but the first, without the host.
    upgrade: Vec<String>,
    /// How each stream began, in hexadecimal; absent where that is random.
    streams: Option<Vec<String>>,
}

fn masked(text: &str) -> Vec<String> {
    let lines = text.lines();
    let lines = lines.filter(|line| !OWN_LINES.iter().any(|own| line.starts_with(own)));
    lines.map(masked_line).collect()
}

/// A line with numbers, and units of sizes, masked.
fn masked_line(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        out.push('#');
        rest = &rest[at..];
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        rest = &rest[digits(rest)..];
        while let Some(behind) = rest.strip_prefix('.').filter(|behind| digits(behind) > 0) {
            rest = &behind[digits(behind)..];
        }
    }
    out.push_str(rest);
    for unit in ["bytes", "KiB", "MiB"] {
        out = out.replace(&format!("# {unit} ("), "# UNIT (");
    }
    out
}

fn run(shape: &Shape) -> (Outcome, Vec<Stream>) {
    let servers = [StreamServer::start(true), StreamServer::start(false)];
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let free_port = free.expect("a port").port();
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("body"), "a=1&b=2").expect("written");
    let words = shape.words.iter().map(|word| {
        word.replace("ECHO", &servers[0].address.to_string())
            .replace("SINK", &servers[1].address.to_string())
            .replace("BODY", "body")
            .replace("FREE", &free_port.to_string())
    });
    let mut command = binary();
    command.arg("tcpkali").args(words).current_dir(&directory);
    let outcome = Process::start(command).wait();
    let streams = servers.iter().flat_map(StreamServer::streams).collect();
    (outcome, streams)
}

/// What is not as recorded.
fn differences(shape: &Shape, outcome: &Outcome, streams: &[Stream]) -> Vec<String> {
    let differs = |aspect: &str| shape.differs.iter().any(|other| other == aspect);
    let mut found = Vec::new();
    if outcome.code != Some(shape.exit_code) {
        found.push(format!(
            "exit code {:?} instead of {}",
            outcome.code, shape.exit_code
        ));
    }
    for (aspect, text, expected) in [
        ("stdout", &outcome.stdout, &shape.stdout),
        ("stderr", &outcome.stderr, &shape.stderr),
    ] {
        let lines = masked(text);
        if !differs(aspect) && lines != *expected {
            found.push(format!("{aspect} {lines:#?} instead of {expected:#?}"));
        }
    }
    let mut upgrade: Vec<String> = Vec::new();
    for line in streams.iter().flat_map(|stream| &stream.upgrade) {
        let line = match line.starts_with("GET ") {
            true => line.clone(),
            false => line.to_lowercase(),
        };
        let is_shown = !line.starts_with("host:") && !line.contains("websocket-key");
        if is_shown && !upgrade.contains(&line) {
            upgrade.push(line);
        }
    }
    upgrade.sort();
    if upgrade != shape.upgrade {
        found.push(format!(
            "upgrade {upgrade:?} instead of {:?}",
            shape.upgrade
        ));
    }
    let Some(expected) = &shape.streams else {
        return found;
    };
    let kept = streams.iter().map(|stream| hexadecimal(&stream.kept));
    let (kept, expected) = (kinds(kept.collect()), kinds(expected.clone()));
    if kept.len() != expected.len() {
        let counts = (kept.len(), expected.len());
        found.push(format!(
            "{} kinds of streams instead of {}",
            counts.0, counts.1
        ));
    }
    for (one, other) in kept.iter().zip(&expected) {
        let length = one.len().min(other.len());
        if one[..length] != other[..length] {
            found.push(format!("a stream {one:.240} instead of {other:.240}"));
        }
    }
    found
}

/// The streams that are not the beginnings of others: the real one opens a connection too many at
/// times, and how long each is depends on when the run ended.
fn kinds(mut streams: Vec<String>) -> Vec<String> {
    streams.sort();
    let mut kinds: Vec<String> = Vec::new();
    for stream in streams {
        match kinds.last_mut() {
            Some(last) if stream.starts_with(last.as_str()) => *last = stream,
            _ => kinds.push(stream),
        }
    }
    kinds
}

fn hexadecimal(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(SHOWN_BYTES)];
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn command_lines_have_the_shapes_of_the_real_one() {
    let shapes: Vec<Shape> =
        serde_json::from_str(include_str!("tcpkali_lines.json")).expect("the table");
    assert!(shapes.len() >= 40, "{}", shapes.len());
    let (next, found) = (Mutex::new(shapes.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let shape = next.lock().expect("no thread panics").next();
                    let Some(shape) = shape else { break };
                    let (outcome, streams) = run(shape);
                    let differences = differences(shape, &outcome, &streams);
                    if !differences.is_empty() {
                        let text = format!("{:?}: {}", shape.words, differences.join("; "));
                        found.lock().expect("no thread panics").push(text);
                    }
                }
            });
        }
    });
    let found = found.into_inner().expect("no thread panics");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
