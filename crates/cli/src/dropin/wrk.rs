//! brunt in place of wrk and wrk2.

use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::wrk::{self, Asked, Options, Program, Scripted};
use brunt_dropin::{Ending, verdict_line};
use brunt_engine::{Phase, PrepareError, Progress};
use brunt_judge::Judged;

use super::{EXIT_FAILED, cpus, destination, explain, measure_until, print};
use crate::last_calls::{CallError, LastCalls};
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, message};

/// Runs the command line `words` of the program that was called as `name`.
pub(super) fn run(program: Program, name: &str, words: &[String]) -> Result<ExitCode> {
    match Asked::parse(program, name, words)? {
        Asked::Explain(options) => Ok(explain(&wrk::explanation(&options, cpus())?)),
        Asked::Run(options) => load(&options),
    }
}

fn load(options: &Options) -> Result<ExitCode> {
    let mut plan = wrk::plan(options)?;
    let script = Scripted::load(options, &mut plan)?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    let mut script = script.map(|script| LastCalls::new(script, &interrupts));
    let generators = script.as_mut().map(LastCalls::generators).transpose();
    let generators = generators.map_err(Ending::from)?.unwrap_or_default();
    let destination = destination(options.brunt_report.as_deref())?;
    let observer = &mut |_: Phase, _: &Progress| {};
    let heading = wrk::heading(options);
    let run = match measure_until(&interrupts, plan, generators, &heading, observer) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            let unprepared = error.downcast_ref::<PrepareError>();
            let ending = unprepared.and_then(|error| wrk::preparation_ending(options, error));
            return Err(ending.map_or(error, anyhow::Error::from));
        }
    };
    print(&wrk::report(options, &run));
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    let failed = wrk::script_error(&run);
    if let Some(reason) = &failed {
        message::print_of_script(reason);
    }
    if let Some(script) = &mut script {
        let torn_down = script.tear_down();
        let done = script.done(&run);
        match torn_down.and(done) {
            Ok(()) => {}
            Err(error @ CallError::Signal { .. }) => {
                message::print(&error);
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(match failed {
        Some(_) => ExitCode::from(EXIT_FAILED),
        None => ExitCode::SUCCESS,
    })
}
