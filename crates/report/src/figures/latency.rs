//! The figures of one distribution of durations, and of the parts of a tail.

use std::collections::BTreeMap;

use brunt_judge::{
    CleanFigures, Figure, Interval, NoInterval, Quantile, ResponseQuantiles, RunFigures,
};
use brunt_record::{Histogram, MeanParts, Run, StageRecord};
use serde::Serialize;

/// A distribution, nanoseconds. A quantile is null when there are too few samples for it, or when
/// only a lower bound is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    /// Samples.
    pub(crate) count: u64,
    /// The smallest, exact.
    pub(crate) min_ns: Figure<u64>,
    /// The mean of those that ended.
    pub(crate) mean_ns: Figure,
    /// The median.
    pub(crate) p50_ns: Figure<u64>,
    /// Three in four are not above it.
    pub(crate) p75_ns: Figure<u64>,
    /// Nine in ten are not above it.
    pub(crate) p90_ns: Figure<u64>,
    /// 19 in 20 are not above it.
    pub(crate) p95_ns: Figure<u64>,
    /// 99 in 100 are not above it.
    pub(crate) p99_ns: Figure<u64>,
    /// 999 in 1,000 are not above it.
    pub(crate) p99_9_ns: Figure<u64>,
    /// 9,999 in 10,000 are not above it.
    pub(crate) p99_99_ns: Figure<u64>,
    /// The largest of those that ended, exact.
    pub(crate) max_ns: Figure<u64>,
    /// Two-sided 95 % intervals of the quantiles that are known, by name, such as `p99_9`; null
    /// where the run cannot tell how well it is known. Of response times alone: how other
    /// durations varied over the window is not recorded.
    pub(crate) interval_95: BTreeMap<String, Figure<Interval>>,
    /// Lower bounds, nanoseconds, by name, such as `p99_9`, `mean` or `max`, where requests that
    /// were never answered would have taken longer.
    pub(crate) at_least_ns: BTreeMap<String, u64>,
}

/// The mean parts of response times, nanoseconds, from the connections with kernel stamps. They
/// add up to `response_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct ResponseParts {
    /// The mean response time.
    pub(crate) response_ns: f64,
    /// What it consists of. `lag_send_ns` (framing and encrypting are part of it),
    /// `lag_receive_ns` (decrypting is part of it) and `parse_ns` are brunt's own.
    #[serde(flatten)]
    pub(crate) parts: MeanParts,
}

impl ResponseParts {
    pub(super) fn of(parts: MeanParts) -> Self {
        Self {
            response_ns: parts.response_ns(),
            parts,
        }
    }
}

impl Latency {
    /// The figures of `histogram`.
    pub(super) fn new(histogram: &Histogram) -> Self {
        Self::with_quantiles(histogram, |q| Quantile::of(histogram, q))
    }

    /// The figures of the response times of `run`. Its quantiles count requests that were never
    /// answered as longer than brunt waited for them.
    pub(crate) fn of_response(run: &Run) -> Self {
        let quantile = |q| run.response_quantile(q);
        let latency = Self::with_quantiles(&run.latencies.response, quantile);
        latency.with_bounds(
            run.latencies.response_mean_at_least_ns(),
            run.latencies.response_max_at_least_ns(),
        )
    }

    /// The figures of the response times of `run` together with opening the connection. Its
    /// quantiles count requests that were never answered as longer than brunt waited for them.
    pub(super) fn with_connect(run: &Run) -> Self {
        let quantile = |q| run.with_connect_quantile(q);
        let latency = Self::with_quantiles(&run.latencies.with_connect, quantile);
        latency.with_bounds(
            run.with_connect_mean_at_least_ns(),
            run.with_connect_max_at_least_ns(),
        )
    }

    /// The figures of the response times of the requests of one stage. Its quantiles count requests
    /// that were never answered as longer than brunt waited for them.
    pub(super) fn of_stage(stage: &StageRecord) -> Self {
        let quantile = |q| stage.response_quantile(q);
        let latency = Self::with_quantiles(&stage.response, quantile);
        latency.with_bounds(
            stage.response_mean_at_least_ns(),
            stage.response_max_at_least_ns(),
        )
    }

    /// The figures of the response times of the parts of a window in which the hypervisor took
    /// nothing.
    pub(crate) fn of_clean(clean: &CleanFigures) -> Self {
        Self::with_quantiles(&clean.response, |q| clean.response_quantile(q))
    }

    /// Adds the least values of mean and maximum, where these are not known.
    fn with_bounds(mut self, mean_ns: Option<u64>, max_ns: Option<u64>) -> Self {
        for (name, ns) in [("mean", mean_ns), ("max", max_ns)] {
            self.at_least_ns.extend(ns.map(|ns| (name.to_owned(), ns)));
        }
        self
    }

    fn with_quantiles(histogram: &Histogram, quantile: impl Fn(f64) -> Quantile) -> Self {
        const NO_SAMPLE: &str = "no sample";
        let (mut interval_95, mut at_least_ns) = (BTreeMap::new(), BTreeMap::new());
        let mut known = |name: &str, q: f64| match quantile(q) {
            Quantile::Known { ns, interval } => {
                if interval != Err(NoInterval::NotOverTime) {
                    interval_95.insert(name.to_owned(), interval.into());
                }
                Figure::Known(ns)
            }
            Quantile::AtLeast { ns } => {
                at_least_ns.insert(name.to_owned(), ns);
                Figure::Absent("only a lower bound is known".to_owned())
            }
            Quantile::TooFew { samples, needed } => {
                Figure::Absent(format!("too few samples ({samples}, need {needed})"))
            }
        };
        Self {
            count: histogram.count(),
            min_ns: Figure::of(histogram.min_ns(), NO_SAMPLE),
            mean_ns: Figure::of(histogram.mean_ns(), NO_SAMPLE),
            p50_ns: known("p50", 0.5),
            p75_ns: known("p75", 0.75),
            p90_ns: known("p90", 0.9),
            p95_ns: known("p95", 0.95),
            p99_ns: known("p99", 0.99),
            p99_9_ns: known("p99_9", 0.999),
            p99_99_ns: known("p99_99", 0.9999),
            max_ns: Figure::of(histogram.max_ns(), NO_SAMPLE),
            interval_95,
            at_least_ns,
        }
    }
}
