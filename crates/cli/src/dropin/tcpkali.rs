//! brunt in place of tcpkali.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::tcpkali::{self, Options};
use brunt_dropin::verdict_line;
use brunt_engine::{Phase, Progress, RunObserver};
use brunt_io::cpu::usable_cpus;
use brunt_measure::Judged;

use super::{destination, measure, print};
use crate::message;
use crate::plan::fresh_seed;

/// Runs the command line `words` of tcpkali, which was called `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    if options.explains {
        print(&tcpkali::explanation(&options))?;
        return Ok(ExitCode::SUCCESS);
    }
    let cpus = NonZeroU32::new(usable_cpus()).unwrap_or(NonZeroU32::MIN);
    let plan = options.plan(cpus, fresh_seed(), &mut |path| std::fs::read(path))?;
    let destination = destination(options.brunt_report.as_deref())?;
    let run = match measure(plan, Vec::new(), "", &mut Nobody) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            return Err(error);
        }
    };
    print(&tcpkali::report(&options, &run))?;
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// Nothing is shown while the run goes on.
struct Nobody;

impl RunObserver for Nobody {
    fn progress(&mut self, _phase: Phase, _progress: &Progress) {}
}
