//! The pipeline of every command that makes a run: outputs and a plan in; signals, progress, the
//! engine, the record, the judgement, the reports and the exit code. Commands that stand in the
//! place of another tool differ in how they read their arguments and in what they print.

use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_engine::RunObserver;
use brunt_io::cpu::usable_cpus;
use brunt_judge::Judged;
use brunt_load::{LoadModel, Placement, Plan, RequestGenerator, Round};
use brunt_record::{Objective, RequestLog, Run};
use brunt_report::Experiment;
use brunt_server::{Running, TlsOptions};

use crate::args::{LoadArguments, OutputArguments};
use crate::output::Destination;
use crate::plan::{own_target, refuse_useless_seed, set_workers};
use crate::progress::Line;
use crate::redact::{self, redact};
use crate::serve::{self, CpuSplit};
use crate::session::{Interrupts, Second, SessionOptions, TakenPart, Wanted};
use crate::{exit, message, objectives};

/// A run to be made.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    /// What is made of it here; absent: all of it.
    pub(crate) part: Option<TakenPart>,
    /// What makes the requests, one for each worker; without any, they are those of the plan.
    pub(crate) generators: Vec<Box<dyn RequestGenerator>>,
    /// The target, where it is brunt's own server: it is stopped when the load is over.
    pub(crate) own_server: Option<Running>,
    pub(crate) origin: Origin,
}

impl Job {
    /// The run of `plan`, on a server that is there.
    pub(crate) fn new(plan: Plan, origin: Origin) -> Self {
        Self {
            plan,
            part: None,
            generators: Vec::new(),
            own_server: None,
            origin,
        }
    }

    /// The run of `plan` that was typed, or the part of it that is made here, and its progress.
    pub(crate) fn typed(arguments: &LoadArguments, plan: Plan) -> Result<(Self, Line)> {
        let part = arguments.part.of(&plan)?;
        let own = part.and_then(|taken| plan.part(taken.part.workers()));
        let line = Line::new(&arguments.output, own.as_ref().unwrap_or(&plan));
        let job = Self {
            part,
            ..Self::new(plan, Origin::new(&arguments.output))
        };
        Ok((job, line))
    }
}

/// What a command does of its own around its run.
pub(crate) trait FrontEnd {
    /// Looks on while the run lasts; absent: nobody does.
    fn observer(&mut self) -> Option<&mut dyn RunObserver> {
        None
    }

    /// The run is prepared: connections are opened next.
    fn begin(&mut self) {}

    /// The load is over; absent: nothing was measured.
    fn end(&mut self, _run: Option<&Run>) {}

    /// How the command ends where nothing was measured.
    ///
    /// # Errors
    ///
    /// Why nothing was, in the command's own words where it has any.
    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        Err(error)
    }

    /// Prints the command's own text, before brunt's outputs are written. The log is empty where
    /// the plan has none.
    ///
    /// # Errors
    ///
    /// What the command writes besides cannot be written. Outputs are written all the same.
    fn report(&mut self, _run: &Run, _log: &RequestLog) -> Result<()> {
        Ok(())
    }

    /// The exit code, when all is written; `usual` is that of brunt itself, which other tools do
    /// not have.
    ///
    /// # Errors
    ///
    /// The command fails in spite of its run.
    fn exit_code(&mut self, _run: &Run, _usual: ExitCode) -> Result<ExitCode> {
        Ok(ExitCode::SUCCESS)
    }
}

/// `brunt` itself shows the progress, and prints what the outputs hold.
impl FrontEnd for Line {
    fn observer(&mut self) -> Option<&mut dyn RunObserver> {
        Some(self)
    }

    fn end(&mut self, _run: Option<&Run>) {
        self.clear();
    }

    fn exit_code(&mut self, _run: &Run, usual: ExitCode) -> Result<ExitCode> {
        Ok(usual)
    }
}

/// Outputs that are open, and signals that are listened for. Files that were not there before are
/// removed where nothing is written to them.
#[derive(Debug)]
pub(crate) struct Pipeline {
    destination: Destination,
    pub(crate) interrupts: Interrupts,
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

    /// Makes the run, and writes all that is to be written of it.
    pub(crate) fn run(self, job: Job, front_end: &mut dyn FrontEnd) -> Result<ExitCode> {
        let mut log = RequestLog::default();
        let run = match self.measure(job, front_end, &mut log) {
            Ok(run) => run,
            Err(error) => {
                // What was opened is gone before it is said why.
                drop(self);
                return front_end.failed(error);
            }
        };
        let reported = front_end.report(&run, &log);
        let code = reported.and(self.destination.write(&Judged::of(&run)))?;
        let usual = if run.interrupted() {
            ExitCode::from(exit::INTERRUPTED)
        } else {
            code
        };
        front_end.exit_code(&run, usual)
    }

