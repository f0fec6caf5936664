//! wrk's and wrk2's text of a run: latencies in whole microseconds, as wrk's statistics take them,
//! and in buckets of HdrHistogram with a percentile spectrum, as wrk2 has them; and the rates of
//! which wrk prints `Req/Sec`: per thread, one per 100 ms in which replies came.

use std::fmt::Write;

use brunt_engine::PrepareError;
use brunt_judge::RunFigures;
use brunt_record::{FailureKind, FailureScope, Histogram, Run, Series};
use brunt_script::Distribution;

use super::options::{BINARY, METRIC, TIME_S, column, time_us};
use super::{Program, WrkOptions};
use crate::Ending;
use crate::ending::Cause;

const PERCENTILES: [f64; 4] = [50.0, 75.0, 90.0, 99.0];
const RECORDED: &str = "Recorded Latency";
const UNCORRECTED: &str =
    "Uncorrected Latency (measured without taking delayed starts into account)";
const RULE: &str = "----------------------------------------------------------\n";

/// The two lines that are printed when the load begins.
pub fn heading(options: &WrkOptions) -> String {
    format!(
        "Running {} test @ {}\n  {} threads and {} connections\n",
        TIME_S.print(options.duration_s as f64, 0),
        options.url.typed,
        options.threads(),
        options.connections(),
    )
}

/// What is printed at the end.
pub fn report(options: &WrkOptions, run: &Run) -> String {
    let mut text = format!(
        "  Thread Stats{:>6}{:>11}{:>8}{:>12}\n",
        "Avg", "Stdev", "Max", "+/- Stdev"
    );
    let latencies = &run.latencies;
    let mut response = latencies.response.clone();
    response.merge(&latencies.response_error);
    let per_thread = Row::of(&per_thread(run));
    match options.program {
        Program::Wrk => {
            let latency = of_us(&response);
            row(&Row::of(&latency), "Latency", time_us, &mut text);
            row(&per_thread, "Req/Sec", metric, &mut text);
            if options.latency {
                text.push_str("  Latency Distribution\n");
                for percent in PERCENTILES {
                    let us = latency.percentile(percent) as f64;
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "{percent:7.0}%{}", column(&time_us(us), 10));
                }
            }
        }
        Program::Wrk2 => {
            let recorded = Recorded::of(&response);
            row(&recorded.row(), "Latency", time_us, &mut text);
            row(&per_thread, "Req/Sec", metric, &mut text);
            if options.latency {
                recorded.print(RECORDED, &mut text);
                text.push_str(RULE);
            }
            if options.uncorrected_latency {
                text.push('\n');
                Recorded::of(&latencies.service).print(UNCORRECTED, &mut text);
                text.push_str(RULE);
            }
        }
    }
    text + &counts_and_rates(&Counts::of(run))
}

/// A number such as `56.20k`.
fn metric(number: f64) -> String {
    METRIC.print(number, 2)
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    mean: f64,
    stdev: f64,
    max: f64,
    within_percent: f64,
}

impl Row {
    fn of(numbers: &Distribution) -> Self {
        Self {
            mean: numbers.mean(),
            stdev: numbers.stdev(),
            max: numbers.max() as f64,
            // Not a number without any, where wrk prints -nan.
            within_percent: match numbers.total() {
                0 => 0.0,
                _ => numbers.within_stdev_percent(1.0),
            },
        }
    }
}

fn row(row: &Row, name: &str, unit: fn(f64) -> String, text: &mut String) {
    let _ = writeln!(
        text,
        "    {name:<10}{}{}{}{:8.2}%",
        column(&unit(row.mean), 8),
        column(&unit(row.stdev), 10),
        column(&unit(row.max), 9),
        row.within_percent,
    );
}

fn counts_and_rates(counts: &Counts) -> String {
    let Counts {
        requests,
        connect,
        read,
        timeout,
        status,
        ..
    } = counts;
    let taken = time_us((counts.duration_ns / 1_000) as f64);
    let bytes = BINARY.print(counts.bytes as f64, 2);
    let mut text = format!("  {requests} requests in {taken}, {bytes}B read\n");
    if connect + read + timeout > 0 {
        text += &format!(
            "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}\n"
        );
    }
    if *status > 0 {
        text += &format!("  Non-2xx or 3xx responses: {status}\n");
    }
    let per_s = counts.per_s(*requests);
    let bytes_per_s = BINARY.print(counts.per_s(counts.bytes), 2);
    text + &format!("Requests/sec: {per_s:9.2}\nTransfer/sec: {bytes_per_s:>10}B\n")
}

