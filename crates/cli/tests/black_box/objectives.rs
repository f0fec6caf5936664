//! What is asked of a run: whether it was reached, said everywhere that asks.

use crate::support::process::{Process, binary, brunt, brunt_with, success_with};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// So long that no worker comes late to a hundredth of it, beside other tests.
const LOAD: [&str; 8] = ["-c", "2", "-r", "700", "-d", "3s", "--warmup", "0s"];
/// Reached however slow this machine is, and never reached.
const MET: &str = "errors = 0";
const MISSED: &str = "rate > 1g, errors < 0.1%";

#[test]
fn a_missed_objective_is_named_and_ends_with_1() {
    let server = Serve::start();
    let url = server.url("/");
    let with = |objectives: &[&str]| {
        let asked = objectives
            .iter()
            .flat_map(|objective| ["--objective", objective]);
        let asked: Vec<&str> = asked.collect();
        brunt_with(&[&LOAD[..], &asked, &[&url]].concat())
    };
    let met = with(&[MET]).exits(0);
    assert_eq!(met.messages(), "");
    met.assert_prints(&["errors = 0 met: 0.0 %"]);
    let missed = with(&[MET, MISSED]).exits(1);
    let messages = missed.messages();
    let lines: Vec<_> = messages.lines().collect();
    let [rate, errors] = lines[..] else {
        panic!("{messages}");
    };
    let message = "objective rate > 1,000,000,000 MISSED: ";
    assert!(rate.contains(message), "{rate}");
    // None of 2,100 failed, which does not show that less than one in 1,000 does.
    let message = "objective errors < 0.1 % MISSED: 0.0 %, up to 0.18 %";
    assert!(errors.contains(message), "{errors}");
    assert!(!messages.contains("::error"), "this is no run of GitHub's");
}

#[test]
fn a_stored_run_keeps_what_it_was_asked() {
    let server = Serve::start();
    let files = Stored::new();
    let (path, url) = (files.path("run.json"), server.url("/"));
    let own = ["-o", &path, "--objective", "rate > 1g", &url];
    brunt_with(&[&LOAD[..], &own].concat()).exits(1);
    let again = brunt(&format!("report {path}")).exits(1);
    again.assert_prints(&["rate > 1,000,000,000 MISSED"]);
    let other = success_with(&["report", &path, "--objective", "errors = 0"]);
    assert!(!other.stdout.contains("rate >"), "{}", other.stdout);
}

#[test]
fn ci_systems_are_told() {
    let server = Serve::start();
    let files = Stored::new();
    let run = || {
        let mut command = binary();
        command
            .args(LOAD)
            .args(["--objective", "errors = 0, rate > 1g", "--junit"])
            .arg(files.place("junit.xml"))
            .arg(server.url("/"))
            .env("GITHUB_ACTIONS", "true");
        Process::start(command).wait()
    };
    let outcome = run().exits(1);
    let annotation = "::error title=brunt::rate > 1,000,000,000 MISSED: ";
    outcome.assert_says(&[annotation]);
    let junit = files.text("junit.xml");
    // A busy machine may make most of a quantile brunt's own.
    let tests = 2 + junit.matches("<skipped ").count();
    let counts = format!("tests=\"{tests}\" failures=\"1\"");
    assert!(junit.contains(&counts), "{junit}");
    assert_eq!(junit.matches("<testcase ").count(), tests, "{junit}");
    assert_eq!(junit.matches("<failure ").count(), 1, "{junit}");
}
