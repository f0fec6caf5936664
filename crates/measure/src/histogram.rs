//! A latency histogram: HdrHistogram with exact extremes and an exact sum.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::hdr_v2::{self, HIGHEST_NS, HdrV2Error, Layout};

/// Three significant digits: a value is known to 0.1 %. Values over an hour are counted in the last
/// bucket, with their exact maximum kept.
const LAYOUT: Layout = Layout::THREE_DIGITS;
/// No run comes near this many values; a file that says so would overflow sums over the buckets.
const COUNT_MAX: u64 = 1 << 62;

/// Why a stored histogram cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// Its buckets cannot be read.
    #[error(transparent)]
    Buckets(#[from] HdrV2Error),
    /// Count and buckets disagree.
    #[error("the histogram says {stated} values and holds {held}")]
    Count {
        /// The count beside the histogram.
        stated: u64,
        /// The sum over its buckets.
        held: u64,
    },
    /// Minimum and maximum are missing, out of order, or given for nothing.
    #[error("the histogram of {count} values has no sensible minimum and maximum")]
    Extremes {
        /// The count beside the histogram.
        count: u64,
    },
}

/// Durations in nanoseconds, 1 ns to 1 h, three significant digits, or two where there are many
/// histograms; minimum, maximum and sum are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::with_buckets(LAYOUT.empty())
    }
}

impl Histogram {
    /// An empty one of two significant digits: an eighth of the memory.
    pub(crate) fn of_two_digits() -> Self {
        Self::with_buckets(Layout::TWO_DIGITS.empty())
    }

    /// These buckets, without extremes.
    fn with_buckets(buckets: hdrhistogram::Histogram<u64>) -> Self {
        Self {
            buckets,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
        }
    }

    /// One with these buckets and exact extremes, which is not empty.
    pub(crate) fn from_parts(
        buckets: hdrhistogram::Histogram<u64>,
        min_ns: u64,
        max_ns: u64,
        sum_ns: u64,
    ) -> Self {
        Self {
            buckets,
            min_ns,
            max_ns,
            sum_ns,
        }
    }

    /// An empty one of the same resolution.
    fn emptied(&self) -> Self {
        Self::with_buckets(hdrhistogram::Histogram::new_from(&self.buckets))
    }

    /// Records one duration.
    pub fn record(&mut self, ns: u64) {
        // The buckets reach somewhat beyond the hour; what lies beyond must not be counted below.
        self.buckets.saturating_record(ns.min(HIGHEST_NS));
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Records `count` durations that are at least `ns` and that [`Self::least_alike_ns`] says are
    /// counted with it.
    pub(crate) fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.buckets.saturating_record_n(ns.min(HIGHEST_NS), count);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(count));
    }

    /// The shortest duration that is counted in the same bucket as `ns`.
    pub(crate) fn least_alike_ns(&self, ns: u64) -> u64 {
        self.buckets.lowest_equivalent(ns.min(HIGHEST_NS))
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The smallest, exact. Absent when nothing was recorded.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min_ns)
    }

    /// The largest, exact. Absent when nothing was recorded.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// The mean from the exact sum. Absent when nothing was recorded.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Sum of all durations, nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The `q`-quantile (0 to 1) to the resolution, never outside the exact extremes. Absent when
    /// nothing was recorded. Whether there are samples enough to print it is `Quantile`'s question.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| {
            self.buckets
                .value_at_quantile(q)
                .clamp(self.min_ns, self.max_ns)
        })
    }

    /// The edges of the bucket that holds the `rank`-th smallest (from 1), never outside the exact
    /// extremes. Absent when there are fewer.
    pub(crate) fn bucket_at_rank(&self, rank: u64) -> Option<(u64, u64)> {
        let count = self.count();
        if rank == 0 || rank > count {
            return None;
        }
        // Half a rank below, so that rounding cannot reach the next one.
        let q = (rank as f64 - 0.5) / count as f64;
        let value = self.buckets.value_at_quantile(q);
        let edges = [
            self.buckets.lowest_equivalent(value),
            self.buckets.highest_equivalent(value),
        ];
        let [low_ns, high_ns] = edges.map(|ns| ns.clamp(self.min_ns, self.max_ns));
        // What lies beyond the hour shares the last bucket.
        let high_ns = if low_ns >= HIGHEST_NS {
            self.max_ns
        } else {
            high_ns
        };
        Some((low_ns, high_ns))
    }

    /// The same durations, each less `ns`, or 0: never above what that would be, and below it by a
    /// bucket's width at most.
    pub(crate) fn lowered_by(&self, ns: u64) -> Self {
        let mut lowered = self.emptied();
        for bucket in self.buckets.iter_recorded() {
            let least = self.buckets.lowest_equivalent(bucket.value_iterated_to());
            let lowered_ns = least.max(self.min_ns).saturating_sub(ns);
            let count = bucket.count_at_value();
            lowered.buckets.saturating_record_n(lowered_ns, count);
            lowered.min_ns = lowered.min_ns.min(lowered_ns);
            lowered.max_ns = lowered.max_ns.max(lowered_ns);
            let sum_ns = lowered_ns.saturating_mul(count);
            lowered.sum_ns = lowered.sum_ns.saturating_add(sum_ns);
        }
        lowered
    }

    /// Adds the durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.buckets += &other.buckets;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Whether the exact figures kept beside the buckets fit them: minimum and maximum lie in the
    /// outermost filled buckets, the sum between `count * min` and `count * max`.
    pub(crate) fn extremes_agree(&self) -> bool {
        if self.count() == 0 {
            return self.sum_ns == 0;
        }
        let mut extremes = self.emptied();
        extremes.record(self.min_ns);
        extremes.record(self.max_ns);
        let count = u128::from(self.count());
        let sum_least = (count * u128::from(self.min_ns)).min(u128::from(u64::MAX));
        let sum_most = count * u128::from(self.max_ns);
        extremes.buckets.min() == self.buckets.min()
            && extremes.buckets.max() == self.buckets.max()
            && (sum_least..=sum_most).contains(&u128::from(self.sum_ns))
    }

    /// The buckets, for export in the HdrHistogram formats.
    pub fn buckets(&self) -> &hdrhistogram::Histogram<u64> {
        &self.buckets
    }
}

