//! brunt in place of oha.

use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_dropin::Ending;
use brunt_dropin::oha::{self, Body, Figures, Options};
use brunt_record::{RequestLog, Run};

use super::{EXIT_FAILED, cpus, job, open_outputs, print, read_file};
use crate::run::FrontEnd;
use crate::{message, replace};

/// Runs the command line `words` of oha.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    let body = body(&options)?;
    message::print_lines(&options.warning);
    let plan = oha::plan(&options, &body, cpus())?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    pipeline.run(job(plan), &mut Oha { options: &options })
}

/// The body that the options name.
fn body(options: &Options) -> Result<Vec<u8>> {
    let path = match &options.body {
        Body::Typed(text) => return Ok(text.clone().into_bytes()),
        Body::File(path) => path,
    };
    read_file("-D", path, |error| Ending {
        stderr: format!("Error: {error}: {}\n", path.display()),
        code: EXIT_FAILED,
        ..Ending::default()
    })
}

/// The text of a run.
struct Oha<'a> {
    options: &'a Options,
}

impl FrontEnd for Oha<'_> {
    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        let report = oha::report(self.options, &Figures::of(self.options, run));
        match &self.options.output {
            Some(path) => replace::write(path, report.as_bytes())
                .with_context(|| format!("cannot write {}", path.display())),
            None => {
                print(&report);
                Ok(())
            }
        }
    }

    fn exit_code(&mut self, _run: &Run, _usual: ExitCode) -> Result<ExitCode> {
        Ok(ExitCode::SUCCESS)
    }
}
