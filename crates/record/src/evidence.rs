//! What was read of the client's machine, the network and the server while the window lasted: the
//! evidence behind the verdict.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::merged::{differences, sum};

/// Most programs beside brunt and the server that are named.
pub const PROGRAMS_MAX: usize = 3;

/// Readings of the whole window. Counters are changes from the first reading to the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Time from the first reading to the last one, nanoseconds: the window, as nearly as a thread
    /// can be woken. 0: nothing was read.
    pub interval_ns: u64,
    /// The machine that brunt ran on.
    pub host: HostEvidence,
    /// The way to the server; absent in simulation.
    pub network: Option<NetworkEvidence>,
    /// The server, where it was watched.
    pub server: Option<ServerEvidence>,
    /// What a server on this machine received from all of its clients.
    pub server_connections: Option<ServerConnections>,
    /// The server's own count of requests, where `--verify-url` names it.
    /// Of streams that brunt sends: its count of bytes that it received.
    pub server_count: Option<ServerCount>,
    /// The server's own count of bytes that it sent, of streams that it sends, where
    /// `--verify-url` names it.
    pub server_sent: Option<ServerCount>,
    /// What the reference server counted over the window of streams, by its own clock.
    pub server_window: Option<ServerWindow>,
    /// What reading all this cost.
    pub observer: Observer,
    /// What could not be read, and why; by the field's name, such as `host.pressure_ns`.
    pub missing: BTreeMap<String, String>,
}

/// What reading cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observer {
    /// CPU of the reading thread over the window, nanoseconds.
    pub cpu_ns: u64,
    /// Readings made.
    pub readings: u64,
    /// Time between two readings aimed at, nanoseconds: 100 ms, or more where a reading is costly.
    pub pause_ns: u64,
}

/// The client's machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostEvidence {
    /// How each online CPU spent its time. Resolution is the kernel's, 10 ms.
    pub cpus: Vec<CpuTimes>,
    /// The CPUs that brunt's threads may run on.
    pub client_cpus: Vec<u32>,
    /// Time in which some task was ready to run and had no CPU (PSI `some`), nanoseconds: of
    /// brunt's cgroup where that can be read, else of the machine.
    pub pressure_ns: Option<u64>,
    /// How brunt's cgroup, or one above it, was held back by its CPU quota; absent without one.
    pub throttling: Option<Throttling>,
    /// What programs beside brunt and the server used; absent where they were not read.
    pub programs: Option<OtherPrograms>,
    /// When the hypervisor took which CPU, oldest first, at most 16,384 stretches. Empty where it
    /// took none.
    pub stolen: Vec<Stolen>,
    /// Over time, oldest first: at most 1,200 readings.
    pub series: Vec<HostPoint>,
}

/// What programs beside brunt and the server used over the window, by one look at all processes at
/// either edge of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherPrograms {
    /// CPU of all of them, nanoseconds.
    pub cpu_ns: u64,
    /// The three that used most, largest first; processes of one name together.
    pub largest: Vec<ProgramUse>,
}

/// What one program used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUse {
    /// The program's name, as the kernel has it.
    pub name: String,
    /// CPU of the program, nanoseconds, with that of children that it has waited for.
    pub cpu_ns: u64,
}

/// A stretch between two readings of a CPU in which the hypervisor took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stolen {
    /// The CPU's number.
    pub cpu: u32,
    /// When the CPU was read before, from the start of the window, nanoseconds. The second before
    /// the window counts as well: what is held up in it may reach into the window.
    pub from_ns: i64,
    /// When the CPU was read next, from the start of the window, nanoseconds.
    pub until_ns: i64,
    /// What was added to its steal in between, nanoseconds. The kernel adds a time when it is over:
    /// it may have begun before `from_ns`.
    pub steal_ns: u64,
}

/// How one CPU spent the window, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Number of the CPU.
    pub cpu: u32,
    /// Running anything, interrupts included; without steal.
    pub busy_ns: u64,
    /// The part of `busy_ns` in soft interrupts, where the kernel does much of the network's work.
    pub softirq_ns: u64,
    /// Ready to run, but the hypervisor ran something else.
    pub steal_ns: u64,
    /// Idle, or waiting for a disk.
    pub idle_ns: u64,
}

