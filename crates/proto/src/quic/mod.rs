//! QUIC (RFC 9000, 9001, 9002) on quinn-proto: connections as values. Datagrams and a time go in,
//! streams and datagrams come out.
//!
//! What all connections of a side share is prepared once, as [`ClientTransport`] or
//! [`ServerTransport`]. Times are
//! nanoseconds since the clock's origin, which the caller gives as an [`Instant`] since quinn-proto
//! calculates with such. Nothing here reads a clock.
//!
//! [`Instant`]: std::time::Instant

mod connection;
mod error;
mod listener;
mod transport;

pub(crate) use connection::{ClientConnection, Connection};
pub use connection::{Ecn, PathFigures, Sent};
pub use error::{ErrorCode, Lost};
pub(crate) use listener::{Admission, Arrival, Listener};
pub use transport::{ClientTransport, ServerTransport, TransportError, TransportOptions};
