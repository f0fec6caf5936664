//! How well figures are known, in words: `±`, the two ends of an interval, or why there is none.

use brunt_judge::{Interval, NoInterval, Quantile, RateInterval};

use crate::units;

/// Heading of the precision of the response times.
pub(super) const LABEL: &str = "  ± 95 %";
/// A share beyond which `±` says little: the ends do.
const SHARE_MOST: f64 = 0.5;
/// What stands in place of an interval.
const UNKNOWN: &str = "?";

/// How far the rate `per_s` may be off, behind it; empty where it is planned to vary.
pub(crate) fn of_rate(interval: Result<RateInterval, NoInterval>, per_s: f64) -> String {
    let RateInterval {
        low_per_s,
        high_per_s,
    } = match interval {
        Ok(interval) => interval,
        Err(NoInterval::PlannedToVary) => return String::new(),
        Err(_) => return " (± unknown: too short)".to_owned(),
    };
    let off = (high_per_s - per_s).max(per_s - low_per_s);
    if per_s <= 0.0 || !off.is_finite() {
        String::new()
    } else if off > per_s * SHARE_MOST {
        let (low, high) = (units::rate(low_per_s), units::rate(high_per_s));
        format!(" (95 %: {low} to {high})")
    } else {
        // Rounded up where it would look like none.
        format!(" ±{}", units::percent((off / per_s).max(0.001)))
    }
}

/// The precision of the columns of a table of quantiles.
#[derive(Default)]
pub(crate) struct Precision {
    /// Absent where the column has none by its nature.
    columns: Vec<Option<Known>>,
}

