//! Why a connection or a stream of HTTP/3 fails.

use thiserror::Error;

use super::code::ErrorCode;
use super::qpack::QpackError;
use crate::fields::event;
use crate::fields::reply::MalformedReply;

/// Why a whole connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// A frame came on a stream, or in a place, where it may not be: DATA before a final head,
    /// HEADERS or DATA after trailers, a frame of the control stream elsewhere, one of HTTP/2.
    #[error("a frame came where it may not be")]
    FrameUnexpected,
    /// A frame has not the size of its content, or its stream ended inside it.
    #[error("a frame has a wrong size, or is cut off")]
    FrameSize,
    /// The server pushes a reply, or refers to a push, and none are allowed.
    #[error("a pushed reply, though none are allowed")]
    Push,
    /// The client refers to a push that was not promised, or lowers MAX_PUSH_ID.
    #[error("a push that was not promised, or MAX_PUSH_ID lowered")]
    PushId,
    /// GOAWAY names what is no request of the client, or more than the one before it.
    #[error("GOAWAY names a wrong stream, or a later one than before")]
    GoAway,
    /// A setting may not be sent, or came twice.
    #[error("a setting that may not be sent, or one sent twice")]
    Setting,
    /// The first frame of the control stream is not SETTINGS.
    #[error("the control stream does not begin with SETTINGS")]
    MissingSettings,
    /// There is more than one control, encoder or decoder stream, or a client opened a push stream.
    #[error("a stream that the peer may not open, or one opened twice")]
    StreamCreation,
    /// The control, encoder or decoder stream was closed.
    #[error("a stream that the connection needs was closed")]
    ClosedCriticalStream,
    /// A field section cannot be decoded.
    #[error("header compression failed: {0}")]
    Compression(#[from] QpackError),
    /// The peer's encoder stream has an instruction that needs a dynamic table.
    #[error("the encoder stream uses the dynamic table, which is not allowed")]
    EncoderStream,
    /// The peer's decoder stream acknowledges what was not sent.
    #[error("the decoder stream acknowledges what was not sent")]
    DecoderStream,
}

impl ConnectionError {
    /// The code to close the connection with (RFC 9114 section 8, RFC 9204 section 6).
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::FrameUnexpected => ErrorCode::FrameUnexpected,
            Self::FrameSize => ErrorCode::FrameError,
            Self::Push | Self::PushId | Self::GoAway => ErrorCode::IdError,
            Self::Setting => ErrorCode::SettingsError,
            Self::MissingSettings => ErrorCode::MissingSettings,
            Self::StreamCreation => ErrorCode::StreamCreationError,
            Self::ClosedCriticalStream => ErrorCode::ClosedCriticalStream,
            Self::Compression(_) => ErrorCode::QpackDecompressionFailed,
            Self::EncoderStream => ErrorCode::QpackEncoderStreamError,
            Self::DecoderStream => ErrorCode::QpackDecoderStreamError,
        }
    }
}

/// Why one request of a client failed.
pub type StreamFailure = event::StreamFailure<ErrorCode>;

impl StreamFailure {
    /// The server reset the stream with the code of this number (RFC 9114 section 4.1.1).
    pub fn of_reset(number: u64) -> Self {
        match ErrorCode::of(number) {
            ErrorCode::RequestRejected => Self::NotProcessed,
            code => Self::Reset(code),
        }
    }

    /// The code to reset the stream with and to tell the server to stop sending; `None` where the
    /// server is done with the stream.
    pub const fn code(self) -> Option<ErrorCode> {
        match self {
            Self::Malformed(MalformedReply::HeadTooLarge | MalformedReply::TooManyHeaders) => {
                Some(ErrorCode::ExcessiveLoad)
            }
            Self::Malformed(_) => Some(ErrorCode::MessageError),
            Self::NotProcessed | Self::Reset(_) | Self::Incomplete | Self::Window => None,
        }
    }
}

/// Why a reply cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// Its stream failed.
    #[error(transparent)]
    Stream(#[from] StreamFailure),
    /// Its connection cannot be used any more.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<MalformedReply> for ReplyError {
    fn from(why: MalformedReply) -> Self {
        Self::Stream(why.into())
    }
}

/// Why a server cannot read a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestReadError {
    /// A field section is over the limit as it came.
    #[error("a head is too large")]
    HeadTooLarge,
    /// The bytes of DATA are not those that Content-Length states.
    #[error("the body has another length than Content-Length states")]
    ContentLength,
    /// The client ended the stream before a head.
    #[error("the stream ended before the request's head")]
    Incomplete,
    /// Its connection cannot be used any more.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl RequestReadError {
    /// The code to reset the stream with, or to close the connection with.
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::HeadTooLarge => ErrorCode::ExcessiveLoad,
            Self::ContentLength => ErrorCode::MessageError,
            Self::Incomplete => ErrorCode::RequestIncomplete,
            Self::Connection(error) => error.code(),
        }
    }
}
