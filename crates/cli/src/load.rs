//! `brunt [URL]`: from the arguments to a plan, the run, the report.

use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_engine::{Origin, RunError};
use brunt_io::cpu::usable_cpus;
use brunt_judge::Judged;
use brunt_load::{BackendChoice, Plan, Scheme, Target};
use brunt_record::{Objective, Run};
use brunt_server::TlsOptions;

use crate::args::LoadArguments;
use crate::diagnose::diagnose;
use crate::habits;
use crate::list;
use crate::output::Destination;
use crate::plan::{Load, backend_choice, faults};
use crate::progress::Line;
use crate::redact::redact;
use crate::request_log::{Keeping, NamedLog};
use crate::serve::Halves;
use crate::session::Wanted;
use crate::signals::{Interrupts, Second};
use crate::{EXIT_INTERRUPTED, calibration_store, command_line, message, objectives, serve};

/// What is asked of brunt's own server. Without work of its own it takes as long for a request as
/// brunt does, and it would be a toss-up which of the two is the limit.
const OWN_PATH: &str = "/compute/10us";

/// Runs the load.
pub(crate) fn run(arguments: &LoadArguments) -> Result<ExitCode> {
    // All that was typed is looked at before anything is opened or started.
    let typed = habits::only_url(arguments)?
        .map(|url| Target::parse(url, arguments.unix_socket.clone()))
        .transpose()?;
    let listed = list::read(arguments, typed)?;
    let load = Load::new(arguments, listed.target.as_ref())?.with_list(listed.requests);
    run_on(arguments, listed.target, load)
}

/// Runs a load on a server; absent: the built-in one.
pub(crate) fn run_on(
    arguments: &LoadArguments,
    target: Option<Target>,
    load: Load,
) -> Result<ExitCode> {
    let mut destination = Destination::open(&arguments.output)?;
    let interrupts = Interrupts::listen(Second::Reports)?;
    match measure(arguments, target, load, &destination, &interrupts) {
        Ok(Measured {
            mut run,
            log,
            was_interrupted,
        }) => {
            complete(&mut run, arguments);
            destination.keep_log(log);
            let code = destination.write(&Judged::of(&run))?;
            Ok(if was_interrupted {
                ExitCode::from(EXIT_INTERRUPTED)
            } else {
                code
            })
        }
        Err(error) => without_report(destination, error),
    }
}

/// There is nothing to report. A signal is a way to end like others.
pub(crate) fn without_report(destination: Destination, error: anyhow::Error) -> Result<ExitCode> {
    destination.abandon();
    if matches!(error.downcast_ref(), Some(RunError::Interrupted)) {
        message::print(&error);
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    Err(error)
}

/// What was measured.
struct Measured {
    run: Run,
    /// Absent where none was asked for.
    log: Option<NamedLog>,
    /// A signal cut the run or its diagnosis short.
    was_interrupted: bool,
}

fn measure(
    arguments: &LoadArguments,
    target: Option<Target>,
    load: Load,
    destination: &Destination,
    interrupts: &Interrupts,
) -> Result<Measured> {
    let cpus = usable_cpus();
    let backend = backend_choice(arguments.backend);
    let secure = arguments.protocol.tls;
    let scheme = if secure { Scheme::Https } else { Scheme::Http }.name();
    let (target, own_server, workers, own_cpus) = match target {
        Some(target) => (target, None, cpus, None),
        None if backend == BackendChoice::Sim => {
            let target = Target::parse(&format!("{scheme}://simulated/"), None)?;
            (target, None, cpus, None)
        }
        None => {
            let is_placed = arguments.threads.is_none() && !arguments.no_placement;
            let halves = Halves::of(cpus, is_placed);
            let tls = secure.then(TlsOptions::default);
            let server = serve::own_server(&halves, serve::backend_of(backend), false, tls)?;
            let url = format!("{scheme}://{}{OWN_PATH}", server.address());
            let target = Target::parse(&url, None)?;
            (target, Some(server), halves.workers, halves.of_workers)
        }
    };
    let workers = brunt_engine::default_workers(&load.model, workers);
    let mut plan = load.plan(arguments, target, workers, own_cpus);
    destination.fits(&plan)?;
    let certificates = own_server.iter().flat_map(|server| server.certificates());
    plan.tls.roots_der = certificates.map(|der| der.to_vec()).collect();
    let outcome = run_and_diagnose(arguments, plan, own_server.is_some(), interrupts);
    if let Some(server) = own_server {
        server
            .stop()
            .context("the reference server did not end well")?;
    }
    outcome
}

fn run_and_diagnose(
    arguments: &LoadArguments,
    plan: Plan,
    own_server: bool,
    interrupts: &Interrupts,
) -> Result<Measured> {
    let output = &arguments.output;
    let plan_again = arguments.diagnose.then(|| Plan {
        logged_requests_max: 0,
        ..plan.clone()
    });
    let logged = (plan.logged_requests_max > 0).then(|| plan.requests.clone());
    let mut line = Line::new(output, &plan);
    let faults = faults(&arguments.fault);
    let mut keeping = Keeping {
        shown: &mut line,
        log: None,
    };
    let outcome = interrupts.run(plan, faults, own_server, Wanted::Part, &mut keeping);
    let log = keeping.log;
    line.clear();
    let mut run = outcome?;
    let log = log
        .zip(logged)
        .map(|(log, requests)| NamedLog::new(log, &requests));
    let mut was_interrupted = run.interrupted();
    if let Some(plan) = plan_again {
        was_interrupted |= diagnose(&mut run, plan, own_server, output, interrupts);
    }
    Ok(Measured {
        run,
        log,
        was_interrupted,
    })
}

/// Adds to a run what it does not know of itself: how it was called and where, what it was asked to
/// reach, and what `brunt calibrate` found on this machine.
pub(crate) fn complete(run: &mut Run, arguments: &LoadArguments) {
    let objectives = objectives::asked(&arguments.output.objective).unwrap_or_default();
    add_origin(run, command_line::here(), objectives);
    if arguments.output.redact {
        redact(run);
    }
}

/// The same with how it was called, and what it was asked to reach, where that is known.
pub(crate) fn add_origin(run: &mut Run, command: Option<Vec<String>>, objectives: Vec<Objective>) {
    // Simulations do not run on this machine.
    let calibration = match run.is_simulated() {
        true => Ok(None),
        false => calibration_store::load(),
    };
    let calibration = calibration.unwrap_or_else(|error| {
        // The run is as good without it.
        message::print(&format_args!("the calibration is not used: {error:#}"));
        None
    });
    brunt_engine::complete(
        run,
        &Origin {
            command,
            objectives,
            calibration,
        },
    );
}
