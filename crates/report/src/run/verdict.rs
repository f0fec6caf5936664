//! What limited the run: the verdict, what decided it and what to try next; outages of the server,
//! objectives and invariants.

use brunt_judge::{
    Finding, Grade, InvariantStatus, Judged, Judgement, Outage, Signal, SignalId, Stretch, Verdict,
};
use brunt_record::Unit;

use crate::figures::ids;
use crate::page::{Page, Tone};
use crate::{objective, units};

/// Signals that the evidence names, and lines that they take, unless all of it is asked for.
const EVIDENCE_MOST: usize = 2;

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

/// What decided, without what the verdict, and rows of the signals `shown`, say already.
fn evidence(judgement: &Judgement, shown: &[SignalId]) -> Vec<String> {
    let decisive = judgement.decisive.iter();
    decisive
        .filter(|id| !shown.contains(id))
        .filter_map(|id| judgement.signal(*id))
        .map(|signal| signal.detail.clone())
        .filter(|detail| !judgement.because.contains(detail))
        .collect()
}

/// Prints the verdict with the strongest of the signals that decided, but those that other rows
/// have told.
pub(super) fn cause(judgement: &Judgement, shown: &[SignalId], page: &mut Page) {
    page.line(&sentence(judgement), tone(judgement));
    let mut evidence = evidence(judgement, shown);
    evidence.truncate(EVIDENCE_MOST);
    while evidence.len() > 1 && page.lines_of(&evidence) > EVIDENCE_MOST {
        evidence.pop();
    }
    page.items(2, &evidence, Tone::Plain);
}

/// Prints the verdict with all that decided and all advice.
pub(super) fn rows(judgement: &Judgement, page: &mut Page) {
    page.row("verdict", &[sentence(judgement)], tone(judgement));
    let evidence = evidence(judgement, &[]);
    page.row("", &evidence, Tone::Plain);
    for (index, advice) in judgement.advice.iter().enumerate() {
        let label = if index == 0 { "next" } else { "" };
        page.row(label, std::slice::from_ref(advice), Tone::Plain);
    }
}

/// A row for each signal, the worst first.
pub(super) fn signals(judgement: &Judgement, page: &mut Page) {
    for grade in [Grade::Fail, Grade::Warn, Grade::Healthy, Grade::Unknown] {
        let signals = judgement.signals.iter();
        for found in signals.filter(|signal| signal.grade == grade) {
            signal(found, page);
        }
    }
}

/// The line of one signal.
fn signal(signal: &Signal, page: &mut Page) {
    let (word, tone) = match signal.grade {
        Grade::Fail => ("FAIL", Tone::Bad),
        Grade::Warn => ("warn", Tone::Warning),
        Grade::Healthy => ("healthy", Tone::Plain),
        Grade::Unknown => ("unknown", Tone::Plain),
    };
    let line = format!("{}: {}", signal.id, signal.detail);
    page.row(&format!("  {word}"), &[line], tone);
}

/// The rows of a server that failed in the window; on a full page each outage too.
pub(super) fn outages(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    let Some(failure) = judged.server_failure() else {
        return;
    };
    for (label, found) in [("before", &failure.before), ("after", &failure.after)] {
        if let Some(found) = found {
            page.row(label, &stretch(run.unit(), found), Tone::Plain);
        }
    }
    if page.is_full() {
        let is_silence = failure.is_silence;
        let label = if is_silence { "  silence" } else { "  outage" };
        for found in &failure.outages {
            page.row(label, &outage(*found, run.window_ns), Tone::Plain);
        }
    }
}

/// Rate and response times of a part of the window.
fn stretch(unit: Unit, found: &Stretch) -> Vec<String> {
    let (rate, length) = (
        units::rate(found.successes_per_s),
        units::duration(found.length_ns),
    );
    let mut items = vec![format!("{rate} {} over {length}", unit.per_s)];
    let (p50, p99) = (found.response_ns_p50, found.response_ns_p99);
    for (name, quantile) in [("p50", p50), ("p99", p99)] {
        items.extend(quantile.map(|ns| format!("{name} {}", units::duration(ns))));
    }
    items
}

fn outage(found: Outage, window_ns: u64) -> Vec<String> {
    let until_ns = found.until_ns.unwrap_or(window_ns);
    let length = units::duration(until_ns.saturating_sub(found.from_ns));
    let end = match found.until_ns {
        Some(ns) => format!("to {}", units::duration(ns)),
        None => "to the end".to_owned(),
    };
    let from = units::duration(found.from_ns);
    vec![format!("from {from} of the window {end}"), length]
}

