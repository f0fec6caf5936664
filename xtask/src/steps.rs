//! The steps that only hand over to a tool of the Rust distribution.

use anyhow::Result;

use crate::shell::{self, Priority};
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Refuses code that `cargo fmt` would change, in the workspace and in the libFuzzer package.
pub(crate) fn fmt(workspace: &Workspace) -> Result<()> {
    // The second one is a workspace of its own, because it needs the nightly compiler.
    for packages in ["--all", "--manifest-path=fuzz/libfuzzer/Cargo.toml"] {
        let mut command = shell::cargo();
        command.current_dir(workspace.root());
        shell::run(command.args(["fmt", "--check", packages]))?;
    }
    Ok(())
}

/// Refuses every warning of the compiler and of clippy, in all targets with all features.
pub(crate) fn clippy(workspace: &Workspace) -> Result<()> {
    shell::run(shell::cargo().current_dir(workspace.root()).args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Runs the examples in the documentation.
pub(crate) fn doc_tests(workspace: &Workspace, priority: Priority) -> Result<Tally> {
    let mut command = shell::cargo_with_clippy(priority);
    command.current_dir(workspace.root()).args([
        "test",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
        "--doc",
    ]);
    let printed = shell::run_beside(&mut command)?;
    let mut tally = Tally::default();
    for counts in printed.lines().filter_map(Tally::parse) {
        tally.add(counts);
    }
    Ok(tally)
}
