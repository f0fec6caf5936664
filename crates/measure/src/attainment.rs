//! Whether a run reached what it was asked to: judged at the end of the interval that speaks
//! against it, so that a run that is too short to tell has not reached it.

use crate::confidence::Z_95;
use crate::{Judged, NoInterval, Objective, Quantile};

/// Whether a run reached an objective.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveOutcome {
    /// What was asked.
    pub objective: Objective,
    /// What was measured, in the unit of the limit: nanoseconds, a share, or per second. Absent
    /// where that is not known.
    pub measured: Option<f64>,
    /// The end of its 95 % interval that is compared with the limit. Absent where there is none.
    pub bound: Option<f64>,
    /// Whether it was reached.
    pub is_met: bool,
    /// Why nothing is compared, or why without an interval.
    pub reason: Option<String>,
}

impl ObjectiveOutcome {
    fn unknown(objective: Objective, measured: Option<f64>, reason: String) -> Self {
        Self {
            objective,
            measured,
            bound: None,
            is_met: false,
            reason: Some(reason),
        }
    }
}

impl Judged<'_> {
    /// Whether the run reached each of its objectives, in the order in which they were asked.
    pub fn objectives(&self) -> Vec<ObjectiveOutcome> {
        let objectives = self.run.objectives.iter();
        objectives
            .map(|&objective| self.outcome(objective))
            .collect()
    }

    fn outcome(&self, objective: Objective) -> ObjectiveOutcome {
        if let Some(reason) = self.withheld() {
            return ObjectiveOutcome::unknown(objective, None, reason);
        }
        match objective {
            Objective::ResponseQuantile { q, below_ns } => self.quantile_outcome(q, below_ns),
            Objective::Errors { below } => self.errors_outcome(objective, Some(below)),
            Objective::NoErrors => self.errors_outcome(objective, None),
            Objective::SuccessesPerS { above } => self.rate_outcome(above),
        }
    }

    fn quantile_outcome(&self, q: f64, below_ns: u64) -> ObjectiveOutcome {
        let objective = Objective::ResponseQuantile { q, below_ns };
        let unknown = |measured, reason| ObjectiveOutcome::unknown(objective, measured, reason);
        match self.run.response_quantile(q) {
            Quantile::Known { ns, interval } => {
                let bound_ns = match interval {
                    Ok(interval) => interval.high_ns,
                    // A rate that is planned to vary says nothing against the quantile of all.
                    Err(NoInterval::PlannedToVary | NoInterval::NotOverTime) => ns,
                    Err(reason) => return unknown(Some(ns as f64), reason.to_string()),
                };
                ObjectiveOutcome {
                    objective,
                    measured: Some(ns as f64),
                    bound: interval.is_ok().then_some(bound_ns as f64),
                    is_met: bound_ns < below_ns,
                    reason: interval.err().map(|reason| reason.to_string()),
                }
            }
            Quantile::AtLeast { ns } => unknown(
                Some(ns as f64),
                "it is a lower bound: requests were never answered".to_owned(),
            ),
            Quantile::TooFew { samples, needed } => unknown(
                None,
                format!("too few replies to tell: {samples}, and {needed} are needed"),
            ),
        }
    }

    /// Of all requests of the window and all arrivals planned in it that were never sent. Without a
    /// limit, none may have failed.
    fn errors_outcome(&self, objective: Objective, below: Option<f64>) -> ObjectiveOutcome {
        let arrivals = &self.summary.arrivals;
        let never_sent = arrivals.planned.saturating_sub(arrivals.sent);
        let asked = self.summary.population.issued.saturating_add(never_sent);
        if asked == 0 {
            let reason = "no request was sent".to_owned();
            return ObjectiveOutcome::unknown(objective, None, reason);
        }
        let errors = asked.saturating_sub(self.run.latencies.response.count());
        let bound = below.map(|_| share_at_most(errors, asked));
        ObjectiveOutcome {
            objective,
            measured: Some(errors as f64 / asked as f64),
            bound,
            is_met: match (below, bound) {
                (Some(below), Some(bound)) => bound < below,
                _ => errors == 0,
            },
            reason: None,
        }
    }

    fn rate_outcome(&self, above: f64) -> ObjectiveOutcome {
        let objective = Objective::SuccessesPerS { above };
        let rate = match &self.summary.successes_per_s {
            crate::Figure::Known(rate) => *rate,
            crate::Figure::Absent(reason) => {
                return ObjectiveOutcome::unknown(objective, None, reason.clone());
            }
        };
        let interval = self.run.successes_interval();
        let bound = match interval {
            Ok(interval) => interval.low_per_s,
            Err(NoInterval::PlannedToVary | NoInterval::NotOverTime) => rate,
            Err(reason) => {
                return ObjectiveOutcome::unknown(objective, Some(rate), reason.to_string());
            }
        };
        ObjectiveOutcome {
            objective,
            measured: Some(rate),
            bound: interval.is_ok().then_some(bound),
            is_met: bound > above,
            reason: interval.err().map(|reason| reason.to_string()),
        }
    }
}

