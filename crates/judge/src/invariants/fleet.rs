//! F2: a plan that several agents share out among them.

use std::ops::RangeInclusive;

use brunt_record::counted;

use super::facts::Facts;
use super::outcome::Outcome;

/// Missing workers that are named.
const RANGES_TOLD: usize = 3;

/// F2.
pub(super) fn parts_are_whole(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
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
