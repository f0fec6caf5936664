//! Whether a run reached what it was asked to: judged at the end of the interval that speaks
//! against it, so that a run that is too short to tell has not reached it.

use brunt_record::{Histogram, NameRecord, Objective, Share, count};
use serde::{Deserialize, Serialize};

use crate::precision::{Limits, Sample, is_planned_to_vary, mean_at_most_ns, worth_of};
use crate::statistics::{is_share_below, narrowed, share_at_most};
use crate::verdict::undisturbed_words;
use crate::{Figure, Judged, NoInterval, Quantile, ResponseQuantiles};

/// Names that are told where one is not among them.
const NAMES_SHOWN: usize = 8;

/// Whether a run reached an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveOutcome {
    /// What was asked.
    pub objective: Objective,
    /// What was measured, in the unit of the limit: nanoseconds, a share, or per second. Absent
    /// where that is not known.
    pub measured: Option<f64>,
    /// The end of its 95 % interval that speaks against the objective: it is met where this end
    /// keeps the limit. Absent where there is none.
    pub bound: Option<f64>,
    /// Whether the objective was reached.
    pub is_met: bool,
    /// Why nothing is compared, or why without an interval; and of which parts of the window this
    /// is, where not of all.
    pub reason: Option<String>,
}

impl ObjectiveOutcome {
    /// Whether what was measured keeps the limit, with certainty or without.
    pub fn keeps_limit(&self) -> bool {
        self.is_met || self.measured.is_some() && self.is_within()
    }

    /// Whether what was measured keeps the limit, or nothing was measured. More samples may then
    /// show that the objective is met.
    pub fn is_within(&self) -> bool {
        let Some(measured) = self.measured else {
            return true;
        };
        match *self.objective.plain() {
            Objective::ResponseQuantile { below_ns, .. } | Objective::ResponseMean { below_ns } => {
                measured < below_ns as f64
            }
            Objective::Errors { below } => measured < below,
            // More of them do not make it less.
            Objective::ResponseMax { .. }
            | Objective::NoErrors
            | Objective::SuccessesPerS { .. }
            | Objective::Named { .. } => false,
        }
    }
}

/// What was found of an objective: an [`ObjectiveOutcome`] without it.
#[derive(Debug)]
struct Found {
    measured: Option<f64>,
    bound: Option<f64>,
    is_met: bool,
    reason: Option<String>,
}

impl Found {
    fn unknown(measured: Option<f64>, reason: impl ToString) -> Self {
        Self::unbounded(measured, false, reason)
    }

    /// Measured without an interval, for this reason.
    fn unbounded(measured: Option<f64>, is_met: bool, reason: impl ToString) -> Self {
        Self {
            measured,
            bound: None,
            is_met,
            reason: Some(reason.to_string()),
        }
    }

    /// Measured, with the end of the interval that speaks against it, where there is one.
    fn bounded(measured: f64, bound: Option<f64>, is_met: bool) -> Self {
        Self {
            measured: Some(measured),
            bound,
            is_met,
            reason: None,
        }
    }

    /// The outcome, with the part of the window that it is of, where that is not all.
    fn of(self, asked: &Objective, part: Option<String>) -> ObjectiveOutcome {
        let part = part.map(|part| format!("of {part}"));
        let reasons: Vec<String> = self.reason.into_iter().chain(part).collect();
        ObjectiveOutcome {
            objective: asked.clone(),
            measured: self.measured,
            bound: self.bound,
            is_met: self.is_met,
            reason: (!reasons.is_empty()).then(|| reasons.join(", ")),
        }
    }
}

