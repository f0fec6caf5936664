//! The step `test`: all checks and all tests, what took longest, and one last line that says how
//! many passed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::timing::{TestTimes, Timed, slowest};
use crate::workspace::Workspace;
use crate::{servers, steps, tidy};

/// Tells the test harness how many tests it runs at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// Those that take long mostly wait: the black-box tests use 190 s of CPU.
const TEST_THREADS_PER_CPU: usize = 2;
/// So many failed tests are run again alone. Where more fail, the change is at fault, and not a
/// machine that was busy with other tests.
const RUN_AGAIN_MAX: usize = 3;

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

    /// So many of the tests that failed passed when they were run again.
    fn passed_again(&mut self, count: u64) {
        self.failed = self.failed.saturating_sub(count);
        self.passed += count;
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

/// Steps that were run.
#[derive(Debug, Default)]
struct Steps {
    tally: Tally,
    failures: Vec<String>,
    times: Vec<Timed>,
}

impl Steps {
    fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Tally>) {
        let start = Instant::now();
        let result = step();
        self.add(name, start.elapsed(), result);
    }

    fn add(&mut self, name: &str, took: Duration, result: Result<Tally>) {
        self.times.push(Timed {
            name: name.to_owned(),
            took,
        });
        match result {
            Ok(counts) => self.tally.add(counts),
            Err(error) => {
                eprintln!("xtask: {name}: {error:#}");
                self.tally.failed += 1;
                self.failures.push(format!("{name}: {error:#}"));
            }
        }
    }
}

/// Runs every step even when one fails, so that one run shows everything that is wrong. Each step
/// counts as one test.
pub(crate) fn run(workspace: &Workspace) -> ExitCode {
    let mut steps = Steps::default();
    // They are downloaded while the compiler works.
    let servers = std::thread::spawn(|| {
        let start = Instant::now();
        let result = one(servers::run());
        (start.elapsed(), result)
    });
    steps.run("fmt", || one(steps::fmt(workspace)));
    steps.run("clippy", || one(steps::clippy(workspace)));
    steps.run("tidy", || one(tidy::run(workspace)));
    // The schema is compared by a test of brunt-report: the step of its own would build that crate
    // and what it needs once more, with other features.
    steps.run("build of the tests", || {
        one(shell::run(cargo_test(workspace).arg("--no-run")))
    });
    match servers.join() {
        Ok((took, result)) => steps.add("servers, beside the others", took, result),
        Err(_) => steps.run("servers", || bail!("its thread panicked")),
    }
    let threads = std::env::var(TEST_THREADS).ok();
    let threads = threads.and_then(|typed| typed.parse().ok());
    let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(|| TEST_THREADS_PER_CPU * cpus());
    let mut times = TestTimes::new(threads);
    let mut alone = Vec::new();
    steps.run("tests", || {
        let mut ran = run_tests(cargo_test(workspace), threads, &mut times)?;
        if (1..=RUN_AGAIN_MAX).contains(&ran.failed.len()) {
            alone = run_alone(workspace, &ran.failed)?;
            ran.tally.passed_again(alone.len() as u64);
        }
        Ok(ran.tally)
    });
    print!("\n{}", slowest("steps", &steps.times));
    print!("{}", slowest("slowest test binaries", &times.binaries));
    print!("{}", slowest("slowest tests", &times.tests));
    for name in &alone {
        println!("failed beside others, passed alone: {name}");
    }
    if !steps.failures.is_empty() {
        println!("\nfailed:");
        for failure in &steps.failures {
            println!("  {failure}");
        }
    }
    println!("{}", steps.tally.line());
    if steps.tally.failed == 0 {
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

/// The tests of all packages.
fn cargo_test(workspace: &Workspace) -> Command {
    let mut command = shell::cargo();
    command.current_dir(workspace.root()).args([
        "test",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]);
    command
}

/// Tests that were run.
#[derive(Debug, Default)]
struct Ran {
    tally: Tally,
    /// Names of those that failed.
    failed: Vec<String>,
}

/// The name of a test that failed, where `line` of the test harness says that.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Runs the tests that failed again, one after the other with nothing beside them: black-box tests
/// run in real time, and others on the same CPUs may have made them late. Gives those that pass.
fn run_alone(workspace: &Workspace, failed: &[String]) -> Result<Vec<String>> {
    let mut passed = Vec::new();
    for name in failed {
        let mut command = cargo_test(workspace);
        command.args(["--", "--exact", name]);
        let ran = run_tests(command, 1, &mut TestTimes::new(1))?;
        if ran.tally.failed == 0 && ran.tally.passed > 0 {
            passed.push(name.clone());
        }
    }
    Ok(passed)
}

/// Runs tests, passing their output on line by line while adding up the results.
fn run_tests(mut command: Command, threads: usize, times: &mut TestTimes) -> Result<Ran> {
    command.env(TEST_THREADS, threads.to_string());
    shell::announce(&command);
    // One pipe for both, so that cargo's names of binaries stay in order with what these print.
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let both = writer.try_clone().context("cannot share a pipe")?;
    command.stdout(both).stderr(writer);
    let start = Instant::now();
    let mut child = command.spawn().context("cannot start cargo")?;
    // The ends of the pipe that `command` holds would keep it open.
    let description = shell::describe(&command);
    drop(command);
    let mut ran = Ran::default();
    let mut ours = std::io::stdout().lock();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("cannot read the output of cargo")?;
        let line = String::from_utf8_lossy(&line);
        writeln!(ours, "{line}").context("cannot write")?;
        times.line(&line, start.elapsed());
        if let Some(counts) = Tally::parse(&line) {
            ran.tally.add(counts);
        }
        ran.failed.extend(failed_test(&line).map(str::to_owned));
    }
    drop(ours);
    let status = child.wait().context("cannot wait for cargo")?;
    // Failed tests are counted already; what is left is a test that did not compile or crashed.
    if ran.tally.failed == 0 {
        shell::check(&description, status)?;
    }
    Ok(ran)
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
    fn failed_tests_are_named() {
        let cases = [
            ("test time::an_end ... FAILED", Some("time::an_end")),
            ("test time::an_end ... ok", None),
            ("test result: FAILED. 2 passed; 1 failed", None),
        ];
        for (line, expected) in cases {
            assert_eq!(failed_test(line), expected, "{line}");
        }
        let mut counts = tally(7, 2, 0);
        counts.passed_again(1);
        assert_eq!(counts, tally(8, 1, 0));
    }

    #[test]
    fn the_last_line_names_skipped_tests_only_where_there_are_some() {
        assert_eq!(tally(7, 0, 0).line(), "7 passed, 0 failed");
        assert_eq!(tally(7, 1, 2).line(), "7 passed, 1 failed, 2 skipped");
    }
}
