//! The signals: a table of what is looked at, whom it accuses, and the function that reads it from
//! a run, with its thresholds and its words.
//!
//! A function never panics, whatever a stored run says. Where the run cannot tell, it says
//! `Unknown` and why.

use std::fmt;

use brunt_load::Work;
use brunt_load::protocol::Transport;
use brunt_record::{CpuTimes, FailureKind, Route, ServerEvidence, TcpCounters};
use serde::Serialize;

use crate::behaviour::failures::paused_ns;
use crate::units::short::{cpus, duration, number, percent, rate};
use crate::units::{count, counted, plural};
use crate::verdict::facts::{
    CONNECTIONS_BUSY, HEADROOM_LEAST, IDLE_HEALTHY, LAG_FAIL_NS, LINK_WARN, OTHERS_FAIL,
    OWN_SAMPLES_LEAST, OWN_SHARE_FAIL, QUEUED_RATIO, RARE_LEAST, REFUSING_RESETS, RUN_WAIT_FAIL,
    RUN_WAIT_WARN, RunFacts, SERVER_FAIL, SERVER_THROTTLED_FAIL, SERVER_WARN, STEAL_LEAST_NS,
    STEAL_WARN, Saturation, WINDOW_LEAST_NS, name, ratio, throttled_share, truncated,
};
use crate::verdict::{AccusedSide, Grade, Signal, SignalId as Id};
use crate::{CpuLedger, Quantile};

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
type SignalRow = (SignalId, AccusedSide, fn(&RunFacts<'_>) -> SignalReading);

/// All signals, in the order in which they are listed, each with when it is healthy.
pub(super) const SIGNALS: &[SignalRow] = &[
    // The least idle worker is idle 20 % of the time; at 5 % it can do no more.
    (Id::WorkerIdle, AccusedSide::Client, worker_idle),
    // Brunt's own share of response times and above p99 is under 2 %; of all 10 % at most.
    (Id::OwnShare, AccusedSide::Client, own_share),
    // p99 of schedule lag is under 50 µs, 1 ms at most; 99 % of what could be sent was.
    (Id::ScheduleLag, AccusedSide::Client, schedule_lag),
    // No worker waits for a CPU for 1 % of its time; 5 % at most.
    (Id::RunQueueWait, AccusedSide::Client, run_queue_wait),
    // Brunt's CPU quota does not hold it back; in 1 % of its periods at most.
    (Id::Throttling, AccusedSide::Client, throttling),
    // Brunt runs throughout the window; it stands still for 1 % of it at most.
    (Id::Pauses, AccusedSide::Client, pauses),
    // No full receive buffer is advertised and nothing thrown away unread; 0.01 % at most.
    (Id::UnreadData, AccusedSide::Client, unread_data),
    // Uploads wait for our send buffer for under 1 % of their time; 5 % at most.
    (Id::SendBuffer, AccusedSide::Client, send_buffer),
    // No lack of ports, descriptors or tracked connections.
    (Id::ClientLimits, AccusedSide::Client, client_limits),
    // 0.01 % of segments at most are sent again, 0.1 % out of order; fails at 0.5, 1 %.
    (Id::LostSegments, AccusedSide::Network, lost_segments),
    // The link is used to under 80 %; 90 % at most.
    (Id::LinkUse, AccusedSide::Network, link_use),
    // The server uses under 80 % of its CPUs; under 95 %, and not all threads, at most.
    (Id::ServerCpu, AccusedSide::Server, server_cpu),
    // The server's CPU quota, mostly used, holds it back in 10 % of its periods at most.
    (Id::ServerThrottling, AccusedSide::Server, server_throttling),
    // No connection finds the accept queue full, or takes a second to open.
    (Id::AcceptQueue, AccusedSide::Server, accept_queue),
    // Uploads wait for the server to read for under 1 % of their time; 10 % at most.
    (Id::ReceiveWindow, AccusedSide::Server, receive_window),
    // Others send under 1 % of what the server receives; 5 % at most.
    (Id::OtherClients, AccusedSide::Doubt, other_clients),
    // Other programs use under 5 % of the CPUs of client and server, or neither waits.
    (Id::OtherPrograms, AccusedSide::Doubt, other_programs),
    // Client and server do not compete for the same CPUs.
    (Id::SharedHost, AccusedSide::Doubt, shared_host),
    // Under 0.1 % of requests are turned away (429, 503, Retry-After, streams refused).
    (Id::Refusals, AccusedSide::Rate, refusals),
    // Fails where 99 % of a schedule was answered: the plan was the limit.
    (Id::PlannedRate, AccusedSide::Rate, planned_rate),
    // Arrivals do not pile up; fails where it is known behind whom.
    (Id::Backlog, AccusedSide::Server, backlog),
    // Fails where all connections are busy, the server has room and requests do not queue.
    (Id::ConnectionsBusy, AccusedSide::Concurrency, connections),
    // Fails where the rate grows with the connections.
    (Id::Elasticity, AccusedSide::Concurrency, elasticity),
    // The hypervisor takes under 0.5 % of the CPUs; 5 % at most.
    (Id::Steal, AccusedSide::Doubt, steal),
    // The rate holds still over the window, to 3 % and chance; to 10 % by halves at most.
    (Id::Drift, AccusedSide::Doubt, drift),
    // There are 100 replies, in half a second.
    (Id::Samples, AccusedSide::Doubt, samples),
];

/// What was read of one signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    grade: Grade,
    /// Whom it accuses in this run, where that is not whom it does in general.
    side: Option<AccusedSide>,
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

    /// Healthy below the first of two limits, a failure from the second on.
    fn above(value: f64, [warn, fail]: [f64; 2], detail: impl Into<String>) -> Self {
        let grade = match value {
            _ if value >= fail => Grade::Fail,
            _ if value >= warn => Grade::Warn,
            _ => Grade::Healthy,
        };
        Self::new(grade, detail)
    }

    /// A failure where something `fails`, else a warning.
    fn warn_or_fail(fails: bool, detail: impl Into<String>) -> Self {
        let grade = if fails { Grade::Fail } else { Grade::Warn };
        Self::new(grade, detail)
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

    fn accusing(self, side: AccusedSide) -> Self {
        Self {
            side: Some(side),
            ..self
        }
    }

    /// What two observations of one signal come to: as bad as the worse of them.
    fn and(self, other: Self) -> Self {
        let detail = format!("{}, {}", self.detail, other.detail);
        Self::new(self.grade.max(other.grade), detail)
    }

    fn is_healthy(&self) -> bool {
        self.grade == Grade::Healthy
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

/// What reading a signal comes to; `Err` where something ended it early.
pub(super) type SignalReading = Result<Reading, Reading>;

/// The value, or a signal that is not known for the reason in `words`.
fn known<T>(value: Option<T>, words: &str) -> Result<T, Reading> {
    value.ok_or_else(|| Reading::unknown(words))
}

/// A signal that is not known for the reason in `words`, unless it `applies`.
fn only_if(applies: bool, words: &str) -> Result<(), Reading> {
    known(applies.then_some(()), words)
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
            let readings = cases.iter().map(|facts| match read(facts) {
                Ok(reading) | Err(reading) => reading,
            });
            let reading = worst(readings.collect(), side);
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
fn worst(readings: Vec<Reading>, side: AccusedSide) -> Reading {
    let is_shared = matches!(side, AccusedSide::Server | AccusedSide::Network);
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
fn held_up(facts: &RunFacts<'_>, limited_ns: u64, what: &str, limits: [f64; 2]) -> SignalReading {
    let is_upload = facts.run.request_bytes() >= UPLOAD_BYTES;
    let sends = is_upload || facts.run.work() != Work::Streams;
    only_if(sends, "nothing is sent")?;
    only_if(is_upload, "requests are small")?;
    let share = ratio(limited_ns as f64, facts.kernel.busy_ns as f64);
    let share = known(share, "no connection was sampled while it sent")?;
    let words = format!("sending waited for {what} {} of the time", percent(share));
    Ok(Reading::above(share, limits, words))
}

/// Most signals that are named as decisive.
pub(super) const DECISIVE_MAX: usize = 3;

/// What a rule says when it matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) because: String,
    pub(super) decisive: Vec<SignalId>,
    pub(super) advice: Vec<String>,
}

/// The signals of a run, as rules ask for them.
pub(super) struct GradedSignals<'a> {
    /// The run as its first agent saw it: for what is the same for all of them.
    pub(super) facts: &'a RunFacts<'a>,
    /// The run as each agent saw it.
    pub(super) cases: &'a [RunFacts<'a>],
    pub(super) signals: Vec<Signal>,
}

impl<'a> GradedSignals<'a> {
    /// The signals of the run that the agents saw so.
    pub(super) fn read(cases: &'a [RunFacts<'a>]) -> Self {
        Self {
            facts: &cases[0],
            cases,
            signals: read_all(cases),
        }
    }

    /// Whether `is_so` holds for every agent.
    pub(super) fn all(&self, is_so: impl Fn(&RunFacts<'a>) -> bool) -> bool {
        self.cases.iter().all(is_so)
    }

    pub(super) fn signal(&self, id: SignalId) -> Option<&Signal> {
        self.signals.iter().find(|signal| signal.id == id)
    }

    pub(super) fn grade(&self, id: SignalId) -> Grade {
        let signal = self.signal(id);
        signal.map_or(Grade::Unknown, |signal| signal.grade)
    }

    pub(super) fn fails(&self, id: SignalId) -> bool {
        self.grade(id) == Grade::Fail
    }

    pub(super) fn warns(&self, id: SignalId) -> bool {
        self.grade(id) == Grade::Warn
    }

    pub(super) fn detail(&self, id: SignalId) -> &str {
        self.signal(id).map_or("", |signal| signal.detail.as_str())
    }

    /// Names of those of `side` that stand at `grade`, in the order of the table.
    pub(super) fn of(&self, side: AccusedSide, grade: Grade) -> Vec<SignalId> {
        let signals = self.signals.iter();
        let found = signals.filter(|signal| signal.side == side && signal.grade == grade);
        found.map(|signal| signal.id).collect()
    }

    pub(super) fn decision(
        &self,
        because: impl Into<String>,
        decisive: impl IntoIterator<Item = SignalId>,
        advice: impl IntoIterator<Item: Into<String>>,
    ) -> Decision {
        // The first of these that are known, without repetition.
        let mut strongest = Vec::with_capacity(DECISIVE_MAX);
        for id in decisive {
            let is_known = self.grade(id) != Grade::Unknown;
            if is_known && strongest.len() < DECISIVE_MAX && !strongest.contains(&id) {
                strongest.push(id);
            }
        }
        Decision {
            because: because.into(),
            decisive: strongest,
            advice: advice.into_iter().map(Into::into).collect(),
        }
    }

    /// As [`Self::decision`]; behind what decided stands who had the CPUs.
    pub(super) fn decision_with_cpus(
        &self,
        because: impl Into<String>,
        first: impl IntoIterator<Item = SignalId>,
        advice: impl IntoIterator<Item: Into<String>>,
    ) -> Decision {
        let cpus = [SignalId::ServerCpu, SignalId::WorkerIdle];
        self.decision(because, first.into_iter().chain(cpus), advice)
    }

    /// Whether brunt is known to have CPU time left: by its workers' time or, where that was not
    /// read, by replies that do not wait for them.
    pub(super) fn client_has_time(&self) -> bool {
        match self.grade(SignalId::WorkerIdle) {
            Grade::Healthy | Grade::Warn => true,
            Grade::Fail => false,
            Grade::Unknown => self.grade(SignalId::OwnShare) == Grade::Healthy,
        }
    }

    /// Kinds of warnings by the client. None count while its workers have time: nothing that is
    /// only worth a look then lowers the throughput.
    pub(super) fn client_warnings(&self) -> Vec<SignalId> {
        if self.all(|facts| facts.workers_have_time() || facts.is_one_at_a_time()) {
            return Vec::new();
        }
        let mut warns = self.of(AccusedSide::Client, Grade::Warn);
        // Replies that are brunt's own and requests that are late are signs of the same.
        if warns.contains(&SignalId::OwnShare) {
            warns.retain(|id| *id != SignalId::ScheduleLag);
        }
        warns
    }

    /// Whether what limits can only be the server or the load: neither the network, nor the CPUs of
    /// a machine that a server of which nothing is known may share.
    pub(super) fn rest_is_out(&self) -> bool {
        let has_room = |facts: &RunFacts<'_>| facts.network_has_room() && facts.host_has_room();
        self.all(has_room) && self.of(AccusedSide::Network, Grade::Warn).is_empty()
    }
}

/// Share of the time in which the least idle worker has nothing to do. Below this, it is at its
/// end.
const IDLE_FAIL: f64 = 0.05;
/// Brunt's own share of the response time, from which on the signal warns.
const OWN_SHARE_WARN: f64 = 0.02;
/// Schedule lag at p99 that never matters, nanoseconds.
const LAG_HEALTHY_NS: f64 = 50_000.0;
/// Schedule lag at p99 that does not matter, as a share of the median response time.
const LAG_HEALTHY_OF_P50: f64 = 0.02;
/// Schedule lag at p99 that spoils latencies, as a share of the response time at p99.
const LAG_FAIL_OF_P99: f64 = 0.10;
/// Arrivals not sent, as a share of those planned while connections were free, from which on the
/// signal warns, and fails.
const UNSENT: [f64; 2] = [0.001, 0.01];
/// Share of the periods in which brunt's quota held it back. The proposal was any: a single period
/// at the edge of a long window moves no figure [tuned].
const THROTTLED_FAIL: f64 = 0.01;
/// Share of the window in which no worker ran, though each was to.
const PAUSED_FAIL: f64 = 0.01;
/// Zero windows and pruned segments per segment received. The proposal was any: the counters are
/// of the whole network namespace, and one may be another's [tuned].
const NOT_READ_FAIL: f64 = 0.0001;
/// Share of the sending time held up by our send buffer, from which on the signal warns, and fails.
const SEND_BUFFER: [f64; 2] = [0.01, 0.05];
/// Fill of the table of tracked connections, from which on the signal warns, and fails.
const CONNTRACK: [f64; 2] = [0.80, 0.95];

/// What brunt does between a reply and the next request, where nothing else is in flight.
const ONE_AT_A_TIME: &str = "one request at a time waits for it";
/// What brunt does late while its workers have time.
const WAKING_UP: &str = "waking up, which does not limit throughput";

fn worker_idle(facts: &RunFacts<'_>) -> SignalReading {
    let threads = known(facts.threads, "the workers' threads were not read")?;
    let idle = threads.idle_least;
    let words = format!("brunt idle {}", percent(idle));
    let unread = counted(threads.unread as u64, "worker was", "workers were");
    let unread = format!("{words}; {unread} not read");
    only_if(idle < IDLE_FAIL || threads.unread == 0, &unread)?;
    let limits = [1.0 - IDLE_HEALTHY, 1.0 - IDLE_FAIL];
    Ok(Reading::above(1.0 - idle, limits, words))
}

fn own_share(facts: &RunFacts<'_>) -> SignalReading {
    let (run, split) = (facts.run, &facts.run.latencies.split);
    let is_pipelined = run.depth() > 1 && run.protocol().is_in_order;
    let pipelined = "pipelined replies have no stamps of their own";
    only_if(!is_pipelined, pipelined)?;
    let samples = counted(split.count(), "stamped reply", "stamped replies");
    let too_few = format!("{samples}, {OWN_SAMPLES_LEAST} needed");
    only_if(split.count() >= OWN_SAMPLES_LEAST, &too_few)?;
    let in_all = known(facts.own_share(), "response times are 0")?;
    let words = format!("brunt added {} of the response time", percent(in_all));
    let mut reading = Reading::above(in_all, [OWN_SHARE_WARN, OWN_SHARE_FAIL], words);
    // Of the parts of a window it is not known.
    let tail = split.known_tail(0.99).ok();
    let tail = tail.and_then(|tail| tail.own_share());
    let tail = tail.filter(|&tail| tail > OWN_SHARE_WARN && facts.clean.is_none());
    if let Some(tail) = tail {
        // A few replies that lie while brunt does not run make most of the tail and none of the
        // throughput [tuned].
        reading.grade = reading.grade.max(Grade::Warn);
        let words = format!(", and {} of the slowest 1 %", percent(tail));
        reading.detail.push_str(&words);
    }
    Ok(reading
        .warn_at_most(facts.is_one_at_a_time(), ONE_AT_A_TIME)
        .warn_at_most(facts.workers_have_time(), WAKING_UP))
}

/// The worse of how late brunt sent what was planned, and how much of it brunt did not send.
fn schedule_lag(facts: &RunFacts<'_>) -> SignalReading {
    only_if(!facts.is_closed(), "closed loop: nothing is planned")?;
    let late = lateness(facts);
    let Some(unsent) = unsent(facts) else {
        return late;
    };
    Ok(match late {
        Ok(late) => late.and(unsent),
        Err(_) => unsent,
    })
}

fn lateness(facts: &RunFacts<'_>) -> SignalReading {
    // Over time, the lag is not kept.
    let is_part = facts.clean.is_some_and(|clean| clean.own_share.is_some());
    only_if(!is_part, "part of the own share, without CPU steal")?;
    let latencies = &facts.run.latencies;
    let lag_ns = Quantile::of(&latencies.lag, 0.99).known_ns();
    let too_few = "too few arrivals for p99 of the schedule lag";
    let lag_ns = known(lag_ns, too_few)? as f64;
    // With a schedule of connections it is they that are late.
    let response = if facts.is_open() {
        &latencies.response
    } else {
        &latencies.first_reply
    };
    let [p50_ns, p99_ns] = [0.5, 0.99].map(|q| response.quantile_ns(q).unwrap_or(0) as f64);
    let words = format!("schedule lag p99 {}", duration(lag_ns));
    Ok(
        if lag_ns < LAG_HEALTHY_NS.max(LAG_HEALTHY_OF_P50 * p50_ns) {
            Reading::healthy(words)
        } else if lag_ns > LAG_FAIL_NS.min(LAG_FAIL_OF_P99 * p99_ns) {
            // Against a fast server a wake-up is a tenth of the response time, and one stop of
            // 20 ms is p99 of two seconds: with time to spare the plan is kept all the same
            // [tuned].
            Reading::fail(words).warn_at_most(facts.workers_have_time(), WAKING_UP)
        } else {
            Reading::warn(words)
        },
    )
}

/// What was planned while connections were free and not sent, where that is noticeable.
fn unsent(facts: &RunFacts<'_>) -> Option<Reading> {
    let arrivals = &facts.summary.arrivals;
    let dropped = arrivals.planned.saturating_sub(arrivals.sent);
    let schedule = facts.run.plan.load.model.schedule();
    // With stages, nobody knows how many were due when connections were free.
    if dropped == 0 || schedule.is_some_and(|schedule| !schedule.stages().is_empty()) {
        return None;
    }
    // All connections were in use for at most the share of them that was on average. What was
    // dropped beyond the arrivals of that time was dropped while some were free.
    let planned = arrivals.planned as f64;
    let while_free = (dropped as f64 - facts.connections_busy()? * planned).max(0.0) / planned;
    let share = percent(while_free);
    let words = format!("{share} of the plan not sent though connections were free");
    let reading = Reading::above(while_free, UNSENT, words);
    Some(reading).filter(|reading| !reading.is_healthy())
}

fn run_queue_wait(facts: &RunFacts<'_>) -> SignalReading {
    let wait = facts.threads.and_then(|threads| threads.run_wait);
    let unread = "the kernel does not say for how long workers wait for a CPU";
    let wait = known(wait, unread)?;
    let words = format!("workers waited for a CPU {} of their time", percent(wait));
    // A worker that sleeps often waits a little each time it wakes, on an idle CPU too; of a short
    // run time that is a large share. One that has time left was not the limit: who took its CPU
    // is found out by the ledger [tuned].
    let reading = Reading::above(wait, [RUN_WAIT_WARN, RUN_WAIT_FAIL], words);
    Ok(reading.warn_at_most(facts.workers_have_time(), WAKING_UP))
}

/// A quota that holds brunt back limits it where its workers are short of time. Where they are
/// not, it still stretches response times at random, which makes the figures doubtful.
fn throttling(facts: &RunFacts<'_>) -> SignalReading {
    let (evidence, field) = (facts.evidence(), "host.throttling");
    if evidence.missing.contains_key(field) || facts.interval_ns().is_none() {
        return Err(missing(facts, field, "nothing was read of the machine"));
    }
    let throttling = evidence.host.throttling;
    let throttling = throttling.filter(|found| found.throttled_ns > 0);
    let none = || Reading::healthy("no CPU quota held brunt back");
    let share = throttled_share(throttling.ok_or_else(none)?);
    let shown = percent(share);
    let words = format!("brunt's CPU quota held it back in {shown} of the periods");
    if share < THROTTLED_FAIL {
        return Ok(Reading::warn(words));
    }
    let is_short_of_time = facts.threads.is_none_or(|threads| {
        threads.idle_least - share < IDLE_HEALTHY
            || threads.run_wait.is_some_and(|wait| wait >= RUN_WAIT_FAIL)
    });
    let side = if is_short_of_time {
        AccusedSide::Client
    } else {
        AccusedSide::Doubt
    };
    Ok(Reading::fail(words).accusing(side))
}

/// Over TCP the kernel counts for a network namespace; of datagrams, each socket says what it had
/// no room for.
fn unread_data(facts: &RunFacts<'_>) -> SignalReading {
    let over_datagrams = facts.run.protocol().transport == Transport::Datagrams;
    let (events, came, words) = if over_datagrams {
        let quic = &facts.summary.window.quic;
        let dropped = quic.datagrams_dropped;
        let came = quic.datagrams_received.saturating_add(dropped);
        only_if(came > 0, "no datagram came")?;
        let of = counted(came, "datagram", "datagrams");
        let shown = count(dropped);
        let words = format!("{shown} of {of} found brunt's receive buffers full");
        (dropped, came, words)
    } else {
        let unread = || missing(facts, "network.tcp", "TCP counters were not read");
        let tcp = facts.tcp().ok_or_else(unread)?;
        let events = [tcp.zero_windows_advertised, tcp.receive_prunes];
        let [full, thrown] = events.map(count);
        let words =
            format!("{full} full receive buffers advertised, {thrown} segments thrown away unread");
        (events[0].max(events[1]), tcp.segments_received, words)
    };
    let share = ratio(events as f64, came as f64).unwrap_or(1.0);
    let grade = match events {
        0 => Grade::Healthy,
        _ if events < RARE_LEAST || share < NOT_READ_FAIL => Grade::Warn,
        _ => Grade::Fail,
    };
    let may_be_servers = facts.is_local() && !over_datagrams;
    Ok(Reading::new(grade, words)
        .warn_at_most(may_be_servers, "the server's sockets count as well"))
}

fn send_buffer(facts: &RunFacts<'_>) -> SignalReading {
    let limited_ns = facts.kernel.send_buffer_limited_ns;
    held_up(facts, limited_ns, "our buffer", SEND_BUFFER)
}

fn client_limits(facts: &RunFacts<'_>) -> SignalReading {
    let (window, lifetime) = (&facts.summary.window, &facts.summary.lifetime);
    let mut found = Vec::new();
    for (kind, what) in [
        (FailureKind::ConnectNoPort, "no free local port"),
        (FailureKind::ConnectNoDescriptor, "no free descriptor"),
    ] {
        let [now, ever] = [window, lifetime].map(|tally| tally.failures.get(kind));
        let when = if now > 0 {
            ""
        } else {
            ", outside of the window"
        };
        let words = format!("{what} {}{when}", plural(ever, "time"));
        found.extend((ever > 0).then(|| Reading::warn_or_fail(now > 0, words)));
    }
    if let Some(table) = facts.network().and_then(|network| network.conntrack) {
        let fill = ratio(table.entries as f64, table.entries_max as f64).unwrap_or(0.0);
        let (shown, dropped) = (percent(fill), plural(table.dropped_packets, "packet"));
        let words = format!("table of tracked connections {shown} full, {dropped} dropped");
        let is_full = table.dropped_packets > 0;
        let reading = Reading::above(if is_full { 1.0 } else { fill }, CONNTRACK, words);
        found.extend(Some(reading).filter(|reading| !reading.is_healthy()));
    }
    found.into_iter().reduce(Reading::and).ok_or_else(|| {
        if lifetime.connections_opened > 0 {
            Reading::healthy("ports and descriptors sufficed")
        } else {
            Reading::unknown("no connection was opened")
        }
    })
}

fn pauses(facts: &RunFacts<'_>) -> SignalReading {
    let workers = facts.agent.workers.iter();
    let paused_ns = paused_ns(workers, 0, facts.window_end_ns());
    let share = ratio(paused_ns, facts.run.window_ns as f64);
    let share = known(share, "there is no window")?;
    if share <= 0.0 {
        return Ok(Reading::healthy("brunt ran throughout"));
    }
    let paused = duration(paused_ns);
    let words = format!("brunt did not run for {paused} of the window");
    Ok(Reading::above(share, [0.0, PAUSED_FAIL], words))
}

/// Share of the segments that were sent again, from which on the signal warns, and fails.
const RETRANSMITS: [f64; 2] = [0.0001, 0.005];
/// Share of the segments that were received out of order, from which on the signal warns, and
/// fails.
const OUT_OF_ORDER: [f64; 2] = [0.001, 0.01];
/// Bytes per reply from which on the kernel measures the round trip of data received: several
/// segments.
const BULK_REPLY_BYTES: f64 = 4.0 * 1448.0;
/// Largest round trip of data received over the smallest round trip, above which data queues.
const QUEUEING_RATIO: f64 = 8.0;
/// Largest round trip of data received, nanoseconds, above which data queues. Less is the
/// receiver's own batching.
const QUEUEING_LEAST_NS: f64 = 2e6;
/// Use of the link, from which on the signal fails. The proposal was 95 %: TCP's own ups and downs
/// keep a full link at 92 to 97 % [tuned].
const LINK_FAIL: f64 = 0.90;

/// Payload of a segment on Ethernet.
const SEGMENT_BYTES: f64 = 1448.0;
/// Share of a namespace's segments that must be brunt's for its counters to tell of brunt.
const OWN_SEGMENTS_LEAST: f64 = 0.2;

/// The worst of these counts of rare events, each with all among which they were counted: healthy
/// where they are few. Absent where nothing was counted.
fn rare(counts: &[[u64; 2]], limits: [f64; 2], what: &str) -> Option<Reading> {
    let known = counts.iter().filter(|[_, all]| *all > 0);
    let readings = known.map(|&[events, all]| {
        let share = ratio(events as f64, all as f64).unwrap_or(0.0);
        let counted = if events < RARE_LEAST { 0.0 } else { share };
        let words = format!("{} of the {what} ({})", percent(share), count(events));
        (counted, share, Reading::above(counted, limits, words))
    });
    let worst = readings.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    worst.map(|(.., reading)| reading)
}

/// The counters of the namespace, where brunt's own segments are many of them: with little load
/// they tell of others.
fn ours<'a>(facts: &RunFacts<'a>) -> Option<&'a TcpCounters> {
    let window = &facts.summary.window;
    let of_bytes = window.bytes_sent.saturating_add(window.bytes_received / 2) as f64;
    // One at a time, each request has a segment of its own; many in flight share segments.
    let of_requests = match facts.run.depth() {
        0 | 1 => window.requests_sent as f64,
        2.. => 0.0,
    };
    let own = of_requests + of_bytes / SEGMENT_BYTES;
    let is_ours = |tcp: &&TcpCounters| own >= OWN_SEGMENTS_LEAST * tcp.segments_sent as f64;
    facts.tcp().filter(is_ours)
}

/// How segments sent again (without connection requests) and those out of order stand, where they
/// were counted: on the sampled connections, or of all of the namespace.
fn losses(facts: &RunFacts<'_>) -> [Option<Reading>; 2] {
    let kernel = &facts.kernel;
    let mut again = vec![[kernel.segments_retransmitted, kernel.segments_sent]];
    let mut overtaken = vec![[kernel.segments_out_of_order, kernel.segments_received]];
    if let Some(tcp) = ours(facts) {
        let resent = tcp.segments_retransmitted;
        let resent = resent.saturating_sub(tcp.syn_retransmits);
        again.push([resent, tcp.segments_sent]);
        overtaken.push([tcp.segments_out_of_order, tcp.segments_received]);
    }
    [
        rare(&again, RETRANSMITS, "segments sent again"),
        rare(&overtaken, OUT_OF_ORDER, "segments out of order"),
    ]
}

/// Segments sent again or overtaken. Neither fails for few; a round trip of data that grows with
/// them does.
fn lost_segments(facts: &RunFacts<'_>) -> SignalReading {
    if facts.run.protocol().transport == Transport::Datagrams {
        return lost_packets(facts);
    }
    let [again, overtaken] = losses(facts);
    let uncounted = || missing(facts, "network.tcp", "no segments were counted");
    let again = again.ok_or_else(uncounted)?;
    // A listening socket with a full accept queue also drops what comes first on a connection that
    // the client takes for open.
    let is_the_servers =
        facts.is_local() && facts.tcp().is_some_and(|tcp| tcp.listen_overflows > 0);
    let mut reading = again.warn_at_most(is_the_servers, "the server's accept queue was full");
    if let Some(overtaken) = overtaken.filter(|overtaken| !overtaken.is_healthy()) {
        reading = reading.and(overtaken);
    }
    if let Some(queue) = queueing(facts) {
        // A server that takes its time between two parts of a reply looks the same [tuned].
        let is_sure = !reading.is_healthy();
        reading = reading.and(Reading::warn_or_fail(is_sure, queue));
    }
    Ok(reading)
}

/// Of datagrams: packets of brunt that it held for lost.
fn lost_packets(facts: &RunFacts<'_>) -> SignalReading {
    let quic = &facts.summary.window.quic;
    let lost = [quic.packets_lost, quic.packets_sent];
    let lost = rare(&[lost], RETRANSMITS, "packets lost");
    let lost = known(lost, "no packet was sent")?;
    // Nothing is lost on the way from a machine to itself.
    Ok(lost.warn_at_most(facts.is_local(), "the server's receive buffer was full"))
}

/// How the round trip of data received grew as it does with a queue on the way, in words. Absent
/// where it did not.
fn queueing(facts: &RunFacts<'_>) -> Option<String> {
    let window = &facts.summary.window;
    let per_reply = ratio(window.bytes_received as f64, facts.replies() as f64)?;
    if facts.is_local() || per_reply < BULK_REPLY_BYTES {
        return None;
    }
    let largest_ns = facts.kernel.receive_rtt_ns_max? as f64;
    let times = ratio(largest_ns, facts.kernel.min_rtt_ns? as f64)?;
    (times > QUEUEING_RATIO && largest_ns > QUEUEING_LEAST_NS).then(|| {
        let (largest, times) = (duration(largest_ns), number(times));
        format!("round trip of data up to {largest}, {times}× the smallest")
    })
}

fn link_use(facts: &RunFacts<'_>) -> SignalReading {
    let unread = || missing(facts, "network", "the way to the server was not read");
    let route = &facts.network().ok_or_else(unread)?.route;
    let is_local = matches!(route, Route::UnixSocket | Route::Loopback);
    only_if(!is_local, "client and server share a machine")?;
    if matches!(route, Route::Unknown) {
        return Err(missing(facts, "network.route", "the route is not known"));
    }
    let unknown = "the link's speed is not known: `--link-speed`";
    let used = known(facts.link_use(), unknown)?;
    let words = format!("link used to {}", percent(used));
    Ok(Reading::above(used, [LINK_WARN, LINK_FAIL], words))
}

/// Share of the time in which some task had no CPU, from which on there is pressure.
const PRESSURE_WARN: f64 = 0.05;
/// Share of the sending time held up by what the server has not read, from which on the signal
/// warns, and fails.
const RECEIVE_WINDOW: [f64; 2] = [0.01, 0.10];
/// A connection that took this long had its first segment sent again, after 1 s, nanoseconds.
const SLOW_CONNECT_NS: u64 = 900_000_000;
/// Connections opened in the window, as a share of all, from which on their times are those of the
/// window.
const OF_WINDOW_LEAST: f64 = 0.1;
/// Share of the connections that may take [`SLOW_CONNECT_NS`] or longer.
const SLOW_CONNECT_FAIL: f64 = 0.001;
/// Share of what a server receives that others send it, from which on the signal warns. A browser,
/// or somebody who looks whether the server is alive, stays below.
const OTHERS_WARN: f64 = 0.01;
/// Busy share of the CPUs that client and server have in common, above which they disturb each
/// other.
const SHARED_BUSY_FAIL: f64 = 0.90;
/// Busy share of the CPUs that client and server have in common, above which they disturb each
/// other if there is also pressure. The proposal had no such bound: on a machine with CPUs to spare
/// somebody always waits a little. Beside a server that follows a database and brunt on two CPUs,
/// each a third idle, more connections and fewer gave the same [tuned].
const SHARED_BUSY_PRESSED: f64 = 0.70;
/// CPUs that others used, per common CPU, from which on client and server are not a pair but two
/// of several [tuned].
const SHARED_OTHERS_MOST: f64 = 0.20;
/// Share of the CPUs that workers are bound to which the server used, from which on it is one of
/// two there. Less is how exact the accounts are.
const TAKEN_LEAST: f64 = 0.05;
const UNREAD_CPUS: &str = "the machine's CPUs were not read";
/// CPUs that both must have used to be competitors.
const SHARED_USE_LEAST: f64 = 0.02;

/// The server, where it was watched.
fn watched<'a>(facts: &RunFacts<'a>) -> Result<&'a ServerEvidence, Reading> {
    let unwatched = || missing(facts, "server", "the server was not watched");
    facts.server().ok_or_else(unwatched)
}

