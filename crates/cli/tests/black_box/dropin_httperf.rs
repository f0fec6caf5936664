//! `brunt httperf` beside the real httperf: the same command lines give the same requests in the
//! same order on each connection, the same text but for its numbers, and the same exit code.

use std::process::Command;

use regex_lite::Regex;

use crate::support::at_once;
use crate::support::keeping::Keeping;
use crate::support::listener::Port;
use crate::support::process::{Outcome, Process, binary};

/// Runs `words` against a server, by the real httperf or by brunt.
fn run(is_real: bool, words: &[&str], address: std::net::SocketAddr) -> Outcome {
    let mut command = if is_real {
        Command::new("httperf")
    } else {
        let mut command = binary();
        command.arg("httperf");
        command
    };
    let server = [
        format!("--server={}", address.ip()),
        format!("--port={}", address.port()),
    ];
    command.args(server).args(words);
    Process::start(command).wait()
}

/// Lines, of which those that hold times and rates have their numbers masked.
fn text(outcome: &Outcome) -> Vec<String> {
    let number = Regex::new(r"[0-9]+(\.[0-9]+)?").expect("an expression");
    let port = Regex::new("--port=[0-9]+").expect("an expression");
    let lines = outcome.stdout.lines().map(|line| {
        let is_exact = [
            "httperf",
            "Usage",
            "\t",
            "Connection length",
            "Request size",
            "Reply size",
            "Reply status",
            "Errors",
            "Session:",
            "Session length",
        ];
        if is_exact.iter().any(|begin| line.starts_with(begin)) {
            return port.replace(line, "--port=#").into_owned();
        }
        // Of the counts in front, none is a time.
        let exact = line.find(" test-duration").unwrap_or(0);
        let (exact, masked) = line.split_at(exact);
        format!("{exact}{}", number.replace_all(masked, "#"))
    });
    lines.collect()
}

/// Standard error without brunt's own line and httperf's about descriptors.
fn told(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stderr.lines();
    lines
        .filter(|line| !line.starts_with("brunt: ") && !line.contains("FD_SETSIZE"))
        .collect()
}

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("it is ours");
    file
}

#[test]
fn runs_are_those_of_the_real_httperf() {
    let log = file(
        b"# users\n/a think=0.05\n  /a1\n  /a2\n/b method=POST contents='x=1&y=2'\n\n\
          /c\n/500\n/d method=HEAD\n",
    );
    let log = format!("--wsesslog=5,0.02,{}", log.path().display());
    let list = file(b"/l1\0/l2\0/l3\0");
    let list = format!("--wlog=y,{}", list.path().display());
    let cases: &[&[&str]] = &[
        &[],
        &["--num-conns=6", "--num-calls=3", "--uri=/x?y=1"],
        &[
            "--num-con",
            "10",
            "--num-cal",
            "2",
            "--ra",
            "50",
            "--timeo",
            "5",
            "--hog",
        ],
        &["--num-calls=4", "--burst-length=2", "--num-conns=2"],
        &["--method=POST", "--add-header=X-A: b\\nX-C: d\\n"],
        &["--http-version=1.0", "--server-name=foo.example:99"],
        &["--method=HEAD", "--num-conns=2"],
        &["--wsess=4,2,0.02", "--uri=/500", "--rate=20"],
        &["--wsess=3,7,0.01", "--burst-length=3", "--timeout=5"],
        &[&log, "--rate=20", "--timeout=3"],
        &[&log],
        &[&list, "--num-conns=4", "--num-calls=2"],
        &[
            "--wset=11,0.3",
            "--num-conns=4",
            "--num-calls=2",
            "--client=3/5",
            "--uri=/q",
        ],
        &["--period=d0.02", "--num-conns=5", "-d", "1"],
    ];
    at_once(cases.iter().copied(), |words| {
        let servers = [Keeping::start(), Keeping::start()];
        let real = run(true, words, servers[0].address);
        let ours = run(false, words, servers[1].address);
        assert_eq!(
            text(&real),
            text(&ours),
            "{words:?}\n{}\n{}",
            real.stdout,
            ours.stdout
        );
        assert_eq!((real.code, ours.code), (Some(0), Some(0)), "{words:?}");
        assert_eq!(told(&real), told(&ours), "{words:?}");
        assert_eq!(ours.stderr.matches("brunt: ").count(), 1, "{}", ours.stderr);
        let [real, ours] = servers.map(|server| server.sequences());
        assert_eq!(real, ours, "{words:?}");
    });
}

#[test]
fn what_cannot_run_ends_as_in_the_real_httperf() {
    let port = Port::refusing();
    let cases: &[&[&str]] = &[
        &["--help"],
        &["--foo"],
        &["--num-c", "2"],
        &["--uri"],
        &["-n"],
        &["--rate", "abc"],
        &["--burst-length=0"],
        &["--client=5"],
        &["--period=x3"],
        &["--wsess=1,x,2"],
        &["--wsesslog=1,2"],
        &["--wsesslog=1,2,/nonexistent"],
        &["--wlog=y,/nonexistent"],
        &["--session-cookies"],
        &["--num-conns=3"],
    ];
    at_once(cases.iter().copied(), |words| {
        let real = run(true, words, port.address);
        let ours = run(false, words, port.address);
        assert_eq!(text(&real), text(&ours), "{words:?}\n{}", ours.stderr);
        assert_eq!(real.code, ours.code, "{words:?}: {}", ours.stderr);
        assert_eq!(told(&real), told(&ours), "{words:?}");
    });
}

#[test]
fn a_session_whose_connections_are_closed_goes_on() {
    let server = Keeping::start();
    let words = ["--wsess=3,3,0.02", "--uri=/close"];
    let outcome = run(false, &words, server.address);
    assert_eq!(outcome.code, Some(0));
    let told = "(3/3)\nSession: avg 3.00 connections/session";
    assert!(outcome.stdout.contains(told), "{}", outcome.stdout);
    assert_eq!(server.sequences().len(), 9);
}
