//! The step `test`: all checks and all tests, and one last line that says how many passed.

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::shell;
use crate::workspace::Workspace;
use crate::{schema, servers, steps, tidy};

/// How many checks and tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Reads the line with which the test harness of one binary ends.
    fn parse(line: &str) -> Option<Self> {
        let (_verdict, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut tally = Self::default();
        for part in counts.split("; ") {
            let Some((count, word)) = part.split_once(' ') else {
                continue;
            };
            let place = match word {
                "passed" => &mut tally.passed,
                "failed" => &mut tally.failed,
                "ignored" => &mut tally.skipped,
                _ => continue,
            };
            *place = count.parse().ok()?;
        }
        Some(tally)
    }

    /// The last line of the step's output.
    fn line(self) -> String {
        let mut line = format!("{} passed, {} failed", self.passed, self.failed);
        if self.skipped > 0 {
            line.push_str(&format!(", {} skipped", self.skipped));
        }
        line
    }
}

/// Runs every step even when one fails, so that one run shows everything that is wrong. Each step
/// counts as one test.
pub(crate) fn run(workspace: &Workspace) -> ExitCode {
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    let mut record = |name: &str, result: Result<Tally>| match result {
        Ok(counts) => tally.add(counts),
        Err(error) => {
            eprintln!("xtask: {name}: {error:#}");
            tally.failed += 1;
            failures.push(format!("{name}: {error:#}"));
        }
    };
    record("servers", one(servers::run()));
    record("fmt", one(steps::fmt(workspace)));
    record("clippy", one(steps::clippy(workspace)));
    record("tidy", one(tidy::run(workspace)));
    record("schema", one(schema::run(workspace, schema::Mode::Compare)));
    let mut tests = Tally::default();
    let outcome = cargo_test(workspace, &mut tests);
    record("tests", Ok(tests));
    // Failed tests are counted already; what is left is a test that did not compile or crashed.
    if tests.failed == 0 {
        record("tests", outcome.map(|()| Tally::default()));
    }
    if !failures.is_empty() {
        println!("\nfailed:");
        for failure in &failures {
            println!("  {failure}");
        }
    }
    println!("{}", tally.line());
    if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A step as a test that passed.
fn one(result: Result<()>) -> Result<Tally> {
    result.map(|()| Tally {
        passed: 1,
        ..Tally::default()
    })
}

/// Runs all tests, passing their output on line by line while adding up the results.
fn cargo_test(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let mut command = shell::cargo();
    command
        .current_dir(workspace.root())
        .args(["test", "--workspace", "--all-features", "--no-fail-fast"])
        .stdout(Stdio::piped());
    shell::announce(&command);
    let mut child = command.spawn().context("cannot start cargo")?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let mut ours = std::io::stdout().lock();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read the output of cargo")?;
        let line = String::from_utf8_lossy(&line);
        writeln!(ours, "{line}").context("cannot write")?;
        if let Some(counts) = Tally::parse(&line) {
            tally.add(counts);
        }
    }
    drop(ours);
    let status = child.wait().context("cannot wait for cargo")?;
    shell::check(&command, status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn results_are_read_and_other_lines_are_not() {
        let cases = [
            (
                "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 1 filtered out; \
                 finished in 0.03s",
                Some(tally(12, 0, 3)),
            ),
            (
                "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; \
                 finished in 1.20s",
                Some(tally(2, 1, 0)),
            ),
            ("test result_is_read ... ok", None),
            ("running 3 tests", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Tally::parse(line), expected, "{line}");
        }
    }

    #[test]
    fn the_last_line_names_skipped_tests_only_where_there_are_some() {
        assert_eq!(tally(7, 0, 0).line(), "7 passed, 0 failed");
        assert_eq!(tally(7, 1, 2).line(), "7 passed, 1 failed, 2 skipped");
    }
}
