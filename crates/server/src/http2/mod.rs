//! HTTP/2 (RFC 9113): one connection's side of the server, from the bytes of requests to the bytes
//! of answers.
//!
//! Streams do not wait for each other: a request counts as noticed when its last byte came, and
//! each answer takes its own time. What a client may not do ends its stream or its connection, as
//! the RFC says, so that a client that is tested here is also checked.

#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
pub(crate) mod reply;
mod session;
mod streams;
#[cfg(test)]
pub(crate) mod tests;

use std::num::{NonZeroU32, NonZeroU64};

use brunt_proto::http2::frame::PREFACE;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_http2;
pub(crate) use session::{End, Http2Session};

/// How the server speaks HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Options {
    /// Streams that a client may have in flight on one connection
    /// (SETTINGS_MAX_CONCURRENT_STREAMS). Streams beyond that are refused.
    pub streams_max: NonZeroU32,
    /// Requests that are processed on one connection; with the last one goes a GOAWAY, as with
    /// nginx's `keepalive_requests`. Absent: as many as come.
    pub requests_max: Option<NonZeroU64>,
    /// Bytes of a request's body that may come before the server gives room for more
    /// (SETTINGS_INITIAL_WINDOW_SIZE); at most 2^31 - 1. They are skipped at once, so this takes no
    /// memory.
    pub window_bytes: u32,
}

impl Http2Options {
    /// The default of `streams_max`.
    pub const STREAMS_MAX: NonZeroU32 = NonZeroU32::new(1_000).unwrap();
    /// The default of `window_bytes`.
    pub const WINDOW_BYTES: u32 = 1 << 20;
}

impl Default for Http2Options {
    fn default() -> Self {
        Self {
            streams_max: Self::STREAMS_MAX,
            requests_max: None,
            window_bytes: Self::WINDOW_BYTES,
        }
    }
}

/// Whether a connection that begins with these bytes, in two parts, speaks HTTP/2 by prior
/// knowledge (RFC 9113 section 3.3). Absent: not known yet.
pub(crate) fn is_preface(before: &[u8], bytes: &[u8]) -> Option<bool> {
    let start = before.iter().chain(bytes).take(PREFACE.len());
    let length = start.clone().count();
    let may_be = start.eq(&PREFACE[..length]);
    (!may_be || length == PREFACE.len()).then_some(may_be)
}
