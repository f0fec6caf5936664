//! CPU use of process and threads, their waits for a CPU, whether others want it, and the CPUs
//! that may be used.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::thread::CpuSet;

/// CPU used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// CPU time in user space, nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, nanoseconds.
    pub system_ns: u64,
}

impl CpuUse {
    /// CPU that the calling thread has used.
    pub fn of_thread() -> io::Result<Self> {
        Self::read(libc::RUSAGE_THREAD)
    }

    /// CPU that the process has used.
    pub fn of_process() -> io::Result<Self> {
        Self::read(libc::RUSAGE_SELF)
    }

    /// CPU used from the reading `earlier` to this one.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_add(other.user_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
        }
    }

    /// The greater of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.max(other.user_ns),
            system_ns: self.system_ns.max(other.system_ns),
        }
    }

    /// In user mode and in the kernel.
    pub fn total_ns(self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// `total_ns`, which is exact, in the proportion of these. All in user space where they are 0.
    #[must_use]
    pub fn scaled_to(self, total_ns: u64) -> Self {
        let (system, all) = (u128::from(self.system_ns), u128::from(self.total_ns()));
        // Not more than `total_ns`, since `system` is not more than `all`.
        let system_ns = (u128::from(total_ns) * system)
            .checked_div(all)
            .map_or(0, |ns| ns as u64);
        Self {
            user_ns: total_ns - system_ns,
            system_ns,
        }
    }

    fn read(who: libc::c_int) -> io::Result<Self> {
        let usage = usage(who)?;
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Ok(Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        })
    }
}

fn usage(who: libc::c_int) -> io::Result<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for a `rusage`, for which all zeroes is a valid value.
    unsafe {
        if libc::getrusage(who, usage.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(usage.assume_init())
    }
}

/// How others kept a thread from its CPU, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Times that the kernel gave its CPU to another thread though it wanted to go on.
    pub involuntary_switches: u64,
    /// Time for which it could have run and had no CPU; absent where /proc says nothing.
    pub run_queue_wait_ns: Option<u64>,
}

impl Contention {
    /// Difference between the reading `earlier` and this one.
    pub fn since(self, earlier: Self) -> Self {
        let waits = self.run_queue_wait_ns.zip(earlier.run_queue_wait_ns);
        Self {
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            run_queue_wait_ns: waits.map(|(now, earlier)| now.saturating_sub(earlier)),
        }
    }
}

/// Reads the [`Contention`] of one thread, by two system calls and without allocation.
#[derive(Debug)]
pub struct ContentionProbe {
    schedstat: Option<File>,
}

impl ContentionProbe {
    /// A probe of the calling thread.
    pub fn of_thread() -> Self {
        Self {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// Reads; to be called by the thread that it was made for.
    pub fn read(&self) -> Contention {
        let mut buffer = [0; 80];
        let schedstat = self
            .schedstat
            .as_ref()
            .and_then(|file| reread(file, &mut buffer).ok());
        Contention {
            // The call cannot fail for the calling thread.
            involuntary_switches: usage(libc::RUSAGE_THREAD)
                .map_or(0, |usage| usage.ru_nivcsw as u64),
            run_queue_wait_ns: schedstat.and_then(run_queue_wait_ns),
        }
    }
}

/// The second number of `schedstat`: time on a CPU, time in the run queue, turns on a CPU.
fn run_queue_wait_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What a file of /proc or /sys says now, as much of it as there is room for: one system call, and
/// the file stays open.
///
/// # Errors
///
/// The file cannot be read (any more), or is no text.
pub fn reread<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    str::from_utf8(&buffer[..length])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// CPUs that this process may use: affinity and cgroup quota, at least 1.
pub fn usable_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// The CPUs of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs that the process may use, as [`usable_cpus`].
    pub usable: u32,
    /// Whether the process was confined to some of the machine's CPUs (by `taskset`, a cpuset).
    pub is_confined: bool,
}

impl Cpus {
    /// The CPUs of this process, by the affinity of the calling thread.
    pub fn of_process() -> Self {
        let allowed = rustix::thread::sched_getaffinity(None).map(|cpus| cpus.count());
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online")
            .ok()
            .and_then(|list| count_listed(&list));
        Self {
            usable: usable_cpus(),
            // What is unknown is taken for a whole machine.
            is_confined: allowed.is_ok_and(|allowed| online.is_some_and(|online| allowed < online)),
        }
    }
}

/// The CPUs that the process may run on, by the affinity of its first thread, lowest first.
///
/// # Errors
///
/// The kernel refuses to say.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let allowed = rustix::thread::sched_getaffinity(Some(rustix::process::getpid()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .map(|cpu| cpu as u32)
        .collect())
}

