//! Replies that come as fields and DATA, in HTTP/2 and HTTP/3: what a client needs of their fields
//! (RFC 9113 sections 8.2 and 8.3, RFC 9114 sections 4.2 and 4.3), while they are received, once
//! they are complete, and what may be wrong with them.

#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use thiserror::Error;

use super::FIELD_OVERHEAD_BYTES;
use super::coding::{Decoded, Keep, StaticTable, is_text};
use crate::Limits;
use crate::field_value::{ContentLength, decimal, is_token_byte, list};

/// A complete final reply. Its bytes are those of the frames that carry its fields and its content,
/// frame headers and padding included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code, 200 to 999.
    pub status: u16,
    /// Its status is 400 or above, and its head says when to ask again (`Retry-After`, RFC 9110
    /// section 10.2.3), whatever the value. A trailer does not count.
    pub retry_after: bool,
    /// The request is a call of gRPC, which failed, though its status is below 400: the trailers,
    /// or the head where nothing follows it, do not say `grpc-status: 0`.
    pub failed_call: Option<FailedCall>,
    /// Interim (1xx) replies before it.
    pub interim: u16,
    /// Bytes of its head and of the interim replies before it.
    pub head_bytes: u64,
    /// Bytes of its body, trailers included.
    pub body_bytes: u64,
    /// `now_ns` of the call that brought the first byte of its first frame.
    pub first_byte_ns: u64,
}

/// What the reply says of a call of gRPC that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedCall {
    /// It has no `grpc-status`.
    NoStatus,
    /// The code in `grpc-status`; 2 (UNKNOWN) where that is not a code, or contradicts itself.
    Code(u8),
}

/// What is wrong with a reply (RFC 9113 section 8.1.1, RFC 9114 section
/// 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedReply {
    /// `:status` is missing, repeated or not a number from 100 to 999; a field's name or value is
    /// malformed or does not belong in HTTP/2 and HTTP/3; in HTTP/2 also: DATA came before a head,
    /// or trailers do not end the stream.
    #[error("the head is malformed")]
    Head,
    /// A field block is over [`head_bytes`](crate::Limits::head_bytes) once decoded.
    #[error("the head is too large")]
    HeadTooLarge,
    /// A field block has more fields than [`header_fields`](crate::Limits::header_fields).
    #[error("there are too many header fields")]
    TooManyHeaders,
    /// Content-Length is not a number, over `u64::MAX`, or contradicts itself.
    #[error("Content-Length is malformed or contradicts itself")]
    BadContentLength,
    /// The reply ended with fewer bytes of DATA than Content-Length states.
    #[error("the body is shorter than Content-Length states")]
    ShortBody,
    /// There are more bytes of DATA than Content-Length states, or some where there is no body.
    #[error("the body is longer than Content-Length states")]
    LongBody,
    /// More interim replies than [`interim_replies`](crate::Limits::interim_replies), one that
    /// ends the stream, or 101.
    #[error("there are too many interim replies, or one that may not be")]
    BadInterim,
}

/// Something that a caller must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamsEvent<Code> {
    /// Requests may be sent: in HTTP/2 the server's first SETTINGS are in, in HTTP/3 the handshake
    /// is complete. Once per connection.
    Ready,
    /// A request is answered.
    Reply {
        /// Its place, as it was given when the request was sent; it is free again.
        place: u32,
        /// The reply.
        reply: Reply,
    },
    /// A request failed; the connection goes on.
    Failed {
        /// Its place, as it was given when the request was sent; it is free again.
        place: u32,
        /// Why.
        why: StreamFailure<Code>,
        /// Bytes of its incomplete reply; in HTTP/2 with the RST_STREAM that ended it.
        discarded_bytes: u64,
    },
    /// The server takes no more requests (GOAWAY, RFC 9113 section 6.8, RFC 9114 section 5.2). Once
    /// per connection; the requests that it names as not processed follow as
    /// [`StreamFailure::NotProcessed`], the others may still be answered.
    GoAway {
        /// The server's reason; absent in HTTP/3, whose GOAWAY has none.
        code: Option<Code>,
    },
}

