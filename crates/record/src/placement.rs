//! How many workers an agent had, on which CPUs, and why.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Why there are so many workers, and why they are where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// The server is on this machine and may use all of its CPUs: workers on half of them, each
    /// bound to a CPU from which the scheduler can move the server.
    ServerAnywhere,
    /// The server is on this machine and bound to some of its CPUs: workers are on others, on half
    /// of all CPUs at most.
    ServerBound,
    /// The server is brunt's own, in its process: each has half of the CPUs.
    OwnServer,
    /// The target is on another machine: a worker per CPU.
    ServerElsewhere,
    /// There is one CPU for all.
    OneCpu,
    /// `-t` says how many.
    Given,
    /// brunt was confined to these CPUs from outside.
    Confined,
    /// The scheduler places as many as the plan has.
    #[default]
    Off,
}

impl Placement {
    /// Name of the placement in data.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServerAnywhere => "server_anywhere",
            Self::ServerBound => "server_bound",
            Self::OwnServer => "own_server",
            Self::ServerElsewhere => "server_elsewhere",
            Self::OneCpu => "one_cpu",
            Self::Given => "given",
            Self::Confined => "confined",
            Self::Off => "off",
        }
    }
}

/// CPUs as `taskset` takes and the kernel lists them: `0-3,8`.
pub fn cpu_list(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words: Vec<String> = ranges
        .iter()
        .map(|&(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_in_ranges() {
        for (cpus, words) in [
            (&[][..], ""),
            (&[3], "3"),
            (&[0, 1], "0-1"),
            (&[8, 2, 1, 0, 10, 11], "0-2,8,10-11"),
            (&[u32::MAX - 1, u32::MAX], "4294967294-4294967295"),
        ] {
            assert_eq!(cpu_list(&cpus.iter().copied().collect()), words);
        }
    }
}
