//! Splits the program in two: what runs, and the symbols for a debugger.

use std::process::Command;

use anyhow::{Context, Result};

use super::{Release, copy};
use crate::shell;

/// Writes the symbols beside the packages, and strips the program, which then names them.
///
/// # Errors
///
/// A tool of binutils fails.
pub(super) fn split(release: &Release<'_>) -> Result<()> {
    let symbols = format!("{}.debug", release.name());
    let binutil = |name: &str| {
        let mut command = Command::new(release.target.binutil(name));
        command.current_dir(&release.built);
        command
    };
    let sections = shell::output(binutil("objdump").args(["-h", "brunt"]));
    let sections = sections.context("objdump cannot read the program")?;
    // An earlier run has stripped it otherwise, and cargo had nothing to build.
    if !sections.contains(".gnu_debuglink") {
        let mut extract = binutil("objcopy");
        extract.args(["--only-keep-debug", "--compress-debug-sections"]);
        shell::run(extract.args(["brunt", &symbols]))?;
        let mut strip = binutil("objcopy");
        strip.args(["--strip-all", &format!("--add-gnu-debuglink={symbols}")]);
        shell::run(strip.args(["brunt", "brunt.stripped"]))?;
        // Into the same file, which cargo has under a second name: it then finds it built.
        copy(&release.built.join("brunt.stripped"), &release.program())?;
    }
    copy(
        &release.built.join(&symbols),
        &release.packages.join(&symbols),
    )
}
