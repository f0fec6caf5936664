//! The figures of the stored form, which are derived from the run: plain numbers, or null with a
//! reason. Ignored when a stored run is read.

mod latency;
mod parts;

use brunt_judge::{
    CpuLedger, Figure, Finding, Held, InvariantStatus, Judged, RunFigures, Summary, Verdict,
};
use brunt_load::LoadModel;
use brunt_record::{Greeting, Histogram, Run};

pub(crate) use self::latency::Latency;
use self::latency::ResponseParts;
pub(crate) use self::parts::{
    RecordedStage, connections_replaced, cpu_ns_per_reply, name, recorded_stages,
    requests_per_cpu_s, server_counted, server_cpus_used,
};
use crate::object::Object;

/// The figures of a run, for readers that do not want to add up workers themselves, with `absent`:
/// why one is null.
pub(crate) fn figures(judged: &Judged<'_>) -> Object {
    let (run, summary) = (judged.run, &judged.summary);
    let (latencies, split) = (&run.latencies, &run.latencies.split);
    let replies = &summary.window.replies;
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
    let overlap = run.overlap().map(|overlap| overlap.share);
    let (answered, errors) = (latencies.response.count(), latencies.response_error.count());
    let requests = parts::outcomes(Object::new(), summary.population, answered, errors)
        // Of a number of requests that was asked for.
        .with("unsent", summary.unsent);
    let counted = server_counted(run);
    let counted = counted.unwrap_or_else(|| Err("the server's own count was not read".to_owned()));
    let overlap = Figure::of(overlap, "there is one agent");
    let is_lower_bound = judged.judgement.verdict == Verdict::ClientLimited;
    let interval = judged.rate(run.successes_interval().into());
    let sent_per_s = scheduled().and_then(|()| sent_per_s());
    let overload = scheduled().and_then(|()| judged.rate(overload(judged)));
    let with_connect = run
        .connects_per_request()
        .then(|| Latency::with_connect(run));
    let with_connect = Figure::of(with_connect, "not every request opened a connection");
    let service = latency_if(is_open, &latencies.service, FROM_SEND);
    let above_p99 = Figure::from(split.known_tail(0.99)).map(ResponseParts::of);
    let first_reply = latency_if(is_sessions, &latencies.first_reply, NO_SESSIONS);
    let figures = Object::new()
        // Whether no invariant is broken. If false, the rates are withheld.
        .with("valid", judged.is_valid())
        .with("broken", ids(judged, InvariantStatus::Broken))
        // Invariants that hold, but not well.
        .with("flagged", ids(judged, InvariantStatus::Flagged))
        .with("findings", &judged.findings)
        // Share of the window in which all agents measured at once. Under 0.9 they are not one
        // load, and there are no rates of all together.
        .with("windows_overlap_share", overlap)
        .with("agents", parts::agents(judged))
        .with("verdict", &judged.judgement)
        .with("objectives", parts::objectives(judged))
        .with("window_ns", run.window_ns)
        // Successful replies (status below 400) per second of the window: the headline.
        .with("successes_per_s", rate(&summary.successes_per_s))
        // Whether the server could have answered more: brunt was the limit.
        .with("successes_is_lower_bound", is_lower_bound)
        // How well the headline is known, from the rates of sub-windows.
        .with("successes_interval_95", interval)
        .with("clean", clean(judged))
        // Whether the headline's rate held still.
        .with("steadiness", judged.rate(Figure::Known(steadiness(judged))))
        .with("cpus", cpus(run))
        // Sends of requests, those sent again among them.
        .with("attempts_per_s", rate(&summary.attempts_per_s))
        // Read from sockets.
        .with("bytes_received_per_s", rate(&summary.bytes_received_per_s))
        // Bytes of requests, and in HTTP/2 of all frames, handed to the kernel; without what TLS
        // adds.
        .with("bytes_sent_per_s", rate(&summary.bytes_sent_per_s))
        .with("model", run.plan.model.name())
        // Arrivals planned in the window.
        .with("planned_per_s", planned(&summary.planned_per_s))
        // Those that were sent in it, without those sent in drain.
        .with("arrivals_sent_per_s", sent_per_s)
        .with("arrivals", scheduled().map(|()| summary.arrivals))
        // Share (0 to 1) of the arrivals planned in the window that found no connection free,
        // whether sent later or never.
        .with("waited_share", planned(&summary.waited_share))
        .with("overload", overload)
        .with("stages", parts::stages(judged))
        // The outcome of the requests issued in the window.
        .with("requests", requests)
        // The outcome of the requests of warm-up that were in flight when the window began, none
        // of which is among `requests`.
        .with("carried_in", summary.carried_in)
        // Complete in the window, whenever their request was sent: the numerator of the headline.
        .with("replies", of_replies(replies.successes(), replies.errors()))
        .with("statuses", replies)
        .with("failures", &summary.window.failures)
        .with("all_phases", parts::all_phases(run, summary))
        .with("live", live(summary))
        .with("in_flight_mean", &summary.in_flight_mean)
        // Response time of successful replies to requests issued in the window: from the planned
        // instant in an open loop, else from the send. Its quantiles count requests that were never
        // answered in time, and arrivals that were never sent, as longer than they were waited for.
        .with("response", Latency::of_response(run))
        // Together with opening the connection of the request: TCP, TLS and HTTP/2 settings. Its
        // quantiles count as `response` does.
        .with("with_connect", with_connect)
        // Of error replies (status 400 and above) to requests issued in the window.
        .with("response_error", Latency::new(&latencies.response_error))
        // Service time, from the send, of the replies in `response`.
        .with("service", service)
        // Brunt's own share of the response times in `response`, on connections with kernel stamps.
        .with("own", latency_if(has_stamps, &split.own, NO_STAMPS))
        // The response times in `response` without brunt's own share, on connections with stamps.
        .with("rest", latency_if(has_stamps, &split.rest, NO_STAMPS))
        .with("above_p99", above_p99)
        // Schedule lag: from the first instant at which brunt could have sent until it did; in a
        // closed loop from a reply to the next request.
        .with("lag", Latency::new(&latencies.lag))
        // From the send of a request to the first byte of its reply, of the replies in `response`.
        .with("first_byte", Latency::new(&latencies.first_byte))
        // From the first byte of a reply until it is complete and parsed, of those in `response`.
        .with("transfer", Latency::new(&latencies.transfer))
        // The TCP handshake of a connection, over all phases.
        .with("connect", Latency::new(&latencies.connect))
        // The TLS handshake of a connection, from the end of the TCP handshake, over all phases.
        .with("tls", latency_if(is_secure, &latencies.tls, "clear text"))
        .with("greeting", greeting(run))
        // From the planned instant of a connection to its first reply.
        .with("first_reply", first_reply)
        // Kernel stamps that lay outside of what is possible and were moved, and those of them that
        // lay before the request that they answer was sent.
        .with("stamps_clamped", summary.stamps_clamped)
        .with("stamps_before_send", summary.stamps_before_send)
        // Time that the workers polled without result, all phases. It is part of the CPU time.
        .with("spun_ns", summary.spun_ns)
        .with("client", parts::client(run))
        .with("server", parts::server(judged))
        // Requests over the run by the server's own count.
        .with("server_counted", Figure::from(counted))
        // User and system.
        .with("cpu_ns_per_reply", cpu_ns_per_reply(run, summary))
        // Of several agents the most of any.
        .with("peak_resident_bytes", run.peak_resident_bytes())
        .with("generator", parts::generator(run, summary))
        .with_some("bandwidth", parts::bandwidth(judged))
        // Connections that were only kept open.
        .with_some("held", Held::of(run, summary));
    // The requests of a list by their names; empty for a single request.
    let names: Vec<Object> = run.names.iter().map(name).collect();
    figures
        .with("names", names)
        // Figures over time, of the window: the sum of the workers' series.
        .with("series", &summary.series)
        .with_reasons()
}

