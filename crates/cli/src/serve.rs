//! `brunt serve`: the reference server until a signal comes.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use brunt_engine::{raise_descriptor_limit, threads, usable_cpus};
use brunt_load::BackendChoice;
use brunt_server::{
    Http2Options, Identity, ListenAddress, Options, Running, TlsOptions, TlsVersion,
    certificates_from_pem,
};

use crate::args::{ServeArguments, ServeBackendName, ServeProtocolArguments, TlsVersionName};
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
    let protocol = &arguments.protocol;
    options.tls = protocol.tls.then(|| tls(protocol)).transpose()?;
    options.http2 = Http2Options {
        streams_max: protocol.h2_streams,
        requests_max: protocol.h2_requests,
    };
    let server = brunt_server::start(&options).context("cannot serve")?;
    if let Some(path) = &protocol.cert_out {
        std::fs::write(path, server.certificates_pem())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if !arguments.quiet {
        println!(
            "listening on {}{} · {} worker(s){} · {} · Ctrl-C ends",
            if protocol.tls { "https://" } else { "" },
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

/// How TLS is to be spoken.
fn tls(arguments: &ServeProtocolArguments) -> Result<TlsOptions> {
    let mut options = TlsOptions {
        alpn: arguments.alpn.clone(),
        tickets: !arguments.no_tls_resume,
        ..TlsOptions::default()
    };
    if let Some(certificate) = &arguments.cert {
        let key = arguments.key.as_ref().unwrap_or(certificate);
        options.identity = Identity::from_pem(&read(certificate)?, &read(key)?)
            .with_context(|| format!("{} and {}", certificate.display(), key.display()))?;
    }
    if let Some(path) = &arguments.client_ca {
        let roots = certificates_from_pem(&read(path)?);
        options.client_roots = Some(roots.with_context(|| path.display().to_string())?);
    }
    if let Some(version) = arguments.tls_min {
        options.version_min = version_of(version);
    }
    if let Some(version) = arguments.tls_max {
        options.version_max = version_of(version);
    }
    Ok(options)
}

fn version_of(name: TlsVersionName) -> TlsVersion {
    match name {
        TlsVersionName::Tls12 => TlsVersion::Tls12,
        TlsVersionName::Tls13 => TlsVersion::Tls13,
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Starts a server in this process, on loopback and a free port. With `spin` it polls; without
/// `tls` it speaks clear text.
pub(crate) fn own_server(
    workers: u32,
    backend: brunt_server::BackendChoice,
    spin: bool,
    tls: Option<TlsOptions>,
) -> Result<Running> {
    let mut options = Options::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
    options.workers = NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN);
    options.backend = backend;
    options.spin = spin;
    options.tls = tls;
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
