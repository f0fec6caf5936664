//! The percentile spectrum of the response times, in the steps of HdrHistogram, and files for its
//! tools: the interval log and the percentile distribution.

use std::io::{self, BufWriter, Write};
use std::time::{Duration, UNIX_EPOCH};

use brunt_record::{Histogram, Run};
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError};
use hdrhistogram::serialization::{V2DeflateSerializeError, V2DeflateSerializer};
use serde::Serialize;

use crate::{ReportError, printable};

/// Steps per half of the remaining distance to 100 %, as HdrHistogram's tools print them.
const STEPS_PER_HALF: u32 = 5;
/// How far a quantile may differ by what was never answered, and still be known: as in
/// [`Run::response_quantile`].
const UNFINISHED_DIFFER: f64 = 0.01;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct SpectrumStep {
    /// No response time up to `quantile` is above it.
    pub(crate) ns: u64,
    /// 0 to 1.
    pub(crate) quantile: f64,
    /// Response times up to `ns`.
    pub(crate) count: u64,
    /// Whether `ns` is a lower bound.
    pub(crate) is_bound: bool,
}

/// Response times of successful replies and, as the least they can have been, those of what was
/// never answered.
#[derive(Debug, Serialize)]
pub(crate) struct Spectrum {
    /// The steps from the smallest value to 100 %; empty without a value.
    pub(crate) steps: Vec<SpectrumStep>,
    /// How many of the values are lower bounds.
    pub(crate) bounds: u64,
    /// The smallest lower bound.
    pub(crate) bounds_from_ns: Option<u64>,
    /// How many values there are.
    pub(crate) count: u64,
    /// The values in one histogram.
    #[serde(skip)]
    pub(crate) values: Histogram,
}

impl Spectrum {
    /// Durations of which all ended.
    pub(crate) fn of(values: &Histogram) -> Self {
        Self::with_bounds(values, &Histogram::default())
    }

    /// The response times of `run`.
    pub(crate) fn of_response(run: &Run) -> Self {
        Self::with_bounds(&run.latencies.response, &run.latencies.unfinished)
    }

    fn with_bounds(finished: &Histogram, unfinished: &Histogram) -> Self {
        let mut values = finished.clone();
        values.merge(unfinished);
        Self {
            steps: steps(&values, finished),
            bounds: unfinished.count(),
            bounds_from_ns: unfinished.min_ns(),
            count: values.count(),
            values,
        }
    }
}

/// The steps of `values`, which are those of `finished` and lower bounds.
fn steps(values: &Histogram, finished: &Histogram) -> Vec<SpectrumStep> {
    let (Some(min_ns), Some(max_ns)) = (values.min_ns(), values.max_ns()) else {
        return Vec::new();
    };
    let mut count = 0_u64;
    values
        .buckets()
        .iter_quantiles(STEPS_PER_HALF)
        .map(|step| {
            count = count.saturating_add(step.count_since_last_iteration());
            let quantile = step.quantile_iterated_to();
            // A bucket is known by its upper edge; the extremes are known exactly. What is beyond
            // the buckets is in the last one.
            let ns = if quantile < 1.0 {
                step.value_iterated_to().clamp(min_ns, max_ns)
            } else {
                max_ns
            };
            SpectrumStep {
                ns,
                quantile,
                count,
                is_bound: is_bound(values, finished, quantile, ns),
            }
        })
        .collect()
}

/// Whether the quantile, `ns` with unfinished requests at their bounds, is higher if they take
/// for ever.
fn is_bound(values: &Histogram, finished: &Histogram, quantile: f64, ns: u64) -> bool {
    if values.count() == finished.count() {
        return false;
    }
    let rank = (values.count() as f64 * quantile).ceil();
    let finished_quantile = rank / finished.count() as f64;
    let most_ns = if finished_quantile <= 1.0 {
        finished.quantile_ns(finished_quantile)
    } else {
        None
    };
    most_ns.is_none_or(|most_ns| most_ns as f64 > ns as f64 * (1.0 + UNFINISHED_DIFFER))
}

/// Nanoseconds of a millisecond: the unit in which the tools print.
const MS: f64 = 1e6;

