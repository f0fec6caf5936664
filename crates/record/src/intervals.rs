//! Response times over time: a sparse histogram per interval, in bounded memory.

use serde::{Deserialize, Serialize};

use crate::filled::{self, Filled, Resolution};
use crate::{Histogram, grid};

/// Beyond this many intervals neighbours are joined and the interval doubles; intervals that are
/// shorter than the usual 100 ms sooner.
const INTERVALS_MAX: usize = 600;
/// Beyond this many filled buckets, of all intervals together, neighbours are joined too: 0.5 MB.
const FILLED_MAX: usize = 1 << 16;
const RESOLUTION: Resolution = Resolution::TWO_DIGITS;

/// What completed in one interval, for export.
#[derive(Clone, Debug)]
pub struct IntervalHistogram {
    /// Start of the interval, from the start of the window, nanoseconds.
    pub start_ns: u64,
    /// Length of the interval, nanoseconds. The last one may reach beyond the end of the window.
    pub length_ns: u64,
    /// Response times of the successful replies that completed in it, nanoseconds, two
    /// significant digits.
    pub response: hdrhistogram::Histogram<u64>,
}

/// Response times of successful replies to requests issued in the window, by the time of their
/// completion: interval `i` covers `[i, i + 1) * interval_ns` from the window's start. What
/// completed in drain is in the last interval of the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredIntervals", into = "StoredIntervals")]
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
pub struct Share {
    /// Response times of the interval.
    pub all: f64,
    /// Response times of the interval that are at most that value.
    pub below: f64,
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

    /// Whether there are no intervals.
    pub fn is_empty(&self) -> bool {
        self.sparse.is_empty()
    }

    /// How many response times there are in all.
    pub fn count(&self) -> u64 {
        self.sparse
            .iter()
            .fold(0, |sum, sparse| sum.saturating_add(count_of(sparse)))
    }

