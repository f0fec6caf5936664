//! Response times over time: a sparse histogram per interval, in bounded memory.

use serde::{Deserialize, Serialize};

use crate::hdr_v2::{self, HIGHEST_NS, Layout};
use crate::{Histogram, bounded, grid, loglinear};

/// Beyond this many intervals neighbours are joined and the interval doubles; intervals that are
/// shorter than the usual 100 ms sooner.
const INTERVALS_MAX: usize = 600;
/// The interval with which 600 of them reach over every `u64`.
const INTERVAL_MAX_NS: u64 = grid::USUAL_NS << 29;
/// Beyond this many filled buckets, of all intervals together, neighbours are joined too: 0.5 MB.
const FILLED_MAX: usize = 1 << 16;
/// Two significant digits.
const LAYOUT: Layout = Layout::TWO_DIGITS;
/// The same, in the words of the buckets: 128 per doubling.
const BITS: u32 = 7;

/// A filled bucket: its number in the upper 16 bits, its count in the lower 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filled(u64);

impl Filled {
    const COUNT_BITS: u32 = 48;
    const COUNT_MAX: u64 = (1 << Self::COUNT_BITS) - 1;

    fn new(index: usize, count: u64) -> Self {
        Self((index as u64) << Self::COUNT_BITS | count.min(Self::COUNT_MAX))
    }

    fn index(self) -> usize {
        (self.0 >> Self::COUNT_BITS) as usize
    }

    fn count(self) -> u64 {
        self.0 & Self::COUNT_MAX
    }
}

/// The filled buckets of one interval, in order.
type Sparse = Box<[Filled]>;

/// What completed in one interval, for export.
#[derive(Clone, Debug)]
pub struct IntervalHistogram {
    /// Its start, from the start of the window, nanoseconds.
    pub start_ns: u64,
    /// Its length, nanoseconds. The last one may reach beyond the end of the window.
    pub length_ns: u64,
    /// Response times of the successful replies that completed in it, nanoseconds, two
    /// significant digits.
    pub response: hdrhistogram::Histogram<u64>,
}

/// Response times of successful replies to requests issued in the window, by the time of their
/// completion: interval `i` covers `[i, i + 1) * interval_ns` from the window's start. What
/// completed in drain is in the last interval of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals {
    interval_ns: u64,
    /// Oldest first.
    sparse: Vec<Sparse>,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            interval_ns: grid::USUAL_NS,
            sparse: Vec::new(),
        }
    }
}

/// How many response times of an interval are at most some value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share {
    /// Response times of the interval.
    pub(crate) all: f64,
    /// Of these, those up to the value.
    pub(crate) below: f64,
}

impl Intervals {
    /// Length of an interval, nanoseconds: 100 ms, doubled as often as the run's length, or the
    /// number of different response times, asks, and less in runs of less than 16 s.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// How many intervals there are; at most 600.
    pub fn len(&self) -> usize {
        self.sparse.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sparse.is_empty()
    }

    /// How many response times there are in all.
    pub fn count(&self) -> u64 {
        self.sparse.iter().fold(0, |sum, sparse| {
            sum.saturating_add(count_of(sparse.iter().copied()))
        })
    }

