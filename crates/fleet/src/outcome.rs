//! What a round of all agents came to.

use brunt_load::Part;
use thiserror::Error;

use crate::agreement::AgentClocks;

/// An agent of which there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostAgent {
    /// What it is called.
    pub name: String,
    /// Its workers.
    pub part: Part,
    /// Why.
    pub reason: String,
    /// When that was known, nanoseconds from the start of the window.
    pub at_ns: i64,
}

/// What an agent measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentResult {
    /// What it is called.
    pub name: String,
    /// The workers that it was given.
    pub part: Part,
    /// As it sent it.
    pub bytes: Vec<u8>,
    /// How its window lay; absent where its clock contradicts itself.
    pub clocks: Option<AgentClocks>,
}

/// What all measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// By agent, in the order of their parts.
    pub results: Vec<AgentResult>,
    /// Those without.
    pub lost: Vec<LostAgent>,
    /// The load was ended by whoever asked for it.
    pub was_interrupted: bool,
}

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FleetError {
    /// Not all agents came.
    #[error("{here} of {wanted} agents are there after {waited_s} s{refused}")]
    TooFew {
        /// That came.
        here: u32,
        /// That are needed.
        wanted: u32,
        /// For how long they were waited for.
        waited_s: u64,
        /// Why others were refused, in words; empty where none was.
        refused: String,
    },
    /// An agent said that it cannot.
    #[error("agent {name}: {reason}")]
    Agent {
        /// What it is called.
        name: String,
        /// As it said.
        reason: String,
    },
    /// An agent was lost before there was anything to measure.
    #[error("agent {name} {reason} before the window began: nothing was measured")]
    Lost {
        /// What it is called.
        name: String,
        /// What is known of that.
        reason: String,
    },
    /// No agent gave a result.
    #[error("there is no result of any agent: agent {name} {reason}")]
    AllLost {
        /// What the first of them is called.
        name: String,
        /// What is known of that.
        reason: String,
    },
    /// It was asked for before there was anything to report.
    #[error("interrupted before there was a result")]
    Interrupted,
}
