//! brunt in place of httperf.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use brunt_dropin::Ending;
use brunt_dropin::httperf::{self, Files, Options, Planned, Uris, Workload};
use brunt_load::sessions::{SessionFigures, SessionLog};
use brunt_record::{RequestLog, Run};

use super::{EXIT_FAILED, failed, job, open_outputs, print};
use crate::message;
use crate::request::LIST_BYTES_MAX;
use crate::run::{FrontEnd, Job};
use crate::values::read_all;

/// Runs the command line `words` of httperf, called as `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    message::print_lines(&options.warning);
    let files = files(&options)?;
    load(&options, &files)
}

fn load(options: &Options, files: &Files) -> Result<ExitCode> {
    let Planned {
        plan,
        generator,
        place,
        warning,
    } = options.plan(files)?;
    message::print_lines(&warning);
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let job = Job {
        generators: vec![generator],
        ..job(plan)
    };
    pipeline.run(job, &mut Httperf { options, place })
}

/// The text of a run.
struct Httperf<'a> {
    options: &'a Options,
    /// Where the generator keeps the outcomes of the sessions.
    place: Arc<Mutex<SessionFigures>>,
}

impl FrontEnd for Httperf<'_> {
    fn begin(&mut self) {
        print(&httperf::heading(self.options));
    }

    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        failed(error, |error| {
            httperf::preparation_ending(self.options, error)
        })
    }

    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        let sessions = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        print(&httperf::report(self.options, run, &sessions));
        Ok(())
    }

    fn exit_code(&mut self, run: &Run, _usual: ExitCode) -> Result<ExitCode> {
        Ok(match run.interrupted() {
            true => ExitCode::from(EXIT_FAILED),
            false => ExitCode::SUCCESS,
        })
    }
}

/// Reads the files that the command line names.
fn files(options: &Options) -> Result<Files> {
    let mut files = Files::default();
    if let Workload::Log { path, .. } = options.workload() {
        let log = SessionLog::parse(&read(options, &path)?);
        files.log = Some(log.map_err(|error| httperf::unread_log(options, &error))?);
    } else if let Uris::List { path, .. } = &options.uris {
        files.list = Some(read(options, path)?);
    }
    Ok(files)
}

fn read(options: &Options, path: &Path) -> Result<Vec<u8>> {
    let unread = |_| -> Ending { httperf::unread(options, path) };
    let file = std::fs::File::open(path).map_err(unread)?;
    let name = path.display().to_string();
    read_all(file, &name, "the file", LIST_BYTES_MAX).context("it is too large")
}
