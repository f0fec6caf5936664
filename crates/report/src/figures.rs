//! The figures of a run as data: those of the stored form, ignored when it is read again, and the
//! summary for machines, one flat object of 34 keys as one line of JSON.
//!
//! A figure is a plain number, or null: in the stored form with a reason, in the summary where it
//! is unknown or withheld, never 0. The summary's keys and units are an interface that changes with
//! a major version only (`docs/stability.md`).

use std::collections::BTreeMap;
use std::io;

use brunt_judge::{
    ABSENT_KEY, Bandwidth, Capacity, CapacityOutcome, Clean, CleanFigures, CpuLedger, Figure,
    Finding, Held, Interval, InvariantStatus, Judged, NoInterval, Quantile, ResponseQuantiles,
    RoundUse, RunFigures, Summary, Verdict,
};
use brunt_load::{LoadModel, Schedule, Stage, Work};
use brunt_record::{
    CpuUse, FailureScope, Histogram, NameRecord, Population, Run, STAGES_RECORDED_MAX,
    ServerEvidence, ServerScope, StageRecord, max_at_least_ns, mean_at_least_ns,
};
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::foreign::{data_name, printable, write_csv};
use crate::{ReportError, objective};

/// The figures of a run, for readers that do not want to add up workers themselves, with `absent`:
/// why one is null.
pub(crate) fn figures(judged: &Judged<'_>) -> Object {
    let (run, summary) = (judged.run, &judged.summary);
    let (latencies, split) = (&run.latencies, &run.latencies.split);
    let replies = &summary.window.replies;
    let rate = |figure: &Figure| judged.rate(figure.clone());
    let has_schedule = run.plan.load.model.schedule().is_some();
    let scheduled = || Figure::of(has_schedule.then_some(()), "no schedule");
    let planned = |figure: &Figure| scheduled().and_then(|()| figure.clone());
    let latency_if = |holds: bool, histogram: &Histogram, reason| {
        Figure::of(holds.then(|| durations(histogram)), reason)
    };
    let is_open = matches!(run.plan.load.model, LoadModel::Open { .. });
    let is_sessions = matches!(run.plan.load.model, LoadModel::Sessions { .. });
    let has_stamps = run.plan.observation.stamps.every().is_some();
    let is_secure = run.first().negotiated.tls.is_some();
    let overlap = run.overlap();
    let (answered, errors) = (latencies.response.count(), latencies.response_error.count());
    let requests = outcomes(Object::new(), summary.population, answered, errors)
        // Of a number of requests that was asked for.
        .with("unsent", summary.unsent);
    let not_read = || Err("the server's own count was not read".to_owned());
    let counted = server_counted(run).unwrap_or_else(not_read);
    let overlap = Figure::of(overlap, "there is one agent");
    let is_lower_bound = judged.judgement.verdict == Verdict::ClientLimited;
    let interval = judged.rate(run.successes_interval().into());
    let sent_per_s = scheduled().and_then(|()| judged.rate(arrivals_sent_per_s(run, summary)));
    let overload = scheduled().and_then(|()| judged.rate(overload(judged)));
    let with_connect = run.connects_per_request().then(|| {
        let (ended, unfinished) = (&latencies.with_connect, Some(&latencies.unfinished));
        distribution(ended, unfinished, |q| run.with_connect_quantile(q))
    });
    let with_connect = Figure::of(with_connect, "not every request opened a connection");
    let service = latency_if(is_open, &latencies.service, FROM_SEND);
    // Means, nanoseconds, which add up to that of the response time: `lag_send_ns` (framing and
    // encrypting are part of it), `lag_receive_ns` (decrypting is part of it) and `parse_ns` are
    // brunt's own.
    let above_p99 = Figure::from(split.known_tail(0.99));
    let greeting = latency_if(
        latencies.greeting.count() > 0,
        &latencies.greeting,
        "no connection waited for a greeting",
    );
    let first_reply = latency_if(is_sessions, &latencies.first_reply, NO_SESSIONS);
    let of_replies = Object::new()
        .with("successes", replies.successes())
        .with("errors", replies.errors());
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
        .with("agents", agents(judged))
        .with("verdict", &judged.judgement)
        .with("objectives", objectives(judged))
        .with("window_ns", run.window_ns)
        // Successful replies (status below 400) per second of the window: the headline.
        .with("successes_per_s", rate(&summary.successes_per_s))
        // Whether the server could have answered more: brunt was the limit.
        .with("successes_is_lower_bound", is_lower_bound)
        // How well the headline is known, from the rates of sub-windows.
        .with("successes_interval_95", interval)
        .with("clean", clean(judged))
        .with("cpus", cpus(run))
        // Sends of requests, those sent again among them.
        .with("attempts_per_s", rate(&summary.attempts_per_s))
        // Read from sockets.
        .with("bytes_received_per_s", rate(&summary.bytes_received_per_s))
        // Bytes of requests, and in HTTP/2 of all frames, handed to the kernel; without what TLS
        // adds.
        .with("bytes_sent_per_s", rate(&summary.bytes_sent_per_s))
        .with("model", run.plan.load.model.name())
        // Arrivals planned in the window.
        .with("planned_per_s", planned(&summary.planned_per_s))
        // Those that were sent in it, without those sent in drain.
        .with("arrivals_sent_per_s", sent_per_s)
        .with("arrivals", scheduled().map(|()| summary.arrivals))
        // Share (0 to 1) of the arrivals planned in the window that found no connection free,
        // whether sent later or never.
        .with("waited_share", planned(&summary.waited_share))
        .with("overload", overload)
        .with("stages", stages(judged))
        // The outcome of the requests issued in the window.
        .with("requests", requests)
        // The outcome of the requests of warm-up that were in flight when the window began, none
        // of which is among `requests`.
        .with("carried_in", summary.carried_in)
        // Complete in the window, whenever their request was sent: the numerator of the headline.
        .with("replies", of_replies)
        .with("statuses", replies)
        .with("failures", &summary.window.failures)
        .with("all_phases", all_phases(run, summary))
        .with("live", live(summary))
        .with("in_flight_mean", &summary.in_flight_mean)
        // Response time of successful replies to requests issued in the window: from the planned
        // instant in an open loop, else from the send. Its quantiles count requests that were never
        // answered in time, and arrivals that were never sent, as longer than they were waited for.
        .with("response", of_response(run))
        // Together with opening the connection of the request: TCP, TLS and HTTP/2 settings. Its
        // quantiles count as `response` does.
        .with("with_connect", with_connect)
        // Of error replies (status 400 and above) to requests issued in the window.
        .with("response_error", durations(&latencies.response_error))
        // Service time, from the send, of the replies in `response`.
        .with("service", service)
        // Brunt's own share of the response times in `response`, on connections with kernel stamps.
        .with("own", latency_if(has_stamps, &split.own, NO_STAMPS))
        // The response times in `response` without brunt's own share, on connections with stamps.
        .with("rest", latency_if(has_stamps, &split.rest, NO_STAMPS))
        .with("above_p99", above_p99)
        // Schedule lag: from the first instant at which brunt could have sent until it did; in a
        // closed loop from a reply to the next request.
        .with("lag", durations(&latencies.lag))
        // From the send of a request to the first byte of its reply, of the replies in `response`.
        .with("first_byte", durations(&latencies.first_byte))
        // From the first byte of a reply until it is complete and parsed, of those in `response`.
        .with("transfer", durations(&latencies.transfer))
        // The TCP handshake of a connection, over all phases.
        .with("connect", durations(&latencies.connect))
        // The TLS handshake of a connection, from the end of the TCP handshake, over all phases.
        .with("tls", latency_if(is_secure, &latencies.tls, "clear text"))
        // Time from the end of the TLS handshake, in clear text of the TCP handshake, until the
        // server's first words, such as its HTTP/2 settings, over all phases.
        .with("greeting", greeting)
        // From the planned instant of a connection to its first reply.
        .with("first_reply", first_reply)
        // Kernel stamps that lay outside of what is possible and were moved, and those of them that
        // lay before the request that they answer was sent.
        .with("stamps_clamped", summary.stamps_clamped)
        .with("stamps_before_send", summary.stamps_before_send)
        // Time that the workers polled without result, all phases. It is part of the CPU time.
        .with("spun_ns", summary.spun_ns)
        .with("client", client(run))
        .with("server", server(judged))
        // Requests over the run by the server's own count.
        .with("server_counted", Figure::from(counted))
        // User and system.
        .with("cpu_ns_per_reply", cpu_ns_per_reply(run, summary))
        // Of several agents the most of any.
        .with("peak_resident_bytes", run.peak_resident_bytes())
        .with("generator", generator(run, summary))
        .with_some("bandwidth", bandwidth(judged))
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

/// The names of the invariants that stand so.
pub(crate) fn ids<'a>(judged: &'a Judged<'_>, status: InvariantStatus) -> Vec<&'a str> {
    let findings = judged.with_status(status);
    findings.map(|finding: &Finding| finding.id).collect()
}

/// Arrivals planned in the window and sent in it, per second of it.
fn arrivals_sent_per_s(run: &Run, summary: &Summary) -> Figure {
    let sent = summary.arrivals.sent_by_end.unwrap_or(0);
    let window_s = run.window_ns as f64 / 1e9;
    Figure::ratio(sent as f64, window_s, "the measure phase has no length")
}

fn clean(judged: &Judged<'_>) -> Figure<Object> {
    match &judged.clean {
        Some(clean) => judged.rate(Figure::Known(clean_figures(clean))),
        None => Figure::Absent("there was no CPU steal, as far as is known".to_owned()),
    }
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

/// Open connections over the window. Fewest and most are the sums of the workers': there were never
/// fewer or more at any instant.
fn live(summary: &Summary) -> Object {
    let live = &summary.live;
    Object::new()
        // To be held; 0 with a schedule of connections.
        .with("asked", live.asked)
        // That there may be.
        .with("most", live.most)
        .with("min", live.min)
        .with("mean", &summary.live_mean)
        .with("max", live.max)
        // When the window began, without those that were just being replaced.
        .with_some("unopened_at_start", live.unopened_at_start)
}

/// Who had the CPUs of brunt's machine over the window.
fn cpus(run: &Run) -> Figure<CpuLedger> {
    if !run.is_plain() {
        return Figure::Absent("several agents have machines of their own".to_owned());
    }
    let ledger = CpuLedger::of(run.first());
    Figure::of(ledger, "the CPUs of the machine were not read")
}

/// Adds the outcome of requests: `issued = successes + errors + failed + censored`.
fn outcomes(object: Object, population: Population, successes: u64, errors: u64) -> Object {
    object
        // Issued in the window: with a schedule of requests those that were planned in it and
        // sent, else those that were sent in it.
        .with("issued", population.issued)
        // Answered with a status below 400 by the end of drain.
        .with("successes", successes)
        // Answered with a status of 400 and above by the end of drain.
        .with("errors", errors)
        .with("failed", population.failed)
        // Neither answered nor failed when drain ended.
        .with("censored", population.censored)
}

/// The figures of each agent. Each has a rate of its own, though all together may have none, unless
/// invariants are broken.
fn agents(judged: &Judged<'_>) -> Vec<Object> {
    let run = judged.run;
    let agents = run.agents.chunks(1).map(|alone| {
        let (agent, summary) = (&alone[0], Summary::of(run, alone));
        let successes_per_s = if judged.is_valid() {
            summary.successes_per_s
        } else {
            judged.rate(summary.successes_per_s)
        };
        Object::new()
            .with("id", &agent.id)
            // What it is called in its fleet; left out without one.
            .with_some("name", agent.fleet.as_ref().map(|fleet| &fleet.name))
            // The wall clock when its window began, milliseconds since 1970-01-01 UTC.
            .with("window_start_unix_ms", agent.clock.window_start_unix_ms)
            .with("connections", agent.share.connections)
            .with("workers", agent.share.workers)
            .with("backend", agent.backend)
            .with("successes", summary.window.replies.successes())
            .with("successes_per_s", successes_per_s)
    });
    agents.collect()
}

/// Whether each objective was reached. What was asked as numbers stands in the run's `objectives`,
/// in the same order.
fn objectives(judged: &Judged<'_>) -> Vec<Object> {
    let outcomes = judged.objectives().into_iter().map(|outcome| {
        let reason = outcome.reason.as_deref().unwrap_or("it has no interval");
        Object::new()
            .with("asked", objective::asked(&outcome.objective))
            .with("met", outcome.is_met)
            // In the unit of the limit: nanoseconds, a share (0 to 1), or per second.
            .with("measured", Figure::of(outcome.measured, reason))
            // The end of its 95 % interval that was compared with the limit.
            .with("bound", Figure::of(outcome.bound, reason))
    });
    outcomes.collect()
}

/// What the hypervisor left of a window in which it took time from the CPUs that brunt or the
/// server used: figures of the parts in which it took nothing. They need 2 s and half of the
/// window.
fn clean_figures(clean: &Clean) -> Object {
    let unknown = "when there was CPU steal was not recorded";
    let reason = match clean.clean_ns {
        Some(_) => "the hypervisor left too little of the window",
        None => unknown,
    };
    let figures = || Figure::of(clean.figures.as_ref(), reason);
    let interval = |clean: &CleanFigures| Figure::from(clean.successes_interval);
    let own = |clean: &CleanFigures| Figure::of(clean.own_share, "no reply with kernel stamps");
    let response =
        figures().map(|clean| distribution(&clean.response, None, |q| clean.response_quantile(q)));
    Object::new()
        .with("clean_ns", Figure::of(clean.clean_ns, unknown))
        .with("successes_per_s", figures().map(|one| one.successes_per_s))
        .with("successes_interval_95", figures().and_then(interval))
        // Brunt's own share (0 to 1) of the response times, on connections with kernel stamps.
        .with("own_share", figures().and_then(own))
        // Of the successful replies that completed in these parts, all to 0.4 %, the extremes too.
        // Requests that were never answered count as in the response time of the whole window.
        .with("response", response)
}

/// Connections opened beyond the number that there may be: each took the place of an earlier one.
/// 0 with a schedule of connections, of which none replaces another.
pub(crate) fn connections_replaced(run: &Run, summary: &Summary) -> u64 {
    if matches!(run.plan.load.model, LoadModel::Sessions { .. }) || run.work() == Work::Connects {
        return 0;
    }
    let live = &summary.live;
    let opened = summary.lifetime.connections_opened;
    opened.saturating_sub(live.asked.max(live.most).into())
}

/// Requests and connections of all phases: `sent = answered + failed + in_flight`.
fn all_phases(run: &Run, summary: &Summary) -> Object {
    let all = &summary.lifetime;
    let failed = all.failures.of_requests(run.work());
    let connect_failures = all.failures.total(FailureScope::Connect);
    Object::new()
        // Each request once, however often it was sent.
        .with("sent", all.requests_sent)
        .with("sent_again", all.sent_again)
        .with("answered", all.replies.total())
        .with("failed", failed)
        .with("in_flight", summary.in_flight_at_end)
        .with("connect_failures", connect_failures)
        .with("connections_opened", all.connections_opened)
        .with("connections_replaced", connections_replaced(run, summary))
        // While no request was in flight.
        .with("connections_closed_by_server", all.connections_closed_idle)
        .with("goaways", all.goaways)
        // Times that the server allowed no streams on an open connection for a while (HTTP/2).
        .with("connections_shut", all.connections_shut)
        .with("handshakes_full", all.handshakes_full)
        .with("handshakes_resumed", all.handshakes_resumed)
        // Bytes received that belong to no reply by their nature: TLS handshakes and what TLS
        // records add, frames about an HTTP/2 connection as a whole.
        .with("overhead_bytes", all.overhead_bytes)
}

/// What made the requests while the run went on, such as a script, of all workers. Times are
/// estimates: some of the calls are timed.
fn generator(run: &Run, summary: &Summary) -> Figure<Object> {
    let Some((used, workers)) = run.generator_use() else {
        return Figure::Absent("the requests were those of the plan".to_owned());
    };
    let (issued, time_ns) = (summary.population.issued as f64, used.time_ns());
    let ns_per_request = Figure::ratio(time_ns as f64, issued, "no request was issued");
    let share = used.share(workers, run.window_ns);
    let sessions = Figure::of(used.sessions, "no sessions were replayed");
    let generator = Object::new()
        .with("calls", used.calls)
        .with("reported", used.reported)
        .with("time_ns", time_ns)
        .with("ns_per_request", ns_per_request)
        // Of the workers' time, which is part of brunt's own share.
        .with("workers_share", Figure::of(share, "there was no window"))
        // Contents of responses that were longer than is kept for it, of all phases.
        .with("truncated", used.truncated)
        .with("error", Figure::of(used.error, "there was none"))
        .with("sessions", sessions);
    Figure::Known(generator)
}

/// The outcome of the requests of one name that were issued in the window. Quantiles have two
/// significant digits, and are left out where there are too few samples, or where they depend on
/// what was never answered.
pub(crate) fn name(record: &NameRecord) -> Object {
    let known = |q| record.response_quantile(q).known_ns();
    let unfinished = record.unfinished.max_ns().unwrap_or(0);
    let longest = record.response.max_ns().filter(|&ns| ns >= unfinished);
    let name = Object::new()
        .with("name", &record.name)
        .with("requests_sent", record.requests_sent);
    outcomes(
        name,
        record.population,
        record.response.count(),
        record.errors(),
    )
    .with_some("response_p50_ns", known(0.5))
    .with_some("response_p99_ns", known(0.99))
    .with_some("response_max_ns", longest)
}

/// A stage with its record, and how much of it lay in the window.
pub(crate) struct RecordedStage<'a> {
    pub(crate) asked: &'a Stage,
    pub(crate) record: &'a StageRecord,
    pub(crate) measured_ns: u64,
}

impl RecordedStage<'_> {
    /// Successes per second; absent where none of the stage lay in the window.
    pub(crate) fn successes_per_s(&self) -> Figure {
        let successes = self.record.response.count() as f64;
        let measured_s = self.measured_ns as f64 / 1e9;
        Figure::ratio(successes, measured_s, "the window ended before it")
    }
}

