//! `-s`: a script makes the requests, looks at the responses, and has the last word.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::wrk::{self, Scripted};
use brunt_engine::{RunError, RunObserver};
use brunt_fleet::{ProgramError, ScriptText};
use brunt_io::files::read_file;
use brunt_io::{clock, threads};
use brunt_load::{Plan, RequestRef};
use brunt_record::{GENERATED_NAMES_MAX, RequestLog, Run};
use brunt_script::{
    Called, Flavour, Script, ScriptError, ScriptOptions, ScriptTarget, flush_script_output,
};

use crate::args::LoadArguments;
use crate::last_calls::{CallError, LastCalls};
use crate::output::Destination;
use crate::plan::{refuse_useless_seed, set_workers};
use crate::progress::Line;
use crate::run::{FrontEnd, Job, Pipeline};
use crate::signals::Interrupts;
use crate::{EXIT_SETUP, last_calls, message};

/// A script is ready after so long.
const READY_NS: u64 = 30_000_000_000;

/// The largest script that is sent to agents.
const TEXT_BYTES_MAX: u64 = 8 << 20;

/// Loads a script, which may take so long; absent: `is_over` said that nobody wants it.
fn loaded(
    options: ScriptOptions,
    limit_ns: u64,
    mut is_over: impl FnMut() -> bool,
) -> Result<Option<Script>, ScriptError> {
    let called = Called::default();
    let calling = called.clone();
    let name = options.path.display().to_string();
    let until_ns = clock::now_ns().saturating_add(limit_ns);
    let body = move || Script::load(&options, &calling);
    let mut is_late = false;
    let is_cancelled = || {
        is_late = clock::now_ns() >= until_ns;
        is_late || is_over()
    };
    let script = threads::run_unless("brunt-script", body, is_cancelled);
    let script = script.map_err(|error| ScriptError::Thread(error.to_string()))?;
    let script = script.transpose()?;
    if script.is_none() && is_late {
        return Err(ScriptError::Late {
            name,
            limit_ns,
            called: called.name(),
        });
    }
    Ok(script)
}

/// Loads a script in place of a tool that sets it no limit.
pub(crate) fn of_drop_in(options: &ScriptOptions) -> Result<Script, ScriptError> {
    let script = loaded(options.clone(), READY_NS, || false)?;
    script.ok_or_else(|| ScriptError::Thread("it ended".to_owned()))
}

/// Makes a script ready, and fits `plan` to its requests; a signal ends that.
fn ready(options: ScriptOptions, plan: &mut Plan, interrupts: &Interrupts) -> Result<Scripted> {
    let script = loaded(options, READY_NS, || interrupts.came())?;
    fitted(script.ok_or(RunError::Interrupted)?, plan)
}

fn fitted(script: Script, plan: &mut Plan) -> Result<Scripted> {
    Scripted::fit(script, plan).context("what the script's function `request` gives cannot be sent")
}

/// Scripts of other load generators are JavaScript: what Lua says of them helps nobody.
fn check_language(path: &Path) -> Result<()> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| ["js", "mjs", "ts"].contains(&ending)) {
        bail!(
            "{} is JavaScript by its name, and scripts are in Lua, as wrk runs them: see \
             docs/scripts.md",
            path.display()
        );
    }
    Ok(())
}

