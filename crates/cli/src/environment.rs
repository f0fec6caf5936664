//! The machine that experiments are made on, as the head of their reports has it.

use std::fs;

use brunt_record::{Environment, MachineDescription};

use crate::calibration_store::processor_model;
use crate::command_line;

/// The command and this machine; server and client are added by the rounds.
pub(crate) fn environment() -> Environment {
    Environment {
        command: command_line::here(),
        machine: machine(),
        server: None,
        client: None,
    }
}

/// What is known of this machine.
pub(crate) fn machine() -> MachineDescription {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let kernel = text("/proc/sys/kernel/osrelease").trim().to_owned();
    MachineDescription {
        processor: processor_model(&text("/proc/cpuinfo")),
        cpus: online_cpus(&text("/sys/devices/system/cpu/online")),
        memory_bytes: memory_bytes(&text("/proc/meminfo")),
        kernel: Some(kernel).filter(|kernel| !kernel.is_empty()),
        distribution: distribution(&text("/etc/os-release")),
    }
}

/// The number of CPUs in a list such as `0-3,8`.
fn online_cpus(list: &str) -> Option<u32> {
    let mut count = 0_u32;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// All memory, by `/proc/meminfo`, bytes.
fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1_024)
}

/// The name in `/etc/os-release`.
fn distribution(os_release: &str) -> Option<String> {
    let name = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        for (list, count) in [
            ("0\n", Some(1)),
            ("0-3,8\n", Some(5)),
            ("", None),
            ("3-1", None),
            ("0-4294967295", None),
        ] {
            assert_eq!(online_cpus(list), count, "{list:?}");
        }
        let memory = memory_bytes("MemFree: 1 kB\nMemTotal:       16384 kB\n");
        assert_eq!(memory, Some(16_777_216));
        assert_eq!(memory_bytes("MemTotal: much"), None);
        let name = distribution("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
        assert_eq!(name.as_deref(), Some("Debian GNU/Linux 12"));
        assert_eq!(distribution("PRETTY_NAME=\n"), None);
        let this = environment().machine;
        assert!(this.kernel.is_some() && this.cpus.is_some_and(|cpus| cpus > 0));
    }
}