/// The stages of `run`, first to last.
///
/// # Errors
///
/// Why there are none.
pub(crate) fn recorded_stages(run: &Run) -> Result<Vec<RecordedStage<'_>>, String> {
    let asked = run
        .plan
        .load
        .model
        .schedule()
        .map_or(&[][..], Schedule::stages);
    let records = &run.latencies.stages;
    if asked.is_empty() {
        return Err("no stages".to_owned());
    }
    if asked.len() > STAGES_RECORDED_MAX {
        return Err(format!("recorded of up to {STAGES_RECORDED_MAX} stages"));
    }
    if records.is_empty() {
        return Err("not recorded".to_owned());
    }
    let mut left_ns = run.window_ns;
    let stages = asked.iter().zip(records).map(|(asked, record)| {
        let measured_ns = asked.duration_ns.min(left_ns);
        left_ns -= measured_ns;
        RecordedStage {
            asked,
            record,
            measured_ns,
        }
    });
    Ok(stages.collect())
}

/// The figures of all stages.
fn stages(judged: &Judged<'_>) -> Figure<Vec<Object>> {
    let stages = Figure::from(recorded_stages(judged.run));
    stages.map(|stages| stages.iter().map(|one| stage(judged, one)).collect())
}

/// The outcome of the requests that were due in one stage, whenever they were answered.
fn stage(judged: &Judged<'_>, stage: &RecordedStage<'_>) -> Object {
    let (asked, record) = (stage.asked, stage.record);
    let quantile = |q| record.response_quantile(q);
    let response = distribution(&record.response, Some(&record.unfinished), quantile);
    let figures = Object::new()
        .with("from_per_s", asked.from_per_s)
        .with("to_per_s", asked.to_per_s)
        .with("duration_ns", asked.duration_ns)
        // How much of it lay in the window: less in a run that ended early.
        .with("measured_ns", stage.measured_ns)
        .with("arrivals", record.arrivals);
    outcomes(
        figures,
        record.population,
        record.response.count(),
        record.errors(),
    )
    .with("successes_per_s", judged.rate(stage.successes_per_s()))
    // From the planned instant, to two significant digits; minimum, maximum and mean are exact.
    .with("response", response)
}

