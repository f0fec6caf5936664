//! The filled buckets of a histogram: packed where there are many, a text where they are stored,
//! and as the library has them where they are exported.

use crate::loglinear;

/// The end of the range of every histogram: one hour. What is longer is counted in the last bucket.
pub(crate) const HIGHEST_NS: u64 = 3_600_000_000_000;

/// How exactly a histogram knows what is recorded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// Significant digits, as HdrHistogram states it.
    digits: u8,
    /// As the buckets have it: `2^bits` of them per doubling.
    pub(crate) bits: u32,
}

impl Resolution {
    /// A value is known to 1 %.
    pub(crate) const TWO_DIGITS: Self = Self { digits: 2, bits: 7 };
    /// A value is known to 0.1 %.
    pub(crate) const THREE_DIGITS: Self = Self {
        digits: 3,
        bits: 10,
    };

    /// How many buckets there can be.
    pub(crate) fn buckets(self) -> usize {
        self.bucket_of(HIGHEST_NS) + 1
    }

    /// The bucket of a duration.
    #[inline]
    pub(crate) fn bucket_of(self, ns: u64) -> usize {
        loglinear::index(ns.min(HIGHEST_NS), self.bits)
    }

    /// The shortest and the longest duration of a bucket.
    pub(crate) fn edges(self, bucket: usize) -> (u64, u64) {
        let above = loglinear::lowest(bucket + 1, self.bits);
        (loglinear::lowest(bucket, self.bits), above - 1)
    }

    /// The filled buckets as a histogram of the library, whose buckets they are.
    pub(crate) fn expand(
        self,
        filled: impl Iterator<Item = Filled>,
    ) -> hdrhistogram::Histogram<u64> {
        let empty = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, self.digits);
        let mut histogram =
            empty.expect("the bounds are constants that satisfy the library's rules");
        for filled in filled {
            histogram.saturating_record_n(self.edges(filled.bucket()).0, filled.count());
        }
        histogram
    }

    /// Reads what [`write`] wrote.
    ///
    /// # Errors
    ///
    /// It is no list of buckets that a histogram has, or more was recorded than in any run.
    pub(crate) fn read(self, text: &str) -> Result<Box<[Filled]>, &'static str> {
        let mut all: Vec<Filled> = Vec::new();
        let (mut bucket, mut total) = (0_usize, 0_u64);
        for word in text.split_ascii_whitespace() {
            let number: i64 = word.parse().map_err(|_| NO_BUCKETS)?;
            let Ok(count) = u64::try_from(number) else {
                let empty = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
                bucket = bucket.saturating_add(empty);
                continue;
            };
            if bucket >= self.buckets() || count == 0 {
                return Err(NO_BUCKETS);
            }
            total = total.saturating_add(count);
            all.push(Filled::new(bucket, count));
            bucket += 1;
        }
        if total > Filled::COUNT_MAX {
            return Err("a histogram holds more values than any run has");
        }
        Ok(all.into())
    }
}

/// Why a text says no buckets.
const NO_BUCKETS: &str = "the buckets of a histogram are not those of a histogram";

/// The text that stores these buckets, which are in order: their counts, with spaces between them.
/// `-N` stands for N empty buckets. They begin with that of 0, and are those of HdrHistogram.
pub(crate) fn write(filled: impl Iterator<Item = Filled>) -> String {
    let (mut text, mut next) = (String::new(), 0);
    for filled in filled {
        if filled.bucket() > next {
            text += &format!("-{} ", filled.bucket() - next);
        }
        text += &format!("{} ", filled.count());
        next = filled.bucket() + 1;
    }
    text.truncate(text.trim_end().len());
    text
}

/// A filled bucket: its number in the upper 16 bits, its count in the lower 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filled(pub(crate) u64);

impl Filled {
    const COUNT_BITS: u32 = 48;
    /// No bucket comes near this count; those of a file that says so could overflow sums.
    pub(crate) const COUNT_MAX: u64 = (1 << Self::COUNT_BITS) - 1;

