//! The search for the highest rate that holds objectives: which step is next, and what all steps
//! come to.

use super::rates::{CONFIRMATIONS, CapacityStepReport, LateLooks, Rates};
use crate::{Capacity, CapacityOutcome, CapacityPlan, CapacityResult, CapacityStage, CapacityStep};

/// Rates and windows at which it is seen whether the objectives can be met at all. The next is
/// measured where one missed; where the last did, too, nothing that a server does at higher rates
/// (such as to keep its CPUs from sleeping) helps.
const LOW_LOADS: [(f64, u64); 3] = [
    (10.0, 2_000_000_000),
    (1.0, 6_000_000_000),
    (200.0, 2_000_000_000),
];
/// The lowest of them.
const LOWEST: usize = 1;
/// Where nothing held so far, the next rate is this part of the one that missed.
const DOWN: f64 = 4.0;
/// A rate that held once and not again is too high: the next below it, where no other held.
const BELOW_REFUTED: f64 = 0.95;
/// Rate and window of a step that finds out whether the server has recovered from an overload, and
/// the most such steps. A server that still works off a backlog would falsify the next step.
const RECOVERY: (f64, u64) = (10.0, 2_000_000_000);
const RECOVERIES_MOST: usize = 4;
/// How often a found rate may prove too high.
const REFUTED_MOST: usize = 5;
/// How often an undecided step is made once more, and one that was disturbed, in which brunt was
/// the limit, or whose figures cannot be trusted.
const UNDECIDED_AGAIN: usize = 1;
const REPEATED_MOST: usize = 2;
/// How often one in which brunt was the limit is, where it was the limit at another rate before.
const LIMITED_AGAIN: usize = 1;
/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityNext {
    /// A step at this rate.
    Step {
        /// What the step is for.
        stage: CapacityStage,
        /// Requests per second.
        rate_per_s: f64,
        /// Length of its window, nanoseconds.
        window_ns: u64,
    },
    /// Nothing: there is a result.
    Done,
}

/// The steps in a row that told nothing.
#[derive(Clone, Copy, Debug, Default)]
struct ToldNothing {
    /// How many they are.
    steps: usize,
    /// Whether the last one was undecided, and what it measured keeps all limits.
    kept_limits: bool,
    /// Whether other programs or the hypervisor disturbed one of them.
    was_disturbed: bool,
}

/// A search in progress: knows from its steps which is next. It begins at low load, to see whether
/// the objectives can be met. Then it doubles from the first rate until they are missed, or goes
/// down until they are met; brings the two rates together; and measures both for longer: the one
/// that misses once, and the one that holds three times. Where the first then holds, or the other
/// misses twice, it is the new end of the other kind, and the search goes on above or below it, by
/// long windows. After
/// an overload it waits until the server has recovered. Before its budget is over, it confirms what
/// it has.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    plan: CapacityPlan,
    next: CapacityNext,
    /// The place in [`LOW_LOADS`].
    low_load: usize,
    rates: Rates,
    /// Steps that looked for the server's recovery since it was overloaded.
    recoveries: usize,
    told_nothing: ToldNothing,
    elapsed_ns: u64,
    end: Option<CapacityResult>,
}

impl CapacitySearch {
    /// A search without a step.
    pub fn new(plan: &CapacityPlan) -> Self {
        let mut plan = plan.clone();
        plan.most_per_s = plan.most_per_s.max(plan.least_per_s);
        plan.first_per_s = plan.first_per_s.min(plan.most_per_s).max(plan.least_per_s);
        let mut search = Self {
            plan,
            next: CapacityNext::Done,
            low_load: 0,
            rates: Rates::default(),
            recoveries: 0,
            told_nothing: ToldNothing::default(),
            elapsed_ns: 0,
            end: None,
        };
        let (low_per_s, _) = LOW_LOADS[0];
        match search.plan.first_per_s > low_per_s {
            true => search.go_on_with(CapacityStage::LowLoad, low_per_s),
            false => search.decide(),
        }
        search
    }

