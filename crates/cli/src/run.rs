//! The pipeline of every command that makes a run: outputs and a plan in; signals, progress, the
//! engine, the record, the judgement, the reports and the exit code. Commands that stand in the
//! place of another tool print their own text between the run and its reports.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_engine::{Origin, Phase, Progress, RunObserver, Snapshot};
use brunt_io::cpu::usable_cpus;
use brunt_judge::Judged;
use brunt_load::{BackendChoice, LoadModel, Placement, Plan, RequestGenerator};
use brunt_record::{RequestLog, Run};
use brunt_report::Experiment;
use brunt_server::{BackendKind, ListenAddress, Running, ServeOptions, TlsOptions};

use crate::args::LoadArguments;
use crate::output::{Destination, NOT_OF_RUN};
use crate::plan::{own_target, refuse_useless_seed, set_workers};
use crate::progress::Line;
use crate::redact::{self, redact};
use crate::serve::CpuSplit;
use crate::session::{Interrupts, Second, SessionOptions};
use crate::{exit, objectives};

/// A run to be made.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) session: SessionOptions,
    /// The target, where it is brunt's own server: it is stopped when the load is over.
    pub(crate) own_server: Option<Running>,
    pub(crate) origin: Origin,
    /// What may be secret is left out of the record.
    pub(crate) redacts: bool,
}

impl Job {
    /// The run of `plan`, made by this command line, on a server that is there.
    pub(crate) fn new(plan: Plan, command: Option<Vec<String>>) -> Self {
        Self {
            plan,
            session: SessionOptions {
                reports_part: true,
                ..SessionOptions::default()
            },
            own_server: None,
            origin: Origin {
                command,
                ..Origin::default()
            },
            redacts: false,
        }
    }

    /// The run of `plan` that was typed, or the part of it that is made here, and its progress.
    pub(crate) fn typed(arguments: &LoadArguments, plan: Plan) -> Result<(Self, Line)> {
        let output = &arguments.output;
        let mut job = Self::new(plan, redact::here());
        job.session.part = arguments.part.of(&job.plan)?;
        job.origin.objectives = objectives::asked(&output.objective).unwrap_or_default();
        job.redacts = output.redact;
        let part = job.session.part;
        let own = part.and_then(|taken| job.plan.part(taken.part.workers()));
        let line = Line::new(output, own.as_ref().unwrap_or(&job.plan));
        Ok((job, line))
    }

    /// This run, with requests that these make, one for each worker.
    pub(crate) fn generated(mut self, generators: Vec<Box<dyn RequestGenerator>>) -> Self {
        self.session.generators = generators;
        self
    }
}

/// Outputs that are open, and signals that are listened for. Files that were not there before are
/// removed where nothing is written to them.
#[derive(Debug)]
pub(crate) struct Pipeline {
    destination: Destination,
    pub(crate) interrupts: Interrupts,
}

/// A run that was made, and the outputs that it goes to.
pub(crate) struct Measured {
    pub(crate) run: Run,
    /// Empty where the plan has none.
    pub(crate) log: RequestLog,
    destination: Destination,
}

impl Pipeline {
    /// With these outputs. From now on, a signal does not end the process.
    pub(crate) fn open(destination: Destination) -> Result<Self> {
        let interrupts = Interrupts::listen(Second::Reports)?;
        Ok(Self {
            destination,
            interrupts,
        })
    }

    /// Makes the run of a command of brunt, shows its progress, and writes its reports.
    pub(crate) fn run(self, job: Job, mut line: Line) -> Result<ExitCode> {
        let measured = self.measure(job, || (), Some(&mut line));
        line.clear();
        measured?.write(Ok(()))
    }

