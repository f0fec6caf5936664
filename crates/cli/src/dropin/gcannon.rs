//! brunt in place of gcannon.

use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::gcannon::{self, Address, Figures, Options};
use brunt_record::{RequestLog, Run};

use super::{EXIT_FAILED, cpus, explain, failed, job, open_outputs, print, read_file};
use crate::message;
use crate::plan::fresh_seed;
use crate::run::FrontEnd;

/// Runs the command line `words` of gcannon.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let mut options = Options::parse(words)?;
    let files = files(&options)?;
    if options.explains {
        return Ok(explain(&gcannon::explanation(&options, &files, cpus())?));
    }
    let address = gcannon::target(&options, &files)?;
    options.address = Some(address.clone());
    let plan = gcannon::plan(&options, &files, fresh_seed())?;
    drop(files);
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let mut gcannon = Gcannon {
        options: &options,
        address,
        code: EXIT_FAILED,
    };
    pipeline.run(job(plan), &mut gcannon)
}

/// What the files with requests hold.
fn files(options: &Options) -> Result<Vec<Vec<u8>>> {
    let files = options
        .raw
        .iter()
        .map(|path| read_file("--raw", path, |_| gcannon::unread(path)));
    files.collect()
}

/// The text of a run.
struct Gcannon<'a> {
    options: &'a Options,
    address: Address,
    /// The exit code; known when the run is over.
    code: u8,
}

impl FrontEnd for Gcannon<'_> {
    fn begin(&mut self) {
        print(&gcannon::heading(self.options, &self.address));
    }

    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        failed(error, |error| {
            gcannon::preparation_ending(self.options, error)
        })
    }

    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        let figures = Figures::of(self.options, run);
        print(&gcannon::report(self.options, &self.address, &figures));
        if figures.responses > 0 {
            self.code = gcannon::exit_code(self.options, &figures);
        } else {
            message::print_lines("Error: no request was answered\n");
        }
        Ok(())
    }

    fn exit_code(&mut self, _run: &Run, _usual: ExitCode) -> Result<ExitCode> {
        Ok(ExitCode::from(self.code))
    }
}