/// A script for the agents of a fleet, to the requests of which `plan` is fitted.
pub(crate) fn of_fleet(
    arguments: &LoadArguments,
    path: &Path,
    plan: &mut Plan,
    interrupts: &Interrupts,
) -> Result<ScriptText> {
    check_language(path)?;
    let text = read_file(path, TEXT_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let script = script_text(arguments, path, plan, text)?;
    // Which agents there are is not known yet: one thread shows what the requests are.
    let options = options_of(&script, NonZeroU32::MIN)?;
    let scripted = ready(options, plan, interrupts)?;
    flush_script_output();
    match scripted.script().last_call() {
        Some(function) => Err(ProgramError::LastCall(function).into()),
        None => Ok(script),
    }
}

/// A script, with the settings of `plan` that it may read.
fn script_text(
    arguments: &LoadArguments,
    path: &Path,
    plan: &Plan,
    text: Vec<u8>,
) -> Result<ScriptText> {
    let url = arguments.url.clone().context("a script needs a URL")?;
    let request = plan.requests.first().map(RequestRef::to_spec);
    let request = request.context("a script needs a request")?;
    Ok(ScriptText {
        name: path.display().to_string(),
        text,
        url,
        method: request.method,
        body: request.body,
        headers: request.headers,
        arguments: arguments.behind_url.clone(),
    })
}

/// Loads a script that came with `plan`, with the threads of all its workers; absent: `is_over`.
pub(crate) fn of_agent(
    script: &ScriptText,
    plan: &Plan,
    is_over: impl FnMut() -> bool,
) -> Result<Option<Scripted>> {
    let options = options_of(script, plan.workers)?;
    let script = loaded(options, READY_NS, is_over)?;
    // The plan was fitted already.
    let fitted = script.map(|script| fitted(script, &mut plan.clone()));
    fitted.transpose()
}

fn options_of(script: &ScriptText, workers: NonZeroU32) -> Result<ScriptOptions> {
    let url = &script.url;
    let target = ScriptTarget::from_url(url);
    let target = target
        .with_context(|| format!("`{url}` is not a URL; write it as http[s]://HOST[:PORT]/PATH"))?;
    Ok(ScriptOptions {
        path: script.name.clone().into(),
        text: Some(script.text.clone()),
        target,
        is_resolved: true,
        method: Some(script.method.clone()),
        body: Some(script.body.clone()).filter(|body| !body.is_empty()),
        headers: script.headers.clone(),
        arguments: script.arguments.clone(),
        workers: workers.get() as usize,
        flavour: Flavour::Wrk,
        names_max: GENERATED_NAMES_MAX,
    })
}

/// Runs the load of a script, by the plan that was typed.
pub(crate) fn run(arguments: &LoadArguments, path: &Path, mut plan: Plan) -> Result<ExitCode> {
    refuse_useless_seed(arguments, false)?;
    check_language(path)?;
    let pipeline = Pipeline::open(Destination::open(&arguments.output)?)?;
    // A thread of the script has variables of its own: how many there are is not left to chance.
    set_workers(&mut plan, arguments, |_| NonZeroU32::MIN);
    let script = script_text(arguments, path, &plan, Vec::new())?;
    let options = ScriptOptions {
        path: path.to_owned(),
        text: None,
        is_resolved: plan.target.unix_socket.is_none(),
        ..options_of(&script, plan.workers)?
    };
    let script = ready(options, &mut plan, &pipeline.interrupts)?;
    let mut script = LastCalls::new(script, &pipeline.interrupts);
    // What was printed until now comes before the load.
    script.flush();
    let generators = script.generators()?;
    let (job, line) = Job::typed(arguments, plan)?;
    let mut scripted = ScriptedRun {
        line,
        script,
        torn_down: Ok(()),
    };
    pipeline.run(Job { generators, ..job }, &mut scripted)
}

/// The script of a run, which is called when the load is over.
struct ScriptedRun {
    line: Line,
    script: LastCalls,
    torn_down: Result<(), CallError>,
}

impl FrontEnd for ScriptedRun {
    fn observer(&mut self) -> Option<&mut dyn RunObserver> {
        self.line.observer()
    }

    fn end(&mut self, run: Option<&Run>) {
        self.line.end(run);
    }

    fn report(&mut self, _run: &Run, _log: &RequestLog) -> Result<()> {
        self.torn_down = self.script.tear_down();
        // What was printed until now comes before the report.
        self.script.flush();
        Ok(())
    }

    fn exit_code(&mut self, run: &Run, usual: ExitCode) -> Result<ExitCode> {
        let done = self.script.done(run);
        self.script.flush();
        if let Some(error) = wrk::script_error(run) {
            message::print_of_script(&error);
            return Ok(ExitCode::from(EXIT_SETUP));
        }
        let torn_down = std::mem::replace(&mut self.torn_down, Ok(()));
        last_calls::exit_code(torn_down.and(done), usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_is_never_ready_is_given_up() {
        let script = ScriptText {
            name: "loop.lua".to_owned(),
            text: b"function init() while true do end end".to_vec(),
            url: "http://127.0.0.1:1/".to_owned(),
            method: "GET".to_owned(),
            body: Vec::new(),
            headers: Vec::new(),
            arguments: Vec::new(),
        };
        let options = ScriptOptions {
            // Nobody listens there.
            is_resolved: false,
            ..options_of(&script, NonZeroU32::MIN).expect("options")
        };
        let refused = loaded(options, 100_000_000, || false).err();
        let error = refused.expect("it takes too long").to_string();
        assert!(error.contains("was not ready after 0.1 s"), "{error}");
        assert!(error.contains("function `init`"), "{error}");
    }
}
