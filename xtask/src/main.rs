//! `cargo xtask STEP`: every check of the project, as one program that needs no shell.
#![expect(
    clippy::disallowed_methods,
    reason = "it is no part of a run, and reads the clock"
)]

mod binaries;
mod dist;
mod fuzz;
mod seed;
mod servers;
mod shell;
mod steps;
mod tally;
mod test;
mod tidy;
mod timing;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::workspace::Workspace;

/// The steps of brunt's checks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Step {
    /// Everything below but dist and fuzz, and every test of the workspace; says what took longest.
    Test,
    /// Is the code formatted?
    Fmt,
    /// Lints, warnings refused.
    Clippy,
    /// Import order, homes of messages and unsafe, lines of code, paths in documents, licences.
    Tidy,
    /// Installs the real servers that the tests load, or says what to install.
    Servers,
    /// Builds what is released: archive, .deb, .rpm, wheel and their sums, in target/packages.
    Dist(dist::Options),
    /// Runs each fuzz target, or one, under libFuzzer.
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    match run(&Step::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(step: &Step) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    match step {
        Step::Test => return Ok(test::run(&workspace)),
        Step::Fmt => steps::fmt(&workspace)?,
        Step::Clippy => steps::clippy(&workspace)?,
        Step::Tidy => tidy::run(&workspace)?,
        Step::Servers => servers::run()?,
        Step::Dist(options) => dist::run(&workspace, options)?,
        Step::Fuzz(options) => fuzz::run(&workspace, options)?,
    }
    Ok(ExitCode::SUCCESS)
}
