//! The agents of a fleet as who makes rounds of load: gathered once, then given one plan after the
//! other, whose results are merged.

use std::num::NonZeroU32;

use anyhow::{Result, bail};
use brunt_engine::{Phase, Progress, RunError, Snapshot};
use brunt_io::{clock, tls_config};
use brunt_load::{LoadModel, Part, Plan, Target};
use brunt_record::Run;
use brunt_report::AgentProgress;

use crate::host::{Board, Host};
use crate::launch::{Started, Task};
use crate::merged::merged;
use crate::{
    Action, Assignment, CHUNK_BYTES_MAX, Coordinator, Counts, Fleet, FleetError, Member, Outcome,
    Overseer, Program, Settings, Stage, Timing, Version,
};

/// From one line about who is there to the next.
const HERE_NS: u64 = 1_000_000_000;
/// From one look at the agents that were started here to the next: there may be many of them, and
/// messages are taken between two looks.
const GONE_NS: u64 = 50_000_000;

/// Agents that are all there.
pub struct Gathered<'a> {
    task: Task,
    host: &'a dyn Host,
    /// Lets the agents go before they are ended.
    fleet: Fleet,
    started: Started,
    /// CPUs of each agent, in the order of their parts.
    cpus: Vec<u32>,
}

impl<'a> Gathered<'a> {
    /// Starts the agents that are to be started, and waits for all.
    ///
    /// # Errors
    ///
    /// They are not all there, or cannot reach `target`; [`RunError::Interrupted`] where a signal
    /// came.
    pub fn gather(task: Task, target: &Target, host: &'a dyn Host) -> Result<Self> {
        if target.unix_socket.is_some() {
            bail!("a Unix socket is on one machine; give a URL that all agents can reach");
        }
        let started = Started::new(&task)?;
        let settings = Settings {
            agents: started.count.get(),
            version: Version::own(),
            gather_limit_ns: task.gather_ns,
            chunk_bytes: CHUNK_BYTES_MAX,
        };
        let mut overseeing = Overseeing::new(host, &started, task.is_quiet);
        let fleet = Fleet::gather(&started.broker, &started.job, settings, &mut overseeing);
        let fleet = fleet.map_err(worded)?;
        Ok(Self {
            task,
            host,
            cpus: fleet
                .members()
                .iter()
                .map(|member| member.hello.usable_cpus)
                .collect(),
            fleet,
            started,
        })
    }

    /// Makes a round of `plan`, whose requests `program` makes if given, while `board` shows how
    /// far it has come. A signal ends it: where only a whole one is wanted, without waiting for
    /// replies.
    ///
    /// # Errors
    ///
    /// Nothing was measured; [`RunError::Interrupted`] where that is for a signal.
    pub fn measure(
        &mut self,
        plan: &Plan,
        program: Option<&Program>,
        is_whole_wanted: bool,
        board: &mut dyn Board,
    ) -> Result<Outcome> {
        let (assignment, parts) = match self.assign(plan, program) {
            Ok(assigned) => assigned,
            Err(error) => {
                self.fleet.dismiss(&format!("{error:#}"));
                return Err(error);
            }
        };
        let mut overseeing = Overseeing::new(self.host, &self.started, self.task.is_quiet);
        overseeing.board = Some(board);
        overseeing.is_whole_wanted = is_whole_wanted;
        let timing = Timing {
            warmup_ns: plan.load.warmup_ns,
            window_ns: plan.load.stop.duration_ns,
            is_counted: plan.load.stop.requests.is_some(),
            drain_ns: plan.load.drain_limit_ns,
        };
        let outcome = self
            .fleet
            .round(assignment, &parts, timing, &mut overseeing);
        outcome.map_err(worded)
    }