/// Counts of a run, as wrk names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Length of the run, nanoseconds.
    pub(super) duration_ns: u64,
    /// Complete replies, whatever their status.
    pub(super) requests: u64,
    /// Bytes of replies, decrypted.
    pub(super) bytes: u64,
    /// Connections that could not be opened.
    pub(super) connect: u64,
    /// Replies that were truncated or are none.
    pub(super) read: u64,
    /// Requests without a reply in time, among them those in flight to the end and beyond.
    pub(super) timeout: u64,
    /// Replies with a status of 400 and above.
    pub(super) status: u64,
}

impl Counts {
    /// The counts of `run`: replies of the window, errors of the whole run.
    pub(super) fn of(run: &Run) -> Self {
        let summary = run.summary();
        let (window, all) = (&summary.window, &summary.lifetime);
        let timed_out = all.failures.get(FailureKind::TimedOut);
        let requests_failed = all.failures.total(FailureScope::Request);
        // Where a backlog was still being sent, what is in flight was sent just now.
        let never_answered = match summary.arrivals_all.unsent {
            0 => summary.population.censored,
            _ => 0,
        };
        let read = requests_failed
            .saturating_sub(timed_out)
            .saturating_add(all.failures.total(FailureScope::Connection));
        Self {
            duration_ns: run.window_ns,
            requests: window.replies.total(),
            bytes: window.bytes_received.saturating_sub(window.overhead_bytes),
            connect: all.failures.total(FailureScope::Connect),
            read,
            timeout: timed_out.saturating_add(never_answered),
            status: window.replies.total() - window.replies.successes(),
        }
    }

    /// `count` per second of the run; 0 for a run without length.
    fn per_s(&self, count: u64) -> f64 {
        match self.duration_ns {
            0 => 0.0,
            ns => count as f64 * 1e9 / ns as f64,
        }
    }
}

/// How a run ends that cannot be prepared. Absent where wrk has no words for it.
pub fn preparation_ending(options: &WrkOptions, error: &PrepareError) -> Option<Ending> {
    let (host, service) = (&options.url.host, options.url.service());
    let line = match Cause::of(error)? {
        Cause::Resolve(reason) => format!("unable to resolve {host}:{service} {reason}"),
        Cause::Connect(reason, _) => format!("unable to connect to {host}:{service} {reason}"),
    };
    Some(Ending::error(&line, 1))
}

/// The longest time that wrk2 records: a day, microseconds.
const HIGHEST_US: u64 = 24 * 60 * 60 * 1_000_000;
/// Significant digits.
const DIGITS: u8 = 3;
/// Steps of a spectrum per half of the remaining distance to 100 %.
const STEPS_PER_HALF: u32 = 5;
/// What HdrHistogram says of its own layout for so many digits.
const SUB_BUCKETS: u64 = 2_048;
const SUMMARY: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// Durations in whole microseconds, known to a thousandth; the longest exactly.
pub(super) fn of_us(durations: &Histogram) -> Distribution {
    let (Some(least_ns), Some(most_ns)) = (durations.min_ns(), durations.max_ns()) else {
        return Distribution::default();
    };
    let buckets = durations.buckets();
    let counts = buckets.iter_recorded().map(|bucket| {
        let ns = buckets.median_equivalent(bucket.value_iterated_to());
        (ns.clamp(least_ns, most_ns) / 1_000, bucket.count_at_value())
    });
    let mut counts: Vec<(u64, u64)> = counts.collect();
    if let Some((_, count)) = counts.last_mut() {
        *count -= 1;
    }
    counts.push((most_ns / 1_000, 1));
    Distribution::new(counts)
}

/// Durations in whole microseconds, to three significant digits.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    us: hdrhistogram::Histogram<u64>,
}

