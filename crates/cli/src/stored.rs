//! Stored runs: read from a file or from standard input.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use brunt_measure::Run;

use crate::output::is_standard;

/// The run in `path`.
pub(crate) fn read(path: &Path) -> Result<Run> {
    if is_standard(path) {
        return brunt_report::read(&mut io::stdin().lock()).context("cannot read standard input");
    }
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    brunt_report::read(&mut file).with_context(|| format!("cannot read {}", path.display()))
}
