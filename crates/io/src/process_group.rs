//! Commands that brunt runs beside a load: each is a process group of its own, which is ended with
//! all that belongs to it, whatever becomes of brunt.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::{clock, threads};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// Longest wait for what was killed.
const KILLED: Duration = Duration::from_secs(1);
/// How often it is looked whether a process ended.
const LOOK_NS: u64 = 10_000_000;
/// Longest wait for the rest of what an ended command wrote: what it left running may hold its
/// standard error open.
const REST: Duration = Duration::from_millis(200);
/// What is kept of standard error: its end.
const TAIL_BYTES: usize = 4 << 10;

/// Ends the group `$1` when brunt has ended in whatever way: brunt alone holds the other end of its
/// standard input open. What is left after 5 s is killed.
const WATCHDOG: &str = r#"trap '' HUP INT QUIT TERM
read -r _
kill -s TERM -- "-$1"
left=50
while [ $left -gt 0 ] && kill -s 0 -- "-$1"; do sleep 0.1; left=$((left - 1)); done
kill -s KILL -- "-$1""#;

/// The groups that are there, for [`kill_all`].
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A command of a shell that was started, with all that it starts.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    /// The number of the group is that of its first process, which is not waited for before the
    /// group is over: until then it is nobody else's.
    id: Pid,
    tail: Arc<Mutex<Tail>>,
    /// What ends the group should brunt be killed; absent until it is started.
    watchdog: Option<Child>,
}

/// The end of a text.
#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
    /// Nothing follows.
    is_whole: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process exited with this code.
    Code(i32),
    /// This signal ended the process.
    Signal(i32),
}

impl ProcessGroup {
    /// Starts `command` with `sh -c`. It reads nothing; what it prints is dropped, but for the end
    /// of its standard error.
    pub fn start(command: &str) -> io::Result<Self> {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let id = Pid::from_child(&child);
        groups(|groups| groups.push(id));
        let tail = Arc::new(Mutex::new(Tail::default()));
        let stderr = child.stderr.take();
        // From here on it is ended, whatever happens.
        let mut group = Self {
            child,
            id,
            tail,
            watchdog: None,
        };
        group.watchdog = Some(watchdog(id)?);
        if let Some(mut stderr) = stderr {
            let tail = Arc::clone(&group.tail);
            let body = move || keep_tail(&mut stderr, &tail);
            threads::spawn("brunt-stderr", body)?;
        }
        Ok(group)
    }

    /// How the command ended; absent while it runs. What it has started may run on.
    pub fn ended(&self) -> Option<Ended> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.id), options).ok().flatten()?;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(Ended::Code(code)),
            (None, Some(signal)) => Some(Ended::Signal(signal)),
            (None, None) => None,
        }
    }

    /// The end of what it wrote to standard error.
    pub fn tail(&self) -> String {
        let begun_ns = clock::now_ns();
        let is_early = || u128::from(clock::now_ns() - begun_ns) < REST.as_nanos();
        while self.ended().is_some() && !locked(&self.tail).is_whole && is_early() {
            threads::sleep(LOOK_NS);
        }
        let bytes: Vec<u8> = locked(&self.tail).bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            // The first line is truncated.
            Some((_, rest)) if bytes.len() == TAIL_BYTES => rest.to_owned(),
            _ => text.into_owned(),
        }
    }

    /// Ends what is left of the group: SIGTERM, and SIGKILL after a while, or as soon as it is
    /// urgent.
    pub fn end(&self, is_urgent: impl Fn() -> bool) {
        // That there is none is well.
        let _ = kill_process_group(self.id, Signal::TERM);
        self.wait_for_members(GRACE, is_urgent);
        let _ = kill_process_group(self.id, Signal::KILL);
        self.wait_for_members(KILLED, || false);
    }

    fn wait_for_members(&self, limit: Duration, is_urgent: impl Fn() -> bool) {
        let begun_ns = clock::now_ns();
        while has_members(self.id) && !is_urgent() {
            if u128::from(clock::now_ns().saturating_sub(begun_ns)) > limit.as_nanos() {
                return;
            }
            threads::sleep(LOOK_NS);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if has_members(self.id) {
            self.end(|| false);
        }
        groups(|groups| groups.retain(|id| *id != self.id));
        // Both were killed: that does not take long.
        let _ = self.child.wait();
        if let Some(watchdog) = &mut self.watchdog {
            let _ = watchdog.kill();
            let _ = watchdog.wait();
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "ended with exit code {code}"),
            Self::Signal(signal) => write!(formatter, "was ended by signal {signal}"),
        }
    }
}

