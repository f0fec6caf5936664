//! The derived figures of the stored form and of the table: plain numbers, or null with a reason.

mod absent;
mod agents;
mod bandwidth;
mod clean;
mod generator;
mod held;
mod latency;
mod names;
mod objectives;
mod resources;
mod stages;
mod verdict;

use std::collections::BTreeMap;

use brunt_judge::{
    CpuLedger, Figure, Finding, Held, InvariantStatus, Judged, Judgement, Overload, RateInterval,
    RunFigures, Steadiness, Summary, Verdict,
};
use brunt_load::{LoadModel, Plan};
use brunt_record::{
    ArrivalCounts, CarriedIn, FailureCounts, FailureScope, Greeting, Run, Series, StatusCounts,
};
use serde::Serialize;

use self::absent::Absent;
pub use self::agents::AgentFigures;
use self::agents::overlap_share;
pub use self::bandwidth::BandwidthFigures;
pub use self::clean::CleanSummary;
pub use self::generator::GeneratorFigures;
pub use self::latency::{Latency, ResponseParts};
pub(crate) use self::names::NameFigures;
pub use self::objectives::ObjectiveFigures;
pub use self::resources::{ClientFigures, ServerFigures};
pub(crate) use self::resources::{cpu_ns_per_reply, requests_per_cpu_s, server_counted};
pub use self::stages::StageFigures;
pub(crate) use self::stages::{RecordedStage, recorded_stages};
pub(crate) use self::verdict::data_name;

