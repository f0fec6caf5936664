//! Programs that read other tools' text read ours: their logic and their expressions, applied to
//! the text of stored runs.

mod ab;
mod httperf;

use brunt_dropin::verdict_line;
use brunt_dropin::wrk::{Options, Program, heading, report};
use brunt_judge::{Judged, RunFigures};
use brunt_record::Run;
use regex_lite::Regex;

const NORMAL: &[u8] = include_bytes!("../../../../fuzz/corpus/stored_run/normal");
const FAILURES: &[u8] = include_bytes!("../../../../fuzz/corpus/stored_run/failures");
const SILENT: &[u8] = include_bytes!("../../../../fuzz/corpus/stored_run/silent");
const OPEN: &[u8] = include_bytes!("../../../../fuzz/corpus/stored_run/open");
const OVERLOADED: &[u8] = include_bytes!("../../../../fuzz/corpus/stored_run/overloaded");

const ALL: [&[u8]; 5] = [NORMAL, FAILURES, SILENT, OPEN, OVERLOADED];

fn run(mut stored: &[u8]) -> Run {
    brunt_report::read(&mut stored).expect("a stored run")
}

fn options(line: &str) -> Options {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Options::parse(Program::Wrk, "wrk", &words).expect(line)
}

/// What is printed of a stored run, as if it had been asked for so.
fn text(line: &str, stored: &[u8]) -> String {
    let options = options(line);
    heading(&options) + &report(&options, &run(stored))
}

/// The groups of the first match.
fn groups(expression: &str, text: &str) -> Option<Vec<String>> {
    let regex = Regex::new(expression).expect("an expression");
    let captures = regex.captures(text)?;
    let groups = captures.iter().skip(1);
    Some(
        groups
            .map(|group| group.map_or_else(String::new, |group| group.as_str().to_owned()))
            .collect(),
    )
}

