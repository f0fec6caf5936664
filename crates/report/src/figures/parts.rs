//! The objects within the figures of a run: agents, stages, names, objectives, client and server,
//! streams.

use brunt_judge::{Bandwidth, Clean, CleanFigures, Figure, Judged, ResponseQuantiles};
use brunt_judge::{RunFigures, Summary};
use brunt_load::{LoadModel, Schedule, Stage};
use brunt_record::{
    CpuUse, FailureScope, NameRecord, Population, Run, STAGES_RECORDED_MAX, ServerEvidence,
    ServerScope, StageRecord,
};

use super::latency::Latency;
use crate::object::Object;
use crate::objective;

/// Adds the outcome of requests: `issued = successes + errors + failed + censored`.
pub(super) fn outcomes(
    object: Object,
    population: Population,
    successes: u64,
    errors: u64,
) -> Object {
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
pub(super) fn agents(judged: &Judged<'_>) -> Vec<Object> {
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
pub(super) fn objectives(judged: &Judged<'_>) -> Vec<Object> {
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
pub(super) fn clean(clean: &Clean) -> Object {
    let unknown = "when the hypervisor took time was not recorded";
    let reason = match clean.clean_ns {
        Some(_) => "the hypervisor left too little of the window",
        None => unknown,
    };
    let figures = || Figure::of(clean.figures.as_ref(), reason);
    let interval = |it: &CleanFigures| Figure::from(it.successes_interval);
    let own = |it: &CleanFigures| Figure::of(it.own_share, "no reply with kernel stamps");
    Object::new()
        .with("clean_ns", Figure::of(clean.clean_ns, unknown))
        .with("successes_per_s", figures().map(|it| it.successes_per_s))
        .with("successes_interval_95", figures().and_then(interval))
        // Brunt's own share (0 to 1) of the response times, on connections with kernel stamps.
        .with("own_share", figures().and_then(own))
        // Of the successful replies that completed in these parts, all to 0.4 %, the extremes too.
        // Requests that were never answered count as in the response time of the whole window.
        .with("response", figures().map(Latency::of_clean))
}

/// Connections opened beyond the number that there may be: each took the place of an earlier one.
/// 0 with a schedule of connections, of which none replaces another.
pub(crate) fn connections_replaced(run: &Run, summary: &Summary) -> u64 {
    if matches!(run.plan.model, LoadModel::Sessions { .. }) || run.plan.connects_only() {
        return 0;
    }
    let live = &summary.live;
    let opened = summary.lifetime.connections_opened;
    opened.saturating_sub(live.asked.max(live.most).into())
}

/// Requests and connections of all phases: `sent = answered + failed + in_flight`.
pub(super) fn all_phases(run: &Run, summary: &Summary) -> Object {
    let all = &summary.lifetime;
    let failed = all.failures.of_requests(run.plan.connects_only());
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
pub(super) fn generator(run: &Run, summary: &Summary) -> Figure<Object> {
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
    let asked = run.plan.model.schedule().map_or(&[][..], Schedule::stages);
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
pub(super) fn stages(judged: &Judged<'_>) -> Figure<Vec<Object>> {
    let stages = Figure::from(recorded_stages(judged.run));
    stages.map(|stages| stages.iter().map(|it| stage(judged, it)).collect())
}

/// The outcome of the requests that were due in one stage, whenever they were answered.
fn stage(judged: &Judged<'_>, stage: &RecordedStage<'_>) -> Object {
    let (asked, record) = (stage.asked, stage.record);
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
    .with("response", Latency::of_stage(record))
}

/// CPU of brunt over the window: of its process, or of its workers alone where the process also
/// held the server.
pub(super) fn client(run: &Run) -> Object {
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
    if run.is_streams() {
        return Figure::Absent("streams carry no requests".to_owned());
    }
    let replies = summary.window.replies.total() as f64;
    match (server.cpu_use(), run.window_ns) {
        (_, 0) => Figure::Absent("the measure phase has no length".to_owned()),
        (None, _) => Figure::Absent(READ_ONCE.to_owned()),
        (Some(cpu), window_ns) => Figure::ratio(
            replies / (window_ns as f64 / 1e9),
            cpu.cpus(),
            "no CPU time of the server was seen",
        ),
    }
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
pub(super) fn server(judged: &Judged<'_>) -> Figure<Object> {
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
pub(super) fn bandwidth(judged: &Judged<'_>) -> Option<Object> {
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
    let [up, down] = [found.up_counts, found.down_counts].map(|it| it.map(|it| it.server));
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
        .with("down_bytes", found.down_bytes)
        .with("streams", found.streams)
        .with("stream_bytes_min", Figure::of(least, NOT_KEPT))
        .with("stream_bytes_max", Figure::of(most, NOT_KEPT))
        // Jain's index of the bytes of the streams: 1 where all moved as many.
        .with("fairness", Figure::of(found.fairness, NOT_KEPT))
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
