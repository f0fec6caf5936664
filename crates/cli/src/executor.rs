//! The course of an experiment on one server, and who makes its rounds: this process, or the agents
//! of a fleet. `brunt sweep`: how a server scales, from rounds at several values of one setting.
//! `brunt find`: the highest rate at which a server meets objectives.

use std::num::{NonZeroU32, NonZeroU64};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_engine::{Rounds, RunError};
use brunt_experiment::{Finder, capacity_plan, is_within_session, plan_at, sweep_order};
use brunt_fleet::{Broker, Credentials, Gathered, NamedBroker, Task};
use brunt_io::{clock, threads};
use brunt_judge::{
    CAPACITY_STEPS_MAX, Capacity, CapacityPlan, ExperimentKind, Judged, RoundRecord, Sweep,
    SweepAxis, SweepPlan, SweepRound,
};
use brunt_load::{Load, LoadModel, Observation, Plan, RequestRef, RequestSet, Stop, Target, Watch};
use brunt_probe::network::time_wait_sockets;
use brunt_proto::http1::head_fields;
use brunt_record::{Environment, Objective, RequestLog, Run, counted};
use brunt_report::Experiment;

use crate::args::{AnyLoadArguments, LoadArguments, fresh_seed};
use crate::commands::{
    AgentsArguments, BrokerArguments, FindArguments, SweepArguments, SweepPreset,
};
use crate::output::{Destination, NOT_OF_RUN, NOT_OF_SWEEP, is_standard};
use crate::plan::{default_workers, set_workers};
use crate::progress::{Doing, Line};
use crate::redact::environment;
use crate::refusals::{self, Given};
use crate::run::{Keeping, Pipeline, interrupted};
use crate::session::{Interrupts, SessionOptions, is_interrupt};
use crate::values::{SWEEP_OPTIONS, Source, Varied, of_option, varied};
use crate::{exit, habits, objectives};

/// The job that is meant unless another one is named.
const JOB: &str = "brunt";

/// What was typed of a fleet.
pub(crate) type AskedFleet<'a> = (&'a AgentsArguments, &'a BrokerArguments);

/// What differs between experiments: which rounds are made, and what is said of them.
pub(crate) trait Course {
    /// What its progress is called.
    const DOING: Doing;

    /// What its report begins with.
    fn environment(&mut self) -> &mut Environment;

