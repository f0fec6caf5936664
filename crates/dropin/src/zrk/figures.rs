//! What zrk counts and derives of a run.

use brunt_judge::RunFigures;
use brunt_load::LoadModel;
use brunt_record::{Histogram, Run};

use super::Options;
use crate::Counts;
use crate::recorded::Recorded;

/// The longest time that zrk records, microseconds.
pub(super) const HIGHEST_US: u64 = 60_000_000;

/// The figures of a run, as zrk names them.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Counts in common with wrk. Of timeouts, those that are no misses of the deadline.
    pub counts: Counts,
    /// Requests that were too late for the deadline: not sent, or given up.
    pub deadline: u64,
    /// Responses by the first digit of their status, 1 to 5.
    pub classes: [u64; 6],
    /// How far brunt ever was behind its schedule, at least, microseconds.
    pub lag_us: u64,
    /// Requests per second of the whole run.
    pub mean_per_s: f64,
    /// Bytes per second of the whole run.
    pub mean_bytes_per_s: f64,
    /// The last interval.
    pub end: Tail,
    /// Whether a signal ended the run.
    pub is_interrupted: bool,
    pub(super) recorded: Recorded,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tail {
    /// Requests per second in it.
    pub per_s: f64,
    /// Bytes per second in it.
    pub bytes_per_s: f64,
    /// Its length, seconds.
    pub length_s: f64,
    /// When it was over, seconds from the start.
    pub at_s: f64,
}

impl Figures {
    /// The figures of `run`.
    pub fn of(options: &Options, run: &Run) -> Self {
        let mut counts = Counts::of(run);
        let summary = run.summary();
        let mut deadline = 0;
        if options.deadline_ns > 0 {
            let arrivals = &summary.arrivals_all;
            let never_sent = [
                arrivals.skipped_full,
                arrivals.skipped_late,
                arrivals.unsent,
            ];
            deadline = never_sent.iter().sum::<u64>() + counts.timeout;
            counts.timeout = 0;
        }
        let latencies = &run.latencies;
        let mut response = latencies.response.clone();
        response.merge(&latencies.response_error);
        if options.records_timeouts && options.deadline_ns == 0 {
            response.merge(&latencies.unfinished);
        }
        let (mean_per_s, mean_bytes_per_s) =
            (counts.per_s(counts.requests), counts.per_s(counts.bytes));
        let end = tail(options, run).unwrap_or(Tail {
            per_s: mean_per_s,
            bytes_per_s: mean_bytes_per_s,
            length_s: run.window_ns as f64 / 1e9,
            at_s: run.window_ns as f64 / 1e9,
        });
        let class = |digit: u16| summary.window.replies.class(digit);
        Self {
            counts,
            deadline,
            classes: [0, class(1), class(2), class(3), class(4), class(5)],
            lag_us: lag_ns(run, summary.arrivals_all.unsent) / 1_000,
            mean_per_s,
            mean_bytes_per_s,
            end,
            is_interrupted: run.interrupted(),
            recorded: Recorded::of(&response, HIGHEST_US),
        }
    }

    /// Failed requests and connections: those that are counted beside the responses.
    pub(super) fn failures(&self) -> u64 {
        let Counts {
            connect,
            read,
            timeout,
            ..
        } = self.counts;
        connect + read + timeout + self.deadline
    }

    /// The share of errors in all that was tried.
    pub fn error_rate(&self) -> f64 {
        error_rate(self.counts.requests, self.counts.status, self.failures())
    }

    /// The 99th percentile, microseconds; 0 for none.
    pub fn p99_us(&self) -> u64 {
        self.recorded.percentile_us(99.0)
    }
}

/// The share of errors: error statuses and failures, of responses and failures; 0 of nothing.
pub(super) fn error_rate(responses: u64, statuses: u64, failures: u64) -> f64 {
    match responses + failures {
        0 => 0.0,
        all => (statuses + failures) as f64 / all as f64,
    }
}

/// The last interval of a run, as exactly as the run was recorded over time; absent where the run
/// is no longer than that.
fn tail(options: &Options, run: &Run) -> Option<Tail> {
    let series = run.summary().series;
    let whole = (run.window_ns / series.interval_ns.max(1)) as usize;
    let points = series.points.get(..whole)?;
    let wanted = options.interval_ns.div_ceil(series.interval_ns).max(1) as usize;
    let first = points
        .len()
        .checked_sub(wanted)
        .filter(|&first| first > 0)?;
    let (mut replies, mut bytes) = (0, 0);
    for point in &points[first..] {
        replies += point.successes + point.errors;
        bytes += point.bytes_received;
    }
    let length_s = wanted as f64 * series.interval_ns as f64 / 1e9;
    Some(Tail {
        per_s: replies as f64 / length_s,
        bytes_per_s: bytes as f64 / length_s,
        length_s,
        at_s: whole as f64 * series.interval_ns as f64 / 1e9,
    })
}

/// How long a request waited for a connection beyond its planned instant, at least: the longest
/// response time has no more of the service in it than the longest service time.
fn lag_ns(run: &Run, unsent: u64) -> u64 {
    let most = |times: &Histogram| times.max_ns().unwrap_or(0);
    let latencies = &run.latencies;
    if !matches!(run.plan.model, LoadModel::Open { .. }) {
        return 0;
    }
    let waited_ns = most(&latencies.response).saturating_sub(most(&latencies.service));
    let unsent_ns = if unsent > 0 {
        most(&latencies.unfinished)
    } else {
        0
    };
    most(&latencies.lag).max(waited_ns).max(unsent_ns)
}
