//! HTTP/3 (RFC 9114) with QPACK (RFC 9204): what is on the streams of a connection, and a client
//! and a server over [`quic`](crate::quic). Requests are encoded once, replies counted but not
//! kept.
//!
//! A connection has a `Peer`, which reads the peer's unidirectional streams, and a reader for each
//! request stream: a client's `ReplyReader`, a server's [`RequestReader`]. They know nothing of
//! QUIC. No side uses a dynamic table or pushes replies, so that streams do not depend on each
//! other. [`frame`] and [`qpack`] serve both directions.

mod client;
mod error;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod message;
mod peer;
pub mod qpack;
mod server;
mod template;
#[cfg(test)]
mod tests;

pub use client::{Client, Event, STREAMS_MAX};
pub use error::{ConnectionError, Ended, ErrorCode, RequestReadError, StreamFailure};
pub use frame::Setting;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_http3, fuzz_qpack};
pub use message::{RequestPart, RequestReader};
pub use server::{Received, RequestRead, Server, ServerConnection, ServerEvent};
pub use template::{Template, WorkerTemplate};

pub use crate::fields::reply::{FailedCall, KnownHead, MalformedReply, Reply};
pub use crate::fields::request::{Request, RequestError};
