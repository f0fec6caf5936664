//! Why a connection is over.

use thiserror::Error;

use super::error::ConnectionError;
use crate::quic::Lost;

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