    /// Makes the rounds, levels of `plan`.
    ///
    /// # Errors
    ///
    /// There is no whole round; [`RunError::Interrupted`] where that is for a signal.
    fn measure(&mut self, plan: &Plan, executor: &mut Executor<'_>, line: &mut Line) -> Result<()>;

    /// Whether a round was made.
    fn has_rounds(&self) -> bool;

    /// Notes for the report why no more rounds were made, and says where that was.
    fn break_off(&mut self, error: anyhow::Error) -> anyhow::Error;

    fn experiment(self) -> Experiment;
}

/// Makes the experiment that `begin` begins, of loads of `plan`, and prints what that shows.
/// `is_one_session`: all rounds are levels of one session.
pub(crate) fn run<C: Course>(
    typed: &LoadArguments,
    fleet: Option<AskedFleet<'_>>,
    destination: Destination,
    is_one_session: bool,
    mut plan: Plan,
    begin: impl FnOnce(&Plan, &Executor<'_>) -> Result<C>,
) -> Result<ExitCode> {
    let pipeline = Pipeline::open(destination)?;
    let interrupts = &pipeline.interrupts;
    let mut executor = match fleet {
        None => Executor::Here(interrupts, None),
        Some(asked) => {
            let agents = gather(asked, typed, &plan.target, interrupts)?;
            Executor::Fleet(interrupts, Box::new(agents))
        }
    };
    set_workers(&mut plan, typed, |model| executor.workers(model));
    let mut course = begin(&plan, &executor)?;
    let mut line = Line::of_experiment(&typed.output, &plan, C::DOING);
    let outcome = executor.software(&plan).and_then(|software| {
        if let Some(software) = software {
            course.environment().name_software(software);
        }
        executor.in_session(&plan, is_one_session, &mut |executor| {
            course.measure(&plan, executor, &mut line)
        })
    });
    line.clear();
    drop(executor);
    let was_interrupted = matches!(&outcome, Err(error) if is_interrupt(error));
    match outcome {
        Err(error) if !was_interrupted => {
            if !course.has_rounds() {
                return Err(error);
            }
            let error = course.break_off(error);
            pipeline.report(&course.experiment())?;
            return Err(error);
        }
        _ if !course.has_rounds() => return interrupted("interrupted before a round was measured"),
        _ => {}
    }
    let experiment = course.experiment();
    let code = exit::of_experiment(&experiment);
    pipeline.report(&experiment)?;
    Ok(exit::unless_interrupted(code, was_interrupted))
}

/// Who makes the rounds of an experiment.
pub(crate) enum Executor<'a> {
    /// This process, in the session of all rounds; absent where each has one of its own.
    Here(&'a Interrupts, Option<&'a mut (dyn Rounds + 'a)>),
    /// The agents of a fleet. They find the way to the server and wait for ports by themselves.
    Fleet(&'a Interrupts, Box<Gathered<'a>>),
}

impl Executor<'_> {
    /// Workers of a load of this model, where no number of them is typed.
    fn workers(&self, model: &LoadModel) -> NonZeroU32 {
        match self {
            Self::Here(..) => default_workers(model),
            Self::Fleet(_, agents) => agents.workers(model),
        }
    }

    /// Whether a round of `plan` can be made.
    pub(crate) fn check(&self, plan: &Plan) -> Result<()> {
        match self {
            Self::Here(..) => Ok(()),
            Self::Fleet(_, agents) => agents.check(plan),
        }
    }

    /// What the server names as its software; absent where that is not known.
    fn software(&self, plan: &Plan) -> Result<Option<String>> {
        match self {
            Self::Here(interrupts, _) => software_of(interrupts, plan),
            Self::Fleet(..) => Ok(None),
        }
    }

    /// Does `body`, where rounds are one session with that of `plan`.
    fn in_session(
        &mut self,
        plan: &Plan,
        is_one: bool,
        body: &mut dyn FnMut(&mut Executor<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Here(interrupts, _) if is_one => {
                let options = SessionOptions::default();
                interrupts.in_session(plan.clone(), options, |session| {
                    body(&mut Executor::Here(interrupts, Some(session)))
                })
            }
            _ => body(self),
        }
    }

    /// Makes the round that is all of `plan`.
    pub(crate) fn round(&mut self, plan: &Plan, line: &mut Line) -> Result<Run> {
        match self {
            Self::Here(_, Some(session)) => Ok(session.round(&plan.load, line)?),
            Self::Here(interrupts, None) => interrupts.round(plan.clone(), line),
            Self::Fleet(_, agents) => agents.round(plan, line),
        }
    }

    /// Waits until sockets of earlier rounds have given their ports back, of which there are so
    /// many. Connections that brunt closes leave no such sockets: those that the server closes do.
    pub(crate) fn settle(&self, ports: Option<u64>) -> Result<()> {
        let is_settled = match self {
            Self::Here(interrupts, _) => settle(ports, || interrupts.came()),
            Self::Fleet(interrupts, _) => !interrupts.came(),
        };
        if is_settled {
            Ok(())
        } else {
            Err(RunError::Interrupted.into())
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
            let source = if is_standard(path) {
                Source::StandardInput
            } else {
                Source::File(path.into())
            };
            let read = source
                .read_text("--nats-credentials")?
                .parse::<Credentials>();
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
        let job = self.job.clone();
        Ok(Some(NamedBroker {
            broker,
            job: job.map_or_else(|| JOB.parse(), Ok)?,
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
/// Local ports where their number is not known: the kernel's own range.
const PORTS_DEFAULT: u64 = 28_232;

/// Waits until sockets in TIME_WAIT, of this network namespace, hold at most half of the local
/// ports; gives whether that was waited for, and not `is_interrupted`.
pub(crate) fn settle(ports: Option<u64>, mut is_interrupted: impl FnMut() -> bool) -> bool {
    let begun_ns = clock::now_ns();
    let waited_ns = || clock::now_ns().saturating_sub(begun_ns);
    while goes_on(ports, waited_ns(), time_wait_sockets()) {
        if is_interrupted() {
            return false;
        }
        threads::sleep(LOOK_NS);
    }
    true
}

/// Whether there are too many sockets, and they may still become fewer.
fn goes_on(ports: Option<u64>, waited_ns: u64, sockets: Option<u64>) -> bool {
    let most = ports.unwrap_or(PORTS_DEFAULT) / 2;
    sockets.is_some_and(|sockets| sockets > most) && waited_ns <= WAIT_NS_MAX
}

/// A reply that takes longer than this is not waited for.
const WAIT_NS: u64 = 2_000_000_000;
/// Longer names are truncated.
const CHARACTERS_MAX: usize = 100;

/// The `Server` field of the reply to one request of `plan`. Absent where it names none, without a
/// reply, over HTTP/2, and where messages are exchanged.
///
/// # Errors
///
/// As those of a run: there is no server, say.
pub(crate) fn software_of(interrupts: &Interrupts, plan: &Plan) -> Result<Option<String>> {
    if !plan.connection.protocol.preferred().carries_http {
        return Ok(None);
    }
    let mut one = plan.clone();
    one.load = Load {
        connections: NonZeroU32::MIN,
        stop: Stop {
            duration_ns: None,
            requests: Some(1),
        },
        drain_limit_ns: plan.load.drain_limit_ns,
        ..Load::default()
    };
    one.workers.count = NonZeroU32::MIN;
    one.traffic.pipeline = NonZeroU32::MIN;
    one.limits.timeout_ns = plan.limits.timeout_ns.min(WAIT_NS);
    one.observation = Observation {
        watch: Watch::Off,
        server_counter: None,
        keeps_errors: false,
        logged_requests_max: 1,
        logged_responses_max: 1,
        ..one.observation
    };
    let mut log = RequestLog::default();
    let mut keeping = Keeping {
        shown: None,
        log: &mut log,
    };
    interrupts.round(one, &mut keeping)?;
    let first = log.responses().into_iter().next();
    Ok(first.and_then(|reply| named_in(&reply.head)))
}

/// What the `Server` field of a head says, without what does not print.
fn named_in(head: &[u8]) -> Option<String> {
    let (_, value) = head_fields(head).find(|(name, _)| name.eq_ignore_ascii_case(b"server"))?;
    let text = String::from_utf8_lossy(value);
    let printed = text.chars().filter(|character| !character.is_control());
    let text: String = printed.take(CHARACTERS_MAX).collect();
    (!text.is_empty()).then_some(text)
}

/// Length of a round's window where none is typed, and of the window of the warm-up.
const SWEEP_WINDOW_NS: u64 = 1_000_000_000;
const WARMUP_WINDOW_NS: u64 = 200_000_000;

/// Measures, in this process or by a fleet, and prints what that shows.
pub(crate) fn sweep(
    mut arguments: SweepArguments,
    given: &Given,
    fleet: Option<AskedFleet<'_>>,
) -> Result<ExitCode> {
    let (plan, mut sweep_plan) = planned(&mut arguments, given)?;
    let typed = &arguments.typed.load;
    let destination = Destination::open(&typed.output, NOT_OF_SWEEP)?;
    let is_preset = arguments.preset.is_some();
    let is_one = is_within_session(sweep_plan.varied);
    run(typed, fleet, destination, is_one, plan, |plan, executor| {
        check(executor, plan, &mut sweep_plan, is_preset)?;
        Ok(Sweep {
            kind: ExperimentKind::Sweep,
            format: Sweep::FORMAT,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: sweep_plan,
            load: None,
            environment: environment(),
            broke_off: None,
            rounds: Vec::new(),
        })
    })
}

impl Course for Sweep {
    const DOING: Doing = Doing::Sweep;

    fn environment(&mut self) -> &mut Environment {
        &mut self.environment
    }

    /// The warm-up, then the rounds.
    fn measure(&mut self, plan: &Plan, executor: &mut Executor<'_>, line: &mut Line) -> Result<()> {
        let order = sweep_order(&self.plan);
        let begun_ns = clock::now_ns();
        // As long as the rounds so far, or by plan before there are any.
        let planned_ns = self.plan.round_warmup_ns + self.plan.window_ns.unwrap_or(SWEEP_WINDOW_NS);
        let left_ns = |done: usize| {
            let elapsed_ns = clock::now_ns().saturating_sub(begun_ns);
            let each_ns = elapsed_ns.checked_div(done as u64).unwrap_or(planned_ns);
            each_ns.saturating_mul((order.len() - done) as u64)
        };
        line.expect(left_ns(0), plan.load.connections.get());
        let mut warm = plan.clone();
        warm.load.stop = Stop {
            duration_ns: Some(WARMUP_WINDOW_NS),
            requests: None,
        };
        let mut run = executor.round(&warm, line)?;
        self.environment.add(&run);
        run.plan.load.stop = plan.load.stop;
        self.load = Some(run.plan);
        let client = self.environment.client.as_ref();
        let ports = client.and_then(|client| client.ports_available);
        for (done, &(round, value)) in order.iter().enumerate() {
            executor.settle(ports)?;
            let plan = plan_at(plan, &self.plan, value);
            line.expect(left_ns(done), plan.load.connections.get());
            let run = executor.round(&plan, line).with_context(|| {
                let axis = self.plan.varied.name();
                format!("the round of {value} {axis} could not be measured")
            })?;
            self.rounds.push(SweepRound {
                value,
                round,
                record: RoundRecord::of(&Judged::of(&run)),
            });
        }
        Ok(())
    }

    fn has_rounds(&self) -> bool {
        !self.rounds.is_empty()
    }

    fn break_off(&mut self, error: anyhow::Error) -> anyhow::Error {
        self.broke_off = Some(format!("{error:#}"));
        let rounds = counted(self.rounds.len() as u64, "round", "rounds");
        error.context(format!("the sweep broke off after {rounds}"))
    }

    fn experiment(self) -> Experiment {
        Experiment::Sweep(self)
    }
}

/// Whether every round can be made. A preset leaves out the values at which it cannot.
fn check(
    executor: &Executor<'_>,
    plan: &Plan,
    sweep_plan: &mut SweepPlan,
    is_preset: bool,
) -> Result<()> {
    let mut failed = None;
    let mut values = sweep_plan.values.clone();
    values.retain(|&value| {
        let outcome = executor.check(&plan_at(plan, sweep_plan, value));
        let is_good = outcome.is_ok();
        failed = failed.take().or(outcome.err().map(|error| (value, error)));
        is_good
    });
    if let Some((value, error)) = failed.filter(|_| !is_preset || values.is_empty()) {
        let axis = sweep_plan.varied.name();
        return Err(error.context(format!("the round of {value} {axis} cannot be made")));
    }
    sweep_plan.values = values;
    Ok(())
}

/// The load at the largest value, and what is varied of it.
fn planned(arguments: &mut SweepArguments, given: &Given) -> Result<(Plan, SweepPlan)> {
    given.refuse(refusals::EXPERIMENT)?;
    given.refuse(refusals::SWEEP)?;
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
    let mut plan = typed.plan(load.url.as_deref(), None)?;
    load.set_lengths(&mut plan, SWEEP_WINDOW_NS, Plan::WARMUP_NS_DEFAULT);
    if varied.axis == SweepAxis::BodyBytes && !plan.connection.protocol.preferred().carries_http {
        bail!("--body-size is about requests of HTTP; vary something else");
    }
    if let (SweepAxis::BodyBytes, Some(&most)) = (varied.axis, varied.values.last())
        && let Some(mut request) = plan.traffic.requests.first().map(RequestRef::to_spec)
    {
        if load.method.is_none() {
            request.method = "POST".to_owned();
        }
        request.body = vec![b'x'; most as usize];
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
    if let Some(preset) = arguments.preset {
        let (values, window_ns) = match preset {
            SweepPreset::Quick => ("connections=1..256:x2", SWEEP_WINDOW_NS / 2),
            SweepPreset::Classic => ("connections=1..1000:10", SWEEP_WINDOW_NS),
        };
        let varied = varied(values).map_err(|error| anyhow!(error))?;
        arguments.typed.load.duration = Some(window_ns);
        set_largest(&mut arguments.typed.load, &varied)?;
        return Ok(varied);
    }
    let mut all = arguments.vary.clone();
    all.extend(arguments.body_size.clone());
    for (id, axis) in SWEEP_OPTIONS {
        let typed = given.text(id).and_then(|typed| of_option(axis, typed));
        all.extend(typed.transpose().map_err(|error| anyhow!(error))?);
    }
    match <[Varied; 1]>::try_from(all) {
        Ok([only]) => {
            set_largest(&mut arguments.typed.load, &only)?;
            Ok(only)
        }
        Err(none) if none.is_empty() => bail!(
            "nothing is varied; give one option several values, as in -c 1..1000:10, or a --preset"
        ),
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
    let destination = Destination::open(&typed.output, NOT_OF_RUN)?;
    run(typed, fleet, destination, true, plan, |plan, executor| {
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
    const DOING: Doing = Doing::Search;

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
    let is_rate = |objective: &Objective| matches!(objective, Objective::SuccessesPerS { .. });
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

/// The load at the highest rate.
pub(crate) fn plan(
    typed: &AnyLoadArguments,
    given: &Given,
    url: &str,
    most_per_s: f64,
) -> Result<Plan> {
    let arguments = &typed.load;
    let mut plan = typed.typed(given).plan(Some(url), Some(most_per_s))?;
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
    fn half_of_the_ports_is_enough_and_a_minute_the_most() {
        for (ports, waited_s, sockets, expected) in [
            (Some(1_000), 0, Some(501), true),
            (Some(1_000), 0, Some(500), false),
            (Some(1_000), 0, None, false),
            (Some(1_000), 61, Some(501), true),
            (Some(1_000), 62, Some(501), false),
            (None, 0, Some(14_117), true),
            (None, 0, Some(14_116), false),
        ] {
            let found = goes_on(ports, waited_s * 1_000_000_000, sockets);
            assert_eq!(found, expected, "{ports:?} {waited_s} {sockets:?}");
        }
    }

    #[test]
    fn the_field_is_found_in_any_case() {
        for (head, named) in [
            (
                "HTTP/1.1 200 OK\r\nX: y\r\nSERVER:  nginx/1.22.1\r\n\r\n",
                Some("nginx/1.22.1"),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nServer: \r\n\r\n", None),
            (
                "HTTP/1.1 200 OK\r\nServer: a\tb\u{1b}[1m\r\n\r\n",
                Some("ab[1m"),
            ),
        ] {
            assert_eq!(named_in(head.as_bytes()).as_deref(), named, "{head:?}");
        }
        let long = format!("HTTP/1.1 200 OK\r\nServer: {}\r\n\r\n", "x".repeat(500));
        let named = named_in(long.as_bytes()).expect("it is there");
        assert_eq!(named.len(), CHARACTERS_MAX);
    }
}
