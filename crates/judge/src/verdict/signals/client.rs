//! Signals that accuse brunt or its machine.

use brunt_load::protocol::Transport;
use brunt_record::FailureKind;

use super::super::facts::{RunFacts, ratio, throttled_share};
use super::super::thresholds::{
    IDLE_HEALTHY, LAG_FAIL_NS, OWN_SAMPLES_LEAST, OWN_SHARE_FAIL, RARE_LEAST, RUN_WAIT_FAIL,
    RUN_WAIT_WARN,
};
use super::super::{Grade, Side};
use super::{Reading, grade_above, held_up, missing};
use crate::units::short::{duration, percent};
use crate::units::{count, counted, plural};

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
/// Arrivals sent, as a share of those planned while connections were free. Below this, the signal
/// warns.
const SENT_HEALTHY: f64 = 0.999;
/// Arrivals sent, as a share of those planned while connections were free. Below this, the signal
/// fails.
const SENT_FAIL: f64 = 0.99;
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

/// Workers whose idle shares differ by less are reported as one value.
const IDLE_ALIKE: f64 = 0.1;
/// What brunt does between a reply and the next request, where nothing else is in flight.
const ONE_AT_A_TIME: &str = "one request at a time waits for it";
/// What brunt does late while its workers have time.
const WAKING_UP: &str = "waking up, which does not limit throughput";

pub(super) fn worker_idle(facts: &RunFacts<'_>) -> Reading {
    let Some(threads) = facts.threads else {
        return Reading::unknown("the workers' threads were not read");
    };
    let idle = threads.idle_least;
    let words = match facts.agent.workers.len() {
        1 => format!("worker idle {}", percent(idle)),
        _ if threads.idle_most - idle < IDLE_ALIKE => format!("workers idle {}", percent(idle)),
        _ => format!("busiest worker idle {}", percent(idle)),
    };
    if idle >= IDLE_FAIL && threads.unread > 0 {
        let unread = counted(threads.unread as u64, "worker was", "workers were");
        return Reading::unknown(format!("{words}; {unread} not read"));
    }
    let grade = if idle < IDLE_FAIL {
        Grade::Fail
    } else if idle < IDLE_HEALTHY {
        Grade::Warn
    } else {
        Grade::Healthy
    };
    Reading::new(grade, words)
}

pub(super) fn own_share(facts: &RunFacts<'_>) -> Reading {
    let (run, split) = (facts.run, &facts.run.latencies.split);
    if run.plan.stamps.every().is_none() {
        return Reading::unknown("no kernel stamps were taken");
    }
    if run.depth() > 1 && run.protocol().is_in_order {
        return Reading::unknown("pipelined replies have no stamps of their own");
    }
    if split.count() < OWN_SAMPLES_LEAST {
        let samples = counted(split.count(), "stamped reply", "stamped replies");
        return Reading::unknown(format!("{samples}, {OWN_SAMPLES_LEAST} needed"));
    }
    let Some(in_all) = facts.own_share() else {
        return Reading::unknown("response times are 0");
    };
    let tail = facts.own_share_of_p99();
    let mut words = format!("{} of the response time is brunt's own", percent(in_all));
    if let Some(tail) = tail {
        words.push_str(&format!(", above p99 {}", percent(tail)));
    }
    if in_all <= OWN_SHARE_WARN && tail.is_some_and(|tail| tail > OWN_SHARE_WARN) {
        // A few replies that lie while brunt does not run make most of the tail and none of the
        // throughput [tuned]: verdicts that trust the figures say it with them.
        return Reading::warn(words);
    }
    let reading = Reading::new(grade_above(in_all, OWN_SHARE_WARN, OWN_SHARE_FAIL), words);
    if facts.is_one_at_a_time() {
        return reading.warn_at_most(true, ONE_AT_A_TIME);
    }
    reading.warn_at_most(facts.workers_have_time(), WAKING_UP)
}

/// The worse of how late brunt sent what was planned, and how much of it brunt did not send.
pub(super) fn schedule_lag(facts: &RunFacts<'_>) -> Reading {
    if facts.is_closed() {
        return Reading::unknown("closed loop: nothing is planned");
    }
    let late = lateness(facts);
    match unsent(facts) {
        Some(unsent) if late.grade != Grade::Fail || unsent.grade == Grade::Fail => unsent,
        _ => late,
    }
}

