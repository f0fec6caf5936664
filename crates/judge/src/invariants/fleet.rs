//! F2 and F4: a plan that several agents share out among them, and their common window.

use std::ops::RangeInclusive;

use brunt_record::{AgreedClock, counted};

use super::facts::Facts;
use super::outcome::{Outcome, percent, time};
use super::windows::{OVERLAP_BROKEN, OVERLAP_FLAGGED, WAKE_UP_NS};

/// Missing workers that are named, and agents.
const RANGES_TOLD: usize = 3;
/// A clock that drifts further from the coordinator's, as a part of the window, is flagged.
const DRIFT_FLAGGED: f64 = 200e-6;

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
    let drifts = clocks.iter().map(|clock| clock.drift_ns().unsigned_abs());
    let (bound_ns, drift_ns) = (bounds.max().unwrap_or(0), drifts.max().unwrap_or(0));
    let share = shared_ns as f64 / run.window_ns.max(1) as f64;
    // What the bounds leave open is no drift.
    let sure_drift_ns = drift_ns.saturating_sub(bound_ns.saturating_mul(2));
    let drifts = sure_drift_ns as f64 > run.window_ns as f64 * DRIFT_FLAGGED;
    let words = format!(
        "{} of the window at worst, clocks known to {}, apart by {} more at its end",
        percent(share),
        time(bound_ns),
        time(drift_ns),
    );
    // In a short run bounds of milliseconds are a large part of it, and say nothing.
    let missing_ns = run.window_ns.saturating_sub(shared_ns);
    match (share < OVERLAP_BROKEN, share < OVERLAP_FLAGGED || drifts) {
        (true, _) if missing_ns > WAKE_UP_NS => Outcome::broken(words),
        (_, true) if missing_ns > WAKE_UP_NS || drifts => Outcome::flagged(words),
        _ => Outcome::held(words),
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
