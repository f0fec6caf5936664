//! One interval of response times: its filled buckets.

use crate::hdr_v2::Layout;
use crate::{Histogram, loglinear};

/// The resolution of the histograms: two significant digits.
pub(super) const LAYOUT: Layout = Layout::TWO_DIGITS;
/// The resolution as the buckets have it: 2^7 = 128 of them per doubling.
pub(super) const BITS: u32 = 7;

/// A filled bucket: its number in the upper 16 bits, its count in the lower 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled(u64);

impl Filled {
    const COUNT_BITS: u32 = 48;
    pub(super) const COUNT_MAX: u64 = (1 << Self::COUNT_BITS) - 1;

    pub(super) fn new(index: usize, count: u64) -> Self {
        Self((index as u64) << Self::COUNT_BITS | count.min(Self::COUNT_MAX))
    }

    pub(super) fn index(self) -> usize {
        (self.0 >> Self::COUNT_BITS) as usize
    }

    pub(super) fn count(self) -> u64 {
        self.0 & Self::COUNT_MAX
    }
}

/// The filled buckets of one interval, in order.
pub(super) type Sparse = Box<[Filled]>;

/// Records the middle of each bucket as often as it was filled.
pub(super) fn record_middles(sparse: &[Filled], histogram: &mut Histogram) {
    for filled in sparse {
        let index = filled.index();
        let (from_ns, to_ns) = (
            loglinear::lowest(index, BITS),
            loglinear::lowest(index + 1, BITS) - 1,
        );
        histogram.record_many(u64::midpoint(from_ns, to_ns), filled.count());
    }
}

pub(super) fn count_of(sparse: impl Iterator<Item = Filled>) -> u64 {
    sparse.fold(0, |sum, filled| sum.saturating_add(filled.count()))
}

pub(super) fn sum_of(a: Sparse, b: Sparse) -> Sparse {
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
pub(super) fn expand(sparse: impl Iterator<Item = Filled>) -> hdrhistogram::Histogram<u64> {
    LAYOUT.expand(sparse.map(|filled| (filled.index(), filled.count())))
}
