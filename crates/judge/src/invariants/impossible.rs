//! I1 to I5, I7, I8 and T1: figures that no run can have, by themselves or beside the counts of the
//! kernel and of the server.

use brunt_load::Work;
use brunt_record::{Backend, Histogram, ServerCount, after_ns};

use crate::facts::Facts;
use crate::invariants::sums::{CPU_READING_NS, sum};
use crate::invariants::{CheckOutcome, Checked, Problems, known, must, only_if, sums};
use crate::units::exact::{percent, time};
use crate::units::plural;

/// The factor by which rate times service time may exceed the connections, because of rounding and
/// clock readings.
const LITTLE_OVER: f64 = 1.02;
/// Share of the connections that must be busy in a closed loop where none is ever idle once it has
/// had its first request.
const LITTLE_UNDER: f64 = 0.9;
/// When the requests across the window's edges could account for more than this, the product of
/// rate and service time says nothing.
const LITTLE_EDGES: f64 = 0.1;
/// Windows shorter than this start and stop too coarsely to tell whether connections idle.
const BUSY_WINDOW_LEAST_NS: u64 = 500_000_000;
/// Rounding of the kernel's round trip: whole microseconds.
const RTT_ROUNDING_NS: u64 = 1_000;
/// The kernel forgets the smallest round trip after `tcp_min_rtt_wlen`, 300 s.
const RTT_KEPT_NS: u64 = 300_000_000_000;
/// Granularity of CPU readings as a share of the interval between them, beside their fixed one.
const CPU_READING_SHARE: f64 = 0.01;
/// The least CPU that a kernel needs for one request, nanoseconds.
const CPU_PER_REPLY_LEAST_NS: f64 = 300.0;
/// Fewer replies than this do not weigh against the granularity of CPU readings.
const CPU_REPLIES_LEAST: u64 = 100_000;

/// I1. Upwards two things must hold: the product of the printed figures, with an allowance for
/// requests that cross the window's edges, and the integral of requests in flight, which has no
/// edges. Downwards the integral alone. The integral itself must be that of the requests whose
/// times are in the histograms and of those that warm-up left.
pub(super) fn little(facts: &Facts<'_>) -> Checked {
    let (run, summary) = (facts.run, &facts.summary);
    only_if(!facts.no_window(), "there is no window")?;
    let streams = "streams have no requests, hence no response times";
    only_if(run.work() != Work::Streams, streams)?;
    let depth = f64::from(run.depth().max(1));
    let mean_of = |ns: u64| ns as f64 / facts.run.window_ns as f64;
    // Attempts to connect take places for connections, and not connections.
    let attempts_most = (run.work() == Work::Connects).then(|| run.plan.connections_most());
    // What waits to be sent again is under way, and has no place on any connection.
    let awaiting_again = mean_of(summary.awaiting_again_ns);
    let live_mean = mean_of(summary.live.connection_ns);
    let room = attempts_most.map_or(live_mean, f64::from) * depth + awaiting_again;
    let busy = mean_of(summary.in_flight_ns);
    let words = format!("mean in flight {busy:.2}, connections times depth {room:.2}");
    // A run by count knows its end too late to cut the integral there.
    let by_count = facts.ended_by_count();
    let carried_in = &summary.carried_in;
    let live_max = attempts_most.unwrap_or(summary.live.max);
    let places = u128::from(live_max) * u128::from(run.depth().max(1));
    let requests = plural(carried_in.in_flight, "request");
    let carried = format!("{requests} in flight when the window began, in {places} places");
    let had_places = u128::from(carried_in.in_flight) <= places || summary.awaiting_again_ns > 0;
    must(had_places, &format!("{carried}; {words}"))?;
    if !by_count {
        integral_explained(facts, &words)?;
        must(busy <= room * LITTLE_OVER, &words)?;
    }
    let without = format!("there is no latency; {words}");
    let (product, most, of_product) = known(little_product(facts, room, depth), &without)?;
    let words = format!("{of_product}; {words}");
    let edges = format!("{words}, at most {most:.2} with the window's edges");
    must(product <= most, &edges)?;
    let window = &summary.window;
    let never_idle = facts.is_closed()
        && run.plan.traffic.think_time_ns == 0
        // A generator may have connections wait, or send nothing.
        && !run.is_generated()
        && run.plan.keepalive()
        && run.plan.requests_per_connection().is_none()
        && run.depth() == 1
        && !by_count
        && window.failures.iter().next().is_none()
        && window.connections_opened == 0
        && window.connections_closed_idle == 0
        && summary.lifetime.connections_shut == 0
        && facts.run.window_ns >= BUSY_WINDOW_LEAST_NS;
    // A million first requests take seconds, and the window may begin before the last of them. Nor
    // can anything be sent to a server that does not take it.
    let not_begun = mean_of(summary.live.not_begun_ns) * depth;
    let blocked = mean_of(summary.live.blocked_ns) * depth;
    let is_idle = never_idle && busy < (room - not_begun - blocked) * LITTLE_UNDER;
    let idle = format!("connections that never idle were idle: {words}");
    must(!is_idle, &idle)?;
    let is_long = most <= room * LITTLE_OVER * (1.0 + LITTLE_EDGES);
    let short = format!("the window is too short against the service time: {words}");
    only_if(is_long, &short)?;
    Ok(CheckOutcome::held(words))
}

