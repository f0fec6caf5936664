//! A latency histogram: the buckets of HdrHistogram, with exact extremes and an exact sum.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::filled::{self, Filled, HIGHEST_NS, Resolution};
use crate::merged::{Merge, merges, sum};
use crate::{Intervals, Split, StageRecord};

/// Durations in nanoseconds, 1 ns to 1 h, three significant digits, or two where there are many
/// histograms; minimum, maximum and sum are exact.
///
/// There are tens of thousands of buckets, of which a run fills a few that are near each other.
/// Memory of the others is never touched, not even to read it.
#[derive(Debug)]
pub struct Histogram {
    resolution: Resolution,
    /// Counts by the number of the bucket.
    counts: Box<[u64]>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::of(Resolution::THREE_DIGITS)
    }
}

impl Clone for Histogram {
    fn clone(&self) -> Self {
        let mut copy = Self::of(self.resolution);
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, source: &Self) {
        if self.resolution != source.resolution {
            *self = Self::of(source.resolution);
        }
        let own = self.range();
        self.counts[own].fill(0);
        let range = source.range();
        self.counts[range.clone()].copy_from_slice(&source.counts[range]);
        self.count = source.count;
        self.min_ns = source.min_ns;
        self.max_ns = source.max_ns;
        self.sum_ns = source.sum_ns;
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let figures = |of: &Self| (of.resolution, of.count, of.min_ns, of.max_ns, of.sum_ns);
        figures(self) == figures(other) && self.filled().eq(other.filled())
    }
}

impl Histogram {
    /// An empty one of two significant digits: an eighth of the memory.
    pub(crate) fn of_two_digits() -> Self {
        Self::of(Resolution::TWO_DIGITS)
    }

    /// An empty one of this resolution.
    fn of(resolution: Resolution) -> Self {
        Self {
            resolution,
            counts: vec![0; resolution.buckets()].into(),
            count: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
        }
    }

    /// A histogram of two significant digits with these buckets, and exact extremes.
    pub(crate) fn of_filled(
        filled: impl Iterator<Item = Filled>,
        min_ns: u64,
        max_ns: u64,
        sum_ns: u64,
    ) -> Self {
        let mut histogram = Self::of_two_digits();
        histogram.fill(filled.map(|filled| (filled.bucket(), filled.count())));
        Self {
            min_ns,
            max_ns,
            sum_ns,
            ..histogram
        }
    }

    fn fill(&mut self, filled: impl Iterator<Item = (usize, u64)>) {
        for (index, count) in filled {
            self.counts[index] = self.counts[index].saturating_add(count);
            self.count = self.count.saturating_add(count);
        }
    }

    /// The buckets in which everything lies: as a rule those from the shortest to the longest
    /// duration.
    fn range(&self) -> Range<usize> {
        if self.count == 0 {
            return 0..0;
        }
        let first = self.bucket_of(self.min_ns);
        let last = self.bucket_of(self.max_ns).max(first);
        if sum(&self.counts[first..=last]) == self.count {
            first..last + 1
        } else {
            // The extremes that a file states may be wrong.
            0..self.counts.len()
        }
    }

    /// The buckets that hold something, number and count, in order.
    fn filled(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        let range = self.range();
        let counts = self.counts[range.clone()].iter().copied().enumerate();
        counts
            .filter(|&(_, count)| count > 0)
            .map(move |(place, count)| (range.start + place, count))
    }

    /// The bucket of a duration. What lies beyond the hour is in the last one.
    #[inline]
    fn bucket_of(&self, ns: u64) -> usize {
        self.resolution.bucket_of(ns)
    }

    /// The bucket of the `rank`-th smallest (from 1), of which there is one.
    fn at_rank(&self, rank: u64) -> usize {
        // In steps, whose sums are quickly found.
        const STEP: usize = 8;
        let range = self.range();
        let mut below = 0_u64;
        for (step, counts) in self.counts[range.clone()].chunks(STEP).enumerate() {
            let with_step = below.saturating_add(sum(counts));
            if with_step < rank {
                below = with_step;
                continue;
            }
            for (place, count) in counts.iter().enumerate() {
                below = below.saturating_add(*count);
                if below >= rank {
                    return range.start + step * STEP + place;
                }
            }
        }
        range.end - 1
    }

