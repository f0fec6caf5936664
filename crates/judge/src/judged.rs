//! A run with what follows from it: worked out once, by whoever reads the run.

use brunt_record::{Histogram, Run};

use crate::behaviour::outage::server_failure_of;
use crate::behaviour::steadiness::steadiness_of;
use crate::facts::Facts;
use crate::precision::{Sample, response_sample, successes_interval};
use crate::verdict::{ConnectionsShow, Verdict};
use crate::{
    Clean, CleanFigures, Figure, Finding, InvariantStatus, Judgement, NoInterval, Overload,
    Quantile, RateInterval, ResponseQuantiles, ServerFailure, Steadiness, Summary, invariants,
    verdict,
};

/// A run, its figures, its invariants and its verdict.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The run.
    pub run: &'a Run,
    /// The figures of the run.
    pub summary: Summary,
    /// The invariants of the run, in the order of their table.
    pub findings: Vec<Finding>,
    /// How the run was overloaded; absent where it was not.
    pub overload: Option<Overload>,
    /// What the hypervisor left of the window; absent where it took nothing.
    pub clean: Option<Clean>,
    /// What limited it.
    pub judgement: Judgement,
}

impl<'a> Judged<'a> {
    /// Judges `run`. Pure: the same run gives the same.
    pub fn of(run: &'a Run) -> Self {
        let facts = Facts::of(run);
        let findings = invariants::check_facts(&facts);
        let Facts {
            summary, overload, ..
        } = facts;
        let clean = Clean::of(run, &summary);
        let judgement = verdict::judge(run, &summary, &findings, clean.as_ref());
        Self {
            run,
            summary,
            findings,
            overload,
            clean,
            judgement,
        }
    }

    /// Whether the rate held still.
    pub fn steadiness(&self) -> Steadiness {
        steadiness_of(self.run, &self.summary)
    }

    /// How the server failed in the window; absent where it did not.
    pub fn server_failure(&self) -> Option<ServerFailure> {
        server_failure_of(self.run, &self.summary)
    }

    /// The figures of the parts of the window in which the hypervisor took nothing, where the
    /// verdict rests on them: those that a reader is shown first. Absent where it rests on the
    /// whole window.
    pub fn undisturbed(&self) -> Option<&CleanFigures> {
        let figures = self.clean.as_ref()?.figures.as_ref();
        figures.filter(|_| self.judgement.rests_on_clean)
    }

    /// Successful replies per second of what the verdict rests on.
    pub fn successes_per_s(&self) -> Figure {
        match self.undisturbed() {
            Some(clean) => Figure::Known(clean.successes_per_s),
            None => self.summary.successes_per_s.clone(),
        }
    }

    /// How well that is known.
    ///
    /// # Errors
    ///
    /// Why there is no interval.
    pub fn successes_interval(&self) -> Result<RateInterval, NoInterval> {
        match self.undisturbed() {
            Some(clean) => clean.successes_interval,
            None => successes_interval(self.run),
        }
    }

    /// The response times of successful replies of what the verdict rests on.
    pub fn response(&self) -> &Histogram {
        match self.undisturbed() {
            Some(clean) => &clean.response,
            None => &self.run.latencies.response,
        }
    }

    pub(crate) fn sample(&self) -> Sample<'_> {
        match self.undisturbed() {
            Some(clean) => clean.sample(),
            None => response_sample(self.run),
        }
    }

    /// The verdict if other numbers of connections showed this.
    pub(crate) fn verdict_if(&self, show: ConnectionsShow) -> Verdict {
        let left = self.clean.as_ref();
        verdict::verdict_if(self.run, &self.summary, &self.findings, left, show)
    }

    /// The invariants that stand so.
    pub fn with_status(&self, status: InvariantStatus) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(move |finding| finding.status == status)
    }

    /// Whether the figures may be printed: no invariant is broken.
    pub fn is_valid(&self) -> bool {
        invariants::is_valid(&self.findings)
    }

    /// Why there are no rates, where there are none: an invariant is broken, or the agents' windows
    /// did not overlap.
    pub fn withheld(&self) -> Option<String> {
        let broken: Vec<&str> = self
            .with_status(InvariantStatus::Broken)
            .map(|it| it.id)
            .collect();
        if broken.is_empty() {
            return self.run.not_one_load();
        }
        Some(format!("withheld: {} broken", broken.join(", ")))
    }
}

impl Judged<'_> {
    /// The figure, which is a rate, unless rates are withheld.
    pub fn rate<T>(&self, figure: Figure<T>) -> Figure<T> {
        self.withheld().map_or(figure, Figure::Absent)
    }
}

impl ResponseQuantiles for Judged<'_> {
    fn response_quantile(&self, q: f64) -> Quantile {
        self.sample().quantile(q)
    }
}
