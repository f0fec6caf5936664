//! `brunt compare --start`: servers that brunt starts for their rounds, and never leaves behind.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::process::{Process, binary, brunt_with, refused, success_with};
use crate::support::wait_for;

const BRUNT: &str = env!("CARGO_BIN_EXE_brunt");
const ROUNDS: [&str; 10] = [
    "--pairs", "7", "-c", "2", "-t", "1", "-d", "100ms", "--warmup", "20ms",
];

/// An address of loopback that nobody else uses, free before the server starts and after it ends.
fn address() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    (([127, high | 1, low, number]), 18_080).into()
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
    let address = address();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let warmed = directory.path().join("warmed");
    let (start, warm_up) = (serve(address), format!("echo x >> {}", warmed.display()));
    let ready = format!("http://{address}/counters");
    let (fast, slow) = (
        format!("http://{address}/delay/2ms"),
        format!("http://{address}/delay/20ms"),
    );
    let mut words = vec!["compare", "--format", "json"];
    words.extend(ROUNDS);
    words.extend(["--start", &start, "--start", &start]);
    // The first one is ready when it takes a connection.
    words.extend(["--ready", "", "--ready", &ready]);
    words.extend(["--warmup-command", "", "--warmup-command", &warm_up]);
    words.extend([fast.as_str(), slow.as_str()]);
    let outcome = success_with(&words);
    wait_until_free(address);
    let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    for side in found["sides"].as_array().expect("a list") {
        let rounds = side["rounds"].as_array().expect("a list").len();
        assert!((7..=11).contains(&rounds), "{rounds}");
    }
    let only = &found["comparisons"][0];
    if only["claim"] != "nothing" {
        assert_eq!(only["claim"], "differs", "{only}");
        assert!(
            only["change"].as_f64().is_some_and(|it| it < -0.5),
            "{only}"
        );
    }
    let warmed = std::fs::read_to_string(warmed).expect("it ran");
    let rounds = found["sides"][1]["rounds"].as_array().map_or(0, Vec::len);
    assert_eq!(
        warmed.lines().count(),
        rounds,
        "before each round of the second"
    );
}

#[test]
fn servers_at_one_url_are_called_by_their_commands_or_labels() {
    let address = address();
    let (old, new) = (
        serve(address),
        format!("{} --backend epoll", serve(address)),
    );
    let url = format!("http://{address}/");
    let mut words = vec!["compare"];
    words.extend(ROUNDS);
    words.extend(["--start", &old, "--start", &new, &url]);
    let outcome = success_with(&words);
    let unbroken = outcome.stdout.replace(['\n', ' '], "");
    for started in [&old, &new] {
        assert!(unbroken.contains(&started.replace(' ', "")), "{outcome:?}");
    }
    words.extend([
        "--label", "before", "--label", "after", "--format", "markdown",
    ]);
    let outcome = success_with(&words);
    outcome.assert_prints(&["- A: before · http://", "- B: after · http://"]);
    words.extend(["--label", "third"]);
    let outcome = brunt_with(&words);
    refused(&outcome, "3 times, and 2");
    wait_until_free(address);
}

