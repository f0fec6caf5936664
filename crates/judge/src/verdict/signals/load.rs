//! Signals about the load that was asked for, and those that make any figure doubtful.

use super::super::facts::{REFUSING_RESETS, RunFacts, Saturation, ratio};
use super::super::thresholds::{
    CONNECTIONS_BUSY, HEADROOM_LEAST, QUEUED_RATIO, RUN_WAIT_FAIL, SERVER_FAIL, SERVER_WARN,
    STEAL_LEAST_NS, STEAL_WARN, WINDOW_LEAST_NS,
};
use super::super::words::program;
use super::super::{Grade, Side};
use super::{Reading, grade_above, missing};
use crate::CpuLedger;
use crate::units::counted;
use crate::units::short::{cpus, duration, number, percent, rate};

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

/// The report states an elasticity as the throughput that a tenth more connections give.
const MORE_CONNECTIONS: f64 = 1.1;

pub(super) fn refusals(facts: &RunFacts<'_>) -> Reading {
    let window = &facts.summary.window;
    let Some(share) = facts.refused_share() else {
        return Reading::unknown("no reply in the window");
    };
    if share == 0.0 {
        return Reading::healthy("no request refused");
    }
    let statuses = window.replies.iter();
    let mut statuses: Vec<(u16, u64)> = statuses
        .filter(|(status, _)| matches!(status, 429 | 503))
        .collect();
    statuses.sort_by_key(|&(status, count)| (std::cmp::Reverse(count), status));
    let statuses = statuses.into_iter().map(|(status, _)| status.to_string());
    let retry_after = (window.retry_afters > 0).then(|| "Retry-After".to_owned());
    let resets = REFUSING_RESETS.into_iter();
    let resets = resets.filter(|(kind, _)| window.failures.get(*kind) > 0);
    let resets = resets.map(|(_, name)| name.to_owned());
    let names: Vec<String> = statuses.chain(retry_after).chain(resets).collect();
    let (told, names) = (percent(share), names.join(", "));
    let words = format!("the server refused {told} of the requests ({names})");
    Reading::new(grade_above(share, 0.0, REFUSED_FAIL), words)
}

/// Whether what was planned was also done, so that the plan is what limited.
pub(super) fn planned_rate(facts: &RunFacts<'_>) -> Reading {
    let (summary, arrivals) = (&facts.summary, &facts.summary.arrivals);
    if let Some((share, bits_per_s)) = facts.paced_share() {
        let (told, asked) = (percent(share.min(1.0)), rate(bits_per_s));
        let words = format!("{told} of {asked} bit/s acknowledged");
        return Reading::healthy_if(share < PLAN_MET, words);
    }
    if facts.is_closed() {
        return Reading::unknown("closed loop: no rate was asked for");
    }
    let done = if facts.is_open() {
        summary.answered_of_plan()
    } else {
        // Connections that are still at work at the end were not kept up with, but for chance.
        let requests = facts.run.plan.requests_per_connection().unwrap_or(1).max(1);
        let chance = 2.0 * (arrivals.planned as f64).sqrt();
        let done = facts.replies() / requests;
        arrivals.sent.min(done.saturating_add(chance as u64))
    };
    let (Some(share), Some(planned_per_s)) = (
        ratio(done as f64, arrivals.planned as f64),
        summary.planned_per_s.known(),
    ) else {
        return Reading::unknown("nothing was planned in the window");
    };
    if facts.run.window_ns < PLAN_WINDOW_LEAST_NS {
        return Reading::unknown("the window is too short to show a backlog");
    }
    let unit = if facts.is_open() {
        facts.run.unit().per_s
    } else {
        "connections/s"
    };
    let [share_told, planned] = [percent(share.min(1.0)), rate(planned_per_s)];
    let words = format!("{share_told} of {planned} {unit}");
    if share >= PLAN_MET && facts.overload.is_none() {
        Reading::fail(format!("{words} answered"))
    } else {
        Reading::healthy(words)
    }
}