/// CPU of brunt over the window: of its process, or of its workers alone where the process also
/// held the server.
fn client(run: &Run) -> Object {
    let cpu = Figure::from(run.client_cpu());
    let figure = |value: fn(CpuUse) -> f64| cpu.clone().map(value);
    Object::new()
        .with("cpu_user_s", figure(|cpu| cpu.user_ns / 1e9))
        .with("cpu_system_s", figure(|cpu| cpu.system_ns / 1e9))
        .with("cpus_used", figure(|cpu| cpu.cpus()))
}

/// CPU of brunt per complete reply of the window, nanoseconds: also where the process held the
/// server too, if the workers' own CPU was read.
pub(crate) fn cpu_ns_per_reply(run: &Run, summary: &Summary) -> Figure {
    match run.client_cpu() {
        Ok(cpu) if run.own_server() => Figure::ratio(
            cpu.user_ns + cpu.system_ns,
            summary.window.replies.total() as f64,
            "no complete reply",
        ),
        _ => summary.cpu_ns_per_reply.clone(),
    }
}

/// Complete replies of the window per second of the server's CPU. Both are taken per second of
/// their own interval: the readings of the server need not span the window.
pub(crate) fn requests_per_cpu_s(run: &Run, summary: &Summary, server: &ServerEvidence) -> Figure {
    if run.work() == Work::Streams {
        return Figure::Absent("streams carry no requests".to_owned());
    }
    let per_s = summary.window.replies.total() as f64 / (run.window_ns as f64 / 1e9);
    Figure::of(server.cpu_use(), READ_ONCE).and_then(|cpu| {
        let reason = "no CPU time of the server was seen";
        Figure::ratio(per_s, cpu.cpus(), reason)
    })
}

