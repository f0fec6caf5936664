//! The rows of the invariants.

use brunt_judge::{Finding, InvariantStatus, Judged};

use crate::figures::ids;
use crate::page::{Page, Tone};
use crate::units;

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

/// What was checked; `told` are those of which all that they would say stands above.
pub(super) fn checks(judged: &Judged<'_>, told: &[&str], page: &mut Page) {
    let is_full = page.is_full();
    let count = |status| judged.with_status(status).count() as u64;
    let (held, broken) = (count(InvariantStatus::Held), count(InvariantStatus::Broken));
    let beside = count(InvariantStatus::NotApplicable);
    let is_told = |finding: &Finding| !is_full && told.contains(&finding.id);
    let flagged = judged
        .with_status(InvariantStatus::Flagged)
        .filter(|finding| !is_told(finding));
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
            if is_full || (is_notable && !is_told(finding)) {
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
