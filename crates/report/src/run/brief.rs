//! The report by default: what was asked, the figures, and what limited them, on one small page.

use brunt_judge::{Judged, SignalId, Verdict};

use super::{
    agents, checks, connections, describe, errors_above, latency, load, names, objectives, outage,
    resources, spectrum, stages, verdict,
};
use crate::page::{Page, Tone};
use crate::{Style, layout};

/// What to do after a run without a URL.
const OWN_SERVER_NEXT: &str = "load a server of yours: brunt http://127.0.0.1:8080/";

/// Lines of a page that has nothing unusual to tell: for one or two more, blank ones go.
const LINES_MAX: usize = 14;
const BLANKS: usize = 2;

/// The whole page.
pub(super) fn page(judged: &Judged<'_>, style: &Style) -> String {
    let Judged { run, judgement, .. } = judged;
    let is_withheld = judged.withheld().is_some();
    let has_success = judgement.verdict != Verdict::NoSuccess;
    let mut page = Page::new(style);
    errors_above(judged, &mut page);
    asked(judged, &mut page);
    page.blank();
    measured(judged, &mut page);
    if style.spectrum && run.has_units() {
        page.blank();
        spectrum::spectrum(run, &mut page);
    }
    page.blank();
    // What the first line said is not said again.
    if has_success {
        let mut told = Vec::new();
        if judged.overload.is_some() {
            told.push(SignalId::Backlog);
        }
        verdict::cause(judgement, &told, &mut page);
    }
    if judgement.verdict == Verdict::ServerFailed {
        outage::rows(judged, &mut page);
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
    objectives::rows(judged, &mut page);
    let mut told = Vec::new();
    if !is_withheld && judged.overload.is_some() {
        told.push(checks::OVERLOADED);
    }
    if judgement.verdict == Verdict::ServerFailed {
        told.push(checks::CONNECTIONS_MISSING);
    }
    checks::checks(judged, &told, &mut page);
    if run.own_server() {
        page.line(&format!("next: {OWN_SERVER_NEXT}"), Tone::Plain);
    } else if let Some(advice) = judgement.advice.first().filter(|_| has_success) {
        page.line(&format!("next: {advice}"), Tone::Plain);
    }
    let text = layout::text::text(&page, style.colour);
    match text.lines().count().saturating_sub(LINES_MAX) {
        more @ 1..=BLANKS => text.replacen("\n\n", "\n", more),
        _ => text,
    }
}

/// The target, the load, and what sets this run apart.
fn asked(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    let (mut target, mut load) = (load::target(run, false), load::load(run, false));
    let phases = describe::phases(run, false);
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
    agents::rows(judged, page);
    super::notes(judged, page);
}

/// The figures, and how many connections were open, opened and closed.
fn measured(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    super::measured(judged, page);
    if run.has_units() {
        latency::table(judged, page);
        stages::table(judged, page);
        names::table(run, page);
    }
    if !run.is_held() {
        connections::connections(judged, page);
    }
    connections::whole_run(judged, page);
    resources::generator(run, &judged.summary, page);
}
