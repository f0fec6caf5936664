//! Quantiles that say when they are not known (invariant L5).

use std::fmt;

use brunt_record::{Histogram, with_bounds};

use crate::precision::confidence::{Ranks, samples_needed};
use crate::{Interval, NoInterval, units};

/// How far the estimates with unfinished requests at their bounds and at infinity may differ for
/// the quantile to be known.
const UNFINISHED_DIFFER: f64 = 0.01;

/// A quantile, or why it is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// The quantile is known.
    Known {
        /// The quantile, nanoseconds.
        ns: u64,
        /// Where the true quantile lies, or why that is not known; holds `ns`.
        interval: Result<Interval, NoInterval>,
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

/// In words: `1.24 ms`, `≥10.0 s`, `too few`.
impl fmt::Display for Quantile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known { ns, .. } => formatter.write_str(&units::duration(*ns)),
            // A bound of 0 says nothing.
            Self::AtLeast { ns: 0 } => formatter.write_str("unknown"),
            Self::AtLeast { ns } => write!(formatter, "≥{}", units::duration(*ns)),
            Self::TooFew { .. } => formatter.write_str("too few"),
        }
    }
}

impl Quantile {
    /// The quantile, where it is known, nanoseconds.
    pub fn known_ns(self) -> Option<u64> {
        match self {
            Self::Known { ns, .. } => Some(ns),
            Self::AtLeast { .. } | Self::TooFew { .. } => None,
        }
    }

    /// The `q`-quantile of `histogram`, when there are samples enough. It has no interval: that
    /// needs to know how the durations varied over the window.
    pub fn of(histogram: &Histogram, q: f64) -> Self {
        quantile_of(histogram, &Histogram::default(), q)
    }
}

/// The quantile of `finished` durations and of `unfinished` ones, of which lower bounds are known.
pub(crate) fn quantile_of(finished: &Histogram, unfinished: &Histogram, q: f64) -> Quantile {
    let samples = finished.count().saturating_add(unfinished.count());
    let needed = samples_needed(q);
    if samples < needed {
        return Quantile::TooFew { samples, needed };
    }
    let ranks = Ranks::of(samples, q, samples as f64);
    let Some((_, ns)) = with_bounds(finished, unfinished).bucket_at_rank(ranks.middle) else {
        return Quantile::TooFew { samples, needed };
    };
    // At infinity the unfinished ones take the highest ranks.
    let most = finished.bucket_at_rank(ranks.middle);
    match (most, finished.bucket_at_rank(ranks.high)) {
        (Some((_, most_ns)), Some(_))
            if most_ns as f64 <= ns as f64 * (1.0 + UNFINISHED_DIFFER) =>
        {
            Quantile::Known {
                ns,
                interval: Err(NoInterval::NotOverTime),
            }
        }
        _ => Quantile::AtLeast { ns },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use brunt_record::StageRecord;

    use super::*;
    use crate::ResponseQuantiles;

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
            assert_eq!(Quantile::of(&same(count, 1_000), q), few);
        }
        let known = Quantile::Known {
            ns: 1_000,
            interval: Err(NoInterval::NotOverTime),
        };
        assert_eq!(Quantile::of(&same(368, 1_000), 0.99), known);
    }

    #[test]
    fn requests_without_an_end_are_lower_bounds() {
        // (finished, unfinished, q, value, whether it is known). 1 to 10,000 us is the usual.
        let even = || of((1..=10_000).map(|us| us * 1_000));
        let cases: [(Histogram, Histogram, f64, u64, bool); 6] = [
            (even(), same(0, 0), 0.9, 9_000, true),
            // A thousandth at 20 ms moves p50 by half a thousandth.
            (even(), same(10, 20 * MS), 0.5, 5_005, true),
            // A tenth at 20 ms: p90 is between 9,900 us and never.
            (even(), same(1_112, 20 * MS), 0.95, 20_000, false),
            // Bounds below the quantile say little about it.
            (even(), same(1_000, 1_000), 0.5, 4_500, false),
            // The share is just under 1 - q, but the interval reaches beyond.
            (even(), same(99, 20 * MS), 0.99, 9_999, false),
            (even(), same(10_000, 20 * MS), 0.9, 20_000, false),
        ];
        for (finished, unfinished, q, us, is_known) in cases {
            let near = |ns: u64, us: u64| (ns as f64 / (us as f64 * 1e3) - 1.0).abs() < 0.002;
            match quantile_of(&finished, &unfinished, q) {
                Quantile::Known { ns, .. } if is_known => assert!(near(ns, us), "{q}: {ns}"),
                Quantile::AtLeast { ns } if !is_known => assert!(near(ns, us), "{q}: {ns}"),
                other => panic!("{q}: {other:?}"),
            }
        }
        let beside = quantile_of(&same(10_000, 1_000_001), &same(1, 20 * MS), 0.5);
        assert!(
            matches!(beside, Quantile::Known { ns, .. } if ns >= 1_000_001),
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

    proptest! {
        #[test]
        fn what_is_known_has_samples_and_few_without_an_end(
            finished in prop::collection::vec(0_u64..8_000_000_000_000, 0..80),
            unfinished in prop::collection::vec(0_u64..8_000_000_000_000, 0..20),
            q in 0.001_f64..0.999,
        ) {
            let (finished, unfinished) = (of(finished), of(unfinished));
            let samples = finished.count() + unfinished.count();
            match quantile_of(&finished, &unfinished, q) {
                Quantile::Known { .. } => {
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
                Quantile::Known { ns, .. } => {
                    prop_assert!(near(ns) >= truth as f64 && near(truth) >= ns as f64);
                }
                Quantile::AtLeast { ns } => prop_assert!(near(truth) >= ns as f64),
                Quantile::TooFew { .. } => {}
            }
        }
    }

    #[test]
    fn quantiles_of_stages_need_samples_and_become_bounds() {
        let mut stage = StageRecord::default();
        for _ in 0..367 {
            stage.response.record(1_000_000);
        }
        let few = Quantile::TooFew {
            samples: 367,
            needed: 368,
        };
        assert_eq!(stage.response_quantile(0.99), few);
        assert_eq!(stage.response_max_at_least_ns(), None);
        for _ in 0..100 {
            stage.unfinished.record(5_000_000);
        }
        let Quantile::Known { ns, .. } = stage.response_quantile(0.5) else {
            panic!("the median is known");
        };
        assert!((1_000_000..1_010_000).contains(&ns), "{ns}");
        let Quantile::AtLeast { ns } = stage.response_quantile(0.99) else {
            panic!("a bound");
        };
        assert!((4_900_000..=5_000_000).contains(&ns), "{ns}");
        assert_eq!(stage.response_max_at_least_ns(), Some(5_000_000));
    }
}