    /// Records one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = self.bucket_of(ns);
        self.counts[bucket] += 1;
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Records `count` durations that are at least `ns` and that [`Self::least_alike_ns`] says are
    /// counted with it.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        let bucket = self.bucket_of(ns);
        self.fill([(bucket, count)].into_iter());
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(count));
    }

    /// The shortest duration that is counted in the same bucket as `ns`.
    pub fn least_alike_ns(&self, ns: u64) -> u64 {
        self.resolution.edges(self.bucket_of(ns)).0
    }

    /// How many durations may be `ns` or longer. All durations of the bucket that holds `ns` are
    /// counted.
    pub fn count_from(&self, ns: u64) -> u64 {
        if self.count == 0 || ns > self.max_ns {
            return 0;
        }
        sum(&self.counts[self.bucket_of(ns)..self.range().end])
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.count
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
            let rank = (q.min(1.0) * self.count as f64).ceil() as u64;
            let (low_ns, high_ns) = self.resolution.edges(self.at_rank(rank.max(1)));
            let ns = if q == 0.0 { low_ns } else { high_ns };
            ns.clamp(self.min_ns, self.max_ns)
        })
    }

    /// The edges of the bucket that holds the `rank`-th smallest (from 1), never outside the exact
    /// extremes. Absent when there are fewer.
    pub fn bucket_at_rank(&self, rank: u64) -> Option<(u64, u64)> {
        if rank == 0 || rank > self.count {
            return None;
        }
        let (low_ns, high_ns) = self.resolution.edges(self.at_rank(rank));
        let [low_ns, high_ns] = [low_ns, high_ns].map(|ns| ns.clamp(self.min_ns, self.max_ns));
        // What lies beyond the hour shares the last bucket.
        let high_ns = if low_ns >= HIGHEST_NS {
            self.max_ns
        } else {
            high_ns
        };
        Some((low_ns, high_ns))
    }

    /// A histogram of these durations, each less `ns`, or 0. A value is never above the exact
    /// difference, and below it by a bucket's width at most.
    pub(crate) fn lowered_by(&self, ns: u64) -> Self {
        let mut lowered = Self::of(self.resolution);
        for (index, count) in self.filled() {
            let least_ns = self.resolution.edges(index).0.max(self.min_ns);
            lowered.record_many(least_ns.saturating_sub(ns), count);
        }
        lowered
    }

    /// Adds the durations of `other`, which has the same resolution.
    pub fn merge(&mut self, other: &Self) {
        self.fill(other.filled());
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Whether the exact figures kept beside the buckets fit them: minimum and maximum lie in the
    /// outermost filled buckets, the sum between `count * min` and `count * max`.
    fn extremes_agree(&self) -> bool {
        if self.count() == 0 {
            return self.sum_ns == 0;
        }
        let (first, last) = (self.filled().next(), self.filled().next_back());
        let is_at = |filled: Option<(usize, u64)>, ns| {
            filled.is_some_and(|(bucket, _)| bucket == self.bucket_of(ns))
        };
        let count = u128::from(self.count());
        let sum_least = (count * u128::from(self.min_ns)).min(u128::from(u64::MAX));
        let sum_most = count * u128::from(self.max_ns);
        is_at(first, self.min_ns)
            && is_at(last, self.max_ns)
            && (sum_least..=sum_most).contains(&u128::from(self.sum_ns))
    }

    /// The buckets as a histogram of the library, for export in its formats.
    pub fn buckets(&self) -> hdrhistogram::Histogram<u64> {
        self.resolution.expand(self.packed())
    }

    fn packed(&self) -> impl Iterator<Item = Filled> + '_ {
        let filled = self.filled();
        filled.map(|(bucket, count)| Filled::new(bucket, count))
    }
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct StoredHistogram {
    /// How many durations were recorded.
    count: u64,
    /// The smallest, exact, nanoseconds; null when there is none.
    min_ns: Option<u64>,
    /// The largest, exact, nanoseconds; null when there is none.
    max_ns: Option<u64>,
    /// Sum of all durations, nanoseconds.
    sum_ns: u64,
    /// Counts of its buckets, 1,024 per doubling, or 128 with two significant digits, as the text
    /// that stores them.
    buckets: String,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredHistogram {
            count: self.count(),
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            sum_ns: self.sum_ns,
            buckets: filled::write(self.packed()),
        }
        .serialize(serializer)
    }
}

