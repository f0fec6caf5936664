//! Where rounds were measured, told once for all of them: the machine, the server, the client, its
//! workers and their CPUs, and what a generator of requests did.

use std::collections::BTreeSet;

use brunt_load::SessionCounts;
use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merge_fields};
use crate::{AgentRecord, Run, ServerEvidence, ServerScope};

/// Machine, server and client of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// How brunt was called, a word each, without what may be secret; absent where that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// What the agents are called that made the load, in the order of their workers; absent where
    /// one process made all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The machine that brunt ran on; of a fleet, that of the coordinator.
    pub machine: MachineDescription,
    /// The server, where it was watched in the first round; null where it was not.
    pub server: Option<ServerDescription>,
    /// What of brunt ran, of a fleet the first agent; null before a round was measured.
    pub client: Option<ClientDescription>,
}

/// A server, as it was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerDescription {
    /// Name of its process, such as `nginx`.
    pub name: String,
    /// Processes of the server that were watched; null where it is on another machine.
    pub processes: Option<u32>,
    /// Threads of the server, all processes together; null where unknown.
    pub threads: Option<u32>,
    /// CPUs that it may use; null where unknown.
    pub cpus: Option<f64>,
}

/// What of brunt ran, and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientDescription {
    /// The backend.
    pub backend: Backend,
    /// CPUs that it may use.
    pub usable_cpus: u32,
    /// File descriptors that it may have.
    pub descriptors_limit: u64,
    /// Local ports that its source addresses offer; null for a Unix socket.
    pub ports_available: Option<u64>,
}

impl Environment {
    /// Adds what a round showed of server and client.
    pub fn add(&mut self, run: &Run) {
        let names = run.agents.iter().filter_map(|agent| agent.fleet.as_ref());
        self.agents = names.map(|agent| agent.name.clone()).collect();
        let agent = run.first();
        self.client = Some(ClientDescription {
            backend: agent.backend,
            usable_cpus: agent.host.usable_cpus,
            descriptors_limit: agent.limits.descriptors_limit,
            ports_available: agent.limits.ports_available,
        });
        if let Some(server) = ServerDescription::of(run) {
            self.server = Some(server);
        }
    }
}

impl ServerDescription {
    /// What a round showed of the server; absent where it was not watched.
    pub fn of(run: &Run) -> Option<Self> {
        let server = run.first().evidence.server.as_ref()?;
        let processes = match &server.scope {
            ServerScope::Processes { pids, .. } => u32::try_from(pids.len()).ok(),
            ServerScope::OwnThreads => None,
        };
        Some(Self {
            name: server.name.clone(),
            processes,
            threads: server.threads.map(|threads| threads.count),
            cpus: server.cpus,
        })
    }
}

/// A machine in words and numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineDescription {
    /// Model of its processor; null where unknown, as all of the following.
    pub processor: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<u32>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Name and version of the distribution.
    pub distribution: Option<String>,
}

/// The kernel interface under a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
    /// A simulated network in virtual time.
    Sim,
}

impl Backend {
    /// The backend's name as typed and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
            Self::Sim => "sim",
        }
    }
}

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

/// CPUs as `taskset` takes and the kernel lists them: `0-3,8`.
pub fn cpu_list(cpus: &BTreeSet<u32>) -> String {
    let cpus: Vec<u32> = cpus.iter().copied().collect();
    let ranges = cpus.chunk_by(|before, next| before.checked_add(1) == Some(*next));
    let words: Vec<String> = ranges
        .map(|range| match range {
            [first, .., last] => format!("{first}-{last}"),
            only => only[0].to_string(),
        })
        .collect();
    words.join(",")
}

/// What the generator of one worker did over the window. Times are measured of some calls, and hold
/// for all by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// Calls for the next requests.
    pub calls: u64,
    /// Time in them, with that of finding out what their texts hold, nanoseconds.
    pub calls_ns: u64,
    /// Responses that were reported to it.
    pub reported: u64,
    /// Time in that, nanoseconds.
    pub reported_ns: u64,
    /// Contents of responses that were longer than is kept for it, over the whole run.
    pub truncated: u64,
    /// Why it ended the run; null where it did not.
    pub error: Option<String>,
    /// Sessions that it replayed; null where it knows none.
    pub sessions: Option<SessionCounts>,
}

impl GeneratorUse {
    /// Bytes of a response's content that are kept for a generator where a worker has few
    /// connections, and where it has many.
    pub const BODY_BYTES_MAX: u32 = 16 << 20;
    const BODY_BYTES_LEAST: u32 = 64 << 10;
    /// Bytes of all contents that a worker keeps at once, as far as the least of each allows.
    const BODIES_BYTES: u32 = 1 << 30;

    /// Bytes of a response's content that are kept by a worker of so many connections.
    pub fn body_bytes_max(connections: u32) -> u32 {
        let share = Self::BODIES_BYTES / connections.max(1);
        share.clamp(Self::BODY_BYTES_LEAST, Self::BODY_BYTES_MAX)
    }