impl Judged<'_> {
    /// Whether the run reached each of its objectives, in the order in which they were asked.
    pub fn objectives(&self) -> Vec<ObjectiveOutcome> {
        let objectives = self.run.objectives.iter();
        objectives.map(|asked| self.outcome(asked)).collect()
    }

    /// As [`Self::objectives`], but quantiles are those of the parts of the window in which the
    /// hypervisor took no CPU time. Absent where it took none, and where these parts are too short
    /// for figures of their own.
    pub fn objectives_of_clean(&self) -> Option<Vec<ObjectiveOutcome>> {
        let clean = self.clean.as_ref()?.figures.as_ref()?;
        let objectives = self.run.objectives.iter();
        let outcome = |asked: &Objective| match *asked {
            Objective::ResponseQuantile { q, below_ns } if self.withheld().is_none() => {
                of_quantile(&clean.sample(), q, below_ns).of(asked, None)
            }
            _ => self.outcome(asked),
        };
        Some(objectives.map(outcome).collect())
    }

    fn outcome(&self, asked: &Objective) -> ObjectiveOutcome {
        if let Some(reason) = self.withheld() {
            return Found::unknown(None, reason).of(asked, None);
        }
        // Errors, and what has a name, are not known for parts of the window.
        let is_of_all = matches!(
            asked,
            Objective::Errors { .. } | Objective::NoErrors | Objective::Named { .. }
        );
        let part = self.undisturbed().filter(|_| !is_of_all);
        self.found(asked).of(asked, part.map(undisturbed_words))
    }

    fn found(&self, asked: &Objective) -> Found {
        match asked {
            Objective::Named { name, objective } => {
                match self.run.names.iter().find(|named| *named.name == **name) {
                    Some(found) => of_name(found, objective),
                    None => Found::unknown(None, self.no_such_name()),
                }
            }
            Objective::ResponseMax { below_ns } => {
                let unfinished = &self.run.latencies.unfinished;
                of_max(self.response(), unfinished, *below_ns)
            }
            Objective::ResponseMean { below_ns } => self.of_mean(*below_ns),
            Objective::ResponseQuantile { q, below_ns } => {
                of_quantile(&self.sample(), *q, *below_ns)
            }
            Objective::Errors { below } => self.of_errors(Some(*below)),
            Objective::NoErrors => self.of_errors(None),
            Objective::SuccessesPerS { above } => self.of_rate(*above),
        }
    }

    /// Whether an objective is shown to be missed, be the replies too few to show that it is met:
    /// the share of those that keep the limit lies below what is asked, at the end of its 95 %
    /// interval. Extremes and means, of which few replies show nothing, are missed where the
    /// fastest reply took too long. Nothing is said of requests by name.
    pub fn is_shown_missed(&self, asked: &Objective) -> bool {
        let (response, unfinished) = (&self.run.latencies.response, &self.run.latencies.unfinished);
        let issued = self.summary.population.issued;
        let succeeded = response.count();
        if issued > 0 && succeeded == 0 && unfinished.count() == 0 {
            return !matches!(asked, Objective::Named { .. });
        }
        match *asked {
            Objective::ResponseQuantile { q, below_ns } => {
                let all = succeeded.saturating_add(unfinished.count());
                let reach = response.count_from(below_ns) + unfinished.count_from(below_ns);
                is_share_below(all.saturating_sub(reach) as f64, all as f64, q)
            }
            Objective::ResponseMax { below_ns } | Objective::ResponseMean { below_ns } => {
                response.min_ns().is_some_and(|ns| ns >= below_ns)
            }
            Objective::Errors { below } => {
                is_share_below(succeeded as f64, issued as f64, 1.0 - below)
            }
            Objective::NoErrors | Objective::SuccessesPerS { .. } | Objective::Named { .. } => {
                false
            }
        }
    }

    fn no_such_name(&self) -> String {
        let names = self.run.names.iter().take(NAMES_SHOWN);
        let names: Vec<&str> = names.map(|named| &*named.name).collect();
        if names.is_empty() {
            return format!("this run has no {} by name", self.run.unit().many);
        }
        format!("nothing has this name; names are {}", names.join(", "))
    }

    fn of_mean(&self, below_ns: u64) -> Found {
        let sample = self.sample();
        let unanswered = sample.unfinished.count() > 0;
        let measured = match sample.finished.mean_ns() {
            Some(mean_ns) if !unanswered => mean_ns,
            mean_ns => return Found::unknown(mean_ns, NoInterval::Unanswered),
        };
        let below_ns = below_ns as f64;
        if is_planned_to_vary(self.run) {
            let is_met = measured < below_ns;
            return Found::unbounded(Some(measured), is_met, NoInterval::PlannedToVary);
        }
        match mean_at_most_ns(sample.intervals, measured) {
            Some(bound) => Found::bounded(measured, Some(bound), bound < below_ns),
            None => Found::unknown(
                Some(measured),
                "too few parts of the window have replies for an interval",
            ),
        }
    }

    /// It counts all requests of the window and all arrivals planned in it that were never sent.
    fn of_errors(&self, below: Option<f64>) -> Found {
        let arrivals = &self.summary.arrivals;
        let never_sent = arrivals.planned.saturating_sub(arrivals.sent);
        let asked = self.summary.population.issued.saturating_add(never_sent);
        let errors = asked.saturating_sub(self.run.latencies.response.count());
        let apart = never_sent.saturating_add(self.summary.population.censored);
        let worth = self.errors_worth(errors as f64, apart as f64, asked as f64);
        of_errors(errors, asked, worth, below)
    }

    /// The effective sample size of the share of errors: as many independent requests would tell as
    /// much, going by how it varies over the window. Of the `apart` errors it is not recorded when
    /// they happened.
    fn errors_worth(&self, errors: f64, apart: f64, asked: f64) -> f64 {
        if errors <= 0.0 || errors >= asked || is_planned_to_vary(self.run) {
            return asked;
        }
        let points = self.summary.series.points.iter();
        let shares: Vec<Share> = points
            .map(|point| Share {
                all: point.successes as f64 + point.errors as f64 + point.failures as f64,
                below: point.successes as f64,
            })
            .collect();
        let worth = worth_of(&shares, apart, asked, asked - errors);
        // With too few parts to see how they vary, they may all come of one event.
        worth.map_or(asked / errors, |worth| worth.min(asked))
    }

    fn of_rate(&self, above: f64) -> Found {
        let rate = match self.successes_per_s() {
            Figure::Known(rate) => rate,
            Figure::Absent(reason) => return Found::unknown(None, reason),
        };
        match self.successes_interval().map(|interval| interval.low_per_s) {
            Ok(low_per_s) => Found::bounded(rate, Some(low_per_s), low_per_s > above),
            Err(reason) => {
                let stands = [NoInterval::PlannedToVary, NoInterval::NotOverTime];
                let is_met = stands.contains(&reason) && rate > above;
                Found::unbounded(Some(rate), is_met, reason)
            }
        }
    }
}

