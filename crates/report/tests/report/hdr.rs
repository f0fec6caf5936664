//! The files for HdrHistogram's tools, read back.

use std::time::Duration;

use base64::Engine as _;
use brunt_record::{Latencies, Run};
use brunt_report::{write_hgrm, write_hlog};
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use crate::fixtures;
use crate::golden::compare;

fn hlog(run: &Run) -> String {
    let mut bytes = Vec::new();
    write_hlog(run, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The histogram of an interval, whatever its tag.
fn decoded(encoded: &str) -> hdrhistogram::Histogram<u64> {
    let bytes = base64::prelude::BASE64_STANDARD.decode(encoded).unwrap();
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .unwrap()
}

fn hgrm(run: &Run) -> String {
    let mut bytes = Vec::new();
    write_hgrm(run, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn files_as_they_were() {
    for (name, run) in [("few", fixtures::few()), ("silent", fixtures::silent())] {
        compare(&format!("{name}.hgrm"), &hgrm(&run));
    }
    compare("few.hlog", &hlog(&fixtures::few()));
}

#[test]
fn the_interval_log_reads_back_as_what_was_recorded() {
    for (name, run) in fixtures::all() {
        let log = hlog(&run);
        let start = Duration::from_millis(run.agents[0].clock.window_start_unix_ms);
        let (mut started, mut based) = (None, None);
        let (mut next, mut count, mut max_ns) = (Duration::ZERO, 0, 0);
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            let interval = match entry.unwrap() {
                LogEntry::StartTime(at) => {
                    started = Some(at);
                    continue;
                }
                LogEntry::BaseTime(at) => {
                    based = Some(at);
                    continue;
                }
                LogEntry::Interval(interval) => interval,
            };
            let histogram = decoded(interval.encoded_histogram());
            let printed_max_ns = interval.max() * 1e6;
            let max_diff_ns = printed_max_ns - histogram.max() as f64;
            assert!(max_diff_ns.abs() <= 500.0, "{name}: {max_diff_ns} ns");
            assert_eq!(interval.start_timestamp(), next, "{name}");
            next += interval.duration();
            count += histogram.len();
            max_ns = max_ns.max(histogram.max());
        }
        assert_eq!((started, based), (Some(start), Some(start)), "{name}");
        let Latencies { response, .. } = &run.latencies;
        assert_eq!(count, response.count(), "{name}");
        // Two significant digits.
        let exact_ns = response.max_ns().unwrap_or(0);
        assert!(max_ns.abs_diff(exact_ns) <= exact_ns / 100, "{name}");
        assert!(next <= Duration::from_nanos(run.window_ns), "{name}");
    }
}

/// A row of a percentile distribution, as a plotter reads it: value in milliseconds, quantile, count
/// up to it, and inverse, which the last row has not.
type Row = (f64, f64, u64, Option<f64>);

fn rows(text: &str) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.skip(2).map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| cells[index].parse::<f64>().unwrap();
        let inverse = (cells.len() == 4).then(|| number(3));
        (number(0), number(1), cells[2].parse().unwrap(), inverse)
    });
    rows.collect()
}

#[test]
fn the_percentile_distribution_reads_back_as_what_was_recorded() {
    for (name, run) in fixtures::all() {
        let rows = rows(&hgrm(&run));
        let mut all = run.latencies.response.clone();
        all.merge(&run.latencies.unfinished);
        let Some(max_ns) = all.max_ns() else {
            assert!(rows.is_empty(), "{name}");
            continue;
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        for pair in rows.windows(2) {
            assert!(pair[0].0 <= pair[1].0 && pair[0].2 <= pair[1].2, "{name}");
            assert!(pair[0].1 < pair[1].1, "{name}");
        }
        for &(value_ms, quantile, count, inverse) in &rows {
            // At the edge of a bucket, rounding decides which neighbour is meant.
            let near = |ranks: f64| {
                let quantile = quantile + ranks / all.count() as f64;
                ms(all.quantile_ns(quantile.clamp(0.0, 1.0)).unwrap())
            };
            let range_ms = near(-1.0) * 0.999..=near(1.0) * 1.001;
            assert!(
                range_ms.contains(&value_ms),
                "{name}: {value_ms} at {quantile}"
            );
            assert!(
                count as f64 >= quantile * all.count() as f64 - 1e-6,
                "{name}"
            );
            if let Some(inverse) = inverse {
                assert!((inverse * (1.0 - quantile) - 1.0).abs() < 0.01, "{name}");
            }
        }
        let last = rows.last().unwrap();
        assert_eq!((last.1, last.2, last.3), (1.0, all.count(), None), "{name}");
        assert!((last.0 - ms(max_ns)).abs() <= ms(max_ns) * 1e-3, "{name}");
    }
}