/// Writes the interval log (`.hlog`) of the response times of successful replies to requests
/// issued in the window, by the time of their completion. Values are in nanoseconds; the column
/// of the maxima is in milliseconds.
///
/// # Errors
///
/// When `out` refuses the bytes, or when a histogram cannot be encoded.
pub fn write_hlog(run: &Run, out: &mut dyn Write) -> Result<(), ReportError> {
    let mut buffered = BufWriter::new(out);
    let mut serializer = V2DeflateSerializer::new();
    let start = UNIX_EPOCH + Duration::from_millis(run.first().clock.window_start_unix_ms);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!(
            "[brunt {}: response times in nanoseconds; times count from the start of the window]",
            printable(&run.brunt_version)
        ))
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(MS)
        .begin_log_with(&mut buffered, &mut serializer)?;
    for interval in run.latencies.intervals.coarsened().iter() {
        // Of the last interval, only what lies in the window was measured.
        let within_ns = run.window_ns.saturating_sub(interval.start_ns);
        let start = Duration::from_nanos(interval.start_ns);
        let length = Duration::from_nanos(interval.length_ns.min(within_ns));
        log.write_histogram(&interval.response, start, length, None)
            .map_err(refused)?;
    }
    Ok(buffered.flush()?)
}

fn refused(error: IntervalLogWriterError<V2DeflateSerializeError>) -> ReportError {
    match error {
        IntervalLogWriterError::IoError(error) => ReportError::Output(error),
        IntervalLogWriterError::SerializeError(error) => ReportError::Histogram(error),
    }
}

/// Writes the percentile distribution (`.hgrm`) of the response times, in milliseconds, with five
/// steps per half distance to 100 %. What was never answered counts with the time for which it
/// was waited for, and a comment says how many there are.
///
/// # Errors
///
/// When `out` refuses the bytes.
pub fn write_hgrm(run: &Run, out: &mut dyn Write) -> Result<(), ReportError> {
    let spectrum = Spectrum::of_response(run);
    let values = &spectrum.values;
    let mut buffered = BufWriter::new(out);
    if let Some(from_ns) = spectrum.bounds_from_ns {
        writeln!(
            buffered,
            "# {} of {} values are lower bounds, from {:.6} ms on",
            spectrum.bounds,
            values.count(),
            from_ns as f64 / MS
        )?;
    }
    writeln!(
        buffered,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    for step in &spectrum.steps {
        line(step, &mut buffered)?;
    }
    if let (Some(mean_ns), Some(max_ns)) = (values.mean_ns(), values.max_ns()) {
        let buckets = values.buckets();
        let sub_buckets = (2 * 10_usize.pow(buckets.sigfig().into())).next_power_of_two();
        writeln!(
            buffered,
            "#[Mean    = {:>12.6}, StdDeviation   = {:>12.6}]\n\
             #[Max     = {:>12.6}, Total count    = {:>12}]\n\
             #[Buckets = {:>12}, SubBuckets     = {:>12}]",
            mean_ns / MS,
            buckets.stdev() / MS,
            max_ns as f64 / MS,
            values.count(),
            // The first bucket has all of its sub-buckets, each further one the upper half.
            buckets.distinct_values() / (sub_buckets / 2) - 1,
            sub_buckets,
        )?;
    } else {
        writeln!(buffered, "# no reply to a request issued in the window")?;
    }
    Ok(buffered.flush()?)
}

/// One row of the table. The last one, at 100 %, has no fourth column.
fn line(step: &SpectrumStep, out: &mut dyn Write) -> io::Result<()> {
    let (value, quantile) = (step.ns as f64 / MS, step.quantile);
    write!(out, "{value:>12.6} {quantile:2.12} {:>10}", step.count)?;
    if quantile < 1.0 {
        write!(out, " {:>14.2}", 1.0 / (1.0 - quantile))?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|ns| histogram.record(ns));
        histogram
    }

    #[test]
    fn a_step_is_a_bound_where_the_unfinished_could_move_it() {
        let finished = (1..=900).map(|index| index * 1_000);
        // Bounds, and the quantile from which on they matter.
        for (bound_ns, from) in [(2_000_000, 0.9), (1_000, 0.0), (0, -1.0)] {
            let finished = of(finished.clone());
            let mut values = of([bound_ns; 100]);
            values.merge(&finished);
            for step in steps(&values, &finished) {
                let at = (bound_ns, step.quantile);
                assert_eq!(step.is_bound, step.quantile > from, "{at:?}");
            }
        }
    }
}
