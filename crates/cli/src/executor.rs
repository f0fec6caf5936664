//! Experiments on one server, and who makes their rounds: this process, or the agents of a fleet.
//! `brunt sweep`: how a server scales, from rounds at several values of one setting. `brunt find`:
//! the highest rate at which a server meets objectives.

use std::net::Ipv4Addr;
use std::num::{NonZeroU32, NonZeroU64};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_engine::{Rounds, RunError, port_hold_s, ports_per_address};
use brunt_experiment::{
    ExperimentCourse, NextRound, SWEEP_AXES, SearchCourse, SweepCourse, Varied, capacity_plan,
    first_with_body, is_within_session, plan_at,
};
use brunt_fleet::{Broker, Credentials, Gathered, NamedBroker, Task};
use brunt_io::{clock, threads};
use brunt_judge::{EndedEarly, SweepAxis, SweepPlan};
use brunt_load::{LoadModel, Plan, RequestSet, Target};
use brunt_probe::network::time_wait_sockets;
use brunt_record::{Objective, Run, counted};
use brunt_report::{Experiment, PhaseLength};

use crate::args::{AnyLoadArguments, LoadArguments, fresh_seed};
use crate::commands::{AgentsArguments, BrokerArguments, FindArguments, SweepArguments};
use crate::output::{Destination, NOT_OF_RUN, NOT_OF_SWEEP};
use crate::plan::set_workers;
use crate::progress::Line;
use crate::redact::environment;
use crate::refusals::{self, Given};
use crate::request::read_list;
use crate::run::Pipeline;
use crate::session::{Interrupts, SessionOptions, is_interrupt};
use crate::values::of_option;
use crate::{exit, habits, objectives};

/// What was typed of a fleet.
pub(crate) type AskedFleet<'a> = (&'a AgentsArguments, &'a BrokerArguments);

/// Has `make` make the rounds of `course`, while `line` shows how far it has come.
pub(crate) fn make_rounds(
    course: &mut dyn ExperimentCourse,
    line: &mut Line,
    mut make: impl FnMut(NextRound, &mut Line) -> Result<Run>,
) -> Result<()> {
    let begun_ns = clock::now_ns();
    let elapsed_ns = || clock::now_ns().saturating_sub(begun_ns);
    let outcome = brunt_experiment::make_rounds(course, &elapsed_ns, &mut |next| {
        line.expect(next.left_ns, &next.plan);
        make(next, line)
    });
    line.clear();
    outcome
}

/// Reports an experiment whose rounds ended so, as far as it came.
pub(crate) fn conclude(
    pipeline: Pipeline,
    outcome: Result<()>,
    mut experiment: Experiment,
) -> Result<ExitCode> {
    let Err(mut error) = outcome else {
        return pipeline.report(&experiment);
    };
    let rounds = match &experiment {
        Experiment::Sweep(sweep) => sweep.rounds.len(),
        Experiment::Capacity(search) => search.steps.len(),
        Experiment::Comparison(found) => found.pairs(),
    };
    let was_interrupted = is_interrupt(&error);
    match &mut experiment {
        _ if rounds == 0 => return Err(error),
        Experiment::Comparison(found) if was_interrupted => {
            found.ended_early = Some(EndedEarly::Interrupted);
        }
        Experiment::Comparison(_) => return Err(error),
        Experiment::Sweep(_) | Experiment::Capacity(_) if was_interrupted => {}
        Experiment::Sweep(sweep) => {
            sweep.broke_off = Some(format!("{error:#}"));
            let rounds = counted(rounds as u64, "round", "rounds");
            error = error.context(format!("the sweep broke off after {rounds}"));
        }
        Experiment::Capacity(search) => {
            let url = &search.plan.url;
            let step = rounds + 1;
            error = error.context(format!("the search of {url} broke off in step {step}"));
            search.broke_off = Some(format!("{error:#}"));
        }
    }
    pipeline.report(&experiment)?;
    if was_interrupted {
        Ok(ExitCode::from(exit::INTERRUPTED))
    } else {
        Err(error)
    }
}

