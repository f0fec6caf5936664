//! Whether the run reached what it was asked to.

use brunt_judge::Judged;

use crate::objective;
use crate::page::{Page, Tone};

/// A row for each objective.
pub(super) fn rows(judged: &Judged<'_>, page: &mut Page) {
    for (index, outcome) in judged.objectives().iter().enumerate() {
        let label = if index == 0 { "objectives" } else { "" };
        let tone = if outcome.is_met {
            Tone::Plain
        } else {
            Tone::Bad
        };
        page.row(label, &[objective::line(outcome)], tone);
    }
}