/// The stored form.
#[derive(Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Histogram")
)]
struct Stored {
    /// How many durations were recorded.
    count: u64,
    /// The smallest, exact, nanoseconds; null when there is none.
    min_ns: Option<u64>,
    /// The largest, exact, nanoseconds; null when there is none.
    max_ns: Option<u64>,
    /// Sum of all durations, nanoseconds.
    sum_ns: u64,
    /// HdrHistogram V2, compressed, base64; values in nanoseconds.
    hdr_v2: String,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hdr_v2 = hdr_v2::write(&self.buckets).map_err(serde::ser::Error::custom)?;
        Stored {
            count: self.count(),
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            sum_ns: self.sum_ns,
            hdr_v2,
        }
        .serialize(serializer)
    }
}

impl Stored {
    /// The histogram, if it is sound and of this resolution.
    fn histogram(self, layout: Layout) -> Result<Histogram, HistogramError> {
        let stored = self;
        let filled = layout.read(&stored.hdr_v2, COUNT_MAX)?;
        let mut histogram = Histogram::with_buckets(layout.expand(filled.into_iter()));
        if histogram.count() != stored.count {
            return Err(HistogramError::Count {
                stated: stored.count,
                held: histogram.count(),
            });
        }
        let sensible = match (stored.min_ns, stored.max_ns) {
            (Some(min_ns), Some(max_ns)) => stored.count > 0 && min_ns <= max_ns,
            (None, None) => stored.count == 0,
            _ => false,
        };
        if !sensible {
            return Err(HistogramError::Extremes {
                count: stored.count,
            });
        }
        histogram.min_ns = stored.min_ns.unwrap_or(u64::MAX);
        histogram.max_ns = stored.max_ns.unwrap_or(0);
        histogram.sum_ns = stored.sum_ns;
        Ok(histogram)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, LAYOUT)
    }
}

/// Reads a histogram of two significant digits, for `deserialize_with`.
///
/// # Errors
///
/// See [`HistogramError`].
pub(crate) fn with_two_digits<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Histogram, D::Error> {
    read(deserializer, Layout::TWO_DIGITS)
}

