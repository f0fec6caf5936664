//! What the experiment of `--diagnose` found, or why there was none.

use brunt_judge::{Judgement, SignalId};
use brunt_record::Run;

use super::layout::{Page, Tone};

/// What is changed in the experiment, by the signals that tell its outcome.
const CHANGES: [(SignalId, &str); 2] = [
    (SignalId::Elasticity, "connections"),
    (SignalId::AddedDelay, "added work"),
];

/// The row of the experiment, where one was asked for.
pub(crate) fn row(run: &Run, judgement: &Judgement, page: &mut Page) {
    if let Some(reason) = run.first().evidence.missing.get("diagnosis") {
        return page.row(
            "experiment",
            &[format!("not made: {reason}")],
            Tone::Warning,
        );
    }
    if run.diagnosis.is_none() {
        return;
    }
    let found = CHANGES.iter().filter_map(|(id, change)| {
        let signal = judgement.signals.iter().find(|signal| signal.id == *id)?;
        Some(match signal.detail.starts_with("the experiment") {
            true => format!("{change}: {}", signal.detail),
            false => signal.detail.clone(),
        })
    });
    page.row("experiment", &found.collect::<Vec<_>>(), Tone::Plain);
}