    /// The intervals, oldest first, those without a completion included.
    pub fn iter(&self) -> impl Iterator<Item = IntervalHistogram> + '_ {
        self.sparse
            .iter()
            .enumerate()
            .map(|(index, sparse)| IntervalHistogram {
                start_ns: (index as u64).saturating_mul(self.interval_ns),
                length_ns: self.interval_ns,
                response: RESOLUTION.expand(sparse.iter().copied()),
            })
    }

    /// These response times in intervals of at least 100 ms, the usual length in long runs.
    pub fn coarsened(&self) -> Self {
        self.coarsened_to(grid::USUAL_NS)
    }

    /// These response times in intervals of at least `interval_ns`.
    pub fn coarsened_to(&self, interval_ns: u64) -> Self {
        let mut coarse = self.clone();
        while coarse.interval_ns < interval_ns.min(grid::LONGEST_NS) {
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
            filled.map(|of| (RESOLUTION.edges(of.bucket()).0, of.count()))
        })
    }

    /// The response times from `least_ns` on, which is given for each interval by its number. An
    /// interval of which nothing is left is left out, unless its `least_ns` is 0. The intervals
    /// that are left follow each other.
    pub fn only(&self, least_ns: impl Fn(usize) -> u64) -> Self {
        let mut only = Self {
            interval_ns: self.interval_ns,
            sparse: Vec::new(),
        };
        for (index, sparse) in self.sparse.iter().enumerate() {
            let least_ns = least_ns(index);
            let least = RESOLUTION.bucket_of(least_ns);
            let wanted = &sparse[sparse.partition_point(|filled| filled.bucket() < least)..];
            if least_ns == 0 || !wanted.is_empty() {
                only.sparse.push(wanted.into());
            }
        }
        only
    }

    /// All response times as one histogram, each in the middle of its bucket: known to 0.4 %.
    pub fn together(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for sparse in &self.sparse {
            record_middles(sparse, &mut histogram);
        }
        histogram
    }

    /// The edges of the bucket that holds `ns`: response times between them are not told apart.
    pub fn bucket_of(ns: u64) -> std::ops::RangeInclusive<u64> {
        let (least_ns, most_ns) = RESOLUTION.edges(RESOLUTION.bucket_of(ns));
        least_ns..=most_ns
    }

    /// How many response times of each interval are at most `ns`, in a window of `window_ns`, out
    /// of all response times, `count`. The response times of the bucket that holds `ns` count as if
    /// they were spread evenly over it.
    pub fn shares(&self, ns: u64, count: f64, window_ns: u64) -> Vec<Share> {
        let bucket = RESOLUTION.bucket_of(ns);
        let mut within = Vec::with_capacity(self.sparse.len());
        let mut shares: Vec<Share> = self
            .sparse
            .iter()
            .map(|sparse| {
                let first = sparse.partition_point(|filled| filled.bucket() < bucket);
                let (below, rest) = sparse.split_at(first);
                let at = rest.first().filter(|filled| filled.bucket() == bucket);
                within.push(at.map_or(0.0, |filled| filled.count() as f64));
                let (below, above) = (count_of(below), count_of(rest));
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
        while self.sparse.len() > 1 && self.filled_count() > FILLED_MAX {
            self.double();
        }
    }

    /// How many buckets are filled, of all intervals together.
    fn filled_count(&self) -> usize {
        self.sparse.iter().map(|sparse| sparse.len()).sum()
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
pub struct IntervalRecorder {
    intervals: Intervals,
    /// Number of the interval that goes on.
    index: usize,
    /// End of the interval, from the start of the window.
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
            dense: vec![0; RESOLUTION.buckets()].into(),
        }
    }
}

impl IntervalRecorder {
    /// Intervals as they suit a window of this length, before anything is recorded; 0 for a length
    /// that is not known: they begin short then.
    pub fn set_window(&mut self, window_ns: u64) {
        self.intervals.interval_ns = grid::over(window_ns, INTERVALS_MAX);
        self.end_ns = self.intervals.interval_ns;
    }

    /// A reply completed `offset_ns` after the start of the window. Completions come nearly in
    /// order: one that is late goes into the interval that goes on.
    pub fn record(&mut self, offset_ns: u64, response_ns: u64) {
        if offset_ns >= self.end_ns {
            self.move_on(offset_ns);
        }
        let count = &mut self.dense[RESOLUTION.bucket_of(response_ns)];
        *count += 1;
        if *count == u32::MAX {
            self.put_away();
        }
    }

    /// The intervals of a window of this length.
    pub fn finish(mut self, window_ns: u64) -> Intervals {
        self.put_away();
        self.intervals.bound();
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

/// The stored form.
#[derive(Serialize, Deserialize)]
struct StoredIntervals {
    /// Length of an interval, nanoseconds: 100 ms times a power of two, from 1/256 on.
    #[serde(deserialize_with = "grid::length")]
    interval_ns: u64,
    /// For each interval from the start of the window, at most 600: response times of what
    /// completed in it, as the buckets of a histogram of two significant digits are stored.
    buckets: Vec<String>,
}

impl From<Intervals> for StoredIntervals {
    fn from(intervals: Intervals) -> Self {
        let sparse = intervals.sparse.iter();
        Self {
            interval_ns: intervals.interval_ns,
            buckets: sparse
                .map(|sparse| filled::write(sparse.iter().copied()))
                .collect(),
        }
    }
}

impl TryFrom<StoredIntervals> for Intervals {
    type Error = String;

    fn try_from(stored: StoredIntervals) -> Result<Self, String> {
        if stored.buckets.len() > INTERVALS_MAX {
            return Err(format!(
                "over the limit of {INTERVALS_MAX} intervals of response times"
            ));
        }
        let sparse = stored.buckets.iter().map(|text| RESOLUTION.read(text));
        let intervals = Self {
            interval_ns: stored.interval_ns,
            sparse: sparse.collect::<Result<_, _>>()?,
        };
        if intervals.filled_count() > FILLED_MAX {
            return Err(format!(
                "intervals of response times with over {FILLED_MAX} filled buckets"
            ));
        }
        Ok(intervals)
    }
}

/// The filled buckets of one interval, in order.
type Sparse = Box<[Filled]>;

/// Records the middle of each bucket as often as it was filled.
fn record_middles(sparse: &[Filled], histogram: &mut Histogram) {
    for filled in sparse {
        let (from_ns, to_ns) = RESOLUTION.edges(filled.bucket());
        histogram.record_many(u64::midpoint(from_ns, to_ns), filled.count());
    }
}

fn count_of(sparse: &[Filled]) -> u64 {
    sparse.iter().map(|filled| filled.count()).sum()
}

fn sum_of(a: Sparse, b: Sparse) -> Sparse {
    if a.is_empty() {
        return b;
    }
    if b.is_empty() {
        return a;
    }
    let mut sum = [a, b].concat();
    // Two sorted runs, which a stable sort merges.
    sum.sort_by_key(|filled| filled.bucket());
    sum.dedup_by(|next, kept| {
        let is_same = next.bucket() == kept.bucket();
        if is_same {
            *kept = kept.plus(next.count());
        }
        is_same
    });
    sum.into_boxed_slice()
}

#[cfg(test)]
mod tests;