/// Why one request failed while its connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamFailure<Code> {
    /// The server says that it did not process the request: by GOAWAY, or in HTTP/3 by
    /// H3_REQUEST_REJECTED.
    #[error("the server did not process the request")]
    NotProcessed,
    /// The server reset the stream.
    #[error("the server reset the stream: {0}")]
    Reset(Code),
    /// The reply breaks a rule, or [`Limits`](crate::Limits).
    #[error(transparent)]
    Malformed(#[from] MalformedReply),
    /// The server ended the stream before a final head. HTTP/2 has that as a malformed head.
    #[error("the stream ended before the reply's head")]
    Incomplete,
    /// The server raised the stream's window by 0 or beyond its maximum (RFC 9113 section 6.9).
    /// HTTP/3 leaves windows to QUIC.
    #[error("the server raised the stream's window by a wrong amount")]
    Window,
}

/// A reply while it is received: what it is so far, and whether the next part may follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyState {
    /// It has no body, whatever its head says.
    pub(crate) is_head: bool,
    /// The request is a call of gRPC.
    pub(crate) is_call: bool,
    /// How a call of gRPC ended, by what came last: the code in `grpc-status`.
    call_code: Option<u8>,
    retry_after: bool,
    /// Of the final head; 0 before it.
    status: u16,
    interim: u16,
    /// Bytes that DATA frames must add up to.
    content_length: Option<u64>,
    /// Bytes in DATA frames, padding left out.
    content_bytes: u64,
    pub(crate) head_bytes: u64,
    pub(crate) body_bytes: u64,
    pub(crate) first_byte_ns: u64,
}

impl ReplyState {
    /// A reply of which nothing was received.
    pub(crate) const fn new(is_head: bool) -> Self {
        Self {
            is_head,
            is_call: false,
            call_code: None,
            retry_after: false,
            status: 0,
            interim: 0,
            content_length: None,
            content_bytes: 0,
            head_bytes: 0,
            body_bytes: 0,
            first_byte_ns: 0,
        }
    }

    /// Bytes received for it.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.head_bytes + self.body_bytes
    }

    /// Whether its final head came.
    #[inline]
    pub(crate) fn has_head(&self) -> bool {
        self.status != 0
    }

    /// A head came, before which there was no final one. `is_last`: nothing follows it. True for a
    /// final one.
    #[inline]
    pub(crate) fn take_head(
        &mut self,
        head: Head,
        is_last: bool,
        limits: &Limits,
    ) -> Result<bool, MalformedReply> {
        if head.status < 200 {
            // RFC 9113 sections 8.1 and 8.6, RFC 9114 sections 4.1 and 4.5.
            if head.status == 101 || is_last || self.interim >= limits.interim_replies {
                return Err(MalformedReply::BadInterim);
            }
            self.interim += 1;
            return Ok(false);
        }
        self.status = head.status;
        self.retry_after = head.retry_after;
        self.call_code = head.call_code;
        let has_body = !self.is_head && head.status != 204 && head.status != 304;
        self.content_length = match head.content_length {
            _ if !has_body => Some(0),
            ContentLength::Absent => None,
            ContentLength::Bytes(bytes) => Some(bytes),
            ContentLength::Bad => return Err(MalformedReply::BadContentLength),
        };
        Ok(true)
    }

    /// So many bytes of content come.
    #[inline]
    pub(crate) fn take_content(&mut self, bytes: u64) -> Result<(), MalformedReply> {
        self.call_code = None;
        self.content_bytes = self.content_bytes.saturating_add(bytes);
        if self
            .content_length
            .is_some_and(|length| self.content_bytes > length)
        {
            return Err(MalformedReply::LongBody);
        }
        Ok(())
    }

    /// Trailers came, with this code in `grpc-status`.
    #[inline]
    pub(crate) fn take_trailers(&mut self, call_code: Option<u8>) {
        self.call_code = call_code;
    }

    /// Nothing follows, and its final head came.
    #[inline]
    pub(crate) fn end(&self) -> Result<Reply, MalformedReply> {
        if self
            .content_length
            .is_some_and(|length| length != self.content_bytes)
        {
            return Err(MalformedReply::ShortBody);
        }
        Ok(Reply {
            status: self.status,
            retry_after: self.retry_after,
            failed_call: self.failed_call(),
            interim: self.interim,
            head_bytes: self.head_bytes,
            body_bytes: self.body_bytes,
            first_byte_ns: self.first_byte_ns,
        })
    }

    #[inline]
    fn failed_call(&self) -> Option<FailedCall> {
        if !self.is_call || self.status >= 400 || self.call_code == Some(0) {
            return None;
        }
        Some(
            self.call_code
                .map_or(FailedCall::NoStatus, FailedCall::Code),
        )
    }
}

