//! The step `test`: all checks and all tests, what took longest, and one last line that says how
//! many passed.

use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::binaries::{self, TEST_THREADS, TestBinary};
use crate::shell::Priority;
use crate::tally::Tally;
use crate::timing::{Timed, slowest};
use crate::workspace::Workspace;
use crate::{seed, servers, steps, tidy};

/// Which tests of a binary run in real time, by names or parts of names.
#[derive(Clone, Copy)]
enum InRealTime {
    All,
    AllBut(&'static [&'static str]),
    Only(&'static [&'static str]),
}

/// Binaries with tests that run in real time: against sockets, kernels and processes.
///
/// They mostly wait: more of them run at once than there are CPUs, and everything else runs on the
/// CPUs that they leave.
const REAL_TIME: &[(&str, InRealTime)] = &[
    ("brunt --test black_box", InRealTime::All),
    (
        "brunt-engine --test engine",
        InRealTime::AllBut(&["simulation::", "sim::"]),
    ),
    // They load a server: at idle priority a worker may stand still for longer than the engine
    // allows for, and the run is then invalid.
    ("brunt-engine --lib", InRealTime::Only(&["session::"])),
    ("brunt-server --test running", InRealTime::All),
    ("brunt-io --lib", InRealTime::All),
    ("brunt-probe --lib", InRealTime::All),
];
/// How many of the tests in real time run at once, per CPU.
const REAL_TIME_THREADS_PER_CPU: usize = 2;

/// Tests of one binary that are run together.
#[derive(Debug, PartialEq, Eq)]
struct Job {
    binary: TestBinary,
    /// Arguments of the test harness.
    filters: Vec<String>,
}

impl Job {
    fn label(&self) -> String {
        let name = std::slice::from_ref(&self.binary.name);
        [name, &self.filters].concat().join(" ")
    }
}

/// What runs in real time, and what does not: from the table above.
///
/// # Errors
///
/// The table names a binary that there is not.
fn jobs(binaries: &[TestBinary]) -> Result<(Vec<Job>, Vec<Job>)> {
    if let Some((name, _)) = REAL_TIME
        .iter()
        .find(|(name, _)| binaries.iter().all(|binary| binary.name != *name))
    {
        bail!("xtask/src/test.rs names a test binary that is not built: {name}");
    }
    let (mut real_time, mut others) = (Vec::new(), Vec::new());
    for binary in binaries {
        let job = |filters| Job {
            binary: binary.clone(),
            filters,
        };
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let skipped = |names: &[&str]| {
            let filters = names.iter().flat_map(|name| ["--skip", *name]);
            filters.map(str::to_owned).collect()
        };
        let tests = REAL_TIME.iter().find(|(name, _)| binary.name == *name);
        let (filters, rest) = match tests.map(|(_, tests)| tests) {
            None => (None, Some(Vec::new())),
            Some(InRealTime::All) => (Some(Vec::new()), None),
            Some(InRealTime::AllBut(names)) => (Some(skipped(names)), Some(named(names))),
            Some(InRealTime::Only(names)) => (Some(named(names)), Some(skipped(names))),
        };
        real_time.extend(filters.map(job));
        others.extend(rest.map(job));
    }
    Ok((real_time, others))
}

/// What was run, and how it ended.
#[derive(Debug, Default)]
struct Results {
    tally: Tally,
    failures: Vec<String>,
    steps: Vec<Timed>,
    binaries: Vec<Timed>,
    tests: Vec<Timed>,
}

/// The results, for steps that run at the same time.
#[derive(Debug, Default)]
struct Steps(Mutex<Results>);

impl Steps {
    fn results(&self) -> MutexGuard<'_, Results> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step that counts as what it gives.
    fn run(&self, name: &str, step: impl FnOnce() -> Result<Tally>) {
        let start = Instant::now();
        let result = step();
        self.add(name, start.elapsed(), result);
    }

    /// A step that counts as one test.
    fn one(&self, name: &str, step: impl FnOnce() -> Result<()>) {
        self.run(name, || step().map(|()| Tally::ONE));
    }

    fn add(&self, name: &str, took: Duration, result: Result<Tally>) {
        let results = &mut *self.results();
        results.steps.push(Timed::new(name, took));
        match result {
            Ok(counts) => results.tally.add(counts),
            Err(error) => results.fail(format!("{name}: {error:#}")),
        }
    }

    /// Runs `jobs` one after the other, as one step.
    fn tests(&self, name: &str, jobs: &[Job], threads: usize, priority: Priority, seed: u64) {
        let start = Instant::now();
        for job in jobs {
            let start = Instant::now();
            let ran = job.binary.run(&job.filters, threads, priority, seed);
            let results = &mut *self.results();
            match ran {
                Ok(ran) => {
                    println!("\n{}\n{}", job.label(), ran.output);
                    results.tally.add(ran.tally);
                    results.tests.extend(ran.times.tests);
                    let failed = ran.failed.iter();
                    let failed = failed.map(|name| format!("{} {name}", job.binary.name));
                    results.failures.extend(failed);
                }
                Err(error) => results.fail(format!("{error:#}")),
            }
            let took = Timed::new(&job.label(), start.elapsed());
            results.binaries.push(took);
        }
        self.add(name, start.elapsed(), Ok(Tally::default()));
    }
}

