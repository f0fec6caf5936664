//! What oha counts and derives of a run. Times are in seconds.

use std::collections::BTreeMap;

use brunt_judge::{RunFigures, Summary};
use brunt_record::{FailureKind, FailureScope, Histogram, Run, Series};

use super::Options;

/// Bins of a histogram.
pub(super) const BINS: usize = 11;
/// Percentages of distributions.
pub(super) const PERCENTILES: [f64; 9] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// Rates are over this time at least, nanoseconds.
const RATE_NS: u64 = 10_000_000;
/// What oha calls requests without a reply in time.
const TIMEOUT: &str = "timeout";

/// The figures of a run, as oha names them.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Length of the run.
    pub total_s: f64,
    /// Replies, whatever their status.
    pub replies: u64,
    /// Bytes of their bodies.
    pub data_bytes: u64,
    /// Replies by status.
    pub statuses: Vec<(u16, u64)>,
    /// Failures by what is said of them.
    pub errors: BTreeMap<&'static str, u64>,
    /// Latencies of all replies.
    pub times: Times,
    /// From the send to the first byte.
    pub first_byte: Times,
    /// To open a connection: mean, shortest, longest.
    pub opening: [Option<f64>; 3],
    /// Replies per second, interval by interval.
    pub rates: Vec<f64>,
}

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// The shortest; absent of nothing, as the others.
    pub least: Option<f64>,
    /// The longest.
    pub most: Option<f64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The longest time of each bin, with how many there are; empty of nothing.
    pub bins: Vec<(f64, u64)>,
    /// By percentage.
    pub percentiles: Vec<(f64, Option<f64>)>,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Times {
    fn of(times: &Histogram) -> Self {
        let quantile = |percent: f64| (percent, times.quantile_ns(percent / 100.0).map(seconds));
        Self {
            least: times.min_ns().map(seconds),
            most: times.max_ns().map(seconds),
            mean: times.mean_ns().map(|ns| ns / 1e9),
            bins: bins(times),
            percentiles: PERCENTILES.map(quantile).to_vec(),
        }
    }
}

/// Bins of equal width, the first of which has the shortest time alone.
fn bins(times: &Histogram) -> Vec<(f64, u64)> {
    let (Some(least_ns), Some(most_ns)) = (times.min_ns(), times.max_ns()) else {
        return Vec::new();
    };
    let step_ns = (most_ns - least_ns) as f64 / (BINS - 1) as f64;
    let mut counts = [0; BINS];
    let buckets = times.buckets();
    for bucket in buckets.iter_recorded() {
        // What is counted with the shortest is as short, for all that is known.
        let ns = match buckets.equivalent(bucket.value_iterated_to(), least_ns) {
            true => least_ns,
            false => buckets.median_equivalent(bucket.value_iterated_to()),
        };
        let above_ns = (ns.clamp(least_ns, most_ns) - least_ns) as f64;
        let bin = if step_ns > 0.0 {
            (above_ns / step_ns).ceil() as usize
        } else {
            0
        };
        counts[bin.min(BINS - 1)] += bucket.count_at_value();
    }
    let bins = counts.iter().enumerate();
    bins.map(|(bin, &count)| ((least_ns as f64 + step_ns * bin as f64) / 1e9, count))
        .collect()
}

impl Figures {
    /// The figures of `run`.
    pub fn of(options: &Options, run: &Run) -> Self {
        let summary = run.summary();
        let latencies = &run.latencies;
        let is_planned = options.rate_per_s.is_some();
        let successes = match is_planned && !options.is_corrected {
            true => &latencies.service,
            false => &latencies.response,
        };
        let mut all = successes.clone();
        all.merge(&latencies.response_error);
        let statuses: Vec<(u16, u64)> = summary.lifetime.replies.iter().collect();
        let sum =
            |one: Option<u64>, other: Option<u64>| one.map(|ns| seconds(ns + other.unwrap_or(0)));
        let (connect, tls) = (&latencies.connect, &latencies.tls);
        let opening = [
            (connect.count() > 0).then(|| latencies.opening_mean_ns() / 1e9),
            sum(connect.min_ns(), tls.min_ns()),
            sum(connect.max_ns(), tls.max_ns()),
        ];
        Self {
            total_s: seconds(run.window_ns),
            replies: summary.lifetime.replies.total(),
            data_bytes: summary.lifetime.reply_body_bytes,
            errors: errors(&summary),
            times: Times::of(&all),
            first_byte: Times::of(&latencies.first_byte),
            opening: match statuses.is_empty() {
                // Those of requests that failed are not told.
                true => [None; 3],
                false => opening,
            },
            rates: match statuses.is_empty() {
                true => Vec::new(),
                false => rates(&summary.series, run.window_ns),
            },
            statuses,
        }
    }

    /// Failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The share of replies in all that was tried; absent of nothing.
    pub fn success_rate(&self) -> Option<f64> {
        let tried = self.replies + self.failed();
        (tried > 0).then(|| self.replies as f64 / tried as f64)
    }

    /// `amount` per second; absent for a run without length.
    pub fn per_s(&self, amount: u64) -> Option<f64> {
        (self.total_s > 0.0).then(|| amount as f64 / self.total_s)
    }
}

/// Failures of requests and of attempts to connect, and what was never answered.
fn errors(summary: &Summary) -> BTreeMap<&'static str, u64> {
    let mut errors = BTreeMap::new();
    for (kind, count) in summary.lifetime.failures.iter() {
        let name = match kind {
            FailureKind::TimedOut => TIMEOUT,
            _ if kind.scope() == FailureScope::Connection => continue,
            _ => kind.label(),
        };
        *errors.entry(name).or_insert(0) += count;
    }
    let arrivals = &summary.arrivals_all;
    let unanswered = [
        summary.population.censored,
        arrivals.skipped_full,
        arrivals.skipped_late,
        arrivals.unsent,
    ];
    let unanswered: u64 = unanswered.iter().sum();
    if unanswered > 0 {
        *errors.entry(TIMEOUT).or_insert(0) += unanswered;
    }
    errors
}

/// Replies per second in the intervals that lie in the window; short ones are taken together.
fn rates(series: &Series, window_ns: u64) -> Vec<f64> {
    let interval_ns = series.interval_ns.max(1);
    let whole = ((window_ns / interval_ns) as usize).min(series.points.len());
    let together = RATE_NS.div_ceil(interval_ns).max(1);
    let points = series.points[..whole].chunks_exact(together as usize);
    points
        .map(|points| {
            let replies = points.iter().map(|point| point.successes + point.errors);
            replies.sum::<u64>() as f64 / seconds(together * interval_ns)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_of_equal_width() {
        let mut times = Histogram::default();
        (1..=11).for_each(|ms| times.record(ms * 1_000_000));
        let found = Times::of(&times);
        let counts: Vec<u64> = found.bins.iter().map(|&(_, count)| count).collect();
        assert_eq!(counts.iter().sum::<u64>(), 11);
        assert_eq!((found.bins[0].0, counts[0]), (0.001, 1));
        assert!((found.bins[10].0 - 0.011).abs() < 1e-9);
        assert_eq!((found.least, found.most), (Some(0.001), Some(0.011)));
        let one = {
            let mut times = Histogram::default();
            times.record(5_000_000);
            Times::of(&times)
        };
        assert_eq!(one.bins[0], (0.005, 1));
        let none = Times::of(&Histogram::default());
        assert!(none.bins.is_empty() && none.percentiles.iter().all(|(_, it)| it.is_none()));
    }
}