/// The code of gRPC for what says nothing else.
const UNKNOWN: u8 = 2;
/// Bytes that are kept of a `grpc-message`.
pub(crate) const CALL_MESSAGE_BYTES_MAX: usize = 512;

/// What a well-formed head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Status code, 100 to 999.
    pub(crate) status: u16,
    /// It reports an error, and says when to ask again (RFC 9110 section 10.2.3).
    pub(crate) retry_after: bool,
    pub(crate) content_length: ContentLength,
    /// How a call of gRPC ended, where nothing follows: the code in `grpc-status`.
    pub(crate) call_code: Option<u8>,
}

/// What a name means to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Status,
    ContentLength,
    RetryAfter,
    GrpcStatus,
    GrpcMessage,
    Other,
    /// It must not be in a reply.
    Bad,
}

/// What a field means to a client; all that the dynamic table keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    name: Name,
    /// The value is not well formed.
    is_bad: bool,
    /// The value, where it is a number of interest.
    number: u64,
}

/// A field as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadField<'a> {
    meaning: Meaning,
    /// The value of `grpc-message`; empty for another field, and for one from a table, which keeps
    /// no text.
    text: &'a [u8],
}

impl From<Meaning> for ReadField<'_> {
    #[inline]
    fn from(meaning: Meaning) -> Self {
        Self { meaning, text: &[] }
    }
}

impl Keep for Meaning {
    type Name<'a> = Name;
    type Field<'a> = ReadField<'a>;

    fn name(bytes: &[u8]) -> Name {
        name(bytes)
    }

    #[inline]
    fn static_name<'a, T: StaticTable>(place: usize) -> Self::Name<'a> {
        StaticNames::<T>::ALL[place]
    }

    #[inline]
    fn static_field<'a, T: StaticTable>(place: usize) -> Self::Field<'a> {
        let name = Self::static_name::<T>(place);
        match name {
            Name::Status | Name::ContentLength => Self::field(name, T::FIELDS[place].1),
            Name::RetryAfter | Name::GrpcStatus | Name::GrpcMessage | Name::Other | Name::Bad => {
                Self {
                    name,
                    is_bad: false,
                    number: 0,
                }
                .into()
            }
        }
    }

    fn field(name: Name, value: &[u8]) -> ReadField<'_> {
        let number = match name {
            Name::Status => status(value),
            Name::ContentLength => content_length(value),
            Name::GrpcStatus => {
                is_text(value).then(|| decimal(value.trim_ascii()).unwrap_or(UNKNOWN.into()))
            }
            // But for spaces around a value (RFC 9113 section 8.2.1): servers send them on as
            // applications set them, and clients accept them, as in HTTP/1.1.
            Name::RetryAfter | Name::GrpcMessage | Name::Other | Name::Bad => {
                is_text(value).then_some(0)
            }
        };
        let meaning = Self {
            name,
            is_bad: number.is_none(),
            number: number.unwrap_or(0),
        };
        let text = match name {
            Name::GrpcMessage => value,
            _ => &[],
        };
        ReadField { meaning, text }
    }

    #[inline]
    fn unread_field<'a>(name: Self::Name<'a>, is_text: bool) -> Option<Self::Field<'a>> {
        match name {
            Name::Status | Name::ContentLength | Name::GrpcStatus | Name::GrpcMessage => None,
            Name::RetryAfter | Name::Other | Name::Bad => Some(
                Self {
                    name,
                    is_bad: !is_text,
                    number: 0,
                }
                .into(),
            ),
        }
    }

    fn keep(field: ReadField<'_>) -> Self {
        field.meaning
    }

    fn kept_name(&self) -> Name {
        self.name
    }

    #[inline]
    fn kept_field(&self) -> ReadField<'_> {
        (*self).into()
    }
}

