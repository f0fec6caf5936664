//! Where reports go and what they look like there.

use crate::support::csv_row;
use crate::support::process::{Process, brunt, in_shell, limited, success};
use crate::support::run::RunReport;
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// A short load for tests of what is printed about it.
const LOAD: &str = "-c 4 -d 200ms --warmup 50ms";

/// Text for something that is no terminal.
pub(crate) fn assert_plain(text: &str, what: &str) {
    assert!(!text.is_empty(), "{what}: nothing printed");
    assert!(text.ends_with('\n'), "{what}");
    for line in text.lines() {
        let is_drawn = line.contains(['\u{1b}', '\r', '\u{8}']);
        assert!(!is_drawn, "{what}: {line:?}");
        // A command to paste is not broken.
        let fits = line.starts_with("  brunt ") || line.chars().count() <= 80;
        assert!(fits, "{what}: over 80 columns: {line}");
        assert_eq!(line.trim_end(), line, "{what}: blanks at its end");
    }
    for word in ["NaN", "inf ", "null"] {
        assert!(!text.contains(word), "{what}: {word} in\n{text}");
    }
}

#[test]
fn a_stored_run_gives_the_same_again_in_every_form() {
    let (server, files) = (Serve::start(), Stored::new());
    let file = files.path("run.json");
    for (options, path) in [
        (LOAD, "/"),
        ("-c 4 -d 200ms --warmup 0s", "/random-close/20"),
        ("-c 2 -d 100ms --warmup 0s --drain 50ms", "/never"),
    ] {
        for verbosity in ["", "-v"] {
            let url = server.url(path);
            let printed = brunt(&format!("{options} {verbosity} -o {file} {url}"));
            let again = brunt(&format!("report {verbosity} {file}"));
            assert_eq!(again.stdout, printed.stdout, "{options} {path}");
            assert_eq!(again.code, printed.code, "{options} {path}");
            assert_eq!(again.stderr, "");
        }
        let json = files.text("run.json");
        let printed = brunt(&format!("report --format json {file}"));
        assert_eq!(printed.stdout, json, "{options} {path}");
    }
}

/// A header and one row of as many fields.
fn assert_csv(text: &str) {
    assert!(csv_row(text).len() > 10, "{text}");
}

#[test]
fn without_an_ending_or_by_its_option_a_file_is_json() {
    let (server, files) = (Serve::start(), Stored::new());
    for (name, options) in [("run", ""), ("other.txt", "--format json")] {
        let load = format!("-t 1 -c 2 -n 100 {options} -o {}", files.path(name));
        let outcome = success(&format!("{load} {}", server.url("/")));
        assert!(outcome.stdout.starts_with("http"), "{outcome:?}");
        files.read(name);
    }
}

#[test]
fn several_files_each_have_the_form_of_their_name() {
    let (server, files) = (Serve::start(), Stored::new());
    let path = |name: &str| files.path(name);
    let names = ["run.json", "run.html", "run.csv", "run.txt"];
    let outputs = names.map(|name| format!("-o {}", path(name))).join(" ");
    let url = server.url("/");
    let outcome = success(&format!("-c 2 -n 50 {outputs} {url}"));
    assert!(outcome.stdout.starts_with("http"), "{outcome:?}");
    for name in names {
        // Each is what a report of the stored run in its form is.
        let again = format!("again-{name}");
        success(&format!(
            "report {} -q -o {}",
            path("run.json"),
            path(&again)
        ));
        assert_eq!(files.text(name), files.text(&again), "{name}");
    }
    assert_csv(&files.text("run.csv"));
    assert_plain(&files.text("run.txt"), "run.txt");
    // One of them may be standard output, in a form that --format names.
    let (stored, csv) = (path("run.json"), path("piped.csv"));
    let piped = brunt(&format!("report {stored} -o - --format html -o {csv}"));
    assert_eq!(piped.stdout, files.text("run.html"));
    assert_csv(&files.text("piped.csv"));

    let requests = server.counters().requests;
    for (words, parts) in [
        (
            format!("--format csv -o {stored} -o {csv}"),
            ["--format", "--output", ".json"],
        ),
        (
            format!("-o {csv} -o {csv}"),
            ["two outputs", "same file", "piped.csv"],
        ),
    ] {
        let outcome = brunt(&format!("-n 5 {words} {url}")).exits(2);
        outcome.assert_says(&parts);
    }
    assert_eq!(server.counters().requests, requests);
}

