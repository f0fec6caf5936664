//! The search for the highest rate that holds objectives: which step is next, which rates held and
//! which missed, and what all steps come to.

#[cfg(test)]
mod tests;

use crate::{
    Capacity, CapacityEnd, CapacityOutcome, CapacityPlan, CapacityResult, CapacityStage,
    CapacityStep,
};

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
/// Steps that it takes to find a rate that misses, and from there on: to tell how long it takes.
const STEPS_TO_BRACKET: u64 = 3;
const STEPS_TO_BISECT: u64 = 5;

/// The step that is next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityNext {
    /// What the step is for.
    pub stage: CapacityStage,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Length of its window, nanoseconds.
    pub window_ns: u64,
}

/// The steps in a row that told nothing.
#[derive(Clone, Copy, Debug, Default)]
struct StepsWithoutAnswer {
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
    next: Option<CapacityNext>,
    /// The place in [`LOW_LOADS`].
    low_load: usize,
    rates: Rates,
    /// Steps that looked for the server's recovery since it was overloaded.
    recoveries: usize,
    without_answer: StepsWithoutAnswer,
    elapsed_ns: u64,
    end: Option<CapacityEnd>,
}

impl CapacitySearch {
    /// A search without a step.
    pub fn new(plan: &CapacityPlan) -> Self {
        let mut plan = plan.clone();
        plan.most_per_s = plan.most_per_s.max(plan.least_per_s);
        plan.first_per_s = plan.first_per_s.min(plan.most_per_s).max(plan.least_per_s);
        let mut search = Self {
            plan,
            next: None,
            low_load: 0,
            rates: Rates::default(),
            recoveries: 0,
            without_answer: StepsWithoutAnswer::default(),
            elapsed_ns: 0,
            end: None,
        };
        let (low_per_s, _) = LOW_LOADS[0];
        if search.plan.first_per_s > low_per_s {
            search.go_on_with(CapacityStage::LowLoad, low_per_s);
        } else {
            search.decide();
        }
        search
    }

    /// A search after these steps.
    pub(crate) fn after(plan: &CapacityPlan, steps: &[CapacityStep]) -> Self {
        let mut search = Self::new(plan);
        steps.iter().for_each(|step| search.tell(step));
        search
    }

    /// What is to be done next; nothing where there is a result.
    pub fn next(&self) -> Option<CapacityNext> {
        self.next
    }

