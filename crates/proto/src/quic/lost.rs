//! Why a connection is no more.

use quinn_proto::ConnectionError;
use thiserror::Error;

use super::code::ErrorCode;

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
