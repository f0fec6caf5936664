//! Quantiles with their intervals, that say when they are not known (invariants A2 and L5).

use crate::student_t::Mean;
use crate::{Histogram, Run};

/// Half the width of a two-sided 95 % interval, in standard deviations.
const Z_95: f64 = 1.96;
/// How far the estimates with unfinished requests at their bounds and at infinity may differ for
/// the quantile to be known.
const UNFINISHED_DIFFER: f64 = 0.01;
/// Sub-windows that an interval is taken from.
const PARTS_MIN: usize = 20;
const PARTS_MAX: usize = 30;

/// A two-sided 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its lower end, nanoseconds.
    pub low_ns: u64,
    /// Its upper end, nanoseconds.
    pub high_ns: u64,
}

/// A quantile, or why it is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// It is known.
    Known {
        /// Its value, nanoseconds.
        ns: u64,
        /// Where the true quantile lies; holds `ns`.
        interval: Interval,
    },
    /// Too many requests never ended, so that only a lower bound is known.
    AtLeast {
        /// The bound, nanoseconds.
        ns: u64,
    },
    /// A two-sided 95 % interval would reach beyond the samples.
    TooFew {
        /// Samples at hand.
        samples: u64,
        /// Samples needed.
        needed: u64,
    },
}

/// The fewest samples with which a two-sided 95 % interval of the `q`-quantile (0 < q < 1) lies
/// within the samples on both sides: `max(q, 1-q)^n <= 0.025`, so 368 for p99 and 3,688 for p99.9.
/// For any other `q` no number suffices (`u64::MAX`).
pub fn samples_needed(q: f64) -> u64 {
    if !(q > 0.0 && q < 1.0) {
        return u64::MAX;
    }
    (0.025_f64.ln() / q.max(1.0 - q).ln()).ceil() as u64
}

/// The ranks (from 1) of the `q`-quantile of `samples` values, at least one, and of the ends of
/// its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranks {
    low: u64,
    middle: u64,
    high: u64,
}

impl Ranks {
    fn of(samples: u64, q: f64) -> Self {
        let expected = samples as f64 * q;
        let margin = Z_95 * (expected * (1.0 - q)).sqrt();
        let rank = |rank: f64| (rank as u64).clamp(1, samples);
        Self {
            low: rank((expected - margin).floor()),
            // As `value_at_quantile` has it: 0.99 of 100 is the 99th for all that floats say.
            middle: rank((expected - 1e-9 * expected).ceil()),
            high: rank((expected + margin).ceil() + 1.0),
        }
    }
}

impl Histogram {
    /// The `q`-quantile with its interval from order statistics, when there are samples enough.
    pub fn quantile(&self, q: f64) -> Quantile {
        quantile_of(self, &Self::default(), q)
    }
}

impl Run {
    /// The `q`-quantile of the response time of successful replies, with what is known of those
    /// that never came. The interval is the wider of that from order statistics and that from the
    /// quantiles of sub-windows, which sees what the first does not: that neighbours are alike.
    pub fn response_quantile(&self, q: f64) -> Quantile {
        let latencies = &self.latencies;
        match quantile_of(&latencies.response, &latencies.unfinished, q) {
            Quantile::Known { ns, interval } => {
                let half_ns = self.sub_window_half_width_ns(q).unwrap_or(0);
                // A bound of an unfinished one may lie below all that finished.
                let least_ns = latencies.response.min_ns().unwrap_or(0).min(ns);
                let by_parts = Interval {
                    low_ns: ns.saturating_sub(half_ns).max(least_ns),
                    high_ns: ns.saturating_add(half_ns),
                };
                let width = |interval: &Interval| interval.high_ns - interval.low_ns;
                let interval = if width(&by_parts) > width(&interval) {
                    by_parts
                } else {
                    interval
                };
                Quantile::Known { ns, interval }
            }
            unknown => unknown,
        }
    }

