//! A comparison of servers in sections, as data, and in CSV.

use std::io;

use brunt_judge::{
    Basis, Bound, Claim, Compared, ComparedPair, ComparedRounds, ComparedSide, Effect, EndedEarly,
    ROUND_QUANTILES, RoundRecord,
};
use brunt_load::Plan;
use brunt_record::Environment;
use serde::Serialize;

use super::words::{
    advice, compared_of, exceeded_limits, limit, limits_kept, limits_not_judged, limits_open,
    names, quantile, says, side_name, verdicts,
};
use super::{capacity, charts, csv, environment, figure};
use crate::ReportError;
use crate::figures::data_name;
use crate::page::{Page, Role, Tone, WIDE};
use crate::shortened::word;
use crate::units;

/// The sections of a comparison.
pub(super) fn sections(compared: &ComparedRounds, page: &mut Page) {
    let names = names(compared);
    let per_s = environment::per_s(compared.load.as_ref());
    for (place, side) in compared.sides.iter().enumerate() {
        page.row(&side_name(place), &of_side(side), Tone::Plain);
    }
    if let Some(plan) = load(compared) {
        page.row("load", &environment::load(plan, None), Tone::Plain);
    }
    for (label, items) in rounds(compared) {
        page.row(label, &items, Tone::Plain);
    }
    page.section("Environment", Role::Background);
    environment::rows(&surroundings(compared), &compared.brunt_version, page);
    let pairs = compared.comparisons();
    for pair in &pairs {
        page.section(&compared_of(pair), Role::Outcome);
        rows(compared, pair, &names, per_s, page);
    }
    page.section("Limits", Role::Figures);
    limits(compared, page);
    page.section("Pairs of rounds", Role::Figures);
    let of_rounds = || {
        pairs
            .iter()
            .filter(|it| it.comparison.basis == Basis::Pairs)
    };
    page.charts(|| of_rounds().map(|it| charts::ratios(compared, it)).collect());
    verdicts_of_sides(compared, page);
    page.section("Searches", Role::Figures);
    searches(compared, page);
    if let Some(advice) = advice(compared) {
        page.row("next", &[advice], Tone::Plain);
    }
    if page.is_full() {
        page.section("All rounds", Role::Detail);
        all_rounds(compared, per_s, page);
        for (place, side) in compared.sides.iter().enumerate() {
            if let Some(found) = &side.capacity {
                page.section(&format!("All steps of {}", side_name(place)), Role::Detail);
                capacity::steps(found, page);
            }
        }
    }
}

/// What was asked to stay within bounds, and whether it did.
fn limits(compared: &ComparedRounds, page: &mut Page) {
    for asked in &compared.limits {
        page.row("fail if", &[limit(asked)], Tone::Plain);
    }
    let (exceeded, not_judged) = (exceeded_limits(compared), limits_not_judged(compared));
    let open = limits_open(compared);
    let words = if compared.limits.is_empty() || !exceeded.is_empty() || !not_judged.is_empty() {
        None
    } else if open.is_empty() {
        Some("each limit is shown to be kept")
    } else {
        Some("no limit is shown to be exceeded")
    };
    if let Some(words) = words {
        page.row("", &[words.to_owned()], Tone::Plain);
    }
    let kept = if page.is_full() {
        limits_kept(compared)
    } else {
        Vec::new()
    };
    for (label, limits, tone) in [
        ("EXCEEDED", exceeded, Tone::Bad),
        ("not judged", not_judged, Tone::Bad),
        ("open", open, Tone::Warning),
        ("kept", kept, Tone::Plain),
    ] {
        for words in limits {
            page.row(label, &[words], tone);
        }
    }
}

/// How often the rounds of each side had which verdict.
fn verdicts_of_sides(compared: &ComparedRounds, page: &mut Page) {
    let mut label = "verdicts";
    for (place, side) in compared.sides.iter().enumerate() {
        if side.rounds.is_empty() {
            continue;
        }
        let told = format!("{}: {}", side_name(place), told_verdicts(side));
        page.row(label, &[told], Tone::Plain);
        label = "";
    }
}

/// What was found of each side where each was searched for its capacity.
fn searches(compared: &ComparedRounds, page: &mut Page) {
    let found = || {
        let sides = compared.sides.iter().enumerate();
        sides.filter_map(|(place, side)| Some((side_name(place), side.capacity.as_ref()?)))
    };
    page.charts(|| {
        found()
            .map(|(name, it)| charts::steps(it, Some(&name)))
            .collect()
    });
    let mut label = "found";
    for (name, search) in found() {
        let words = format!("{name}: {}", capacity::says(search));
        page.row(label, &[words], Tone::Strong);
        label = "";
    }
}