/// The server's own count of requests over the run; absent where that went back.
pub(crate) fn server_counted(run: &Run) -> Option<Result<u64, String>> {
    let count = match run.server_count() {
        Ok(count) => count?,
        Err(reason) => return Some(Err(reason)),
    };
    let (before, after) = (count.before, count.after);
    let went_back = || format!("the server's count went back, from {before} to {after}");
    Some(after.checked_sub(before).ok_or_else(went_back))
}

const READ_ONCE: &str = "the server was not read twice";

/// CPUs that the server used on average, between the first reading of it in the window and the last
/// one.
pub(crate) fn server_cpus_used(run: &Run) -> Option<f64> {
    let server = run.evidence_of_server().server.as_ref()?;
    Some(server.cpu_use()?.cpus())
}

/// What the server used, between the first reading of it in the window and the last one, where it
/// was watched.
fn server(judged: &Judged<'_>) -> Figure<Object> {
    let evidence = judged.run.evidence_of_server();
    let missing = |path: &str| evidence.missing.get(path).map(String::as_str);
    let Some(server) = &evidence.server else {
        let reason = missing("server").unwrap_or("the server was not watched");
        return Figure::Absent(reason.to_owned());
    };
    let scope = match server.scope {
        ServerScope::Processes { .. } => "processes",
        ServerScope::OwnThreads => "own_threads",
    };
    let cpu = server.cpu_use();
    let used = |value: fn(&CpuUse) -> f64| Figure::of(cpu.as_ref().map(value), READ_ONCE);
    let unread = |path: &str| missing(path).unwrap_or("it could not be read");
    let most = |path: &str, most: Option<u64>| Figure::of(most, unread(path));
    let per_cpu_s = judged.rate(requests_per_cpu_s(judged.run, &judged.summary, server));
    let (resident, descriptors) = ("server.resident_bytes_max", "server.descriptors_max");
    let server = Object::new()
        .with("name", &server.name)
        // What of it was watched.
        .with("scope", scope)
        .with("cpu_user_s", used(|cpu| cpu.user_ns / 1e9))
        .with("cpu_system_s", used(|cpu| cpu.system_ns / 1e9))
        .with("cpus_used", used(CpuUse::cpus))
        // CPUs that it may use.
        .with("cpus", Figure::of(server.cpus, unread("server.cpus")))
        .with("requests_per_cpu_s", per_cpu_s)
        .with(
            "resident_bytes_max",
            most(resident, server.resident_bytes_max),
        )
        .with("descriptors_max", most(descriptors, server.descriptors_max));
    Figure::Known(server)
}

