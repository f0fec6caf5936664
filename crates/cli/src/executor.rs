//! The course of an experiment on one server, and who makes its rounds: this process, or the agents
//! of a fleet.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_engine::{Rounds, RunError};
use brunt_fleet::{Agents, Broker, Credentials, Gathered, NamedBroker, Task};
use brunt_load::{LoadModel, Plan, Round, Target};
use brunt_record::{Environment, Run};
use brunt_report::Experiment;

use crate::args::LoadArguments;
use crate::commands::{AgentsArguments, BrokerArguments};
use crate::output::{Destination, is_standard};
use crate::plan::{default_workers, set_workers};
use crate::progress::{Doing, Line};
use crate::run::{Pipeline, interrupted};
use crate::server_software::software_of;
use crate::session::{SessionOptions, is_interrupt};
use crate::signals::Interrupts;
use crate::source::Source;
use crate::{EXIT_INTERRUPTED, experiment_exit_code, time_wait};

/// The job that is meant unless another one is named.
const JOB: &str = "brunt";

/// What was typed of a fleet.
pub(crate) type AskedFleet<'a> = (&'a AgentsArguments, &'a BrokerArguments);

/// What differs between experiments: which rounds are made, and what is said of them.
pub(crate) trait Course {
    /// What its progress is called.
    fn doing(&self) -> Doing;

    /// Whether all rounds are levels of one session.
    fn is_one_session(&self) -> bool;

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
pub(crate) fn run<C: Course>(
    typed: &LoadArguments,
    fleet: Option<AskedFleet<'_>>,
    destination: Destination,
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
    let mut line = Line::of_experiment(&typed.output, &plan, course.doing());
    let outcome = executor.software(&plan).and_then(|software| {
        if let Some(software) = software {
            course.environment().name_software(software);
        }
        let is_one = course.is_one_session();
        executor.in_session(&plan, is_one, &mut |executor| {
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
    let code = experiment_exit_code(&experiment);
    pipeline.report(&experiment)?;
    Ok(match was_interrupted {
        true => ExitCode::from(EXIT_INTERRUPTED),
        false => code,
    })
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
            Self::Here(_, Some(session)) => Ok(session.round(&Round::of(plan), line)?),
            Self::Here(interrupts, None) => interrupts.round(plan.clone(), line),
            Self::Fleet(_, agents) => agents.round(plan, line),
        }
    }

    /// Waits until sockets of earlier rounds have given their ports back, of which there are so
    /// many. Connections that brunt closes leave no such sockets: those that the server closes do.
    pub(crate) fn settle(&self, ports: Option<u64>) -> Result<()> {
        let is_settled = match self {
            Self::Here(interrupts, _) => time_wait::settle(ports, || interrupts.came()),
            Self::Fleet(interrupts, _) => !interrupts.came(),
        };
        match is_settled {
            true => Ok(()),
            false => Err(RunError::Interrupted.into()),
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
        agents: Agents {
            agents: agents.agents,
            local: agents.local,
            ssh: agents.ssh.clone(),
            broker: broker.named()?,
            gather_ns: agents.gather,
        },
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
            let source = match is_standard(path) {
                true => Source::StandardInput,
                false => Source::File(path.into()),
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
