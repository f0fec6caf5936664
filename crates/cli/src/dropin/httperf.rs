//! brunt in place of httperf.

use std::path::Path;
use std::process::ExitCode;
use std::sync::PoisonError;

use anyhow::{Context, Result};
use brunt_dropin::httperf::{self, Files, Options, Planned, Uris, Workload};
use brunt_dropin::{Ending, verdict_line};
use brunt_engine::{Phase, PrepareError, Progress};
use brunt_judge::Judged;
use brunt_load::sessions::SessionLog;

use super::{EXIT_FAILED, cpus, destination, explain, measure, print};
use crate::list::LIST_BYTES_MAX;
use crate::message;
use crate::source::read_all;

/// Runs the command line `words` of httperf, called as `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    message::print_lines(&options.warning);
    let files = files(&options)?;
    if options.explains {
        return Ok(explain(&httperf::explanation(&options, &files, cpus())?));
    }
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
    let destination = destination(options.brunt_report.as_deref())?;
    let heading = httperf::heading(options);
    let observer = &mut |_: Phase, _: &Progress| {};
    let run = match measure(plan, vec![generator], &heading, observer) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            let unprepared = error.downcast_ref::<PrepareError>();
            let ending = unprepared.and_then(|error| httperf::preparation_ending(options, error));
            return Err(ending.map_or(error, anyhow::Error::from));
        }
    };
    let sessions = place.lock().unwrap_or_else(PoisonError::into_inner);
    print(&httperf::report(options, &run, &sessions));
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    Ok(if run.interrupted() {
        ExitCode::from(EXIT_FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

/// Reads the files that the command line names.
fn files(options: &Options) -> Result<Files> {
    let mut files = Files::default();
    if let Workload::Log { path, .. } = &options.workload {
        let log = SessionLog::parse(&read(options, path)?);
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
