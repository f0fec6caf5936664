//! F2, F4 and F5: all parts of a plan that several agents share out are there and hold by
//! themselves, and the agents had one window.

use brunt_record::FleetAgent;

use super::windows::{OVERLAP_BROKEN, OVERLAP_FLAGGED, WAKE_UP_NS};
use crate::facts::Facts;
use crate::invariants::{CheckOutcome, Checked, Problems, must, only_if};
use crate::units::exact::{percent, time};
use crate::units::plural;

/// Missing workers that are named.
const MISSING_SHOWN: usize = 8;

fn of_fleet<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'a FleetAgent> + Clone {
    facts.agents.iter().filter_map(|agent| agent.fleet.as_ref())
}

/// F2.
pub(super) fn parts_are_whole(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let mut problems = Problems::default();
    for agent in &run.lost_agents {
        problems.expect(false, || {
            let workers = plural(agent.workers, "worker");
            format!("agent {} {} ({workers})", agent.name, agent.reason)
        });
    }
    problems.none()?;
    let numbers = run.worker_numbers();
    let Some(whole) = &run.part_of else {
        only_if(!run.is_plain(), "one agent has all workers")?;
        // Workers of one plan are numbered from 0 on, each once.
        let are_numbered = (0..).zip(&numbers).all(|(place, number)| place == *number);
        only_if(are_numbered, "each agent has a plan of its own")?;
        let agents = plural(run.agents.len(), "agent");
        let workers = plural(numbers.len(), "worker");
        let words = format!("{agents} have the {workers} of the plan, each once");
        return Ok(CheckOutcome::held(words));
    };
    let is_missing = |number: &u32| numbers.binary_search(number).is_err();
    let missing = (0..whole.workers).filter(is_missing).take(MISSING_SHOWN);
    let shown: Vec<String> = missing.map(|number| number.to_string()).collect();
    let are_all_shown = numbers.len() + shown.len() == whole.workers as usize;
    let words = format!(
        "{} of {} are here, without {}{}",
        numbers.len(),
        plural(whole.workers, "worker"),
        shown.join(", "),
        if are_all_shown { "" } else { " and others" }
    );
    // A part by itself says nothing of the others.
    only_if(!run.is_plain(), &format!("a part of a plan: {words}"))?;
    Err(CheckOutcome::broken(words))
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

/// F5.
pub(super) fn agents_hold(facts: &Facts<'_>) -> Checked {
    let agents = of_fleet(facts);
    let count = agents.clone().count();
    only_if(count > 0, "no agent was judged by itself")?;
    let mut problems = Problems::default();
    for agent in agents {
        problems.expect(agent.broken.is_empty(), || {
            let (name, broken) = (&agent.name, agent.broken.join(", "));
            format!("agent {name} is INVALID by itself ({broken} broken)")
        });
    }
    let agents = plural(count, "agent");
    problems.or_held(format!("each part of {agents} holds by itself"))
}