fn read<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
    layout: Layout,
) -> Result<Histogram, D::Error> {
    Stored::deserialize(deserializer)?
        .histogram(layout)
        .map_err(|error| serde::de::Error::custom(error.to_string()))
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Stored::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    fn stored(histogram: &Histogram) -> serde_json::Value {
        serde_json::to_value(histogram).expect("a histogram serialises")
    }

    #[test]
    fn nothing_recorded_has_no_figures() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.min_ns(), empty.max_ns(), empty.mean_ns()),
            (None, None, None)
        );
        assert_eq!(empty.quantile_ns(0.5), None);
        assert!(empty.extremes_agree());
    }

    #[test]
    fn extremes_are_exact_and_bound_the_quantiles() {
        let histogram = of(&[1_234_567, 7_654_321, 9_999_999_999_999]);
        assert_eq!(histogram.min_ns(), Some(1_234_567));
        // Over the highest bucket's hour, and still exact.
        assert_eq!(histogram.max_ns(), Some(9_999_999_999_999));
        assert_eq!(histogram.quantile_ns(0.0), Some(1_234_567));
        assert!(histogram.quantile_ns(1.0) <= histogram.max_ns());
        assert!(histogram.extremes_agree());
    }

    #[test]
    fn values_beyond_the_hour_share_the_last_bucket() {
        let histogram = of(&[0, HIGHEST_NS + 1_330_077_696, HIGHEST_NS + 798_046_511_104]);
        assert!(histogram.extremes_agree());
        assert!(histogram.quantile_ns(0.6) >= Some(HIGHEST_NS));
    }

    #[test]
    fn what_is_stored_must_be_a_histogram() {
        let sound = stored(&of(&[1_000, 2_000]));
        type Change = fn(&mut serde_json::Value);
        let cases: [(&str, Change); 7] = [
            ("not base64", |stored| stored["hdr_v2"] = "!".into()),
            ("not an HdrHistogram V2", |stored| {
                stored["hdr_v2"] = "AAAA".into()
            }),
            ("says 3 values and holds 2", |stored| {
                stored["count"] = 3.into()
            }),
            ("no sensible minimum", |stored| {
                stored["min_ns"] = 3_000.into()
            }),
            ("no sensible minimum", |stored| {
                stored["max_ns"] = serde_json::Value::Null
            }),
            ("no sensible minimum", |stored| {
                stored["min_ns"] = serde_json::Value::Null;
                stored["max_ns"] = serde_json::Value::Null;
            }),
            ("says 0 values and holds 2", |stored| {
                stored["count"] = 0.into()
            }),
        ];
        for (message, change) in cases {
            let mut changed = sound.clone();
            change(&mut changed);
            let error = serde_json::from_value::<Histogram>(changed).map(drop);
            let words = error.map_err(|error| error.to_string()).expect_err(message);
            let words = words.replace("is not a compressed", "is not an");
            assert!(words.contains(message), "{words}");
        }
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0_u64..5_000, 0_u64..8_000_000_000_000], 0..60)
    }

    proptest! {
        #[test]
        fn merging_commutes_and_is_recording_all_in_one(a in values(), b in values()) {
            let mut ab = of(&a);
            ab.merge(&of(&b));
            let mut ba = of(&b);
            ba.merge(&of(&a));
            let all = of(&[a, b].concat());
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &all);
            prop_assert!(ab.extremes_agree());
        }

        #[test]
        fn figures_are_exact_or_to_a_thousandth(values in values(), q in 0.0_f64..=1.0) {
            prop_assume!(!values.is_empty());
            let histogram = of(&values);
            let mut sorted = values;
            sorted.sort_unstable();
            prop_assert_eq!(histogram.min_ns(), sorted.first().copied());
            prop_assert_eq!(histogram.max_ns(), sorted.last().copied());
            prop_assert_eq!(histogram.sum_ns(), sorted.iter().sum::<u64>());
            let rank = ((q * sorted.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            let given = histogram.quantile_ns(q).expect("not empty");
            let beyond = exact > HIGHEST_NS;
            prop_assert!(beyond || given.abs_diff(exact) <= exact / 1_000 + 1, "{given} {exact}");
        }

        #[test]
        fn a_stored_histogram_reads_back_the_same(values in values()) {
            let histogram = of(&values);
            let read: Histogram = serde_json::from_value(stored(&histogram)).expect("its own form");
            prop_assert_eq!(&read, &histogram);
            prop_assert!(read.extremes_agree());
        }
    }
}
