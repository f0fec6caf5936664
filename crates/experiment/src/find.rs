//! The highest rate at which a server meets objectives: which round is next, and what it showed.

use brunt_judge::{
    CAPACITY_DRAIN_NS_MAX, Capacity, CapacityNext, CapacityOutcome, CapacityPlan, CapacitySearch,
    CapacityStep, ExperimentKind, Grade, Judged, ObjectiveOutcome, Quantile, RoundRecord,
    RunFigures, SignalId, Verdict, rates_to_judge,
};
use brunt_load::Plan;
use brunt_record::{AgentRecord, Environment, Objective, Run, after_ns};

use crate::course::{ExperimentCourse, NextRound};
use crate::sweep::set_rate;

/// How close the rates that hold and miss are in the end, as a ratio less 1.
const TOLERANCE: f64 = 0.02;
/// Share of the planned requests that may stay unsent, and by which the answers may come more
/// slowly than the requests.
const UNSENT_MOST: f64 = 0.01;
const BEHIND_MOST: f64 = 0.01;

/// What is searched for, from the load at its highest rate: `first_per_s` is typed, or such that
/// the shortest window holds enough samples. The search ends within `budget_ns`.
pub fn capacity_plan(
    plan: &Plan,
    objectives: Vec<Objective>,
    first_per_s: Option<f64>,
    most_per_s: f64,
    budget_ns: u64,
) -> CapacityPlan {
    let window_ns = plan.load.stop.duration_ns.unwrap_or(0);
    let (least_per_s, enough_per_s) = rates_to_judge(&objectives, window_ns, budget_ns);
    CapacityPlan {
        url: plan.target.url.clone(),
        objectives,
        tolerance: TOLERANCE,
        first_per_s: first_per_s.unwrap_or(enough_per_s).max(least_per_s),
        least_per_s,
        most_per_s,
        window_ns,
        warmup_ns: plan.load.warmup_ns,
        budget_ns,
    }
}

/// A search for the capacity of a server.
pub struct SearchCourse {
    /// Planned requests at any rate.
    plan: Plan,
    search: CapacitySearch,
    capacity: Capacity,
}

impl SearchCourse {
    /// What is `wanted` is searched for with the load of `plan`, which is planned requests.
    pub fn new(plan: Plan, wanted: CapacityPlan, environment: Environment) -> Self {
        Self {
            plan,
            search: CapacitySearch::new(&wanted),
            capacity: Capacity {
                kind: ExperimentKind::Capacity,
                format: Capacity::FORMAT,
                brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
                plan: wanted,
                load: None,
                environment,
                broke_off: None,
                steps: Vec::new(),
            },
        }
    }

    /// What was found.
    pub fn finish(self) -> Capacity {
        self.capacity
    }

    /// The plan of a step.
    fn plan_at(&self, step: CapacityNext) -> Plan {
        let mut plan = self.plan.clone();
        set_rate(&mut plan, step.rate_per_s);
        plan.load.stop.duration_ns = Some(step.window_ns);
        plan.load.drain_limit_ns = plan.load.drain_limit_ns.min(CAPACITY_DRAIN_NS_MAX);
        plan
    }

    /// Takes the run of a step.
    fn take_step(&mut self, step: CapacityNext, mut run: Run) {
        let CapacityNext {
            stage, rate_per_s, ..
        } = step;
        self.capacity.environment.add(&run);
        self.capacity.load.get_or_insert_with(|| run.plan.clone());
        run.objectives.clone_from(&self.capacity.plan.objectives);
        let judged = Judged::of(&run);
        let is_at_low_load = stage.is_at_low_load();
        // What the hypervisor took says nothing of the server.
        let of_clean = judged.objectives_of_clean().filter(|_| !is_at_low_load);
        let is_of_clean = of_clean.is_some();
        let objectives = of_clean.unwrap_or_else(|| judged.objectives());
        let disturbed = disturbed(&judged);
        let (outcome, mut because) = if is_at_low_load {
            judge_low_load(&judged, &objectives)
        } else {
            judge(&judged, &objectives, disturbed.as_deref())
        };
        if is_of_clean && outcome == CapacityOutcome::Met {
            because = "over the time without CPU steal".to_owned();
        }
        let step = CapacityStep {
            stage,
            rate_per_s,
            outcome,
            because,
            is_disturbed: disturbed.is_some(),
            objectives,
            took_ns: took_ns(&run),
            record: RoundRecord::of(&judged),
        };
        self.search.tell(&step);
        self.capacity.steps.push(step);
    }
}

