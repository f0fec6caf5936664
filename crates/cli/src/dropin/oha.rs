//! brunt in place of oha.

use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::Ending;
use brunt_dropin::oha::{self, Options};
use brunt_record::{RequestLog, Run};

use super::{EXIT_FAILED, cpus, job, open_outputs, print, read_file, write_file};
use crate::message;
use crate::run::FrontEnd;

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
    let Some(path) = &options.body_file else {
        return Ok(options.body.clone().unwrap_or_default().into_bytes());
    };
    read_file("-D", path, |error| {
        let line = format!("Error: {error}: {}", path.display());
        Ending::error(&line, EXIT_FAILED)
    })
}

/// The text of a run.
struct Oha<'a> {
    options: &'a Options,
}

impl FrontEnd for Oha<'_> {
    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        let report = oha::report(self.options, run);
        match &self.options.output {
            Some(path) => write_file(path, &report),
            None => {
                print(&report);
                Ok(())
            }
        }
    }
}
