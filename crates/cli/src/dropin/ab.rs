//! brunt in place of ab.

use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::ab::{self, Measured, Options};
use brunt_engine::{Phase, Progress, RunObserver};
use brunt_record::{RequestLog, Run};

use super::{EXIT_FAILED, failed, job, open_outputs, print, read_file, write_file};
use crate::message;
use crate::run::FrontEnd;

/// Runs the command line `words` of ab, called as `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    message::print_lines(&options.warning);
    let body = match &options.body {
        Some(path) => read_file("-p", path, |error| options.unread(error))?,
        None => Vec::new(),
    };
    load(&options, &body)
}

fn load(options: &Options, body: &[u8]) -> Result<ExitCode> {
    let ab::Planned { plan, request } = options.plan(body)?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    print(&ab::heading(options, &request));
    let completed = Completed::new(options.progress_every());
    pipeline.run(job(plan), &mut Ab { options, completed })
}

/// The text of a run.
struct Ab<'a> {
    options: &'a Options,
    completed: Completed,
}

impl FrontEnd for Ab<'_> {
    fn observer(&mut self) -> Option<&mut dyn RunObserver> {
        Some(&mut self.completed)
    }

    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        failed(error, |error| ab::preparation_ending(self.options, error))
    }

    fn report(&mut self, run: &Run, log: &RequestLog) -> Result<()> {
        let options = self.options;
        if ab::run_ending(options, run).is_some() {
            return Ok(());
        }
        let measured = Measured::of(options, run, log);
        self.completed.finished(log.len());
        print(&ab::report(options, &measured));
        if let Some(path) = &options.csv {
            write_file(path, &ab::csv(&measured))?;
        }
        if let Some(path) = &options.gnuplot {
            write_file(path, &ab::gnuplot(run, log))?;
        }
        Ok(())
    }

    fn exit_code(&mut self, run: &Run, _usual: ExitCode) -> Result<ExitCode> {
        match ab::run_ending(self.options, run) {
            Some(ending) => Err(ending.into()),
            None if run.interrupted() => Ok(ExitCode::from(EXIT_FAILED)),
            None => Ok(ExitCode::SUCCESS),
        }
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

impl RunObserver for Completed {
    fn progress(&mut self, _phase: Phase, progress: &Progress) {
        self.reached(progress.successes + progress.errors + progress.failures);
    }
}
