//! A histogram of a few filled buckets: small where there are many histograms.

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::hdr_v2::{HIGHEST_NS, Layout};
use crate::histogram::Histogram;
use crate::loglinear;

/// Two significant digits: 128 buckets per doubling.
const BITS: u32 = 7;
/// There are fewer buckets than this.
const BUCKETS_MAX: usize = 8_192;

/// Durations in nanoseconds, 1 ns to 1 h, two significant digits; minimum, maximum and sum are
/// exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SparseHistogram {
    /// The filled buckets in order, each with its number (as HdrHistogram numbers them, 128 per
    /// doubling) and its count.
    #[serde(deserialize_with = "bounded::list::<_, _, BUCKETS_MAX>")]
    buckets: Vec<(u32, u64)>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

impl SparseHistogram {
    /// Records one duration.
    pub fn record(&mut self, ns: u64) {
        let bucket = loglinear::index(ns.min(HIGHEST_NS), BITS) as u32;
        if self.buckets.is_empty() {
            self.min_ns = ns;
        }
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.add(bucket, 1);
    }

    fn add(&mut self, bucket: u32, count: u64) {
        match self
            .buckets
            .binary_search_by_key(&bucket, |&(number, _)| number)
        {
            Ok(place) => {
                let held = &mut self.buckets[place].1;
                *held = held.saturating_add(count);
            }
            Err(place) => self.buckets.insert(place, (bucket, count)),
        }
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        let counts = self.buckets.iter().map(|&(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }

    /// The largest, exact. Absent when nothing was recorded.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.buckets.is_empty()).then_some(self.max_ns)
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        if other.buckets.is_empty() {
            return;
        }
        if self.buckets.is_empty() {
            self.clone_from(other);
            return;
        }
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        for &(bucket, count) in &other.buckets {
            self.add(bucket, count);
        }
    }

    /// The same as a histogram with all its buckets.
    pub fn expand(&self) -> Histogram {
        let filled = self
            .buckets
            .iter()
            .map(|&(bucket, count)| (bucket as usize, count));
        let buckets = Layout::TWO_DIGITS.expand(filled);
        if self.buckets.is_empty() {
            return Histogram::of_two_digits();
        }
        Histogram::from_parts(buckets, self.min_ns, self.max_ns, self.sum_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> SparseHistogram {
        let mut histogram = SparseHistogram::default();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    proptest! {
        #[test]
        fn it_is_what_a_histogram_with_all_buckets_is(
            values in prop::collection::vec(1_u64..10_000_000_000_000, 0..200),
        ) {
            let mut dense = Histogram::of_two_digits();
            values.iter().for_each(|&ns| dense.record(ns));
            prop_assert_eq!(of(&values).expand(), dense);
        }

        #[test]
        fn order_and_grouping_of_a_merge_do_not_matter(
            values in prop::collection::vec(1_u64..1_000_000, 0..100),
            cut in 0_usize..100,
        ) {
            let (one, two) = values.split_at(cut.min(values.len()));
            let mut merged = of(one);
            merged.merge(&of(two));
            let mut other = of(two);
            other.merge(&of(one));
            prop_assert_eq!(&merged, &of(&values));
            prop_assert_eq!(&merged, &other);
        }
    }
}
