//! Signals that accuse the server, or the machine that it shares with brunt.

use brunt_record::{CpuTimes, FailureKind};

use super::super::Grade;
use super::super::facts::{RunFacts, Saturation, ratio, throttled_share};
use super::super::thresholds::{
    OTHERS_FAIL, QUEUED_RATIO, RARE_LEAST, RUN_WAIT_WARN, SERVER_FAIL, SERVER_THROTTLED_FAIL,
    SERVER_WARN,
};
use super::super::words::name;
use super::network::loses_segments;
use super::{Reading, grade_above, held_up, missing};
use crate::units::plural;
use crate::units::short::{cpus, number, percent};

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
/// CPUs that both must have used to be competitors.
const SHARED_USE_LEAST: f64 = 0.02;

pub(super) fn server_cpu(facts: &RunFacts<'_>) -> Reading {
    let Some(server) = facts.server() else {
        return missing(facts, "server", "the server was not watched");
    };
    let name = name(&server.name);
    if facts.server_polls() {
        let idle = server.idle_cpus_used.unwrap_or(0.0);
        return Reading::unknown(format!("{name} uses {} with nothing to do", cpus(idle)));
    }
    let used = server.cpus_used().unwrap_or(0.0);
    let words = match server.cpus {
        Some(may_use) => format!("{name} {used:.2} of {}", cpus(may_use)),
        None => format!("{name} {}", cpus(used)),
    };
    if facts.server_use().is_some_and(|share| share >= SERVER_FAIL) {
        // Where requests wait for each other, there is work for it.
        let has_queue = facts.queueing().is_some_and(|times| times >= QUEUED_RATIO);
        let idle = facts.idle_beside_one();
        let share = percent(idle.unwrap_or(0.0));
        let without = format!("without a request in {share} of the time");
        return Reading::fail(words)
            .warn_at_most(facts.may_poll() && !has_queue, "with work or by polling")
            .warn_at_most(idle.is_some(), &without);
    }
    let saturated = server.threads.map_or(0, |threads| threads.saturated);
    let threads = plural(saturated, "thread");
    match facts.server_saturation() {
        Saturation::Busy => Reading::fail(format!("{words}, {threads} busy all the time")),
        Saturation::Starved => Reading::warn(format!("{words}, {threads} waiting for a CPU")),
        Saturation::None => match facts.server_use() {
            Some(share) if share >= SERVER_WARN => Reading::warn(words),
            Some(_) => Reading::healthy(words),
            None => Reading::unknown(format!("{words}, of how many is not known")),
        },
    }
}

/// A server whose quota is used up is at its end, however little of the machine that is.
pub(super) fn throttling(facts: &RunFacts<'_>) -> Reading {
    let Some(server) = facts.server() else {
        return missing(facts, "server", "the server was not watched");
    };
    let Some(throttling) = server.throttling.filter(|found| found.throttled_ns > 0) else {
        return Reading::healthy("no CPU quota held the server back");
    };
    let share = throttled_share(throttling);
    let told = percent(share);
    let words = format!("its CPU quota held the server back in {told} of the periods");
    // Now and then a burst is held back that an average has room for.
    let is_used = facts.server_use().is_none_or(|used| used >= SERVER_WARN);
    let is_often = share >= SERVER_THROTTLED_FAIL && is_used;
    Reading::new(if is_often { Grade::Fail } else { Grade::Warn }, words)
}

pub(super) fn accept_queue(facts: &RunFacts<'_>) -> Reading {
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
    let retried = counters.syn_retransmits;
    // What listens is in this namespace on loopback alone.
    let of_server = |count: u64| if facts.is_local() { count } else { 0 };
    let overflows = of_server(counters.listen_overflows);
    let connections = |count: u64, what: &str| format!("{} {what}", plural(count, "connection"));
    let mut found = Vec::new();
    if overflows > 0 {
        found.push(connections(overflows, "met a full accept queue"));
    } else if of_server(counters.listen_drops) > 0 {
        found.push(connections(counters.listen_drops, "dropped on arrival"));
    }
    if retried > 0 {
        found.push(connections(retried, "asked for again"));
    }
    if is_slow {
        let share = percent(slow_share);
        found.push(format!("{share} of the connections took a second and more"));
    }
    if timed_out > 0 {
        let attempts = plural(timed_out, "attempt");
        found.push(format!("{attempts} not answered in time"));
    }
    if found.is_empty() {
        return if connect.count() == 0 && facts.tcp().is_none() {
            Reading::unknown("no connection was opened")
        } else {
            Reading::healthy("connections were accepted at once")
        };
    }
    // The counters are of the whole namespace: without trouble of brunt's own, they are others'.
    let is_often = |events: u64| {
        events >= RARE_LEAST
            && ratio(events as f64, tried as f64).is_some_and(|share| share >= SLOW_CONNECT_FAIL)
    };
    let retried_often = is_often(retried) && had_trouble;
    let overflows_often = is_often(overflows);
    let words = found.join(", ");
    if !overflows_often && !retried_often && !is_slow && !is_often(timed_out) {
        return Reading::warn(words);
    }
    let why = if tried == 0 {
        "but none of the window's"
    } else {
        "as other segments were lost"
    };
    Reading::fail(words).warn_at_most(tried == 0 || (overflows == 0 && loses_segments(facts)), why)
}

