//! The front ends of tools that send requests over HTTP: wrk and wrk2, ab, weighttp, h2load,
//! httperf and oha.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::PoisonError;

use anyhow::{Context, Result, bail};
use brunt_dropin::{Ending, ab, h2load, httperf, oha, weighttp, wrk};
use brunt_engine::{Phase, PrepareError, Progress, RunError, RunObserver};
use brunt_io::clock;
use brunt_io::files::{self, FileError};
use brunt_load::sessions::SessionLog;
use brunt_record::Run;

use super::{EXIT_FAILED, cpus, failed, job, open_outputs, print, read_file};
use crate::message;
use crate::output::{is_standard, write_file};
use crate::request::LIST_BYTES_MAX;
use crate::run::Measured;
use crate::script::{self, LastCalls, of_drop_in};

/// Runs the command line `words` of the program that was called as `name`.
pub(super) fn wrk(program: wrk::Program, name: &str, words: &[String]) -> Result<ExitCode> {
    let options = &wrk::WrkOptions::parse(program, name, words)?;
    let mut plan = wrk::plan(options)?;
    let script = wrk::Scripted::load(options, &mut plan, of_drop_in)?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let mut script = script.map(|script| LastCalls::new(script, &pipeline.interrupts));
    let generators = script.as_mut().map(LastCalls::generators).transpose();
    let generators = generators.map_err(Ending::from)?.unwrap_or_default();
    let begin = || print(&wrk::heading(options));
    let measured = pipeline.measure(job(plan).generated(generators), begin, None);
    let mut measured =
        measured.map_err(|error| failed(error, |error| wrk::preparation_ending(options, error)))?;
    print(&wrk::report(options, &measured.run));
    measured.write(Ok(()))?;
    let run = &measured.run;
    let code = match wrk::script_error(run) {
        Some(reason) => {
            message::print_of_script(&reason);
            ExitCode::from(EXIT_FAILED)
        }
        None => ExitCode::SUCCESS,
    };
    let Some(mut script) = script else {
        return Ok(code);
    };
    let torn_down = script.tear_down();
    let done = script.done(run);
    script::exit_code(torn_down.and(done), code)
}

/// Runs the command line `words` of ab, called as `name`.
pub(super) fn ab(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = &ab::AbOptions::parse(name, words)?;
    message::print_lines(&options.warning);
    let path = options.body.as_deref();
    let body = read_file("-p", path, |_, error| options.unread(error))?;
    let ab::Planned { plan, request } = options.plan(&body.unwrap_or_default())?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    print(&ab::heading(options, &request));
    let mut completed = Completed::new(options.progress_every());
    let measured = pipeline.measure(job(plan), || (), Some(&mut completed));
    let mut measured =
        measured.map_err(|error| failed(error, |error| ab::preparation_ending(options, error)))?;
    if let Some(ending) = ab::run_ending(options, &measured.run) {
        measured.write(Ok(()))?;
        return Err(ending.into());
    }
    completed.finished(measured.log.len());
    let reported = ab_report(options, &measured);
    measured.write(reported)?;
    Ok(exit_code(&measured.run))
}

/// Prints the text of a run, and writes the files that are asked for.
fn ab_report(options: &ab::AbOptions, Measured { run, log, .. }: &Measured) -> Result<()> {
    let measured = ab::AbMeasured::of(options, run, log);
    print(&ab::report(options, &measured));
    if let Some(path) = &options.csv {
        write_file(path, ab::csv(&measured))?;
    }
    if let Some(path) = &options.gnuplot {
        write_file(path, ab::gnuplot(run, log))?;
    }
    Ok(())
}

/// The exit code of a run that a signal may have ended.
fn exit_code(run: &Run) -> ExitCode {
    ExitCode::from(if run.interrupted() { EXIT_FAILED } else { 0 })
}

/// Progress as ab prints it.
#[derive(Debug)]
struct Completed {
    /// Every so many requests; absent: not at all.
    every: Option<u32>,
    next: u64,
}

impl Completed {
    fn new(every: Option<u32>) -> Self {
        Self {
            every,
            next: every.unwrap_or_default().into(),
        }
    }

    fn reached(&mut self, requests: u64) {
        let Some(every) = self.every else {
            return;
        };
        while requests >= self.next {
            message::print_lines(&format!("Completed {} requests", self.next));
            self.next += u64::from(every);
        }
    }

    fn finished(&mut self, requests: u64) {
        self.reached(requests);
        if self.every.is_some() {
            message::print_lines(&format!("Finished {requests} requests"));
        }
    }
}

impl RunObserver for Completed {
    fn progress(&mut self, _phase: Phase, progress: &Progress) {
        self.reached(progress.successes + progress.errors + progress.failures);
    }
}

/// The variable that chooses the form of the report, by the version that has it.
const VERSION_VARIABLE: &str = "BRUNT_WEIGHTTP";

/// Runs the command line `words` of weighttp.
pub(super) fn weighttp(words: &[String]) -> Result<ExitCode> {
    let form = match std::env::var(VERSION_VARIABLE).as_deref() {
        Ok("0.4") => weighttp::Form::Text,
        _ => weighttp::Form::Json,
    };
    let options = weighttp::WeighttpOptions::parse(form, words)?;
    message::print_lines(&options.warning);
    let path = options.body.as_deref();
    let body = read_file("-p", path, |_, error| options.unread(error))?;
    let plan = options.plan(&body.unwrap_or_default())?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let mut progress = Percent {
        options: &options,
        next_percent: 10,
    };
    let begin = || print(&weighttp::heading(&options));
    let mut measured = pipeline.measure(job(plan), begin, Some(&mut progress))?;
    progress.reached(measured.log.len());
    let reported = weighttp_report(&options, &measured);
    measured.write(reported)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the text of a run, and writes the file that is asked for.
fn weighttp_report(options: &weighttp::WeighttpOptions, measured: &Measured) -> Result<()> {
    let measured = weighttp::Measured::of(&measured.run, &measured.log);
    let (stdout, stderr) = weighttp::report(options, &measured);
    if let Some(path) = &options.csv {
        let csv = weighttp::csv(&measured);
        if is_standard(path) {
            print(&csv);
        } else {
            write_file(path, &csv)?;
        }
    }
    print(&stdout);
    message::print_lines(&stderr);
    Ok(())
}

/// Progress as weighttp prints it.
struct Percent<'a> {
    options: &'a weighttp::WeighttpOptions,
    next_percent: u64,
}

