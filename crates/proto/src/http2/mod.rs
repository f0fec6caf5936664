//! HTTP/2 (RFC 9113) with HPACK (RFC 7541), the client's side: requests encoded once, many streams
//! on one connection, replies counted but not kept.
//!
//! [`frame`] and [`hpack`] serve both directions.

mod client;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
pub mod hpack;
mod template;

pub use client::{
    Client, ClientSettings, ConnectionError, Event, Progress, STREAMS_MAX, StreamFailure, Violation,
};
pub use frame::ErrorCode;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_hpack, fuzz_http2};
pub use template::Template;

pub use crate::fields::reply::{FailedCall, KnownHead, MalformedReply, Reply};
pub use crate::fields::request::{Request, RequestError};
