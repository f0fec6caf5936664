//! What /proc says of a process, as far as the watch of the server needs it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use brunt_io::cpu::CpuUse;
use procfs::{Current, Uptime, page_size, ticks_per_second};

/// Entries of /proc/PID/fd that are counted one by one, where the kernel does not give their
/// number (before Linux 6.2).
const DESCRIPTORS_COUNTED_MAX: usize = 10_000;
/// Bytes of a command line that are read: its program comes first.
const COMMAND_BYTES: u64 = 4_096;
/// The flag of the kernel's own threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Room for `/proc/PID/stat`, which has one line of some 300 bytes.
const STAT_BYTES: usize = 2_048;
/// Bytes of a process's name that the kernel keeps.
const NAME_BYTES: usize = 15;

/// Length of the tick in which CPU is counted.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / ticks_per_second().max(1)
}

/// Time since the machine was started, in ticks, as the start of a process is given. 0 where it
/// cannot be read.
pub(super) fn uptime_ticks() -> u64 {
    let uptime_s = Uptime::current().map_or(0.0, |uptime| uptime.uptime);
    // Saturates; a negative time is 0.
    (uptime_s * ticks_per_second() as f64) as u64
}

/// What one reading of a process gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessReading {
    /// When the process started; tells it from a later process with the same id.
    pub(crate) start_ticks: u64,
    /// The process that started it, or has taken it over.
    pub(crate) parent: u32,
    pub(crate) cpu: CpuUse,
    /// CPU of children that have ended and that it has waited for, and of theirs.
    pub(crate) waited_cpu: CpuUse,
    pub(crate) threads: u32,
    pub(crate) resident_bytes: u64,
    /// The process has ended, and nobody has waited for it yet: its CPU times are complete.
    pub(crate) has_ended: bool,
    /// The process is a part of the kernel.
    pub(crate) is_kernel_thread: bool,
}

impl ProcessReading {
    /// `None`: it has ended, or may not be looked at.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::of_file(&format!("/proc/{pid}/stat"))
    }

    /// Reads a thread or a process by its `stat`; `None` as in [`Self::of`].
    pub(super) fn of_file(path: &str) -> Option<Self> {
        let mut buffer = [0; STAT_BYTES];
        let mut file = File::open(path).ok()?;
        // The file is given whole by one read.
        let length = file.read(&mut buffer).ok()?;
        Self::parse(&buffer[..length])
    }

    /// `stat` as in `/proc/PID/stat` (proc_pid_stat(5)).
    fn parse(stat: &[u8]) -> Option<Self> {
        // The name, in parentheses, may have any bytes.
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let text = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?;
        // The next one behind so many that are not needed; negative ones are 0.
        let mut number = |skipped: usize| {
            let number: i64 = fields.nth(skipped)?.parse().ok()?;
            Some(u64::try_from(number).unwrap_or(0))
        };
        let parent = number(0)?;
        let flags = number(4)?;
        let mut cpu = |skipped: usize| {
            Some(CpuUse {
                user_ns: number(skipped)?.saturating_mul(tick_ns()),
                system_ns: number(0)?.saturating_mul(tick_ns()),
            })
        };
        let (own_cpu, waited_cpu) = (cpu(4)?, cpu(0)?);
        let threads = number(2)?;
        Some(Self {
            start_ticks: number(1)?,
            parent: parent.try_into().unwrap_or(0),
            cpu: own_cpu,
            waited_cpu,
            threads: threads.try_into().unwrap_or(0),
            resident_bytes: number(1)?.saturating_mul(page_size()),
            // The first thread may end before others.
            has_ended: matches!(state, "Z" | "X") && threads <= 1,
            is_kernel_thread: flags & KERNEL_THREAD != 0,
        })
    }
}

/// The process that started it, or has taken it over.
pub(super) fn parent(pid: u32) -> Option<u32> {
    ProcessReading::of(pid).map(|reading| reading.parent)
}

/// The processes that have started this one, and those that have started them.
pub(super) fn own_ancestors() -> BTreeSet<u32> {
    let mut ancestors = BTreeSet::new();
    let mut next = parent(std::process::id());
    // Read one after the other, parents could go round in a circle.
    while let Some(pid) = next.filter(|&pid| pid > 0 && ancestors.insert(pid)) {
        next = parent(pid);
    }
    ancestors
}