fn server_cpu(facts: &RunFacts<'_>) -> SignalReading {
    let server = watched(facts)?;
    let name = name(&server.name);
    let idle = cpus(server.idle_cpus_used.unwrap_or(0.0));
    let polls = format!("{name} uses {idle} with nothing to do");
    only_if(!facts.server_polls(), &polls)?;
    let used = server.cpus_used().unwrap_or(0.0);
    let words = match server.cpus {
        Some(may_use) => format!("{name} used {used:.2} of its {}", cpus(may_use)),
        None => format!("{name} used {}", cpus(used)),
    };
    if facts.server_use().is_some_and(|share| share >= SERVER_FAIL) {
        // Where requests wait for each other, there is work for it.
        let has_queue = facts.queueing().is_some_and(|times| times >= QUEUED_RATIO);
        let idle = facts.idle_beside_one();
        let share = percent(idle.unwrap_or(0.0));
        let without = format!("without a request in {share} of the time");
        let may_poll = server.idle_cpus_used.is_none();
        return Ok(Reading::fail(words)
            .warn_at_most(may_poll && !has_queue, "with work or by polling")
            .warn_at_most(idle.is_some(), &without));
    }
    let saturated = server.threads.map_or(0, |threads| threads.saturated);
    let threads = plural(saturated, "thread");
    Ok(match facts.server_saturation() {
        Some(Saturation::Busy) => Reading::fail(format!("{words}, {threads} always busy")),
        Some(Saturation::Starved) => Reading::warn(format!("{words}, {threads} waiting for a CPU")),
        None => {
            let unknown = format!("{words}, of how many is not known");
            let share = known(facts.server_use(), &unknown)?;
            Reading::above(share, [SERVER_WARN, SERVER_FAIL], words)
        }
    })
}

