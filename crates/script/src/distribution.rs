//! Values and how often each occurred, as wrk's statistics answer about them.

/// Values and how often each occurred: microseconds of latencies, or requests a second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Ascending by value, each value once.
    values: Vec<(u64, u64)>,
    total: u64,
}

impl Distribution {
    /// Takes values with their counts, in any order.
    pub fn new(values: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut values: Vec<_> = values.into_iter().filter(|(_, count)| *count > 0).collect();
        values.sort_unstable();
        values.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 = kept.1.saturating_add(later.1);
            }
            is_same
        });
        let total = values
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        Self { values, total }
    }

    /// Values with their counts, ascending.
    pub fn values(&self) -> &[(u64, u64)] {
        &self.values
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The smallest; without any, the largest number there is, as in wrk.
    pub fn min(&self) -> u64 {
        self.values.first().map_or(u64::MAX, |(value, _)| *value)
    }

    /// The largest; 0 without any.
    pub fn max(&self) -> u64 {
        self.values.last().map_or(0, |(value, _)| *value)
    }

    /// The mean; 0 without any.
    pub fn mean(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let sum: u128 = self
            .values
            .iter()
            .map(|(v, n)| u128::from(*v) * u128::from(*n))
            .sum();
        sum as f64 / self.total as f64
    }

    /// The standard deviation of the sample; 0 of fewer than two.
    pub fn stdev(&self) -> f64 {
        if self.total < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self
            .values
            .iter()
            .map(|(value, count)| (*value as f64 - mean).powi(2) * *count as f64)
            .sum();
        (squares / (self.total - 1) as f64).sqrt()
    }

    /// The share of values within `n` standard deviations of the mean, percent; NaN without any, as
    /// in wrk.
    pub fn within_stdev_percent(&self, n: f64) -> f64 {
        let (mean, reach) = (self.mean(), self.stdev() * n);
        let within = self.values.iter().filter(|(value, _)| {
            let value = *value as f64;
            value >= mean - reach && value <= mean + reach
        });
        within.map(|(_, count)| *count).sum::<u64>() as f64 / self.total as f64 * 100.0
    }

    /// The value at a percentile, 0 to 100, by wrk's rank: the smallest value that at least
    /// `percentile / 100 × total + 0.5` values, rounded, do not exceed. 0 where there is none.
    pub fn percentile(&self, percentile: f64) -> u64 {
        let rank = (percentile / 100.0 * self.total as f64 + 0.5).round() as u64;
        self.ranked(rank)
    }

    /// The value at a percentile, 0 to 100, by the rank of HDR histograms, which wrk2 has: that of
    /// `percentile / 100 × total`, rounded. 0 where there is none.
    pub fn percentile_by_hdr(&self, percentile: f64) -> u64 {
        let rank = (percentile.min(100.0) / 100.0 * self.total as f64 + 0.5) as u64;
        self.ranked(rank.max(1))
    }

    /// The smallest value that at least `rank` values do not exceed; 0 where there is none.
    fn ranked(&self, rank: u64) -> u64 {
        let mut below = 0_u64;
        for (value, count) in &self.values {
            below = below.saturating_add(*count);
            if below >= rank {
                return *value;
            }
        }
        0
    }

    /// The value in place `place` of the distinct ones, from 0, with its count; out of range, 0 and
    /// the number of distinct values, as in wrk.
    pub fn nth(&self, place: u64) -> (u64, u64) {
        let distinct = self.values.len() as u64;
        usize::try_from(place)
            .ok()
            .and_then(|place| self.values.get(place).copied())
            .unwrap_or((0, distinct))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_to(n: u64) -> Distribution {
        Distribution::new((1..=n).map(|value| (value, 1)))
    }

    #[test]
    fn counts_of_a_value_are_added_up() {
        let distribution = Distribution::new([(5, 1), (3, 2), (5, 4), (9, 0)]);
        assert_eq!(distribution.values(), [(3, 2), (5, 5)]);
        assert_eq!(distribution.total(), 7);
    }

    #[test]
    fn percentiles_are_those_of_wrk() {
        let hundred = one_to(100);
        assert_eq!(hundred.percentile(50.0), 51);
        assert_eq!(hundred.percentile(0.0), 1);
        assert_eq!(hundred.percentile(99.0), 100);
        assert_eq!(hundred.percentile(100.0), 0);
        assert_eq!(one_to(1).percentile(50.0), 1);
    }

    #[test]
    fn percentiles_by_hdr_are_those_of_wrk2() {
        let hundred = one_to(100);
        assert_eq!(hundred.percentile_by_hdr(50.0), 50);
        assert_eq!(hundred.percentile_by_hdr(0.0), 1);
        assert_eq!(hundred.percentile_by_hdr(100.0), 100);
        assert_eq!(hundred.percentile_by_hdr(400.0), 100);
    }

    #[test]
    fn moments_are_those_of_the_sample() {
        let distribution = Distribution::new([(2, 1), (4, 3), (5, 2), (7, 1), (9, 1)]);
        assert_eq!(distribution.mean(), 5.0);
        assert!((distribution.stdev() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(distribution.within_stdev_percent(1.0), 75.0);
    }

    #[test]
    fn places_out_of_range_tell_how_many_there_are() {
        let distribution = one_to(30);
        assert_eq!(distribution.nth(0), (1, 1));
        assert_eq!(distribution.nth(29), (30, 1));
        assert_eq!(distribution.nth(30), (0, 30));
        assert_eq!(distribution.nth(u64::MAX), (0, 30));
    }

    #[test]
    fn nothing_is_answered_as_wrk_does() {
        let nothing = Distribution::default();
        assert_eq!((nothing.min(), nothing.max()), (u64::MAX, 0));
        assert_eq!((nothing.mean(), nothing.stdev()), (0.0, 0.0));
        assert_eq!(nothing.percentile(50.0), 0);
    }
}