impl ExperimentCourse for SearchCourse {
    fn next(&mut self, _elapsed_ns: u64) -> Option<NextRound> {
        Some(NextRound {
            side: 0,
            plan: self.plan_at(self.search.next()?),
            value: None,
            left_ns: self.search.expected_ns(),
        })
    }

    fn take(&mut self, _side: usize, run: Run) {
        if let Some(step) = self.search.next() {
            self.take_step(step, run);
        }
    }
}

/// How long a round took, from the beginning of its set-up on.
fn took_ns(run: &Run) -> u64 {
    let of_agent = |agent: &AgentRecord| {
        let edges = &agent.clock.edges;
        Some(after_ns(edges.setup_start.get()?, edges.finished.get()?))
    };
    run.agents.iter().filter_map(of_agent).max().unwrap_or(0)
}

/// The outcome of a step at low load, and why: few replies show no more than that objectives are
/// missed, or all met.
fn judge_low_load(
    judged: &Judged<'_>,
    objectives: &[ObjectiveOutcome],
) -> (CapacityOutcome, String) {
    if judged.withheld().is_some() {
        return (CapacityOutcome::Invalid, judged.judgement.because.clone());
    }
    if objectives.iter().all(|outcome| outcome.is_met) {
        return (CapacityOutcome::Met, String::new());
    }
    let is_missed = |outcome: &ObjectiveOutcome| judged.is_shown_missed(&outcome.objective);
    let replies = judged.run.latencies.response.count();
    if objectives.iter().any(is_missed) {
        // By how much is in the figures of the step.
        return (CapacityOutcome::Missed, String::new());
    }
    let because =
        format!("no limit was shown to be missed, and {replies} replies are too few to show more");
    (CapacityOutcome::Undecided, because)
}

/// The outcome of a step, and why; `disturbed`: what others took of the CPU time, in words.
fn judge(
    judged: &Judged<'_>,
    objectives: &[ObjectiveOutcome],
    disturbed: Option<&str>,
) -> (CapacityOutcome, String) {
    let verdict = judged.judgement.verdict;
    if judged.withheld().is_some() {
        return (CapacityOutcome::Invalid, judged.judgement.because.clone());
    }
    let missed = objectives.iter().find(|outcome| !outcome.is_met);
    let unsent = unsent(judged);
    let behind = behind(judged);
    let is_behind = behind.is_some();
    let is_short = is_behind || unsent.is_some();
    let reason = match (behind, unsent, missed) {
        // A server that failed has no capacity that its answers would tell.
        (Some(_), ..) if matches!(verdict, Verdict::ServerFailed | Verdict::NoSuccess) => {
            judged.judgement.because.clone()
        }
        (Some(reason), _, _) | (None, Some(reason), _) => reason,
        // Which one, and by how much, is in the step.
        (None, None, Some(_)) => String::new(),
        // Where all was met at this rate, it does not matter what brunt had to do for it.
        (None, None, None) => return (CapacityOutcome::Met, String::new()),
    };
    let is_brunts = || is_short || missed.is_none_or(|outcome| is_missed_by_brunt(judged, outcome));
    if verdict == Verdict::ClientLimited && is_brunts() {
        let because = judged.judgement.because.clone();
        return (CapacityOutcome::ClientLimited, because);
    }
    if let Some(because) = disturbed.filter(|_| verdict == Verdict::Disturbed) {
        return (CapacityOutcome::Undecided, because.to_owned());
    }
    let may_be_met = missed.is_some_and(|outcome| {
        outcome.is_within()
            && (outcome.measured.is_some() || !judged.is_shown_missed(&outcome.objective))
    });
    if !is_behind && may_be_met {
        return (CapacityOutcome::Undecided, reason);
    }
    match disturbed {
        Some(because) if !is_behind => (CapacityOutcome::Undecided, because.to_owned()),
        _ => (CapacityOutcome::Missed, reason),
    }
}