/// The table of every round of every side.
fn all_rounds(compared: &ComparedRounds, per_s: &str, page: &mut Page) {
    let most = compared.sides.iter().map(|side| side.rounds.len()).max();
    if most.unwrap_or(0) == 0 {
        return;
    }
    let heads = [per_s, "p50", "p99"].map(str::to_owned);
    page.table_head(WIDE, "round", &heads, "verdict");
    let ns = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), units::duration);
    for place in 0..most.unwrap_or(0) {
        for (side, it) in compared.sides.iter().enumerate() {
            let Some(round) = it.rounds.get(place) else {
                continue;
            };
            let rate = round.successes_per_s;
            let cells = [
                rate.map_or_else(|| "-".to_owned(), units::rate),
                ns(round.response.p50_ns),
                ns(round.response.p99_ns),
            ];
            let label = format!("{} {}", place + 1, side_name(side));
            page.table_row(WIDE, &label, &cells, round.verdict.name(), Tone::Plain);
        }
    }
}

/// The load of each round; absent of searches, whose rates are their steps'.
fn load(compared: &ComparedRounds) -> Option<&Plan> {
    let is_search = compared.compared.contains(&Compared::CapacityPerS);
    compared.load.as_ref().filter(|_| !is_search)
}

/// A side in a few words: what it is called, its URL, the server there, and of a stored run where
/// it is from.
fn of_side(side: &ComparedSide) -> Vec<String> {
    let mut items = name_of(side);
    items.extend(side.server.iter().flat_map(environment::server));
    items.extend(origin(side));
    items
}

/// Where it was measured; without the server, where each side has its own.
fn surroundings(compared: &ComparedRounds) -> Environment {
    let mut known = compared.environment.clone();
    if compared.sides.iter().any(|side| side.server.is_some()) {
        known.server = None;
    }
    known
}

/// The sides in a line.
pub(super) fn sides(compared: &ComparedRounds) -> String {
    let sides = compared.sides.iter().enumerate();
    let sides = sides.map(|(place, side)| {
        let name = name_of(side).join(", ");
        format!("{}: {name}", side_name(place))
    });
    sides.collect::<Vec<_>>().join(" · ")
}

/// What a side is called, and its URL.
fn name_of(side: &ComparedSide) -> Vec<String> {
    let label = side.label.iter();
    let words = label.chain([&side.url]).map(|text| word(text).into_owned());
    words.collect()
}

/// Where a stored run is from, in words.
fn origin(side: &ComparedSide) -> Vec<String> {
    let Some(single) = &side.single_run else {
        return Vec::new();
    };
    let mut items = vec![single.file.clone()];
    let begun = side.rounds.first().map(|round| round.started_unix_ms);
    items.extend(begun.map(units::date_time));
    items.push(format!("brunt {}", single.brunt_version));
    items
}

/// The verdict of a run, or how often rounds had each.
fn told_verdicts(side: &ComparedSide) -> String {
    if let (Some(_), Some(round)) = (&side.single_run, side.rounds.first()) {
        let name = round.verdict.name().to_lowercase();
        return match round.because.is_empty() {
            true => name,
            false => format!("{name}: {}", round.because),
        };
    }
    let counts = verdicts(&side.rounds).into_iter();
    let told: Vec<_> = counts
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    told.join(", ").replace('_', "-")
}

/// What was measured of each side, by label.
fn rounds(compared: &ComparedRounds) -> Vec<(&'static str, Vec<String>)> {
    let mut rows = Vec::new();
    let windows = || {
        let rounds = compared.sides.iter().filter_map(|side| side.rounds.first());
        let mut windows: Vec<_> = rounds
            .map(|round| units::duration(round.window_ns))
            .collect();
        windows.dedup();
        windows
    };
    let pairs = compared.pairs();
    if compared.sides.iter().any(|side| side.single_run.is_some()) {
        let mut items = vec!["one of each, stored before".to_owned()];
        items.push(match &windows()[..] {
            [same] => format!("{same} each"),
            several => several.join(" and "),
        });
        rows.push(("runs", items));
    } else if pairs > 0 {
        let mut items = vec![format!("{pairs} of each, in turns")];
        items.extend(windows().first().map(|window| format!("{window} each")));
        let planned = compared
            .pairs_planned
            .map_or(pairs, |planned| planned as usize);
        items.extend(match compared.ended_early {
            Some(EndedEarly::Interrupted) => Some(format!("interrupted: {planned} were planned")),
            Some(EndedEarly::ClientLimited) => Some(format!("ended early: {planned} were planned")),
            None if pairs > planned => Some(format!("{} more than planned", pairs - planned)),
            None => None,
        });
        rows.push(("rounds", items));
    }
    let capacities = compared.sides.iter().filter_map(|it| it.capacity.as_ref());
    let capacities: Vec<_> = capacities.collect();
    if let Some(first) = capacities.first() {
        rows.push(("objectives", capacity::asked(first)));
        let steps: usize = capacities.iter().map(|it| it.steps.len()).sum();
        rows.push(("searches", vec![format!("{steps} steps, in turns")]));
    }
    rows
}

