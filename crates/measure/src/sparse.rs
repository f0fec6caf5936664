//! A histogram of a few filled buckets: small where there are many histograms.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded;
use crate::hdr_v2::HIGHEST_NS;
use crate::histogram::Histogram;
use crate::loglinear;

/// Two significant digits: 128 buckets per doubling.
const BITS: u32 = 7;
/// There are fewer buckets than this.
const BUCKETS_MAX: usize = 8_192;
/// No bucket comes near this count; those of a file that says so could overflow sums.
const COUNT_MAX: u64 = 1 << 48;

/// Durations in nanoseconds, 1 ns to 1 h, two significant digits; minimum, maximum and sum are
/// exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Stored")]
pub struct SparseHistogram {
    /// The filled buckets in order, each with its number (as HdrHistogram numbers them, 128 per
    /// doubling) and its count.
    buckets: Vec<(u32, u64)>,
    /// The smallest duration, nanoseconds; 0 for none, as the others.
    min_ns: u64,
    /// The largest, nanoseconds.
    max_ns: u64,
    /// Sum of all, nanoseconds.
    sum_ns: u64,
}

/// What a file holds.
#[derive(Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "SparseHistogram")
)]
struct Stored {
    /// The filled buckets in order, each with its number (as HdrHistogram numbers them, 128 per
    /// doubling) and its count.
    #[serde(deserialize_with = "bounded::list::<_, _, BUCKETS_MAX>")]
    buckets: Vec<(u32, u64)>,
    /// The smallest duration, nanoseconds; 0 for none, as the others.
    min_ns: u64,
    /// The largest, nanoseconds.
    max_ns: u64,
    /// Sum of all, nanoseconds.
    sum_ns: u64,
}

/// Why a stored histogram cannot be read.
#[derive(Debug, Error)]
pub(crate) enum SparseError {
    /// Buckets are out of order, empty, or of durations that there are not.
    #[error("the buckets of a histogram are not in order, or not those of a histogram")]
    Buckets,
    /// Minimum and maximum are not in the first and the last bucket.
    #[error("minimum and maximum of a histogram are not those of its buckets")]
    Extremes,
}

impl TryFrom<Stored> for SparseHistogram {
    type Error = SparseError;

    fn try_from(stored: Stored) -> Result<Self, SparseError> {
        let Stored {
            buckets,
            min_ns,
            max_ns,
            sum_ns,
        } = stored;
        let is_ordered = buckets.is_sorted_by(|one, next| one.0 < next.0);
        let is_filled = |&(bucket, count): &(u32, u64)| {
            (bucket as usize) < loglinear::count(HIGHEST_NS, BITS)
                && (1..=COUNT_MAX).contains(&count)
        };
        if !is_ordered || !buckets.iter().all(is_filled) {
            return Err(SparseError::Buckets);
        }
        let bucket_of = |ns: u64| loglinear::index(ns.min(HIGHEST_NS), BITS) as u32;
        let are_extremes = match (buckets.first(), buckets.last()) {
            (Some(first), Some(last)) => {
                min_ns <= max_ns && bucket_of(min_ns) == first.0 && bucket_of(max_ns) == last.0
            }
            _ => (min_ns, max_ns, sum_ns) == (0, 0, 0),
        };
        if !are_extremes {
            return Err(SparseError::Extremes);
        }
        Ok(Self {
            buckets,
            min_ns,
            max_ns,
            sum_ns,
        })
    }
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

    /// What was recorded in a histogram since it was as `earlier`. Counts and sum are exact,
    /// smallest and largest as exact as its buckets.
    pub fn between(earlier: &Histogram, later: &Histogram) -> Self {
        let (Some(min_ns), Some(max_ns)) = (later.min_ns(), later.max_ns()) else {
            return Self::default();
        };
        let mut added = Self::default();
        for (least_ns, count) in later.added_since(earlier) {
            let ns = least_ns.clamp(min_ns, max_ns);
            if added.buckets.is_empty() {
                added.min_ns = ns;
            }
            // They come in order.
            let bucket = loglinear::index(ns.min(HIGHEST_NS), BITS) as u32;
            match added.buckets.last_mut() {
                Some((number, held)) if *number == bucket => *held = held.saturating_add(count),
                _ => added.buckets.push((bucket, count)),
            }
            added.max_ns = ns;
        }
        if !added.buckets.is_empty() {
            added.sum_ns = later.sum_ns().saturating_sub(earlier.sum_ns());
        }
        added
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
        if self.buckets.is_empty() {
            return Histogram::of_two_digits();
        }
        Histogram::of_filled(filled, self.min_ns, self.max_ns, self.sum_ns)
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

    #[test]
    fn what_no_histogram_is_is_refused() {
        let read = |text: &str| serde_json::from_str::<SparseHistogram>(text).is_ok();
        let stored = serde_json::to_string(&of(&[5, 5, 900, 70_000])).expect("it can be stored");
        assert!(read(&stored), "{stored}");
        for text in [
            r#"{"buckets":[[5,1],[5,1]],"min_ns":5,"max_ns":5,"sum_ns":10}"#,
            r#"{"buckets":[[9,1],[5,1]],"min_ns":5,"max_ns":9,"sum_ns":14}"#,
            r#"{"buckets":[[5,0]],"min_ns":5,"max_ns":5,"sum_ns":5}"#,
            r#"{"buckets":[[4000000000,1]],"min_ns":5,"max_ns":5,"sum_ns":5}"#,
            r#"{"buckets":[[5,1],[9,1]],"min_ns":9,"max_ns":5,"sum_ns":14}"#,
            r#"{"buckets":[],"min_ns":1,"max_ns":1,"sum_ns":1}"#,
        ] {
            assert!(!read(text), "{text}");
        }
    }

    #[test]
    fn what_was_recorded_between_adds_up_to_the_whole() {
        let mut histogram = Histogram::default();
        let mut earlier = histogram.clone();
        let mut sum = SparseHistogram::default();
        assert_eq!(SparseHistogram::between(&earlier, &histogram), sum);
        for values in [&[700, 5, 70_000][..], &[], &[5, 5, 1 << 50], &[900_000]] {
            values.iter().for_each(|&ns| histogram.record(ns));
            let added = SparseHistogram::between(&earlier, &histogram);
            assert_eq!(added.count(), values.len() as u64);
            assert_eq!(added.sum_ns, values.iter().sum::<u64>());
            let stored = serde_json::to_string(&added).expect("it can be stored");
            assert_eq!(
                serde_json::from_str::<SparseHistogram>(&stored).ok(),
                Some(added.clone())
            );
            sum.merge(&added);
            earlier.clone_from(&histogram);
        }
        assert_eq!(
            sum,
            SparseHistogram::between(&Histogram::default(), &histogram)
        );
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
