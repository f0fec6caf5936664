//! The search for the highest rate that holds objectives: which step is next, for how long, and
//! what all steps come to.

use brunt_record::Objective;

use crate::{
    Capacity, CapacityOutcome, CapacityPlan, CapacityResult, CapacityStage, CapacityStep,
    samples_needed,
};

/// Rounds at the found rate, all of which have to hold the objectives.
pub const CONFIRMATIONS: usize = 3;
/// What a step leaves behind is not waited for longer.
pub const CAPACITY_DRAIN_NS_MAX: u64 = 2_000_000_000;

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
/// Factor on the least number of samples that an interval needs. With only the least the interval
/// is wide, all the more where requests that wait together are alike.
const SAMPLES_MARGIN: f64 = 10.0;
/// Errors are so few where they are allowed that less says as much.
const ERRORS_MARGIN: f64 = 3.0;
/// Longest window of a step without a budget, before it is lengthened to decide.
const WINDOW_NS_MAX: u64 = 300_000_000_000;
/// Longest window with a budget, as a part of the budget, so that it holds a search.
const WINDOWS_OF_BUDGET: u64 = 9;
/// A confirmation, and a step that is made once more since it was undecided, is so many times as
/// long as a step.
const LONGER: u64 = 4;
/// Where nothing held so far, the next rate is this part of the one that missed.
const DOWN: f64 = 4.0;
/// A rate that held once and not again is too high: the next below it, where no other held.
const BELOW_REFUTED: f64 = 0.95;
/// A server that answers less than this share of a rate is overloaded: what it answers is near to
/// its capacity, and the rates on both sides of that are tried first.
const OVERLOADED: f64 = 0.9;
const AROUND_ANSWERED: [f64; 2] = [0.95, 1.05];
/// Rate and window of a step that finds out whether the server has recovered from an overload, and
/// the most such steps. A server that still works off a backlog would falsify the next step.
const RECOVERY: (f64, u64) = (10.0, 2_000_000_000);
const RECOVERIES_MOST: usize = 4;
/// How often a found rate may prove too high.
const REFUTED_MOST: usize = 5;
/// How often an undecided step is made once more, and one in which brunt was the limit or whose
/// figures cannot be trusted.
const UNDECIDED_AGAIN: usize = 1;
const REPEATED_MOST: usize = 2;
/// Steps that it takes to find a rate that misses, and from there on: to tell how long it takes.
const STEPS_TO_BRACKET: u64 = 3;
const STEPS_TO_BISECT: u64 = 5;

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

/// What is reported to the search of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityStepReport {
    /// What the step was for.
    pub stage: CapacityStage,
    /// Requests planned per second.
    pub rate_per_s: f64,
    /// The outcome of the step.
    pub outcome: CapacityOutcome,
    /// Successful replies per second, where known.
    pub answered_per_s: Option<f64>,
    /// How long it took, nanoseconds.
    pub took_ns: u64,
}

impl From<&CapacityStep> for CapacityStepReport {
    fn from(step: &CapacityStep) -> Self {
        Self {
            stage: step.stage,
            rate_per_s: step.rate_per_s,
            outcome: step.outcome,
            answered_per_s: step.record.successes_per_s,
            took_ns: step.took_ns,
        }
    }
}

/// A rate that missed.
#[derive(Clone, Copy, Debug)]
struct Miss {
    rate_per_s: f64,
    /// What was answered of it, per second, where that was far less.
    answered_per_s: Option<f64>,
    /// Whether brunt was the limit: nothing above it can be known.
    is_brunts: bool,
    /// Whether a longer window or an overload showed it. A short window may have met a moment in
    /// which the machine did something else.
    is_certain: bool,
}