/// The backlog: more is planned than done. Which side has room left tells who causes it.
pub(super) fn backlog(facts: &RunFacts<'_>) -> Reading {
    if facts.is_closed() {
        return Reading::unknown("closed loop: nothing is planned");
    }
    let Some(overload) = facts.overload else {
        return Reading::healthy("no backlog");
    };
    let capacity = rate(overload.capacity_per_s);
    let words = format!("overloaded: about {capacity} per second were answered");
    // With connections to spare, the server has had more to do than it did.
    let busy = facts.connections_busy();
    let all_busy = busy.is_none_or(|busy| busy >= CONNECTIONS_BUSY);
    let limit = if all_busy { SERVER_FAIL } else { SERVER_WARN };
    let is_at_its_end = facts.server_saturation() == Saturation::Busy
        || facts.server_use().is_some_and(|used| used >= limit);
    if is_at_its_end {
        return Reading::fail(words).accusing(Side::Server);
    }
    // Service times that differ may be the server's nature as well as a queue: they accuse nobody.
    let headroom = facts.server_headroom();
    let has_room = headroom.is_some_and(|headroom| headroom >= HEADROOM_LEAST);
    match facts.queueing() {
        Some(times) if times < QUEUED_RATIO && has_room => {
            let words = format!("{words}, all connections busy");
            Reading::fail(words).accusing(Side::Concurrency)
        }
        _ => Reading::warn(words),
    }
}

pub(super) fn connections(facts: &RunFacts<'_>) -> Reading {
    let places = facts.places_told();
    let Some(busy) = facts.connections_busy() else {
        return Reading::unknown("how busy the connections were is not known");
    };
    if busy < CONNECTIONS_BUSY || (!facts.is_closed() && facts.overload.is_none()) {
        return Reading::healthy(format!("{places}, {} busy", percent(busy)));
    }
    let words = format!("{places}, all busy");
    let Some(headroom) = facts.server_headroom() else {
        return Reading::unknown(format!("{words}; whether the server has room is not known"));
    };
    // A single request has nothing to wait for but itself: more of them use all that is left.
    let (least, queueing) = if facts.places() == 1 {
        (HEADROOM_OF_ONE, Some(1.0))
    } else {
        (HEADROOM_LEAST, facts.queueing())
    };
    if headroom < least {
        return Reading::healthy(format!("{words}; the server has no room"));
    }
    match queueing {
        None => Reading::unknown(format!("{words}; too few samples to see a queue")),
        Some(times) if times > UNQUEUED_RATIO => {
            Reading::warn(format!("{words}; service time {}× its best", number(times)))
        }
        Some(_) => Reading::fail(format!("{places}, always busy")),
    }
}

pub(super) fn elasticity(facts: &RunFacts<'_>) -> Reading {
    let Some(elasticity) = facts.elasticity else {
        let was_tried = facts.run.workers().any(|worker| worker.halving.is_some());
        return Reading::unknown(if was_tried {
            "the warm-up was too short to tell"
        } else {
            "no other number of connections was tried"
        });
    };
    let effect = elasticity.effect;
    let when = if elasticity.is_of_warm_up {
        "in the warm-up, "
    } else {
        ""
    };
    let gain = |value: f64| MORE_CONNECTIONS.powf(value) - 1.0;
    let value = gain(effect.value);
    let which = if value < 0.0 { "less" } else { "more" };
    let words = format!(
        "{when}{} more connections give {} {which} throughput ({} to {})",
        percent(MORE_CONNECTIONS - 1.0),
        percent(value.abs()),
        percent(gain(effect.low)),
        percent(gain(effect.high))
    );
    if elasticity.gives_more() {
        Reading::fail(words)
    } else if elasticity.gives_nothing() {
        Reading::healthy(words)
    } else {
        Reading::warn(words)
    }
}

pub(super) fn steal(facts: &RunFacts<'_>) -> Reading {
    let Some((share, steal_ns)) = facts.steal() else {
        return missing(facts, "host.cpus", "the machine's CPUs were not read");
    };
    let mut words = format!("steal {}", percent(share));
    if steal_ns < STEAL_LEAST_NS {
        return Reading::healthy(words);
    }
    let grade = grade_above(share, STEAL_WARN, STEAL_FAIL);
    if let Some(told) = facts.clean_told() {
        // The verdict is found without what was stolen.
        let grade = grade_above(share, STEAL_WARN, f64::INFINITY);
        return Reading::new(grade, format!("{words}; judged on {told}"));
    }
    let left_ns = facts.left.and_then(|left| left.clean_ns);
    if let Some(left_ns) = left_ns.filter(|_| grade != Grade::Healthy) {
        let [left, all] = [left_ns, facts.run.window_ns].map(|ns| duration(ns as f64));
        words.push_str(&format!("; only {left} of {all} without"));
    }
    Reading::new(grade, words)
}

