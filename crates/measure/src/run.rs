//! One whole run, as stored: every report can be printed from it again.

use serde::{Deserialize, Serialize};

use crate::bounded::{self, REMARKS_MAX};
use crate::by_name::NAMES_MAX;
use crate::{
    Calibration, Diagnosis, Evidence, Finding, Latencies, NameRecord, Once, SetUp, WorkerRecord,
};

/// Most workers of a run.
pub const WORKERS_MAX: u32 = 4_096;
/// Most stages of a schedule.
const STAGES_MAX: usize = 1_000;
/// Most local addresses of a run.
const SOURCE_ADDRESSES_MAX: usize = 1 << 16;

/// The kernel interface under a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Its name as typed and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
            Self::Sim => "sim",
        }
    }
}

/// A stretch of a schedule over which the rate changes evenly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageDescription {
    /// Its length, nanoseconds.
    pub duration_ns: u64,
    /// Arrivals per second at its start.
    pub from_per_s: f64,
    /// Arrivals per second at its end.
    pub to_per_s: f64,
}

/// A schedule of arrivals, and the room for those that must wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleDescription {
    /// How arrivals are spread around the rate: `constant`, `poisson` or `uniform`.
    pub process: String,
    /// Seed of its random numbers.
    pub seed: u64,
    /// The stages asked for; empty for one rate throughout.
    #[serde(deserialize_with = "bounded::list::<_, _, STAGES_MAX>")]
    pub stages: Vec<StageDescription>,
    /// Arrivals that the schedule has in the window on average over all seeds: the integral of
    /// its rate.
    pub expected: f64,
    /// Arrivals that could wait at once, all workers together.
    pub queue_max: u32,
}

impl ScheduleDescription {
    /// Whether the rate is planned to change over the window.
    pub fn varies(&self) -> bool {
        let rates = self
            .stages
            .iter()
            .flat_map(|stage| [stage.from_per_s, stage.to_per_s]);
        let first = self.stages.first().map(|stage| stage.from_per_s);
        rates.into_iter().any(|rate| Some(rate) != first)
    }
}

/// What made a request due.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelDescription {
    /// A reply: each connection sends its next request when one is in.
    Closed {
        /// Connections that set-up opened per second; null for no limit.
        connect_per_s: Option<f64>,
    },
    /// A schedule of requests.
    Open {
        /// When they were due.
        schedule: ScheduleDescription,
        /// Connections that there could be.
        connections_max: u32,
    },
    /// A schedule of connections, each with its requests, in HTTP/1.1 one after the other.
    Sessions {
        /// When they were due.
        schedule: ScheduleDescription,
    },
}

impl ModelDescription {
    /// The schedule, where there is one.
    pub fn schedule(&self) -> Option<&ScheduleDescription> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { schedule, .. } | Self::Sessions { schedule } => Some(schedule),
        }
    }
}

/// What a stored model says, before it is believed. Read field by field: serde's own way of reading
/// tagged enumerations keeps a copy of all that is there, whatever it is.
#[derive(Deserialize)]
struct StoredModel {
    kind: ModelKind,
    connect_per_s: Option<f64>,
    schedule: Option<ScheduleDescription>,
    connections_max: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModelKind {
    Closed,
    Open,
    Sessions,
}

impl<'de> Deserialize<'de> for ModelDescription {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredModel {
            kind,
            connect_per_s,
            schedule,
            connections_max,
        } = StoredModel::deserialize(deserializer)?;
        Ok(match kind {
            ModelKind::Closed => Self::Closed { connect_per_s },
            ModelKind::Open => Self::Open {
                schedule: bounded::present("schedule", schedule)?,
                connections_max: bounded::present("connections_max", connections_max)?,
            },
            ModelKind::Sessions => Self::Sessions {
                schedule: bounded::present("schedule", schedule)?,
            },
        })
    }
}

/// The protocol above TCP and TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    #[default]
    #[serde(rename = "HTTP/1.1")]
    Http1,
    /// HTTP/2 (RFC 9113).
    #[serde(rename = "HTTP/2")]
    Http2,
}