/// A search in progress: knows from its steps which is next. It begins at low load, to see whether
/// the objectives can be met. Then it doubles from the first rate until they are missed, or goes
/// down until they are met; brings the two rates together; and measures both for longer: the one
/// that misses once, and the one that holds three times. Where one then shows the opposite, it is
/// the new end of the other kind, and the search goes on above or below it. After an overload it
/// waits until the server has recovered. Before its budget is over, it confirms what it has.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    plan: CapacityPlan,
    next: CapacityNext,
    /// The place in [`LOW_LOADS`].
    low_load: usize,
    /// The rates that held, but those that did not hold again.
    held: Vec<f64>,
    /// The rates that missed, but those at or below one that held later.
    missed: Vec<Miss>,
    /// Steps that looked for the server's recovery since it was overloaded.
    recoveries: usize,
    confirmed: usize,
    refuted: usize,
    /// Steps in a row that told nothing.
    told_nothing: usize,
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
            held: Vec::new(),
            missed: Vec::new(),
            recoveries: 0,
            confirmed: 0,
            refuted: 0,
            told_nothing: 0,
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
        let is_repeated = self.told_nothing >= UNDECIDED_AGAIN;
        match step.outcome {
            CapacityOutcome::Met => self.hold(step),
            CapacityOutcome::Missed => self.miss(step),
            CapacityOutcome::Undecided if is_repeated => self.miss(step),
            CapacityOutcome::ClientLimited
                if self.told_nothing >= REPEATED_MOST
                    || self.missed.iter().any(|it| it.is_brunts) =>
            {
                self.miss(step);
            }
            CapacityOutcome::Invalid if self.told_nothing >= REPEATED_MOST => {
                let reason = "the figures could not be trusted, three times in a row";
                return self.finish(self.nothing(reason));
            }
            _ => {
                self.told_nothing += 1;
                return self.go_on_with(step.stage, step.rate_per_s);
            }
        }
        self.decide();
        // What it holds after less than that is worked off in the drain.
        let is_overloaded = step.outcome != CapacityOutcome::Met && is_overloaded(&step);
        if self.next != CapacityNext::Done && is_overloaded {
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
            self.missed.push(Miss {
                rate_per_s: per_s,
                answered_per_s: None,
                is_brunts: false,
                is_certain: true,
            });
            return self.decide();
        }
        self.go_on_with(CapacityStage::Bracket, self.plan.first_per_s);
    }

    fn hold(&mut self, step: CapacityStepReport) {
        self.told_nothing = 0;
        if self.met().is_some_and(|met| met < step.rate_per_s) {
            self.confirmed = 0;
        }
        self.held.push(step.rate_per_s);
        self.missed.retain(|it| it.rate_per_s > step.rate_per_s);
        if step.stage == CapacityStage::Confirmation {
            self.confirmed += 1;
        }
    }

    fn miss(&mut self, step: CapacityStepReport) {
        let is_overloaded = is_overloaded(&step);
        let is_long = step.stage == CapacityStage::Confirmation || self.told_nothing > 0;
        self.told_nothing = 0;
        self.missed.push(Miss {
            rate_per_s: step.rate_per_s,
            answered_per_s: step.answered_per_s.filter(|_| is_overloaded),
            is_brunts: step.outcome == CapacityOutcome::ClientLimited,
            is_certain: is_overloaded || is_long,
        });
        if self.met().is_some_and(|met| met >= step.rate_per_s) {
            // What held once does not hold always: it is too high.
            self.held.retain(|&held| held < step.rate_per_s);
            self.confirmed = 0;
            self.refuted += 1;
        }
    }

    /// The highest rate that holds.
    fn met(&self) -> Option<f64> {
        self.held.iter().copied().reduce(f64::max)
    }

    /// The lowest rate that missed, as it was measured last.
    fn lowest_miss(&self) -> Option<&Miss> {
        let missed = self.missed.iter().rev();
        missed.reduce(|lowest, it| match it.rate_per_s < lowest.rate_per_s {
            true => it,
            false => lowest,
        })
    }

    fn missed_per_s(&self) -> Option<f64> {
        Some(self.lowest_miss()?.rate_per_s)
    }

    fn decide(&mut self) {
        if self.refuted > REFUTED_MOST {
            let reason = "what held once did not hold again, six times: the server varies too much";
            return self.finish(self.nothing(reason));
        }
        let tolerance = 1.0 + self.plan.tolerance;
        let (met, missed) = (self.met(), self.missed_per_s());
        if self.confirmed >= CONFIRMATIONS {
            return self.finish(match (met, missed) {
                (Some(rate_per_s), Some(missed_per_s))
                    if missed_per_s <= rate_per_s * tolerance && !self.ends_at_brunt() =>
                {
                    CapacityResult::Found {
                        rate_per_s,
                        missed_per_s,
                    }
                }
                (Some(rate_per_s), None) if rate_per_s >= self.plan.most_per_s => {
                    CapacityResult::AtLeast { rate_per_s }
                }
                _ => self.bracket(),
            });
        }
        let (stage, rate_per_s) = match (met, missed) {
            (None, None) => (CapacityStage::Bracket, self.plan.first_per_s),
            (Some(met), None) if met >= self.plan.most_per_s => (CapacityStage::Confirmation, met),
            (Some(met), None) => (
                CapacityStage::Bracket,
                (2.0 * met).min(self.plan.most_per_s),
            ),
            (None, Some(missed)) if missed <= self.plan.least_per_s => {
                return self.finish(match self.ends_at_brunt() {
                    true => self.bracket(),
                    false => CapacityResult::NotMet {
                        missed_per_s: missed,
                    },
                });
            }
            (None, Some(missed)) => {
                let (stage, lower) = match self.refuted {
                    0 => (CapacityStage::Bracket, missed / DOWN),
                    _ => (CapacityStage::Bisection, missed * BELOW_REFUTED),
                };
                let lower = self.near_answered(missed).unwrap_or(lower);
                (stage, lower.max(self.plan.least_per_s))
            }
            (Some(met), Some(missed)) if missed <= met * tolerance => {
                let is_open = self.confirmed == 0 && self.is_miss_uncertain();
                (
                    CapacityStage::Confirmation,
                    if is_open { missed } else { met },
                )
            }
            (Some(met), Some(missed)) => {
                let middle = (met * missed).sqrt();
                let rate_per_s = self.near_answered(missed).unwrap_or(middle);
                (CapacityStage::Bisection, rate_per_s)
            }
        };
        self.go_on_with(stage, rate_per_s);
    }

    /// Whether the lowest rate that missed did so in a short window alone.
    fn is_miss_uncertain(&self) -> bool {
        self.lowest_miss().is_some_and(|it| !it.is_certain)
    }

    /// A rate near to what an overloaded server answered, between those that hold and miss.
    fn near_answered(&self, missed: f64) -> Option<f64> {
        let answered = self.lowest_miss()?.answered_per_s?;
        let (low, high) = (self.met().unwrap_or(self.plan.least_per_s), missed);
        let tolerance = 1.0 + self.plan.tolerance;
        let is_between = |rate: &f64| *rate > low * tolerance && *rate * tolerance < high;
        AROUND_ANSWERED
            .map(|share| share * answered)
            .into_iter()
            .find(is_between)
    }

    /// The next step is this, if the budget has room for it: else what is known is confirmed, or is
    /// the answer.
    fn go_on_with(&mut self, mut stage: CapacityStage, mut rate_per_s: f64) {
        let mut window_ns = self.window_ns(stage, rate_per_s);
        // Without a step there is no answer at all.
        if let Some(left_ns) = self.left_ns().filter(|_| self.elapsed_ns > 0) {
            if let Some(met) = self.met()
                && (stage != CapacityStage::Confirmation || rate_per_s != met)
                && left_ns
                    < self
                        .step_ns(window_ns)
                        .saturating_add(self.confirmations_ns(met))
            {
                self.told_nothing = 0;
                (stage, rate_per_s) = (CapacityStage::Confirmation, met);
                window_ns = self.window_ns(stage, rate_per_s);
            }
            let others_ns = self.plan.warmup_ns.saturating_add(CAPACITY_DRAIN_NS_MAX);
            let room_ns = left_ns.saturating_sub(others_ns);
            let least_ns = (window_ns / 2).max(self.plan.window_ns).min(window_ns);
            if room_ns < least_ns {
                return self.finish(self.bracket());
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

    /// How long a step takes whose drain is short.
    fn step_ns(&self, window_ns: u64) -> u64 {
        self.plan.warmup_ns.saturating_add(window_ns)
    }

    fn confirmations_ns(&self, rate_per_s: f64) -> u64 {
        let window_ns = self.window_ns(CapacityStage::Confirmation, rate_per_s);
        let left = CONFIRMATIONS.saturating_sub(self.confirmed) as u64;
        self.step_ns(window_ns).saturating_mul(left)
    }

    /// A window is as long as it takes to have samples enough.
    fn window_ns(&self, stage: CapacityStage, rate_per_s: f64) -> u64 {
        match stage {
            CapacityStage::LowLoad => return LOW_LOADS[self.low_load].1,
            CapacityStage::Recovery => return RECOVERY.1,
            _ => {}
        }
        let samples_ns = samples(&self.plan.objectives) / rate_per_s * 1e9;
        let most_ns = window_ns_max(self.plan.budget_ns).max(self.plan.window_ns);
        let step_ns = self.plan.window_ns.max(samples_ns as u64).min(most_ns);
        let is_longer = stage == CapacityStage::Confirmation || self.told_nothing > 0;
        match (is_longer, self.plan.budget_ns) {
            (false, _) => step_ns,
            (true, None) => step_ns.saturating_mul(LONGER),
            (true, Some(_)) => step_ns.saturating_mul(LONGER).min(most_ns),
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
        let steps = match (stage, self.met(), self.missed_per_s()) {
            (CapacityStage::Confirmation, ..) => 0,
            (_, Some(met), Some(missed)) => {
                let ratio = (missed / met).ln() / self.plan.tolerance.ln_1p();
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
            CapacityStage::LowLoad => self.plan.first_per_s,
            _ => self.met().unwrap_or(rate_per_s),
        };
        let usual_ns = self.step_ns(self.window_ns(CapacityStage::Bisection, near));
        let of_miss_ns = match self.confirmed == 0 && self.is_miss_uncertain() {
            true => self.step_ns(self.window_ns(CapacityStage::Confirmation, near)),
            false => 0,
        };
        let expected_ns = usual_ns
            .saturating_mul(steps.saturating_sub(1))
            .saturating_add(next_ns)
            .saturating_add(of_miss_ns)
            .saturating_add(self.confirmations_ns(near));
        self.left_ns().map_or(expected_ns, |it| it.min(expected_ns))
    }

    /// Whether brunt was the limit at the lowest rate that missed.
    fn ends_at_brunt(&self) -> bool {
        self.lowest_miss().is_some_and(|it| it.is_brunts)
    }

    fn bracket(&self) -> CapacityResult {
        match self.missed_per_s() {
            Some(limited_per_s) if self.ends_at_brunt() => CapacityResult::ClientLimited {
                rate_per_s: self.met(),
                limited_per_s,
            },
            missed_per_s => CapacityResult::Bracket {
                met_per_s: self.met(),
                missed_per_s,
                confirmations: self.confirmed,
            },
        }
    }

    fn nothing(&self, reason: &str) -> CapacityResult {
        CapacityResult::Nothing {
            reason: reason.to_owned(),
            met_per_s: self.met(),
            missed_per_s: self.missed_per_s(),
        }
    }

    fn finish(&mut self, result: CapacityResult) {
        self.end = Some(result);
        self.next = CapacityNext::Done;
    }

    /// What was found; where the search is not over, that it is not.
    pub fn result(&self) -> CapacityResult {
        self.result_unless_over("the search was interrupted")
    }

    /// What was found; where the search is not over, that there is nothing for this reason.
    pub(crate) fn result_unless_over(&self, reason: &str) -> CapacityResult {
        let end = self.end.clone();
        end.unwrap_or_else(|| self.nothing(reason))
    }
}

/// Whether the server answered far less than it was asked.
fn is_overloaded(step: &CapacityStepReport) -> bool {
    let is_far_less = |per_s: f64| per_s < OVERLOADED * step.rate_per_s;
    step.answered_per_s.is_some_and(is_far_less)
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
mod tests {
    use brunt_record::Environment;

    use super::*;
    use crate::{Capacity, CapacityKind};

    const S: u64 = 1_000_000_000;

    fn plan(first_per_s: f64) -> CapacityPlan {
        CapacityPlan {
            url: "http://a/".to_owned(),
            objectives: vec![Objective::NoErrors],
            tolerance: 0.02,
            first_per_s,
            least_per_s: 1.0,
            most_per_s: 1e6,
            window_ns: 2 * S,
            warmup_ns: S / 2,
            budget_ns: None,
        }
    }

    /// The steps of a search in which each has the `outcome` of its rate, and what they come to.
    fn search(
        plan: &CapacityPlan,
        mut outcome: impl FnMut(CapacityStage, f64) -> CapacityOutcome,
    ) -> (CapacityResult, Vec<CapacityStepReport>) {
        let mut search = CapacitySearch::new(plan);
        let mut told = Vec::new();
        while let CapacityNext::Step {
            stage,
            rate_per_s,
            window_ns,
        } = search.next()
        {
            assert!(search.expected_ns() > 0);
            let step = CapacityStepReport {
                stage,
                rate_per_s,
                outcome: outcome(stage, rate_per_s),
                answered_per_s: None,
                took_ns: plan.warmup_ns + window_ns,
            };
            search.tell(step);
            told.push(step);
            assert!(told.len() < 200, "{search:?}");
        }
        assert_eq!(search.expected_ns(), 0);
        (search.result(), told)
    }

    fn below(limit: f64) -> impl Fn(CapacityStage, f64) -> CapacityOutcome {
        move |_, rate| match rate <= limit {
            true => CapacityOutcome::Met,
            false => CapacityOutcome::Missed,
        }
    }

    fn took_ns(told: &[CapacityStepReport]) -> u64 {
        told.iter().map(|step| step.took_ns).sum()
    }

    #[test]
    fn what_broke_off_has_no_result_but_its_reason() {
        let mut found = Capacity {
            kind: CapacityKind::Capacity,
            format: Capacity::FORMAT,
            brunt_version: String::new(),
            plan: plan(100.0),
            load: None,
            environment: Environment::default(),
            broke_off: None,
            steps: Vec::new(),
        };
        let reason = |found: &Capacity| match found.result() {
            CapacityResult::Nothing { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason(&found), "the search was interrupted");
        found.broke_off = Some("the server is gone".to_owned());
        assert_eq!(reason(&found), "the server is gone");
    }

    #[test]
    fn a_capacity_is_bracketed_from_either_side() {
        for first in [1.0, 100.0, 900.0, 1e5] {
            let (result, told) = search(&plan(first), below(1_000.0));
            let CapacityResult::Found {
                rate_per_s,
                missed_per_s,
            } = result
            else {
                panic!("{result:?}");
            };
            assert!(rate_per_s <= 1_000.0 && missed_per_s > 1_000.0);
            assert!(missed_per_s <= 1.02 * rate_per_s, "{rate_per_s}");
            assert!(told.len() < 25, "{told:?}");
        }
    }

    #[test]
    fn what_an_overloaded_server_answers_shortens_the_search() {
        let mut search = CapacitySearch::new(&plan(1_000.0));
        let mut told = 0;
        while let CapacityNext::Step {
            stage, rate_per_s, ..
        } = search.next()
        {
            search.tell(CapacityStepReport {
                stage,
                rate_per_s,
                outcome: below(50_000.0)(stage, rate_per_s),
                answered_per_s: Some(rate_per_s.min(50_000.0)),
                took_ns: 0,
            });
            told += 1;
        }
        let CapacityResult::Found { rate_per_s, .. } = search.result() else {
            panic!("{search:?}");
        };
        assert!((48_500.0..=50_000.0).contains(&rate_per_s), "{rate_per_s}");
        // Low load, seven up to 64,000, one to recover, two around what was answered, then halves
        // and four more.
        assert!(told <= 19, "{told}");
    }

    #[test]
    fn the_ends_of_what_is_tried() {
        let (most, _) = search(&plan(100.0), below(1e9));
        assert_eq!(most, CapacityResult::AtLeast { rate_per_s: 1e6 });
        // What holds at low load was not held up by its service time.
        let (none, _) = search(&plan(100.0), |stage, _| match stage {
            CapacityStage::LowLoad => CapacityOutcome::Undecided,
            _ => CapacityOutcome::Missed,
        });
        assert_eq!(none, CapacityResult::NotMet { missed_per_s: 1.0 });
    }

    #[test]
    fn an_objective_that_low_load_misses_is_impossible_after_three_steps() {
        let (result, told) = search(&plan(1_000.0), below(0.0));
        assert_eq!(result, CapacityResult::Impossible { missed_per_s: 1.0 });
        let rates: Vec<f64> = told.iter().map(|step| step.rate_per_s).collect();
        assert_eq!(rates, [10.0, 1.0, 200.0]);
        assert!(took_ns(&told) < 12 * S);
        // A server that is slow for it slept is none of these.
        let (result, _) = search(&plan(1_000.0), |stage, rate| match rate {
            rate if rate < 100.0 => CapacityOutcome::Missed,
            rate => below(5_000.0)(stage, rate),
        });
        assert!(matches!(result, CapacityResult::Found { .. }), "{result:?}");
        // Five requests at once are too much for this one, and one is not.
        let (result, _) = search(&plan(1_000.0), below(5.0));
        let CapacityResult::Found { rate_per_s, .. } = result else {
            panic!("{result:?}");
        };
        assert!((4.8..=5.0).contains(&rate_per_s), "{rate_per_s}");
    }

    #[test]
    fn a_budget_ends_every_search_with_what_is_known() {
        let p99 = Objective::ResponseQuantile {
            q: 0.99,
            below_ns: 1,
        };
        for seconds in [15, 30, 60, 90, 180, 600] {
            let budget_ns = Some(seconds * S);
            let (least_per_s, first_per_s) =
                rates_to_judge(std::slice::from_ref(&p99), 2 * S, budget_ns);
            for limit in [0.0, 30.0, 150.0, 4_000.0, 70_000.0, 1e9] {
                let plan = CapacityPlan {
                    objectives: vec![p99.clone()],
                    first_per_s,
                    least_per_s,
                    budget_ns,
                    ..plan(1.0)
                };
                let of_low_load = |stage, rate| match stage {
                    CapacityStage::LowLoad if rate <= limit => CapacityOutcome::Undecided,
                    _ => below(limit)(stage, rate),
                };
                let (result, told) = search(&plan, of_low_load);
                let context = format!("{seconds} s, {limit}: {result:?} {told:?}");
                assert!(took_ns(&told) <= seconds * S, "{context}");
                let of_default = seconds >= 180;
                match result {
                    CapacityResult::Bracket {
                        met_per_s,
                        missed_per_s,
                        ..
                    } => {
                        assert!(met_per_s.is_none_or(|met| met <= limit), "{context}");
                        assert!(missed_per_s.is_none_or(|it| it > limit), "{context}");
                        assert!(!of_default || limit <= 150.0, "{context}");
                    }
                    CapacityResult::Found { rate_per_s, .. } => {
                        assert!(
                            rate_per_s <= limit && rate_per_s > 0.97 * limit,
                            "{context}"
                        );
                    }
                    CapacityResult::AtLeast { .. } => assert_eq!(limit, 1e9),
                    CapacityResult::Impossible { .. } => assert_eq!(limit, 0.0),
                    // There is no time for as many replies as a lower rate needs.
                    CapacityResult::NotMet { .. } => assert!(limit < least_per_s, "{context}"),
                    _ => panic!("{context}"),
                }
            }
        }
    }

    #[test]
    fn what_is_found_is_confirmed_before_the_budget_is_over() {
        let plan = CapacityPlan {
            budget_ns: Some(40 * S),
            ..plan(2_000.0)
        };
        let (result, told) = search(&plan, below(10_000.0));
        let CapacityResult::Bracket {
            met_per_s: Some(met),
            missed_per_s: Some(missed),
            confirmations: CONFIRMATIONS,
        } = result
        else {
            panic!("{result:?} {told:?}");
        };
        assert!(met <= 10_000.0 && missed > 10_000.0 && met < missed);
    }

    #[test]
    fn a_client_that_is_the_limit_is_named() {
        let (result, _) = search(&plan(100.0), |_, rate| match rate <= 1_000.0 {
            true => CapacityOutcome::Met,
            false => CapacityOutcome::ClientLimited,
        });
        let CapacityResult::ClientLimited {
            rate_per_s: Some(rate),
            limited_per_s,
        } = result
        else {
            panic!("{result:?}");
        };
        // The bracket is closed below it: the server holds at least what brunt can do.
        assert!((980.0..=1_000.0).contains(&rate), "{rate}");
        assert!(limited_per_s > 1_000.0 && limited_per_s <= 1.02 * rate);
        // Where brunt is the limit at every rate, nothing is known of the server.
        let (result, _) = search(&plan(100.0), |stage, _| match stage {
            CapacityStage::LowLoad => CapacityOutcome::Undecided,
            _ => CapacityOutcome::ClientLimited,
        });
        let nothing = CapacityResult::ClientLimited {
            rate_per_s: None,
            limited_per_s: 1.0,
        };
        assert_eq!(result, nothing);
    }

    #[test]
    fn a_server_works_off_an_overload_before_the_next_step() {
        // What is left of an overload makes the two steps after it miss, whatever their rate.
        let mut search = CapacitySearch::new(&plan(4_000.0));
        let (mut left, mut recoveries) = (0, 0);
        while let CapacityNext::Step {
            stage, rate_per_s, ..
        } = search.next()
        {
            let is_late = left > 0 || rate_per_s > 1_000.0;
            left = match OVERLOADED * rate_per_s > 1_000.0 {
                true => 2,
                false => usize::saturating_sub(left, 1),
            };
            recoveries += usize::from(stage == CapacityStage::Recovery);
            search.tell(CapacityStepReport {
                stage,
                rate_per_s,
                outcome: match (is_late, stage.is_at_low_load()) {
                    (false, false) => CapacityOutcome::Met,
                    (false, true) => CapacityOutcome::Undecided,
                    (true, _) => CapacityOutcome::Missed,
                },
                answered_per_s: Some(rate_per_s.min(1_000.0)),
                took_ns: 0,
            });
        }
        let CapacityResult::Found { rate_per_s, .. } = search.result() else {
            panic!("{search:?}");
        };
        assert!((975.0..=1_000.0).contains(&rate_per_s), "{rate_per_s}");
        assert_eq!(recoveries, 3, "4,000 is the one overload");
    }

    #[test]
    fn what_is_undecided_is_missed_in_the_end() {
        let mut undecided = 0;
        let (result, told) = search(&plan(100.0), |_, rate| match rate <= 1_000.0 {
            true => CapacityOutcome::Met,
            false => {
                undecided += 1;
                CapacityOutcome::Undecided
            }
        });
        assert!(matches!(result, CapacityResult::Found { .. }), "{result:?}");
        assert_eq!(undecided % 2, 0);
        // The second time takes four times as long.
        let mut windows = told.iter().filter(|it| it.rate_per_s > 1_000.0);
        let mut window_ns = || windows.next().expect("one").took_ns - S / 2;
        assert_eq!((window_ns(), window_ns()), (2 * S, 8 * S));
    }

    #[test]
    fn one_unlucky_step_does_not_decide_how_high_the_search_goes() {
        let outcomes = [CapacityOutcome::Missed, CapacityOutcome::ClientLimited];
        for unlucky in outcomes {
            // Each step of the search but the longer ones is the unlucky one for once.
            for place in 1..12 {
                let mut count = 0;
                let (result, told) = search(&plan(100.0), |stage, rate| {
                    count += 1;
                    let is_unlucky = count == place && stage != CapacityStage::Confirmation;
                    match is_unlucky && !stage.is_at_low_load() {
                        true => unlucky,
                        false => below(1_000.0)(stage, rate),
                    }
                });
                let CapacityResult::Found {
                    rate_per_s,
                    missed_per_s,
                } = result
                else {
                    panic!("{place}: {result:?}");
                };
                let context = format!("{place}: {rate_per_s} {told:?}");
                assert!((980.0..=1_000.0).contains(&rate_per_s), "{context}");
                assert!(missed_per_s > 1_000.0, "{context}");
                assert!(told.len() < 40, "{context}");
            }
        }
        // What missed in a short window is measured for longer, before what holds is.
        let (_, told) = search(&plan(100.0), below(1_000.0));
        let confirmations = told
            .iter()
            .filter(|it| it.stage == CapacityStage::Confirmation);
        let outcomes: Vec<_> = confirmations.map(|it| it.outcome).collect();
        let met = CapacityOutcome::Met;
        assert_eq!(outcomes, [CapacityOutcome::Missed, met, met, met]);
    }

    #[test]
    fn a_rate_that_is_refuted_is_too_high() {
        // Short steps hold up to 1,000, longer ones up to 970.
        let (result, told) = search(&plan(100.0), |stage, rate| {
            let limit = if stage == CapacityStage::Confirmation {
                970.0
            } else {
                1_000.0
            };
            below(limit)(stage, rate)
        });
        let CapacityResult::Found {
            rate_per_s,
            missed_per_s,
        } = result
        else {
            panic!("{result:?}");
        };
        assert!((940.0..=970.0).contains(&rate_per_s), "{rate_per_s}");
        assert!(rate_per_s < missed_per_s);
        assert!(told.len() < 25, "{told:?}");
        // A server that is never as it was is given up.
        let (result, _) = search(&plan(100.0), |stage, _| match stage {
            CapacityStage::Confirmation => CapacityOutcome::Missed,
            _ => CapacityOutcome::Met,
        });
        assert!(
            matches!(result, CapacityResult::Nothing { .. }),
            "{result:?}"
        );
    }
}
