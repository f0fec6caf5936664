//! The search for the highest rate that holds objectives, as it is stored: its steps. What they
//! come to is worked out when it is read.

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::{
    Environment, OBJECTIVES_MAX, Objective, ObjectiveOutcome, PlanDescription, RoundRecord,
};

/// Most steps of a search.
pub const CAPACITY_STEPS_MAX: usize = 1_000;
/// Rounds at the found rate, all of which have to hold the objectives.
pub const CONFIRMATIONS: usize = 3;

/// What kind of stored file it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CapacityKind {
    /// A search for a capacity.
    #[default]
    #[serde(rename = "capacity")]
    Capacity,
}

/// What a step of the search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CapacityStage {
    /// To find rates that hold and miss: twice or half the one before.
    Bracket,
    /// To bring the two closer together.
    Bisection,
    /// To measure the found rate again, for longer.
    Confirmation,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CapacityOutcome {
    /// All objectives were met, and the rate was kept.
    Met,
    /// One was missed, or the server fell behind the rate.
    Missed,
    /// Brunt or its machine was the limit: nothing is known of the server at this rate.
    ClientLimited,
    /// One was not shown to be met, for want of samples or since the hypervisor took CPU time. It
    /// is measured again for longer, and counts as missed in the end.
    Undecided,
    /// The figures cannot be trusted.
    Invalid,
}

/// One objective of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityObjective {
    /// What was asked.
    pub objective: Objective,
    /// What was measured: nanoseconds, a share, or per second.
    pub measured: Option<f64>,
    /// The pessimistic end of its 95 % interval.
    pub bound: Option<f64>,
    /// Whether it was met.
    pub is_met: bool,
    /// Why nothing was compared, or why without an interval.
    pub reason: Option<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityStep {
    /// What it was for.
    pub stage: CapacityStage,
    /// Requests planned per second.
    pub rate_per_s: f64,
    /// Its outcome.
    pub outcome: CapacityOutcome,
    /// Why, in words; empty where all was met.
    pub because: String,
    /// The objectives, one by one.
    #[serde(deserialize_with = "bounded::list::<_, _, OBJECTIVES_MAX>")]
    pub objectives: Vec<CapacityObjective>,
    /// Its figures.
    pub record: RoundRecord,
}

/// What a search is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityPlan {
    /// The URL.
    pub url: String,
    /// What every step has to reach.
    #[serde(deserialize_with = "bounded::some::<_, _, OBJECTIVES_MAX>")]
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
}

/// A search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// `capacity`.
    pub kind: CapacityKind,
    /// Version of this layout: 1.
    pub format: u32,
    /// Version of brunt that made it.
    pub brunt_version: String,
    /// What was searched for.
    pub plan: CapacityPlan,
    /// The load of a step in full; null where none was measured.
    pub load: Option<PlanDescription>,
    /// Where it was measured.
    pub environment: Environment,
    /// Why the search ended before it had a result; null where it had one, or was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_off: Option<String>,
    /// The steps, in the order in which they were made.
    #[serde(deserialize_with = "bounded::list::<_, _, CAPACITY_STEPS_MAX>")]
    pub steps: Vec<CapacityStep>,
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        /// It, per second.
        rate_per_s: f64,
    },
    /// Brunt or its machine is the limit: the server takes this rate, and perhaps more.
    ClientLimited {
        /// The highest rate that holds, per second; null where none did.
        rate_per_s: Option<f64>,
        /// The rate at which brunt was the limit, per second.
        limited_per_s: f64,
    },
    /// No rate holds, down to the lowest that is tried.
    NotMet {
        /// That, per second.
        missed_per_s: f64,
    },
    /// There is no result.
    Nothing {
        /// Why.
        reason: String,
        /// The highest rate that held, per second, not confirmed; null where none did.
        met_per_s: Option<f64>,
        /// The lowest rate that missed, per second; null where none did.
        missed_per_s: Option<f64>,
    },
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
    /// As it was judged.
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
    pub const FORMAT: u32 = 1;

    /// What the steps come to.
    pub fn result(&self) -> CapacityResult {
        let search = CapacitySearch::after(&self.plan, &self.steps);
        match &self.broke_off {
            Some(reason) if search.end.is_none() => search.nothing(reason),
            _ => search.result(),
        }
    }
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityNext {
    /// A step at this rate.
    Step {
        /// What it is for.
        stage: CapacityStage,
        /// Requests per second.
        rate_per_s: f64,
    },
    /// Nothing: there is a result.
    Done,
}

