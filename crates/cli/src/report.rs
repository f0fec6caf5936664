//! `brunt report FILE`: any report from a stored run or experiment.

use std::process::ExitCode;

use anyhow::{Result, bail};
use brunt_judge::Judged;
use brunt_record::Run;
use brunt_report::{Experiment, Stored};

use crate::args::OutputArguments;
use crate::commands::ReportArguments;
use crate::output::Destination;
use crate::redact::redact;
use crate::refusals::{self, Given};
use crate::{experiment_exit_code, objectives, stored};

/// Prints the report.
pub(crate) fn run(arguments: &ReportArguments, given: &Given) -> Result<ExitCode> {
    match stored::read_any(&arguments.file)? {
        Stored::Run(run) => of_run(*run, &arguments.output),
        Stored::Experiment(experiment) => of_experiment(*experiment, &arguments.output, given),
    }
}

fn of_run(mut run: Run, output: &OutputArguments) -> Result<ExitCode> {
    if output.redact {
        redact(&mut run);
    }
    if let Some(objectives) = objectives::asked(&output.objective) {
        run.objectives = objectives;
    }
    Destination::open(output)?.write(&Judged::of(&run))
}

fn of_experiment(
    experiment: Experiment,
    output: &OutputArguments,
    given: &Given,
) -> Result<ExitCode> {
    if !output.objective.is_empty() {
        bail!(
            "--objective is about a single run, and a {} is stored here",
            experiment.name()
        );
    }
    given.refuse(refusals::EXPERIMENT)?;
    let destination = match experiment {
        Experiment::Capacity(_) => Destination::open(output)?,
        Experiment::Sweep(_) => Destination::of_experiment(output)?,
        Experiment::Comparison(_) => Destination::of_comparison(output)?,
    };
    destination.write_experiment(&experiment)?;
    Ok(experiment_exit_code(&experiment))
}
