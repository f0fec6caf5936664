//! Clients of the protocols that brunt speaks, and both sides of TLS, as values: bytes in, events
//! out.
//!
//! Nothing here has a socket, a clock or a thread, so every protocol can be tested at each split
//! of its input, fuzzed and simulated; only rustls asks for randomness, and for the date, to tell
//! whether certificates are valid. What a peer sends is never trusted: it is refused by a
//! typed error, and no input makes these clients panic or keep an unbounded amount of memory.
//!
//! Open `http1/reply` first: the shape of all clients, in the shortest form.

#[macro_use]
mod numbered;

mod field_value;
mod fields;
pub mod holes;
pub mod http1;
pub mod http2;
pub mod http3;
mod limits;
pub mod messages;
pub mod quic;
#[cfg(test)]
mod test_support;
pub mod tls;
pub mod websocket;

pub use fields::reply::{StreamFailure, StreamsEvent};
pub use limits::{BodiesWanted, Body, Limits};
