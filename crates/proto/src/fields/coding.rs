//! Numbers and strings as HPACK and QPACK write them (RFC 7541 section 5, RFC 9204 section 4.1),
//! and what decoders of field blocks make of the fields they read.

use std::ops::Range;

use thiserror::Error;

use super::huffman::{self, Skipped};

/// Why a number or a string cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodingError {
    /// The block ends inside a field.
    #[error("a field block ends inside a field")]
    Truncated,
    /// A number is over what fits, or has more bytes than it needs at that size.
    #[error("a number is too large")]
    Integer,
    /// A string is not well-formed Huffman code (RFC 7541 section 5.2).
    #[error("a string is not well-formed Huffman code")]
    Huffman,
}

/// Takes a number off `rest`, whose first byte has it in its low `prefix_bits`.
#[inline]
pub(crate) fn take_integer(rest: &mut &[u8], prefix_bits: u32) -> Result<u32, CodingError> {
    let (&first, tail) = rest.split_first().ok_or(CodingError::Truncated)?;
    *rest = tail;
    let prefix_max = (1_u32 << prefix_bits) - 1;
    let prefix = u32::from(first) & prefix_max;
    if prefix < prefix_max {
        return Ok(prefix);
    }
    let mut number = u64::from(prefix);
    // Four bytes of seven bits hold what is of use, and bound the length of the number.
    for shift in [0, 7, 14, 21] {
        let (&byte, tail) = rest.split_first().ok_or(CodingError::Truncated)?;
        *rest = tail;
        number += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(number).map_err(|_| CodingError::Integer);
        }
    }
    Err(CodingError::Integer)
}

/// Appends a number, in the low `prefix_bits` of a first byte whose other bits are `first`.
#[inline]
pub(crate) fn put_integer(out: &mut Vec<u8>, first: u8, prefix_bits: u32, number: usize) {
    let prefix_max = (1_usize << prefix_bits) - 1;
    if number < prefix_max {
        out.push(first | number as u8);
        return;
    }
    out.push(first | prefix_max as u8);
    let mut rest = number - prefix_max;
    while rest >= 0x80 {
        out.push(0x80 | rest as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A string of a block as it stands there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'b> {
    string: &'b [u8],
    is_huffman: bool,
}

impl<'b> Text<'b> {
    /// Takes a string off `rest`, whose first byte has the length in its low `prefix_bits`, and
    /// above them whether the string is in Huffman code.
    #[inline]
    pub(crate) fn take(rest: &mut &'b [u8], prefix_bits: u32) -> Result<Self, CodingError> {
        let huffman = 1 << prefix_bits;
        let is_huffman = rest.first().is_some_and(|first| first & huffman != 0);
        let length = take_integer(rest, prefix_bits)? as usize;
        let (string, tail) = rest
            .split_at_checked(length)
            .ok_or(CodingError::Truncated)?;
        *rest = tail;
        Ok(Self { string, is_huffman })
    }

    /// Decodes it: one in Huffman code is appended to `scratch`.
    #[inline]
    pub(crate) fn decode(self, scratch: &mut Vec<u8>) -> Result<StringPlace<'b>, CodingError> {
        if !self.is_huffman {
            return Ok(StringPlace::Block(self.string));
        }
        let start = scratch.len();
        huffman::decode(self.string, scratch).map_err(|huffman::Malformed| CodingError::Huffman)?;
        Ok(StringPlace::Scratch(start..scratch.len()))
    }

    /// What is known of it without its bytes.
    #[inline]
    pub(crate) fn skip(self) -> Result<Skipped, CodingError> {
        if self.is_huffman {
            return huffman::skip(self.string).map_err(|huffman::Malformed| CodingError::Huffman);
        }
        Ok(Skipped {
            bytes: self.string.len(),
            is_text: is_text(self.string),
        })
    }
}

/// Where the bytes of a decoded string are.
#[derive(Debug)]
pub(crate) enum StringPlace<'b> {
    /// The text stands in the block itself.
    Block(&'b [u8]),
    /// The text stands in the scratch buffer.
    Scratch(Range<usize>),
}

impl StringPlace<'_> {
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            StringPlace::Block(bytes) => bytes,
            StringPlace::Scratch(range) => &scratch[range.clone()],
        }
    }
}

