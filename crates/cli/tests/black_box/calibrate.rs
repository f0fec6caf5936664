//! `brunt calibrate`: what the certificate holds, where it is stored, and that runs refer to it.
//! How good its figures are depends on the machine and is not tested.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::process::{Outcome, Process, binary, brunt};
use crate::support::run::RunReport;
use crate::support::wait_for;

/// The binary with a state directory of its own.
fn binary_with_state(state: &Path, words: &str) -> Command {
    let mut command = binary();
    command
        .env("XDG_STATE_HOME", state)
        .args(words.split_whitespace());
    command
}

fn brunt_with_state(state: &Path, words: &str) -> Outcome {
    Process::start(binary_with_state(state, words)).wait()
}

/// A program that does nothing but use a CPU, until it is dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]);
        Self(
            shell
                .stdin(Stdio::null())
                .spawn()
                .expect("there is a shell"),
        )
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The path of a certificate in what `brunt calibrate` said.
fn named(said: &str) -> PathBuf {
    let from = said.find('/').expect("a path");
    let end = said[from..].find(".json").expect("a certificate") + ".json".len();
    PathBuf::from(&said[from..from + end])
}

/// What lies where certificates are stored.
fn stored(state: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(state.join("brunt")) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.expect("it is ours").path())
        .collect()
}

/// Checks that what was measured has figures, and that what was not is named.
fn expect_complete(certificate: &Value, backends: &[&str]) {
    let list = |name: &str| certificate[name].as_array().expect("a list").clone();
    let notes = list("notes");
    let cpus = certificate["usable_cpus"].as_u64().expect("a count");
    let (mut ceilings, mut accuracies) = (0, 0);
    for backend in backends {
        let of_backend = |row: &&Value| row["backend"] == *backend;
        for ceiling in list("ceilings").iter().filter(of_backend) {
            for figure in ["requests_per_s", "bytes_per_s", "cpu_ns_per_request"] {
                let positive = ceiling[figure].as_f64().is_some_and(|value| value > 0.0);
                assert!(positive, "{figure}: {ceiling}");
            }
            let workers = ceiling["workers"].as_u64().expect("a count");
            assert!((1..=(cpus / 2).max(1)).contains(&workers), "{ceiling}");
            ceilings += 1;
        }
        accuracies += list("accuracy").iter().filter(of_backend).count();
    }
    let counts = [1, (cpus / 2).max(1)];
    let distinct = std::collections::BTreeSet::from(counts).len();
    let complete = ceilings == distinct * backends.len() && accuracies == backends.len();
    assert!(complete || !notes.is_empty(), "{certificate}");
    assert_eq!(list("ceilings").len(), ceilings, "{certificate}");
    assert!(
        certificate["clock"]["step_ns"].as_u64() > Some(0),
        "{certificate}"
    );
    for limit in ["descriptors", "ports", "accept_queue"] {
        assert!(
            certificate["limits"][limit].as_u64() > Some(0),
            "{certificate}"
        );
    }
}

#[test]
fn a_certificate_that_is_not_stored() {
    let state = tempfile::tempdir().expect("a temporary directory");
    let outcome = brunt_with_state(
        state.path(),
        "calibrate --no-store --step 150ms --format json",
    );
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stderr, "");
    let certificate: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let refused = certificate["limits"]["uring_refused"].is_string();
    let backends: &[&str] = if refused {
        &["epoll"]
    } else {
        &["uring", "epoll"]
    };
    expect_complete(&certificate, backends);
    assert!(!state.path().join("brunt").exists());
}