/// What streams moved over the window, and what held them up, by the kernel's accounts of all of
/// them. Absent in a run of requests.
fn bandwidth(judged: &Judged<'_>) -> Option<Object> {
    const NOT_KEPT: &str = "one stream, or too many to keep each";
    const NOT_COUNTED: &str = "the server's own count was not read";
    const NO_RTT: &str = "the kernel gave none";
    let run = judged.run;
    let one_way = run.plan.one_way()?;
    let found = Bandwidth::of(run, &judged.summary);
    let window = &found.window;
    let up_bytes_per_s = if one_way.sends {
        found.up_bytes_per_s
    } else {
        Figure::Absent("brunt did not send".to_owned())
    };
    let share = |ns: u64| Figure::ratio(ns as f64, window.busy_ns as f64, "nothing was sent");
    let cpu_s = |ns_per_gb: Figure| judged.rate(ns_per_gb).map(|ns| ns / 1e9);
    let (least, most) = found.extremes.unzip();
    let [up, down] = [found.up_counts, found.down_counts].map(|counts| Some(counts?.server));
    let intervals = match judged.withheld() {
        Some(_) => Vec::new(),
        None => run.bandwidth_intervals(),
    };
    let by_window = share(window.receive_window_limited_ns);
    let by_buffers = share(window.send_buffer_limited_ns);
    let down_bytes_whole_run = judged.summary.lifetime.bytes_received;
    let server_read = judged.rate(found.server_read_bytes_per_s);
    let server_sent = judged.rate(found.server_sent_bytes_per_s);
    let bandwidth = Object::new()
        // Acknowledged by the server's kernel.
        .with("up_bytes_per_s", judged.rate(up_bytes_per_s))
        .with("down_bytes_per_s", judged.rate(found.down_bytes_per_s))
        .with("up_bytes", window.bytes_acked)
        .with("down_bytes", window.bytes_received)
        .with("streams", found.streams)
        .with("stream_bytes_min", Figure::of(least, NOT_KEPT))
        .with("stream_bytes_max", Figure::of(most, NOT_KEPT))
        // With payload, those sent again among them.
        .with("segments_sent", window.segments_sent)
        .with("segments_retransmitted", window.segments_retransmitted)
        .with("bytes_retransmitted", window.bytes_retransmitted)
        .with("min_rtt_ns", Figure::of(found.min_rtt_ns, NO_RTT))
        // The mean at the end of the window.
        .with("smoothed_rtt_ns", Figure::of(found.smoothed_rtt_ns, NO_RTT))
        // What the paths delivered lately, all streams together.
        .with("delivery_bytes_per_s", found.delivery_bytes_per_s)
        // Time in which streams had something to send, summed over them.
        .with("busy_ns", window.busy_ns)
        // In which the server's receive window, and our send buffers, held streams up.
        .with("receive_window_limited_share", by_window)
        .with("send_buffer_limited_share", by_buffers)
        // Over the whole run, warm-up and drain included, by us and by the server (--verify-url).
        .with("up_bytes_whole_run", found.lifetime.bytes_acked)
        .with("server_read_bytes", Figure::of(up, NOT_COUNTED))
        .with("down_bytes_whole_run", down_bytes_whole_run)
        .with("server_sent_bytes", Figure::of(down, NOT_COUNTED))
        // In the window, by the count and clock of `brunt serve`.
        .with("server_read_bytes_per_s", server_read)
        .with("server_sent_bytes_per_s", server_sent)
        // Per 10^9 bytes, both ways together.
        .with("client_cpu_s_per_gb", cpu_s(found.cpu_ns_per_gb))
        .with("server_cpu_s_per_gb", cpu_s(found.server_cpu_ns_per_gb))
        // Between readings of the accounts.
        .with("intervals", intervals);
    Some(bandwidth)
}