/// Who makes the rounds of an experiment on one server.
enum Executor<'a> {
    /// This process, in the session of all rounds; absent where each has one of its own.
    Here(&'a Interrupts, Option<&'a mut (dyn Rounds + 'a)>),
    /// The agents of a fleet. They find the way to the server and wait for ports by themselves.
    Fleet(Box<Gathered<'a>>),
}

impl<'a> Executor<'a> {
    /// This process, or the agents of a fleet when all are there; `plan` has their workers then.
    fn new(
        fleet: Option<AskedFleet<'_>>,
        typed: &LoadArguments,
        plan: &mut Plan,
        interrupts: &'a Interrupts,
    ) -> Result<Self> {
        let Some(asked) = fleet else {
            return Ok(Self::Here(interrupts, None));
        };
        let agents = gather(asked, typed, &plan.target, interrupts)?;
        set_workers(plan, typed, |model| agents.workers(model));
        Ok(Self::Fleet(Box::new(agents)))
    }

    /// Whether a round of `plan` can be made.
    fn check(&self, plan: &Plan) -> Result<()> {
        match self {
            Self::Here(..) => Ok(()),
            Self::Fleet(agents) => agents.check(plan),
        }
    }

    /// Makes the rounds of `course`: those of one session with the load of `plan` as its levels.
    fn make(
        &mut self,
        plan: &Plan,
        is_one_session: bool,
        course: &mut dyn ExperimentCourse,
        line: &mut Line,
    ) -> Result<()> {
        if let Self::Here(interrupts, None) = self
            && is_one_session
        {
            let (interrupts, options): (&Interrupts, _) = (interrupts, SessionOptions::default());
            return interrupts.in_session(plan.clone(), options, |session| {
                Executor::Here(interrupts, Some(session)).make(plan, false, course, line)
            });
        }
        let mut ports = None;
        make_rounds(course, line, |next, line| {
            let value = next.value;
            let mut run = self.round(next, ports, line);
            if let Some((axis, value)) = value {
                let axis = axis.name();
                run = run
                    .with_context(|| format!("the round of {value} {axis} could not be measured"));
            }
            let run = run?;
            ports = run.first().limits.ports_available;
            Ok(run)
        })
    }

    /// Makes a round, where earlier ones had so many local ports.
    fn round(&mut self, next: NextRound, ports: Option<u64>, line: &mut Line) -> Result<Run> {
        let (interrupts, session) = match self {
            Self::Here(interrupts, session) => (interrupts, session),
            Self::Fleet(agents) => return agents.round(&next.plan, line),
        };
        if next.value.is_some() && !settle(&next.plan, ports, || interrupts.came()) {
            return Err(RunError::Interrupted.into());
        }
        match session {
            Some(session) => Ok(session.round(&next.plan.load, line)?),
            None => interrupts.round(next.plan, line),
        }
    }
}

/// The agents of a fleet, when all are there.
///
/// # Errors
///
/// As [`Gathered::gather`].
pub(crate) fn gather<'a>(
    (agents, broker): AskedFleet<'_>,
    typed: &LoadArguments,
    target: &Target,
    interrupts: &'a Interrupts,
) -> Result<Gathered<'a>> {
    let task = Task {
        agents: agents.agents,
        local: agents.local,
        ssh: agents.ssh.clone(),
        broker: broker.named()?,
        gather_ns: agents.gather,
        has_script: typed.script.is_some(),
        is_generated: typed.is_generated(),
        has_workers: typed.threads.is_some(),
        is_quiet: typed.output.quiet,
    };
    Gathered::gather(task, target, interrupts)
}

