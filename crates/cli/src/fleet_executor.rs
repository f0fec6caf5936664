//! The agents of a fleet as who makes rounds of load: gathered once, then given one plan after the
//! other, whose results are merged.

use std::num::NonZeroU32;

use anyhow::{Result, bail};
use brunt_engine::{Phase, Progress, RunError, RunObserver, Snapshot};
use brunt_fleet::{
    Assignment, CHUNK_BYTES_MAX, CoordinateError, Coordinator, Counts, Deal, Fleet, FleetError,
    MemberView, Outcome, Overseer, Program, Settings, Stage, Timing, Wish,
};
use brunt_io::{clock, tls_config};
use brunt_load::{LoadModel, Part, Plan, Target};
use brunt_record::Run;
use brunt_report::AgentProgress;

use crate::agent::version;
use crate::args::LoadArguments;
use crate::broker_args::BrokerArguments;
use crate::executor::{Executor, RoundSource, ThisProcess};
use crate::fleet_args::AgentsArguments;
use crate::fleet_launch::Started;
use crate::fleet_run::merged;
use crate::message;
use crate::progress::Line;
use crate::session::Wanted;
use crate::signals::Interrupts;

/// From one line about who is there to the next.
const HERE_NS: u64 = 1_000_000_000;
/// From one look at the agents that were started here to the next: there may be many of them, and
/// messages are taken between two looks.
const GONE_NS: u64 = 50_000_000;

/// What was typed of a fleet.
#[derive(Clone, Copy)]
pub(crate) struct AskedFleet<'a> {
    pub(crate) agents: &'a AgentsArguments,
    pub(crate) broker: &'a BrokerArguments,
    pub(crate) typed: &'a LoadArguments,
}

/// Who makes the rounds of a load of `target`: the agents that were asked for, else this process.
///
/// # Errors
///
/// As [`FleetExecutor::gather`].
pub(crate) fn executor_of<'a>(
    of_fleet: Option<(&'a AgentsArguments, &'a BrokerArguments)>,
    typed: &'a LoadArguments,
    target: &Target,
    interrupts: &'a Interrupts,
) -> Result<Box<dyn Executor + 'a>> {
    let Some((agents, broker)) = of_fleet else {
        return Ok(Box::new(ThisProcess(interrupts)));
    };
    let asked = AskedFleet {
        agents,
        broker,
        typed,
    };
    Ok(Box::new(FleetExecutor::gather(asked, target, interrupts)?))
}

/// Agents that are all there.
pub(crate) struct FleetExecutor<'a> {
    asked: AskedFleet<'a>,
    interrupts: Interrupts,
    /// Lets the agents go before they are ended.
    fleet: Fleet,
    started: Started,
    /// CPUs of each agent, in the order of their parts.
    cpus: Vec<u32>,
}

impl<'a> FleetExecutor<'a> {
    /// Starts the agents that are to be started, and waits for all.
    ///
    /// # Errors
    ///
    /// They are not all there, or cannot reach `target`; [`RunError::Interrupted`] where a signal
    /// came.
    pub(crate) fn gather(
        asked: AskedFleet<'a>,
        target: &Target,
        interrupts: &Interrupts,
    ) -> Result<Self> {
        if target.unix_socket.is_some() {
            bail!("a Unix socket is on one machine; give a URL that all agents can reach");
        }
        let runs_scripts = asked.typed.script.is_some();
        let started = Started::new(asked.agents, asked.broker, runs_scripts)?;
        let settings = Settings {
            agents: started.count.get(),
            version: version(),
            gather_limit_ns: asked.agents.gather,
            chunk_bytes: CHUNK_BYTES_MAX,
        };
        let mut overseeing = Overseeing::new(interrupts, &started, asked.typed.output.quiet);
        let fleet = Fleet::gather(&started.broker, &started.job, settings, &mut overseeing);
        let fleet = fleet.map_err(worded)?;
        Ok(Self {
            asked,
            interrupts: interrupts.clone(),
            cpus: fleet.members().map(|it| it.hello.usable_cpus).collect(),
            fleet,
            started,
        })
    }

    /// Makes a round of `plan`, whose requests `program` makes if given, while `line` shows how far
    /// it has come. A signal ends it: where only a whole one is wanted, without waiting for
    /// replies.
    ///
    /// # Errors
    ///
    /// Nothing was measured; [`RunError::Interrupted`] where that is for a signal.
    pub(crate) fn measure(
        &mut self,
        plan: &Plan,
        program: Option<&Program>,
        wanted: Wanted,
        line: &mut Line,
    ) -> Result<Outcome> {
        let deal = match self.deal(plan, program) {
            Ok(deal) => deal,
            Err(error) => {
                self.fleet.dismiss(&format!("{error:#}"));
                return Err(error);
            }
        };
        let quiet = self.asked.typed.output.quiet;
        let mut overseeing = Overseeing::new(&self.interrupts, &self.started, quiet);
        overseeing.line = Some(line);
        overseeing.wanted = wanted;
        self.fleet.round(deal, &mut overseeing).map_err(worded)
    }

