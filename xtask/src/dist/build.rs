//! Builds the program that is released, so that two builds in two folders give the same bytes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use super::target::Target;
use crate::shell;
use crate::workspace::Workspace;

/// Where sources seem to lie, in messages of panics and in symbols.
const SOURCES: &str = "/usr/src/brunt";
/// Where the sources of other crates seem to lie.
const REGISTRY: &str = "/usr/src/registry";

/// Builds the program.
///
/// # Errors
///
/// The build fails.
pub(super) fn build(release: &Release<'_>) -> Result<()> {
    let mut command = shell::cargo();
    command
        .current_dir(release.root)
        .envs(release.environment.iter().cloned())
        .args(["build", "--locked", "--package", "brunt"])
        .args(["--target", release.target.triple])
        .args(["--profile", release.profile]);
    shell::run(&mut command)
}

/// The variables that the build depends on.
///
/// # Errors
///
/// A tool of Rust is missing.
pub(super) fn environment(
    workspace: &Workspace,
    target: &Target,
    epoch_s: u64,
) -> Result<Vec<(String, String)>> {
    let remapped = remapped(workspace)?;
    let rust_flags = remapped
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    // GCC does not tell its assembler, which LuaJIT's own code goes to.
    let c_flags = remapped.iter().map(|(from, to)| {
        format!("-ffile-prefix-map={from}={to} -Wa,--debug-prefix-map={from}={to}")
    });
    let mut variables = target.variables();
    for (name, value) in [
        (
            "CARGO_ENCODED_RUSTFLAGS",
            rust_flags.collect::<Vec<_>>().join("\x1f"),
        ),
        ("TARGET_CFLAGS", c_flags.collect::<Vec<_>>().join(" ")),
        ("SOURCE_DATE_EPOCH", epoch_s.to_string()),
        ("CARGO_INCREMENTAL", "0".to_owned()),
    ] {
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// The time that files and packages bear, seconds since 1970: that of the commit, unless
/// `SOURCE_DATE_EPOCH` says another.
///
/// # Errors
///
/// Neither is known.
pub(super) fn epoch_s(workspace: &Workspace) -> Result<u64> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let mut git = Command::new("git");
    git.current_dir(workspace.root());
    let text = given.or_else(|| shell::output(git.args(["log", "-1", "--format=%ct"])));
    let text = text.context("git does not tell the time of the commit: set SOURCE_DATE_EPOCH")?;
    let seconds = text.trim().parse();
    seconds.with_context(|| format!("SOURCE_DATE_EPOCH is not a number: {text}"))
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
