//! The step `fuzz`: the fuzz targets under libFuzzer, one after the other.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// One target; all of them without it.
    target: Option<String>,
    /// How long each target runs, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// Runs the targets and stops at the first finding, which libFuzzer has then printed and stored.
///
/// # Errors
///
/// A finding, an unknown target, or no nightly compiler with cargo-fuzz.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let targets = targets(workspace)?;
    let chosen: Vec<&String> = match &options.target {
        None => targets.iter().collect(),
        Some(name) if targets.contains(name) => vec![name],
        Some(name) => bail!(
            "no fuzz target is called `{name}`; there are: {}",
            targets.join(", ")
        ),
    };
    for target in chosen {
        // `cargo +nightly` works only through rustup's own `cargo`, which is not the one that
        // started this program.
        let mut command = Command::new("rustup");
        command
            .current_dir(workspace.root())
            .args(["run", "nightly", "cargo", "fuzz", "run"])
            .args(["--fuzz-dir", "fuzz/libfuzzer", "target"])
            .env("BRUNT_FUZZ_TARGET", target);
        // The first directory takes what libFuzzer finds; the committed inputs are only read.
        let found = format!("fuzz/libfuzzer/target/corpus/{target}");
        std::fs::create_dir_all(workspace.root().join(&found))
            .with_context(|| format!("cannot create {found}"))?;
        command.args([found, format!("fuzz/corpus/{target}")]);
        command.args(["--", &format!("-max_total_time={}", options.seconds)]);
        shell::run(&mut command).context(
            "fuzzing takes `rustup toolchain install nightly`, `cargo install cargo-fuzz`",
        )?;
    }
    Ok(())
}

/// Every target has a folder of committed inputs; the tests of brunt-fuzz check that.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let corpora = std::fs::read_dir(workspace.root().join("fuzz/corpus"));
    let names = corpora.context("cannot read fuzz/corpus")?.map(|folder| {
        let folder = folder.context("cannot read fuzz/corpus")?;
        Ok(folder.file_name().to_string_lossy().into_owned())
    });
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