impl Percent<'_> {
    fn reached(&mut self, requests: u64) {
        let all = self.options.requests;
        let step = if all > 10 { 10 } else { 100 };
        self.next_percent = self.next_percent.max(step);
        while !self.options.is_quiet
            && self.next_percent <= 100
            && requests * 100 >= all * self.next_percent
        {
            // The report follows, and says so where it cannot be printed.
            print(&weighttp::progress(self.next_percent));
            self.next_percent += step;
        }
    }
}

impl RunObserver for Percent<'_> {
    fn progress(&mut self, _phase: Phase, progress: &Progress) {
        self.reached(progress.successes + progress.errors + progress.failures);
    }
}

/// Runs the command line `words` of h2load.
pub(super) fn h2load(words: &[String]) -> Result<ExitCode> {
    let options = h2load::H2loadOptions::parse(words)?;
    let file = options.input.as_deref();
    let file = file.or(options.timing_script.as_deref());
    let text = file.map(read_lines).transpose()?;
    let uris = options.uris(text.as_deref())?;
    let data = read_file("-d", options.data.as_deref(), |path, _| {
        not_opened("-d", path)
    })?;
    warn(&options, &uris);
    let plan = options.plan(&uris, data.as_deref())?;
    let requests = plan.load.stop.requests.unwrap_or(1);
    let file = options.log.as_deref().map(open_log).transpose()?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let begin = || print(&h2load::heading(&options, requests));
    let mut measured = match pipeline.measure(job(plan), begin, None) {
        Ok(measured) => measured,
        Err(error) => return ended_before(&options, requests, error),
    };
    let (run, log) = (&measured.run, &measured.log);
    print(&h2load::report(&options, requests, run, log));
    let written = file.map_or(Ok(()), |mut file| {
        let lines = h2load::log_lines(&options, run, log);
        file.write_all(lines.as_bytes())
            .context("cannot write the file of --log-file")
    });
    measured.write(written)?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be said before the load.
fn warn(options: &h2load::H2loadOptions, uris: &h2load::Uris) {
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
fn ended_before(
    options: &h2load::H2loadOptions,
    requests: u64,
    error: anyhow::Error,
) -> Result<ExitCode> {
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
    file.map_err(|_| not_opened("--log-file", path).into())
}

fn not_opened(option: &str, path: &Path) -> Ending {
    let line = format!("{option}: Could not open file {}", path.display());
    Ending::error(&line, EXIT_FAILED)
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

/// Runs the command line `words` of httperf, called as `name`.
pub(super) fn httperf(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = &httperf::HttperfOptions::parse(name, words)?;
    message::print_lines(&options.warning);
    let httperf::Planned {
        plan,
        generator,
        place,
        warning,
    } = options.plan(&files(options)?)?;
    message::print_lines(&warning);
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let begin = || print(&httperf::heading(options));
    let measured = pipeline.measure(job(plan).generated(vec![generator]), begin, None);
    let mut measured = measured
        .map_err(|error| failed(error, |error| httperf::preparation_ending(options, error)))?;
    // The generator keeps the outcomes of the sessions there.
    let sessions = place.lock().unwrap_or_else(PoisonError::into_inner);
    print(&httperf::report(options, &measured.run, &sessions));
    measured.write(Ok(()))?;
    Ok(exit_code(&measured.run))
}

/// Reads the files that the command line names.
fn files(options: &httperf::HttperfOptions) -> Result<httperf::Files> {
    let mut files = httperf::Files::default();
    if let httperf::Workload::Log { path, .. } = options.workload() {
        let log = SessionLog::parse(&read(options, &path)?);
        files.log = Some(log.map_err(|error| httperf::unread_log(options, &error))?);
    } else if let httperf::Uris::List { path, .. } = &options.uris {
        files.list = Some(read(options, path)?);
    }
    Ok(files)
}

fn read(options: &httperf::HttperfOptions, path: &Path) -> Result<Vec<u8>> {
    let read = read_file("httperf:", Some(path), |path, _| {
        httperf::unread(options, path)
    })?;
    Ok(read.unwrap_or_default())
}

/// Runs the command line `words` of oha.
pub(super) fn oha(words: &[String]) -> Result<ExitCode> {
    let options = oha::OhaOptions::parse(words)?;
    let body = read_file("-D", options.body_file.as_deref(), |path, error| {
        let line = format!("Error: {error}: {}", path.display());
        Ending::error(&line, EXIT_FAILED)
    })?;
    let typed = || options.body.clone().unwrap_or_default().into_bytes();
    message::print_lines(&options.warning);
    let plan = oha::plan(&options, &body.unwrap_or_else(typed), cpus())?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let mut measured = pipeline.measure(job(plan), || (), None)?;
    let report = oha::report(&options, &measured.run);
    let reported = match &options.output {
        Some(path) => write_file(path, &report),
        None => {
            print(&report);
            Ok(())
        }
    };
    measured.write(reported)?;
    Ok(ExitCode::SUCCESS)
}
