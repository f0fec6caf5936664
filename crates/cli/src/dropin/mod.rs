//! brunt in place of other load generators, by the name that it is called by or by its first word:
//! their command lines, run as brunt's own, and their text.

mod http;
mod nuttcp;
mod tcpkali;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::wrk::Program;
use brunt_dropin::{Ending, tool_named};
use brunt_engine::PrepareError;
use brunt_io::cpu::usable_cpus;
use brunt_io::files::{self, FileError};
use brunt_load::Plan;

use crate::output::Destination;
use crate::request::BODY_BYTES_MAX;
use crate::run::{Job, Pipeline};
use crate::session::is_interrupt;
use crate::{exit, message, redact};

/// The variable that names a file for brunt's own record of the run.
const REPORT_VARIABLE: &str = "BRUNT_REPORT";
/// What the peers exit with when something is wrong before the load.
const EXIT_FAILED: u8 = 1;

/// The tool in whose place brunt is called.
#[derive(Debug)]
pub(crate) struct Called {
    /// One of the names that brunt knows.
    tool: &'static str,
    /// The name that the tool was called by, for messages.
    name: String,
    /// What follows the name.
    words: Vec<OsString>,
}

impl Called {
    /// The tool whose name this process was called by, or whose name is its first argument. Absent
    /// for brunt itself.
    pub(crate) fn here() -> Option<Self> {
        Self::of(std::env::args_os())
    }

    fn of(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let path = arguments.next()?;
        let by_name = Path::new(&path).file_name().and_then(|name| name.to_str());
        let (tool, name) = match by_name.and_then(tool_named) {
            Some(tool) => (tool, path.to_string_lossy().into_owned()),
            None => {
                let word = arguments.next()?;
                let word = word.to_str()?;
                (tool_named(word)?, word.to_owned())
            }
        };
        Some(Self {
            tool,
            name,
            words: arguments.collect(),
        })
    }
}

impl Called {
    /// The command line as a report may show it: without what may be secret, as a command of brunt.
    fn shown(&self) -> Option<Vec<String>> {
        let words = self
            .words
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.collect();
        let words = match self.tool {
            "ab" => brunt_dropin::ab::table().shown(&words),
            "weighttp" => brunt_dropin::weighttp::table().shown(&words),
            "h2load" => brunt_dropin::h2load::table().shown(&words),
            "httperf" => brunt_dropin::httperf::table().shown(&words),
            "nuttcp" => brunt_dropin::nuttcp::table().shown(&words),
            "tcpkali" => brunt_dropin::tcpkali::table().shown(&words),
            "oha" => brunt_dropin::oha::table().shown(&words),
            _ => brunt_dropin::wrk::table().shown(&words),
        };
        let name = self.name.rsplit('/').next().unwrap_or_default();
        let head = ["brunt", name].map(str::to_owned);
        redact::if_short(head.into_iter().chain(words).collect())
    }
}

/// Runs the command line of the other tool, and ends as it does.
pub(crate) fn run(called: &Called) -> ExitCode {
    let outcome = words(called).and_then(|words| match called.tool {
        "ab" => http::ab(&called.name, &words),
        "weighttp" => http::weighttp(&words),
        "h2load" => http::h2load(&words),
        "httperf" => http::httperf(&called.name, &words),
        "nuttcp" => nuttcp::run(&words),
        "tcpkali" => tcpkali::run(&called.name, &words),
        "oha" => http::oha(&words),
        "wrk2" => http::wrk(Program::Wrk2, &called.name, &words),
        _ => http::wrk(Program::Wrk, &called.name, &words),
    });
    let code = outcome.unwrap_or_else(|error| fail(&error));
    // The other tools do not look.
    if called.tool == "oha" && message::has_output_failed() {
        ExitCode::from(EXIT_FAILED)
    } else {
        code
    }
}

fn words(called: &Called) -> Result<Vec<String>> {
    let words = called.words.iter().map(|word| {
        let text = word.to_str().map(str::to_owned);
        text.with_context(|| format!("{word:?} is not in UTF-8"))
    });
    words.collect()
}

fn fail(error: &anyhow::Error) -> ExitCode {
    if let Some(ending) = error.downcast_ref::<Ending>() {
        print(&ending.stdout);
        message::print_lines(&ending.stderr);
        return ExitCode::from(ending.code);
    }
    message::print(&format_args!("{error:#}"));
    ExitCode::from(if is_interrupt(error) {
        exit::INTERRUPTED
    } else {
        EXIT_FAILED
    })
}

/// Opens brunt's own outputs: the file that the command line names for the record of the run, or
/// else the variable.
fn open_outputs(typed: Option<&Path>) -> Result<Pipeline> {
    let variable = std::env::var_os(REPORT_VARIABLE).filter(|name| !name.is_empty());
    let variable = variable.map(PathBuf::from);
    let path = typed.or(variable.as_deref());
    Pipeline::open(Destination::beside_other_text(path)?)
}

/// The run of `plan`, called as this process was.
fn job(plan: Plan) -> Job {
    let command = Called::here().and_then(|called| called.shown());
    Job::new(plan, command)
}

/// Why the run could not be made, in the words of the tool where it has any for a failed
/// preparation.
fn failed(
    error: anyhow::Error,
    ending: impl FnOnce(&PrepareError) -> Option<Ending>,
) -> anyhow::Error {
    let ending = error.downcast_ref().and_then(ending);
    ending.map_or(error, anyhow::Error::from)
}

/// The CPUs that this process may use.
fn cpus() -> NonZeroU32 {
    NonZeroU32::new(usable_cpus()).unwrap_or(NonZeroU32::MIN)
}

/// The bytes of the file that the command line names by `option`, if any; `unread` is how it ends
/// where the file cannot be read.
fn read_file(
    option: &str,
    path: Option<&Path>,
    unread: impl Fn(&Path, &std::io::Error) -> Ending,
) -> Result<Option<Vec<u8>>> {
    let Some(path) = path else {
        return Ok(None);
    };
    match files::read_file(path, BODY_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FileError::Input(error)) => Err(unread(path, &error).into()),
        Err(error) => bail!("{option} {}: {error}; give a shorter one", path.display()),
    }
}

/// Prints to standard output at once, with what servers and arguments gave made inert.
fn print(text: &str) {
    // What a script has printed comes first.
    brunt_script::flush_script_output();
    message::output(&brunt_report::lines(text));
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
            ("/opt/weighttp -n 1", Some("/opt/weighttp [-n,1]")),
            ("target/debug/brunt wrk2", Some("wrk2 []")),
            ("httperf --hog", Some("httperf [--hog]")),
            ("/bin/tcpkali -c1", Some("/bin/tcpkali [-c1]")),
            ("brunt oha -c1 u", Some("oha [-c1,u]")),
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
