//! Running other programs: each command is printed before it runs, and a failure names it.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

/// The cargo that started this program, so that a step uses the toolchain it was called with.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What a person would type for `command`, for messages.
pub(crate) fn describe(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints `command` in the form in which every step announces what it runs.
pub(crate) fn announce(command: &Command) {
    println!("$ {}", describe(command));
}

/// Announces and runs `command` with the terminal's input and output.
///
/// # Errors
///
/// The program cannot be started, or does not exit with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    announce(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", describe(command)))?;
    check(&describe(command), status)
}

/// Turns an unsuccessful exit of a command into an error that names it.
pub(crate) fn check(description: &str, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{description}` ended with {status}");
    }
    Ok(())
}

/// Whether `command` starts and exits with 0; its output is thrown away.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
