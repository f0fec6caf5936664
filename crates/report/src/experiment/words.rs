//! What comparisons say, in words, and the names of what is compared.

use std::collections::{BTreeMap, BTreeSet};

use brunt_judge::{
    Basis, Bound, CapacityOutcome, ChangeLimit, Claim, Compared, ComparedPair, ComparedRounds,
    Comparison, Effect, EndedEarly, ROUND_QUANTILES, RoundRecord,
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

/// Longest label that stands for a side within a sentence.
const LABEL_CHARS_MAX: usize = 20;

/// What the sides are called in sentences: by their labels, where each has a short one of its own;
/// else A, B, C and so on.
pub(super) fn names(compared: &ComparedRounds) -> Vec<String> {
    let sides = compared.sides.iter();
    let labels: Option<BTreeSet<&str>> = sides
        .map(|side| side.label.as_deref().filter(|label| is_name(label)))
        .collect();
    match labels {
        Some(labels) if labels.len() == compared.sides.len() => {
            let labels = compared.sides.iter().filter_map(|side| side.label.clone());
            labels.collect()
        }
        _ => (0..compared.sides.len()).map(side_name).collect(),
    }
}

/// Whether a label is a short word, and no command.
fn is_name(label: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.+/@".contains(it);
    !label.is_empty() && label.len() <= LABEL_CHARS_MAX && label.chars().all(is_plain)
}

/// The name at this place.
fn name(names: &[String], place: usize) -> &str {
    names.get(place).map_or("", String::as_str)
}

/// From this factor on, a change is reported as a factor, and not in percent.
const TIMES_LEAST: f64 = 10.0;

/// The sentence.
pub(super) fn says(found: &ComparedPair, names: &[String]) -> String {
    let comparison = &found.comparison;
    let (first, second) = (name(names, found.first), name(names, found.second));
    match (&comparison.claim, comparison.change) {
        (Claim::Differs, Some(change)) => difference(found, names, &change),
        (Claim::NoDifference { visible }, Some(change)) => {
            let (changes, basis) = (changes(comparison.basis, change), basis(comparison));
            let visible = units::percent(*visible);
            format!(
                "no difference shown between {first} and {second} ({changes}, {basis}); {visible} \
                 would have been seen"
            )
        }
        (Claim::Nothing(reason), _) => {
            format!("nothing can be said of {first} and {second}: {reason}")
        }
        // Both claims rest on a change.
        (_, None) => format!("nothing can be said of {first} and {second}"),
    }
}

/// Half of a rate, which leaves room, as options take it; absent below 1 per second.
pub(super) fn half(per_s: f64) -> Option<String> {
    // Two digits are enough.
    let step = 10_f64.powf((per_s / 2.0).log10().floor() - 1.0);
    let half = (per_s / 2.0 / step).floor() * step;
    (half.is_finite() && half >= 1.0).then(|| format!("{half:.0}"))
}

/// What would make a comparison say something that brunt was the limit of throughout.
pub(super) fn advice(compared: &ComparedRounds) -> Option<String> {
    if compared.ended_early != Some(EndedEarly::ClientLimited) {
        return None;
    }
    let rounds = compared.sides.iter().flat_map(|side| &side.rounds);
    let rates = rounds.filter_map(|round| round.successes_per_s);
    let slowest = rates.fold(f64::INFINITY, f64::min);
    let rate = half(slowest).map_or_else(|| "-r RATE".to_owned(), |half| format!("-r {half}"));
    let plan = compared.load.as_ref();
    let is_planned = plan.is_some_and(|plan| plan.model.schedule().is_some());
    let mut ways = vec![if is_planned {
        format!("use a lower rate ({rate})")
    } else {
        format!("compare response times at a rate that brunt keeps ({rate})")
    }];
    let connections = plan.map_or(1, |plan| plan.connections.get());
    if connections > 1 {
        let fewer = connections.div_ceil(4);
        ways.push(format!("use fewer connections (-c {fewer})"));
    }
    let ways = ways.join(", ");
    Some(format!(
        "brunt was the limit of all sides: {ways}, or give brunt more CPUs"
    ))
}

/// An interval in words.
fn interval(basis: Basis, low: &str, high: &str) -> String {
    match basis {
        Basis::Pairs | Basis::SingleRuns => format!("{} CI {low} to {high}", confidence(basis)),
        // Its ends are rates that held and missed, which is no matter of probability.
        Basis::Searches => format!("between {low} and {high}"),
    }
}

/// The interval of a change in words.
fn changes(basis: Basis, change: Effect) -> String {
    let [low, high] = [change.low, change.high].map(units::percent_change);
    interval(basis, &low, &high)
}

/// The confidence of intervals: those of all comparisons of pairs hold together.
fn confidence(basis: Basis) -> &'static str {
    match basis {
        Basis::Pairs => "97.5 %",
        Basis::SingleRuns | Basis::Searches => "95 %",
    }
}

/// What a comparison rests on, and what its interval does not show.
fn basis(comparison: &Comparison) -> String {
    match comparison.basis {
        Basis::Pairs => {
            let pairs = comparison.pairs - comparison.dropped.len();
            match comparison.disturbed {
                0 => format!("{pairs} pairs"),
                disturbed => format!("{pairs} pairs, others took CPUs in {disturbed} of them"),
            }
        }
        Basis::SingleRuns => "from within one run of each: how runs vary from one to the next is \
                              not shown"
            .to_owned(),
        Basis::Searches => "by the rates that held and missed in one search of each: how searches \
                            vary is not shown"
            .to_owned(),
    }
}

