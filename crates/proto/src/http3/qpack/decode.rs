//! Decoding field sections.

use super::error::QpackError;
use super::static_table::{QpackTable, STATIC_TABLE};
use crate::fields::coding::{CodingError, Text, take_integer};
use crate::fields::keep::{Keep, Value, is_read};

/// Bytes of a number of 62 bits behind its first one.
const CONTINUATION_BYTES_MAX: usize = 9;

/// Decodes a whole field section. `each` gets the fields in their order, with the bytes of name and
/// value. Strings are decoded in `scratch`, whose contents do not matter; it grows to at most twice
/// the section.
///
/// # Errors
///
/// The section is malformed, or needs a dynamic table.
pub fn decode<K: Keep>(
    section: &[u8],
    scratch: &mut Vec<u8>,
    mut each: impl FnMut(K::Field<'_>, usize),
) -> Result<(), QpackError> {
    let mut rest = section;
    take_prefix(&mut rest)?;
    while let Some(&first) = rest.first() {
        if first & 0xc0 == 0xc0 {
            let place = take_integer(&mut rest, 6)? as usize;
            let (name, value) = STATIC_TABLE.get(place).ok_or(QpackError::Index)?;
            let field = K::static_field::<QpackTable>(place);
            each(field, name.len() + value.len());
        } else if first & 0xd0 == 0x50 {
            let place = take_integer(&mut rest, 4)? as usize;
            let (name, _) = STATIC_TABLE.get(place).ok_or(QpackError::Index)?;
            let meaning = K::static_name::<QpackTable>(place);
            scratch.clear();
            let value = Text::take(&mut rest, 7)?;
            let value = Value::of(value, is_read::<K>(meaning), scratch)?;
            let bytes = name.len() + value.len(scratch);
            each(value.field::<K>(meaning, scratch), bytes);
        } else if first & 0xe0 == 0x20 {
            scratch.clear();
            let name = Text::take(&mut rest, 3)?.decode(scratch)?;
            let value = Text::take(&mut rest, 7)?;
            let is_read = is_read::<K>(K::name(name.bytes(scratch)));
            let value = Value::of(value, is_read, scratch)?;
            let name = name.bytes(scratch);
            let bytes = name.len() + value.len(scratch);
            each(value.field::<K>(K::name(name), scratch), bytes);
        } else {
            return Err(QpackError::Dynamic);
        }
    }
    Ok(())
}

/// RFC 9204 section 4.5.1.
#[inline]
fn take_prefix(rest: &mut &[u8]) -> Result<(), QpackError> {
    if let [0, 0, tail @ ..] = rest {
        *rest = tail;
        return Ok(());
    }
    take_other_prefix(rest)
}

/// Without a dynamic table, an encoder may write any Base that is not below 0.
#[cold]
fn take_other_prefix(rest: &mut &[u8]) -> Result<(), QpackError> {
    let [insert_count, base @ ..] = *rest else {
        return Err(CodingError::Truncated.into());
    };
    if *insert_count != 0 {
        return Err(QpackError::Dynamic);
    }
    let first = *base.first().ok_or(CodingError::Truncated)?;
    if first & 0x80 != 0 {
        return Err(QpackError::Base);
    }
    let mut bytes = 1;
    if first == 0x7f {
        let more = base[1..].iter().take_while(|&&byte| byte & 0x80 != 0);
        bytes += more.count() + 1;
    }
    if bytes > 1 + CONTINUATION_BYTES_MAX {
        return Err(CodingError::Integer.into());
    }
    *rest = base.get(bytes..).ok_or(CodingError::Truncated)?;
    Ok(())
}
