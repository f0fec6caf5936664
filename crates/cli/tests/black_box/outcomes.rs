//! What a run comes to when things go wrong: its first line, its verdict and its exit code.

use std::io::Read;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crate::placement::{cpus, taskset};
use crate::support::hostile::{Hostile, Serve as Serving, Step};
use crate::support::listener::Port;
use crate::support::process::{Outcome, Process, brunt, start};
use crate::support::recorder::Recorder;
use crate::support::run::{RunReport, run, start_run};
use crate::support::serve::Serve;
use crate::support::stored::Stored;
use crate::support::{BACKENDS, at_once};

/// How brunt is loading when the server is killed.
const SPOKEN: [&str; 4] = [
    "--http1",
    "--http2 --streams 4",
    "-r 2000",
    "--no-keepalive",
];

/// Checks what is said of a server that was killed, and perhaps came back.
fn assert_failed(report: &RunReport, came_back: bool, words: &str) {
    let verdict = report.at("/summary/verdict");
    assert_eq!(verdict["name"], "server_failed", "{words}: {verdict:#}");
    assert_eq!(report.code, Some(1), "{words}");
    let because = verdict["because"].as_str().expect("words");
    assert!(
        because.starts_with("the server was gone "),
        "{words}: {because}"
    );
    assert!(because.contains("connection refused"), "{words}: {because}");
    let is_named = because.contains("did not come back");
    assert_eq!(is_named, !came_back, "{words}: {because}");
    assert_ne!(report.finding("L1")["status"], "broken", "{words}");
    // What the killed process did is known as of its last reading.
    let server = report.at("/agents/0/evidence/server");
    let cpu_ns = report.number("/agents/0/evidence/server/cpu_user_ns")
        + report.number("/agents/0/evidence/server/cpu_system_ns");
    assert!(cpu_ns > 0, "{words}: {server:#}");
    assert!(
        report.number("/agents/0/evidence/server/threads/count") >= 1,
        "{words}: {server:#}"
    );
    let pids = server["scope"]["pids"].as_array().expect("a list");
    assert_eq!(
        pids.len(),
        1 + usize::from(came_back),
        "{words}: {server:#}"
    );
}

/// The report of a run whose server is killed, and perhaps comes back.
fn killed(backend: &str, options: &str, comes_back: bool) -> RunReport {
    let server = Serve::start();
    let url = server.url("/");
    let process = start_run(&format!(
        "--backend {backend} -t 1 -c 4 -d 4s --warmup 0s {options} {url}"
    ));
    // So many that the server has used CPU time when it is read.
    server.wait_for_requests(500);
    sleep(Duration::from_millis(300));
    let address = server.kill();
    sleep(Duration::from_millis(500));
    let _again = comes_back.then(|| Serve::start_again(address));
    RunReport::of(process.wait())
}

#[test]
fn a_server_that_is_killed_or_comes_back_is_a_finding() {
    for (backend, comes_back) in BACKENDS
        .into_iter()
        .flat_map(|backend| [(backend, false), (backend, true)])
    {
        at_once(SPOKEN, |options| {
            let report = killed(backend, options, comes_back);
            assert_failed(&report, comes_back, &format!("{options} on {backend}"));
        });
    }
}

/// The rows of the table of outcomes: what happened, the verdict, the exit code.
fn documented() -> Vec<[String; 3]> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/objectives.md");
    let page = std::fs::read_to_string(page).expect("the page is in the repository");
    let (_, table) = page
        .split_once("| what happened | verdict | exit code |\n|---|---|---|\n")
        .expect("the page has the table");
    table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split('|').collect();
            let [what, verdict, code] = cells[..] else {
                panic!("{line}");
            };
            [what, verdict, code].map(|cell| cell.trim().to_owned())
        })
        .collect()
}

/// The verdict in what was printed, where there is a report, and the exit code.
fn of(outcome: &Outcome) -> (Option<String>, Option<i32>) {
    let json: Option<serde_json::Value> = serde_json::from_str(&outcome.stdout).ok();
    let verdict = json.map(|json| json["summary"]["verdict"]["name"].to_string());
    (verdict, outcome.code)
}

fn of_report(report: &RunReport) -> (Option<String>, Option<i32>) {
    let verdict = report.at("/summary/verdict/name").to_string();
    (Some(verdict), report.code)
}

/// Programs that use a CPU until they are dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn on(cpu: u64) -> Self {
        let program = || {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]);
            command.spawn().expect("util-linux is there")
        };
        Self(vec![program(), program()])
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }
}