impl StoredHistogram {
    /// The histogram, if it is sound and of this resolution.
    fn histogram(self, resolution: Resolution) -> Result<Histogram, String> {
        let stored = self;
        let filled = resolution.read(&stored.buckets)?;
        let mut histogram = Histogram::of(resolution);
        histogram.fill(
            filled
                .iter()
                .map(|filled| (filled.bucket(), filled.count())),
        );
        let (count, held) = (stored.count, histogram.count());
        if held != count {
            return Err(format!(
                "the histogram says {count} values and holds {held}"
            ));
        }
        let is_sensible = match (stored.min_ns, stored.max_ns) {
            (Some(min_ns), Some(max_ns)) => count > 0 && min_ns <= max_ns,
            (None, None) => count == 0,
            _ => false,
        };
        if !is_sensible {
            return Err(format!(
                "the histogram of {count} values has no sensible minimum and maximum"
            ));
        }
        histogram.min_ns = stored.min_ns.unwrap_or(u64::MAX);
        histogram.max_ns = stored.max_ns.unwrap_or(0);
        histogram.sum_ns = stored.sum_ns;
        if !histogram.extremes_agree() {
            return Err("the extremes and the sum are not those of the buckets".to_owned());
        }
        Ok(histogram)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, Resolution::THREE_DIGITS)
    }
}

/// Reads a histogram of two significant digits, for `deserialize_with`.
pub(crate) fn with_two_digits<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Histogram, D::Error> {
    read(deserializer, Resolution::TWO_DIGITS)
}

fn read<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
    resolution: Resolution,
) -> Result<Histogram, D::Error> {
    let stored = StoredHistogram::deserialize(deserializer)?;
    stored
        .histogram(resolution)
        .map_err(serde::de::Error::custom)
}

/// Durations of one worker, or of all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Response time of successful replies (status below 400) to requests issued in the window:
    /// from the planned instant with a schedule of requests, else from the send.
    pub response: Histogram,
    /// Response time of error replies (status 400 and above) to requests issued in the window: from
    /// the planned instant with a schedule of requests, else from the send.
    pub response_error: Histogram,
    /// Service time, from the send, of the replies in `response`. Empty where the response time
    /// counts from the send as well.
    pub service: Histogram,
    /// Lower bounds of the response time of what never had one because it took too long: requests
    /// that timed out or were censored and, with a schedule of requests, arrivals that were never
    /// sent. Of the window. Without a schedule of requests also of those that were in flight
    /// throughout the window.
    pub unfinished: Histogram,
    /// Schedule lag: from the first instant at which brunt could have sent until it did. That
    /// instant is the planned one or, if no connection was free then, the one at which the reply
    /// came that freed one. In a closed loop there is no planned instant: it is the time from a
    /// reply to the next request. Of the window.
    pub lag: Histogram,
    /// Time of the TCP handshake of a connection, over all phases.
    pub connect: Histogram,
    /// Time of the TLS handshake of a connection, from the end of the TCP handshake, over all
    /// phases. Empty in clear text.
    pub tls: Histogram,
    /// Time from the end of the TLS handshake, in clear text of the TCP handshake, until the
    /// server's first HTTP/2 settings, over all phases. Empty in HTTP/1.1.
    pub greeting: Histogram,
    /// The response times in `response` of the first reply of each connection, together with what
    /// opening the connection took before the response time began: TCP, TLS and HTTP/2 settings.
    /// Where every connection carries one request, as many as in `response`.
    pub with_connect: Histogram,
    /// Times from the send of a request to the first byte of its reply, of the replies in
    /// `response`.
    pub first_byte: Histogram,
    /// Times from the first byte of a reply until it is complete and parsed, of the replies in
    /// `response`. With `first_byte` they add up to the service time.
    pub transfer: Histogram,
    /// Times from the planned instant of a connection to its first complete reply, of the
    /// connections planned in the window; empty without a schedule of connections.
    pub first_reply: Histogram,
    /// The parts of the response times in `response` that belong to connections with kernel
    /// stamps.
    pub split: Split,
    /// The response times in `response`, by the time of their completion.
    pub intervals: Intervals,
    /// The outcome of the requests due in each stage, with a schedule of requests in stages. Empty
    /// without stages, and with over 64 of them.
    pub stages: Vec<StageRecord>,
}

