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

use anyhow::{Result, bail};

use crate::workspace::Workspace;

const USAGE: &str = "\
Usage: cargo xtask STEP

Steps:
  test                            everything below but dist and fuzz, and every test of the
                                  workspace; says what took longest
  fmt                             is the code formatted?
  clippy                          lints, warnings refused
  tidy                            import order, homes of messages and unsafe, file length, doc
                                  comments, leftovers, columns; and licences
  licences                        are the licences of all dependencies permissive?
  servers                         installs the real servers that the tests load, or says what to
                                  install
  dist [--target TRIPLE] [--glibc-max VERSION] [--program FILE]
                                  builds what is released: archive, .deb, .rpm, wheel and their
                                  sums, in target/packages; the program may need this glibc at
                                  most; FILE is packaged in place of a built program
  fuzz [TARGET] [--seconds N]     each fuzz target (or one) under libFuzzer for N seconds (60)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let Some((step, rest)) = arguments.split_first() else {
        bail!("no step given\n\n{USAGE}");
    };
    let takes_arguments = matches!(step.as_str(), "dist" | "fuzz");
    if !takes_arguments && let Some(extra) = rest.first() {
        bail!("`{step}` takes no argument, but got `{extra}`\n\n{USAGE}");
    }
    let workspace = Workspace::find()?;
    match step.as_str() {
        "test" => return Ok(test::run(&workspace)),
        "fmt" => steps::fmt(&workspace)?,
        "clippy" => steps::clippy(&workspace)?,
        "tidy" => tidy::run(&workspace)?,
        "licences" => tidy::licences(&workspace)?,
        "servers" => servers::run()?,
        "dist" => dist::run(&workspace, &dist::Options::parse(rest)?)?,
        "fuzz" => fuzz::run(&workspace, &fuzz::Options::parse(rest)?)?,
        "-h" | "--help" | "help" => print!("{USAGE}"),
        other => bail!("no step is called `{other}`\n\n{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}
