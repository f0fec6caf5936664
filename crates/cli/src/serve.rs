//! `brunt serve`: the reference server until a signal comes.

use std::num::{NonZeroU32, NonZeroU64};
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_engine::raise_descriptor_limit;
use brunt_io::cpu::{allowed_cpus, usable_cpus};
use brunt_io::{threads, tls_config};
use brunt_load::ClientIdentity;
use brunt_probe::memory::available_memory_bytes;
use brunt_server::{Http2Options, Identity, ListenAddress, ServeOptions, TcpOptions, TlsOptions};

use crate::commands::{ServeArguments, ServeProtocolArguments, ServeTcpArguments};
use crate::message;
use crate::output::write_file;
use crate::session::{Interrupts, Second};

/// How often the signal flag is looked at.
const WATCH_NS: u64 = 50_000_000;

/// The part of the available memory that input may fill, and output as well.
const MEMORY_PART: u64 = 8;
/// Least memory for input, and least for output, bytes: with less, the server would refuse honest
/// clients.
const BYTES_MIN: u64 = 16 << 20;

/// Serves.
pub(crate) fn run(arguments: &ServeArguments) -> Result<ExitCode> {
    let interrupts = Interrupts::listen(Second::Ends)?;
    raise_descriptor_limit();
    let address = match &arguments.unix_socket {
        Some(path) => ListenAddress::Unix(path.clone()),
        None => ListenAddress::Tcp(arguments.listen),
    };
    let mut options = ServeOptions::new(address);
    options.workers = arguments
        .threads
        .or_else(|| NonZeroU32::new(usable_cpus()))
        .unwrap_or(NonZeroU32::MIN);
    options.backend = arguments.backend;
    options.connections_max = arguments.connections_max.get();
    options.spin = arguments.spin;
    options.idle_timeout_ns = Some(arguments.idle_timeout).filter(|&ns| ns > 0);
    let part_bytes = available_memory_bytes().map(|bytes| (bytes / MEMORY_PART).max(BYTES_MIN));
    let limit = |asked: Option<NonZeroU64>, default_bytes: u64| {
        asked.map_or(part_bytes.unwrap_or(default_bytes), NonZeroU64::get)
    };
    options.input_bytes_max = limit(arguments.input_max, ServeOptions::INPUT_BYTES_MAX);
    options.output_bytes_max = limit(arguments.output_max, ServeOptions::OUTPUT_BYTES_MAX);
    let protocol = &arguments.protocol;
    // QUIC has no clear text.
    let is_secure = protocol.tls || protocol.http3;
    options.tls = is_secure.then(|| tls(protocol)).transpose()?;
    options.http2 = Http2Options {
        streams_max: protocol.h2_streams,
        requests_max: protocol.h2_requests,
        ..Http2Options::default()
    };
    options.http3 = protocol.http3;
    options.tcp = raw_tcp(&arguments.tcp)?;
    let server = brunt_server::start(&options).context("cannot serve")?;
    if let Some(path) = &protocol.cert_out {
        write_file(path, server.certificates_pem())?;
    }
    if !arguments.quiet {
        let mut lines = format!(
            "listening on {}{}{} · {} worker(s){} · {} · Ctrl-C ends\n",
            if is_secure { "https://" } else { "" },
            server.address(),
            if options.http3 { " · HTTP/3 too" } else { "" },
            options.workers,
            if options.spin { " that spin" } else { "" },
            server.backend()
        );
        if let (Some(address), Some(tcp)) = (server.tcp_address(), &options.tcp) {
            lines.push_str(&format!("raw TCP on {address} · {}\n", tcp.service));
        }
        message::output(&lines);
    }
    while !interrupts.came() {
        threads::sleep(WATCH_NS);
    }
    let counters = server.stop().context("the server did not end well")?;
    if !arguments.quiet {
        message::output(&format!("{}\n", serde_json::to_string_pretty(&counters)?));
    }
    Ok(ExitCode::SUCCESS)
}

