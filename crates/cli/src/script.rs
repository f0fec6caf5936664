//! `-s`: a script makes the requests, looks at the responses, and has the last word. Its calls
//! beyond the load end in time, and with the next signal.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use brunt_dropin::wrk::{self, Scripted};
use brunt_engine::RunError;
use brunt_fleet::{ProgramError, ScriptText};
use brunt_io::files::read_file;
use brunt_io::{clock, threads};
use brunt_load::{Interrupt, Plan, RequestGenerator, RequestRef};
use brunt_record::{GENERATED_NAMES_MAX, Run};
use brunt_script::{
    Called, Flavour, Script, ScriptError, ScriptOptions, ScriptTarget, flush_script_output,
};
use thiserror::Error;

use crate::args::LoadArguments;
use crate::output::{Destination, NOT_OF_RUN};
use crate::plan::{refuse_useless_seed, set_workers};
use crate::run::{Job, Pipeline};
use crate::session::Interrupts;
use crate::{exit, message};

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
    let request = plan.traffic.requests.first().map(RequestRef::to_spec);
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
    let options = options_of(script, plan.workers.count)?;
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
    let pipeline = Pipeline::open(Destination::open(&arguments.output, NOT_OF_RUN)?)?;
    // A thread of the script has variables of its own: how many there are is not left to chance.
    set_workers(&mut plan, arguments, |_| NonZeroU32::MIN);
    let script = script_text(arguments, path, &plan, Vec::new())?;
    let options = ScriptOptions {
        path: path.to_owned(),
        text: None,
        is_resolved: plan.target.unix_socket.is_none(),
        ..options_of(&script, plan.workers.count)?
    };
    let script = ready(options, &mut plan, &pipeline.interrupts)?;
    let mut script = LastCalls::new(script, &pipeline.interrupts);
    // What was printed until now comes before the load.
    script.flush();
    let generators = script.generators()?;
    let (job, mut line) = Job::typed(arguments, plan)?;
    let measured = pipeline.measure(job.generated(generators), || (), Some(&mut line));
    line.clear();
    let mut measured = measured?;
    let torn_down = script.tear_down();
    // What was printed until now comes before the report.
    script.flush();
    let code = measured.write(Ok(()))?;
    let done = script.done(&measured.run);
    script.flush();
    if let Some(error) = wrk::script_error(&measured.run) {
        message::print_of_script(&error);
        return Ok(ExitCode::from(exit::SETUP));
    }
    exit_code(torn_down.and(done), code)
}

/// A call lasts so long at most.
const LIMIT_NS: u64 = 30_000_000_000;
/// A call that was interrupted, and does not return for so long, is in what Lua cannot end: a
/// finalizer, or a function of the system.
const GRACE_NS: u64 = 1_000_000_000;