pub(super) fn receive_window(facts: &RunFacts<'_>) -> Reading {
    let limited_ns = facts.kernel.receive_window_limited_ns;
    held_up(facts, limited_ns, "the server to read", RECEIVE_WINDOW)
}

/// A server at its end for several clients is not measured by one of them.
pub(super) fn other_clients(facts: &RunFacts<'_>) -> Reading {
    let others = match facts.others {
        Ok(others) => others,
        Err(reason) => return missing(facts, "server_connections", reason),
    };
    let share = others.share;
    if share <= 0.0 {
        return Reading::healthy("nobody else loads the server");
    }
    let what = if others.counted_by_server {
        "the requests that the server counts"
    } else {
        "what the server receives"
    };
    let mut words = format!("other clients send {} of {what}", percent(share));
    let used = facts.server().and_then(|server| server.cpus_used());
    if let Some(used) = used.filter(|_| share >= OTHERS_WARN) {
        let theirs = number(share * used);
        words = format!("{words}, and use some {theirs} of its {}", cpus(used));
    }
    Reading::new(grade_above(share, OTHERS_WARN, OTHERS_FAIL), words)
}

/// Client and server on the same CPUs, which are busy, and neither gets what it wants: a pair.
/// Others who use those CPUs as well make it a crowd, of which the pair's own waits tell.
pub(super) fn shared_host(facts: &RunFacts<'_>) -> Reading {
    let (client_list, server_list) = (&facts.client_cpus, &facts.server_cpus);
    let Some(server) = facts.server() else {
        return missing(facts, "server", "the server was not watched");
    };
    if server_list.is_empty() {
        return if facts.is_local() {
            Reading::unknown("the server's CPUs are not known")
        } else {
            Reading::healthy("client and server do not share a machine")
        };
    }
    let sum = RunFacts::sum_ns;
    let common = facts.cpus(|cpu| client_list.contains(&cpu) && server_list.contains(&cpu));
    if client_list.is_empty() || facts.evidence().host.cpus.is_empty() {
        return missing(facts, "host.cpus", "the machine's CPUs were not read");
    }
    if common.is_empty() {
        return Reading::healthy("client and server have CPUs of their own");
    }
    let taken = facts.taken_from_workers();
    let share = taken.map(|taken| taken / client_list.len().max(1) as f64);
    if let Some(share) = share.filter(|share| *share < TAKEN_LEAST) {
        let share = percent(share);
        let words = format!("workers had their CPUs, of which the server used {share}");
        return Reading::healthy(words);
    }
    let (Some(client_used), Some(server_used), Some(interval_ns)) = (
        facts.client_cpus_used(),
        server.cpus_used(),
        facts.interval_ns(),
    ) else {
        return Reading::unknown("what client and server used is not known");
    };
    let all_ns = sum(&common, CpuTimes::total_ns);
    // Polling leaves a CPU to whoever needs it.
    let worked_ns = (sum(&common, |times| times.busy_ns) - facts.spun_ns()).max(0.0);
    let Some(busy) = ratio(worked_ns, all_ns) else {
        return Reading::unknown("the machine's CPUs were not read");
    };
    let count = plural(common.len(), "CPU");
    // What it used elsewhere is its own.
    let here = taken.map_or(server_used, |taken| taken.min(server_used));
    let words = format!("client {client_used:.2} and server {here:.2} of the same {count}");
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
        return Reading::healthy(words);
    }
    let any = facts.cpus(|cpu| client_list.contains(&cpu) || server_list.contains(&cpu));
    // Soft interrupts belong to whoever was interrupted, and to the pair's own traffic.
    let of_tasks_ns = sum(&any, |times| times.busy_ns.saturating_sub(times.softirq_ns));
    let others = of_tasks_ns / interval_ns - client_used - server_used;
    if others > SHARED_OTHERS_MOST * common.len() as f64 {
        Reading::warn(format!("{words}, others {others:.2}"))
    } else {
        Reading::fail(words)
    }
}