/// The quantiles of a distribution, by their names in data.
const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// A distribution, nanoseconds, in which all that was measured ended.
fn durations(histogram: &Histogram) -> Object {
    distribution(histogram, None, |q| Quantile::of(histogram, q))
}

/// The response times of `run`. Its quantiles count requests that were never answered as longer
/// than brunt waited for them.
fn of_response(run: &Run) -> Object {
    let (ended, unfinished) = (&run.latencies.response, Some(&run.latencies.unfinished));
    distribution(ended, unfinished, |q| run.response_quantile(q))
}

/// A distribution, nanoseconds, with the least values of mean and maximum where these are not
/// known, for what is `unfinished`. A quantile is null when there are too few samples for it, or
/// when only a lower bound is known.
fn distribution(
    histogram: &Histogram,
    unfinished: Option<&Histogram>,
    quantile: impl Fn(f64) -> Quantile,
) -> Object {
    const NO_SAMPLE: &str = "no sample";
    let (mut intervals, mut at_least_ns) = (BTreeMap::new(), BTreeMap::new());
    let mut object = Object::new()
        .with("count", histogram.count())
        .with("min_ns", Figure::of(histogram.min_ns(), NO_SAMPLE))
        // Of those that ended.
        .with("mean_ns", Figure::of(histogram.mean_ns(), NO_SAMPLE));
    for (name, q) in QUANTILES {
        let figure = match quantile(q) {
            Quantile::Known { ns, interval } => {
                if interval != Err(NoInterval::NotOverTime) {
                    intervals.insert(name, Figure::<Interval>::from(interval));
                }
                Figure::Known(ns)
            }
            Quantile::AtLeast { ns } => {
                at_least_ns.insert(name, ns);
                Figure::Absent("only a lower bound is known".to_owned())
            }
            Quantile::TooFew { samples, needed } => {
                Figure::Absent(format!("too few samples ({samples}, need {needed})"))
            }
        };
        object = object.with(&format!("{name}_ns"), figure);
    }
    if let Some(unfinished) = unfinished {
        at_least_ns.extend(mean_at_least_ns(histogram, unfinished).map(|ns| ("mean", ns)));
        at_least_ns.extend(max_at_least_ns(histogram, unfinished).map(|ns| ("max", ns)));
    }
    object
        // Of those that ended, exact.
        .with("max_ns", Figure::of(histogram.max_ns(), NO_SAMPLE))
        // Two-sided, of the quantiles that are known; null where the run cannot tell how well. Of
        // response times alone: how other durations varied over the window is not recorded.
        .with("interval_95", intervals)
        // Where requests that were never answered would have taken longer.
        .with("at_least_ns", at_least_ns)
}

/// Fields in their order, or why one has no JSON form.
#[derive(Debug)]
pub(crate) struct Object(serde_json::Result<Map<String, Value>>);

impl Object {
    /// An object without fields.
    pub(crate) fn new() -> Self {
        Self(Ok(Map::new()))
    }

