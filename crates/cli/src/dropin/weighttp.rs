//! brunt in place of weighttp.

use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::weighttp::{self, Form, Measured, Options};
use brunt_engine::{Phase, Progress, RunObserver};
use brunt_record::{RequestLog, Run};

use super::{job, open_outputs, print, read_file, write_file};
use crate::message;
use crate::output::is_standard;
use crate::run::FrontEnd;

/// The variable that chooses the form of the report, by the version that has it.
const VERSION_VARIABLE: &str = "BRUNT_WEIGHTTP";

/// Runs the command line `words` of weighttp.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let form = match std::env::var(VERSION_VARIABLE).as_deref() {
        Ok("0.4") => Form::Text,
        _ => Form::Json,
    };
    let options = Options::parse(form, words)?;
    message::print_lines(&options.warning);
    let body = match &options.body {
        Some(path) => read_file("-p", path, |error| options.unread(error))?,
        None => Vec::new(),
    };
    let plan = options.plan(&body)?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let mut weighttp = Weighttp {
        options: &options,
        next_percent: 10,
    };
    pipeline.run(job(plan), &mut weighttp)
}

/// The text of a run, and its progress.
struct Weighttp<'a> {
    options: &'a Options,
    next_percent: u64,
}

impl FrontEnd for Weighttp<'_> {
    fn observer(&mut self) -> Option<&mut dyn RunObserver> {
        Some(self)
    }

    fn begin(&mut self) {
        print(&weighttp::heading(self.options));
    }

    fn report(&mut self, run: &Run, log: &RequestLog) -> Result<()> {
        let options = self.options;
        self.reached(log.len());
        let measured = Measured::of(run, log);
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
}

impl Weighttp<'_> {
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

impl RunObserver for Weighttp<'_> {
    fn progress(&mut self, _phase: Phase, progress: &Progress) {
        self.reached(progress.successes + progress.errors + progress.failures);
    }
}
