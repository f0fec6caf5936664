//! `brunt report FILE`: any report from a stored run or experiment.

use std::process::ExitCode;

use anyhow::{Result, bail};
use brunt_judge::Judged;
use brunt_record::Run;
use brunt_report::{Experiment, Stored};

use crate::args::{OutputArguments, ReportArguments};
use crate::objectives;
use crate::output::Destination;
use crate::redact::redact;
use crate::stored;

/// Prints the report.
pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode> {
    match stored::read_any(&arguments.file)? {
        Stored::Run(run) => of_run(*run, &arguments.output),
        Stored::Experiment(experiment) => of_experiment(*experiment, &arguments.output),
    }
}

fn of_run(mut run: Run, output: &OutputArguments) -> Result<ExitCode> {
    if output.redact {
        redact(&mut run);
    }
    if let Some(objectives) = objectives::asked(&output.objective) {
        run.objectives = objectives;
    }
    Destination::of_stored_runs(output)?.write(&Judged::of(&run))
}

fn of_experiment(experiment: Experiment, output: &OutputArguments) -> Result<ExitCode> {
    if !output.objective.is_empty() {
        bail!(
            "--objective is about a single run, and a {} is stored here",
            experiment.name()
        );
    }
    Destination::of_experiment(output)?.write_experiment(&experiment)?;
    Ok(ExitCode::SUCCESS)
}