/// Figures derived from the run, for readers that do not want to add up workers themselves. A
/// figure that is undefined is null and `absent` says why. Ignored when a stored run is read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredSummary {
    /// Whether no invariant is broken. If false, the rates are withheld.
    pub valid: bool,
    /// Names of the broken invariants.
    pub broken: Vec<String>,
    /// Names of the invariants that hold, but not well.
    pub flagged: Vec<String>,
    /// All invariants.
    pub findings: Vec<Finding>,
    /// Share of the window in which all agents measured at once; null for one agent. Under 0.9 they
    /// are not one load, and there are no rates of all together.
    pub windows_overlap_share: Option<f64>,
    /// Each agent by itself.
    pub agents: Vec<AgentFigures>,
    /// What limited the run.
    pub verdict: Judgement,
    /// Whether the run reached what it was asked to.
    pub objectives: Vec<ObjectiveFigures>,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// Successful replies (status below 400) per second of the window: the headline.
    pub successes_per_s: Option<f64>,
    /// Whether the server could have answered more: brunt was the limit.
    pub successes_is_lower_bound: bool,
    /// How well the headline is known, from the rates of sub-windows.
    pub successes_interval_95: Option<RateInterval>,
    /// The figures of the parts of the window in which the hypervisor took nothing; null where it
    /// took nothing at all.
    pub clean: Option<CleanSummary>,
    /// Whether the headline's rate held still.
    pub steadiness: Option<Steadiness>,
    /// Who had the CPUs of brunt's machine over the window; null of several agents.
    pub cpus: Option<CpuLedger>,
    /// Sends of requests per second of the window, those sent again among them.
    pub attempts_per_s: Option<f64>,
    /// Bytes read from sockets per second of the window.
    pub bytes_received_per_s: Option<f64>,
    /// Bytes of requests, and in HTTP/2 of all frames, handed to the kernel per second of the
    /// window; without what TLS adds.
    pub bytes_sent_per_s: Option<f64>,
    /// `closed`, `open` or `sessions`.
    pub model: &'static str,
    /// Arrivals planned in the window, per second of it; null without a schedule.
    pub planned_per_s: Option<f64>,
    /// Arrivals planned in the window that were sent in it, per second of it, without those sent in
    /// drain; null without a schedule.
    pub arrivals_sent_per_s: Option<f64>,
    /// The outcome of the arrivals planned in the window; null without a schedule.
    pub arrivals: Option<ArrivalCounts>,
    /// Share (0 to 1) of the arrivals planned in the window that found no connection free, whether
    /// sent later or never; null without a schedule.
    pub waited_share: Option<f64>,
    /// How far the server was from following the schedule; null if it followed.
    pub overload: Option<Overload>,
    /// The requests by the stage of the schedule in which they were due; null without stages.
    pub stages: Option<Vec<StageFigures>>,
    /// The requests of a list by their names; empty for a single request.
    pub names: Vec<NameFigures>,
    /// The outcome of the requests issued in the window.
    pub requests: Requests,
    /// The outcome of the requests of warm-up that were in flight when the window began, none of
    /// which is among `requests`.
    pub carried_in: CarriedIn,
    /// Replies that were complete in the window, whenever their request was sent: the numerator
    /// of the headline.
    pub replies: Replies,
    /// Replies that were complete in the window, by status.
    pub statuses: StatusCounts,
    /// What failed in the window, by kind.
    pub failures: FailureCounts,
    /// Requests of all phases.
    pub all_phases: AllPhases,
    /// Open connections over the window.
    pub live: LiveRange,
    /// Mean of the requests in flight over the window.
    pub in_flight_mean: Option<f64>,
    /// Response time of successful replies to requests issued in the window: from the planned
    /// instant in an open loop, else from the send. Its quantiles count requests that were never
    /// answered in time, and arrivals that were never sent, as longer than they were waited for.
    pub response: Latency,
    /// Response time together with opening the connection of the request: TCP, TLS and HTTP/2
    /// settings. Of successful replies to requests issued in the window. Its quantiles count as
    /// `response` does. Null where connections carry more than one request.
    pub with_connect: Option<Latency>,
    /// Response time of error replies (status 400 and above) to requests issued in the window.
    pub response_error: Latency,
    /// Service time, from the send, of the replies in `response`; null where that counts from the
    /// send as well.
    pub service: Option<Latency>,
    /// Brunt's own share of the response times in `response`, on connections with kernel stamps;
    /// null without any.
    pub own: Option<Latency>,
    /// The response times in `response` without brunt's own share, on connections with kernel
    /// stamps; null without any.
    pub rest: Option<Latency>,
    /// Mean parts of the response times above the 99th percentile, on connections with kernel
    /// stamps; null without enough of them.
    pub above_p99: Option<ResponseParts>,
    /// Schedule lag: from the first instant at which brunt could have sent until it did; in a
    /// closed loop from a reply to the next request.
    pub lag: Latency,
    /// Time from the send of a request to the first byte of its reply, of the replies in
    /// `response`.
    pub first_byte: Latency,
    /// Time from the first byte of a reply until it is complete and parsed, of the replies in
    /// `response`.
    pub transfer: Latency,
    /// Time of the TCP handshake of a connection, over all phases.
    pub connect: Latency,
    /// Time of the TLS handshake of a connection, from the end of the TCP handshake, over all
    /// phases; null in clear text.
    pub tls: Option<Latency>,
    /// Time from the end of the TLS handshake, in clear text of the TCP handshake, until the
    /// server's first HTTP/2 settings, over all phases; null in HTTP/1.1.
    pub greeting: Option<Latency>,
    /// Time from the planned instant of a connection to its first reply; null without a schedule of
    /// connections.
    pub first_reply: Option<Latency>,
    /// Kernel stamps that lay outside of what is possible and were moved.
    pub stamps_clamped: u64,
    /// Clamped stamps that lay before the request that they answer was sent.
    pub stamps_before_send: u64,
    /// Time that the workers polled without result, all phases, nanoseconds. It is part of the CPU
    /// time.
    pub spun_ns: u64,
    /// CPU of brunt.
    pub client: ClientFigures,
    /// What the server used; null where it was not watched.
    pub server: Option<ServerFigures>,
    /// Requests over the run by the server's own count; null without one.
    pub server_counted: Option<u64>,
    /// CPU of brunt (user and system) per complete reply of the window, nanoseconds.
    pub cpu_ns_per_reply: Option<f64>,
    /// Most memory resident at any time, bytes; of several agents the most of any.
    pub peak_resident_bytes: u64,
    /// What made the requests while the run went on, such as a script; null where they were those
    /// of the plan.
    pub generator: Option<GeneratorFigures>,
    /// What one-way streams moved; absent in a run of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<BandwidthFigures>,
    /// What became of connections that were only kept open; absent in other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Figures over time, of the window: the sum of the workers' series.
    pub series: Series,
    /// Why a figure is null, by its path, such as `response.p99_9_ns`.
    pub absent: BTreeMap<String, String>,
}

