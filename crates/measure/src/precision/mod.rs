//! How well the headline and the quantiles of the response time are known: 95 % intervals from how
//! they vary over the window.

#[cfg(test)]
mod coverage;
mod limit;
#[cfg(test)]
mod tests;

pub(crate) use self::limit::Limits;

use crate::confidence::{Ranks, Z_95, samples_needed};
use crate::intervals::Share;
use crate::quantile::quantile_of;
use crate::steadiness::whole_points;
use crate::unfinished::with_bounds;
use crate::variation::{PARTS_LEAST, half_width_of_sum};
use crate::{
    Histogram, Interval, Intervals, NoInterval, Quantile, RateInterval, Run, ScheduleDescription,
};

/// The quantiles on the way from the median to another one, and their complements below it.
const ON_THE_WAY: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

impl Run {
    /// The `q`-quantile of the response time of successful replies, with what is known of those
    /// that never came, and with its interval.
    pub fn response_quantile(&self, q: f64) -> Quantile {
        self.response_sample().quantile(q)
    }

    pub(crate) fn response_sample(&self) -> Sample<'_> {
        let latencies = &self.latencies;
        Sample {
            finished: &latencies.response,
            unfinished: &latencies.unfinished,
            intervals: &latencies.intervals,
            window_ns: self.window_ns,
            is_planned_to_vary: is_planned_to_vary(self),
        }
    }

    /// The interval of the rate of successful replies: how much it would vary from one such window
    /// to the next, from how it varies within this one.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn successes_interval(&self) -> Result<RateInterval, NoInterval> {
        if is_planned_to_vary(self) {
            return Err(NoInterval::PlannedToVary);
        }
        let summary = self.summary();
        let rate = summary.successes_per_s.known();
        let rate = rate.ok_or(NoInterval::NoWindow)?;
        let counts = whole_points(self, &summary.series);
        rate_interval(rate, counts, summary.series.interval_ns)
    }
}

/// The interval of a rate from the counts of equal parts of `part_ns`.
///
/// # Errors
///
/// There are too few parts.
pub(crate) fn rate_interval(
    per_s: f64,
    mut counts: Vec<f64>,
    part_ns: u64,
) -> Result<RateInterval, NoInterval> {
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter_mut().for_each(|count| *count -= mean);
    let half = half_width_of_sum(&counts).ok_or(NoInterval::TooFewParts {
        parts: counts.len() as u64,
        needed: PARTS_LEAST as u64,
    })?;
    let half = half * 1e9 / (counts.len() as f64 * part_ns as f64);
    Ok(RateInterval {
        low_per_s: (per_s - half).max(0.0),
        high_per_s: per_s + half,
    })
}

/// Response times, and how they varied over time.
pub(crate) struct Sample<'a> {
    pub(crate) finished: &'a Histogram,
    /// Lower bounds of those that never ended.
    pub(crate) unfinished: &'a Histogram,
    /// Those that ended, over time.
    pub(crate) intervals: &'a Intervals,
    /// How long that time is.
    pub(crate) window_ns: u64,
    /// Whether the load was to change over it.
    pub(crate) is_planned_to_vary: bool,
}

impl Sample<'_> {
    /// A quantile with its interval.
    pub(crate) fn quantile(&self, q: f64) -> Quantile {
        match quantile_of(self.finished, self.unfinished, q) {
            Quantile::Known { ns, .. } => Quantile::Known {
                ns,
                interval: response_interval(self, q, ns),
            },
            unknown => unknown,
        }
    }
}

pub(crate) fn is_planned_to_vary(run: &Run) -> bool {
    let schedule = run.plan.model.schedule();
    schedule.is_some_and(ScheduleDescription::varies)
}

