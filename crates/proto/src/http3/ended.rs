//! Why a connection is over.

use thiserror::Error;

use super::error::ConnectionError;
use crate::quic::{self, Lost};

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