/// Whether a value holds nothing that HTTP/2 and HTTP/3 forbid everywhere in it: 0, CR, LF (RFC
/// 9113 section 8.2.1, RFC 9114 section 10.3).
#[inline]
pub fn is_text(value: &[u8]) -> bool {
    !value.iter().any(|&byte| matches!(byte, 0 | b'\r' | b'\n'))
}

/// Appends a string, in Huffman code where that is shorter: its length in the low `prefix_bits` of
/// a first byte, the code above them, and `first` in the other bits.
pub(crate) fn put_string(out: &mut Vec<u8>, first: u8, prefix_bits: u32, string: &[u8]) {
    let huffman_bytes = huffman::encoded_bytes(string);
    if huffman_bytes < string.len() {
        put_integer(out, first | 1 << prefix_bits, prefix_bits, huffman_bytes);
        huffman::encode(string, out);
    } else {
        put_integer(out, first, prefix_bits, string.len());
        out.extend_from_slice(string);
    }
}

/// What the decoding of a block was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The block neither used nor changed a dynamic table: the same bytes mean the same fields on
    /// every connection, or on every one whose table has no room for any field.
    pub is_stateless: bool,
    /// The block would have changed a table that has room.
    pub needs_closed: bool,
}

/// A table of fields that every decoder knows: HPACK's or QPACK's.
pub trait StaticTable {
    /// Names and values.
    const FIELDS: &'static [(&'static [u8], &'static [u8])];
}

/// The place of the first field of a static table that `is_wanted`, from 0.
pub(crate) fn static_place<T: StaticTable>(
    is_wanted: impl Fn(&(&[u8], &[u8])) -> bool,
) -> Option<usize> {
    T::FIELDS.iter().position(is_wanted)
}

/// What a decoder makes of the fields it reads, and what its dynamic table keeps of them: their
/// bytes ([`Bytes`]), or only what they mean to its user.
pub trait Keep: Sized {
    /// What is made of a name.
    type Name<'a>: Copy;
    /// What is made of a field.
    type Field<'a>: Copy;

    /// Reads a name.
    fn name(bytes: &[u8]) -> Self::Name<'_>;

    /// Reads a field.
    fn field<'a>(name: Self::Name<'a>, value: &'a [u8]) -> Self::Field<'a>;

    /// Makes a field from its name alone, where the bytes of the value do not matter, only whether
    /// the value [is text]. The value is then checked and not decoded. `None` means that the bytes
    /// matter. Which it is depends on the name.
    ///
    /// [is text]: is_text
    fn unread_field<'a>(_name: Self::Name<'a>, _is_text: bool) -> Option<Self::Field<'a>> {
        None
    }

    /// The name of a field of a static table; `place` is below the number of its fields.
    fn static_name<'a, T: StaticTable>(place: usize) -> Self::Name<'a> {
        Self::name(T::FIELDS[place].0)
    }

    /// A field of a static table; `place` is below the number of its fields.
    fn static_field<'a, T: StaticTable>(place: usize) -> Self::Field<'a> {
        Self::field(Self::static_name::<T>(place), T::FIELDS[place].1)
    }

    /// What the dynamic table keeps of a field.
    fn keep(field: Self::Field<'_>) -> Self;

    /// The name of a kept field.
    fn kept_name(&self) -> Self::Name<'_>;

    /// What was kept, as a field.
    fn kept_field(&self) -> Self::Field<'_>;
}

