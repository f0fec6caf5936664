//! `brunt wrk` where wrk cannot be compared with, and what comparisons of scripts need.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::Command;

use regex_lite::Regex;

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, Process, binary};
use crate::support::serve::Serve;

/// Runs `words`, in which `URL` stands for the server, by the real wrk or by brunt.
pub(crate) fn run(is_real: bool, words: &[&str], url: &str) -> Outcome {
    let mut command = if is_real {
        Command::new("wrk")
    } else {
        let mut command = binary();
        command.arg("wrk");
        command
    };
    command.args(words.iter().map(|word| word.replace("URL", url)));
    Process::start(command).wait()
}

/// `text` line by line, its indentation kept, numbers with their units as `#`, and the length of
/// the rows of its table.
pub(crate) fn masked(text: &str, url: &str) -> Vec<String> {
    let number = Regex::new(r"^[0-9]+(\.[0-9]+)?[a-zA-Z]{0,2}%?,?$").expect("an expression");
    let lines = text.lines().map(|line| {
        let line = line.replace(url, "URL");
        let indent = line.len() - line.trim_start().len();
        let words = line.split_whitespace().map(|word| {
            if number.is_match(word) || word == "-nan%" {
                "#"
            } else {
                word
            }
        });
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
    let url = |server: &Keeping| format!("http://{}", server.address);
    std::thread::scope(|scope| {
        let real = scope.spawn(|| run(true, words, &url(&servers[0])));
        let ours = run(false, words, &url(&servers[1]));
        [real.join().expect("wrk is installed"), ours]
    })
}

#[test]
fn a_request_without_a_reply_is_a_timeout() {
    let server = Keeping::start();
    let url = format!("http://{}", server.address);
    let words = ["-t1", "-c2", "-d1", "-T1", "--latency", "URL/silent"];
    let outcome = run(false, &words, &url);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let stdout = &outcome.stdout;
    assert!(stdout.contains("\n  0 requests in "), "{stdout}");
    assert!(
        stdout.contains("Socket errors: connect 0, read 0, write 0, timeout "),
        "{stdout}"
    );
    assert!(
        !stdout.contains("nan") && !stdout.contains("timeout 0"),
        "{stdout}"
    );
}

#[test]
fn over_tls_nothing_is_verified() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Serve::start_secure(&directory.path().join("server.pem"), &[]);
    let outcome = run(false, &["-t1", "-c2", "-d1", &server.url("/")], "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!outcome.stdout.contains("\n  0 requests"), "{outcome:?}");
    assert!(!outcome.stdout.contains("errors"), "{outcome:?}");
}

#[test]
fn an_interrupt_gives_the_report_of_what_was_measured() {
    let server = Serve::start();
    let mut command = binary();
    command.args(["wrk", "-t1", "-c2", "-d10m", &server.url("/")]);
    let process = Process::start(command);
    server.wait_for_requests(100);
    let outcome = process.wait_interrupted();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(
        outcome.stdout.starts_with("Running 10m test @ "),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("\nTransfer/sec: "), "{outcome:?}");
    assert!(!outcome.stdout.contains(" in 10.00m, "), "{outcome:?}");
}

#[test]
fn by_the_name_of_wrk_it_is_wrk_and_with_a_rate_wrk2() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let wrk = directory.path().join("wrk");
    symlink(binary().get_program(), &wrk).expect("it is ours");
    let named = |words: &[&str], variable: &str| {
        let mut command = Command::new(&wrk);
        command.args(words);
        command.env("BRUNT_REPORT", variable);
        Process::start(command).wait()
    };
    let usage = named(&["--bogus"], "");
    assert_eq!(usage.code, Some(1));
    let message = format!("{}: unrecognized option '--bogus'\n", wrk.display());
    assert_eq!(usage.stderr, message);

    let server = Serve::start();
    let url = server.url("/");
    let stored = directory.path().join("run.json");
    let path = stored.to_str().expect("a path in UTF-8");
    let outcome = named(&["-R", "200", "-U", "-d1", "-c4", "-t1", &url], path);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let rule = "-".repeat(58);
    for words in [
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000% ",
        "\n\n  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount ",
        " TotalCount 1/(1-Percentile)\n\n",
        &format!("\n{rule}\n\n  Latency Distribution (HdrHistogram - Uncorrected Latency "),
        " Uncorrected Latency (measured without taking delayed starts into account))\n",
        "#[Buckets =           27, SubBuckets     =         2048]\n",
        " requests in 1.00s, ",
    ] {
        outcome.assert_prints(&[words]);
    }
    let report = Process::start({
        let mut command = binary();
        command.args(["report", path]);
        command
    });
    let report = report.wait();
    assert_eq!(report.code, Some(0), "{report:?}");
    assert!(report.stdout.contains("200"), "{report:?}");
}
