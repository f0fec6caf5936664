//! `brunt report FILE`: any report from a stored run.

use std::fs::File;
use std::io;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_measure::Run;

use crate::args::ReportArguments;
use crate::exit_code;
use crate::output::{Destination, is_standard};
use crate::redact::redact;

/// Prints the report.
pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode> {
    let mut run = stored(arguments)?;
    if arguments.output.redact {
        redact(&mut run);
    }
    // Judged anew: what is stored is evidence, not a verdict.
    run.findings = brunt_measure::check(&run);
    Destination::open(&arguments.output)?.write(&run)?;
    Ok(exit_code(&run))
}

/// The stored run, from its file or standard input.
fn stored(arguments: &ReportArguments) -> Result<Run> {
    let path = &arguments.file;
    if is_standard(path) {
        return brunt_report::read(&mut io::stdin().lock()).context("cannot read standard input");
    }
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    brunt_report::read(&mut file).with_context(|| format!("cannot read {}", path.display()))
}
