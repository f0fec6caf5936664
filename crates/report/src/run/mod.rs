//! The report of a run in sections: what was asked, what was measured, and what limited it. A short
//! page has the rows that say how to read the figures, a full one (`-v`, HTML) all.

pub(crate) mod bandwidth;
mod breakdown;
mod charts;
mod connections;
mod latency;
pub(crate) mod load;
mod requests;
mod resources;
mod verdict;

use brunt_judge::{CleanFigures, Grade, Judged, Quantile, ResponseQuantiles, SignalId};
use brunt_load::Work;

use crate::experiment;
use crate::figures::Object;
use crate::foreign::word;
use crate::layout::html::{Head, KeyFigure};
use crate::page::{Page, Role, Tone};
use crate::{ReportError, Style, layout, units};

/// Lines of a page that has nothing unusual to tell: for one or two more, blank ones go.
const LINES_MAX: usize = 14;
const BLANKS: usize = 2;

/// The report as text; with `-v` all that is known of the run.
pub(crate) fn text(judged: &Judged<'_>, style: &Style) -> String {
    let mut page = Page::new(style);
    sections(judged, style.spectrum, &mut page);
    let text = layout::text(&page, style.colour);
    match text.lines().count().saturating_sub(LINES_MAX) {
        more @ 1..=BLANKS => text.replacen("\n\n", "\n", more),
        _ => text,
    }
}

/// The report as a page of HTML.
///
/// # Errors
///
/// When a chart has no JSON form.
pub(crate) fn html(judged: &Judged<'_>) -> Result<String, ReportError> {
    let mut page = Page::unbroken();
    sections(judged, false, &mut page);
    let url = word(&judged.run.plan.urls()).into_owned();
    let head = Head {
        kind: "load report",
        lines: head_lines(judged),
        title: format!("{}: {url}", judged.judgement.verdict.name()),
        heading: url,
        figures: tiles(judged),
    };
    let data = Object::new().with("run", charts::data(judged));
    layout::html::document(&head, &page, &data, &text(judged, &layout::html::TEXT))
}

/// All sections of the report.
fn sections(judged: &Judged<'_>, has_spectrum: bool, page: &mut Page) {
    let run = judged.run;
    verdict::refusal(judged, page);
    if let Some(line) = connections::unopened(run, &judged.summary) {
        page.line(&line, Tone::Warning);
    }
    page.section("Environment and load", Role::Background);
    asked(judged, page);
    page.section("Requests and errors", Role::Figures);
    notes(judged, page);
    measured(judged, page);
    page.charts("requests");
    if run.work().has_units() {
        page.subsection("Response times", Role::Figures);
        latency::table(judged, page);
        page.charts("latency");
        if has_spectrum {
            page.blank();
            latency::spectrum(run, page);
            page.blank();
        }
        page.subsection("By stage", Role::Figures);
        breakdown::stages(judged, page);
        page.subsection("By request", Role::Figures);
        breakdown::names(run, page);
    }
    page.subsection("Connections", Role::Figures);
    if run.work() != Work::Hold {
        connections::connections(judged, page);
    }
    connections::whole_run(judged, page);
    page.subsection("Client and server", Role::Figures);
    resources::used(judged, page);
    page.charts("resources");
    page.section("Verdict", Role::Outcome);
    verdict::rows(judged, page);
    page.subsection("All signals and invariants", Role::Detail);
    if page.is_full() {
        verdict::signals(&judged.judgement, page);
    }
    verdict::checks(judged, page);
}

/// What was asked for, how, and where it ran.
fn asked(judged: &Judged<'_>, page: &mut Page) {
    let (run, is_full) = (judged.run, page.is_full());
    let (mut load, window) = (load::load(run, is_full), load::phases(run, is_full));
    page.lead("target", &load::target(run, is_full), Tone::Plain);
    if !is_full {
        load.extend(window);
        page.lead("load", &load, Tone::Plain);
        return breakdown::agents(judged, page);
    }
    page.row("load", &load, Tone::Plain);
    // Those of several agents are in the data.
    if let Some(placement) = run.first().placement.as_ref().filter(|_| run.is_plain()) {
        page.row("workers", &[load::placement(placement)], Tone::Plain);
    }
    for command in load::commands(run) {
        page.row("command", &[command], Tone::Plain);
    }
    page.row("window", &window, Tone::Plain);
    let version = format!("version {}", run.brunt_version);
    page.row("brunt", &[version], Tone::Plain);
    for machine in run.agents.iter().filter_map(|agent| agent.machine.as_ref()) {
        page.row("machine", &experiment::machine(machine), Tone::Plain);
    }
    breakdown::agents(judged, page);
    resources::evidence(run, page);
}

