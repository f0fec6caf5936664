//! Error codes of QUIC itself.

/// Why a connection ends (RFC 9000 section 20.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing is wrong.
    NoError,
    /// The sender has a fault.
    InternalError,
    /// The server takes no new connection.
    ConnectionRefused,
    /// More data came than was allowed.
    FlowControlError,
    /// More streams were opened than were allowed.
    StreamLimitError,
    /// A frame came for a stream that cannot have it.
    StreamStateError,
    /// A stream has two lengths.
    FinalSizeError,
    /// A frame is malformed.
    FrameEncodingError,
    /// A transport parameter is missing, malformed or not allowed.
    TransportParameterError,
    /// More connection ids came than were allowed.
    ConnectionIdLimitError,
    /// The peer broke the protocol in a way that has no code of its own.
    ProtocolViolation,
    /// The token of a client is not one of this server's.
    InvalidToken,
    /// The application closed the connection in the handshake.
    ApplicationError,
    /// More of the handshake came than can be kept.
    CryptoBufferExceeded,
    /// Keys were changed in a wrong way.
    KeyUpdateError,
    /// The keys were used as often as they may be.
    AeadLimitReached,
    /// No path to the peer is usable.
    NoViablePath,
    /// The handshake failed with an alert of TLS, of this number (RFC 9001 section 4.8).
    Tls(u8),
    /// A code that the RFC does not define.
    Other(u64),
}

/// Each code that has a name, by its number.
const CODES: [(ErrorCode, &str, &str); 17] = [
    (ErrorCode::NoError, "NO_ERROR", "nothing is wrong"),
    (
        ErrorCode::InternalError,
        "INTERNAL_ERROR",
        "the sender has a fault",
    ),
    (
        ErrorCode::ConnectionRefused,
        "CONNECTION_REFUSED",
        "the server takes no new connection",
    ),
    (
        ErrorCode::FlowControlError,
        "FLOW_CONTROL_ERROR",
        "more data came than was allowed",
    ),
    (
        ErrorCode::StreamLimitError,
        "STREAM_LIMIT_ERROR",
        "more streams were opened than were allowed",
    ),
    (
        ErrorCode::StreamStateError,
        "STREAM_STATE_ERROR",
        "a frame came for a stream that cannot have it",
    ),
    (
        ErrorCode::FinalSizeError,
        "FINAL_SIZE_ERROR",
        "a stream has two lengths",
    ),
    (
        ErrorCode::FrameEncodingError,
        "FRAME_ENCODING_ERROR",
        "a frame is malformed",
    ),
    (
        ErrorCode::TransportParameterError,
        "TRANSPORT_PARAMETER_ERROR",
        "a transport parameter is missing, malformed or not allowed",
    ),
    (
        ErrorCode::ConnectionIdLimitError,
        "CONNECTION_ID_LIMIT_ERROR",
        "more connection ids came than were allowed",
    ),
    (
        ErrorCode::ProtocolViolation,
        "PROTOCOL_VIOLATION",
        "the peer broke the protocol",
    ),
    (
        ErrorCode::InvalidToken,
        "INVALID_TOKEN",
        "the token is not one of the server's",
    ),
    (
        ErrorCode::ApplicationError,
        "APPLICATION_ERROR",
        "the application closed the connection in the handshake",
    ),
    (
        ErrorCode::CryptoBufferExceeded,
        "CRYPTO_BUFFER_EXCEEDED",
        "more of the handshake came than can be kept",
    ),
    (
        ErrorCode::KeyUpdateError,
        "KEY_UPDATE_ERROR",
        "keys were changed in a wrong way",
    ),
    (
        ErrorCode::AeadLimitReached,
        "AEAD_LIMIT_REACHED",
        "the keys were used as often as they may be",
    ),
    (
        ErrorCode::NoViablePath,
        "NO_VIABLE_PATH",
        "no path to the peer is usable",
    ),
];

/// The codes of alerts: `CRYPTO_ERROR`.
const TLS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;

impl ErrorCode {
    /// The code with this number.
    pub fn of(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|at| CODES.get(at));
        match known {
            Some((code, ..)) => *code,
            None if TLS.contains(&number) => Self::Tls((number - TLS.start()) as u8),
            None => Self::Other(number),
        }
    }

    /// The number of the code on the wire.
    pub fn number(self) -> u64 {
        match self {
            Self::Other(number) => number,
            Self::Tls(alert) => TLS.start() + u64::from(alert),
            _ => CODES
                .iter()
                .position(|(code, ..)| *code == self)
                .unwrap_or(0) as u64,
        }
    }

    /// What the code says of who got it, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Tls(_) => "the TLS handshake failed",
            _ => self
                .known()
                .map_or("a code that QUIC does not define", |(.., words)| *words),
        }
    }

    fn known(self) -> Option<&'static (Self, &'static str, &'static str)> {
        CODES.iter().find(|(code, ..)| *code == self)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tls(alert) => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            _ => match self.known() {
                Some((_, name, _)) => f.write_str(name),
                None => write!(f, "code {:#x}", self.number()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_and_names_of_the_rfc() {
        for number in 0..=0x10 {
            let code = ErrorCode::of(number);
            assert_eq!(code.number(), number);
            assert!(!matches!(code, ErrorCode::Other(_) | ErrorCode::Tls(_)));
        }
        for (number, text) in [
            (0x0, "NO_ERROR"),
            (0x2, "CONNECTION_REFUSED"),
            (0xa, "PROTOCOL_VIOLATION"),
            (0x10, "NO_VIABLE_PATH"),
            (0x11, "code 0x11"),
            (0x128, "CRYPTO_ERROR (TLS alert 40)"),
            (0x1ff, "CRYPTO_ERROR (TLS alert 255)"),
            (0x200, "code 0x200"),
        ] {
            let code = ErrorCode::of(number);
            assert_eq!((code.to_string().as_str(), code.number()), (text, number));
        }
        assert_eq!(ErrorCode::of(0x178).words(), "the TLS handshake failed");
        assert_eq!(
            ErrorCode::of(0x11).words(),
            "a code that QUIC does not define"
        );
    }
}
