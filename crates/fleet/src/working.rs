//! An agent at work: makes its part of the rounds of load that a coordinator asks for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use brunt_engine::{Control, Phase, Progress, Rounds, RunError, RunObserver};
use brunt_io::cpu::usable_cpus;
use brunt_io::{clock, threads};
use brunt_load::Part;
use brunt_record::Run;

use crate::host::{AgentHost, Generators};
use crate::{
    AgentEvent, AgentLink, AllowedTarget, Assignment, Broker, Counts, Hello, Job, Stop, Version,
};
use Failure::{NotTaken, Unmade};

/// How often it is looked for signals while nothing else happens.
const LOOK: Duration = Duration::from_millis(50);
/// From one word about how far the run has come to the next, unless its phase changes.
const REPORT_NS: u64 = 200_000_000;
/// From now to an end of the window that all workers can know of.
const END_LEAD_NS: u64 = 60_000_000;

/// What an agent is and may do.
#[derive(Clone, Debug)]
pub struct Service {
    /// The broker.
    pub broker: Broker,
    /// The job that it serves.
    pub job: Job,
    /// What reports call it.
    pub name: String,
    /// Servers that it may load; any where there is none.
    pub allowed: Vec<AllowedTarget>,
    /// Whether it runs scripts.
    pub allows_scripts: bool,
    /// Longest wait for a coordinator, nanoseconds; absent: for ever.
    pub wait_ns: Option<u64>,
    /// Where what was measured is written if the coordinator is gone.
    pub keep: Option<PathBuf>,
}

/// Joins a job, and does its part. Gives whether the coordinator has the result, and no signal came
/// before.
///
/// # Errors
///
/// There is no result, or it could not be handed over.
pub fn serve(service: &Service, host: &dyn AgentHost) -> Result<bool> {
    let hello = Hello {
        version: Version::own(),
        name: service.name.clone(),
        usable_cpus: usable_cpus(),
    };
    host.say(&format_args!(
        "agent {} waits for the coordinator of job {} at {}",
        hello.name,
        service.job.name(),
        service.broker.url
    ));
    let (broker, job) = (service.broker.clone(), service.job.clone());
    let link = crate::join(broker, job, hello, service.wait_ns)?;
    let Some(first) = await_plan(&link, host)? else {
        return Ok(false);
    };
    let agent = Working {
        service,
        link: &link,
        host,
    };
    let outcome = agent.rounds(first);
    link.end();
    match outcome {
        Ok(()) => Ok(true),
        Err(Unmade(_)) if host.signals() > 0 => Ok(false),
        Err(Unmade(error) | NotTaken(error)) => Err(error),
    }
}

/// A plan as it came, and the workers of it that this agent has.
struct Assigned {
    bytes: Vec<u8>,
    part: Part,
}

