//! The report for people: what was asked, what came of it, and whether it may be believed.

mod describe;
mod layout;

use brunt_measure::{Figure, Finding, Histogram, Quantile, Run, Standing, Summary};

use self::layout::{Page, Tone};
use crate::figures::{AllPhases, ids, standing_at};
use crate::{Style, units};

/// The quantiles of the latency table, by their heading.
const QUANTILES: &[(&str, f64)] = &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The whole report.
pub(crate) fn page(run: &Run, style: &Style) -> String {
    let summary = run.summary();
    let mut page = Page::new(style);
    refusal(run, &mut page);
    page.row("target", &describe::target(&run.load), Tone::Plain);
    page.row("load", &describe::load(&run.load), Tone::Plain);
    page.row("window", &describe::phases(run), Tone::Plain);
    for note in describe::notes(run, &summary) {
        page.row("note", &[note], Tone::Warning);
    }
    page.blank();
    throughput(run, &summary, &mut page);
    requests(run, &summary, style.verbose, &mut page);
    latency(run, &mut page);
    page.blank();
    connections(&summary, &mut page);
    all_phases(&summary, &mut page);
    page.row("client", &describe::client(run, &summary), Tone::Plain);
    page.blank();
    checks(run, style.verbose, &mut page);
    page.into_text()
}

/// The first line of a run whose figures are refused.
fn refusal(run: &Run, page: &mut Page) {
    let broken = ids(standing_at(run, Standing::Broken));
    if !broken.is_empty() {
        let line = format!(
            "INVALID: the figures below break {} of {} invariants ({})",
            broken.len(),
            run.findings.len(),
            broken.join(", "),
        );
        page.line(&line, Tone::Refusal);
        page.blank();
    }
}

fn throughput(run: &Run, summary: &Summary, page: &mut Page) {
    let broken = ids(standing_at(run, Standing::Broken));
    if !broken.is_empty() {
        let reason = format!("withheld: {} broken, see below", broken.join(", "));
        return page.row("throughput", &[reason], Tone::Refusal);
    }
    let mut items = Vec::new();
    match &summary.successes_per_s {
        Figure::Known(rate) => items.push(format!("{} req/s", units::rate(*rate))),
        Figure::Absent(reason) => items.push(format!("not known: {reason}")),
    }
    // The attempts stand beside the headline where they tell something else than it does.
    if let (Some(successes), Some(attempts)) = (
        summary.successes_per_s.known(),
        summary.attempts_per_s.known(),
    ) && (attempts - successes).abs() > attempts * 0.001
    {
        items.push(format!("of {} sent/s", units::rate(attempts)));
    }
    if let Some(rate) = summary.bytes_received_per_s.known() {
        items.push(format!("{} received", units::bytes_per_s(rate)));
    }
    page.row("throughput", &items, Tone::Strong);
}

fn requests(run: &Run, summary: &Summary, verbose: bool, page: &mut Page) {
    let population = &summary.population;
    let mut items = vec![
        format!("{} ok", units::count(run.response.count())),
        format!(
            "{} error statuses",
            units::count(run.response_error.count())
        ),
        format!("{} failed", units::count(population.failed)),
        format!("{} censored", units::count(population.censored)),
    ];
    if summary.unsent > 0 {
        items.push(format!("{} never sent", units::count(summary.unsent)));
    }
    page.row("requests", &items, Tone::Plain);
    page.row(
        "statuses",
        &describe::statuses(&summary.window.replies, verbose),
        Tone::Plain,
    );
    let failures = describe::failures(&summary.lifetime.failures);
    if !failures.is_empty() {
        page.row("failures", &failures, Tone::Bad);
    }
}