    pub(crate) fn new(bucket: usize, count: u64) -> Self {
        Self((bucket as u64) << Self::COUNT_BITS | count.min(Self::COUNT_MAX))
    }

    pub(crate) fn bucket(self) -> usize {
        (self.0 >> Self::COUNT_BITS) as usize
    }

    pub(crate) fn count(self) -> u64 {
        self.0 & Self::COUNT_MAX
    }

    /// The bucket with so many values more, as far as it can hold them.
    pub(crate) fn plus(self, count: u64) -> Self {
        Self::new(self.bucket(), self.count().saturating_add(count))
    }
}

/// For fuzzing: what is read from a text, whatever it is, fits the range, and is written and read
/// again as it was.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_buckets(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for resolution in [Resolution::TWO_DIGITS, Resolution::THREE_DIGITS] {
        let Ok(filled) = resolution.read(&text) else {
            continue;
        };
        assert!(filled.iter().all(|of| of.bucket() < resolution.buckets()));
        assert!(filled.is_sorted_by(|a, b| a.bucket() < b.bucket()));
        let written = write(filled.iter().copied());
        assert_eq!(resolution.read(&written), Ok(filled));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RESOLUTIONS: [Resolution; 2] = [Resolution::TWO_DIGITS, Resolution::THREE_DIGITS];

    #[test]
    fn the_buckets_are_those_of_the_library() {
        for resolution in RESOLUTIONS {
            let library = resolution.expand(std::iter::empty());
            assert_eq!(library.distinct_values(), {
                // The library rounds its range up to a whole doubling.
                let bits = resolution.bits;
                (resolution.buckets() >> bits << bits) + (1 << bits)
            });
            for ns in [0, 1, 255, 256, 1_000, 123_456_789, HIGHEST_NS] {
                let (lowest, _) = resolution.edges(resolution.bucket_of(ns));
                assert_eq!(library.lowest_equivalent(ns), lowest, "{ns}");
            }
        }
    }

    #[test]
    fn what_no_buckets_are_is_refused() {
        for resolution in RESOLUTIONS {
            let last = resolution.buckets() - 1;
            let most = Filled::COUNT_MAX;
            for (sound, filled) in [
                (String::new(), &[][..]),
                (format!("-{last} 7"), &[(last, 7)]),
                (format!("{}  -4 1", most - 1), &[(0, most - 1), (5, 1)]),
                ("-1 -1 5 -9".to_owned(), &[(2, 5)]),
            ] {
                let filled = filled
                    .iter()
                    .map(|&(bucket, count)| Filled::new(bucket, count));
                assert_eq!(resolution.read(&sound), Ok(filled.collect()), "{sound}");
            }
            for unsound in [
                format!("-{} 7", last + 1),
                format!("{} 7", i64::MIN),
                format!("-1 {} 7", i64::MIN),
                format!("{most} 1"),
                format!("{0} {0} {0}", i64::MAX),
                format!("-{}", u64::MAX),
                "-5 0".to_owned(),
                "5 x".to_owned(),
                "AAAA".to_owned(),
                "5,1".to_owned(),
            ] {
                assert!(resolution.read(&unsound).is_err(), "{unsound}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(
            values in prop::collection::btree_map(0_usize..4_400, 1_u64..1 << 40, 0..50),
        ) {
            for resolution in RESOLUTIONS {
                let filled = values.iter().map(|(&bucket, &count)| Filled::new(bucket, count));
                let text = write(filled.clone());
                prop_assert_eq!(resolution.read(&text), Ok(filled.collect()));
            }
        }

        #[test]
        fn any_bytes_will_do(
            data in prop::collection::vec(any::<u8>(), 0..100),
            numbers in "[0-9 -]{0,40}",
        ) {
            fuzz_buckets(&data);
            fuzz_buckets(numbers.as_bytes());
        }
    }
}