/// Heading, value and interval of a quantile.
type Known = (&'static str, u64, Result<Interval, NoInterval>);

impl Precision {
    /// Adds a column: with a quantile by its heading, or none.
    pub(crate) fn push(&mut self, column: Option<(&'static str, Quantile)>) {
        self.columns.push(match column {
            Some((heading, Quantile::Known { ns, interval })) if ns > 0 => {
                Some((heading, ns, interval))
            }
            _ => None,
        });
    }

    /// The rows of the table, each with a label and its cells. There is one row of shares; where an
    /// interval is wide, a cell has its farther end. With `is_full` and a wide interval, there are
    /// two rows with the ends. There is none without any interval.
    pub(crate) fn rows(&self, is_full: bool) -> Vec<(&'static str, Vec<String>)> {
        let row = |label, cell: fn(u64, Interval) -> String| {
            let cells = self.columns.iter().map(|column| match *column {
                Some((_, ns, Ok(interval))) => cell(ns, interval),
                Some((_, _, Err(_))) => UNKNOWN.to_owned(),
                None => String::new(),
            });
            (label, cells.collect())
        };
        let known = || self.columns.iter().flatten();
        let mut intervals = known().filter_map(|&(_, ns, interval)| Some((ns, interval.ok()?)));
        let Some(first) = intervals.next() else {
            return Vec::new();
        };
        let is_wide = |(ns, interval)| share(ns, interval) > SHARE_MOST;
        if is_full && (is_wide(first) || intervals.any(is_wide)) {
            vec![
                row("  95 % from", |_, interval| {
                    units::duration(interval.low_ns)
                }),
                row("  to", |_, interval| units::duration(interval.high_ns)),
            ]
        } else {
            vec![row(LABEL, share_or_end)]
        }
    }

    /// Says which columns have no interval, and why the first of them has none. Where a longer run
    /// is what is missing, says how much longer than `window_ns` it would have to be.
    pub(crate) fn unknown(&self, window_ns: u64) -> Option<String> {
        let columns = || self.columns.iter().flatten();
        let unknown = |&&(_, _, interval): &&Known| interval.is_err();
        let (heading, _, interval) = columns().find(unknown)?;
        let reason = words(interval.err()?, window_ns);
        let which = match columns().filter(unknown).count() {
            count if count == columns().count() => String::new(),
            1 => format!(" for {heading}"),
            _ => format!(" from {heading} on"),
        };
        Some(format!("{UNKNOWN}{which}: {reason}"))
    }

    /// Says in few words, to stand behind the row, how long a run would have to be for an interval.
    /// Absent where a longer run does not help.
    pub(crate) fn needs(&self, window_ns: u64) -> Option<String> {
        let mut columns = self.columns.iter().flatten();
        let reason = columns.find_map(|&(_, _, interval)| interval.err())?;
        let length = typed(window_ns.saturating_mul(reason.times_longer()?));
        Some(format!("{UNKNOWN} needs -d {length}"))
    }
}

/// How far `ns` is from the farther end of `interval`, as a share of `ns`.
fn share(ns: u64, interval: Interval) -> f64 {
    let off_ns = interval
        .high_ns
        .abs_diff(ns)
        .max(ns.abs_diff(interval.low_ns));
    off_ns as f64 / ns as f64
}

/// How far the value may be off, as a share. Where the share is so large that it says little, the
/// end of the interval.
fn share_or_end(ns: u64, interval: Interval) -> String {
    let share = share(ns, interval);
    if share <= SHARE_MOST {
        units::percent(share)
    } else if interval.high_ns.abs_diff(ns) >= ns.abs_diff(interval.low_ns) {
        format!("≤{}", units::duration(interval.high_ns))
    } else {
        format!("≥{}", units::duration(interval.low_ns))
    }
}

/// The reason, with the option that mends it.
fn words(reason: NoInterval, window_ns: u64) -> String {
    match reason.times_longer() {
        Some(times) => {
            let length = typed(window_ns.saturating_mul(times));
            format!("the run is too short to tell; try -d {length}")
        }
        None => reason.to_string(),
    }
}

/// A duration as `-d` takes it, rounded up: `40s`, `12m`, `3h`.
fn typed(duration_ns: u64) -> String {
    const SECOND_NS: u64 = 1_000_000_000;
    let seconds = duration_ns.div_ceil(SECOND_NS);
    match seconds {
        0..=300 => format!("{seconds}s"),
        301..=10_800 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{}h", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_a_share_or_two_ends() {
        for (ends, per_s, words) in [
            (Ok((99.2, 100.8)), 100.0, " ±0.8 %"),
            (Ok((99.2, 104.0)), 100.0, " ±4.0 %"),
            (Ok((100.0, 100.0)), 100.0, " ±0.1 %"),
            (Ok((50.0, 150.0)), 100.0, " ±50 %"),
            (Ok((0.0, 30.0)), 10.0, " (95 %: 0 to 30.0)"),
            (Ok((0.0, 0.0)), 0.0, ""),
            (Err(NoInterval::PlannedToVary), 10.0, ""),
            (Err(NoInterval::NoWindow), 10.0, " (± unknown: too short)"),
        ] {
            let interval = ends.map(|(low_per_s, high_per_s)| RateInterval {
                low_per_s,
                high_per_s,
            });
            assert_eq!(of_rate(interval, per_s), words);
        }
    }

    type Ends = Result<(u64, u64), NoInterval>;

    fn of(columns: &[Option<(&'static str, Ends)>]) -> Precision {
        let mut precision = Precision::default();
        for column in columns {
            precision.push(column.map(|(heading, ends)| {
                let interval = ends.map(|(low_ns, high_ns)| Interval { low_ns, high_ns });
                let ns = 1_000;
                (heading, Quantile::Known { ns, interval })
            }));
        }
        precision
    }

    const WINDOW_NS: u64 = 10_000_000_000;

    const ALIKE: NoInterval = NoInterval::TooAlike {
        samples: 20_000,
        worth: 1_234,
        needed: 3_688,
    };

    #[test]
    fn narrow_intervals_are_one_row_and_wide_ones_two() {
        let narrow = of(&[
            None,
            Some(("p50", Ok((990, 1_005)))),
            Some(("p90", Ok((900, 1_500)))),
        ]);
        let [(label, cells)] = narrow.rows(true).try_into().unwrap();
        assert_eq!(label, LABEL);
        assert_eq!(cells, ["", "1.0 %", "50 %"]);
        assert_eq!(narrow.unknown(WINDOW_NS), None);
        let wide = of(&[
            Some(("p50", Ok((990, 1_005)))),
            Some(("p90", Ok((900, 43_190)))),
            Some(("p99", Err(ALIKE))),
        ]);
        let [low, high] = wide.rows(true).try_into().unwrap();
        assert_eq!(low.1, ["990 ns", "900 ns", "?"]);
        assert_eq!(high.1, ["1.00 µs", "43.2 µs", "?"]);
    }

    #[test]
    fn lengths_are_as_they_are_typed() {
        for (seconds, words) in [(1, "1s"), (300, "300s"), (301, "6m"), (10_801, "4h")] {
            assert_eq!(typed(seconds * 1_000_000_000), words);
        }
    }

    #[test]
    fn what_is_not_known_is_said_with_its_reason() {
        let ends = || Ok((990, 1_005));
        for (columns, words) in [
            (
                of(&[Some(("p50", ends())), Some(("p90", Err(ALIKE)))]),
                "? for p90: the run is too short to tell; try -d 30s",
            ),
            (
                of(&[
                    Some(("p50", ends())),
                    Some(("p90", Err(ALIKE))),
                    Some(("p99", Err(ALIKE))),
                    None,
                ]),
                "? from p90 on: the run is too short to tell; try -d 30s",
            ),
            (
                of(&[Some(("p50", Err(NoInterval::PlannedToVary))), None]),
                "?: the rate is planned to vary over the window",
            ),
        ] {
            assert_eq!(columns.unknown(WINDOW_NS).as_deref(), Some(words));
        }
        assert!(of(&[Some(("p50", Err(ALIKE)))]).rows(true).is_empty());
        assert!(of(&[None]).rows(false).is_empty());
    }
}
