//! The rates of which wrk prints `Req/Sec`: per thread, one per 100 ms in which replies came.

use brunt_record::{Run, Series};
use brunt_script::Distribution;

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