/// A search in progress: knows from its steps which is next. Doubles from the first rate until the
/// objectives are missed, or halves until they are met; brings the two rates together; and measures
/// the one that holds three times for longer. Where that misses, it is the new rate that is too
/// high, and the search goes on below it.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    tolerance: f64,
    least_per_s: f64,
    most_per_s: f64,
    next: CapacityNext,
    /// The highest rate that held, and the lowest that missed.
    met: Option<f64>,
    missed: Option<f64>,
    confirmed: usize,
    refuted: usize,
    /// Steps in a row that told nothing.
    told_nothing: usize,
    end: Option<CapacityResult>,
}

/// How often a found rate may prove too high.
const REFUTED_MOST: usize = 5;
/// How often a step that told nothing is made once more.
const REPEATED_MOST: usize = 2;

impl CapacitySearch {
    /// A search without a step.
    pub fn new(plan: &CapacityPlan) -> Self {
        Self {
            tolerance: plan.tolerance,
            least_per_s: plan.least_per_s,
            most_per_s: plan.most_per_s.max(plan.least_per_s),
            next: CapacityNext::Step {
                stage: CapacityStage::Bracket,
                rate_per_s: plan.first_per_s.min(plan.most_per_s).max(plan.least_per_s),
            },
            met: None,
            missed: None,
            confirmed: 0,
            refuted: 0,
            told_nothing: 0,
            end: None,
        }
    }

    /// A search after these steps.
    fn after(plan: &CapacityPlan, steps: &[CapacityStep]) -> Self {
        let mut search = Self::new(plan);
        for step in steps {
            search.tell(step.stage, step.rate_per_s, step.outcome);
        }
        search
    }

    /// How often the step that is next was made already, in vain.
    pub fn repeated(&self) -> usize {
        self.told_nothing
    }

    /// What is to be done next.
    pub fn next(&self) -> CapacityNext {
        self.next
    }

    /// Takes the outcome of a step.
    pub fn tell(&mut self, stage: CapacityStage, rate_per_s: f64, outcome: CapacityOutcome) {
        let outcome = match outcome {
            CapacityOutcome::Undecided if self.told_nothing < REPEATED_MOST => {
                self.told_nothing += 1;
                return;
            }
            CapacityOutcome::Undecided => CapacityOutcome::Missed,
            decided => decided,
        };
        match outcome {
            CapacityOutcome::Met => {
                self.told_nothing = 0;
                self.met = Some(self.met.map_or(rate_per_s, |met| met.max(rate_per_s)));
                if stage == CapacityStage::Confirmation {
                    self.confirmed += 1;
                }
            }
            CapacityOutcome::Missed => {
                self.told_nothing = 0;
                self.missed = Some(self.missed.map_or(rate_per_s, |it| it.min(rate_per_s)));
                if self.met.is_some_and(|met| met >= rate_per_s) {
                    // What held once does not hold always: it is too high.
                    self.met = None;
                    self.refuted += 1;
                }
                self.confirmed = 0;
            }
            CapacityOutcome::ClientLimited
            | CapacityOutcome::Invalid
            | CapacityOutcome::Undecided => {
                self.told_nothing += 1;
                if self.told_nothing > REPEATED_MOST {
                    self.finish(match outcome {
                        CapacityOutcome::ClientLimited => CapacityResult::ClientLimited {
                            rate_per_s: self.met,
                            limited_per_s: rate_per_s,
                        },
                        _ => self.nothing("the figures could not be trusted, three times in a row"),
                    });
                }
                return;
            }
        }
        self.decide(rate_per_s);
    }

    fn decide(&mut self, last_per_s: f64) {
        if self.refuted > REFUTED_MOST {
            let reason = "what held once did not hold again, six times: the server varies too much";
            return self.finish(self.nothing(reason));
        }
        if self.confirmed >= CONFIRMATIONS {
            return self.finish(match (self.met, self.missed) {
                (Some(rate_per_s), Some(missed_per_s)) => CapacityResult::Found {
                    rate_per_s,
                    missed_per_s,
                },
                (Some(rate_per_s), None) => CapacityResult::AtLeast { rate_per_s },
                (None, _) => self.nothing("no rate held"),
            });
        }
        let step = |stage, rate_per_s| CapacityNext::Step { stage, rate_per_s };
        self.next = match (self.met, self.missed) {
            (Some(met), None) if met >= self.most_per_s => step(CapacityStage::Confirmation, met),
            (Some(met), None) => step(CapacityStage::Bracket, (2.0 * met).min(self.most_per_s)),
            (None, Some(missed)) if missed <= self.least_per_s => {
                return self.finish(CapacityResult::NotMet {
                    missed_per_s: missed,
                });
            }
            // Just below a rate that held before, else far below.
            (None, Some(missed)) if self.refuted > 0 => step(
                CapacityStage::Bisection,
                (missed / (1.0 + self.tolerance)).max(self.least_per_s),
            ),
            (None, Some(missed)) => {
                step(CapacityStage::Bracket, (missed / 2.0).max(self.least_per_s))
            }
            (Some(met), Some(missed)) if missed <= met * (1.0 + self.tolerance) => {
                step(CapacityStage::Confirmation, met)
            }
            (Some(met), Some(missed)) => step(CapacityStage::Bisection, f64::midpoint(met, missed)),
            (None, None) => step(CapacityStage::Bracket, last_per_s),
        };
    }

