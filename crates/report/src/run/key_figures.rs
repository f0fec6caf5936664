//! The top of a page of HTML: what was loaded, and the figures that matter most.

use brunt_judge::{Bandwidth, Held, Interval, Judged, Quantile, ResponseQuantiles};

use super::{bandwidth, describe, held, latency, load, requests};
use crate::layout::html::KeyFigure;
use crate::page::Page;
use crate::units;

/// The quantiles that stand out.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// What was loaded, how, and when, without its URL.
pub(super) fn head(judged: &Judged<'_>) -> Vec<String> {
    let run = judged.run;
    let target = load::target(run, false);
    let target = target.get(1..).unwrap_or_default();
    let (load, phases) = (load::load(run, false), describe::phases(run, false));
    [target, &load, &phases]
        .map(|items| items.join(" · "))
        .into()
}

/// The figures that matter most, large.
pub(super) fn tiles(judged: &Judged<'_>) -> Vec<KeyFigure> {
    let run = judged.run;
    let mut page = Page::new(&crate::Style::default());
    let label = if run.is_streams() {
        let found = Bandwidth::of(run, &judged.summary);
        bandwidth::headline(judged, &found, &mut page);
        "bandwidth"
    } else if let Some(found) = Held::of(run, &judged.summary) {
        held::headline(judged, &found, &mut page);
        "held"
    } else {
        requests::throughput(judged, &mut page);
        "throughput"
    };
    let (value, beside) = page.first_items().split_first().unzip();
    let mut tiles = vec![KeyFigure {
        label: label.to_owned(),
        value: value.map_or_else(|| "not known".to_owned(), Clone::clone),
        beside: beside.map_or_else(String::new, |items| items.join(" · ")),
    }];
    if !run.has_units() {
        return tiles;
    }
    tiles.extend(QUANTILES.map(|(name, q)| {
        let (value, beside) = response(judged, q);
        KeyFigure {
            label: format!("{name} response time"),
            value,
            beside,
        }
    }));
    let issued = judged.summary.population.issued;
    let others = issued.saturating_sub(run.latencies.response.count());
    let mut beside = format!("of {} {}", units::count(issued), run.unit().many);
    if others > 0 {
        let share = units::percent(others as f64 / issued as f64);
        beside = format!("{beside}, {share}");
    }
    tiles.push(KeyFigure {
        label: "not successful".to_owned(),
        value: units::count(others),
        beside,
    });
    tiles
}

/// A quantile of the response times, and how well it is known.
fn response(judged: &Judged<'_>, q: f64) -> (String, String) {
    match judged.response_quantile(q) {
        Quantile::Known { ns, interval } => {
            let ends = |it: Interval| {
                let [low, high] = [it.low_ns, it.high_ns].map(units::duration);
                format!("95 %: {low} to {high}")
            };
            let known = interval.ok().map(ends).into_iter().chain(whole(judged, q));
            let beside = known.collect::<Vec<_>>().join(" · ");
            (units::duration(ns), beside)
        }
        Quantile::AtLeast { ns } => {
            let beside = "others were never answered".to_owned();
            (latency::at_least(ns), beside)
        }
        Quantile::TooFew { samples, needed } => {
            let samples = units::counted(samples, "reply", "replies");
            let needed = units::count(needed);
            ("too few".to_owned(), format!("{samples}, needs {needed}"))
        }
    }
}

/// The quantile of the whole window, where the verdict rests on a part of it.
fn whole(judged: &Judged<'_>, q: f64) -> Option<String> {
    judged.undisturbed()?;
    match judged.run.response_quantile(q) {
        Quantile::Known { ns, .. } => Some(format!("whole window: {}", units::duration(ns))),
        Quantile::AtLeast { ns } => Some(format!("whole window: {}", latency::at_least(ns))),
        Quantile::TooFew { .. } => None,
    }
}
