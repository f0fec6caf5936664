//! Stored runs and experiments: `brunt report FILE`, and `brunt merge FILE FILE...`, one run from
//! those of several agents.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_judge::Judged;
use brunt_record::{MergeError, Run};
use brunt_report::{Experiment, ReadError, Stored};

use crate::args::OutputArguments;
use crate::commands::{MergeArguments, ReportArguments};
use crate::output::{Destination, NOT_OF_COMPARISON, NOT_OF_RUN, NOT_OF_SWEEP, is_standard};
use crate::redact::redact;
use crate::refusals::{self, Given};
use crate::{exit, objectives};

/// Prints the report of a stored run or experiment.
pub(crate) fn report(arguments: &ReportArguments, given: &Given) -> Result<ExitCode> {
    let output = &arguments.output;
    let experiment = match read_with(&arguments.file, brunt_report::read_stored)? {
        Stored::Run(run) => return of_run(*run, output),
        Stored::Experiment(experiment) => *experiment,
    };
    if !output.objective.is_empty() {
        bail!(
            "--objective is about a single run, and a {} is stored here",
            experiment.name()
        );
    }
    given.refuse(&[refusals::EXPERIMENT])?;
    let refused = match experiment {
        Experiment::Capacity(_) => NOT_OF_RUN,
        Experiment::Sweep(_) => NOT_OF_SWEEP,
        Experiment::Comparison(_) => NOT_OF_COMPARISON,
    };
    Destination::open(output, refused)?.write_experiment(&experiment)?;
    Ok(exit::of_experiment(&experiment))
}

/// Prints the report of a run, which is asked to reach what was typed, if anything was.
fn of_run(mut run: Run, output: &OutputArguments) -> Result<ExitCode> {
    if output.redact {
        redact(&mut run);
    }
    if let Some(objectives) = objectives::asked(&output.objective) {
        run.objectives = objectives;
    }
    Destination::open(output, NOT_OF_RUN)?.write(&Judged::of(&run))
}

/// Refuses files of which several are standard input.
pub(crate) fn refuse_standard_twice(files: &[impl AsRef<Path>]) -> Result<()> {
    let standard = files.iter().filter(|file| is_standard(file.as_ref()));
    if standard.count() > 1 {
        bail!("standard input can be read once only: give - once");
    }
    Ok(())
}

/// Merges the stored runs of several agents, and prints the report.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode> {
    let files = &arguments.files;
    refuse_standard_twice(files)?;
    // Everything is read and merged before an output file is touched, which may be one of them.
    let runs = files.iter().map(|file| read(file));
    let merged = Run::merge(runs.collect::<Result<_>>()?);
    // What differs may be the query of a URL.
    let with_values = !arguments.output.redact;
    let merged = merged.map_err(|error| refusal(&error, files, with_values))?;
    of_run(merged, &arguments.output)
}

/// Why the runs in `files` cannot be merged.
fn refusal(error: &MergeError, files: &[PathBuf], with_values: bool) -> anyhow::Error {
    let name = |run: usize| {
        files
            .get(run)
            .map_or_else(|| run.to_string(), |file| shown(file))
    };
    match error {
        MergeError::SameAgent { first, second } => {
            let (first, second) = (name(*first), name(*second));
            anyhow!("cannot merge: {first} and {second} hold the same run; give each run once")
        }
        MergeError::SameWorker {
            first,
            second,
            worker,
        } => anyhow!(
            "cannot merge: {} and {} overlap (both have worker {worker} of a plan); give each part \
             once",
            name(*first),
            name(*second)
        ),
        MergeError::Differs {
            field,
            first,
            first_value,
            second,
            second_value,
        } => {
            let values = format!(" ({first_value} and {second_value})");
            let values = if with_values { &*values } else { "" };
            anyhow!(
                "cannot merge: {field} is not the same in {} and {}{values}; only runs that differ \
                 in nothing but connections, workers, requests and rates are one",
                name(*first),
                name(*second)
            )
        }
        MergeError::Unsound { run, reason } => {
            anyhow!("cannot merge: {} is not a sound run ({reason})", name(*run))
        }
        error => anyhow!("cannot merge: {error}"),
    }
}

/// The name of a file in messages.
pub(crate) fn shown(file: &Path) -> String {
    if is_standard(file) {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// The run in `path`.
pub(crate) fn read(path: &Path) -> Result<Run> {
    read_with(path, brunt_report::read)
}

fn read_with<T>(path: &Path, read: fn(&mut dyn io::Read) -> Result<T, ReadError>) -> Result<T> {
    if is_standard(path) {
        return read(&mut io::stdin().lock()).context("cannot read standard input");
    }
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read(&mut file).with_context(|| format!("cannot read {}", path.display()))
}
