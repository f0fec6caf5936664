//! F1 to F5 and F8: a plan that several agents share out among them, their common window, and their
//! clocks.

use std::ops::RangeInclusive;

use brunt_record::{AgreedClock, FleetAgent, Run, counted};

use super::facts::Facts;
use super::outcome::{Outcome, Problems, percent, time};
use super::windows::{OVERLAP_BROKEN, OVERLAP_FLAGGED, WAKE_UP_NS};

/// Missing workers that are named, and agents.
const RANGES_TOLD: usize = 3;
/// A clock that drifts further from the coordinator's, as a part of the window, is flagged.
const DRIFT_FLAGGED: f64 = 200e-6;
/// One that drifts further than this is not known as well as its bound says.
const DRIFT_BROKEN: f64 = 1_000e-6;

/// F1.
pub(super) fn plan_is_one(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    if !are_parts(run) {
        return Outcome::not_applicable("no plan is shared out");
    }
    let first = run.first();
    let mut problems = Problems::default();
    for (agent, number) in run.agents.iter().zip(1..) {
        problems.expect(agent.seeds == first.seeds, || {
            format!("agent {number} has other seeds than agent 1")
        });
        problems.expect(
            agent.negotiated.protocol == first.negotiated.protocol,
            || format!("agent {number} negotiated another protocol than agent 1"),
        );
    }
    problems.or_held(format!(
        "one plan and one set of seeds for {}",
        counted(run.agents.len() as u64, "agent", "agents")
    ))
}

/// F3.
pub(super) fn shares_are_of_the_plan(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    if !are_parts(run) {
        return Outcome::not_applicable("no plan is shared out");
    }
    let amounts = run.plan.amounts();
    let whole = run.part_of.as_ref().unwrap_or(&amounts);
    let Some(plan) = run.plan.with_amounts(whole) else {
        return Outcome::broken("no plan has the amounts that are shared out");
    };
    let mut problems = Problems::default();
    for (agent, place) in run.agents.iter().zip(1..) {
        let numbers = agent.workers.iter().map(|worker| worker.worker);
        let first = numbers.min().unwrap_or(0);
        let workers = first..first.saturating_add(agent.workers.len() as u32);
        let share = plan.part(workers.clone()).map(|part| part.amounts());
        problems.expect(share.is_some_and(|it| it.is_about(&agent.share)), || {
            format!(
                "agent {place} had not what workers {} to {} have of the plan",
                workers.start,
                workers.end.max(1) - 1
            )
        });
    }
    problems.or_held(format!(
        "{} among {}, each its exact share",
        counted(whole.connections.into(), "connection", "connections"),
        counted(run.agents.len() as u64, "agent", "agents"),
    ))
}

/// Whether the agents have parts of one plan, or all of them.
fn are_parts(run: &Run) -> bool {
    let numbers = run.worker_numbers();
    let are_numbered = (0..).zip(&numbers).all(|(place, &number)| place == number);
    run.part_of.is_some() || !run.is_plain() && are_numbered
}

/// F5.
pub(super) fn agents_hold(facts: &Facts<'_>) -> Outcome {
    let agents = facts.run.agents.iter();
    let agents: Vec<&FleetAgent> = agents.filter_map(|agent| agent.fleet.as_ref()).collect();
    if agents.is_empty() {
        return Outcome::not_applicable("no agent was judged by itself");
    }
    let mut problems = Problems::default();
    for agent in &agents {
        problems.expect(agent.broken.is_empty(), || {
            format!("agent {} broke {}", agent.name, agent.broken.join(", "))
        });
    }
    problems.or_held(format!(
        "each part of {} holds by itself",
        counted(agents.len() as u64, "agent", "agents")
    ))
}

/// F2.
pub(super) fn parts_are_whole(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    if !run.lost_agents.is_empty() {
        return Outcome::broken(lost(facts));
    }
    let numbers = run.worker_numbers();
    let Some(whole) = &run.part_of else {
        let are_numbered = (0..).zip(&numbers).all(|(place, &number)| place == number);
        return match (run.is_plain(), are_numbered) {
            (true, _) => Outcome::not_applicable("one agent has all workers"),
            (false, true) => Outcome::held(format!(
                "{} have the {} of the plan, each once",
                counted(run.agents.len() as u64, "agent", "agents"),
                counted(numbers.len() as u64, "worker", "workers"),
            )),
            (false, false) => Outcome::not_applicable("each agent has a plan of its own"),
        };
    };
    let missing = missing(&numbers, whole.workers);
    let told: Vec<String> = missing
        .iter()
        .take(RANGES_TOLD)
        .map(|range| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{} to {}", range.start(), range.end()),
        })
        .collect();
    let more = match missing.len() > told.len() {
        true => " and others",
        false => "",
    };
    let words = format!(
        "{} of {} are here, without {}{more}",
        numbers.len(),
        counted(whole.workers.into(), "worker", "workers"),
        told.join(", "),
    );
    match run.is_plain() {
        // A part by itself says nothing of the others.
        true => Outcome::not_applicable(format!("a part of a plan: {words}")),
        false => Outcome::broken(words),
    }
}

