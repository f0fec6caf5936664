//! What a connection yields: replies, failures, and the limits that hold for them.

use thiserror::Error;

use super::frame::ErrorCode;
use super::hpack::HpackError;
use crate::fields::reply;

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

/// What happened on a connection.
pub type Event = reply::Event<ErrorCode>;

/// Why one request failed. Its stream was reset by us, unless both sides were done with it.
pub type StreamFailure = reply::StreamFailure<ErrorCode>;

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
