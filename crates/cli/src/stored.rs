//! Stored runs and experiments: read from a file or from standard input.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use brunt_record::Run;
use brunt_report::{ReadError, Stored};

use crate::output::is_standard;

/// The run in `path`.
pub(crate) fn read(path: &Path) -> Result<Run> {
    read_with(path, brunt_report::read)
}

/// The run or experiment in `path`.
pub(crate) fn read_any(path: &Path) -> Result<Stored> {
    read_with(path, brunt_report::read_stored)
}

fn read_with<T>(path: &Path, read: fn(&mut dyn io::Read) -> Result<T, ReadError>) -> Result<T> {
    if is_standard(path) {
        return read(&mut io::stdin().lock()).context("cannot read standard input");
    }
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read(&mut file).with_context(|| format!("cannot read {}", path.display()))
}
