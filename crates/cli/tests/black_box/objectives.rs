//! What is asked of a run: whether it was reached, said everywhere that asks.

use crate::support::process::{Process, binary, brunt, brunt_with, success_with};
use crate::support::serve::Serve;

const LOAD: [&str; 8] = ["-c", "2", "-r", "2k", "-d", "1s", "--warmup", "0s"];
/// Reached however slow this machine is, and never reached.
const MET: &str = "errors = 0";
const MISSED: &str = "rate > 1g, errors < 0.1%";

#[test]
fn a_missed_objective_is_named_and_ends_with_1() {
    let server = Serve::start();
    let url = server.url("/");
    let with = |objectives: &[&str]| {
        let mut arguments = LOAD.to_vec();
        objectives
            .iter()
            .for_each(|it| arguments.extend(["--objective", it]));
        arguments.push(&url);
        brunt_with(&arguments)
    };
    let met = with(&[MET]);
    assert_eq!(
        (met.code, met.messages().as_str()),
        (Some(0), ""),
        "{}",
        met.stdout
    );
    met.assert_prints(&["errors = 0 met: 0.0 %"]);
    let missed = with(&[MET, MISSED]);
    assert_eq!(missed.code, Some(1));
    let messages = missed.messages();
    let lines: Vec<_> = messages.lines().collect();
    let [rate, errors] = lines[..] else {
        panic!("{messages}");
    };
    assert!(
        rate.contains("objective rate > 1,000,000,000 MISSED: "),
        "{rate}"
    );
    // None of 2,000 failed, which does not show that less than one in 1,000 does.
    assert!(
        errors.contains("objective errors < 0.1 % MISSED: 0.0 %, up to 0.18 %"),
        "{errors}"
    );
    assert!(!messages.contains("::error"), "this is no run of GitHub's");
}

#[test]
fn a_stored_run_keeps_what_it_was_asked() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let stored = directory.path().join("run.json");
    let path = stored.to_str().expect("plain text");
    let url = server.url("/");
    let mut arguments = LOAD.to_vec();
    arguments.extend(["-o", path, "--objective", "rate > 1g", &url]);
    assert_eq!(brunt_with(&arguments).code, Some(1));
    let again = brunt(&format!("report {path}"));
    assert_eq!(again.code, Some(1));
    again.assert_prints(&["rate > 1,000,000,000 MISSED"]);
    let other = success_with(&["report", path, "--objective", "errors = 0"]);
    assert!(!other.stdout.contains("rate >"), "{}", other.stdout);
}

#[test]
fn names_means_and_maxima_are_objectives() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (urls, junit) = (
        directory.path().join("urls"),
        directory.path().join("junit.xml"),
    );
    std::fs::write(&urls, "/status/404\n/\n").expect("the directory is ours");
    let urls = urls.to_str().expect("plain text");
    let junit = junit.to_str().expect("plain text");
    let url = server.url("/");
    let with = |objective: &str| {
        // A second of planned arrivals: a mean needs replies in many parts of the window.
        let load = [&LOAD[..], &["-q", "-o", "/dev/null", "--urls", urls]].concat();
        let asked = ["--junit", junit, "--objective", objective, &url];
        brunt_with(&[&load[..], &asked].concat())
    };
    let met = with("/: errors < 5 %, /: max < 60s, max < 60s, mean < 60s");
    assert_eq!(
        (met.code, met.messages().as_str()),
        (Some(0), ""),
        "{met:?}"
    );
    let tests = std::fs::read_to_string(junit).expect("it was written");
    for part in [
        "name=\"/: errors &lt; 5.0 %\"",
        "name=\"max &lt; 60.0 s\"",
        "<property name=\"measured_share\" value=\"0\"/>",
        "<property name=\"measured_ns\" value=\"",
        "<system-out>",
    ] {
        assert!(tests.contains(part), "{part}: {tests}");
    }
    let missed = with("/status/404: errors = 0");
    assert_eq!(missed.code, Some(1), "{missed:?}");
    let words = "objective /status/404: errors = 0 MISSED: 100 %";
    assert!(missed.messages().contains(words), "{missed:?}");
    let nobody = with("/login: p99 < 1s");
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(
        nobody.messages().contains("nothing has this name"),
        "{nobody:?}"
    );
}

#[test]
fn ci_systems_are_told() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let junit = directory.path().join("junit.xml");
    let mut command = binary();
    command
        .args(LOAD)
        .args(["--objective", "errors = 0, rate > 1g", "--junit"])
        .arg(&junit)
        .arg(server.url("/"))
        .env("GITHUB_ACTIONS", "true");
    let outcome = Process::start(command).wait();
    assert_eq!(outcome.code, Some(1));
    let annotation = "::error title=brunt::rate > 1,000,000,000 MISSED: ";
    assert!(outcome.stderr.contains(annotation), "{}", outcome.stderr);
    let junit = std::fs::read_to_string(junit).expect("it was written");
    // A busy machine may make most of a quantile brunt's own.
    let tests = 2 + junit.matches("<skipped ").count();
    let counts = format!("tests=\"{tests}\" failures=\"1\"");
    assert!(junit.contains(&counts), "{junit}");
    assert_eq!(junit.matches("<testcase ").count(), tests, "{junit}");
    assert_eq!(junit.matches("<failure ").count(), 1, "{junit}");
}