    fn assign(&self, plan: &Plan, program: Option<&Program>) -> Result<(Vec<u8>, Vec<Part>)> {
        let parts = self.parts(plan)?;
        let mut plan = plan.clone();
        tls_config::read_files(&mut plan.connection.tls)?;
        let program = program.cloned();
        let assignment = serde_json::to_vec(&Assignment { plan, program })?;
        Ok((assignment, parts))
    }

    /// Workers of each agent where no number is typed.
    fn own_workers(&self, model: &LoadModel) -> Vec<NonZeroU32> {
        // A thread of a script has variables of its own: how many there are is not left to chance.
        let is_one = self.task.is_generated || self.task.local.is_some();
        let own = |&cpus: &u32| {
            if is_one {
                NonZeroU32::MIN
            } else {
                model.default_workers(cpus)
            }
        };
        self.cpus.iter().map(own).collect()
    }

    /// The workers of `plan` that each agent has.
    fn parts(&self, plan: &Plan) -> Result<Vec<Part>> {
        let agents = self.started.count;
        let is_free = !self.task.has_workers;
        let parts: Option<Vec<Part>> =
            if is_free && plan.workers.count == self.workers(&plan.load.model) {
                let mut first = 0;
                let own = self.own_workers(&plan.load.model).into_iter();
                let parts = own.map(|count| {
                    let part = Part::new(first, count);
                    first = first.saturating_add(count.get());
                    Some(part)
                });
                parts.collect()
            } else {
                let numbers = 0..agents.get();
                let parts = numbers.map(|index| Part::nth(index, agents, plan.workers.count));
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

    /// Workers of a load of this model, all agents together, where no number of them is given.
    pub fn workers(&self, model: &LoadModel) -> NonZeroU32 {
        let own = self.own_workers(model).into_iter();
        let sum = own.fold(0_u32, |sum, count| sum.saturating_add(count.get()));
        NonZeroU32::new(sum).unwrap_or(NonZeroU32::MIN)
    }

    /// Whether each agent can have a part of `plan`.
    ///
    /// # Errors
    ///
    /// It cannot.
    pub fn check(&self, plan: &Plan) -> Result<()> {
        self.parts(plan).map(drop)
    }

    /// Makes a round of `plan`, of which only all counts.
    ///
    /// # Errors
    ///
    /// There is no whole round; [`RunError::Interrupted`] where that is for a signal.
    pub fn round(&mut self, plan: &Plan, board: &mut dyn Board) -> Result<Run> {
        let outcome = self.measure(plan, None, true, board)?;
        if outcome.was_interrupted {
            return Err(RunError::Interrupted.into());
        }
        if let Some(lost) = outcome.lost.first() {
            bail!("agent {} {}: the load of all ended", lost.name, lost.reason);
        }
        merged(plan, &outcome)
    }
}

/// An interrupt as all commands know it.
fn worded(error: FleetError) -> anyhow::Error {
    match error {
        FleetError::Interrupted => RunError::Interrupted.into(),
        error => error.into(),
    }
}

/// Shows how far agents have come, and passes on signals.
struct Overseeing<'a> {
    host: &'a dyn Host,
    started: &'a Started,
    is_quiet: bool,
    is_whole_wanted: bool,
    board: Option<&'a mut dyn Board>,
    /// By agent, what was shown of its counts.
    shown: Vec<Progress>,
    /// Agents that were said to be there, and when that was said.
    here: usize,
    here_said_ns: u64,
    /// When it was looked last for agents that ended.
    gone_ns: u64,
    is_connected: bool,
}

impl<'a> Overseeing<'a> {
    fn new(host: &'a dyn Host, started: &'a Started, is_quiet: bool) -> Self {
        Self {
            host,
            started,
            is_quiet,
            is_whole_wanted: false,
            board: None,
            shown: Vec::new(),
            here: 0,
            here_said_ns: 0,
            gone_ns: 0,
            is_connected: true,
        }
    }