impl Results {
    fn fail(&mut self, failure: String) {
        eprintln!("xtask: {failure}");
        self.tally.failed += 1;
        self.failures.push(failure);
    }
}

/// Runs the tests `real_time`, and beside them, on the CPUs that they leave, everything else.
fn check(workspace: &Workspace, steps: &Steps, real_time: &[Job], others: &[Job], seed: u64) {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = std::env::var(TEST_THREADS).ok();
    let threads = threads.and_then(|typed| typed.parse().ok());
    let real_time_threads = threads.unwrap_or(REAL_TIME_THREADS_PER_CPU * cpus);
    let threads = threads.unwrap_or(cpus);
    thread::scope(|scope| {
        scope.spawn(|| {
            steps.run("doc tests", || steps::doc_tests(workspace, Priority::Idle));
        });
        scope.spawn(|| steps.tests("other tests", others, threads, Priority::Idle, seed));
        let (threads, priority) = (real_time_threads, Priority::Normal);
        steps.tests("tests in real time", real_time, threads, priority, seed);
    });
}

/// Runs every step even when one fails, so that one run shows everything that is wrong.
pub(crate) fn run(workspace: &Workspace) -> ExitCode {
    let steps = Steps::default();
    // They are downloaded while the compiler works.
    let servers = thread::spawn(|| {
        let start = Instant::now();
        let result = servers::run().map(|()| Tally::ONE);
        (start.elapsed(), result)
    });
    steps.one("fmt", || steps::fmt(workspace));
    steps.one("tidy", || tidy::run(workspace));
    let (mut real_time, mut others) = (Vec::new(), Vec::new());
    let mut warnings = 0;
    steps.one("build of the tests", || {
        let built = binaries::build(workspace)?;
        warnings = built.warnings;
        (real_time, others) = jobs(&built.binaries)?;
        Ok(())
    });
    steps.one("clippy, in the build", || {
        ensure!(
            warnings == 0,
            "warnings of the compiler and clippy: {warnings}"
        );
        Ok(())
    });
    match servers.join() {
        Ok((took, result)) => steps.add("servers, beside the others", took, result),
        Err(_) => steps.one("servers", || bail!("its thread panicked")),
    }
    let seed = seed::of(workspace);
    check(workspace, &steps, &real_time, &others, seed);
    let results = &*steps.results();
    print!("\n{}", slowest("steps", &results.steps));
    print!("{}", slowest("slowest test binaries", &results.binaries));
    print!("{}", slowest("slowest tests", &results.tests));
    println!("random plans and inputs: {}={seed}", seed::VARIABLE);
    if !results.failures.is_empty() {
        println!("\nfailed:");
        for failure in &results.failures {
            println!("  {failure}");
        }
    }
    println!("{}", results.tally.line());
    if results.tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_tests_are_no_tests_in_real_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one");
        let names = REAL_TIME.iter().map(|(name, _)| *name);
        let binaries: Vec<TestBinary> = names
            .chain(["brunt-load --lib"])
            .map(|name| TestBinary::of_script(name, &path, ""))
            .collect();
        let (real_time, others) = jobs(&binaries).unwrap();
        let labels = |jobs: &[Job]| jobs.iter().map(Job::label).collect::<Vec<_>>();
        assert!(labels(&real_time).contains(&"brunt --test black_box".to_owned()));
        let engine = "brunt-engine --test engine";
        assert!(
            labels(&real_time).contains(&format!("{engine} --skip simulation:: --skip sim::")),
            "{real_time:?}"
        );
        assert!(labels(&real_time).contains(&"brunt-engine --lib session::".to_owned()));
        assert_eq!(
            labels(&others),
            [
                format!("{engine} simulation:: sim::"),
                "brunt-engine --lib --skip session::".to_owned(),
                "brunt-load --lib".to_owned()
            ]
        );
        let message = format!("{:#}", jobs(&binaries[1..]).unwrap_err());
        assert!(message.contains("black_box"), "{message}");
    }

    fn results_of(script: &str) -> Results {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one");
        let job = Job {
            binary: TestBinary::of_script("one --lib", &path, script),
            filters: Vec::new(),
        };
        let steps = Steps::default();
        steps.tests("tests", &[job], 2, Priority::Normal, 1);
        steps.0.into_inner().unwrap()
    }

    #[test]
    fn a_failed_test_is_named_and_counted() {
        let results = results_of(
            "echo 'test a ... FAILED'; echo 'test result: FAILED. 4 passed; 1 failed'; exit 101",
        );
        assert_eq!(results.tally.line(), "4 passed, 1 failed");
        assert_eq!(results.failures, ["one --lib a"]);
    }

    #[test]
    fn a_crash_counts_as_one_failure() {
        let results = results_of("exit 134");
        assert_eq!(results.tally.line(), "0 passed, 1 failed");
        assert!(results.failures[0].contains("134"), "{results:?}");
    }
}
