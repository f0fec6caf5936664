//! Memory of this process and of the machine, and the descriptors that are open.

use rustix::process::{Resource, getrlimit};

use crate::cgroup;

/// The limit of a process's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressSpace {
    /// The most memory that the process may have, bytes.
    pub limit_bytes: u64,
    /// What this process has, bytes.
    pub used_bytes: u64,
}

impl AddressSpace {
    /// What this process may still have, bytes.
    pub fn left_bytes(self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }
}

/// The limit of this process's address space (RLIMIT_AS); absent where there is none, and where
/// /proc says nothing.
pub fn address_space() -> Option<AddressSpace> {
    Some(AddressSpace {
        limit_bytes: getrlimit(Resource::As).current?,
        used_bytes: of_file("/proc/self/status", "VmSize:")?,
    })
}

/// Memory that this process has resident now, bytes; absent where /proc says nothing.
pub fn resident_bytes() -> Option<u64> {
    of_file("/proc/self/status", "VmRSS:")
}

/// Most memory that this process had resident at any time, bytes; absent where /proc says nothing.
pub fn peak_resident_bytes() -> Option<u64> {
    of_file("/proc/self/status", "VmHWM:")
}

/// Resets the peak of resident memory to what is resident now. Where the kernel does
/// not allow it, the peak stays that of the process's life.
pub fn reset_peak_resident() {
    /// The value of clear_refs that resets the peak (proc_pid_clear_refs(5)).
    const PEAK: &str = "5";
    let _ = std::fs::write("/proc/self/clear_refs", PEAK);
}

/// Memory that new work can have without swapping, bytes: of the machine, or of the cgroup where
/// that is less; absent where /proc says nothing.
pub fn available_memory_bytes() -> Option<u64> {
    let machine = of_file("/proc/meminfo", "MemAvailable:")?;
    let cgroup = cgroup::memory_left_bytes().unwrap_or(u64::MAX);
    Some(machine.min(cgroup))
}

/// Descriptors that this process has open; a guess where /proc says nothing.
pub fn open_descriptors() -> u64 {
    /// Standard streams, and what a shell may leave open.
    const GUESS: u64 = 8;
    // One of them is that of the folder itself.
    std::fs::read_dir("/proc/self/fd").map_or(GUESS, |files| files.count().saturating_sub(1) as u64)
}

/// What a field of these lines says, which is given in kilobytes, as bytes.
pub(crate) fn kilobytes_in(text: &str, field: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1_024)
}

fn of_file(path: &str, field: &str) -> Option<u64> {
    kilobytes_in(&std::fs::read_to_string(path).ok()?, field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_are_read_by_their_field() {
        let text = "MemFree: 1 kB\nMemTotal:       16384 kB\n";
        assert_eq!(kilobytes_in(text, "MemTotal:"), Some(16_777_216));
        assert_eq!(kilobytes_in("MemTotal: much", "MemTotal:"), None);
    }
}
