//! What decoders of field blocks make of the fields they read.

use super::coding::{CodingError, Place, Text};
use super::huffman::Skipped;

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
    /// [is text]: super::coding::is_text
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

    /// A kept field.
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
    Read(Place<'b>),
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
