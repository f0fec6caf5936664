//! The derived figures of the stored form and of the table: plain numbers, or null with a reason.

mod absent;
mod agents;
mod bandwidth;
mod clean;
mod generator;
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
    ArrivalCounts, CarriedIn, FailureCounts, FailureScope, Greeting, Histogram, Population, Run,
    Series, StatusCounts,
};
use serde::Serialize;
use serde_json::Value;

use self::absent::take_reasons;
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

/// Figures derived from the run, for readers that do not want to add up workers themselves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
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
    pub windows_overlap_share: Figure,
    /// Each agent by itself.
    pub agents: Vec<AgentFigures>,
    /// What limited the run.
    pub verdict: Judgement,
    /// Whether the run reached what it was asked to.
    pub objectives: Vec<ObjectiveFigures>,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// Successful replies (status below 400) per second of the window: the headline.
    pub successes_per_s: Figure,
    /// Whether the server could have answered more: brunt was the limit.
    pub successes_is_lower_bound: bool,
    /// How well the headline is known, from the rates of sub-windows.
    pub successes_interval_95: Figure<RateInterval>,
    /// The figures of the parts of the window in which the hypervisor took nothing; null where it
    /// took nothing at all.
    pub clean: Figure<CleanSummary>,
    /// Whether the headline's rate held still.
    pub steadiness: Figure<Steadiness>,
    /// Who had the CPUs of brunt's machine over the window; null of several agents.
    pub cpus: Figure<CpuLedger>,
    /// Sends of requests per second of the window, those sent again among them.
    pub attempts_per_s: Figure,
    /// Bytes read from sockets per second of the window.
    pub bytes_received_per_s: Figure,
    /// Bytes of requests, and in HTTP/2 of all frames, handed to the kernel per second of the
    /// window; without what TLS adds.
    pub bytes_sent_per_s: Figure,
    /// `closed`, `open` or `sessions`.
    pub model: &'static str,
    /// Arrivals planned in the window, per second of it; null without a schedule.
    pub planned_per_s: Figure,
    /// Arrivals planned in the window that were sent in it, per second of it, without those sent in
    /// drain; null without a schedule.
    pub arrivals_sent_per_s: Figure,
    /// The outcome of the arrivals planned in the window; null without a schedule.
    pub arrivals: Figure<ArrivalCounts>,
    /// Share (0 to 1) of the arrivals planned in the window that found no connection free, whether
    /// sent later or never; null without a schedule.
    pub waited_share: Figure,
    /// How far the server was from following the schedule; null if it followed.
    pub overload: Figure<Overload>,
    /// The requests by the stage of the schedule in which they were due; null without stages.
    pub stages: Figure<Vec<StageFigures>>,
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
    pub in_flight_mean: Figure,
    /// Response time of successful replies to requests issued in the window: from the planned
    /// instant in an open loop, else from the send. Its quantiles count requests that were never
    /// answered in time, and arrivals that were never sent, as longer than they were waited for.
    pub response: Latency,
    /// Response time together with opening the connection of the request: TCP, TLS and HTTP/2
    /// settings. Of successful replies to requests issued in the window. Its quantiles count as
    /// `response` does. Null where connections carry more than one request.
    pub with_connect: Figure<Latency>,
    /// Response time of error replies (status 400 and above) to requests issued in the window.
    pub response_error: Latency,
    /// Service time, from the send, of the replies in `response`; null where that counts from the
    /// send as well.
    pub service: Figure<Latency>,
    /// Brunt's own share of the response times in `response`, on connections with kernel stamps;
    /// null without any.
    pub own: Figure<Latency>,
    /// The response times in `response` without brunt's own share, on connections with kernel
    /// stamps; null without any.
    pub rest: Figure<Latency>,
    /// Mean parts of the response times above the 99th percentile, on connections with kernel
    /// stamps; null without enough of them.
    pub above_p99: Figure<ResponseParts>,
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
    pub tls: Figure<Latency>,
    /// Time from the end of the TLS handshake, in clear text of the TCP handshake, until the
    /// server's first HTTP/2 settings, over all phases; null in HTTP/1.1.
    pub greeting: Figure<Latency>,
    /// Time from the planned instant of a connection to its first reply; null without a schedule of
    /// connections.
    pub first_reply: Figure<Latency>,
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
    pub server: Figure<ServerFigures>,
    /// Requests over the run by the server's own count; null without one.
    pub server_counted: Figure<u64>,
    /// CPU of brunt (user and system) per complete reply of the window, nanoseconds.
    pub cpu_ns_per_reply: Figure,
    /// Most memory resident at any time, bytes; of several agents the most of any.
    pub peak_resident_bytes: u64,
    /// What made the requests while the run went on, such as a script; null where they were those
    /// of the plan.
    pub generator: Figure<GeneratorFigures>,
    /// What one-way streams moved; absent in a run of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<BandwidthFigures>,
    /// What became of connections that were only kept open; absent in other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// The figures as they are stored: one that is undefined is null, and `absent` says why. Ignored
