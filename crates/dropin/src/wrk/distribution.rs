//! Counts of whole numbers, with the statistics that wrk prints of them.

use brunt_measure::Histogram;

/// Whole numbers, each with how often it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Distribution {
    /// In order, each number once, no count 0.
    counts: Vec<(u64, u64)>,
    /// How many there are.
    pub(super) total: u64,
    /// The largest; 0 for none.
    pub(super) max: u64,
    /// 0 for none.
    pub(super) mean: f64,
}

impl Distribution {
    /// Of single numbers.
    pub(super) fn of(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        let mean = numbers.iter().map(|&number| number as f64).sum::<f64>();
        let mean = mean / numbers.len().max(1) as f64;
        let counts = numbers.into_iter().map(|number| (number, 1));
        Self::of_counts(counts, mean)
    }

    /// Of durations, in whole microseconds. Known to a thousandth; mean and largest exactly.
    pub(super) fn of_us(durations: &Histogram) -> Self {
        let mean_us = durations.mean_ns().unwrap_or(0.0) / 1e3;
        Self::of_counts(in_us(durations).into_iter(), mean_us)
    }

    /// Of numbers in order with their counts.
    fn of_counts(numbers: impl Iterator<Item = (u64, u64)>, mean: f64) -> Self {
        let mut counts: Vec<(u64, u64)> = Vec::new();
        for (number, count) in numbers.filter(|&(_, count)| count > 0) {
            match counts.last_mut() {
                Some((last, sum)) if *last == number => *sum = sum.saturating_add(count),
                _ => counts.push((number, count)),
            }
        }
        Self {
            total: counts.iter().map(|&(_, count)| count).sum(),
            max: counts.last().map_or(0, |&(number, _)| number),
            counts,
            mean,
        }
    }

    /// The standard deviation of a sample; 0 for less than two numbers.
    pub(super) fn stdev(&self) -> f64 {
        if self.total < 2 {
            return 0.0;
        }
        let squares = self.counts.iter().map(|&(number, count)| {
            let difference = number as f64 - self.mean;
            difference * difference * count as f64
        });
        (squares.sum::<f64>() / (self.total - 1) as f64).sqrt()
    }

    /// Per cent of the numbers that lie within one standard deviation of the mean; 0 for none.
    pub(super) fn within_stdev_percent(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let stdev = self.stdev();
        let (least, most) = (self.mean - stdev, self.mean + stdev);
        let is_within = |number: u64| (least..=most).contains(&(number as f64));
        let within = self.counts.iter().filter(|&&(number, _)| is_within(number));
        let within: u64 = within.map(|&(_, count)| count).sum();
        within as f64 / self.total as f64 * 100.0
    }

    /// The smallest number that `percent` of them do not exceed; 0 for none.
    pub(super) fn percentile(&self, percent: f64) -> u64 {
        let rank = (percent / 100.0 * self.total as f64 + 0.5).round() as u64;
        let rank = rank.min(self.total);
        let mut below = 0;
        let at = self.counts.iter().find(|&&(_, count)| {
            below += count;
            below >= rank
        });
        at.map_or(0, |&(number, _)| number)
    }
}

/// Durations in whole microseconds, in order, with their counts: the longest exactly, the others to
/// a thousandth.
pub(super) fn in_us(durations: &Histogram) -> Vec<(u64, u64)> {
    let (Some(least_ns), Some(most_ns)) = (durations.min_ns(), durations.max_ns()) else {
        return Vec::new();
    };
    let buckets = durations.buckets();
    let mut counts: Vec<(u64, u64)> = buckets
        .iter_recorded()
        .map(|bucket| {
            let ns = buckets.median_equivalent(bucket.value_iterated_to());
            (ns.clamp(least_ns, most_ns) / 1_000, bucket.count_at_value())
        })
        .collect();
    if let Some((_, count)) = counts.last_mut() {
        *count -= 1;
    }
    counts.push((most_ns / 1_000, 1));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_a_sample() {
        let numbers = Distribution::of(vec![4, 2, 4, 9, 5, 5, 4, 7]);
        assert_eq!((numbers.total, numbers.max, numbers.mean), (8, 9, 5.0));
        // The squares of the differences sum to 32.
        assert_eq!(numbers.stdev(), (32.0_f64 / 7.0).sqrt());
        // 4, 4, 4, 5, 5, 7.
        assert_eq!(numbers.within_stdev_percent(), 75.0);
        for (percent, number) in [(0.0, 2), (50.0, 5), (75.0, 7), (99.0, 9), (100.0, 9)] {
            assert_eq!(numbers.percentile(percent), number, "{percent}");
        }
    }

    #[test]
    fn of_nothing_all_is_0() {
        for empty in [
            Distribution::of(Vec::new()),
            Distribution::of_us(&Histogram::default()),
        ] {
            assert_eq!((empty.total, empty.max, empty.mean), (0, 0, 0.0));
            assert_eq!((empty.stdev(), empty.within_stdev_percent()), (0.0, 0.0));
            assert_eq!(empty.percentile(50.0), 0);
        }
        let one = Distribution::of(vec![7]);
        assert_eq!((one.stdev(), one.within_stdev_percent()), (0.0, 100.0));
        assert_eq!(one.percentile(99.0), 7);
    }

    #[test]
    fn durations_are_whole_microseconds() {
        let mut durations = Histogram::default();
        [1_499, 1_501, 20_000_000, 20_009_999]
            .iter()
            .for_each(|&ns| durations.record(ns));
        let numbers = Distribution::of_us(&durations);
        assert_eq!((numbers.total, numbers.max), (4, 20_009));
        assert_eq!(numbers.percentile(25.0), 1);
        assert!(numbers.percentile(90.0).abs_diff(20_000) <= 20);
        assert!(
            (numbers.mean - 10_003.249_75).abs() < 1e-6,
            "{}",
            numbers.mean
        );
    }
}
