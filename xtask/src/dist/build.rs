//! Builds the program that is released, so that two builds in two folders give the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::target::Target;
use crate::shell;
use crate::workspace::Workspace;

/// Where sources seem to lie, in messages of panics and in symbols.
const SOURCES: &str = "/usr/src/brunt";
/// Where the sources of other crates seem to lie.
const REGISTRY: &str = "/usr/src/registry";

/// Builds the program with profile `dist` and gives its path, in `target_directory`.
///
/// # Errors
///
/// A tool of Rust is missing, or the build fails.
pub(super) fn build(
    workspace: &Workspace,
    target_directory: &Path,
    target: &Target,
    epoch_s: u64,
) -> Result<PathBuf> {
    let remapped = remapped(workspace)?;
    let rust_flags = remapped
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    // GCC does not tell its assembler, which LuaJIT's own code goes to.
    let c_flags = remapped.iter().map(|(from, to)| {
        format!("-ffile-prefix-map={from}={to} -Wa,--debug-prefix-map={from}={to}")
    });
    let mut command = shell::cargo();
    command
        .current_dir(workspace.root())
        .args(["build", "--locked", "--package", "brunt"])
        .args(["--profile", "dist", "--target", target.triple])
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            rust_flags.collect::<Vec<_>>().join("\x1f"),
        )
        .env("TARGET_CFLAGS", c_flags.collect::<Vec<_>>().join(" "))
        .env("SOURCE_DATE_EPOCH", epoch_s.to_string())
        .env("CARGO_INCREMENTAL", "0")
        .envs(target.variables());
    shell::run(&mut command)?;
    Ok(target_directory.join(target.triple).join("dist/brunt"))
}

/// Folders of this machine, and what stands for them in the program.
fn remapped(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let registry = home.context("there is no home directory")?;
    let registry = registry.join("registry/src");
    let sysroot = rustc(&["--print", "sysroot"])?;
    let version = rustc(&["--version", "--verbose"])?;
    let commit = version
        .lines()
        .find_map(|line| line.strip_prefix("commit-hash: "))
        .context("`rustc --version --verbose` names no commit")?;
    Ok(vec![
        (workspace.root().display().to_string(), SOURCES.to_owned()),
        (registry.display().to_string(), REGISTRY.to_owned()),
        // Where the standard library's sources are installed, its paths are this machine's.
        (
            format!("{}/lib/rustlib/src/rust", sysroot.trim()),
            format!("/rustc/{commit}"),
        ),
    ])
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    shell::output(Command::new(rustc).args(arguments)).context("`rustc` does not run")
}