/// A server whose quota is used up is at its end, however little of the machine that is.
fn server_throttling(facts: &RunFacts<'_>) -> SignalReading {
    let throttling = watched(facts)?.throttling;
    let throttling = throttling.filter(|found| found.throttled_ns > 0);
    let none = || Reading::healthy("no CPU quota held the server back");
    let share = throttled_share(throttling.ok_or_else(none)?);
    let shown = percent(share);
    let words = format!("its CPU quota held the server back in {shown} of the periods");
    // Now and then a burst is held back that an average has room for.
    let is_used = facts.server_use().is_none_or(|used| used >= SERVER_WARN);
    let is_often = share >= SERVER_THROTTLED_FAIL && is_used;
    Ok(Reading::warn_or_fail(is_often, words))
}

fn accept_queue(facts: &RunFacts<'_>) -> SignalReading {
    let window = &facts.summary.window;
    let timed_out = window.failures.get(FailureKind::ConnectTimedOut);
    let tried = window.connections_opened.saturating_add(timed_out);
    let connect = &facts.run.latencies.connect;
    let slow = connect.buckets().count_between(SLOW_CONNECT_NS, u64::MAX);
    let slow_share = ratio(slow as f64, connect.count() as f64).unwrap_or(0.0);
    // Connections are timed in all phases: those of set-up alone say nothing of the window.
    let is_of_window = tried as f64 >= OF_WINDOW_LEAST * connect.count() as f64;
    let is_slow = is_of_window && slow >= RARE_LEAST && slow_share >= SLOW_CONNECT_FAIL;
    let had_trouble = slow > 0 || timed_out > 0;
    let counters = facts.tcp().copied().unwrap_or_default();
    // What listens is in this namespace on loopback alone.
    let overflows = if facts.is_local() {
        counters.listen_overflows
    } else {
        0
    };
    // The counter is of the whole namespace: without trouble of brunt's own, it is others'.
    let retried = counters.syn_retransmits;
    let is_often = |events: u64| {
        let share = ratio(events as f64, tried as f64);
        events >= RARE_LEAST && share.is_some_and(|share| share >= SLOW_CONNECT_FAIL)
    };
    let found = [
        (overflows, is_often(overflows), "met a full accept queue"),
        (retried, is_often(retried) && had_trouble, "asked for again"),
        (slow, is_slow, "took a second and more"),
        (timed_out, is_often(timed_out), "not answered in time"),
    ];
    let found = found.into_iter().filter(|&(events, ..)| events > 0);
    let found = found.map(|(events, is_often, what)| {
        let words = format!("{} {what}", plural(events, "connection"));
        Reading::warn_or_fail(is_often, words)
    });
    let Some(reading) = found.reduce(Reading::and) else {
        let is_read = connect.count() > 0 || facts.tcp().is_some();
        only_if(is_read, "no connection was opened")?;
        return Ok(Reading::healthy("connections were accepted at once"));
    };
    let mut losses = losses(facts).into_iter().flatten();
    let is_of_network = overflows == 0 && losses.any(|reading| !reading.is_healthy());
    Ok(reading
        .warn_at_most(tried == 0, "but none of the window's")
        .warn_at_most(is_of_network, "as other segments were lost"))
}

