//! HTTP/1.1 (RFC 9112): requests encoded once, replies framed and counted but not kept.

mod chunked;
mod error;
mod head;
mod known_head;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use error::ReplyError;
pub use head::MAX_HEADER_FIELDS;
pub use known_head::KnownHead;
pub use reply::{Progress, Reply, ReplyParser};
pub use request::{Request, RequestError};