impl Protocol {
    /// Its name as printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// What TLS was negotiated with the server, as seen on the connection made before the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsDescription {
    /// Version, such as `TLS 1.3`.
    pub version: String,
    /// Cipher suite, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher_suite: String,
    /// Key exchange group, such as `X25519`; null where none was used.
    pub group: Option<String>,
    /// Server name that was asked for (SNI; an address is not) and, unless insecure, verified.
    pub server_name: String,
    /// Whether the server's certificate was not verified.
    pub insecure: bool,
    /// Whether later connections were allowed to resume the session of an earlier one.
    pub resumption: bool,
    /// Whether a client certificate was offered.
    pub client_certificate: bool,
}

/// What was asked for, in the words of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadDescription {
    /// The URL.
    pub target: String,
    /// Path of the Unix socket, where one is used in place of the URL's host.
    pub unix_socket: Option<String>,
    /// The socket address that was connected to, or the socket's path.
    pub address: String,
    /// Protocol spoken, such as `HTTP/1.1`.
    pub protocol: Protocol,
    /// Over HTTP/1.1, why HTTP/2 was not agreed on though it was preferred; over HTTP/2, why fewer
    /// streams than asked for may be in flight. Null where things are as asked for.
    pub protocol_note: Option<String>,
    /// The list of requests that was sent; null for a single one.
    #[serde(default)]
    pub list: Option<ListDescription>,
    /// What TLS was negotiated; null in clear text.
    pub tls: Option<TlsDescription>,
    /// Request method.
    pub method: String,
    /// Bytes of one request, head and body.
    pub request_bytes: u64,
    /// What made a request due.
    pub model: ModelDescription,
    /// Connections asked for; with a schedule of connections, most at once.
    pub connections: u32,
    /// Worker threads.
    pub workers: u32,
    /// Requests in flight per connection: pipelined in HTTP/1.1, streams in HTTP/2.
    pub depth: u32,
    /// Whether connections are used for more than one request.
    pub keepalive: bool,
    /// Requests after which a connection is replaced; null for no limit.
    pub requests_per_connection: Option<u64>,
    /// From a reply to the next request on its connection, on average, nanoseconds.
    pub think_time_ns: u64,
    /// How think times were spread around it: `fixed`, `exp` or `uniform`; null without any.
    #[serde(default)]
    pub think_spread: Option<String>,
    /// Seed of think times, and of when the first requests of a closed loop with them were sent;
    /// null without any.
    #[serde(default)]
    pub think_seed: Option<u64>,
    /// One connection in this many had kernel receive stamps; null for none.
    pub stamps_every: Option<u32>,
    /// Length of the measure phase asked for, nanoseconds; null when only a count was given.
    pub duration_ns: Option<u64>,
    /// Number of measured requests asked for; null when only a duration was given.
    pub requests: Option<u64>,
    /// Length of the warm-up asked for, nanoseconds.
    pub warmup_ns: u64,
    /// Limit of one request, nanoseconds: from its planned instant with a schedule of requests,
    /// else from its send.
    pub timeout_ns: u64,
    /// Limit of one connection attempt, nanoseconds.
    pub connect_timeout_ns: u64,
    /// Limit of the drain phase, nanoseconds.
    pub drain_limit_ns: u64,
    /// The backend that ran.
    pub backend: Backend,
    /// Why it is not the one that was asked for or preferred.
    pub backend_note: Option<String>,
    /// Local addresses that connections were made from; empty when the kernel chose.
    #[serde(deserialize_with = "bounded::list::<_, _, SOURCE_ADDRESSES_MAX>")]
    pub source_addresses: Vec<String>,
    /// Whether brunt took these addresses by itself, because the ports of one would have run out.
    #[serde(default)]
    pub source_addresses_chosen: bool,
    /// Whether more workers than usable CPUs were asked for on purpose.
    pub oversubscribed: bool,
    /// Whether the target was the reference server inside this process.
    pub own_server: bool,
}

