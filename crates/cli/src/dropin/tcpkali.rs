//! brunt in place of tcpkali: its text, what is shown while a run lasts, and its listening side.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brunt_dropin::tcpkali::{self, Interval, Options, Statsd, Taken};
use brunt_engine::{Phase, Progress, RunObserver, Snapshot};
use brunt_io::files::{self, FileError};
use brunt_io::{clock, threads};
use brunt_load::Target;
use brunt_record::{Histogram, Run, SparseHistogram};
use brunt_server::{ListenAddress, Running, TcpOptions, TcpService};

use super::{EXIT_FAILED, cpus, job, open_outputs, print};
use crate::args::fresh_seed;
use crate::message;
use crate::request::BODY_BYTES_MAX;
use crate::session::{Interrupts, Second, is_interrupt};

/// Runs the command line `words` of tcpkali, which was called `name`.
pub(super) fn run(name: &str, words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(name, words)?;
    let read = &mut |path: &std::path::Path| {
        files::read_file(path, BODY_BYTES_MAX).map_err(|error| match error {
            FileError::Input(error) => error,
            error => io::Error::other(error),
        })
    };
    if options.servers.is_empty()
        && let Some(server) = listen(&options)?
    {
        return listen_alone(server, &options);
    }
    let plan = options.plan(cpus(), fresh_seed(), read)?;
    let has_markers = tcpkali::has_markers(&plan);
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let targets = std::iter::once(&plan.target).chain(&plan.further_targets);
    message::print_lines(&targets.map(destinations).collect::<String>());
    let listening = listen(&options)?;
    let mut live = Live::new(&options, tcpkali::has_replies(&plan))?;
    let measured = pipeline.measure(job(plan), || (), Some(&mut live));
    live.end(measured.as_ref().ok().map(|measured| &measured.run));
    let mut measured = match measured {
        Err(error) if !is_interrupt(&error) => {
            message::print(&format_args!("{error:#}"));
            message::print_lines(&tcpkali::not_connected(&options));
            return Ok(ExitCode::from(EXIT_FAILED));
        }
        measured => measured?,
    };
    let taken = listening.map(end).transpose();
    let reported = taken.map(|taken| {
        let (run, taken) = (&measured.run, taken.unwrap_or_default());
        print(&tcpkali::report(&options, has_markers, run, taken));
    });
    measured.write(reported)?;
    Ok(ExitCode::SUCCESS)
}

/// The addresses of the server, line by line. The run says what is wrong with its name.
fn destinations(target: &Target) -> String {
    let addresses = (target.host.as_str(), target.port).to_socket_addrs();
    let addresses = addresses.into_iter().flatten();
    addresses
        .map(|address| tcpkali::destination(&address))
        .collect()
}

/// Shortest time from one interval to the next.
const INTERVAL_NS: u64 = 250_000_000;

/// What looks on while a run lasts.
struct Live<'a> {
    options: &'a Options,
    is_ramped_up: bool,
    /// A line is drawn over and over.
    draws: bool,
    /// Where metrics go.
    statsd: Option<(UdpSocket, &'a Statsd)>,
    /// Since when response times are kept.
    window_from_ns: u64,
    wants_times: bool,
    times: SparseHistogram,
    from_ns: u64,
    from: Progress,
}