/// The interval of the `q`-quantile of the response time, which is `ns`.
///
/// Its ends are order statistics, as for independent values, but of as many as the replies are
/// worth: the share of replies up to a quantile varies from interval to interval of the window,
/// and its variation at low frequencies tells how much the share of the whole window would vary.
/// So the interval is as asymmetric as the distribution is, and no end lies beyond its extremes.
/// A tail is not better known than what lies below it.
fn response_interval(sample: &Sample<'_>, q: f64, ns: u64) -> Result<Interval, NoInterval> {
    if sample.is_planned_to_vary {
        return Err(NoInterval::PlannedToVary);
    }
    let (finished, unfinished) = (sample.finished, sample.unfinished);
    let all = with_bounds(finished, unfinished);
    let samples = all.count();
    let mut worth = samples as f64;
    let (mut low, mut high) = (1, samples);
    for q in from_median_to(q) {
        let ranks = Ranks::of(samples, q, worth);
        let (_, ns) = all.bucket_at_rank(ranks.middle).unwrap_or((ns, ns));
        worth = worth.min(worth_at(sample, q, ns, samples)?);
        let ranks = Ranks::of(samples, q, worth);
        // What lies beyond a quantile lies beyond the ends of its interval.
        (low, high) = if q >= 0.5 {
            (low.max(ranks.low), ranks.high)
        } else {
            (ranks.low, high.min(ranks.high))
        };
    }
    let needed = samples_needed(q);
    if worth < needed as f64 {
        return Err(NoInterval::TooAlike {
            samples,
            worth: worth as u64,
            needed,
        });
    }
    let low_ns = all.bucket_at_rank(low).map_or(ns, |(low_ns, _)| low_ns);
    let (_, high_ns) = finished
        .bucket_at_rank(high)
        .ok_or(NoInterval::Unanswered)?;
    // Over time, the values of a bucket were not told apart.
    let bucket = Intervals::bucket_of(ns);
    let (least_ns, most_ns) = (finished.min_ns(), finished.max_ns());
    let least_ns = least_ns.map_or(ns, |least_ns| least_ns.max(*bucket.start()));
    let most_ns = most_ns.map_or(ns, |most_ns| most_ns.min(*bucket.end()));
    Ok(Interval {
        low_ns: low_ns.min(least_ns).min(ns),
        high_ns: high_ns.max(most_ns).max(ns),
    })
}

/// The quantiles from the median to the `q`-quantile.
fn from_median_to(q: f64) -> impl Iterator<Item = f64> {
    let on_the_way = ON_THE_WAY
        .into_iter()
        .map(move |it| if q >= 0.5 { it } else { 1.0 - it })
        .take_while(move |it| (it - 0.5).abs() < (q - 0.5).abs());
    on_the_way.chain([q])
}

/// As many independent values would tell as much about the `q`-quantile, which is `ns`, as the
/// `samples` at hand; never more than there are.
fn worth_at(sample: &Sample<'_>, q: f64, ns: u64, samples: u64) -> Result<f64, NoInterval> {
    let samples = samples as f64;
    let below = q * samples;
    let expected = below.min(sample.intervals.count() as f64);
    let shares = sample.intervals.shares(ns, expected, sample.window_ns);
    worth_of(&shares, sample.unfinished.count() as f64, samples, below)
}

/// As many independent values would tell as much about a share, `below` of `samples`, as the
/// `samples` at hand, which varies over the parts of a window as in `shares`; never more than there
/// are. Of `apart` values it is not recorded when they came: they may come of one event.
///
/// # Errors
///
/// There are too few parts.
pub(crate) fn worth_of(
    shares: &[Share],
    apart: f64,
    samples: f64,
    below: f64,
) -> Result<f64, NoInterval> {
    let q = below / samples;
    let all: f64 = shares.iter().map(|share| share.all).sum();
    let below: f64 = shares.iter().map(|share| share.below).sum();
    let squares: f64 = shares.iter().map(|share| share.all * share.all).sum();
    // As many parts with equally many replies tell as much of how they vary.
    let parts = if squares > 0.0 {
        all * all / squares
    } else {
        0.0
    };
    let too_few = NoInterval::TooFewParts {
        parts: parts as u64,
        needed: PARTS_LEAST as u64,
    };
    if parts < PARTS_LEAST as f64 {
        return Err(too_few);
    }
    let deviations: Vec<f64> = shares
        .iter()
        .map(|share| share.below - share.all * below / all)
        .collect();
    let half = half_width_of_sum(&deviations).ok_or(too_few)?;
    let half = half.hypot(Z_95 * q * apart);
    let independent = Z_95 * (samples * q * (1.0 - q)).sqrt();
    let ratio = independent / half;
    Ok(samples * if ratio < 1.0 { ratio * ratio } else { 1.0 })
}
