//! How long the steps took, and the tests of each binary, as far as the test harness tells.

use std::collections::BTreeMap;
use std::time::Duration;

/// How many of the slowest are printed.
const SHOWN: usize = 10;

/// What is called how, and took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) took: Duration,
}

impl Timed {
    pub(crate) fn new(name: &str, took: Duration) -> Self {
        Self {
            name: name.to_owned(),
            took,
        }
    }
}

/// A heading, and below it the slowest of `timed`, at most ten, slowest first.
pub(crate) fn slowest(heading: &str, timed: &[Timed]) -> String {
    let mut sorted: Vec<&Timed> = timed.iter().collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(one.took));
    let mut text = format!("{heading}:\n");
    for Timed { name, took } in sorted.into_iter().take(SHOWN) {
        text.push_str(&format!("{:>7.1} s  {name}\n", took.as_secs_f64()));
    }
    text
}

/// Reads the output of a binary with tests line by line.
///
/// The stable harness prints no times. It starts the tests of a binary sorted by name, as many at
/// once as `threads`, and the next one whenever one ends; so the ends tell the starts.
#[derive(Debug)]
pub(crate) struct TestTimes {
    threads: usize,
    binary: String,
    started: Duration,
    /// Tests and when they ended, in this order.
    ended: Vec<(String, Duration)>,
    /// Tests and how long they took, once all have ended.
    pub(crate) tests: Vec<Timed>,
}

impl TestTimes {
    /// The harness of `binary` runs `threads` tests at once.
    pub(crate) fn new(binary: &str, threads: usize) -> Self {
        Self {
            threads: threads.max(1),
            binary: binary.to_owned(),
            started: Duration::ZERO,
            ended: Vec::new(),
            tests: Vec::new(),
        }
    }

    /// Takes a line that came at `now`.
    pub(crate) fn line(&mut self, line: &str, now: Duration) {
        if is_start(line) {
            self.started = now;
        } else if let Some(name) = ended_test(line) {
            self.ended.push((name.to_owned(), now));
        } else if line.starts_with("test result: ") {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let mut names: Vec<&String> = self.ended.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        // The first ones start at once, and each further one at the end of another.
        let first = std::iter::repeat_n(self.started, self.threads);
        let starts = first.chain(self.ended.iter().map(|&(_, at)| at));
        let started: BTreeMap<&String, Duration> = names.into_iter().zip(starts).collect();
        for (name, at) in &self.ended {
            let took = at.saturating_sub(started[name]);
            let name = format!("{} {name}", self.binary);
            self.tests.push(Timed { name, took });
        }
    }
}

/// Whether `line` is the first of a binary's own.
fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .is_some_and(|rest| rest.ends_with(" test") || rest.ends_with(" tests"))
}

/// The test that ended, by the line that says so. Ignored ones take no time and no thread.
fn ended_test(line: &str) -> Option<&str> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    matches!(outcome, "ok" | "FAILED").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn timed(name: &str, took_s: u64) -> Timed {
        Timed::new(name, seconds(took_s))
    }

    #[test]
    fn ends_tell_the_starts() {
        let mut times = TestTimes::new("one", 2);
        for (at, line) in [
            (2, "running 4 tests"),
            (2, "test d ... ignored"),
            // a and b start at 2, c at 5 when b ends, e at 6.
            (5, "test b ... ok"),
            (6, "test a ... FAILED"),
            (7, "a line of a test ... that says something"),
            (9, "test e ... ok"),
            (15, "test c ... ok"),
            (16, "test result: FAILED. 3 passed; 1 failed"),
        ] {
            times.line(line, seconds(at));
        }
        assert_eq!(
            times.tests,
            [
                timed("one b", 3),
                timed("one a", 4),
                timed("one e", 3),
                timed("one c", 10),
            ]
        );
    }
}
