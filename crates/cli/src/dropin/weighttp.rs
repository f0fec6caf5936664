//! brunt in place of weighttp.

use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_dropin::verdict_line;
use brunt_dropin::weighttp::{self, Form, Measured, Options};
use brunt_engine::{Phase, Progress, RunObserver};
use brunt_judge::Judged;
use brunt_record::RequestLog;

use super::{cpus, destination, explain, measure, print, read_file};
use crate::output::is_standard;
use crate::{message, replace};

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
    if options.explains {
        return Ok(explain(&weighttp::explanation(&options, &body, cpus())?));
    }
    let plan = options.plan(&body)?;
    let destination = destination(options.brunt_report.as_deref())?;
    let mut watching = Watching {
        options: &options,
        next_percent: 10,
        log: RequestLog::default(),
    };
    let heading = weighttp::heading(&options);
    let run = match measure(plan, Vec::new(), &heading, &mut watching) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            return Err(error);
        }
    };
    watching.reached(watching.log.len());
    let measured = Measured::of(&run, &watching.log);
    let (stdout, stderr) = weighttp::report(&options, &measured);
    if let Some(path) = &options.csv {
        let csv = weighttp::csv(&measured);
        if is_standard(path) {
            print(&csv);
        } else {
            replace::write(path, csv.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    print(&stdout);
    message::print_lines(&stderr);
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints progress, and keeps the log.
struct Watching<'a> {
    options: &'a Options,
    next_percent: u64,
    log: RequestLog,
}

impl Watching<'_> {
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

impl RunObserver for Watching<'_> {
    fn progress(&mut self, _phase: Phase, progress: &Progress) {
        self.reached(progress.successes + progress.errors + progress.failures);
    }

    fn request_log(&mut self, log: RequestLog) {
        self.log = log;
    }
}
