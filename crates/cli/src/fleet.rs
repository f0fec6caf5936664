//! `brunt fleet`: one load made by several agents, and one report of it.

use std::error::Error as StdError;
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_engine::{Phase, Progress, RunObserver, Snapshot};
use brunt_fleet::{
    CHUNK_BYTES_MAX, CoordinateError, Coordinator, Counts, Deal, FleetError, MemberView, Overseer,
    Settings, Stage, Timing, Wish,
};
use brunt_io::{clock, tls_config};
use brunt_judge::Judged;
use brunt_load::{Part, Plan, Target};
use brunt_report::AgentProgress;

use crate::agent::version;
use crate::args::{FleetArguments, FleetCommand, LoadArguments};
use crate::broker_args::BrokerArguments;
use crate::fleet_args::AgentsArguments;
use crate::fleet_kept::keep;
use crate::fleet_launch::Started;
use crate::fleet_run::merged;
use crate::output::Destination;
use crate::plan::Load;
use crate::progress::Line;
use crate::redact::redact;
use crate::refusals::{self, Given};
use crate::run::interrupted;
use crate::signals::{Interrupts, Second};
use crate::{
    EXIT_INTERRUPTED, EXIT_INVALID, command_line, fleet_manifest, message, objectives, output, tcp,
};

/// From one line about who is there to the next.
const HERE_NS: u64 = 1_000_000_000;

/// What was typed of a fleet.
#[derive(Clone, Copy)]
struct Asked<'a> {
    agents: &'a AgentsArguments,
    broker: &'a BrokerArguments,
    typed: &'a LoadArguments,
}

/// Makes the load, and prints the report.
pub(crate) fn run(arguments: &FleetArguments, given: &Given) -> Result<ExitCode> {
    match &arguments.command {
        None => {}
        Some(FleetCommand::Manifest(manifest)) => return fleet_manifest::run(manifest),
        Some(FleetCommand::Tcp(tcp)) => {
            given.refuse(refusals::FLEET)?;
            let (target, load) = tcp::of_fleet(tcp, given)?;
            let asked = Asked {
                agents: &tcp.agents,
                broker: &tcp.broker,
                typed: &tcp.load,
            };
            return make(asked, target, load);
        }
    }
    let typed = &arguments.typed.load;
    if typed.schema {
        return output::print_schema();
    }
    given.refuse(refusals::FLEET)?;
    if let Some(other) = typed.behind_url.first() {
        bail!("one server is loaded at a time; leave out {other}");
    }
    let url = typed.url.as_deref();
    let (target, load) = arguments.typed.load(given, url, None)?;
    let target = target.context("give the URL of the server: agents have none of their own")?;
    let asked = Asked {
        agents: &arguments.agents,
        broker: &arguments.broker,
        typed,
    };
    make(asked, target, load)
}

fn make(asked: Asked<'_>, target: Target, load: Load) -> Result<ExitCode> {
    let typed = asked.typed;
    if target.unix_socket.is_some() {
        bail!("a Unix socket is on one machine; give a URL that all agents can reach");
    }
    let destination = Destination::open(&typed.output)?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    let started = Started::new(asked.agents, asked.broker)?;
    let settings = Settings {
        agents: started.count.get(),
        version: version(),
        gather_limit_ns: asked.agents.gather,
        chunk_bytes: CHUNK_BYTES_MAX,
    };
    let mut overseeing = Overseeing {
        asked,
        interrupts: &interrupts,
        load: Some((target, load)),
        started: &started,
        line: None,
        shown: Vec::new(),
        here: Here::default(),
        is_connected: true,
    };
    let outcome = brunt_fleet::coordinate(&started.broker, &started.job, settings, &mut overseeing);
    if let Some(line) = &mut overseeing.line {
        line.clear();
    }
    drop(overseeing);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(CoordinateError::Fleet(FleetError::Interrupted)) => {
            return interrupted("interrupted before the window began");
        }
        Err(CoordinateError::Deal(error)) => return Err(anyhow!(error)),
        Err(error) => return Err(error.into()),
    };
    drop(started);
    let was_interrupted = outcome.was_interrupted;
    let mut run = match merged(&outcome) {
        Ok(run) => run,
        Err(error) => {
            // What was measured is not lost for that.
            message::print(&format_args!("{error:#}"));
            keep(&outcome.results, &typed.output)?;
            return Ok(ExitCode::from(EXIT_INVALID));
        }
    };
    if let Some(first) = run.agents.first_mut() {
        // The agents were called without a load: this is how to make it again.
        first.command = command_line::here();
    }
    if let Some(asked) = objectives::asked(&typed.output.objective) {
        run.objectives = asked;
    }
    if typed.output.redact {
        redact(&mut run);
    }
    let code = destination.write(&Judged::of(&run))?;
    Ok(match was_interrupted {
        true => ExitCode::from(EXIT_INTERRUPTED),
        false => code,
    })
}

