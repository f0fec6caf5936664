//! A comparison of servers in sections, as data, and in CSV.

use std::io;

use brunt_judge::{
    Basis, Bound, Claim, Compared, ComparedPair, ComparedRounds, ComparedSide, Effect, EndedEarly,
    ROUND_QUANTILES, RoundRecord,
};
use brunt_load::Plan;
use brunt_record::Environment;

use super::words::{
    advice, compared_names, compared_of, exceeded_limits, limit, limits_kept, limits_not_judged,
    limits_open, names, says, side_name, verdicts,
};
use super::{capacity, csv, environment, figure};
use crate::ReportError;
use crate::figures::data_name;
use crate::object::Object;
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
    let is_of_pairs = |it: &ComparedPair| it.comparison.basis == Basis::Pairs;
    if pairs.iter().any(is_of_pairs) {
        page.charts("pairs");
    }
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
    if !compared.limits.is_empty() && exceeded.is_empty() && not_judged.is_empty() {
        let words = if open.is_empty() {
            "each limit is shown to be kept"
        } else {
            "no limit is shown to be exceeded"
        };
        page.row("", &[words.to_owned()], Tone::Plain);
    }
    let mut kept = limits_kept(compared);
    kept.retain(|_| page.is_full());
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
    let sides = compared.sides.iter().enumerate();
    let sides = sides.filter(|(_, side)| !side.rounds.is_empty());
    for (index, (place, side)) in sides.enumerate() {
        let label = if index == 0 { "verdicts" } else { "" };
        let told = format!("{}: {}", side_name(place), told_verdicts(side));
        page.row(label, &[told], Tone::Plain);
    }
}

/// What was found of each side where each was searched for its capacity.
fn searches(compared: &ComparedRounds, page: &mut Page) {
    let found = || {
        let sides = compared.sides.iter().enumerate();
        sides.filter_map(|(place, side)| Some((side_name(place), side.capacity.as_ref()?)))
    };
    if found().next().is_some() {
        page.charts("searches");
    }
    for (index, (name, search)) in found().enumerate() {
        let label = if index == 0 { "found" } else { "" };
        let words = format!("{name}: {}", capacity::says(search));
        page.row(label, &[words], Tone::Strong);
    }
}

/// What the charts are drawn from.
pub(super) fn charts(compared: &ComparedRounds) -> Object {
    let pairs = compared.comparisons().into_iter();
    let pairs = pairs.filter(|it| it.comparison.basis == Basis::Pairs);
    let sides = compared.sides.iter().enumerate();
    let searches = sides.filter_map(|(place, it)| {
        Some(capacity::chart(
            it.capacity.as_ref()?,
            Some(side_name(place)),
        ))
    });
    Object::new()
        .with(
            "pairs",
            pairs.map(|it| ratios(compared, &it)).collect::<Vec<_>>(),
        )
        .with("searches", searches.collect::<Vec<_>>())
}

/// The ratio of each pair of rounds, less 1, and the estimate with its interval.
fn ratios(compared: &ComparedRounds, found: &ComparedPair) -> Object {
    let comparison = &found.comparison;
    let of = |side: usize| {
        let rounds = compared
            .sides
            .get(side)
            .map_or(&[][..], |side| &side.rounds);
        let figures = rounds.iter();
        figures.map(|round| comparison.compared.figure(round))
    };
    let is_dropped = |place: usize| comparison.dropped.iter().any(|(pair, _)| *pair == place);
    let pairs = of(found.first).zip(of(found.second)).enumerate();
    let ratios = pairs.map(|(place, (one, other))| {
        let ratio = other? / one.filter(|it| *it > 0.0)? - 1.0;
        Some(ratio).filter(|_| !is_dropped(place))
    });
    Object::new()
        .with("compared", compared_of(found))
        .with("first", side_name(found.first))
        .with("second", side_name(found.second))
        .with("place", found.second)
        .with("ratios", ratios.collect::<Vec<_>>())
        .with("change", comparison.change)
}