#[test]
fn a_server_that_leaves_its_command_is_stopped_by_another() {
    let address = address();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("pid");
    // It is in a session of its own, as a service is.
    let start = format!(
        "setsid sh -c 'echo $$ > {}; exec {}' 2> /dev/null &",
        file.display(),
        serve(address)
    );
    let stop = format!("kill $(cat {})", file.display());
    let url = format!("http://{address}/");
    let mut words = vec!["compare", "--format", "json"];
    words.extend(ROUNDS);
    words.extend(["--start", &start, "--start", &start]);
    let stops = ["--stop", &stop, "--stop", &stop];
    success_with(&[&words[..], &stops, &[&url, &url]].concat());
    wait_until_free(address);
    // Without that, the first one is in the place of the second.
    let outcome = brunt_with(&[&words[..], &[&url, &url]].concat());
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(
        outcome
            .stderr
            .replace("of A", "of B")
            .contains("before the server of B is started")
            && outcome.stderr.contains("--stop"),
        "{outcome:?}"
    );
    let stopped = Process::start({
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(&stop);
        command
    });
    assert_eq!(stopped.wait().code, Some(0));
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let url = format!("http://{}/", address());
    let run = |option: &str, command: &str| {
        let mut words = vec!["compare"];
        words.extend(ROUNDS);
        words.extend(["--ready-timeout", "300ms", option, command]);
        let other = if option == "--start" {
            "--start"
        } else {
            option
        };
        words.extend([other, command, &url, &url]);
        if option != "--start" {
            words.extend(["--start", "sleep 600", "--start", "sleep 600"]);
        }
        brunt_with(&words)
    };
    let outcome = run("--start", "echo \"no such\u{9b} file\" >&2; exit 3");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    for words in [
        "the server of A ended with exit code 3 before it was ready",
        "--start of A wrote to standard error:\nno such\\u{9b} file\n",
    ] {
        // Which side comes first is chance.
        let stderr = outcome.stderr.replace("of B", "of A");
        assert!(stderr.contains(words), "{words}: {outcome:?}");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("pid");
    // It does not care for SIGTERM either.
    let deaf = format!(
        "trap '' TERM; echo $$ > {}; echo busy >&2; while :; do sleep 1; done",
        file.display()
    );
    let outcome = run("--start", &deaf);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    for words in [
        "the server of A was not ready within 0.3 s (--ready-timeout): cannot connect",
        "wrote to standard error:\nbusy\n",
    ] {
        // Which side comes first is chance.
        let stderr = outcome.stderr.replace("of B", "of A");
        assert!(stderr.contains(words), "{words}: {outcome:?}");
    }
    assert!(!is_running(&process_of(&file)));
}

#[test]
fn a_command_that_fails_ends_the_comparison_and_the_server() {
    let address = address();
    let (start, url) = (serve(address), format!("http://{address}/"));
    for (option, command) in [("--warmup-command", "exit 7"), ("--stop", "kill -9 $$")] {
        let mut words = vec!["compare"];
        words.extend(ROUNDS);
        words.extend(["--start", &start, "--start", &start]);
        words.extend([option, command, option, command, &url, &url]);
        let outcome = brunt_with(&words);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(
            outcome
                .stderr
                .replace("of B", "of A")
                .contains(&format!("{option} of A "))
                && outcome.stderr.contains(command),
            "{outcome:?}"
        );
        wait_until_free(address);
    }
}

#[test]
fn a_server_that_dies_in_its_round_is_named() {
    let address = address();
    let url = format!("http://{address}/");
    let dying = format!(
        "{} & sleep 0.3; kill -9 $!; echo gone >&2; exit 4",
        serve(address)
    );
    let mut words = vec!["compare"];
    words.extend(ROUNDS);
    words.extend(["-d", "1s", "--start", &dying, "--start", &dying, &url, &url]);
    words.retain(|word| *word != "100ms");
    let at = words
        .iter()
        .position(|word| *word == "-d")
        .expect("it is there");
    words.remove(at);
    let outcome = brunt_with(&words);
    assert!(
        outcome
            .stderr
            .replace("of B", "of A")
            .contains("the server of A ended with exit code 4 in its round")
            && outcome.stderr.contains("wrote to standard error:\ngone\n"),
        "{outcome:?}"
    );
}

#[test]
fn an_interrupted_comparison_leaves_no_server() {
    for (signals, is_deaf) in [(1, false), (2, true)] {
        let address = address();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("pid");
        let own = format!("echo $$ > {}", file.display());
        let start = match is_deaf {
            false => format!("{own}; exec {}", serve(address)),
            true => format!(
                "trap '' TERM; {own}; {} & while :; do sleep 1; done",
                serve(address)
            ),
        };
        let url = format!("http://{address}/delay/1ms");
        let mut command = binary();
        command.args(["compare", "-q", "-c", "2", "-d", "10m", "--warmup", "0s"]);
        command.args(["--start", &start, "--start", &start, &url, &url]);
        let process = Process::start(command);
        let server = process_of(&file);
        wait_for("the server listens", || {
            takes_connections(address).then_some(())
        });
        for _ in 0..signals {
            process.signal(Signal::INT);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let outcome = process.wait();
        assert_eq!(outcome.code, Some(130), "{outcome:?}");
        assert!(!is_running(&server), "{outcome:?}");
        wait_until_free(address);
    }
}

#[test]
fn a_comparison_that_is_killed_leaves_no_server() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("pid");
    // It does not mind SIGTERM, and is not the first of its group.
    let start = format!(
        "trap '' TERM; sh -c 'echo $$ > {}; exec sleep 600'",
        file.display()
    );
    let url = format!("http://{}/", address());
    let mut command = binary();
    command.args([
        "compare", "-q", "--start", &start, "--start", &start, &url, &url,
    ]);
    let process = Process::start(command);
    let server = process_of(&file);
    assert!(is_running(&server));
    process.kill();
    wait_for("the server is ended", || {
        (!is_running(&server)).then_some(())
    });
}