/// The outcome of the requests issued in the window: with a schedule of requests those that were
/// planned in it and sent, else those that were sent in it.
/// `issued = successes + errors + failed + censored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Issued in the window.
    pub issued: u64,
    /// Answered with a status below 400 by the end of drain.
    pub successes: u64,
    /// Answered with a status of 400 and above by the end of drain.
    pub errors: u64,
    /// Failed.
    pub failed: u64,
    /// Neither answered nor failed when drain ended.
    pub censored: u64,
    /// Never sent, of a number of requests that was asked for.
    pub unsent: u64,
}

/// Replies that were complete in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Replies {
    /// Status below 400.
    pub successes: u64,
    /// Status 400 and above.
    pub errors: u64,
}

/// Requests and connections of all phases: `sent = answered + failed + in_flight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AllPhases {
    /// Requests handed to the kernel, each once, however often it was sent.
    pub sent: u64,
    /// Sends beside those of requests that the server had not processed, and that were sent again.
    pub sent_again: u64,
    /// Complete final replies.
    pub answered: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests still in flight when drain ended.
    pub in_flight: u64,
    /// Attempts to open a connection that failed.
    pub connect_failures: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Connections opened beyond the number that there may be: each took the place of an earlier
    /// one. 0 with a schedule of connections, of which none replaces another.
    pub connections_replaced: u64,
    /// Connections that the server closed while no request was in flight.
    pub connections_closed_by_server: u64,
    /// Connections that the server asked to be replaced (GOAWAY).
    pub goaways: u64,
    /// Times that the server allowed no streams on an open connection for a while (HTTP/2).
    pub connections_shut: u64,
    /// Full TLS handshakes; with those resumed, as many as connections were opened over TLS.
    pub handshakes_full: u64,
    /// TLS handshakes that resumed the session of an earlier connection.
    pub handshakes_resumed: u64,
    /// Bytes received that belong to no reply by their nature: TLS handshakes and what TLS records
    /// add, frames about an HTTP/2 connection as a whole.
    pub overhead_bytes: u64,
}

/// Open connections over the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LiveRange {
    /// Connections to be held; 0 with a schedule of connections.
    pub asked: u32,
    /// Connections that there may be.
    pub most: u32,
    /// Fewest, as the sum of the workers' fewest: never more than were open at any instant.
    pub min: u32,
    /// Mean over the window.
    pub mean: Option<f64>,
    /// Most, as the sum of the workers' most: never fewer than were open at any instant.
    pub max: u32,
    /// Connections that were not open when the window began, without those that were just being
    /// replaced; null where no window began.
    pub unopened_at_start: Option<u32>,
}

/// Arrivals planned in the window and sent in it, per second of it.
pub(crate) fn arrivals_sent_per_s(run: &Run, summary: &Summary) -> Figure {
    let arrivals = &summary.arrivals;
    let sent = match arrivals.sent_by_end {
        Some(sent) => sent,
        None if arrivals.sent == 0 => 0,
        None => {
            let reason = "how many were sent in drain was not counted by the version that ran";
            return Figure::Absent(reason.to_owned());
        }
    };
    Figure::ratio(
        sent as f64,
        run.window_ns as f64 / 1e9,
        "the measure phase has no length",
    )
}

/// The names of these invariants.
pub(crate) fn ids<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<String> {
    findings.map(|finding| finding.id.to_owned()).collect()
}