impl BrokerArguments {
    /// The broker that is named, if any.
    pub(crate) fn named(&self) -> Result<Option<NamedBroker>> {
        let Some(url) = &self.nats else {
            return Ok(None);
        };
        let credentials = self.nats_credentials.as_ref().map(|path| {
            let text = String::from_utf8(read_list(path, "--nats-credentials")?)?;
            let read = text.parse::<Credentials>();
            read.with_context(|| format!("{} holds no credentials", path.display()))
        });
        let broker = Broker {
            url: url.clone(),
            credentials: credentials.transpose()?,
            roots: self.nats_ca.clone(),
            identity: self.nats_cert.clone().zip(self.nats_key.clone()),
            allows_open: self.nats_insecure,
        };
        broker.check()?;
        Ok(Some(NamedBroker {
            broker,
            job: self.job.clone(),
            options: self.options(url),
        }))
    }

    /// The options with which an agent on this machine finds the broker.
    fn options(&self, url: &str) -> Vec<String> {
        let mut options = vec!["--nats".to_owned(), url.to_owned()];
        for (option, path) in [
            ("--nats-ca", &self.nats_ca),
            ("--nats-credentials", &self.nats_credentials),
            ("--nats-cert", &self.nats_cert),
            ("--nats-key", &self.nats_key),
        ] {
            if let Some(path) = path {
                options.extend([option.to_owned(), path.to_string_lossy().into_owned()]);
            }
        }
        if self.nats_insecure {
            options.push("--nats-insecure".to_owned());
        }
        options
    }
}

/// TIME_WAIT lasts 60 s on Linux: who waits for longer waits for something else.
const WAIT_NS_MAX: u64 = 61_000_000_000;
/// How often it is looked whether it is over.
const LOOK_NS: u64 = 100_000_000;

/// Waits until sockets in TIME_WAIT, of this network namespace, leave as many of the local `ports`
/// (where they are not known, of those of one address) as `plan` needs: half of them where that is
/// not known. Gives whether that was waited for, and not `is_interrupted`.
pub(crate) fn settle(
    plan: &Plan,
    ports: Option<u64>,
    mut is_interrupted: impl FnMut() -> bool,
) -> bool {
    let target = match plan.target.host.as_str() {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        host => host.parse().ok(),
    };
    if target.is_some_and(|target| port_hold_s(target) <= 1) {
        return true;
    }
    // Connections that brunt closes hold no port: those that the server closes do.
    let is_planned = matches!(plan.load.model, LoadModel::Sessions { .. });
    let lasts = plan.requests_per_connection().is_none() && !is_planned;
    let ports = ports.unwrap_or_else(ports_per_address);
    let needed = if lasts {
        plan.connections_most().into()
    } else {
        ports / 2
    };
    let most = ports.saturating_sub(needed);
    let begun_ns = clock::now_ns();
    let waited_ns = || clock::now_ns().saturating_sub(begun_ns);
    while goes_on(most, waited_ns(), time_wait_sockets()) {
        if is_interrupted() {
            return false;
        }
        threads::sleep(LOOK_NS);
    }
    true
}

/// Whether there are more than `most` sockets, and they may still become fewer.
fn goes_on(most: u64, waited_ns: u64, sockets: Option<u64>) -> bool {
    sockets.is_some_and(|sockets| sockets > most) && waited_ns <= WAIT_NS_MAX
}

/// Length of a round's window where none is typed.
const SWEEP_WINDOW_NS: u64 = 1_000_000_000;

/// Measures, in this process or by a fleet, and prints what that shows.
pub(crate) fn sweep(
    mut arguments: SweepArguments,
    given: &Given,
    fleet: Option<AskedFleet<'_>>,
) -> Result<ExitCode> {
    let (mut plan, wanted) = planned(&mut arguments, given)?;
    let typed = &arguments.typed.load;
    let pipeline = Pipeline::open(Destination::open(&typed.output, NOT_OF_SWEEP)?)?;
    let mut executor = Executor::new(fleet, typed, &mut plan, &pipeline.interrupts)?;
    check(&executor, &plan, &wanted)?;
    let is_one = is_within_session(wanted.varied);
    let mut course = SweepCourse::new(plan.clone(), wanted, environment());
    let mut line = Line::of_experiment(&typed.output, &plan, "sweep", PhaseLength::Planned);
    let outcome = executor.make(&plan, is_one, &mut course, &mut line);
    drop(executor);
    conclude(pipeline, outcome, Experiment::Sweep(course.finish()))
}

