//! `brunt fleet`: one load made by several agents, and one report of it; and `brunt agent`, which
//! makes its part of the rounds that a coordinator asks for.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::wrk;
use brunt_engine::Origin;
use brunt_fleet::{
    AgentHost, AgentResult, Generators, Host, NamedBroker, Program, Service, merged,
};
use brunt_judge::Judged;
use brunt_load::{Part, Plan};
use brunt_record::Run;

use crate::args::{LoadArguments, OutputArguments};
use crate::commands::{AgentArguments, FleetArguments, FleetCommand};
use crate::executor::{self, AskedFleet, gather};
use crate::output::{Destination, NOT_OF_RUN, is_standard};
use crate::plan::{self, set_workers};
use crate::progress::Line;
use crate::redact::{self, redact};
use crate::refusals::{self, Given};
use crate::session::{Interrupts, Second, of_part};
use crate::{exit, habits, message, objectives, script, sessions};

/// What files are called where no report goes to a file.
const NAME: &str = "brunt-fleet";
/// Files of one name that are looked past, for what is there is not overwritten.
const NAMES_MAX: u32 = 1_000;

/// Makes the load, and prints the report.
pub(crate) fn run(arguments: FleetArguments, given: &Given) -> Result<ExitCode> {
    given.refuse(&[refusals::FLEET])?;
    match arguments.command {
        Some(FleetCommand::Tcp(tcp)) => {
            let plan = plan::of_tcp(&tcp.command, given)?;
            make((&tcp.agents, &tcp.broker), &tcp.command.load, plan)
        }
        Some(FleetCommand::Sweep(sweep)) => {
            executor::sweep(sweep.command, given, Some((&sweep.agents, &sweep.broker)))
        }
        Some(FleetCommand::Find(find)) => {
            executor::find(find.command, given, Some((&find.agents, &find.broker)))
        }
        None => {
            let typed = &arguments.typed.load;
            let url = habits::only_url(typed)?;
            if !typed.has_server() {
                bail!("give the URL of the server: agents have none of their own");
            }
            let plan = arguments.typed.typed(given).plan(url)?;
            make((&arguments.agents, &arguments.broker), typed, plan)
        }
    }
}

/// Makes the load of `plan`, whose workers are as many as the agents have.
fn make(asked: AskedFleet<'_>, typed: &LoadArguments, mut plan: Plan) -> Result<ExitCode> {
    let mut destination = Destination::open(&typed.output, NOT_OF_RUN)?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    let program = match (&typed.script, &typed.sessions) {
        (Some(path), _) => {
            let script = script::of_fleet(typed, path, &mut plan, &interrupts)?;
            Some(Program::Script(script))
        }
        (None, Some(path)) => {
            let sessions = sessions::of_fleet(typed, path, &mut plan)?;
            Some(Program::Sessions(sessions))
        }
        (None, None) => None,
    };
    let mut agents = gather(asked, typed, &plan.target, &interrupts)?;
    set_workers(&mut plan, typed, |model| agents.workers(model));
    // It was that of a state for the script, and of one thread.
    plan.workers.held_beside_bytes =
        plan.workers.held_beside_bytes / 2 * (u64::from(plan.workers.count.get()) + 1);
    let mut line = Line::new(&typed.output, &plan);
    let outcome = agents.measure(&plan, program.as_ref(), false, &mut line);
    line.clear();
    drop(agents);
    let outcome = outcome?;
    let was_interrupted = outcome.was_interrupted;
    let mut run = match merged(&plan, &outcome) {
        Ok(run) => run,
        Err(error) => {
            // What was measured is not lost for that.
            message::print(&format_args!("{error:#}"));
            keep(&outcome.results, &typed.output)?;
            return Ok(ExitCode::from(exit::INVALID));
        }
    };
    if let Some(first) = run.agents.first_mut() {
        // The agents were called without a load: this is how to make it again.
        first.command = redact::here();
    }
    if let Some(asked) = objectives::asked(&typed.output.objective) {
        run.objectives = asked;
    }
    if typed.output.redact {
        redact(&mut run);
    }
    let code = destination.write(&Judged::of(&run))?;
    Ok(exit::unless_interrupted(code, was_interrupted))
}

