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

/// Reads the output of `cargo test`, standard error included, line by line.
///
/// The stable harness prints no times. It starts the tests of a binary sorted by name, as many at
/// once as `threads`, and the next one whenever one ends; so the ends tell the starts.
#[derive(Debug)]
pub(crate) struct TestTimes {
    threads: usize,
    /// Name of the binary that runs.
    binary: String,
    started: Duration,
    /// Tests of that binary and when they ended, in this order.
    ended: Vec<(String, Duration)>,
    /// Finished binaries.
    pub(crate) binaries: Vec<Timed>,
    /// Their tests.
    pub(crate) tests: Vec<Timed>,
}

impl TestTimes {
    /// The harness runs `threads` tests at once.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads: threads.max(1),
            binary: String::new(),
            started: Duration::ZERO,
            ended: Vec::new(),
            binaries: Vec::new(),
            tests: Vec::new(),
        }
    }

    /// Takes a line that came at `now`.
    pub(crate) fn line(&mut self, line: &str, now: Duration) {
        if let Some(name) = binary_name(line) {
            self.binary = name;
        } else if is_start(line) {
            self.started = now;
            self.ended.clear();
        } else if let Some(name) = ended_test(line) {
            self.ended.push((name.to_owned(), now));
        } else if line.starts_with("test result: ") {
            self.finish(now);
        }
    }

    fn finish(&mut self, now: Duration) {
        let mut started = BTreeMap::new();
        let mut names: Vec<&str> = self.ended.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        // The first ones start at once, and each further one at the end of another.
        let starts = std::iter::repeat_n(self.started, self.threads)
            .chain(self.ended.iter().map(|&(_, at)| at));
        for (name, at) in names.into_iter().zip(starts) {
            started.insert(name, at);
        }
        for (name, at) in &self.ended {
            self.tests.push(Timed {
                name: format!("{}: {name}", self.binary),
                took: at.saturating_sub(started[name.as_str()]),
            });
        }
        self.binaries.push(Timed {
            name: self.binary.clone(),
            took: now.saturating_sub(self.started),
        });
        self.ended.clear();
    }
}

/// The binary whose tests come next, by the line of cargo that announces it.
fn binary_name(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("doc tests of {package}"));
    }
    let (_source, file) = line.strip_prefix("Running ")?.rsplit_once(" (")?;
    let (_directory, file) = file.strip_suffix(')')?.rsplit_once('/')?;
    // Without the hash of the build.
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name).into())
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
        Timed {
            name: name.into(),
            took: seconds(took_s),
        }
    }

    #[test]
    fn ends_tell_the_starts() {
        let mut times = TestTimes::new(2);
        for (at, line) in [
            (
                1,
                "     Running unittests src/lib.rs (target/debug/deps/one-0a)",
            ),
            (1, "running 0 tests"),
            (1, "test result: ok. 0 passed; 0 failed"),
            (
                2,
                "     Running tests/all/main.rs (/t/debug/deps/black_box-12ab)",
            ),
            (2, "running 4 tests"),
            (2, "test d ... ignored"),
            // a and b start at 2, c at 5 when b ends, e at 6.
            (5, "test b ... ok"),
            (6, "test a ... FAILED"),
            (7, "a line of a test ... that says something"),
            (9, "test e ... ok"),
            (15, "test c ... ok"),
            (16, "test result: FAILED. 3 passed; 1 failed"),
            (17, "   Doc-tests brunt_load"),
            (20, "running 1 test"),
            (22, "test crates/load/src/lib.rs - (line 3) ... ok"),
            (22, "test result: ok. 1 passed; 0 failed"),
        ] {
            times.line(line, seconds(at));
        }
        assert_eq!(
            times.tests,
            [
                timed("black_box: b", 3),
                timed("black_box: a", 4),
                timed("black_box: e", 3),
                timed("black_box: c", 10),
                timed(
                    "doc tests of brunt_load: crates/load/src/lib.rs - (line 3)",
                    2
                ),
            ]
        );
        assert_eq!(
            times.binaries,
            [
                timed("one", 0),
                timed("black_box", 14),
                timed("doc tests of brunt_load", 2),
            ]
        );
    }

    #[test]
    fn the_slowest_come_first_and_are_few() {
        let all: Vec<Timed> = (0..12).map(|took| timed(&took.to_string(), took)).collect();
        let text = slowest("steps", &all);
        assert!(
            text.starts_with("steps:\n   11.0 s  11\n   10.0 s  10\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1 + SHOWN);
    }
}
