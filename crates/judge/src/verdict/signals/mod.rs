//! The signals: a table of what is looked at, whom it accuses, and the function that reads it from
//! a run.
//!
//! A function never panics, whatever a stored run says. Where the run cannot tell, it says
//! `Unknown` and why.

mod client;
mod load;
mod network;
mod server;

use std::fmt;

use serde::Serialize;

use self::SignalId as Id;
use super::facts::{RunFacts, ratio};
use super::words::truncated;
use super::{Grade, Side, Signal};
use crate::units::short::percent;

/// Bytes of a request from which on the limits of sending say something.
const UPLOAD_BYTES: u64 = 16_384;

/// A signal by its name, such as `worker_idle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalId {
    /// How idle the least idle worker is.
    WorkerIdle,
    /// Brunt's own share of response times.
    OwnShare,
    /// How late planned requests were sent, and how many were not though they could be.
    ScheduleLag,
    /// How long workers waited for a CPU.
    RunQueueWait,
    /// Whether a CPU quota stopped brunt.
    Throttling,
    /// Whether brunt did not run for long.
    Pauses,
    /// Whether brunt's sockets were full, or the kernel dropped what brunt had not read.
    UnreadData,
    /// Whether brunt's send buffers were full.
    SendBuffer,
    /// Whether brunt ran out of ports or descriptors.
    ClientLimits,
    /// Segments that were sent again or overtaken, and round trips that grew with them.
    LostSegments,
    /// How full the link was.
    LinkUse,
    /// How much of its CPU the server used.
    ServerCpu,
    /// Whether a CPU quota stopped the server.
    ServerThrottling,
    /// Whether the server's accept queue overflowed.
    AcceptQueue,
    /// Whether the server did not read.
    ReceiveWindow,
    /// Whether others load the server as well.
    OtherClients,
    /// Whether other programs took CPUs that brunt or the server needed.
    OtherPrograms,
    /// Whether brunt and server shared CPUs.
    SharedHost,
    /// Whether the server refused work.
    Refusals,
    /// Whether the planned rate was met.
    PlannedRate,
    /// Whether planned requests piled up.
    Backlog,
    /// How busy the connections were.
    ConnectionsBusy,
    /// How the rate grows with the connections.
    Elasticity,
    /// How much the hypervisor took.
    Steal,
    /// Whether the rate was steady.
    Drift,
    /// Whether there are responses enough.
    Samples,
}

