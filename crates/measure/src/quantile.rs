//! Quantiles that say when there are too few samples (invariant A2).

use crate::Histogram;

/// A quantile, or why it is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Its value, nanoseconds.
    Known(u64),
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

impl Histogram {
    /// The `q`-quantile when there are samples enough for it.
    pub fn quantile(&self, q: f64) -> Quantile {
        let (samples, needed) = (self.count(), samples_needed(q));
        match self.quantile_ns(q) {
            Some(ns) if samples >= needed => Quantile::Known(ns),
            _ => Quantile::TooFew { samples, needed },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut histogram = Histogram::default();
        let too_few = |samples| Quantile::TooFew {
            samples,
            needed: 368,
        };
        assert_eq!(histogram.quantile(0.99), too_few(0));
        (0..367).for_each(|_| histogram.record(1_000));
        assert_eq!(histogram.quantile(0.99), too_few(367));
        histogram.record(1_000);
        assert_eq!(histogram.quantile(0.99), Quantile::Known(1_000));
    }
}