/// A share of errors against its limit, of requests that tell as much as `worth` independent ones;
/// without a limit, none may have failed.
fn of_errors(errors: u64, asked: u64, worth: f64, below: Option<f64>) -> Found {
    if asked == 0 {
        return Found::unknown(None, "no request was sent");
    }
    let scale = worth / asked as f64;
    let count = errors as f64 * scale;
    let bound = below.map(|_| share_at_most(count, worth));
    let is_met = below.map_or(errors == 0, |below| is_share_below(count, worth, below));
    Found::bounded(errors as f64 / asked as f64, bound, is_met)
}

/// A quantile, nanoseconds, or that it is not known.
fn measured_ns(quantile: Quantile) -> Result<u64, Found> {
    match quantile {
        Quantile::Known { ns, .. } | Quantile::AtLeast { ns } => Ok(ns),
        Quantile::TooFew { needed, .. } => {
            let reason = format!("too few replies to tell: it takes {}", count(needed));
            Err(Found::unknown(None, reason))
        }
    }
}

/// A quantile of which `ns` was measured and that lies below `bound_ns`.
fn below(ns: u64, bound_ns: Option<u64>, is_met: bool) -> Found {
    match bound_ns {
        Some(bound_ns) => Found::bounded(ns as f64, Some(bound_ns as f64), is_met),
        None => Found::unbounded(Some(ns as f64), is_met, NoInterval::Unanswered),
    }
}

/// A quantile of response times against its limit.
fn of_quantile(sample: &Sample<'_>, q: f64, below_ns: u64) -> Found {
    let quantile = sample.quantile(q);
    let ns = match measured_ns(quantile) {
        Ok(ns) => ns,
        Err(unknown) => return unknown,
    };
    match Limits::of(sample, q) {
        Some(limits) if !sample.is_planned_to_vary => {
            below(ns, limits.upper_end_ns(below_ns), limits.is_below(below_ns))
        }
        // A rate that is planned to vary says nothing against the quantile of all.
        _ => {
            let is_met = matches!(quantile, Quantile::Known { .. }) && ns < below_ns;
            Found::unbounded(Some(ns as f64), is_met, NoInterval::PlannedToVary)
        }
    }
}

