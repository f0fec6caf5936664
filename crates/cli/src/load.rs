//! `brunt [URL]`: from the arguments to a plan, the run, the report.

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use brunt_engine::{RunError, usable_cpus};
use brunt_load::{BackendChoice, Target};
use brunt_measure::Run;
use brunt_server::Running;

use crate::args::LoadArguments;
use crate::output::Destination;
use crate::plan::{Load, backend_choice};
use crate::progress::Line;
use crate::{EXIT_INTERRUPTED, EXIT_INVALID, serve, signals};

/// Runs the load.
pub(crate) fn run(arguments: &LoadArguments) -> Result<ExitCode> {
    // All that was typed is looked at before anything is opened or started.
    let load = Load::new(arguments)?;
    let target = match &arguments.url {
        Some(url) => Some(Target::parse(url, arguments.unix_socket.clone())?),
        None => None,
    };
    let destination = Destination::open(&arguments.output)?;
    match measure(arguments, target, load) {
        Ok(run) => {
            destination.write(&run)?;
            Ok(exit_code(&run))
        }
        Err(error) => {
            destination.abandon();
            if matches!(error.downcast_ref(), Some(RunError::Interrupted)) {
                eprintln!("brunt: {error}");
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
            Err(error)
        }
    }
}

fn measure(arguments: &LoadArguments, target: Option<Target>, load: Load) -> Result<Run> {
    let interrupted = signals::interrupt_flag()?;
    let cpus = usable_cpus();
    let backend = backend_choice(arguments.backend);
    let (target, own_server, workers) = match target {
        Some(target) => (target, None, cpus),
        None if backend == BackendChoice::Sim => {
            (Target::parse("http://simulated/", None)?, None, cpus)
        }
        None => {
            // Half of the CPUs serve, half load.
            let serving = (cpus / 2).max(1);
            let server = own_server(serving, backend)?;
            let target = Target::parse(&format!("http://{}/", server.address()), None)?;
            (target, Some(server), (cpus - cpus / 2).max(1))
        }
    };
    let workers = match load.model.schedule() {
        // To be on time, a planned arrival needs a CPU that is not busy with something else.
        Some(_) => workers.saturating_sub(1),
        None => workers,
    };
    let workers = NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN);
    let plan = load.plan(arguments, target, workers);
    let mut line = Line::new(arguments.output.quiet, &plan);
    let prepared = brunt_engine::prepare(plan)?;
    let control = prepared.control();
    let outcome = prepared.run(&control, own_server.is_some(), &mut |phase, progress| {
        if interrupted.load(Ordering::Relaxed) {
            control.interrupt();
        }
        line.draw(phase, progress);
    });
    line.clear();
    if let Some(server) = own_server {
        server
            .stop()
            .context("the reference server did not end well")?;
    }
    Ok(outcome?)
}

fn own_server(workers: u32, backend: BackendChoice) -> Result<Running> {
    let address = brunt_server::ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let mut options = brunt_server::Options::new(address);
    options.workers = NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN);
    options.backend = serve::backend_of(backend);
    brunt_server::start(&options).context("cannot start the reference server")
}

fn exit_code(run: &Run) -> ExitCode {
    if run.interrupted {
        ExitCode::from(EXIT_INTERRUPTED)
    } else if brunt_measure::is_valid(&run.findings) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_INVALID)
    }
}
