//! What a connection yields: replies, failures, and the limits that hold for them.

use thiserror::Error;

use super::frame::ErrorCode;
use super::hpack::HpackError;

/// A complete final reply. Its bytes are those of its HEADERS, CONTINUATION and DATA frames, frame
/// headers and padding included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code, 200 to 999.
    pub status: u16,
    /// Its status is 400 or above, and its head says when to ask again (`Retry-After`, RFC 9110
    /// section 10.2.3), whatever the value. A trailer does not count.
    pub retry_after: bool,
    /// Interim (1xx) replies before it.
    pub interim: u32,
    /// Bytes of its head and of the interim replies before it.
    pub head_bytes: u64,
    /// Bytes of its body, trailers included.
    pub body_bytes: u64,
    /// `now_ns` of the call that brought the first byte of its first frame.
    pub first_byte_ns: u64,
}

/// What [`Client::receive`](super::Client::receive) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Progress {
    /// Bytes taken. Without an event: all of them.
    pub consumed: usize,
    /// What they complete. There may be more without further bytes: call again, with what is left,
    /// until there is none.
    pub event: Option<Event>,
}

/// Something that a caller must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server's first SETTINGS are in: requests may be sent. Once per connection.
    Ready,
    /// The stream at this place is done; the place is free again.
    Reply {
        /// As [`Client::request`](super::Client::request) gave it.
        place: u32,
        /// Its reply.
        reply: Reply,
    },
    /// The stream at this place failed; the place is free again, the connection goes on.
    Failed {
        /// As [`Client::request`](super::Client::request) gave it.
        place: u32,
        /// Why.
        why: StreamFailure,
        /// Bytes of its incomplete reply, and of the RST_STREAM that ended it.
        discarded_bytes: u64,
    },
    /// The server takes no more streams (GOAWAY, RFC 9113 section 6.8). Once per connection; the
    /// streams that it names as not processed follow as [`StreamFailure::NotProcessed`], the
    /// others may still be answered.
    GoAway {
        /// The server's reason: `NoError` when it merely ends the connection.
        code: ErrorCode,
    },
}

/// Why one stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamFailure {
    /// GOAWAY named it as not processed.
    #[error("the server did not process the request (GOAWAY)")]
    NotProcessed,
    /// The server reset the stream.
    #[error("the server reset the stream: {0}")]
    Reset(ErrorCode),
    /// The reply breaks a rule, or [`Limits`](crate::Limits). The stream was reset by us, unless
    /// both sides were done with it.
    #[error(transparent)]
    Malformed(#[from] MalformedReply),
    /// The server raised the stream's window by 0 or beyond its maximum (RFC 9113 section 6.9).
    /// The stream was reset by us.
    #[error("the server raised the stream's window by a wrong amount")]
    Window,
}

/// What is wrong with a reply (RFC 9113 section 8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedReply {
    /// `:status` is missing, repeated or not a number from 100 to 999; a field's name or value is
    /// malformed or does not belong in HTTP/2; DATA came before a head; trailers do not end the
    /// stream.
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

/// Why a whole connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The server's first frame is not SETTINGS.
    #[error("the server does not speak HTTP/2")]
    NotHttp2,
    /// A frame breaks the rules.
    #[error("the server broke the protocol: {0}")]
    Protocol(#[from] Violation),
    /// More DATA than the window allows, or a window beyond its maximum.
    #[error("the server broke flow control")]
    FlowControl,
    /// A frame is larger than we accept, or has not the size of its kind.
    #[error("a frame has a wrong size")]
    FrameSize,
    /// A field block cannot be decoded.
    #[error("header compression failed: {0}")]
    Compression(#[from] HpackError),
    /// A field block is over [`head_bytes`](crate::Limits::head_bytes) as it came.
    #[error("a head is too large")]
    HeadTooLarge,
}

/// Which rule a frame breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// It is about a stream that was never opened.
    #[error("a frame on a stream that was not opened")]
    IdleStream,
    /// It belongs to the connection and names a stream, or the other way around.
    #[error("a frame on the wrong stream")]
    WrongStream,
    /// It is not the CONTINUATION of the field block before it, or continues none.
    #[error("a field block is interrupted, or continued where there is none")]
    Continuation,
    /// It pushes a reply, which our SETTINGS forbid.
    #[error("a pushed reply, though none are allowed")]
    Push,
    /// Its padding is larger than its payload.
    #[error("more padding than payload")]
    Padding,
    /// A setting is out of its range.
    #[error("a setting out of its range")]
    Setting,
    /// The connection's window was raised by 0.
    #[error("a window raised by 0")]
    Window,
    /// GOAWAY names a higher last stream than the one before it.
    #[error("GOAWAY raises the last stream")]
    GoAway,
}

impl ConnectionError {
    /// The code to send to the server (RFC 9113 section 5.4.1).
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::NotHttp2 | Self::Protocol(_) => ErrorCode::ProtocolError,
            Self::FlowControl => ErrorCode::FlowControlError,
            Self::FrameSize => ErrorCode::FrameSizeError,
            Self::Compression(_) => ErrorCode::CompressionError,
            Self::HeadTooLarge => ErrorCode::EnhanceYourCalm,
        }
    }
}