fn latency(run: &Run, page: &mut Page) {
    let headings = QUANTILES.iter().map(|(heading, _)| *heading).chain(["max"]);
    page.cells(
        "latency",
        &headings.map(str::to_owned).collect::<Vec<_>>(),
        Tone::Plain,
    );
    let mut too_few = Vec::new();
    let mut row = |label: &str, histogram: &Histogram, none: &str| {
        let Some(max_ns) = histogram.max_ns() else {
            return page.row(&format!("  {label}"), &[none.to_owned()], Tone::Plain);
        };
        let mut cells = Vec::new();
        let mut needs = Vec::new();
        for (heading, q) in QUANTILES {
            cells.push(match histogram.quantile(*q) {
                Quantile::Known(ns) => units::duration(ns),
                Quantile::TooFew { needed, .. } => {
                    needs.push(format!("{heading} needs {}", units::count(needed)));
                    "too few".to_owned()
                }
            });
        }
        cells.push(units::duration(max_ns));
        page.cells(&format!("  {label}"), &cells, Tone::Plain);
        if !needs.is_empty() {
            let samples = describe::counted(histogram.count(), "sample", "samples");
            too_few.push(format!("{label} has {samples}: {}", needs.join(", ")));
        }
    };
    row(
        "response",
        &run.response,
        "no successful reply to a request sent in the window",
    );
    if run.response_error.count() > 0 {
        row("errors", &run.response_error, "");
    }
    row("connect", &run.connect, "no connection was opened");
    for line in too_few {
        page.row("  too few", &[line], Tone::Plain);
    }
}

fn connections(summary: &Summary, page: &mut Page) {
    let (live, all) = (&summary.live, AllPhases::new(summary));
    let steady = live.min == live.asked && live.max == live.asked;
    let count = |connections: u32| units::count(connections.into());
    let mut items = Vec::new();
    if steady {
        items.push(format!("{} live throughout", count(live.asked)));
    } else {
        let mean = summary.live_mean.known().map_or_else(
            || "mean not known".to_owned(),
            |mean| format!("mean {}", units::rate(mean)),
        );
        items.push(format!(
            "{} to {} live, {mean}, of {} asked",
            count(live.min),
            count(live.max),
            count(live.asked),
        ));
    }
    items.push(format!("{} opened", units::count(all.connections_opened)));
    items.push(format!(
        "{} closed idle by server",
        units::count(all.connections_closed_by_server)
    ));
    items.push(format!(
        "{} replaced",
        units::count(all.connections_replaced)
    ));
    page.row(
        "connections",
        &items,
        if steady { Tone::Plain } else { Tone::Warning },
    );
}

fn all_phases(summary: &Summary, page: &mut Page) {
    let all = AllPhases::new(summary);
    let items = [
        format!("{} sent", units::count(all.sent)),
        format!("{} answered", units::count(all.answered)),
        format!("{} failed", units::count(all.failed)),
        format!("{} under way", units::count(all.under_way)),
    ];
    page.row("all phases", &items, Tone::Plain);
}

fn checks(run: &Run, verbose: bool, page: &mut Page) {
    let count = |standing| standing_at(run, standing).count() as u64;
    let (held, broken) = (count(Standing::Held), count(Standing::Broken));
    let (flagged, beside) = (count(Standing::Flagged), count(Standing::NotApplicable));
    if run.findings.is_empty() {
        return page.row("checks", &["none were made".to_owned()], Tone::Warning);
    }
    let mut items = Vec::new();
    let mut tone = Tone::Plain;
    if broken > 0 {
        items.push(format!("{} BROKEN", units::count(broken)));
        tone = Tone::Refusal;
    }
    items.push(describe::counted(
        held,
        "invariant holds",
        "invariants hold",
    ));
    if flagged > 0 {
        items.push(format!("{} flagged", units::count(flagged)));
    }
    if beside > 0 {
        items.push(describe::counted(beside, "does not apply", "do not apply"));
    }
    page.row("checks", &items, tone);
    for standing in [
        Standing::Broken,
        Standing::Flagged,
        Standing::Held,
        Standing::NotApplicable,
    ] {
        for finding in standing_at(run, standing) {
            if verbose || matches!(standing, Standing::Broken | Standing::Flagged) {
                check(finding, page);
            }
        }
    }
}

/// The line of one invariant.
fn check(finding: &Finding, page: &mut Page) {
    let (word, tone) = match finding.standing {
        Standing::Held => ("holds", Tone::Plain),
        Standing::Flagged => ("flagged", Tone::Warning),
        Standing::Broken => ("BROKEN", Tone::Bad),
        Standing::NotApplicable => ("does not apply", Tone::Plain),
    };
    let line = match finding.detail.as_str() {
        "" => word.to_owned(),
        detail => format!("{word}: {detail}"),
    };
    page.row(&format!("  {}", finding.id), &[line], tone);
}
