//! The agents of a fleet as who makes the rounds of an experiment.

use std::num::NonZeroU32;

use anyhow::Result;
use brunt_engine::{Phase, RunError};
use brunt_fleet::{Agents, Board, Gathered, Task};
use brunt_load::{LoadModel, Plan, Target};
use brunt_record::Run;
use brunt_report::AgentProgress;

use crate::args::LoadArguments;
use crate::broker_args::BrokerArguments;
use crate::executor::{Executor, RoundSource, ThisProcess};
use crate::fleet_args::AgentsArguments;
use crate::progress::Line;
use crate::signals::Interrupts;

/// What was typed of a fleet.
#[derive(Clone, Copy)]
pub(crate) struct AskedFleet<'a> {
    pub(crate) agents: &'a AgentsArguments,
    pub(crate) broker: &'a BrokerArguments,
    pub(crate) typed: &'a LoadArguments,
}

impl AskedFleet<'_> {
    fn task(&self) -> Result<Task> {
        let typed = self.typed;
        Ok(Task {
            agents: Agents {
                agents: self.agents.agents,
                local: self.agents.local,
                ssh: self.agents.ssh.clone(),
                broker: self.broker.named()?,
                gather_ns: self.agents.gather,
            },
            has_script: typed.script.is_some(),
            is_generated: typed.script.is_some() || typed.sessions.is_some(),
            has_workers: typed.threads.is_some(),
            is_quiet: typed.output.quiet,
        })
    }

    /// The agents, when all are there.
    ///
    /// # Errors
    ///
    /// As [`Gathered::gather`].
    pub(crate) fn gather<'h>(
        self,
        target: &Target,
        interrupts: &'h Interrupts,
    ) -> Result<Gathered<'h>> {
        Gathered::gather(self.task()?, target, interrupts)
    }
}

/// Who makes the rounds of a load of `target`: the agents that were asked for, else this process.
///
/// # Errors
///
/// As [`AskedFleet::gather`].
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
    Ok(Box::new(FleetExecutor {
        gathered: asked.gather(target, interrupts)?,
        interrupts,
    }))
}

/// Agents that are all there.
struct FleetExecutor<'a> {
    gathered: Gathered<'a>,
    interrupts: &'a Interrupts,
}

impl Executor for FleetExecutor<'_> {
    fn workers(&self, model: &LoadModel) -> NonZeroU32 {
        self.gathered.workers(model)
    }

    fn check(&self, plan: &Plan) -> Result<()> {
        self.gathered.check(plan)
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
        self.gathered.round(plan, line)
    }

    /// Agents wait for ports of their machines by themselves.
    fn settle(&self, _ports: Option<u64>) -> Result<()> {
        if self.interrupts.came() {
            return Err(RunError::Interrupted.into());
        }
        Ok(())
    }
}

impl Board for Line {
    fn is_due(&self, phase: Phase) -> bool {
        Self::is_due(self, phase)
    }

    fn show_agents(&mut self, agents: Vec<AgentProgress>) {
        Self::show_agents(self, agents);
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}
