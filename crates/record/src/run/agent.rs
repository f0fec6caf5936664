//! One agent of a run: a process with its part of the load, what it negotiated, its clock, what it
//! found, and what the coordinator of a fleet knows of it.

use std::collections::BTreeSet;

use brunt_load::Amounts;
use brunt_load::protocol::Protocol;
use serde::{Deserialize, Serialize};

use crate::{Backend, Evidence, MachineDescription, Once, Placement, WorkerRecord};

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

/// The edges of the phases, each written once; consecutive, so that no wall time is left out.
/// Nanoseconds from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEdges {
    /// Arguments are read, limits checked; workers are about to start. Start-up ends here.
    pub setup_start: Once,
    /// All workers left the barrier. Set-up ends here.
    pub warmup_start: Once,
    /// The window begins. Warm-up ends here.
    pub measure_start: Once,
    /// The window ends.
    pub measure_end: Once,
    /// The end that was planned, where the run was one by duration.
    pub measure_end_planned: Once,
    /// The last worker was done. Drain ends here.
    pub drain_end: Once,
    /// Results are merged. Only printing is left.
    pub finished: Once,
}

impl RunEdges {
    /// These instants, counted from `origin_ns`.
    #[must_use]
    pub fn since(self, origin_ns: u64) -> Self {
        Self {
            setup_start: self.setup_start.since(origin_ns),
            warmup_start: self.warmup_start.since(origin_ns),
            measure_start: self.measure_start.since(origin_ns),
            measure_end: self.measure_end.since(origin_ns),
            measure_end_planned: self.measure_end_planned.since(origin_ns),
            drain_end: self.drain_end.since(origin_ns),
            finished: self.finished.since(origin_ns),
        }
    }
}

/// When an agent ran. Its instants count from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClock {
    /// The wall clock when the window began, milliseconds since 1970-01-01 UTC. A label: no figure
    /// is computed from it. Several agents are laid side by side by it.
    pub window_start_unix_ms: u64,
    /// How far the wall clock moved against the monotonic one over the run, nanoseconds. A label.
    pub stepped_ns: i64,
    /// When the process started, nanoseconds from the start of the window: not above 0.
    pub process_start_ns: i64,
    /// Monotonic time from the start of the process until the results were merged, nanoseconds.
    pub process_ns: u64,
    /// The edges of the phases.
    pub edges: RunEdges,
}

impl AgentClock {
    /// The wall clock when the process started, milliseconds since 1970-01-01 UTC.
    pub fn started_unix_ms(&self) -> u64 {
        self.window_start_unix_ms
            .saturating_add_signed(self.process_start_ns.div_euclid(1_000_000))
    }

    /// Length of the drain, nanoseconds. Absent where it has no beginning or no end.
    pub fn drain_ns(&self) -> Option<u64> {
        let end_ns = self.edges.drain_end.get()?;
        Some(after_ns(self.edges.measure_end.get()?, end_ns))
    }
}

/// Time from `from_ns` to `to_ns`; 0 where that is earlier.
pub fn after_ns(from_ns: i64, to_ns: i64) -> u64 {
    u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0)
}

/// How an agent's window lay to the one that all agreed on, by the coordinator's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedClock {
    /// How much later it began, nanoseconds.
    pub start_skew_ns: i64,
    /// How far off that may be, nanoseconds.
    pub start_bound_ns: u64,
    /// How much later it ended, nanoseconds: the rest is drift.
    pub end_skew_ns: i64,
    /// How far off that may be, nanoseconds.
    pub end_bound_ns: u64,
    /// Exchanges between the two clocks.
    pub exchanges: u32,
    /// The shortest round trip of these, nanoseconds.
    pub round_trip_ns_min: u64,
}

/// An agent as the coordinator of its fleet knows it. What follows from its part alone is kept, for
/// merging leaves only what all recorded together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetAgent {
    /// What it is called: its machine's name, as a rule.
    pub name: String,
    /// How its window lay; null where its clock contradicted itself.
    pub clock: Option<AgreedClock>,
    /// The 99th percentile of its response times, nanoseconds; null with too few of them.
    pub response_p99_ns: Option<u64>,
    /// Brunt's own part of its response times, 0 to 1; null where that is not known.
    pub own_share: Option<f64>,
    /// What limited it by itself, such as `client_limited`.
    pub verdict: String,
    /// The invariants that its part broke by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// An agent that gave no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostAgent {
    /// What it is called.
    pub name: String,
    /// The number of its first worker.
    pub first_worker: u32,
    /// Its workers.
    pub workers: u32,
    /// What is known of that.
    pub reason: String,
    /// When that was known, nanoseconds from the start of the window.
    pub at_ns: i64,
}

impl AgreedClock {
    /// The part of a window of `window_ns` that it had in any case, nanoseconds from its start:
    /// from when on, and until when.
    pub fn sure_ns(&self, window_ns: u64) -> (i64, i64) {
        let bound = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let end_ns = bound(window_ns).saturating_add(self.end_skew_ns);
        (
            self.start_skew_ns
                .saturating_add(bound(self.start_bound_ns)),
            end_ns.saturating_sub(bound(self.end_bound_ns)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sure_lies_inside_of_the_bounds() {
        let clock = AgreedClock {
            start_skew_ns: -20,
            start_bound_ns: 50,
            end_skew_ns: 100,
            end_bound_ns: 60,
            ..AgreedClock::default()
        };
        assert_eq!(clock.sure_ns(1_000), (30, 1_040));
    }
}