/// How a CPU quota held the process back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// Periods of the quota.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// Time for which the cgroup's tasks were held back, summed over CPUs, nanoseconds: may be more
    /// than the interval.
    pub throttled_ns: u64,
}

differences!(Throttling: periods throttled_periods throttled_ns);

/// The machine at one instant; sums since the first reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPoint {
    /// Time since the first reading, nanoseconds.
    pub at_ns: u64,
    /// Busy time of all CPUs, nanoseconds.
    pub busy_ns: u64,
    /// Steal of all CPUs, nanoseconds.
    pub steal_ns: u64,
    /// PSI `some`, nanoseconds; 0 where it cannot be read.
    pub pressure_ns: u64,
    /// CPU of the brunt process, nanoseconds.
    pub client_cpu_ns: u64,
}

/// The way to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkEvidence {
    /// What the connections go through.
    pub route: Route,
    /// TCP counters of this network namespace: of all its sockets, on loopback the server's too.
    pub tcp: Option<TcpCounters>,
    /// The table of tracked connections at the end, where connections are tracked.
    pub conntrack: Option<Conntrack>,
    /// TCP sockets in TIME_WAIT at the end.
    pub time_wait: Option<u64>,
}

/// What the connections to the server go through on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Route {
    /// A Unix socket.
    UnixSocket,
    /// The loopback interface: client and server share a machine and its network namespace.
    Loopback,
    /// A network interface.
    Interface {
        /// Name of the interface, such as `eth0`.
        name: String,
        /// Speed of its link in either direction, bits per second: from `--link-speed`, else what
        /// the driver says. Absent where neither does.
        link_bits_per_s: Option<u64>,
        /// Whether `--link-speed` gave the speed.
        was_given: bool,
        /// Bytes received over it, with headers.
        received_bytes: u64,
        /// Bytes sent over it, with headers.
        sent_bytes: u64,
        /// Packets that it dropped, in either direction.
        dropped_packets: u64,
    },
    /// The interface could not be found out.
    Unknown,
}

/// TCP counters of a network namespace (`/proc/net/snmp`, `/proc/net/netstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpCounters {
    /// Segments received.
    pub segments_received: u64,
    /// Segments sent, without those sent again.
    pub segments_sent: u64,
    /// Segments sent again, without connection requests (RetransSegs less TCPSynRetrans).
    pub segments_retransmitted: u64,
    /// Segments that came out of order and were queued (TCPOFOQueue).
    pub segments_out_of_order: u64,
    /// Connection requests sent again (TCPSynRetrans).
    pub syn_retransmits: u64,
    /// Windows of size zero that were advertised: a reader did not keep up (TCPToZeroWindowAdv).
    pub zero_windows_advertised: u64,
    /// Segments thrown away for want of receive memory (PruneCalled, RcvPruned, TCPRcvQDrop,
    /// TCPBacklogDrop).
    pub receive_prunes: u64,
    /// Connections that found a listening socket's accept queue full (ListenOverflows).
    pub listen_overflows: u64,
}

differences!(TcpCounters:
    segments_received segments_sent segments_retransmitted segments_out_of_order syn_retransmits
    zero_windows_advertised receive_prunes listen_overflows
);

/// The table of tracked connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conntrack {
    /// Entries in it.
    pub entries: u64,
    /// Most that it holds.
    pub entries_max: u64,
    /// Packets dropped over the window because it was full.
    pub dropped_packets: u64,
}

/// The server, as watched from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerEvidence {
    /// What was watched.
    pub scope: ServerScope,
    /// Name of the server, such as `nginx`.
    pub name: String,
    /// Time from the first reading of the server to the last one, nanoseconds.
    pub interval_ns: u64,
    /// CPU in user space, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU in the kernel, nanoseconds.
    pub cpu_system_ns: u64,
    /// CPUs that it may use, by its affinity and its cgroup's quota; absent where unknown.
    pub cpus: Option<f64>,
    /// The CPUs of this machine that it may run on; empty when it runs on another.
    pub cpu_list: Vec<u32>,
    /// Time for which its threads were ready and had no CPU, nanoseconds; absent where unknown.
    pub run_queue_wait_ns: Option<u64>,
    /// How its cgroup was held back by its CPU quota; absent without one.
    pub throttling: Option<Throttling>,
    /// The threads that did its work.
    pub threads: Option<ServerThreads>,
    /// Part of one CPU (or of several, beyond 1) that it used with nothing to do: a server that
    /// polls is busy with nothing. Read before the load began, with its connections open; where
    /// that was much, read again after the load, and the less of both. Absent where unknown.
    pub idle_cpus_used: Option<f64>,
    /// Most resident memory, bytes; absent where unknown. Of several processes the sum, in which
    /// memory that they share is counted for each.
    pub resident_bytes_max: Option<u64>,
    /// Most open file descriptors; absent where unknown.
    pub descriptors_max: Option<u64>,
    /// Over time, oldest first: once per second, at most 1,200 readings.
    pub series: Vec<ServerPoint>,
}