impl Recorded {
    /// Those of `durations`; what is longer than a day counts as that.
    pub(super) fn of(durations: &Histogram) -> Self {
        let mut us = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_US, DIGITS)
            .unwrap_or_else(|_| unreachable!("the limits are constants that it takes"));
        for &(value_us, count) in of_us(durations).values() {
            us.saturating_record_n(value_us, count);
        }
        Self { us }
    }

    /// The row of the table, microseconds; 0 throughout of none. The longest is the lowest time
    /// that is counted with it.
    fn row(&self) -> Row {
        let (mean, stdev) = (self.us.mean(), self.us.stdev());
        let (least, most) = ((mean - stdev).max(0.0) as u64, (mean + stdev) as u64);
        let within = self.us.count_between(least, most) as f64;
        let within_percent = within / self.us.len() as f64 * 100.0;
        Row {
            mean,
            stdev,
            max: self.us.lowest_equivalent(self.us.max()) as f64,
            within_percent: if self.us.is_empty() {
                0.0
            } else {
                within_percent
            },
        }
    }

    /// The distribution with its spectrum, under this title.
    pub(super) fn print(&self, title: &str, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  Latency Distribution (HdrHistogram - {title})");
        for percent in SUMMARY {
            let us = self.us.value_at_percentile(percent) as f64;
            let _ = writeln!(text, "{percent:7.3}%{}", column(&time_us(us), 10));
        }
        text.push_str("\n  Detailed Percentile spectrum:\n");
        let _ = writeln!(
            text,
            "{:>12} {:>12} {:>12} {:>12}\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        if self.us.is_empty() {
            print_step(0, 1.0, 0, text);
        }
        let mut count = 0;
        for step in self.us.iter_quantiles(STEPS_PER_HALF) {
            count += step.count_since_last_iteration();
            let us = self.us.highest_equivalent(step.value_iterated_to());
            print_step(us, step.quantile_iterated_to(), count, text);
        }
        let Row {
            mean, stdev, max, ..
        } = self.row();
        let buckets = (self.us.high() / SUB_BUCKETS + 1).next_power_of_two();
        let _ = writeln!(
            text,
            "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n\
             #[Max     = {:12.3}, Total count    = {:12}]\n\
             #[Buckets = {:12}, SubBuckets     = {SUB_BUCKETS:12}]",
            mean / 1e3,
            stdev / 1e3,
            max / 1e3,
            self.us.len(),
            1 + buckets.ilog2(),
        );
    }
}

/// A step of the spectrum: how many are no longer than a time, and the share of those.
fn print_step(us: u64, quantile: f64, count: u64, text: &mut String) {
    let inverse = 1.0 / (1.0 - quantile);
    let _ = writeln!(
        text,
        "{:12.3} {quantile:12.6} {count:12} {inverse:12.2}",
        us as f64 / 1e3
    );
}

/// Time between two samples, nanoseconds; in runs of over two minutes what a series has in its
/// place.
const SAMPLE_NS: u64 = 100_000_000;

/// The samples of all workers, whole replies per second.
pub(super) fn per_thread(run: &Run) -> Distribution {
    let mut rates = Vec::new();
    for worker in run.workers() {
        sample(&worker.series, run.window_ns, &mut rates);
    }
    Distribution::new(rates.into_iter().map(|rate| (rate, 1)))
}

