//! Files for the tools of HdrHistogram: the interval log and the percentile distribution.

use std::io::{self, BufWriter, Write};
use std::time::{Duration, UNIX_EPOCH};

use brunt_record::Run;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError};
use hdrhistogram::serialization::{V2DeflateSerializeError, V2DeflateSerializer};

use crate::spectrum::{Spectrum, Step};
use crate::{ReportError, printable};

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
fn line(step: &Step, out: &mut dyn Write) -> io::Result<()> {
    let Step {
        ns,
        quantile,
        count,
        ..
    } = *step;
    let value = ns as f64 / MS;
    if quantile < 1.0 {
        let inverse = 1.0 / (1.0 - quantile);
        writeln!(
            out,
            "{value:>12.6} {quantile:2.12} {count:>10} {inverse:>14.2}"
        )
    } else {
        writeln!(out, "{value:>12.6} {quantile:2.12} {count:>10}")
    }
}
