//! `brunt [URL]`: from the arguments to a plan, the run, the report.

use std::num::{NonZeroU32, NonZeroU64};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use brunt_engine::{RunError, usable_cpus};
use brunt_load::{BackendChoice, Faults, Plan, RequestSpec, Reuse, Stop, Target};
use brunt_measure::Run;
use brunt_server::Running;

use crate::args::{BackendName, Fault, LoadArguments};
use crate::output::Destination;
use crate::progress::Line;
use crate::{EXIT_INTERRUPTED, EXIT_INVALID, serve, signals};

const SECOND_NS: u64 = 1_000_000_000;
const DURATION_NS_DEFAULT: u64 = 10 * SECOND_NS;
const WARMUP_NS_DEFAULT: u64 = SECOND_NS;
/// Largest body: it is held in memory once per worker and pipelined request.
const BODY_BYTES_MAX: u64 = 256 << 20;

/// Runs the load.
pub(crate) fn run(arguments: &LoadArguments) -> Result<ExitCode> {
    // All that was typed is looked at before anything is opened or started.
    let request = request(arguments)?;
    let target = match &arguments.url {
        Some(url) => Some(Target::parse(url, arguments.unix_socket.clone())?),
        None => None,
    };
    let destination = Destination::open(&arguments.output)?;
    match measure(arguments, target, request) {
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

fn measure(arguments: &LoadArguments, target: Option<Target>, request: RequestSpec) -> Result<Run> {
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
    let workers = NonZeroU32::new(workers)
        .unwrap_or(NonZeroU32::MIN)
        .min(arguments.connections);
    let plan = plan(arguments, target, request, workers);
    let (connections, stop, warmup_ns) = (plan.connections.get(), plan.stop, plan.warmup_ns);
    let prepared = brunt_engine::prepare(plan)?;
    let control = prepared.control();
    let quiet = arguments.output.quiet;
    let mut line = Line::new(quiet, connections, warmup_ns, stop.duration_ns);
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

/// What was built from what was typed.
fn plan(
    arguments: &LoadArguments,
    target: Target,
    request: RequestSpec,
    workers_default: NonZeroU32,
) -> Plan {
    let requests = arguments.requests.map(NonZeroU64::get);
    let duration_default_ns = requests.is_none().then_some(DURATION_NS_DEFAULT);
    let warmup_default_ns = if requests.is_some() {
        0
    } else {
        WARMUP_NS_DEFAULT
    };
    let reuse = if arguments.no_keepalive {
        Reuse::Requests(NonZeroU64::MIN)
    } else {
        arguments
            .requests_per_connection
            .map_or(Reuse::Unlimited, Reuse::Requests)
    };
    let mut faults = Faults::default();
    for &fault in &arguments.fault {
        match fault {
            Fault::StartDelay(worker, ns) => faults.start_delay = Some((worker, ns)),
            Fault::WindowShift(worker, ns) => faults.window_shift = Some((worker, ns)),
        }
    }
    Plan {
        target,
        request,
        connections: arguments.connections,
        workers: arguments.threads.unwrap_or(workers_default),
        pipeline: arguments.pipeline,
        reuse,
        stop: Stop {
            duration_ns: arguments.duration.or(duration_default_ns),
            requests,
        },
        warmup_ns: arguments.warmup.unwrap_or(warmup_default_ns),
        timeout_ns: arguments.timeout,
        connect_timeout_ns: arguments.connect_timeout,
        drain_limit_ns: arguments.drain.unwrap_or(arguments.timeout),
        backend: backend_choice(arguments.backend),
        source_addresses: arguments.source_addresses.clone(),
        oversubscribe: arguments.oversubscribe,
        faults,
    }
}

fn backend_choice(name: BackendName) -> BackendChoice {
    match name {
        BackendName::Auto => BackendChoice::Auto,
        BackendName::Uring => BackendChoice::Uring,
        BackendName::Epoll => BackendChoice::Epoll,
        BackendName::Sim => BackendChoice::Sim,
    }
}

fn request(arguments: &LoadArguments) -> Result<RequestSpec> {
    let body = match (&arguments.body, &arguments.body_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => {
            let length = std::fs::metadata(path)
                .with_context(|| format!("cannot read the body from {}", path.display()))?
                .len();
            if length > BODY_BYTES_MAX {
                bail!(
                    "{} has {length} bytes; a body may have 256 MiB",
                    path.display()
                );
            }
            std::fs::read(path)
                .with_context(|| format!("cannot read the body from {}", path.display()))?
        }
        (None, None) => Vec::new(),
    };
    let has_body = arguments.body.is_some() || arguments.body_file.is_some();
    let default = if has_body { "POST" } else { "GET" };
    let method = arguments
        .method
        .clone()
        .unwrap_or_else(|| default.to_owned());
    Ok(RequestSpec {
        method,
        headers: arguments.headers.clone(),
        body,
    })
}
