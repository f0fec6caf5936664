//! F1 to F5 and F8: a plan that several agents share out among them, their common window, and their
//! clocks.

use std::ops::RangeInclusive;

use brunt_record::{AgreedClock, FleetAgent, Run};

use super::windows::{OVERLAP_BROKEN, OVERLAP_FLAGGED, WAKE_UP_NS};
use crate::facts::Facts;
use crate::invariants::{CheckOutcome, Checked, Problems, must, only_if};
use crate::units::exact::{percent, time};
use crate::units::plural;

/// Ranges of missing workers that are named.
const RANGES_SHOWN: usize = 3;
/// A clock that drifts further from the coordinator's, as a part of the window, is flagged.
const DRIFT_FLAGGED: f64 = 200e-6;
/// One that drifts further than this is not known as well as its bound says.
const DRIFT_BROKEN: f64 = 1_000e-6;

/// F1.
pub(super) fn plan_is_one(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    only_if(are_parts(run), "no plan is shared out")?;
    let first = run.first();
    let mut problems = Problems::default();
    for (agent, number) in run.agents.iter().zip(1..) {
        problems.expect(agent.seeds == first.seeds, || {
            format!("agent {number} has other seeds than agent 1")
        });
    }
    let agents = plural(run.agents.len(), "agent");
    problems.or_held(format!("one plan and one set of seeds for {agents}"))
}

/// F3.
pub(super) fn shares_are_of_the_plan(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    only_if(are_parts(run), "no plan is shared out")?;
    let amounts = run.plan.amounts();
    let whole = run.part_of.as_ref().unwrap_or(&amounts);
    let none = || CheckOutcome::broken("no plan has the amounts that are shared out");
    let plan = run.plan.with_amounts(whole).ok_or_else(none)?;
    let mut problems = Problems::default();
    for (agent, place) in run.agents.iter().zip(1..) {
        let numbers = agent.workers.iter().map(|worker| worker.worker);
        let first = numbers.min().unwrap_or(0);
        let end = first.saturating_add(agent.workers.len() as u32);
        let share = plan.part(first..end).map(|part| part.amounts());
        let is_exact = share.is_some_and(|share| share.is_about(&agent.share));
        problems.expect(is_exact, || {
            let last = end.max(1) - 1;
            format!("agent {place} had not what workers {first} to {last} have of the plan")
        });
    }
    let connections = plural(whole.connections, "connection");
    let agents = plural(run.agents.len(), "agent");
    problems.or_held(format!(
        "{connections} among {agents}, each its exact share"
    ))
}

/// Whether the agents have parts of one plan, or all of them.
fn are_parts(run: &Run) -> bool {
    run.part_of.is_some() || !run.is_plain() && are_numbered(run)
}

/// Whether the workers of all agents are numbered from 0 on, each once.
fn are_numbered(run: &Run) -> bool {
    (0..)
        .zip(run.worker_numbers())
        .all(|(place, number)| place == number)
}

fn of_fleet<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'a FleetAgent> + Clone {
    facts.agents.iter().filter_map(|agent| agent.fleet.as_ref())
}

/// F5.
pub(super) fn agents_hold(facts: &Facts<'_>) -> Checked {
    let agents = of_fleet(facts);
    let count = agents.clone().count();
    only_if(count > 0, "no agent was judged by itself")?;
    let mut problems = Problems::default();
    for agent in agents {
        problems.expect(agent.broken.is_empty(), || {
            format!("agent {} broke {}", agent.name, agent.broken.join(", "))
        });
    }
    let agents = plural(count, "agent");
    problems.or_held(format!("each part of {agents} holds by itself"))
}

/// F2.
pub(super) fn parts_are_whole(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let mut problems = Problems::default();
    for agent in &run.lost_agents {
        problems.expect(false, || {
            let last = agent.first_worker.saturating_add(agent.workers.max(1)) - 1;
            let noun = match agent.workers {
                0 | 1 => "worker",
                _ => "workers",
            };
            let workers = workers_words(agent.first_worker, last);
            format!("agent {} {} ({noun} {workers})", agent.name, agent.reason)
        });
    }
    problems.none()?;
    let numbers = run.worker_numbers();
    let Some(whole) = &run.part_of else {
        only_if(!run.is_plain(), "one agent has all workers")?;
        only_if(are_numbered(run), "each agent has a plan of its own")?;
        let agents = plural(run.agents.len(), "agent");
        let workers = plural(numbers.len(), "worker");
        let words = format!("{agents} have the {workers} of the plan, each once");
        return Ok(CheckOutcome::held(words));
    };
    let missing = missing(&numbers, whole.workers);
    let shown = missing.iter().take(RANGES_SHOWN);
    let shown = shown.map(|range| workers_words(*range.start(), *range.end()));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = if missing.len() > RANGES_SHOWN {
        " and others"
    } else {
        ""
    };
    let all = plural(whole.workers, "worker");
    let here = numbers.len();
    let words = format!("{here} of {all} are here, without {shown}{more}");
    // A part by itself says nothing of the others.
    only_if(!run.is_plain(), &format!("a part of a plan: {words}"))?;
    Err(CheckOutcome::broken(words))
}

fn workers_words(first: u32, last: u32) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first} to {last}")
    }
}

/// F4.
pub(super) fn windows_are_one(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    only_if(of_fleet(facts).next().is_some(), "no clocks were agreed on")?;
    let Some(shared_ns) = run.agreed_overlap_ns() else {
        let unknown = of_fleet(facts).find(|agent| agent.clock.is_none());
        let agent = unknown
            .ok_or_else(|| CheckOutcome::not_applicable("not all agents were of a fleet"))?;
        let name = &agent.name;
        let words = format!("the clock of agent {name} contradicts itself: it was set, or drifts");
        return Err(CheckOutcome::broken(words));
    };
    let clocks = of_fleet(facts).filter_map(|agent| agent.clock);
    let bounds = clocks.map(|clock| clock.start_bound_ns.max(clock.end_bound_ns));
    let share = shared_ns as f64 / run.window_ns.max(1) as f64;
    let (shared, bound) = (percent(share), time(bounds.max().unwrap_or(0)));
    let words = format!("{shared} of the window at worst, clocks known to {bound}");
    // In a short run bounds of milliseconds are a large part of it, and say nothing.
    let is_short = run.window_ns.saturating_sub(shared_ns) <= WAKE_UP_NS;
    must(is_short || share >= OVERLAP_BROKEN, &words)?;
    let is_flagged = !is_short && share < OVERLAP_FLAGGED;
    Ok(CheckOutcome::held_or_flagged(is_flagged, words))
}

/// F8.
pub(super) fn clocks_are_steady(facts: &Facts<'_>) -> Checked {
    let clocks = of_fleet(facts).filter_map(|agent| agent.clock);
    let clocks: Vec<AgreedClock> = clocks.collect();
    only_if(!clocks.is_empty(), "no clocks were agreed on")?;
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
    let [skew, drift] = [skew_ns, drift_ns].map(time);
    let words =
        format!("begun {skew} from the agreed instant at most, apart by {drift} more at the end");
    let drifts = |limit: f64| sure_drift_ns as f64 > facts.run.window_ns as f64 * limit;
    must(!drifts(DRIFT_BROKEN), &words)?;
    let is_flagged = sure_skew_ns > WAKE_UP_NS || drifts(DRIFT_FLAGGED);
    Ok(CheckOutcome::held_or_flagged(is_flagged, words))
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
