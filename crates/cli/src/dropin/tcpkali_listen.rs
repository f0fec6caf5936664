//! The listening side in tcpkali's place: connections are taken, and what they send is thrown away.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::tcpkali::{self, Options, Taken};
use brunt_io::cpu::usable_cpus;
use brunt_io::{clock, threads};
use brunt_server::{ListenAddress, Running, TcpOptions, TcpService};

use super::print;
use crate::message;
use crate::signals::{Interrupts, Second};

/// What tcpkali exits with after a signal.
const EXIT_AFTER_SIGNAL: u8 = 64;
/// Attempts to listen, and the pause between them: the kernel closes what another process had there
/// a while after its end.
const STARTS_MAX: u32 = 20;
const START_PAUSE_NS: u64 = 50_000_000;
/// How often the end is looked for.
const WATCH_NS: u64 = 20_000_000;

/// Connections are taken.
pub(super) struct Listening {
    server: Running,
}

impl Listening {
    /// Listens, where the command line says so, and says where.
    pub(super) fn start(options: &Options) -> Result<Option<Self>> {
        let Some((host, port)) = &options.listen else {
            return Ok(None);
        };
        let addresses: Vec<SocketAddr> = match host {
            Some(host) => {
                let found = (host.as_str(), *port).to_socket_addrs();
                found.with_context(|| host.clone())?.collect()
            }
            // That of IPv6 takes both.
            None => vec![
                (Ipv6Addr::UNSPECIFIED, *port).into(),
                (Ipv4Addr::UNSPECIFIED, *port).into(),
            ],
        };
        let (server, address) = serve_at(&addresses)?;
        let mut shown = vec![address];
        if host.is_none() && address.is_ipv6() {
            shown.insert(0, (Ipv4Addr::UNSPECIFIED, *port).into());
        }
        message::print_lines(&tcpkali::listening(&shown));
        Ok(Some(Self { server }))
    }

    /// Listens for as long as the command line says, or up to a signal, and reports.
    pub(super) fn run(self, options: &Options) -> Result<ExitCode> {
        let interrupts = Interrupts::listen(Second::Ends)?;
        let from_ns = clock::now_ns();
        let passed_ns = || clock::now_ns() - from_ns;
        while passed_ns() < options.duration_ns && !interrupts.came() {
            let left_ns = options.duration_ns.saturating_sub(passed_ns());
            threads::sleep(left_ns.min(WATCH_NS));
        }
        let seconds = passed_ns() as f64 / 1e9;
        let taken = self.end()?;
        print(&tcpkali::report_of_listening(taken, seconds));
        Ok(match interrupts.came() {
            true => ExitCode::from(EXIT_AFTER_SIGNAL),
            false => ExitCode::SUCCESS,
        })
    }

    /// Listens no longer.
    pub(super) fn end(self) -> Result<Taken> {
        let connections = self
            .server
            .counters()
            .tcp
            .map_or(0, |tcp| tcp.connections_live);
        let counters = self
            .server
            .stop()
            .context("the listening side did not end well")?;
        Ok(Taken {
            connections,
            bytes: counters.tcp.map_or(0, |tcp| tcp.bytes_received),
        })
    }
}

/// Serves at the first of the addresses that can be had.
fn serve_at(addresses: &[SocketAddr]) -> Result<(Running, SocketAddr)> {
    let mut attempts = 1;
    loop {
        let mut failure = None;
        for &address in addresses {
            match serve(address) {
                Ok(server) => return Ok((server, address)),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if attempts == STARTS_MAX => return Err(error),
            None => bail!("there is no address to listen on"),
            Some(_) => attempts += 1,
        }
        threads::sleep(START_PAUSE_NS);
    }
}

fn serve(address: SocketAddr) -> Result<Running> {
    // What it has besides, counters over HTTP, nobody is to see.
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let mut options = brunt_server::Options::new(ListenAddress::Tcp(local));
    options.workers = NonZeroU32::new(usable_cpus()).unwrap_or(NonZeroU32::MIN);
    options.idle_timeout_ns = None;
    let service: TcpService = "sink".parse().context("a service")?;
    options.tcp = Some(TcpOptions::new(ListenAddress::Tcp(address), service));
    brunt_server::start(&options).with_context(|| format!("cannot listen on {address}"))
}