/// `B is 4.2 % faster (97.5 % CI 3.1 % to 5.4 %, 10 pairs)`.
fn difference(found: &ComparedPair, names: &[String], change: &Effect) -> String {
    let (comparison, compared) = (&found.comparison, found.comparison.compared);
    let (first, second) = (name(names, found.first), name(names, found.second));
    let is_more = change.value > 0.0;
    // The end nearer to no difference comes first.
    let ends = if is_more {
        [change.value, change.low, change.high]
    } else {
        [change.value, change.high, change.low]
    };
    let times = ends.map(|change| {
        if is_more {
            1.0 + change
        } else {
            1.0 / (1.0 + change)
        }
    });
    let is_times = times[0] >= TIMES_LEAST;
    let [value, near, far] = if is_times {
        times.map(|times| format!("{} times", units::rate(times)))
    } else {
        ends.map(|change| units::percent(change.abs()))
    };
    let value = match comparison.bound {
        Some(_) => format!("at least {value}"),
        None => value,
    };
    let (more, less) = if is_more {
        (second, first)
    } else {
        (first, second)
    };
    let [as_times, as_more, as_less] = match compared {
        Compared::SuccessesPerS => [
            format!("{more} is {value} as fast as {less}"),
            format!("{second} is {value} faster"),
            format!("{second} is {value} slower"),
        ],
        Compared::CapacityPerS => [
            format!("{more} holds {value} as much as {less}"),
            format!("{second} holds {value} more"),
            format!("{second} holds {value} less"),
        ],
        Compared::ResponseQuantile(q) => [
            format!("{} of {more} is {value} that of {less}", quantile(q)),
            format!("{} of {second} is {value} higher", quantile(q)),
            format!("{} of {second} is {value} lower", quantile(q)),
        ],
        Compared::ServerCpu => [
            format!("{more} uses {value} as much CPU per reply as {less}"),
            format!("{second} uses {value} more CPU per reply"),
            format!("{second} uses {value} less CPU per reply"),
        ],
    };
    let how = match (is_times, is_more) {
        (true, _) => as_times,
        (false, true) => as_more,
        (false, false) => as_less,
    };
    let basis = basis(comparison);
    match comparison.bound {
        None => {
            let interval = interval(comparison.basis, &near, &far);
            format!("{how} ({interval}, {basis})")
        }
        Some(bound) => {
            let confidence = confidence(comparison.basis);
            let limited = match bound {
                Bound::AtLeast => second,
                Bound::AtMost => first,
            };
            format!(
                "{how} ({confidence} CI from {near}, {basis}; brunt was the limit of {limited})"
            )
        }
    }
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

/// What is compared: its heading, as it is typed, and its name in data.
pub(super) fn compared_names(compared: Compared) -> [String; 3] {
    let [heading, typed, data] = match compared {
        Compared::SuccessesPerS => ["throughput", "rate", "successes_per_s"],
        Compared::ResponseQuantile(q) => {
            let name = quantile(q);
            let data = format!("response_{}_ns", name.replace('.', "_"));
            return [name.clone(), name, data];
        }
        Compared::CapacityPerS => ["capacity", "capacity", "capacity_per_s"],
        Compared::ServerCpu => ["server CPU", "cpu", "server_cpu_ns_per_reply"],
    };
    [heading, typed, data].map(str::to_owned)
}

/// The heading of what was compared.
pub(super) fn compared_of(found: &ComparedPair) -> String {
    let [heading, ..] = compared_names(found.comparison.compared);
    heading
}

/// The outcome of a step of a search.
pub(super) fn outcome(outcome: CapacityOutcome) -> &'static str {
    match outcome {
        CapacityOutcome::Met => "met",
        CapacityOutcome::Missed => "MISSED",
        CapacityOutcome::ClientLimited => "CLIENT-LIMITED",
        CapacityOutcome::Undecided => "undecided",
        CapacityOutcome::Invalid => "INVALID",
    }
}

/// How often each verdict was given, by its name in data.
pub(super) fn verdicts(rounds: &[RoundRecord]) -> BTreeMap<String, usize> {
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
    let [_, typed, _] = compared_names(limit.compared);
    format!("{typed} {sign} {change}")
}

/// The limits that were exceeded, a line each.
pub fn exceeded_limits(compared: &ComparedRounds) -> Vec<String> {
    told(compared, &compared.exceeded())
}

/// The limits that are shown to be kept, a line each.
pub(super) fn limits_kept(compared: &ComparedRounds) -> Vec<String> {
    told(compared, &compared.kept())
}

/// Each limit with what its pair says.
fn told(compared: &ComparedRounds, limits: &[(ChangeLimit, ComparedPair)]) -> Vec<String> {
    let names = names(compared);
    let limits = limits.iter();
    limits
        .map(|(which, pair)| format!("{}: {}", limit(which), says(pair, &names)))
        .collect()
}

/// The limits that are neither shown to be exceeded nor shown to be kept, a line each.
pub fn limits_open(compared: &ComparedRounds) -> Vec<String> {
    let (open, names) = (compared.open(), names(compared));
    open.iter()
        .map(|(which, pair)| {
            let found = &pair.comparison;
            let change = match found.change {
                Some(change) => {
                    let second = name(&names, pair.second);
                    format!("{second}: {}", changes(found.basis, change))
                }
                None => says(pair, &names),
            };
            format!("{}: too few rounds to tell ({change})", limit(which))
        })
        .collect()
}

/// The limits of which nothing can be said, a line each.
pub fn limits_not_judged(compared: &ComparedRounds) -> Vec<String> {
    told(compared, &compared.not_judged())
}
