//! What gcannon counts of a run.

use brunt_judge::RunFigures;
use brunt_record::{Histogram, NameRecord, Run};

use super::Options;
use crate::Counts;

/// The figures of a run, as gcannon names them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Length of the run, seconds.
    pub elapsed_s: f64,
    /// Requests or frames that were sent.
    pub requests: u64,
    /// Replies, whatever their status.
    pub responses: u64,
    /// Bytes that were received.
    pub bytes: u64,
    /// Replies by the first digit of their status: 2xx to 5xx. Frames are 2xx.
    pub classes: [u64; 4],
    /// Connections that were upgraded to WebSocket.
    pub upgrades: u64,
    /// Connections that took the place of others.
    pub reconnects: u64,
    /// Attempts to connect that failed.
    pub connect: u64,
    /// Replies that were truncated or are none.
    pub read: u64,
    /// Requests that were never answered.
    pub timeout: u64,
    /// Latencies of all replies.
    pub latencies: Latencies,
    /// Of each file with a request, where there are several.
    pub files: Vec<FileFigures>,
}

/// The replies to the requests of one file.
#[derive(Clone, Debug, Default)]
pub struct FileFigures {
    /// All.
    pub responses: u64,
    /// With a status of 2xx.
    pub successes: u64,
    /// Latencies of those with a status below 400.
    pub latencies: Latencies,
}

/// Latencies in microseconds; all are 0 without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// How many.
    pub samples: u64,
    /// Their mean.
    pub mean_us: u64,
    /// The 50th, 90th, 99th and 99.9th percentile.
    pub percentiles_us: [u64; 4],
}

impl Latencies {
    fn of(times: &Histogram) -> Self {
        let quantile_us = |quantile| times.quantile_ns(quantile).unwrap_or(0) / 1_000;
        Self {
            samples: times.count(),
            mean_us: (times.mean_ns().unwrap_or(0.0) / 1e3) as u64,
            percentiles_us: [0.5, 0.9, 0.99, 0.999].map(quantile_us),
        }
    }
}

impl FileFigures {
    fn of(record: &NameRecord) -> Self {
        let statuses = record.statuses();
        let successes = statuses.iter().filter(|it| it.status / 100 == 2);
        Self {
            responses: statuses.iter().map(|it| it.count).sum(),
            successes: successes.map(|it| it.count).sum(),
            latencies: Latencies::of(&record.response.expand()),
        }
    }
}

impl Figures {
    /// The figures of `run`.
    pub fn of(options: &Options, run: &Run) -> Self {
        let counts = Counts::of(run);
        let summary = run.summary();
        let window = &summary.window;
        let mut times = run.latencies.response.clone();
        times.merge(&run.latencies.response_error);
        let is_websocket = options.message.is_some();
        let class = |digit| match (is_websocket, digit) {
            (true, 2) => counts.requests,
            (true, _) => 0,
            (false, digit) => window.replies.class(digit),
        };
        Self {
            elapsed_s: run.window_ns as f64 / 1e9,
            requests: window.requests_sent,
            responses: counts.requests,
            bytes: window.bytes_received,
            classes: [2, 3, 4, 5].map(class),
            upgrades: match is_websocket {
                true => summary.lifetime.connections_opened,
                false => 0,
            },
            reconnects: window.connections_opened,
            connect: counts.connect,
            read: counts.read,
            timeout: counts.timeout,
            latencies: Latencies::of(&times),
            files: run.names.iter().map(FileFigures::of).collect(),
        }
    }

    /// Replies with another status.
    pub(super) fn other(&self) -> u64 {
        let known: u64 = self.classes.iter().sum();
        self.responses.saturating_sub(known)
    }

    /// Per second of the run; 0 for a run without length.
    pub(super) fn per_s(&self, amount: u64) -> f64 {
        match self.elapsed_s > 0.0 {
            true => amount as f64 / self.elapsed_s,
            false => 0.0,
        }
    }

    /// Replies whose status is of another class than the expected one.
    pub(super) fn unexpected(&self, options: &Options) -> u64 {
        let class = usize::try_from(options.expected / 100 - 2).ok();
        let expected = class.and_then(|at| self.classes.get(at)).copied();
        self.responses.saturating_sub(expected.unwrap_or(0))
    }
}
