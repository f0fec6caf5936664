//! Command lines of other load generators, each run by the tool or compared with its record, and by
//! brunt in its place: the tables of `bench/drop-ins/lines`, by the program of the bench.

use std::process::{Command, Stdio};

use crate::support::keeping::Keeping;
use crate::support::process::{brunt, success};

const COMMAND_LINES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../bench/drop-ins/command-lines"
);
/// Lines of a table that each check runs at the least. A check runs one of the parts, and the next
/// another one: `cargo xtask test` names another seed for each commit.
const LINES_LEAST: usize = 12;
const PARTS: u64 = 2;

/// Runs the table of a tool; where `is_recorded` holds, it is not one of those that tests find
/// installed.
fn run(tool: &str, is_recorded: bool) {
    let mut command = Command::new("python3");
    command.args([COMMAND_LINES, "--quiet", "--tool", tool]);
    command.args(["--brunt", env!("CARGO_BIN_EXE_brunt")]);
    let seed = std::env::var("BRUNT_SEED").ok();
    let seed: Option<u64> = seed.and_then(|seed| seed.parse().ok());
    let part = seed.unwrap_or(0) % PARTS + 1;
    command.args(["--part", &format!("{part}/{PARTS}")]);
    if is_recorded {
        command.arg("--recorded");
    }
    command.env_remove("GITHUB_ACTIONS");
    let output = command.stdin(Stdio::null()).output();
    let output = output.expect("python3 is installed");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    let begin = format!("| {tool} |");
    let row = printed.lines().find(|line| line.starts_with(&begin));
    let lines = row.and_then(|row| row.split('|').nth(3)?.trim().parse::<usize>().ok());
    assert!(lines >= Some(LINES_LEAST), "{printed}\n{errors}");
}

#[test]
fn of_wrk() {
    run("wrk", false);
}

#[test]
fn of_wrk2() {
    run("wrk2", true);
}

#[test]
fn of_ab() {
    run("ab", false);
}

#[test]
fn of_weighttp() {
    run("weighttp", true);
}

#[test]
fn of_httperf() {
    run("httperf", false);
}

#[test]
fn of_h2load() {
    run("h2load", false);
}

#[test]
fn of_tcpkali() {
    run("tcpkali", true);
}

#[test]
fn of_oha() {
    run("oha", true);
}

#[test]
fn what_brunt_does_not_have_is_said() {
    for option in ["-fTLS1.1", "-ZAES128-SHA", "-n99999999"] {
        let outcome = brunt(&format!("ab {option} https://127.0.0.1:1/")).exits(1);
        assert!(outcome.stderr.starts_with("brunt: -"), "{outcome:?}");
    }
}

#[test]
fn a_session_whose_connections_are_closed_goes_on() {
    let server = Keeping::start();
    let (host, port) = (server.address.ip(), server.address.port());
    let line = format!("httperf --server={host} --port={port} --wsess=3,3,0.02 --uri=/close");
    let outcome = success(&line);
    let rows = "(3/3)\nSession: avg 3.00 connections/session";
    assert!(outcome.stdout.contains(rows), "{}", outcome.stdout);
    assert_eq!(server.sequences().len(), 9);
}