fn receive_window(facts: &RunFacts<'_>) -> SignalReading {
    let limited_ns = facts.kernel.receive_window_limited_ns;
    held_up(facts, limited_ns, "the server to read", RECEIVE_WINDOW)
}

/// A server at its end for several clients is not measured by one of them.
fn other_clients(facts: &RunFacts<'_>) -> SignalReading {
    let unknown = |reason| missing(facts, "server_connections", reason);
    let share = facts.others.map_err(unknown)?;
    if share <= 0.0 {
        return Ok(Reading::healthy("nobody else loads the server"));
    }
    let shown = percent(share);
    let mut words = format!("other clients send {shown} of what the server receives");
    let used = facts.server().and_then(|server| server.cpus_used());
    if let Some(used) = used.filter(|_| share >= OTHERS_WARN) {
        let theirs = number(share * used);
        words = format!("{words}, and use some {theirs} of its {}", cpus(used));
    }
    Ok(Reading::above(share, [OTHERS_WARN, OTHERS_FAIL], words))
}

/// Client and server on the same CPUs, which are busy, and neither gets what it wants: a pair.
/// Others who use those CPUs as well make it a crowd, of which the pair's own waits tell.
fn shared_host(facts: &RunFacts<'_>) -> SignalReading {
    let (client_list, server_list) = (&facts.client_cpus, &facts.server_cpus);
    let server = watched(facts)?;
    if server_list.is_empty() {
        only_if(!facts.is_local(), "the server's CPUs are not known")?;
        return Ok(Reading::healthy("client and server do not share a machine"));
    }
    let sum = RunFacts::sum_ns;
    let common = facts.cpus(|cpu| client_list.contains(&cpu) && server_list.contains(&cpu));
    if client_list.is_empty() || facts.evidence().host.cpus.is_empty() {
        return Err(missing(facts, "host.cpus", UNREAD_CPUS));
    }
    if common.is_empty() {
        return Ok(Reading::healthy("client and server have CPUs of their own"));
    }
    let taken = facts.taken_from_workers();
    let share = taken.map(|taken| taken / client_list.len().max(1) as f64);
    if let Some(share) = share.filter(|share| *share < TAKEN_LEAST) {
        let share = percent(share);
        let words = format!("workers had their CPUs, of which the server used {share}");
        return Ok(Reading::healthy(words));
    }
    let threads = facts.threads.filter(|threads| threads.unread == 0);
    let client_used = threads.map(|threads| threads.cpus_used);
    let used = client_used.zip(server.cpus_used()).zip(facts.interval_ns());
    let unknown = "what client and server used is not known";
    let ((client_used, server_used), interval_ns) = known(used, unknown)?;
    let all_ns = sum(&common, CpuTimes::total_ns);
    // Polling leaves a CPU to whoever needs it.
    let threads = facts
        .agent
        .workers
        .iter()
        .filter_map(|worker| worker.thread);
    let spun_ns: f64 = threads.map(|thread| thread.spun_ns as f64).sum();
    let worked_ns = (sum(&common, |times| times.busy_ns) - spun_ns).max(0.0);
    let busy = known(ratio(worked_ns, all_ns), UNREAD_CPUS)?;
    let count = plural(common.len(), "CPU");
    // What it used elsewhere is its own.
    let here = taken.map_or(server_used, |taken| taken.min(server_used));
    let words = format!("both used the same {count}: brunt {client_used:.2}, the server {here:.2}");
    // Unknown counts as long: it is not known that nobody waits.
    let waits = [
        facts.threads.and_then(|threads| threads.run_wait),
        facts.server_run_wait(),
    ];
    let is_short = |wait: &Option<f64>| wait.is_some_and(|wait| wait < RUN_WAIT_WARN);
    let nobody_waits = waits.iter().all(is_short);
    let somebody_waits = waits.iter().flatten().any(|&wait| wait >= RUN_WAIT_WARN);
    let pressure_ns = facts.evidence().host.pressure_ns.unwrap_or(0) as f64;
    let is_pressed = pressure_ns / interval_ns >= PRESSURE_WARN && somebody_waits;
    let both_work = client_used.min(server_used) >= SHARED_USE_LEAST;
    let is_short =
        (busy > SHARED_BUSY_FAIL && !nobody_waits) || (busy > SHARED_BUSY_PRESSED && is_pressed);
    // Where they take turns, who wakes up waits for the other to go to sleep, and for no more.
    if !both_work || !is_short || facts.takes_turns() {
        return Ok(Reading::healthy(words));
    }
    let any = facts.cpus(|cpu| client_list.contains(&cpu) || server_list.contains(&cpu));
    // Soft interrupts belong to whoever was interrupted, and to the pair's own traffic.
    let of_tasks_ns = sum(&any, |times| times.busy_ns.saturating_sub(times.softirq_ns));
    let others = of_tasks_ns / interval_ns - client_used - server_used;
    Ok(if others > SHARED_OTHERS_MOST * common.len() as f64 {
        Reading::warn(format!("{words}, others {others:.2}"))
    } else {
        Reading::fail(words)
    })
}

