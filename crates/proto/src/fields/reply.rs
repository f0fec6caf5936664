//! Replies that come as fields and DATA, and what may be wrong with them.

use thiserror::Error;

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