    /// The fields of `value`.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        Self(serde_json::to_value(value).and_then(serde_json::from_value))
    }

    /// The object with a field more.
    pub(crate) fn with(self, name: &str, value: impl Serialize) -> Self {
        Self(self.0.and_then(|mut fields| {
            fields.insert(name.to_owned(), serde_json::to_value(value)?);
            Ok(fields)
        }))
    }

    /// The object with a field more, where it has a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The object with `absent` at its end: why a figure is null, by the path of the figure, such
    /// as `response.p99_9_ns`.
    pub(crate) fn with_reasons(self) -> Self {
        let mut reasons = BTreeMap::new();
        let fields = self.0.map(|mut fields| {
            for (name, field) in &mut fields {
                take_reasons(field, name, &mut reasons);
            }
            fields
        });
        Self(fields).with("absent", &reasons)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(fields) => fields.serialize(serializer),
            Err(error) => Err(S::Error::custom(error)),
        }
    }
}

/// Puts null in the place of each absent figure within `value`, and its reason among `reasons`.
fn take_reasons(value: &mut Value, path: &str, reasons: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reason)) = fields.remove(ABSENT_KEY) {
                reasons.insert(path.to_owned(), reason);
                *value = Value::Null;
                return;
            }
            for (name, field) in fields {
                take_reasons(field, &format!("{path}.{name}"), reasons);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                take_reasons(item, &format!("{path}.{index}"), reasons);
            }
        }
        _ => {}
    }
}

/// What a program wants to know of a run, or of what a search found: one flat object. Null is what
/// is unknown, withheld, or without meaning.
#[derive(Default, Serialize)]
struct FlatSummary {
    tool: &'static str,
    version: String,
    url: String,
    protocol: String,
    /// That were asked for; with planned connections, the most at once.
    connections: u32,
    duration_s: f64,
    /// Requests (messages, in such a run) that were issued in the window.
    requests: u64,
    /// Complete in the window, whatever their status, and those of each class of it.
    responses: u64,
    responses_2xx: Option<u64>,
    responses_3xx: Option<u64>,
    responses_4xx: Option<u64>,
    responses_5xx: Option<u64>,
    /// Requests issued in the window that failed: refused, reset, closed, malformed, timed out.
    failures: u64,
    /// Sends in the window of requests that the server had not processed before. Each such request
    /// counts once, with its last outcome.
    sent_again: u64,
    /// Successful responses (status below 400) per second of the window.
    rate_per_s: Option<f64>,
    /// Requests per second of the window; null in a closed loop.
    target_rate_per_s: Option<f64>,
    rate_ratio: Option<f64>,
    /// The longest time from the first instant at which brunt could have sent a request until it
    /// did.
    schedule_lag_max_us: Option<f64>,
    /// Of successful responses. With a planned rate it counts from the planned instant, else from
    /// the send.
    latency_mean_us: Option<f64>,
    latency_p50_us: Option<f64>,
    latency_p90_us: Option<f64>,
    latency_p99_us: Option<f64>,
    /// Null with under 3,688 samples.
    latency_p99_9_us: Option<f64>,
    latency_max_us: Option<f64>,
    received_bytes_per_s: Option<f64>,
    client_cpus: Option<f64>,
    /// Null where brunt could not see it.
    server_cpus: Option<f64>,
    /// Brunt's own part of the mean response time, 0 to 1, by time stamps of the kernel.
    own_share: Option<f64>,
    /// Seconds that the rate and the latencies are of, where that is not the whole window: those in
    /// which the hypervisor took nothing, on which the verdict rests.
    undisturbed_s: Option<f64>,
    /// Over the whole window, where `undisturbed_s` is not null.
    latency_p99_whole_us: Option<f64>,
    /// Whether the latencies are those of what was measured: false where `valid` is, and where most
    /// of p50, p90, p99 or p99.9 is brunt's own.
    latency_valid: bool,
    /// Whether no invariant is broken. If false, rates are null.
    valid: bool,
    /// What limited the run, such as `server_limited`.
    verdict: String,
    because: String,
}

/// The summary of a run.
pub(crate) fn summary(judged: &Judged<'_>) -> Object {
    let (run, summary) = (judged.run, &judged.summary);
    let (replies, undisturbed) = (&summary.window.replies, judged.undisturbed());
    let of_class = |class| run.protocol().has_statuses.then(|| replies.class(class));
    let is_open = matches!(run.plan.load.model, LoadModel::Open { .. });
    let target_rate_per_s = summary.planned_per_s.known().filter(|_| is_open);
    let planned = target_rate_per_s.map(|_| summary.arrivals.planned as f64);
    let rate = |figure: Figure| judged.rate(figure).known().map(rounded);
    let clean = undisturbed.filter(|_| judged.withheld().is_none());
    let response = clean.map_or(&run.latencies.response, |clean| &clean.response);
    let whole_window_us = |q| run.response_quantile(q).known_ns().map(whole_us);
    let quantile_us = |q| match clean {
        Some(clean) => clean.response_quantile(q).known_ns().map(whole_us),
        None => whole_window_us(q),
    };
    let own_share = match undisturbed {
        Some(clean) => clean.own_share,
        None => run.latencies.split.mean().and_then(|all| all.own_share()),
    };
    Object::of(&FlatSummary {
        tool: "brunt",
        version: printable(&run.brunt_version).into_owned(),
        url: printable(&run.plan.urls()).into_owned(),
        protocol: run.protocol().name.to_owned(),
        connections: run.plan.load.connections.get(),
        duration_s: run.window_ns as f64 / 1e9,
        requests: summary.population.issued,
        responses: replies.total(),
        responses_2xx: of_class(2),
        responses_3xx: of_class(3),
        responses_4xx: of_class(4),
        responses_5xx: of_class(5),
        failures: summary.population.failed,
        sent_again: summary.window.sent_again,
        rate_per_s: rate(judged.successes_per_s()),
        target_rate_per_s: target_rate_per_s.map(rounded),
        rate_ratio: rate_ratio(replies.total(), planned),
        schedule_lag_max_us: run.latencies.lag.max_ns().map(whole_us),
        latency_mean_us: response.mean_ns().map(|ns| rounded(ns / 1e3)),
        latency_p50_us: quantile_us(0.5),
        latency_p90_us: quantile_us(0.9),
        latency_p99_us: quantile_us(0.99),
        latency_p99_9_us: quantile_us(0.999),
        latency_max_us: response.max_ns().map(whole_us),
        received_bytes_per_s: rate(summary.bytes_received_per_s.clone()),
        client_cpus: run.client_cpu().ok().map(|cpu| rounded(cpu.cpus())),
        server_cpus: server_cpus_used(run).map(rounded),
        own_share: own_share.map(rounded),
        undisturbed_s: clean.map(|one| one.clean_ns as f64 / 1e9),
        latency_p99_whole_us: clean.and_then(|_| whole_window_us(0.99)),
        latency_valid: judged.is_valid() && judged.judgement.mostly_own.is_none(),
        valid: judged.is_valid(),
        verdict: data_name(judged.judgement.verdict),
        because: printable(&judged.judgement.because).into_owned(),
    })
}

