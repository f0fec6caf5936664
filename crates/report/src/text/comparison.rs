//! The outcome of rounds of several servers, for people.

use brunt_measure::{Claim, Compared};

use super::layout::{Page, Tone};
use super::load;
use crate::comparison::{ComparedSides, Found, name, quantile, verdicts};
use crate::{Style, units};

impl ComparedSides<'_> {
    /// For people.
    pub fn text(&self, style: &Style) -> String {
        let mut page = Page::new(style);
        for (place, runs) in self.0.iter().enumerate() {
            if let Some(run) = runs.first() {
                page.row(&name(place), &load::target(run, style.verbose), Tone::Plain);
            }
        }
        if let Some(run) = self.0.iter().flatten().next() {
            page.row("load", &load::load(run, style.verbose), Tone::Plain);
            let pairs = self.0.iter().map(Vec::len).min().unwrap_or(0);
            let rounds = [
                format!("{pairs} of each, in turns"),
                format!("{} each", units::duration(run.window_ns)),
            ];
            page.row("rounds", &rounds, Tone::Plain);
        }
        for found in self.comparisons() {
            page.blank();
            rows(&found, &mut page);
        }
        page.blank();
        for (place, runs) in self.0.iter().enumerate() {
            let label = if place == 0 { "verdicts" } else { "" };
            let counts = verdicts(runs).into_iter();
            let told: Vec<_> = counts
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            let told = format!("{}: {}", name(place), told.join(", "));
            page.row(label, &[told.replace('_', "-")], Tone::Plain);
        }
        page.into_text()
    }
}

/// What was found of two sides.
fn rows(found: &Found, page: &mut Page) {
    let comparison = &found.comparison;
    let (label, value): (_, fn(f64) -> String) = match comparison.compared {
        Compared::SuccessesPerS => ("throughput".to_owned(), |per_s| {
            format!("{} req/s", units::rate(per_s))
        }),
        Compared::ResponseQuantile(q) => (quantile(q), |ns| units::duration(ns as u64)),
    };
    let medians = comparison.medians.map(|(first, second)| {
        [(found.first, first), (found.second, second)]
            .map(|(side, median)| format!("{} {}", name(side), value(median)))
    });
    let medians = medians.map_or_else(|| vec!["not known".to_owned()], |both| both.into());
    page.row(&label, &medians, Tone::Plain);
    let tone = match comparison.claim {
        Claim::Differs => Tone::Strong,
        Claim::NoDifference { .. } => Tone::Plain,
        Claim::Nothing(_) => Tone::Warning,
    };
    page.row("", &[found.says()], tone);
    if let Some(noise) = comparison.noise {
        let noise = format!(
            "each side against itself: {} at most",
            units::percent(noise)
        );
        page.row("  noise", &[noise], Tone::Plain);
    }
    for (pair, reason) in &comparison.dropped {
        page.row(
            "  dropped",
            &[format!("pair {}: {reason}", pair + 1)],
            Tone::Plain,
        );
    }
}
