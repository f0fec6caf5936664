//! `brunt agent`: makes its part of the rounds of load that a coordinator asks for.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use brunt_dropin::wrk::{self, Scripted};
use brunt_engine::{Control, Phase, Progress, Rounds, RunError, RunObserver};
use brunt_fleet::{AgentEvent, AgentLink, Assignment, Counts, Hello, Program, Stop, Version};
use brunt_io::cpu::usable_cpus;
use brunt_io::{clock, threads};
use brunt_load::{Part, Round};
use brunt_record::Run;

use crate::fleet_args::AgentArguments;
use crate::origin::Origin;
use crate::session::of_part;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, command_line, message, script, sessions, time_wait};
use Failure::{NotTaken, Unmade};

/// How often it is looked for signals while nothing else happens.
const LOOK: Duration = Duration::from_millis(50);
/// From one word about how far the run has come to the next, unless its phase changes.
const TOLD_NS: u64 = 200_000_000;
/// From now to an end of the window that all workers can know of.
const END_LEAD_NS: u64 = 60_000_000;

/// What both sides of a fleet must have in common.
pub(crate) fn version() -> Version {
    Version {
        protocol: Version::PROTOCOL,
        format: Run::FORMAT,
        brunt: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Joins a job, and does its part.
pub(crate) fn run(arguments: &AgentArguments) -> Result<ExitCode> {
    let url = arguments.broker.nats.as_deref();
    let url = url.context("name the broker, as in brunt agent --nats nats://127.0.0.1:4222")?;
    let broker = arguments.broker.broker(url)?;
    let job = arguments.broker.job()?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    let hello = Hello {
        version: version(),
        name: match &arguments.name {
            Some(name) => name.clone(),
            None => brunt_probe::machine::name(),
        },
        usable_cpus: usable_cpus(),
    };
    message::print(&format_args!(
        "agent {} waits for the coordinator of job {} at {url}",
        hello.name,
        job.name()
    ));
    let link = brunt_fleet::join(broker, job, hello, arguments.wait)?;
    let Some(first) = await_plan(&link, &interrupts)? else {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    let agent = Working {
        arguments,
        link: &link,
        interrupts: &interrupts,
    };
    let outcome = agent.rounds(first);
    link.end();
    match outcome {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Unmade(_)) if interrupts.came() => Ok(ExitCode::from(EXIT_INTERRUPTED)),
        Err(Unmade(error) | NotTaken(error)) => Err(error),
    }
}

/// A plan as it came, and the workers of it that this agent has.
type Dealt = (Vec<u8>, Part);

/// Waits for a plan; absent: a signal came.
fn await_plan(link: &AgentLink, interrupts: &Interrupts) -> Result<Option<Dealt>> {
    loop {
        match link.wait(LOOK)? {
            Some(AgentEvent::Plan { bytes, part }) => return Ok(Some((bytes, part))),
            Some(AgentEvent::Leave(Err(error))) => return Err(error.into()),
            Some(AgentEvent::Leave(Ok(()))) => bail!("the coordinator ended before it had a plan"),
            Some(AgentEvent::Stop(stop)) => bail!("stopped by the coordinator: {}", stop.reason),
            Some(AgentEvent::Start { .. }) | None if interrupts.came() => return Ok(None),
            Some(AgentEvent::Start { .. }) | None => {}
        }
    }
}

/// Why an agent ends before the coordinator says that all is well.
enum Failure {
    /// A round was not made.
    Unmade(Error),
    /// What was measured in one is not with the coordinator.
    NotTaken(Error),
}

/// An agent that has had a plan.
struct Working<'a> {
    arguments: &'a AgentArguments,
    link: &'a AgentLink,
    interrupts: &'a Interrupts,
}

impl Working<'_> {
    /// Makes one round after the other, until there is none.
    fn rounds(&self, first: Dealt) -> Result<(), Failure> {
        let (mut dealt, mut before) = (first, None);
        loop {
            let mut left = None;
            let run = match self.measure(&dealt, before.as_ref(), &mut left) {
                Ok(run) => run,
                Err(error) => {
                    self.link.failed(&format!("{error:#}"));
                    // The coordinator has heard of it, or is gone.
                    let _ = self.await_next(left);
                    return Err(Unmade(error));
                }
            };
            match self.hand_over(&run, left).map_err(NotTaken)? {
                Some(next) => (dealt, before) = (next, Some(run)),
                None => return Ok(()),
            }
        }
    }

    /// Makes its part of a round. `left` is set where the coordinator has nothing more to say.
    fn measure(
        &self,
        (bytes, part): &Dealt,
        before: Option<&Run>,
        left: &mut Option<Result<()>>,
    ) -> Result<Run> {
        let (link, interrupts, part) = (self.link, self.interrupts, *part);
        let assignment = serde_json::from_slice(bytes).context("the plan cannot be read")?;
        let Assignment { plan, program } = assignment;
        brunt_fleet::admit(&plan, &self.arguments.allow_target)?;
        if let Some(program) = &program {
            program.admit(self.arguments.allow_scripts)?;
        }
        if plan.stop.duration_ns.or(plan.stop.requests).is_none() {
            bail!("the plan has no end: it needs a duration or a number of requests");
        }
        let mut order = Order::default();
        let mut is_over = || {
            order.hear(link);
            interrupts.came() || order.is_over()
        };
        let is_settled = match before {
            Some(run) => time_wait::settle(run.first().limits.ports_available, &mut is_over),
            None => {
                message::print(&format_args!(
                    "the plan has come; workers of this agent: {} of {}",
                    part.workers().len(),
                    plan.workers
                ));
                true
            }
        };
        // It is there for as long as its threads are.
        let mut script = None;
        let generators = match &program {
            None => Vec::new(),
            Some(Program::Sessions(text)) => sessions::of_agent(text, &plan, part.workers())?,
            Some(Program::Script(text)) => {
                script = script::of_agent(text, &plan, &mut is_over)?;
                let all = script.as_mut().map(Scripted::generators).transpose()?;
                of_part(all.unwrap_or_default(), part)
            }
        };
        let is_loaded = script.is_some() || !matches!(program, Some(Program::Script(_)));
        let prepared = match is_settled && is_loaded {
            true => {
                let plan = plan.clone();
                let body = move || brunt_engine::prepare_part(plan, Some(part));
                let prepared = threads::run_unless("brunt-prepare", body, is_over);
                prepared.context("cannot start a thread")?
            }
            false => None,
        };
        let prepared = prepared.ok_or_else(|| order.why_over(interrupts))??;
        let control = prepared.control();
        control.hold_start();
        control.hold_end();
        let mut observer = Watching {
            link,
            interrupts,
            control: Arc::clone(&control),
            order,
            warmup_ns: plan.warmup_ns,
            window_ns: plan.stop.duration_ns,
            hurry_ns: u64::MAX,
            told: None,
        };
        let mut session = prepared.open(&control, false);
        if !generators.is_empty() {
            session.set_generators(generators)?;
        }
        let outcome = session.round(&Round::of(&plan), &mut observer);
        session.leave(|| true);
        let order = observer.order;
        *left = order.left;
        let mut run = match outcome {
            Ok(run) => run,
            Err(RunError::Interrupted) => {
                return Err(why(order.stop.as_ref(), left.as_ref(), interrupts));
            }
            Err(error) => return Err(error.into()),
        };
        if interrupts.came() {
            bail!("interrupted by a signal to the agent");
        }
        if let Some(error) = wrk::script_error(&run) {
            bail!("{error}");
        }
        Origin::of_command(command_line::here()).complete(&mut run);
        Ok(run)
    }

    /// Hands the result over, and waits for the next round; keeps it where that cannot be done, if
    /// that was asked for. Absent: there is no next round.
    fn hand_over(&self, run: &Run, left: Option<Result<()>>) -> Result<Option<Dealt>> {
        let bytes = serde_json::to_vec(run).context("the result cannot be encoded")?;
        let keep = self.arguments.keep.as_ref();
        let keep = keep.map(|path| (path, bytes.clone()));
        self.link.finished(bytes);
        let outcome = self.await_next(left);
        if let (Err(error), Some((path, bytes))) = (&outcome, keep) {
            let written = std::fs::write(path, bytes);
            written.with_context(|| format!("cannot write {}", path.display()))?;
            message::print(&format_args!(
                "what was measured is in {}: {error:#}",
                path.display()
            ));
        }
        outcome
    }

    /// Waits for the next round; absent: there is none.
    fn await_next(&self, left: Option<Result<()>>) -> Result<Option<Dealt>> {
        if let Some(left) = left {
            return left.map(|()| None);
        }
        let mut stopped = None;
        loop {
            match self.link.wait(LOOK)? {
                Some(AgentEvent::Plan { bytes, part }) => return Ok(Some((bytes, part))),
                Some(AgentEvent::Leave(outcome)) => {
                    return match stopped {
                        Some(stopped) => Err(stopped),
                        None => Ok(outcome.map(|()| None)?),
                    };
                }
                Some(AgentEvent::Stop(stop)) if stop.window_ns.is_none() => {
                    stopped = Some(anyhow!("stopped by the coordinator: {}", stop.reason));
                }
                _ if self.interrupts.came_again() => {
                    bail!("interrupted before the result was handed over")
                }
                _ => {}
            }
        }
    }
}

