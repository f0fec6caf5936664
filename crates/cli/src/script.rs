//! `-s`: a script makes the requests, looks at the responses, and has the last word.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::wrk;
use brunt_engine::{RunError, verbatim_requests};
use brunt_io::{clock, threads};
use brunt_load::{BackendChoice, HttpChoice, Plan, RequestGenerator, RequestSet, Round, Target};
use brunt_measure::{Judged, Run};
use brunt_script::{Flavour, Script, ScriptOptions, ScriptTarget, flush_script_output};

use crate::args::LoadArguments;
use crate::habits;
use crate::load::{complete, without_report};
use crate::output::Destination;
use crate::plan::Load;
use crate::progress::Line;
use crate::session::Wanted;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, EXIT_SETUP, message};

/// Longer texts do not stand for the requests of a script.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// A script that is ready for a run.
#[derive(Debug)]
struct Loaded {
    script: Script,
    /// Whether Lua is asked for requests or told of responses.
    is_asked: bool,
}

impl Loaded {
    /// Loads a script, which may take as long as set-up, and fits `plan` to its requests; a
    /// signal ends that.
    fn new(options: ScriptOptions, plan: &mut Plan, interrupts: &Interrupts) -> Result<Self> {
        let name = options.path.display().to_string();
        let limit_ns = plan.setup_timeout_ns;
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
        let requests = verbatim_requests(script.first_request())
            .context("what the script's function `request` gives cannot be sent")?;
        let depth = u32::try_from(requests.len()).ok().and_then(NonZeroU32::new);
        plan.pipeline = depth.unwrap_or(NonZeroU32::MIN);
        // What a script makes is the text of HTTP/1.1.
        plan.http = HttpChoice::Http1;
        let is_asked = script.constant_request().is_none() || requests.len() != 1;
        // Where Lua is asked for each request, the first one stands for them in reports. It is kept
        // as often as it may be in flight, so it is not to be long then.
        let bytes = script.first_request().len().saturating_mul(requests.len());
        if let Some(first) = requests.into_iter().next()
            && (!is_asked || bytes <= SHOWN_BYTES_MAX)
        {
            plan.requests = RequestSet::one(first);
        }
        Ok(Self { script, is_asked })
    }

    /// What makes the requests of each worker; none where they are those of the plan.
    fn generators(&mut self) -> Result<Vec<Box<dyn RequestGenerator>>> {
        let mut generators = self.script.generators()?;
        // A script may send the same request to other addresses.
        let is_elsewhere = generators.iter().any(|one| one.address().is_some());
        if !self.is_asked && !is_elsewhere {
            generators.clear();
        }
        Ok(generators)
    }

    /// The run is over, and nothing of it is reported yet.
    fn tear_down(&mut self) -> Result<()> {
        let torn_down = self.script.teardown();
        // What was printed until now comes before the report.
        flush_script_output();
        Ok(torn_down?)
    }

    /// The report is written.
    fn done(&mut self, run: &Run) -> Result<()> {
        // A reader that went away is no error.
        let _ = io::stdout().flush();
        let done = self.script.done(wrk::outcome(run));
        flush_script_output();
        Ok(done?)
    }
}

/// What a run with a script came to.
struct Measured {
    run: Run,
    script: Loaded,
}

/// Runs the load of a script.
pub(crate) fn run(arguments: &LoadArguments, path: &Path) -> Result<ExitCode> {
    let url = habits::only_url(arguments)?.context("a script needs a URL")?;
    let target = Target::parse(url, arguments.unix_socket.clone())?;
    let load = Load::new(arguments, Some(&target))?;
    let destination = Destination::open(&arguments.output)?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    match measure(arguments, path, target, load, &interrupts) {
        Ok(measured) => report(measured, destination),
        Err(error) => without_report(destination, error),
    }
}

fn measure(
    arguments: &LoadArguments,
    path: &Path,
    target: Target,
    load: Load,
    interrupts: &Interrupts,
) -> Result<Measured> {
    let url = arguments.url.as_deref().unwrap_or_default();
    let of_script = ScriptTarget::from_url(url)
        .with_context(|| format!("`{url}` is no URL; write it as http[s]://HOST[:PORT]/PATH"))?;
    let request = load.request().clone();
    // A thread of the script has variables of its own: how many there are is not left to chance.
    let mut plan: Plan = load.plan(arguments, target, NonZeroU32::MIN, None);
    let has_network = plan.target.unix_socket.is_none() && plan.backend != BackendChoice::Sim;
    let mut script = Loaded::new(
        ScriptOptions {
            path: path.to_owned(),
            target: of_script,
            is_resolved: has_network,
            method: Some(request.method),
            body: (!request.body.is_empty()).then_some(request.body),
            headers: request.headers,
            arguments: arguments.behind_url.clone(),
            workers: plan.workers.get() as usize,
            flavour: Flavour::Wrk,
        },
        &mut plan,
        interrupts,
    )?;
    // What was printed until now comes before the load.
    flush_script_output();

    let mut line = Line::new(arguments.output.quiet, &plan);
    let round = Round::of(&plan);
    let outcome =
        interrupts.in_generated_session(plan, script.generators()?, Wanted::Part, |session| {
            Ok(session.round(&round, &mut line)?)
        });
    line.clear();
    let mut run = outcome?;
    complete(&mut run, arguments);
    Ok(Measured { run, script })
}

fn report(measured: Measured, destination: Destination) -> Result<ExitCode> {
    let Measured { run, mut script } = measured;
    let torn_down = script.tear_down();
    let code = destination.write(&Judged::of(&run))?;
    let done = script.done(&run);
    if let Some(error) = wrk::script_error(&run) {
        message::print(&error);
        return Ok(ExitCode::from(EXIT_SETUP));
    }
    torn_down.and(done)?;
    Ok(if run.interrupted() {
        ExitCode::from(EXIT_INTERRUPTED)
    } else {
        code
    })
}
