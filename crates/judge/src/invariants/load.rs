//! L1 and L7: the load that was asked for was put on.

use std::fmt::Write as _;

use brunt_load::LoadModel;
use brunt_record::{FailureKind, after_ns, counted};

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems, percent, time};
use super::windows::WAKE_UP_NS;
use crate::figures::held::Lost;

/// Share of the connections asked for that must be open on average.
const LIVE_LEAST: f64 = 0.99;
/// How far a timer may be off, beside 1 % of its length.
const TIMER_NS: u64 = 10_000_000;

/// L1. Whoever replaces connections by plan has fewer of them open; so has a client whose server
/// closes or refuses them. The first is what was asked for; the second is the server's doing, and
/// flagged: while a connection is being opened, and while the pause after an attempt that failed
/// lasts, brunt does what it can. What is missing beside that is brunt's fault.
pub(super) fn connections_held(facts: &Facts<'_>) -> Outcome {
    let (run, live) = (facts.run, &facts.summary.live);
    let share = &facts.agent().share;
    let asked = share.connections;
    if facts.no_window() {
        return Outcome::not_applicable("there is no window");
    }
    let mut problems = Problems::default();
    let (held, most) = match run.plan.model {
        LoadModel::Closed { .. } | LoadModel::Held { .. } => (asked, asked),
        LoadModel::Open { .. } => (asked, share.connections_max.unwrap_or(asked)),
        LoadModel::Sessions { .. } => (0, asked),
    };
    let dealt = sum(facts.workers().map(|worker| worker.live.asked.into()));
    problems.expect(dealt == u128::from(held), || {
        let held = counted(held.into(), "connection", "connections");
        format!("{held} asked for, {dealt} dealt out to the workers")
    });
    let dealt = sum(facts.workers().map(|worker| worker.live.most.into()));
    problems.expect(dealt == u128::from(most), || {
        let most = counted(most.into(), "connection", "connections");
        format!("{most} at most, {dealt} dealt out to the workers")
    });
    for worker in facts.workers() {
        let (of_worker, number) = (&worker.live, facts.number(worker));
        problems.expect(of_worker.max <= of_worker.most, || {
            format!(
                "worker {number}: {} open, at most {} allowed",
                of_worker.max, of_worker.most
            )
        });
    }
    if run.is_held() {
        let (kept, opened) = (
            sum(facts.workers().map(|worker| worker.connections_kept)),
            facts.summary.lifetime.connections_opened,
        );
        let lost = Lost::of(&facts.summary);
        let open = facts.summary.live.at_end.unwrap_or(0);
        let ended = u128::from(lost.closed) + u128::from(lost.given_up);
        problems.expect(
            kept + u128::from(opened) == ended + u128::from(open),
            || {
                format!(
                    "{kept} kept and {opened} opened, but {ended} lost and {open} open at the end"
                )
            },
        );
    }
    if let Some(broken) = problems.broken() {
        return broken;
    }
    let window_ns = facts.window_ns() as f64;
    let needed = f64::from(asked) * LIVE_LEAST;
    let mean = live.connection_ns as f64 / window_ns;
    let open = format!(
        "open: {mean:.2} on average, {} at least, {} at most",
        live.min, live.max
    );
    if facts.is_sessions() {
        return Outcome::not_applicable(format!(
            "connections come and go by plan, at most {asked} at once; {open}"
        ));
    }
    let words = format!(
        "{} asked for; {open} ({})",
        counted(asked.into(), "connection", "connections"),
        percent(mean / f64::from(asked.max(1))),
    );
    if !run.plan.keepalive() || run.plan.requests_per_connection().is_some() {
        return Outcome::not_applicable(format!("connections are replaced by plan; {words}"));
    }
    // Users whose connection ended think by plan before they open the next one, and an open loop
    // opens none that no request needs.
    let missing = live.missing;
    let mut words = words;
    for (missing_ns, whose) in [
        (missing.thinking_ns, "of users who thought"),
        (missing.unneeded_ns, "that no request needed"),
    ] {
        if missing_ns > 0 {
            let _ = write!(
                words,
                "; {:.2} on average {whose}",
                missing_ns as f64 / window_ns
            );
        }
    }
    let unasked_ns = missing.thinking_ns.saturating_add(missing.unneeded_ns);
    let unasked = unasked_ns as f64 / window_ns;
    if mean + unasked >= needed {
        return Outcome::held(words);
    }
    let opened = facts.summary.window.connections_opened;
    if facts.ended_by_count() {
        // Connections idle or close as the count runs out: only never having had them counts.
        let were_tried = missing.retrying_ns > 0 || missing.opening_ns > 0;
        return if f64::from(live.max) >= needed {
            Outcome::not_applicable(format!("the count ran out; {words}"))
        } else if were_tried {
            Outcome::flagged(format!("they were not to be had; {words}"))
        } else if facts.summary.window.replies.total() == 0 {
            Outcome::flagged(format!("nothing was answered; {words}"))
        } else {
            Outcome::broken(words)
        };
    }
    let opening = missing.opening_ns as f64 / window_ns;
    let retrying = missing.retrying_ns as f64 / window_ns;
    let words = format!(
        "{words}; {opened} were opened anew, {opening:.2} on average were being opened, \
         {retrying:.2} waited for the next attempt"
    );
    // A worker that wakes up late opens late.
    let late = f64::from(asked) * WAKE_UP_NS as f64 / window_ns;
    if mean + opening + retrying + unasked + late >= needed {
        Outcome::flagged(words)
    } else {
        Outcome::broken(words)
    }
}

