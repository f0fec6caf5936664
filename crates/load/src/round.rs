//! One round of a session: what is measured in it, where that differs from the plan.

use std::num::NonZeroU32;

use crate::{LoadModel, Plan, Stop};

/// A warm-up and a window at one level of load. Everything else is as the session's plan has it.
#[derive(Clone, Debug)]
pub struct Round {
    /// What makes a request due.
    pub model: LoadModel,
    /// Connections held at once, all workers together; at most as many as the plan has. Those that
    /// are open already are kept, and those that are too many are closed.
    pub connections: NonZeroU32,
    /// Length of the warm-up, nanoseconds.
    pub warmup_ns: u64,
    /// Whether half of the connections of a closed loop pause for parts of it.
    pub halves_warmup: bool,
    /// When the window ends.
    pub stop: Stop,
    /// Limit of the drain phase, nanoseconds.
    pub drain_limit_ns: u64,
}

impl Round {
    /// The round that is the whole plan.
    pub fn of(plan: &Plan) -> Self {
        Self {
            model: plan.model.clone(),
            connections: plan.connections,
            warmup_ns: plan.warmup_ns,
            halves_warmup: plan.halves_warmup,
            stop: plan.stop,
            drain_limit_ns: plan.drain_limit_ns,
        }
    }

    /// The plan of this round alone.
    pub fn plan(&self, session: &Plan) -> Plan {
        Plan {
            model: self.model.clone(),
            connections: self.connections.min(session.connections),
            warmup_ns: self.warmup_ns,
            halves_warmup: self.halves_warmup,
            stop: self.stop,
            drain_limit_ns: self.drain_limit_ns,
            ..session.clone()
        }
    }
}
