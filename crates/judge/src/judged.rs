//! A run with what follows from it: worked out once, by whoever reads the run, or one by one.

use std::rc::Rc;

use brunt_load::Work;
use brunt_record::{Histogram, Run, WorkerRecord};

use crate::behaviour::failures::{no_success_of, server_failure_of};
use crate::facts::Facts;
use crate::figures::bandwidth::bandwidth_intervals;
use crate::precision::{Sample, quantile_of, response_sample, successes_interval};
use crate::{
    Bandwidth, BandwidthInterval, Clean, CleanFigures, Figure, Finding, InvariantStatus, Judgement,
    NoInterval, NoSuccess, Overload, Quantile, RateInterval, ResponseQuantiles, ServerFailure,
    Summary, VerdictIf, invariants, verdict,
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
    /// The verdicts that other numbers of connections would give; absent with a schedule.
    pub(crate) verdict_if: Option<VerdictIf>,
}

impl<'a> Judged<'a> {
    /// Judges `run`. Pure: the same run gives the same.
    pub fn of(run: &'a Run) -> Self {
        let facts = Rc::new(Facts::of(run));
        let findings = invariants::check_facts(&facts);
        let clean = Clean::of(run, &facts.summary);
        let (judgement, verdict_if) = verdict::judge(&facts, &findings, clean.as_ref());
        Self {
            run,
            summary: facts.summary.clone(),
            findings,
            overload: facts.overload,
            clean,
            judgement,
            verdict_if,
        }
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
        self.sample().finished
    }

    pub(crate) fn sample(&self) -> Sample<'_> {
        match self.undisturbed() {
            Some(clean) => clean.sample(),
            None => response_sample(self.run),
        }
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
        if self.is_valid() {
            return self.run.not_one_load();
        }
        Some("withheld: the run is INVALID".to_owned())
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

/// What follows from a run, one by one. [`Judged`] has the most of it, worked out once.
pub trait RunFigures {
    /// The run.
    fn run(&self) -> &Run;

    /// Adds up the workers of all agents and derives the figures.
    fn summary(&self) -> Summary {
        Summary::of(self.run(), &self.run().agents)
    }

    /// What limited this run. [`Judged`] also has what it follows from.
    fn judge(&self) -> Judgement {
        Judged::of(self.run()).judgement
    }

    /// The interval of the rate of successful replies: how much it would vary from one such window
    /// to the next, from how it varies within this one.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn successes_interval(&self) -> Result<RateInterval, NoInterval> {
        successes_interval(self.run())
    }

    /// How the server failed in the window; absent where it did not.
    fn server_failure(&self) -> Option<ServerFailure> {
        server_failure_of(self.run(), &self.summary())
    }

    /// Why no request of this run succeeded; absent where one did, and where nothing was measured.
    fn no_success(&self) -> Option<NoSuccess> {
        no_success_of(self.run(), &self.summary())
    }

    /// The figures of its streams; absent in a run of requests.
    fn bandwidth(&self) -> Option<Bandwidth> {
        let has_streams = self.run().work() == Work::Streams;
        has_streams.then(|| Bandwidth::of(self.run(), &self.summary()))
    }

    /// What its streams did interval by interval: between the readings of the worker that made the
    /// fewest, of which there are some 1,200 at most.
    fn bandwidth_intervals(&self) -> Vec<BandwidthInterval> {
        bandwidth_intervals(self.run())
    }

    /// Whether every successful response was the first one of its connection, and connections were
    /// opened for that: with one request per connection, or where the server closes each after its
    /// first response. Opening them is part of what a user of such a server waits for.
    fn connects_per_request(&self) -> bool {
        let run = self.run();
        let count = run.latencies.with_connect.count();
        let replaces = |worker: &WorkerRecord| {
            let places = worker.live.asked.max(worker.live.most);
            worker.tallies.lifetime().connections_opened > places.into()
        };
        count > 0
            && count == run.latencies.response.count()
            && (run.plan.requests_per_connection() == Some(1) || run.workers().any(replaces))
    }

    /// The quantile of the response time together with the time to open the connection, as
    /// [`crate::ResponseQuantiles::response_quantile`]. It has no interval.
    fn with_connect_quantile(&self, q: f64) -> Quantile {
        let latencies = &self.run().latencies;
        quantile_of(&latencies.with_connect, &latencies.unfinished, q)
    }
}

impl RunFigures for Run {
    fn run(&self) -> &Run {
        self
    }
}
