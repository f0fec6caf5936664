//! Why a connection is no more: error codes of QUIC, and what the peer says.

use quinn_proto::ConnectionError;
use thiserror::Error;

/// Why a connection is no more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// The peer speaks no version of QUIC that we do (RFC 9000 section 6).
    #[error("the peer does not speak version 1 of QUIC")]
    Version,
    /// The peer closed the connection by an error of QUIC.
    #[error("the peer closed the connection: {code}{}", reason_of(.reason))]
    Closed {
        /// Why.
        code: ErrorCode,
        /// What it says about that; empty for nothing.
        reason: String,
    },
    /// The peer closed the connection by a code of the protocol above.
    #[error("the peer closed the connection: code {code:#x}{}", reason_of(.reason))]
    ClosedAbove {
        /// Why.
        code: u64,
        /// What it says about that; empty for nothing.
        reason: String,
    },
    /// The peer broke the rules of QUIC, or the handshake of TLS failed on this side.
    #[error("{code}{}", reason_of(.reason))]
    Broken {
        /// What the connection is closed with.
        code: ErrorCode,
        /// What is wrong; may be empty.
        reason: String,
    },
    /// The peer knows nothing of the connection (stateless reset, RFC 9000 section 10.3).
    #[error("the peer knows nothing of the connection (stateless reset)")]
    Reset,
    /// Nothing came for as long as the peer lets a connection idle (RFC 9000 section 10.1).
    #[error("the connection was idle for too long")]
    Idle,
    /// This side closed it.
    #[error("the connection is closed")]
    Here,
}

/// What a peer says, behind the code; what it may do to a terminal is the caller's to see to.
fn reason_of(reason: &str) -> String {
    match reason {
        "" => String::new(),
        _ => format!(" ({reason})"),
    }
}

impl Lost {
    pub(super) fn of(error: ConnectionError) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match error {
            ConnectionError::VersionMismatch => Self::Version,
            ConnectionError::TransportError(error) => Self::Broken {
                code: ErrorCode::of(error.code.into()),
                reason: error.reason,
            },
            ConnectionError::ConnectionClosed(close) => Self::Closed {
                code: ErrorCode::of(close.error_code.into()),
                reason: text(&close.reason),
            },
            ConnectionError::ApplicationClosed(close) => Self::ClosedAbove {
                code: close.error_code.into_inner(),
                reason: text(&close.reason),
            },
            ConnectionError::Reset => Self::Reset,
            ConnectionError::TimedOut => Self::Idle,
            // Ids of length zero do not run out.
            ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => Self::Here,
        }
    }
}

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
const CODES: [(ErrorCode, &str); 17] = [
    (ErrorCode::NoError, "NO_ERROR"),
    (ErrorCode::InternalError, "INTERNAL_ERROR"),
    (ErrorCode::ConnectionRefused, "CONNECTION_REFUSED"),
    (ErrorCode::FlowControlError, "FLOW_CONTROL_ERROR"),
    (ErrorCode::StreamLimitError, "STREAM_LIMIT_ERROR"),
    (ErrorCode::StreamStateError, "STREAM_STATE_ERROR"),
    (ErrorCode::FinalSizeError, "FINAL_SIZE_ERROR"),
    (ErrorCode::FrameEncodingError, "FRAME_ENCODING_ERROR"),
    (
        ErrorCode::TransportParameterError,
        "TRANSPORT_PARAMETER_ERROR",
    ),
    (
        ErrorCode::ConnectionIdLimitError,
        "CONNECTION_ID_LIMIT_ERROR",
    ),
    (ErrorCode::ProtocolViolation, "PROTOCOL_VIOLATION"),
    (ErrorCode::InvalidToken, "INVALID_TOKEN"),
    (ErrorCode::ApplicationError, "APPLICATION_ERROR"),
    (ErrorCode::CryptoBufferExceeded, "CRYPTO_BUFFER_EXCEEDED"),
    (ErrorCode::KeyUpdateError, "KEY_UPDATE_ERROR"),
    (ErrorCode::AeadLimitReached, "AEAD_LIMIT_REACHED"),
    (ErrorCode::NoViablePath, "NO_VIABLE_PATH"),
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

    fn known(self) -> Option<&'static (Self, &'static str)> {
        CODES.iter().find(|(code, ..)| *code == self)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tls(alert) => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            _ => match self.known() {
                Some((_, name)) => f.write_str(name),
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
    }
}