/// Does what the row says, and gives its outcome.
fn made(what: &str) -> (Option<String>, Option<i32>) {
    let server = Serve::start();
    let load = |options: &str, path: &str| {
        let url = server.url(path);
        of(&brunt(&format!(
            "--format json -t 1 -c 2 -d 2s --warmup 50ms {options} {url}"
        )))
    };
    match what {
        "the server answered" => load("", "/"),
        // Beside so slow a server, what a busy machine adds is little.
        "the planned rate was met" => load("-r 50", "/delay/30ms"),
        "connections paused by plan (`--think-time`)" => load("--think-time 5ms", "/"),
        "other programs took the CPU that brunt needed" => {
            let cpu = *cpus().last().expect("there is one");
            let _busy = Busy::on(cpu);
            let words = format!("--format json -t 1 -c 2 -d 1s {}", server.url("/"));
            of(&Process::start(taskset(cpu, &words)).wait())
        }
        "the server ended, and did not come back" => of_report(&killed("epoll", "", false)),
        "the server ended, and came back" => of_report(&killed("epoll", "", true)),
        "the server answered nothing for over a tenth of the window" => of(&brunt(&format!(
            "--format json -t 1 -c 2 -d 4500ms --warmup 50ms {}",
            server.url("/stall/1500ms/3s")
        ))),
        "the server closed the connections of over a tenth of the requests" => {
            load("", "/random-close/50")
        }
        "the server ended or reset streams (`brunt tcp --send`)" => {
            let reads: Serving = Arc::new(|peer| peer.follow(&[Step::Read]));
            let resets: Serving = Arc::new(|peer| {
                peer.stream.read_exact(&mut [0; 100_000])?;
                peer.follow(&[Step::Reset])
            });
            let server = Hostile::start(reads, resets);
            of(&brunt(&format!(
                "tcp --send --format json -t 1 -c 2 -d 1s --warmup 50ms {}",
                server.address
            )))
        }
        "an objective was missed" => load("--objective rate>1g", "/"),
        "every reply had an error status" => load("", "/status/500"),
        "every request failed" => load("", "/reset"),
        "nothing was answered" => load("--drain 50ms", "/never"),
        "no server was there" => {
            let port = Port::refusing();
            of(&brunt(&format!(
                "--format json -d 1s http://{}/",
                port.address
            )))
        }
        "a file or standard output was full (a reader that goes away is no error)" => {
            load("-o /dev/full", "/")
        }
        "an option was wrong" => load("--connections none", "/"),
        "an invariant is broken" => {
            let mut stored = run(&format!("-c 2 -d 500ms --warmup 50ms {}", server.url("/"))).json;
            let recorded = &mut stored["agents"][0]["workers"][0]["population"]["recorded"];
            *recorded = (recorded.as_u64().expect("a count") + 1).into();
            let files = Stored::new();
            let path = files.write("run.json", stored.to_string());
            of(&brunt(&format!("report --format json {path}")))
        }
        "it was interrupted in the measure phase" => {
            let process = start_run(&format!("-c 2 -d 10m --warmup 0s {}", server.url("/")));
            server.wait_for_requests(100);
            of(&process.wait_interrupted())
        }
        "it was interrupted before" => {
            let url = server.url("/");
            let process = start(&format!("--format json -c 2 --warmup 10m {url}"));
            server.wait_for_requests(100);
            of(&process.wait_interrupted())
        }
        other => panic!("the table has a row without a test: {other}"),
    }
}

#[test]
fn every_row_of_the_readme_holds() {
    let rows = documented();
    assert!(rows.len() >= 10, "{rows:?}");
    for [what, verdict, code] in rows {
        let (found, found_code) = made(&what);
        assert_eq!(found_code, code.parse().ok(), "{what}: {found:?}");
        let name = verdict.to_lowercase().replace('-', "_");
        match verdict.as_str() {
            "no report" => assert_eq!(found, None, "{what}"),
            // The row does not say which one.
            _ if verdict.contains(' ') => assert!(found.is_some(), "{what}"),
            _ => assert_eq!(found, Some(format!("\"{name}\"")), "{what}"),
        }
    }
}

#[test]
fn what_the_server_says_in_its_errors_is_shown_where_it_is_asked_for() {
    let server = Serve::start();
    let words = "no such route: /routes lists them";
    for backend in BACKENDS {
        for protocol in ["--http1", "--http2 --streams 4", "--no-keepalive"] {
            let load = format!(
                "--backend {backend} -t 1 -c 2 -n 20 {protocol} {}",
                server.url("/no/such")
            );
            let shown = brunt(&format!("--show-errors {load}"));
            let rows = |words: &str| shown.stdout.matches(words).count();
            assert_eq!(rows(words), 1, "{load}: {}", shown.stdout);
            assert!(shown.stdout.contains("\n  404"), "{}", shown.stdout);
            let silent = brunt(&load);
            assert!(!silent.stdout.contains(words), "{}", silent.stdout);
        }
    }
}

#[test]
fn a_long_error_is_shown_up_to_its_bound_whatever_its_framing() {
    for (head, body) in [
        ("Content-Length: 2000", "e".repeat(2_000)),
        (
            "Transfer-Encoding: chunked",
            format!("3e8\r\n{0}\r\n3e8\r\n{0}\r\n0\r\n\r\n", "e".repeat(1_000)),
        ),
        ("Connection: close", "e".repeat(2_000)),
    ] {
        let reply = format!("HTTP/1.1 500 No\r\n{head}\r\n\r\n{body}");
        let server = Recorder::answering(reply.as_bytes());
        let url = server.url("/");
        let report = run(&format!("--show-errors -t 1 -c 1 -n 3 {url}"));
        let kept = report.at("/agents/0/workers/0/error_bodies");
        let expected = serde_json::json!([
            { "status": 500, "text": "e".repeat(512), "is_cut": true }
        ]);
        assert_eq!(*kept, expected, "{head}");
    }
}
