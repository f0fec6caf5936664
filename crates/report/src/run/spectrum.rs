//! The full percentile spectrum of the response times, and the intervals of the usual quantiles.

use brunt_judge::{Quantile, ResponseQuantiles};
use brunt_load::LoadModel;
use brunt_record::{Histogram, Run};

use super::latency::at_least;
use crate::page::{NARROW, Page, Tone, WIDE};
use crate::spectrum::{Spectrum, Step};
use crate::units;

/// The quantiles whose intervals are given, by their names.
const QUANTILES: &[(&str, f64)] = &[
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.999_9),
    ("p99.999", 0.999_99),
];

/// Prints both tables.
pub(super) fn spectrum(run: &Run, page: &mut Page) {
    // In the other models it is the response time.
    let service = matches!(run.plan.model, LoadModel::Open { .. })
        .then_some(&run.latencies.service)
        .filter(|service| service.count() > 0);
    quantiles(run, service, page);
    steps(run, service, page);
}

fn quantiles(run: &Run, service: Option<&Histogram>, page: &mut Page) {
    let mut headings = words(&["response", "95 % from", "to"]);
    headings.extend(service.map(|_| "service".to_owned()));
    page.table_head(NARROW, "quantiles", &headings, "");
    for &(name, q) in QUANTILES {
        let mut cells = match run.response_quantile(q) {
            Quantile::Known { ns, interval } => {
                let ends = interval.map(|it| [it.low_ns, it.high_ns].map(units::duration));
                let [low, high] = ends.unwrap_or_default();
                vec![units::duration(ns), low, high]
            }
            Quantile::AtLeast { ns } => vec![at_least(ns), String::new(), String::new()],
            Quantile::TooFew { samples, needed } => {
                let [samples, needed] = [samples, needed].map(units::count);
                let reason = format!("and above: too few samples ({samples}, need {needed})");
                page.row(&format!("  {name}"), &[reason], Tone::Plain);
                break;
            }
        };
        cells.extend(service.map(|service| Quantile::of(service, q).to_string()));
        page.table_row(NARROW, &format!("  {name}"), &cells, "", Tone::Plain);
    }
}

fn steps(run: &Run, service: Option<&Histogram>, page: &mut Page) {
    let spectrum = Spectrum::of_response(run);
    page.blank();
    if spectrum.steps.is_empty() {
        let none = "no reply to a request of the window".to_owned();
        return page.row("spectrum", &[none], Tone::Plain);
    }
    let mut headings = words(&["response", "percentile", "count"]);
    headings.extend(service.map(|_| "service".to_owned()));
    page.table_head(WIDE, "spectrum", &headings, "");
    // Where nothing lies between two steps, the higher one tells it all.
    let is_last = |pair: &[Step]| (pair[0].ns, pair[0].count) != (pair[1].ns, pair[1].count);
    let told = spectrum.steps.windows(2).filter(|pair| is_last(pair));
    let told = told.map(|pair| &pair[0]).chain(spectrum.steps.last());
    for step in told {
        let mut cells = vec![
            if step.is_bound {
                at_least(step.ns)
            } else {
                units::duration(step.ns)
            },
            format!("{:.5}", step.quantile * 100.0),
            units::count(step.count),
        ];
        let quantile = |service: &Histogram| service.quantile_ns(step.quantile);
        cells.extend(service.and_then(quantile).map(units::duration));
        page.table_row(WIDE, "", &cells, "", Tone::Plain);
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
