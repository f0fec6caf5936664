//! HdrHistogram V2, compressed and in base64: how the buckets of a histogram are stored. Whatever
//! a text says of lengths, reading it takes no more memory and time than its range of values asks.

use std::io::Read;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use thiserror::Error;

use crate::loglinear;

/// The end of the range of every histogram: one hour.
pub(crate) const HIGHEST_NS: u64 = 3_600_000_000_000;

/// The first four bytes of the compressed form.
const COOKIE_COMPRESSED: u32 = 0x1c84_9314;
/// The first four bytes of what was compressed.
const COOKIE: u32 = 0x1c84_9313;
/// Cookie and length before the compressed bytes.
const PREFIX_BYTES: usize = 8;
/// Cookie, length, offset, digits, lowest and highest value, and a ratio, before the counts.
const HEADER_BYTES: usize = 40;
/// Longest stored count.
const COUNT_BYTES_MAX: usize = 9;

/// Why stored buckets cannot be read.
#[derive(Debug, Error)]
pub(crate) enum HdrV2Error {
    /// The text is longer than its range of values can ask for. Holds both lengths.
    #[error("the histogram has {0} characters, over the limit of {1}")]
    TooLong(usize, usize),
    /// The text is not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The text has another form, or none.
    #[error("the histogram is not a compressed HdrHistogram V2")]
    OtherForm,
    /// A length is not that of what follows it. Holds what is stated, and what is there.
    #[error("the histogram says that {0} bytes follow, and {1} do")]
    Length(u32, usize),
    /// The compressed bytes are damaged.
    #[error("the histogram cannot be inflated: {0}")]
    Damaged(std::io::Error),
    /// The text inflates to more bytes than the histogram's range of values can need.
    #[error("the histogram inflates to over {0} bytes, the most that its range can need")]
    Inflated(usize),
    /// The histogram has another range of values, or another resolution.
    #[error("the histogram has another range or resolution than this version writes")]
    OtherBounds,
    /// The counts go on beyond the range, or the last one is cut off.
    #[error("the histogram's counts do not fit its range")]
    Counts,
    /// The counts together are more than any run has.
    #[error("the histogram holds over {0} values")]
    TooMany(u64),
}

/// The resolution of a histogram over the common range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The resolution as HdrHistogram states it: significant digits.
    digits: u8,
    /// The resolution as the buckets have it: `2^bits` of them per doubling.
    bits: u32,
}

impl Layout {
    /// A value is known to 1 %.
    pub(crate) const TWO_DIGITS: Self = Self { digits: 2, bits: 7 };
    /// A value is known to 0.1 %.
    pub(crate) const THREE_DIGITS: Self = Self {
        digits: 3,
        bits: 10,
    };

    /// The resolution in bits: the histogram has `2^bits` buckets per doubling.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    /// How many buckets there can be.
    pub(crate) fn buckets(self) -> usize {
        loglinear::count(HIGHEST_NS, self.bits)
    }

    /// Most bytes of the form that is compressed.
    fn bytes_max(self) -> usize {
        HEADER_BYTES + self.buckets() * COUNT_BYTES_MAX
    }

    /// Most characters of the text. Compression makes nothing longer by more than a tenth.
    fn text_max(self) -> usize {
        (PREFIX_BYTES + self.bytes_max() + self.bytes_max() / 10).div_ceil(3) * 4
    }