fn lateness(facts: &RunFacts<'_>) -> Reading {
    if facts.clean.is_some_and(|clean| clean.own_share.is_some()) {
        let words = "part of the own share, where the hypervisor took nothing";
        return Reading::unknown(words);
    }
    let Some(lag_ns) = facts.lag_ns_p99() else {
        return Reading::unknown("too few arrivals for p99 of the schedule lag");
    };
    // With a schedule of connections it is they that are late.
    let latencies = &facts.run.latencies;
    let response = if facts.is_open() {
        &latencies.response
    } else {
        &latencies.first_reply
    };
    let [p50_ns, p99_ns] = [0.5, 0.99].map(|q| response.quantile_ns(q).unwrap_or(0) as f64);
    let words = format!("schedule lag p99 {}", duration(lag_ns));
    if lag_ns < LAG_HEALTHY_NS.max(LAG_HEALTHY_OF_P50 * p50_ns) {
        Reading::healthy(words)
    } else if lag_ns > LAG_FAIL_NS.min(LAG_FAIL_OF_P99 * p99_ns) {
        // Against a fast server a wake-up is a tenth of the response time, and one stop of 20 ms is
        // p99 of two seconds: with time to spare the plan is kept all the same [tuned].
        Reading::fail(words).warn_at_most(facts.workers_have_time(), WAKING_UP)
    } else {
        Reading::warn(words)
    }
}

/// What was planned while connections were free and not sent, where that is noticeable.
fn unsent(facts: &RunFacts<'_>) -> Option<Reading> {
    let arrivals = &facts.summary.arrivals;
    let dropped = arrivals.planned.saturating_sub(arrivals.sent);
    let schedule = facts.run.plan.model.schedule();
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
    match 1.0 - while_free {
        sent if sent >= SENT_HEALTHY => None,
        sent if sent >= SENT_FAIL => Some(Reading::warn(words)),
        _ => Some(Reading::fail(words)),
    }
}

pub(super) fn run_queue_wait(facts: &RunFacts<'_>) -> Reading {
    let Some(wait) = facts.threads.and_then(|threads| threads.run_wait) else {
        return Reading::unknown("the kernel does not say for how long workers wait for a CPU");
    };
    let words = format!("workers waited for a CPU {} of their time", percent(wait));
    // A worker that sleeps often waits a little each time it wakes, on an idle CPU too; of a short
    // run time that is a large share. One that has time left was not the limit: who took its CPU
    // is found out by the ledger [tuned].
    Reading::new(grade_above(wait, RUN_WAIT_WARN, RUN_WAIT_FAIL), words)
        .warn_at_most(facts.workers_have_time(), WAKING_UP)
}

/// A quota that holds brunt back limits it where its workers are short of time. Where they are
/// not, it still stretches response times at random, which makes the figures doubtful.
pub(super) fn throttling(facts: &RunFacts<'_>) -> Reading {
    if facts.interval_ns().is_none() {
        return missing(facts, "host", "nothing was read of the machine");
    }
    if facts.evidence().missing.contains_key("host.throttling") {
        return missing(facts, "host.throttling", "");
    }
    let Some(throttling) = facts.evidence().host.throttling else {
        return Reading::healthy("no CPU quota");
    };
    if throttling.throttled_ns == 0 {
        return Reading::healthy("CPU quota never used up");
    }
    let share = throttled_share(throttling);
    let told = percent(share);
    let words = format!("brunt's CPU quota held it back in {told} of the periods");
    if share < THROTTLED_FAIL {
        return Reading::warn(words);
    }
    let is_short_of_time = facts.threads.is_none_or(|threads| {
        threads.idle_least - share < IDLE_HEALTHY
            || threads.run_wait.is_some_and(|wait| wait >= RUN_WAIT_FAIL)
    });
    let side = if is_short_of_time {
        Side::Client
    } else {
        Side::Doubt
    };
    Reading::fail(words).accusing(side)
}

