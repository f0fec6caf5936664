//! How well the headline and the quantiles of the response time are known: 95 % intervals from how
//! they vary over the window, quantiles that say when they are not known (invariant L5), and limits
//! that they are held against.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use brunt_load::Schedule;
use brunt_record::{Histogram, Intervals, NameRecord, Run, Share, StageRecord, with_bounds};

use crate::behaviour::steadiness::whole_points;
use crate::statistics::{PARTS_LEAST, count_shown_below, half_width_of_sum, is_share_below};
use crate::{Summary, units};

/// The quantiles on the way from the median to another one, and their complements below it.
const ON_THE_WAY: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

/// What replies are worth for a quantile is worked out of what they are worth there and of the
/// least that they are worth on the way from the median. In a tail there are few clusters of slow
/// replies, and where these happen to be fewer still, replies seem to be worth more than they are.
/// The latter counts as much as so many clusters, each worth one independent slow reply. With 0,
/// intervals of the p99 that are printed hold the truth in 89 of 100 windows that are 50 times as
/// long as the correlation; with 6 they are wider without need where the window is 200 times as
/// long. `precision/tests.rs` has the processes.
const CLUSTERS_ON_THE_WAY: f64 = 3.0;

/// Replies tell more than as many independent ones where slow ones come regularly, as in stalls at
/// even times: up to so many times as much.
const REGULAR_MOST: f64 = 2.0;

/// Quantiles of response times, by their records.
pub trait ResponseQuantiles {
    /// The `q`-quantile of the response time of successful replies, with what is known of those
    /// that never came. It has its interval where the record holds how response times varied over
    /// the window.
    fn response_quantile(&self, q: f64) -> Quantile;
}

impl ResponseQuantiles for Run {
    fn response_quantile(&self, q: f64) -> Quantile {
        response_sample(self).quantile(q)
    }
}

impl ResponseQuantiles for StageRecord {
    fn response_quantile(&self, q: f64) -> Quantile {
        quantile_of(&self.response, &self.unfinished, q)
    }
}

impl ResponseQuantiles for NameRecord {
    fn response_quantile(&self, q: f64) -> Quantile {
        quantile_of(&self.response.expand(), &self.unfinished.expand(), q)
    }
}

/// The response times of a run.
pub(crate) fn response_sample(run: &Run) -> Sample<'_> {
    let latencies = &run.latencies;
    Sample {
        finished: &latencies.response,
        unfinished: &latencies.unfinished,
        intervals: &latencies.intervals,
        window_ns: run.window_ns,
        is_planned_to_vary: is_planned_to_vary(run),
    }
}

/// [`crate::RunFigures::successes_interval`].
pub(crate) fn successes_interval(run: &Run) -> Result<RateInterval, NoInterval> {
    if is_planned_to_vary(run) {
        return Err(NoInterval::PlannedToVary);
    }
    let summary = Summary::of(run, &run.agents);
    let rate = summary.successes_per_s.known();
    let rate = rate.ok_or(NoInterval::NoRate)?;
    let counts = whole_points(run, &summary.series);
    rate_interval(rate, counts, summary.series.interval_ns)
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
    /// Response times of requests that ended, over time.
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
    let schedule = run.plan.load.model.schedule();
    schedule.is_some_and(Schedule::varies)
}