impl<'a> Live<'a> {
    /// The live output that the command line asks for. Metrics are sent from now on.
    fn new(options: &'a Options, has_replies: bool) -> Result<Self> {
        let statsd = options.statsd().map(|statsd| {
            let connected = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
                socket.connect((statsd.host.as_str(), statsd.port))?;
                Ok((socket, statsd))
            });
            connected.with_context(|| format!("StatsD at {}:{}", statsd.host, statsd.port))
        });
        let statsd = statsd.transpose()?;
        let draws = message::is_output_terminal() && message::is_live();
        let now_ns = clock::now_ns();
        let live = Self {
            options,
            is_ramped_up: false,
            draws,
            window_from_ns: now_ns,
            wants_times: has_replies && (draws || statsd.is_some()),
            statsd,
            times: SparseHistogram::default(),
            from_ns: now_ns,
            from: Progress::default(),
        };
        live.send(&Interval::default(), &[]);
        Ok(live)
    }

    /// The run is over: times that are known now, and zeros.
    fn end(&mut self, run: Option<&Run>) {
        self.erase();
        if let Some(run) = run {
            let all = &run.latencies;
            let asked = [
                (self.options.latency_connect, "connect", &all.connect),
                (
                    self.options.latency_first_byte,
                    "firstbyte",
                    &all.first_byte,
                ),
            ];
            let asked = asked.into_iter().filter(|(is_asked, ..)| *is_asked);
            let asked: Vec<_> = asked.map(|(_, name, times)| (name, times)).collect();
            if !asked.is_empty() {
                self.send(&Interval::default(), &asked);
            }
        }
        self.send(&Interval::default(), &[]);
    }

    fn erase(&self) {
        if self.draws {
            message::erase();
        }
    }

    /// Sends metrics. Nobody may be there to take them.
    fn send(&self, interval: &Interval, latencies: &[(&str, &Histogram)]) {
        let Some((socket, statsd)) = &self.statsd else {
            return;
        };
        let percentiles = &self.options.percentiles;
        for datagram in tcpkali::datagrams(&statsd.namespace, interval, latencies, percentiles) {
            let _ = socket.send(datagram.as_bytes());
        }
    }

    fn show(&mut self, now_ns: u64, progress: &Progress) {
        let since = progress.since(self.from);
        let interval = Interval {
            seconds: now_ns.saturating_sub(self.from_ns) as f64 / 1e9,
            opened: progress.live.saturating_sub(self.from.live),
            live: progress.live,
            bytes_received: since.bytes_received,
            bytes_sent: since.bytes_sent,
            messages: since.successes + since.errors,
        };
        (self.from_ns, self.from) = (now_ns, *progress);
        let statsd = self.statsd.as_ref();
        let window_ns = statsd.and_then(|(_, statsd)| statsd.latency_window_ns);
        let is_window_over = window_ns
            .is_none_or(|window_ns| now_ns.saturating_sub(self.window_from_ns) >= window_ns);
        let times = self.times.expand();
        if self.draws {
            let times = self.wants_times.then_some(&times);
            let line = tcpkali::status(&interval, self.options.connections, times);
            message::draw(&line);
        }
        let latencies = [("message", &times)];
        let is_sent = self.wants_times && is_window_over;
        self.send(&interval, if is_sent { &latencies } else { &[] });
        if window_ns.is_some() && is_window_over {
            self.times = SparseHistogram::default();
            self.window_from_ns = now_ns;
        }
    }
}

impl RunObserver for Live<'_> {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        if phase > Phase::SetUp && !self.is_ramped_up {
            self.is_ramped_up = true;
            self.erase();
            message::print_lines(&tcpkali::ramped_up(self.options.connections));
        }
        let now_ns = clock::now_ns();
        if (self.draws || self.statsd.is_some()) && now_ns >= self.from_ns + INTERVAL_NS {
            self.show(now_ns, progress);
        }
    }

    fn wants_response_times(&mut self) -> bool {
        self.wants_times
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.times.merge(&snapshot.response);
    }
}

/// What tcpkali exits with after a signal.
const EXIT_AFTER_SIGNAL: u8 = 64;
/// Attempts to listen, and the pause between them: the kernel closes what another process had there
/// a while after its end.
const STARTS_MAX: u32 = 20;
const START_PAUSE_NS: u64 = 50_000_000;
/// How often the end is looked for.
const WATCH_NS: u64 = 20_000_000;

/// Listens, where the command line says so, and says where.
fn listen(options: &Options) -> Result<Option<Running>> {
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
    Ok(Some(server))
}

/// Listens for as long as the command line says, or up to a signal, and reports.
fn listen_alone(server: Running, options: &Options) -> Result<ExitCode> {
    let interrupts = Interrupts::listen(Second::Ends)?;
    let from_ns = clock::now_ns();
    let passed_ns = || clock::now_ns() - from_ns;
    while passed_ns() < options.duration_ns && !interrupts.came() {
        let left_ns = options.duration_ns.saturating_sub(passed_ns());
        threads::sleep(left_ns.min(WATCH_NS));
    }
    let seconds = passed_ns() as f64 / 1e9;
    print(&tcpkali::report_of_listening(end(server)?, seconds));
    let code = if interrupts.came() {
        EXIT_AFTER_SIGNAL
    } else {
        0
    };
    Ok(ExitCode::from(code))
}

/// Listens no longer; gives what was taken.
fn end(server: Running) -> Result<Taken> {
    let open = server.counters().tcp;
    let counters = server.stop();
    let counters = counters.context("the listening side did not end well")?;
    Ok(Taken {
        connections: open.map_or(0, |tcp| tcp.connections_live),
        bytes: counters.tcp.map_or(0, |tcp| tcp.bytes_received),
    })
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
    let mut options = brunt_server::ServeOptions::new(ListenAddress::Tcp(local));
    options.workers = cpus();
    options.idle_timeout_ns = None;
    let service: TcpService = "sink".parse().context("a service")?;
    options.tcp = Some(TcpOptions::new(ListenAddress::Tcp(address), service));
    brunt_server::start(&options).with_context(|| format!("cannot listen on {address}"))
}
