//! `SHA256SUMS`: what a download is compared with.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Release, write as write_text};
use crate::shell;

pub(super) const NAME: &str = "SHA256SUMS";

/// Writes the sums of all packages, and gives them.
///
/// # Errors
///
/// `sha256sum` fails.
pub(super) fn write(release: &Release<'_>) -> Result<String> {
    let folder = &release.directory;
    let read = || format!("cannot read {}", folder.display());
    let files = fs::read_dir(folder).with_context(read)?;
    let names = files.map(|file| Ok(file?.file_name()));
    let names: Result<Vec<OsString>> = names.collect();
    let mut names = names.with_context(read)?;
    names.sort();
    let mut command = Command::new("sha256sum");
    command.current_dir(folder).arg("--").args(&names);
    let sums = shell::output(&mut command).context("`sha256sum` fails")?;
    write_text(&folder.join(NAME), &sums)?;
    Ok(sums)
}
