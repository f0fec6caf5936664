//! The binary as a child process with a time limit.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{PATIENCE, wait_for};

/// The outcome of a process.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code; none after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Time from the start to the end of the program.
    pub(crate) took: Duration,
}

impl Outcome {
    /// What the program wrote to standard error, but for how far the run was: a busy machine may
    /// make it long enough for that.
    pub(crate) fn messages(&self) -> String {
        let phases = ["set-up", "warm-up", "measure", "drain"];
        let is_progress = |line: &&str| {
            let words = line.strip_prefix("brunt: ").unwrap_or_default();
            phases.iter().any(|phase| words.starts_with(phase))
        };
        let messages = self.stderr.lines().filter(|line| !is_progress(line));
        messages.collect::<Vec<_>>().join("\n")
    }

    /// Asserts that it ended with this exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Asserts that it ended with this exit code, or with 3 because a worker came late to an edge of
    /// its window, or left early (W4, W5; F4, F5 in a fleet), and nothing else is broken, as it
    /// printed: these tests run beside others, and how the scheduler treats them is the subject of
    /// none.
    #[track_caller]
    pub(crate) fn exits_unless_late(self, code: i32) -> Self {
        let told = self.stdout.split_once("do not trust the figures (");
        let broken = told.and_then(|(_, rest)| rest.split_once(" broken)"));
        let is_of_time = |id: &str| ["W4", "W5", "F4", "F5"].contains(&id);
        let is_late = broken.is_some_and(|(ids, _)| ids.split(", ").all(is_of_time));
        if self.code == Some(3) && is_late {
            return self;
        }
        self.exits(code)
    }

    /// What it printed, which is JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let found = serde_json::from_str(&self.stdout);
        found.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What it printed, with one blank in place of the breaks of lines.
    pub(crate) fn unbroken(&self) -> String {
        let words: Vec<&str> = self.stdout.split_whitespace().collect();
        words.join(" ")
    }

    /// Asserts that all of `parts` stand in standard output.
    #[track_caller]
    pub(crate) fn assert_prints(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stdout.contains(part), "{part}: {self:?}");
        }
    }

    /// Asserts that all of `parts` stand in standard error.
    #[track_caller]
    pub(crate) fn assert_says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stderr.contains(part), "{part}: {self:?}");
        }
    }
}

/// Asserts that nothing was set up, for this reason.
#[track_caller]
pub(crate) fn refused(outcome: &Outcome, words: &str) {
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains(words), "{words}: {outcome:?}");
}

/// Checks exit code and message: it comes alone, holds all of `words`, and says nothing twice.
#[track_caller]
pub(crate) fn assert_refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_eq!(outcome.stdout, "", "standard output");
    let message = outcome.stderr.trim_end();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
    for bad in ["panicked", "backtrace", "Error {"] {
        assert!(!message.contains(bad), "{message}");
    }
    // Ours take one line; those of the argument parser may add a tip and the usage.
    let first = message.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("error: ") || message.lines().count() == 1,
        "{message}"
    );
    let clauses: Vec<_> = first.split(": ").collect();
    let repeated = clauses
        .iter()
        .enumerate()
        .any(|(index, clause)| clause.len() > 12 && clauses[..index].contains(clause));
    assert!(!repeated, "says the same twice: {message}");
}

/// A child process that does not outlive the test.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    name: String,
    started: Instant,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
}

/// A command for the binary under test, which knows nothing of the CI system that the tests run in.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brunt"));
    command.env_remove("GITHUB_ACTIONS");
    command
}

/// Runs the binary with the blank-separated `words` to its end.
pub(crate) fn brunt(words: &str) -> Outcome {
    start(words).wait()
}

/// Runs the binary with `arguments`, blanks and all, to its end.
pub(crate) fn brunt_with<A: AsRef<OsStr>>(arguments: &[A]) -> Outcome {
    let mut command = binary();
    command.args(arguments);
    Process::start(command).wait()
}

/// Runs the binary with the blank-separated `words` to a good end.
#[track_caller]
pub(crate) fn success(words: &str) -> Outcome {
    brunt(words).exits_unless_late(0)
}

/// The same with `arguments`, blanks and all.
#[track_caller]
pub(crate) fn success_with<A: AsRef<OsStr>>(arguments: &[A]) -> Outcome {
    brunt_with(arguments).exits_unless_late(0)
}

/// The binary with `words`, as `"$@"` of a script for sh.
pub(crate) fn in_shell<A: AsRef<OsStr>>(script: &str, words: &[A]) -> Command {
    let mut command = Command::new("sh");
    command.env_remove("GITHUB_ACTIONS");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_brunt")]);
    command.args(words);
    command
}

