//! The door between the commands of a fleet and the program that they belong to.

use std::any::Any;
use std::fmt::Display;

use anyhow::Result;
use brunt_engine::{Phase, RunObserver};
use brunt_load::{Part, Plan, RequestGenerator};
use brunt_record::Run;
use brunt_report::AgentProgress;

use crate::Program;

/// The program, as its user and its signals.
pub trait Host {
    /// Tells its user something.
    fn say(&self, words: &dyn Display);

    /// Signals that came to end it.
    fn signals(&self) -> u32;
}

/// What shows how far a round has come.
pub trait Board: RunObserver {
    /// Whether the rows of agents are to be shown now.
    fn is_due(&self, phase: Phase) -> bool;

    /// Shows a row for each agent.
    fn show_agents(&mut self, agents: Vec<AgentProgress>);

    /// Takes away what was drawn.
    fn clear(&mut self);
}

/// What the program does for an agent in a round, beside the load.
pub trait AgentHost: Host {
    /// Waits until sockets of earlier rounds have given back as many ports as the plan needs, of
    /// which there are so many; gives whether that was waited for, and not `is_over`.
    fn settle(&self, plan: &Plan, ports: Option<u64>, is_over: &mut dyn FnMut() -> bool) -> bool;

    /// What makes the requests of these workers of the plan; absent: `is_over`.
    ///
    /// # Errors
    ///
    /// Nothing can be made of the program.
    fn generators(
        &self,
        program: &Program,
        plan: &Plan,
        part: Part,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Generators>>;

    /// Adds to a run what is known of it besides what was measured.
    ///
    /// # Errors
    ///
    /// What made its requests failed.
    fn complete(&self, run: &mut Run) -> Result<()>;
}

/// What makes the requests of an agent's workers.
#[derive(Default)]
pub struct Generators {
    /// One for each worker.
    pub generators: Vec<Box<dyn RequestGenerator>>,
    /// What has to be there for as long as they are: their script.
    pub kept: Option<Box<dyn Any>>,
}