/// A value of it in words; rates are of `per_s`.
fn value(found: &ComparedPair, value: f64, per_s: &str) -> String {
    match found.comparison.compared {
        Compared::SuccessesPerS | Compared::CapacityPerS => {
            format!("{} {per_s}", units::rate(value))
        }
        Compared::ResponseQuantile(_) => units::duration(value as u64),
        Compared::ServerCpu => format!("{} per reply", units::duration(value as u64)),
    }
}

/// What was found of two sides; rates are of `per_s`.
fn rows(
    compared: &ComparedRounds,
    found: &ComparedPair,
    names: &[String],
    per_s: &str,
    page: &mut Page,
) {
    let comparison = &found.comparison;
    let tone = tone(compared, found);
    page.row(&compared_of(found), &[says(found, names)], tone);
    let value = |median: f64| value(found, median, per_s);
    let medians = comparison.medians.map(|(first, second)| {
        [(found.first, first), (found.second, second)]
            .map(|(side, median)| format!("{} {}", names[side], value(median)))
    });
    let medians = medians.map_or_else(|| vec!["not known".to_owned()], |both| both.into());
    page.row("  medians", &medians, Tone::Plain);
    if let Some(noise) = comparison.noise {
        let noise = format!(
            "each side against itself: {} at most",
            units::percent(noise)
        );
        page.row("  noise", &[noise], Tone::Plain);
    }
    for (pair, reason) in &comparison.dropped {
        let words = format!("pair {}: {reason}", pair + 1);
        page.row("  dropped", &[words], Tone::Plain);
    }
}

/// How what a pair shows stands out: most where it exceeds a limit, and not where it is better or
/// no different.
fn tone(compared: &ComparedRounds, found: &ComparedPair) -> Tone {
    if compared.exceeded().iter().any(|(_, of)| of == found) {
        return Tone::Bad;
    }
    let comparison = &found.comparison;
    let is_better_if_more = comparison.compared.is_better_if_more();
    let is_better = |change: Effect| (change.value > 0.0) == is_better_if_more;
    match comparison.claim {
        Claim::NoDifference { .. } => Tone::Plain,
        Claim::Differs if comparison.change.is_some_and(is_better) => Tone::Strong,
        Claim::Differs | Claim::Nothing(_) => Tone::Warning,
    }
}

/// A comparison as it is stored: its own fields, and what is derived from them.
#[derive(Debug, Serialize)]
pub struct StoredComparison<'a> {
    /// The comparison.
    #[serde(flatten)]
    pub compared: &'a ComparedRounds,
    /// Each side compared with the first. Ignored when the comparison is read again, as are the
    /// fields that follow.
    pub comparisons: Vec<ComparisonFigures>,
    /// The limits that were exceeded, in words.
    pub exceeded: Vec<String>,
    /// The limits of which nothing can be said, in words.
    pub not_judged: Vec<String>,
    /// The limits that are neither shown to be exceeded nor shown to be kept, in words.
    pub open: Vec<String>,
    /// Whether each comparison says something.
    pub is_decided: bool,
}

/// What a comparison of two sides shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonFigures {
    /// `successes_per_s`, as `response_p99_ns`, or `capacity_per_s`.
    pub compared: String,
    /// The names of the two sides.
    pub sides: [String; 2],
    /// `differs`, `no_difference` or `nothing`.
    pub claim: &'static str,
    /// What the comparison says, in words.
    pub says: String,
    /// Whether pairs of rounds were compared, a stored run of each side, or a search of each.
    pub basis: Basis,
    /// Pairs of rounds that were made; 1 of runs and searches.
    pub pairs: usize,
    /// The pairs that do not count, from 0, and why.
    pub dropped: Vec<(usize, String)>,
    /// How many of the pairs that count have a round in which others took CPUs that it needed.
    pub disturbed: usize,
    /// Medians of the two sides over the pairs that count.
    pub medians: Option<[f64; 2]>,
    /// The second side over the first, as a ratio less 1.
    pub change: Option<f64>,
    /// The lower end of the interval of the change. The intervals of all comparisons of pairs hold
    /// together with 97.5 %, those of stored runs each with 95 %. The interval of searches goes
    /// from the rates that held to those that missed. Null where a bound does not say it.
    pub change_low: Option<f64>,
    /// The upper end of the interval of the change; null where a bound does not say it.
    pub change_high: Option<f64>,
    /// Whether the change is known only to be at least or at most this: brunt was the limit of one
    /// side.
    pub bound: Option<Bound>,
    /// The two-sided permutation test; null without pairs, and of bounds.
    pub p_value: Option<f64>,
    /// What a comparison of each side with itself gave, at most.
    pub noise: Option<f64>,
}