    /// The intervals, oldest first, those without a completion included.
    pub fn iter(&self) -> impl Iterator<Item = IntervalHistogram> + '_ {
        self.sparse
            .iter()
            .enumerate()
            .map(|(index, sparse)| IntervalHistogram {
                start_ns: (index as u64).saturating_mul(self.interval_ns),
                length_ns: self.interval_ns,
                response: expand(sparse.iter().copied()),
            })
    }

    /// The same with intervals of at least 100 ms, which is how fine they are in long runs.
    pub fn coarsened(&self) -> Self {
        self.coarsened_to(grid::USUAL_NS)
    }

    /// The same with intervals of at least `interval_ns`.
    pub fn coarsened_to(&self, interval_ns: u64) -> Self {
        let mut coarse = self.clone();
        while coarse.interval_ns < interval_ns.min(INTERVAL_MAX_NS) {
            coarse.double();
        }
        coarse
    }

    /// The response times of each interval, oldest first, each in the middle of its bucket: known
    /// to 0.4 %.
    pub fn histograms(&self) -> impl Iterator<Item = Histogram> + '_ {
        self.sparse.iter().map(|sparse| {
            let mut histogram = Histogram::of_two_digits();
            record_middles(sparse, &mut histogram);
            histogram
        })
    }

    /// How many response times each interval has in each of its filled buckets, with the shortest
    /// of the bucket, nanoseconds; intervals oldest first, buckets shortest first.
    pub fn filled(&self) -> impl Iterator<Item = impl Iterator<Item = (u64, u64)> + '_> + '_ {
        self.sparse.iter().map(|sparse| {
            let filled = sparse.iter();
            filled.map(|it| (loglinear::lowest(it.index(), BITS), it.count()))
        })
    }

    /// Of each interval, by its number, the response times from `least_ns` on; where that is 0
    /// all of them, and without any the interval is left out. One after the other.
    pub(crate) fn only(&self, least_ns: impl Fn(usize) -> u64) -> Self {
        let mut only = Self {
            interval_ns: self.interval_ns,
            sparse: Vec::new(),
        };
        for (index, sparse) in self.sparse.iter().enumerate() {
            let least_ns = least_ns(index);
            let least = loglinear::index(least_ns.min(HIGHEST_NS), BITS);
            let wanted = &sparse[sparse.partition_point(|filled| filled.index() < least)..];
            if least_ns == 0 || !wanted.is_empty() {
                only.sparse.push(wanted.into());
            }
        }
        only
    }

    /// All response times as one histogram, each in the middle of its bucket: known to 0.4 %.
    pub(crate) fn together(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for sparse in &self.sparse {
            record_middles(sparse, &mut histogram);
        }
        histogram
    }

    /// The edges of the bucket that holds `ns`: response times between them are not told apart.
    pub(crate) fn bucket_of(ns: u64) -> std::ops::RangeInclusive<u64> {
        let index = loglinear::index(ns.min(HIGHEST_NS), BITS);
        loglinear::lowest(index, BITS)..=loglinear::lowest(index + 1, BITS) - 1
    }

    /// How many response times of each interval are at most `ns`, of a window of `window_ns`, of
    /// all response times `count`. Those of the bucket that holds it are taken to be spread evenly
    /// over it.
    pub(crate) fn shares(&self, ns: u64, count: f64, window_ns: u64) -> Vec<Share> {
        let bucket = loglinear::index(ns.min(HIGHEST_NS), BITS);
        let mut within = Vec::with_capacity(self.sparse.len());
        let mut shares: Vec<Share> = self
            .sparse
            .iter()
            .map(|sparse| {
                let first = sparse.partition_point(|filled| filled.index() < bucket);
                let (below, rest) = sparse.split_at(first);
                let at = rest.first().filter(|filled| filled.index() == bucket);
                within.push(at.map_or(0.0, |filled| filled.count() as f64));
                let below = count_of(below.iter().copied());
                let above = count_of(rest.iter().copied());
                Share {
                    all: below as f64 + above as f64,
                    below: below as f64,
                }
            })
            .collect();
        let below: f64 = shares.iter().map(|share| share.below).sum();
        let part = (count - below) / within.iter().sum::<f64>();
        if part.is_finite() {
            let part = part.clamp(0.0, 1.0);
            for (share, within) in shares.iter_mut().zip(within) {
                share.below += part * within;
            }
        }
        let parts = window_ns
            .div_ceil(self.interval_ns)
            .min(INTERVALS_MAX as u64);
        shares.resize(shares.len().max(parts as usize), Share::default());
        shares
    }

    /// Adds the response times of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut other = other.clone();
        while self.interval_ns < other.interval_ns {
            self.double();
        }
        while other.interval_ns < self.interval_ns {
            other.double();
        }
        for (index, sparse) in other.sparse.into_iter().enumerate() {
            self.add(index, sparse);
        }
        self.bound();
    }

    /// Adds `sparse` to an interval, below [`INTERVALS_MAX`].
    fn add(&mut self, index: usize, sparse: Sparse) {
        if self.sparse.len() <= index {
            self.sparse.resize(index + 1, Sparse::default());
        }
        let place = &mut self.sparse[index];
        *place = sum_of(std::mem::take(place), sparse);
    }

    /// Joins neighbours until the filled buckets are within their limit.
    fn bound(&mut self) {
        while self.sparse.len() > 1
            && self.sparse.iter().map(|sparse| sparse.len()).sum::<usize>() > FILLED_MAX
        {
            self.double();
        }
    }

    fn double(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let mut single = std::mem::take(&mut self.sparse).into_iter();
        while let Some(first) = single.next() {
            let second = single.next().unwrap_or_default();
            self.sparse.push(sum_of(first, second));
        }
    }

    /// Moves what lies beyond the last interval of a window of `window_ns` into it.
    fn fold(&mut self, window_ns: u64) {
        let last = window_ns.saturating_sub(1) / self.interval_ns;
        let kept = usize::try_from(last).map_or(INTERVALS_MAX, |last| last.saturating_add(1));
        while self.sparse.len() > kept
            && let Some(beyond) = self.sparse.pop()
        {
            self.add(kept - 1, beyond);
        }
    }
}

