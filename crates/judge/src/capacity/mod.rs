//! The search for the highest rate that holds objectives, as it is stored: its steps. What they
//! come to is worked out when it is read.

pub(crate) mod rates;
pub(crate) mod search;
pub(crate) mod windows;

use brunt_load::Plan;
use brunt_record::{Environment, Objective};
use serde::{Deserialize, Serialize};

use crate::{ObjectiveOutcome, RoundRecord};

/// Most steps of a search.
pub const CAPACITY_STEPS_MAX: usize = 1_000;

/// What kind of stored file it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CapacityKind {
    /// A search for a capacity.
    #[default]
    #[serde(rename = "capacity")]
    Capacity,
}

/// What a step of the search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityStage {
    /// Finds out whether the objectives can be met at all, at rates at which nothing waits.
    LowLoad,
    /// Waits at low load after an overload, until the server has worked off what it still held.
    Recovery,
    /// Finds a rate that holds and one that misses: each rate is twice the one before, or a quarter
    /// of it.
    Bracket,
    /// Narrows the gap between the highest rate that holds and the lowest that misses.
    Bisection,
    /// Measures both rates again, for longer: first the one that misses, then the one that holds.
    Confirmation,
}

impl CapacityStage {
    /// Whether so few requests are sent that their replies show no more than that objectives are
    /// missed, or all met.
    pub fn is_at_low_load(self) -> bool {
        matches!(self, Self::LowLoad | Self::Recovery)
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityOutcome {
    /// All objectives were met, and the rate was kept.
    Met,
    /// An objective was missed, or the server fell behind the rate.
    Missed,
    /// Brunt or its machine was the limit: nothing is known of the server at this rate.
    ClientLimited,
    /// An objective was not shown to be met, for want of samples or because other programs or the
    /// hypervisor took CPU time. The step is made once more, for longer, and where others took CPU
    /// time twice more. If that does not show it either, it counts as met where both of the last
    /// measured values keep the limit, and as missed elsewhere. At low load the step is not made
    /// again: there, only a miss tells something.
    Undecided,
    /// The figures cannot be trusted.
    Invalid,
}

/// One objective of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityObjective {
    /// What was asked.
    pub objective: Objective,
    /// What was measured: nanoseconds, a share, or per second.
    pub measured: Option<f64>,
    /// The pessimistic end of its 95 % interval.
    pub bound: Option<f64>,
    /// Whether the objective was met.
    pub is_met: bool,
    /// Why nothing was compared, or why without an interval.
    pub reason: Option<String>,
}

/// One step of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    /// What the step was for.
    pub stage: CapacityStage,
    /// Requests planned per second.
    pub rate_per_s: f64,
    /// The outcome of the step.
    pub outcome: CapacityOutcome,
    /// Why, in words; empty where all was met in the whole window, and where the objectives say it.
    pub because: String,
    /// Whether other programs or the hypervisor took CPU time that brunt or the server needed.
    pub is_disturbed: bool,
    /// The objectives, one by one.
    pub objectives: Vec<CapacityObjective>,
    /// How long it took with set-up, warm-up and drain, nanoseconds.
    pub took_ns: u64,
    /// The figures of the step.
    pub record: RoundRecord,
}

impl CapacityStep {
    /// Whether what was measured keeps all limits, be it with certainty or without.
    pub fn keeps_limits(&self) -> bool {
        self.objectives.iter().all(|it| it.outcome().keeps_limit())
    }

    /// Whether this step, as undecided as `before` at the same rate, counts as met: what was
    /// measured keeps the limits both times.
    pub fn counts_as_met_after(&self, before: &Self) -> bool {
        let is_undecided = |it: &Self| it.outcome == CapacityOutcome::Undecided;
        is_undecided(self)
            && is_undecided(before)
            && self.rate_per_s == before.rate_per_s
            && self.keeps_limits()
            && before.keeps_limits()
    }
}

/// What a search is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityPlan {
    /// The URL.
    pub url: String,
    /// What every step has to reach.
    pub objectives: Vec<Objective>,
    /// How far the rates that hold and miss may be apart in the end, as a ratio less 1.
    pub tolerance: f64,
    /// The first rate, per second.
    pub first_per_s: f64,
    /// The lowest rate that is tried, per second: below it, there would be too few samples.
    pub least_per_s: f64,
    /// The highest rate that is tried, per second.
    pub most_per_s: f64,
    /// Shortest window of a step, nanoseconds.
    pub window_ns: u64,
    /// Length of the warm-up of each step, nanoseconds.
    pub warmup_ns: u64,
    /// The search ends within so many nanoseconds; null where it takes what it takes.
    pub budget_ns: Option<u64>,
}

/// Share of the steps from which on the disturbed ones put the answer in doubt.
const DISTURBED_LEAST: f64 = 0.1;

