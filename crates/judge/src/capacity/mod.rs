//! The search for the highest rate that holds objectives, as it is stored: its steps. What they
//! come to is worked out when it is read. How long steps are follows from the samples that
//! objectives need, and from the budget.

pub(crate) mod search;

use brunt_load::Plan;
use brunt_record::{Environment, Objective};
use serde::{Deserialize, Serialize};

use crate::{ExperimentKind, ObjectiveOutcome, RoundRecord, samples_needed};

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
    pub objectives: Vec<ObjectiveOutcome>,
    /// How long it took with set-up, warm-up and drain, nanoseconds.
    pub took_ns: u64,
    /// The figures of the step.
    pub record: RoundRecord,
}

impl CapacityStep {
    /// Whether what was measured keeps all limits, be it with certainty or without.
    pub fn keeps_limits(&self) -> bool {
        self.objectives.iter().all(ObjectiveOutcome::keeps_limit)
    }

    /// Whether this step, as undecided as `before` at the same rate, counts as met: what was
    /// measured keeps the limits both times.
    pub fn counts_as_met_after(&self, before: &Self) -> bool {
        let is_open =
            |step: &Self| step.outcome == CapacityOutcome::Undecided && step.keeps_limits();
        is_open(self) && is_open(before) && self.rate_per_s == before.rate_per_s
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
    /// The search ends within so many nanoseconds.
    pub budget_ns: u64,
}

/// Share of the steps from which on the disturbed ones put the answer in doubt.
const DISTURBED_LEAST: f64 = 0.1;

/// A search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// `capacity`.
    pub kind: ExperimentKind,
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

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityResult {
    /// How it ended.
    #[serde(flatten)]
    pub end: CapacityEnd,
    /// The highest rate that holds, per second; null where none did.
    pub met_per_s: Option<f64>,
    /// The lowest rate that missed, or at which brunt was the limit, per second; null where none
    /// did.
    pub missed_per_s: Option<f64>,
    /// How often the rate that holds was confirmed: 3 times at most.
    pub confirmations: usize,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CapacityEnd {
    /// The rate holds, and was confirmed.
    Found,
    /// The highest rate that may be tried holds, and was confirmed.
    AtLeast,
    /// Brunt or its machine is the limit: the server takes the rate that holds, and perhaps more.
    ClientLimited,
    /// The objectives are missed at low load: no rate can meet them.
    Impossible,
    /// No rate holds, down to the lowest that is tried.
    NotMet,
    /// The budget was over before the rates were as close as they should be, or confirmed.
    Bracket,
    /// The search has no result.
    Nothing {
        /// Why.
        reason: String,
    },
}

impl CapacityResult {
    /// Whether a rate holds, or brunt was the limit before one missed.
    pub fn has_passed(&self) -> bool {
        match self.end {
            CapacityEnd::ClientLimited => true,
            CapacityEnd::Nothing { .. } => false,
            _ => self.met_per_s.is_some(),
        }
    }
}

impl Capacity {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 2;

    /// The last step that held at this rate; the last of all where there is none.
    pub fn step_at(&self, held_per_s: Option<f64>) -> Option<&CapacityStep> {
        let at_rate = |step: &&CapacityStep| Some(step.rate_per_s) == held_per_s;
        let held = |step: &&CapacityStep| at_rate(step) && step.outcome == CapacityOutcome::Met;
        let steps = || self.steps.iter();
        let step = steps().rfind(held).or_else(|| steps().rfind(at_rate));
        step.or(self.steps.last())
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

/// What a step leaves behind is not waited for longer.
pub const CAPACITY_DRAIN_NS_MAX: u64 = 2_000_000_000;

/// Factor on the least number of samples that an interval needs. With only the least the interval
/// is wide, all the more where requests that wait together are alike.
const SAMPLES_MARGIN: f64 = 10.0;
/// Without any error the least number is enough. A step with some is made once more, for longer.
const ERRORS_MARGIN: f64 = 1.25;
/// Longest window of a step, as a part of the budget, so that it holds a search.
const WINDOWS_OF_BUDGET: u64 = 9;
/// A confirmation, and a step that is made once more since it was undecided, is so many times as
/// long as a step.
const LONGER: u64 = 3;

impl CapacityPlan {
    /// How long a step takes whose drain is short, nanoseconds.
    fn step_ns(&self, window_ns: u64) -> u64 {
        self.warmup_ns.saturating_add(window_ns)
    }

    /// A window is as long as it takes to have samples enough, nanoseconds; `is_longer`: to confirm
    /// a rate, or to decide what was undecided.
    fn window_for(&self, rate_per_s: f64, is_longer: bool) -> u64 {
        let samples_ns = samples(&self.objectives) / rate_per_s * 1e9;
        let most_ns = self.window_ns.max(self.budget_ns / WINDOWS_OF_BUDGET);
        let step_ns = self.window_ns.max(samples_ns as u64).min(most_ns);
        if is_longer {
            step_ns.saturating_mul(LONGER).min(most_ns)
        } else {
            step_ns
        }
    }

    /// What of the budget is left for the window of a step, nanoseconds.
    fn room_ns(&self, left_ns: u64) -> u64 {
        let others_ns = self.warmup_ns.saturating_add(CAPACITY_DRAIN_NS_MAX);
        left_ns.saturating_sub(others_ns)
    }
}

/// Requests of which all of these can be judged well.
fn samples(objectives: &[Objective]) -> f64 {
    most_of(objectives, SAMPLES_MARGIN, ERRORS_MARGIN)
}

/// The lowest rate at which these can be judged at all, and the rate from which on the shortest
/// window is long enough to judge them well.
pub fn rates_to_judge(objectives: &[Objective], window_ns: u64, budget_ns: u64) -> (f64, f64) {
    let seconds = |ns: u64| ns.max(1) as f64 / 1e9;
    let longest_s = seconds(window_ns.max(budget_ns / WINDOWS_OF_BUDGET));
    let least_per_s = most_of(objectives, 1.0, 1.0) / longest_s;
    (
        least_per_s.max(1.0),
        samples(objectives) / seconds(window_ns),
    )
}

/// The most samples that one of them needs, times its margin.
fn most_of(objectives: &[Objective], of_quantile: f64, of_errors: f64) -> f64 {
    let of = |objective: &Objective| match *objective.plain() {
        Objective::ResponseQuantile { q, .. } => of_quantile * samples_needed(q) as f64,
        Objective::Errors { below } => of_errors * samples_needed(below) as f64,
        _ => 0.0,
    };
    objectives.iter().map(of).fold(1.0, f64::max)
}
