//! Splits a program in two: what runs, and the symbols for a debugger.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Release;
use crate::shell;

/// Writes the symbols of `program` beside the packages, and gives the stripped program, which names
/// them.
///
/// # Errors
///
/// A tool of binutils fails.
pub(super) fn split(release: &Release<'_>, program: &Path) -> Result<PathBuf> {
    let symbols = format!("brunt-{}-{}.debug", release.version, release.target.label());
    let stripped = release.scratch.join("brunt");
    let objcopy = || {
        let mut command = Command::new(release.target.binutil("objcopy"));
        // It looks for the symbols to link in the folder that it runs in.
        command.current_dir(&release.directory);
        command
    };
    let program = std::path::absolute(program)?;
    let mut extract = objcopy();
    extract.args(["--only-keep-debug", "--compress-debug-sections"]);
    extract.arg(&program).arg(&symbols);
    shell::run(&mut extract)?;
    let mut strip = objcopy();
    strip.args(["--strip-all", &format!("--add-gnu-debuglink={symbols}")]);
    shell::run(strip.arg(&program).arg(&stripped))?;
    Ok(stripped)
}