/// Whether every round can be made.
fn check(executor: &Executor<'_>, plan: &Plan, sweep_plan: &SweepPlan) -> Result<()> {
    for &value in &sweep_plan.values {
        let outcome = executor.check(&plan_at(plan, sweep_plan, value));
        let axis = sweep_plan.varied.name();
        outcome.with_context(|| format!("the round of {value} {axis} cannot be made"))?;
    }
    Ok(())
}

/// The load at the largest value, and what is varied of it.
fn planned(arguments: &mut SweepArguments, given: &Given) -> Result<(Plan, SweepPlan)> {
    given.refuse(&[refusals::EXPERIMENT, refusals::SWEEP])?;
    habits::only_url(&arguments.typed.load)?;
    let varied = what_varies(arguments, given)?;
    if varied.axis == SweepAxis::Rate && arguments.typed.load.stages.is_some() {
        bail!("a rate is varied, and --stages has rates of its own; leave one of them out");
    }
    if varied.axis == SweepAxis::Streams {
        // Several streams are a matter of HTTP/2 and HTTP/3.
        let protocol = &mut arguments.typed.load.protocol;
        protocol.http2 |= !(protocol.http1 || protocol.http3);
    }
    let load = &arguments.typed.load;
    if !load.has_server() {
        bail!("give the URL of the server, as in brunt sweep -c 1..1000:10 URL");
    }
    let typed = arguments.typed.typed(given);
    let mut plan = typed.plan(load.url.as_deref())?;
    load.set_lengths(&mut plan, SWEEP_WINDOW_NS, Plan::WARMUP_NS_DEFAULT);
    if varied.axis == SweepAxis::BodyBytes && !plan.connection.protocol.preferred().carries_http {
        bail!("--body-size is about requests of HTTP; vary something else");
    }
    if let (SweepAxis::BodyBytes, Some(&most)) = (varied.axis, varied.values.last()) {
        let mut request = first_with_body(&plan.traffic.requests, most as usize);
        if load.method.is_none() {
            request.method = "POST".to_owned();
        }
        plan.traffic.requests = RequestSet::one(request);
    }
    let sweep_plan = SweepPlan {
        url: plan.target.url.clone(),
        varied: varied.axis,
        values: varied.values,
        rounds: arguments.rounds.get(),
        // What else is random follows from the same seed.
        seed: (!arguments.fixed_order).then(|| load.seed.unwrap_or_else(fresh_seed)),
        window_ns: plan.load.stop.duration_ns,
        warmup_ns: plan.load.warmup_ns,
        round_warmup_ns: arguments.round_warmup,
    };
    Ok((plan, sweep_plan))
}

/// The one setting that has several values.
fn what_varies(arguments: &mut SweepArguments, given: &Given) -> Result<Varied> {
    let mut all = arguments.vary.clone();
    all.extend(arguments.body_size.clone());
    for (id, axis) in SWEEP_AXES {
        let typed = given.text(id).and_then(|typed| of_option(axis, typed));
        all.extend(typed.transpose().map_err(|error| anyhow!(error))?);
    }
    match <[Varied; 1]>::try_from(all) {
        Ok([only]) => {
            set_largest(&mut arguments.typed.load, &only)?;
            Ok(only)
        }
        Err(none) if none.is_empty() => {
            bail!("nothing is varied; give one option several values, as in -c 1..1000:10")
        }
        Err(_) => bail!("one setting is varied at a time; give only one option several values"),
    }
}