/// The interval of the `q`-quantile of the response time, which is `ns`.
///
/// Its ends are order statistics, as for independent values, but of as many as the replies are
/// worth: the share of replies up to a quantile varies from interval to interval of the window,
/// and its variation at low frequencies says how much the share of the whole window would vary. A
/// value lies below the interval where the share of replies up to it is shown to be less than `q`
/// by the interval of Clopper and Pearson, and above it likewise (Woodruff 1952, Journal of the
/// American Statistical Association 47; Korn and Graubard 1998, Survey Methodology 24). So the
/// interval is as asymmetric as the distribution is, and no end lies beyond its extremes.
fn response_interval(sample: &Sample<'_>, q: f64, ns: u64) -> Result<Interval, NoInterval> {
    if sample.is_planned_to_vary {
        return Err(NoInterval::PlannedToVary);
    }
    let finished = sample.finished;
    let all = with_bounds(finished, sample.unfinished);
    let samples = all.count();
    let (mut low, mut high) = (1, 1);
    let mut least_worth = f64::INFINITY;
    for on_the_way in from_median_to(q) {
        let middle = all.bucket_at_rank(rank_of(samples, on_the_way));
        let (_, ns) = middle.unwrap_or((ns, ns));
        let worth = worth_at(sample, on_the_way, ns, samples)?;
        least_worth = least_worth.min(worth);
        let clusters = worth * on_the_way.min(1.0 - on_the_way);
        let weight_of_least = CLUSTERS_ON_THE_WAY / (CLUSTERS_ON_THE_WAY + clusters);
        let worth = worth * (least_worth / worth).powf(weight_of_least);
        match (ranks_of_ends(samples, on_the_way, worth), q >= 0.5) {
            // What lies beyond a quantile lies beyond the ends of its interval.
            (Some(ends), true) => (low, high) = (low.max(ends.0), high.max(ends.1)),
            (Some(ends), false) if high > 1 => (low, high) = (low.min(ends.0), high.min(ends.1)),
            (Some(ends), false) => (low, high) = ends,
            (None, _) if on_the_way == q => {
                let times = samples_needed(q).div_ceil((worth as u64).max(1)).max(2);
                return Err(NoInterval::TooAlike { times });
            }
            (None, _) => {}
        }
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

/// The ranks (from 1) of the ends of the interval of the `q`-quantile of `samples` values that tell
/// as much as `worth` independent ones. Absent where it reaches beyond the values.
fn ranks_of_ends(samples: u64, q: f64, worth: f64) -> Option<(u64, u64)> {
    let scale = samples as f64 / worth;
    let below = count_shown_below(worth, q)?;
    let above = count_shown_below(worth, 1.0 - q)?;
    let low = (below * scale).floor() as u64;
    let high = samples.saturating_sub((above * scale).floor() as u64);
    Some((low.clamp(1, samples), high.clamp(1, samples)))
}

/// The quantiles from the median to the `q`-quantile.
fn from_median_to(q: f64) -> impl Iterator<Item = f64> {
    let on_the_way = ON_THE_WAY
        .into_iter()
        .map(move |share| if q >= 0.5 { share } else { 1.0 - share })
        .take_while(move |share| (share - 0.5).abs() < (q - 0.5).abs());
    on_the_way.chain([q])
}

/// The effective sample size of the `q`-quantile, which is `ns`: as many independent values would
/// tell as much about it as the `samples` at hand. Never more than [`REGULAR_MOST`] times as many.
fn worth_at(sample: &Sample<'_>, q: f64, ns: u64, samples: u64) -> Result<f64, NoInterval> {
    let samples = samples as f64;
    let below = q * samples;
    let expected = below.min(sample.intervals.count() as f64);
    let shares = sample.intervals.shares(ns, expected, sample.window_ns);
    let unfinished = sample.unfinished.count() as f64;
    let worth = worth_of(&shares, unfinished, samples, below)?;
    Ok(worth.min(REGULAR_MOST * samples))
}

/// The effective sample size of a share, `below` of `samples`, which varies over the parts of a
/// window as in `shares`: as many independent values would tell as much about it; infinite where
/// the share does not vary. Of `apart` values it is not recorded when they came: they may come of
/// one event.
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
    let parts = equal_parts(shares.iter().map(|share| share.all));
    let too_few = NoInterval::TooFewParts {
        parts: parts as u64,
        needed: PARTS_LEAST as u64,
    };
    if parts < PARTS_LEAST as f64 {
        return Err(too_few);
    }
    let deviations = shares.iter();
    let deviations = deviations.map(|share| share.below - share.all * below / all);
    let deviations: Vec<f64> = deviations.collect();
    let half = half_width_of_sum(&deviations).ok_or(too_few)?;
    let half = half.hypot(Z_95 * q * apart);
    let variance_independent = samples * q * (1.0 - q);
    let worth = samples * variance_independent * (Z_95 / half).powi(2);
    Ok(if worth.is_nan() { samples } else { worth })
}

/// The upper end of the 95 % interval of the mean `mean_ns` of response times over time: that of a
/// ratio, the sum of the times over their number. Its intervals say how far their sums are from
/// what their numbers of replies let expect. Absent where too few of them have replies.
pub(crate) fn mean_at_most_ns(intervals: &Intervals, mean_ns: f64) -> Option<f64> {
    let each = intervals.filled().map(|filled| {
        filled.fold((0.0, 0.0), |(count, sum), (ns, more)| {
            (count + more as f64, sum + ns as f64 * more as f64)
        })
    });
    let each: Vec<(f64, f64)> = each.collect();
    if equal_parts(each.iter().map(|(count, _)| *count)) < PARTS_LEAST as f64 {
        return None;
    }
    let count: f64 = each.iter().map(|(count, _)| count).sum();
    let ratio = each.iter().map(|(_, sum)| sum).sum::<f64>() / count;
    let deviations = each.iter().map(|(count, sum)| sum - ratio * count);
    let half = half_width_of_sum(&deviations.collect::<Vec<f64>>())?;
    Some(mean_ns + half / count)
}

/// How many parts with equally many replies tell as much of how they vary as parts with `counts`.
pub(crate) fn equal_parts(counts: impl Iterator<Item = f64>) -> f64 {
    let (all, squares) = counts.fold((0.0, 0.0), |(all, squares), count| {
        (all + count, squares + count * count)
    });
    if squares > 0.0 {
        all * all / squares
    } else {
        0.0
    }
}

/// Half the width of a two-sided 95 % interval, in standard deviations.
pub(crate) const Z_95: f64 = 1.96;

/// A two-sided 95 % confidence interval of a quantile: in 95 of 100 runs it holds the one of a much
/// longer run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Interval {
    /// The lower end of the interval, nanoseconds.
    pub low_ns: u64,
    /// The upper end of the interval, nanoseconds.
    pub high_ns: u64,
}