/// Share of the CPUs' time that the hypervisor took, from which on the signal fails.
const STEAL_FAIL: f64 = 0.05;
/// Replies that turned the request away.
const REFUSED_FAIL: f64 = 0.001;
/// Share of the planned arrivals that must be answered for the rate to be met.
const PLAN_MET: f64 = 0.99;
/// A shorter window does not show whether a backlog grows, nanoseconds.
const PLAN_WINDOW_LEAST_NS: u64 = 800_000_000;
/// Share of its CPUs that a server must have left for a second request to give more than one at a
/// time: it works on one only, so that what it has left is not used [tuned].
const HEADROOM_OF_ONE: f64 = 0.05;
/// Second half of the window against the first, as a ratio less 1, from which on no single figure
/// describes the run. What drifts less, but more than chance and 3 %, is said beside the headline:
/// on shared machines one run of 2 s in seven does, of a server that holds still [tuned].
const DRIFT_FAIL_HALVES: f64 = 0.10;
/// Trend over the whole window, as a share of the median, from which on no single figure describes
/// the run.
const DRIFT_FAIL_TREND: f64 = 0.20;
/// Replies that a verdict needs.
const REPLIES_LEAST: u64 = 100;
/// Mean service time over the fastest hundredth, up to which requests do not wait for each other.
/// Between this and [`QUEUED_RATIO`], only an experiment tells: a thread or a lock that is just at
/// its end makes requests wait for less than their own time.
const UNQUEUED_RATIO: f64 = 1.25;

