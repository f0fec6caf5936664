//! The bytes of replies: heads, the pattern of bodies, and answers gathered for one send.

use crate::request::{Method, Request};

/// The whole answer to a plain request for `/`.
pub(crate) const NULL_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// Null answers that one send can hold.
pub(crate) const NULL_ANSWERS_MAX: u32 = 256;
/// Answers are gathered up to about this many bytes before they are sent.
const BATCH_BYTES_MAX: usize = 64 * 1024;
/// A body up to this size is sent together with its head, by one copy.
pub(crate) const INLINE_BODY_BYTES_MAX: u64 = 16 * 1024;
/// Bytes of a long body that are handed to one send.
pub(crate) const PIECE_BYTES_MAX: u64 = 256 * 1024;
/// The period of the pattern.
const ALPHABET: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";

/// The byte at `position` of every sized body: the letters a to z, over and over.
pub fn pattern_byte(position: u64) -> u8 {
    ALPHABET[(position % ALPHABET.len() as u64) as usize]
}

/// The null answer as often as one send can hold.
pub(crate) fn null_payload() -> Vec<u8> {
    NULL_ANSWER.repeat(NULL_ANSWERS_MAX as usize)
}

/// The pattern, long enough to take a piece of the greatest length from any start in its period.
pub(crate) fn pattern_payload() -> Vec<u8> {
    (0..PIECE_BYTES_MAX + ALPHABET.len() as u64)
        .map(pattern_byte)
        .collect()
}

/// Where in the pattern payload a body's bytes from `position` begin, below the period.
pub(crate) fn pattern_start(position: u64) -> u32 {
    (position % ALPHABET.len() as u64) as u32
}

/// Appends the bytes from `position` up to `end` of a body.
pub(crate) fn write_pattern(out: &mut Vec<u8>, position: u64, end: u64) {
    let skipped = pattern_start(position) as usize;
    let length = end.saturating_sub(position) as usize;
    out.extend(ALPHABET.iter().cycle().skip(skipped).take(length));
}

/// How a reply's body ends, as its head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Bytes(u64),
    Chunked,
    /// Nothing about it: the body ends with the connection.
    UntilClose,
    /// Nothing about it: this status has no body.
    NoBody,
}

/// Appends a reply's head. `keep_alive` is whether the connection stays open.
pub(crate) fn write_head(
    out: &mut Vec<u8>,
    request: &Request,
    status: u16,
    length: Length,
    keep_alive: bool,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    match length {
        Length::Bytes(bytes) => {
            out.extend_from_slice(b"\r\nContent-Length: ");
            write_decimal(out, bytes);
        }
        Length::Chunked => {
            out.extend_from_slice(b"\r\nTransfer-Encoding: chunked\r\nTrailer: Brunt-Length");
        }
        Length::UntilClose | Length::NoBody => {}
    }
    // RFC 9112 section 9.3: keeping is the default of HTTP/1.1, closing of HTTP/1.0.
    if !keep_alive {
        out.extend_from_slice(b"\r\nConnection: close");
    } else if request.http10 {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends a whole reply without a body that asks for another attempt in a second (RFC 9110
/// section 10.2.3).
pub(crate) fn write_retry_later(out: &mut Vec<u8>, request: &Request, status: u16) {
    write_head(out, request, status, Length::Bytes(0), request.keep_alive);
    // In front of the empty line that ends the head.
    out.truncate(out.len() - 2);
    out.extend_from_slice(b"Retry-After: 1\r\n\r\n");
}

/// Appends a whole reply with a short text as its body.
pub(crate) fn write_text(out: &mut Vec<u8>, request: &Request, status: u16, text: &str) {
    write_head(
        out,
        request,
        status,
        Length::Bytes(text.len() as u64),
        request.keep_alive,
    );
    if request.method != Method::Head {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends a number in decimal; formatting machinery would cost as much as the rest of a head.
pub(crate) fn write_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The usual phrase of a status (RFC 9110 section 15); none for the unusual.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// Answers gathered for one send: either only null answers, which need no copy, or bytes.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    nulls: u32,
    bytes: Vec<u8>,
    /// How many of the bytes are counted as sent already, or are not to be counted.
    settled: u64,
    /// Whether nothing more is to be added.
    sealed: bool,
}

/// What a batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    /// This many null answers.
    Nulls(u32),
    Bytes,
}

impl Batch {
    /// Adds a null answer.
    pub(crate) fn push_null(&mut self) {
        if self.bytes.is_empty() {
            self.nulls += 1;
        } else {
            self.bytes.extend_from_slice(NULL_ANSWER);
        }
    }

    /// The bytes, to append to.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        for _ in 0..std::mem::take(&mut self.nulls) {
            self.bytes.extend_from_slice(NULL_ANSWER);
        }
        &mut self.bytes
    }

    /// Lets nothing more in: what is in it is not to wait for the answers behind it.
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Whether it should be sent before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.sealed || self.nulls >= NULL_ANSWERS_MAX || self.bytes.len() >= BATCH_BYTES_MAX
    }

    pub(crate) fn content(&self) -> Content {
        match (self.nulls, self.bytes.is_empty()) {
            (0, true) => Content::Nothing,
            (nulls, true) => Content::Nulls(nulls),
            (_, false) => Content::Bytes,
        }
    }

    /// Bytes that still have to be counted as sent; from now on they are.
    pub(crate) fn settle(&mut self) -> u64 {
        let length = u64::from(self.nulls) * NULL_ANSWER.len() as u64 + self.bytes.len() as u64;
        length - std::mem::replace(&mut self.settled, length)
    }

    /// Takes the bytes out and leaves the batch empty, with `empty` to fill next.
    pub(crate) fn take_bytes(&mut self, empty: Vec<u8>) -> Vec<u8> {
        self.nulls = 0;
        self.settled = 0;
        self.sealed = false;
        std::mem::replace(&mut self.bytes, empty)
    }

    /// Leaves the batch empty.
    pub(crate) fn clear(&mut self) {
        self.nulls = 0;
        self.settled = 0;
        self.sealed = false;
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_the_same_from_every_position() {
        let payload = pattern_payload();
        for position in [0, 1, 25, 26, 27, 1_000_003] {
            let mut copied = Vec::new();
            write_pattern(&mut copied, position, position + 100);
            let start = pattern_start(position) as usize;
            assert_eq!(copied, payload[start..start + 100]);
            assert_eq!(copied[0], pattern_byte(position));
            assert!(payload.len() >= start + PIECE_BYTES_MAX as usize);
        }
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_batch_keeps_order_and_counts_each_byte_once() {
        let mut batch = Batch::default();
        assert_eq!(batch.content(), Content::Nothing);
        batch.push_null();
        batch.push_null();
        assert_eq!(batch.content(), Content::Nulls(2));
        assert_eq!(batch.settle(), 2 * NULL_ANSWER.len() as u64);
        batch.bytes().extend_from_slice(b"x");
        batch.push_null();
        assert_eq!(batch.content(), Content::Bytes);
        assert_eq!(batch.settle(), 1 + NULL_ANSWER.len() as u64);
        let bytes = batch.take_bytes(Vec::new());
        assert_eq!(
            bytes,
            [NULL_ANSWER, NULL_ANSWER, b"x", NULL_ANSWER].concat()
        );
        assert_eq!((batch.content(), batch.settle()), (Content::Nothing, 0));
        batch.push_null();
        batch.seal();
        assert!(batch.is_full());
        batch.clear();
        assert!(!batch.is_full());
        batch.bytes().push(b'x');
        batch.seal();
        batch.take_bytes(Vec::new());
        assert!(!batch.is_full());
    }
}
