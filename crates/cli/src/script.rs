//! `-s`: a script makes the requests, looks at the responses, and has the last word.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::wrk::{self, Scripted};
use brunt_engine::RunError;
use brunt_io::{clock, threads};
use brunt_judge::Judged;
use brunt_load::{BackendChoice, Plan, Round, Target};
use brunt_record::{GENERATED_NAMES_MAX, RequestLog, Run};
use brunt_script::{Flavour, Script, ScriptOptions, ScriptTarget};

use crate::args::LoadArguments;
use crate::habits;
use crate::last_calls::{CallError, LastCalls};
use crate::load::{complete, without_report};
use crate::output::Destination;
use crate::plan::Load;
use crate::progress::Line;
use crate::request_log::{Keeping, NamedLog};
use crate::session::Wanted;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, EXIT_SETUP, message};

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

/// A run, and the script that made its requests.
struct Measured {
    run: Run,
    /// Absent where none was asked for.
    log: Option<RequestLog>,
    script: LastCalls,
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
    let script = ready(
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
            names_max: GENERATED_NAMES_MAX,
        },
        &mut plan,
        interrupts,
    )?;
    let mut script = LastCalls::new(script, interrupts);
    // What was printed until now comes before the load.
    script.flush();

    let mut line = Line::new(&arguments.output, &plan);
    let round = Round::of(&plan);
    let mut keeping = Keeping {
        shown: &mut line,
        log: None,
    };
    let outcome =
        interrupts.in_generated_session(plan, script.generators()?, Wanted::Part, |session| {
            Ok(session.round(&round, &mut keeping)?)
        });
    let log = keeping.log;
    line.clear();
    let mut run = outcome?;
    complete(&mut run, arguments);
    Ok(Measured { run, log, script })
}

fn report(measured: Measured, mut destination: Destination) -> Result<ExitCode> {
    let Measured {
        run,
        log,
        mut script,
    } = measured;
    destination.keep_log(log.map(NamedLog::of_script));
    let torn_down = script.tear_down();
    // What was printed until now comes before the report.
    script.flush();
    let code = destination.write(&Judged::of(&run))?;
    let done = script.done(&run);
    script.flush();
    if let Some(error) = wrk::script_error(&run) {
        message::print_of_script(&error);
        return Ok(ExitCode::from(EXIT_SETUP));
    }
    match torn_down.and(done) {
        Ok(()) => {}
        Err(error @ CallError::Signal { .. }) => {
            message::print(&error);
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(if run.interrupted() {
        ExitCode::from(EXIT_INTERRUPTED)
    } else {
        code
    })
}
