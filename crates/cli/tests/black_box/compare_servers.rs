//! `brunt compare --start`: servers that brunt starts for their rounds, and never leaves behind.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::support::foreign::free_address;
use crate::support::process::{Outcome, Process, binary, brunt_with, refused};
use crate::support::stored::Stored;
use crate::support::wait_for;

const BRUNT: &str = env!("CARGO_BIN_EXE_brunt");

/// Compares by short rounds, with these further words.
fn compare(words: &[&str]) -> Outcome {
    let rounds = "compare --pairs 7 -c 2 -t 1 -d 100ms --warmup 20ms";
    let rounds: Vec<&str> = rounds.split(' ').collect();
    brunt_with(&[&rounds, words].concat())
}

/// Compares, and refuses an outcome without a report. A busy machine may spoil so many rounds that
/// nothing can be said of a server (4).
#[track_caller]
fn made(words: &[&str]) -> Outcome {
    let outcome = compare(words);
    assert!(matches!(outcome.code, Some(0 | 4)), "{outcome:?}");
    outcome
}

/// What is said on standard error, as if of the first side: which one comes first is chance.
fn messages(outcome: &Outcome) -> String {
    outcome.stderr.replace("of B", "of A")
}

fn serve(address: SocketAddr) -> String {
    format!("{BRUNT} serve -q -t 1 --listen {address}")
}