fn refusals(facts: &RunFacts<'_>) -> SignalReading {
    let window = &facts.summary.window;
    let share = known(facts.refused_share(), "no reply in the window")?;
    if share == 0.0 {
        return Ok(Reading::healthy("no request refused"));
    }
    let ways = [
        (window.replies.count(429_u16), "429"),
        (window.replies.count(503_u16), "503"),
        (window.retry_afters, "Retry-After"),
    ];
    let resets = REFUSING_RESETS.map(|(kind, name)| (window.failures.get(kind), name));
    let ways = ways.into_iter().chain(resets);
    let names = ways.filter_map(|(count, name)| (count > 0).then_some(name));
    let names: Vec<&str> = names.collect();
    let (shown, names) = (percent(share), names.join(", "));
    let words = format!("{shown} of the requests refused ({names})");
    Ok(Reading::above(share, [0.0, REFUSED_FAIL], words))
}

/// Whether what was planned was also done, so that the plan is what limited.
fn planned_rate(facts: &RunFacts<'_>) -> SignalReading {
    let (summary, arrivals) = (&facts.summary, &facts.summary.arrivals);
    if let Some((share, bits_per_s)) = facts.paced_share() {
        let (shown, asked) = (percent(share.min(1.0)), rate(bits_per_s));
        let words = format!("{shown} of {asked} bit/s acknowledged");
        return Ok(Reading::healthy_if(share < PLAN_MET, words));
    }
    only_if(!facts.is_closed(), "closed loop: no rate was asked for")?;
    let done = if facts.is_open() {
        summary.answered_of_plan()
    } else {
        // Connections that are still at work at the end were not kept up with, but for chance.
        let requests = facts.run.plan.requests_per_connection().unwrap_or(1).max(1);
        let chance = 2.0 * (arrivals.planned as f64).sqrt();
        let done = facts.replies() / requests;
        arrivals.sent.min(done.saturating_add(chance as u64))
    };
    let share = ratio(done as f64, arrivals.planned as f64);
    let found = share.zip(summary.planned_per_s.known());
    let (share, planned_per_s) = known(found, "nothing was planned in the window")?;
    let is_long = facts.run.window_ns >= PLAN_WINDOW_LEAST_NS;
    only_if(is_long, "the window is too short to show a backlog")?;
    let (unit, done) = if facts.is_open() {
        (facts.run.unit().per_s, "answered")
    } else {
        ("connections/s", "served")
    };
    let [share_words, planned] = [percent(share.min(1.0)), rate(planned_per_s)];
    let words = format!("{share_words} of the planned {planned} {unit}");
    Ok(if share >= PLAN_MET && facts.overload.is_none() {
        Reading::fail(format!("{words} {done}"))
    } else {
        Reading::healthy(words)
    })
}

