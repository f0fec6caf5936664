//! The `brunt` binary: arguments in, exit code out.

mod args;
mod calibrate;
mod calibration_store;
mod diagnose;
mod load;
mod output;
mod plan;
mod progress;
mod protocol;
mod report;
mod serve;
mod signals;
mod values;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

/// Wrong usage, or set-up failed before anything was measured.
const EXIT_SETUP: u8 = 2;
/// The result is not trustworthy: an invariant is broken.
const EXIT_INVALID: u8 = 3;
/// Interrupted by a signal; what was measured is reported all the same.
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    // The first reading is the origin of the run's clock.
    brunt_engine::clock::now_ns();
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Some(Command::Serve(serve)) => serve::run(&serve),
        Some(Command::Calibrate(calibrate)) => calibrate::run(&calibrate),
        Some(Command::Report(report)) => report::run(&report),
        None => load::run(&arguments.load),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("brunt: {error:#}");
        ExitCode::from(EXIT_SETUP)
    })
}
