//! Why a run and its server cannot come to terms, in words that say what to change.

use std::io;

use brunt_io::tls_config::remedy;
use brunt_proto::tls::{CertificateObjection, TlsError};
use brunt_record::Protocol;
use thiserror::Error;

use crate::protocol::ProtocolError;

/// Why the run and the server cannot come to terms.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NegotiateError {
    /// The server's certificate does not pass.
    #[error("{server} is not trusted: the certificate {reason}; {}", remedy(reason.fault))]
    Certificate {
        /// Host and port.
        server: String,
        /// What is wrong with it.
        reason: CertificateObjection,
    },
    /// The TLS handshake failed otherwise.
    #[error(
        "no TLS session with {server}: {reason}; what is offered can be changed with --cert, \
         --sni, --tls-min and --tls-max"
    )]
    Handshake {
        /// Host and port.
        server: String,
        /// An alert, or what cannot be negotiated.
        reason: TlsError,
    },
    /// An https URL, and a server that answers in clear text.
    #[error("{server} does not speak TLS; use http:// in place of https://")]
    NotTls {
        /// Host and port.
        server: String,
    },
    /// An http URL, and a server that answers as one of TLS does.
    #[error("{server} speaks TLS; use https:// in place of http://")]
    IsTls {
        /// Host and port.
        server: String,
    },
    /// The connection was closed or lost before it could be used.
    #[error("the connection to {server} was lost during {step} ({reason}); is it the right port?")]
    Lost {
        /// Host and port.
        server: String,
        /// During what, in words.
        step: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// The server takes too long.
    #[error(
        "{server} did not complete {step} within {limit_ms} ms; is it the right port? A slow \
         server needs a longer --connect-timeout"
    )]
    Timeout {
        /// Host and port.
        server: String,
        /// During what, in words.
        step: &'static str,
        /// The limit of a connection attempt.
        limit_ms: u64,
    },
    /// A version of HTTP was asked for, and the server does not have it.
    #[error(
        "{server} does not offer {} ({}); leave out {}{}",
        protocol.name,
        said(*protocol, *has_chosen_none),
        protocol.version_option.unwrap_or_default(),
        instead(*protocol)
    )]
    NotOffered {
        /// Host and port.
        server: String,
        /// What was asked for.
        protocol: Protocol,
        /// The server chose no protocol, rather than to refuse this one.
        has_chosen_none: bool,
    },
    /// Pipelining was asked for, and a protocol is spoken that has streams.
    #[error(
        "--pipeline is for HTTP/1.1, and {name} is spoken with {server}; use {option} {depth}, or \
         --http1 with --pipeline {depth}",
        name = protocol.name,
        option = protocol.depth.option
    )]
    Pipeline {
        /// Host and port.
        server: String,
        /// What is spoken.
        protocol: Protocol,
        /// Asked for.
        depth: u32,
    },
    /// What only this protocol can fail at, as it says it.
    #[error(transparent)]
    Protocol(ProtocolError),
}

/// What a server says in ALPN of a version of HTTP that it does not have.
fn said(protocol: Protocol, has_chosen_none: bool) -> String {
    match protocol.alpn.filter(|_| protocol.needs_alpn) {
        None => "ALPN".to_owned(),
        Some(_) if has_chosen_none => "ALPN: it chose none".to_owned(),
        Some(name) => format!("ALPN: it refuses {name}"),
    }
}

/// What is spoken with a server that does not name this version of HTTP.
fn instead(protocol: Protocol) -> &'static str {
    if protocol.needs_alpn {
        ", and HTTP/1.1 is spoken"
    } else {
        ""
    }
}