/// Adds the samples of one worker. Time without replies belongs to the sample behind it.
fn sample(series: &Series, window_ns: u64, rates: &mut Vec<u64>) {
    let interval_ns = series.interval_ns.max(1);
    let points = (SAMPLE_NS / interval_ns).max(1) as usize;
    let others = rates.len();
    let (mut from_ns, mut at_ns) = (0_u64, 0_u64);
    for chunk in series.points.chunks(points) {
        let length_ns = interval_ns.saturating_mul(chunk.len() as u64);
        at_ns = at_ns.saturating_add(length_ns).min(window_ns);
        let replies = chunk.iter().fold(0_u64, |sum, point| {
            sum.saturating_add(point.successes)
                .saturating_add(point.errors)
        });
        // What is left at the end is too short for a rate.
        let is_whole = at_ns - from_ns >= SAMPLE_NS || rates.len() == others;
        if replies > 0 && is_whole && at_ns > from_ns {
            rates.push((replies as f64 * 1e9 / (at_ns - from_ns) as f64) as u64);
            from_ns = at_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::SeriesPoint;

    use super::*;

    #[test]
    fn rows_stand_as_in_wrk() {
        // Captured from wrk.
        for (figures, name, unit, line) in [
            (
                (20_370.0, 43.97, 20_520.0, 79.59),
                "Latency",
                time_us as fn(f64) -> String,
                "    Latency    20.37ms   43.97us  20.52ms   79.59%\n",
            ),
            (
                (98.70, 6.58, 101.0, 90.0),
                "Req/Sec",
                metric,
                "    Req/Sec    98.70      6.58   101.00     90.00%\n",
            ),
            (
                (635.91, 890.0, 12_920.0, 93.69),
                "Latency",
                time_us,
                "    Latency   635.91us    0.89ms  12.92ms   93.69%\n",
            ),
            (
                (56_200.0, 8_070.0, 62_000.0, 86.54),
                "Req/Sec",
                metric,
                "    Req/Sec    56.20k     8.07k   62.00k    86.54%\n",
            ),
        ] {
            let (mean, stdev, max, within_percent) = figures;
            let figures = Row {
                mean,
                stdev,
                max,
                within_percent,
            };
            let mut text = String::new();
            row(&figures, name, unit, &mut text);
            assert_eq!(text, line);
        }
    }

    #[test]
    fn counts_and_rates_stand_as_in_wrk() {
        let mut counts = Counts {
            duration_ns: 1_000_408_000,
            requests: 98,
            bytes: 14_500,
            status: 49,
            ..Counts::default()
        };
        assert_eq!(
            counts_and_rates(&counts),
            "  98 requests in 1.00s, 14.16KB read\n  Non-2xx or 3xx responses: 49\n\
             Requests/sec:     97.96\nTransfer/sec:     14.15KB\n"
        );
        counts.timeout = 3;
        counts.duration_ns = 0;
        assert_eq!(
            counts_and_rates(&counts),
            "  98 requests in 0.00us, 14.16KB read\n  \
             Socket errors: connect 0, read 0, write 0, timeout 3\n  \
             Non-2xx or 3xx responses: 49\nRequests/sec:      0.00\nTransfer/sec:       0.00B\n"
        );
    }

    fn of(values_us: impl IntoIterator<Item = u64>) -> Recorded {
        let mut durations = Histogram::default();
        let values = values_us.into_iter();
        values.for_each(|us| durations.record(us * 1_000));
        Recorded::of(&durations)
    }

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
        let empty = of_us(&Histogram::default());
        assert_eq!((empty.total(), empty.max(), empty.mean()), (0, 0, 0.0));
    }

    #[test]
    fn most_lie_within_one_deviation() {
        let recorded = of([10, 10, 10, 10, 10, 10, 10, 10, 10, 1_000]);
        assert_eq!(recorded.row().within_percent, 90.0);
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
        assert_eq!((empty.row().within_percent, empty.row().max), (0.0, 0.0));
    }

    fn series(interval_ns: u64, replies: &[u64]) -> Series {
        let point = |&successes: &u64| SeriesPoint {
            successes,
            ..SeriesPoint::default()
        };
        Series {
            interval_ns,
            points: replies.iter().map(point).collect(),
        }
    }

    #[test]
    fn a_sample_is_a_rate_over_100_ms() {
        const MS: u64 = 1_000_000;
        // (interval, replies, window, samples)
        type Row<'a> = (u64, &'a [u64], u64, &'a [u64]);
        let cases: [Row<'_>; 6] = [
            (100 * MS, &[10, 20, 30], 300 * MS, &[100, 200, 300]),
            (50 * MS, &[5, 6, 0, 9], 200 * MS, &[110, 90]),
            // Nothing came for a while.
            (100 * MS, &[10, 0, 30], 300 * MS, &[100, 150]),
            // The rest is short.
            (100 * MS, &[10, 10], 150 * MS, &[100]),
            (100 * MS, &[], 1_000 * MS, &[]),
            (200 * MS, &[10, 30], 400 * MS, &[50, 150]),
        ];
        for (interval_ns, replies, window_ns, expected) in cases {
            let mut rates = Vec::new();
            sample(&series(interval_ns, replies), window_ns, &mut rates);
            assert_eq!(rates, expected, "{replies:?}");
        }
    }
}