/// Keeps the bytes of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Keep for Bytes {
    type Name<'a> = &'a [u8];
    /// Name and value.
    type Field<'a> = (&'a [u8], &'a [u8]);

    fn name(bytes: &[u8]) -> &[u8] {
        bytes
    }

    fn field<'a>(name: &'a [u8], value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        (name, value)
    }

    fn keep((name, value): (&[u8], &[u8])) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    fn kept_name(&self) -> &[u8] {
        &self.name
    }

    fn kept_field(&self) -> (&[u8], &[u8]) {
        (&self.name, &self.value)
    }
}

/// A value of a literal.
pub(crate) enum Value<'b> {
    Read(StringPlace<'b>),
    Skipped(Skipped),
}

impl<'b> Value<'b> {
    /// Reads a value, or skips it. Strings are decoded in `scratch`, behind what is there.
    #[inline]
    pub(crate) fn of(
        text: Text<'b>,
        is_read: bool,
        scratch: &mut Vec<u8>,
    ) -> Result<Self, CodingError> {
        Ok(if is_read {
            Self::Read(text.decode(scratch)?)
        } else {
            Self::Skipped(text.skip()?)
        })
    }

    #[inline]
    pub(crate) fn field<'a, K: Keep>(
        &'a self,
        name: K::Name<'a>,
        scratch: &'a [u8],
    ) -> K::Field<'a> {
        match self {
            Self::Read(place) => K::field(name, place.bytes(scratch)),
            Self::Skipped(skipped) => K::unread_field(name, skipped.is_text)
                .unwrap_or_else(|| unreachable!("values of this name are read")),
        }
    }

    /// Bytes of the decoded value.
    #[inline]
    pub(crate) fn len(&self, scratch: &[u8]) -> usize {
        match self {
            Self::Read(place) => place.bytes(scratch).len(),
            Self::Skipped(skipped) => skipped.bytes,
        }
    }
}

/// Whether the values of fields of this name are of interest.
#[inline]
pub(crate) fn is_read<K: Keep>(name: K::Name<'_>) -> bool {
    K::unread_field(name, true).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mut bytes: &[u8], prefix_bits: u32) -> (Result<u32, CodingError>, usize) {
        let number = take_integer(&mut bytes, prefix_bits);
        (number, bytes.len())
    }

    /// RFC 7541 appendix C.1.
    #[test]
    fn numbers_of_the_rfc() {
        for (number, prefix_bits, wire) in [
            (10, 5, &[0b0000_1010][..]),
            (1337, 5, &[0b0001_1111, 0b1001_1010, 0b0000_1010]),
            (42, 8, &[0b0010_1010]),
        ] {
            let mut out = Vec::new();
            put_integer(&mut out, 0, prefix_bits, number);
            assert_eq!(out, wire);
            assert_eq!(taken(wire, prefix_bits), (Ok(number as u32), 0));
        }
    }

    #[test]
    fn numbers_come_back_and_leave_the_other_bits() {
        for prefix_bits in 4..=8 {
            let first = if prefix_bits == 8 {
                0
            } else {
                0xff_u8 << prefix_bits
            };
            for number in (0..700).chain([16_383, 16_384, 2_097_151, 268_435_455]) {
                let mut out = Vec::new();
                put_integer(&mut out, first, prefix_bits, number);
                assert_eq!(out[0] & first, first);
                out.push(7);
                assert_eq!(taken(&out, prefix_bits), (Ok(number as u32), 1));
            }
        }
    }

    #[test]
    fn numbers_are_bounded() {
        for (bytes, error) in [
            (&[][..], CodingError::Truncated),
            (&[0x1f], CodingError::Truncated),
            (&[0x1f, 0x80], CodingError::Truncated),
            (&[0x1f, 0x80, 0x80, 0x80, 0x80], CodingError::Integer),
            (&[0x1f, 0x80, 0x80, 0x80, 0x80, 0x00], CodingError::Integer),
            (
                &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                CodingError::Integer,
            ),
        ] {
            assert_eq!(taken(bytes, 5).0, Err(error), "{bytes:x?}");
        }
        assert_eq!(
            taken(&[0x1f, 0xff, 0xff, 0xff, 0x7f], 5).0,
            Ok(31 + (1 << 28) - 1)
        );
    }
}
