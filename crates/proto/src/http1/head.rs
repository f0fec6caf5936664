//! The head of one reply: its lines gathered over several reads, what it says about the body, and
//! why a reply is refused.

use std::mem::MaybeUninit;

use thiserror::Error;

use super::request_text::{MethodKind, RequestKind, field_lines};
use crate::Limits;
use crate::field_value::{ContentLength, decimal, is_token_byte, list};

/// The highest number of header fields a reply may have, whatever [`Limits`] allow: their places
/// are on the stack, and are written as fields come, so that a reply with few costs no more.
pub const MAX_HEADER_FIELDS: u16 = 256;

/// Bytes of `HTTP/1.1 200 `: the part of a head that is checked before its first line is complete.
const START_BYTES: usize = 13;

/// First byte of an alert in TLS (RFC 8446 section 5.1).
const TLS_ALERT: u8 = 21;

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes; 0 where there is no body.
    Length(u64),
    /// Chunks, then trailers.
    Chunked,
    /// The peer closes the connection.
    UntilClose,
}

/// What a complete head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of the head, with the empty line that ends it.
    pub(super) len: usize,
    /// Status code, 100 to 999.
    pub(super) status: u16,
    /// The connection may be used again after this reply.
    pub(super) keep_alive: bool,
    /// The reply reports an error and says when to ask again (RFC 9110 section 10.2.3).
    pub(super) retry_after: bool,
    /// How the end of the body is found.
    pub(super) framing: Framing,
}

/// Reads the head that `bytes` start with. `None` when it is not there as a whole, or not well
/// formed: [`Gathered::add_head`] tells which.
#[inline]
pub(super) fn parse(
    bytes: &[u8],
    limits: &Limits,
    kind: RequestKind,
) -> Result<Option<Head>, ReplyError> {
    // httparse would skip empty lines here.
    if bytes.first() != Some(&b'H') {
        return Ok(None);
    }
    let mut places = [const { MaybeUninit::uninit() }; MAX_HEADER_FIELDS as usize];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut places[..max_fields(limits).into()],
    );
    let Ok(httparse::Status::Complete(len)) = parsed else {
        return Ok(None);
    };
    let (Some(minor_version), Some(status)) = (response.version, response.code) else {
        return Ok(None);
    };
    if status < 100 {
        return Err(ReplyError::MalformedHead);
    }

    let mut fields = Fields::default();
    for field in &*response.headers {
        fields.add(field.name, field.value);
    }
    let is_tunnel = kind.method == MethodKind::Connect && (200..300).contains(&status);
    let has_no_body = kind.method == MethodKind::Head || is_tunnel;
    let has_body = !has_no_body && status >= 200 && status != 204 && status != 304;
    let framing = if has_body {
        fields.framing(minor_version)?
    } else {
        Framing::Length(0)
    };
    let is_http_1_0 = minor_version == 0 || kind.is_http_1_0;
    let persistent = !is_http_1_0 || fields.keep_alive;
    let keep_alive = persistent && !fields.close && !is_tunnel && framing != Framing::UntilClose;
    Ok(Some(Head {
        len,
        status,
        keep_alive,
        retry_after: status >= 400 && fields.retry_after,
        framing,
    }))
}

/// The status of a complete head, which [`Gathered::add_head`] found well formed.
pub(crate) fn head_status(head: &[u8], limits: &Limits) -> Result<u16, ReplyError> {
    let head = parse(head, limits, RequestKind::default())?;
    head.map(|head| head.status)
        .ok_or(ReplyError::MalformedHead)
}

fn max_fields(limits: &Limits) -> u16 {
    limits.header_fields.min(MAX_HEADER_FIELDS)
}

/// Whether one more header field is too many after `fields` of them.
pub(super) fn is_full(fields: u16, limits: &Limits) -> bool {
    fields >= max_fields(limits)
}

/// Names and values of the header fields of a complete, well-formed head, without the spaces around
/// values.
pub fn head_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    // Where there is no status line, there is no field either.
    let status_line = head.iter().position(|&byte| byte == b'\n');
    field_lines(&head[status_line.map_or(head.len(), |feed| feed + 1)..])
}

/// Whether `line`, with its line feed, ends a head or trailers.
pub(super) fn is_empty_line(line: &[u8]) -> bool {
    matches!(line, b"\n" | b"\r\n")
}

