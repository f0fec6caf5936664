//! Durations as wrk's statistics take them: whole microseconds.

use brunt_measure::Histogram;
use brunt_script::Distribution;

/// Durations in whole microseconds, known to a thousandth; the longest exactly.
pub(super) fn of_us(durations: &Histogram) -> Distribution {
    Distribution::new(in_us(durations))
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
    fn durations_are_whole_microseconds_and_the_longest_is_exact() {
        let mut durations = Histogram::default();
        [1_499, 1_501, 20_000_000, 20_009_999]
            .iter()
            .for_each(|&ns| durations.record(ns));
        let numbers = of_us(&durations);
        assert_eq!((numbers.total(), numbers.max()), (4, 20_009));
        assert_eq!((numbers.min(), numbers.percentile(25.0)), (1, 1));
        assert!(numbers.percentile(50.0).abs_diff(20_000) <= 20);
        assert!(
            (numbers.mean() - 10_003.0).abs() < 6.0,
            "{}",
            numbers.mean()
        );
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        let empty = of_us(&Histogram::default());
        assert_eq!((empty.total(), empty.max(), empty.mean()), (0, 0, 0.0));
    }
}
