//! The course of an experiment on one server, and who makes its rounds: this process, or the agents
//! of a fleet.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_engine::{Rounds, RunError};
use brunt_fleet::{Agents, Broker, Credentials, Gathered, NamedBroker, Task};
use brunt_io::{clock, threads};
use brunt_load::{LoadModel, Plan, Round, Stop, Target, Watch};
use brunt_probe::network::time_wait_sockets;
use brunt_proto::http1::head_fields;
use brunt_record::{Environment, RequestLog, Run};
use brunt_report::Experiment;

use crate::args::LoadArguments;
use crate::commands::{AgentsArguments, BrokerArguments};
use crate::output::{Destination, is_standard};
use crate::plan::{default_workers, set_workers};
use crate::progress::{Doing, Line};
use crate::run::{Keeping, Pipeline, interrupted};
use crate::session::{Interrupts, SessionOptions, is_interrupt};
use crate::values::Source;
use crate::{EXIT_INTERRUPTED, experiment_exit_code};

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
            Self::Here(interrupts, _) => settle(ports, || interrupts.came()),
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
    if !plan.spoken.preferred().carries_http {
        return Ok(None);
    }
    let one = Plan {
        model: LoadModel::Closed {
            connect_per_s: None,
        },
        connections: NonZeroU32::MIN,
        workers: NonZeroU32::MIN,
        pipeline: NonZeroU32::MIN,
        stop: Stop {
            duration_ns: None,
            requests: Some(1),
        },
        warmup_ns: 0,
        halves_warmup: false,
        keeps_errors: false,
        logged_requests_max: 1,
        logged_responses_max: 1,
        timeout_ns: plan.timeout_ns.min(WAIT_NS),
        watch: Watch::Off,
        server_counter: None,
        ..plan.clone()
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
