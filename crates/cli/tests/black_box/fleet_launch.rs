//! Agents that `brunt fleet` starts over SSH, and the NATS servers that they speak over.

use std::path::Path;
use std::process::Command;

use crate::support::foreign::free_address;
use crate::support::nats::{Nats, programs};
use crate::support::process::{Outcome, Process, binary, refused, start, success};
use crate::support::serve::Serve;
use crate::support::sshd::Sshd;
use crate::support::stored::{Stored, agent_names};

/// The run of agents that something else than the test started, and their names.
fn started(options: &[&str], path: &str) -> (Outcome, Vec<String>) {
    let (server, stored) = (Serve::start(), Stored::new());
    let (file, url) = (stored.path("run.json"), server.url("/delay/1ms"));
    let load = "-c 4 -d 500ms --warmup 0s -o";
    let mut command = binary();
    command.env("PATH", path).arg("fleet").args(options);
    command.args(load.split(' ')).args([file, url]);
    let outcome = Process::start(command).wait();
    if outcome.code == Some(2) {
        return (outcome, Vec::new());
    }
    let outcome = outcome.exits_unless_late(0);
    let run = stored.counted(server.settled().requests);
    let names = agent_names(&run).into_iter();
    let names = names.map(str::to_owned).collect();
    (outcome, names)
}

/// The search path, with these directories before it.
fn path_with(directories: &[&Path]) -> String {
    let path = std::env::var("PATH").expect("a search path");
    let directories = directories.iter().map(|path| path.display().to_string());
    let all: Vec<String> = directories.chain([path]).collect();
    all.join(":")
}

#[test]
fn agents_are_started_over_ssh() {
    let brunt = Path::new(env!("CARGO_BIN_EXE_brunt"));
    let there = path_with(&[brunt.parent().expect("a directory")]);
    let sshd = Sshd::start(&there, &["east", "south"]);
    let path = path_with(&[&sshd.programs()]);
    // Both are one machine, and it has the broker, too: each needs a port of its own there.
    let (outcome, names) = started(&["-t", "2", "--ssh", "east,south"], &path);
    assert_eq!(names, ["east", "south"], "{outcome:?}");
    for (host, reason) in [
        ("nowhere", "Connection refused"),
        ("stranger", "Host key verification failed"),
    ] {
        let (outcome, _) = started(&["--ssh", &format!("east,{host}")], &path);
        let words = format!("agent {host}: ended with exit code 255 (");
        refused(&outcome, &words);
        refused(&outcome, reason);
    }
    let without = Sshd::start("/nonexistent", &["bare"]);
    let (outcome, _) = started(&["--ssh", "bare"], &path_with(&[&without.programs()]));
    refused(&outcome, "agent bare: ended with exit code 127");
}

#[test]
fn a_fleet_speaks_over_nats_servers_old_and_new() {
    let mut versions = Vec::new();
    for program in programs() {
        let mut asked = Command::new(&program);
        asked.arg("--version");
        versions.push(Process::start(asked).wait().stdout);
        // It is started by brunt, with users and a port of its own.
        let directory = program.parent().expect("a directory");
        let (_, names) = started(&["--local", "4"], &path_with(&[directory]));
        let all: Vec<String> = (1..=4).map(|number| format!("local-{number}")).collect();
        assert_eq!(names, all, "{}", program.display());
        // Messages of 64 KiB at most bring a result of 3 MB.
        let (address, server, stored) = (free_address(), Serve::start(), Stored::new());
        let nats = Nats::start_program(&program, address, "max_payload: 65536");
        let paths: String = (0..16_000)
            .map(|item| format!("/?item={item:060}\n"))
            .collect();
        let paths = stored.write("paths", &paths);
        let agent = start(&format!("agent --nats {} --wait 60s", nats.url()));
        success(&format!(
            "fleet --agents 1 --nats {} --urls {paths} -c 8 -d 1s --warmup 0s -o {} {}",
            nats.url(),
            stored.path("run.json"),
            server.url("/")
        ));
        agent.wait().exits(0);
        let run = stored.counted(server.settled().requests);
        let bytes = run["names"].to_string().len();
        assert!(bytes > 3_000_000, "{bytes}");
    }
    assert_ne!(versions[0], versions[1]);
    assert!(versions[1].contains("2.15"), "{versions:?}");
}