pub(super) fn unread_data(facts: &RunFacts<'_>) -> Reading {
    if facts.run.protocol().transport == Transport::Datagrams {
        return unread_datagrams(facts);
    }
    let Some(tcp) = facts.tcp() else {
        return missing(facts, "network.tcp", "TCP counters were not read");
    };
    let (full, thrown_away) = (tcp.zero_windows_advertised, tcp.receive_prunes);
    let [told, thrown] = [full, thrown_away].map(count);
    let words =
        format!("{told} full receive buffers advertised, {thrown} segments thrown away unread");
    let events = full.max(thrown_away);
    if events == 0 {
        return Reading::healthy(words);
    }
    let share = ratio(events as f64, tcp.segments_received as f64).unwrap_or(1.0);
    not_read(events, share, words)
        .warn_at_most(facts.is_local(), "the server's sockets count as well")
}

/// The same over datagrams, of which each socket says what it had no room for.
fn unread_datagrams(facts: &RunFacts<'_>) -> Reading {
    let quic = &facts.summary.window.quic;
    let dropped = quic.datagrams_dropped;
    let came = quic.datagrams_received.saturating_add(dropped);
    let Some(share) = ratio(dropped as f64, came as f64) else {
        return Reading::unknown("no datagram came");
    };
    let words = format!(
        "{} of {} found brunt's receive buffers full",
        count(dropped),
        counted(came, "datagram", "datagrams")
    );
    if dropped == 0 {
        return Reading::healthy(words);
    }
    not_read(dropped, share, words)
}

fn not_read(events: u64, share: f64, words: String) -> Reading {
    let is_rare = events < RARE_LEAST || share < NOT_READ_FAIL;
    Reading::new(if is_rare { Grade::Warn } else { Grade::Fail }, words)
}

pub(super) fn send_buffer(facts: &RunFacts<'_>) -> Reading {
    let limited_ns = facts.kernel.send_buffer_limited_ns;
    held_up(facts, limited_ns, "our buffer", SEND_BUFFER)
}

pub(super) fn client_limits(facts: &RunFacts<'_>) -> Reading {
    let (window, lifetime) = (&facts.summary.window, &facts.summary.lifetime);
    let (mut fails, mut warns) = (Vec::new(), Vec::new());
    for (kind, what) in [
        (FailureKind::ConnectNoPort, "no free local port"),
        (FailureKind::ConnectNoDescriptor, "no free descriptor"),
    ] {
        let [now, ever] = [window, lifetime].map(|it| it.failures.get(kind));
        if now > 0 {
            fails.push(format!("{what} {}", plural(now, "time")));
        } else if ever > 0 {
            let times = plural(ever, "time");
            warns.push(format!("{what} {times}, outside of the window"));
        }
    }
    if let Some(table) = facts.network().and_then(|network| network.conntrack) {
        let fill = ratio(table.entries as f64, table.entries_max as f64).unwrap_or(0.0);
        let words = format!("table of tracked connections {} full", percent(fill));
        if table.dropped_packets > 0 {
            let dropped = plural(table.dropped_packets, "packet");
            fails.push(format!("{words}, {dropped} dropped"));
        } else if fill >= CONNTRACK[1] {
            fails.push(words);
        } else if fill >= CONNTRACK[0] {
            warns.push(words);
        }
    }
    if !fails.is_empty() {
        Reading::fail(fails.join(", "))
    } else if !warns.is_empty() {
        Reading::warn(warns.join(", "))
    } else if lifetime.connections_opened == 0 {
        Reading::unknown("no connection was opened")
    } else {
        Reading::healthy("ports and descriptors sufficed")
    }
}

pub(super) fn pauses(facts: &RunFacts<'_>) -> Reading {
    let paused_ns = facts.paused_ns();
    let Some(share) = ratio(paused_ns, facts.run.window_ns as f64) else {
        return Reading::unknown("there is no window");
    };
    if share <= 0.0 {
        return Reading::healthy("brunt ran throughout");
    }
    let paused = duration(paused_ns);
    let words = format!("brunt did not run for {paused} of the window");
    Reading::new(grade_above(share, 0.0, PAUSED_FAIL), words)
}
