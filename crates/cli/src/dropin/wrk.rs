//! brunt in place of wrk and wrk2.

use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::wrk::{self, Asked, Options, Program, Scripted};
use brunt_dropin::{Ending, verdict_line};
use brunt_engine::{Phase, PrepareError, Progress};
use brunt_measure::Judged;

use super::{EXIT_FAILED, destination, measure, print};
use crate::message;

/// Runs the command line `words` of the program that was called as `name`.
pub(super) fn run(program: Program, name: &str, words: &[String]) -> Result<ExitCode> {
    match Asked::parse(program, name, words)? {
        Asked::Explain(options) => {
            print(&wrk::explanation(&options))?;
            Ok(ExitCode::SUCCESS)
        }
        Asked::Run(options) => load(&options),
    }
}

fn load(options: &Options) -> Result<ExitCode> {
    let mut plan = wrk::plan(options)?;
    let mut script = Scripted::load(options, &mut plan)?;
    let generators = script.as_mut().map(Scripted::generators).transpose();
    let generators = generators.map_err(Ending::from)?.unwrap_or_default();
    let destination = destination(options.brunt_report.as_deref())?;
    let observer = &mut |_: Phase, _: &Progress| {};
    let heading = wrk::heading(options);
    let run = match measure(plan, generators, &heading, observer) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            let unprepared = error.downcast_ref::<PrepareError>();
            let ending = unprepared.and_then(|error| wrk::preparation_ending(options, error));
            return Err(ending.map_or(error, anyhow::Error::from));
        }
    };
    print(&wrk::report(options, &run))?;
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
        torn_down.and(done)?;
    }
    Ok(match failed {
        Some(_) => ExitCode::from(EXIT_FAILED),
        None => ExitCode::SUCCESS,
    })
}
