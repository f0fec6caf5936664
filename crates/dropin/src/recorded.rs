//! Durations in buckets of HdrHistogram, in microseconds, as wrk2 keeps them.

use brunt_record::Histogram;

use crate::microseconds::in_us;

/// Significant digits.
const DIGITS: u8 = 3;
/// Steps of a spectrum per half of the remaining distance to 100 %.
const STEPS_PER_HALF: u32 = 5;
/// What HdrHistogram says of its own layout for so many digits.
const SUB_BUCKETS: u64 = 2_048;

/// Durations in whole microseconds, to three significant digits.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    us: hdrhistogram::Histogram<u64>,
}

/// A step of a spectrum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The longest time that is counted with this one, microseconds.
    pub(crate) us: u64,
    /// The share of the durations that are no longer.
    pub(crate) quantile: f64,
    /// How many are no longer.
    pub(crate) count: u64,
}

impl Recorded {
    /// Those of `durations`; what is longer than `highest_us` counts as that.
    pub(crate) fn of(durations: &Histogram, highest_us: u64) -> Self {
        let mut us = hdrhistogram::Histogram::new_with_bounds(1, highest_us, DIGITS)
            .unwrap_or_else(|_| unreachable!("the limits are constants that it takes"));
        for (value_us, count) in in_us(durations) {
            us.saturating_record_n(value_us, count);
        }
        Self { us }
    }

    /// Microseconds; 0 for none.
    pub(crate) fn mean_us(&self) -> f64 {
        if self.us.is_empty() {
            0.0
        } else {
            self.us.mean()
        }
    }

    /// Microseconds; 0 for none.
    pub(crate) fn stdev_us(&self) -> f64 {
        if self.us.is_empty() {
            0.0
        } else {
            self.us.stdev()
        }
    }

    /// The lowest time that is counted with the longest, microseconds; 0 for none.
    pub(crate) fn max_us(&self) -> u64 {
        self.us.lowest_equivalent(self.us.max())
    }

    /// The longest time that is counted with this percentile, microseconds; 0 for none.
    pub(crate) fn percentile_us(&self, percent: f64) -> u64 {
        match self.us.is_empty() {
            true => 0,
            false => self.us.value_at_percentile(percent),
        }
    }

    /// Per cent within one standard deviation of the mean; 0 for none.
    pub(crate) fn within_stdev_percent(&self) -> f64 {
        if self.us.is_empty() {
            return 0.0;
        }
        let (mean, stdev) = (self.mean_us(), self.stdev_us());
        let (least, most) = ((mean - stdev).max(0.0) as u64, (mean + stdev) as u64);
        let within = self.us.count_between(least, most);
        within as f64 / self.us.len() as f64 * 100.0
    }

    /// The steps of the spectrum, none without durations.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let mut count = 0_u64;
        self.us.iter_quantiles(STEPS_PER_HALF).map(move |step| {
            count += step.count_since_last_iteration();
            Step {
                us: self.us.highest_equivalent(step.value_iterated_to()),
                quantile: step.quantile_iterated_to(),
                count,
            }
        })
    }

    /// The three lines below a spectrum, with the longest time as the tool has it.
    pub(crate) fn summary(&self, max_us: u64) -> String {
        let buckets = 1
            + (self.us.high() / SUB_BUCKETS + 1)
                .next_power_of_two()
                .ilog2();
        format!(
            "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n\
             #[Max     = {:12.3}, Total count    = {:12}]\n\
             #[Buckets = {buckets:12}, SubBuckets     = {SUB_BUCKETS:12}]\n",
            self.mean_us() / 1e3,
            self.stdev_us() / 1e3,
            max_us as f64 / 1e3,
            self.us.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn of(values_us: impl IntoIterator<Item = u64>) -> Recorded {
        let mut durations = Histogram::default();
        let values = values_us.into_iter();
        values.for_each(|us| durations.record(us * 1_000));
        Recorded::of(&durations, 60_000_000)
    }

    #[test]
    fn most_lie_within_one_deviation() {
        let recorded = of([10, 10, 10, 10, 10, 10, 10, 10, 10, 1_000]);
        assert_eq!(recorded.within_stdev_percent(), 90.0);
        assert_eq!(of([]).within_stdev_percent(), 0.0);
    }

    #[test]
    fn what_is_too_long_counts_as_the_longest() {
        let recorded = of([1, 70_000_000]);
        assert_eq!(recorded.percentile_us(50.0), 1);
        assert!(recorded.percentile_us(100.0).abs_diff(60_000_000) < 60_000);
        assert_eq!(recorded.steps().last().map(|step| step.count), Some(2));
        assert_eq!(of([]).steps().count(), 0);
    }

    #[test]
    fn the_layout_is_what_the_library_says() {
        assert!(
            of([1])
                .summary(1)
                .contains("Buckets =           16, SubBuckets     =         2048]")
        );
    }
}