fn found(expression: &str, text: &str) -> Vec<String> {
    let regex = Regex::new(expression).expect("an expression");
    regex
        .find_iter(text)
        .map(|found| found.as_str().to_owned())
        .collect()
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// What npm's `wrk` (sidorares/node-wrk) takes from fixed places.
#[derive(Debug)]
struct NodeWrk {
    transfer_per_s: String,
    requests_per_s: String,
    requests: String,
    rows: [Vec<String>; 2],
    distribution: Vec<String>,
}

fn node_wrk(stdout: &str) -> NodeWrk {
    let lines: Vec<&str> = stdout.split('\n').collect();
    let behind_colon = |line: &str| {
        let (_, behind) = line.split_once(':').expect("a colon");
        behind.trim().to_owned()
    };
    let is_error =
        |line: &&&str| line.contains("Socket errors: ") || line.contains("Non-2xx or 3xx");
    let errors = lines.iter().filter(is_error).count();
    let requests = lines[lines.len() - 4 - errors];
    let requests = groups(
        r"(\d+) requests in ([0-9\.]+[A-Za-z]+), ([0-9\.]+[A-Za]+)",
        &format!("{requests} "),
    );
    let columns = |line: &str| {
        let columns = line.split([' ', '\t']).filter(|column| !column.is_empty());
        columns.map(str::to_owned).collect::<Vec<_>>()
    };
    let distribution = if lines[5].contains("Latency Distribution") {
        let rows = lines[6..10].iter();
        rows.map(|line| columns(line)[1].clone()).collect()
    } else {
        Vec::new()
    };
    NodeWrk {
        transfer_per_s: behind_colon(lines[lines.len() - 2]),
        requests_per_s: behind_colon(lines[lines.len() - 3]),
        requests: requests.expect(stdout)[0].clone(),
        rows: [columns(lines[3]), columns(lines[4])],
        distribution,
    }
}

#[test]
fn node_wrk_finds_everything_in_its_place() {
    for stored in ALL {
        for line in ["http://h/", "--latency http://h/"] {
            let text = text(line, stored);
            let read = node_wrk(&text);
            let run = run(stored);
            let replies = run.summary().window.replies.total();
            assert_eq!(read.requests, replies.to_string(), "{text}");
            assert!(is_number(&read.requests_per_s), "{text}");
            assert!(read.transfer_per_s.ends_with('B'), "{text}");
            for (row, name) in read.rows.iter().zip(["Latency", "Req/Sec"]) {
                assert_eq!((row.len(), &*row[0]), (5, name), "{text}");
                assert!(is_number(row[4].trim_end_matches('%')), "{text}");
            }
            let rows = if line.contains("--latency") { 4 } else { 0 };
            assert_eq!(read.distribution.len(), rows, "{text}");
        }
    }
}

#[test]
fn the_expressions_of_techempower_match() {
    for stored in ALL {
        let text = text("--latency -d 15 -c 16 --timeout 8 -t 2 http://h/", stored);
        let lines: Vec<&str> = text.lines().collect();
        let latency = found(r"[0-9]+\.*[0-9]*[us|ms|s|m|%]+", lines[3]);
        assert_eq!(latency.len(), 4, "{text}");
        let requests = found(r"[0-9]+\.*[0-9]*[k|%]*", lines[4]);
        assert_eq!(requests.len(), 4, "{text}");
        assert!(groups(r"([0-9]+) requests in", &text).is_some(), "{text}");
        let length = groups(r"requests in ([0-9]+\.*[0-9]*[s|m|h]+)", &text);
        assert!(length.is_some(), "{text}");
        // Its programs in Rust.
        let total = r"([0-9]+) requests in ([0-9]+\.*[0-9]*)m?s, ([0-9]+\.*[0-9]*[KMGT]?B) read";
        assert!(groups(total, &text).is_some(), "{text}");
        for percent in [50, 75, 90, 99] {
            let row = format!(r"{percent}%(\s)*([0-9]+\.*[0-9]*[us|ms|s|m]+)");
            assert!(groups(&row, &text).is_some(), "{text}");
        }
    }
    let text = text("http://h/", FAILURES);
    for expression in [
        r"connect ([0-9]+)",
        r"read ([0-9]+)",
        r"write ([0-9]+)",
        r"timeout ([0-9]+)",
    ] {
        assert!(groups(expression, &text).is_some(), "{expression}: {text}");
    }
}

#[test]
fn other_expressions_match() {
    for stored in ALL {
        let text = text("--latency http://h/", stored);
        for expression in [
            r"(Requests/sec):\s+(\d+\.?\d*)",
            r"Transfer/sec:\s+(\d+\.?\d*)([KMGT]?B)",
            r"(?m)^\s*([0-9]+) requests in ([0-9.]+)(us|ms|s|m),",
            r" +99% +([0-9.]+)([mu]?)s *",
            r"Running (\S+) test @ (\S+)\n\s+(\d+) threads and (\d+) connections",
            r"Latency\s+([0-9.]+)\s*([a-z]+)",
        ] {
            assert!(groups(expression, &text).is_some(), "{expression}: {text}");
        }
        // The first word of a line names it.
        for name in ["Latency", "Req/Sec", "Requests/sec:", "Transfer/sec:"] {
            let is_named = |line: &&str| line.split_whitespace().next() == Some(name);
            let line = text.lines().find(is_named).expect(name);
            assert!(line.split_whitespace().count() >= 2, "{line}");
        }
        assert!(!text.to_lowercase().contains("nan"), "{text}");
    }
}

#[test]
fn status_errors_are_told_where_there_are_some() {
    for stored in ALL {
        let run = run(stored);
        let replies = run.summary().window.replies;
        let errors = replies.total() - replies.successes();
        let told = groups(
            r"Non-2xx or 3xx responses: ([0-9]+)",
            &text("http://h/", stored),
        );
        let expected = (errors > 0).then(|| vec![errors.to_string()]);
        assert_eq!(told, expected);
    }
}

#[test]
fn perfkit_reads_the_distribution_of_wrk2() {
    for stored in [OPEN, OVERLOADED] {
        for line in ["-R 100 --latency http://h/", "-R 100 --u_latency http://h/"] {
            let text = text(line, stored);
            let row = r"^\s*(\d+\.\d+)%\s+(\d+\.\d+)(us|ms|s|m)\s*\n";
            let rows = format!(
                r"(?m)^\s*Latency Distribution \(HdrHistogram - Recorded Latency\)\n((?:{row})+)"
            );
            let block = groups(&rows, &text).expect(&text);
            assert_eq!(found(&format!("(?m){row}"), &block[0]).len(), 8, "{text}");
            assert!(groups(r"(\d+) requests in \d", &text).is_some(), "{text}");
        }
    }
}

#[test]
fn the_line_of_an_overloaded_run_says_so() {
    for (stored, is_overloaded) in [(NORMAL, false), (OPEN, false), (OVERLOADED, true)] {
        let run = run(stored);
        let line = verdict_line(&Judged::of(&run));
        assert_eq!(
            line.contains("; overloaded: about "),
            is_overloaded,
            "{line}"
        );
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn plotters_read_the_spectrum_of_wrk2() {
    let text = text("-R 100 -U http://h/", OPEN);
    let is_row = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns.len() == 4
            && columns[..3].iter().all(|column| is_number(column))
            && (is_number(columns[3]) || columns[3] == "inf")
    };
    let rows: Vec<&str> = text.lines().filter(is_row).collect();
    assert!(rows.len() > 20, "{text}");
    let last: Vec<_> = rows.iter().filter(|row| row.ends_with("inf")).collect();
    // Corrected and uncorrected.
    assert_eq!(last.len(), 2, "{text}");
    for block in text.split("Detailed Percentile spectrum:").skip(1) {
        let count = groups(r"Total count    = +(\d+)", block).expect(block);
        let last = block
            .lines()
            .find(|line| line.ends_with("inf"))
            .expect(block);
        let counted = last.split_whitespace().nth(2).expect("four columns");
        assert_eq!(counted, count[0], "{block}");
    }
}
