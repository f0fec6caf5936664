//! The percentile spectrum and the files for HdrHistogram's tools.

use std::path::Path;

use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use crate::support::process::{brunt, refused, success};
use crate::support::run::run;
use crate::support::serve::Serve;

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Counts in the histograms of an interval log, as a reader adds them up that ignores tags.
fn count_of_log(log: &str) -> u64 {
    let mut count = 0;
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(interval) = entry.expect("a line that the format has") else {
            continue;
        };
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .expect("base64");
        let histogram: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .expect("a histogram");
        count += histogram.len();
    }
    count
}

/// Rows of a percentile distribution: value, percentile and count.
fn rows_of_distribution(text: &str) -> Vec<(f64, f64, u64)> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names = ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"];
    let header: Vec<_> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(header, names, "{text}");
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let number = |place: usize| fields[place].parse::<f64>().expect("a number");
            (number(0), number(1), number(2) as u64)
        })
        .collect()
}

fn assert_distribution(text: &str, count: u64) {
    let rows = rows_of_distribution(text);
    assert!(
        rows.windows(2)
            .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1 && pair[0].2 <= pair[1].2),
        "{text}"
    );
    let last = rows.last().expect("at least one row");
    assert_eq!((last.1, last.2), (1.0, count), "{text}");
    for word in ["#[Mean", "#[Max", "#[Buckets"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn each_file_holds_every_reply_once() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let (log_name, hgrm_name) = ("run.hlog", "run.hgrm");
    for load in ["-c 4 -n 500", "-c 4 -r 500 -n 200"] {
        // What was there is replaced whole.
        for name in [log_name, hgrm_name] {
            std::fs::write(path(name), "x".repeat(100_000)).expect("the directory is ours");
        }
        let options = |ending: &str| {
            format!(
                "--hdr-log {}{ending} --hgrm {}{ending}",
                path(log_name).display(),
                path(hgrm_name).display()
            )
        };
        let stored = path("run.json");
        let (json, url) = (stored.display(), server.url("/"));
        let outcome = brunt(&format!("{load} -q -o {json} {} {url}", options("")));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
        let run: serde_json::Value = serde_json::from_str(&text_of(&stored)).expect("JSON");
        let count = run["latencies"]["response"]["count"].as_u64();
        let count = count.expect("a count");
        assert!(count > 0);
        let texts = [log_name, hgrm_name].map(|name| text_of(&path(name)));
        assert_eq!(count_of_log(&texts[0]), count, "{load}");
        assert_distribution(&texts[1], count);
        // The same again from the stored run.
        success(&format!("report {} {json}", options("2")));
        let again = [log_name, hgrm_name].map(|name| path(&format!("{name}2")));
        assert_eq!(again.map(|path| text_of(&path)), texts, "{load}");
    }
}

#[test]
fn without_a_reply_they_are_well_formed_too() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (log, distribution) = (directory.path().join("a"), directory.path().join("b"));
    let report = run(&format!(
        "-c 2 -d 100ms --warmup 0s --drain 0s --hdr-log {} --hgrm {} {}",
        log.display(),
        distribution.display(),
        server.url("/never")
    ));
    assert_eq!(report.population().censored, 2);
    assert_eq!(count_of_log(&text_of(&log)), 0);
    for (value, percentile, _) in rows_of_distribution(&text_of(&distribution)) {
        assert!(value.is_finite() && percentile.is_finite());
    }
}

#[test]
fn a_file_may_be_standard_output() {
    let server = Serve::start();
    let outcome = success(&format!(
        "-c 2 -n 100 -q -o /dev/null --hgrm /dev/stdout {}",
        server.url("/")
    ));
    assert_distribution(&outcome.stdout, 100);
}

#[test]
fn the_spectrum_follows_the_report() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let stored = directory.path().join("run.json");
    let (json, url) = (stored.display(), server.url("/"));
    let printed = success(&format!("--latency -c 4 -r 500 -n 100 -o {json} {url}"));
    let plain = brunt(&format!("report {json}")).stdout;
    let again = brunt(&format!("report --latency {json}")).stdout;
    assert_eq!(again, printed.stdout);
    assert!(!plain.contains("100.00000"), "{plain}");
    assert!(again.contains("100.00000"), "{again}");
    for line in again.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_full_disk_does_not_cost_the_other_reports() {
    let server = Serve::start();
    let outcome = brunt(&format!(
        "--format json -c 2 -n 100 --hgrm /dev/full {}",
        server.url("/")
    ));
    refused(&outcome, "/dev/full");
    assert!(outcome.stderr.contains("No space left"), "{outcome:?}");
    let json: Result<serde_json::Value, _> = serde_json::from_str(&outcome.stdout);
    assert!(json.is_ok(), "{outcome:?}");
}