/// The upper end of the two-sided 95 % interval of a share: Wilson's, which holds for none and for
/// all as well (Wilson 1927, Journal of the American Statistical Association 22).
fn share_at_most(count: u64, of: u64) -> f64 {
    let (count, of) = (count as f64, of as f64);
    let share = count / of;
    let squared = Z_95 * Z_95;
    let middle = share + squared / (2.0 * of);
    let width = Z_95 * (share * (1.0 - share) / of + squared / (4.0 * of * of)).sqrt();
    ((middle + width) / (1.0 + squared / of)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::invariants::sample::{MS, open_run, run, steady_run, with_counts};

    const P99: f64 = 0.99;

    fn outcome(mut run: Run, objective: Objective) -> ObjectiveOutcome {
        run.objectives = vec![objective];
        let outcomes = Judged::of(&run).objectives();
        assert_eq!(outcomes.len(), 1);
        outcomes[0].clone()
    }

    fn p99_below(run: Run, below_ns: u64) -> ObjectiveOutcome {
        outcome(run, Objective::ResponseQuantile { q: P99, below_ns })
    }

    #[test]
    fn a_quantile_is_judged_at_the_upper_end_of_its_interval() {
        let met = p99_below(steady_run(), 2 * MS);
        assert!(met.is_met, "{met:?}");
        let (measured, bound) = (met.measured.unwrap(), met.bound.unwrap());
        assert!(measured <= bound && bound < (2 * MS) as f64);
        // The limit lies within the interval, or just at its end.
        assert!(!p99_below(steady_run(), bound as u64).is_met);
        assert!(p99_below(steady_run(), bound as u64 + 1).is_met);
    }

    #[test]
    fn too_few_samples_are_a_miss() {
        let q = 0.999_99;
        let below_ns = 1_000_000 * MS;
        let missed = outcome(steady_run(), Objective::ResponseQuantile { q, below_ns });
        assert!(!missed.is_met);
        let reason = missed.reason.unwrap();
        assert!(reason.contains("too few replies"), "{reason}");
    }

    #[test]
    fn errors_are_all_that_is_no_success() {
        // One reply in fifty has status 503, and two of all failed.
        let errors = |below| outcome(run(), Objective::Errors { below });
        let share = errors(0.5).measured.unwrap();
        assert!((0.02..0.021).contains(&share), "{share}");
        assert!(errors(0.05).is_met && !errors(0.0205).is_met);
        assert!(!outcome(run(), Objective::NoErrors).is_met);
    }

    #[test]
    fn arrivals_that_were_never_sent_are_errors() {
        let share = |run: &Run| {
            let objective = Objective::Errors { below: 1.0 };
            let outcome = Judged::of(run).errors_outcome(objective, Some(1.0));
            outcome.measured.expect("requests were sent")
        };
        let whole = open_run();
        let mut lossy = whole.clone();
        lossy.agents[0].workers[0].arrivals.planned += 1_000;
        assert!(share(&lossy) > share(&whole) + 0.1);
    }

    #[test]
    fn a_rate_is_judged_at_the_lower_end_of_its_interval() {
        let noisy: Vec<u64> = (0..40).map(|index| 900 + index * 7_919 % 200).collect();
        let rate = |above| {
            let run = with_counts(steady_run(), &noisy);
            let mut run = run;
            run.objectives = vec![Objective::SuccessesPerS { above }];
            let judged = Judged::of(&run);
            judged.rate_outcome(above)
        };
        let found = rate(1_000.0);
        let (measured, bound) = (found.measured.unwrap(), found.bound.unwrap());
        assert!(found.is_met && bound < measured, "{found:?}");
        assert!(!rate(f64::midpoint(bound, measured)).is_met);
    }

    #[test]
    fn what_is_withheld_was_not_reached() {
        let mut broken = steady_run();
        broken.agents[0].workers[0].edges.drained = crate::Once::default();
        broken.agents[0].workers[0].tallies.measure.requests_sent += 1_000_000;
        let missed = p99_below(broken, u64::MAX);
        assert!(!missed.is_met && missed.reason.is_some(), "{missed:?}");
    }

    #[test]
    fn wilson_s_interval_is_that_of_the_tables() {
        // statsmodels' proportion_confint(count, of, method="wilson").
        for (count, of, upper) in [
            (0, 1_000, 0.003_826_8),
            (1, 100, 0.054_486_2),
            (50, 100, 0.596_168_7),
            (10, 10, 1.0),
        ] {
            let found = share_at_most(count, of);
            assert!((found - upper).abs() < 1e-5, "{count} of {of}: {found}");
        }
    }
}
