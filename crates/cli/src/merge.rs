//! `brunt merge FILE FILE...`: one run from the stored runs of several agents.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use brunt_judge::Judged;
use brunt_record::{MergeError, Run};

use crate::commands::MergeArguments;
use crate::objectives;
use crate::output::{Destination, is_standard};
use crate::redact::redact;
use crate::stored;

/// Merges, and prints the report.
pub(crate) fn run(arguments: &MergeArguments) -> Result<ExitCode> {
    let files = &arguments.files;
    if files.iter().filter(|file| is_standard(file)).count() > 1 {
        bail!("standard input can be read once only: give - once");
    }
    // Everything is read and merged before an output file is touched, which may be one of them.
    let runs: Vec<Run> = files
        .iter()
        .map(|file| stored::read(file))
        .collect::<Result<_>>()?;
    let mut merged = Run::merge(runs).map_err(|error| {
        // What differs may be the query of a URL.
        let with_values = !arguments.output.redact;
        refusal(&error, files, with_values)
    })?;
    if arguments.output.redact {
        redact(&mut merged);
    }
    if let Some(objectives) = objectives::asked(&arguments.output.objective) {
        merged.objectives = objectives;
    }
    Destination::open(&arguments.output)?.write(&Judged::of(&merged))
}

/// Why the runs in `files` cannot be merged.
fn refusal(error: &MergeError, files: &[PathBuf], with_values: bool) -> anyhow::Error {
    let name = |run: &usize| match files.get(*run) {
        Some(file) => shown(file),
        None => format!("run {run}"),
    };
    match error {
        MergeError::SameAgent { first, second } if name(first) == name(second) => anyhow!(
            "cannot merge: {} is given twice, and would be counted twice; give each run once",
            name(first)
        ),
        MergeError::SameAgent { first, second } => anyhow!(
            "cannot merge: {} and {} hold the same run, which would be counted twice; give each \
             run once",
            name(first),
            name(second)
        ),
        MergeError::SameWorker {
            worker,
            first,
            second,
        } => anyhow!(
            "cannot merge: {} and {} are the same part of a plan, or overlap (both have its worker \
             {worker}); give each part once",
            name(first),
            name(second)
        ),
        MergeError::Differs {
            field,
            first,
            second,
            ..
        } if !with_values => anyhow!(
            "cannot merge: {field} is not the same in {} and {}",
            name(first),
            name(second)
        ),
        MergeError::Differs {
            field,
            first,
            first_value,
            second,
            second_value,
        } => anyhow!(
            "cannot merge: {field} is {first_value} in {} and {second_value} in {}; only runs that \
             differ in nothing but connections, workers, requests and rates are one",
            name(first),
            name(second)
        ),
        MergeError::Unsound { run, reason } => {
            anyhow!("cannot merge: {} is not a sound run ({reason})", name(run))
        }
        error => anyhow!("cannot merge: {error}"),
    }
}

/// The name of a file in messages.
pub(crate) fn shown(file: &Path) -> String {
    match is_standard(file) {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    }
}