/// A search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// `capacity`.
    pub kind: CapacityKind,
    /// Version of this layout: 2.
    pub format: u32,
    /// Version of brunt that made it.
    pub brunt_version: String,
    /// What was searched for.
    pub plan: CapacityPlan,
    /// The load of a step in full; null where none was measured.
    pub load: Option<Plan>,
    /// Machine, server and client of the search.
    pub environment: Environment,
    /// Why the search ended before it had a result; null where it had one, or was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_off: Option<String>,
    /// The steps, in the order in which they were made.
    pub steps: Vec<CapacityStep>,
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CapacityResult {
    /// The rate holds, and was confirmed.
    Found {
        /// The highest rate that holds, per second.
        rate_per_s: f64,
        /// The lowest rate that missed, per second.
        missed_per_s: f64,
    },
    /// The highest rate that may be tried holds, and was confirmed.
    AtLeast {
        /// The highest rate that may be tried, per second.
        rate_per_s: f64,
    },
    /// Brunt or its machine is the limit: the server takes this rate, and perhaps more.
    ClientLimited {
        /// The highest rate that holds, per second; null where none did.
        rate_per_s: Option<f64>,
        /// The rate at which brunt was the limit, per second.
        limited_per_s: f64,
    },
    /// The objectives are missed at low load: no rate can meet them.
    Impossible {
        /// The lowest rate that was measured, per second.
        missed_per_s: f64,
    },
    /// No rate holds, down to the lowest that is tried.
    NotMet {
        /// The lowest rate that is tried, per second.
        missed_per_s: f64,
    },
    /// The budget was over before the rates were as close as they should be, or confirmed.
    Bracket {
        /// The highest rate that holds, per second; null where none did.
        met_per_s: Option<f64>,
        /// The lowest rate that missed, per second; null where none did.
        missed_per_s: Option<f64>,
        /// How often the rate that holds was confirmed: 3 at most.
        confirmations: usize,
    },
    /// The search has no result.
    Nothing {
        /// Why.
        reason: String,
        /// The highest rate that held, per second, not confirmed; null where none did.
        met_per_s: Option<f64>,
        /// The lowest rate that missed, per second; null where none did.
        missed_per_s: Option<f64>,
    },
}

impl CapacityResult {
    /// Whether a rate holds, or brunt was the limit before one missed.
    pub fn has_passed(&self) -> bool {
        match self {
            Self::Found { .. }
            | Self::AtLeast { .. }
            | Self::ClientLimited { .. }
            | Self::Bracket {
                met_per_s: Some(_), ..
            } => true,
            Self::Impossible { .. }
            | Self::NotMet { .. }
            | Self::Bracket {
                met_per_s: None, ..
            }
            | Self::Nothing { .. } => false,
        }
    }

    /// The highest rate that holds, per second; absent where none is known to.
    pub fn held_per_s(&self) -> Option<f64> {
        match *self {
            Self::Found { rate_per_s, .. } | Self::AtLeast { rate_per_s } => Some(rate_per_s),
            Self::ClientLimited { rate_per_s, .. } => rate_per_s,
            Self::Bracket { met_per_s, .. } | Self::Nothing { met_per_s, .. } => met_per_s,
            Self::Impossible { .. } | Self::NotMet { .. } => None,
        }
    }
}

impl From<ObjectiveOutcome> for CapacityObjective {
    fn from(outcome: ObjectiveOutcome) -> Self {
        Self {
            objective: outcome.objective,
            measured: outcome.measured,
            bound: outcome.bound,
            is_met: outcome.is_met,
            reason: outcome.reason,
        }
    }
}

impl CapacityObjective {
    /// The outcome of the objective, as it was judged.
    pub fn outcome(&self) -> ObjectiveOutcome {
        ObjectiveOutcome {
            objective: self.objective.clone(),
            measured: self.measured,
            bound: self.bound,
            is_met: self.is_met,
            reason: self.reason.clone(),
        }
    }
}

impl Capacity {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 2;

    /// The last step that held at this rate; the last of all where there is none.
    pub fn step_at(&self, held_per_s: Option<f64>) -> Option<&CapacityStep> {
        let is_at_rate = |step: &&CapacityStep| Some(step.rate_per_s) == held_per_s;
        let held = |step: &&CapacityStep| step.outcome == CapacityOutcome::Met;
        let steps = || self.steps.iter().rev();
        let at_rate = || steps().filter(is_at_rate);
        let step = at_rate().find(held).or_else(|| at_rate().next());
        step.or_else(|| steps().next())
    }

    /// How many steps did not hold while others took CPU time, where those are enough to put the
    /// answer in doubt: on a quiet machine the rate may be higher.
    pub fn disturbed_steps(&self) -> Option<usize> {
        let is_spoilt = |step: &&CapacityStep| {
            step.is_disturbed
                && step.outcome != CapacityOutcome::Met
                && !step.stage.is_at_low_load()
        };
        let spoilt = self.steps.iter().filter(is_spoilt).count();
        (spoilt as f64 > DISTURBED_LEAST * self.steps.len() as f64).then_some(spoilt)
    }
}
