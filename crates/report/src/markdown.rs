//! A short report in Markdown, for pull requests and the summaries of CI runs.

use std::fmt::Write;

use brunt_judge::{Bandwidth, Figure, Held, Judged, Quantile, ResponseQuantiles, Verdict};

pub(crate) use crate::foreign::{code, markdown as escaped};
use crate::shortened::word;
use crate::{objective, units};

/// The quantiles of the table.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// What was loaded and how, the verdict, the headline, response times, and the objectives.
pub(crate) fn page(judged: &Judged<'_>) -> String {
    let (run, judgement) = (judged.run, &judged.judgement);
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "### brunt: {}\n", code(&word(&run.plan.urls())));
    let verdict = escaped(judgement.verdict.name());
    match judgement.because.as_str() {
        "" => _ = writeln!(page, "**{verdict}**\n"),
        because => _ = writeln!(page, "**{verdict}**: {}\n", escaped(because)),
    }
    figures(judged, &mut page);
    let outcomes = judged.objectives();
    if !outcomes.is_empty() {
        page.push_str("\n| objective | outcome | measured |\n|---|---|---|\n");
    }
    for outcome in &outcomes {
        let asked = code(&objective::asked(&outcome.objective));
        let word = match outcome.is_met {
            true => "met",
            false => "**missed**",
        };
        let found = escaped(&objective::found(outcome));
        let _ = writeln!(page, "| {asked} | {word} | {found} |");
    }
    page
}

/// The headline and the response times, or why there are none.
fn figures(judged: &Judged<'_>, page: &mut String) {
    let run = judged.run;
    if let Some(reason) = judged.withheld() {
        let _ = writeln!(page, "Throughput: {}", escaped(&reason));
        return;
    }
    if run.is_streams() {
        return bandwidth(judged, page);
    }
    if let Some(found) = Held::of(run, &judged.summary) {
        return held(&found, page);
    }
    let (mut heads, mut cells) = (vec!["throughput"], Vec::new());
    cells.push(match &judged.successes_per_s() {
        Figure::Known(rate) => {
            let is_lower_bound = judged.judgement.verdict == Verdict::ClientLimited;
            let least = if is_lower_bound { "at least " } else { "" };
            format!("{least}{} {}", units::rate(*rate), run.unit().per_s)
        }
        Figure::Absent(reason) => escaped(reason),
    });
    for (name, q) in QUANTILES {
        heads.push(name);
        cells.push(match judged.response_quantile(q) {
            Quantile::Known { ns, .. } => units::duration(ns),
            Quantile::AtLeast { ns } => format!("at least {}", units::duration(ns)),
            Quantile::TooFew { .. } => "too few".to_owned(),
        });
    }
    heads.push("not successful");
    let population = &judged.summary.population;
    let successes = run.latencies.response.count();
    let others = population.issued.saturating_sub(successes);
    cells.push(format!(
        "{} of {}",
        units::count(others),
        units::count(population.issued)
    ));
    let rule = vec!["---:"; heads.len()].join("|");
    let _ = writeln!(page, "| {} |\n|{rule}|", heads.join(" | "));
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

/// The rates of streams.
fn bandwidth(judged: &Judged<'_>, page: &mut String) {
    let found = Bandwidth::of(judged.run, &judged.summary);
    let rate = |figure: &Figure| match figure {
        Figure::Known(bytes_per_s) => units::bits_per_s(bytes_per_s * 8.0),
        Figure::Absent(reason) => escaped(reason),
    };
    let cells = [
        rate(&found.up_bytes_per_s),
        rate(&found.down_bytes_per_s),
        units::count(found.streams),
        units::count(found.window.segments_retransmitted),
    ];
    let _ = writeln!(
        page,
        "| up | down | streams | segments sent again |\n|---:|---:|---:|---:|"
    );
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

/// What became of connections that were only kept open.
fn held(found: &Held, page: &mut String) {
    let cells = [
        found.asked,
        found.open_at_end,
        found.opened,
        found.closed_by_server,
        found.attempts_failed,
    ];
    let _ = writeln!(
        page,
        "| connections | open at the end | opened | closed by the server | attempts failed |\n\
         |---:|---:|---:|---:|---:|"
    );
    let _ = writeln!(page, "| {} |", cells.map(units::count).join(" | "));
}