/// Runs the binary with the blank-separated `words` under what `limit` sets in a shell.
pub(crate) fn limited(limit: &str, words: &str) -> Outcome {
    let words: Vec<&str> = words.split_whitespace().collect();
    Process::start(in_shell(&format!("{limit}; exec \"$@\""), &words)).wait()
}

/// Runs another load generator, or brunt in its place, with `words`, in which `URL` stands for
/// `url`.
pub(crate) fn tool(name: &str, is_real: bool, words: &[&str], url: &str) -> Outcome {
    let mut command = if is_real {
        Command::new(name)
    } else {
        let mut command = binary();
        command.arg(name);
        command
    };
    command.args(words.iter().map(|word| word.replace("URL", url)));
    Process::start(command).wait()
}

/// Starts the binary with the blank-separated `words`.
pub(crate) fn start(words: &str) -> Process {
    let mut command = binary();
    command.args(words.split_whitespace());
    Process::start(command)
}

/// `command` as started from a terminal: SIGHUP is not ignored, even if the tests run under nohup.
pub(crate) fn with_hangup(command: &Command) -> Command {
    let mut with = Command::new("env");
    with.arg("--default-signal=HUP").arg(command.get_program());
    with.args(command.get_args());
    for (name, value) in command.get_envs() {
        with.env(name, value.unwrap_or_default());
    }
    with
}

/// Starts `command` so that SIGHUP reaches it.
pub(crate) fn start_with_hangup(command: &Command) -> Process {
    Process::start(with_hangup(command))
}

impl Process {
    /// Starts `command`, collecting what it prints.
    pub(crate) fn start(command: Command) -> Self {
        let mut process = Self::start_piped(command);
        let stdout = process.child.stdout.take();
        process.stdout = stdout.map(collect);
        process
    }

    /// Starts `command` and leaves its standard output to the caller.
    pub(crate) fn start_open(command: Command) -> (Self, ChildStdout) {
        let mut process = Self::start_piped(command);
        let stdout = process.child.stdout.take().expect("it is piped");
        (process, stdout)
    }

    fn start_piped(mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let name = format!("{command:?}");
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let stderr = child.stderr.take().map(collect);
        Self {
            child,
            name,
            started: Instant::now(),
            stdout: None,
            stderr,
        }
    }

    /// The process id of the program.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends `signal`.
    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended by itself in the meantime: the outcome will tell.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Whether it is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it has written `words` to standard error.
    pub(crate) fn wait_for_message(&self, words: &str) {
        let stderr = self.stderr.as_ref().expect("it is collected");
        wait_for(words, || stderr.so_far().contains(words).then_some(()));
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Outcome {
        let name = std::mem::take(&mut self.name);
        let status = wait_for(&name, || self.child.try_wait().expect("it is our child"));
        Outcome {
            code: status.code(),
            took: self.started.elapsed(),
            stdout: whole(self.stdout.take()),
            stderr: whole(self.stderr.take()),
        }
    }

    /// Sends SIGINT and waits for its end.
    pub(crate) fn wait_interrupted(self) -> Outcome {
        self.signal(Signal::INT);
        self.wait()
    }

    /// Kills it and gives what it wrote to standard error.
    pub(crate) fn kill(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        whole(self.stderr.take())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // By its handle, and only when it was not waited for: its id is nobody else's.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream that is read to its end in a thread of its own.
#[derive(Debug)]
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collected {
    fn so_far(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> Collected {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&bytes);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 64 * 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    let mut bytes = collected.lock().unwrap_or_else(PoisonError::into_inner);
                    bytes.extend_from_slice(&buffer[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    Collected { bytes, reader }
}

/// The whole of it, at its end.
fn whole(collected: Option<Collected>) -> String {
    let Some(Collected { bytes, reader }) = collected else {
        return String::new();
    };
    reader.join().expect("it only reads");
    let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the first line of `stream`, within the time limit; the rest is read and dropped.
pub(crate) fn first_line(stream: ChildStdout) -> String {
    let [line] = first_lines(stream);
    line
}

/// Reads the first lines of `stream`, within the time limit; the rest is read and dropped.
pub(crate) fn first_lines<const N: usize>(stream: ChildStdout) -> [String; N] {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let lines = std::array::from_fn(|_| {
            let mut line = String::new();
            let _ = stream.read_line(&mut line);
            line
        });
        let _ = sender.send(lines);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let lines = receiver.recv_timeout(PATIENCE);
    lines.unwrap_or_else(|_| std::array::from_fn(|_| String::new()))
}
