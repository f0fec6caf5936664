//! HTTP/2 (RFC 9113) with HPACK (RFC 7541), the client's side: requests encoded once, many streams
//! on one connection, replies counted but not kept.
//!
//! [`frame`] and [`hpack`] serve both directions.

mod client;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod head;
pub mod hpack;
mod reply;
mod template;

pub use client::{Client, ClientSettings, STREAMS_MAX};
pub use frame::ErrorCode;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_hpack, fuzz_http2};
pub use head::KnownHead;
pub use reply::{ConnectionError, Event, Progress, StreamFailure, Violation};
pub use template::Template;

pub use crate::fields::reply::{FailedCall, MalformedReply, Reply};
pub use crate::fields::request::{Request, RequestError};