const fn name(bytes: &[u8]) -> Name {
    match bytes {
        b":status" => Name::Status,
        b"content-length" => Name::ContentLength,
        b"retry-after" => Name::RetryAfter,
        b"grpc-status" => Name::GrpcStatus,
        b"grpc-message" => Name::GrpcMessage,
        // RFC 9113 section 8.2.2, RFC 9114 section 4.2.
        b"" | b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
        | b"upgrade" => Name::Bad,
        _ => {
            let mut place = 0;
            while place < bytes.len() {
                // Not in upper case (RFC 9113 section 8.2.1, RFC 9114 section 4.2).
                if !is_token_byte(bytes[place]) || bytes[place].is_ascii_uppercase() {
                    return Name::Bad;
                }
                place += 1;
            }
            Name::Other
        }
    }
}

/// What the names of a static table mean.
struct StaticNames<T>(PhantomData<T>);

impl<T: StaticTable> StaticNames<T> {
    /// That of each field; HPACK's table has 61, QPACK's 99.
    const ALL: &'static [Name; 99] = &{
        let mut names = [Name::Bad; 99];
        let mut place = 0;
        while place < T::FIELDS.len() {
            names[place] = name(T::FIELDS[place].0);
            place += 1;
        }
        names
    };
}

fn status(value: &[u8]) -> Option<u64> {
    (value.len() == 3)
        .then(|| decimal(value))
        .flatten()
        .filter(|status| *status >= 100)
}

/// RFC 9110 section 8.6: a repeated value is allowed, a different one is not.
fn content_length(value: &[u8]) -> Option<u64> {
    let mut items = list(value);
    let first = decimal(items.next()?)?;
    items
        .all(|item| decimal(item) == Some(first))
        .then_some(first)
}

/// What the fields of one block add up to.
#[derive(Debug, Default)]
pub(crate) struct ReplyFields {
    /// Regular fields, without pseudo-header fields.
    fields: u32,
    /// Bytes of the fields, as [`Limits::head_bytes`] counts them.
    bytes: u64,
    /// Whether a field came that is not well formed.
    is_bad: bool,
    has_pseudo: bool,
    has_regular: bool,
    status: Option<u16>,
    retry_after: bool,
    content_length: ContentLength,
    /// The code in `grpc-status`.
    call_code: Option<u8>,
    /// The beginning of `grpc-message`.
    call_message: Option<Box<str>>,
}

impl ReplyFields {
    #[inline]
    pub(crate) fn add(&mut self, field: ReadField<'_>, bytes: usize) {
        let ReadField {
            meaning: field,
            text,
        } = field;
        self.bytes += bytes as u64 + u64::from(FIELD_OVERHEAD_BYTES);
        match field.name {
            Name::Status => {
                // Before all regular fields, and once (RFC 9113 section 8.3).
                self.is_bad |= field.is_bad || self.has_pseudo || self.has_regular;
                self.has_pseudo = true;
                self.status = u16::try_from(field.number).ok();
                return;
            }
            Name::ContentLength => {
                let bytes = (!field.is_bad).then_some(field.number);
                self.content_length.add(bytes);
            }
            Name::RetryAfter => {
                self.retry_after = true;
                self.is_bad |= field.is_bad;
            }
            Name::GrpcStatus => {
                let code = u8::try_from(field.number).unwrap_or(UNKNOWN);
                let is_other = self.call_code.is_some_and(|before| before != code);
                self.call_code = Some(if is_other { UNKNOWN } else { code });
                self.is_bad |= field.is_bad;
            }
            Name::GrpcMessage => {
                self.is_bad |= field.is_bad;
                self.note_call_message(text);
            }
            Name::Other => self.is_bad |= field.is_bad,
            Name::Bad => self.is_bad = true,
        }
        self.fields += 1;
        self.has_regular = true;
    }

    /// Copies the text of a `grpc-message`, its beginning.
    #[cold]
    fn note_call_message(&mut self, text: &[u8]) {
        let kept = &text[..text.len().min(CALL_MESSAGE_BYTES_MAX)];
        if !kept.is_empty() {
            self.call_message = Some(String::from_utf8_lossy(kept).into());
        }
    }

    fn check(&self, limits: &Limits) -> Result<(), MalformedReply> {
        if self.bytes > limits.head_bytes.into() {
            Err(MalformedReply::HeadTooLarge)
        } else if self.fields > limits.header_fields.into() {
            Err(MalformedReply::TooManyHeaders)
        } else if self.is_bad {
            Err(MalformedReply::Head)
        } else {
            Ok(())
        }
    }

