//! Comparison of two sides by pairs of rounds: how much larger one is, with an interval, and
//! whether that may be chance.
//!
//! The unit is the round and never the request: what rounds of one side differ by holds all that
//! varies from one to the next, which requests of one round share.

use crate::Effect;
use crate::statistics::median;

/// Share of the comparisons of a server with itself in which a difference may be claimed: once in
/// 40. It is divided by the figures that are compared at once (Bonferroni), so that their intervals
/// hold together.
const CHANCE_MOST: f64 = 1.0 / 40.0;
/// Fewest pairs of which such an interval lies within what was seen, where one figure is compared.
pub const PAIRS_LEAST: usize = 7;
/// Most pairs: the distribution of ranks is counted out exactly.
pub const PAIRS_MAX: usize = 100;
/// Up to so many pairs every way to turn their signs is looked at; with more, their ranks tell.
const EXACT_PAIRS_MAX: usize = 20;

/// What pairs of rounds tell of the ratio of their two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Paired {
    /// The logarithm of the ratio: the Hodges-Lehmann estimate (the median of the means of all two
    /// pairs, and of each alone), with the interval that goes with Wilcoxon's signed-rank test
    /// (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, section 3.3). Of bounds, an
    /// end may be infinite.
    pub(crate) log_ratio: Effect,
    /// How often a difference like this or larger comes by chance if there is none: the two-sided
    /// permutation test of the mean over the signs of the pairs, and with more than 20 the
    /// signed-rank test. Absent of bounds.
    pub(crate) p_value: Option<f64>,
}

impl Paired {
    /// The ratio of side B to side A, from pairs of each of which its logarithm is known to lie
    /// between two: equal ones where it is measured, and one that is infinite where it is a bound.
    /// Each end of the interval grows with each value that it is made of, so that the interval from
    /// bounds holds the interval from the true values. The intervals of `figures` such ratios hold
    /// together. Absent with fewer than [`pairs_least`] or more than [`PAIRS_MAX`] pairs, and where
    /// neither of two is finite.
    pub(crate) fn of(logs: &[(f64, f64)], figures: usize) -> Option<Self> {
        let are_enough = (pairs_least(figures)..=PAIRS_MAX).contains(&logs.len());
        let is_known = |&(low, high): &(f64, f64)| low.is_finite() || high.is_finite();
        if !are_enough || !logs.iter().all(is_known) {
            return None;
        }
        let (lows, highs): (Vec<f64>, Vec<f64>) = logs.iter().copied().unzip();
        Some(Self {
            log_ratio: interval(&lows, &highs, tail(figures))?,
            p_value: (lows == highs).then(|| permutation_p(&lows)),
        })
    }
}

/// Fewest pairs of which intervals of so many figures lie within what was seen: with fewer, even
/// equal signs of all come by chance too often.
pub fn pairs_least(figures: usize) -> usize {
    let tail = tail(figures);
    (1..=PAIRS_MAX)
        .find(|&pairs| 0.5_f64.powi(pairs as i32) <= tail)
        .unwrap_or(PAIRS_MAX)
}

/// What an interval leaves out on each side, where so many figures are compared.
fn tail(figures: usize) -> f64 {
    CHANCE_MOST / 2.0 / figures.max(1) as f64
}

/// The estimate and its interval, which leaves out `tail` on each side, of what values are at least
/// and at most.
pub(crate) fn interval(lows: &[f64], highs: &[f64], tail: f64) -> Option<Effect> {
    let outside = rank_outside(lows.len(), tail);
    let (least, most) = (walsh_averages(lows), walsh_averages(highs));
    let (low, high) = (least[outside], most[most.len() - 1 - outside]);
    // Of bounds, the estimate is the end that lies nearer to no difference.
    let (of_least, of_most) = (median(&least)?, median(&most)?);
    let value = match (of_least.is_finite(), of_most.is_finite()) {
        (false, true) => of_most,
        (true, true) if of_most < 0.0 => of_most,
        _ => of_least,
    };
    Some(Effect { value, low, high })
}

/// The Hodges-Lehmann estimate of the logarithm of a ratio; absent without pairs.
pub(crate) fn hodges_lehmann(pairs: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    median(&walsh_averages(&logs))
}

/// The means of all two values, and each value by itself, ascending.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = values
        .iter()
        .enumerate()
        .flat_map(|(first, one)| {
            values[first..]
                .iter()
                .map(move |other| f64::midpoint(*one, *other))
        })
        .collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// How many Walsh averages of `n` values lie outside of the interval on each side: the most for
/// which the sum of the positive ranks is at most that, less 1, with a probability of `tail`.
fn rank_outside(n: usize, tail: f64) -> usize {
    let mut below = 0.0;
    let within = rank_sum_shares(n).into_iter().take_while(|share| {
        below += share;
        below <= tail
    });
    within.count().saturating_sub(1)
}

/// For each sum of the positive ranks, the share of the ways to choose the signs of `n` values that
/// give it.
fn rank_sum_shares(n: usize) -> Vec<f64> {
    let mut shares = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; shares.len() + rank];
        for (sum, share) in shares.iter().enumerate() {
            next[sum] += share / 2.0;
            next[sum + rank] += share / 2.0;
        }
        shares = next;
    }
    shares
}