const NO_STAMPS: &str = "no kernel stamps were taken";
const FROM_SEND: &str = "the response time counts from the send as well";
const NO_SESSIONS: &str = "no schedule of connections";

/// The name of `verdict` in data, as in the stored form.
pub(crate) fn data_name(verdict: Verdict) -> String {
    verdict.name().to_lowercase().replace('-', "_")
}

/// The names of the invariants that stand so.
pub(crate) fn ids<'a>(judged: &'a Judged<'_>, status: InvariantStatus) -> Vec<&'a str> {
    let findings = judged.with_status(status);
    findings.map(|finding: &Finding| finding.id).collect()
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
    let window_s = run.window_ns as f64 / 1e9;
    Figure::ratio(sent as f64, window_s, "the measure phase has no length")
}

fn clean(judged: &Judged<'_>) -> Figure<Object> {
    match &judged.clean {
        Some(clean) => judged.rate(Figure::Known(parts::clean(clean))),
        None => Figure::Absent("the hypervisor took nothing, as far as is known".to_owned()),
    }
}

/// Whether the rate held still, and how it did not.
fn steadiness(judged: &Judged<'_>) -> Object {
    const NO_HALVES: &str =
        "too few replies or too short a window for halves, or a planned rate that changes";
    const NO_TREND: &str = "no trend beyond chance was seen, or the window is too short for one";
    let found = judged.steadiness();
    Object::new()
        .with("drifts", found.drifts)
        .with("halves_differ", Figure::of(found.halves_differ, NO_HALVES))
        .with("trend", Figure::of(found.trend, NO_TREND))
}