fn takes_connections(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

/// Waits until the kernel has given the address back, which takes a moment with io_uring.
fn wait_until_free(address: SocketAddr) {
    wait_for("nobody listens any more", || {
        (!takes_connections(address)).then_some(())
    });
}

/// The process that wrote its number to a file.
fn process_of(file: &Path) -> PathBuf {
    let id = wait_for("the command begins", || {
        let text = std::fs::read_to_string(file).ok()?;
        Some(text.trim().to_owned()).filter(|id| !id.is_empty())
    });
    Path::new("/proc").join(id)
}

fn is_running(process: &Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    state.is_some_and(|state| state != b'Z')
}

#[test]
fn two_builds_take_turns_on_one_port() {
    let address = free_address();
    let start = serve(address);
    let ready = format!("http://{address}/counters");
    let [fast, slow] = ["2ms", "20ms"].map(|delay| format!("http://{address}/delay/{delay}"));
    let mut words = vec!["--format", "json", "--start", &start, "--start", &start];
    // The first one is ready when it takes a connection.
    words.extend(["--ready", "", "--ready", &ready]);
    words.extend([fast.as_str(), slow.as_str()]);
    let found = made(&words).json();
    wait_until_free(address);
    for side in found["sides"].as_array().expect("a list") {
        let rounds = side["rounds"].as_array().expect("a list").len();
        assert!((7..=11).contains(&rounds), "{rounds}");
    }
    let only = &found["comparisons"][0];
    if only["claim"] != "nothing" {
        assert_eq!(only["claim"], "differs", "{only}");
        let change = only["change"].as_f64();
        assert!(change.is_some_and(|change| change < -0.5), "{only}");
    }
}

#[test]
fn servers_at_one_url_are_called_by_their_commands_or_labels() {
    let address = free_address();
    let (old, url) = (serve(address), format!("http://{address}/"));
    let new = format!("{old} --backend epoll");
    let mut words = vec!["--start", &old, "--start", &new, &url];
    let unbroken = made(&words).stdout.replace(['\n', ' '], "");
    for started in [&old, &new] {
        assert!(unbroken.contains(&started.replace(' ', "")), "{unbroken}");
    }
    words.extend([
        "--format", "markdown", "--label", "before", "--label", "after",
    ]);
    let outcome = made(&words);
    outcome.assert_prints(&[
        "A           before · http://",
        "B           after · http://",
    ]);
    words.extend(["--label", "third"]);
    refused(&compare(&words), "3 times, and 2");
    wait_until_free(address);
}

#[test]
fn a_server_that_leaves_its_command_is_stopped_by_it() {
    let (address, files) = (free_address(), Stored::new());
    let file = files.path("pid");
    // It is in a session of its own, as a service is.
    let serve = serve(address);
    let leaves = format!("setsid sh -c 'echo $$ > {file}; exec {serve}' 2> /dev/null &");
    let stop = format!("kill $(cat {file})");
    let ends = format!("trap '{stop}' TERM; {leaves} wait");
    let url = format!("http://{address}/");
    made(&["--start", &ends, "--start", &ends, &url, &url]);
    wait_until_free(address);
    // Without that, the first one is in the place of the second.
    let outcome = compare(&["--start", &leaves, "--start", &leaves, &url, &url]);
    refused(&outcome, "end on SIGTERM");
    let words = "before the server of A is started";
    assert!(messages(&outcome).contains(words), "{outcome:?}");
    let mut command = Command::new("sh");
    command.args(["-c", &stop]);
    Process::start(command).wait().exits(0);
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let url = format!("http://{}/", free_address());
    let files = Stored::new();
    let file = files.path("pid");
    // It does not care for SIGTERM either.
    let deaf = "echo busy >&2; while :; do sleep 1; done";
    let deaf = format!("trap '' TERM; echo $$ > {file}; {deaf}");
    for (start, reasons) in [
        (
            "echo \"no such\u{9b} file\" >&2; exit 3",
            [
                "the server of A ended with exit code 3 before it was ready",
                "--start of A wrote to standard error:\nno such\\u{9b} file\n",
            ],
        ),
        (
            &deaf,
            [
                "the server of A was not ready within 0.3 s (--ready-timeout): cannot connect",
                "wrote to standard error:\nbusy\n",
            ],
        ),
    ] {
        let words = ["--start", start, "--start", start, &url, &url];
        let outcome = compare(&[&["--ready-timeout", "300ms"], &words[..]].concat()).exits(2);
        for reason in reasons {
            assert!(messages(&outcome).contains(reason), "{reason}: {outcome:?}");
        }
    }
    assert!(!is_running(&process_of(&files.place("pid"))));
}

#[test]
fn an_interrupted_comparison_leaves_no_server() {
    for (signals, is_deaf) in [(1, false), (2, true)] {
        let (address, files) = (free_address(), Stored::new());
        let serve = serve(address);
        let own = format!("echo $$ > {}", files.path("pid"));
        let start = if is_deaf {
            format!("trap '' TERM; {own}; {serve} & while :; do sleep 1; done")
        } else {
            format!("{own}; exec {serve}")
        };
        let url = format!("http://{address}/delay/1ms");
        let mut command = binary();
        command.args(["compare", "-q", "-c", "2", "-d", "10m", "--warmup", "0s"]);
        command.args(["--start", &start, "--start", &start, &url, &url]);
        let process = Process::start(command);
        let server = process_of(&files.place("pid"));
        wait_for("the server listens", || {
            takes_connections(address).then_some(())
        });
        for _ in 0..signals {
            process.signal(Signal::INT);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let outcome = process.wait().exits(130);
        assert!(!is_running(&server), "{outcome:?}");
        wait_until_free(address);
    }
}

#[test]
fn a_comparison_that_is_killed_leaves_no_server() {
    let files = Stored::new();
    // It does not mind SIGTERM, and is not the first of its group.
    let own = format!("echo $$ > {}; exec sleep 600", files.path("pid"));
    let start = format!("trap '' TERM; sh -c '{own}'");
    let url = format!("http://{}/", free_address());
    let mut command = binary();
    command.args(["compare", "-q", "--start", &start, "--start", &start]);
    command.args([&url, &url]);
    let process = Process::start(command);
    let server = process_of(&files.place("pid"));
    assert!(is_running(&server));
    process.kill();
    wait_for("the server is ended", || {
        (!is_running(&server)).then_some(())
    });
}
