//! `--diagnose`: the experiment on a run that was just made.

use anyhow::Result;
use brunt_engine::RunError;
use brunt_experiment::{Diagnose, DiagnoseError};
use brunt_load::Plan;
use brunt_record::{Diagnosis, Run};

use crate::output_args::OutputArguments;
use crate::progress::Line;
use crate::session::{SessionOptions, is_interrupt};
use crate::signals::Interrupts;

/// Makes the experiment on `plan`, whose run was `run`, and adds to that its outcome, or why
/// nothing did: that is no failure of the run. Gives whether a signal cut the experiment short.
pub(crate) fn diagnose(
    run: &mut Run,
    plan: Plan,
    own_server: bool,
    output: &OutputArguments,
    interrupts: &Interrupts,
) -> bool {
    let error = match measure(run, plan, own_server, output, interrupts) {
        Ok(diagnosis) => {
            run.diagnosis = Some(diagnosis);
            return false;
        }
        Err(error) => error,
    };
    let was_interrupted = is_interrupt(&error)
        || matches!(
            error.downcast_ref(),
            Some(DiagnoseError::Round(RunError::Interrupted))
        );
    let reason = if was_interrupted {
        "the experiment was interrupted".to_owned()
    } else {
        format!("{error:#}")
    };
    for agent in &mut run.agents {
        let missing = &mut agent.evidence.missing;
        missing.insert("diagnosis".to_owned(), reason.clone());
    }
    was_interrupted
}

fn measure(
    run: &Run,
    plan: Plan,
    own_server: bool,
    output: &OutputArguments,
    interrupts: &Interrupts,
) -> Result<Diagnosis> {
    let diagnose = Diagnose::of(run, plan)?;
    let plan = diagnose.plan().clone();
    let mut line = Line::of_diagnosis(output, &plan, diagnose.length_ns());
    let options = SessionOptions {
        own_server,
        ..SessionOptions::default()
    };
    let diagnosis = interrupts.in_session(plan, options, |session| {
        Ok(diagnose.measure(session, &mut line)?)
    });
    line.clear();
    diagnosis
}