    fn deal(&self, plan: &Plan, program: Option<&Program>) -> Result<Deal> {
        let parts = self.parts(plan)?;
        let mut plan = plan.clone();
        tls_config::read_files(&mut plan.tls)?;
        let timing = Timing {
            warmup_ns: plan.warmup_ns,
            window_ns: plan.stop.duration_ns,
            is_counted: plan.stop.requests.is_some(),
            drain_ns: plan.drain_limit_ns,
        };
        let assignment = Assignment {
            plan,
            program: program.cloned(),
        };
        Ok(Deal {
            plan: serde_json::to_vec(&assignment)?,
            parts,
            timing,
        })
    }

    /// Workers of each agent where no number is typed.
    fn own_workers(&self, model: &LoadModel) -> Vec<NonZeroU32> {
        let typed = self.asked.typed;
        // A thread of a script has variables of its own: how many there are is not left to chance.
        let is_generated = typed.script.is_some() || typed.sessions.is_some();
        let is_one = is_generated || self.asked.agents.local.is_some();
        let own = |&cpus: &u32| match is_one {
            true => NonZeroU32::MIN,
            false => brunt_engine::default_workers(model, cpus),
        };
        self.cpus.iter().map(own).collect()
    }

    /// The workers of `plan` that each agent has.
    fn parts(&self, plan: &Plan) -> Result<Vec<Part>> {
        let agents = self.started.count;
        let is_free = self.asked.typed.threads.is_none();
        let parts: Option<Vec<Part>> = if is_free && plan.workers == self.workers(&plan.model) {
            let mut first = 0;
            let own = self.own_workers(&plan.model).into_iter();
            let parts = own.map(|count| {
                let part = Part::new(first, count);
                first = first.saturating_add(count.get());
                Some(part)
            });
            parts.collect()
        } else {
            let numbers = 0..agents.get();
            let parts = numbers.map(|index| Part::nth(index, agents, plan.workers));
            parts.collect()
        };
        let Some(parts) = parts else {
            bail!(
                "each agent needs a worker of its own, and each worker a connection; use -t \
                 {agents} and -c {agents} or more"
            );
        };
        let is_idle = |part: &Part| plan.requests_of(part.workers()) == Some(0);
        if parts.iter().any(is_idle) {
            bail!("each agent needs a request of its own; use -n {agents} or more");
        }
        Ok(parts)
    }
}

impl Executor for FleetExecutor<'_> {
    fn workers(&self, model: &LoadModel) -> NonZeroU32 {
        let own = self.own_workers(model).into_iter();
        let sum = own.fold(0_u32, |sum, count| sum.saturating_add(count.get()));
        NonZeroU32::new(sum).unwrap_or(NonZeroU32::MIN)
    }

    fn check(&self, plan: &Plan) -> Result<()> {
        self.parts(plan).map(drop)
    }

    /// The coordinator itself may have no way to the server.
    fn software(&mut self, _plan: &Plan) -> Result<Option<String>> {
        Ok(None)
    }

    fn in_session(
        &mut self,
        _plan: &Plan,
        _is_one: bool,
        body: &mut dyn FnMut(&mut dyn RoundSource) -> Result<()>,
    ) -> Result<()> {
        body(self)
    }
}

impl RoundSource for FleetExecutor<'_> {
    fn round(&mut self, plan: &Plan, line: &mut Line) -> Result<Run> {
        let outcome = self.measure(plan, None, Wanted::Whole, line)?;
        if outcome.was_interrupted {
            return Err(RunError::Interrupted.into());
        }
        if let Some(lost) = outcome.lost.first() {
            bail!("agent {} {}: the load of all ended", lost.name, lost.reason);
        }
        merged(plan, &outcome)
    }

    /// Agents wait for ports of their machines by themselves.
    fn settle(&self, _ports: Option<u64>) -> Result<()> {
        match self.interrupts.came() {
            true => Err(RunError::Interrupted.into()),
            false => Ok(()),
        }
    }
}

/// An interrupt as all commands know it.
fn worded(error: CoordinateError) -> anyhow::Error {
    match error {
        CoordinateError::Fleet(FleetError::Interrupted) => RunError::Interrupted.into(),
        error => error.into(),
    }
}

/// Shows how far agents have come, and passes on signals.
struct Overseeing<'a> {
    interrupts: &'a Interrupts,
    started: &'a Started,
    is_quiet: bool,
    wanted: Wanted,
    line: Option<&'a mut Line>,
    /// By agent, what was shown of its counts.
    shown: Vec<Progress>,
    here: Here,
    /// When it was looked last for agents that ended.
    gone_ns: u64,
    is_connected: bool,
}

/// Agents that are there, as it was said last, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Here {
    count: usize,
    said_ns: u64,
}

impl<'a> Overseeing<'a> {
    fn new(interrupts: &'a Interrupts, started: &'a Started, is_quiet: bool) -> Self {
        Self {
            interrupts,
            started,
            is_quiet,
            wanted: Wanted::Part,
            line: None,
            shown: Vec::new(),
            here: Here::default(),
            gone_ns: 0,
            is_connected: true,
        }
    }

