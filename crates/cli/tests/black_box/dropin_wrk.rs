//! `brunt wrk` where wrk cannot be compared with, and what comparisons of scripts need.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::Command;

use regex_lite::Regex;

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, Process, binary, success, tool};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// `text` line by line, its indentation kept, numbers with their units as `#`, and the length of
/// the rows of its table.
pub(crate) fn masked(text: &str, url: &str) -> Vec<String> {
    let number = Regex::new(r"^[0-9]+(\.[0-9]+)?[a-zA-Z]{0,2}%?,?$").expect("an expression");
    let lines = text.lines().map(|line| {
        let line = line.replace(url, "URL");
        let indent = line.len() - line.trim_start().len();
        let is_number = |word: &str| number.is_match(word) || word == "-nan%";
        let words = line.split_whitespace();
        let words = words.map(|word| if is_number(word) { "#" } else { word });
        let words: Vec<&str> = words.collect();
        let is_row = line.starts_with("    ");
        let length = if is_row { line.len() } else { 0 };
        let indent = if is_row || indent < 2 {
            indent.min(4)
        } else {
            2
        };
        format!("{indent} {length} {}", words.join(" "))
    });
    lines.collect()
}

/// Requests with their header fields sorted. Scripts keep these in tables of Lua, which have no
/// order.
pub(crate) fn sorted(requests: &BTreeSet<String>) -> BTreeSet<Vec<&str>> {
    let sorted = requests.iter().map(|request| {
        let mut lines: Vec<&str> = request.split("\r\n").collect();
        lines[1..].sort_unstable();
        lines
    });
    sorted.collect()
}

/// Runs `words` by wrk and by brunt at once, each with its own server.
pub(crate) fn both(words: &[&str], servers: &[Keeping; 2]) -> [Outcome; 2] {
    std::thread::scope(|scope| {
        let real = scope.spawn(|| tool("wrk", true, words, &servers[0].url("")));
        let ours = tool("wrk", false, words, &servers[1].url(""));
        [real.join().expect("wrk is installed"), ours]
    })
}

#[test]
fn a_request_without_a_reply_is_a_timeout() {
    let server = Keeping::start();
    let words = ["-t1", "-c2", "-d1", "-T1", "--latency", "URL/silent"];
    let outcome = tool("wrk", false, &words, &server.url("")).exits(0);
    outcome.assert_prints(&[
        "\n  0 requests in ",
        "Socket errors: connect 0, read 0, write 0, timeout ",
    ]);
    for words in ["nan", "timeout 0"] {
        assert!(!outcome.stdout.contains(words), "{outcome:?}");
    }
}

#[test]
fn an_interrupt_gives_the_report_of_what_was_measured() {
    let server = Serve::start();
    let mut command = binary();
    command.args(["wrk", "-t1", "-c2", "-d10m", &server.url("/")]);
    let process = Process::start(command);
    server.wait_for_requests(100);
    let outcome = process.wait_interrupted().exits(0);
    outcome.assert_prints(&["Running 10m test @ ", "\nTransfer/sec: "]);
    assert!(!outcome.stdout.contains(" in 10.00m, "), "{outcome:?}");
}

#[test]
fn by_the_name_of_wrk_it_is_wrk_and_with_a_rate_wrk2() {
    let files = Stored::new();
    let wrk = files.place("wrk");
    symlink(binary().get_program(), &wrk).expect("it is ours");
    let named = |words: &[&str], variable: &str| {
        let mut command = Command::new(&wrk);
        command.args(words);
        command.env("BRUNT_REPORT", variable);
        Process::start(command).wait()
    };
    let usage = named(&["--bogus"], "").exits(1);
    let message = format!("{}: unrecognized option '--bogus'\n", wrk.display());
    assert_eq!(usage.stderr, message);

    let server = Serve::start();
    let url = server.url("/");
    let path = files.path("run.json");
    let outcome = named(&["-R", "200", "-U", "-d1", "-c4", "-t1", &url], &path).exits(0);
    let rule = "-".repeat(58);
    outcome.assert_prints(&[
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000% ",
        "\n\n  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount ",
        " TotalCount 1/(1-Percentile)\n\n",
        &format!("\n{rule}\n\n  Latency Distribution (HdrHistogram - Uncorrected Latency "),
        " Uncorrected Latency (measured without taking delayed starts into account))\n",
        "#[Buckets =           27, SubBuckets     =         2048]\n",
        " requests in 1.00s, ",
    ]);
    success(&format!("report {path}")).assert_prints(&["200"]);
}
