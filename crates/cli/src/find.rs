//! `brunt find`: the highest rate at which a server meets objectives.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_experiment::{Finder, capacity_plan};
use brunt_judge::{CAPACITY_STEPS_MAX, Capacity, CapacityPlan, ExperimentKind};
use brunt_load::{LoadModel, Plan};
use brunt_record::{Environment, Objective, Run};
use brunt_report::Experiment;

use crate::args::{AnyLoadArguments, LoadArguments};
use crate::commands::FindArguments;
use crate::executor::{self, AskedFleet, Course, Executor};
use crate::output::Destination;
use crate::progress::{Doing, Line};
use crate::redact::environment;
use crate::refusals::{self, Given};
use crate::{habits, objectives};

/// Lengths of a step's window and warm-up where none is typed.
const WINDOW_NS: u64 = 2_000_000_000;
const WARMUP_NS: u64 = 500_000_000;
/// A budget has room for so many of them.
const STEPS_LEAST: u64 = 4;
/// Connections that may be opened where none of those held is free: a server that is slower at a
/// higher rate must not be held back by their number.
const CONNECTIONS_MAX: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// Searches, in this process or by a fleet, and prints what was found.
pub(crate) fn run(
    arguments: &FindArguments,
    given: &Given,
    fleet: Option<AskedFleet<'_>>,
) -> Result<ExitCode> {
    given.refuse(refusals::EXPERIMENT)?;
    given.refuse(refusals::SEARCH)?;
    let (typed, most) = (&arguments.typed.load, arguments.search.max_rate);
    let url = habits::only_url(typed)?;
    let url = url.context("give the URL of the server, as in brunt find --objective TEXT URL")?;
    check_rates(typed.rate, most)?;
    let plan = plan(&arguments.typed, given, url, most)?;
    let asked = asked(typed)?;
    check_budget(arguments.budget, &plan)?;
    let destination = Destination::open(&typed.output)?;
    executor::run(typed, fleet, destination, plan, |plan, executor| {
        executor.check(plan)?;
        let wanted = capacity_plan(plan, asked, typed.rate, most, Some(arguments.budget));
        Ok(Search::new(plan, wanted, environment()))
    })
}

/// A search on one server.
pub(crate) struct Search {
    finder: Finder,
    pub(crate) capacity: Capacity,
}

impl Search {
    pub(crate) fn new(plan: &Plan, wanted: CapacityPlan, environment: Environment) -> Self {
        Self {
            finder: Finder::new(plan.clone(), wanted.clone()),
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

    /// Whether there is a result.
    pub(crate) fn is_done(&self) -> bool {
        self.finder.next_plan().is_none()
    }

    /// How long the rest takes, as it looks now, nanoseconds.
    pub(crate) fn expected_ns(&self) -> u64 {
        self.finder.expected_ns()
    }

    /// Makes the next step, whose round `measure` measures; gives whether there was one.
    pub(crate) fn step(&mut self, measure: &mut dyn FnMut(&Plan) -> Result<Run>) -> Result<bool> {
        let Some(plan) = self.finder.next_plan() else {
            return Ok(false);
        };
        if self.capacity.steps.len() >= CAPACITY_STEPS_MAX {
            bail!("there is no result after {CAPACITY_STEPS_MAX} steps");
        }
        let run = measure(&plan)?;
        self.capacity.environment.add(&run);
        self.capacity.load.get_or_insert_with(|| run.plan.clone());
        self.capacity.steps.extend(self.finder.take(run));
        Ok(true)
    }
}

impl Course for Search {
    fn doing(&self) -> Doing {
        Doing::Search
    }

    fn is_one_session(&self) -> bool {
        true
    }

    fn environment(&mut self) -> &mut Environment {
        &mut self.capacity.environment
    }

    fn measure(
        &mut self,
        _plan: &Plan,
        executor: &mut Executor<'_>,
        line: &mut Line,
    ) -> Result<()> {
        line.expect_left(self.expected_ns());
        while self.step(&mut |plan| executor.round(plan, line))? {
            line.expect_left(self.expected_ns());
        }
        Ok(())
    }

    fn has_rounds(&self) -> bool {
        !self.capacity.steps.is_empty()
    }

    fn break_off(&mut self, error: anyhow::Error) -> anyhow::Error {
        let error = error.context(format!(
            "the search of {} broke off in step {}",
            self.capacity.plan.url,
            self.capacity.steps.len() + 1
        ));
        self.capacity.broke_off = Some(format!("{error:#}"));
        error
    }

    fn experiment(self) -> Experiment {
        Experiment::Capacity(self.capacity)
    }
}

/// The objectives, of which a rate is none: it is what is searched for.
pub(crate) fn asked(arguments: &LoadArguments) -> Result<Vec<Objective>> {
    let asked = objectives::asked(&arguments.output.objective)
        .context("say what is to be met, as in --objective 'p99 < 10ms, errors < 0.1%'")?;
    let is_rate = |it: &Objective| matches!(it, Objective::SuccessesPerS { .. });
    if asked.iter().any(is_rate) {
        bail!("the rate is what is searched for; leave it out of --objective");
    }
    Ok(asked)
}

/// A search begins below its end.
pub(crate) fn check_rates(first: Option<f64>, most: f64) -> Result<()> {
    match first {
        Some(first) if first > most => bail!(
            "the search begins with {first} requests/s of --rate, above the {most} of --max-rate; \
             lower one or raise the other"
        ),
        _ => Ok(()),
    }
}

/// A search takes some steps.
fn check_budget(budget_ns: u64, plan: &Plan) -> Result<()> {
    let step_ns = plan.warmup_ns + plan.stop.duration_ns.unwrap_or(0);
    let least_ns = step_ns.saturating_mul(STEPS_LEAST);
    if budget_ns < least_ns {
        bail!(
            "--budget is too short for a search: {STEPS_LEAST} steps take {:.1} s; give more, or a \
             shorter -d and --warmup",
            least_ns as f64 / 1e9
        );
    }
    Ok(())
}

/// The load at the highest rate.
pub(crate) fn plan(
    typed: &AnyLoadArguments,
    given: &Given,
    url: &str,
    most_per_s: f64,
) -> Result<Plan> {
    let arguments = &typed.load;
    let mut plan = typed.typed(given).plan(Some(url), Some(most_per_s))?;
    arguments.set_window(&mut plan, WINDOW_NS);
    if let LoadModel::Open {
        connections_max, ..
    } = &mut plan.model
        && arguments.max_connections.is_none()
    {
        *connections_max = CONNECTIONS_MAX.max(plan.connections);
    }
    plan.warmup_ns = arguments.warmup.unwrap_or(WARMUP_NS);
    Ok(plan)
}
