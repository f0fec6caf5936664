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

/// Each code that has a name, with its number, its name and its meaning.
const CODES: [(ErrorCode, u64, &str, &str); 20] = [
    (ErrorCode::NoError, 0x100, "H3_NO_ERROR", "nothing is wrong"),
    (
        ErrorCode::GeneralProtocolError,
        0x101,
        "H3_GENERAL_PROTOCOL_ERROR",
        "the peer broke the protocol",
    ),
    (
        ErrorCode::InternalError,
        0x102,
        "H3_INTERNAL_ERROR",
        "the sender has a fault",
    ),
    (
        ErrorCode::StreamCreationError,
        0x103,
        "H3_STREAM_CREATION_ERROR",
        "the peer opened a stream that is not accepted",
    ),
    (
        ErrorCode::ClosedCriticalStream,
        0x104,
        "H3_CLOSED_CRITICAL_STREAM",
        "a stream that the connection needs was closed",
    ),
    (
        ErrorCode::FrameUnexpected,
        0x105,
        "H3_FRAME_UNEXPECTED",
        "a frame came where it may not be",
    ),
    (
        ErrorCode::FrameError,
        0x106,
        "H3_FRAME_ERROR",
        "a frame has a wrong size or layout",
    ),
    (
        ErrorCode::ExcessiveLoad,
        0x107,
        "H3_EXCESSIVE_LOAD",
        "the peer asks for too much",
    ),
    (
        ErrorCode::IdError,
        0x108,
        "H3_ID_ERROR",
        "an identifier of a stream or a push is wrong",
    ),
    (
        ErrorCode::SettingsError,
        0x109,
        "H3_SETTINGS_ERROR",
        "SETTINGS hold what may not be there",
    ),
    (
        ErrorCode::MissingSettings,
        0x10a,
        "H3_MISSING_SETTINGS",
        "the control stream does not begin with SETTINGS",
    ),
    (
        ErrorCode::RequestRejected,
        0x10b,
        "H3_REQUEST_REJECTED",
        "the server did not process the request",
    ),
    (
        ErrorCode::RequestCancelled,
        0x10c,
        "H3_REQUEST_CANCELLED",
        "the request or its reply is not wanted any more",
    ),
    (
        ErrorCode::RequestIncomplete,
        0x10d,
        "H3_REQUEST_INCOMPLETE",
        "the stream ended without a whole request",
    ),
    (
        ErrorCode::MessageError,
        0x10e,
        "H3_MESSAGE_ERROR",
        "a message is malformed",
    ),
    (
        ErrorCode::ConnectError,
        0x10f,
        "H3_CONNECT_ERROR",
        "the connection of a CONNECT request was lost",
    ),
    (
        ErrorCode::VersionFallback,
        0x110,
        "H3_VERSION_FALLBACK",
        "HTTP/1.1 is to be used",
    ),
    (
        ErrorCode::QpackDecompressionFailed,
        0x200,
        "QPACK_DECOMPRESSION_FAILED",
        "a field section cannot be decoded",
    ),
    (
        ErrorCode::QpackEncoderStreamError,
        0x201,
        "QPACK_ENCODER_STREAM_ERROR",
        "the encoder stream cannot be read",
    ),
    (
        ErrorCode::QpackDecoderStreamError,
        0x202,
        "QPACK_DECODER_STREAM_ERROR",
        "the decoder stream cannot be read",
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
            _ => self.known().map_or(0, |(_, number, ..)| *number),
        }
    }

    /// What it says of who got it, in words.
    pub fn words(self) -> &'static str {
        self.known()
            .map_or("a code that HTTP/3 does not define", |(.., words)| *words)
    }

    fn known(self) -> Option<&'static (Self, u64, &'static str, &'static str)> {
        CODES.iter().find(|(code, ..)| *code == self)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.known() {
            Some((_, _, name, _)) => f.write_str(name),
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
        let words = ErrorCode::of(0x10b).words();
        assert_eq!(words, "the server did not process the request");
        assert_eq!(
            ErrorCode::of(1).words(),
            "a code that HTTP/3 does not define"
        );
    }
}