impl fmt::Display for SignalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A signal, whom it accuses when it is not healthy, and the function that reads it.
type SignalRow = (SignalId, Side, fn(&RunFacts<'_>) -> Reading);

/// All signals, in the order in which they are listed, each with when it is healthy.
pub(super) const SIGNALS: &[SignalRow] = &[
    // The least idle worker is idle 20 % of the time; at 5 % it can do no more.
    (Id::WorkerIdle, Side::Client, client::worker_idle),
    // Brunt's own share of response times and above p99 is under 2 %; of all 10 % at most.
    (Id::OwnShare, Side::Client, client::own_share),
    // p99 of schedule lag is under 50 µs, 1 ms at most; 99 % of what could be sent was.
    (Id::ScheduleLag, Side::Client, client::schedule_lag),
    // No worker waits for a CPU for 1 % of its time; 5 % at most.
    (Id::RunQueueWait, Side::Client, client::run_queue_wait),
    // Brunt's CPU quota does not hold it back; in 1 % of its periods at most.
    (Id::Throttling, Side::Client, client::throttling),
    // Brunt runs throughout the window; it stands still for 1 % of it at most.
    (Id::Pauses, Side::Client, client::pauses),
    // No full receive buffer is advertised and nothing thrown away unread; 0.01 % at most.
    (Id::UnreadData, Side::Client, client::unread_data),
    // Uploads wait for our send buffer for under 1 % of their time; 5 % at most.
    (Id::SendBuffer, Side::Client, client::send_buffer),
    // No lack of ports, descriptors or tracked connections.
    (Id::ClientLimits, Side::Client, client::client_limits),
    // 0.01 % of segments at most are sent again, 0.1 % out of order; fails at 0.5, 1 %.
    (Id::LostSegments, Side::Network, network::lost_segments),
    // The link is used to under 80 %; 90 % at most.
    (Id::LinkUse, Side::Network, network::link_use),
    // The server uses under 80 % of its CPUs; under 95 %, and not all threads, at most.
    (Id::ServerCpu, Side::Server, server::server_cpu),
    // The server's CPU quota, mostly used, holds it back in 10 % of its periods at most.
    (Id::ServerThrottling, Side::Server, server::throttling),
    // No connection finds the accept queue full, or takes a second to open.
    (Id::AcceptQueue, Side::Server, server::accept_queue),
    // Uploads wait for the server to read for under 1 % of their time; 10 % at most.
    (Id::ReceiveWindow, Side::Server, server::receive_window),
    // Others send under 1 % of what the server receives; 5 % at most.
    (Id::OtherClients, Side::Doubt, server::other_clients),
    // Other programs use under 5 % of the CPUs of client and server, or neither waits.
    (Id::OtherPrograms, Side::Doubt, load::other_programs),
    // Client and server do not compete for the same CPUs.
    (Id::SharedHost, Side::Doubt, server::shared_host),
    // Under 0.1 % of requests are turned away (429, 503, Retry-After, streams refused).
    (Id::Refusals, Side::Rate, load::refusals),
    // Fails where 99 % of a schedule was answered: the plan was the limit.
    (Id::PlannedRate, Side::Rate, load::planned_rate),
    // Arrivals do not pile up; fails where it is known behind whom.
    (Id::Backlog, Side::Server, load::backlog),
    // Fails where all connections are busy, the server has room and requests do not queue.
    (Id::ConnectionsBusy, Side::Concurrency, load::connections),
    // Fails where the rate grows with the connections.
    (Id::Elasticity, Side::Concurrency, load::elasticity),
    // The hypervisor takes under 0.5 % of the CPUs; 5 % at most.
    (Id::Steal, Side::Doubt, load::steal),
    // The rate holds still over the window, to 3 % and chance; to 10 % by halves at most.
    (Id::Drift, Side::Doubt, load::drift),
    // There are 100 replies, in half a second.
    (Id::Samples, Side::Doubt, load::samples),
];

/// What was read of one signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    grade: Grade,
    /// Whom it accuses in this run, where that is not whom it does in general.
    side: Option<Side>,
    detail: String,
}

impl Reading {
    fn new(grade: Grade, detail: impl Into<String>) -> Self {
        Self {
            grade,
            side: None,
            detail: detail.into(),
        }
    }

    /// Healthy where something `holds`, else a failure.
    fn healthy_if(holds: bool, detail: impl Into<String>) -> Self {
        let grade = if holds { Grade::Healthy } else { Grade::Fail };
        Self::new(grade, detail)
    }

    fn healthy(detail: impl Into<String>) -> Self {
        Self::new(Grade::Healthy, detail)
    }

    fn warn(detail: impl Into<String>) -> Self {
        Self::new(Grade::Warn, detail)
    }

    fn fail(detail: impl Into<String>) -> Self {
        Self::new(Grade::Fail, detail)
    }

    fn unknown(detail: impl Into<String>) -> Self {
        Self::new(Grade::Unknown, detail)
    }

    fn accusing(self, side: Side) -> Self {
        Self {
            side: Some(side),
            ..self
        }
    }

    /// Makes a failure a warning where `is_harmless`, and says `why`.
    fn warn_at_most(mut self, is_harmless: bool, why: &str) -> Self {
        if is_harmless && self.grade == Grade::Fail {
            self.grade = Grade::Warn;
            self.detail = format!("{}: {why}", self.detail);
        }
        self
    }
}

/// How a value stands that is healthy below `warn` and fails from `fail` on.
fn grade_above(value: f64, warn: f64, fail: f64) -> Grade {
    if value >= fail {
        Grade::Fail
    } else if value >= warn {
        Grade::Warn
    } else {
        Grade::Healthy
    }
}

/// Why a part of the evidence is not there, as noted when it was read.
fn missing(facts: &RunFacts<'_>, field: &str, otherwise: &str) -> Reading {
    let missing = &facts.evidence().missing;
    let part = field.split('.').next().unwrap_or(field);
    let noted = missing.get(field).or_else(|| missing.get(part));
    Reading::unknown(truncated(noted.map_or(otherwise, String::as_str)))
}

/// Every signal of a run, in the order of [`SIGNALS`]. Of several agents a signal is the worst of
/// them.
pub(super) fn read_all(cases: &[RunFacts<'_>]) -> Vec<Signal> {
    SIGNALS
        .iter()
        .map(|&(id, side, read)| {
            let reading = worst(cases.iter().map(read).collect(), side);
            Signal {
                id,
                grade: reading.grade,
                side: reading.side.unwrap_or(side),
                detail: reading.detail,
            }
        })
        .collect()
}

/// The worst of what the agents read of one signal. What one of them does not know of its own
/// machine, nobody knows; the server and the way to it are known as soon as one agent sees them.
fn worst(readings: Vec<Reading>, side: Side) -> Reading {
    let is_shared = matches!(side, Side::Server | Side::Network);
    let badness = |grade| match grade {
        Grade::Fail => 3,
        Grade::Warn => 2,
        Grade::Unknown => u8::from(!is_shared),
        Grade::Healthy => u8::from(is_shared),
    };
    let are_alike = readings.windows(2).all(|pair| pair[0] == pair[1]);
    // The first of those that stand alike.
    let numbered = readings.into_iter().enumerate().rev();
    let worst = numbered.max_by_key(|(_, reading)| badness(reading.grade));
    let Some((agent, mut reading)) = worst else {
        return Reading::unknown("there is no agent");
    };
    if !are_alike {
        reading.detail = format!("agent {}: {}", agent + 1, reading.detail);
    }
    reading
}

/// How much of the time in which something was to be sent it waited for `what`, of which the kernel
/// kept account, graded by two shares.
fn held_up(facts: &RunFacts<'_>, limited_ns: u64, what: &str, [warn, fail]: [f64; 2]) -> Reading {
    if facts.run.request_bytes() < UPLOAD_BYTES {
        let is_streams = facts.run.is_streams();
        let what = if is_streams {
            "nothing is sent"
        } else {
            "requests are small"
        };
        return Reading::unknown(what);
    }
    let Some(share) = ratio(limited_ns as f64, facts.kernel.busy_ns as f64) else {
        return Reading::unknown("no connection was sampled while it sent");
    };
    let words = format!("sending waited for {what} {} of the time", percent(share));
    Reading::new(grade_above(share, warn, fail), words)
}