    /// Half the width of the t interval around the mean of the sub-windows' `q`-quantiles. Absent
    /// when too few sub-windows have samples enough.
    fn sub_window_half_width_ns(&self, q: f64) -> Option<u64> {
        let intervals = &self.latencies.intervals;
        let parts = parts_of(intervals.len())?;
        let needed = samples_needed(q);
        let quantiles: Vec<f64> = (0..parts)
            .map(|part| {
                let edge = |part: usize| part * intervals.len() / parts;
                intervals.joined(edge(part)..edge(part + 1))
            })
            .filter(|part| part.len() >= needed)
            .map(|part| part.value_at_quantile(q) as f64)
            .collect();
        if quantiles.len() < PARTS_MIN {
            return None;
        }
        Some(Mean::of(&quantiles)?.half_width as u64)
    }
}

/// Into how many sub-windows so many intervals are best dealt out: such that the fewest are over.
pub(crate) fn parts_of(intervals: usize) -> Option<usize> {
    (PARTS_MIN..=PARTS_MAX.min(intervals))
        .min_by_key(|&parts| (intervals % parts, PARTS_MAX - parts))
}

/// The quantile of `finished` durations and of `unfinished` ones, of which lower bounds are known.
fn quantile_of(finished: &Histogram, unfinished: &Histogram, q: f64) -> Quantile {
    let samples = finished.count().saturating_add(unfinished.count());
    let needed = samples_needed(q);
    if samples < needed {
        return Quantile::TooFew { samples, needed };
    }
    let ranks = Ranks::of(samples, q);
    let merged;
    let least = if unfinished.count() == 0 {
        finished
    } else {
        merged = {
            let mut merged = finished.clone();
            merged.merge(unfinished);
            merged
        };
        &merged
    };
    let (Some((low_ns, _)), Some((_, ns))) = (
        least.bucket_at_rank(ranks.low),
        least.bucket_at_rank(ranks.middle),
    ) else {
        return Quantile::TooFew { samples, needed };
    };
    // At infinity the unfinished ones take the highest ranks.
    let most = finished.bucket_at_rank(ranks.middle);
    match (most, finished.bucket_at_rank(ranks.high)) {
        (Some((_, most_ns)), Some((_, high_ns)))
            if most_ns as f64 <= ns as f64 * (1.0 + UNFINISHED_DIFFER) =>
        {
            // A bound of an unfinished one may lie above all that finished.
            let high_ns = high_ns.max(ns);
            let interval = Interval { low_ns, high_ns };
            Quantile::Known { ns, interval }
        }
        _ => Quantile::AtLeast { ns },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::intervals::IntervalRecorder;
    use crate::invariants::sample;

    const MS: u64 = 1_000_000;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|ns| histogram.record(ns));
        histogram
    }

    fn same(count: usize, ns: u64) -> Histogram {
        of(std::iter::repeat_n(ns, count))
    }

    #[test]
    fn samples_needed_are_those_of_the_tables() {
        let cases = [
            (0.5, 6),
            (0.01, 368),
            (0.9, 36),
            (0.99, 368),
            (0.999, 3_688),
            (0.9999, 36_887),
            (0.0, u64::MAX),
            (1.0, u64::MAX),
            (f64::NAN, u64::MAX),
        ];
        for (q, needed) in cases {
            assert_eq!(samples_needed(q), needed, "{q}");
        }
    }

    #[test]
    fn a_quantile_needs_its_samples() {
        for (count, q, needed) in [
            (0, 0.99, 368),
            (367, 0.99, 368),
            (5, 0.5, 6),
            (9, 1.0, u64::MAX),
        ] {
            let few = Quantile::TooFew {
                samples: count as u64,
                needed,
            };
            assert_eq!(same(count, 1_000).quantile(q), few);
        }
        let interval = Interval {
            low_ns: 1_000,
            high_ns: 1_000,
        };
        let known = Quantile::Known {
            ns: 1_000,
            interval,
        };
        assert_eq!(same(368, 1_000).quantile(0.99), known);
    }

    #[test]
    fn ranks_are_those_of_order_statistics() {
        // (samples, q, low, middle, high)
        let cases = [
            (100, 0.5, 40, 50, 61),
            (368, 0.99, 360, 365, 368),
            (1_000, 0.9, 881, 900, 920),
            (10_000, 0.99, 9_880, 9_900, 9_921),
            (6, 0.5, 1, 3, 6),
        ];
        for (samples, q, low, middle, high) in cases {
            assert_eq!(
                Ranks::of(samples, q),
                Ranks { low, middle, high },
                "{samples} {q}"
            );
        }
    }

    #[test]
    fn requests_without_an_end_are_lower_bounds() {
        type Bounds = Option<(u64, u64)>;
        // (finished, unfinished, q, value, interval or at least that). 1 to 10,000 us is the usual.
        let even = || of((1..=10_000).map(|us| us * 1_000));
        let cases: [(Histogram, Histogram, f64, u64, Bounds); 6] = [
            (even(), same(0, 0), 0.9, 9_000, Some((8_941, 9_060))),
            // A thousandth at 20 ms moves p50 by half a thousandth.
            (even(), same(10, 20 * MS), 0.5, 5_005, Some((4_907, 5_104))),
            // A tenth at 20 ms: p90 is between 9,900 us and never.
            (even(), same(1_112, 20 * MS), 0.95, 20_000, None),
            // Bounds below the quantile say little about it.
            (even(), same(1_000, 1_000), 0.5, 4_500, None),
            // The share is just under 1 - q, but the interval reaches beyond.
            (even(), same(99, 20 * MS), 0.99, 9_999, None),
            (even(), same(10_000, 20 * MS), 0.9, 20_000, None),
        ];
        for (finished, unfinished, q, us, bounds) in cases {
            let near = |ns: u64, us: u64| (ns as f64 / (us as f64 * 1e3) - 1.0).abs() < 0.002;
            match (quantile_of(&finished, &unfinished, q), bounds) {
                (Quantile::Known { ns, interval }, Some((low, high))) => {
                    assert!(near(ns, us), "{q}: {ns}");
                    assert!(near(interval.low_ns, low), "{q}: {interval:?}");
                    assert!(near(interval.high_ns, high), "{q}: {interval:?}");
                }
                (Quantile::AtLeast { ns }, None) => assert!(near(ns, us), "{q}: {ns}"),
                (other, _) => panic!("{q}: {other:?}"),
            }
        }
        let beside = quantile_of(&same(10_000, 1_000_001), &same(1, 20 * MS), 0.5);
        assert!(
            matches!(beside, Quantile::Known { ns, interval } if ns == interval.high_ns),
            "{beside:?}"
        );
        let few = quantile_of(&same(4, MS), &same(1, MS), 0.5);
        assert_eq!(
            few,
            Quantile::TooFew {
                samples: 5,
                needed: 6
            }
        );
        let enough = quantile_of(&same(0, MS), &same(6, MS), 0.5);
        assert_eq!(enough, Quantile::AtLeast { ns: MS });
    }

    #[test]
    fn intervals_are_dealt_out_to_sub_windows() {
        let cases = [
            (0, None),
            (19, None),
            (20, Some(20)),
            (31, Some(30)),
            (100, Some(25)),
            (101, Some(25)),
            (600, Some(30)),
        ];
        for (intervals, parts) in cases {
            assert_eq!(parts_of(intervals), parts, "{intervals}");
        }
    }

    /// A run of 100 intervals with 500 responses each.
    fn run_of(response_ns: impl Fn(u64) -> u64) -> Run {
        let mut run = sample::run();
        run.latencies.response = Histogram::default();
        let mut intervals = IntervalRecorder::default();
        for interval in 0..100_u64 {
            for _ in 0..500 {
                let ns = response_ns(interval);
                run.latencies.response.record(ns);
                intervals.record(interval * 100 * MS, ns);
            }
        }
        run.latencies.intervals = intervals.finish(10_000 * MS);
        run
    }

    #[test]
    fn neighbours_that_are_alike_widen_the_interval() {
        // Each response time is as often in both runs, so that order statistics are the same; but
        // one run is slow for seconds, the other now and then.
        let level = |interval: u64| MS + interval * 10_000;
        let drifting = run_of(level);
        let scattered = run_of(|interval| level(interval * 37 % 100));
        let width = |run: &Run| match run.response_quantile(0.5) {
            Quantile::Known { ns, interval } => {
                assert!(interval.low_ns <= ns && ns <= interval.high_ns);
                interval.high_ns - interval.low_ns
            }
            other => panic!("{other:?}"),
        };
        let by_ranks = match drifting.latencies.response.quantile(0.5) {
            Quantile::Known { interval, .. } => interval.high_ns - interval.low_ns,
            other => panic!("{other:?}"),
        };
        assert!(
            width(&drifting) > 10 * by_ranks,
            "{} {by_ranks}",
            width(&drifting)
        );
        assert!(width(&scattered) >= by_ranks);
        assert!(width(&drifting) > width(&scattered));
        // All alike: no width from either.
        let flat = run_of(|_| MS);
        assert_eq!(width(&flat), 0);
    }

    #[test]
    fn too_few_samples_per_sub_window_leave_order_statistics() {
        let run = run_of(|interval| MS + interval * 10_000);
        // 2,000 per sub-window: enough for p99 (368), not for p99.9 (3,688).
        assert!(run.sub_window_half_width_ns(0.99).is_some());
        assert_eq!(run.sub_window_half_width_ns(0.999), None);
        assert_eq!(
            run.response_quantile(0.999),
            run.latencies.response.quantile(0.999)
        );
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_quantile(
            finished in prop::collection::vec(0_u64..8_000_000_000_000, 0..80),
            unfinished in prop::collection::vec(0_u64..8_000_000_000_000, 0..20),
            q in 0.001_f64..0.999,
        ) {
            let (finished, unfinished) = (of(finished), of(unfinished));
            let samples = finished.count() + unfinished.count();
            match quantile_of(&finished, &unfinished, q) {
                Quantile::Known { ns, interval } => {
                    prop_assert!(interval.low_ns <= ns && ns <= interval.high_ns);
                    let share = unfinished.count() as f64 / samples as f64;
                    prop_assert!(share <= 1.0 - q);
                }
                Quantile::AtLeast { .. } => prop_assert!(unfinished.count() > 0),
                Quantile::TooFew { samples: had, needed } => {
                    prop_assert_eq!(had, samples);
                    prop_assert!(had < needed);
                }
            }
        }

        #[test]
        fn what_unfinished_requests_would_have_become_is_within(
            values in prop::collection::vec(1_u64..1_000_000, 50..200),
            cut in 100_000_u64..1_000_000,
            q in 0.1_f64..0.95,
        ) {
            // The truth, had nobody been cut off.
            let truth = of(values.iter().copied()).quantile_ns(q).expect("not empty");
            let finished = of(values.iter().copied().filter(|&ns| ns <= cut));
            let unfinished = of(values.iter().filter(|&&ns| ns > cut).map(|_| cut));
            let near = |ns: u64| ns as f64 * 1.011 + 2.0;
            match quantile_of(&finished, &unfinished, q) {
                Quantile::Known { ns, interval } => {
                    prop_assert!(near(ns) >= truth as f64 && near(truth) >= ns as f64);
                    prop_assert!(near(interval.high_ns) >= truth as f64);
                }
                Quantile::AtLeast { ns } => prop_assert!(near(truth) >= ns as f64),
                Quantile::TooFew { .. } => {}
            }
        }
    }
}