/// The agents that gave no result, in words.
fn lost(facts: &Facts<'_>) -> String {
    let lost = &facts.run.lost_agents;
    let told: Vec<String> = lost
        .iter()
        .take(RANGES_TOLD)
        .map(|agent| {
            let last = agent.first_worker.saturating_add(agent.workers.max(1)) - 1;
            let workers = match agent.workers {
                0 | 1 => format!("worker {last}"),
                _ => format!("workers {} to {last}", agent.first_worker),
            };
            format!("agent {} {} ({workers})", agent.name, agent.reason)
        })
        .collect();
    let more = match lost.len() > told.len() {
        true => format!("; and {} more", lost.len() - told.len()),
        false => String::new(),
    };
    format!("{}{more}", told.join("; "))
}

/// F4.
pub(super) fn windows_are_one(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let of_fleet = || run.agents.iter().filter_map(|agent| agent.fleet.as_ref());
    if of_fleet().next().is_none() {
        return Outcome::not_applicable("no clocks were agreed on");
    }
    let Some(shared_ns) = run.agreed_overlap_ns() else {
        let unknown = of_fleet().find(|agent| agent.clock.is_none());
        return match unknown {
            Some(agent) => Outcome::broken(format!(
                "the clock of agent {} contradicts itself: it was set, or drifts",
                agent.name
            )),
            None => Outcome::not_applicable("not all agents were of a fleet"),
        };
    };
    let clocks: Vec<AgreedClock> = of_fleet().filter_map(|agent| agent.clock).collect();
    let bounds = clocks.iter();
    let bounds = bounds.map(|clock| clock.start_bound_ns.max(clock.end_bound_ns));
    let share = shared_ns as f64 / run.window_ns.max(1) as f64;
    let words = format!(
        "{} of the window at worst, clocks known to {}",
        percent(share),
        time(bounds.max().unwrap_or(0)),
    );
    // In a short run bounds of milliseconds are a large part of it, and say nothing.
    let missing_ns = run.window_ns.saturating_sub(shared_ns);
    match missing_ns > WAKE_UP_NS {
        true if share < OVERLAP_BROKEN => Outcome::broken(words),
        true if share < OVERLAP_FLAGGED => Outcome::flagged(words),
        _ => Outcome::held(words),
    }
}

/// F8.
pub(super) fn clocks_are_steady(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let clocks = run.agents.iter().filter_map(|agent| agent.fleet.as_ref());
    let clocks: Vec<AgreedClock> = clocks.filter_map(|agent| agent.clock).collect();
    if clocks.is_empty() {
        return Outcome::not_applicable("no clocks were agreed on");
    }
    // What the bounds leave open is neither drift nor lateness.
    let most = |of: fn(&AgreedClock) -> (u64, u64)| {
        let sure = clocks.iter().map(|clock| {
            let (ns, bound_ns) = of(clock);
            (ns.saturating_sub(bound_ns), ns)
        });
        sure.max().unwrap_or_default()
    };
    let (sure_drift_ns, drift_ns) = most(|clock| {
        let bound_ns = clock.start_bound_ns.saturating_add(clock.end_bound_ns);
        (clock.drift_ns().unsigned_abs(), bound_ns)
    });
    let (sure_skew_ns, skew_ns) =
        most(|clock| (clock.start_skew_ns.unsigned_abs(), clock.start_bound_ns));
    let words = format!(
        "begun {} from the agreed instant at most, apart by {} more at the end",
        time(skew_ns),
        time(drift_ns),
    );
    let drifts = |limit: f64| sure_drift_ns as f64 > run.window_ns as f64 * limit;
    match (drifts(DRIFT_BROKEN), sure_skew_ns > WAKE_UP_NS) {
        (true, _) => Outcome::broken(words),
        (false, true) => Outcome::flagged(words),
        (false, false) if drifts(DRIFT_FLAGGED) => Outcome::flagged(words),
        (false, false) => Outcome::held(words),
    }
}

/// The numbers below `all` that are not among these, which are in order.
fn missing(numbers: &[u32], all: u32) -> Vec<RangeInclusive<u32>> {
    let mut missing = Vec::new();
    let mut next = 0;
    for &number in numbers {
        if number > next && next < all {
            missing.push(next..=number.min(all) - 1);
        }
        next = next.max(number.saturating_add(1));
    }
    if next < all {
        missing.push(next..=all - 1);
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_named() {
        for (numbers, all, expected) in [
            (&[][..], 1, &[0..=0][..]),
            (&[0, 1], 2, &[]),
            (&[1, 2, 5], 8, &[0..=0, 3..=4, 6..=7]),
            (&[7, 9], 4, &[0..=3]),
            (&[u32::MAX], u32::MAX, &[0..=u32::MAX - 1]),
        ] {
            assert_eq!(missing(numbers, all), expected, "{numbers:?} of {all}");
        }
    }
}
