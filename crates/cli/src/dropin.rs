//! brunt in place of other load generators, by the name that it is called by or by its first word:
//! their command lines, run as brunt's own, and their text.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::PoisonError;

use anyhow::{Context, Result};
use brunt_dropin::wrk::{self, Asked, Options, Program, Scripted};
use brunt_dropin::{Ending, ab, verdict_line};
use brunt_engine::{Phase, PrepareError, Progress, RunError, RunObserver};
use brunt_load::{Plan, RequestGenerator, Round};
use brunt_measure::{Judged, Run};

use crate::load::add_calibration;
use crate::output::Destination;
use crate::session::Wanted;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, message};

/// The variable that names a file for brunt's own record of the run.
const REPORT_VARIABLE: &str = "BRUNT_REPORT";
/// What the peers exit with when something is wrong before the load.
const EXIT_FAILED: u8 = 1;

/// The other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Wrk(Program),
    Ab,
}

/// Another tool in whose place brunt is called.
#[derive(Debug)]
pub(crate) struct Called {
    peer: Peer,
    /// Its name, for messages.
    name: String,
    /// What follows the name.
    words: Vec<OsString>,
}

impl Called {
    /// By what name this process was called, or by its first word. Absent for brunt itself.
    pub(crate) fn here() -> Option<Self> {
        Self::of(std::env::args_os())
    }

    fn of(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let path = arguments.next()?;
        let by_name = Path::new(&path).file_name().and_then(|name| name.to_str());
        let (peer, name) = match by_name.and_then(peer) {
            Some(peer) => (peer, path.to_string_lossy().into_owned()),
            None => {
                let word = arguments.next()?;
                let word = word.to_str()?;
                (peer(word)?, word.to_owned())
            }
        };
        Some(Self {
            peer,
            name,
            words: arguments.collect(),
        })
    }
}

fn peer(name: &str) -> Option<Peer> {
    match name {
        "wrk" => Some(Peer::Wrk(Program::Wrk)),
        "wrk2" => Some(Peer::Wrk(Program::Wrk2)),
        "ab" => Some(Peer::Ab),
        _ => None,
    }
}

/// Runs the command line of the other tool, and ends as it does.
pub(crate) fn run(called: &Called) -> ExitCode {
    let outcome = words(called).and_then(|words| match called.peer {
        Peer::Wrk(program) => match Asked::parse(program, &called.name, &words)? {
            Asked::Explain(options) => {
                print(&wrk::explanation(&options))?;
                Ok(ExitCode::SUCCESS)
            }
            Asked::Run(options) => run_wrk(&options),
        },
        Peer::Ab => run_ab(&ab::Options::parse(&called.name, &words)?),
    });
    outcome.unwrap_or_else(|error| fail(&error))
}

fn words(called: &Called) -> Result<Vec<String>> {
    let words = called.words.iter().map(|word| {
        word.clone()
            .into_string()
            .map_err(|word| anyhow::anyhow!("{word:?} is not in UTF-8"))
    });
    words.collect()
}

fn fail(error: &anyhow::Error) -> ExitCode {
    if let Some(ending) = error.downcast_ref::<Ending>() {
        // Nobody reads it where it cannot be written.
        let _ = print(&ending.stdout);
        message::print_lines(&ending.stderr);
        return ExitCode::from(ending.code);
    }
    message::print(&format_args!("{error:#}"));
    match error.downcast_ref() {
        Some(RunError::Interrupted) => ExitCode::from(EXIT_INTERRUPTED),
        _ => ExitCode::from(EXIT_FAILED),
    }
}

/// Where brunt's own record of the run goes, if anywhere.
fn destination(typed: Option<&Path>) -> Result<Destination> {
    let variable = std::env::var_os(REPORT_VARIABLE).filter(|name| !name.is_empty());
    let variable = variable.map(PathBuf::from);
    Destination::of_stored_run(typed.or(variable.as_deref()))
}