#[test]
fn a_stored_certificate_is_in_every_later_run() {
    let state = tempfile::tempdir().expect("a temporary directory");
    let run = || {
        let words = "--format json -c 2 -n 20 --watch off";
        brunt_with_state(state.path(), words)
    };
    let before = RunReport::of(run());
    assert!(before.at("/agents/0/calibration").is_null());

    // A machine on which tests run is not quiet: mostly nothing is stored then.
    let outcome = brunt_with_state(state.path(), "calibrate --backend epoll --step 150ms");
    let file = match outcome.code {
        Some(0) => {
            for words in ["machine", "ceiling", "accuracy"] {
                assert!(outcome.stdout.contains(words), "{words}: {outcome:?}");
            }
            named(outcome.stdout.rsplit("stored as ").next().expect("some"))
        }
        _ => {
            assert!(outcome.stderr.contains("nothing is stored"), "{outcome:?}");
            let words = "calibrate --no-store --backend epoll --step 150ms --format json";
            let printed = brunt_with_state(state.path(), words);
            assert_eq!(printed.code, Some(0), "{printed:?}");
            let file = named(&outcome.stderr);
            std::fs::write(&file, printed.stdout).expect("it is ours");
            file
        }
    };
    assert_eq!(stored(state.path()), std::slice::from_ref(&file));
    let name = file.to_str().expect("a path in UTF-8");
    let text = std::fs::read_to_string(&file).expect("it is ours");
    let certificate: Value = serde_json::from_str(&text).expect("JSON");
    expect_complete(&certificate, &["epoll"]);

    let after = RunReport::of(run());
    assert_eq!(after.at("/agents/0/calibration"), &certificate);
    let simulated = brunt_with_state(state.path(), "--format json -c 2 -n 20 --backend sim");
    assert!(
        RunReport::of(simulated)
            .at("/agents/0/calibration")
            .is_null()
    );

    std::fs::write(&file, "garbage").expect("it is ours");
    let outcome = run();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for words in [name, "brunt calibrate"] {
        assert!(outcome.stderr.contains(words), "{words}: {outcome:?}");
    }
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert!(report["agents"][0]["calibration"].is_null());
}

#[test]
fn a_busy_machine_keeps_the_certificate_that_it_had() {
    let _busy = BusyLoop::start();
    let state = tempfile::tempdir().expect("a temporary directory");
    let calibrate = || brunt_with_state(state.path(), "calibrate --backend epoll --step 150ms");
    let outcome = calibrate();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
    for part in ["nothing is stored", "other programs used", "--no-store"] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    assert_eq!(stored(state.path()), Vec::<PathBuf>::new());

    let file = named(&outcome.stderr);
    std::fs::write(&file, "the old one").expect("it is ours");
    let outcome = calibrate();
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("stays"), "{outcome:?}");
    let kept = std::fs::read_to_string(&file).expect("it is ours");
    assert_eq!(
        (stored(state.path()), kept.as_str()),
        (vec![file], "the old one")
    );

    // What was measured all the same says so.
    let words = "calibrate --no-store --backend epoll --step 150ms";
    let outcome = brunt_with_state(state.path(), words);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = outcome.stdout.replace(['\n', ' '], "");
    assert!(text.contains("otherprogramsused"), "{outcome:?}");
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let state = tempfile::tempdir().expect("a temporary directory");
    let process = Process::start(binary_with_state(state.path(), "calibrate"));
    // By then it listens for signals.
    wait_for("the place of the certificate", || {
        (!stored(state.path()).is_empty()).then_some(())
    });
    let outcome = process.wait_interrupted();
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("interrupted"), "{outcome:?}");
    assert_eq!(stored(state.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_calibrated_is_refused() {
    for (words, part) in [
        ("--step 1ms", "100ms to 60s"),
        ("--step 2m", "100ms to 60s"),
        ("--step fast", "not a duration"),
        ("--backend sim", "all, uring, epoll"),
        ("--format csv", "text, json"),
        ("http://127.0.0.1/", "unexpected argument"),
    ] {
        let outcome = brunt(&format!("calibrate --no-store {words}"));
        assert_eq!(outcome.code, Some(2), "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{words}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{words}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told_first() {
    let outcome = brunt_with_state(Path::new("/dev/null"), "calibrate");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    for part in ["/dev/null/brunt", "XDG_STATE_HOME", "--no-store"] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    let mut command = binary_with_state(Path::new("relative"), "calibrate");
    command.env_remove("HOME");
    let outcome = Process::start(command).wait();
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("--no-store"), "{outcome:?}");
}