/// Has the load be that at the largest value.
fn set_largest(load: &mut LoadArguments, varied: &Varied) -> Result<()> {
    let most = varied.values.last().copied().context("no values")?;
    let count = NonZeroU32::new(most as u32);
    match varied.axis {
        SweepAxis::Connections => load.connections = count,
        SweepAxis::Rate => load.rate = Some(most),
        SweepAxis::Workers => load.threads = count,
        SweepAxis::Streams => load.protocol.streams = count,
        SweepAxis::Requests => load.requests = NonZeroU64::new(most as u64),
        SweepAxis::BodyBytes => {}
    }
    Ok(())
}

/// Lengths of a step's window and warm-up where none is typed.
const STEP_WINDOW_NS: u64 = 2_000_000_000;
const STEP_WARMUP_NS: u64 = 500_000_000;
/// A budget has room for so many of them.
const STEPS_LEAST: u64 = 4;
/// Connections that may be opened where none of those held is free: a server that is slower at a
/// higher rate must not be held back by their number.
const CONNECTIONS_MAX: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// Searches, in this process or by a fleet, and prints what was found.
pub(crate) fn find(
    mut arguments: FindArguments,
    given: &Given,
    fleet: Option<AskedFleet<'_>>,
) -> Result<ExitCode> {
    given.refuse(&[refusals::EXPERIMENT, refusals::SEARCH])?;
    let most = arguments.max_rate;
    let first = arguments.typed.load.rate.replace(most);
    let typed = &arguments.typed.load;
    let url = habits::only_url(typed)?;
    let url = url.context("give the URL of the server, as in brunt find --objective TEXT URL")?;
    check_rates(first, most)?;
    let mut plan = search_plan(&arguments.typed, given, url)?;
    let asked = asked(typed)?;
    check_budget(arguments.budget, &plan)?;
    let pipeline = Pipeline::open(Destination::open(&typed.output, NOT_OF_RUN)?)?;
    let mut executor = Executor::new(fleet, typed, &mut plan, &pipeline.interrupts)?;
    executor.check(&plan)?;
    let wanted = capacity_plan(&plan, asked, first, most, arguments.budget);
    let mut course = SearchCourse::new(plan.clone(), wanted, environment());
    let mut line = Line::of_experiment(&typed.output, &plan, "find", PhaseLength::About);
    let outcome = executor.make(&plan, true, &mut course, &mut line);
    drop(executor);
    conclude(pipeline, outcome, Experiment::Capacity(course.finish()))
}

/// The objectives, of which a rate is none: it is what is searched for.
fn asked(arguments: &LoadArguments) -> Result<Vec<Objective>> {
    let asked = objectives::asked(&arguments.output.objective)
        .context("say what is to be met, as in --objective 'p99 < 10ms, errors < 0.1%'")?;
    let is_rate = |objective: &Objective| matches!(objective, Objective::SuccessesPerS { .. });
    if asked.iter().any(is_rate) {
        bail!("the rate is what is searched for; leave it out of --objective");
    }
    Ok(asked)
}

/// A search begins below its end.
fn check_rates(first: Option<f64>, most: f64) -> Result<()> {
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
    let step_ns = plan.load.warmup_ns + plan.load.stop.duration_ns.unwrap_or(0);
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

/// The load of a search, at the highest rate.
fn search_plan(typed: &AnyLoadArguments, given: &Given, url: &str) -> Result<Plan> {
    let arguments = &typed.load;
    let mut plan = typed.typed(given).plan(Some(url))?;
    arguments.set_lengths(&mut plan, STEP_WINDOW_NS, STEP_WARMUP_NS);
    if let LoadModel::Open {
        connections_max, ..
    } = &mut plan.load.model
        && arguments.max_connections.is_none()
    {
        *connections_max = CONNECTIONS_MAX.max(plan.load.connections);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_ports_or_a_minute_end_the_wait() {
        for (waited_s, sockets, expected) in [
            (0, Some(501), true),
            (0, Some(500), false),
            (0, None, false),
            (61, Some(501), true),
            (62, Some(501), false),
        ] {
            let found = goes_on(500, waited_s * 1_000_000_000, sockets);
            assert_eq!(found, expected, "{waited_s} {sockets:?}");
        }
    }
}