    /// Takes the outcome of a step.
    pub fn tell(&mut self, step: &CapacityStep) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(step.took_ns);
        match step.stage {
            CapacityStage::LowLoad => return self.tell_low_load(step),
            CapacityStage::Recovery => {
                let is_overloaded = step.outcome == CapacityOutcome::Missed;
                return if is_overloaded && self.recoveries < RECOVERIES_MOST {
                    self.recover()
                } else {
                    self.decide()
                };
            }
            _ => {}
        }
        let keeps_limits = step.outcome == CapacityOutcome::Undecided && step.keeps_limits();
        let kept_limits_before =
            std::mem::replace(&mut self.without_answer.kept_limits, keeps_limits);
        self.without_answer.was_disturbed |= step.is_disturbed;
        let was_limited = self.rates.missed.iter().any(|miss| miss.is_brunts);
        let again = match step.outcome {
            CapacityOutcome::Met | CapacityOutcome::Missed => 0,
            // That a rate misses by chance shows neither of two windows.
            CapacityOutcome::Undecided if keeps_limits && kept_limits_before => 0,
            CapacityOutcome::Undecided if self.without_answer.was_disturbed => REPEATED_MOST,
            CapacityOutcome::Undecided => UNDECIDED_AGAIN,
            CapacityOutcome::ClientLimited if !was_limited => REPEATED_MOST,
            // This look is the repetition.
            CapacityOutcome::ClientLimited if self.rates.is_confirmed() => 0,
            CapacityOutcome::ClientLimited => LIMITED_AGAIN,
            CapacityOutcome::Invalid => REPEATED_MOST,
        };
        if self.without_answer.steps < again {
            if step.outcome == CapacityOutcome::Undecided && !self.is_longer(step.stage) {
                self.rates.short_undecided += 1;
            }
            self.without_answer.steps += 1;
            return self.go_on_with(step.stage, step.rate_per_s);
        }
        if step.outcome == CapacityOutcome::Invalid {
            let reason = "the figures could not be trusted, three times in a row";
            return self.finish(CapacityEnd::nothing(reason));
        }
        let holds = step.outcome == CapacityOutcome::Met || keeps_limits && kept_limits_before;
        self.settle(step, holds);
        self.decide();
        // What it holds after less than that is worked off in the drain.
        let is_overloaded = step.outcome != CapacityOutcome::Met && is_overloaded(step);
        if self.next.is_some() && is_overloaded {
            self.recoveries = 0;
            self.recover();
        }
    }

    /// The next step looks whether the server has recovered.
    fn recover(&mut self) {
        self.recoveries += 1;
        let (per_s, _) = RECOVERY;
        self.go_on_with(CapacityStage::Recovery, per_s.min(self.plan.most_per_s));
    }

    /// Takes the outcome of a step at low load. There, only a miss tells something about all rates.
    fn tell_low_load(&mut self, step: &CapacityStep) {
        match (step.outcome, self.low_load) {
            (CapacityOutcome::Missed, place) if place + 1 < LOW_LOADS.len() => {
                self.low_load += 1;
                let (per_s, _) = LOW_LOADS[self.low_load];
                return self.go_on_with(CapacityStage::LowLoad, per_s.min(self.plan.most_per_s));
            }
            (CapacityOutcome::Missed, _) => {
                self.rates.miss_certainly(LOW_LOADS[LOWEST].0);
                return self.finish(CapacityEnd::Impossible);
            }
            (CapacityOutcome::Met, _) => self.settle(step, true),
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

    /// The rate of the step holds, or misses.
    fn settle(&mut self, step: &CapacityStep, holds: bool) {
        let is_long = self.is_longer(step.stage);
        self.without_answer = StepsWithoutAnswer::default();
        if holds {
            self.rates.hold(step, is_long);
        } else {
            self.rates.miss(step, is_long);
        }
    }

    /// Whether the window of such a step is as long as that of a confirmation: it is one, it is
    /// made once more, or shorter ones were wrong before.
    fn is_longer(&self, stage: CapacityStage) -> bool {
        match stage {
            CapacityStage::LowLoad | CapacityStage::Recovery => false,
            CapacityStage::Confirmation => true,
            CapacityStage::Bracket | CapacityStage::Bisection => {
                self.without_answer.steps > 0 || self.rates.vary()
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
            return self.finish(CapacityEnd::nothing(reason));
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
                return self.finish(if self.rates.ends_at_brunt() {
                    CapacityEnd::ClientLimited
                } else {
                    CapacityEnd::NotMet
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
                let lowest = self.rates.lowest_miss();
                let is_uncertain = lowest.is_some_and(|miss| !miss.is_certain);
                let is_open = self.rates.confirmations() == 0 && is_uncertain;
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
        let (missed, looks) = self.rates.miss_to_look_at_again()?;
        let window_ns = self.plan.window_for(missed, true);
        let confirming = match looks {
            0 => 0,
            _ => CONFIRMATIONS as u64 - 1,
        };
        let needed_ns = self.plan.step_ns(window_ns).saturating_mul(confirming);
        let left_ns = self.left_ns().saturating_sub(needed_ns);
        (self.plan.room_ns(left_ns) >= window_ns).then_some(missed)
    }

    /// The next step is this, if the budget has room for it: else what is known is confirmed, or is
    /// the answer.
    fn go_on_with(&mut self, mut stage: CapacityStage, mut rate_per_s: f64) {
        let mut window_ns = self.window_ns(stage, rate_per_s);
        // Without a step there is no answer at all.
        if self.elapsed_ns > 0 {
            let left_ns = self.left_ns();
            let step_ns = self.plan.step_ns(window_ns);
            if let Some(met) = self.rates.met()
                && (stage != CapacityStage::Confirmation || rate_per_s != met)
                && left_ns < step_ns.saturating_add(self.confirmations_ns(met))
            {
                self.without_answer = StepsWithoutAnswer::default();
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
        self.next = Some(CapacityNext {
            stage,
            rate_per_s,
            window_ns,
        });
    }

    /// What of the budget is left.
    fn left_ns(&self) -> u64 {
        self.plan.budget_ns.saturating_sub(self.elapsed_ns)
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

    /// How long the confirmations of a rate take that are still to come, nanoseconds.
    fn confirmations_ns(&self, rate_per_s: f64) -> u64 {
        let left = CONFIRMATIONS.saturating_sub(self.rates.confirmations()) as u64;
        let step_ns = self.plan.step_ns(self.plan.window_for(rate_per_s, true));
        step_ns.saturating_mul(left)
    }

    /// How long the rest takes, as it looks now, nanoseconds.
    pub fn expected_ns(&self) -> u64 {
        let Some(next) = self.next else {
            return 0;
        };
        let (plan, rates) = (&self.plan, &self.rates);
        let steps = match (next.stage, rates.met(), rates.missed_per_s()) {
            (CapacityStage::Confirmation, ..) => 0,
            (_, Some(met), Some(missed)) => {
                let ratio = (missed / met).ln() / rates.ratio_most(plan).ln();
                ratio.log2().ceil().max(1.0) as u64
            }
            (_, None, Some(_)) => 1 + STEPS_TO_BISECT,
            (_, _, None) => STEPS_TO_BRACKET + STEPS_TO_BISECT,
        };
        let near = match next.stage {
            CapacityStage::LowLoad => plan.first_per_s,
            _ => rates.met().unwrap_or(next.rate_per_s),
        };
        let is_longer = self.is_longer(CapacityStage::Bisection);
        let usual_ns = plan.step_ns(plan.window_for(near, is_longer));
        let longer_ns = plan.step_ns(plan.window_for(near, true));
        let looks = u64::from(rates.miss_to_look_at_again().is_some());
        let expected_ns = usual_ns
            .saturating_mul(steps)
            .saturating_add(longer_ns.saturating_mul(looks))
            .saturating_add(self.confirmations_ns(near));
        self.left_ns().min(expected_ns)
    }

    fn finish(&mut self, end: CapacityEnd) {
        self.end = Some(end);
        self.next = None;
    }

    /// What was found; where the search is not over, that it is not.
    pub fn result(&self) -> CapacityResult {
        self.result_unless_over("the search was interrupted")
    }

    /// What was found; where the search is not over and no rate is confirmed, that there is
    /// nothing, for this reason.
    pub(crate) fn result_unless_over(&self, reason: &str) -> CapacityResult {
        let end = match &self.end {
            Some(end) => end.clone(),
            None if self.rates.is_confirmed() => self.rates.answer(&self.plan),
            None => CapacityEnd::nothing(reason),
        };
        CapacityResult {
            end,
            met_per_s: self.rates.met(),
            missed_per_s: self.rates.missed_per_s(),
            confirmations: self.rates.confirmations(),
        }
    }
}

impl CapacityEnd {
    fn nothing(reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::Nothing { reason }
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

/// Rounds at the found rate, all of which have to hold the objectives.
const CONFIRMATIONS: usize = 3;
/// A server that answers less than this share of a rate is overloaded: what it answers is near to
/// its capacity, and the rates on both sides of that are tried first.
const OVERLOADED: f64 = 0.9;
const AROUND_ANSWERED: [f64; 2] = [0.95, 1.05];
/// How far the rates that hold and miss may be apart, as a ratio less 1, where response times vary
/// from window to window: what varies has no closer limit.
const TOLERANCE_VARYING: f64 = 0.05;
/// Short windows that decided nothing, from which on they are not worth their time.
const SHORT_UNDECIDED_MOST: usize = 3;

/// Whether the server answered far less than it was asked.
fn is_overloaded(step: &CapacityStep) -> bool {
    let answered_per_s = step.record.successes_per_s;
    answered_per_s.is_some_and(|per_s| per_s < OVERLOADED * step.rate_per_s)
}

/// A rate that missed.
#[derive(Clone, Copy, Debug, Default)]
struct Miss {
    rate_per_s: f64,
    /// What was answered of it, per second, where that was far less.
    answered_per_s: Option<f64>,
    /// Whether brunt was the limit: nothing above it can be known.
    is_brunts: bool,
    /// Whether a longer window or an overload showed it. A short window may have met a moment in
    /// which the machine did something else.
    is_certain: bool,
    /// Whether it missed once more after the rate below it was confirmed.
    is_late: bool,
}

/// Looks at the rate that missed after the one below it is confirmed. A shared machine may be slow
/// for as long as several windows take, and each chance miss makes the answer too low; a chance
/// hold does not make it too high, for it has to hold three times.
const LATE_LOOKS: usize = 3;
/// Looks at a rate at which brunt was the limit, which varies less.
const LATE_LOOKS_LIMITED: usize = 1;

/// A rate that held.
#[derive(Clone, Copy, Debug)]
struct Held {
    rate_per_s: f64,
    /// Long windows in which it did.
    confirmations: usize,
    /// Whether it missed in one since: that may be the machine. At the next it is too high.
    has_missed: bool,
}

/// The rates that held and those that missed.
#[derive(Clone, Debug, Default)]
struct Rates {
    /// The rates that held, but those that did not hold again.
    held: Vec<Held>,
    /// The rates that missed, but those at or below one that held later.
    missed: Vec<Miss>,
    /// How often a rate that held proved too high.
    refuted: usize,
    /// Short windows that decided nothing.
    short_undecided: usize,
}

impl Rates {
    /// The rate of the step holds; `is_long`: by a window as long as that of a confirmation, which
    /// it then is.
    fn hold(&mut self, step: &CapacityStep, is_long: bool) {
        let mut held = self.held.iter_mut();
        match held.find(|held| held.rate_per_s == step.rate_per_s) {
            Some(held) => held.confirmations += usize::from(is_long),
            None => self.held.push(Held {
                rate_per_s: step.rate_per_s,
                confirmations: usize::from(is_long),
                has_missed: false,
            }),
        }
        self.missed.retain(|miss| miss.rate_per_s > step.rate_per_s);
    }

    /// The rate of the step missed; `is_long`: by a window as long as that of a confirmation.
    fn miss(&mut self, step: &CapacityStep, is_long: bool) {
        let is_overloaded = is_overloaded(step);
        let mut held = self.held.iter_mut();
        let held = held.find(|held| held.rate_per_s == step.rate_per_s);
        if let Some(held) = held.filter(|held| !held.has_missed && !is_overloaded) {
            held.has_missed = true;
            return;
        }
        self.missed.push(Miss {
            rate_per_s: step.rate_per_s,
            answered_per_s: step.record.successes_per_s.filter(|_| is_overloaded),
            is_brunts: step.outcome == CapacityOutcome::ClientLimited,
            is_certain: is_overloaded || is_long,
            is_late: self.is_confirmed(),
        });
        if self.met().is_some_and(|met| met >= step.rate_per_s) {
            // What held once does not hold always: it is too high.
            self.held.retain(|held| held.rate_per_s < step.rate_per_s);
            self.refuted += 1;
        }
    }

    /// This rate missed, for certain.
    fn miss_certainly(&mut self, rate_per_s: f64) {
        self.missed.push(Miss {
            rate_per_s,
            is_certain: true,
            ..Miss::default()
        });
    }

    /// Whether short windows tell too little: a rate held that did not hold again, or they left
    /// open again and again what longer ones decide.
    fn vary(&self) -> bool {
        self.refuted > 0
            || self.short_undecided >= SHORT_UNDECIDED_MOST
            || self.held.iter().any(|held| held.has_missed)
    }

    /// How many times the rate that holds the one that misses may be in the end.
    fn ratio_most(&self, plan: &CapacityPlan) -> f64 {
        let least = if self.vary() { TOLERANCE_VARYING } else { 0.0 };
        1.0 + plan.tolerance.max(least)
    }

    /// The highest rate that holds.
    fn met(&self) -> Option<f64> {
        Some(self.highest_held()?.rate_per_s)
    }

    /// How often the highest rate that holds was confirmed.
    fn confirmations(&self) -> usize {
        self.highest_held().map_or(0, |held| held.confirmations)
    }

    /// Whether it was confirmed as often as it has to be.
    fn is_confirmed(&self) -> bool {
        self.confirmations() >= CONFIRMATIONS
    }

    fn highest_held(&self) -> Option<&Held> {
        let held = self.held.iter();
        held.max_by(|one, other| one.rate_per_s.total_cmp(&other.rate_per_s))
    }

    /// The lowest rate that missed, as it was measured last.
    fn lowest_miss(&self) -> Option<&Miss> {
        let missed = self.missed.iter().rev();
        missed.min_by(|one, other| one.rate_per_s.total_cmp(&other.rate_per_s))
    }

    /// The lowest rate that missed.
    fn missed_per_s(&self) -> Option<f64> {
        Some(self.lowest_miss()?.rate_per_s)
    }

    /// The lowest rate that missed, if that may have been the machine at that time: the server
    /// answered nearly all of it, and it was not looked at as often as it may be. Also how often it
    /// was since the rate below it was confirmed.
    fn miss_to_look_at_again(&self) -> Option<(f64, usize)> {
        let lowest = self.lowest_miss();
        let miss = lowest.filter(|miss| miss.answered_per_s.is_none())?;
        let is_late = |other: &&Miss| other.is_late && other.rate_per_s == miss.rate_per_s;
        let looks = self.missed.iter().filter(is_late).count();
        let most = if miss.is_brunts {
            LATE_LOOKS_LIMITED
        } else {
            LATE_LOOKS
        };
        (looks < most).then_some((miss.rate_per_s, looks))
    }

    /// A rate near to what an overloaded server answered, between those that hold and miss.
    fn near_answered(&self, plan: &CapacityPlan) -> Option<f64> {
        let miss = self.lowest_miss()?;
        let answered = miss.answered_per_s?;
        let (low, high) = (self.met().unwrap_or(plan.least_per_s), miss.rate_per_s);
        let tolerance = self.ratio_most(plan);
        let is_between = |rate: &f64| *rate > low * tolerance && *rate * tolerance < high;
        AROUND_ANSWERED
            .map(|share| share * answered)
            .into_iter()
            .find(is_between)
    }

    /// Whether brunt was the limit at the lowest rate that missed.
    fn ends_at_brunt(&self) -> bool {
        self.lowest_miss().is_some_and(|miss| miss.is_brunts)
    }

    /// How the search ends with nothing more than this.
    fn bracket(&self) -> CapacityEnd {
        if self.ends_at_brunt() {
            CapacityEnd::ClientLimited
        } else {
            CapacityEnd::Bracket
        }
    }

    /// How the search ends once the highest rate that holds is confirmed.
    fn answer(&self, plan: &CapacityPlan) -> CapacityEnd {
        let tolerance = self.ratio_most(plan);
        match (self.met(), self.missed_per_s()) {
            (Some(met), Some(missed)) if missed <= met * tolerance && !self.ends_at_brunt() => {
                CapacityEnd::Found
            }
            (Some(met), None) if met >= plan.most_per_s => CapacityEnd::AtLeast,
            _ => self.bracket(),
        }
    }
}