/// A longest response time, which is that of this run and has no interval, against its limit.
fn of_max(finished: &Histogram, unfinished: &Histogram, below_ns: u64) -> Found {
    match (finished.max_ns(), unfinished.max_ns()) {
        (max_ns, Some(waited_ns)) => {
            let longest_ns = max_ns.unwrap_or(0).max(waited_ns);
            Found::unknown(Some(longest_ns as f64), NoInterval::Unanswered)
        }
        (Some(max_ns), None) => Found::bounded(max_ns as f64, None, max_ns < below_ns),
        (None, None) => Found::unknown(None, "there was no reply"),
    }
}

/// Whether the requests of a name reached an objective. Intervals take them for independent, since
/// it is not recorded how they vary over the window.
fn of_name(of: &NameRecord, asked: &Objective) -> Found {
    let (response, unfinished) = (of.response.expand(), of.unfinished.expand());
    let issued = of.population.issued;
    let errors = |below| {
        let errors = issued.saturating_sub(response.count());
        of_errors(errors, issued, issued as f64, below)
    };
    match *asked {
        Objective::ResponseQuantile { q, below_ns } => {
            let ns = match measured_ns(of.response_quantile(q)) {
                Ok(ns) => ns,
                Err(unknown) => return unknown,
            };
            let all = response.count().saturating_add(unfinished.count()) as f64;
            let is_below = |ns: u64| {
                let reach = response.count_from(ns).saturating_add(unfinished.count());
                is_share_below(reach as f64, all, 1.0 - q)
            };
            let bound_ns = least_ns(response.max_ns().unwrap_or(0).saturating_mul(2), is_below);
            below(ns, bound_ns, is_below(below_ns))
        }
        Objective::ResponseMax { below_ns } => of_max(&response, &unfinished, below_ns),
        Objective::ResponseMean { below_ns } => {
            let measured = response.mean_ns();
            if unfinished.count() > 0 {
                return Found::unknown(measured, NoInterval::Unanswered);
            }
            let is_met = measured.is_some_and(|ns| ns < below_ns as f64);
            Found::unbounded(measured, is_met, "a mean by name has no interval")
        }
        Objective::Errors { below } => errors(Some(below)),
        Objective::NoErrors => errors(None),
        Objective::SuccessesPerS { .. } | Objective::Named { .. } => {
            Found::unknown(None, "this is asked of all requests together")
        }
    }
}

/// The least time up to `most_ns` for which something is true that stays true; absent where it is
/// for none.
fn least_ns(most_ns: u64, is_true: impl Fn(u64) -> bool) -> Option<u64> {
    let least = || narrowed(most_ns as f64, |ns| is_true(ns as u64)).1 as u64;
    is_true(most_ns).then(least)
}

#[cfg(test)]
mod tests {
    use brunt_record::Run;

