//! What the commands of brunt exit with.

use std::process::ExitCode;

use brunt_judge::{ComparisonOutcome, EndedEarly, Judged, Sweep, Verdict};
use brunt_report::Experiment;

/// An objective was missed, no request succeeded, or the server failed.
const MISSED: u8 = 1;
/// Wrong usage, set-up failed before anything was measured, or a report could not be written.
pub(crate) const SETUP: u8 = 2;
/// The result is not trustworthy: an invariant is broken.
pub(crate) const INVALID: u8 = 3;
/// A comparison says nothing of a server: neither that it differs nor that it does not.
const UNDECIDED: u8 = 4;
/// Interrupted by a signal; what was measured is reported all the same.
pub(crate) const INTERRUPTED: u8 = 130;

/// What a run that was reported in full exits with, unless a signal cut it short.
pub(crate) fn of_run(judged: &Judged<'_>) -> ExitCode {
    if !judged.is_valid() {
        ExitCode::from(INVALID)
    } else if matches!(
        judged.judgement.verdict,
        Verdict::NoSuccess | Verdict::ServerFailed
    ) || judged.objectives().iter().any(|outcome| !outcome.is_met)
    {
        ExitCode::from(MISSED)
    } else {
        ExitCode::SUCCESS
    }
}

/// This code, or that of an interrupt where a signal cut the run short.
pub(crate) fn unless_interrupted(code: ExitCode, was_interrupted: bool) -> ExitCode {
    if was_interrupted {
        ExitCode::from(INTERRUPTED)
    } else {
        code
    }
}

/// What an experiment exits with, as it is made and from its file.
pub(crate) fn of_experiment(experiment: &Experiment) -> ExitCode {
    let is_every_round = |sweep: &Sweep, verdict| {
        let mut rounds = sweep.rounds.iter();
        rounds.all(|round| round.record.verdict == verdict)
    };
    match experiment {
        // A sweep of which no round is worth anything has failed.
        Experiment::Sweep(sweep) if is_every_round(sweep, Verdict::Invalid) => INVALID.into(),
        Experiment::Sweep(sweep) if is_every_round(sweep, Verdict::NoSuccess) => MISSED.into(),
        Experiment::Capacity(search) if !search.result().has_passed() => MISSED.into(),
        Experiment::Comparison(rounds) if rounds.ended_early == Some(EndedEarly::Interrupted) => {
            INTERRUPTED.into()
        }
        Experiment::Comparison(rounds) => match rounds.outcome() {
            ComparisonOutcome::Passed => ExitCode::SUCCESS,
            ComparisonOutcome::Failed => MISSED.into(),
            ComparisonOutcome::Undecided => UNDECIDED.into(),
        },
        Experiment::Sweep(_) | Experiment::Capacity(_) => ExitCode::SUCCESS,
    }
}
