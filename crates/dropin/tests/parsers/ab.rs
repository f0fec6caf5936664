//! Programs that read ab's text read ours.

use brunt_dropin::ab::{Measured, Options, csv, heading, report};
use brunt_record::{
    Answer, FailureKind, LogPlace, Opening, Recorder, ReplyOutcome, RequestLog, RequestTiming,
    Window,
};

use crate::{FAILURES, NORMAL, groups, is_number, run};

/// What is printed of a stored run, as if it had been asked for so.
fn text(line: &str, stored: &[u8]) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let options = Options::parse("ab", &words).expect(line);
    let measured = Measured::of(&options, &run(stored), &log());
    heading(&options, b"") + &report(&options, &measured)
}

/// A log of requests that took from 1 to 300 ms, each on a connection of its own, some with other
/// statuses, lengths and failures.
fn log() -> RequestLog {
    const MS: u64 = 1_000_000;
    let mut recorder = Recorder::new(0, 1, 1);
    recorder.keep_log(300);
    recorder.set_window(Window {
        start_ns: MS,
        end_ns: 60_000 * MS,
    });
    for number in 0..300 {
        let sent_ns = MS + number;
        let timing = RequestTiming {
            due_ns: sent_ns,
            sent_ns,
            request: 0,
            again: 0,
        };
        let place = LogPlace {
            connection: 0,
            opening: Some(Opening {
                from_ns: sent_ns,
                to_ns: sent_ns + 2 * MS,
            }),
        };
        let done_ns = sent_ns + (number + 1) * MS;
        if number % 50 == 49 {
            recorder.log_failure(timing, done_ns, FailureKind::Reset, 0, place);
            continue;
        }
        let answer = Answer {
            outcome: ReplyOutcome::of_status(if number % 7 == 0 { 503 } else { 200 }),
            retry_after: false,
            interim: 0,
            head_bytes: 100,
            body_bytes: 14 + number / 200,
            first_byte_ns: done_ns,
        };
        recorder.log_reply(timing, done_ns, &answer, place);
    }
    let mut log = RequestLog::new(MS);
    recorder.hand_over_log(&mut log);
    log
}

#[test]
fn the_figures_are_those_of_the_log() {
    let text = text("-n 1000 -c 4 http://h/", NORMAL);
    for (name, value) in [
        ("Complete requests:", "300"),
        ("Failed requests:", "104"),
        ("Non-2xx responses:", "42"),
        ("Document Length:", "14"),
        ("100%", "302"),
    ] {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let line = line.expect(name).trim_start();
        let word = line[name.len()..].split_whitespace().next();
        assert_eq!(word, Some(value), "{text}");
    }
    let failed = "(Connect: 0, Receive: 6, Length: 98, Exceptions: 0)";
    assert!(text.contains(failed), "{text}");
}

/// PerfKitBenchmarker's apachebench: lines of a table by their first words, and counts by name.
#[test]
fn perfkit_finds_its_figures() {
    let text = text("-k -r -n 1000 -c 4 -e f http://h/", NORMAL);
    for expression in [
        r"Requests per second: *(\d+\.?\d*)\s",
        r"Time per request: *(\d+\.?\d*) ",
        r"Transfer rate: *(\d+\.?\d*) ",
        r"Time taken for tests: *(\d+\.?\d*) ",
        r"Concurrency Level: *(\d+)",
        r"Complete requests: *(\d+)",
        r"Failed requests: *(\d+)",
        r"Total transferred: *(\d+) bytes",
        r"HTML transferred: *(\d+) bytes",
        r"(?m)^Processing: *(\d+) *(\d+) *(\d+\.?\d*) *(\d+) *(\d+)$",
    ] {
        let found = groups(expression, &text).expect(expression);
        assert!(
            found.iter().all(|it| is_number(it)),
            "{expression}: {found:?}"
        );
    }
}

/// Bees with Machine Guns: one expression for each figure of a bee, and the file of `-e` by rows.
#[test]
fn bees_find_their_figures() {
    let text = text("-r -n 1000 -c 4 http://h/", NORMAL);
    for expression in [
        r"Time\ per\ request:\s+([0-9.]+)\ \[ms\]\ \(mean\)",
        r"Requests\ per\ second:\s+([0-9.]+)\ \[#/sec\]\ \(mean\)",
        r"\s+50%\s+([0-9]+)",
        r"\s+90%\s+([0-9]+)",
        r"Complete\ requests:\s+([0-9]+)",
        r"Failed\ requests:\s+([0-9]+)",
        r"Non-2xx\ responses:\s+([0-9]+)",
    ] {
        let found = groups(expression, &text).expect(expression);
        assert!(is_number(&found[0]), "{expression}: {found:?}");
    }
    let words = ["-n", "300", "http://h/"].map(str::to_owned);
    let options = Options::parse("ab", &words).expect("good");
    let csv = csv(&Measured::of(&options, &run(NORMAL), &log()));
    let rows: Vec<Vec<&str>> = csv
        .lines()
        .skip(1)
        .map(|row| row.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 101);
    assert!(
        rows.iter().all(|row| row.len() == 2 && is_number(row[1])),
        "{csv}"
    );
}

#[test]
fn expressions_match() {
    for stored in [NORMAL, FAILURES] {
        let text = text("-k -n 1000 -c 4 http://h/", stored);
        for expression in [
            r"Requests per second:\s+([\d.]+)",
            r"Time per request:\s+([\d.]+) \[ms\] \(mean\)",
            r"Time per request:\s+([\d.]+).*across all concurrent requests",
            r"Complete requests:\s+(\d+)",
            r"Failed requests:\s+(\d+)",
            r"Keep-Alive requests:\s+(\d+)",
            r"Transfer rate:\s+([\d.]+) \[Kbytes/sec\]",
            r"Time taken for tests:\s+([\d.]+) seconds",
            r"Total:\s+(\d+)\s+\d+\s+[\d.]+\s+\d+\s+\d+\n",
            r"\s+50%\s+([\d]+)",
            r"\s+90%\s+([\d]+)",
            r"100%\s+(\d+) \(longest request\)",
        ] {
            let found = groups(expression, &text).expect(expression);
            assert!(is_number(&found[0]), "{expression}: {found:?}");
        }
        // By the fourth word of a line, as awk counts.
        let rate = text
            .lines()
            .find(|line| line.starts_with("Requests per second"));
        let word = rate.and_then(|line| line.split_whitespace().nth(3));
        assert!(word.is_some_and(is_number), "{rate:?}");
        for name in ["Connect:", "Processing:", "Waiting:", "Total:"] {
            let is_row = |line: &&str| line.starts_with(name);
            let row = text.lines().find(is_row).expect(name);
            assert_eq!(row.split_whitespace().count(), 6, "{row}");
        }
        assert!(!text.to_lowercase().contains("nan"), "{text}");
    }
}