    /// Says how many agents are there, while others are waited for.
    fn say_who_is_here(&mut self, coordinator: &Coordinator) {
        let count = coordinator.members().len();
        let is_new = coordinator.stage() == Stage::Gathering && count != self.here;
        let now_ns = clock::now_ns();
        let is_due = now_ns.saturating_sub(self.here_said_ns) >= HERE_NS;
        if is_new && is_due && !self.is_quiet {
            (self.here, self.here_said_ns) = (count, now_ns);
            let wanted = self.started.count;
            self.host
                .say(&format_args!("{count} of {wanted} agents are there"));
        }
    }

    fn show(&mut self, coordinator: &Coordinator) {
        let Some(board) = &mut self.board else {
            return;
        };
        let now_ns = clock::now_ns();
        let mut sum = Progress::default();
        let mut phase = Phase::Drain;
        for (number, member) in coordinator.members().iter().enumerate() {
            if self.shown.len() <= number {
                self.shown.resize(number + 1, Progress::default());
            }
            let before = self.shown[number];
            let progress = grown(before, member.status.counts);
            self.shown[number] = progress;
            sum = sum.plus(progress);
            phase = phase.min(phase_of(&member.status.phase));
            if before != progress {
                board.snapshot(&snapshot(number as u32, now_ns, progress.since(before)));
            }
        }
        if board.is_due(phase) {
            board.show_agents(coordinator.members().iter().map(row_of).collect());
        }
        board.progress(phase, &sum);
    }
}

impl Overseer for Overseeing<'_> {
    fn look(&mut self, coordinator: &Coordinator, is_connected: bool) -> Action {
        if is_connected != self.is_connected {
            self.is_connected = is_connected;
            if let Some(board) = &mut self.board {
                board.clear();
            }
            self.host.say(if is_connected {
                &"the broker is there again"
            } else {
                &"the broker is gone; brunt waits for it"
            });
        }
        self.say_who_is_here(coordinator);
        self.show(coordinator);
        let signals = self.host.signals();
        if signals > 0 {
            return Action::End {
                is_hurried: self.is_whole_wanted || signals > 1,
            };
        }
        let now_ns = clock::now_ns();
        if now_ns.saturating_sub(self.gone_ns) < GONE_NS {
            return Action::GoOn;
        }
        self.gone_ns = now_ns;
        let stage = coordinator.stage();
        let waits = !matches!(stage, Stage::Aborting | Stage::Collected | Stage::Over);
        let is_wanted = |name: &str| {
            let mut members = coordinator.members().iter();
            waits && members.all(|member| member.hello.name != name || !member.is_settled())
        };
        match self.started.gone(is_wanted) {
            None => Action::GoOn,
            Some((name, reason)) => Action::AgentGone {
                name: name.to_owned(),
                reason,
            },
        }
    }
}

/// What is shown of an agent.
fn row_of(member: &Member) -> AgentProgress {
    let counts = member.status.counts;
    AgentProgress {
        name: member.hello.name.clone(),
        phase: match &member.status.phase {
            crate::Phase::Finished { .. } => "finished",
            crate::Phase::Failed { .. } => "failed",
            crate::Phase::Done { .. } => "done",
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
    }
}

/// What an agent counted since it was shown last, as a worker would show it.
fn snapshot(agent: u32, now_ns: u64, counts: Progress) -> Snapshot {
    Snapshot {
        worker: agent,
        to_ns: now_ns,
        counts,
    }
}

fn phase_of(phase: &crate::Phase) -> Phase {
    match phase {
        crate::Phase::Idle | crate::Phase::SetUp => Phase::SetUp,
        crate::Phase::Ready => Phase::Ready,
        crate::Phase::WarmUp => Phase::WarmUp,
        crate::Phase::Measure => Phase::Measure,
        crate::Phase::Drain
        | crate::Phase::Done { .. }
        | crate::Phase::Finished { .. }
        | crate::Phase::Failed { .. } => Phase::Drain,
    }
}