/// Why a run ended without a result.
fn why(stop: Option<&Stop>, left: Option<&Result<()>>, interrupts: &Interrupts) -> Error {
    match (stop, left) {
        _ if interrupts.came() => anyhow!("interrupted by a signal to the agent"),
        (Some(stop), _) => anyhow!("stopped by the coordinator: {}", stop.reason),
        (None, Some(Err(error))) => anyhow!("{error:#}"),
        (None, Some(Ok(()))) => anyhow!("the coordinator ended the job"),
        (None, None) => anyhow!("interrupted"),
    }
}

/// What the coordinator has said.
#[derive(Debug, Default)]
struct Order {
    start_ns: Option<u64>,
    stop: Option<Stop>,
    left: Option<Result<()>>,
}

impl Order {
    /// Takes what came since.
    fn hear(&mut self, link: &AgentLink) {
        while self.left.is_none() {
            match link.next() {
                Ok(None) => return,
                Ok(Some(AgentEvent::Start { load_ns })) => self.start_ns = Some(load_ns),
                Ok(Some(AgentEvent::Stop(stop))) => self.stop = Some(stop),
                Ok(Some(AgentEvent::Leave(outcome))) => {
                    self.left = Some(outcome.map_err(Error::from));
                }
                // There is one for each round.
                Ok(Some(AgentEvent::Plan { .. })) => {}
                Err(error) => self.left = Some(Err(error.into())),
            }
        }
    }

