//! Where reports go and what they look like there.

use std::process::Command;

use crate::support::malformed::MalformedServer;
use crate::support::process::{Process, brunt, success};
use crate::support::run::{RunReport, start_run};
use crate::support::serve::Serve;

/// A short load for tests of what is printed about it.
const LOAD: &str = "-c 4 -d 200ms --warmup 50ms";

/// Text for something that is no terminal.
pub(crate) fn assert_plain(text: &str, what: &str) {
    assert!(!text.is_empty(), "{what}: nothing printed");
    assert!(text.ends_with('\n'), "{what}");
    for line in text.lines() {
        assert!(
            !line.contains(['\u{1b}', '\r', '\u{8}']),
            "{what}: {line:?}"
        );
        // A command to paste is not broken.
        let is_whole = line.starts_with("  brunt ");
        assert!(
            is_whole || line.chars().count() <= 80,
            "{what}: over 80 columns: {line}"
        );
        assert_eq!(
            line.trim_end(),
            line,
            "{what}: blanks at the end of {line:?}"
        );
    }
    for word in ["NaN", "inf ", "null"] {
        assert!(!text.contains(word), "{what}: {word} in\n{text}");
    }
}

#[test]
fn text_on_a_pipe_is_plain_and_within_80_columns() {
    let server = MalformedServer::start();
    let long = format!("/bytes/10?{}", "a-long-query-".repeat(10));
    for (options, path) in [
        (LOAD, "/"),
        ("-c 4 -d 200ms --warmup 50ms -v", "/chunked/100"),
        (
            "-c 4 -d 200ms --warmup 0s -t 2 --oversubscribe",
            "/random-close/20",
        ),
        ("-c 4 -d 200ms --warmup 0s -v", "/status/503"),
        ("-c 2 -d 100ms --warmup 0s --drain 50ms", "/never"),
        (
            "-c 2 -d 100ms --warmup 0s --pipeline 4 -v",
            "/malformed/garbage",
        ),
        ("-c 4 -n 100", long.as_str()),
    ] {
        let outcome = brunt(&format!("{options} {}", server.url(path)));
        assert_eq!(outcome.stderr, "", "no progress where there is no terminal");
        assert_plain(&outcome.stdout, &format!("{options} {path}"));
        // Lines are broken, and nothing is cut off.
        let unbroken = outcome.stdout.replace(['\n', ' '], "");
        assert!(unbroken.contains(path), "{path} in\n{}", outcome.stdout);
    }
}

#[test]
fn a_stored_run_gives_the_same_text_again() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("run.json");
    let file = file.to_str().expect("a path in UTF-8");
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
    }
}

#[test]
fn a_stored_run_gives_the_same_json_and_csv_again() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let stored = directory.path().join("run.json");
    let copy = directory.path().join("copy.json");
    let (stored_name, copy_name) = (stored.display(), copy.display());
    success(&format!("{LOAD} -q -o {stored_name} {}", server.url("/")));
    let json = std::fs::read_to_string(&stored).expect("it was written");
    let printed = brunt(&format!("report --format json {stored_name}"));
    assert_eq!(printed.stdout, json);
    let outcome = brunt(&format!("report -q -o {copy_name} {stored_name}"));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    assert_eq!(
        std::fs::read_to_string(&copy).expect("it was written"),
        json
    );
    let csv = brunt(&format!("report --format csv {stored_name}")).stdout;
    let csv_again = brunt(&format!("report --format csv {copy_name}")).stdout;
    assert_eq!(csv, csv_again);
    assert_csv(&csv);
}

/// A header and one row of as many fields.
fn assert_csv(text: &str) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let columns = reader.headers().expect("a header").len();
    let rows: Vec<_> = reader
        .records()
        .map(|row| row.expect("as many fields as the header has"))
        .collect();
    assert!(columns > 10, "{text}");
    assert_eq!(rows.len(), 1, "{text}");
}

#[test]
fn the_form_of_a_file_follows_its_name() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let written = |name: &str, options: &str| {
        let path = directory.path().join(name);
        let outcome = success(&format!(
            "-t 1 -c 2 -n 100 {options} -o {} {}",
            path.display(),
            server.url("/")
        ));
        assert!(outcome.stdout.starts_with("http"), "{}", outcome.stdout);
        std::fs::read_to_string(&path).expect("it was written")
    };
    assert_csv(&written("run.csv", ""));
    assert_plain(&written("run.txt", ""), "run.txt");
    for (name, options) in [
        ("run.json", ""),
        ("run", ""),
        ("other.txt", "--format json"),
    ] {
        let text = written(name, options);
        assert!(
            serde_json::from_str::<serde_json::Value>(&text).is_ok(),
            "{name}"
        );
    }
}

