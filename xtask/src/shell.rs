//! Running other programs: each command is printed before it runs, and a failure names it.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

/// Who runs first where programs want the same CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// As every other program.
    Normal,
    /// Only on CPUs that nobody else wants (`SCHED_IDLE`), so that it makes no other program late.
    Idle,
}

/// Puts `program` under a scheduling policy; without `chrt` it runs as every program.
pub(crate) fn with_priority(program: impl AsRef<OsStr>, priority: Priority) -> Command {
    const CHRT: &str = "/usr/bin/chrt";
    if priority == Priority::Normal || !std::path::Path::new(CHRT).exists() {
        return Command::new(program);
    }
    let mut command = Command::new(CHRT);
    command.args(["--idle", "0"]).arg(program);
    command
}

/// The cargo that started this program, so that a step uses the toolchain it was called with.
pub(crate) fn cargo() -> Command {
    cargo_with(Priority::Normal)
}

/// The cargo that started this program, at a priority.
pub(crate) fn cargo_with(priority: Priority) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    with_priority(cargo, priority)
}

/// The cargo that started this program, at a priority, with clippy as the compiler of the
/// workspace. What it builds is kept apart from what rustc builds.
pub(crate) fn cargo_with_clippy(priority: Priority) -> Command {
    let mut command = cargo_with(priority);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    command
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

/// Announces and runs `command` beside others, and prints what it printed when it has ended. Gives
/// its standard output.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn run_beside(command: &mut Command) -> Result<String> {
    announce(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start `{}`", describe(command)))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    check(&describe(command), output.status)?;
    Ok(printed)
}

/// What `command` prints, where it starts and exits with 0.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let succeeded = output.status.success();
    succeeded.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Turns an unsuccessful exit of a command into an error that names it.
pub(crate) fn check(description: &str, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{description}` ended with {status}");
    }
    Ok(())
}
