//! What is known of the machine itself, before any load.

use std::fs;

use brunt_io::cpu::count_listed;
use brunt_record::MachineDescription;

use crate::memory::kilobytes_in;

/// The name of this machine in the network.
pub fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(name.trim())
        .filter(|name| !name.is_empty())
        .unwrap_or("unknown")
        .to_owned()
}

/// What is known of this machine.
pub fn description() -> MachineDescription {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let kernel = text("/proc/sys/kernel/osrelease").trim().to_owned();
    MachineDescription {
        processor: processor_model(&text("/proc/cpuinfo")),
        cpus: count_listed(&text("/sys/devices/system/cpu/online")),
        memory_bytes: kilobytes_in(&text("/proc/meminfo"), "MemTotal:"),
        kernel: Some(kernel).filter(|kernel| !kernel.is_empty()),
        distribution: distribution(&text("/etc/os-release")),
    }
}

/// The name in `/etc/os-release`.
fn distribution(os_release: &str) -> Option<String> {
    let name = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// The model in the text of `/proc/cpuinfo`, whose name differs between architectures.
pub fn processor_model(cpuinfo: &str) -> Option<String> {
    ["model name", "Model", "cpu model", "CPU part"]
        .into_iter()
        .find_map(|wanted| {
            cpuinfo.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.trim() == wanted && !value.trim().is_empty()).then(|| value.trim().to_owned())
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let name = distribution("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
        assert_eq!(name.as_deref(), Some("Debian GNU/Linux 12"));
        assert_eq!(distribution("PRETTY_NAME=\n"), None);
        let this = description();
        assert!(this.kernel.is_some() && this.cpus.is_some_and(|cpus| cpus > 0));
    }

    #[test]
    fn the_processors_model_is_found() {
        for (text, model) in [
            (
                "processor\t: 0\nmodel\t: 85\nmodel name\t: Xeon: fast\n",
                Some("Xeon: fast"),
            ),
            (
                "processor\t: 0\nCPU part\t: 0xd40\nModel\t\t: Pi\n",
                Some("Pi"),
            ),
            ("CPU part\t: 0xd40\n", Some("0xd40")),
            ("model name\t:\n", None),
            ("", None),
        ] {
            assert_eq!(processor_model(text).as_deref(), model, "{text}");
        }
    }
}
