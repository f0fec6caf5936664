//! brunt in place of ab.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_dropin::ab::{self, Measured, Options};
use brunt_dropin::verdict_line;
use brunt_engine::{Phase, PrepareError, Progress, RunObserver};
use brunt_judge::Judged;
use brunt_record::RequestLog;

use super::{EXIT_FAILED, cpus, destination, explain, measure, print, read_file};
use crate::{message, replace};

/// Runs the command line `words` of ab, called as `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    message::print_lines(&options.warning);
    let body = match &options.body {
        Some(file) => read_file("-p", &file.path, |error| options.unread(error))?,
        None => Vec::new(),
    };
    if options.explains {
        return Ok(explain(&ab::explanation(&options, &body, cpus())?));
    }
    load(&options, &body)
}

fn load(options: &Options, body: &[u8]) -> Result<ExitCode> {
    let ab::Planned { plan, request } = options.plan(body)?;
    let destination = destination(options.brunt_report.as_deref())?;
    print(&ab::heading(options, &request));
    let mut watching = Watching {
        completed: Completed::new(options.progress_every),
        log: RequestLog::default(),
    };
    let run = match measure(plan, Vec::new(), "", &mut watching) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            let unprepared = error.downcast_ref::<PrepareError>();
            let ending = unprepared.and_then(|error| ab::preparation_ending(options, error));
            return Err(ending.map_or(error, anyhow::Error::from));
        }
    };
    let judged = Judged::of(&run);
    let ended = ab::run_ending(options, &run);
    if ended.is_none() {
        let measured = Measured::of(options, &run, &watching.log);
        watching.completed.finished(watching.log.len());
        print(&ab::report(options, &measured));
        if let Some(path) = &options.csv {
            write(path, &ab::csv(&measured))?;
        }
        if let Some(path) = &options.gnuplot {
            write(path, &ab::gnuplot(&measured))?;
        }
    }
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    match ended {
        Some(ending) => Err(ending.into()),
        None if run.interrupted() => Ok(ExitCode::from(EXIT_FAILED)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    replace::write(path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Prints progress, and keeps the log.
struct Watching {
    completed: Completed,
    log: RequestLog,
}

impl RunObserver for Watching {
    fn progress(&mut self, _phase: Phase, progress: &Progress) {
        self.completed
            .reached(progress.successes + progress.errors + progress.failures);
    }

    fn request_log(&mut self, log: RequestLog) {
        self.log = log;
    }
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
