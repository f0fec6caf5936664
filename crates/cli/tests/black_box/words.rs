//! The counts of a report: those of the same words are the same.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;

use brunt_load::{HttpChoice, Reuse, Stop};

use crate::support::process::brunt;
use crate::support::simulated::{at_rate, plan, simulate};

/// Rows whose label says that they are about something else than the window.
const OTHER_POPULATIONS: [&str; 2] = ["whole run", "all phases"];
/// Rows that are tables or have units.
const NO_COUNTS: [&str; 3] = ["latency", "client", "server"];

/// The rows of a text report: labels and what stands beside them, on one line.
fn rows(text: &str) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let (label, rest) = line.split_at(line.len().min(12));
        match (label.trim(), rows.last_mut()) {
            ("", Some((_, items))) => items.push_str(&format!(" {}", rest.trim())),
            _ if label.is_ascii() => rows.push((label.trim().to_owned(), rest.trim().to_owned())),
            _ => {}
        }
    }
    rows
}

/// Whole numbers with the words behind them, up to a mark or the next number.
fn counts(items: &str) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    for part in items.split(['·', ';', '(', ')', ':', '\u{201c}']) {
        let words: Vec<&str> = part.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let Ok(count) = word.replace(',', "").parse::<u64>() else {
                continue;
            };
            let behind = words[at + 1..].iter();
            let noun: Vec<&str> = behind
                .take_while(|word| !word.starts_with(|first: char| first.is_ascii_digit()))
                .map(|word| word.trim_end_matches(','))
                .collect();
            let is_count = noun.first().is_some_and(|word| {
                word.len() > 2 && word.chars().all(|letter| letter.is_ascii_alphabetic())
            });
            if is_count {
                counts.push((noun.join(" "), count));
            }
        }
    }
    counts
}

fn pick<T: Copy>(number: usize, of: &[T]) -> T {
    of[number % of.len()]
}

/// Checks the reports of a stored run.
fn check(stored: &Path, what: &str) {
    let path = stored.display();
    let text = brunt(&format!("report {path}")).stdout;
    let mut known: BTreeMap<String, u64> = BTreeMap::new();
    for (label, items) in rows(&text) {
        if OTHER_POPULATIONS.contains(&&*label) || NO_COUNTS.contains(&&*label) {
            continue;
        }
        for (words, count) in counts(&items) {
            let first = *known.entry(words.clone()).or_insert(count);
            assert_eq!(first, count, "{what}: two counts of `{words}` in\n{text}");
        }
    }
}

#[test]
fn a_count_is_the_same_wherever_a_report_has_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let stored = directory.path().join("run.json");
    let mut state: u64 = 1;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize
    };
    for _ in 0..12 {
        let (connections, workers) = pick(random(), &[(1, 1), (2, 2), (7, 2), (64, 2)]);
        let (requests, duration_ms) = pick(random(), &[(1, 0), (50, 0), (0, 100), (0, 400)]);
        let (rate, per_connection) = (pick(random(), &[0, 1, 500, 9_000]), pick(random(), &[0, 1]));
        let (streams, warmup_ms) = (pick(random(), &[1, 3]), pick(random(), &[0, 30]));
        let lengths_ms = [warmup_ms, duration_ms];
        let mut plan = plan("http://simulated/", [connections, workers], lengths_ms);
        if requests > 0 {
            plan.load.stop = Stop {
                duration_ns: None,
                requests: Some(requests),
            };
        }
        if rate > 0 {
            plan = at_rate(plan, f64::from(rate));
        }
        if streams > 1 {
            plan.connection.protocol = HttpChoice::HTTP2.into();
        } else if let Some(per_connection) = NonZeroU64::new(per_connection) {
            plan.traffic.reuse = Reuse::Requests(per_connection);
        }
        let what = format!("{plan:?}");
        plan.traffic.streams = NonZeroU32::new(streams).expect("some");
        simulate(plan, None, &stored);
        check(&stored, &what);
    }
}
