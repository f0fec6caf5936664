//! A histogram of a few filled buckets: small where there are many histograms.

use serde::{Deserialize, Serialize};

use crate::filled::{self, Filled, Resolution};
use crate::histogram::Histogram;

const RESOLUTION: Resolution = Resolution::TWO_DIGITS;
/// Upper bound of the number of buckets.
const BUCKETS_MAX: usize = 8_192;

/// Durations in nanoseconds, 1 ns to 1 h, two significant digits; minimum, maximum and sum are
/// exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredSparse", into = "StoredSparse")]
pub struct SparseHistogram(
    /// Minimum, maximum and sum, and the filled buckets in order, each packed with its count; empty
    /// where nothing was recorded.
    Vec<u64>,
);

/// Words before the buckets: minimum, maximum and sum.
const HEAD: usize = 3;

/// Durations in nanoseconds, 1 ns to 1 h, two significant digits; minimum, maximum and sum are
/// exact.
#[derive(Serialize, Deserialize)]
struct StoredSparse {
    /// Counts of its buckets, 128 per doubling, as the text that stores them.
    buckets: String,
    /// The smallest duration, nanoseconds; 0 where there is none.
    min_ns: u64,
    /// The largest duration, nanoseconds; 0 where there is none.
    max_ns: u64,
    /// Sum of all durations, nanoseconds; 0 where there is none.
    sum_ns: u64,
}

impl TryFrom<StoredSparse> for SparseHistogram {
    type Error = &'static str;

    fn try_from(stored: StoredSparse) -> Result<Self, &'static str> {
        let buckets = RESOLUTION.read(&stored.buckets)?;
        let (min_ns, max_ns, sum_ns) = (stored.min_ns, stored.max_ns, stored.sum_ns);
        let is_in = |bucket: &Filled, ns| bucket.bucket() == RESOLUTION.bucket_of(ns);
        let are_extremes = match (buckets.first(), buckets.last()) {
            (Some(first), Some(last)) => {
                min_ns <= max_ns && is_in(first, min_ns) && is_in(last, max_ns)
            }
            _ => (min_ns, max_ns, sum_ns) == (0, 0, 0),
        };
        if !are_extremes {
            return Err("minimum and maximum of a histogram are not those of its buckets");
        }
        Ok(Self::of(min_ns, max_ns, sum_ns, &buckets))
    }
}

impl From<SparseHistogram> for StoredSparse {
    fn from(histogram: SparseHistogram) -> Self {
        let (min_ns, max_ns, sum_ns) = histogram.head();
        Self {
            buckets: filled::write(histogram.buckets()),
            min_ns,
            max_ns,
            sum_ns,
        }
    }
}

impl SparseHistogram {
    /// A histogram with these buckets, which are in order.
    fn of(min_ns: u64, max_ns: u64, sum_ns: u64, buckets: &[Filled]) -> Self {
        if buckets.is_empty() {
            return Self::default();
        }
        let buckets = buckets.iter().map(|bucket| bucket.0);
        Self(
            [min_ns, max_ns, sum_ns]
                .into_iter()
                .chain(buckets)
                .collect(),
        )
    }

    /// Minimum, maximum and sum; 0 for none.
    fn head(&self) -> (u64, u64, u64) {
        match self.0[..] {
            [min_ns, max_ns, sum_ns, ..] => (min_ns, max_ns, sum_ns),
            _ => (0, 0, 0),
        }
    }

    /// The filled buckets in order.
    fn buckets(&self) -> impl Iterator<Item = Filled> {
        self.0.iter().skip(HEAD).copied().map(Filled)
    }

    /// Records one duration.
    pub fn record(&mut self, ns: u64) {
        self.record_within(ns, BUCKETS_MAX);
    }

    /// Records one duration in at most `buckets_max` buckets. Where there would be more, neighbours
    /// are counted together, each in the bucket of the longest.
    pub(crate) fn record_within(&mut self, ns: u64, buckets_max: usize) {
        let words = &mut self.0;
        if words.is_empty() {
            // Most names of a long list have a few samples.
            words.reserve_exact(HEAD + 2);
            words.extend([ns, ns, 0]);
        }
        words[0] = words[0].min(ns);
        words[1] = words[1].max(ns);
        words[2] = words[2].saturating_add(ns);
        add(words, Filled::new(RESOLUTION.bucket_of(ns), 1));
        coarsen(words, buckets_max);
    }

    /// Counts neighbours together until there are at most `buckets_max` buckets.
    pub(crate) fn coarsen(&mut self, buckets_max: usize) {
        coarsen(&mut self.0, buckets_max);
    }

    /// Bytes that it takes beside itself, at most.
    pub(crate) fn held_bytes_max(&self) -> usize {
        const ALLOCATION_BYTES: usize = 16;
        match self.0.len() {
            0 => 0,
            // A list that has just grown, and what the allocator adds.
            len => 2 * len * size_of::<u64>() + ALLOCATION_BYTES,
        }
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.buckets().map(Filled::count).sum()
    }