/// Where requests count from their send, the integral of requests in flight must be, of those sent
/// in the window, the sum of their times, less what lies after the window. What failed or was
/// censored has no time on record, and was in flight for the window at most.
fn integral_explained(facts: &Facts<'_>, words: &str) -> Result<(), CheckOutcome> {
    let recorded = facts.latencies().map(|(_, histogram)| histogram.sum_ns());
    if facts.is_open() || recorded.contains(&u64::MAX) {
        return Ok(());
    }
    let recorded_ns = sum(recorded);
    let in_flight_ns = facts.sum(|worker| worker.in_flight_ns);
    let before_ns = facts.summary.carried_in.in_flight_ns;
    let of_window_ns = in_flight_ns.checked_sub(before_ns.into());
    let population = &facts.summary.population;
    let without_time = sum([population.failed, population.censored]);
    // The longest window that a worker lived, or the common one.
    let windows = facts.workers().filter_map(|worker| {
        let edges = &worker.edges;
        Some(after_ns(edges.window_start.get()?, edges.window_end.get()?))
    });
    let longest_ns = windows.fold(facts.run.window_ns, u64::max);
    let most_ns = recorded_ns + without_time * u128::from(longest_ns);
    let drained_ns = facts.drained() * u128::from(facts.drain_ns());
    let least_ns = recorded_ns.saturating_sub(drained_ns);
    let fits = of_window_ns.is_some_and(|ns| (least_ns..=most_ns).contains(&ns));
    let sums = format!(
        "{in_flight_ns} ns in flight, {before_ns} of them of requests sent before the window; the \
         times of the others make {least_ns} to {most_ns} ns; {words}"
    );
    must(fits, &sums)
}

/// Rate times mean service time, as printed, the most that it can be, and the words for it, of a
/// run with `room` places for requests in flight. The rate counts what ended in the window, the
/// service time is of what began in it, so that the product may exceed the places by a known
/// amount. Absent without a service time.
fn little_product(facts: &Facts<'_>, room: f64, depth: f64) -> Option<(f64, f64, String)> {
    let (run, summary) = (facts.run, &facts.summary);
    let latencies = &run.latencies;
    let window_ns = facts.run.window_ns as f64;
    let replies = &summary.window.replies;
    // What ended in the window and began before it: at most one request per place or, where
    // requests waited, all that did.
    let (services, sum_ns, ended, before) = if facts.is_open() {
        let service = &latencies.service;
        let (count, sum_ns) = (service.count(), service.sum_ns().into());
        let left = facts.left_by_warmup() as f64;
        (count, sum_ns, replies.successes(), left)
    } else {
        let sum_ns = sum(facts.latencies().map(|(_, histogram)| histogram.sum_ns()));
        let places = f64::from(summary.live.max) * depth;
        (summary.population.recorded, sum_ns, replies.total(), places)
    };
    if services == 0 {
        return None;
    }
    let service_ns = sum_ns as f64 / services as f64;
    let rate = ended as f64 / window_ns;
    let before = 1.0 + before / services as f64;
    // The time after the window of what began in it: at most all of drain, for each reply.
    let after = facts.drained() as f64 * facts.drain_ns() as f64 / window_ns;
    let (value, service) = (rate * service_ns, time(service_ns as u64));
    let per_s = rate * 1e9;
    let words = format!("{per_s:.1} replies per second times {service} service time is {value:.2}");
    Some((value, before * (room * LITTLE_OVER + after), words))
}

