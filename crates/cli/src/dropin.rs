//! brunt in place of other load generators, by the name that it is called by or by its first word:
//! their command lines, run as brunt's own, and their text.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use brunt_dropin::wrk::{self, Asked, Options, Program, Scripted};
use brunt_dropin::{Ending, verdict_line};
use brunt_engine::{Phase, PrepareError, Progress, RunError};
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

/// Another tool in whose place brunt is called.
#[derive(Debug)]
pub(crate) struct Called {
    program: Program,
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
        let (program, name) = match by_name.and_then(program) {
            Some(program) => (program, path.to_string_lossy().into_owned()),
            None => {
                let word = arguments.next()?;
                let word = word.to_str()?;
                (program(word)?, word.to_owned())
            }
        };
        Some(Self {
            program,
            name,
            words: arguments.collect(),
        })
    }
}

fn program(name: &str) -> Option<Program> {
    match name {
        "wrk" => Some(Program::Wrk),
        "wrk2" => Some(Program::Wrk2),
        _ => None,
    }
}

/// Runs the command line of the other tool, and ends as it does.
pub(crate) fn run(called: &Called) -> ExitCode {
    let outcome = words(called).and_then(|words| {
        Asked::parse(called.program, &called.name, &words).map_err(anyhow::Error::from)
    });
    let outcome = outcome.and_then(|asked| match asked {
        Asked::Explain(options) => {
            print(&wrk::explanation(&options))?;
            Ok(ExitCode::SUCCESS)
        }
        Asked::Run(options) => run_wrk(&options),
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

fn run_wrk(options: &Options) -> Result<ExitCode> {
    let mut plan = wrk::plan(options)?;
    let mut script = Scripted::load(options, &mut plan)?;
    let report = options.brunt_report.clone();
    let variable = || std::env::var_os(REPORT_VARIABLE).filter(|name| !name.is_empty());
    let report = report.or_else(|| variable().map(PathBuf::from));
    let destination = Destination::of_stored_run(report.as_deref())?;
    let generators = script.as_mut().map(Scripted::generators).transpose()?;
    let run = match measure(plan, generators.unwrap_or_default(), &wrk::heading(options)) {
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

/// Makes the run of `plan`, with requests that `generators` make, if any, and prints `heading` when
/// the load begins.
fn measure(plan: Plan, generators: Vec<Box<dyn RequestGenerator>>, heading: &str) -> Result<Run> {
    let interrupts = Interrupts::listen(Second::Reports)?;
    let round = Round::of(&plan);
    let observer = &mut |_: Phase, _: &Progress| {};
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