#[test]
fn several_files_each_have_the_form_of_their_name() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let names = ["run.json", "run.html", "run.csv", "run.txt"];
    let files: String = names
        .iter()
        .map(|name| format!("-o {} ", path(name)))
        .collect();
    let url = server.url("/");
    let outcome = success(&format!("-c 2 -n 50 {files} {url}"));
    assert!(outcome.stdout.starts_with("http"), "{outcome:?}");
    for name in names {
        // Each is what a report of the stored run in its form is.
        let again = path(&format!("again-{name}"));
        let stored = path("run.json");
        assert_eq!(
            brunt(&format!("report {stored} -q -o {again}")).code,
            Some(0)
        );
        let read = |path: &str| std::fs::read_to_string(path).expect(name);
        assert_eq!(read(&path(name)), read(&again), "{name}");
    }
    // One of them may be standard output, in a form that --format names.
    let (stored, csv) = (path("run.json"), path("piped.csv"));
    let piped = brunt(&format!("report {stored} -o - --format html -o {csv}"));
    let page = std::fs::read_to_string(path("run.html")).expect("it was written");
    assert_eq!(piped.stdout, page);
    assert_csv(&std::fs::read_to_string(&csv).expect("it was written"));

    let requests = server.counters().requests;
    for (words, parts) in [
        (
            format!("--format csv -o {stored} -o {csv}"),
            ["--format", "--output", ".json"],
        ),
        (
            format!("-o {csv} -o {csv}"),
            ["--output", "same file", "piped.csv"],
        ),
    ] {
        let outcome = brunt(&format!("-n 5 {words} {url}"));
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        for part in parts {
            assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
        }
    }
    assert_eq!(server.counters().requests, requests);
}

#[test]
fn an_unknown_ending_is_refused_before_load() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("run.xml");
    let load = format!("-c 2 -n 10 -o {} {}", path.display(), server.url("/"));
    let outcome = brunt(&load);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    outcome.assert_says(&["run.xml", ".json, .html, .csv, .txt or .md", "--format"]);
    assert!(!path.exists());
    assert_eq!(server.counters().requests, 0);
    success(&format!("--format csv {load}"));
    assert_csv(&std::fs::read_to_string(&path).expect("it was written"));
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
    assert!(two.stderr.contains("--output and --hgrm"), "{two:?}");
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
    let phases: Vec<_> = records.iter().map(|it| it["phase"].as_str()).collect();
    for phase in ["warm-up", "measure"] {
        assert!(phases.contains(&Some(phase)), "{phases:?}");
    }
    let measured = phases.iter().filter(|&&it| it == Some("measure")).count();
    assert!(measured >= 2, "{phases:?}");
    let last = records.last().expect("some");
    assert_eq!(last["connections"], 3);
    assert!(last["successes"].as_u64() > Some(0), "{last}");
    assert!(last["bytes_received"].as_u64() > Some(0), "{last}");
}

#[test]
fn an_interrupted_run_is_stored_too() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("run.json");
    let process = start_run(&format!(
        "-o {} -c 4 -d 10m --warmup 0s {}",
        path.display(),
        server.url("/")
    ));
    server.wait_for_requests(100);
    assert_eq!(process.wait_interrupted().code, Some(130));
    let printed = brunt(&format!("report --format json {}", path.display()));
    let json: serde_json::Value = serde_json::from_str(&printed.stdout).expect("a whole report");
    assert_eq!(json["agents"][0]["interrupted"], true);
}

#[test]
fn an_output_may_be_a_device() {
    let server = Serve::start();
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!(
        "'{}' -q -c 2 -n 100 --format json -o /dev/stdout {} | cat",
        env!("CARGO_BIN_EXE_brunt"),
        server.url("/")
    ));
    let report = RunReport::of(Process::start(command).wait());
    assert_eq!(report.requests().answered, 100);
}

#[test]
fn a_report_that_does_not_fit_leaves_the_old_one() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("run.json");
    std::fs::write(&path, "as it was").expect("it is ours");
    let fresh = directory.path().join("fresh.json");
    for output in [
        format!("-o {}", path.display()),
        format!("-o {}", fresh.display()),
    ] {
        // No file may have more than a few KiB, as on a full disk.
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!(
            "ulimit -f 8; exec '{}' -q -c 2 -n 1000 {output} {}",
            env!("CARGO_BIN_EXE_brunt"),
            server.url("/")
        ));
        let outcome = Process::start(command).wait();
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        outcome.assert_says(&["bytes at most", "RLIMIT_FSIZE", "ulimit -f"]);
    }
    let text = std::fs::read_to_string(&path).expect("it is there still");
    assert_eq!(text, "as it was");
    let left = std::fs::read_dir(directory.path()).expect("it is there");
    assert_eq!(left.count(), 1, "neither half a report nor an empty one");
}

#[test]
fn standard_output_by_name_goes_behind_what_is_there() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("log");
    std::fs::write(&path, "first\n").expect("it is ours");
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!(
        "'{}' -q -c 2 -n 100 --format csv -o /dev/stdout {} >> {}",
        env!("CARGO_BIN_EXE_brunt"),
        server.url("/"),
        path.display()
    ));
    let outcome = Process::start(command).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = std::fs::read_to_string(&path).expect("it is there still");
    assert_csv(text.strip_prefix("first\n").expect("what was there"));
}