/// A two-sided 95 % confidence interval of a rate.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct RateInterval {
    /// The lower end of the interval, per second.
    pub low_per_s: f64,
    /// The upper end of the interval, per second.
    pub high_per_s: f64,
}

/// Why a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoInterval {
    /// It is not recorded when the durations were measured, so that neighbours may have been alike.
    #[error("how it varied over the window is not recorded")]
    NotOverTime,
    /// What varies over the window was planned to vary.
    #[error("the rate is planned to vary over the window")]
    PlannedToVary,
    /// There are no requests, or no window.
    #[error("there is no rate")]
    NoRate,
    /// What is not seen often over the window cannot be seen to vary.
    #[error("too few parts of the window have replies ({parts}, need {needed})")]
    TooFewParts {
        /// Parts of the window that hold the replies.
        parts: u64,
        /// Parts needed.
        needed: u64,
    },
    /// Replies that are near in time are alike, so that the interval would reach beyond them all.
    #[error("it varied over the window; a run about {times} times as long would tell")]
    TooAlike {
        /// A run that is about so many times as long would have an interval: 2 or more.
        times: u64,
    },
    /// The upper end of the interval is among requests that were never answered.
    #[error("requests that were never answered may lie within it")]
    Unanswered,
}

/// The rank (from 1) of the `q`-quantile of `samples` values, at least one.
pub(crate) fn rank_of(samples: u64, q: f64) -> u64 {
    let expected = samples as f64 * q;
    // As `value_at_quantile` has it: 0.99 of 100 is the 99th for all that floats say.
    let rank = (expected - 1e-9 * expected).ceil();
    (rank as u64).clamp(1, samples)
}

