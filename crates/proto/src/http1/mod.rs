//! HTTP/1.1 (RFC 9112): requests encoded once, replies framed and counted but not kept.

mod chunked;
mod head;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use head::MAX_HEADER_FIELDS;
pub use reply::{Progress, Reply, ReplyError, ReplyParser};
pub use request::{Request, RequestError};
