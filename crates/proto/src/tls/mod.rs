//! TLS 1.2 and 1.3 (RFC 5246, RFC 8446): clients and servers as values, on rustls.
//!
//! A [`Session`] takes the peer's bytes and gives plain text and bytes to send. Between calls
//! it keeps nothing but keys and an incomplete record; what all sessions of a run share is prepared
//! once, as a [`ClientSide`] or a [`ServerSide`].

mod error;
mod provider;
mod session;
mod sides;
#[cfg(test)]
mod tests;

pub use error::{CertificateFault, CertificateObjection, TlsError, is_encrypted_key};
pub use provider::{ConfigError, Version, cipher_suite_names, group_names};
pub use session::{Negotiated, Scratch, Session};
pub use sides::{ClientOptions, ClientSide, ServerOptions, ServerSide};

/// HTTP/2 in ALPN (RFC 9113 section 3.2).
pub const ALPN_HTTP2: &[u8] = b"h2";
/// HTTP/3 in ALPN (RFC 9114 section 3.1).
pub const ALPN_HTTP3: &[u8] = b"h3";
/// HTTP/1.1 in ALPN (RFC 7301 section 6).
pub const ALPN_HTTP1: &[u8] = b"http/1.1";
