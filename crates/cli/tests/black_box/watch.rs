//! What a run tells of the server that it watched, and of the server's own count of requests.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::nginx::Nginx;
use crate::support::process::{Process, brunt, first_line, start};
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;
use crate::support::wait_for;

/// Long enough for the server's CPU time to be more than the kernel's clock tick.
const LOAD: &str = "-c 8 -t 1 -d 1s --warmup 100ms";

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

/// Checks the evidence of a watched server that did all of the work.
fn watched(report: &RunReport, name: &str, pid: u32) {
    let server = report.at("/agents/0/evidence/server");
    assert_eq!(server["name"], name, "{server}");
    assert_eq!(server["scope"]["kind"], "processes", "{server}");
    assert_eq!(server["scope"]["pids"], json!([pid]), "{server}");
    let cpu_ns = report.number("/agents/0/evidence/server/cpu_user_ns")
        + report.number("/agents/0/evidence/server/cpu_system_ns");
    assert!(cpu_ns > 0, "{server}");
    assert!(report.number("/agents/0/evidence/server/interval_ns") > 500_000_000);
    assert!(report.number("/agents/0/evidence/server/resident_bytes_max") > 1 << 16);
    assert!(report.number("/agents/0/evidence/server/threads/count") >= 1);
    let points = server["series"].as_array().expect("a list");
    assert!(points.len() >= 2, "{server}");
}

#[test]
fn the_server_behind_the_port_is_found_and_watched() {
    let (serve, nginx) = (Serve::start(), Nginx::start());
    for (url, name, pid) in [
        (serve.url("/"), "brunt", serve.id()),
        (nginx.url(), "nginx", nginx.id()),
    ] {
        watched(&run(&format!("{LOAD} {url}")), name, pid);
    }
}

#[test]
fn a_server_is_watched_by_process_id_and_by_name() {
    let nginx = Nginx::start();
    let url = nginx.url();
    let by_id = run(&format!("{LOAD} --watch {} {url}", nginx.id()));
    watched(&by_id, "nginx", nginx.id());
    // Other tests may have servers of that name.
    let by_name = run(&format!("{LOAD} --watch nginx {url}"));
    let pids = by_name.at("/agents/0/evidence/server/scope/pids");
    let pids = pids.as_array().expect("a list");
    assert!(pids.contains(&nginx.id().into()), "{pids:?}");
}

#[test]
fn a_server_that_is_not_to_be_watched_is_not() {
    let server = Serve::start();
    let report = run(&format!("{LOAD} --watch off {}", server.url("/")));
    assert_eq!(report.at("/agents/0/evidence/server"), &Value::Null);
}

#[test]
fn a_server_that_may_not_be_looked_into_has_a_reason() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copy = |name: &str, mode| {
        let path = directory.path().join(name);
        // A process of its own writes the copy: a program that is open for writing here, and so in
        // all that other tests start at this moment, cannot be executed.
        let mut cp = Command::new("cp");
        cp.arg(env!("CARGO_BIN_EXE_brunt")).arg(&path);
        assert!(cp.status().expect("it starts").success());
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
        path
    };
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("it is ours");
    // The kernel hides a program that may not be read from all but root; and from root, brunt
    // cannot be told apart, so that it becomes somebody else.
    let mut serve = Command::new(copy("server", 0o111));
    serve.args(["serve", "--listen", "127.0.0.1:0"]);
    let (_serving, stdout) = Process::start_open(serve);
    let line = first_line(stdout);
    let url = line.split_whitespace().nth(2).expect(&line);
    let program = copy("client", 0o755);
    let run = || {
        let mut client = Command::new(&program);
        client.args(["-c", "2", "-d", "200ms", "--warmup", "0s", url]);
        if rustix::process::geteuid().is_root() {
            client.uid(NOBODY).gid(NOBODY);
        }
        Process::start(client).wait()
    };
    let outcome = run().exits_unless_late(0);
    for words in [
        "server not watched: the process that listens on port",
        "run brunt as that user or as root",
    ] {
        assert!(outcome.unbroken().contains(words), "{outcome:?}");
    }
}