/// What to serve over raw TCP.
fn raw_tcp(arguments: &ServeTcpArguments) -> Result<Option<TcpOptions>> {
    let Some(service) = &arguments.tcp else {
        return Ok(None);
    };
    let typed = &arguments.tcp_listen;
    let address = if typed.contains('/') {
        ListenAddress::Unix(typed.into())
    } else {
        let address = typed.parse();
        ListenAddress::Tcp(address.with_context(|| {
            format!(
                "--tcp-listen {typed}: write IP:PORT, or the path of a Unix socket with a slash"
            )
        })?)
    };
    Ok(Some(TcpOptions {
        address,
        service: service.clone(),
        delay_ns: arguments.tcp_delay,
        stall: arguments.tcp_stall,
    }))
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
        let (certificates, key) = tls_config::identity(&ClientIdentity {
            certificate: certificate.into(),
            key: key.into(),
        })?;
        options.identity = Identity::Given { certificates, key };
    }
    if let Some(path) = &arguments.client_ca {
        options.client_roots = Some(tls_config::certificates(&path.into(), "--client-ca")?);
    }
    options.version_min = arguments.tls_min.unwrap_or(options.version_min);
    options.version_max = arguments.tls_max.unwrap_or(options.version_max);
    Ok(options)
}

/// How workers and CPUs are split between brunt's own server and the load: half each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuSplit {
    pub(crate) server_workers: u32,
    pub(crate) load_workers: u32,
    /// None where the scheduler places the server's workers.
    pub(crate) server_cpus: Vec<u32>,
    /// Absent where the scheduler places the load's workers.
    pub(crate) load_cpus: Option<Vec<u32>>,
}

impl CpuSplit {
    /// That of a machine with `usable` CPUs. `is_placed`: each worker is bound to one CPU,
    /// where there are several.
    pub(crate) fn of(usable: u32, is_placed: bool) -> Self {
        Self::among(usable, &allowed_cpus().unwrap_or_default(), is_placed)
    }

    fn among(usable: u32, allowed: &[u32], is_placed: bool) -> Self {
        let server_workers = (usable / 2).max(1);
        let load_workers = (usable - usable / 2).max(1);
        let all = server_workers.saturating_add(load_workers);
        let is_enough = all <= usable && all as usize <= allowed.len();
        let cpus = if is_placed && is_enough {
            &allowed[allowed.len() - all as usize..]
        } else {
            &[]
        };
        let (server_cpus, load_cpus) = cpus.split_at(cpus.len().min(server_workers as usize));
        Self {
            server_workers,
            load_workers,
            server_cpus: server_cpus.to_vec(),
            load_cpus: (!load_cpus.is_empty()).then(|| load_cpus.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_and_server_have_cpus_of_their_own_where_there_are_two() {
        // (usable, allowed, placed, server's workers and CPUs, the load's)
        type Row<'a> = (
            u32,
            &'a [u32],
            bool,
            (u32, &'a [u32]),
            (u32, Option<&'a [u32]>),
        );
        let cases: [Row<'_>; 6] = [
            (2, &[0, 1], true, (1, &[0]), (1, Some(&[1]))),
            (3, &[0, 2, 5], true, (1, &[0]), (2, Some(&[2, 5]))),
            (4, &[0, 1, 2, 3], true, (2, &[0, 1]), (2, Some(&[2, 3]))),
            // A quota of two CPUs.
            (2, &[0, 1, 2, 3], true, (1, &[2]), (1, Some(&[3]))),
            (1, &[0], true, (1, &[]), (1, None)),
            (2, &[0, 1], false, (1, &[]), (1, None)),
        ];
        for (usable, allowed, is_placed, server, load) in cases {
            let split = CpuSplit::among(usable, allowed, is_placed);
            let of_workers = split.load_cpus.as_deref();
            assert_eq!((split.server_workers, split.server_cpus.as_slice()), server);
            assert_eq!((split.load_workers, of_workers), load);
        }
    }
}