    pub(crate) fn head(&self, limits: &Limits) -> Result<Head, MalformedReply> {
        self.check(limits)?;
        let status = self.status.ok_or(MalformedReply::Head)?;
        Ok(Head {
            status,
            retry_after: status >= 400 && self.retry_after,
            content_length: self.content_length,
            call_code: self.call_code,
        })
    }

    /// What the server said of a call of gRPC that failed.
    #[inline]
    pub(crate) fn take_call_message(&mut self) -> Option<Box<str>> {
        let message = self.call_message.take();
        message.filter(|_| self.call_code.is_some_and(|code| code != 0))
    }

    /// Gives how a call of gRPC ended: the code in `grpc-status`.
    pub(crate) fn trailers(&self, limits: &Limits) -> Result<Option<u8>, MalformedReply> {
        self.check(limits)?;
        if self.has_pseudo {
            return Err(MalformedReply::Head);
        }
        Ok(self.call_code)
    }
}

/// The latest head and what it meant; one per worker, with one value of [`Limits`]. Servers send
/// the same head over and over, and equal bytes that depend on no state of the connection mean an
/// equal head.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    /// The field block of the head.
    block: Vec<u8>,
    /// What `block` means; `None` before there is one.
    head: Option<Head>,
    /// It has fields for the dynamic table. Servers that do without the table (nginx) send such
    /// ones all the same, for a table without room.
    needs_closed: bool,
    /// Where strings are decoded.
    scratch: Vec<u8>,
    /// Of the first call of gRPC that failed with one.
    call_message: Option<String>,
}

impl KnownHead {
    /// Reads the block of a head, by `decode` where it is not the latest one. `is_closed`: nothing
    /// that is inserted stays in the dynamic table of the connection.
    #[inline]
    pub(crate) fn head<E>(
        &mut self,
        block: &[u8],
        is_closed: bool,
        limits: &Limits,
        decode: impl FnOnce(&mut Vec<u8>, &mut ReplyFields) -> Result<Decoded, E>,
    ) -> Result<Result<Head, MalformedReply>, E> {
        match self.head {
            Some(head) if self.block == block && (!self.needs_closed || is_closed) => Ok(Ok(head)),
            _ => self.new_head(block, limits, decode),
        }
    }

    fn new_head<E>(
        &mut self,
        block: &[u8],
        limits: &Limits,
        decode: impl FnOnce(&mut Vec<u8>, &mut ReplyFields) -> Result<Decoded, E>,
    ) -> Result<Result<Head, MalformedReply>, E> {
        let (fields, decoded) = self.fields(decode)?;
        let head = fields.head(limits);
        if decoded.is_stateless
            && let Ok(head) = head
        {
            self.block.clear();
            self.block.extend_from_slice(block);
            self.head = Some(head);
            self.needs_closed = decoded.needs_closed;
        }
        Ok(head)
    }

    /// Reads the block of trailers by `decode`: the code in `grpc-status`.
    pub(crate) fn trailers<E>(
        &mut self,
        limits: &Limits,
        decode: impl FnOnce(&mut Vec<u8>, &mut ReplyFields) -> Result<Decoded, E>,
    ) -> Result<Result<Option<u8>, MalformedReply>, E> {
        Ok(self.fields(decode)?.0.trailers(limits))
    }

    fn fields<E>(
        &mut self,
        decode: impl FnOnce(&mut Vec<u8>, &mut ReplyFields) -> Result<Decoded, E>,
    ) -> Result<(ReplyFields, Decoded), E> {
        let mut fields = ReplyFields::default();
        let decoded = decode(&mut self.scratch, &mut fields)?;
        if let Some(message) = fields.take_call_message() {
            self.call_message.get_or_insert(message.into());
        }
        Ok((fields, decoded))
    }

    /// What the server said of the first call of gRPC that failed (`grpc-message`); once.
    pub fn take_call_message(&mut self) -> Option<String> {
        self.call_message.take()
    }

    /// Where strings are decoded, for a block that nobody waits for.
    pub(crate) fn scratch(&mut self) -> &mut Vec<u8> {
        &mut self.scratch
    }
}