merges!(Latencies:
    response response_error service unfinished lag connect tls greeting with_connect first_byte
    transfer first_reply split intervals stages
);

impl Latencies {
    /// How long it takes on average until a connection is open, nanoseconds: of TCP, TLS and
    /// HTTP/2 settings together.
    pub fn opening_mean_ns(&self) -> f64 {
        let steps = [&self.connect, &self.tls, &self.greeting];
        let known = steps.into_iter().filter_map(Histogram::mean_ns);
        // The sum of nothing is -0.0.
        known.fold(0.0, |sum, ns| sum + ns)
    }
}

/// `finished` durations and `unfinished` ones, as the least that they can have been.
pub fn with_bounds<'a>(finished: &'a Histogram, unfinished: &Histogram) -> Cow<'a, Histogram> {
    if unfinished.count() == 0 {
        return Cow::Borrowed(finished);
    }
    let mut merged = finished.clone();
    merged.merge(unfinished);
    Cow::Owned(merged)
}

/// The least that the mean of all can be, nanoseconds, with the `unfinished` at their bounds;
/// absent where none is unfinished.
pub fn mean_at_least_ns(finished: &Histogram, unfinished: &Histogram) -> Option<u64> {
    if unfinished.count() == 0 {
        return None;
    }
    let sum_ns = finished.sum_ns() as f64 + unfinished.sum_ns() as f64;
    let count = finished.count() as f64 + unfinished.count() as f64;
    Some((sum_ns / count) as u64)
}

/// The least that the longest of all can be, nanoseconds, with the `unfinished` at their bounds;
/// absent where none is unfinished.
pub fn max_at_least_ns(finished: &Histogram, unfinished: &Histogram) -> Option<u64> {
    let bound_ns = unfinished.max_ns()?;
    Some(finished.max_ns().map_or(bound_ns, |ns| ns.max(bound_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let extremes = "the extremes and the sum are not those";
        type Change = fn(&mut serde_json::Value);
        let cases: [(&str, Change); 9] = [
            (extremes, |stored| stored["min_ns"] = 1_500.into()),
            (extremes, |stored| stored["max_ns"] = 90_000.into()),
            (extremes, |stored| stored["sum_ns"] = 1.into()),
            ("not those of a histogram", |stored| {
                stored["buckets"] = "!".into()
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
            let all = of(&[&a[..], &b[..]].concat());
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &all);
            prop_assert!(ab.extremes_agree());
            // A copy into one that held something else.
            let mut copy = of(&a);
            copy.clone_from(&all);
            prop_assert_eq!(&copy, &all);
            prop_assert_eq!(copy.buckets(), all.buckets());
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
    }

    #[test]
    fn what_was_never_answered_makes_mean_and_maximum_lower_bounds() {
        // (answered, bounds of what was not, mean, maximum)
        type Case<'a> = (&'a [u64], &'a [u64], Option<u64>, Option<u64>);
        let cases: [Case<'_>; 5] = [
            (&[], &[], None, None),
            (&[10, 20], &[], None, None),
            (&[], &[7, 9], Some(8), Some(9)),
            (&[10, 20], &[60], Some(30), Some(60)),
            (&[10, 80], &[0], Some(30), Some(80)),
        ];
        for (answered, bounds, mean_ns, max_ns) in cases {
            let mut latencies = Latencies::default();
            answered
                .iter()
                .for_each(|&ns| latencies.response.record(ns));
            bounds
                .iter()
                .for_each(|&ns| latencies.unfinished.record(ns));
            let found = (
                mean_at_least_ns(&latencies.response, &latencies.unfinished),
                max_at_least_ns(&latencies.response, &latencies.unfinished),
            );
            assert_eq!(found, (mean_ns, max_ns), "{answered:?} {bounds:?}");
        }
    }
}