/// Fills [`Intervals`] from a stream of completions: the interval that goes on is kept dense.
#[derive(Clone, Debug)]
pub(crate) struct IntervalRecorder {
    intervals: Intervals,
    /// Number of the interval that goes on.
    index: usize,
    /// Its end, from the start of the window.
    end_ns: u64,
    /// Counts of its buckets.
    dense: Box<[u32]>,
}

impl Default for IntervalRecorder {
    fn default() -> Self {
        Self {
            intervals: Intervals::default(),
            index: 0,
            end_ns: grid::USUAL_NS,
            dense: vec![0; loglinear::count(HIGHEST_NS, BITS)].into_boxed_slice(),
        }
    }
}

impl IntervalRecorder {
    /// Intervals as they suit a window of this length, before anything is recorded; 0 for a length
    /// that is not known: they begin short then.
    pub(crate) fn set_window(&mut self, window_ns: u64) {
        self.intervals.interval_ns = grid::over(window_ns, INTERVALS_MAX);
        self.end_ns = self.intervals.interval_ns;
    }

    /// A reply completed `offset_ns` after the start of the window. Completions come nearly in
    /// order: one that is late goes into the interval that goes on.
    pub(crate) fn record(&mut self, offset_ns: u64, response_ns: u64) {
        if offset_ns >= self.end_ns {
            self.move_on(offset_ns);
        }
        let count = &mut self.dense[loglinear::index(response_ns.min(HIGHEST_NS), BITS)];
        *count += 1;
        if *count == u32::MAX {
            self.put_away();
        }
    }

    /// The intervals of a window of this length.
    pub(crate) fn finish(mut self, window_ns: u64) -> Intervals {
        self.put_away();
        self.intervals.fold(window_ns);
        self.intervals
    }

    /// Makes the interval of `offset_ns` the one that goes on.
    #[cold]
    fn move_on(&mut self, offset_ns: u64) {
        self.put_away();
        self.intervals.bound();
        let mut index = offset_ns / self.intervals.interval_ns;
        while index >= grid::most(self.intervals.interval_ns, INTERVALS_MAX) as u64 {
            self.intervals.double();
            index /= 2;
        }
        self.index = index as usize;
        self.end_ns = (index + 1).saturating_mul(self.intervals.interval_ns);
    }

    /// Adds what is dense to its interval.
    fn put_away(&mut self) {
        let filled = self.dense.iter().filter(|&&count| count > 0).count();
        if filled == 0 {
            return;
        }
        let mut sparse = Vec::with_capacity(filled);
        for (index, count) in self.dense.iter_mut().enumerate() {
            if *count > 0 {
                sparse.push(Filled::new(index, u64::from(*count)));
                *count = 0;
            }
        }
        self.intervals.add(self.index, sparse.into_boxed_slice());
    }
}

/// Records the middle of each bucket as often as it was filled.
fn record_middles(sparse: &[Filled], histogram: &mut Histogram) {
    for filled in sparse {
        let index = filled.index();
        let (from_ns, to_ns) = (
            loglinear::lowest(index, BITS),
            loglinear::lowest(index + 1, BITS) - 1,
        );
        histogram.record_many(u64::midpoint(from_ns, to_ns), filled.count());
    }
}

