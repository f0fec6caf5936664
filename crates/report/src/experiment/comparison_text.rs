//! The outcome of a comparison of servers, for people and for pull requests.

use std::fmt::Write;

use brunt_judge::{Claim, Compared, ComparedPair, ComparedRounds, ComparedSide, EndedEarly};
use brunt_load::Plan;
use brunt_record::Environment;

use super::words::{
    advice, exceeded_limits, limit, limits_kept, limits_not_judged, limits_open, names, quantile,
    says, side_name, verdicts,
};
use super::{capacity, environment};
use crate::shortened::word;
use crate::text::layout::{Page, Tone};
use crate::{Style, foreign, units};

/// The report of a comparison as text for people.
pub(super) fn text(compared: &ComparedRounds, style: &Style) -> String {
    let mut page = Page::new(style);
    for (place, side) in compared.sides.iter().enumerate() {
        page.row(&side_name(place), &of_side(side), Tone::Plain);
    }
    if let Some(plan) = load(compared) {
        page.row("load", &environment::load(plan, None), Tone::Plain);
    }
    for (label, items) in rounds(compared) {
        page.row(label, &items, Tone::Plain);
    }
    environment::rows(
        &surroundings(compared),
        &compared.brunt_version,
        style.verbose,
        &mut page,
    );
    let names = names(compared);
    for found in compared.comparisons() {
        page.blank();
        rows(
            &found,
            &names,
            environment::per_s(compared.load.as_ref()),
            &mut page,
        );
    }
    let exceeded = exceeded_limits(compared);
    if !compared.limits.is_empty() {
        page.blank();
        for asked in &compared.limits {
            page.row("fail if", &[limit(asked)], Tone::Plain);
        }
        let not_judged = limits_not_judged(compared);
        let open = limits_open(compared);
        for (label, limits, tone) in [
            ("EXCEEDED", &exceeded, Tone::Bad),
            ("not judged", &not_judged, Tone::Bad),
            ("open", &open, Tone::Warning),
        ] {
            for words in limits {
                page.row(label, std::slice::from_ref(words), tone);
            }
        }
        if exceeded.is_empty() && not_judged.is_empty() {
            let words = match open.is_empty() {
                true => "each limit is shown to be kept",
                false => "no limit is shown to be exceeded",
            };
            page.row("", &[words.to_owned()], Tone::Plain);
        }
    }
    let searched = compared.sides.iter().enumerate();
    let searched = searched.filter_map(|(place, side)| Some((place, side.capacity.as_ref()?)));
    for (number, (place, found)) in searched.enumerate() {
        if number == 0 {
            page.blank();
        }
        let label = if number == 0 { "found" } else { "" };
        let words = format!("{}: {}", side_name(place), capacity::says(found));
        page.row(label, &[words], Tone::Strong);
    }
    let measured = compared.sides.iter().enumerate();
    let measured = measured.filter(|(_, side)| !side.rounds.is_empty());
    for (number, (place, side)) in measured.enumerate() {
        if number == 0 {
            page.blank();
        }
        let label = if number == 0 { "verdicts" } else { "" };
        let told = format!("{}: {}", side_name(place), told_verdicts(side));
        page.row(label, &[told], Tone::Plain);
    }
    if let Some(advice) = advice(compared) {
        page.row("next", &[advice], Tone::Plain);
    }
    page.into_text()
}