/// The backlog: more is planned than done. Which side has room left tells who causes it.
fn backlog(facts: &RunFacts<'_>) -> SignalReading {
    only_if(!facts.is_closed(), "closed loop: nothing is planned")?;
    let overload = facts.overload;
    let overload = overload.ok_or_else(|| Reading::healthy("no backlog"))?;
    let capacity = rate(overload.capacity_per_s);
    let words = format!("overloaded: about {capacity} per second were answered");
    // With connections to spare, the server has had more to do than it did.
    let busy = facts.connections_busy();
    let all_busy = busy.is_none_or(|busy| busy >= CONNECTIONS_BUSY);
    let limit = if all_busy { SERVER_FAIL } else { SERVER_WARN };
    let is_at_its_end = facts.server_saturation() == Some(Saturation::Busy)
        || facts.server_use().is_some_and(|used| used >= limit);
    if is_at_its_end {
        return Ok(Reading::fail(words).accusing(AccusedSide::Server));
    }
    // Service times that differ may be the server's nature as well as a queue: they accuse nobody.
    let headroom = facts.server_headroom();
    let has_room = headroom.is_some_and(|headroom| headroom >= HEADROOM_LEAST);
    let is_unqueued = facts.queueing().is_some_and(|times| times < QUEUED_RATIO);
    if is_unqueued && has_room {
        let words = format!("{words}, all connections busy");
        return Ok(Reading::fail(words).accusing(AccusedSide::Concurrency));
    }
    Ok(Reading::warn(words))
}

