//! Durations as wrk's statistics take them: whole microseconds.

use brunt_record::Histogram;
use brunt_script::Distribution;

use crate::microseconds::in_us;

/// Durations in whole microseconds, known to a thousandth; the longest exactly.
pub(super) fn of_us(durations: &Histogram) -> Distribution {
    Distribution::new(in_us(durations))
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