fn count_of(sparse: impl Iterator<Item = Filled>) -> u64 {
    sparse.fold(0, |sum, filled| sum.saturating_add(filled.count()))
}

fn sum_of(a: Sparse, b: Sparse) -> Sparse {
    if a.is_empty() {
        return b;
    }
    if b.is_empty() {
        return a;
    }
    let mut sum = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    while let (Some(one), Some(two)) = (a.peek(), b.peek()) {
        match one.index().cmp(&two.index()) {
            std::cmp::Ordering::Less => sum.extend(a.next()),
            std::cmp::Ordering::Greater => sum.extend(b.next()),
            std::cmp::Ordering::Equal => {
                sum.push(Filled::new(one.index(), one.count() + two.count()));
                a.next();
                b.next();
            }
        }
    }
    sum.extend(a.chain(b));
    sum.into_boxed_slice()
}

/// The buckets as a histogram of the library.
fn expand(sparse: impl Iterator<Item = Filled>) -> hdrhistogram::Histogram<u64> {
    LAYOUT.expand(sparse.map(|filled| (filled.index(), filled.count())))
}

/// The stored form.
#[derive(Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Intervals")
)]
struct Stored {
    /// Length of an interval, nanoseconds: 100 ms times a power of two, from 1/256 on.
    interval_ns: u64,
    /// For each interval from the start of the window, at most 600: response times of what
    /// completed in it, HdrHistogram V2, compressed, base64, two significant digits, nanoseconds;
    /// null when nothing did.
    #[serde(deserialize_with = "bounded::list::<_, _, INTERVALS_MAX>")]
    hdr_v2: Vec<Option<String>>,
}

impl Serialize for Intervals {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut hdr_v2 = Vec::with_capacity(self.sparse.len());
        for sparse in &self.sparse {
            if sparse.is_empty() {
                hdr_v2.push(None);
                continue;
            }
            let text = hdr_v2::write(&expand(sparse.iter().copied()));
            hdr_v2.push(Some(text.map_err(serde::ser::Error::custom)?));
        }
        Stored {
            interval_ns: self.interval_ns,
            hdr_v2,
        }
        .serialize(serializer)
    }
}

impl TryFrom<Stored> for Intervals {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let Stored {
            interval_ns,
            hdr_v2,
        } = stored;
        if !grid::is_length(interval_ns, INTERVAL_MAX_NS) {
            return Err(format!(
                "no such interval of response times: {interval_ns} ns"
            ));
        }
        let mut intervals = Self {
            interval_ns,
            sparse: Vec::with_capacity(hdr_v2.len()),
        };
        let mut filled = 0;
        for text in hdr_v2 {
            let sparse = match text {
                Some(text) => read(&text)?,
                None => Sparse::default(),
            };
            filled += sparse.len();
            if filled > FILLED_MAX {
                return Err(format!(
                    "intervals of response times with over {FILLED_MAX} filled buckets"
                ));
            }
            intervals.sparse.push(sparse);
        }
        Ok(intervals)
    }
}

/// One stored interval.
fn read(text: &str) -> Result<Sparse, String> {
    let filled = LAYOUT
        .read(text, Filled::COUNT_MAX)
        .map_err(|error| format!("an interval of response times: {error}"))?;
    let sparse = filled
        .into_iter()
        .map(|(index, count)| Filled::new(index, count));
    Ok(sparse.collect())
}

