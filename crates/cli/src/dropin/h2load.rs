//! brunt in place of h2load.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::h2load::{self, Options, Uris};
use brunt_dropin::{Ending, verdict_line};
use brunt_engine::{Phase, PrepareError, Progress, RunError, RunObserver};
use brunt_io::clock;
use brunt_io::files::{self, FileError};
use brunt_judge::Judged;
use brunt_load::{Target, request_list};
use brunt_record::RequestLog;

use super::{EXIT_FAILED, cpus, destination, explain, measure, print, read_file};
use crate::list::LIST_BYTES_MAX;
use crate::message;
use crate::output::is_standard;

/// Runs the command line `words` of h2load.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    let file = options
        .input
        .as_deref()
        .or(options.timing_script.as_deref());
    let text = file.map(read_lines).transpose()?;
    let uris = options.uris(text.as_deref())?;
    let data = options.data.as_deref().map(read_body).transpose()?;
    if options.explains {
        let is_list = is_list(text.as_deref(), &uris);
        let data = data.as_deref();
        let explained = h2load::explanation(&options, &uris, data, is_list, cpus())?;
        return Ok(explain(&explained));
    }
    warn(&options, &uris);
    let plan = options.plan(&uris, data.as_deref())?;
    let requests = plan.stop.requests.unwrap_or(1);
    let log = options.log.as_deref().map(open_log).transpose()?;
    let destination = destination(options.brunt_report.as_deref())?;
    if let Err(error) = destination.fits(&plan) {
        destination.abandon();
        return Err(error);
    }
    let mut keeping = Keeping(RequestLog::default());
    let heading = h2load::heading(&options, requests);
    let run = match measure(plan, Vec::new(), &heading, &mut keeping) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            return ended_before(&options, requests, error);
        }
    };
    print(&h2load::report(&options, requests, &run, &keeping.0));
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    if let Some(mut log) = log {
        let lines = h2load::log_lines(&run, &keeping.0);
        log.write_all(lines.as_bytes())
            .context("cannot write the file of --log-file")?;
    }
    destination.write(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be said before the load.
fn warn(options: &Options, uris: &Uris) {
    message::print_lines(&options.warning);
    message::print_lines(&uris.warning);
    if let Some(warning) = options.script_warning(uris.paths.len()) {
        message::print_lines(&warning);
    }
    if options.threads > cpus() {
        message::print_lines(
            "-t: warning: the number of threads is greater than hardware cores.\n",
        );
    }
}

/// How h2load ends where nothing could be measured: where the server cannot be reached, or speaks
/// something else, all requests have failed.
fn ended_before(options: &Options, requests: u64, error: anyhow::Error) -> Result<ExitCode> {
    if let Some(PrepareError::Resolve { reason, .. }) = error.downcast_ref() {
        return Err(h2load::unresolved(reason).into());
    }
    let is_out_of_reach = matches!(
        error.downcast_ref(),
        Some(PrepareError::Unreachable { .. } | PrepareError::Negotiate(_))
    ) || matches!(error.downcast_ref(), Some(RunError::NoConnection { .. }));
    if !is_out_of_reach {
        return Err(error);
    }
    print(&h2load::unreached(options, requests, clock::now_ns()));
    message::print(&format_args!("{error:#}"));
    Ok(ExitCode::SUCCESS)
}

/// Whether brunt's own lists of URLs mean the same.
fn is_list(text: Option<&str>, uris: &Uris) -> bool {
    let base = Target::parse(&uris.base, None).ok();
    let Some(text) = text else {
        return false;
    };
    let list = request_list::urls(text.as_bytes(), base.as_ref());
    let listed = list.collect::<Result<Vec<_>, _>>();
    listed.is_ok_and(|listed| {
        let paths = listed.iter().map(|listed| &listed.request.path);
        paths.eq(&uris.paths)
    })
}

fn open_log(path: &Path) -> Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.map_err(|_| {
        let line = format!("--log-file: Could not open file {}", path.display());
        ending(&line).into()
    })
}

fn read_body(path: &Path) -> Result<Vec<u8>> {
    read_file("-d", path, |_| {
        ending(&format!("-d: Could not open file {}", path.display()))
    })
}

fn read_lines(path: &Path) -> Result<String> {
    let read = if is_standard(path) {
        files::read_bounded(std::io::stdin().lock(), LIST_BYTES_MAX)
    } else {
        files::read_file(path, LIST_BYTES_MAX)
    };
    let unread = || ending(&format!("cannot read input file: {}", path.display()));
    match read {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| unread().into()),
        Err(FileError::Input(_)) => Err(unread().into()),
        Err(error) => bail!("-i {}: {error}; split it", path.display()),
    }
}

fn ending(line: &str) -> Ending {
    Ending {
        stdout: String::new(),
        stderr: format!("{line}\n"),
        code: EXIT_FAILED,
    }
}

struct Keeping(RequestLog);

impl RunObserver for Keeping {
    fn progress(&mut self, _phase: Phase, _progress: &Progress) {}

    fn request_log(&mut self, log: RequestLog) {
        self.0 = log;
    }
}
