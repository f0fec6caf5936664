//! What a search knows of the rates: which held, which missed, and what answer that makes.

use crate::{CapacityOutcome, CapacityPlan, CapacityResult, CapacityStage, CapacityStep};

/// Rounds at the found rate, all of which have to hold the objectives.
pub const CONFIRMATIONS: usize = 3;
/// A server that answers less than this share of a rate is overloaded: what it answers is near to
/// its capacity, and the rates on both sides of that are tried first.
pub(super) const OVERLOADED: f64 = 0.9;
const AROUND_ANSWERED: [f64; 2] = [0.95, 1.05];
/// How far the rates that hold and miss may be apart, as a ratio less 1, where response times vary
/// from window to window: what varies has no closer limit.
const TOLERANCE_VARYING: f64 = 0.05;
/// How often a rate that held may miss before it is too high: that may be the machine.
const MISSES_MOST: usize = 1;
/// Short windows that decided nothing, from which on they are not worth their time.
const SHORT_UNDECIDED_MOST: usize = 3;

/// What is reported to the search of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityStepReport {
    /// What the step was for.
    pub stage: CapacityStage,
    /// Requests planned per second.
    pub rate_per_s: f64,
    /// The outcome of the step.
    pub outcome: CapacityOutcome,
    /// Whether what was measured keeps all limits, be it with certainty or without.
    pub keeps_limits: bool,
    /// Whether other programs or the hypervisor took CPU time that brunt or the server needed.
    pub is_disturbed: bool,
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
            keeps_limits: step.keeps_limits(),
            is_disturbed: step.is_disturbed,
            answered_per_s: step.record.successes_per_s,
            took_ns: step.took_ns,
        }
    }
}

impl CapacityStepReport {
    /// Whether the server answered far less than it was asked.
    pub(super) fn is_overloaded(&self) -> bool {
        let is_far_less = |per_s: f64| per_s < OVERLOADED * self.rate_per_s;
        self.answered_per_s.is_some_and(is_far_less)
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
    /// Whether it missed once more after the rate below it was confirmed.
    is_late: bool,
}

/// Looks at the rate that missed after the one below it is confirmed. A shared machine may be slow
/// for as long as several windows take, and each chance miss makes the answer too low; a chance
/// hold does not make it too high, for it has to hold three times.
const LATE_LOOKS: usize = 3;
/// The same where brunt was the limit, which varies less.
const LATE_LOOKS_LIMITED: usize = 1;

/// A rate that missed, and the looks at it after the one below it was confirmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateLooks {
    pub(super) rate_per_s: f64,
    pub(super) done: usize,
    /// One at least.
    pub(super) left: usize,
}

/// A rate that held.
#[derive(Clone, Copy, Debug)]
struct Held {
    rate_per_s: f64,
    /// Long windows in which it did.
    confirmations: usize,
    /// Windows in which it missed since.
    misses: usize,
}

/// The rates that held and those that missed.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// The rates that held, but those that did not hold again.
    held: Vec<Held>,
    /// The rates that missed, but those at or below one that held later.
    missed: Vec<Miss>,
    /// How often a rate that held proved too high.
    pub(super) refuted: usize,
    /// Short windows that decided nothing.
    pub(super) short_undecided: usize,
}

impl Rates {
    /// The rate of the step holds; `is_long`: by a window as long as that of a confirmation, which
    /// it then is.
    pub(super) fn hold(&mut self, step: &CapacityStepReport, is_long: bool) {
        let mut held = self.held.iter_mut();
        match held.find(|it| it.rate_per_s == step.rate_per_s) {
            Some(held) => held.confirmations += usize::from(is_long),
            None => self.held.push(Held {
                rate_per_s: step.rate_per_s,
                confirmations: usize::from(is_long),
                misses: 0,
            }),
        }
        self.missed.retain(|it| it.rate_per_s > step.rate_per_s);
    }

    /// The rate of the step missed; `is_long`: by a window as long as that of a confirmation.
    pub(super) fn miss(&mut self, step: &CapacityStepReport, is_long: bool) {
        let is_overloaded = step.is_overloaded();
        let mut held = self.held.iter_mut();
        let is_first = |it: &&mut Held| it.rate_per_s == step.rate_per_s && it.misses < MISSES_MOST;
        if let Some(held) = held.find(is_first).filter(|_| !is_overloaded) {
            held.misses += 1;
            return;
        }
        self.missed.push(Miss {
            rate_per_s: step.rate_per_s,
            answered_per_s: step.answered_per_s.filter(|_| is_overloaded),
            is_brunts: step.outcome == CapacityOutcome::ClientLimited,
            is_certain: is_overloaded || is_long,
            is_late: self.is_confirmed(),
        });
        if self.met().is_some_and(|met| met >= step.rate_per_s) {
            // What held once does not hold always: it is too high.
            self.held.retain(|it| it.rate_per_s < step.rate_per_s);
            self.refuted += 1;
        }
    }