/// Hands out the plan, shows how far it has come, and passes on signals.
struct Overseeing<'a> {
    asked: Asked<'a>,
    interrupts: &'a Interrupts,
    /// What is loaded, until the plan is made.
    load: Option<(Target, Load)>,
    started: &'a Started,
    line: Option<Line>,
    /// By agent, what was shown of its counts.
    shown: Vec<Progress>,
    here: Here,
    is_connected: bool,
}

/// Agents that are there, as it was said last, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Here {
    count: usize,
    said_ns: u64,
}

impl Overseeing<'_> {
    fn plan(&mut self, members: &[MemberView<'_>]) -> Result<(Plan, Vec<Part>)> {
        let typed = self.asked.typed;
        let (target, load) = self
            .load
            .take()
            .context("there is one plan for each fleet")?;
        let own = |member: &MemberView<'_>| match self.asked.agents.local {
            Some(_) => NonZeroU32::MIN,
            None => brunt_engine::default_workers(&load.model, member.hello.usable_cpus),
        };
        let counts: Vec<NonZeroU32> = members.iter().map(own).collect();
        let sum = counts
            .iter()
            .fold(0_u32, |sum, count| sum.saturating_add(count.get()));
        let workers = NonZeroU32::new(sum).unwrap_or(NonZeroU32::MIN);
        let mut plan = load.plan(typed, target, workers, None);
        tls_config::read_files(&mut plan.tls)?;
        let parts: Option<Vec<Part>> = match plan.workers == workers && typed.threads.is_none() {
            true => {
                let mut first = 0;
                let parts = counts.iter().map(|&count| {
                    let part = Part::new(first, count);
                    first = first.saturating_add(count.get());
                    Some(part)
                });
                parts.collect()
            }
            false => {
                let agents = NonZeroU32::new(members.len() as u32).unwrap_or(NonZeroU32::MIN);
                let numbers = 0..agents.get();
                numbers
                    .map(|index| Part::nth(index, agents, plan.workers))
                    .collect()
            }
        };
        let Some(parts) = parts else {
            let agents = members.len();
            bail!(
                "each agent needs a worker of its own, and each worker a connection; use -t \
                 {agents} and -c {agents} or more"
            );
        };
        let is_idle = |part: &Part| plan.requests_of(part.workers()) == Some(0);
        if parts.iter().any(is_idle) {
            let agents = members.len();
            bail!("each agent needs a request of its own; use -n {agents} or more");
        }
        Ok((plan, parts))
    }

    /// Says how many agents are there, while others are waited for.
    fn say_who_is_here(&mut self, coordinator: &Coordinator) {
        let count = coordinator.members().count();
        let is_new = coordinator.stage() == Stage::Gathering && count != self.here.count;
        let now_ns = clock::now_ns();
        let is_due = now_ns.saturating_sub(self.here.said_ns) >= HERE_NS;
        if is_new && is_due && !self.asked.typed.output.quiet {
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
    fn deal(
        &mut self,
        members: &[MemberView<'_>],
    ) -> Result<Deal, Box<dyn StdError + Send + Sync>> {
        let (plan, parts) = self.plan(members)?;
        let deal = Deal {
            plan: serde_json::to_vec(&plan)?,
            parts,
            timing: Timing {
                warmup_ns: plan.warmup_ns,
                window_ns: plan.stop.duration_ns,
                is_counted: plan.stop.requests.is_some(),
                drain_ns: plan.drain_limit_ns,
            },
        };
        self.line = Some(Line::new(&self.asked.typed.output, &plan));
        Ok(deal)
    }

    fn look(&mut self, coordinator: &Coordinator, is_connected: bool) -> Wish {
        if is_connected != self.is_connected {
            self.is_connected = is_connected;
            if let Some(line) = &mut self.line {
                line.clear();
            }
            message::print(match is_connected {
                true => &"the broker is there again",
                false => &"the broker is gone, and is waited for",
            });
        }
        self.say_who_is_here(coordinator);
        self.show(coordinator);
        if self.interrupts.came() {
            return Wish::End {
                is_hurried: self.interrupts.came_again(),
            };
        }
        let waits = !matches!(coordinator.stage(), Stage::Aborting | Stage::Over);
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
