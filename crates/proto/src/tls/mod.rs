//! TLS 1.2 and 1.3 (RFC 5246, RFC 8446): clients and servers as values, on rustls.
//!
//! A [`Session`] is handed the peer's bytes and gives plain text and bytes to send. Between calls
//! it keeps nothing but keys and an incomplete record; what all sessions of a run share is prepared
//! once, as a [`ClientSide`] or a [`ServerSide`].

mod certificate;
mod client;
mod error;
mod fuzz;
mod names;
mod resumption;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod verifier;

pub use certificate::{CertificateFault, CertificateObjection, is_encrypted_key};
pub use client::{ClientOptions, ClientSide};
pub use error::{ConfigError, TlsError};
#[doc(hidden)]
pub use fuzz::fuzz_tls;
pub use names::{Version, cipher_suite_names, group_names};
pub use server::{ServerOptions, ServerSide};
pub use session::{Negotiated, Scratch, Session};
