//! When in the window requests failed.

use brunt_record::{Run, Series, SeriesPoint};

/// Share of the failures that may lie before the time that is named, and as many behind it: a
/// stray one says nothing of the rest.
const STRAY_MOST: f64 = 0.01;
/// Failures from within this share of the window's start, or to within it of its end, are taken for
/// failures from the start, or to the end.
const EDGE: f64 = 0.05;

/// The part of the window in which requests failed, nanoseconds from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureTimes {
    /// When requests began to fail; 0 where they failed from the start.
    pub from_ns: u64,
    /// When requests ceased to fail; absent where they failed to the end.
    pub until_ns: Option<u64>,
    /// Share of what ended then that failed or had an error status, 0 to 1.
    pub share: f64,
}

impl FailureTimes {
    /// When requests failed or had error statuses; absent where none did. As exact as the intervals
    /// of `series` are long, which is that of the run.
    pub fn of(run: &Run, series: &Series) -> Option<Self> {
        let whole = run.window_ns.div_ceil(series.interval_ns.max(1));
        let whole = usize::try_from(whole).unwrap_or(usize::MAX);
        let points = &series.points[..series.points.len().min(whole)];
        let failed: Vec<u64> = points.iter().map(SeriesPoint::failed).collect();
        let stray = (failed.iter().sum::<u64>() as f64 * STRAY_MOST) as u64;
        let first = beyond(failed.iter().enumerate(), stray)?;
        let last = beyond(failed.iter().enumerate().rev(), stray)?;
        let failures: u64 = failed[first..=last].iter().sum();
        let successes: u64 = points[first..=last].iter().map(|it| it.successes).sum();
        let edge_ns = run.window_ns as f64 * EDGE;
        let from_ns = first as u64 * series.interval_ns;
        let until_ns = (last as u64 + 1) * series.interval_ns;
        let left_ns = run.window_ns.saturating_sub(until_ns);
        Some(Self {
            from_ns: if from_ns as f64 <= edge_ns {
                0
            } else {
                from_ns
            },
            until_ns: (left_ns as f64 > edge_ns).then_some(until_ns),
            share: failures as f64 / (failures + successes) as f64,
        })
    }

    /// Whether requests failed from the start to the end.
    pub fn is_throughout(&self) -> bool {
        self.from_ns == 0 && self.until_ns.is_none()
    }
}

/// The index at which a running sum exceeds `stray`.
fn beyond<'a>(counts: impl Iterator<Item = (usize, &'a u64)>, stray: u64) -> Option<usize> {
    let mut sum = 0;
    let mut counts = counts;
    let found = counts.find(|&(_, count)| {
        sum += count;
        sum > stray
    });
    found.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::sample::run;

    const MS: u64 = 1_000_000;

    /// The failure times of a window of ten intervals of 100 ms, each with 90 successes.
    fn found(failures: [u64; 10]) -> Option<(u64, Option<u64>, f64)> {
        let mut run = run();
        run.window_ns = 1_000 * MS;
        let points = failures.map(|failures| SeriesPoint {
            successes: 90,
            errors: failures / 2,
            failures: failures - failures / 2,
            ..SeriesPoint::default()
        });
        let series = Series {
            interval_ns: 100 * MS,
            points: points.into(),
        };
        let found = FailureTimes::of(&run, &series)?;
        let until_ms = found.until_ns.map(|ns| ns / MS);
        Some((found.from_ns / MS, until_ms, found.share))
    }

    #[test]
    fn the_time_and_the_share_are_those_of_the_failures() {
        for (failures, expected) in [
            ([0; 10], None),
            ([10; 10], Some((0, None, 0.1))),
            ([0, 0, 0, 0, 10, 10, 10, 10, 10, 10], Some((400, None, 0.1))),
            (
                [0, 0, 90, 90, 0, 0, 0, 0, 0, 0],
                Some((200, Some(400), 0.5)),
            ),
            ([30, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some((0, Some(100), 0.25))),
            // One of 181 is a stray one.
            (
                [1, 0, 90, 90, 0, 0, 0, 0, 0, 0],
                Some((200, Some(400), 0.5)),
            ),
            ([0, 0, 0, 10, 0, 0, 0, 0, 0, 0], Some((300, Some(400), 0.1))),
        ] {
            assert_eq!(found(failures), expected, "{failures:?}");
        }
    }
}