    /// This rate missed, for certain.
    pub(super) fn miss_certainly(&mut self, rate_per_s: f64) {
        self.missed.push(Miss {
            rate_per_s,
            answered_per_s: None,
            is_brunts: false,
            is_certain: true,
            is_late: false,
        });
    }

    /// Whether short windows tell too little: a rate held that did not hold again, or they left
    /// open again and again what longer ones decide.
    pub(super) fn vary(&self) -> bool {
        self.refuted > 0
            || self.short_undecided >= SHORT_UNDECIDED_MOST
            || self.held.iter().any(|it| it.misses > 0)
    }

    /// How many times the rate that holds the one that misses may be in the end.
    pub(super) fn ratio_most(&self, plan: &CapacityPlan) -> f64 {
        let tolerance = match self.vary() {
            true => plan.tolerance.max(TOLERANCE_VARYING),
            false => plan.tolerance,
        };
        1.0 + tolerance
    }

    /// Whether brunt was the limit at a rate that missed.
    pub(super) fn has_limit_of_brunt(&self) -> bool {
        self.missed.iter().any(|it| it.is_brunts)
    }

    /// The highest rate that holds.
    pub(super) fn met(&self) -> Option<f64> {
        Some(self.highest_held()?.rate_per_s)
    }

    /// How often the highest rate that holds was confirmed.
    pub(super) fn confirmations(&self) -> usize {
        self.highest_held().map_or(0, |it| it.confirmations)
    }

    /// Whether it was confirmed as often as it has to be.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmations() >= CONFIRMATIONS
    }

    fn highest_held(&self) -> Option<&Held> {
        let held = self.held.iter();
        held.max_by(|one, other| one.rate_per_s.total_cmp(&other.rate_per_s))
    }

    /// The lowest rate that missed, as it was measured last.
    fn lowest_miss(&self) -> Option<&Miss> {
        let missed = self.missed.iter().rev();
        missed.reduce(|lowest, it| match it.rate_per_s < lowest.rate_per_s {
            true => it,
            false => lowest,
        })
    }

    /// The lowest rate that missed.
    pub(super) fn missed_per_s(&self) -> Option<f64> {
        Some(self.lowest_miss()?.rate_per_s)
    }

    /// Whether the lowest rate that missed did so in a short window alone.
    pub(super) fn is_miss_uncertain(&self) -> bool {
        self.lowest_miss().is_some_and(|it| !it.is_certain)
    }

    /// The looks at the lowest rate that missed, if that may have been the machine at that time:
    /// the server answered nearly all of it, and it was not looked at as often as it may be.
    pub(super) fn miss_to_look_at_again(&self) -> Option<LateLooks> {
        let miss = self
            .lowest_miss()
            .filter(|it| it.answered_per_s.is_none())?;
        let is_late = |it: &&Miss| it.is_late && it.rate_per_s == miss.rate_per_s;
        let done = self.missed.iter().filter(is_late).count();
        let most = match miss.is_brunts {
            true => LATE_LOOKS_LIMITED,
            false => LATE_LOOKS,
        };
        let left = most.saturating_sub(done);
        (left > 0).then_some(LateLooks {
            rate_per_s: miss.rate_per_s,
            done,
            left,
        })
    }

    /// A rate near to what an overloaded server answered, between those that hold and miss.
    pub(super) fn near_answered(&self, plan: &CapacityPlan) -> Option<f64> {
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
    pub(super) fn ends_at_brunt(&self) -> bool {
        self.lowest_miss().is_some_and(|it| it.is_brunts)
    }

    /// The answer where the search ends with nothing more than this.
    pub(super) fn bracket(&self) -> CapacityResult {
        match self.missed_per_s() {
            Some(limited_per_s) if self.ends_at_brunt() => CapacityResult::ClientLimited {
                rate_per_s: self.met(),
                limited_per_s,
            },
            missed_per_s => CapacityResult::Bracket {
                met_per_s: self.met(),
                missed_per_s,
                confirmations: self.confirmations(),
            },
        }
    }

    /// No answer, for this reason.
    pub(super) fn nothing(&self, reason: &str) -> CapacityResult {
        CapacityResult::Nothing {
            reason: reason.to_owned(),
            met_per_s: self.met(),
            missed_per_s: self.missed_per_s(),
        }
    }

    /// The answer once the highest rate that holds is confirmed.
    pub(super) fn answer(&self, plan: &CapacityPlan) -> CapacityResult {
        let tolerance = self.ratio_most(plan);
        match (self.met(), self.missed_per_s()) {
            (Some(rate_per_s), Some(missed_per_s))
                if missed_per_s <= rate_per_s * tolerance && !self.ends_at_brunt() =>
            {
                CapacityResult::Found {
                    rate_per_s,
                    missed_per_s,
                }
            }
            (Some(rate_per_s), None) if rate_per_s >= plan.most_per_s => {
                CapacityResult::AtLeast { rate_per_s }
            }
            _ => self.bracket(),
        }
    }
}