    /// The sum over several workers, and how many workers there are; absent for none.
    pub fn sum<'a>(used: impl IntoIterator<Item = &'a Self>) -> Option<(Self, u64)> {
        let mut sum: Option<(Self, u64)> = None;
        for one in used {
            let (all, count) = sum.get_or_insert_default();
            all.merge(one);
            *count += 1;
        }
        sum
    }

    /// The share of their time that `workers` workers were in it over the window, as far as that
    /// can be: it is an estimate. Absent without a window.
    pub fn share(&self, workers: u64, window_ns: u64) -> Option<f64> {
        let all_ns = window_ns as f64 * workers as f64;
        (all_ns > 0.0).then(|| (self.time_ns() as f64 / all_ns).min(1.0))
    }

    /// Time in all calls of the generator, nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.calls_ns.saturating_add(self.reported_ns)
    }

    /// Adds that of another worker.
    pub fn merge(&mut self, other: &Self) {
        merge_fields!(self, other: calls calls_ns reported reported_ns truncated);
        if self.error.is_none() {
            self.error.clone_from(&other.error);
        }
        if let Some(others) = &other.sessions {
            let sessions = self.sessions.get_or_insert_default();
            merge_fields!(sessions, others: begun completed failed reconnected);
        }
    }
}

/// CPU time with the CPUs that it makes on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse {
    /// CPU time in user space, nanoseconds.
    pub user_ns: f64,
    /// CPU time in the kernel, nanoseconds.
    pub system_ns: f64,
    /// CPUs used in user space.
    pub user_cpus: f64,
    /// CPUs used in the kernel.
    pub system_cpus: f64,
}

const NOT_READ: &str = "no CPU time was read";

impl CpuUse {
    /// What was used over `interval_ns`; absent when that has no length.
    fn over(user_ns: u64, system_ns: u64, interval_ns: u64) -> Option<Self> {
        let (user_ns, system_ns) = (user_ns as f64, system_ns as f64);
        (interval_ns > 0).then(|| Self {
            user_ns,
            system_ns,
            user_cpus: user_ns / interval_ns as f64,
            system_cpus: system_ns / interval_ns as f64,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            user_cpus: self.user_cpus + other.user_cpus,
            system_cpus: self.system_cpus + other.system_cpus,
        }
    }

    /// CPUs used on average.
    pub fn cpus(&self) -> f64 {
        self.user_cpus + self.system_cpus
    }
}

impl Run {
    /// CPU of brunt over the window, all agents together.
    ///
    /// # Errors
    ///
    /// It is not known of all of them; the reason in words.
    pub fn client_cpu(&self) -> Result<CpuUse, &'static str> {
        let agents = self.agents.iter().map(client_cpu_of);
        agents
            .reduce(|sum, agent| Ok(sum?.plus(agent?)))
            .unwrap_or(Err(NOT_READ))
    }

    /// Most memory resident at any time in any of the agents, bytes.
    pub fn peak_resident_bytes(&self) -> u64 {
        let agents = self.agents.iter();
        let peaks = agents.map(|agent| agent.host.peak_resident_bytes);
        peaks.max().unwrap_or(0)
    }
}

fn client_cpu_of(agent: &AgentRecord) -> Result<CpuUse, &'static str> {
    let host = &agent.host;
    if agent.backend == Backend::Sim {
        return Err("the network was simulated");
    }
    if !agent.own_server {
        if host.cpu_user_ns == 0 && host.cpu_system_ns == 0 {
            return Err(NOT_READ);
        }
        return CpuUse::over(host.cpu_user_ns, host.cpu_system_ns, host.cpu_interval_ns)
            .ok_or(NOT_READ);
    }
    let threads = agent.workers.iter().map(|worker| {
        let thread = worker.thread?;
        CpuUse::over(thread.cpu_user_ns, thread.cpu_system_ns, thread.interval_ns)
    });
    threads
        .reduce(|sum, thread| Some(sum?.plus(thread?)))
        .flatten()
        .ok_or("the process also held the reference server")
}

impl ServerEvidence {
    /// CPU over the window; absent where it was read once or never.
    pub fn cpu_use(&self) -> Option<CpuUse> {
        CpuUse::over(self.cpu_user_ns, self.cpu_system_ns, self.interval_ns)
    }
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

    #[test]
    fn workers_are_added_up() {
        let worker = |calls_ns, error: Option<&str>| GeneratorUse {
            calls: 2,
            calls_ns,
            reported: 1,
            reported_ns: 10,
            truncated: 1,
            error: error.map(str::to_owned),
            sessions: error.map(|_| SessionCounts {
                begun: 3,
                completed: 2,
                ..SessionCounts::default()
            }),
        };
        let workers = [worker(100, None), worker(300, Some("oops"))];
        let (used, count) = GeneratorUse::sum(&workers).expect("two");
        assert_eq!(
            (used.calls, used.reported, used.truncated, count),
            (4, 2, 2, 2)
        );
        assert_eq!((used.time_ns(), used.error.as_deref()), (420, Some("oops")));
        assert_eq!(used.share(count, 1_000), Some(0.21));
        assert_eq!(used.share(count, 100), Some(1.0));
        assert_eq!(used.share(count, 0), None);
        assert_eq!(GeneratorUse::sum(&workers[..0]), None);
        let sessions = used
            .sessions
            .map(|sessions| (sessions.begun, sessions.completed));
        assert_eq!(sessions, Some((3, 2)));
    }

    #[test]
    fn bodies_are_bounded_in_all() {
        let kept = [1, 64, 1_024, 100_000].map(GeneratorUse::body_bytes_max);
        assert_eq!(kept, [16 << 20, 16 << 20, 1 << 20, 64 << 10]);
    }
}