/// How far the server was from following the schedule.
fn overload(judged: &Judged<'_>) -> Figure<Object> {
    let found = Figure::of(judged.overload, "the server followed the schedule");
    found.map(|found| {
        let growth = Figure::of(found.growth_ns_per_s, "no growth of latency was seen");
        Object::new()
            .with("capacity_per_s", found.capacity_per_s)
            .with("growth_ns_per_s", growth)
    })
}

fn of_replies(successes: u64, errors: u64) -> Object {
    Object::new()
        .with("successes", successes)
        .with("errors", errors)
}

/// Open connections over the window. Fewest and most are the sums of the workers': there were never
/// fewer or more at any instant.
fn live(summary: &Summary) -> Object {
    let live = &summary.live;
    let unopened = Figure::of(
        live.unopened_at_start,
        "the version that ran did not count them",
    );
    Object::new()
        // To be held; 0 with a schedule of connections.
        .with("asked", live.asked)
        // That there may be.
        .with("most", live.most)
        .with("min", live.min)
        .with("mean", &summary.live_mean)
        .with("max", live.max)
        // When the window began, without those that were just being replaced.
        .with("unopened_at_start", unopened)
}

/// Who had the CPUs of brunt's machine over the window.
fn cpus(run: &Run) -> Figure<CpuLedger> {
    if !run.is_plain() {
        return Figure::Absent("several agents have machines of their own".to_owned());
    }
    let ledger = CpuLedger::of(run.first());
    Figure::of(ledger, "the CPUs of the machine were not read")
}

/// Time from the end of the TLS handshake, in clear text of the TCP handshake, until the server's
/// first words, such as its HTTP/2 settings, over all phases.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_one_name_in_all_data() {
        for verdict in [
            Verdict::Invalid,
            Verdict::NoSuccess,
            Verdict::ServerFailed,
            Verdict::Disturbed,
            Verdict::Inconclusive,
            Verdict::ClientLimited,
            Verdict::NetworkLimited,
            Verdict::RateLimited,
            Verdict::ThinkTime,
            Verdict::ServerLimited,
            Verdict::ConcurrencyLimited,
            Verdict::SharedHost,
            Verdict::SharedServer,
        ] {
            let stored = serde_json::to_value(verdict).unwrap();
            assert_eq!(stored, data_name(verdict));
        }
    }
}