/// when a stored run is read.
#[derive(Debug, Serialize)]
pub(crate) struct StoredFigures<'a> {
    /// [`Figures`], as JSON.
    #[serde(flatten)]
    figures: Value,
    /// The requests of a list by their names; empty for a single request.
    names: Vec<NameFigures>,
    /// Figures over time, of the window: the sum of the workers' series.
    series: &'a Series,
    /// Why a figure is null, by its path, such as `response.p99_9_ns`.
    absent: BTreeMap<String, String>,
}

impl<'a> StoredFigures<'a> {
    /// The figures of a run.
    pub(crate) fn of(judged: &'a Judged<'_>) -> serde_json::Result<Self> {
        let mut figures = serde_json::to_value(Figures::of(judged))?;
        let absent = take_reasons(&mut figures);
        Ok(Self {
            figures,
            names: NameFigures::all(judged.run),
            series: &judged.summary.series,
            absent,
        })
    }
}

/// The outcome of requests: `issued = successes + errors + failed + censored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Issued in the window: with a schedule of requests those that were planned in it and sent,
    /// else those that were sent in it.
    pub issued: u64,
    /// Answered with a status below 400 by the end of drain.
    pub successes: u64,
    /// Answered with a status of 400 and above by the end of drain.
    pub errors: u64,
    /// Failed.
    pub failed: u64,
    /// Neither answered nor failed when drain ended.
    pub censored: u64,
}

impl Outcomes {
    /// The outcome of these requests, of which so many were answered.
    fn of(population: Population, successes: u64, errors: u64) -> Self {
        Self {
            issued: population.issued,
            successes,
            errors,
            failed: population.failed,
            censored: population.censored,
        }
    }
}