    use super::*;
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
        assert!(!p99_below(steady_run(), measured as u64).is_met);
        let missed = p99_below(steady_run(), measured as u64 / 2);
        assert!(missed.bound.unwrap() >= measured, "{missed:?}");
    }

    #[test]
    fn few_replies_show_a_miss_where_all_are_too_slow() {
        let quantile = |q, below_ns| {
            let mut run = steady_run();
            run.latencies.response = Histogram::default();
            (0..5).for_each(|k| run.latencies.response.record(20 * MS + k));
            let objective = Objective::ResponseQuantile { q, below_ns };
            assert!(!outcome(run.clone(), objective.clone()).is_met);
            Judged::of(&run).is_shown_missed(&objective)
        };
        assert!(quantile(0.99, 10 * MS) && quantile(0.9, 10 * MS));
        // Five of five above the median come by chance.
        assert!(!quantile(0.5, 10 * MS) && !quantile(0.99, 30 * MS));
        let shown = |objective| Judged::of(&run()).is_shown_missed(&objective);
        assert!(shown(Objective::ResponseMax { below_ns: 1 }));
        assert!(!shown(Objective::ResponseMax {
            below_ns: 60_000 * MS
        }));
        // One reply in fifty has status 503.
        assert!(shown(Objective::Errors { below: 0.001 }));
        assert!(!shown(Objective::Errors { below: 0.1 }));
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
    fn a_maximum_is_compared_as_it_is_and_a_mean_at_the_end_of_its_interval() {
        let max_ns = steady_run().latencies.response.max_ns().unwrap();
        let max = |below_ns| outcome(steady_run(), Objective::ResponseMax { below_ns });
        assert!(max(max_ns + 1).is_met && !max(max_ns).is_met);
        assert_eq!(max(max_ns).measured, Some(max_ns as f64));
        let mean = |below_ns| outcome(steady_run(), Objective::ResponseMean { below_ns });
        let found = mean(u64::MAX);
        let (measured, bound) = (found.measured.unwrap(), found.bound.unwrap());
        assert!(found.is_met && measured <= bound, "{found:?}");
        assert!(!mean(measured as u64).is_met && mean(bound as u64 + 1).is_met);
        // Nobody knows how long the others would have taken.
        for objective in [
            Objective::ResponseMax { below_ns: u64::MAX },
            Objective::ResponseMean { below_ns: u64::MAX },
        ] {
            let mut run = steady_run();
            run.latencies.unfinished.record(MS);
            let missed = outcome(run, objective);
            assert!(!missed.is_met && missed.reason.is_some(), "{missed:?}");
        }
    }

    /// Figures of a name with so many answers.
    fn answered(name: &str, count: u64) -> NameRecord {
        let mut stored = serde_json::to_value(NameRecord::named(name)).expect("it can be stored");
        stored["population"]["issued"] = count.into();
        stored["population"]["recorded"] = count.into();
        serde_json::from_value(stored).expect("its own form")
    }

    fn named(objective: Objective) -> ObjectiveOutcome {
        let mut run = steady_run();
        let mut of = answered("login", 1_010);
        (0..1_000).for_each(|k| of.response.record(MS + k));
        (0..5).for_each(|_| of.response.record(9 * MS));
        // The invariants are not what is tested.
        run.names = vec![of];
        let asked = Objective::Named {
            name: "login".to_owned(),
            objective: Box::new(objective),
        };
        let outcome = Judged::of(&run).found(&asked).of(&asked, None);
        assert_eq!(outcome.objective, asked);
        outcome
    }

    #[test]
    fn the_requests_of_a_name_are_judged_alone() {
        let quantile = |q, below_ns| named(Objective::ResponseQuantile { q, below_ns });
        assert!(quantile(0.9, 2 * MS).is_met);
        let found = quantile(0.99, 2 * MS);
        // 5 of 1,005 are longer: with chance, it may be 1 % and more.
        assert!(
            !found.is_met && found.bound.unwrap() > (8 * MS) as f64,
            "{found:?}"
        );
        assert!(quantile(0.99, 10 * MS).is_met);
        assert!(named(Objective::ResponseMax { below_ns: 10 * MS }).is_met);
        assert!(!named(Objective::ResponseMax { below_ns: 8 * MS }).is_met);
        assert!(named(Objective::ResponseMean { below_ns: 2 * MS }).is_met);
        assert!(named(Objective::Errors { below: 0.02 }).is_met);
        assert!(!named(Objective::Errors { below: 0.005 }).is_met);
        assert!(!named(Objective::NoErrors).is_met);
        let asked = Objective::Named {
            name: "logout".to_owned(),
            objective: Box::new(Objective::NoErrors),
        };
        let missed = outcome(steady_run(), asked);
        assert!(!missed.is_met);
        assert!(missed.reason.unwrap().contains("by name"));
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
            let found = Judged::of(run).of_errors(Some(1.0));
            found.measured.expect("requests were sent")
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
            Judged::of(&run).of_rate(above)
        };
        let found = rate(1_000.0);
        let (measured, bound) = (found.measured.unwrap(), found.bound.unwrap());
        assert!(found.is_met && bound < measured, "{found:?}");
        assert!(!rate(f64::midpoint(bound, measured)).is_met);
    }

    #[test]
    fn what_is_withheld_was_not_reached() {
        let mut broken = steady_run();
        broken.agents[0].workers[0].edges.drained = brunt_record::Once::default();
        broken.agents[0].workers[0].tallies.measure.requests_sent += 1_000_000;
        let missed = p99_below(broken, u64::MAX);
        assert!(!missed.is_met && missed.reason.is_some(), "{missed:?}");
    }
}