impl LoadDescription {
    /// Whether it is of the kind that `brunt calibrate` makes, so that both can be compared:
    /// HTTP/1.1 in clear text.
    pub fn is_like_calibration(&self) -> bool {
        self.protocol == Protocol::Http1 && self.tls.is_none()
    }
}

/// The interval that every rate is counted in and divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// Its first instant.
    pub start_ns: u64,
    /// The first instant after it.
    pub end_ns: u64,
}

impl Window {
    /// Its length, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// The edges of the phases, each written once; consecutive, so that no wall time is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Wall-clock labels and the process's own length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wall {
    /// Start of the process, milliseconds since 1970-01-01 UTC. A label: nothing is computed
    /// from it.
    pub started_unix_ms: u64,
    /// How far the wall clock moved against the monotonic one over the run, nanoseconds. A label.
    pub stepped_ns: i64,
    /// Monotonic time from the start of the process until the results were merged.
    pub process_ns: u64,
}

/// What the run used of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUse {
    /// CPUs that this process may use (affinity and cgroup quota, rounded down, at least 1).
    pub usable_cpus: u32,
    /// CPU of the process in user space over the window, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU of the process in the kernel over the window, nanoseconds.
    pub cpu_system_ns: u64,
    /// Time between the two readings behind the CPU figures, nanoseconds.
    pub cpu_interval_ns: u64,
    /// Most memory resident at any time, bytes.
    pub peak_resident_bytes: u64,
}

/// The limits that were looked at before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
}

/// A list of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListDescription {
    /// How many requests it has.
    pub requests: u64,
    /// In which order they are sent.
    pub order: ListOrder,
}

/// In which order the requests of a list are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    /// One after the other, over and over.
    Turns,
    /// Each time any of them, all alike.
    Random {
        /// Seed of the random numbers.
        seed: u64,
    },
}

/// One run: what was asked, what happened, and whether it may be believed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Version of this layout: 2.
    pub format: u32,
    /// Version of brunt that made the run.
    pub brunt_version: String,
    /// What was asked for.
    pub load: LoadDescription,
    /// Whether the run was cut short by a signal.
    pub interrupted: bool,
    /// The window, common to all workers.
    pub window: Window,
    /// The edges of the phases.
    pub edges: RunEdges,
    /// Labels and length of the process.
    pub wall: Wall,
    /// What was used of this machine.
    pub host: HostUse,
    /// The limits looked at before the run.
    pub limits: LimitsChecked,
    /// What the workers' histograms make together.
    pub latencies: Latencies,
    /// What each worker reported.
    #[serde(deserialize_with = "bounded::list::<_, _, { WORKERS_MAX as usize }>")]
    pub workers: Vec<WorkerRecord>,
    /// What became of the requests of a list, by their names, all workers together; empty for a
    /// single request.
    #[serde(default, deserialize_with = "bounded::list::<_, _, NAMES_MAX>")]
    pub names: Vec<NameRecord>,
    /// What was read of machine, network and server over the window.
    pub evidence: Evidence,
    /// The experiment of `--diagnose`, made after the run; null without one.
    pub diagnosis: Option<Diagnosis>,
    /// What `brunt calibrate` found on this machine; null when it was never run there with this
    /// version.
    pub calibration: Option<Calibration>,
    /// The invariants, as found by [`crate::check`].
    #[serde(deserialize_with = "bounded::list::<_, _, REMARKS_MAX>")]
    pub findings: Vec<Finding>,
}

impl Run {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 2;

    /// What set-up came to, all workers together. Absent where a worker did not say.
    pub fn set_up(&self) -> Option<SetUp> {
        let mut sum = SetUp::default();
        for worker in &self.workers {
            sum.merge(worker.set_up.as_ref()?);
        }
        Some(sum)
    }
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use super::*;

    #[test]
    fn the_schema_names_every_part_of_a_run() {
        let schema = schemars::schema_for!(Run);
        let text = serde_json::to_string(&schema).expect("a schema serialises");
        for part in [
            "\"workers\"",
            "\"hdr_v2\"",
            "\"interval_ns\"",
            "\"truncated_body\"",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
