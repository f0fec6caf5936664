//! What a figure was over several rounds: its ends, its median, and where the true median lies.

use serde::Serialize;

use crate::statistics::binomial::is_share_below;

/// A figure over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Rounds that have the figure.
    pub rounds: usize,
    /// The least.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The most.
    pub max: f64,
    /// The lower end of the median's 95 % interval, by order statistics; null with fewer than 6
    /// rounds, with which it would reach beyond what was seen.
    pub low: Option<f64>,
    /// The upper end of the median's 95 % interval; null with fewer than 6 rounds.
    pub high: Option<f64>,
}

impl Spread {
    /// The spread of `values`; absent without any. Values that are not finite do not count.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let last = values.len() - 1;
        // As many are below the true median as tosses of a coin show heads.
        let count = values.len() as f64;
        let outside = (0..values.len() / 2)
            .take_while(|&below| is_share_below(below as f64, count, 0.5))
            .last();
        Some(Self {
            rounds: values.len(),
            min,
            median: f64::midpoint(values[last / 2], values[last.div_ceil(2)]),
            max,
            low: outside.map(|outside| values[outside]),
            high: outside.map(|outside| values[last - outside]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_have_no_interval() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
        let three = Spread::of([3.0, 1.0, 2.0]).expect("values");
        assert_eq!((three.min, three.median, three.max), (1.0, 2.0, 3.0));
        assert_eq!((three.low, three.high), (None, None));
        let four = Spread::of([4.0, 1.0, 2.0, 3.0]).expect("values");
        assert_eq!((four.rounds, four.median), (4, 2.5));
    }

    #[test]
    fn the_interval_is_that_of_order_statistics() {
        let of = |count: u32| Spread::of((1..=count).map(f64::from)).expect("values");
        // The binomial distribution's tables: at most 2.5 % lie below, and above.
        for (count, low, high) in [(6, 1.0, 6.0), (10, 2.0, 9.0), (20, 6.0, 15.0)] {
            let found = of(count);
            assert_eq!((found.low, found.high), (Some(low), Some(high)), "{count}");
        }
    }
}