/// A process that ends `group` after brunt, in a group of its own: Ctrl-C is not for it.
fn watchdog(group: Pid) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", WATCHDOG, "brunt-watchdog"])
        .arg(group.as_raw_nonzero().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Kills all groups at once: brunt is about to end.
pub fn kill_all() {
    groups(|groups| {
        for id in groups.iter() {
            let _ = kill_process_group(*id, Signal::KILL);
        }
    });
}

fn groups(change: impl FnOnce(&mut Vec<Pid>)) {
    change(&mut GROUPS.lock().unwrap_or_else(PoisonError::into_inner));
}

fn locked(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads to the end, and keeps the last of it.
fn keep_tail(stream: &mut impl Read, tail: &Mutex<Tail>) {
    let mut buffer = [0; 4 << 10];
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let bytes = &mut locked(tail).bytes;
        bytes.extend(&buffer[..count]);
        let over = bytes.len().saturating_sub(TAIL_BYTES);
        bytes.drain(..over);
    }
    locked(tail).is_whole = true;
}

/// Whether a process of the group runs.
fn has_members(group: Pid) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    let group = group.as_raw_nonzero().get();
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let is_process = name
            .as_encoded_bytes()
            .first()
            .is_some_and(u8::is_ascii_digit);
        // One that is gone meanwhile has no text.
        is_process
            && std::fs::read_to_string(entry.path().join("stat"))
                .is_ok_and(|stat| running_group(&stat) == Some(group))
    })
}

/// The group of a process that runs, in its `/proc/PID/stat`; absent of one that has ended.
fn running_group(stat: &str) -> Option<i32> {
    // The name before it may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let (state, group) = (fields.first()?, fields.get(2)?);
    // Where the first thread has ended, others may hold what is open.
    let threads = fields.get(17).and_then(|count| count.parse().ok());
    let has_ended = matches!(*state, "Z" | "X") && threads.unwrap_or(1) <= 1;
    (!has_ended).then(|| group.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(group: &ProcessGroup) -> Ended {
        loop {
            if let Some(ended) = group.ended() {
                return ended;
            }
            threads::sleep(LOOK_NS);
        }
    }

    #[test]
    fn the_group_of_a_process_is_read() {
        for (stat, group) in [
            ("12 (a) b) S 1 34 5 6", Some(34)),
            ("12 (a b) Z 1 34 5 6", None),
            ("12 (a) Z 1 34 5 6 7 8 9 0 1 2 3 4 5 6 7 8 1 0", None),
            ("12 (a) Z 1 34 5 6 7 8 9 0 1 2 3 4 5 6 7 8 3 0", Some(34)),
            ("12 (a) R 1", None),
            ("12", None),
        ] {
            assert_eq!(running_group(stat), group, "{stat}");
        }
    }

    #[test]
    fn how_a_command_ended_is_known_with_its_last_words() {
        let group = ProcessGroup::start("echo no; echo why >&2; exit 3").unwrap();
        assert_eq!(wait_for(&group), Ended::Code(3));
        assert_eq!(group.tail(), "why\n");
        let group = ProcessGroup::start("kill -9 $$").unwrap();
        assert_eq!(wait_for(&group), Ended::Signal(9));
        assert_eq!(wait_for(&group).to_string(), "was ended by signal 9");
    }

    #[test]
    fn what_a_command_leaves_running_is_ended_with_it() {
        // It ends in good order and leaves one that does not mind SIGHUP.
        let group = ProcessGroup::start("trap '' HUP; sleep 600 & exit 0").unwrap();
        let id = group.id;
        assert_eq!(wait_for(&group), Ended::Code(0));
        assert!(has_members(id));
        drop(group);
        assert!(!has_members(id));
    }

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        let tail = Mutex::new(Tail::default());
        let text = "0123456789\n".repeat(1_000);
        keep_tail(&mut text.as_bytes(), &tail);
        let kept: Vec<u8> = locked(&tail).bytes.iter().copied().collect();
        assert_eq!(kept.len(), TAIL_BYTES);
        assert!(text.as_bytes().ends_with(&kept));
    }
}
