//! The report of a run in sections: what was asked, what was measured, and what limited it.

mod agents;
mod bandwidth;
mod brief;
mod charts;
mod checks;
mod connections;
mod describe;
mod errors;
mod evidence;
mod held;
mod key_figures;
mod latency;
pub(crate) mod load;
mod names;
mod objectives;
mod outage;
mod outcome;
mod precision;
mod requests;
mod resources;
mod spectrum;
mod stages;
mod verdict;

use brunt_judge::{Judged, SignalId, Verdict};

use crate::experiment::environment;
use crate::layout;
use crate::layout::html::Head;
use crate::object::Object;
use crate::page::{Page, Role, Tone};
use crate::{ReportError, Style, shortened, units};

/// The report as text; with `-v` all that is known of the run.
pub(crate) fn text(judged: &Judged<'_>, style: &Style) -> String {
    if !style.verbose {
        return brief::page(judged, style);
    }
    let mut page = Page::new(style);
    sections(judged, style.spectrum, &mut page);
    layout::text::text(&page, style.colour)
}

/// The report as a page of HTML.
///
/// # Errors
///
/// When a chart has no JSON form.
pub(crate) fn html(judged: &Judged<'_>) -> Result<String, ReportError> {
    let mut page = Page::unbroken();
    sections(judged, false, &mut page);
    let url = shortened::word(&judged.run.plan.urls()).into_owned();
    let head = Head {
        kind: "load report",
        lines: key_figures::head(judged),
        title: format!("{}: {url}", judged.judgement.verdict.name()),
        heading: url,
        figures: key_figures::tiles(judged),
    };
    let data = Object::new().with("run", charts::data(judged));
    let style = Style {
        verbose: true,
        width: 100,
        ..Style::default()
    };
    layout::html::document(&head, &page, &data, &text(judged, &style))
}

/// All sections of the report.
fn sections(judged: &Judged<'_>, has_spectrum: bool, page: &mut Page) {
    let run = judged.run;
    errors_above(judged, page);
    page.section("Environment and load", Role::Background);
    asked(judged, page);
    page.section("Requests, errors and connections", Role::Figures);
    measured(judged, page);
    if !run.is_held() {
        connections::connections(judged, page);
    }
    connections::whole_run(judged, page);
    page.charts("requests");
    page.section("Response times", Role::Figures);
    if run.has_units() {
        latency::table(judged, page);
        page.charts("latency");
    }
    if has_spectrum && run.has_units() {
        page.blank();
        spectrum::spectrum(run, page);
    }
    page.section("By stage", Role::Figures);
    stages::table(judged, page);
    page.section("By request", Role::Figures);
    names::table(run, page);
    page.section("Verdict", Role::Outcome);
    verdict::rows(&judged.judgement, page);
    if judged.judgement.verdict == Verdict::ServerFailed {
        outage::rows(judged, page);
    }
    objectives::rows(judged, page);
    notes(judged, page);
    page.section("Client and server", Role::Figures);
    resources::used(judged, page);
    page.charts("resources");
    page.section("All signals and invariants", Role::Detail);
    verdict::signals(&judged.judgement, page);
    checks::checks(judged, &[], page);
}

/// What was asked for, how, and where it ran.
fn asked(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    page.row("target", &load::target(run, true), Tone::Plain);
    page.row("load", &load::load(run, true), Tone::Plain);
    for (number, stage) in (1..).zip(load::stages(run)) {
        page.row(&format!("  stage {number}"), &[stage], Tone::Plain);
    }
    // Those of several agents are in the data.
    if let Some(placement) = run.first().placement.as_ref().filter(|_| run.is_plain()) {
        page.row("workers", &load::placement(placement), Tone::Plain);
    }
    for command in load::commands(run) {
        page.row("command", &[command], Tone::Plain);
    }
    let mut window = describe::phases(run, true);
    let begun = units::date_time(run.first().clock.window_start_unix_ms);
    window.insert(1, format!("began {begun}"));
    page.row("window", &window, Tone::Plain);
    let version = format!("version {}", run.brunt_version);
    page.row("brunt", &[version], Tone::Plain);
    for machine in run.agents.iter().filter_map(|agent| agent.machine.as_ref()) {
        page.row("machine", &environment::machine(machine), Tone::Plain);
    }
    agents::rows(judged, page);
    evidence::rows(run, page);
}

/// What must be said before any figure.
fn errors_above(judged: &Judged<'_>, page: &mut Page) {
    checks::refusal(judged, page);
    outcome::first_line(&judged.judgement, page);
    if let Some(line) = connections::unopened(judged.run, &judged.summary) {
        page.line(&line, Tone::Warning);
        page.blank();
    }
}

/// What sets the run apart from others of its kind.
fn notes(judged: &Judged<'_>, page: &mut Page) {
    let mut notes = describe::notes(judged.run, &judged.summary, page.is_full());
    // Where the drift decides, the verdict speaks of it.
    let is_said = judged.judgement.decisive.contains(&SignalId::Drift);
    if judged.withheld().is_none() && !is_said {
        notes.extend(describe::drift(&judged.steadiness()));
    }
    for note in notes {
        page.row("note", &[note], Tone::Warning);
    }
}

/// What was measured, by the kind of load, but the response times.
fn measured(judged: &Judged<'_>, page: &mut Page) {
    if judged.run.is_streams() {
        bandwidth::rows(judged, page);
        requests::failures(judged, page);
    } else if judged.run.is_held() {
        held::rows(judged, page);
        requests::failures(judged, page);
        requests::beside(judged, page);
    } else {
        requests::throughput(judged, page);
        requests::arrivals(judged, page);
        requests::requests(judged, page);
    }
}