/// I2. What was planned counts from its planned instant, which lies in the window.
pub(super) fn latency_within_run(facts: &Facts<'_>) -> Checked {
    // Of the agent for which it lasted longest.
    let lasted = facts.agents.iter().filter_map(|agent| {
        let workers = agent.workers.iter();
        let sent_ns = workers.filter_map(|worker| worker.first_send.get()).min()?;
        let first_ns = if facts.is_open() { 0 } else { sent_ns };
        Some(after_ns(first_ns, agent.clock.edges.drain_end.get()?))
    });
    let without = "nothing was sent, or the drain has no end";
    let lasted_ns = known(lasted.max(), without)?;
    let lasted = time(lasted_ns);
    let mut problems = Problems::default();
    for (words, histogram) in facts.latencies() {
        let max_ns = histogram.max_ns().unwrap_or(0);
        problems.expect(max_ns <= lasted_ns, || {
            let max = time(max_ns);
            format!("{words}: {max} recorded, of at most {lasted} up to the end of drain")
        });
    }
    let longest = time(facts.longest_ns());
    problems.or_held(format!(
        "longest latency {longest}, of at most {lasted} up to the end of drain"
    ))
}

/// I3. Flagged, never broken: a server may send what is taken for a reply before it was asked, such
/// as a 408 on an idle connection, or a message of its own. The kernel's figure is of a sample of
/// the connections, of which another one may have a shorter way.
pub(super) fn latency_over_round_trip(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    only_if(run.plan.awaits_replies(), "no replies are awaited")?;
    let round_trips = facts.workers();
    let round_trips = round_trips.filter_map(|worker| worker.kernel.min_rtt_ns);
    // From the planned instant, a reply takes longer than from the send.
    let [(_, successes), (_, errors)] = facts.latencies();
    let all = [successes, errors, &run.latencies.service];
    let fastest = all.into_iter().filter_map(Histogram::min_ns).min();
    let without = "the kernel gave no round trip, or there is no latency";
    let (rtt_ns, min_ns) = known(round_trips.min().zip(fastest), without)?;
    let lasted = facts.agents.iter().filter_map(|agent| {
        let edges = &agent.clock.edges;
        Some(after_ns(edges.setup_start.get()?, edges.drain_end.get()?))
    });
    let lasted_ns = lasted.max().unwrap_or(0);
    let sampled = facts.sum(|worker| worker.kernel.connections.into());
    let words = format!(
        "fastest reply {}, smallest round trip {} ({} sampled)",
        time(min_ns),
        time(rtt_ns),
        plural(sampled, "connection")
    );
    if min_ns.saturating_add(RTT_ROUNDING_NS) >= rtt_ns {
        return Ok(CheckOutcome::held(words));
    }
    let forgotten = format!("the kernel forgets after 300 s; {words}");
    only_if(lasted_ns <= RTT_KEPT_NS, &forgotten)?;
    let why = if run.plan.connection.protocol.may_mistake_pushes() {
        "what the server sends unasked was taken for a reply, and the response times are too short \
         by that; with echoes it is told apart"
    } else {
        "the server sent before it was asked, or another connection had a shorter way"
    };
    Ok(CheckOutcome::flagged(format!("{words}: {why}")))
}

/// I4.
pub(super) fn bytes_explained(facts: &Facts<'_>) -> Checked {
    let streams = "streams have no replies: I5 and T1 have their bytes";
    only_if(facts.run.work() != Work::Streams, streams)?;
    sums::hold("I4", facts)
}

/// I5.
pub(super) fn kernel_agrees(facts: &Facts<'_>) -> Checked {
    if facts.run.work() == Work::Streams {
        let records = || facts.run.stream_records();
        let unread = sum(records().map(|streams| streams.unread_accounts));
        let is_read = unread == 0 && records().next().is_some();
        only_if(is_read, "not all accounts could be read")?;
        return sums::hold("I5", facts);
    }
    sums::add_up("I5", facts)?;
    let connections = facts.sum(|worker| worker.kernel.connections.into());
    let none = "the kernel gave no account of any connection";
    only_if(connections > 0, none)?;
    let bytes = facts.sum(|worker| worker.kernel.kernel_bytes_received);
    let sampled = plural(connections, "connection");
    Ok(CheckOutcome::held(format!(
        "the kernel counted {bytes} bytes on {sampled}, as did brunt"
    )))
}