/// L7. In an open loop the time runs from the planned instant. That a timed-out request is not also
/// answered is W6's sum; here: not more often than requests went unanswered, not before its time,
/// and no answer after it.
pub(super) fn timeouts_once(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let timeout_ns = run.plan.timeout_ns;
    let slack_ns = TIMER_NS.max(timeout_ns / 100);
    let mut problems = Problems::default();
    let with_clocks = facts.agents.iter().flat_map(|agent| {
        let clock = &agent.clock;
        agent.workers.iter().map(move |worker| (worker, clock))
    });
    for (worker, clock) in with_clocks {
        let lifetime = worker.tallies.lifetime();
        let timed_out = lifetime.failures.get(FailureKind::TimedOut);
        let unanswered = lifetime
            .requests_sent
            .saturating_sub(lifetime.replies.total());
        problems.expect(timed_out <= unanswered, || {
            format!(
                "worker {}: {}, {} without an answer",
                facts.number(worker),
                counted(timed_out, "time-out", "time-outs"),
                counted(unanswered, "request", "requests")
            )
        });
        let first = if facts.is_open() {
            clock.edges.warmup_start
        } else {
            worker.first_send
        };
        if let (Some(first_ns), Some(end_ns)) = (first.get(), clock.edges.drain_end.get()) {
            let lasted_ns = after_ns(first_ns, end_ns);
            problems.expect(
                timed_out == 0 || lasted_ns >= timeout_ns.saturating_sub(slack_ns),
                || {
                    format!(
                        "worker {}: {} of {} in {}",
                        facts.number(worker),
                        counted(timed_out, "time-out", "time-outs"),
                        time(timeout_ns),
                        time(lasted_ns)
                    )
                },
            );
        }
    }
    let mut longest_ns = 0;
    for (words, histogram) in facts.latencies() {
        let max_ns = histogram.max_ns().unwrap_or(0);
        problems.expect(max_ns <= timeout_ns.saturating_add(slack_ns), || {
            format!(
                "{words}: {} recorded, the time-out is {}",
                time(max_ns),
                time(timeout_ns)
            )
        });
        longest_ns = longest_ns.max(max_ns);
    }
    let words = format!(
        "{} of {}; longest latency {}",
        counted(
            facts.summary.lifetime.failures.get(FailureKind::TimedOut),
            "time-out",
            "time-outs"
        ),
        time(timeout_ns),
        time(longest_ns)
    );
    match problems.broken() {
        Some(broken) => broken,
        None if longest_ns > timeout_ns => Outcome::flagged(words),
        None => Outcome::held(words),
    }
}
