//! Response times over time: a sparse histogram per interval, in bounded memory.

use base64::Engine as _;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::histogram::HIGHEST_NS;
use crate::loglinear;

/// Length of an interval at the start of a run: 100 ms.
const INTERVAL_NS: u64 = 100_000_000;
/// Beyond this many intervals neighbours are joined and the interval doubles.
const INTERVALS_MAX: usize = 600;
/// The interval with which 600 of them reach over every `u64`.
const INTERVAL_MAX_NS: u64 = INTERVAL_NS << 29;
/// Beyond this many filled buckets, of all intervals together, neighbours are joined too: 0.5 MB.
const FILLED_MAX: usize = 1 << 16;
/// Two significant digits, in HdrHistogram's words.
const DIGITS: u8 = 2;
/// The same, in those of the buckets: 128 per doubling.
const BITS: u32 = 7;
/// Longest text of one stored interval: no sound one comes near it.
const TEXT_MAX: usize = 64 << 10;

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
            interval_ns: INTERVAL_NS,
            sparse: Vec::new(),
        }
    }
}

impl Intervals {
    /// Length of an interval, nanoseconds: 100 ms, doubled as often as the run's length, or the
    /// number of different response times, asks.
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

    /// The response times of `range` together, which ends within the intervals.
    pub(crate) fn joined(&self, range: std::ops::Range<usize>) -> hdrhistogram::Histogram<u64> {
        expand(self.sparse[range].iter().flatten().copied())
    }

    /// Adds the response times of `other`.
    pub fn merge(&mut self, other: &Self) {
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
            end_ns: INTERVAL_NS,
            dense: vec![0; loglinear::count(HIGHEST_NS, BITS)].into_boxed_slice(),
        }
    }
}

impl IntervalRecorder {
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
        while index >= INTERVALS_MAX as u64 {
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

fn empty() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
        .expect("the bounds are constants that satisfy the library's rules")
}

/// The buckets as a histogram of the library, whose buckets they are.
fn expand(sparse: impl Iterator<Item = Filled>) -> hdrhistogram::Histogram<u64> {
    let mut histogram = empty();
    for filled in sparse {
        histogram.saturating_record_n(loglinear::lowest(filled.index(), BITS), filled.count());
    }
    histogram
}

/// The stored form.
#[derive(Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Intervals")
)]
struct Stored {
    /// Length of an interval, nanoseconds: 100 ms times a power of two.
    interval_ns: u64,
    /// For each interval from the start of the window, at most 600: response times of what
    /// completed in it, HdrHistogram V2, compressed, base64, two significant digits, nanoseconds;
    /// null when nothing did.
    hdr_v2: Vec<Option<String>>,
}

impl Serialize for Intervals {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut library = V2DeflateSerializer::new();
        let mut hdr_v2 = Vec::with_capacity(self.sparse.len());
        for sparse in &self.sparse {
            if sparse.is_empty() {
                hdr_v2.push(None);
                continue;
            }
            let mut bytes = Vec::new();
            library
                .serialize(&expand(sparse.iter().copied()), &mut bytes)
                .map_err(|error| serde::ser::Error::custom(error.to_string()))?;
            hdr_v2.push(Some(base64::prelude::BASE64_STANDARD.encode(bytes)));
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
        if interval_ns % INTERVAL_NS != 0
            || !(interval_ns / INTERVAL_NS).is_power_of_two()
            || interval_ns > INTERVAL_MAX_NS
        {
            return Err(format!(
                "no such interval of response times: {interval_ns} ns"
            ));
        }
        if hdr_v2.len() > INTERVALS_MAX {
            return Err(format!(
                "{} intervals of response times, over the limit of {INTERVALS_MAX}",
                hdr_v2.len()
            ));
        }
        let mut library = Deserializer::new();
        let mut intervals = Self {
            interval_ns,
            sparse: Vec::with_capacity(hdr_v2.len()),
        };
        for text in hdr_v2 {
            let sparse = match text {
                Some(text) => read(&mut library, &text)?,
                None => Sparse::default(),
            };
            intervals.sparse.push(sparse);
        }
        if intervals
            .sparse
            .iter()
            .map(|sparse| sparse.len())
            .sum::<usize>()
            > FILLED_MAX
        {
            return Err(format!(
                "intervals of response times with over {FILLED_MAX} filled buckets"
            ));
        }
        Ok(intervals)
    }
}

/// One stored interval.
fn read(library: &mut Deserializer, text: &str) -> Result<Sparse, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("an interval of {} characters", text.len()));
    }
    let bytes = base64::prelude::BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("an interval is not base64: {error}"))?;
    let read: hdrhistogram::Histogram<u64> = library
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("an interval is not a compressed HdrHistogram V2: {error:?}"))?;
    if (read.low(), read.sigfig()) != (1, DIGITS) || read.high() > HIGHEST_NS {
        return Err("an interval has other bounds than this version writes".to_owned());
    }
    let mut sparse = Vec::new();
    for value in read.iter_recorded() {
        let count = value.count_at_value();
        if count > Filled::COUNT_MAX {
            return Err(format!("an interval with {count} equal response times"));
        }
        let index = loglinear::index(value.value_iterated_to().min(HIGHEST_NS), BITS);
        sparse.push(Filled::new(index, count));
    }
    Ok(sparse.into_boxed_slice())
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
