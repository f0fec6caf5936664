//! The report of a run in sections: what was asked, what was measured, and what limited it. By
//! default it is one small page, with `-v` all sections; HTML has key figures above them.

mod bandwidth;
mod breakdown;
mod charts;
mod connections;
mod latency;
pub(crate) mod load;
mod requests;
mod resources;
mod verdict;

use brunt_judge::{Bandwidth, Held, Judged, Quantile, ResponseQuantiles, SignalId, Verdict};
use brunt_load::Work;

use crate::experiment;
use crate::figures::Object;
use crate::foreign::word;
use crate::layout::html::{Head, KeyFigure};
use crate::page::{Page, Role, Tone};
use crate::{ReportError, Style, layout, units};

/// The report as text; with `-v` all that is known of the run.
pub(crate) fn text(judged: &Judged<'_>, style: &Style) -> String {
    if !style.verbose {
        return brief(judged, style);
    }
    let mut page = Page::new(style);
    sections(judged, style.spectrum, &mut page);
    layout::text(&page, style.colour)
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
    errors_above(judged, page);
    page.section("Environment and load", Role::Background);
    asked(judged, page);
    page.section("Requests, errors and connections", Role::Figures);
    measured(judged, page);
    if run.work() != Work::Hold {
        connections::connections(judged, page);
    }
    connections::whole_run(judged, page);
    page.charts("requests");
    page.section("Response times", Role::Figures);
    if run.work().has_units() {
        latency::table(judged, page);
        page.charts("latency");
    }
    if has_spectrum && run.work().has_units() {
        page.blank();
        latency::spectrum(run, page);
    }
    page.section("By stage", Role::Figures);
    breakdown::stages(judged, page);
    page.section("By request", Role::Figures);
    breakdown::names(run, page);
    page.section("Verdict", Role::Outcome);
    verdict::rows(&judged.judgement, page);
    if judged.judgement.verdict == Verdict::ServerFailed {
        verdict::outages(judged, page);
    }
    verdict::objectives(judged, page);
    notes(judged, page);
    page.section("Client and server", Role::Figures);
    resources::used(judged, page);
    page.charts("resources");
    page.section("All signals and invariants", Role::Detail);
    verdict::signals(&judged.judgement, page);
    verdict::checks(judged, &[], page);
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
    let mut window = load::phases(run, true);
    let begun = units::date_time(run.first().clock.window_start_unix_ms);
    window.insert(1, format!("began {begun}"));
    page.row("window", &window, Tone::Plain);
    let version = format!("version {}", run.brunt_version);
    page.row("brunt", &[version], Tone::Plain);
    for machine in run.agents.iter().filter_map(|agent| agent.machine.as_ref()) {
        page.row("machine", &experiment::machine(machine), Tone::Plain);
    }
    breakdown::agents(judged, page);
    resources::evidence(run, page);
}

/// What must be said before any figure.
fn errors_above(judged: &Judged<'_>, page: &mut Page) {
    verdict::refusal(judged, page);
    verdict::no_success(&judged.judgement, page);
    if let Some(line) = connections::unopened(judged.run, &judged.summary) {
        page.line(&line, Tone::Warning);
        page.blank();
    }
}