/// What of the server was watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServerScope {
    /// Processes on this machine.
    Processes {
        /// Ids of the processes, the listening one first.
        pids: Vec<u32>,
        /// How the processes were found, in words.
        found_by: String,
    },
    /// The reference server inside the brunt process.
    OwnThreads,
}

/// The threads of the server's processes: those that were there at the end, and of a process that
/// has ended those that it had when it was last read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerThreads {
    /// Threads at the end; where no process was left by then, when one was last seen.
    pub count: u32,
    /// Threads that were busy for at least 5 % of the interval.
    pub active: u32,
    /// Threads that were busy or waiting for a CPU for at least 90 % of the interval.
    pub saturated: u32,
    /// CPU of the busiest, nanoseconds.
    pub busiest_cpu_ns: u64,
    /// CPU of the saturated ones together, nanoseconds.
    pub saturated_cpu_ns: u64,
}

/// The server at one instant; CPU times are sums since the first reading of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPoint {
    /// Time since the first reading, nanoseconds.
    pub at_ns: u64,
    /// CPU in user space, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU in the kernel, nanoseconds.
    pub cpu_system_ns: u64,
    /// Threads.
    pub threads: Option<u32>,
    /// Resident memory, bytes.
    pub resident_bytes: Option<u64>,
    /// Open file descriptors.
    pub descriptors: Option<u64>,
}

/// What the server received on the connections at its port, brunt's and others', by the kernel's
/// account of them at the edges of the window. Connections that ended in between are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerConnections {
    /// Time from the first reading to the last one, nanoseconds.
    pub interval_ns: u64,
    /// Connections that were open at once at the last reading.
    pub connections: u64,
    /// Payload bytes received on them.
    pub bytes_received: u64,
    /// Segments with payload received on them.
    pub segments_received: u64,
    /// Segments that others sent at least: those received on connections beyond as many as brunt
    /// may have, if brunt's own were the most active ones.
    pub segments_received_beyond: u64,
}

/// The server's own count of requests before the run and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCount {
    /// The URL at which the count was read.
    pub url: String,
    /// What was read there, such as `requests` or the name of a metric.
    pub path: String,
    /// The count before the first connection was opened.
    pub before: u64,
    /// The count after drain.
    pub after: u64,
    /// Most of the difference that may be the reading itself.
    pub own_reads: u64,
}

/// Bytes of raw TCP that the reference server counted between two readings, at the edges of the
/// window as nearly as a page can be read. The time between them is by its own clock, so that a
/// late reading changes no rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerWindow {
    /// Time from the first reading to the second one, nanoseconds.
    pub interval_ns: u64,
    /// Bytes that it read.
    pub bytes_received: u64,
    /// Bytes that it gave to its kernel.
    pub bytes_sent: u64,
}

impl ServerCount {
    /// What the server counted between the two readings; absent where the count went back, because
    /// the server was started anew.
    pub fn counted(&self) -> Option<u64> {
        self.after.checked_sub(self.before)
    }
}

impl CpuTimes {
    /// All time of the CPU, nanoseconds.
    pub fn total_ns(&self) -> u64 {
        sum(&[self.busy_ns, self.steal_ns, self.idle_ns])
    }
}

impl ServerEvidence {
    /// CPU in user space and in the kernel, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_user_ns.saturating_add(self.cpu_system_ns)
    }

    /// CPUs used on average over its interval; absent when that has no length.
    pub fn cpus_used(&self) -> Option<f64> {
        (self.interval_ns > 0).then(|| self.cpu_ns() as f64 / self.interval_ns as f64)
    }
}
