//! What is shown of a run in tcpkali's place while it lasts: that all connections are open, a
//! status line on a terminal, and metrics for StatsD.

use std::net::UdpSocket;

use anyhow::{Context, Result};
use brunt_dropin::tcpkali::{self, Interval, Options};
use brunt_engine::{Phase, Progress, RunObserver, Snapshot};
use brunt_io::clock;
use brunt_record::{Histogram, Run, SparseHistogram};

use crate::message;

/// Shortest time from one interval to the next.
const INTERVAL_NS: u64 = 250_000_000;

/// What looks on while a run lasts.
pub(super) struct Live {
    connections: u32,
    percentiles: Vec<String>,
    is_ramped_up: bool,
    /// A line is drawn over and over.
    draws: bool,
    /// Where metrics go, and the namespace of their names.
    statsd: Option<(UdpSocket, String)>,
    /// Response times are of parts of the run, each so long.
    window_ns: Option<u64>,
    window_from_ns: u64,
    wants_times: bool,
    times: SparseHistogram,
    from_ns: u64,
    from: Progress,
}

impl Live {
    /// The live output that the command line asks for. Metrics are sent from now on.
    pub(super) fn new(options: &Options, has_replies: bool) -> Result<Self> {
        let statsd = options.statsd().map(|statsd| {
            let socket = UdpSocket::bind("0.0.0.0:0")
                .and_then(|socket| {
                    socket.connect((statsd.host.as_str(), statsd.port))?;
                    Ok(socket)
                })
                .with_context(|| format!("StatsD at {}:{}", statsd.host, statsd.port))?;
            Ok::<_, anyhow::Error>((socket, statsd.namespace.clone()))
        });
        let draws = message::is_output_terminal() && message::is_live();
        let now_ns = clock::now_ns();
        let live = Self {
            connections: options.connections,
            percentiles: options.percentiles.clone(),
            is_ramped_up: false,
            draws,
            statsd: statsd.transpose()?,
            window_ns: options.statsd().and_then(|statsd| statsd.latency_window_ns),
            window_from_ns: now_ns,
            wants_times: has_replies && (draws || options.statsd().is_some()),
            times: SparseHistogram::default(),
            from_ns: now_ns,
            from: Progress::default(),
        };
        live.send(&Interval::default(), &[]);
        Ok(live)
    }

    /// The run is over: times that are known now, and zeros.
    pub(super) fn end(&mut self, options: &Options, run: Option<&Run>) {
        self.erase();
        if let Some(run) = run {
            let asked = [
                ("connect", options.latency_connect, &run.latencies.connect),
                (
                    "firstbyte",
                    options.latency_first_byte,
                    &run.latencies.first_byte,
                ),
            ];
            let asked = asked.into_iter().filter(|(_, is_asked, _)| *is_asked);
            let asked: Vec<_> = asked.map(|(kind, _, times)| (kind, times)).collect();
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
        let Some((socket, namespace)) = &self.statsd else {
            return;
        };
        for datagram in tcpkali::datagrams(namespace, interval, latencies, &self.percentiles) {
            let _ = socket.send(datagram.as_bytes());
        }
    }

    fn show(&mut self, now_ns: u64, progress: &Progress) {
        let from = &self.from;
        let done = |progress: &Progress| progress.successes + progress.errors;
        let interval = Interval {
            seconds: now_ns.saturating_sub(self.from_ns) as f64 / 1e9,
            opened: progress.live.saturating_sub(from.live),
            live: progress.live,
            bytes_received: progress.bytes_received.saturating_sub(from.bytes_received),
            bytes_sent: progress.bytes_sent.saturating_sub(from.bytes_sent),
            messages: done(progress).saturating_sub(done(from)),
        };
        (self.from_ns, self.from) = (now_ns, *progress);
        let is_window_over = self
            .window_ns
            .is_none_or(|window_ns| now_ns.saturating_sub(self.window_from_ns) >= window_ns);
        let times = self.times.expand();
        if self.draws {
            let times = self.wants_times.then_some(&times);
            let line = tcpkali::status(&interval, self.connections, times);
            message::draw(&line);
        }
        match self.wants_times && is_window_over {
            true => self.send(&interval, &[("message", &times)]),
            false => self.send(&interval, &[]),
        }
        if self.window_ns.is_some() && is_window_over {
            self.times = SparseHistogram::default();
            self.window_from_ns = now_ns;
        }
    }
}

impl RunObserver for Live {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        if phase > Phase::SetUp && !self.is_ramped_up {
            self.is_ramped_up = true;
            self.erase();
            message::print_lines(&tcpkali::ramped_up(self.connections));
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