fn connections(facts: &RunFacts<'_>) -> SignalReading {
    let places = facts.places_words();
    let unknown = "how busy the connections were is not known";
    let busy = known(facts.connections_busy(), unknown)?;
    if busy < CONNECTIONS_BUSY || (!facts.is_closed() && facts.overload.is_none()) {
        let words = format!("{places}, {} busy", percent(busy));
        return Ok(Reading::healthy(words));
    }
    let words = format!("{places}, all busy");
    let unknown = format!("{words}; whether the server has room is not known");
    let headroom = known(facts.server_headroom(), &unknown)?;
    // A single request has nothing to wait for but itself: more of them use all that is left.
    let (least, queueing) = if facts.places() == 1 {
        (HEADROOM_OF_ONE, Some(1.0))
    } else {
        (HEADROOM_LEAST, facts.queueing())
    };
    if headroom < least {
        return Ok(Reading::healthy(format!("{words}; the server has no room")));
    }
    let too_few = format!("{words}; too few samples to see a queue");
    let times = known(queueing, &too_few)?;
    Ok(if times > UNQUEUED_RATIO {
        Reading::warn(format!("{words}; service time {}× its best", number(times)))
    } else {
        Reading::fail(format!("{places}, always busy"))
    })
}

fn elasticity(facts: &RunFacts<'_>) -> SignalReading {
    let elasticity = known(facts.elasticity, "the warm-up does not tell")?;
    let half = percent(0.5_f64.powf(elasticity.effect.value));
    let words = format!("in the warm-up, half of the connections had {half} of the rate");
    Ok(if elasticity.gives_more() {
        Reading::fail(words)
    } else if elasticity.gives_nothing() {
        Reading::healthy(words)
    } else {
        Reading::warn(words)
    })
}

fn steal(facts: &RunFacts<'_>) -> SignalReading {
    let unread = || missing(facts, "host.cpus", UNREAD_CPUS);
    let (share, steal_ns) = facts.steal().ok_or_else(unread)?;
    let words = format!("CPU steal {}", percent(share));
    if steal_ns < STEAL_LEAST_NS {
        return Ok(Reading::healthy(words));
    }
    if let Some(shown) = facts.clean_words() {
        // The verdict is found without what was stolen.
        let words = format!("{words}; judged on {shown}");
        return Ok(Reading::above(share, [STEAL_WARN, f64::INFINITY], words));
    }
    let mut reading = Reading::above(share, [STEAL_WARN, STEAL_FAIL], words);
    let left_ns = facts.left.and_then(|left| left.clean_ns);
    if let Some(left_ns) = left_ns.filter(|_| !reading.is_healthy()) {
        let left = duration(left_ns as f64);
        reading.detail.push_str(&format!("; only {left} without"));
    }
    Ok(reading)
}

fn drift(facts: &RunFacts<'_>) -> SignalReading {
    let found = facts.steadiness();
    let Some(change) = found.halves_differ else {
        only_if(found.drifts, "too short, or planned to change")?;
        return Ok(Reading::fail("the rate drifted from nothing"));
    };
    let rest = percent(1.0 + change);
    let words = format!("the second half had {rest} of the rate of the first");
    if !found.drifts {
        return Ok(Reading::healthy(words));
    }
    let trend = found.trend.unwrap_or(0.0);
    let is_much = change.abs() > DRIFT_FAIL_HALVES || trend.abs() > DRIFT_FAIL_TREND;
    let words = format!("the rate drifted: {words}");
    Ok(Reading::warn_or_fail(is_much, words))
}

fn samples(facts: &RunFacts<'_>) -> SignalReading {
    let (replies, window_ns) = match facts.clean {
        Some(clean) => (clean.replies, clean.clean_ns),
        None => (facts.replies(), facts.run.window_ns),
    };
    let (is_long, length) = (window_ns >= WINDOW_LEAST_NS, duration(window_ns as f64));
    let words = if facts.run.work() == Work::Streams {
        format!("streams over {length}")
    } else {
        format!("{} in {length}", counted(replies, "reply", "replies"))
    };
    let is_enough = facts.run.work() == Work::Streams || replies >= REPLIES_LEAST;
    Ok(Reading::healthy_if(is_long && is_enough, words))
}

/// Share of the CPUs of client and server that other programs used, from which on they disturb
/// whoever waits for one.
const TAKEN_BY_OTHERS_FAIL: f64 = 0.05;

/// What other programs used of the CPUs that brunt or the server may use. A server on this machine
/// that was not watched is one of those programs: then nobody knows who took what from whom.
fn other_programs(facts: &RunFacts<'_>) -> SignalReading {
    let is_seen = !facts.is_local() || facts.server().is_some() || facts.run.is_simulated();
    let unseen = "the server was not watched, and would count as another program";
    only_if(is_seen, unseen)?;
    let wanted = facts.agent.cpus_of_both();
    let unread = "other programs were not read";
    let ledger = CpuLedger::over(facts.agent, |cpu| wanted.contains(&cpu));
    let ledger = known(ledger, unread)?;
    let others_ns = known(ledger.others_ns, unread)?;
    let used = ledger.in_cpus(others_ns);
    let share = ratio(used, ledger.cpus.into()).unwrap_or(0.0);
    let all = cpus(ledger.cpus.into());
    let mut words = format!("other programs used {used:.2} of {all}");
    let largest = ledger.others.first();
    if let Some(largest) = largest.filter(|_| share >= TAKEN_BY_OTHERS_FAIL) {
        let of_it = ledger.in_cpus(largest.cpu_ns);
        words = format!("{words} ({} {of_it:.2})", truncated(&largest.name));
    }
    let waited = |share: Option<f64>| share.filter(|&share| share >= RUN_WAIT_FAIL);
    let client = waited(facts.threads.and_then(|threads| threads.waited));
    let of_others = |_: &f64| facts.others_took_from_server(used);
    let server = waited(facts.server_run_wait()).filter(of_others);
    // A server that has all the CPU that it may have is measured, whatever brunt waits for.
    let is_full = facts.server_use().is_some_and(|used| used >= SERVER_FAIL);
    let who = match (client, server) {
        _ if share < TAKEN_BY_OTHERS_FAIL => return Ok(Reading::healthy(words)),
        (_, Some(share)) => format!("the server waited for a CPU {} of its time", percent(share)),
        (Some(share), None) if !is_full => {
            format!("brunt waited for a CPU {} of the time", percent(share))
        }
        _ => {
            let words = format!("{words}, and nobody waited for one");
            return Ok(Reading::healthy(words));
        }
    };
    Ok(Reading::fail(format!("{words} while {who}")))
}