/// Whether `line`, with its line feed, is one well-formed header field.
pub(super) fn is_field_line(line: &[u8]) -> bool {
    // Partial: the field was read and the end of the head was not met.
    let mut place = [httparse::EMPTY_HEADER];
    matches!(
        httparse::parse_headers(line, &mut place),
        Ok(httparse::Status::Partial)
    )
}

/// Checks the first line of a head, or the part of it that is there.
fn check_status_line(line: &[u8]) -> Result<(), ReplyError> {
    match line.first() {
        Some(b'\r' | b'\n') => return Err(ReplyError::MalformedHead),
        Some(&TLS_ALERT) => return Err(ReplyError::TlsAlert),
        _ => {}
    }
    match httparse::Response::new(&mut []).parse(line) {
        Ok(_) => Ok(()),
        Err(httparse::Error::Version)
            if line.starts_with(b"HTTP/")
                && !line.starts_with(b"HTTP/1.1")
                && !line.starts_with(b"HTTP/1.0") =>
        {
            Err(ReplyError::UnsupportedVersion)
        }
        Err(_) => Err(ReplyError::MalformedHead),
    }
}

/// The part of a head, or of a trailer line, from earlier reads. Each byte is looked at once,
/// however small the reads are.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The bytes so far.
    pub(crate) bytes: Vec<u8>,
    /// Where the line that is not complete starts.
    line_start: usize,
    /// Complete header fields.
    fields: u16,
}

impl Gathered {
    /// Takes more of a head. `Some(n)`: the head is complete in `self.bytes`, with the first `n`
    /// of `bytes`. A fault is reported as soon as its line is complete, and one in the version
    /// or the status code at once, so the answer does not depend on how the head was cut.
    pub(crate) fn add_head(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Option<usize>, ReplyError> {
        let before = self.bytes.len();
        let room = (limits.head_bytes as usize).saturating_sub(before);
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        if before < START_BYTES {
            check_status_line(&self.bytes[..self.bytes.len().min(START_BYTES)])?;
        }

        let mut scanned = before;
        while let Some(offset) = self.bytes[scanned..].iter().position(|&byte| byte == b'\n') {
            scanned += offset + 1;
            let line = &self.bytes[self.line_start..scanned];
            if self.line_start == 0 {
                check_status_line(line)?;
            } else if is_empty_line(line) {
                self.bytes.truncate(scanned);
                return Ok(Some(scanned - before));
            } else if is_full(self.fields, limits) {
                return Err(ReplyError::TooManyHeaders);
            } else if is_field_line(line) {
                self.fields += 1;
            } else {
                return Err(ReplyError::MalformedHead);
            }
            self.line_start = scanned;
        }
        if bytes.len() >= room {
            Err(ReplyError::HeadTooLarge)
        } else {
            Ok(None)
        }
    }
}

/// The header fields that decide where the body and the connection end, and when to come again.
#[derive(Default)]
struct Fields {
    close: bool,
    keep_alive: bool,
    retry_after: bool,
    content_length: ContentLength,
    transfer_encoding: TransferEncoding,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TransferEncoding {
    #[default]
    Absent,
    /// Chunked is the last coding.
    Chunked,
    /// Only codings other than chunked, so far.
    Other,
    Bad,
}

impl Fields {
    #[inline]
    fn add(&mut self, name: &str, value: &[u8]) {
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => self.add_connection(value),
            11 if name.eq_ignore_ascii_case("retry-after") => self.retry_after = true,
            14 if name.eq_ignore_ascii_case("content-length") => {
                for item in list(value) {
                    self.content_length.add(decimal(item));
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                self.add_transfer_encoding(value);
            }
            _ => {}
        }
    }

    /// RFC 9110 section 7.6.1.
    fn add_connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// RFC 9112 section 6.1: chunked comes once, last and without parameters.
    fn add_transfer_encoding(&mut self, value: &[u8]) {
        let mut codings = 0;
        for coding in list(value).filter(|coding| !coding.is_empty()) {
            codings += 1;
            let name_end = coding.iter().position(|&byte| !is_token_byte(byte));
            let (name, parameters) = coding.split_at(name_end.unwrap_or(coding.len()));
            let is_chunked = name.eq_ignore_ascii_case(b"chunked");
            let is_well_formed =
                !name.is_empty() && matches!(parameters.first(), None | Some(b';' | b' ' | b'\t'));
            self.transfer_encoding = match self.transfer_encoding {
                TransferEncoding::Absent | TransferEncoding::Other if is_well_formed => {
                    match (is_chunked, parameters.is_empty()) {
                        (true, true) => TransferEncoding::Chunked,
                        (true, false) => TransferEncoding::Bad,
                        (false, _) => TransferEncoding::Other,
                    }
                }
                _ => TransferEncoding::Bad,
            };
        }
        if codings == 0 {
            self.transfer_encoding = TransferEncoding::Bad;
        }
    }