impl<'de> Deserialize<'de> for Intervals {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(deserializer)?
            .try_into()
            .map_err(serde::de::Error::custom::<String>)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Intervals {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Intervals".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Stored::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const INTERVAL_NS: u64 = grid::USUAL_NS;

    fn of(window_ns: u64, completions: &[(u64, u64)]) -> Intervals {
        let mut recorder = IntervalRecorder::default();
        for &(offset_ns, response_ns) in completions {
            recorder.record(offset_ns, response_ns);
        }
        recorder.finish(window_ns)
    }

    fn counts(intervals: &Intervals) -> Vec<u64> {
        intervals
            .iter()
            .map(|interval| interval.response.len())
            .collect()
    }

    /// The same, in the largest form there is: every bucket of every interval in use.
    fn varied(intervals: u64, gap_ns: u64) -> Intervals {
        let completions: Vec<_> = (0..intervals)
            .flat_map(|at| {
                (0..4_400).map(move |place| (at * gap_ns, loglinear::lowest(place, BITS)))
            })
            .collect();
        of(intervals * gap_ns, &completions)
    }

    fn stored(intervals: &Intervals) -> serde_json::Value {
        serde_json::to_value(intervals).expect("intervals serialise")
    }

    #[test]
    fn completions_fall_into_their_interval() {
        let intervals = of(
            350 * MS,
            &[
                (0, MS),
                (99 * MS, 2 * MS),
                (100 * MS, MS),
                // A late one goes into the interval that goes on.
                (99 * MS, MS),
                (340 * MS, 50 * MS),
            ],
        );
        assert_eq!(counts(&intervals), [2, 2, 0, 1]);
        let last = intervals.iter().last().expect("four intervals");
        assert_eq!((last.start_ns, last.length_ns), (300 * MS, 100 * MS));
        assert!(last.response.equivalent(last.response.max(), 50 * MS));
        assert_eq!(intervals.count(), 5);
        assert_eq!((intervals.len(), intervals.is_empty()), (4, false));
        assert!(Intervals::default().is_empty());
    }

    #[test]
    fn a_bucket_keeps_its_values_when_expanded() {
        let beyond = of(MS, &[(0, u64::MAX), (0, 0)]);
        let only = beyond.iter().next().expect("one interval");
        assert!(only.response.equivalent(only.response.max(), HIGHEST_NS));
        assert_eq!(only.response.min(), 0);
    }

    #[test]
    fn the_interval_doubles_with_the_length() {
        // (offset, interval in units of 100 ms)
        let cases = [
            (59_999 * MS, 1),
            (60_000 * MS, 2),
            (120_000 * MS, 4),
            (3_600_000 * MS, 64),
            (u64::MAX - 1, 1 << 29),
        ];
        for (offset_ns, units) in cases {
            let intervals = of(offset_ns + 1, &[(0, MS), (offset_ns, MS)]);
            assert_eq!(intervals.interval_ns(), units * INTERVAL_NS, "{offset_ns}");
            assert_eq!(
                intervals.len() as u64,
                offset_ns / (units * INTERVAL_NS) + 1
            );
            assert_eq!(intervals.count(), 2);
        }
    }

    #[test]
    fn a_short_window_has_short_intervals() {
        // (length told beforehand, last completion, interval in shares of 100 ms)
        let cases = [
            (1_000 * MS, 999 * MS, 16),
            (1_000 * MS, 10 * MS, 16),
            (10_000 * MS, 9_999 * MS, 1),
            // It is not known beforehand: a run by count.
            (0, 10 * MS, 256),
            (0, 999 * MS, 16),
            (0, 15_999 * MS, 1),
            (0, 59_999 * MS, 1),
            (0, 60_000 * MS, 0),
        ];
        for (window_ns, last_ns, share) in cases {
            let mut recorder = IntervalRecorder::default();
            recorder.set_window(window_ns);
            let completions = (0..200).map(|index| index * last_ns / 199);
            completions.for_each(|offset_ns| recorder.record(offset_ns, MS));
            let intervals = recorder.finish(last_ns + 1);
            let interval_ns = INTERVAL_NS.checked_div(share).unwrap_or(2 * INTERVAL_NS);
            assert_eq!(
                intervals.interval_ns(),
                interval_ns,
                "{window_ns} {last_ns}"
            );
            assert_eq!(intervals.count(), 200);
            assert_eq!(intervals.len() as u64, last_ns / interval_ns + 1);
            let read: Intervals = serde_json::from_value(stored(&intervals)).expect("its own form");
            assert_eq!(read, intervals);
            let coarse = intervals.coarsened();
            assert_eq!(coarse.interval_ns(), interval_ns.max(INTERVAL_NS));
            assert_eq!(coarse.count(), 200);
        }
    }

    #[test]
    fn shares_are_of_each_interval() {
        let intervals = of(
            350 * MS,
            &[
                (0, MS),
                (1, 3 * MS),
                (100 * MS, 2 * MS),
                (340 * MS, 2 * MS),
                (341 * MS, 2 * MS),
            ],
        );
        let share = |all, below| Share { all, below };
        // Three of five: two of the three equal ones count as below.
        let shares = intervals.shares(2 * MS, 3.0, 500 * MS);
        let third = 2.0 / 3.0;
        let expected = [
            share(2.0, 1.0),
            share(1.0, third),
            share(0.0, 0.0),
            share(2.0, 2.0 * third),
            share(0.0, 0.0),
        ];
        assert_eq!(shares, expected);
        let none = intervals.shares(MS / 2, 0.0, 0);
        assert!(none.len() == 4 && none.iter().all(|share| share.below == 0.0));
        let most = intervals.shares(MS, 1.0, u64::MAX);
        assert_eq!(most.len(), INTERVALS_MAX);
        for ns in [0, 255, 256, MS, HIGHEST_NS, u64::MAX] {
            let bucket = Intervals::bucket_of(ns);
            assert!(bucket.contains(&ns.min(HIGHEST_NS)), "{ns}");
            let width = bucket.end() - bucket.start();
            assert!(width <= bucket.start() >> BITS, "{ns}");
        }
    }

    #[test]
    fn what_lies_beyond_the_window_is_in_its_last_interval() {
        // The end was brought forward after the last completions.
        let completions = [
            (50 * MS, MS),
            (150 * MS, MS),
            (950 * MS, MS),
            (999 * MS, MS),
        ];
        // (length, counts)
        let cases: [(u64, &[u64]); 4] = [
            (1_000 * MS, &[1, 1, 0, 0, 0, 0, 0, 0, 0, 2]),
            (200 * MS, &[1, 3]),
            (100 * MS, &[4]),
            (0, &[4]),
        ];
        for (window_ns, expected) in cases {
            assert_eq!(
                counts(&of(window_ns, &completions)),
                expected,
                "{window_ns}"
            );
        }
    }

    #[test]
    fn memory_is_bounded_whatever_the_response_times() {
        let intervals = varied(100, INTERVAL_NS);
        let filled = intervals
            .sparse
            .iter()
            .map(|sparse| sparse.len())
            .sum::<usize>();
        assert!(filled <= FILLED_MAX, "{filled}");
        assert_eq!(intervals.count(), 100 * 4_400);
        assert_eq!(intervals.interval_ns(), 8 * INTERVAL_NS);
        let bytes = filled * size_of::<Filled>() + INTERVALS_MAX * size_of::<Sparse>();
        let dense = IntervalRecorder::default().dense.len() * size_of::<u32>();
        assert!(bytes + dense < 600 << 10, "{}", bytes + dense);
    }

    #[test]
    fn an_ordinary_run_is_stored_in_little_space() {
        // 10 s with some 300 filled buckets per interval.
        let completions: Vec<_> = (0..100_000_u64)
            .map(|n| {
                (
                    n * 100_000,
                    200_000 + n * 7_919 % 800_000 + n * 31 % 97 * 10_000,
                )
            })
            .collect();
        let text = stored(&of(10_000 * MS, &completions)).to_string();
        assert!(text.len() < 80_000, "{}", text.len());
    }

    #[test]
    fn a_bucket_that_is_full_is_put_away() {
        let mut recorder = IntervalRecorder::default();
        recorder.dense[1] = u32::MAX - 1;
        recorder.record(0, 1);
        assert_eq!(recorder.dense[1], 0);
        recorder.record(0, 1);
        assert_eq!(recorder.finish(MS).count(), u64::from(u32::MAX) + 1);
        let full = |count| Filled::new(7, count);
        let sum = sum_of(Box::new([full(Filled::COUNT_MAX)]), Box::new([full(9)]));
        assert_eq!((sum[0].index(), sum[0].count()), (7, Filled::COUNT_MAX));
    }

    #[test]
    fn what_is_stored_must_be_intervals() {
        let sound = stored(&of(300 * MS, &[(0, MS), (250 * MS, 3 * MS)]));
        assert!(sound["hdr_v2"][1].is_null());
        let histogram = |histogram: &hdrhistogram::Histogram<u64>| {
            hdr_v2::write(histogram).expect("a histogram serialises")
        };
        let other_digits = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, 3);
        let other_range = hdrhistogram::Histogram::new_with_bounds(1, 2 * HIGHEST_NS, 2);
        let mut too_many = LAYOUT.empty();
        too_many.saturating_record_n(5, Filled::COUNT_MAX + 1);
        type Value = serde_json::Value;
        let cases: [(&str, &str, Value); 11] = [
            ("no such interval", "interval_ns", 0.into()),
            (
                "no such interval",
                "interval_ns",
                (grid::SHORTEST_NS / 2).into(),
            ),
            ("no such interval", "interval_ns", (3 * INTERVAL_NS).into()),
            (
                "no such interval",
                "interval_ns",
                (2 * INTERVAL_MAX_NS).into(),
            ),
            (
                "over the limit of 600",
                "hdr_v2",
                vec![Value::Null; 601].into(),
            ),
            ("not base64", "hdr_v2", vec!["!"].into()),
            ("not a compressed", "hdr_v2", vec!["AAAA"].into()),
            ("characters", "hdr_v2", vec!["A".repeat(64 << 10)].into()),
            (
                "another range",
                "hdr_v2",
                vec![histogram(&other_digits.expect("bounds"))].into(),
            ),
            (
                "another range",
                "hdr_v2",
                vec![histogram(&other_range.expect("bounds"))].into(),
            ),
            (
                "over 281474976710655 values",
                "hdr_v2",
                vec![histogram(&too_many)].into(),
            ),
        ];
        for (message, field, value) in cases {
            let mut changed = sound.clone();
            changed[field] = value;
            let read = serde_json::from_value::<Intervals>(changed).map(drop);
            let words = read.map_err(|error| error.to_string()).expect_err(message);
            assert!(words.contains(message), "{words}");
        }
        let mut swollen = stored(&varied(1, INTERVAL_NS));
        swollen["hdr_v2"] = vec![swollen["hdr_v2"][0].clone(); 20].into();
        let words = serde_json::from_value::<Intervals>(swollen).map(drop);
        assert!(
            words
                .expect_err("swollen")
                .to_string()
                .contains("filled buckets")
        );
    }

