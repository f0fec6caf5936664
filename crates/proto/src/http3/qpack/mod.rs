//! QPACK (RFC 9204) without a dynamic table, for both sides of a connection: an endpoint that says
//! nothing of a table has none, so each field section stands alone.

#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::fields::coding::{
    StaticTable, Text, Value, is_read, put_integer, put_string, static_place, take_integer,
};

pub use crate::fields::coding::{Bytes, CodingError, Keep, is_text};

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

/// Appends what a field section without dynamic table begins with: a Required Insert Count and a
/// Base of 0 (RFC 9204 section 4.5.1).
pub fn encode_prefix(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a field. One that is in the static table with its value is written as its index;
/// otherwise a literal is, with the index of its name where the static table has it, and strings in
/// Huffman code where that is shorter. `is_secret`: it is written as a literal that no intermediary
/// may put into a table (RFC 9204 section 7.1.3). `name` must be in lower case.
pub fn encode_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], is_secret: bool) {
    if !is_secret && let Some(index) = static_place::<QpackTable>(|entry| *entry == (name, value)) {
        put_integer(out, 0xc0, 6, index);
        return;
    }
    match static_place::<QpackTable>(|entry| entry.0 == name) {
        Some(index) => put_integer(out, if is_secret { 0x70 } else { 0x50 }, 4, index),
        None => put_string(out, if is_secret { 0x30 } else { 0x20 }, 3, name),
    }
    put_string(out, 0, 7, value);
}

/// Why a field section cannot be decoded: a connection error of QPACK_DECOMPRESSION_FAILED (RFC
/// 9204 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QpackError {
    /// A number or a string cannot be read.
    #[error(transparent)]
    Coding(#[from] CodingError),
    /// A field refers to no entry of the static table.
    #[error("an index has no entry")]
    Index,
    /// The section needs a dynamic table.
    #[error("a field refers to the dynamic table, which is not allowed")]
    Dynamic,
    /// The base of the section is below 0 (RFC 9204 section 4.5.1.2).
    #[error("the base of a field section is below 0")]
    Base,
}

/// An instruction that may not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Forbidden;

/// Takes bytes of the peer's encoder stream: it may set the capacity of its table to 0, which it
/// is. Everything else needs a larger one.
pub(in super::super) fn check_encoder_instructions(bytes: &[u8]) -> Result<(), Forbidden> {
    const CAPACITY_0: u8 = 0x20;
    if bytes.iter().all(|&byte| byte == CAPACITY_0) {
        Ok(())
    } else {
        Err(Forbidden)
    }
}

/// Reads the peer's decoder stream: it may say that it cancels streams. What it acknowledges must
/// have been inserted or referred to, and nothing was.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct DecoderInstructions {
    /// Bytes that the number of a stream may still have; 0 between instructions.
    left_bytes: u8,
}

impl DecoderInstructions {
    /// Bytes of a number of 62 bits behind its first one.
    const CONTINUATION_BYTES_MAX: u8 = 9;

    /// Takes bytes of the stream.
    pub(in super::super) fn take(&mut self, bytes: &[u8]) -> Result<(), Forbidden> {
        for &byte in bytes {
            self.left_bytes = match (self.left_bytes, byte) {
                (0, 0x40..=0x7e) => 0,
                (0, 0x7f) => Self::CONTINUATION_BYTES_MAX,
                (0 | 1, 0x80..) | (0, _) => return Err(Forbidden),
                (left, 0x80..) => left - 1,
                (_, _) => 0,
            };
        }
        Ok(())
    }
}

/// The static table of QPACK.
#[derive(Clone, Copy, Debug)]
pub struct QpackTable;

impl StaticTable for QpackTable {
    const FIELDS: &'static [(&'static [u8], &'static [u8])] = &STATIC_TABLE;
}

/// Names and values. The entry with index 0 comes first.
pub const STATIC_TABLE: [(&[u8], &[u8]); 99] = [
    (b":authority", b""),
    (b":path", b"/"),
    (b"age", b"0"),
    (b"content-disposition", b""),
    (b"content-length", b"0"),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"referer", b""),
    (b"set-cookie", b""),
    (b":method", b"CONNECT"),
    (b":method", b"DELETE"),
    (b":method", b"GET"),
    (b":method", b"HEAD"),
    (b":method", b"OPTIONS"),
    (b":method", b"POST"),
    (b":method", b"PUT"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"103"),
    (b":status", b"200"),
    (b":status", b"304"),
    (b":status", b"404"),
    (b":status", b"503"),
    (b"accept", b"*/*"),
    (b"accept", b"application/dns-message"),
    (b"accept-encoding", b"gzip, deflate, br"),
    (b"accept-ranges", b"bytes"),
    (b"access-control-allow-headers", b"cache-control"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"max-age=0"),
    (b"cache-control", b"max-age=2592000"),
    (b"cache-control", b"max-age=604800"),
    (b"cache-control", b"no-cache"),
    (b"cache-control", b"no-store"),
    (b"cache-control", b"public, max-age=31536000"),
    (b"content-encoding", b"br"),
    (b"content-encoding", b"gzip"),
    (b"content-type", b"application/dns-message"),
    (b"content-type", b"application/javascript"),
    (b"content-type", b"application/json"),
    (b"content-type", b"application/x-www-form-urlencoded"),
    (b"content-type", b"image/gif"),
    (b"content-type", b"image/jpeg"),
    (b"content-type", b"image/png"),
    (b"content-type", b"text/css"),
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-type", b"text/plain"),
    (b"content-type", b"text/plain;charset=utf-8"),
    (b"range", b"bytes=0-"),
    (b"strict-transport-security", b"max-age=31536000"),
    (
        b"strict-transport-security",
        b"max-age=31536000; includesubdomains",
    ),
    (
        b"strict-transport-security",
        b"max-age=31536000; includesubdomains; preload",
    ),
    (b"vary", b"accept-encoding"),
    (b"vary", b"origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-xss-protection", b"1; mode=block"),
    (b":status", b"100"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"302"),
    (b":status", b"400"),
    (b":status", b"403"),
    (b":status", b"421"),
    (b":status", b"425"),
    (b":status", b"500"),
    (b"accept-language", b""),
    (b"access-control-allow-credentials", b"FALSE"),
    (b"access-control-allow-credentials", b"TRUE"),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-allow-methods", b"get"),
    (b"access-control-allow-methods", b"get, post, options"),
    (b"access-control-allow-methods", b"options"),
    (b"access-control-expose-headers", b"content-length"),
    (b"access-control-request-headers", b"content-type"),
    (b"access-control-request-method", b"get"),
    (b"access-control-request-method", b"post"),
    (b"alt-svc", b"clear"),
    (b"authorization", b""),
    (
        b"content-security-policy",
        b"script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    (b"early-data", b"1"),
    (b"expect-ct", b""),
    (b"forwarded", b""),
    (b"if-range", b""),
    (b"origin", b""),
    (b"purpose", b"prefetch"),
    (b"server", b""),
    (b"timing-allow-origin", b"*"),
    (b"upgrade-insecure-requests", b"1"),
    (b"user-agent", b""),
    (b"x-forwarded-for", b""),
    (b"x-frame-options", b"deny"),
    (b"x-frame-options", b"sameorigin"),
];
