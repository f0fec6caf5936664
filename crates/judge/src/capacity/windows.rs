//! How long the steps of a search are: windows that hold samples enough, and what fits into a
//! budget.

use brunt_record::Objective;

use super::rates::{CONFIRMATIONS, Rates};
use crate::{CapacityPlan, CapacityStage, samples_needed};

/// What a step leaves behind is not waited for longer.
pub const CAPACITY_DRAIN_NS_MAX: u64 = 2_000_000_000;

/// Factor on the least number of samples that an interval needs. With only the least the interval
/// is wide, all the more where requests that wait together are alike.
const SAMPLES_MARGIN: f64 = 10.0;
/// Without any error the least number is enough. A step with some is made once more, for longer.
const ERRORS_MARGIN: f64 = 1.25;
/// Longest window of a step without a budget, before it is lengthened to decide.
const WINDOW_NS_MAX: u64 = 300_000_000_000;
/// Longest window with a budget, as a part of the budget, so that it holds a search.
const WINDOWS_OF_BUDGET: u64 = 9;
/// A confirmation, and a step that is made once more since it was undecided, is so many times as
/// long as a step.
const LONGER: u64 = 3;
/// Steps that it takes to find a rate that misses, and from there on: to tell how long it takes.
const STEPS_TO_BRACKET: u64 = 3;
const STEPS_TO_BISECT: u64 = 5;

impl CapacityPlan {
    /// How long a step takes whose drain is short, nanoseconds.
    pub(super) fn step_ns(&self, window_ns: u64) -> u64 {
        self.warmup_ns.saturating_add(window_ns)
    }

    /// A window is as long as it takes to have samples enough, nanoseconds; `is_longer`: to confirm
    /// a rate, or to decide what was undecided.
    pub(super) fn window_for(&self, rate_per_s: f64, is_longer: bool) -> u64 {
        let samples_ns = samples(&self.objectives) / rate_per_s * 1e9;
        let most_ns = window_ns_max(self.budget_ns).max(self.window_ns);
        let step_ns = self.window_ns.max(samples_ns as u64).min(most_ns);
        match (is_longer, self.budget_ns) {
            (false, _) => step_ns,
            (true, None) => step_ns.saturating_mul(LONGER),
            (true, Some(_)) => step_ns.saturating_mul(LONGER).min(most_ns),
        }
    }

    /// How long the confirmations of a rate take that are still to come, nanoseconds.
    pub(super) fn confirmations_ns(&self, rates: &Rates, rate_per_s: f64) -> u64 {
        let left = CONFIRMATIONS.saturating_sub(rates.confirmations()) as u64;
        self.step_ns(self.window_for(rate_per_s, true))
            .saturating_mul(left)
    }

    /// What of the budget is left for the window of a step, nanoseconds.
    pub(super) fn room_ns(&self, left_ns: u64) -> u64 {
        let others_ns = self.warmup_ns.saturating_add(CAPACITY_DRAIN_NS_MAX);
        left_ns.saturating_sub(others_ns)
    }

    /// How long a search takes from a step of this window on, as it looks, nanoseconds.
    pub(super) fn rest_ns(
        &self,
        rates: &Rates,
        (stage, rate_per_s, window_ns): (CapacityStage, f64, u64),
        is_longer: bool,
    ) -> u64 {
        let steps = match (stage, rates.met(), rates.missed_per_s()) {
            (CapacityStage::Confirmation, ..) => 0,
            (_, Some(met), Some(missed)) => {
                let ratio = (missed / met).ln() / rates.ratio_most(self).ln();
                ratio.log2().ceil().max(1.0) as u64
            }
            (_, None, Some(_)) => 1 + STEPS_TO_BISECT,
            (_, _, None) => STEPS_TO_BRACKET + STEPS_TO_BISECT,
        };
        let next_ns = match steps {
            0 => 0,
            _ => self.step_ns(window_ns),
        };
        let near = match stage {
            CapacityStage::LowLoad => self.first_per_s,
            _ => rates.met().unwrap_or(rate_per_s),
        };
        let usual_ns = self.step_ns(self.window_for(near, is_longer));
        let longer_ns = self.step_ns(self.window_for(near, true));
        let looks = u64::from(rates.confirmations() == 0 && rates.is_miss_uncertain())
            + rates
                .miss_to_look_at_again()
                .map_or(0, |looks| looks.left as u64);
        let of_miss_ns = longer_ns.saturating_mul(looks);
        usual_ns
            .saturating_mul(steps.saturating_sub(1))
            .saturating_add(next_ns)
            .saturating_add(of_miss_ns)
            .saturating_add(self.confirmations_ns(rates, near))
    }
}

/// Longest window of a step, before it is lengthened to decide.
fn window_ns_max(budget_ns: Option<u64>) -> u64 {
    budget_ns.map_or(WINDOW_NS_MAX, |budget_ns| budget_ns / WINDOWS_OF_BUDGET)
}

/// Requests of which all of these can be judged well.
fn samples(objectives: &[Objective]) -> f64 {
    most_of(objectives, SAMPLES_MARGIN, ERRORS_MARGIN)
}

/// The lowest rate at which these can be judged at all, and the rate from which on the shortest
/// window is long enough to judge them well.
pub fn rates_to_judge(
    objectives: &[Objective],
    window_ns: u64,
    budget_ns: Option<u64>,
) -> (f64, f64) {
    let seconds = |ns: u64| ns.max(1) as f64 / 1e9;
    let longest_s = seconds(window_ns_max(budget_ns).max(window_ns));
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
