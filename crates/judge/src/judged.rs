//! A run with what follows from it: worked out once, by whoever reads the run.

use brunt_record::Run;

use crate::invariants::Facts;
use crate::verdict::{ConnectionsShow, Verdict};
use crate::{Clean, Finding, InvariantStatus, Judgement, Summary, invariants, verdict};

/// A run, its figures, its invariants and its verdict.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The run.
    pub run: &'a Run,
    /// The figures of the run.
    pub summary: Summary,
    /// The invariants of the run, in the order of [`crate::INVARIANTS`].
    pub findings: Vec<Finding>,
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
        let summary = facts.summary;
        let clean = Clean::of(run, &summary);
        let judgement = verdict::judge(run, &summary, &findings, clean.as_ref());
        Self {
            run,
            summary,
            findings,
            clean,
            judgement,
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