/// What sets the run apart from others of its kind.
fn notes(judged: &Judged<'_>, page: &mut Page) {
    let mut notes = load::notes(judged.run, &judged.summary);
    // Where the drift decides, the verdict speaks of it.
    let judgement = &judged.judgement;
    let is_said = judgement.decisive.contains(&SignalId::Drift) || judged.withheld().is_some();
    let drift = judgement.signal(SignalId::Drift).filter(|_| !is_said);
    let drift = drift.filter(|signal| matches!(signal.grade, Grade::Warn | Grade::Fail));
    notes.extend(drift.map(|signal| signal.detail.clone()));
    for note in notes {
        page.row("note", &[note], Tone::Warning);
    }
}

/// The figures of the parts of the window without CPU steal, where the verdict does not rest on
/// them. Absent where these parts are too short for figures.
fn clean_beside<'a>(judged: &'a Judged<'_>) -> Option<&'a CleanFigures> {
    let clean = judged.clean.as_ref()?.figures.as_ref();
    clean.filter(|_| judged.undisturbed().is_none() && judged.withheld().is_none())
}

/// Each count with its words; that of nothing where `has_none` asks for it.
fn counts<const N: usize>(
    counts: [(u64, &'static str); N],
    has_none: bool,
) -> impl Iterator<Item = String> {
    let counts = counts.into_iter();
    let shown = counts.filter(move |&(count, _)| has_none || count > 0);
    shown.map(|(count, words)| format!("{} {words}", units::count(count)))
}

/// What was measured, by the kind of load, but the response times.
fn measured(judged: &Judged<'_>, page: &mut Page) {
    match judged.run.work() {
        Work::Streams => {
            bandwidth::rows(judged, page);
            requests::failures(judged, page);
        }
        Work::Hold => {
            connections::held(judged, page);
            requests::failures(judged, page);
            requests::beside(judged, page);
        }
        Work::Requests | Work::Connects => {
            requests::throughput(judged, page);
            requests::arrivals(judged, page);
            requests::requests(judged, page);
        }
    }
}

/// The quantiles that stand out.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// What was loaded, how, and when, without its URL.
fn head_lines(judged: &Judged<'_>) -> Vec<String> {
    let run = judged.run;
    let target = load::target(run, false);
    let target = target.get(1..).unwrap_or_default();
    let (load, phases) = (load::load(run, false), load::phases(run, false));
    [target, &load, &phases]
        .map(|items| items.join(" · "))
        .into()
}

/// The figures that matter most, large.
fn tiles(judged: &Judged<'_>) -> Vec<KeyFigure> {
    let run = judged.run;
    let mut page = Page::new(&Style::default());
    measured(judged, &mut page);
    let headline = page.first_row().into_iter();
    let headline = headline.filter_map(|(label, items)| {
        let (value, beside) = items.split_first()?;
        Some(KeyFigure {
            label: label.to_owned(),
            value: value.clone(),
            beside: beside.join(" · "),
        })
    });
    let mut tiles: Vec<KeyFigure> = headline.collect();
    if !run.work().has_units() {
        return tiles;
    }
    tiles.extend(QUANTILES.map(|(name, q)| {
        let found = judged.response_quantile(q);
        let beside = match found {
            Quantile::Known {
                interval: Ok(ends), ..
            } => {
                let [low, high] = [ends.low_ns, ends.high_ns].map(units::duration);
                format!("95 % CI {low} to {high}")
            }
            Quantile::Known { .. } => String::new(),
            Quantile::AtLeast { .. } => "others were never answered".to_owned(),
            Quantile::TooFew { needed, .. } => format!("needs {} replies", units::count(needed)),
        };
        KeyFigure {
            label: format!("{name} response time"),
            value: latency::cell(found),
            beside,
        }
    }));
    let window = &judged.summary.window;
    let failed = window.failures.of_requests(run.work());
    let others = window.replies.errors().saturating_add(failed);
    let ended = window.replies.successes().saturating_add(others);
    let mut beside = format!("of {} {}", units::count(ended), run.unit().many);
    if others > 0 {
        let share = units::percent(others as f64 / ended as f64);
        beside = format!("{beside}, {share}");
    }
    tiles.push(KeyFigure {
        label: "not successful".to_owned(),
        value: units::count(others),
        beside,
    });
    tiles
}