#[test]
fn the_servers_own_count_agrees() {
    let (serve, nginx) = (Serve::start(), Nginx::start());
    for (url, counter) in [
        (serve.url("/"), serve.url("/counters")),
        (serve.url("/"), serve.url("/counters#requests")),
        (serve.url("/random-close/20"), serve.url("/counters")),
        (nginx.url(), nginx.url_status()),
    ] {
        for load in ["-c 8", "-c 8 --pipeline 4", "-c 8 -r 2000", "-c 4 -n 500"] {
            let report = run(&format!(
                "-d 300ms --warmup 50ms {load} --verify-url {counter} {url}"
            ));
            let finding = report.finding("I8");
            assert_eq!(finding["status"], "held", "{counter} {load}: {finding}");
            let count = report.at("/agents/0/evidence/server_count");
            let counted = report.number("/agents/0/evidence/server_count/after")
                - report.number("/agents/0/evidence/server_count/before");
            let requests = report.requests();
            assert!(counted >= requests.answered, "{count} {requests:?}");
            let own_reads = report.number("/agents/0/evidence/server_count/own_reads");
            let sends = requests.sent + report.total("sent_again");
            assert!(counted <= sends + own_reads, "{count} {requests:?}");
        }
    }
}

/// Grade and words of the signal of other clients.
fn other_clients(report: &RunReport) -> (String, String) {
    let signals = report.at("/summary/verdict/signals");
    let mut signals = signals.as_array().expect("a list").iter();
    let found = signals.find(|signal| signal["id"] == "other_clients");
    let found = found.expect("it is always there");
    let text = |key: &str| found[key].as_str().expect("text").to_owned();
    (text("grade"), text("detail"))
}

#[test]
fn another_brunt_at_the_same_server_is_noticed() {
    let (serve, own) = (Serve::start(), "-t 1 -c 8 -d 500ms --warmup 50ms");
    let url = serve.url("/delay/2ms");
    let alone = run(&format!("{own} {url}"));
    let (grade, words) = other_clients(&alone);
    assert_eq!(grade, "healthy", "{words}");
    let seen = "/agents/0/evidence/server_connections";
    assert_eq!(alone.number(&format!("{seen}/connections")), 8);
    assert_eq!(alone.number(&format!("{seen}/segments_received_beyond")), 0);

    let before = serve.counters().requests;
    let other = start(&format!("-t 1 -c 8 -d 60s --warmup 0s {url}"));
    wait_for("the other brunt", || {
        (serve.counters().requests > before + 100).then_some(())
    });
    let counters = serve.url("/counters");
    for load in [
        format!("{own} {url}"),
        format!("{own} --verify-url {counters} {url}"),
    ] {
        let report = run(&load);
        let (grade, words) = other_clients(&report);
        assert_eq!(grade, "fail", "{load}: {words}");
        assert!(words.starts_with("other clients send "), "{load}: {words}");
        assert_eq!(report.number(&format!("{seen}/connections")), 16);
        let name = report.at("/summary/verdict/name");
        assert_ne!(name, "server_limited", "{load}: {words}");
    }
    other.kill();
}

#[test]
fn a_count_that_is_not_the_servers_makes_the_run_invalid() {
    let (server, other) = (Serve::start(), Serve::start());
    let outcome = brunt(&format!(
        "-c 4 -n 500 --verify-url {} {}",
        other.url("/counters"),
        server.url("/")
    ))
    .exits(3);
    let first = outcome.stdout.lines().next().expect("a line");
    assert!(
        first.starts_with("INVALID") && first.contains("I8"),
        "{first}"
    );
    assert!(outcome.stdout.contains("withheld"), "{outcome:?}");
}

#[test]
fn a_counter_that_is_not_there_is_refused_before_any_load() {
    let server = Serve::start();
    for (counter, words) in [
        ("/counters#requests.total", "requests.total"),
        ("/", "say which"),
        ("/status/404", "404"),
        ("/never", "/never"),
    ] {
        let outcome = brunt(&format!(
            "-c 4 -n 500 --verify-url {} {}",
            server.url(counter),
            server.url("/")
        ))
        .exits(2);
        assert_eq!(outcome.stdout, "", "{counter}");
        assert!(outcome.stderr.contains(words), "{counter}: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    }
}
