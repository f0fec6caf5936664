//! A latency histogram: HdrHistogram with exact extremes and an exact sum.

use base64::Engine as _;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One hour: longer values are counted in the last bucket, with their exact maximum kept.
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Three significant digits: a value is known to 0.1 %.
const DIGITS: u8 = 3;
/// No run comes near this many values; a file that says so would overflow sums over the buckets.
const COUNT_MAX: u64 = 1 << 62;

/// Why a stored histogram cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// The text is not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not a compressed HdrHistogram V2.
    #[error("the histogram is not a compressed HdrHistogram V2: {0}")]
    Format(String),
    /// The histogram was made with other bounds.
    #[error("the histogram holds values that this version cannot hold: {0}")]
    Bounds(String),
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

/// Durations in nanoseconds, 1 ns to 1 h, three significant digits; minimum, maximum and sum are
/// exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
            .expect("the bounds are constants that satisfy the library's rules");
        Self {
            buckets,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
        }
    }
}

impl Histogram {
    /// Records one duration.
    pub fn record(&mut self, ns: u64) {
        self.buckets.saturating_record(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
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

    /// The `q`-quantile (0 to 1) to 0.1 %, never outside the exact extremes. Absent when nothing
    /// was recorded. Whether there are samples enough to print it is `Quantile`'s question.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| {
            self.buckets
                .value_at_quantile(q)
                .clamp(self.min_ns, self.max_ns)
        })
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
        let mut extremes = Self::default();
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
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.buckets, &mut bytes)
            .map_err(|error| serde::ser::Error::custom(error.to_string()))?;
        Stored {
            count: self.count(),
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            sum_ns: self.sum_ns,
            hdr_v2: base64::prelude::BASE64_STANDARD.encode(bytes),
        }
        .serialize(serializer)
    }
}

impl TryFrom<Stored> for Histogram {
    type Error = HistogramError;

    fn try_from(stored: Stored) -> Result<Self, HistogramError> {
        let bytes = base64::prelude::BASE64_STANDARD.decode(stored.hdr_v2)?;
        let read: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| HistogramError::Format(format!("{error:?}")))?;
        let mut histogram = Self::default();
        histogram
            .buckets
            .add(&read)
            .map_err(|error| HistogramError::Bounds(error.to_string()))?;
        if histogram.count() != stored.count || stored.count > COUNT_MAX {
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
        Stored::deserialize(deserializer)?
            .try_into()
            .map_err(|error: HistogramError| serde::de::Error::custom(error.to_string()))
    }
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