    /// Makes the run, and completes its record. `begin` is called when it is prepared: connections
    /// are opened next.
    pub(crate) fn measure(
        self,
        job: Job,
        begin: impl FnOnce(),
        shown: Option<&mut dyn RunObserver>,
    ) -> Result<Measured> {
        let mut log = RequestLog::default();
        let load = job.plan.load.clone();
        let options = SessionOptions {
            own_server: job.own_server.is_some(),
            ..job.session
        };
        let outcome = self.interrupts.in_session(job.plan, options, |session| {
            begin();
            let mut keeping = Keeping {
                shown: shown.map(|shown| shown as &mut dyn RunObserver),
                log: &mut log,
            };
            Ok(session.round(&load, &mut keeping)?)
        });
        if let Some(server) = job.own_server {
            let stopped = server.stop();
            stopped.context("the reference server did not end well")?;
        }
        let mut run = outcome?;
        brunt_engine::complete(&mut run, &job.origin);
        if job.redacts {
            redact(&mut run);
        }
        Ok(Measured {
            run,
            log,
            destination: self.destination,
        })
    }

    /// Writes the reports of an experiment, where there is something to be reported of it, and says
    /// which limits it does not keep.
    pub(crate) fn report(mut self, experiment: &Experiment) -> Result<ExitCode> {
        self.destination.write_experiment(experiment)?;
        objectives::announce_limits(experiment);
        Ok(exit::of_experiment(experiment))
    }
}

impl Measured {
    /// Writes brunt's outputs, also where the command could not write all of its own text, as
    /// `reported` says; gives brunt's exit code, which other tools do not have.
    pub(crate) fn write(&mut self, reported: Result<()>) -> Result<ExitCode> {
        let code = reported.and(self.destination.write(&Judged::of(&self.run)))?;
        Ok(exit::unless_interrupted(code, self.run.interrupted()))
    }
}

/// An observer that keeps the log of a round, and shows another one the rest.
struct Keeping<'a> {
    shown: Option<&'a mut dyn RunObserver>,
    log: &'a mut RequestLog,
}

impl RunObserver for Keeping<'_> {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        if let Some(shown) = &mut self.shown {
            shown.progress(phase, progress);
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        if let Some(shown) = &mut self.shown {
            shown.snapshot(snapshot);
        }
    }

    fn request_log(&mut self, log: RequestLog) {
        *self.log = log;
    }
}

/// Runs the load of `plan`, which was typed as `arguments`.
pub(crate) fn load(arguments: &LoadArguments, mut plan: Plan) -> Result<ExitCode> {
    let carries_http = plan.connection.protocol.preferred().carries_http;
    if carries_http {
        refuse_useless_seed(arguments, plan.traffic.requests.draws_numbers())?;
    }
    let pipeline = Pipeline::open(Destination::open(&arguments.output, NOT_OF_RUN)?)?;
    let is_own = carries_http && !arguments.has_server();
    let own_server = is_own.then(|| own_server(arguments, &mut plan));
    let own_server = own_server.transpose()?;
    let (job, line) = Job::typed(arguments, plan)?;
    pipeline.run(Job { own_server, ..job }, line)
}

/// Starts brunt's own server, and has the plan load it.
fn own_server(arguments: &LoadArguments, plan: &mut Plan) -> Result<Running> {
    let split = CpuSplit::of(usable_cpus(), arguments.threads.is_none());
    let mut options = ServeOptions::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
    options.workers = NonZeroU32::new(split.server_workers).unwrap_or(NonZeroU32::MIN);
    options.cpus = split.server_cpus;
    let is_epoll = arguments.backend == BackendChoice::Epoll;
    options.backend = is_epoll.then_some(BackendKind::Epoll);
    options.http3 = arguments.protocol.http3;
    // QUIC has no clear text.
    options.tls = options.http3.then(TlsOptions::default);
    let server = brunt_server::start(&options).context("cannot start the reference server")?;
    let address = server.address().to_string();
    plan.target = own_target(plan.target.scheme.name(), &address)?;
    let workers = |model: &LoadModel| model.default_workers(split.load_workers);
    set_workers(plan, arguments, workers);
    if let Some(cpus) = split.load_cpus {
        plan.workers.placement = Placement::Bound(cpus);
    }
    plan.connection.tls.roots_der = server
        .certificates()
        .iter()
        .map(|der| der.to_vec())
        .collect();
    Ok(server)
}
