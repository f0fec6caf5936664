//! Error codes of HTTP/3 and QPACK.

/// Why a stream or a connection ends (RFC 9114 section 8.1, RFC 9204 section 8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing is wrong.
    NoError,
    /// The peer broke the protocol in a way that has no code of its own.
    GeneralProtocolError,
    /// The sender has a fault.
    InternalError,
    /// The peer opened a stream that is not accepted.
    StreamCreationError,
    /// A stream that the connection needs was closed.
    ClosedCriticalStream,
    /// A frame came where it may not be.
    FrameUnexpected,
    /// A frame has a wrong size or layout.
    FrameError,
    /// The peer asks for too much.
    ExcessiveLoad,
    /// An identifier of a stream or a push is wrong.
    IdError,
    /// SETTINGS hold what may not be there.
    SettingsError,
    /// The control stream does not begin with SETTINGS.
    MissingSettings,
    /// The server did not process the request at all.
    RequestRejected,
    /// The request, or its reply, is not wanted any more.
    RequestCancelled,
    /// The client's stream ended without a whole request.
    RequestIncomplete,
    /// A message is malformed.
    MessageError,
    /// The connection of a CONNECT request was lost.
    ConnectError,
    /// HTTP/1.1 is to be used.
    VersionFallback,
    /// A field section cannot be decoded.
    QpackDecompressionFailed,
    /// The encoder stream of the peer cannot be read.
    QpackEncoderStreamError,
    /// The decoder stream of the peer cannot be read.
    QpackDecoderStreamError,
    /// A code that neither RFC defines; the same as [`NoError`](Self::NoError) (RFC 9114 section
    /// 9).
    Other(u64),
}

/// Each code that has a name, with its number and its name.
const CODES: [(ErrorCode, u64, &str); 20] = [
    (ErrorCode::NoError, 0x100, "H3_NO_ERROR"),
    (
        ErrorCode::GeneralProtocolError,
        0x101,
        "H3_GENERAL_PROTOCOL_ERROR",
    ),
    (ErrorCode::InternalError, 0x102, "H3_INTERNAL_ERROR"),
    (
        ErrorCode::StreamCreationError,
        0x103,
        "H3_STREAM_CREATION_ERROR",
    ),
    (
        ErrorCode::ClosedCriticalStream,
        0x104,
        "H3_CLOSED_CRITICAL_STREAM",
    ),
    (ErrorCode::FrameUnexpected, 0x105, "H3_FRAME_UNEXPECTED"),
    (ErrorCode::FrameError, 0x106, "H3_FRAME_ERROR"),
    (ErrorCode::ExcessiveLoad, 0x107, "H3_EXCESSIVE_LOAD"),
    (ErrorCode::IdError, 0x108, "H3_ID_ERROR"),
    (ErrorCode::SettingsError, 0x109, "H3_SETTINGS_ERROR"),
    (ErrorCode::MissingSettings, 0x10a, "H3_MISSING_SETTINGS"),
    (ErrorCode::RequestRejected, 0x10b, "H3_REQUEST_REJECTED"),
    (ErrorCode::RequestCancelled, 0x10c, "H3_REQUEST_CANCELLED"),
    (ErrorCode::RequestIncomplete, 0x10d, "H3_REQUEST_INCOMPLETE"),
    (ErrorCode::MessageError, 0x10e, "H3_MESSAGE_ERROR"),
    (ErrorCode::ConnectError, 0x10f, "H3_CONNECT_ERROR"),
    (ErrorCode::VersionFallback, 0x110, "H3_VERSION_FALLBACK"),
    (
        ErrorCode::QpackDecompressionFailed,
        0x200,
        "QPACK_DECOMPRESSION_FAILED",
    ),
    (
        ErrorCode::QpackEncoderStreamError,
        0x201,
        "QPACK_ENCODER_STREAM_ERROR",
    ),
    (
        ErrorCode::QpackDecoderStreamError,
        0x202,
        "QPACK_DECODER_STREAM_ERROR",
    ),
];

impl ErrorCode {
    /// The code with this number.
    pub fn of(number: u64) -> Self {
        let known = CODES.iter().find(|(_, other, ..)| *other == number);
        known.map_or(Self::Other(number), |(code, ..)| *code)
    }

    /// Its number on the wire.
    pub fn number(self) -> u64 {
        match self {
            Self::Other(number) => number,
            _ => self.known().map_or(0, |(_, number, _)| *number),
        }
    }

    fn known(self) -> Option<&'static (Self, u64, &'static str)> {
        CODES.iter().find(|(code, ..)| *code == self)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.known() {
            Some((.., name)) => f.write_str(name),
            None => write!(f, "code {:#x}", self.number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_and_names_of_the_rfcs() {
        let numbers: Vec<u64> = (0x100..=0x110).chain(0x200..=0x202).collect();
        assert_eq!(CODES.map(|(_, number, ..)| number).to_vec(), numbers);
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
