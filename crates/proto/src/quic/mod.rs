//! QUIC (RFC 9000, 9001, 9002) on quinn-proto: connections as values. Datagrams and a time go in,
//! streams and datagrams come out.
//!
//! What all connections of a side share is prepared once, as [`ClientTransport`] or
//! [`ServerTransport`]. Times are
//! nanoseconds since the clock's origin, which the caller gives as an [`Instant`] since quinn-proto
//! calculates with such. Nothing here reads a clock.
//!
//! [`Instant`]: std::time::Instant

mod client;
mod client_connection;
mod code;
mod connection;
mod listener;
mod lost;
mod server;
mod transport;

pub use client::ClientTransport;
pub(crate) use client_connection::ClientConnection;
pub use code::ErrorCode;
pub(crate) use connection::Connection;
pub use connection::{Ecn, PathFigures, Sent};
pub(crate) use listener::{Admission, Arrival, Listener};
pub use lost::Lost;
pub use server::ServerTransport;
pub use transport::{TransportError, TransportOptions};