/// Waits for a plan; absent: a signal came.
fn await_plan(link: &AgentLink, host: &dyn AgentHost) -> Result<Option<Assigned>> {
    loop {
        match link.wait(LOOK)? {
            Some(AgentEvent::Plan { bytes, part }) => return Ok(Some(Assigned { bytes, part })),
            Some(AgentEvent::Leave(Err(error))) => return Err(error.into()),
            Some(AgentEvent::Leave(Ok(()))) => bail!("the coordinator ended before it had a plan"),
            Some(AgentEvent::Stop(stop)) => bail!("stopped by the coordinator: {}", stop.reason),
            Some(AgentEvent::Start { .. }) | None if host.signals() > 0 => return Ok(None),
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
    service: &'a Service,
    link: &'a AgentLink,
    host: &'a dyn AgentHost,
}

impl Working<'_> {
    /// Makes one round after the other, until there is none.
    fn rounds(&self, first: Assigned) -> Result<(), Failure> {
        let (mut assigned, mut before) = (first, None);
        loop {
            let mut left = None;
            let run = match self.measure(&assigned, before.as_ref(), &mut left) {
                Ok(run) => run,
                Err(error) => {
                    self.link.failed(&format!("{error:#}"));
                    // The coordinator has heard of it, or is gone.
                    let _ = self.await_next(left);
                    return Err(Unmade(error));
                }
            };
            match self.hand_over(&run, left).map_err(NotTaken)? {
                Some(next) => (assigned, before) = (next, Some(run)),
                None => return Ok(()),
            }
        }
    }

    /// Makes its part of a round. `left` is set where the coordinator has nothing more to say.
    fn measure(
        &self,
        assigned: &Assigned,
        before: Option<&Run>,
        left: &mut Option<Result<()>>,
    ) -> Result<Run> {
        let (link, host, part) = (self.link, self.host, assigned.part);
        let assignment = serde_json::from_slice(&assigned.bytes);
        let assignment = assignment.context("the plan cannot be read")?;
        let Assignment { plan, program } = assignment;
        crate::admit(&plan, &self.service.allowed)?;
        if let Some(program) = &program {
            program.admit(self.service.allows_scripts)?;
        }
        if plan
            .load
            .stop
            .duration_ns
            .or(plan.load.stop.requests)
            .is_none()
        {
            bail!("the plan has no end: it needs a duration or a number of requests");
        }
        let mut order = Order::default();
        let mut is_over = || {
            order.hear(link);
            host.signals() > 0 || order.is_over()
        };
        let is_settled = match before {
            Some(run) => host.settle(&plan, run.first().limits.ports_available, &mut is_over),
            None => {
                host.say(&format_args!(
                    "the plan has come; workers of this agent: {} of {}",
                    part.workers().len(),
                    plan.workers.count
                ));
                true
            }
        };
        // It is there for as long as its threads are.
        let made = match &program {
            None => Some(Generators::default()),
            Some(program) => host.generators(program, &plan, part, &mut is_over)?,
        };
        let prepared = if is_settled && made.is_some() {
            let plan = plan.clone();
            let body = move || brunt_engine::prepare_part(plan, Some(part));
            let prepared = threads::run_unless("brunt-prepare", body, is_over);
            prepared.context("cannot start a thread")?
        } else {
            None
        };
        let prepared = prepared.ok_or_else(|| order.why(host))??;
        let control = prepared.control();
        control.hold_start();
        control.hold_end();
        let mut observer = Watching {
            link,
            host,
            control: Arc::clone(&control),
            order,
            warmup_ns: plan.load.warmup_ns,
            window_ns: plan.load.stop.duration_ns,
            hurry_ns: u64::MAX,
            reported: None,
        };
        let Generators {
            generators,
            kept: _kept,
        } = made.unwrap_or_default();
        let mut session = prepared.open(&control, false);
        if !generators.is_empty() {
            session.set_generators(generators)?;
        }
        let outcome = session.round(&plan.load, &mut observer);
        session.leave(|| true);
        let why = observer.order.why(host);
        *left = observer.order.left;
        let mut run = match outcome {
            Ok(run) => run,
            Err(RunError::Interrupted) => return Err(why),
            Err(error) => return Err(error.into()),
        };
        if host.signals() > 0 {
            bail!("interrupted by a signal to the agent");
        }
        host.complete(&mut run)?;
        Ok(run)
    }

    /// Hands the result over, and waits for the next round; keeps it where that cannot be done, if
    /// that was asked for. Absent: there is no next round.
    fn hand_over(&self, run: &Run, left: Option<Result<()>>) -> Result<Option<Assigned>> {
        let bytes = serde_json::to_vec(run).context("the result cannot be encoded")?;
        let keep = self.service.keep.as_ref();
        let keep = keep.map(|path| (path, bytes.clone()));
        self.link.finished(bytes);
        let outcome = self.await_next(left);
        if let (Err(error), Some((path, bytes))) = (&outcome, keep) {
            let written = std::fs::write(path, bytes);
            written.with_context(|| format!("cannot write {}", path.display()))?;
            self.host.say(&format_args!(
                "what was measured is in {}: {error:#}",
                path.display()
            ));
        }
        outcome
    }

    /// Waits for the next round; absent: there is none.
    fn await_next(&self, left: Option<Result<()>>) -> Result<Option<Assigned>> {
        if let Some(left) = left {
            return left.map(|()| None);
        }
        let mut stopped = None;
        loop {
            match self.link.wait(LOOK)? {
                Some(AgentEvent::Plan { bytes, part }) => {
                    return Ok(Some(Assigned { bytes, part }));
                }
                Some(AgentEvent::Leave(outcome)) => {
                    return match stopped {
                        Some(stopped) => Err(stopped),
                        None => Ok(outcome.map(|()| None)?),
                    };
                }
                Some(AgentEvent::Stop(stop)) if stop.window_ns.is_none() => {
                    stopped = Some(anyhow!("stopped by the coordinator: {}", stop.reason));
                }
                _ if self.host.signals() > 1 => {
                    bail!("interrupted before the result was handed over")
                }
                _ => {}
            }
        }
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
            match link.wait(Duration::ZERO) {
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

    /// Why a run ended without a result.
    fn why(&self, host: &dyn AgentHost) -> Error {
        match (&self.stop, &self.left) {
            _ if host.signals() > 0 => anyhow!("interrupted by a signal to the agent"),
            (Some(stop), _) => anyhow!("stopped by the coordinator: {}", stop.reason),
            (None, Some(Err(error))) => anyhow!("{error:#}"),
            (None, Some(Ok(()))) => anyhow!("the coordinator ended the job"),
            (None, None) => anyhow!("interrupted"),
        }
    }
}

/// Passes on orders to the run, and how far it has come to the coordinator.
struct Watching<'a> {
    link: &'a AgentLink,
    host: &'a dyn AgentHost,
    control: Arc<Control>,
    order: Order,
    warmup_ns: u64,
    /// At most; absent: until all is done.
    window_ns: Option<u64>,
    /// From when on replies are no longer waited for.
    hurry_ns: u64,
    /// The phase that was reported last, and when.
    reported: Option<(crate::Phase, u64)>,
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
        if now_ns >= self.hurry_ns || self.host.signals() > 1 {
            self.control.hurry();
        }
        if self.order.left.is_some() || self.host.signals() > 0 {
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
            Some(window_ns) => crate::Phase::Done { window_ns },
            None => phase_on_wire(phase),
        };
        let is_due = self.reported.as_ref().is_none_or(|(last, last_ns)| {
            *last != phase || now_ns.saturating_sub(*last_ns) >= REPORT_NS
        });
        if is_due {
            self.reported = Some((phase.clone(), now_ns));
            self.link.has_come(phase, counts(progress));
        }
    }
}

fn phase_on_wire(phase: Phase) -> crate::Phase {
    match phase {
        Phase::SetUp => crate::Phase::SetUp,
        Phase::Ready => crate::Phase::Ready,
        Phase::WarmUp => crate::Phase::WarmUp,
        Phase::Measure => crate::Phase::Measure,
        Phase::Drain => crate::Phase::Drain,
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
