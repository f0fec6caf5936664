//! Quantiles with their intervals, that say when they are not known (invariants A2 and L5).

use crate::{Histogram, Run};

/// Half the width of a two-sided 95 % interval, in standard deviations.
const Z_95: f64 = 1.96;
/// How far the estimates with unfinished requests at their bounds and at infinity may differ for
/// the quantile to be known.
const UNFINISHED_DIFFER: f64 = 0.01;
/// Sub-windows that an interval is taken from.
const PARTS_MIN: usize = 20;
const PARTS_MAX: usize = 30;
/// The 0.975-quantiles of Student's t with `PARTS_MIN - 1` to `PARTS_MAX - 1` degrees of freedom.
const STUDENT_T: [f64; PARTS_MAX - PARTS_MIN + 1] = [
    2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
];

/// A two-sided 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its lower end, nanoseconds.
    pub low_ns: u64,
    /// Its upper end, nanoseconds.
    pub high_ns: u64,
}

/// A quantile, or why it is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// It is known.
    Known {
        /// Its value, nanoseconds.
        ns: u64,
        /// Where the true quantile lies; holds `ns`.
        interval: Interval,
    },
    /// Too many requests never ended, so that only a lower bound is known.
    AtLeast {
        /// The bound, nanoseconds.
        ns: u64,
    },
    /// A two-sided 95 % interval would reach beyond the samples.
    TooFew {
        /// Samples at hand.
        samples: u64,
        /// Samples needed.
        needed: u64,
    },
}

/// The fewest samples with which a two-sided 95 % interval of the `q`-quantile (0 < q < 1) lies
/// within the samples on both sides: `max(q, 1-q)^n <= 0.025`, so 368 for p99 and 3,688 for p99.9.
/// For any other `q` no number suffices (`u64::MAX`).
pub fn samples_needed(q: f64) -> u64 {
    if !(q > 0.0 && q < 1.0) {
        return u64::MAX;
    }
    (0.025_f64.ln() / q.max(1.0 - q).ln()).ceil() as u64
}

/// The ranks (from 1) of the `q`-quantile of `samples` values, at least one, and of the ends of
/// its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranks {
    low: u64,
    middle: u64,
    high: u64,
}

impl Ranks {
    fn of(samples: u64, q: f64) -> Self {
        let expected = samples as f64 * q;
        let margin = Z_95 * (expected * (1.0 - q)).sqrt();
        let rank = |rank: f64| (rank as u64).clamp(1, samples);
        Self {
            low: rank((expected - margin).floor()),
            // As `value_at_quantile` has it: 0.99 of 100 is the 99th for all that floats say.
            middle: rank((expected - 1e-9 * expected).ceil()),
            high: rank((expected + margin).ceil() + 1.0),
        }
    }
}

impl Histogram {
    /// The `q`-quantile with its interval from order statistics, when there are samples enough.
    pub fn quantile(&self, q: f64) -> Quantile {
        quantile_of(self, &Self::default(), q)
    }
}

impl Run {
    /// The `q`-quantile of the response time of successful replies, with what is known of those
    /// that never came. The interval is the wider of that from order statistics and that from the
    /// quantiles of sub-windows, which sees what the first does not: that neighbours are alike.
    pub fn response_quantile(&self, q: f64) -> Quantile {
        let latencies = &self.latencies;
        match quantile_of(&latencies.response, &latencies.unfinished, q) {
            Quantile::Known { ns, interval } => {
                let half_ns = self.sub_window_half_width_ns(q).unwrap_or(0);
                let by_parts = Interval {
                    low_ns: ns
                        .saturating_sub(half_ns)
                        .max(latencies.response.min_ns().unwrap_or(0)),
                    high_ns: ns.saturating_add(half_ns),
                };
                let width = |interval: &Interval| interval.high_ns - interval.low_ns;
                let interval = if width(&by_parts) > width(&interval) {
                    by_parts
                } else {
                    interval
                };
                Quantile::Known { ns, interval }
            }
            unknown => unknown,
        }
    }

    /// Half the width of the t interval around the mean of the sub-windows' `q`-quantiles. Absent
    /// when too few sub-windows have samples enough.
    fn sub_window_half_width_ns(&self, q: f64) -> Option<u64> {
        let intervals = &self.latencies.intervals;
        let parts = parts_of(intervals.len())?;
        let needed = samples_needed(q);
        let quantiles: Vec<f64> = (0..parts)
            .map(|part| {
                let edge = |part: usize| part * intervals.len() / parts;
                intervals.joined(edge(part)..edge(part + 1))
            })
            .filter(|part| part.len() >= needed)
            .map(|part| part.value_at_quantile(q) as f64)
            .collect();
        let t = STUDENT_T.get(quantiles.len().checked_sub(PARTS_MIN)?)?;
        let n = quantiles.len() as f64;
        let mean = quantiles.iter().sum::<f64>() / n;
        let squares = quantiles.iter().map(|value| (value - mean).powi(2));
        let variance = squares.sum::<f64>() / (n - 1.0);
        Some((t * (variance / n).sqrt()) as u64)
    }
}

/// Into how many sub-windows so many intervals are best dealt out: such that the fewest are over.
fn parts_of(intervals: usize) -> Option<usize> {
    (PARTS_MIN..=PARTS_MAX.min(intervals))
        .min_by_key(|&parts| (intervals % parts, PARTS_MAX - parts))
}

/// The quantile of `finished` durations and of `unfinished` ones, of which lower bounds are known.
fn quantile_of(finished: &Histogram, unfinished: &Histogram, q: f64) -> Quantile {
    let samples = finished.count().saturating_add(unfinished.count());
    let needed = samples_needed(q);
    if samples < needed {
        return Quantile::TooFew { samples, needed };
    }
    let ranks = Ranks::of(samples, q);
    let merged;
    let least = if unfinished.count() == 0 {
        finished
    } else {
        merged = {
            let mut merged = finished.clone();
            merged.merge(unfinished);
            merged
        };
        &merged
    };
    let (Some((low_ns, _)), Some((_, ns))) = (
        least.bucket_at_rank(ranks.low),
        least.bucket_at_rank(ranks.middle),
    ) else {
        return Quantile::TooFew { samples, needed };
    };
    // At infinity the unfinished ones take the highest ranks.
    let most = finished.bucket_at_rank(ranks.middle);
    match (most, finished.bucket_at_rank(ranks.high)) {
        (Some((_, most_ns)), Some((_, high_ns)))
            if most_ns as f64 <= ns as f64 * (1.0 + UNFINISHED_DIFFER) =>
        {
            let interval = Interval { low_ns, high_ns };
            Quantile::Known { ns, interval }
        }
        _ => Quantile::AtLeast { ns },
    }
}
