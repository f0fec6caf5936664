//! The signals: a table of what is looked at, whom it accuses, and the function that reads it from
//! a run.
//!
//! A function never panics, whatever a stored run says. Where the run cannot tell, it says
//! `Unknown` and why.

mod client;
mod load;
mod network;
mod programs;
mod server;

use super::facts::{RunFacts, ratio};
use super::thresholds::UPLOAD_BYTES;
use super::words::{percent, truncated};
use super::{Grade, Side, Signal, SignalId};

/// How one signal is read and graded.
pub struct SignalRule {
    /// The signal's name in data, such as `worker_idle`.
    pub id: SignalId,
    /// Whom it accuses when it is not healthy.
    pub side: Side,
    /// What is looked at and where it turns, one line.
    pub rule: &'static str,
    read: fn(&RunFacts<'_>) -> Reading,
}

/// All signals, in the order in which they are listed.
pub const SIGNALS: &[SignalRule] = &[
    SignalRule {
        id: SignalId::WorkerIdle,
        side: Side::Client,
        rule: "the least idle worker is idle 20 % of the time; at 5 % it can do no more",
        read: client::worker_idle,
    },
    SignalRule {
        id: SignalId::OwnShare,
        side: Side::Client,
        rule: "brunt's own share of response times and above p99 is under 2 %; of all 10 % at most",
        read: client::own_share,
    },
    SignalRule {
        id: SignalId::ScheduleLag,
        side: Side::Client,
        rule: "p99 of schedule lag is under 50 µs, 1 ms at most; 99 % of what could be sent was",
        read: client::schedule_lag,
    },
    SignalRule {
        id: SignalId::RunQueueWait,
        side: Side::Client,
        rule: "no worker waits for a CPU for 1 % of its time; 5 % at most",
        read: client::run_queue_wait,
    },
    SignalRule {
        id: SignalId::Throttling,
        side: Side::Client,
        rule: "brunt's CPU quota does not hold it back; in 1 % of its periods at most",
        read: client::throttling,
    },
    SignalRule {
        id: SignalId::Pauses,
        side: Side::Client,
        rule: "brunt runs throughout the window; it stands still for 1 % of it at most",
        read: client::pauses,
    },
    SignalRule {
        id: SignalId::UnreadData,
        side: Side::Client,
        rule: "no full receive buffer is advertised and nothing thrown away unread; 0.01 % at most",
        read: client::unread_data,
    },
    SignalRule {
        id: SignalId::SendBuffer,
        side: Side::Client,
        rule: "uploads wait for our send buffer for under 1 % of their time; 5 % at most",
        read: client::send_buffer,
    },
    SignalRule {
        id: SignalId::ClientLimits,
        side: Side::Client,
        rule: "no lack of ports, descriptors or tracked connections",
        read: client::client_limits,
    },
    SignalRule {
        id: SignalId::LostSegments,
        side: Side::Network,
        rule: "0.01 % of segments at most are sent again, 0.1 % out of order; fails at 0.5, 1 %",
        read: network::lost_segments,
    },
    SignalRule {
        id: SignalId::LinkUse,
        side: Side::Network,
        rule: "the link is used to under 80 %; 90 % at most",
        read: network::link_use,
    },
    SignalRule {
        id: SignalId::ServerCpu,
        side: Side::Server,
        rule: "the server uses under 80 % of its CPUs; under 95 %, and not all threads, at most",
        read: server::server_cpu,
    },
    SignalRule {
        id: SignalId::ServerThrottling,
        side: Side::Server,
        rule: "the server's CPU quota, mostly used, holds it back in 10 % of its periods at most",
        read: server::server_throttling,
    },
    SignalRule {
        id: SignalId::AcceptQueue,
        side: Side::Server,
        rule: "no connection finds the accept queue full, or takes a second to open",
        read: server::accept_queue,
    },
    SignalRule {
        id: SignalId::ReceiveWindow,
        side: Side::Server,
        rule: "uploads wait for the server to read for under 1 % of their time; 10 % at most",
        read: server::receive_window,
    },
    SignalRule {
        id: SignalId::OtherClients,
        side: Side::Doubt,
        rule: "others send under 1 % of what the server receives; 5 % at most",
        read: server::other_clients,
    },
    SignalRule {
        id: SignalId::OtherPrograms,
        side: Side::Doubt,
        rule: "other programs use under 5 % of the CPUs of client and server, or neither waits",
        read: programs::other_programs,
    },
    SignalRule {
        id: SignalId::SharedHost,
        side: Side::Doubt,
        rule: "client and server do not compete for the same CPUs",
        read: server::shared_host,
    },
    SignalRule {
        id: SignalId::Refusals,
        side: Side::Rate,
        rule: "under 0.1 % of requests are turned away (429, 503, Retry-After, streams refused)",
        read: load::refusals,
    },
    SignalRule {
        id: SignalId::PlannedRate,
        side: Side::Rate,
        rule: "fails where 99 % of a schedule was answered: the plan was the limit",
        read: load::planned_rate,
    },
    SignalRule {
        id: SignalId::Backlog,
        side: Side::Server,
        rule: "arrivals do not pile up; fails where it is known behind whom",
        read: load::backlog,
    },
    SignalRule {
        id: SignalId::ConnectionsBusy,
        side: Side::Concurrency,
        rule: "fails where all connections are busy, the server has room and requests do not queue",
        read: load::connections_busy,
    },
    SignalRule {
        id: SignalId::Elasticity,
        side: Side::Concurrency,
        rule: "fails where the rate grows with the connections",
        read: load::elasticity,
    },
    SignalRule {
        id: SignalId::Steal,
        side: Side::Doubt,
        rule: "the hypervisor takes under 0.5 % of the CPUs; 5 % at most",
        read: load::steal,
    },
    SignalRule {
        id: SignalId::Drift,
        side: Side::Doubt,
        rule: "the rate holds still over the window, to 3 % and chance; to 10 % by halves at most",
        read: load::drift,
    },
    SignalRule {
        id: SignalId::Samples,
        side: Side::Doubt,
        rule: "there are 100 replies, in half a second",
        read: load::samples,
    },
];

/// What was read of one signal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
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
            self.detail.push_str(": ");
            self.detail.push_str(why);
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
        .map(|rule| {
            let readings = cases.iter().map(|facts| (rule.read)(facts)).collect();
            let reading = worst(readings, rule.side);
            Signal {
                id: rule.id,
                grade: reading.grade,
                side: reading.side.unwrap_or(rule.side),
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
    let numbered = (1..).zip(readings);
    // The first of those that stand alike.
    let (agent, mut reading) = numbered
        .reduce(|(first, worst), (number, reading)| {
            match badness(reading.grade) > badness(worst.grade) {
                true => (number, reading),
                false => (first, worst),
            }
        })
        .unwrap_or((1, Reading::unknown("there is no agent")));
    if !are_alike {
        reading.detail = format!("agent {agent}: {}", reading.detail);
    }
    reading
}

/// How much of the time in which something was to be sent it waited for `what`, of which the kernel
/// kept account, graded by two shares.
fn held_up(facts: &RunFacts<'_>, limited_ns: u64, what: &str, (warn, fail): (f64, f64)) -> Reading {
    if facts.run.request_bytes() < UPLOAD_BYTES {
        return Reading::unknown(match facts.run.is_streams() {
            true => "nothing is sent",
            false => "requests are small",
        });
    }
    let Some(share) = ratio(limited_ns as f64, facts.kernel.busy_ns as f64) else {
        return Reading::unknown("no connection was sampled while it sent");
    };
    let words = format!("sending waited for {what} {} of the time", percent(share));
    Reading::new(grade_above(share, warn, fail), words)
}