/// I7. A CPU quota is rounded down to whole CPUs, so up to one more may have been used: that is
/// flagged. A thread runs on one CPU at a time; its waiting for one is not looked at, because it
/// may wait between the reading of the clock and that of the wait.
pub(super) fn cpu_possible(facts: &Facts<'_>) -> Checked {
    let (agent, host) = (facts.agent(), &facts.agent().host);
    let cpu_ns = host.cpu_user_ns as f64 + host.cpu_system_ns as f64;
    let interval_ns = host.cpu_interval_ns as f64;
    let is_real = agent.backend != Backend::Sim;
    only_if(is_real, "simulated time has no CPU time")?;
    sums::add_up("I7", facts)?;
    let cpus = f64::from(host.usable_cpus);
    let is_read = cpu_ns > 0.0 && interval_ns > 0.0 && cpus > 0.0 && !facts.no_window();
    only_if(is_read, "no CPU time was read over a window")?;
    let used = (cpu_ns - CPU_READING_NS as f64) / interval_ns / (1.0 + CPU_READING_SHARE);
    let mut words = format!(
        "{} of CPU in {} on {} usable CPUs",
        time(cpu_ns as u64),
        time(host.cpu_interval_ns),
        host.usable_cpus
    );
    must(used <= cpus + 1.0, &words)?;
    let replies = facts.summary.window.replies.total();
    if agent.negotiated.depth == 1 && replies >= CPU_REPLIES_LEAST {
        let per_window_ns = cpu_ns / interval_ns * facts.run.window_ns as f64;
        let per_reply_ns = per_window_ns / replies as f64;
        words = format!("{words}; {} per reply", time(per_reply_ns as u64));
        must(per_reply_ns >= CPU_PER_REPLY_LEAST_NS, &words)?;
    }
    Ok(CheckOutcome::held_or_flagged(used > cpus, words))
}

/// Times what was sent beyond which the server's count is another server's, or of something else.
const COUNTED_TIMES_MOST: u64 = 2;
/// Requests of others that are excused in the shortest run: somebody checks whether the server is
/// alive.
const OTHERS_EXCUSED: u64 = 10;

/// I8. What was answered, the server has counted, or is about to: many count a request after its
/// reply was written, or add up their counts now and then. What failed or was in flight at the end,
/// it may have counted or not: it may never have seen it, or have answered to nobody. What others
/// sent meanwhile says nothing against the run.
pub(super) fn server_agrees(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let streams = "streams have no requests: T1 has the receiver's count";
    only_if(run.work() != Work::Streams, streams)?;
    let count = run.server_count().map_err(CheckOutcome::not_applicable)?;
    let unread = "the server's own count was not read (--verify-url)";
    let ServerCount {
        url,
        path,
        before,
        after,
        own_reads,
    } = &known(count, unread)?;
    let back = format!(
        "{path} at {url} went back from {before} to {after}: the server was started anew, or \
         another one answered"
    );
    must(after >= before, &back)?;
    let counted = after - before;
    let sent = facts.summary.lifetime.sends();
    let answered = facts.summary.lifetime.replies.total();
    let requests = plural(counted, "request");
    let words = format!(
        "the server counted {requests} ({path} at {url}, {before} to {after}, of which {own_reads} \
         may be the reading); {sent} sent, {answered} answered"
    );
    if counted < answered {
        let too_few = answered - counted;
        let words = format!("{words}: {too_few} too few");
        let connections = facts.summary.live.max.max(run.plan.load.connections.get());
        let places = u64::from(connections) * u64::from(run.depth().max(1));
        must(too_few <= places, &words)?;
        return Ok(CheckOutcome::flagged(format!(
            "{words}, no more than can be in flight: they may be counted later"
        )));
    }
    let others = counted.saturating_sub(sent.saturating_add(*own_reads));
    if others == 0 {
        return Ok(CheckOutcome::held(words));
    }
    let share = percent(others as f64 / sent.max(1) as f64);
    let words = format!("{words}: {others} more than can be brunt's ({share})");
    let others_most = sent.saturating_mul(COUNTED_TIMES_MOST - 1);
    // The kernel may have seen others send to the server.
    let own = u64::from(facts.summary.live.max);
    let seen = run.agents.iter();
    let mut seen = seen.filter_map(|agent| agent.evidence.server_connections.as_ref());
    let are_seen = seen.any(|seen| seen.connections > own && seen.segments_received_beyond > 0);
    let is_others = others <= others_most.max(OTHERS_EXCUSED) || are_seen;
    let foreign = format!("{words}; it is another server's count, or of something else");
    must(is_others, &foreign)?;
    let words = format!("{words}; somebody else uses the server");
    Ok(CheckOutcome::flagged(words))
}

/// T1.
pub(super) fn acknowledged_was_read(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    known(run.plan.one_way(), "there are requests and no streams")?;
    for count in [run.server_count(), run.server_sent()] {
        let count = count.map_err(CheckOutcome::not_applicable)?;
        let is_back = count.is_some_and(|count| count.counted().is_none());
        must(
            !is_back,
            "the server's count went back: it was started anew",
        )?;
    }
    sums::hold("T1", facts)
}
