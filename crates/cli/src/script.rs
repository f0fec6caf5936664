//! `-s`: a script makes the requests, looks at the responses, and has the last word.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::wrk::{self, Scripted};
use brunt_engine::{RunError, RunObserver};
use brunt_io::{clock, threads};
use brunt_load::{BackendChoice, Plan, Target};
use brunt_record::{GENERATED_NAMES_MAX, RequestLog, Run};
use brunt_script::{Flavour, Script, ScriptOptions, ScriptTarget};

use crate::args::LoadArguments;
use crate::habits;
use crate::last_calls::{CallError, LastCalls};
use crate::origin::Origin;
use crate::output::Destination;
use crate::plan::Load;
use crate::progress::Line;
use crate::run::{FrontEnd, Job, Pipeline};
use crate::signals::Interrupts;
use crate::{EXIT_SETUP, last_calls, message};

/// A script is ready after so long, where no limit of set-up was given.
const READY_NS: u64 = 30_000_000_000;

/// Makes a script ready, which may take as long as set-up, and fits `plan` to its requests; a
/// signal ends that.
fn ready(options: ScriptOptions, plan: &mut Plan, interrupts: &Interrupts) -> Result<Scripted> {
    let name = options.path.display().to_string();
    let limit_ns = plan.setup_timeout_ns.unwrap_or(READY_NS);
    let until_ns = clock::now_ns().saturating_add(limit_ns);
    let body = move || Script::load(&options);
    let is_over = || interrupts.came() || clock::now_ns() >= until_ns;
    let script =
        threads::run_unless("brunt-script", body, is_over).context("cannot start a thread")?;
    let script = match script {
        Some(script) => script?,
        None if interrupts.came() => return Err(RunError::Interrupted.into()),
        None => bail!(
            "{name} was not ready after {} s: a function of its set-up (or the first call of \
             request) takes so long; give it longer with --setup-timeout",
            limit_ns as f64 / 1e9
        ),
    };
    Scripted::fit(script, plan).context("what the script's function `request` gives cannot be sent")
}

/// Runs the load of a script.
pub(crate) fn run(arguments: &LoadArguments, path: &Path) -> Result<ExitCode> {
    let url = habits::only_url(arguments)?.context("a script needs a URL")?;
    let target = Target::parse(url, arguments.unix_socket.clone())?;
    let load = Load::new(arguments, Some(&target))?;
    let pipeline = Pipeline::open(Destination::open(&arguments.output)?)?;
    let of_script = ScriptTarget::from_url(url)
        .with_context(|| format!("`{url}` is no URL; write it as http[s]://HOST[:PORT]/PATH"))?;
    let request = load.request().clone();
    // A thread of the script has variables of its own: how many there are is not left to chance.
    let mut plan: Plan = load.plan(arguments, target, NonZeroU32::MIN, None);
    let has_network = plan.target.unix_socket.is_none() && plan.backend != BackendChoice::Sim;
    let options = ScriptOptions {
        path: path.to_owned(),
        target: of_script,
        is_resolved: has_network,
        method: Some(request.method),
        body: (!request.body.is_empty()).then_some(request.body),
        headers: request.headers,
        arguments: arguments.behind_url.clone(),
        workers: plan.workers.get() as usize,
        flavour: Flavour::Wrk,
        names_max: GENERATED_NAMES_MAX,
    };
    let script = ready(options, &mut plan, &pipeline.interrupts)?;
    let mut script = LastCalls::new(script, &pipeline.interrupts);
    // What was printed until now comes before the load.
    script.flush();
    let generators = script.generators()?;
    let mut scripted = ScriptedRun {
        line: Line::new(&arguments.output, &arguments.part.own(&plan)?),
        script,
        torn_down: Ok(()),
    };
    let job = Job {
        generators,
        part: arguments.part.of(&plan)?,
        ..Job::new(plan, Origin::new(&arguments.output))
    };
    pipeline.run(job, &mut scripted)
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
