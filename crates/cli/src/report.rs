//! `brunt report FILE`: any report from a stored run.

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::EXIT_INVALID;
use crate::args::ReportArguments;
use crate::output::Destination;

/// Prints the report.
pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode> {
    let path = &arguments.file;
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut run =
        brunt_report::read(&mut file).with_context(|| format!("cannot read {}", path.display()))?;
    // Judged anew: what is stored is evidence, not a verdict.
    run.findings = brunt_measure::check(&run);
    Destination::open(&arguments.output)?.write(&run)?;
    let valid = brunt_measure::is_valid(&run.findings);
    Ok(if valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_INVALID)
    })
}
