//! What the process uses of this machine: CPU, memory, CPUs at hand.

use std::io;

/// CPU used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuUse {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
}

impl CpuUse {
    /// Of the calling thread.
    pub(crate) fn of_thread() -> io::Result<Self> {
        Self::read(libc::RUSAGE_THREAD)
    }

    /// Of the process.
    pub(crate) fn of_process() -> io::Result<Self> {
        Self::read(libc::RUSAGE_SELF)
    }

    /// From `earlier` until this reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }

    fn read(who: libc::c_int) -> io::Result<Self> {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is valid for a `rusage`, for which all zeroes is a valid value.
        let usage = unsafe {
            if libc::getrusage(who, usage.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            usage.assume_init()
        };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Ok(Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        })
    }
}

/// CPUs that this process may use: affinity and cgroup quota, at least 1.
pub fn usable_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Most memory that this process had resident at any time, bytes; absent where /proc says nothing.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    kilobytes_in("/proc/self/status", "VmHWM:")
}

/// Memory that new work can have without swapping, bytes: of the machine, or of the cgroup where
/// that is less; absent where /proc says nothing.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let machine = kilobytes_in("/proc/meminfo", "MemAvailable:")?;
    let cgroup = cgroup_headroom_bytes().unwrap_or(u64::MAX);
    Some(machine.min(cgroup))
}

/// What the cgroup (version 2) of this process may still use.
fn cgroup_headroom_bytes() -> Option<u64> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::"))?;
    let folder = format!("/sys/fs/cgroup{}", path.trim_end_matches('/'));
    let read = |name: &str| -> Option<u64> {
        std::fs::read_to_string(format!("{folder}/{name}"))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    Some(read("memory.max")?.saturating_sub(read("memory.current")?))
}

fn kilobytes_in(file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