/// A signal ended a call beyond the load.
#[derive(Debug, Error)]
#[error("the script's {0} had not returned when a signal came, and was ended")]
struct EndedBySignal(&'static str);

/// What a command exits with after calls that ended so; `usual` where they returned.
///
/// # Errors
///
/// Why a call came to nothing, unless a signal ended it: that is a message.
pub(crate) fn exit_code(calls: Result<()>, usual: ExitCode) -> Result<ExitCode> {
    match calls {
        Err(error) if error.is::<EndedBySignal>() => {
            message::print(&error);
            Ok(ExitCode::from(exit::INTERRUPTED))
        }
        calls => calls.map(|()| usual),
    }
}

/// A script whose load is over, or is yet to come.
#[derive(Debug)]
pub(crate) struct LastCalls {
    /// The script; absent once a call did not return.
    script: Option<Scripted>,
    interrupts: Interrupts,
}

impl LastCalls {
    /// For a script that is ready.
    pub(crate) fn new(script: Scripted, interrupts: &Interrupts) -> Self {
        Self {
            script: Some(script),
            interrupts: interrupts.clone(),
        }
    }

    /// What makes the requests of each worker; none where they are those of the plan.
    pub(crate) fn generators(&mut self) -> Result<Vec<Box<dyn RequestGenerator>>, ScriptError> {
        let generators = self.script.as_mut().map(Scripted::generators);
        generators.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Calls what forks of wrk call in each thread when the load is over.
    pub(crate) fn tear_down(&mut self) -> Result<()> {
        self.call("teardown()", Scripted::tear_down)
    }

    /// Calls `done` with the outcome of `run`.
    pub(crate) fn done(&mut self, run: &Run) -> Result<()> {
        let outcome = wrk::outcome(run);
        self.call("done()", |script| script.done(outcome))
    }

    /// Writes out what the script has printed so far, unless a call of it may still be printing.
    pub(crate) fn flush(&self) {
        if self.script.is_some() {
            flush_script_output();
        }
    }

    /// Makes a call in a thread of its own, which is left behind where nothing ends it.
    fn call(
        &mut self,
        function: &'static str,
        body: impl FnOnce(&mut Scripted) -> Result<(), ScriptError> + Send + 'static,
    ) -> Result<()> {
        let Some(mut script) = self.script.take() else {
            return Ok(());
        };
        let mut watch = Watch::new(&self.interrupts, script.interrupter());
        let body = move || {
            let outcome = body(&mut script);
            (script, outcome)
        };
        let called = threads::run_unless("brunt-script", body, || watch.is_over());
        let called =
            called.with_context(|| format!("cannot start a thread for the script's {function}"))?;
        let outcome = called.map(|(script, outcome)| {
            self.script = Some(script);
            outcome
        });
        match (outcome, watch.ending(function)) {
            (Some(Ok(())), _) => Ok(()),
            (Some(Err(error)), None) => Err(error.into()),
            (_, Some(ending)) => Err(ending),
            // Not reached: nobody else ends the wait.
            (None, None) => Ok(()),
        }
    }
}

impl Drop for LastCalls {
    fn drop(&mut self) {
        let Some(script) = self.script.take() else {
            return;
        };
        // Its states run their finalizers.
        let function = "finalizer (__gc)";
        let mut watch = Watch::new(&self.interrupts, script.interrupter());
        let ended = threads::run_unless("brunt-script", || drop(script), || watch.is_over());
        if let (Ok(None), Some(ending)) = (ended, watch.ending(function)) {
            message::print(&ending);
        }
    }
}

/// Looks on while a call lasts, and ends it.
#[derive(Debug)]
struct Watch {
    interrupts: Interrupts,
    /// Signals that had come when it began.
    signals: u32,
    until_ns: u64,
    interrupt: Arc<dyn Interrupt>,
    /// When it was ended, and whether a signal was why.
    ended: Option<(u64, bool)>,
}

impl Watch {
    fn new(interrupts: &Interrupts, interrupt: Arc<dyn Interrupt>) -> Self {
        Self {
            interrupts: interrupts.clone(),
            signals: interrupts.count(),
            until_ns: clock::now_ns().saturating_add(LIMIT_NS),
            interrupt,
            ended: None,
        }
    }

    /// Ends the call when its time is up; whether it is to be left behind.
    fn is_over(&mut self) -> bool {
        self.is_over_at(clock::now_ns())
    }

    fn is_over_at(&mut self, now_ns: u64) -> bool {
        let by_signal = self.interrupts.count() > self.signals;
        if by_signal || now_ns >= self.until_ns {
            self.ended.get_or_insert((now_ns, by_signal));
        }
        let Some((ended_ns, _)) = self.ended else {
            return false;
        };
        // Each time: a script with several states goes on with the next of them.
        self.interrupt.interrupt();
        now_ns >= ended_ns.saturating_add(GRACE_NS)
    }

    /// What ended the call, if it did not end by itself.
    fn ending(&self, function: &'static str) -> Option<anyhow::Error> {
        let (_, by_signal) = self.ended?;
        if by_signal {
            return Some(EndedBySignal(function).into());
        }
        let limit_s = LIMIT_NS / 1_000_000_000;
        Some(anyhow!(
            "the script's {function} did not return within {limit_s} s and was ended"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

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

    #[derive(Debug, Default)]
    struct Counted(AtomicU32);

    impl Interrupt for Counted {
        fn interrupt(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A call that begins at 0, when so many signals have come: what ends it, and when it is
    /// interrupted and left behind, in milliseconds.
    fn watched(before: u32, signal_ms: Option<u64>) -> (String, u64, u64) {
        const MS: u64 = 1_000_000;
        let interrupts = Interrupts::of(before);
        let interrupt = Arc::new(Counted::default());
        let mut watch = Watch::new(&interrupts, interrupt.clone());
        watch.until_ns = LIMIT_NS;
        let mut interrupted_ms = None;
        for now_ms in (0..).step_by(10) {
            if signal_ms == Some(now_ms) {
                interrupts.add();
            }
            let is_over = watch.is_over_at(now_ms * MS);
            if interrupt.0.load(Ordering::Relaxed) > 0 {
                interrupted_ms.get_or_insert(now_ms);
            }
            if is_over {
                let ending = watch.ending("done()").expect("it has ended");
                let interrupted_ms = interrupted_ms.expect("it was interrupted");
                return (ending.to_string(), interrupted_ms, now_ms);
            }
        }
        unreachable!("it ends");
    }

    #[test]
    fn calls_end_in_time_and_with_the_next_signal() {
        let late = "the script's done() did not return within 30 s and was ended";
        let signalled = "the script's done() had not returned when a signal came, and was ended";
        assert_eq!(watched(0, None), (late.to_owned(), 30_000, 31_000));
        assert_eq!(watched(0, Some(70)), (signalled.to_owned(), 70, 1_070));
        assert_eq!(watched(1, Some(70)), (signalled.to_owned(), 70, 1_070));
    }
}