    /// Whether there is nothing left to be done.
    fn is_over(&self) -> bool {
        self.left.is_some() || self.stop.is_some()
    }

    fn why_over(&self, interrupts: &Interrupts) -> Error {
        why(self.stop.as_ref(), self.left.as_ref(), interrupts)
    }
}

/// Passes on orders to the run, and how far it has come to the coordinator.
struct Watching<'a> {
    link: &'a AgentLink,
    interrupts: &'a Interrupts,
    control: Arc<Control>,
    order: Order,
    warmup_ns: u64,
    /// At most; absent: until all is done.
    window_ns: Option<u64>,
    /// From when on replies are no longer waited for.
    hurry_ns: u64,
    /// The phase that was told last, and when.
    told: Option<(brunt_fleet::Phase, u64)>,
}

impl Watching<'_> {
    fn obey(&mut self, now_ns: u64) {
        let had_start = self.order.start_ns.is_some();
        self.order.hear(self.link);
        if let (false, Some(load_ns)) = (had_start, self.order.start_ns) {
            self.control.start_at(load_ns);
        }
        if let Some(stop) = &self.order.stop {
            match (stop.window_ns, self.order.start_ns) {
                (Some(window_ns), Some(load_ns)) => {
                    let end_ns = load_ns
                        .saturating_add(self.warmup_ns)
                        .saturating_add(window_ns);
                    if self.control.done_window_ns().is_some() {
                        // It is that of the agent that takes longest.
                        self.control.end_at(end_ns);
                    } else if self
                        .window_ns
                        .is_none_or(|planned_ns| window_ns < planned_ns)
                    {
                        // One that comes too late has a window of its own, which is noticed.
                        self.control.end_at(end_ns.max(now_ns + END_LEAD_NS));
                    }
                    if stop.is_hurried {
                        self.hurry_ns = end_ns.saturating_add(END_LEAD_NS);
                    }
                }
                _ => self.control.hurry(),
            }
        }
        if now_ns >= self.hurry_ns || self.interrupts.came_again() {
            self.control.hurry();
        }
        if self.order.left.is_some() || self.interrupts.came() {
            // Nobody waits for it any more.
            self.control.interrupt();
        }
    }
}

impl RunObserver for Watching<'_> {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        let now_ns = clock::now_ns();
        self.obey(now_ns);
        let phase = match self.control.done_window_ns() {
            Some(window_ns) => brunt_fleet::Phase::Done { window_ns },
            None => said(phase),
        };
        let is_due = self.told.as_ref().is_none_or(|(told, told_ns)| {
            *told != phase || now_ns.saturating_sub(*told_ns) >= TOLD_NS
        });
        if is_due {
            self.told = Some((phase.clone(), now_ns));
            self.link.has_come(phase, counts(progress));
        }
    }
}

fn said(phase: Phase) -> brunt_fleet::Phase {
    match phase {
        Phase::SetUp => brunt_fleet::Phase::SetUp,
        Phase::Ready => brunt_fleet::Phase::Ready,
        Phase::WarmUp => brunt_fleet::Phase::WarmUp,
        Phase::Measure => brunt_fleet::Phase::Measure,
        Phase::Drain => brunt_fleet::Phase::Drain,
    }
}

fn counts(progress: &Progress) -> Counts {
    Counts {
        successes: progress.successes,
        errors: progress.errors,
        failures: progress.failures,
        bytes_received: progress.bytes_received,
        bytes_sent: progress.bytes_sent,
        live: progress.live,
        waiting: progress.waiting,
    }
}