/// The rank of the upper end of its interval, if the values are independent.
fn rank_of_upper_end(samples: u64, q: f64) -> u64 {
    let margin = Z_95 * (samples as f64 * q * (1.0 - q)).sqrt();
    let rank = (samples as f64 * q + margin).ceil() + 1.0;
    (rank as u64).clamp(1, samples)
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

/// How far the estimates with unfinished requests at their bounds and at infinity may differ for
/// the quantile to be known.
const UNFINISHED_DIFFER: f64 = 0.01;

/// A quantile, or why it is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// The quantile is known.
    Known {
        /// The quantile, nanoseconds.
        ns: u64,
        /// Where the true quantile lies, or why that is not known; holds `ns`.
        interval: Result<Interval, NoInterval>,
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

/// In words: `1.24 ms`, `≥10.0 s`, `too few`.
impl fmt::Display for Quantile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known { ns, .. } => formatter.write_str(&units::duration(*ns)),
            // A bound of 0 says nothing.
            Self::AtLeast { ns: 0 } => formatter.write_str("unknown"),
            Self::AtLeast { ns } => write!(formatter, "≥{}", units::duration(*ns)),
            Self::TooFew { .. } => formatter.write_str("too few"),
        }
    }
}

impl Quantile {
    /// The quantile, where it is known, nanoseconds.
    pub fn known_ns(self) -> Option<u64> {
        match self {
            Self::Known { ns, .. } => Some(ns),
            Self::AtLeast { .. } | Self::TooFew { .. } => None,
        }
    }

    /// The `q`-quantile of `histogram`, when there are samples enough. It has no interval: that
    /// needs to know how the durations varied over the window.
    pub fn of(histogram: &Histogram, q: f64) -> Self {
        quantile_of(histogram, &Histogram::default(), q)
    }
}

/// The quantile of `finished` durations and of `unfinished` ones, of which lower bounds are known.
pub(crate) fn quantile_of(finished: &Histogram, unfinished: &Histogram, q: f64) -> Quantile {
    let samples = finished.count().saturating_add(unfinished.count());
    let needed = samples_needed(q);
    if samples < needed {
        return Quantile::TooFew { samples, needed };
    }
    let middle = rank_of(samples, q);
    let Some((_, ns)) = with_bounds(finished, unfinished).bucket_at_rank(middle) else {
        return Quantile::TooFew { samples, needed };
    };
    // At infinity the unfinished ones take the highest ranks.
    let most = finished.bucket_at_rank(middle);
    match (most, finished.bucket_at_rank(rank_of_upper_end(samples, q))) {
        (Some((_, most_ns)), Some(_))
            if most_ns as f64 <= ns as f64 * (1.0 + UNFINISHED_DIFFER) =>
        {
            Quantile::Known {
                ns,
                interval: Err(NoInterval::NotOverTime),
            }
        }
        _ => Quantile::AtLeast { ns },
    }
}

/// The upper end of an interval is found to this share of where it is looked for.
const RESOLUTION: u64 = 128;

/// Response times that are compared with limits of their `q`-quantile.
///
/// Where the quantile has an interval, it lies below a limit that its upper end does not reach.
///
/// Else it lies below a limit where less than `1 - q` of the requests reach it, as where the limit
/// is far from anything that was measured. The share that does is taken at the upper end of its
/// 95 % interval: that of Clopper and Pearson, of as many requests and as many that reach the limit
/// as the requests at hand are worth (Korn and Graubard 1998, Survey Methodology 24). Requests that
/// were never answered reach every limit.
///
/// What they are worth comes from how the share varies over the window. Where few reach the limit,
/// that is not seen in these, but in those below it: each threshold counts from the middle between
/// the median and the limit on. Where none reaches as far, all count.
pub(crate) struct Limits<'a> {
    sample: &'a Sample<'a>,
    q: f64,
    /// Finished and unfinished.
    all: Cow<'a, Histogram>,
    /// The median; of a quantile below it, that one.
    usual_ns: u64,
    /// Quantiles from the median to this one, with what the requests are worth there.
    on_the_way: Vec<(u64, f64)>,
    /// The upper end of its interval, where it has one.
    high_ns: Option<u64>,
}