/// The table of every round of every side.
fn all_rounds(compared: &ComparedRounds, per_s: &str, page: &mut Page) {
    let rounds = compared.sides.iter().map(|side| side.rounds.len());
    let most = rounds.max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let heads = [per_s, "p50", "p99"].map(str::to_owned);
    page.table_head(WIDE, "round", &heads, "verdict");
    let ns = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), units::duration);
    for place in 0..most {
        for (side, it) in compared.sides.iter().enumerate() {
            let Some(round) = it.rounds.get(place) else {
                continue;
            };
            let rate = round.successes_per_s;
            let rate = rate.map_or_else(|| "-".to_owned(), units::rate);
            let cells = [rate, ns(round.response.p50_ns), ns(round.response.p99_ns)];
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
        return if round.because.is_empty() {
            name
        } else {
            format!("{name}: {}", round.because)
        };
    }
    let counts = verdicts(&side.rounds).into_iter();
    let told = counts.map(|(name, count)| format!("{name} {count}"));
    told.collect::<Vec<_>>().join(", ").replace('_', "-")
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
        let planned = compared.pairs_planned.map_or(pairs, |it| it as usize);
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
        let noise = units::percent(noise);
        let noise = format!("each side against itself: {noise} at most");
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

/// A comparison as it is stored: its own fields, and what is derived from them and ignored when the
/// comparison is read again.
pub(super) fn stored(compared: &ComparedRounds) -> Object {
    let names = names(compared);
    let pairs = compared.comparisons();
    let pairs: Vec<Object> = pairs.iter().map(|pair| figures(pair, &names)).collect();
    Object::of(compared)
        // Each side compared with the first.
        .with("comparisons", pairs)
        // The limits that were exceeded, of which nothing can be said, and which are neither shown
        // to be exceeded nor shown to be kept, in words.
        .with("exceeded", exceeded_limits(compared))
        .with("not_judged", limits_not_judged(compared))
        .with("open", limits_open(compared))
        // Whether each comparison says something.
        .with("is_decided", compared.is_decided())
}

/// What a comparison of two sides shows.
fn figures(found: &ComparedPair, names: &[String]) -> Object {
    let comparison = &found.comparison;
    let change = comparison.change;
    // A bound does not say where the other end is.
    let low = change.filter(|_| comparison.bound != Some(Bound::AtMost));
    let high = change.filter(|_| comparison.bound != Some(Bound::AtLeast));
    let [_, _, compared] = compared_names(comparison.compared);
    let claim = match comparison.claim {
        Claim::Differs => "differs",
        Claim::NoDifference { .. } => "no_difference",
        Claim::Nothing(_) => "nothing",
    };
    Object::new()
        .with("compared", compared)
        .with("sides", [side_name(found.first), side_name(found.second)])
        .with("claim", claim)
        .with("says", says(found, names))
        // Whether pairs of rounds were compared, a stored run of each side, or a search of each.
        .with("basis", comparison.basis)
        // Pairs of rounds that were made; 1 of runs and searches.
        .with("pairs", comparison.pairs)
        // The pairs that do not count, from 0, and why.
        .with("dropped", &comparison.dropped)
        // How many of the pairs that count have a round in which others took CPUs that it needed.
        .with("disturbed", comparison.disturbed)
        // Of the two sides over the pairs that count.
        .with("medians", comparison.medians)
        // The second side over the first, as a ratio less 1. The intervals of all comparisons of
        // pairs hold together with 97.5 %, those of stored runs each with 95 %. The interval of
        // searches goes from the rates that held to those that missed.
        .with("change", change.map(|change| change.value))
        .with("change_low", low.map(|change| change.low))
        .with("change_high", high.map(|change| change.high))
        // Whether the change is known only to be at least or at most this: brunt was the limit of
        // one side.
        .with("bound", comparison.bound)
        // The two-sided permutation test; null without pairs, and of bounds.
        .with("p_value", comparison.p_value)
        // What a comparison of each side with itself gave, at most.
        .with("noise", comparison.noise)
}

/// A row per round of each side; where each was searched for its capacity, a row per step.
pub(super) fn table(compared: &ComparedRounds, out: &mut dyn io::Write) -> Result<(), ReportError> {
    const COLUMNS: &str =
        "side url pair started_unix_ms window_ns verdict successes_per_s error_share";
    let mut header: Vec<String> = COLUMNS.split(' ').map(str::to_owned).collect();
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