    /// The largest, exact. Absent when nothing was recorded.
    pub fn max_ns(&self) -> Option<u64> {
        self.0.get(1).copied()
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        if other.0.is_empty() {
            return;
        }
        if self.0.is_empty() {
            self.clone_from(other);
            return;
        }
        let words = &mut self.0;
        let (min_ns, max_ns, sum_ns) = other.head();
        words[0] = words[0].min(min_ns);
        words[1] = words[1].max(max_ns);
        words[2] = words[2].saturating_add(sum_ns);
        for bucket in other.buckets() {
            add(words, bucket);
        }
    }

    /// The histogram with all its buckets, empty ones included.
    pub fn expand(&self) -> Histogram {
        if self.0.is_empty() {
            return Histogram::of_two_digits();
        }
        let (min_ns, max_ns, sum_ns) = self.head();
        Histogram::of_filled(self.buckets(), min_ns, max_ns, sum_ns)
    }
}

/// Adds to a bucket what another one with its number holds.
fn add(words: &mut Vec<u64>, bucket: Filled) {
    let number = |&word: &u64| Filled(word).bucket();
    match words[HEAD..].binary_search_by_key(&bucket.bucket(), number) {
        Ok(place) => {
            let word = &mut words[HEAD + place];
            *word = Filled(*word).plus(bucket.count()).0;
        }
        Err(place) => words.insert(HEAD + place, bucket.0),
    }
}

/// Counts neighbours together, those of two buckets, of four, and so on, until there are few: each
/// in the last bucket among them that holds something. The first bucket stays that of the minimum.
fn coarsen(words: &mut Vec<u64>, buckets_max: usize) {
    if words.len() <= HEAD + buckets_max {
        return;
    }
    // Some room, or the next duration would do the same again.
    let few = (buckets_max / 4 * 3).max(2);
    for shift in 1..u32::BITS {
        let mut kept = HEAD + 1;
        for at in HEAD + 1..words.len() {
            let (bucket, before) = (Filled(words[at]), Filled(words[kept - 1]));
            if kept > HEAD + 1 && before.bucket() >> shift == bucket.bucket() >> shift {
                words[kept - 1] = bucket.plus(before.count()).0;
            } else {
                words[kept] = words[at];
                kept += 1;
            }
        }
        words.truncate(kept);
        if words.len() - HEAD <= few {
            return;
        }
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
            r#"{"buckets":"-5 1 -3 0","min_ns":5,"max_ns":9,"sum_ns":14}"#,
            r#"{"buckets":"-4000000000 1","min_ns":5,"max_ns":5,"sum_ns":5}"#,
            r#"{"buckets":"-5 1","min_ns":5,"max_ns":9,"sum_ns":14}"#,
            r#"{"buckets":"-5 1 -3 1","min_ns":9,"max_ns":5,"sum_ns":14}"#,
            r#"{"buckets":"","min_ns":1,"max_ns":1,"sum_ns":1}"#,
        ] {
            assert!(!read(text), "{text}");
        }
    }

    #[test]
    fn it_is_small_where_it_holds_little() {
        assert_eq!(size_of::<SparseHistogram>(), 24);
        assert_eq!(SparseHistogram::default().held_bytes_max(), 0);
        for (values, words) in [(&[700][..], 5), (&[700, 900], 5), (&[700, 900, 5, 6], 10)] {
            let held = of(values).0;
            assert!(held.capacity() <= words, "{}", held.capacity());
        }
    }

    #[test]
    fn what_has_too_many_buckets_is_coarser_and_reads_no_shorter() {
        let mut values: Vec<u64> = (1..=20_000).map(|us| us * 1_000).collect();
        for (buckets_max, error) in [(1_000, 0.04), (100, 0.26), (40, 1.01), (16, 3.01)] {
            // From both ends, so that each bucket is met in every state.
            values.reverse();
            let mut coarse = SparseHistogram::default();
            for (at, &ns) in values.iter().enumerate() {
                let ns = if at % 2 == 0 {
                    ns
                } else {
                    values[values.len() - at]
                };
                coarse.record_within(ns, buckets_max);
                assert!(coarse.buckets().count() <= buckets_max);
            }
            let exact = {
                let all = values.iter().enumerate();
                let all = all.map(|(at, &ns)| {
                    if at % 2 == 0 {
                        ns
                    } else {
                        values[values.len() - at]
                    }
                });
                of(&all.collect::<Vec<_>>())
            };
            assert_eq!(coarse.head(), exact.head());
            assert_eq!(coarse.count(), exact.count());
            for q in [0.1, 0.5, 0.9, 0.99] {
                let known =
                    |of: &SparseHistogram| of.expand().quantile_ns(q).expect("samples") as f64;
                let (known, found) = (known(&exact), known(&coarse));
                assert!(
                    found >= known && found <= known * (1.0 + error),
                    "{buckets_max} {q}: {found} {known}"
                );
            }
            // It is stored and read as any other.
            let stored = serde_json::to_string(&coarse).expect("it can be stored");
            assert_eq!(
                serde_json::from_str::<SparseHistogram>(&stored).ok(),
                Some(coarse)
            );
        }
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