    /// A search after these steps.
    pub(crate) fn after(plan: &CapacityPlan, steps: &[CapacityStep]) -> Self {
        let mut search = Self::new(plan);
        steps.iter().for_each(|step| search.tell(step.into()));
        search
    }

    /// What is to be done next.
    pub fn next(&self) -> CapacityNext {
        self.next
    }

    /// Takes the outcome of a step.
    pub fn tell(&mut self, step: CapacityStepReport) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(step.took_ns);
        match step.stage {
            CapacityStage::LowLoad => return self.tell_low_load(step),
            CapacityStage::Recovery => {
                let is_overloaded = step.outcome == CapacityOutcome::Missed;
                return match is_overloaded && self.recoveries < RECOVERIES_MOST {
                    true => self.recover(),
                    false => self.decide(),
                };
            }
            _ => {}
        }
        let keeps_limits = step.outcome == CapacityOutcome::Undecided && step.keeps_limits;
        let kept_limits_before =
            std::mem::replace(&mut self.told_nothing.kept_limits, keeps_limits);
        self.told_nothing.was_disturbed |= step.is_disturbed;
        match step.outcome {
            CapacityOutcome::Met => self.hold(step),
            // That a rate misses by chance shows neither of two windows.
            CapacityOutcome::Undecided if keeps_limits && kept_limits_before => self.hold(step),
            CapacityOutcome::Missed => self.miss(step),
            CapacityOutcome::Undecided if self.told_nothing.steps >= self.undecided_again() => {
                self.miss(step);
            }
            CapacityOutcome::ClientLimited if self.told_nothing.steps >= self.limited_again() => {
                self.miss(step);
            }
            CapacityOutcome::Invalid if self.told_nothing.steps >= REPEATED_MOST => {
                let reason = "the figures could not be trusted, three times in a row";
                return self.finish(self.rates.nothing(reason));
            }
            _ => {
                if step.outcome == CapacityOutcome::Undecided && !self.is_longer(step.stage) {
                    self.rates.short_undecided += 1;
                }
                self.told_nothing.steps += 1;
                return self.go_on_with(step.stage, step.rate_per_s);
            }
        }
        self.decide();
        // What it holds after less than that is worked off in the drain.
        let is_overloaded = step.outcome != CapacityOutcome::Met && step.is_overloaded();
        if self.next != CapacityNext::Done && is_overloaded {
            self.recoveries = 0;
            self.recover();
        }
    }

    /// How often an undecided step is made once more.
    fn undecided_again(&self) -> usize {
        match self.told_nothing.was_disturbed {
            true => REPEATED_MOST,
            false => UNDECIDED_AGAIN,
        }
    }

    /// How often a step in which brunt was the limit is made once more.
    fn limited_again(&self) -> usize {
        match self.rates.has_limit_of_brunt() {
            // This look is the repetition.
            true if self.rates.is_confirmed() => 0,
            true => LIMITED_AGAIN,
            false => REPEATED_MOST,
        }
    }

    /// The next step looks whether the server has recovered.
    fn recover(&mut self) {
        self.recoveries += 1;
        let (per_s, _) = RECOVERY;
        self.go_on_with(CapacityStage::Recovery, per_s.min(self.plan.most_per_s));
    }

    /// Takes the outcome of a step at low load. There, only a miss tells something about all rates.
    fn tell_low_load(&mut self, step: CapacityStepReport) {
        match (step.outcome, self.low_load) {
            (CapacityOutcome::Missed, place) if place + 1 < LOW_LOADS.len() => {
                self.low_load += 1;
                let (per_s, _) = LOW_LOADS[self.low_load];
                return self.go_on_with(CapacityStage::LowLoad, per_s.min(self.plan.most_per_s));
            }
            (CapacityOutcome::Missed, _) => {
                return self.finish(CapacityResult::Impossible {
                    missed_per_s: LOW_LOADS[LOWEST].0,
                });
            }
            (CapacityOutcome::Met, _) => self.hold(step),
            _ => {}
        }
        if self.low_load == LOWEST {
            // It takes one request after the other, and not as many as were tried before.
            let (per_s, _) = LOW_LOADS[LOWEST - 1];
            self.rates.miss_certainly(per_s);
            return self.decide();
        }
        self.go_on_with(CapacityStage::Bracket, self.plan.first_per_s);
    }

    fn hold(&mut self, step: CapacityStepReport) {
        let is_long = self.is_longer(step.stage);
        self.told_nothing = ToldNothing::default();
        self.rates.hold(&step, is_long);
    }

    fn miss(&mut self, step: CapacityStepReport) {
        let is_long = self.is_longer(step.stage);
        self.told_nothing = ToldNothing::default();
        self.rates.miss(&step, is_long);
    }

    /// Whether the window of such a step is as long as that of a confirmation: it is one, it is
    /// made once more, or shorter ones were wrong before.
    fn is_longer(&self, stage: CapacityStage) -> bool {
        match stage {
            CapacityStage::LowLoad | CapacityStage::Recovery => false,
            CapacityStage::Confirmation => true,
            CapacityStage::Bracket | CapacityStage::Bisection => {
                self.told_nothing.steps > 0 || self.rates.vary()
            }
        }
    }

    /// The next step follows from what is known of the rates.
    fn decide(&mut self) {
        let varies_too_much = self.rates.refuted > REFUTED_MOST;
        if self.rates.is_confirmed() {
            let missed = self.miss_to_look_at_again();
            return match missed.filter(|_| !varies_too_much) {
                Some(missed) => self.go_on_with(CapacityStage::Confirmation, missed),
                None => self.finish(self.rates.answer(&self.plan)),
            };
        }
        if varies_too_much {
            let reason = "what held once did not hold again, six times: the server varies too much";
            return self.finish(self.rates.nothing(reason));
        }
        let tolerance = self.rates.ratio_most(&self.plan);
        let (met, missed) = (self.rates.met(), self.rates.missed_per_s());
        let (stage, rate_per_s) = match (met, missed) {
            (None, None) => (CapacityStage::Bracket, self.plan.first_per_s),
            (Some(met), None) if met >= self.plan.most_per_s => (CapacityStage::Confirmation, met),
            (Some(met), None) => (
                CapacityStage::Bracket,
                (2.0 * met).min(self.plan.most_per_s),
            ),
            (None, Some(missed)) if missed <= self.plan.least_per_s => {
                return self.finish(match self.rates.ends_at_brunt() {
                    true => self.rates.bracket(),
                    false => CapacityResult::NotMet {
                        missed_per_s: missed,
                    },
                });
            }
            (None, Some(missed)) => {
                let (stage, lower) = match self.rates.refuted {
                    0 => (CapacityStage::Bracket, missed / DOWN),
                    _ => (CapacityStage::Bisection, missed * BELOW_REFUTED),
                };
                let lower = self.rates.near_answered(&self.plan).unwrap_or(lower);
                (stage, lower.max(self.plan.least_per_s))
            }
            (Some(met), Some(missed)) if missed <= met * tolerance => {
                let is_open = self.rates.confirmations() == 0 && self.rates.is_miss_uncertain();
                (
                    CapacityStage::Confirmation,
                    if is_open { missed } else { met },
                )
            }
            (Some(met), Some(missed)) => {
                let middle = (met * missed).sqrt();
                let rate_per_s = self.rates.near_answered(&self.plan).unwrap_or(middle);
                (CapacityStage::Bisection, rate_per_s)
            }
        };
        self.go_on_with(stage, rate_per_s);
    }

    /// The rate that missed next above the one that is confirmed, if the budget has room for one
    /// more look at it; from the second look on, also to confirm it where it holds.
    fn miss_to_look_at_again(&self) -> Option<f64> {
        let LateLooks {
            rate_per_s: missed,
            done,
            ..
        } = self.rates.miss_to_look_at_again()?;
        let window_ns = self.plan.window_for(missed, true);
        let confirming = match done {
            0 => 0,
            _ => CONFIRMATIONS as u64 - 1,
        };
        let needed_ns = self.plan.step_ns(window_ns).saturating_mul(confirming);
        let has_room =
            |left_ns: u64| self.plan.room_ns(left_ns.saturating_sub(needed_ns)) >= window_ns;
        self.left_ns().is_none_or(has_room).then_some(missed)
    }

    /// The next step is this, if the budget has room for it: else what is known is confirmed, or is
    /// the answer.
    fn go_on_with(&mut self, mut stage: CapacityStage, mut rate_per_s: f64) {
        let mut window_ns = self.window_ns(stage, rate_per_s);
        // Without a step there is no answer at all.
        if let Some(left_ns) = self.left_ns().filter(|_| self.elapsed_ns > 0) {
            if let Some(met) = self.rates.met()
                && (stage != CapacityStage::Confirmation || rate_per_s != met)
                && left_ns
                    < self
                        .plan
                        .step_ns(window_ns)
                        .saturating_add(self.plan.confirmations_ns(&self.rates, met))
            {
                self.told_nothing = ToldNothing::default();
                (stage, rate_per_s) = (CapacityStage::Confirmation, met);
                window_ns = self.window_ns(stage, rate_per_s);
            }
            let room_ns = self.plan.room_ns(left_ns);
            let least_ns = (window_ns / 2).max(self.plan.window_ns).min(window_ns);
            if room_ns < least_ns {
                return self.finish(self.rates.bracket());
            }
            window_ns = window_ns.min(room_ns);
        }
        self.next = CapacityNext::Step {
            stage,
            rate_per_s,
            window_ns,
        };
    }

    /// What of the budget is left; absent without one.
    fn left_ns(&self) -> Option<u64> {
        let budget_ns = self.plan.budget_ns?;
        Some(budget_ns.saturating_sub(self.elapsed_ns))
    }

    /// The window of a step, nanoseconds.
    fn window_ns(&self, stage: CapacityStage, rate_per_s: f64) -> u64 {
        match stage {
            CapacityStage::LowLoad => LOW_LOADS[self.low_load].1,
            CapacityStage::Recovery => RECOVERY.1,
            CapacityStage::Confirmation | CapacityStage::Bracket | CapacityStage::Bisection => {
                self.plan.window_for(rate_per_s, self.is_longer(stage))
            }
        }
    }

    /// How long the rest takes, as it looks now, nanoseconds.
    pub fn expected_ns(&self) -> u64 {
        let CapacityNext::Step {
            stage,
            rate_per_s,
            window_ns,
        } = self.next
        else {
            return 0;
        };
        let next = (stage, rate_per_s, window_ns);
        let is_longer = self.is_longer(CapacityStage::Bisection);
        let expected_ns = self.plan.rest_ns(&self.rates, next, is_longer);
        self.left_ns().map_or(expected_ns, |it| it.min(expected_ns))
    }

    fn finish(&mut self, result: CapacityResult) {
        self.end = Some(result);
        self.next = CapacityNext::Done;
    }

    /// What was found; where the search is not over, that it is not.
    pub fn result(&self) -> CapacityResult {
        self.result_unless_over("the search was interrupted")
    }

    /// What was found; where the search is not over and no rate is confirmed, that there is
    /// nothing, for this reason.
    pub(crate) fn result_unless_over(&self, reason: &str) -> CapacityResult {
        let end = self.end.clone();
        end.unwrap_or_else(|| match self.rates.is_confirmed() {
            true => self.rates.answer(&self.plan),
            false => self.rates.nothing(reason),
        })
    }
}

impl Capacity {
    /// What the steps come to.
    pub fn result(&self) -> CapacityResult {
        let search = CapacitySearch::after(&self.plan, &self.steps);
        match &self.broke_off {
            Some(reason) => search.result_unless_over(reason),
            None => search.result(),
        }
    }
}

#[cfg(test)]
mod tests;
