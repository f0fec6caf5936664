//! Why a reply is refused.

use thiserror::Error;

/// Why a reply was refused. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// The head is not HTTP, or its status is under 100.
    #[error("the head is malformed")]
    MalformedHead,
    /// The server answers in TLS, by an alert: it does not take requests in clear text.
    #[error("it is an alert of TLS")]
    TlsAlert,
    /// A head is over [`crate::Limits::head_bytes`].
    #[error("the head is too large")]
    HeadTooLarge,
    /// A head, or the trailers, have more fields than [`crate::Limits::header_fields`].
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
    /// The trailers are over [`crate::Limits::head_bytes`].
    #[error("the trailers are too large")]
    TrailersTooLarge,
    /// More interim replies than [`crate::Limits::interim_replies`], or 101 (Switching Protocols),
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
