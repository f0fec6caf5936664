//! What limited the run: the verdict, what decided it and what to try next; outages of the server,
//! objectives and invariants.

use brunt_judge::{Finding, Grade, InvariantStatus, Judged, Judgement, SignalId, Stretch, Verdict};
use brunt_record::Unit;

use crate::page::{Page, Tone};
use crate::{objective, units};

/// Signals that the evidence names, and lines that they take, unless all of it is asked for.
const EVIDENCE_MOST: usize = 2;
/// What to do after a run without a URL.
const OWN_SERVER_NEXT: &str = "load a server of yours: brunt URL";

fn tone(judgement: &Judgement) -> Tone {
    match judgement.verdict {
        Verdict::Invalid | Verdict::NoSuccess => Tone::Refusal,
        _ if !judgement.is_sound() => Tone::Warning,
        Verdict::ServerLimited => Tone::Strong,
        _ => Tone::Plain,
    }
}

/// The verdict's name and its cause.
fn sentence(judgement: &Judgement) -> String {
    let name = judgement.verdict.name();
    match judgement.because.as_str() {
        "" => name.to_owned(),
        because => format!("{name}: {because}"),
    }
}

/// The verdict with what decided it, when a server failed, the objectives, and what to do next.
pub(super) fn rows(judged: &Judged<'_>, page: &mut Page) {
    let (judgement, is_full) = (&judged.judgement, page.is_full());
    // A short page has said so above all figures.
    if is_full || !matches!(judgement.verdict, Verdict::NoSuccess | Verdict::Invalid) {
        page.lead("verdict", &[sentence(judgement)], tone(judgement));
        page.lead("", &evidence(judged, page), Tone::Plain);
    }
    if judgement.verdict == Verdict::ServerFailed {
        outages(judged, page);
    }
    for (index, outcome) in judged.objectives().iter().enumerate() {
        let label = if index == 0 { "objectives" } else { "" };
        let tone = Tone::Bad.when(!outcome.is_met);
        page.row(label, &[objective::line(outcome, false)], tone);
    }
    let own = judged.run.own_server().then_some(OWN_SERVER_NEXT);
    let advice = judgement.advice.iter().map(String::as_str);
    for (index, advice) in own.into_iter().chain(advice).enumerate() {
        if is_full {
            let label = if index == 0 { "next" } else { "" };
            page.row(label, &[advice.to_owned()], Tone::Plain);
        } else if index == 0 {
            page.line(&format!("next: {advice}"), Tone::Plain);
        }
    }
}

/// What decided, but for what the verdict and the row of an overload say. A short page has the
/// strongest alone.
fn evidence(judged: &Judged<'_>, page: &Page) -> Vec<String> {
    let judgement = &judged.judgement;
    let is_said = |id: SignalId| id == SignalId::Backlog && judged.overload.is_some();
    let decisive = judgement.decisive.iter().filter(|id| !is_said(**id));
    let signals = decisive.filter_map(|id| judgement.signal(*id));
    let details = signals.map(|signal| signal.detail.clone());
    let mut evidence: Vec<String> = details
        .filter(|detail| !judgement.because.contains(detail))
        .collect();
    if !page.is_full() {
        evidence.truncate(EVIDENCE_MOST);
        while evidence.len() > 1 && page.lines_of(&evidence) > EVIDENCE_MOST {
            evidence.pop();
        }
    }
    evidence
}

/// A row for each signal, the worst first.
pub(super) fn signals(judgement: &Judgement, page: &mut Page) {
    for (grade, word, tone) in [
        (Grade::Fail, "  FAIL", Tone::Bad),
        (Grade::Warn, "  warn", Tone::Warning),
        (Grade::Healthy, "  healthy", Tone::Plain),
        (Grade::Unknown, "  unknown", Tone::Plain),
    ] {
        let signals = judgement.signals.iter();
        for signal in signals.filter(|signal| signal.grade == grade) {
            page.row(word, &[format!("{}: {}", signal.id, signal.detail)], tone);
        }
    }
}

/// What a server did that failed in the window, before and after that.
fn outages(judged: &Judged<'_>, page: &mut Page) {
    let Some(failure) = judged.server_failure() else {
        return;
    };
    for (label, found) in [("before", &failure.before), ("after", &failure.after)] {
        if let Some(found) = found {
            page.row(label, &stretch(judged.run.unit(), found), Tone::Plain);
        }
    }
}

/// The rate of a part of the window.
fn stretch(unit: Unit, found: &Stretch) -> Vec<String> {
    let (rate, length) = (
        units::rate(found.successes_per_s),
        units::duration(found.length_ns),
    );
    vec![format!("{rate} {} over {length}", unit.per_s)]
}

/// The line above all figures, where these are refused or nothing succeeded.
pub(super) fn refusal(judged: &Judged<'_>, page: &mut Page) {
    let judgement = &judged.judgement;
    if matches!(judgement.verdict, Verdict::NoSuccess | Verdict::Invalid) {
        page.line(&sentence(judgement), Tone::Refusal);
    }
}

/// The headline of a run whose figures are refused; none where they are not.
pub(super) fn withheld(label: &str, judged: &Judged<'_>, page: &mut Page) -> bool {
    let reason = judged.withheld().filter(|_| !judged.is_valid());
    page.row(label, reason.as_slice(), Tone::Refusal);
    reason.is_some()
}

/// The invariant that an overload flags.
const OVERLOADED: &str = "L6";
/// The invariant that missing connections flag.
const CONNECTIONS_MISSING: &str = "L1";

/// The invariants: on a short page those that do not hold, or not well, where no other row says
/// that.
pub(super) fn checks(judged: &Judged<'_>, page: &mut Page) {
    let is_full = page.is_full();
    let is_said = |finding: &Finding| match finding.id {
        OVERLOADED => judged.overload.is_some() && judged.withheld().is_none(),
        CONNECTIONS_MISSING => judged.judgement.verdict == Verdict::ServerFailed,
        _ => false,
    };
    let mut items = vec![format!("{} invariants", judged.findings.len())];
    let mut rows = Vec::new();
    for (status, word, tone) in [
        (InvariantStatus::Broken, "BROKEN", Tone::Bad),
        (InvariantStatus::Flagged, "flagged", Tone::Warning),
        (InvariantStatus::Held, "held", Tone::Plain),
        (
            InvariantStatus::NotApplicable,
            "not applicable",
            Tone::Plain,
        ),
    ] {
        let found: Vec<_> = judged.with_status(status).collect();
        if !found.is_empty() {
            items.push(format!("{} {word}", found.len()));
        }
        let is_usual = tone == Tone::Plain;
        let is_told = is_full && status != InvariantStatus::NotApplicable;
        let shown = found.into_iter();
        let shown = shown.filter(|finding| is_told || !is_usual && !is_said(finding));
        rows.extend(shown.map(|finding| (finding, word, tone)));
    }
    if rows.is_empty() {
        return;
    }
    page.row("checks", &items, Tone::Refusal.when(!judged.is_valid()));
    for (finding, word, tone) in rows {
        let line = match finding.detail.as_str() {
            "" => word.to_owned(),
            detail => format!("{word}: {detail}"),
        };
        page.row(&format!("  {}", finding.id), &[line], tone);
    }
}