/// A row for each objective.
pub(super) fn objectives(judged: &Judged<'_>, page: &mut Page) {
    for (index, outcome) in judged.objectives().iter().enumerate() {
        let label = if index == 0 { "objectives" } else { "" };
        let tone = Tone::Bad.when(!outcome.is_met);
        page.row(label, &[objective::line(outcome)], tone);
    }
}

/// The first line of a run whose figures are refused.
pub(super) fn refusal(judged: &Judged<'_>, page: &mut Page) {
    let broken = ids(judged, InvariantStatus::Broken);
    if !broken.is_empty() {
        let (count, all, broken) = (broken.len(), judged.findings.len(), broken.join(", "));
        let line =
            format!("INVALID: the figures below break {count} of {all} invariants ({broken})");
        page.line(&line, Tone::Refusal);
        page.blank();
    }
}

/// The headline of a run whose figures are refused; none where they are not.
pub(super) fn withheld(label: &str, judged: &Judged<'_>, page: &mut Page) -> bool {
    let broken = ids(judged, InvariantStatus::Broken);
    if !broken.is_empty() {
        let reason = format!("withheld: {} broken, see below", broken.join(", "));
        page.row(label, &[reason], Tone::Refusal);
    }
    !broken.is_empty()
}

/// The invariant that an overload flags.
pub(super) const OVERLOADED: &str = "L6";
/// The invariant that missing connections flag.
pub(super) const CONNECTIONS_MISSING: &str = "L1";

/// The first line of a run in which nothing succeeded: that, why, and what to do.
pub(super) fn no_success(judgement: &Judgement, page: &mut Page) {
    if judgement.verdict != Verdict::NoSuccess {
        return;
    }
    let mut line = sentence(judgement);
    if let Some(advice) = judgement.advice.first() {
        line.push_str("; next: ");
        line.push_str(advice);
    }
    page.line(&line, Tone::Refusal);
    page.blank();
}

/// What was checked; `shown` are those of which all that they would say stands above.
pub(super) fn checks(judged: &Judged<'_>, shown: &[&str], page: &mut Page) {
    let is_full = page.is_full();
    let count = |status| judged.with_status(status).count() as u64;
    let (held, broken) = (count(InvariantStatus::Held), count(InvariantStatus::Broken));
    let beside = count(InvariantStatus::NotApplicable);
    let is_shown = |finding: &Finding| !is_full && shown.contains(&finding.id);
    let flagged = judged
        .with_status(InvariantStatus::Flagged)
        .filter(|finding| !is_shown(finding));
    let flagged = flagged.count() as u64;
    let mut items = Vec::new();
    let mut tone = Tone::Plain;
    if broken > 0 {
        items.push(format!("{} BROKEN", units::count(broken)));
        tone = Tone::Refusal;
    }
    items.push(units::counted(held, "invariant holds", "invariants hold"));
    if flagged > 0 {
        items.push(format!("{} flagged", units::count(flagged)));
    }
    if is_full && beside > 0 {
        items.push(units::counted(beside, "does not apply", "do not apply"));
    }
    if !is_full && flagged + broken == 0 {
        return;
    }
    page.row("checks", &items, tone);
    for status in [
        InvariantStatus::Broken,
        InvariantStatus::Flagged,
        InvariantStatus::Held,
        InvariantStatus::NotApplicable,
    ] {
        for finding in judged.with_status(status) {
            let is_notable = matches!(status, InvariantStatus::Broken | InvariantStatus::Flagged);
            if is_full || (is_notable && !is_shown(finding)) {
                check(finding, page);
            }
        }
    }
}

/// The line of one invariant.
fn check(finding: &Finding, page: &mut Page) {
    let (word, tone) = match finding.status {
        InvariantStatus::Held => ("holds", Tone::Plain),
        InvariantStatus::Flagged => ("flagged", Tone::Warning),
        InvariantStatus::Broken => ("BROKEN", Tone::Bad),
        InvariantStatus::NotApplicable => ("does not apply", Tone::Plain),
    };
    let line = match finding.detail.as_str() {
        "" => word.to_owned(),
        detail => format!("{word}: {detail}"),
    };
    page.row(&format!("  {}", finding.id), &[line], tone);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_has_its_ends_and_its_length() {
        const MS: u64 = 1_000_000;
        for (from_ms, until_ms, words) in [
            (
                0,
                Some(250),
                ["from 0 ns of the window to 250 ms", "250 ms"],
            ),
            (
                3_000,
                None,
                ["from 3.00 s of the window to the end", "1.00 s"],
            ),
            // A stored run may say what cannot be.
            (
                9_000,
                None,
                ["from 9.00 s of the window to the end", "0 ns"],
            ),
        ] {
            let found = Outage {
                from_ns: from_ms * MS,
                until_ns: until_ms.map(|ms: u64| ms * MS),
            };
            assert_eq!(outage(found, 4_000 * MS), words);
        }
    }
}
