//! The outcome of rounds of several servers, for people and for pull requests.

use std::fmt::Write;

use brunt_measure::{Claim, Compared, ComparedPair, ComparedRounds};

use super::words::{exceeded_limits, limit, quantile, says, side_name, verdicts};
use super::{capacity, environment};
use crate::text::layout::{Page, Tone};
use crate::{Style, markdown, units};

/// For people.
pub(super) fn text(compared: &ComparedRounds, style: &Style) -> String {
    let mut page = Page::new(style);
    for (place, side) in compared.sides.iter().enumerate() {
        let url = std::slice::from_ref(&side.url);
        page.row(&side_name(place), url, Tone::Plain);
    }
    if let Some(plan) = &compared.load {
        page.row("load", &environment::load(plan), Tone::Plain);
    }
    page.row("rounds", &rounds(compared), Tone::Plain);
    environment::rows(
        &compared.environment,
        &compared.brunt_version,
        style.verbose,
        &mut page,
    );
    for found in compared.comparisons() {
        page.blank();
        rows(&found, &mut page);
    }
    let exceeded = exceeded_limits(compared);
    if !compared.limits.is_empty() {
        page.blank();
        for asked in &compared.limits {
            page.row("fail if", &[limit(asked)], Tone::Plain);
        }
        for words in &exceeded {
            page.row("EXCEEDED", std::slice::from_ref(words), Tone::Bad);
        }
        if exceeded.is_empty() {
            page.row(
                "",
                &["no limit is shown to be exceeded".to_owned()],
                Tone::Plain,
            );
        }
    }
    let searched = compared.sides.iter().enumerate();
    let searched = searched.filter_map(|(place, side)| Some((place, side.capacity.as_ref()?)));
    for (number, (place, found)) in searched.enumerate() {
        if number == 0 {
            page.blank();
        }
        let label = if number == 0 { "capacity" } else { "" };
        let words = format!("{}: {}", side_name(place), capacity::says(found));
        page.row(label, &[words], Tone::Strong);
    }
    page.blank();
    for (place, side) in compared.sides.iter().enumerate() {
        let label = if place == 0 { "verdicts" } else { "" };
        let counts = verdicts(&side.rounds).into_iter();
        let told: Vec<_> = counts
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let told = format!("{}: {}", side_name(place), told.join(", "));
        page.row(label, &[told.replace('_', "-")], Tone::Plain);
    }
    page.into_text()
}

pub(super) fn rounds(compared: &ComparedRounds) -> Vec<String> {
    let counts = compared.sides.iter().map(|side| side.rounds.len());
    let pairs = counts.min().unwrap_or(0);
    let first = compared.sides.iter().find_map(|side| side.rounds.first());
    let mut items = vec![format!("{pairs} of each, in turns")];
    items.extend(first.map(|round| format!("{} each", units::duration(round.window_ns))));
    items
}

/// What was compared, and its values in words.
pub(super) fn compared_of(found: &ComparedPair) -> (String, fn(f64) -> String) {
    match found.comparison.compared {
        Compared::SuccessesPerS => ("throughput".to_owned(), |per_s| {
            format!("{} req/s", units::rate(per_s))
        }),
        Compared::ResponseQuantile(q) => (quantile(q), |ns| units::duration(ns as u64)),
    }
}

/// What was found of two sides.
pub(super) fn rows(found: &ComparedPair, page: &mut Page) {
    let comparison = &found.comparison;
    let (label, value) = compared_of(found);
    let medians = comparison.medians.map(|(first, second)| {
        [(found.first, first), (found.second, second)]
            .map(|(side, median)| format!("{} {}", side_name(side), value(median)))
    });
    let medians = medians.map_or_else(|| vec!["not known".to_owned()], |both| both.into());
    page.row(&label, &medians, Tone::Plain);
    let tone = match comparison.claim {
        Claim::Differs => Tone::Strong,
        Claim::NoDifference { .. } => Tone::Plain,
        Claim::Nothing(_) => Tone::Warning,
    };
    page.row("", &[says(found)], tone);
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

/// For pull requests.
pub(super) fn markdown(compared: &ComparedRounds) -> String {
    let mut page = "### brunt compare\n\n".to_owned();
    // Writing to a string does not fail.
    for (place, side) in compared.sides.iter().enumerate() {
        let _ = writeln!(
            page,
            "- {}: {}",
            side_name(place),
            markdown::code(&side.url)
        );
    }
    let _ = writeln!(page, "- rounds: {}", rounds(compared).join(" · "));
    page.push('\n');
    page.push_str(&environment::markdown(
        &compared.environment,
        &compared.brunt_version,
    ));
    page.push_str("\n| | medians | outcome | noise |\n|---|---|---|---:|\n");
    for found in compared.comparisons() {
        let (label, value) = compared_of(&found);
        let medians = found.comparison.medians.map_or_else(
            || "not known".to_owned(),
            |(first, second)| format!("{} → {}", value(first), value(second)),
        );
        let says = markdown::escaped(&says(&found));
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
            let words = markdown::escaped(&capacity::says(found));
            let _ = writeln!(page, "\nCapacity of {}: **{words}**", side_name(place));
        }
    }
    for words in exceeded_limits(compared) {
        let _ = writeln!(page, "\n**exceeded** {}", markdown::escaped(&words));
    }
    page
}