impl<'a> StoredComparison<'a> {
    /// The comparison with what is derived from it.
    pub fn of(compared: &'a ComparedRounds) -> Self {
        Self {
            compared,
            comparisons: {
                let (pairs, names) = (compared.comparisons(), names(compared));
                pairs.iter().map(|pair| figures(pair, &names)).collect()
            },
            exceeded: exceeded_limits(compared),
            not_judged: limits_not_judged(compared),
            open: limits_open(compared),
            is_decided: compared.is_decided(),
        }
    }
}

fn figures(found: &ComparedPair, names: &[String]) -> ComparisonFigures {
    let comparison = &found.comparison;
    let change = comparison.change;
    let low = change.filter(|_| comparison.bound != Some(Bound::AtMost));
    let high = change.filter(|_| comparison.bound != Some(Bound::AtLeast));
    ComparisonFigures {
        compared: match comparison.compared {
            Compared::SuccessesPerS => "successes_per_s".to_owned(),
            Compared::ResponseQuantile(q) => {
                format!("response_{}_ns", quantile(q).replace('.', "_"))
            }
            Compared::CapacityPerS => "capacity_per_s".to_owned(),
            Compared::ServerCpu => "server_cpu_ns_per_reply".to_owned(),
        },
        sides: [side_name(found.first), side_name(found.second)],
        claim: match comparison.claim {
            Claim::Differs => "differs",
            Claim::NoDifference { .. } => "no_difference",
            Claim::Nothing(_) => "nothing",
        },
        says: says(found, names),
        basis: comparison.basis,
        pairs: comparison.pairs,
        dropped: comparison.dropped.clone(),
        disturbed: comparison.disturbed,
        medians: comparison.medians.map(|(first, second)| [first, second]),
        change: change.map(|change| change.value),
        change_low: low.map(|change| change.low),
        change_high: high.map(|change| change.high),
        bound: comparison.bound,
        p_value: comparison.p_value,
        noise: comparison.noise,
    }
}

/// A row per round of each side; where each was searched for its capacity, a row per step.
pub(super) fn table(compared: &ComparedRounds, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let mut header: Vec<String> = [
        "side",
        "url",
        "pair",
        "started_unix_ms",
        "window_ns",
        "verdict",
        "successes_per_s",
        "error_share",
    ]
    .map(str::to_owned)
    .into();
    let names = ROUND_QUANTILES.map(|(name, _)| format!("response_{}_ns", name.replace('.', "_")));
    header.extend(names);
    header.extend(["stage", "outcome", "rate_per_s"].map(str::to_owned));
    let row = |place: usize, side: &ComparedSide, number: usize, round: &RoundRecord| {
        let mut row = vec![
            side_name(place),
            side.url.clone(),
            (number + 1).to_string(),
            round.started_unix_ms.to_string(),
            round.window_ns.to_string(),
            data_name(round.verdict),
            figure(round.successes_per_s),
            figure(round.error_share()),
        ];
        row.extend(ROUND_QUANTILES.map(|(_, q)| figure(round.response.quantile_ns(q))));
        row
    };
    let rows = compared.sides.iter().enumerate().flat_map(|(place, side)| {
        let rounds = side.rounds.iter().enumerate().map(move |(number, round)| {
            let mut row = row(place, side, number, round);
            row.extend([const { String::new() }; 3]);
            row
        });
        let steps = side.capacity.iter().flat_map(|capacity| &capacity.steps);
        let steps = steps.enumerate().map(move |(number, step)| {
            let mut row = row(place, side, number, &step.record);
            row.extend([
                capacity::stage(step.stage).to_owned(),
                capacity::data_outcome(step.outcome),
                step.rate_per_s.to_string(),
            ]);
            row
        });
        rounds.chain(steps)
    });
    csv(&header, rows, out)
}
