//! QUIC (RFC 9000, 9001, 9002) on quinn-proto: connections as values. Datagrams and a time go in,
//! streams and datagrams come out.
//!
//! What all connections of a run share is prepared once, as [`ClientTransport`]. Times are
//! nanoseconds since the clock's origin, which the caller gives as an [`Instant`] since quinn-proto
//! calculates with such. Nothing here reads a clock.
//!
//! [`Instant`]: std::time::Instant

mod client;
mod code;
mod connection;
mod lost;

pub use client::{ClientTransport, TransportError, TransportOptions};
pub use code::ErrorCode;
pub use connection::{Connection, Ecn, Sent};
pub use lost::Lost;