    /// RFC 9112 section 6.3, rules 3 to 8, for a reply that has a body. A reply with both fields,
    /// or with codings in HTTP/1.0, is refused: its end is a matter of opinion.
    fn framing(&self, minor_version: u8) -> Result<Framing, ReplyError> {
        match (self.transfer_encoding, self.content_length) {
            (TransferEncoding::Absent, ContentLength::Absent) => Ok(Framing::UntilClose),
            (TransferEncoding::Absent, ContentLength::Bytes(bytes)) => Ok(Framing::Length(bytes)),
            (TransferEncoding::Absent, ContentLength::Bad) => Err(ReplyError::BadContentLength),
            (TransferEncoding::Chunked, ContentLength::Absent) if minor_version > 0 => {
                Ok(Framing::Chunked)
            }
            (TransferEncoding::Other, ContentLength::Absent) if minor_version > 0 => {
                Ok(Framing::UntilClose)
            }
            _ => Err(ReplyError::BadTransferEncoding),
        }
    }
}

/// Longer heads are not kept: copying them would cost more than it saves.
const BYTES_MAX: usize = 1_024;

/// The latest head and what it means; one per worker, with one value of [`Limits`].
/// A reply that starts with the same bytes has the same head, which is not parsed again.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    /// The bytes of the head, with the empty line that ends it; empty before there is one.
    bytes: Vec<u8>,
    /// What the head means, as part of a reply to this kind of request.
    meaning: Option<(Head, RequestKind)>,
}

impl KnownHead {
    /// The head that `bytes` start with, if it is the latest one.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8], kind: RequestKind) -> Option<Head> {
        let (head, of_kind) = self.meaning?;
        (of_kind == kind && bytes.starts_with(&self.bytes)).then_some(head)
    }

    /// Keeps the head that `bytes` start with, of a final reply.
    pub(super) fn keep(&mut self, bytes: &[u8], head: Head, kind: RequestKind) {
        if head.len > BYTES_MAX {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&bytes[..head.len]);
        self.meaning = Some((head, kind));
    }
}

/// Why a reply was refused. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// The head is not HTTP, or its status is under 100.
    #[error("the head is malformed")]
    MalformedHead,
    /// The server answers in TLS, by an alert: it does not take requests in clear text.
    #[error("it is an alert of TLS")]
    TlsAlert,
    /// A head is over [`Limits::head_bytes`].
    #[error("the head is too large")]
    HeadTooLarge,
    /// A head, or the trailers, have more fields than [`Limits::header_fields`].
    #[error("there are too many header fields")]
    TooManyHeaders,
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    #[error("the version is neither HTTP/1.0 nor HTTP/1.1")]
    UnsupportedVersion,
    /// Content-Length is not a number, over `u64::MAX`, or contradicts itself.
    #[error("Content-Length is malformed or contradicts itself")]
    BadContentLength,
    /// Transfer-Encoding is malformed, has chunked anywhere but once at its end, comes with
    /// Content-Length, or in HTTP/1.0.
    #[error("Transfer-Encoding does not say where the body ends")]
    BadTransferEncoding,
    /// The chunked framing or a trailer line is malformed, or a size line is over 4 KiB.
    #[error("the chunked framing is malformed")]
    BadChunk,
    /// The trailers are over [`Limits::head_bytes`].
    #[error("the trailers are too large")]
    TrailersTooLarge,
    /// More interim replies than [`Limits::interim_replies`], or 101 (Switching Protocols),
    /// which was not asked for.
    #[error("there are too many interim replies, or one that was not asked for")]
    BadInterim,
    /// The peer closed inside a head, or after interim replies only.
    #[error("the connection was closed inside the head")]
    TruncatedHead,
    /// The peer closed before the end that the body's framing states.
    #[error("the connection was closed inside the body")]
    TruncatedBody,
}
