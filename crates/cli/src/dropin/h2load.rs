//! brunt in place of h2load.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_dropin::h2load::{self, Options};
use brunt_dropin::verdict_line;
use brunt_engine::{Phase, Progress, RunObserver};
use brunt_measure::{Judged, RequestLog};

use super::{destination, measure, print};
use crate::message;
use crate::output::is_standard;

/// Runs the command line `words` of h2load.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    if options.explains {
        print(&h2load::explanation(&options))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines = options.input.as_deref().map(read_lines).transpose()?;
    let data = options.data.as_deref().map(|path| {
        std::fs::read(path).with_context(|| format!("-d: Could not open file {}", path.display()))
    });
    let plan = options.plan(lines.as_deref(), data.transpose()?.as_deref())?;
    let destination = destination(options.brunt_report.as_deref())?;
    let mut keeping = Keeping(RequestLog::default());
    let heading = h2load::heading(&options);
    let run = match measure(plan, Vec::new(), &heading, &mut keeping) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            return Err(error);
        }
    };
    print(&h2load::report(&options, &run, &keeping.0))?;
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    Ok(ExitCode::SUCCESS)
}

fn read_lines(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = if is_standard(path) {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.with_context(|| format!("cannot read input file: {}", path.display()))?;
    Ok(text)
}

struct Keeping(RequestLog);

impl RunObserver for Keeping {
    fn progress(&mut self, _phase: Phase, _progress: &Progress) {}

    fn request_log(&mut self, log: RequestLog) {
        self.0 = log;
    }
}
