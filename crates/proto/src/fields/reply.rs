//! Replies that come as fields and DATA, in HTTP/2 and HTTP/3: while they are received, once they
//! are complete, and what may be wrong with them.

use thiserror::Error;

use super::reply_head::{ContentLength, Head};
use crate::Limits;

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
    pub interim: u32,
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
pub enum Event<Code> {
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
            interim: self.interim.into(),
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
