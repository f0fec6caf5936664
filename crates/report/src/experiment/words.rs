//! What comparisons say, in words, and the names of what is compared.

use std::collections::BTreeMap;

use brunt_measure::{
    Basis, ChangeLimit, Claim, Compared, ComparedPair, ComparedRounds, Comparison, Effect,
    ROUND_QUANTILES, RoundRecord,
};

use crate::figures::data_name;
use crate::units;

/// A, B, C and so on; behind Z the number.
pub fn side_name(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place @ 0..26) => char::from(b'A' + place).to_string(),
        _ => (place + 1).to_string(),
    }
}

/// The sentence.
pub(super) fn says(found: &ComparedPair) -> String {
    let comparison = &found.comparison;
    let (first, second) = (side_name(found.first), side_name(found.second));
    let change = comparison.change.unwrap_or(Effect {
        value: 0.0,
        low: 0.0,
        high: 0.0,
    });
    let basis = basis(comparison);
    match &comparison.claim {
        Claim::Differs => {
            let how = difference(comparison.compared, &second, &change, comparison.basis);
            format!("{how}, {basis})")
        }
        Claim::NoDifference { visible } => format!(
            "no difference shown between {first} and {second} ({}, {basis}); {} would have been \
             seen",
            interval(
                comparison.basis,
                &units::percent_change(change.low),
                &units::percent_change(change.high)
            ),
            units::percent(*visible)
        ),
        Claim::Nothing(reason) => {
            format!("nothing can be said of {first} and {second}: {reason}")
        }
    }
}

/// An interval in words.
fn interval(basis: Basis, low: &str, high: &str) -> String {
    match basis {
        Basis::Pairs | Basis::SingleRuns => format!("95 % CI {low} to {high}"),
        // Its ends are rates that held and missed, which is no matter of probability.
        Basis::Searches => format!("between {low} and {high}"),
    }
}

/// What a comparison rests on, and what its interval does not show.
fn basis(comparison: &Comparison) -> String {
    match comparison.basis {
        Basis::Pairs => format!("{} pairs", comparison.pairs - comparison.dropped.len()),
        Basis::SingleRuns => "from within one run of each: how runs vary from one to the next is \
                              not shown"
            .to_owned(),
        Basis::Searches => "by the rates that held and missed in one search of each: how searches \
                            vary is not shown"
            .to_owned(),
    }
}

/// `B is 4.2 % faster (95 % CI 3.1 % to 5.4 %`: what is known besides may follow in the bracket.
fn difference(compared: Compared, second: &str, change: &Effect, basis: Basis) -> String {
    let is_more = change.value > 0.0;
    let (value, low, high) = match is_more {
        true => (change.value, change.low, change.high),
        false => (-change.value, -change.high, -change.low),
    };
    let [value, low, high] = [value, low, high].map(units::percent);
    let how = match (compared, is_more) {
        (Compared::SuccessesPerS, true) => format!("{second} is {value} faster"),
        (Compared::SuccessesPerS, false) => format!("{second} is {value} slower"),
        (Compared::CapacityPerS, true) => format!("{second} holds {value} more"),
        (Compared::CapacityPerS, false) => format!("{second} holds {value} less"),
        (Compared::ResponseQuantile(q), true) => {
            format!("{} of {second} is {value} higher", quantile(q))
        }
        (Compared::ResponseQuantile(q), false) => {
            format!("{} of {second} is {value} lower", quantile(q))
        }
    };
    format!("{how} ({}", interval(basis, &low, &high))
}

/// `p50`, `p99.9`.
pub(super) fn quantile(q: f64) -> String {
    let known = ROUND_QUANTILES
        .iter()
        .find(|(_, known)| (known - q).abs() < 1e-9);
    known.map_or_else(
        || crate::objective::quantile(q),
        |(name, _)| (*name).to_owned(),
    )
}

/// `rate`, `p99`: as it is typed.
pub(super) fn compared_name(compared: Compared) -> String {
    match compared {
        Compared::SuccessesPerS => "rate".to_owned(),
        Compared::ResponseQuantile(q) => quantile(q),
        Compared::CapacityPerS => "capacity".to_owned(),
    }
}

/// How often each verdict was given, by its name in data.
pub(super) fn verdicts(rounds: &[RoundRecord]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for round in rounds {
        *counts.entry(data_name(round.verdict)).or_default() += 1;
    }
    counts
}

/// What is asked, as it is typed: `p99 > +5 %`.
pub(super) fn limit(limit: &ChangeLimit) -> String {
    let sign = if limit.is_rise { ">" } else { "<" };
    let change = units::percent_change(limit.change);
    format!("{} {sign} {change}", compared_name(limit.compared))
}

/// The limits that were exceeded, a line each.
pub fn exceeded_limits(compared: &ComparedRounds) -> Vec<String> {
    let exceeded = compared.exceeded();
    exceeded
        .iter()
        .map(|(which, pair)| format!("{}: {}", limit(which), says(pair)))
        .collect()
}

/// The limits of which nothing can be said, a line each.
pub fn limits_not_judged(compared: &ComparedRounds) -> Vec<String> {
    let pairs = compared.not_judged();
    pairs
        .iter()
        .map(|(which, pair)| format!("{}: {}", limit(which), says(pair)))
        .collect()
}
