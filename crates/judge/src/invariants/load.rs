//! L1 and L7: the load that was asked for was put on.

use std::fmt::Write as _;

use brunt_record::{FailureKind, after_ns};

use super::outcome::{Checked, Outcome, Problems, only_if};
use super::sums;
use super::windows::WAKE_UP_NS;
use crate::facts::Facts;
use crate::units::exact::{percent, time};
use crate::units::plural;

/// Share of the connections asked for that must be open on average.
const LIVE_LEAST: f64 = 0.99;
/// How far a timer may be off, beside 1 % of its length.
const TIMER_NS: u64 = 10_000_000;

/// L1. Whoever replaces connections by plan has fewer of them open; so has a client whose server
/// closes or refuses them. The first is what was asked for; the second is the server's doing, and
/// flagged: while a connection is being opened, and while the pause after an attempt that failed
/// lasts, brunt does what it can. What is missing beside that is brunt's fault.
pub(super) fn connections_held(facts: &Facts<'_>) -> Checked {
    let (run, live) = (facts.run, &facts.summary.live);
    let asked = facts.agent().share.connections;
    only_if(!facts.no_window(), "there is no window")?;
    let mut problems = Problems::default();
    sums::check("L1", facts, &mut problems);
    for worker in facts.workers() {
        let (max, most) = (worker.live.max, worker.live.most);
        problems.expect(max <= most, || {
            let number = facts.number(worker);
            format!("worker {number}: {max} open, at most {most} allowed")
        });
    }
    problems.none()?;
    let window_ns = facts.window_ns() as f64;
    let needed = f64::from(asked) * LIVE_LEAST;
    let mean = live.connection_ns as f64 / window_ns;
    let (min, max) = (live.min, live.max);
    let open = format!("open: {mean:.2} on average, {min} at least, {max} at most");
    let by_plan = format!("connections come and go by plan, at most {asked} at once; {open}");
    only_if(!facts.is_sessions(), &by_plan)?;
    let share = percent(mean / f64::from(asked.max(1)));
    let connections = plural(asked, "connection");
    let mut words = format!("{connections} asked for; {open} ({share})");
    let are_kept = run.plan.keepalive() && run.plan.requests_per_connection().is_none();
    let replaced = format!("connections are replaced by plan; {words}");
    only_if(are_kept, &replaced)?;
    // Users whose connection ended think by plan before they open the next one, and an open loop
    // opens none that no request needs.
    let missing = live.missing;
    for (missing_ns, whose) in [
        (missing.thinking_ns, "of users who thought"),
        (missing.unneeded_ns, "that no request needed"),
    ] {
        if missing_ns > 0 {
            let mean = missing_ns as f64 / window_ns;
            let _ = write!(words, "; {mean:.2} on average {whose}");
        }
    }
    let unasked_ns = missing.thinking_ns.saturating_add(missing.unneeded_ns);
    let unasked = unasked_ns as f64 / window_ns;
    if mean + unasked >= needed {
        return Ok(Outcome::held(words));
    }
    let opened = facts.summary.window.connections_opened;
    if facts.ended_by_count() {
        // Connections idle or close as the count runs out: only never having had them counts.
        let were_tried = missing.retrying_ns > 0 || missing.opening_ns > 0;
        return if f64::from(live.max) >= needed {
            Err(Outcome::not_applicable(format!(
                "the count ran out; {words}"
            )))
        } else if were_tried {
            Ok(Outcome::flagged(format!(
                "they were not to be had; {words}"
            )))
        } else if facts.summary.window.replies.total() == 0 {
            Ok(Outcome::flagged(format!("nothing was answered; {words}")))
        } else {
            Err(Outcome::broken(words))
        };
    }
    let [opening, retrying] =
        [missing.opening_ns, missing.retrying_ns].map(|ns| ns as f64 / window_ns);
    let words = format!(
        "{words}; {opened} were opened anew, {opening:.2} on average were being opened, \
         {retrying:.2} waited for the next attempt"
    );
    // A worker that wakes up late opens late.
    let late = f64::from(asked) * WAKE_UP_NS as f64 / window_ns;
    if mean + opening + retrying + unasked + late >= needed {
        Ok(Outcome::flagged(words))
    } else {
        Err(Outcome::broken(words))
    }
}

/// L7. In an open loop the time runs from the planned instant. That a timed-out request is not also
/// answered is W6's sum; here: not more often than requests went unanswered, not before its time,
/// and no answer after it.
pub(super) fn timeouts_once(facts: &Facts<'_>) -> Checked {
    let timeout_ns = facts.run.plan.timeout_ns;
    let slack_ns = TIMER_NS.max(timeout_ns / 100);
    let of = time(timeout_ns);
    let mut problems = Problems::default();
    let with_edges = facts.agents.iter().flat_map(|agent| {
        let workers = agent.workers.iter();
        workers.map(|worker| (worker, &agent.clock.edges))
    });
    for (worker, edges) in with_edges {
        let (number, lifetime) = (facts.number(worker), worker.tallies.lifetime());
        let count = lifetime.failures.get(FailureKind::TimedOut);
        let timed_out = plural(count, "time-out");
        let replies = lifetime.replies.total();
        let unanswered = lifetime.requests_sent.saturating_sub(replies);
        problems.expect(count <= unanswered, || {
            let unanswered = plural(unanswered, "request");
            format!("worker {number}: {timed_out}, {unanswered} without an answer")
        });
        let first = if facts.is_open() {
            edges.warmup_start
        } else {
            worker.first_send
        };
        if let (Some(first_ns), Some(end_ns)) = (first.get(), edges.drain_end.get()) {
            let lasted_ns = after_ns(first_ns, end_ns);
            let is_due = lasted_ns >= timeout_ns.saturating_sub(slack_ns);
            problems.expect(count == 0 || is_due, || {
                let lasted = time(lasted_ns);
                format!("worker {number}: {timed_out} of {of} in {lasted}")
            });
        }
    }
    for (words, histogram) in facts.latencies() {
        let max_ns = histogram.max_ns().unwrap_or(0);
        problems.expect(max_ns <= timeout_ns.saturating_add(slack_ns), || {
            format!("{words}: {} recorded, the time-out is {of}", time(max_ns))
        });
    }
    problems.none()?;
    let count = facts.summary.lifetime.failures.get(FailureKind::TimedOut);
    let (timed_out, longest) = (plural(count, "time-out"), time(facts.longest_ns()));
    let words = format!("{timed_out} of {of}; longest latency {longest}");
    let is_over = facts.longest_ns() > timeout_ns;
    Ok(Outcome::held_or_flagged(is_over, words))
}
