//! Whether a quantile lies below a limit: judged by the share of the requests that take longer.

use std::borrow::Cow;

use brunt_record::{Histogram, with_bounds};

use super::{Sample, from_median_to, worth_of};
use crate::precision::confidence::Ranks;
use crate::statistics::binomial::is_share_below;
use crate::{Quantile, samples_needed};

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
        let at = |q: f64| {
            let ranks = Ranks::of(samples, q, samples as f64);
            all.bucket_at_rank(ranks.middle).map(|(_, ns)| ns)
        };
        let usual_ns = at(q.min(0.5))?;
        let high_ns = match sample.quantile(q) {
            Quantile::Known { interval, .. } => interval.ok().map(|it| it.high_ns),
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
        let Sample {
            intervals,
            window_ns,
            ..
        } = *self.sample;
        let shares = intervals.shares(ns, shorter, window_ns);
        let unfinished = self.sample.unfinished.count() as f64;
        let worth = worth_of(&shares, unfinished, samples as f64, shorter);
        // With too few parts to see how they vary, they may all come of one event.
        worth.unwrap_or(samples as f64 / reach)
    }
}