/// Stores what each agent measured, and says where it is.
fn keep(results: &[AgentResult], output: &OutputArguments) -> Result<()> {
    let beside = output.output.iter().find(|path| !is_standard(path));
    let mut outcome = Ok(());
    for (number, result) in (1..).zip(results) {
        let stored = bytes(result, output.redact).and_then(|bytes| {
            let path = store(beside.map(PathBuf::as_path), number, &bytes);
            path.with_context(|| format!("cannot store the result of agent {}", result.name))
        });
        match stored {
            Ok(path) => message::print(&format_args!(
                "what agent {} measured is in {}",
                result.name,
                path.display()
            )),
            // The others are to be kept all the same.
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    outcome
}

/// The result as it came; with `--redact`, without what may be secret.
fn bytes(result: &AgentResult, redacts: bool) -> Result<Vec<u8>> {
    if !redacts {
        return Ok(result.bytes.clone());
    }
    let name = &result.name;
    let read = brunt_report::read(&mut result.bytes.as_slice());
    let mut run = read.with_context(|| {
        format!("the result of agent {name} cannot be read, hence not stored without secrets")
    })?;
    redact(&mut run);
    Ok(serde_json::to_vec(&run)?)
}

/// Writes a file that was not there before, named after `beside`, and gives its path.
fn store(beside: Option<&Path>, number: u32, bytes: &[u8]) -> io::Result<PathBuf> {
    let beside = beside.unwrap_or(Path::new(NAME));
    let stem = beside.file_stem().unwrap_or(NAME.as_ref());
    let stem = stem.to_string_lossy();
    for again in 1..=NAMES_MAX {
        let name = match again {
            1 => format!("{stem}.agent-{number}.json"),
            _ => format!("{stem}.agent-{number}.{again}.json"),
        };
        let path = beside.with_file_name(name);
        match File::create_new(&path) {
            Ok(mut file) => return file.write_all(bytes).map(|()| path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Joins a job, and does its part.
pub(crate) fn serve(arguments: &AgentArguments) -> Result<ExitCode> {
    let named = arguments.broker.named()?;
    let NamedBroker { broker, job, .. } =
        named.context("name the broker, as in brunt agent --nats nats://127.0.0.1:4222")?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    let service = Service {
        broker,
        job,
        name: match &arguments.name {
            Some(name) => name.clone(),
            None => brunt_probe::machine::name(),
        },
        allowed: arguments.allow_target.clone(),
        allows_scripts: arguments.allow_scripts,
        wait_ns: arguments.wait,
        keep: arguments.keep.clone(),
    };
    let is_done = brunt_fleet::serve(&service, &interrupts)?;
    Ok(exit::unless_interrupted(ExitCode::SUCCESS, !is_done))
}

impl Host for Interrupts {
    fn say(&self, words: &dyn Display) {
        message::print(words);
    }

    fn signals(&self) -> u32 {
        self.count()
    }
}

impl AgentHost for Interrupts {
    fn settle(&self, plan: &Plan, ports: Option<u64>, is_over: &mut dyn FnMut() -> bool) -> bool {
        executor::settle(plan, ports, is_over)
    }

    fn generators(
        &self,
        program: &Program,
        plan: &Plan,
        part: Part,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Generators>> {
        let text = match program {
            Program::Script(text) => text,
            Program::Sessions(text) => {
                return Ok(Some(Generators {
                    generators: sessions::of_agent(text, plan, part.workers())?,
                    kept: None,
                }));
            }
        };
        let Some(mut script) = script::of_agent(text, plan, is_over)? else {
            return Ok(None);
        };
        Ok(Some(Generators {
            generators: of_part(script.generators()?, part),
            kept: Some(Box::new(script)),
        }))
    }

    fn complete(&self, run: &mut Run) -> Result<()> {
        if let Some(error) = wrk::script_error(run) {
            bail!("{error}");
        }
        let origin = Origin {
            command: redact::here(),
            objectives: Vec::new(),
        };
        brunt_engine::complete(run, &origin);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use brunt_load::Part;
    use clap::Parser;

    use super::*;
    use crate::commands::Arguments;

    const RUN: &[u8] = include_bytes!("../../report/tests/golden/complete.json");

    fn output(words: &str) -> OutputArguments {
        let words = ["brunt"].into_iter().chain(words.split_whitespace());
        let arguments = Arguments::try_parse_from(words).expect("they are good");
        arguments.load.output
    }

    fn result(name: &str, bytes: &[u8]) -> AgentResult {
        AgentResult {
            name: name.to_owned(),
            part: Part::new(0, NonZeroU32::MIN),
            bytes: bytes.to_vec(),
            clocks: None,
        }
    }

    #[test]
    fn each_result_has_a_file_beside_the_report_and_none_is_overwritten() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = |name: &str| directory.path().join(name);
        let typed = format!("-o - -o {}", place("run.v1.html").display());
        let results = [result("east", RUN), result("../../etc/south", b"no run")];
        for _ in 0..2 {
            keep(&results, &output(&typed)).expect("the directory is ours");
        }
        let mut names: Vec<_> = std::fs::read_dir(directory.path())
            .expect("it is there")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "run.v1.agent-1.2.json",
                "run.v1.agent-1.json",
                "run.v1.agent-2.2.json",
                "run.v1.agent-2.json"
            ]
        );
        let read = |name: &str| std::fs::read(place(name)).expect("it was written");
        assert_eq!(read("run.v1.agent-1.json"), RUN);
        assert_eq!(read("run.v1.agent-2.json"), b"no run");
    }

    #[test]
    fn what_may_be_secret_is_left_out_where_that_was_asked_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("run.json");
        let typed = format!("--redact -o {}", path.display());
        let results = [result("east", b"no run"), result("south", RUN)];
        let error = keep(&results, &output(&typed)).expect_err("the first is none");
        assert!(error.to_string().contains("agent east"), "{error:#}");
        assert!(!directory.path().join("run.agent-1.json").exists());
        let stored = std::fs::read(directory.path().join("run.agent-2.json"));
        let stored = stored.expect("the second is one");
        let run = brunt_report::read(&mut stored.as_slice()).expect("a run");
        let mut expected = brunt_report::read(&mut &*RUN).expect("a run");
        redact(&mut expected);
        assert_eq!(run.plan, expected.plan);
    }

    #[test]
    fn without_a_report_in_a_file_they_are_here() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let beside = directory.path().join(NAME);
        let path = store(Some(&beside), 3, b"it").expect("the directory is ours");
        let expected = "brunt-fleet.agent-3.json";
        assert_eq!(path.file_name(), Some(expected.as_ref()));
        let nowhere = directory.path().join("none").join(NAME);
        assert!(store(Some(&nowhere), 1, b"it").is_err());
    }
}
