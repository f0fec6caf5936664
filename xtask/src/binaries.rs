//! The binaries of the tests: cargo builds them in one go, and each is run on its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
#[cfg(test)]
use std::process::Command;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cargo_metadata::diagnostic::DiagnosticLevel;
use cargo_metadata::{Artifact, Message};

use crate::shell::{self, Priority};
use crate::tally::Tally;
use crate::timing::TestTimes;
use crate::workspace::Workspace;

/// Tells the test harness how many tests it runs at once.
pub(crate) const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// A binary with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestBinary {
    /// What `cargo test -p` takes to run it: package and target.
    pub(crate) name: String,
    /// Where its tests expect to run: the directory of its package.
    directory: PathBuf,
    executable: PathBuf,
}

/// Tests of a binary that were run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) tally: Tally,
    /// Names of those that failed.
    pub(crate) failed: Vec<String>,
    pub(crate) times: TestTimes,
    /// What the binary printed.
    pub(crate) output: String,
}

/// What a build gives.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) binaries: Vec<TestBinary>,
    /// Warnings of the compiler and of clippy, in all targets.
    pub(crate) warnings: usize,
}

/// Builds the tests of all packages with all features, and all other targets but benchmarks, with
/// clippy as the compiler: it compiles as rustc does, and to check the same code once more would
/// take half as long again.
///
/// # Errors
///
/// Something does not compile.
pub(crate) fn build(workspace: &Workspace) -> Result<Built> {
    let mut command = shell::cargo_with_clippy(Priority::Normal);
    command.current_dir(workspace.root()).args([
        "test",
        "--workspace",
        "--all-features",
        "--no-run",
    ]);
    shell::announce(&command);
    command.arg("--message-format=json");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let mut built = Built::default();
    for message in Message::parse_stream(BufReader::new(stdout)) {
        match message.context("cannot read from cargo")? {
            Message::CompilerArtifact(artifact) => {
                built.binaries.extend(TestBinary::of(&artifact)?);
            }
            Message::CompilerMessage(said) => {
                eprint!("{}", said.message.rendered.unwrap_or_default());
                let is_warning = said.message.level == DiagnosticLevel::Warning;
                // One without a place only counts those before it.
                built.warnings += usize::from(is_warning && !said.message.spans.is_empty());
            }
            _ => {}
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    shell::check(&shell::describe(&command), status)?;
    built.binaries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(built)
}

impl TestBinary {
    /// What cargo built, where it is one.
    fn of(artifact: &Artifact) -> Result<Option<Self>> {
        let (true, Some(executable)) = (artifact.profile.test, &artifact.executable) else {
            return Ok(None);
        };
        let directory = artifact.manifest_path.parent();
        let directory = directory.context("a manifest lies in no directory")?;
        let package = package_name(&artifact.package_id.repr);
        let target = &artifact.target;
        let name = if target.is_test() {
            format!("{package} --test {}", target.name)
        } else if target.is_bin() {
            format!("{package} --bin {}", target.name)
        } else {
            format!("{package} --lib")
        };
        Ok(Some(Self {
            name,
            directory: directory.into(),
            executable: executable.into(),
        }))
    }

    /// A shell script at `path` in place of a binary.
    #[cfg(test)]
    pub(crate) fn of_script(name: &str, path: &std::path::Path, script: &str) -> Self {
        // Another process writes it: a file that this one holds open, and whatever other tests
        // start at this moment, cannot be executed.
        let mut write = Command::new("sh");
        write.args([
            "-c",
            "printf '#!/bin/sh\n%s' \"$1\" > \"$0\"; chmod +x \"$0\"",
        ]);
        let status = write.arg(path).arg(script).status();
        assert!(status.expect("a shell").success());
        Self {
            name: name.into(),
            directory: "/".into(),
            executable: path.into(),
        }
    }

    /// Runs those of its tests that `filters` (arguments of the test harness) leave, `threads` at
    /// once.
    ///
    /// # Errors
    ///
    /// The binary cannot be started, or ended without a result; the message has what it printed.
    pub(crate) fn run(
        &self,
        filters: &[String],
        threads: usize,
        priority: Priority,
        seed: u64,
    ) -> Result<Ran> {
        let mut command = shell::with_priority(&self.executable, priority);
        command
            .args(filters)
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            .env(crate::seed::VARIABLE, seed.to_string())
            .env(TEST_THREADS, threads.to_string())
            .stdin(Stdio::null());
        // One pipe for both, so that messages stay in order.
        let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
        let both = writer.try_clone().context("cannot share a pipe")?;
        command.stdout(both).stderr(writer);
        let start = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.executable.display()))?;
        // The ends of the pipe that `command` holds would keep it open.
        drop(command);
        let mut ran = Ran {
            tally: Tally::default(),
            failed: Vec::new(),
            times: TestTimes::new(&self.name, threads),
            output: String::new(),
        };
        let mut has_result = false;
        for line in BufReader::new(reader).split(b'\n') {
            let line = line.context("cannot read from a test")?;
            let line = String::from_utf8_lossy(&line);
            ran.times.line(&line, start.elapsed());
            if let Some(counts) = Tally::parse(&line) {
                has_result = true;
                ran.tally.add(counts);
            }
            ran.failed.extend(failed_test(&line).map(str::to_owned));
            // A test that hangs is seen before everything ends.
            if line.contains("has been running for over") {
                println!("{}: {line}", self.name);
            }
            ran.output.push_str(&line);
            ran.output.push('\n');
        }
        let status = child.wait().context("cannot wait for a test")?;
        if !has_result || (ran.tally.failed == 0 && !status.success()) {
            bail!("{} ended with {status}:\n{}", self.name, ran.output);
        }
        Ok(ran)
    }
}

/// The name of the package, of which `id` is what cargo calls it:
/// `path+file:///DIRECTORY#NAME@VERSION`, without `NAME@` where the directory is called the same.
fn package_name(id: &str) -> &str {
    let (path, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _version)) => name,
        None => path.rsplit_once('/').map_or(path, |(_, last)| last),
    }
}

/// The name of a test that failed, where `line` of the test harness says that.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<Ran> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one");
        TestBinary::of_script("one --lib", &path, script).run(&[], 2, Priority::Idle, 1)
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
    }

    #[test]
    fn packages_are_named_with_and_without_a_directory_of_the_same_name() {
        let cases = [
            (
                "path+file:///w/crates/engine#brunt-engine@0.1.0",
                "brunt-engine",
            ),
            ("path+file:///w/xtask#0.1.0", "xtask"),
        ];
        for (id, expected) in cases {
            assert_eq!(package_name(id), expected);
        }
    }

    #[test]
    fn results_are_read_from_what_is_printed() {
        let ran = run(
            "echo 'running 2 tests'; echo 'test a ... ok'; echo 'test b ... FAILED' >&2
             echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101",
        )
        .unwrap();
        assert_eq!((ran.tally.passed, ran.tally.failed), (1, 1));
        assert_eq!(ran.failed, ["b"]);
        assert_eq!(ran.times.tests.len(), 2);
    }

    #[test]
    fn a_binary_that_crashes_is_a_failure_with_what_it_printed() {
        for script in [
            "echo 'test a ... ok'; echo 'an abort'; exit 134",
            "echo 'an abort'; echo 'test result: ok. 1 passed; 0 failed'; exit 1",
        ] {
            let message = format!("{:#}", run(script).unwrap_err());
            assert!(message.starts_with("one --lib ended with"), "{message}");
            assert!(message.contains("an abort"), "{message}");
        }
    }
}