    /// Makes the run, and completes its record.
    fn measure(&self, job: Job, front_end: &mut dyn FrontEnd, log: &mut RequestLog) -> Result<Run> {
        let options = SessionOptions {
            part: job.part,
            own_server: job.own_server.is_some(),
            generators: job.generators,
            wanted: Wanted::Part,
        };
        let round = Round::of(&job.plan);
        let outcome = self.interrupts.in_session(job.plan, options, |session| {
            front_end.begin();
            let shown = front_end.observer();
            Ok(session.round(&round, &mut Keeping { shown, log })?)
        });
        front_end.end(outcome.as_ref().ok());
        if let Some(server) = job.own_server {
            let stopped = server.stop();
            stopped.context("the reference server did not end well")?;
        }
        let mut run = outcome?;
        job.origin.complete(&mut run);
        Ok(run)
    }

    /// Writes the reports of an experiment, where there is something to be reported of it.
    pub(crate) fn report(self, experiment: &Experiment) -> Result<()> {
        self.destination.write_experiment(experiment)
    }
}

/// An observer that keeps the log of a round, and shows another one the rest.
pub(crate) struct Keeping<'a> {
    pub(crate) shown: Option<&'a mut dyn RunObserver>,
    pub(crate) log: &'a mut RequestLog,
}

impl RunObserver for Keeping<'_> {
    fn inner(&mut self) -> Option<&mut dyn RunObserver> {
        Some(&mut **self.shown.as_mut()?)
    }

    fn request_log(&mut self, log: RequestLog) {
        *self.log = log;
    }
}

/// How a command ends that a signal interrupted before there was anything to report, with these
/// words for that.
pub(crate) fn interrupted(words: &str) -> Result<ExitCode> {
    message::print(&words);
    Ok(ExitCode::from(exit::INTERRUPTED))
}

/// What a command knows of its run.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    /// The command line as it may be shown.
    command: Option<Vec<String>>,
    objectives: Vec<Objective>,
    /// What may be secret is left out of the record.
    redacts: bool,
}

impl Origin {
    /// The origin of a run that a command of brunt makes.
    pub(crate) fn new(output: &OutputArguments) -> Self {
        Self {
            command: redact::here(),
            objectives: objectives::asked(&output.objective).unwrap_or_default(),
            redacts: output.redact,
        }
    }

    /// The origin of a run of which nothing but a command line is known here: that of another tool,
    /// or of an agent.
    pub(crate) fn of_command(command: Option<Vec<String>>) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    /// Completes the record of a run that was just made.
    pub(crate) fn complete(self, run: &mut Run) {
        let origin = brunt_engine::Origin {
            command: self.command,
            objectives: self.objectives,
        };
        brunt_engine::complete(run, &origin);
        if self.redacts {
            redact(run);
        }
    }
}

/// Runs the load of `plan`, which was typed as `arguments`.
pub(crate) fn load(arguments: &LoadArguments, mut plan: Plan) -> Result<ExitCode> {
    let carries_http = plan.spoken.preferred().carries_http;
    if carries_http {
        refuse_useless_seed(arguments, plan.requests.draws_numbers())?;
    }
    let pipeline = Pipeline::open(Destination::open(&arguments.output)?)?;
    let is_own = carries_http && !arguments.has_server();
    let own_server = is_own.then(|| own_server(arguments, &mut plan));
    let own_server = own_server.transpose()?;
    let (job, mut line) = Job::typed(arguments, plan)?;
    pipeline.run(Job { own_server, ..job }, &mut line)
}

/// Starts brunt's own server, and has the plan load it.
fn own_server(arguments: &LoadArguments, plan: &mut Plan) -> Result<Running> {
    let split = CpuSplit::of(usable_cpus(), arguments.threads.is_none());
    let http3 = arguments.protocol.http3;
    // QUIC has no clear text.
    let tls = http3.then(TlsOptions::default);
    let server = serve::own_server(&split, serve::backend_of(arguments.backend), tls, http3)?;
    let address = server.address().to_string();
    plan.target = own_target(plan.target.scheme.name(), &address)?;
    let workers = |model: &LoadModel| brunt_engine::default_workers(model, split.load_workers);
    set_workers(plan, arguments, workers);
    if let Some(cpus) = split.load_cpus {
        plan.placement = Placement::Bound(cpus);
    }
    plan.tls.roots_der = server
        .certificates()
        .iter()
        .map(|der| der.to_vec())
        .collect();
    Ok(server)
}