    fn completions() -> impl Strategy<Value = Vec<(u64, u64)>> {
        // Up to ten minutes: the interval doubles up to four times.
        prop::collection::vec((0_u64..600_000_000_000, 0_u64..5_000_000_000_000), 0..60)
    }

    proptest! {
        #[test]
        fn merging_commutes_and_is_recording_all_in_one(a in completions(), b in completions()) {
            let window_ns = 600_000 * MS;
            let (mut a, mut b) = (a, b);
            a.sort_unstable();
            b.sort_unstable();
            let mut ab = of(window_ns, &a);
            ab.merge(&of(window_ns, &b));
            let mut ba = of(window_ns, &b);
            ba.merge(&of(window_ns, &a));
            let mut all = [a, b].concat();
            all.sort_unstable();
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &of(window_ns, &all));
            prop_assert_eq!(ab.count(), all.len() as u64);
        }

        #[test]
        fn stored_intervals_read_back_the_same(completions in completions()) {
            let intervals = of(600_000 * MS, &completions);
            let read: Intervals = serde_json::from_value(stored(&intervals)).expect("its own form");
            prop_assert_eq!(&read, &intervals);
        }

        #[test]
        fn nothing_is_lost_in_any_order(
            offsets in prop::collection::vec(any::<u64>(), 0..60),
            window_ns in any::<u64>(),
        ) {
            let completions: Vec<_> = offsets.iter().map(|&offset_ns| (offset_ns, MS)).collect();
            let intervals = of(window_ns, &completions);
            prop_assert_eq!(intervals.count(), offsets.len() as u64);
            prop_assert!(intervals.len() <= INTERVALS_MAX);
            let most = window_ns.saturating_sub(1) / intervals.interval_ns() + 1;
            prop_assert!(intervals.len() as u64 <= most);
            prop_assert_eq!(counts(&intervals).iter().sum::<u64>(), offsets.len() as u64);
        }
    }
}