impl StoredSummary {
    /// Derives the figures of a run.
    pub fn new(judged: &Judged<'_>) -> Self {
        let (run, summary) = (judged.run, &judged.summary);
        let broken = ids(judged.with_status(InvariantStatus::Broken));
        let mut absent = Absent::new(judged.withheld());
        let cpus = match CpuLedger::of(run.first()) {
            _ if !run.is_plain() => {
                absent.note("cpus", "several agents have machines of their own")
            }
            None => absent.note("cpus", "the CPUs of the machine were not read"),
            ledger => ledger,
        };
        let server_counted = match server_counted(run) {
            Some(Ok(count)) => Some(count),
            Some(Err(reason)) => absent.note("server_counted", &reason),
            None => absent.note("server_counted", "the server's own count was not read"),
        };
        let judgement = judged.judgement.clone();
        let latencies = &run.latencies;
        let with_connect = match run.connects_per_request() {
            true => Some(Latency::with_connect("with_connect", run, &mut absent)),
            false => absent.note("with_connect", "not every request opened a connection"),
        };
        let greeting = match run.protocol().greeting {
            Greeting::Nothing => absent.note("greeting", run.protocol().name),
            Greeting::Planned if !run.plan.is_opened_by_message() => {
                absent.note("greeting", "connections begin with messages")
            }
            Greeting::Planned | Greeting::Prescribed(_) => {
                Some(Latency::new("greeting", &latencies.greeting, &mut absent))
            }
        };
        let has_schedule = run.plan.model.schedule().is_some();
        let is_open = matches!(run.plan.model, LoadModel::Open { .. });
        let is_sessions = matches!(run.plan.model, LoadModel::Sessions { .. });
        let has_stamps = run.plan.stamps.every().is_some();
        let is_secure = run.first().negotiated.tls.is_some();
        let above_p99 = match latencies.split.known_tail(0.99) {
            Ok(parts) => Some(ResponseParts::new(&parts)),
            Err(too_few) => absent.note("above_p99", &too_few.to_string()),
        };
        let is_valid = broken.is_empty();
        Self {
            valid: is_valid,
            broken,
            flagged: ids(judged.with_status(InvariantStatus::Flagged)),
            findings: judged.findings.clone(),
            windows_overlap_share: absent.figure("windows_overlap_share", &overlap_share(run)),
            agents: AgentFigures::all(run, !is_valid, &mut absent),
            successes_is_lower_bound: judgement.verdict == Verdict::ClientLimited,
            verdict: judgement,
            objectives: ObjectiveFigures::all(judged, &mut absent),
            window_ns: run.window_ns,
            successes_per_s: absent.rate("successes_per_s", &summary.successes_per_s),
            successes_interval_95: verdict::successes_interval(run, &mut absent),
            clean: CleanSummary::new(judged.clean.as_ref(), &mut absent),
            steadiness: verdict::steadiness(run, &mut absent),
            cpus,
            attempts_per_s: absent.rate("attempts_per_s", &summary.attempts_per_s),
            bytes_received_per_s: absent
                .rate("bytes_received_per_s", &summary.bytes_received_per_s),
            bytes_sent_per_s: absent.rate("bytes_sent_per_s", &summary.bytes_sent_per_s),
            model: run.plan.model.name(),
            planned_per_s: scheduled("planned_per_s", has_schedule, &mut absent)
                .and_then(|path| absent.figure(path, &summary.planned_per_s)),
            arrivals_sent_per_s: scheduled("arrivals_sent_per_s", has_schedule, &mut absent)
                .and_then(|path| absent.rate(path, &arrivals_sent_per_s(run, summary))),
            arrivals: scheduled("arrivals", has_schedule, &mut absent).map(|_| summary.arrivals),
            waited_share: scheduled("waited_share", has_schedule, &mut absent)
                .and_then(|path| absent.figure(path, &summary.waited_share)),
            overload: scheduled("overload", has_schedule, &mut absent)
                .and_then(|_| overload(run, &mut absent)),
            stages: StageFigures::all(run, &mut absent),
            names: NameFigures::all(run),
            requests: Requests {
                issued: summary.population.issued,
                successes: latencies.response.count(),
                errors: latencies.response_error.count(),
                failed: summary.population.failed,
                censored: summary.population.censored,
                unsent: summary.unsent,
            },
            carried_in: summary.carried_in,
            replies: Replies {
                successes: summary.window.replies.successes(),
                errors: summary.window.replies.errors(),
            },
            statuses: summary.window.replies.clone(),
            failures: summary.window.failures.clone(),
            all_phases: AllPhases::new(&run.plan, summary),
            live: LiveRange {
                asked: summary.live.asked,
                most: summary.live.most,
                min: summary.live.min,
                mean: absent.figure("live.mean", &summary.live_mean),
                max: summary.live.max,
                unopened_at_start: absent.known(
                    "live.unopened_at_start",
                    summary.live.unopened_at_start,
                    "the version that ran did not count them",
                ),
            },
            in_flight_mean: absent.figure("in_flight_mean", &summary.in_flight_mean),
            response: Latency::of_response("response", run, &mut absent),
            with_connect,
            response_error: Latency::new("response_error", &latencies.response_error, &mut absent),
            service: absent
                .known("service", is_open.then_some(&latencies.service), FROM_SEND)
                .map(|it| Latency::new("service", it, &mut absent)),
            own: absent
                .known("own", has_stamps.then_some(&latencies.split.own), NO_STAMPS)
                .map(|it| Latency::new("own", it, &mut absent)),
            rest: absent
                .known(
                    "rest",
                    has_stamps.then_some(&latencies.split.rest),
                    NO_STAMPS,
                )
                .map(|it| Latency::new("rest", it, &mut absent)),
            above_p99,
            lag: Latency::new("lag", &latencies.lag, &mut absent),
            first_byte: Latency::new("first_byte", &latencies.first_byte, &mut absent),
            transfer: Latency::new("transfer", &latencies.transfer, &mut absent),
            connect: Latency::new("connect", &latencies.connect, &mut absent),
            tls: absent
                .known("tls", is_secure.then_some(&latencies.tls), "clear text")
                .map(|it| Latency::new("tls", it, &mut absent)),
            greeting,
            first_reply: absent
                .known(
                    "first_reply",
                    is_sessions.then_some(&latencies.first_reply),
                    NO_SESSIONS,
                )
                .map(|it| Latency::new("first_reply", it, &mut absent)),
            stamps_clamped: summary.stamps_clamped,
            stamps_before_send: summary.stamps_before_send,
            spun_ns: summary.spun_ns,
            client: ClientFigures::new(run, &mut absent),
            server: ServerFigures::new(run, summary, &mut absent),
            server_counted,
            cpu_ns_per_reply: absent.figure("cpu_ns_per_reply", &cpu_ns_per_reply(run, summary)),
            peak_resident_bytes: run.peak_resident_bytes(),
            generator: GeneratorFigures::new(run, summary, &mut absent),
            bandwidth: BandwidthFigures::new(judged, &mut absent),
            held: held::held(judged, &mut absent),
            series: summary.series.clone(),
            absent: absent.into_reasons(),
        }
    }
}

