//! brunt in place of ab.

use std::process::ExitCode;
use std::sync::PoisonError;

use anyhow::{Context, Result};
use brunt_dropin::ab::{self, Options};
use brunt_dropin::verdict_line;
use brunt_engine::{Phase, PrepareError, Progress};
use brunt_measure::Judged;

use super::{EXIT_FAILED, destination, measure, print};
use crate::message;

/// Runs the command line `words` of ab, called as `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    message::print_lines(&options.warning);
    if options.explains {
        print(&ab::explanation(&options))?;
        return Ok(ExitCode::SUCCESS);
    }
    load(&options)
}

fn load(options: &Options) -> Result<ExitCode> {
    let body = match &options.body {
        Some(file) => std::fs::read(&file.path).map_err(|error| options.unread(&error))?,
        None => Vec::new(),
    };
    let ab::Planned { plan, request } = options.plan(&body)?;
    let destination = destination(options.brunt_report.as_deref())?;
    print(&ab::heading(options))?;
    let (watcher, place) = ab::Seen::watching(request);
    let mut completed = Completed::new(options.progress_every);
    let observer = &mut |_: Phase, progress: &Progress| {
        completed.reached(progress.successes + progress.errors);
    };
    let run = match measure(plan, vec![watcher], "", observer) {
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
        completed.finished(run.summary().lifetime.replies.total());
        let seen = place.lock().unwrap_or_else(PoisonError::into_inner);
        print(&ab::report(options, &run, &seen))?;
        if let Some(path) = &options.csv {
            std::fs::write(path, ab::csv(options, &run))
                .with_context(|| format!("cannot write {}", path.display()))?;
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