    /// Says how many agents are there, while others are waited for.
    fn say_who_is_here(&mut self, coordinator: &Coordinator) {
        let count = coordinator.members().count();
        let is_new = coordinator.stage() == Stage::Gathering && count != self.here.count;
        let now_ns = clock::now_ns();
        let is_due = now_ns.saturating_sub(self.here.said_ns) >= HERE_NS;
        if is_new && is_due && !self.is_quiet {
            let said_ns = now_ns;
            self.here = Here { count, said_ns };
            let wanted = self.started.count;
            message::print(&format_args!("{count} of {wanted} agents are there"));
        }
    }

    fn show(&mut self, coordinator: &Coordinator) {
        let Some(line) = &mut self.line else {
            return;
        };
        let now_ns = clock::now_ns();
        let mut sum = Progress::default();
        let mut phase = Phase::Drain;
        for (number, member) in coordinator.members().enumerate() {
            if self.shown.len() <= number {
                self.shown.resize(number + 1, Progress::default());
            }
            let before = self.shown[number];
            let progress = grown(before, member.status.counts);
            self.shown[number] = progress;
            sum = sum.plus(progress);
            phase = phase.min(phase_of(&member.status.phase));
            if before != progress {
                line.snapshot(&snapshot(number as u32, now_ns, progress.since(before)));
            }
        }
        if line.is_due(phase) {
            line.show_agents(coordinator.members().map(row_of).collect());
        }
        line.progress(phase, &sum);
    }
}

impl Overseer for Overseeing<'_> {
    fn look(&mut self, coordinator: &Coordinator, is_connected: bool) -> Wish {
        if is_connected != self.is_connected {
            self.is_connected = is_connected;
            if let Some(line) = &mut self.line {
                line.clear();
            }
            message::print(match is_connected {
                true => &"the broker is there again",
                false => &"the broker is gone; brunt waits for it",
            });
        }
        self.say_who_is_here(coordinator);
        self.show(coordinator);
        if self.interrupts.came() {
            return Wish::End {
                is_hurried: self.wanted == Wanted::Whole || self.interrupts.came_again(),
            };
        }
        let now_ns = clock::now_ns();
        if now_ns.saturating_sub(self.gone_ns) < GONE_NS {
            return Wish::GoOn;
        }
        self.gone_ns = now_ns;
        let stage = coordinator.stage();
        let waits = !matches!(stage, Stage::Aborting | Stage::Collected | Stage::Over);
        let is_wanted = |name: &str| {
            let mut members = coordinator.members();
            waits && members.all(|member| member.hello.name != name || !member.is_settled)
        };
        match self.started.gone(is_wanted) {
            None => Wish::GoOn,
            Some((name, reason)) => Wish::Gone {
                name: name.to_owned(),
                reason,
            },
        }
    }
}

/// What is shown of an agent.
fn row_of(member: MemberView<'_>) -> AgentProgress {
    let counts = member.status.counts;
    AgentProgress {
        name: member.hello.name.clone(),
        phase: match &member.status.phase {
            brunt_fleet::Phase::Finished { .. } => "finished",
            brunt_fleet::Phase::Failed { .. } => "failed",
            brunt_fleet::Phase::Done { .. } => "done",
            phase => phase_of(phase).name(),
        },
        connections_open: counts.live,
        successes: counts.successes,
        errors: counts.errors,
        failures: counts.failures,
        successes_per_s: None,
    }
}

/// `now`, where what only grows is not below what it was: whatever an agent says, sums do not
/// overflow.
fn grown(before: Progress, now: Counts) -> Progress {
    Progress {
        successes: now.successes.max(before.successes),
        errors: now.errors.max(before.errors),
        failures: now.failures.max(before.failures),
        bytes_received: now.bytes_received.max(before.bytes_received),
        bytes_sent: now.bytes_sent.max(before.bytes_sent),
        live: now.live,
        waiting: now.waiting,
        // Agents do not tell of which kind their failures are.
        ..Progress::default()
    }
}

/// What an agent counted since it was shown last, as a worker would show it.
fn snapshot(agent: u32, now_ns: u64, counts: Progress) -> Snapshot {
    Snapshot {
        worker: agent,
        from_ns: 0,
        to_ns: now_ns,
        counts,
        streams: None,
        response: brunt_record::SparseHistogram::default(),
        postponed: 0,
    }
}

fn phase_of(phase: &brunt_fleet::Phase) -> Phase {
    match phase {
        brunt_fleet::Phase::Idle | brunt_fleet::Phase::SetUp => Phase::SetUp,
        brunt_fleet::Phase::Ready => Phase::Ready,
        brunt_fleet::Phase::WarmUp => Phase::WarmUp,
        brunt_fleet::Phase::Measure => Phase::Measure,
        brunt_fleet::Phase::Drain
        | brunt_fleet::Phase::Done { .. }
        | brunt_fleet::Phase::Finished { .. }
        | brunt_fleet::Phase::Failed { .. } => Phase::Drain,
    }
}