fn run_wrk(options: &Options) -> Result<ExitCode> {
    let mut plan = wrk::plan(options)?;
    let mut script = Scripted::load(options, &mut plan)?;
    let destination = destination(options.brunt_report.as_deref())?;
    let generators = script.as_mut().map(Scripted::generators).transpose()?;
    let observer = &mut |_: Phase, _: &Progress| {};
    let heading = wrk::heading(options);
    let run = match measure(plan, generators.unwrap_or_default(), &heading, observer) {
        Ok(run) => run,
        Err(error) => {
            destination.abandon();
            let unprepared = error.downcast_ref::<PrepareError>();
            let ending = unprepared.and_then(|error| wrk::preparation_ending(options, error));
            return Err(ending.map_or(error, anyhow::Error::from));
        }
    };
    print(&wrk::report(options, &run))?;
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    let failed = wrk::script_error(&run);
    if let Some(reason) = &failed {
        message::print(reason);
    }
    if let Some(script) = &mut script {
        script.finish(&run)?;
    }
    Ok(match failed {
        Some(_) => ExitCode::from(EXIT_FAILED),
        None => ExitCode::SUCCESS,
    })
}

fn run_ab(options: &ab::Options) -> Result<ExitCode> {
    message::print_lines(&options.warning);
    if options.explains {
        print(&ab::explanation(options))?;
        return Ok(ExitCode::SUCCESS);
    }
    let body = match &options.body {
        Some(file) => std::fs::read(&file.path).map_err(|error| options.unread(&error))?,
        None => Vec::new(),
    };
    let ab::Planned { plan, request } = options.plan(&body)?;
    let destination = destination(options.brunt_report.as_deref())?;
    print(&ab::heading(options))?;
    let (watcher, place) = ab::Seen::watching(request);
    let mut told = Told::new(options.progress_every);
    let observer = &mut |_: Phase, progress: &Progress| {
        told.reached(progress.successes + progress.errors);
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
        told.finished(run.summary().lifetime.replies.total());
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

/// Progress as ab tells it.
#[derive(Debug)]
struct Told {
    /// Every so many requests; absent: not at all.
    every: Option<u32>,
    next: u64,
}

impl Told {
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

/// Makes the run of `plan`, with requests that `generators` make, if any, and prints `heading` when
/// the load begins.
fn measure(
    plan: Plan,
    generators: Vec<Box<dyn RequestGenerator>>,
    heading: &str,
    observer: &mut dyn RunObserver,
) -> Result<Run> {
    let interrupts = Interrupts::listen(Second::Reports)?;
    let round = Round::of(&plan);
    let mut run = interrupts.in_generated_session(plan, generators, Wanted::Part, |session| {
        print(heading)?;
        Ok(session.round(&round, observer)?)
    })?;
    add_calibration(&mut run);
    Ok(run)
}

/// Prints to standard output at once. A reader that went away is no error.
fn print(text: &str) -> io::Result<()> {
    // What a script has printed comes first.
    brunt_script::flush_script_output();
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_or_the_first_word_decides() {
        for (arguments, expected) in [
            ("/usr/local/bin/wrk -t2", Some("/usr/local/bin/wrk [-t2]")),
            ("wrk2 wrk", Some("wrk2 [wrk]")),
            ("brunt wrk -d1 u", Some("wrk [-d1,u]")),
            ("/usr/bin/ab -n 1", Some("/usr/bin/ab [-n,1]")),
            ("target/debug/brunt wrk2", Some("wrk2 []")),
            ("brunt http://host/", None),
            ("brunt -t2 wrk", None),
            ("brunt", None),
            ("", None),
        ] {
            let called = Called::of(arguments.split_whitespace().map(OsString::from));
            let found = called.map(|called| {
                let words: Vec<_> = called
                    .words
                    .iter()
                    .filter_map(|word| word.to_str())
                    .collect();
                format!("{} [{}]", called.name, words.join(","))
            });
            assert_eq!(found.as_deref(), expected, "{arguments}");
        }
    }
}
