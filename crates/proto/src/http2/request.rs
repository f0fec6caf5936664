//! The parts of a request, and the rules for them.

use thiserror::Error;

use crate::http1;

/// The parts of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method token, case-sensitive (RFC 9110 section 9.1). Not `CONNECT`.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Host and, where it is not the scheme's default, port: `:authority` unless `headers` hold
    /// `Host`, which takes its place.
    pub authority: &'a str,
    /// Path and query, percent-encoded, without fragment; or `*` with the method `OPTIONS`.
    pub path: &'a str,
    /// The user's header fields, names and values, sent in this order, names in lower case, values
    /// without spaces around them.
    pub headers: &'a [(String, String)],
    /// The body, empty for none.
    pub body: &'a [u8],
}

/// Why a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// It breaks a rule of every version of HTTP.
    #[error(transparent)]
    Malformed(#[from] http1::RequestError),
    /// The scheme is neither `http` nor `https`.
    #[error("scheme {0:?} is neither http nor https")]
    Scheme(String),
    /// A header belongs to HTTP/1.1 connections and must not be sent (RFC 9113 section 8.2.2).
    #[error(
        "header {0:?} is about HTTP/1.1 connections and does not exist in HTTP/2; leave it out"
    )]
    ConnectionSpecific(String),
}
