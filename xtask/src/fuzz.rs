//! The step `fuzz`: the fuzz targets under libFuzzer, one after the other.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::workspace::Workspace;

const SECONDS_DEFAULT: u64 = 60;

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// One target, or all of them.
    target: Option<String>,
    /// How long each target runs.
    seconds: u64,
}

impl Options {
    /// Reads `[TARGET] [--seconds N]`.
    ///
    /// # Errors
    ///
    /// Anything else; the message quotes it.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            target: None,
            seconds: SECONDS_DEFAULT,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--seconds" {
                let value = arguments.next().context("--seconds needs a number")?;
                options.seconds = value
                    .parse()
                    .with_context(|| format!("--seconds takes whole seconds, not `{value}`"))?;
            } else if argument.starts_with('-') {
                bail!("`fuzz` has no option `{argument}`");
            } else if let Some(first) = options.target.replace(argument.clone()) {
                bail!("`fuzz` takes one target, but got `{first}` and `{argument}`");
            }
        }
        Ok(options)
    }
}

/// Runs the targets and stops at the first finding, which libFuzzer has then printed and stored.
///
/// # Errors
///
/// A finding, an unknown target, or a tool that is not installed (with what to type).
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
    check_tools()?;
    for target in chosen {
        let mut command = nightly_cargo();
        command.current_dir(workspace.root()).args([
            "fuzz",
            "run",
            "--fuzz-dir",
            "fuzz/libfuzzer",
            "target",
        ]);
        command.env("BRUNT_FUZZ_TARGET", target);
        // The first directory takes what libFuzzer finds; the committed inputs are only read.
        let found = format!("fuzz/libfuzzer/target/corpus/{target}");
        std::fs::create_dir_all(workspace.root().join(&found))
            .with_context(|| format!("cannot create {found}"))?;
        command.args([found, format!("fuzz/corpus/{target}")]);
        command.args(["--", &format!("-max_total_time={}", options.seconds)]);
        shell::run(&mut command)?;
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

fn check_tools() -> Result<()> {
    if !shell::succeeds(Command::new("rustup").args(["run", "nightly", "cargo", "--version"])) {
        bail!("fuzzing needs the nightly compiler: rustup toolchain install nightly");
    }
    if !shell::succeeds(nightly_cargo().args(["fuzz", "--version"])) {
        bail!("fuzzing needs cargo-fuzz: cargo install cargo-fuzz");
    }
    Ok(())
}

/// Cargo of the nightly toolchain. `cargo +nightly` works only through rustup's own `cargo`, which
/// is not the one that started this program.
fn nightly_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn options_are_read_in_any_order() {
        for (arguments, target, seconds) in [
            (&[][..], None, SECONDS_DEFAULT),
            (&["http1"], Some("http1"), SECONDS_DEFAULT),
            (&["--seconds", "5"], None, 5),
            (&["--seconds", "5", "http1"], Some("http1"), 5),
            (&["http1", "--seconds", "5"], Some("http1"), 5),
        ] {
            let options = parse(arguments).unwrap();
            assert_eq!(options.target.as_deref(), target, "{arguments:?}");
            assert_eq!(options.seconds, seconds, "{arguments:?}");
        }
    }

    #[test]
    fn wrong_options_are_quoted() {
        for (arguments, part) in [
            (&["--seconds"][..], "needs a number"),
            (&["--seconds", "1m"], "`1m`"),
            (&["--jobs"], "`--jobs`"),
            (&["a", "b"], "`a` and `b`"),
        ] {
            let message = format!("{:#}", parse(arguments).unwrap_err());
            assert!(message.contains(part), "{message}");
        }
    }
}