impl<'a> Limits<'a> {
    /// The limits on a quantile of `sample`. Absent with too few response times for it.
    pub(crate) fn of(sample: &'a Sample<'a>, q: f64) -> Option<Self> {
        let all = with_bounds(sample.finished, sample.unfinished);
        let samples = all.count();
        if samples < samples_needed(q) {
            return None;
        }
        let at = |q: f64| Some(all.bucket_at_rank(rank_of(samples, q))?.1);
        let usual_ns = at(q.min(0.5))?;
        let high_ns = match sample.quantile(q) {
            Quantile::Known { interval, .. } => interval.ok().map(|interval| interval.high_ns),
            _ => None,
        };
        let on_the_way: Vec<u64> = from_median_to(q).filter_map(at).collect();
        let mut limits = Self {
            sample,
            q,
            all,
            usual_ns,
            on_the_way: Vec::new(),
            high_ns,
        };
        if high_ns.is_none() {
            let worth = on_the_way.into_iter().map(|ns| (ns, limits.worth(ns)));
            limits.on_the_way = worth.collect();
        }
        Some(limits)
    }

    /// Whether the quantile is shown to lie below `limit_ns`.
    pub(crate) fn is_below(&self, limit_ns: u64) -> bool {
        if let Some(high_ns) = self.high_ns {
            return high_ns < limit_ns;
        }
        let samples = self.all.count() as f64;
        let from_ns = u64::midpoint(self.usual_ns, limit_ns);
        let mut worth = self.worth(limit_ns);
        if from_ns > self.usual_ns {
            worth = worth.min(self.worth(from_ns));
        }
        let between = self.on_the_way.iter();
        let between = between.filter(|(ns, _)| (from_ns..limit_ns).contains(ns));
        let worth = between.fold(worth, |least, (_, worth)| least.min(*worth));
        let reach = self.reach(limit_ns) * worth / samples;
        is_share_below(reach, worth, 1.0 - self.q)
    }

    /// The upper end of the quantile's 95 % interval: the least limit that it is shown to lie
    /// below, at most `limit_ns` if it lies below that, and else above. Never beyond the slowest
    /// reply, where `limit_ns` is. Absent where requests that were never answered leave none.
    pub(crate) fn upper_end_ns(&self, limit_ns: u64) -> Option<u64> {
        if self.high_ns.is_some() {
            return self.high_ns;
        }
        let most_ns = self.all.max_ns().unwrap_or(0);
        let is_below = self.is_below(limit_ns);
        let (mut low_ns, mut high_ns) = if is_below {
            (self.usual_ns.min(limit_ns), limit_ns)
        } else {
            (limit_ns, most_ns.saturating_mul(2).max(limit_ns))
        };
        if !is_below && !self.is_below(high_ns) {
            return None;
        }
        while high_ns - low_ns > (high_ns / RESOLUTION).max(1) {
            let middle_ns = u64::midpoint(low_ns, high_ns);
            if self.is_below(middle_ns) {
                high_ns = middle_ns;
            } else {
                low_ns = middle_ns;
            }
        }
        let most_ns = if is_below { most_ns.max(1) } else { high_ns };
        Some(high_ns.min(most_ns))
    }

    /// How many take `ns` or longer, or may: of a bucket that holds it, all.
    fn reach(&self, ns: u64) -> f64 {
        let (finished, unfinished) = (self.sample.finished, self.sample.unfinished);
        (finished.count_from(ns) as f64) + unfinished.count() as f64
    }

    /// The effective sample size of the share of requests that take `ns` or longer: as many
    /// independent requests would tell as much.
    fn worth(&self, ns: u64) -> f64 {
        let samples = self.all.count();
        let reach = self.reach(ns);
        let shorter = samples as f64 - reach;
        if reach <= 0.0 || shorter <= 0.0 {
            return samples as f64;
        }
        let ns = ns.saturating_sub(1);
        let sample = self.sample;
        let shares = sample.intervals.shares(ns, shorter, sample.window_ns);
        let unfinished = sample.unfinished.count() as f64;
        let worth = worth_of(&shares, unfinished, samples as f64, shorter);
        // Few values may seem regular by chance. With too few parts to see how they vary, they may
        // all come of one event.
        worth.map_or(samples as f64 / reach, |worth| worth.min(samples as f64))
    }
}