const NO_STAMPS: &str = "no kernel stamps were taken";
const FROM_SEND: &str = "the response time counts from the send as well";
const NO_SESSIONS: &str = "no schedule of connections";

/// `path`, where there is a schedule.
fn scheduled(path: &'static str, has_schedule: bool, absent: &mut Absent) -> Option<&'static str> {
    absent.known(path, has_schedule.then_some(path), "no schedule")
}

/// How far the server was from following the schedule.
fn overload(run: &Run, absent: &mut Absent) -> Option<Overload> {
    absent.unless_withheld("overload")?;
    let followed = "the server followed the schedule";
    let overload = absent.known("overload", run.overload(), followed)?;
    absent.known(
        "overload.growth_ns_per_s",
        overload.growth_ns_per_s.as_ref(),
        "no growth of latency was seen",
    );
    Some(overload)
}

impl AllPhases {
    /// Adds up what `summary` holds of all phases.
    pub(crate) fn new(plan: &Plan, summary: &Summary) -> Self {
        let are_attempts = plan.connects_only();
        let opened = summary.lifetime.connections_opened;
        let first = match plan.model {
            LoadModel::Sessions { .. } => u64::MAX,
            _ if are_attempts => u64::MAX,
            _ => summary.live.asked.max(summary.live.most).into(),
        };
        Self {
            sent: summary.lifetime.requests_sent,
            sent_again: summary.lifetime.sent_again,
            answered: summary.lifetime.replies.total(),
            failed: summary.lifetime.failures.of_requests(are_attempts),
            in_flight: summary.in_flight_at_end,
            connect_failures: summary.lifetime.failures.total(FailureScope::Connect),
            connections_opened: opened,
            connections_replaced: summary.lifetime.connections_opened.saturating_sub(first),
            connections_closed_by_server: summary.lifetime.connections_closed_idle,
            goaways: summary.lifetime.goaways,
            connections_shut: summary.lifetime.connections_shut,
            handshakes_full: summary.lifetime.handshakes_full,
            handshakes_resumed: summary.lifetime.handshakes_resumed,
            overhead_bytes: summary.lifetime.overhead_bytes,
        }
    }
}