pub(super) fn drift(facts: &RunFacts<'_>) -> Reading {
    let found = &facts.steadiness;
    let by_halves = found.halves_differ.map(compared);
    let by_halves = by_halves.map(|words| format!("the second half was {words} than the first"));
    if !found.drifts {
        return match by_halves {
            Some(words) => Reading::healthy(words),
            None => Reading::unknown("too short, or planned to change"),
        };
    }
    let by_trend = || {
        Some(format!(
            "its end was {} than its start",
            compared(found.trend?)
        ))
    };
    let Some(words) = by_halves.or_else(by_trend) else {
        return Reading::fail("the rate drifted from nothing");
    };
    let exceeds = |change: Option<f64>, limit| change.is_some_and(|change| change.abs() > limit);
    let is_much =
        exceeds(found.halves_differ, DRIFT_FAIL_HALVES) || exceeds(found.trend, DRIFT_FAIL_TREND);
    let grade = if is_much { Grade::Fail } else { Grade::Warn };
    Reading::new(grade, format!("the rate drifted: {words}"))
}

/// A change of a rate in words: `38 % slower`.
fn compared(change: f64) -> String {
    let word = if change < 0.0 { "slower" } else { "faster" };
    format!("{} {word}", percent(change.abs()))
}

pub(super) fn samples(facts: &RunFacts<'_>) -> Reading {
    let (replies, window_ns) = match facts.clean {
        Some(clean) => (clean.replies, clean.clean_ns),
        None => (facts.replies(), facts.run.window_ns),
    };
    let (is_long, length) = (window_ns >= WINDOW_LEAST_NS, duration(window_ns as f64));
    if facts.run.is_streams() {
        return Reading::healthy_if(is_long, format!("streams over {length}"));
    }
    let words = format!("{} in {length}", counted(replies, "reply", "replies"));
    Reading::healthy_if(is_long && replies >= REPLIES_LEAST, words)
}

/// Share of the CPUs of client and server that other programs used, from which on they disturb
/// whoever waits for one.
const TAKEN_BY_OTHERS_FAIL: f64 = 0.05;

/// What other programs used of the CPUs that brunt or the server may use. A server on this machine
/// that was not watched is one of those programs: then nobody knows who took what from whom.
pub(super) fn other_programs(facts: &RunFacts<'_>) -> Reading {
    let is_server_unseen = facts.is_local() && facts.server().is_none();
    if is_server_unseen && !facts.run.is_simulated() {
        return Reading::unknown("the server was not watched, and would count as another program");
    }
    let wanted = facts.agent.cpus_of_both();
    let ledger = CpuLedger::over(facts.agent, |cpu| wanted.contains(&cpu));
    let Some((ledger, others_ns)) = ledger.and_then(|it| it.others_ns.map(|ns| (it, ns))) else {
        return Reading::unknown("other programs were not read");
    };
    let used = ledger.in_cpus(others_ns);
    let share = ratio(used, ledger.cpus.into()).unwrap_or(0.0);
    let all = cpus(ledger.cpus.into());
    let mut words = format!("other programs used {used:.2} of {all}");
    if let Some(largest) = ledger
        .others
        .first()
        .filter(|_| share >= TAKEN_BY_OTHERS_FAIL)
    {
        let of_it = ledger.in_cpus(largest.cpu_ns);
        words = format!("{words} ({} {of_it:.2})", program(&largest.name));
    }
    let waited = |share: Option<f64>| share.filter(|&share| share >= RUN_WAIT_FAIL);
    let client = waited(facts.threads.and_then(|threads| threads.waited));
    let of_others = |_: &f64| facts.others_took_from_server(used);
    let server = waited(facts.server_run_wait()).filter(of_others);
    // A server that has all the CPU that it may have is measured, whatever brunt waits for.
    let is_full = facts.server_use().is_some_and(|used| used >= SERVER_FAIL);
    let who = match (client, server) {
        _ if share < TAKEN_BY_OTHERS_FAIL => return Reading::healthy(words),
        (_, Some(share)) => format!("the server waited for a CPU {} of its time", percent(share)),
        (Some(share), None) if !is_full => {
            format!("brunt waited for a CPU {} of the time", percent(share))
        }
        _ => return Reading::healthy(format!("{words}, and nobody waited for one")),
    };
    Reading::fail(format!("{words} while {who}"))
}
