//! wrk2's latencies: HdrHistogram's buckets, in microseconds, and its percentile spectrum.

use std::fmt::Write;

use brunt_record::Histogram;

use super::units::{column, time_us};
use crate::microseconds::in_us;

/// The longest time that wrk2 records: a day, microseconds.
const HIGHEST_US: u64 = 24 * 60 * 60 * 1_000_000;
/// Significant digits.
const DIGITS: u8 = 3;
/// Steps per half of the remaining distance to 100 %.
const STEPS_PER_HALF: u32 = 5;
/// What HdrHistogram says of its own layout for these limits.
const BUCKETS: u32 = 27;
const SUB_BUCKETS: u32 = 2_048;

const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// Durations in the buckets of wrk2.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    us: hdrhistogram::Histogram<u64>,
}

impl Recorded {
    pub(super) fn of(durations: &Histogram) -> Self {
        let mut us = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_US, DIGITS)
            .unwrap_or_else(|_| unreachable!("the limits are constants that it takes"));
        for (value_us, count) in in_us(durations) {
            us.saturating_record_n(value_us, count);
        }
        Self { us }
    }

    /// Microseconds; 0 for none.
    pub(super) fn mean_us(&self) -> f64 {
        if self.us.is_empty() {
            0.0
        } else {
            self.us.mean()
        }
    }

    /// Microseconds; 0 for none.
    pub(super) fn stdev_us(&self) -> f64 {
        if self.us.is_empty() {
            0.0
        } else {
            self.us.stdev()
        }
    }

    /// The lowest time that is counted with the longest, microseconds; 0 for none.
    pub(super) fn max_us(&self) -> u64 {
        self.us.lowest_equivalent(self.us.max())
    }

    /// Per cent within one standard deviation of the mean; 0 for none.
    pub(super) fn within_stdev_percent(&self) -> f64 {
        if self.us.is_empty() {
            return 0.0;
        }
        let (mean, stdev) = (self.mean_us(), self.stdev_us());
        let (least, most) = ((mean - stdev).max(0.0) as u64, (mean + stdev) as u64);
        let within = self.us.count_between(least, most);
        within as f64 / self.us.len() as f64 * 100.0
    }

    /// The distribution with its spectrum, under this title.
    pub(super) fn print(&self, title: &str, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  Latency Distribution (HdrHistogram - {title})");
        for percent in PERCENTILES {
            let us = self.us.value_at_percentile(percent);
            let us = if self.us.is_empty() { 0 } else { us };
            let _ = writeln!(text, "{percent:7.3}%{}", column(&time_us(us as f64), 10));
        }
        text.push_str("\n  Detailed Percentile spectrum:\n");
        let _ = writeln!(
            text,
            "{:>12} {:>12} {:>12} {:>12}\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        let mut count = 0_u64;
        for step in self.us.iter_quantiles(STEPS_PER_HALF) {
            count += step.count_since_last_iteration();
            let us = self.us.highest_equivalent(step.value_iterated_to());
            row(us, step.quantile_iterated_to(), count, text);
        }
        if self.us.is_empty() {
            row(0, 1.0, 0, text);
        }
        let ms = |us: f64| us / 1e3;
        let _ = writeln!(
            text,
            "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
            ms(self.mean_us()),
            ms(self.stdev_us())
        );
        let _ = writeln!(
            text,
            "#[Max     = {:12.3}, Total count    = {:12}]",
            ms(self.max_us() as f64),
            self.us.len()
        );
        let _ = writeln!(
            text,
            "#[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]"
        );
    }
}

/// One step, with the time in milliseconds.
fn row(us: u64, quantile: f64, count: u64, text: &mut String) {
    let inverse = 1.0 / (1.0 - quantile);
    let _ = writeln!(
        text,
        "{:12.3} {quantile:12.6} {count:12} {inverse:12.2}",
        us as f64 / 1e3
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values_us: impl IntoIterator<Item = u64>) -> Recorded {
        let mut durations = Histogram::default();
        let values = values_us.into_iter();
        values.for_each(|us| durations.record(us * 1_000));
        Recorded::of(&durations)
    }

    #[test]
    fn the_text_is_wrk2s() {
        let mut text = String::new();
        of((1..=10).map(|number| number * 1_000)).print("Recorded Latency", &mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "  Latency Distribution (HdrHistogram - Recorded Latency)",
                " 50.000%    5.00ms",
                " 75.000%    8.00ms",
            ]
        );
        assert_eq!(lines[8], "100.000%   10.01ms");
        assert_eq!(
            lines[9..14],
            [
                "",
                "  Detailed Percentile spectrum:",
                "       Value   Percentile   TotalCount 1/(1-Percentile)",
                "",
                "       1.000     0.000000            1         1.00",
            ]
        );
        let last = lines.len() - 4;
        assert_eq!(
            lines[last..],
            [
                "      10.007     1.000000           10          inf",
                "#[Mean    =        5.500, StdDeviation   =        2.873]",
                "#[Max     =       10.000, Total count    =           10]",
                "#[Buckets =           27, SubBuckets     =         2048]",
            ]
        );
    }

    #[test]
    fn nothing_recorded_is_printed_without_nan() {
        let mut text = String::new();
        let empty = of([]);
        empty.print("Recorded Latency", &mut text);
        assert!(!text.to_lowercase().contains("nan"), "{text}");
        assert!(text.contains("100.000%    0.00us\n"), "{text}");
        let row =
            "\n       0.000     1.000000            0          inf\n#[Mean    =        0.000,";
        assert!(text.contains(row), "{text}");
        assert_eq!(
            (
                empty.within_stdev_percent(),
                empty.max_us(),
                empty.mean_us()
            ),
            (0.0, 0, 0.0)
        );
    }

    #[test]
    fn most_lie_within_one_deviation() {
        let recorded = of([10, 10, 10, 10, 10, 10, 10, 10, 10, 1_000]);
        assert_eq!(recorded.within_stdev_percent(), 90.0);
    }
}
