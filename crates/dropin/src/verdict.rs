//! Brunt's own word on a run that another tool's text reports: one line.

use brunt_measure::Judged;

/// What limited the run and why, or that its figures cannot be trusted: in one line, without an
/// end.
pub fn verdict_line(judged: &Judged<'_>) -> String {
    let judgement = &judged.judgement;
    let name = judgement.verdict.name();
    if judgement.because.is_empty() {
        name.to_owned()
    } else {
        format!("{name}: {}", judgement.because)
    }
}