#[test]
fn an_unknown_ending_is_refused_before_load() {
    let (server, files) = (Serve::start(), Stored::new());
    let path = files.path("run.xml");
    let load = format!("-c 2 -n 10 -o {path} {}", server.url("/"));
    let outcome = brunt(&load).exits(2);
    outcome.assert_says(&["run.xml", ".json, .html, .csv, .txt or .md", "--format"]);
    assert!(!files.place("run.xml").exists());
    assert_eq!(server.counters().requests, 0);
    success(&format!("--format csv {load}"));
    assert_csv(&files.text("run.xml"));
}

#[test]
fn a_dash_is_standard_output() {
    let server = Serve::start();
    let load = format!("-c 2 -n 100 {}", server.url("/"));
    let report = RunReport::of(brunt(&format!("-o - {load}")));
    assert_eq!(report.requests().answered, 100);
    assert_csv(&brunt(&format!("-o - --format csv {load}")).stdout);
    assert_plain(
        &brunt(&format!("-q -o - --format text {load}")).stdout,
        "text",
    );
    let log = brunt(&format!("--hgrm - {load}"));
    assert!(log.stdout.trim_start().starts_with("Value "), "{log:?}");
    let two = brunt(&format!("-o - --hgrm - {load}"));
    assert_eq!((two.code, two.stdout.as_str()), (Some(2), ""), "{two:?}");
    assert!(two.stderr.contains("same file, -"), "{two:?}");
    assert!(!std::path::Path::new("-").exists());
}

#[test]
fn progress_is_lines_of_json_where_asked_for() {
    let server = Serve::start();
    let url = server.url("/");
    let outcome = success(&format!(
        "--progress json -c 3 -d 1300ms --warmup 100ms -o /dev/null {url}"
    ));
    let records: Vec<serde_json::Value> = outcome
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let phases: Vec<_> = records
        .iter()
        .map(|record| record["phase"].as_str())
        .collect();
    for phase in ["warm-up", "measure"] {
        assert!(phases.contains(&Some(phase)), "{phases:?}");
    }
    let measured = phases
        .iter()
        .filter(|&&record| record == Some("measure"))
        .count();
    assert!(measured >= 2, "{phases:?}");
    let last = records.last().expect("some");
    assert_eq!(last["connections"], 3);
    assert!(last["successes"].as_u64() > Some(0), "{last}");
    assert!(last["bytes_received"].as_u64() > Some(0), "{last}");
}

#[test]
fn an_output_may_be_a_device() {
    let server = Serve::start();
    let url = server.url("/");
    let words = [
        "-q",
        "-n",
        "100",
        "--format",
        "json",
        "-o",
        "/dev/stdout",
        &url,
    ];
    let piped = in_shell("\"$@\" | cat", &words);
    let report = RunReport::of(Process::start(piped).wait());
    assert_eq!(report.requests().answered, 100);
}

#[test]
fn a_report_that_does_not_fit_leaves_the_old_one() {
    let (server, files) = (Serve::start(), Stored::new());
    for output in [
        files.write("run.json", "as it was"),
        files.path("fresh.json"),
    ] {
        // No file may have more than a few KiB, as on a full disk.
        let words = format!("-q -c 2 -n 1000 -o {output} {}", server.url("/"));
        let outcome = limited("ulimit -f 8", &words).exits(2);
        outcome.assert_says(&["bytes at most", "RLIMIT_FSIZE", "ulimit -f"]);
    }
    assert_eq!(files.text("run.json"), "as it was");
    let left = std::fs::read_dir(files.place("")).expect("it is there");
    assert_eq!(left.count(), 1, "neither half a report nor an empty one");
}

#[test]
fn standard_output_by_name_goes_behind_what_is_there() {
    let (server, files) = (Serve::start(), Stored::new());
    let path = files.write("log", "first\n");
    let url = server.url("/");
    let words = [
        "-q",
        "-n",
        "100",
        "--format",
        "csv",
        "-o",
        "/dev/stdout",
        &url,
    ];
    let command = in_shell(&format!("\"$@\" >> {path}"), &words);
    Process::start(command).wait().exits(0);
    let text = files.text("log");
    assert_csv(text.strip_prefix("first\n").expect("what was there"));
}
