//! Why a connection or a stream of HTTP/3 fails: error codes of HTTP/3 and QPACK, and which rule
//! was broken.

use thiserror::Error;

use super::qpack::QpackError;
use crate::fields::reply;
use crate::fields::reply::MalformedReply;
use crate::quic::{self, Lost};

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
pub type StreamFailure = reply::StreamFailure<ErrorCode>;

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
pub(super) enum ReplyError {
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

numbered! {
    /// Why a stream or a connection ends (RFC 9114 section 8.1, RFC 9204 section 8.3).
    enum ErrorCode(u64), "code" {
        /// Nothing is wrong.
        NoError = 0x100 "H3_NO_ERROR",
        /// The peer broke the protocol in a way that has no code of its own.
        GeneralProtocolError = 0x101 "H3_GENERAL_PROTOCOL_ERROR",
        /// The sender has a fault.
        InternalError = 0x102 "H3_INTERNAL_ERROR",
        /// The peer opened a stream that is not accepted.
        StreamCreationError = 0x103 "H3_STREAM_CREATION_ERROR",
        /// A stream that the connection needs was closed.
        ClosedCriticalStream = 0x104 "H3_CLOSED_CRITICAL_STREAM",
        /// A frame came where it may not be.
        FrameUnexpected = 0x105 "H3_FRAME_UNEXPECTED",
        /// A frame has a wrong size or layout.
        FrameError = 0x106 "H3_FRAME_ERROR",
        /// The peer asks for too much.
        ExcessiveLoad = 0x107 "H3_EXCESSIVE_LOAD",
        /// An identifier of a stream or a push is wrong.
        IdError = 0x108 "H3_ID_ERROR",
        /// SETTINGS hold what may not be there.
        SettingsError = 0x109 "H3_SETTINGS_ERROR",
        /// The control stream does not begin with SETTINGS.
        MissingSettings = 0x10a "H3_MISSING_SETTINGS",
        /// The server did not process the request at all.
        RequestRejected = 0x10b "H3_REQUEST_REJECTED",
        /// The request, or its reply, is not wanted any more.
        RequestCancelled = 0x10c "H3_REQUEST_CANCELLED",
        /// The client's stream ended without a whole request.
        RequestIncomplete = 0x10d "H3_REQUEST_INCOMPLETE",
        /// A message is malformed.
        MessageError = 0x10e "H3_MESSAGE_ERROR",
        /// The connection of a CONNECT request was lost.
        ConnectError = 0x10f "H3_CONNECT_ERROR",
        /// HTTP/1.1 is to be used.
        VersionFallback = 0x110 "H3_VERSION_FALLBACK",
        /// A field section cannot be decoded.
        QpackDecompressionFailed = 0x200 "QPACK_DECOMPRESSION_FAILED",
        /// The encoder stream of the peer cannot be read.
        QpackEncoderStreamError = 0x201 "QPACK_ENCODER_STREAM_ERROR",
        /// The decoder stream of the peer cannot be read.
        QpackDecoderStreamError = 0x202 "QPACK_DECODER_STREAM_ERROR",
        else "A code that neither RFC defines; the same as [`NoError`](Self::NoError) (RFC 9114 \
              section 9).",
    }
}

/// Why a connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Ended {
    /// QUIC has lost it.
    #[error(transparent)]
    Lost(Lost),
    /// The peer broke the rules of HTTP/3. What says so to the peer is still to be sent.
    #[error("the peer broke the rules of HTTP/3: {0}")]
    Broken(ConnectionError),
}

impl Ended {
    /// Whether the server refused a handshake for a reason that another one need not have: its
    /// parameters are in part random (RFC 9000 section 18.1), and a server that takes no connection
    /// now may take the next one.
    pub fn is_refusal(&self) -> bool {
        use quic::ErrorCode::{ConnectionRefused, TransportParameterError};
        matches!(
            self,
            Self::Lost(Lost::Closed {
                code: ConnectionRefused | TransportParameterError,
                ..
            })
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_and_names_of_the_rfcs() {
        let numbers: Vec<u64> = (0x100..=0x110).chain(0x200..=0x202).collect();
        for number in numbers {
            let code = ErrorCode::of(number);
            assert_eq!(code.number(), number);
            assert!(!matches!(code, ErrorCode::Other(_)));
        }
        for number in [0, 0xff, 0x111, 0x1ff, 0x203, 0x21, u64::MAX] {
            assert_eq!(ErrorCode::of(number), ErrorCode::Other(number));
            assert_eq!(ErrorCode::of(number).number(), number);
        }
        for (number, text) in [
            (0x100, "H3_NO_ERROR"),
            (0x10b, "H3_REQUEST_REJECTED"),
            (0x110, "H3_VERSION_FALLBACK"),
            (0x202, "QPACK_DECODER_STREAM_ERROR"),
            (0x33, "code 0x33"),
        ] {
            assert_eq!(ErrorCode::of(number).to_string(), text);
        }
    }
}