/// What sets the run apart from others of its kind.
fn notes(judged: &Judged<'_>, page: &mut Page) {
    let mut notes = load::notes(judged.run, &judged.summary, page.is_full());
    // Where the drift decides, the verdict speaks of it.
    let is_said = judged.judgement.decisive.contains(&SignalId::Drift);
    if judged.withheld().is_none() && !is_said {
        notes.extend(load::drift(&judged.steadiness()));
    }
    for note in notes {
        page.row("note", &[note], Tone::Warning);
    }
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

/// What to do after a run without a URL.
const OWN_SERVER_NEXT: &str = "load a server of yours: brunt http://127.0.0.1:8080/";

/// Lines of a page that has nothing unusual to tell: for one or two more, blank ones go.
const LINES_MAX: usize = 14;
const BLANKS: usize = 2;

/// The whole page.
fn brief(judged: &Judged<'_>, style: &Style) -> String {
    let Judged { run, judgement, .. } = judged;
    let is_withheld = judged.withheld().is_some();
    let has_success = judgement.verdict != Verdict::NoSuccess;
    let mut page = Page::new(style);
    errors_above(judged, &mut page);
    asked_in_brief(judged, &mut page);
    page.blank();
    measured_in_brief(judged, &mut page);
    if style.spectrum && run.work().has_units() {
        page.blank();
        latency::spectrum(run, &mut page);
    }
    page.blank();
    // What the first line said is not said again.
    if has_success {
        let mut shown = Vec::new();
        if judged.overload.is_some() {
            shown.push(SignalId::Backlog);
        }
        verdict::cause(judgement, &shown, &mut page);
    }
    if judgement.verdict == Verdict::ServerFailed {
        verdict::outages(judged, &mut page);
    }
    let evidence = run.evidence_of_server();
    if let Some(reason) = evidence
        .missing
        .get("server")
        .filter(|_| evidence.server.is_none())
    {
        let words = format!("server not watched: {reason}");
        page.items(2, &[words], Tone::Plain);
    }
    if let Some(mut items) = resources::cpus(run, false) {
        items[0].insert_str(0, "CPUs: ");
        page.items(2, &items, Tone::Plain);
    }
    verdict::objectives(judged, &mut page);
    let mut shown = Vec::new();
    if !is_withheld && judged.overload.is_some() {
        shown.push(verdict::OVERLOADED);
    }
    if judgement.verdict == Verdict::ServerFailed {
        shown.push(verdict::CONNECTIONS_MISSING);
    }
    verdict::checks(judged, &shown, &mut page);
    if run.own_server() {
        page.line(&format!("next: {OWN_SERVER_NEXT}"), Tone::Plain);
    } else if let Some(advice) = judgement.advice.first().filter(|_| has_success) {
        page.line(&format!("next: {advice}"), Tone::Plain);
    }
    let text = layout::text(&page, style.colour);
    match text.lines().count().saturating_sub(LINES_MAX) {
        more @ 1..=BLANKS => text.replacen("\n\n", "\n", more),
        _ => text,
    }
}

/// The target, the load, and what sets this run apart.
fn asked_in_brief(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    let (mut target, mut load) = (load::target(run, false), load::load(run, false));
    let phases = load::phases(run, false);
    // Where it takes no line of its own.
    let with_target = [&*target, &phases].concat();
    if page.lines_of(&[&*load, &phases].concat()) > page.lines_of(&load)
        && page.lines_of(&with_target) == page.lines_of(&target)
    {
        target = with_target;
    } else {
        load.extend(phases);
    }
    page.items(0, &target, Tone::Plain);
    page.items(0, &load, Tone::Plain);
    breakdown::agents(judged, page);
    notes(judged, page);
}

/// The figures, and how many connections were open, opened and closed.
fn measured_in_brief(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    measured(judged, page);
    if run.work().has_units() {
        latency::table(judged, page);
        breakdown::stages(judged, page);
        breakdown::names(run, page);
    }
    if run.work() != Work::Hold {
        connections::connections(judged, page);
    }
    connections::whole_run(judged, page);
    resources::generator(run, &judged.summary, page);
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
    let label = if run.work() == Work::Streams {
        let found = Bandwidth::of(run, &judged.summary);
        bandwidth::headline(judged, &found, &mut page);
        "bandwidth"
    } else if let Some(found) = Held::of(run, &judged.summary) {
        connections::held_headline(judged, &found, &mut page);
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
    if !run.work().has_units() {
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
    let found = judged.response_quantile(q);
    let beside = match found {
        Quantile::Known { interval, .. } => {
            let interval = interval.ok().map(|ends| {
                let [low, high] = [ends.low_ns, ends.high_ns].map(units::duration);
                format!("95 %: {low} to {high}")
            });
            let known = interval.into_iter().chain(whole_window(judged, q));
            known.collect::<Vec<_>>().join(" · ")
        }
        Quantile::AtLeast { .. } => "others were never answered".to_owned(),
        Quantile::TooFew { samples, needed } => {
            let samples = units::counted(samples, "reply", "replies");
            format!("{samples}, needs {}", units::count(needed))
        }
    };
    (found.to_string(), beside)
}

/// The quantile of the whole window, where the verdict rests on a part of it.
fn whole_window(judged: &Judged<'_>, q: f64) -> Option<String> {
    judged.undisturbed()?;
    let found = judged.run.response_quantile(q);
    let is_known = !matches!(found, Quantile::TooFew { .. });
    is_known.then(|| format!("whole window: {found}"))
}