    fn nothing(&self, reason: &str) -> CapacityResult {
        CapacityResult::Nothing {
            reason: reason.to_owned(),
            met_per_s: self.met,
            missed_per_s: self.missed,
        }
    }

    fn finish(&mut self, result: CapacityResult) {
        self.end = Some(result);
        self.next = CapacityNext::Done;
    }

    /// What was found; where the search is not over, that it is not.
    pub fn result(&self) -> CapacityResult {
        let end = self.end.clone();
        end.unwrap_or_else(|| self.nothing("the search was interrupted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(first_per_s: f64) -> CapacityPlan {
        CapacityPlan {
            url: "http://a/".to_owned(),
            objectives: vec![Objective::NoErrors],
            tolerance: 0.02,
            first_per_s,
            least_per_s: 1.0,
            most_per_s: 1e6,
            window_ns: 1,
            warmup_ns: 0,
        }
    }

    /// Searches a server that holds `holds`; gives the result and the number of steps.
    fn search(
        plan: &CapacityPlan,
        mut outcome: impl FnMut(CapacityStage, f64) -> CapacityOutcome,
    ) -> (CapacityResult, usize) {
        let mut search = CapacitySearch::new(plan);
        for steps in 0.. {
            let CapacityNext::Step { stage, rate_per_s } = search.next() else {
                return (search.result(), steps);
            };
            search.tell(stage, rate_per_s, outcome(stage, rate_per_s));
            assert!(steps < 200, "{search:?}");
        }
        unreachable!("it is bounded")
    }

    fn below(limit: f64) -> impl Fn(CapacityStage, f64) -> CapacityOutcome {
        move |_, rate| match rate <= limit {
            true => CapacityOutcome::Met,
            false => CapacityOutcome::Missed,
        }
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
            let (result, steps) = search(&plan(first), below(1_000.0));
            let CapacityResult::Found {
                rate_per_s,
                missed_per_s,
            } = result
            else {
                panic!("{result:?}");
            };
            assert!(rate_per_s <= 1_000.0 && missed_per_s > 1_000.0);
            assert!(missed_per_s <= 1.02 * rate_per_s, "{rate_per_s}");
            assert!(steps < 25, "{steps}");
        }
    }

    #[test]
    fn the_ends_of_what_is_tried() {
        let (most, _) = search(&plan(100.0), below(1e9));
        assert_eq!(most, CapacityResult::AtLeast { rate_per_s: 1e6 });
        let (none, _) = search(&plan(100.0), below(0.0));
        assert_eq!(none, CapacityResult::NotMet { missed_per_s: 1.0 });
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
        assert_eq!((rate, limited_per_s), (800.0, 1_600.0));
    }

    #[test]
    fn what_is_undecided_is_missed_in_the_end() {
        let mut undecided = 0;
        let (result, _) = search(&plan(100.0), |_, rate| match rate <= 1_000.0 {
            true => CapacityOutcome::Met,
            false => {
                undecided += 1;
                CapacityOutcome::Undecided
            }
        });
        assert!(matches!(result, CapacityResult::Found { .. }), "{result:?}");
        assert_eq!(undecided % 3, 0);
    }

    #[test]
    fn a_rate_that_is_refuted_is_too_high() {
        // Short steps hold up to 1,000, longer ones up to 970.
        let (result, _) = search(&plan(100.0), |stage, rate| {
            let limit = if stage == CapacityStage::Confirmation {
                970.0
            } else {
                1_000.0
            };
            below(limit)(stage, rate)
        });
        let CapacityResult::Found { rate_per_s, .. } = result else {
            panic!("{result:?}");
        };
        assert!((940.0..=970.0).contains(&rate_per_s), "{rate_per_s}");
        // A server that is never as it was is given up.
        let (result, _) = search(&plan(100.0), |stage, _| match stage {
            CapacityStage::Bracket | CapacityStage::Bisection => CapacityOutcome::Met,
            CapacityStage::Confirmation => CapacityOutcome::Missed,
        });
        assert!(
            matches!(result, CapacityResult::Nothing { .. }),
            "{result:?}"
        );
    }
}