/// The two-sided p-value of the mean under all ways to turn the signs.
pub(crate) fn permutation_p(differences: &[f64]) -> f64 {
    let n = differences.len();
    let sum: f64 = differences.iter().sum();
    // What rounding makes of equal sums is not larger.
    let scale: f64 = differences.iter().map(|difference| difference.abs()).sum();
    let least = sum.abs() - 1e-12 * scale;
    if n <= EXACT_PAIRS_MAX {
        // By symmetry the sign of the last one may stay. Between two numbers in Gray's code one bit
        // turns.
        let half = 1_u32 << (n - 1);
        let mut turned = sum;
        let mut signs = vec![1.0; n];
        let mut as_large = 0_u32;
        for number in 0..half {
            if number > 0 {
                let bit = number.trailing_zeros() as usize;
                signs[bit] = -signs[bit];
                turned += 2.0 * signs[bit] * differences[bit];
            }
            as_large += u32::from(turned.abs() >= least);
        }
        return f64::from(as_large) / f64::from(half);
    }
    signed_rank_p(differences)
}

/// The two-sided p-value of Wilcoxon's signed-rank test.
fn signed_rank_p(differences: &[f64]) -> f64 {
    let mut by_size = differences.to_vec();
    by_size.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
    let positive: f64 = by_size
        .iter()
        .zip(1_u32..)
        .filter(|(difference, _)| **difference > 0.0)
        .map(|(_, rank)| f64::from(rank))
        .sum();
    let all = (by_size.len() * (by_size.len() + 1) / 2) as f64;
    let smaller = positive.min(all - positive);
    let below: f64 = rank_sum_shares(by_size.len())[..=smaller as usize]
        .iter()
        .sum();
    (2.0 * below).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_values(pairs: &[(f64, f64)], figures: usize) -> Option<Paired> {
        let logs = pairs.iter().map(|(a, b)| (b / a).ln());
        Paired::of(&logs.map(|log| (log, log)).collect::<Vec<_>>(), figures)
    }

    #[test]
    fn a_ratio_is_found() {
        let pairs: Vec<_> = (0..10)
            .map(|index| (100.0 + f64::from(index), (100.0 + f64::from(index)) * 1.05))
            .collect();
        let paired = of_values(&pairs, 1).expect("pairs enough");
        let Effect { value, low, high } = paired.log_ratio.change();
        for found in [value, low, high] {
            assert!((found - 0.05).abs() < 1e-12, "{paired:?}");
        }
        let p_value = paired.p_value.expect("values, not bounds");
        assert!((p_value - 2.0 / 1_024.0).abs() < 1e-12, "{paired:?}");
    }

    #[test]
    fn too_few_too_many_and_no_logarithm() {
        let pairs = |count| vec![(1.0, 2.0); count];
        assert_eq!(of_values(&pairs(PAIRS_LEAST - 1), 1), None);
        assert!(of_values(&pairs(PAIRS_LEAST), 1).is_some());
        assert!(of_values(&pairs(PAIRS_MAX), 1).is_some());
        assert_eq!(of_values(&pairs(PAIRS_MAX + 1), 1), None);
        for odd in [(0.0, 1.0), (1.0, 0.0), (1.0, f64::NAN), (-1.0, 1.0)] {
            let mut pairs = pairs(10);
            pairs[3] = odd;
            assert_eq!(of_values(&pairs, 1), None, "{odd:?}");
        }
    }

    #[test]
    fn sides_that_change_places_turn_the_ratio() {
        let pairs = [
            (1.0, 1.2),
            (2.0, 2.1),
            (3.0, 2.9),
            (4.0, 4.4),
            (5.0, 5.5),
            (6.0, 6.1),
            (7.0, 7.0),
        ];
        let turned = pairs.map(|(a, b)| (b, a));
        let (one, other) = (of_values(&pairs, 1), of_values(&turned, 1));
        let (one, other) = (one.expect("enough"), other.expect("enough"));
        assert!((one.log_ratio.value + other.log_ratio.value).abs() < 1e-12);
        assert!((one.log_ratio.low + other.log_ratio.high).abs() < 1e-12);
        assert_eq!(one.p_value, other.p_value);
    }

    #[test]
    fn more_figures_take_more_pairs_and_have_wider_intervals() {
        for (figures, least) in [(1, 7), (2, 8), (3, 8), (4, 9), (6, 9), (12, 10), (100, 13)] {
            assert_eq!(pairs_least(figures), least, "{figures}");
        }
        assert_eq!(pairs_least(1), PAIRS_LEAST);
        let pairs: Vec<_> = (0..12)
            .map(|place| (100.0, 101.0 + f64::from(place)))
            .collect();
        let [one, four] = [1, 4].map(|figures| of_values(&pairs, figures).expect("enough"));
        assert_eq!(one.log_ratio.value, four.log_ratio.value);
        assert!(four.log_ratio.low < one.log_ratio.low, "{four:?}");
        assert!(four.log_ratio.high > one.log_ratio.high, "{four:?}");
    }

    #[test]
    fn bounds_have_the_interval_of_what_is_surely_so() {
        let infinite = f64::INFINITY;
        let logs: Vec<f64> = (0..10).map(|place| 1.0 + f64::from(place) / 10.0).collect();
        let of = |bound: fn(f64, usize) -> (f64, f64)| {
            let bounds: Vec<_> = logs
                .iter()
                .zip(0..)
                .map(|(log, at)| bound(*log, at))
                .collect();
            Paired::of(&bounds, 1).expect("enough").log_ratio
        };
        let exact = of(|log, _| (log, log));
        let at_least = of(|log, _| (log, f64::INFINITY));
        assert_eq!((at_least.value, at_least.low), (exact.value, exact.low));
        assert_eq!(at_least.high, infinite);
        let at_most = of(|log, _| (-f64::INFINITY, -log));
        assert_eq!((at_most.value, at_most.high), (-exact.value, -exact.low));
        assert_eq!(at_most.low, -infinite);
        // Of bounds in both directions neither end is known.
        let both = of(|log, at| match at % 2 {
            0 => (log, f64::INFINITY),
            _ => (-f64::INFINITY, log),
        });
        assert_eq!((both.low, both.high), (-infinite, infinite));
    }
}