/// The outcome of the requests issued in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// What became of them.
    #[serde(flatten)]
    pub outcomes: Outcomes,
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveRange {
    /// Connections to be held; 0 with a schedule of connections.
    pub asked: u32,
    /// Connections that there may be.
    pub most: u32,
    /// Fewest, as the sum of the workers' fewest: never more than were open at any instant.
    pub min: u32,
    /// Mean over the window.
    pub mean: Figure,
    /// Most, as the sum of the workers' most: never fewer than were open at any instant.
    pub max: u32,
    /// Connections that were not open when the window began, without those that were just being
    /// replaced; null where no window began.
    pub unopened_at_start: Figure<u32>,
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

impl Figures {
    /// Derives the figures of a run.
    pub fn of(judged: &Judged<'_>) -> Self {
        let (run, summary) = (judged.run, &judged.summary);
        let judgement = judged.judgement.clone();
        let latencies = &run.latencies;
        let split = &latencies.split;
        let rate = |figure: &Figure| judged.rate(figure.clone());
        let has_schedule = run.plan.model.schedule().is_some();
        let scheduled = || Figure::of(has_schedule.then_some(()), "no schedule");
        let planned = |figure: &Figure| scheduled().and_then(|()| figure.clone());
        let sent_per_s = || rate(&arrivals_sent_per_s(run, summary));
        let latency_if = |holds: bool, histogram: &Histogram, reason| {
            Figure::of(holds.then(|| Latency::new(histogram)), reason)
        };
        let is_open = matches!(run.plan.model, LoadModel::Open { .. });
        let is_sessions = matches!(run.plan.model, LoadModel::Sessions { .. });
        let has_stamps = run.plan.stamps.every().is_some();
        let is_secure = run.first().negotiated.tls.is_some();
        Self {
            valid: judged.is_valid(),
            broken: ids(judged.with_status(InvariantStatus::Broken)),
            flagged: ids(judged.with_status(InvariantStatus::Flagged)),
            findings: judged.findings.clone(),
            windows_overlap_share: overlap_share(run),
            agents: AgentFigures::all(judged),
            successes_is_lower_bound: judgement.verdict == Verdict::ClientLimited,
            verdict: judgement,
            objectives: ObjectiveFigures::all(judged),
            window_ns: run.window_ns,
            successes_per_s: rate(&summary.successes_per_s),
            successes_interval_95: judged.rate(run.successes_interval().into()),
            clean: CleanSummary::of(judged),
            steadiness: judged.rate(Figure::Known(run.steadiness())),
            cpus: cpus(run),
            attempts_per_s: rate(&summary.attempts_per_s),
            bytes_received_per_s: rate(&summary.bytes_received_per_s),
            bytes_sent_per_s: rate(&summary.bytes_sent_per_s),
            model: run.plan.model.name(),
            planned_per_s: planned(&summary.planned_per_s),
            arrivals_sent_per_s: scheduled().and_then(|()| sent_per_s()),
            arrivals: scheduled().map(|()| summary.arrivals),
            waited_share: planned(&summary.waited_share),
            overload: scheduled().and_then(|()| {
                let followed = "the server followed the schedule";
                judged.rate(Figure::of(run.overload(), followed))
            }),
            stages: StageFigures::all(judged),
            requests: Requests {
                outcomes: Outcomes::of(
                    summary.population,
                    latencies.response.count(),
                    latencies.response_error.count(),
                ),
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
                mean: summary.live_mean.clone(),
                max: summary.live.max,
                unopened_at_start: Figure::of(
                    summary.live.unopened_at_start,
                    "the version that ran did not count them",
                ),
            },
            in_flight_mean: summary.in_flight_mean.clone(),
            response: Latency::of_response(run),
            with_connect: Figure::of(
                run.connects_per_request()
                    .then(|| Latency::with_connect(run)),
                "not every request opened a connection",
            ),
            response_error: Latency::new(&latencies.response_error),
            service: latency_if(is_open, &latencies.service, FROM_SEND),
            own: latency_if(has_stamps, &split.own, NO_STAMPS),
            rest: latency_if(has_stamps, &split.rest, NO_STAMPS),
            above_p99: Figure::from(split.known_tail(0.99)).map(ResponseParts::from),
            lag: Latency::new(&latencies.lag),
            first_byte: Latency::new(&latencies.first_byte),
            transfer: Latency::new(&latencies.transfer),
            connect: Latency::new(&latencies.connect),
            tls: latency_if(is_secure, &latencies.tls, "clear text"),
            greeting: greeting(run),
            first_reply: latency_if(is_sessions, &latencies.first_reply, NO_SESSIONS),
            stamps_clamped: summary.stamps_clamped,
            stamps_before_send: summary.stamps_before_send,
            spun_ns: summary.spun_ns,
            client: ClientFigures::new(run),
            server: ServerFigures::of(judged),
            server_counted: match server_counted(run) {
                Some(counted) => counted.into(),
                None => Figure::Absent("the server's own count was not read".to_owned()),
            },
            cpu_ns_per_reply: cpu_ns_per_reply(run, summary),
            peak_resident_bytes: run.peak_resident_bytes(),
            generator: GeneratorFigures::of(run, summary),
            bandwidth: BandwidthFigures::of(judged),
            held: Held::of(run, summary),
        }
    }
}

const NO_STAMPS: &str = "no kernel stamps were taken";
const FROM_SEND: &str = "the response time counts from the send as well";
const NO_SESSIONS: &str = "no schedule of connections";

/// Who had the CPUs of brunt's machine.
fn cpus(run: &Run) -> Figure<CpuLedger> {
    match run.is_plain() {
        true => Figure::of(
            CpuLedger::of(run.first()),
            "the CPUs of the machine were not read",
        ),
        false => Figure::Absent("several agents have machines of their own".to_owned()),
    }
}

/// The time until the server's first words.
fn greeting(run: &Run) -> Figure<Latency> {
    let reason = match run.protocol().greeting {
        Greeting::Nothing => run.protocol().name,
        Greeting::Planned if !run.plan.is_opened_by_message() => "connections begin with messages",
        Greeting::Planned | Greeting::Prescribed(_) => {
            return Figure::Known(Latency::new(&run.latencies.greeting));
        }
    };
    Figure::Absent(reason.to_owned())
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
