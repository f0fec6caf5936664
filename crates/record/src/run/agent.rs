//! One agent of a run: a process with its part of the load, what it negotiated, and what it found.

use std::collections::BTreeSet;

use brunt_load::Amounts;
use brunt_protocols::Protocol;
use serde::{Deserialize, Serialize};

use super::clock::AgentClock;
use super::fleet::FleetAgent;
use crate::{Backend, Evidence, MachineDescription, Placement, WorkerRecord};

/// Seeds of an agent's random numbers. Agents may have the same or each its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeds {
    /// Seed of the schedule; null without one.
    pub arrivals: Option<u64>,
    /// Seed of think times, and of when the first requests of a closed loop with them are sent;
    /// null without any.
    pub think: Option<u64>,
    /// Seed of a random order of requests; null without one.
    pub order: Option<u64>,
    /// Seed of random numbers that are filled into requests; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<u64>,
}

/// What TLS was negotiated with the server, as seen on the connection made before the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiatedTls {
    /// Version, such as `TLS 1.3`.
    pub version: String,
    /// Cipher suite, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher_suite: String,
    /// Key exchange group, such as `X25519`; null where none was used.
    pub group: Option<String>,
}

/// What was negotiated with the server before the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Negotiated {
    /// The socket address that was connected to, or the socket's path.
    pub address: String,
    /// Protocol spoken.
    pub protocol: Protocol,
    /// Over HTTP/1.1, why HTTP/2 was not agreed on though it was preferred; over HTTP/2, why fewer
    /// streams than asked for may be in flight. Null where things are as asked for.
    pub note: Option<String>,
    /// Requests in flight per connection: pipelined in HTTP/1.1, streams in HTTP/2, messages.
    pub depth: u32,
    /// What TLS was negotiated; null in clear text.
    pub tls: Option<NegotiatedTls>,
    /// Bytes of one request as it is sent, head and body; of messages, of the longest.
    pub request_bytes: u64,
}

/// What an agent used of its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostUse {
    /// CPUs that its process may use (affinity and cgroup quota, rounded down, at least 1).
    pub usable_cpus: u32,
    /// CPU of the process in user space over the window, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU of the process in the kernel over the window, nanoseconds.
    pub cpu_system_ns: u64,
    /// Time between the two readings behind the CPU figures, nanoseconds.
    pub cpu_interval_ns: u64,
    /// Most memory resident at any time, bytes.
    pub peak_resident_bytes: u64,
    /// Memory resident before the first connection was opened, bytes; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_before_bytes: Option<u64>,
}

/// The limits that were looked at before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsChecked {
    /// File descriptors that the run needs at once.
    pub descriptors_needed: u64,
    /// File descriptors that the process may have.
    pub descriptors_limit: u64,
    /// Local ports that the run needs at once; absent for a Unix socket.
    pub ports_needed: Option<u64>,
    /// Local ports that its source addresses offer; absent for a Unix socket.
    pub ports_available: Option<u64>,
    /// Memory that the run is expected to need, bytes.
    pub memory_needed_bytes: u64,
    /// Memory that was available, bytes; absent where the system does not say.
    pub memory_available_bytes: Option<u64>,
    /// Memory that the plan itself asks for, bytes: the requests of a list with their names, and
    /// what a script held before the run.
    pub planned_bytes: u64,
    /// Bytes that one buffer of a socket of the server holds at most, where streams go to a server
    /// on this machine and its kernel says so (tcp_rmem, tcp_wmem, rmem_max, wmem_max).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_buffer_bytes_max: Option<u64>,
    /// Requests that are logged one by one, at most.
    pub logged_requests_max: u64,
}

/// What one agent did of the plan, and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Unlike that of any other run, so that one that is given twice is noticed.
    pub id: String,
    /// The command line of the agent, a word each, without what may be secret; absent where that is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The machine that it ran on; absent where that is not known, and in simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineDescription>,
    /// The agent's share of the plan's amounts.
    pub share: Amounts,
    /// Seeds of its random numbers.
    pub seeds: Seeds,
    /// What the agent negotiated.
    pub negotiated: Negotiated,
    /// Whether the server was found to speak TLS, after a run in clear text in which no request
    /// succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub speaks_tls: bool,
    /// The backend that ran.
    pub backend: Backend,
    /// Why it is not the one that was asked for or preferred.
    pub backend_note: Option<String>,
    /// How the number of its workers and their CPUs were found; null in simulation.
    pub placement: Option<Placement>,
    /// Local addresses that connections were made from; empty when the kernel chose.
    pub source_addresses: Vec<String>,
    /// Whether brunt took these addresses by itself, because the ports of one would have run out.
    pub source_addresses_chosen: bool,
    /// Whether the target was the reference server inside its process.
    pub own_server: bool,
    /// Arrivals that its part of the schedule has in the window on average over all seeds: the
    /// integral of its rate. Null without a schedule.
    pub expected_arrivals: Option<f64>,
    /// Whether a signal cut the agent's run short.
    pub interrupted: bool,
    /// When the agent ran.
    pub clock: AgentClock,
    /// What the coordinator of its fleet knows of it; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetAgent>,
    /// What was used of its machine.
    pub host: HostUse,
    /// The limits looked at before the run.
    pub limits: LimitsChecked,
    /// What was read of machine, network and server over the window.
    pub evidence: Evidence,
    /// What each of its workers reported.
    pub workers: Vec<WorkerRecord>,
}

impl AgentRecord {
    /// The CPUs that its workers were bound to, each; absent where the scheduler placed one of
    /// them.
    pub fn bound_cpus(&self) -> Option<BTreeSet<u32>> {
        let cpus: Option<BTreeSet<u32>> =
            self.workers.iter().map(|worker| worker.bound_cpu).collect();
        cpus.filter(|cpus| !cpus.is_empty())
    }

    /// The CPUs that brunt's workers used: those that they were bound to, else all that they may
    /// have used.
    pub fn client_cpus(&self) -> BTreeSet<u32> {
        let allowed = || self.evidence.host.client_cpus.iter().copied().collect();
        self.bound_cpus().unwrap_or_else(allowed)
    }

    /// The CPUs that brunt's workers used, and those of this machine that the server may have used;
    /// empty where neither is known.
    pub fn cpus_of_both(&self) -> BTreeSet<u32> {
        let server = self.evidence.server.iter();
        let server = server.flat_map(|server| server.cpu_list.iter().copied());
        self.client_cpus().into_iter().chain(server).collect()
    }
}
