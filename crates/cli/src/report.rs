//! `brunt report FILE`: any report from a stored run.

use std::process::ExitCode;

use anyhow::Result;
use brunt_measure::Judged;

use crate::args::ReportArguments;
use crate::objectives;
use crate::output::Destination;
use crate::redact::redact;
use crate::stored;

/// Prints the report.
pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode> {
    let mut run = stored::read(&arguments.file)?;
    if arguments.output.redact {
        redact(&mut run);
    }
    if let Some(objectives) = objectives::asked(&arguments.output.objective) {
        run.objectives = objectives;
    }
    Destination::open(&arguments.output)?.write(&Judged::of(&run))
}