/// Has the calling thread run on this CPU alone, and others move away from it where they may.
///
/// # Errors
///
/// The thread may not run there, or not choose.
pub fn bind_thread(cpu: u32) -> io::Result<()> {
    let cpu = cpu as usize;
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &only)?)
}

/// How many CPUs a list of the kernel's names, such as `0-3,5`.
pub fn count_listed(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)?.checked_add(count)
    })
}

/// How long to poll between two looks at whether others want the CPU.
pub(crate) const LOOK_NS: u64 = 50_000_000;
/// How long polling is given up at first, and at most when it is given up again and again.
pub(crate) const PAUSE_NS_MIN: u64 = 100_000_000;
pub(crate) const PAUSE_NS_MAX: u64 = 10_000_000_000;
/// The thread has competitors for its CPU when it spent more than one part in this many of the time
/// waiting for it. Kernel threads alone can make it a few percent.
const WAIT_PARTS: u64 = 10;
/// Involuntary switches per `LOOK_NS` that mean nothing: on every CPU kernel threads run at times.
const SWITCHES_MAX: u64 = 100;

/// Whether others wanted the CPU in an interval of at least `LOOK_NS`.
pub(crate) fn is_contended(change: Contention, interval_ns: u64) -> bool {
    let waited_ns = change.run_queue_wait_ns.unwrap_or(0);
    waited_ns > interval_ns / WAIT_PARTS
        || change.involuntary_switches > SWITCHES_MAX * (interval_ns / LOOK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        for (list, count) in [
            ("0\n", Some(1)),
            ("0-1\n", Some(2)),
            ("0-3,8,10-11", Some(7)),
            ("", None),
            ("3-1", None),
            ("0-4294967295", None),
            ("0-4294967294,9", None),
            ("x", None),
        ] {
            assert_eq!(count_listed(list), count, "{list:?}");
        }
    }

    #[test]
    fn the_run_queue_wait_is_the_second_number() {
        for (text, ns) in [
            ("1019041 11600 3\n", Some(11_600)),
            ("0 0 0\n", Some(0)),
            ("5", None),
            ("", None),
            ("a b c", None),
        ] {
            assert_eq!(run_queue_wait_ns(text), ns, "{text:?}");
        }
    }

    #[test]
    fn a_thread_is_bound_to_a_cpu_that_the_process_may_use() {
        let allowed = allowed_cpus().expect("Linux says it");
        let last = *allowed.last().expect("one at least");
        let body = move || {
            bind_thread(last).expect("it is allowed");
            let set = rustix::thread::sched_getaffinity(None).expect("Linux says it");
            (set.count(), set.is_set(last as usize))
        };
        let thread = crate::threads::spawn("brunt-test", body).expect("a thread");
        assert_eq!(thread.join().expect("no panic"), (1, true));
        assert_eq!(allowed_cpus().expect("as before"), allowed);
        assert!(bind_thread(u32::MAX).is_err());
    }

    #[test]
    fn readings_never_decrease() {
        let probe = ContentionProbe::of_thread();
        let earlier = probe.read();
        let later = probe.read();
        assert!(later.involuntary_switches >= earlier.involuntary_switches);
        assert!(later.run_queue_wait_ns >= earlier.run_queue_wait_ns);
        assert!(Cpus::of_process().usable >= 1);
    }

    const fn contention(involuntary_switches: u64, run_queue_wait_ns: u64) -> Contention {
        Contention {
            involuntary_switches,
            run_queue_wait_ns: Some(run_queue_wait_ns),
        }
    }

    #[test]
    fn what_counts_as_contention() {
        let cases = [
            (contention(0, 0), LOOK_NS, false),
            (
                contention(SWITCHES_MAX, LOOK_NS / WAIT_PARTS),
                LOOK_NS,
                false,
            ),
            (contention(SWITCHES_MAX + 1, 0), LOOK_NS, true),
            (contention(0, LOOK_NS / WAIT_PARTS + 1), LOOK_NS, true),
            // A turn may be long: what is allowed grows with it.
            (
                contention(10 * SWITCHES_MAX, 10 * LOOK_NS / WAIT_PARTS),
                10 * LOOK_NS,
                false,
            ),
            (contention(10 * SWITCHES_MAX + 1, 0), 10 * LOOK_NS, true),
            (
                contention(0, 10 * LOOK_NS / WAIT_PARTS + 1),
                10 * LOOK_NS,
                true,
            ),
        ];
        for (change, interval_ns, contended) in cases {
            assert_eq!(
                is_contended(change, interval_ns),
                contended,
                "{change:?} in {interval_ns} ns"
            );
        }
        let unknown = Contention {
            involuntary_switches: SWITCHES_MAX + 1,
            run_queue_wait_ns: None,
        };
        assert!(is_contended(unknown, LOOK_NS), "switches alone suffice");
    }
}