    /// A histogram of the library with these bounds.
    pub(crate) fn empty(self) -> hdrhistogram::Histogram<u64> {
        hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, self.digits)
            .expect("the bounds are constants that satisfy the library's rules")
    }

    /// Reads the filled buckets, number and count, in order. Together they hold at most
    /// `count_max`.
    ///
    /// # Errors
    ///
    /// See [`HdrV2Error`].
    pub(crate) fn read(self, text: &str, count_max: u64) -> Result<Vec<(usize, u64)>, HdrV2Error> {
        if text.len() > self.text_max() {
            return Err(HdrV2Error::TooLong(text.len(), self.text_max()));
        }
        self.read_bytes(&base64::prelude::BASE64_STANDARD.decode(text)?, count_max)
    }

    /// Reads the filled buckets, number and count, in order, from the bytes that the text encodes.
    /// Together they hold at most `count_max`.
    fn read_bytes(self, bytes: &[u8], count_max: u64) -> Result<Vec<(usize, u64)>, HdrV2Error> {
        let compressed = behind_length(bytes, COOKIE_COMPRESSED, 0)?;
        let limit = self.bytes_max();
        let mut inflated = Vec::new();
        ZlibDecoder::new(compressed)
            .take(limit as u64 + 1)
            .read_to_end(&mut inflated)
            .map_err(HdrV2Error::Damaged)?;
        if inflated.len() > limit {
            return Err(HdrV2Error::Inflated(limit));
        }
        self.read_inflated(&inflated, count_max)
    }

    fn read_inflated(self, bytes: &[u8], count_max: u64) -> Result<Vec<(usize, u64)>, HdrV2Error> {
        let fields = behind_length(bytes, COOKIE, HEADER_BYTES - PREFIX_BYTES)?;
        let (header, counts) = fields.split_at(HEADER_BYTES - PREFIX_BYTES);
        if header != self.header() {
            return Err(HdrV2Error::OtherBounds);
        }
        let mut filled = Vec::new();
        let (mut rest, mut index, mut total) = (counts, 0_usize, 0_u64);
        while !rest.is_empty() {
            let number = take_number(&mut rest).ok_or(HdrV2Error::Counts)?;
            let step = match u64::try_from(number) {
                // So many empty buckets.
                Err(_) => usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX),
                Ok(0) => 1,
                Ok(count) => {
                    total = total.saturating_add(count);
                    filled.push((index, count));
                    1
                }
            };
            index = index.saturating_add(step);
            if index > self.buckets() {
                return Err(HdrV2Error::Counts);
            }
        }
        if total > count_max {
            return Err(HdrV2Error::TooMany(count_max));
        }
        Ok(filled)
    }

    /// What follows the length: no offset, the digits, the bounds, and a ratio of 1.
    fn header(self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER_BYTES - PREFIX_BYTES);
        header.extend(0_u32.to_be_bytes());
        header.extend(u32::from(self.digits).to_be_bytes());
        header.extend(1_u64.to_be_bytes());
        header.extend(HIGHEST_NS.to_be_bytes());
        header.extend(1_f64.to_be_bytes());
        header
    }

    /// The filled buckets as a histogram of the library, whose buckets they are.
    pub(crate) fn expand(
        self,
        filled: impl Iterator<Item = (usize, u64)>,
    ) -> hdrhistogram::Histogram<u64> {
        let mut histogram = self.empty();
        for (index, count) in filled {
            histogram.saturating_record_n(loglinear::lowest(index, self.bits), count);
        }
        histogram
    }
}

/// The text that stores `histogram`.
///
/// # Errors
///
/// What the library says; a count over `i64::MAX` is one.
pub(crate) fn write(histogram: &hdrhistogram::Histogram<u64>) -> Result<String, String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(base64::prelude::BASE64_STANDARD.encode(bytes))
}

/// What follows cookie and length. The length counts it, but for the first `uncounted` bytes.
fn behind_length(bytes: &[u8], cookie: u32, uncounted: usize) -> Result<&[u8], HdrV2Error> {
    let (prefix, rest) = bytes
        .split_at_checked(PREFIX_BYTES)
        .ok_or(HdrV2Error::OtherForm)?;
    let (found_cookie, stated) = prefix.split_at(size_of::<u32>());
    if found_cookie != cookie.to_be_bytes() {
        return Err(HdrV2Error::OtherForm);
    }
    let stated = stated
        .iter()
        .fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    let found = rest
        .len()
        .checked_sub(uncounted)
        .ok_or(HdrV2Error::OtherForm)?;
    if usize::try_from(stated) != Ok(found) {
        return Err(HdrV2Error::Length(stated, found));
    }
    Ok(rest)
}