/// All processes that are to be seen.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    numbered_entries(Path::new("/proc"))
}

/// Entries of a folder whose names are numbers.
pub(super) fn numbered_entries(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Name of a process or, by its id, of a thread; at most 15 bytes.
pub(crate) fn name(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// The processes of this name, without brunt itself: as the kernel has it, or the last part of the
/// command's path.
pub(super) fn pids_named(wanted: &str) -> Vec<u32> {
    let mut found: Vec<_> = pids()
        .filter(|&pid| pid != std::process::id())
        .filter(|&pid| name(pid).is_some_and(|name| is_named(wanted, &name, &command(pid))))
        .collect();
    found.sort_unstable();
    found
}

/// The processes in a control group and those below it, by its path.
pub(super) fn pids_in_cgroup(path: &str) -> Vec<u32> {
    pids_in_groups(|group| is_below(path, group))
}

/// The processes in the control group of the container with this id.
pub(super) fn pids_in_container(id: &str) -> Vec<u32> {
    pids_in_groups(|group| is_of_container(id, group))
}

fn pids_in_groups(is_wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let mut found: Vec<_> = pids()
        .filter(|&pid| pid != std::process::id())
        .filter(|pid| {
            // A process that ends meanwhile is in none.
            let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
            groups.is_ok_and(|groups| group_paths(&groups).any(&is_wanted))
        })
        .collect();
    found.sort_unstable();
    found
}

/// `groups` as in `/proc/PID/cgroup`: a line for each hierarchy, which ends in a path.
fn group_paths(groups: &str) -> impl Iterator<Item = &str> {
    groups.lines().filter_map(|line| line.splitn(3, ':').nth(2))
}

fn is_below(wanted: &str, path: &str) -> bool {
    path.strip_prefix(wanted.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Some have more around the id, as in `docker-ID.scope`. Podman's `libpod-conmon-ID.scope` has the
/// process that watches over the container.
fn is_of_container(id: &str, path: &str) -> bool {
    path.split('/')
        .any(|group| group.contains(id) && !group.contains("conmon"))
}

/// The start of a process's command line; empty where there is none.
fn command(pid: u32) -> Vec<u8> {
    let mut command = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/cmdline")) {
        // A process that ends meanwhile has no name to be found by.
        let _ = file.take(COMMAND_BYTES).read_to_end(&mut command);
    }
    command
}

/// `command` as in `/proc/PID/cmdline`.
fn is_named(wanted: &str, name: &str, command: &[u8]) -> bool {
    let program = command.split(|&byte| byte == 0).next().unwrap_or(&[]);
    let file = program.rsplit(|&byte| byte == b'/').next().unwrap_or(&[]);
    let is_cut = wanted.len() > NAME_BYTES && wanted.as_bytes()[..NAME_BYTES] == *name.as_bytes();
    !wanted.is_empty() && (wanted == name || is_cut || wanted.as_bytes() == file)
}

/// Open descriptors, and whether they had to be counted one by one. `None`: that is not allowed, or
/// the process has ended.
pub(super) fn descriptors(pid: u32) -> Option<(u64, bool)> {
    let folder = format!("/proc/{pid}/fd");
    match fs::metadata(&folder).ok()?.len() {
        // Only its owner may open the folder; its size is for all to see.
        0 => {
            let entries = fs::read_dir(&folder).ok()?;
            Some((entries.take(DESCRIPTORS_COUNTED_MAX).count() as u64, true))
        }
        count => Some((count, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_are_known_by_path_and_by_container() {
        let id = "4f1c7d2e9a0b";
        let docker = format!("12:cpu:/x\n0::/system.slice/docker-{id}33.scope/init\n");
        for (wanted, groups, is_in) in [
            (
                "/system.slice/a.service",
                "0::/system.slice/a.service\n",
                true,
            ),
            ("/system.slice/", "0::/system.slice/a.service\n", true),
            ("/system.slice/a", "0::/system.slice/a.service\n", false),
            ("/x", &*docker, true),
        ] {
            let found = group_paths(groups).any(|path| is_below(wanted, path));
            assert_eq!(found, is_in, "{wanted} {groups}");
        }
        for (id, groups, is_in) in [
            (id, &*docker, true),
            (
                id,
                "0::/machine.slice/libpod-4f1c7d2e9a0b33.scope/container\n",
                true,
            ),
            (
                id,
                "0::/machine.slice/libpod-conmon-4f1c7d2e9a0b33.scope\n",
                false,
            ),
            ("4f1c7d2e9a0c", &*docker, false),
            (id, "", false),
        ] {
            let found = group_paths(groups).any(|path| is_of_container(id, path));
            assert_eq!(found, is_in, "{id} {groups}");
        }
    }

    #[test]
    fn names_as_ps_shows_them() {
        for (wanted, name, command, is_match) in [
            ("nginx", "nginx", "nginx: worker process", true),
            ("nginx", "nginx-debug", "/usr/sbin/nginx\0-g\0x", true),
            ("node", "MainThread", "node\0server.js", true),
            ("a-server-with-a-long-name", "a-server-with-a", "./x", true),
            ("a-server-with-a", "a-server-with-a", "./x", true),
            ("nginx", "bash", "bash\0nginx", false),
            ("ngin", "nginx", "/usr/sbin/nginx", false),
            ("", "x", "", false),
            ("kworker", "kworker", "", true),
        ] {
            assert_eq!(
                is_named(wanted, name, command.as_bytes()),
                is_match,
                "{wanted} {name}"
            );
        }
    }

    #[test]
    fn an_exact_total_is_split_as_the_ticks_are() {
        let ticked = |user_ns, system_ns| CpuUse { user_ns, system_ns };
        for (ticks, total_ns, split) in [
            (ticked(30, 10), 44, ticked(33, 11)),
            (ticked(0, 10), 7, ticked(0, 7)),
            (ticked(0, 0), 7, ticked(7, 0)),
            (ticked(10, 10), 0, ticked(0, 0)),
            (ticked(u64::MAX, u64::MAX), u64::MAX, ticked(0, u64::MAX)),
        ] {
            assert_eq!(ticks.scaled_to(total_ns), split, "{ticks:?} {total_ns}");
        }
    }

    #[test]
    fn a_process_is_read_by_the_places_of_its_fields() {
        let stat = "7 (a ) b) Z 5 7 7 0 -1 2097152 9 9 9 9 30 10 4 -2 20 0 1 0 812 4096 3 1844 1 1";
        let tick_ns = tick_ns();
        let reading = ProcessReading {
            start_ticks: 812,
            parent: 5,
            cpu: CpuUse {
                user_ns: 30 * tick_ns,
                system_ns: 10 * tick_ns,
            },
            waited_cpu: CpuUse {
                user_ns: 4 * tick_ns,
                system_ns: 0,
            },
            threads: 1,
            resident_bytes: 3 * page_size(),
            has_ended: true,
            is_kernel_thread: true,
        };
        assert_eq!(ProcessReading::parse(stat.as_bytes()), Some(reading));
        // The last field of use, and what follows it, may be cut.
        let end = stat.find(" 1844").expect("it is there");
        for length in 0..stat.len() {
            let found = ProcessReading::parse(&stat.as_bytes()[..length]);
            assert_eq!(found, (length >= end).then_some(reading), "{length}");
        }
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = std::process::id();
        let reading = ProcessReading::of(pid).unwrap();
        assert!(reading.threads >= 1 && reading.resident_bytes > 0);
        assert_eq!(
            ProcessReading::of(pid).unwrap().start_ticks,
            reading.start_ticks
        );
        assert!(pids().any(|other| other == pid));
        assert!(descriptors(pid).is_some_and(|(count, _)| count >= 1));
        assert_eq!(parent(pid), Some(std::os::unix::process::parent_id()));
        assert_eq!(Some(reading.parent), parent(pid));
        let ancestors = own_ancestors();
        // The first process of a container has none.
        assert!(reading.parent == 0 || ancestors.contains(&reading.parent));
        assert!(!ancestors.contains(&pid));
        let command = command(pid);
        assert!(!command.is_empty() && command.len() as u64 <= COMMAND_BYTES);
        assert_eq!(ProcessReading::of(0), None);
        assert!(!reading.has_ended);
        assert!(uptime_ticks() >= reading.start_ticks && reading.start_ticks > 0);
    }
}