/// What others took of the CPU time that brunt or the server needed, in words; absent where they
/// took none of it.
fn disturbed(judged: &Judged<'_>) -> Option<String> {
    let judgement = &judged.judgement;
    if judgement.verdict == Verdict::Disturbed {
        return Some(judgement.because.clone());
    }
    if judged.clean.is_some() {
        return Some("there was CPU steal in this window".to_owned());
    }
    let programs = judgement.signal(SignalId::OtherPrograms)?;
    (programs.grade == Grade::Fail).then(|| programs.detail.clone())
}

/// Whether an objective was missed for brunt's own part of the response times: what was measured
/// misses the limit, and what the server did of it alone keeps it.
fn is_missed_by_brunt(judged: &Judged<'_>, outcome: &ObjectiveOutcome) -> bool {
    let &Objective::ResponseQuantile { q, below_ns } = outcome.objective.plain() else {
        return true;
    };
    let Some(measured_ns) = outcome.measured else {
        return true;
    };
    let of_server_ns = measured_ns - own_ns(judged, q);
    !outcome.is_within() && of_server_ns < below_ns as f64
}

/// Brunt's own part of the response times at a quantile, nanoseconds: by kernel stamps where enough
/// lie there, else the larger one of the schedule lag there and of that part at the median.
fn own_ns(judged: &Judged<'_>, q: f64) -> f64 {
    let latencies = &judged.run.latencies;
    if let Ok(tail) = latencies.split.known_tail(q) {
        return tail.own_ns();
    }
    let lag_ns = Quantile::of(&latencies.lag, q).known_ns().unwrap_or(0) as f64;
    let of_median = latencies.split.around(0.5);
    of_median.map_or(lag_ns, |parts| lag_ns.max(parts.own_ns()))
}

/// How the server fell behind the rate, in words: more and more arrivals waited for connections, or
/// the answers came more slowly than the requests, on ever more connections. Absent where it did
/// not.
fn behind(judged: &Judged<'_>) -> Option<String> {
    if let Some(overload) = judged.overload {
        let per_s = overload.capacity_per_s;
        return Some(format!(
            "the server fell behind: about {per_s:.0} req/s were answered"
        ));
    }
    let summary = &judged.summary;
    let answered_per_s = summary.successes_per_s.known()?;
    let planned_per_s = summary.planned_per_s.known()?;
    let issued = summary.population.issued;
    let succeeded = judged.run.latencies.response.count() as f64 / issued.max(1) as f64;
    let per_s = judged.run.successes_interval().ok()?;
    let expected_per_s = planned_per_s * succeeded.min(1.0);
    (per_s.high_per_s < (1.0 - BEHIND_MOST) * expected_per_s).then(|| {
        format!(
            "the server fell behind: it answered {answered_per_s:.0} of {expected_per_s:.0} req/s"
        )
    })
}

/// Requests that could not be sent, in words.
fn unsent(judged: &Judged<'_>) -> Option<String> {
    let arrivals = &judged.summary.arrivals;
    let unsent = arrivals.planned.saturating_sub(arrivals.sent);
    let share = unsent as f64 / arrivals.planned.max(1) as f64;
    (share > UNSENT_MOST).then(|| {
        format!(
            "{unsent} of {} planned requests were never sent",
            arrivals.planned
        )
    })
}
