//! brunt in place of wrk and wrk2.

use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::Ending;
use brunt_dropin::wrk::{self, Options, Program, Scripted};
use brunt_record::{RequestLog, Run};

use super::{EXIT_FAILED, failed, job, open_outputs, print};
use crate::message;
use crate::run::{FrontEnd, Job};
use crate::script::{self, LastCalls, of_drop_in};

/// Runs the command line `words` of the program that was called as `name`.
pub(super) fn run(program: Program, name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(program, name, words)?;
    load(&options)
}

fn load(options: &Options) -> Result<ExitCode> {
    let mut plan = wrk::plan(options)?;
    let script = Scripted::load(options, &mut plan, of_drop_in)?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let mut script = script.map(|script| LastCalls::new(script, &pipeline.interrupts));
    let generators = script.as_mut().map(LastCalls::generators).transpose();
    let job = Job {
        generators: generators.map_err(Ending::from)?.unwrap_or_default(),
        ..job(plan)
    };
    pipeline.run(job, &mut Wrk { options, script })
}

/// The text of a run, and its script, which is called when that is printed.
struct Wrk<'a> {
    options: &'a Options,
    script: Option<LastCalls>,
}

impl FrontEnd for Wrk<'_> {
    fn begin(&mut self) {
        print(&wrk::heading(self.options));
    }

    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        failed(error, |error| wrk::preparation_ending(self.options, error))
    }

    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        print(&wrk::report(self.options, run));
        Ok(())
    }

    fn exit_code(&mut self, run: &Run, _usual: ExitCode) -> Result<ExitCode> {
        let script_error = wrk::script_error(run);
        let code = match &script_error {
            Some(reason) => {
                message::print_of_script(reason);
                ExitCode::from(EXIT_FAILED)
            }
            None => ExitCode::SUCCESS,
        };
        let Some(script) = &mut self.script else {
            return Ok(code);
        };
        let torn_down = script.tear_down();
        let done = script.done(run);
        script::exit_code(torn_down.and(done), code)
    }
}