/// What a search found, as the summary of the run at the highest rate that holds: the planned rate
/// is the answer, and `because` says it in words. Where none holds, both rates are null, and the
/// counts are those of the last step.
pub(crate) fn summary_of_search(capacity: &Capacity, because: &str) -> Option<Object> {
    let held_per_s = capacity.result().met_per_s;
    let step = capacity.step_at(held_per_s)?;
    let (record, response) = (&step.record, &step.record.response);
    let statuses = Some(&record.statuses).filter(|all| all.iter().next().is_some());
    let answered = record.successes.saturating_add(record.errors);
    let responses = statuses.map_or(answered, |statuses| statuses.total());
    let of_class = |class| statuses.map(|statuses| statuses.class(class));
    let quantile_us = |q| response.quantile_ns(q).map(whole_us);
    let cpus = |used: RoundUse| Some(rounded(used.user_cpus? + used.system_cpus?));
    let window_s = record.window_ns as f64 / 1e9;
    let planned = record.planned_per_s.map(|per_s| per_s * window_s);
    let load = capacity.load.as_ref();
    let is_valid = step.outcome != CapacityOutcome::Invalid;
    Some(Object::of(&FlatSummary {
        tool: "brunt",
        version: printable(&capacity.brunt_version).into_owned(),
        url: printable(&capacity.plan.url).into_owned(),
        protocol: printable(record.protocol.as_deref().unwrap_or("")).into_owned(),
        connections: load.map_or(0, |plan| plan.load.connections.get()),
        duration_s: window_s,
        requests: record.issued,
        responses,
        responses_2xx: of_class(2),
        responses_3xx: of_class(3),
        responses_4xx: of_class(4),
        responses_5xx: of_class(5),
        failures: record.failed,
        sent_again: record.sent_again,
        rate_per_s: held_per_s.and(record.successes_per_s).map(rounded),
        target_rate_per_s: held_per_s.map(rounded),
        rate_ratio: rate_ratio(responses, planned),
        latency_mean_us: response.mean_ns.map(whole_us),
        latency_p50_us: quantile_us(0.5),
        latency_p90_us: quantile_us(0.9),
        latency_p99_us: quantile_us(0.99),
        latency_p99_9_us: quantile_us(0.999),
        latency_max_us: response.max_ns.map(whole_us),
        client_cpus: cpus(record.client),
        server_cpus: record.server.and_then(cpus),
        undisturbed_s: record.undisturbed_ns.map(|ns| ns as f64 / 1e9),
        latency_valid: is_valid && record.verdict != Verdict::ClientLimited,
        valid: is_valid,
        verdict: data_name(record.verdict),
        because: printable(because).into_owned(),
        ..FlatSummary::default()
    }))
}

/// Responses in the window, whatever their status, per planned request: 1 where the rate was
/// reached. Null in a closed loop.
fn rate_ratio(responses: u64, planned: Option<f64>) -> Option<f64> {
    let planned = planned.filter(|&planned| planned > 0.0)?;
    Some(responses as f64 / planned)
}

/// Microseconds; exact, as a nanosecond is their third decimal.
fn whole_us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// `value` with three decimals: more are noise.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Writes a summary as one line.
pub(crate) fn write_summary(summary: &Object, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let line = serde_json::to_string(summary).map_err(ReportError::Encode)?;
    Ok(writeln!(out, "{line}")?)
}

/// Writes a summary as a table: a header and one row, in which what is null is empty.
pub(crate) fn write_summary_table(
    summary: Object,
    out: &mut dyn io::Write,
) -> Result<(), ReportError> {
    let (names, values): (Vec<_>, Vec<_>) =
        summary.0.map_err(ReportError::Encode)?.into_iter().unzip();
    let cells = values.into_iter().map(|value| match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        number => number.to_string(),
    });
    write_csv(&names, [cells.collect()].into_iter(), out)
}