/// The next number: ZigZag, in groups of 7 bits, the least significant first; the ninth byte has 8.
fn take_number(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0;
    for place in 0..COUNT_BYTES_MAX {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        let is_last = place + 1 == COUNT_BYTES_MAX;
        let bits = if is_last { byte } else { byte & 0x7f };
        value |= u64::from(bits) << (7 * place);
        if is_last || byte & 0x80 == 0 {
            break;
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// For fuzzing: takes the first byte as what to do with the rest. Whatever it is, what is read fits
/// the range, is written and read again as the same, and the library reads it so too.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_hdr_v2(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else {
        return;
    };
    let layout = if mode & 1 == 0 {
        Layout::TWO_DIGITS
    } else {
        Layout::THREE_DIGITS
    };
    let count_max = 1 << 62;
    let read = match mode >> 1 & 3 {
        0 => layout.read(&String::from_utf8_lossy(rest), count_max),
        1 => layout.read_bytes(rest, count_max),
        2 => layout.read_inflated(rest, count_max),
        // Counts alone, behind a sound header.
        _ => layout.read_inflated(&with_header(layout, rest), count_max),
    };
    let Ok(filled) = read else {
        return;
    };
    assert!(filled.iter().all(|&(index, _)| index < layout.buckets()));
    assert!(filled.is_sorted_by(|a, b| a.0 < b.0));
    let histogram = layout.expand(filled.iter().copied());
    let text = write(&histogram).expect("its counts are bounded");
    let again = layout.read(&text, count_max).expect("its own form");
    assert_eq!(again, filled);
    let bytes = base64::prelude::BASE64_STANDARD.decode(text);
    let library: hdrhistogram::Histogram<u64> = hdrhistogram::serialization::Deserializer::new()
        .deserialize(&mut bytes.expect("base64").as_slice())
        .expect("what the library wrote");
    assert_eq!(library, histogram);
}

/// The form that is compressed, with these counts.
#[cfg(any(test, feature = "fuzz"))]
fn with_header(layout: Layout, counts: &[u8]) -> Vec<u8> {
    let mut bytes = COOKIE.to_be_bytes().to_vec();
    bytes.extend((counts.len() as u32).to_be_bytes());
    bytes.extend(layout.header());
    bytes.extend(counts);
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    const LAYOUTS: [Layout; 2] = [Layout::TWO_DIGITS, Layout::THREE_DIGITS];
    const COUNT_MAX: u64 = 1 << 62;

    /// The text of any bytes, compressed; `stated` in place of their compressed length.
    fn text(inflated: &[u8], stated: Option<u32>) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(inflated).expect("memory");
        let compressed = encoder.finish().expect("memory");
        let stated = stated.unwrap_or(compressed.len() as u32);
        let mut bytes = COOKIE_COMPRESSED.to_be_bytes().to_vec();
        bytes.extend(stated.to_be_bytes());
        bytes.extend(compressed);
        base64::prelude::BASE64_STANDARD.encode(bytes)
    }

    /// ZigZag numbers as they are stored.
    fn counts(numbers: &[i64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &number in numbers {
            let mut value = (number << 1 ^ number >> 63) as u64;
            for _ in 1..COUNT_BYTES_MAX {
                if value < 0x80 {
                    break;
                }
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        }
        bytes
    }

    fn refusal(layout: Layout, text: &str) -> HdrV2Error {
        layout.read(text, COUNT_MAX).expect_err(text)
    }

    #[test]
    fn the_buckets_are_those_of_the_library() {
        for layout in LAYOUTS {
            let library = layout.empty();
            assert_eq!(library.distinct_values(), {
                // The library rounds its range up to a whole doubling.
                (layout.buckets() >> layout.bits << layout.bits) + (1 << layout.bits)
            });
            for ns in [0, 1, 255, 256, 1_000, 123_456_789, HIGHEST_NS] {
                let index = loglinear::index(ns, layout.bits);
                let lowest = loglinear::lowest(index, layout.bits);
                assert_eq!(library.lowest_equivalent(ns), lowest, "{ns}");
            }
        }
    }

    #[test]
    fn every_bucket_filled_is_within_the_limits() {
        for layout in LAYOUTS {
            // Random-looking counts of the longest form: compression gains next to nothing.
            let filled: Vec<_> = (0..layout.buckets())
                .map(|index| {
                    let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    (index, mixed >> 17 | 1 << 46)
                })
                .collect();
            let text = write(&layout.expand(filled.iter().copied())).expect("sound counts");
            assert!(text.len() <= layout.text_max());
            assert_eq!(layout.read(&text, COUNT_MAX).expect("its own form"), filled);
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        for layout in LAYOUTS {
            let mut inner = with_header(layout, &counts(&[1, 2]));
            inner[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
            assert!(matches!(
                refusal(layout, &text(&inner, None)),
                HdrV2Error::Length(u32::MAX, 2)
            ));
            let sound = with_header(layout, &counts(&[1, 2]));
            assert!(matches!(
                refusal(layout, &text(&sound, Some(u32::MAX))),
                HdrV2Error::Length(..)
            ));
            // 16 MiB of empty buckets in 22 KiB.
            let bomb = text(&with_header(layout, &vec![0; 16 << 20]), None);
            assert!(bomb.len() < 30 << 10, "{}", bomb.len());
            let refused = refusal(layout, &bomb);
            assert!(matches!(refused, HdrV2Error::Inflated(_)));
            let long = "A".repeat(layout.text_max() + 4);
            assert!(matches!(refusal(layout, &long), HdrV2Error::TooLong(..)));
        }
    }

    #[test]
    fn counts_fit_the_range() {
        for layout in LAYOUTS {
            let last = layout.buckets() as i64 - 1;
            let read = |numbers: &[i64]| {
                let bytes = with_header(layout, &counts(numbers));
                layout.read(&text(&bytes, None), COUNT_MAX)
            };
            assert_eq!(read(&[-last, 7]).expect("the last"), [(last as usize, 7)]);
            assert_eq!(read(&[0, 0, 5]).expect("the third"), [(2, 5)]);
            assert_eq!(read(&[]).expect("none"), []);
            for beyond in [
                &[-last - 1, 7][..],
                &[-last - 2],
                &[i64::MIN],
                &[-1, i64::MIN, 7],
                &[i64::MIN, i64::MIN],
            ] {
                assert!(
                    matches!(read(beyond), Err(HdrV2Error::Counts)),
                    "{beyond:?}"
                );
            }
            for many in [
                &[i64::MAX][..],
                &[i64::MAX, i64::MAX, i64::MAX],
                &[1 << 62, 1],
            ] {
                let read = read(many);
                assert!(matches!(read, Err(HdrV2Error::TooMany(_))), "{many:?}");
            }
            let mut cut = with_header(layout, &[0x80]);
            let refused = refusal(layout, &text(&cut, None));
            assert!(matches!(refused, HdrV2Error::Counts));
            cut[15] ^= 1;
            let refused = refusal(layout, &text(&cut, None));
            assert!(matches!(refused, HdrV2Error::OtherBounds));
        }
    }

    #[test]
    fn a_text_that_is_cut_anywhere_is_refused() {
        let layout = Layout::TWO_DIGITS;
        let sound = write(&layout.expand([(3, 4), (500, 6)].into_iter())).expect("sound counts");
        let bytes = base64::prelude::BASE64_STANDARD.decode(&sound);
        let bytes = bytes.expect("base64");
        for length in 0..bytes.len() {
            assert!(layout.read_bytes(&bytes[..length], COUNT_MAX).is_err());
            let mut cut = bytes[..length].to_vec();
            // With a length that fits what is left.
            if let Some(rest) = length.checked_sub(PREFIX_BYTES) {
                cut[4..8].copy_from_slice(&(rest as u32).to_be_bytes());
            }
            assert!(layout.read_bytes(&cut, COUNT_MAX).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(
            values in prop::collection::btree_map(0_usize..4_400, 1_u64..1 << 50, 0..50),
        ) {
            for layout in LAYOUTS {
                let filled: Vec<_> = values.clone().into_iter().collect();
                let text = write(&layout.expand(filled.iter().copied())).expect("sound counts");
                prop_assert_eq!(layout.read(&text, COUNT_MAX).expect("its own form"), filled);
            }
        }

        #[test]
        fn any_bytes_will_do(data in prop::collection::vec(any::<u8>(), 0..100)) {
            fuzz_hdr_v2(&data);
        }
    }
}
