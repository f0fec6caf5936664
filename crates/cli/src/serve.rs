//! `brunt serve`: the reference server until a signal comes.

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use brunt_engine::{raise_descriptor_limit, threads, usable_cpus};
use brunt_load::BackendChoice;
use brunt_server::{ListenAddress, Options, Running};

use crate::args::{ServeArguments, ServeBackendName};
use crate::signals;

/// How often the signal flag is looked at.
const WATCH_NS: u64 = 50_000_000;

/// Serves.
pub(crate) fn run(arguments: &ServeArguments) -> Result<ExitCode> {
    let interrupted = signals::interrupt_flag()?;
    raise_descriptor_limit();
    let address = match &arguments.unix_socket {
        Some(path) => ListenAddress::Unix(path.clone()),
        None => ListenAddress::Tcp(arguments.listen),
    };
    let mut options = Options::new(address);
    options.workers = arguments
        .threads
        .or_else(|| NonZeroU32::new(usable_cpus()))
        .unwrap_or(NonZeroU32::MIN);
    options.backend = match arguments.backend {
        ServeBackendName::Auto => brunt_server::BackendChoice::Auto,
        ServeBackendName::Uring => brunt_server::BackendChoice::Uring,
        ServeBackendName::Epoll => brunt_server::BackendChoice::Epoll,
    };
    options.connections_max = arguments.connections_max.get();
    options.spin = arguments.spin;
    let server = brunt_server::start(&options).context("cannot serve")?;
    if !arguments.quiet {
        println!(
            "listening on {} · {} worker(s){} · {} · Ctrl-C ends",
            server.address(),
            options.workers,
            if options.spin { " that spin" } else { "" },
            server.backend()
        );
    }
    while !interrupted.load(Ordering::Relaxed) {
        threads::sleep(WATCH_NS);
    }
    let counters = server.stop().context("the server did not end well")?;
    if !arguments.quiet {
        println!("{}", serde_json::to_string_pretty(&counters)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts a server in this process, on loopback and a free port. With `spin` it polls.
pub(crate) fn own_server(
    workers: u32,
    backend: brunt_server::BackendChoice,
    spin: bool,
) -> Result<Running> {
    let mut options = Options::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
    options.workers = NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN);
    options.backend = backend;
    options.spin = spin;
    brunt_server::start(&options).context("cannot start the reference server")
}

/// The server's choice that goes with the client's.
pub(crate) fn backend_of(choice: BackendChoice) -> brunt_server::BackendChoice {
    match choice {
        BackendChoice::Auto | BackendChoice::Uring | BackendChoice::Sim => {
            brunt_server::BackendChoice::Auto
        }
        BackendChoice::Epoll => brunt_server::BackendChoice::Epoll,
    }
}
