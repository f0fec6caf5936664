//! wrk2's latencies with their percentile spectrum.

use std::fmt::Write;

use super::units::{column, time_us};
use crate::recorded::{Recorded, Step};

/// The longest time that wrk2 records: a day, microseconds.
pub(super) const HIGHEST_US: u64 = 24 * 60 * 60 * 1_000_000;

const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// The distribution with its spectrum, under this title.
pub(super) fn print(recorded: &Recorded, title: &str, text: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  Latency Distribution (HdrHistogram - {title})");
    for percent in PERCENTILES {
        let us = recorded.percentile_us(percent) as f64;
        let _ = writeln!(text, "{percent:7.3}%{}", column(&time_us(us), 10));
    }
    text.push_str("\n  Detailed Percentile spectrum:\n");
    let _ = writeln!(
        text,
        "{:>12} {:>12} {:>12} {:>12}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let none = Step {
        us: 0,
        quantile: 1.0,
        count: 0,
    };
    let steps: Vec<Step> = recorded.steps().collect();
    let steps = if steps.is_empty() {
        &[none]
    } else {
        &steps[..]
    };
    for step in steps {
        row(step, text);
    }
    text.push_str(&recorded.summary(recorded.max_us()));
}

/// One step, with the time in milliseconds.
fn row(step: &Step, text: &mut String) {
    let Step {
        us,
        quantile,
        count,
    } = *step;
    let inverse = 1.0 / (1.0 - quantile);
    let _ = writeln!(
        text,
        "{:12.3} {quantile:12.6} {count:12} {inverse:12.2}",
        us as f64 / 1e3
    );
}

#[cfg(test)]
mod tests {
    use brunt_record::Histogram;

    use super::*;

    fn of(values_us: impl IntoIterator<Item = u64>) -> Recorded {
        let mut durations = Histogram::default();
        let values = values_us.into_iter();
        values.for_each(|us| durations.record(us * 1_000));
        Recorded::of(&durations, HIGHEST_US)
    }

    #[test]
    fn the_text_is_wrk2s() {
        let mut text = String::new();
        let recorded = of((1..=10).map(|number| number * 1_000));
        print(&recorded, "Recorded Latency", &mut text);
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
        print(&empty, "Recorded Latency", &mut text);
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
}
