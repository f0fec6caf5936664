//! brunt in place of h2load.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::Ending;
use brunt_dropin::h2load::{self, Options, Uris};
use brunt_engine::{PrepareError, RunError};
use brunt_io::clock;
use brunt_io::files::{self, FileError};
use brunt_record::{RequestLog, Run};

use super::{EXIT_FAILED, cpus, job, open_outputs, print, read_file};
use crate::message;
use crate::output::is_standard;
use crate::request::LIST_BYTES_MAX;
use crate::run::FrontEnd;

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
    warn(&options, &uris);
    let plan = options.plan(&uris, data.as_deref())?;
    let requests = plan.stop.requests.unwrap_or(1);
    let log = options.log.as_deref().map(open_log).transpose()?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let mut h2load = H2load {
        options: &options,
        requests,
        log,
    };
    pipeline.run(job(plan), &mut h2load)
}

/// The text of a run.
struct H2load<'a> {
    options: &'a Options,
    /// Requests that are planned.
    requests: u64,
    /// The file of `--log-file`.
    log: Option<File>,
}

impl FrontEnd for H2load<'_> {
    fn begin(&mut self) {
        print(&h2load::heading(self.options, self.requests));
    }

    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        ended_before(self.options, self.requests, error)
    }

    fn report(&mut self, run: &Run, log: &RequestLog) -> Result<()> {
        print(&h2load::report(self.options, self.requests, run, log));
        if let Some(file) = &mut self.log {
            file.write_all(h2load::log_lines(self.options, run, log).as_bytes())
                .context("cannot write the file of --log-file")?;
        }
        Ok(())
    }
}

/// What is to be said before the load.
fn warn(options: &Options, uris: &Uris) {
    message::print_lines(&options.warning);
    message::print_lines(&uris.warning);
    if let Some(warning) = options.script_warning(uris.paths.len()) {
        message::print_lines(&warning);
    }
    if options.threads > u64::from(cpus().get()) {
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

fn open_log(path: &Path) -> Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.map_err(|_| {
        let line = format!("--log-file: Could not open file {}", path.display());
        Ending::error(&line, EXIT_FAILED).into()
    })
}

fn read_body(path: &Path) -> Result<Vec<u8>> {
    read_file("-d", path, |_| {
        let line = format!("-d: Could not open file {}", path.display());
        Ending::error(&line, EXIT_FAILED)
    })
}

fn read_lines(path: &Path) -> Result<String> {
    let read = if is_standard(path) {
        files::read_bounded(std::io::stdin().lock(), LIST_BYTES_MAX)
    } else {
        files::read_file(path, LIST_BYTES_MAX)
    };
    let unread = || {
        let line = format!("cannot read input file: {}", path.display());
        Ending::error(&line, EXIT_FAILED)
    };
    match read {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| unread().into()),
        Err(FileError::Input(_)) => Err(unread().into()),
        Err(error) => bail!("-i {}: {error}; split it", path.display()),
    }
}