/// The load of each round; absent of searches, whose rates are their steps'.
pub(super) fn load(compared: &ComparedRounds) -> Option<&Plan> {
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
pub(super) fn surroundings(compared: &ComparedRounds) -> Environment {
    let mut known = compared.environment.clone();
    if compared.sides.iter().any(|side| side.server.is_some()) {
        known.server = None;
    }
    known
}

/// What a side is called, and its URL.
pub(super) fn name_of(side: &ComparedSide) -> Vec<String> {
    let label = side.label.iter();
    let words = label.chain([&side.url]).map(|text| word(text).into_owned());
    words.collect()
}

/// Where a stored run is from, in words.
pub(super) fn origin(side: &ComparedSide) -> Vec<String> {
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
pub(super) fn rounds(compared: &ComparedRounds) -> Vec<(&'static str, Vec<String>)> {
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

/// What was compared.
pub(super) fn compared_of(found: &ComparedPair) -> String {
    match found.comparison.compared {
        Compared::SuccessesPerS => "throughput".to_owned(),
        Compared::ResponseQuantile(q) => quantile(q),
        Compared::CapacityPerS => "capacity".to_owned(),
        Compared::ServerCpu => "server CPU".to_owned(),
    }
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
pub(super) fn rows(found: &ComparedPair, names: &[String], per_s: &str, page: &mut Page) {
    let comparison = &found.comparison;
    let label = compared_of(found);
    let value = |median: f64| value(found, median, per_s);
    let medians = comparison.medians.map(|(first, second)| {
        [(found.first, first), (found.second, second)]
            .map(|(side, median)| format!("{} {}", names[side], value(median)))
    });
    let medians = medians.map_or_else(|| vec!["not known".to_owned()], |both| both.into());
    page.row(&label, &medians, Tone::Plain);
    let tone = match comparison.claim {
        Claim::Differs => Tone::Strong,
        Claim::NoDifference { .. } => Tone::Plain,
        Claim::Nothing(_) => Tone::Warning,
    };
    page.row("", &[says(found, names)], tone);
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

/// The report of a comparison in Markdown, for pull requests.
pub(super) fn markdown(compared: &ComparedRounds) -> String {
    let mut page = "### brunt compare\n\n".to_owned();
    // Writing to a string does not fail.
    for (place, side) in compared.sides.iter().enumerate() {
        let items: Vec<_> = of_side(side).iter().map(|it| foreign::code(it)).collect();
        let _ = writeln!(page, "- {}: {}", side_name(place), items.join(" · "));
    }
    for (label, items) in rounds(compared) {
        let items = foreign::markdown(&items.join(" · "));
        let _ = writeln!(page, "- {label}: {items}");
    }
    page.push('\n');
    page.push_str(&environment::markdown(
        &surroundings(compared),
        &compared.brunt_version,
    ));
    let per_s = environment::per_s(compared.load.as_ref());
    let names = names(compared);
    page.push_str("\n| | medians | outcome | noise |\n|---|---|---|---:|\n");
    for found in compared.comparisons() {
        let label = compared_of(&found);
        let value = |median: f64| value(&found, median, per_s);
        let medians = found.comparison.medians.map_or_else(
            || "not known".to_owned(),
            |(first, second)| format!("{} → {}", value(first), value(second)),
        );
        let says = foreign::markdown(&says(&found, &names));
        let says = match found.comparison.claim {
            Claim::Differs => format!("**{says}**"),
            _ => says,
        };
        let noise = found
            .comparison
            .noise
            .map_or("-".to_owned(), units::percent);
        let _ = writeln!(page, "| {label} | {medians} | {says} | {noise} |");
    }
    for (place, side) in compared.sides.iter().enumerate() {
        if let Some(found) = &side.capacity {
            let words = foreign::markdown(&capacity::says(found));
            let _ = writeln!(page, "\nCapacity of {}: **{words}**", side_name(place));
        }
    }
    if let Some(advice) = advice(compared) {
        let _ = writeln!(page, "\n{}", foreign::markdown(&advice));
    }
    for words in exceeded_limits(compared) {
        let _ = writeln!(page, "\n**exceeded** {}", foreign::markdown(&words));
    }
    for words in limits_not_judged(compared) {
        let _ = writeln!(page, "\n**not judged** {}", foreign::markdown(&words));
    }
    for words in limits_open(compared) {
        let _ = writeln!(page, "\n**open** {}", foreign::markdown(&words));
    }
    for words in limits_kept(compared) {
        let _ = writeln!(page, "\n**kept** {}", foreign::markdown(&words));
    }
    page
}
