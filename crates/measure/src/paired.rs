//! Comparison of two sides by pairs of rounds: how much larger one is, with an interval, and
//! whether that may be chance.
//!
//! The unit is the round and never the request: what rounds of one side differ by holds all that
//! varies from one to the next, which requests of one round share.

use crate::Effect;

/// Fewest pairs of which a two-sided 95 % interval lies within what was seen.
pub const PAIRS_LEAST: usize = 6;
/// Most pairs: the distribution of ranks is counted out exactly.
pub const PAIRS_MAX: usize = 100;
/// Up to so many pairs every way to turn their signs is looked at; with more, their ranks tell.
const EXACT_PAIRS_MAX: usize = 20;
/// Half of what a two-sided 95 % interval leaves out.
const TAIL: f64 = 0.025;

/// What pairs of rounds tell of the ratio of their two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// How many pairs.
    pub pairs: usize,
    /// The logarithm of the ratio: the Hodges-Lehmann estimate (the median of the means of all two
    /// pairs, and of each alone), with the interval that goes with Wilcoxon's signed-rank test
    /// (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, section 3.3).
    pub log_ratio: Effect,
    /// How often a difference like this or larger comes by chance if there is none: the two-sided
    /// permutation test of the mean over the signs of the pairs, and with more than 20 the
    /// signed-rank test.
    pub p_value: f64,
}

impl Paired {
    /// Of pairs of values above 0, each of side A and then of side B; the ratio is B over A. Absent
    /// with fewer than [`PAIRS_LEAST`] or more than [`PAIRS_MAX`], and where a logarithm is not
    /// finite.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        Self::of_differences(&differences)
    }

    pub(crate) fn of_differences(differences: &[f64]) -> Option<Self> {
        let n = differences.len();
        let is_finite = differences.iter().all(|difference| difference.is_finite());
        if !(PAIRS_LEAST..=PAIRS_MAX).contains(&n) || !is_finite {
            return None;
        }
        let averages = walsh_averages(differences);
        let last = averages.len() - 1;
        let outside = rank_outside(n);
        Some(Self {
            pairs: n,
            log_ratio: Effect {
                value: f64::midpoint(averages[last / 2], averages[last.div_ceil(2)]),
                low: averages[outside],
                high: averages[last - outside],
            },
            p_value: permutation_p(differences),
        })
    }

    /// The ratio of B over A, less 1, with its interval.
    pub fn change(&self) -> Effect {
        let Effect { value, low, high } = self.log_ratio;
        Effect {
            value: value.exp_m1(),
            low: low.exp_m1(),
            high: high.exp_m1(),
        }
    }
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
/// which the sum of the positive ranks is at most that, less 1, with a probability of 2.5 %.
fn rank_outside(n: usize) -> usize {
    let mut below = 0.0;
    let within = rank_sum_shares(n).into_iter().take_while(|share| {
        below += share;
        below <= TAIL
    });
    within.count().saturating_sub(1)
}

/// Of the ways to turn the signs of `n` values, the share with each sum of the positive ranks.
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
fn permutation_p(differences: &[f64]) -> f64 {
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

    #[test]
    fn a_ratio_is_found() {
        let pairs: Vec<_> = (0..10)
            .map(|index| (100.0 + f64::from(index), (100.0 + f64::from(index)) * 1.05))
            .collect();
        let paired = Paired::of(&pairs).expect("pairs enough");
        let Effect { value, low, high } = paired.change();
        for found in [value, low, high] {
            assert!((found - 0.05).abs() < 1e-12, "{paired:?}");
        }
        assert!((paired.p_value - 2.0 / 1_024.0).abs() < 1e-12, "{paired:?}");
    }

    #[test]
    fn too_few_too_many_and_no_logarithm() {
        let pairs = |count| vec![(1.0, 2.0); count];
        assert_eq!(Paired::of(&pairs(PAIRS_LEAST - 1)), None);
        assert!(Paired::of(&pairs(PAIRS_LEAST)).is_some());
        assert!(Paired::of(&pairs(PAIRS_MAX)).is_some());
        assert_eq!(Paired::of(&pairs(PAIRS_MAX + 1)), None);
        for odd in [(0.0, 1.0), (1.0, 0.0), (1.0, f64::NAN), (-1.0, 1.0)] {
            let mut pairs = pairs(10);
            pairs[3] = odd;
            assert_eq!(Paired::of(&pairs), None, "{odd:?}");
        }
    }

    #[test]
    fn ranks_outside_are_those_of_the_tables() {
        // Critical values of the signed-rank statistic, two-sided 5 %.
        for (n, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52)] {
            assert_eq!(rank_outside(n), critical, "{n}");
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
        ];
        let turned = pairs.map(|(a, b)| (b, a));
        let (one, other) = (Paired::of(&pairs), Paired::of(&turned));
        let (one, other) = (one.expect("enough"), other.expect("enough"));
        assert!((one.log_ratio.value + other.log_ratio.value).abs() < 1e-12);
        assert!((one.log_ratio.low + other.log_ratio.high).abs() < 1e-12);
        assert!((one.p_value - other.p_value).abs() < 1e-12);
    }
}
