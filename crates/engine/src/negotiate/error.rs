//! Why a run and its server cannot come to terms, in words that say what to change.

use std::fmt;
use std::io;

use brunt_io::tls_config::remedy;
use brunt_proto::http1::ReplyError;
use brunt_proto::http2::{ConnectionError, RequestError};
use brunt_proto::tls::{CertificateObjection, TlsError};
use brunt_proto::websocket;
use thiserror::Error;

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
         --sni, --tls-min, --tls-max, --tls-ciphers and --tls-groups"
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
    /// The server does not agree to WebSocket.
    #[error(
        "{server} does not speak WebSocket at this URL: {reason}{}",
        advice(reason)
    )]
    Upgrade {
        /// Host and port.
        server: String,
        /// Why.
        reason: websocket::ClientError,
    },
    /// The upgrade to WebSocket cannot be asked for.
    #[error(transparent)]
    Offer(#[from] websocket::OfferError),
    /// The connection was closed or lost before it could be used.
    #[error("the connection to {server} was lost during {step} ({reason}); is it the right port?")]
    Lost {
        /// Host and port.
        server: String,
        /// During what.
        step: Step,
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
        /// During what.
        step: Step,
        /// The limit of a connection attempt.
        limit_ms: u64,
    },
    /// HTTP/3 was asked for, and the handshake of QUIC fails.
    #[error("{server} does not speak HTTP/3 with brunt: {reason}")]
    NoQuic {
        /// Host and port.
        server: String,
        /// Why, of which a part may be the server's words.
        reason: String,
    },
    /// HTTP/3 was asked for, and nobody answers.
    #[error(
        "{server} did not answer over QUIC within {limit_ms} ms; does it speak HTTP/3 there, and \
         does UDP get through? A slow server needs a longer --connect-timeout"
    )]
    QuicTimeout {
        /// Host and port.
        server: String,
        /// The limit of a connection attempt.
        limit_ms: u64,
    },
    /// HTTP/2 was asked for, and the server has other protocols.
    #[error(
        "{server} does not offer HTTP/2 (ALPN: {alpn}); leave out --http2, and HTTP/1.1 is spoken"
    )]
    NoHttp2 {
        /// Host and port.
        server: String,
        /// What the server says of HTTP/2 in ALPN.
        alpn: &'static str,
    },
    /// HTTP/1.1 was asked for, and the server does not have it.
    #[error("{server} does not offer HTTP/1.1 (ALPN); leave out --http1")]
    NoHttp1 {
        /// Host and port.
        server: String,
    },
    /// HTTP/2 was asked for in clear text, and the server answers by something else.
    #[error(
        "{server} does not speak HTTP/2 in clear text ({instead}); leave out --http2, or use \
         https://"
    )]
    NoClearTextHttp2 {
        /// Host and port.
        server: String,
        /// What came.
        instead: Instead,
    },
    /// HTTP/2 was negotiated, and the server breaks its rules.
    #[error("{server} chose HTTP/2 and sends something else ({reason}); use --http1")]
    BrokenHttp2 {
        /// Host and port.
        server: String,
        /// What came.
        reason: ConnectionError,
    },
    /// The server takes no requests in HTTP/2.
    #[error(
        "{server} allows no requests in HTTP/2 (its SETTINGS_MAX_CONCURRENT_STREAMS is 0); use \
         --http1"
    )]
    NoStreams {
        /// Host and port.
        server: String,
    },
    /// Pipelining was asked for, and HTTP/2 is spoken.
    #[error(
        "--pipeline is for HTTP/1.1, and HTTP/2 is spoken with {server}; use --streams {depth}, \
         or --http1 with --pipeline {depth}"
    )]
    PipelineInHttp2 {
        /// Host and port.
        server: String,
        /// Asked for.
        depth: u32,
    },
    /// The request cannot be put into HTTP/2.
    #[error("the request cannot be sent in HTTP/2: {0}")]
    Request(#[from] RequestError),
}

/// A step of getting to know a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The TLS handshake.
    Tls,
    /// The exchange of SETTINGS (RFC 9113 section 3.4).
    Settings,
    /// The upgrade to WebSocket (RFC 6455 section 4).
    Upgrade,
    /// The handshake of QUIC (RFC 9001 section 4).
    Quic,
}

/// What to type where a server refuses an upgrade, if that can be told.
fn advice(reason: &websocket::ClientError) -> &'static str {
    let (status, location) = match reason {
        websocket::ClientError::Handshake(websocket::HandshakeError::NotHttp(
            ReplyError::TlsAlert,
        )) => return "; use wss:// in place of ws://",
        websocket::ClientError::Handshake(websocket::HandshakeError::Refused {
            status,
            location,
        }) => (status, location),
        _ => return "",
    };
    match status {
        300..=399 if location.is_some() => "; redirects are not followed: give that URL",
        400 => "; where the server speaks TLS, use wss:// in place of ws://",
        401 => "; give credentials with -u USER:PASSWORD, or with -H",
        403 => "; a server that asks where a page is from wants -H 'Origin: https://HOST'",
        _ => "",
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tls => "the TLS handshake",
            Self::Settings => "the exchange of HTTP/2 settings",
            Self::Upgrade => "the upgrade to WebSocket",
            Self::Quic => "the handshake of QUIC",
        })
    }
}

/// What came in place of HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// A reply in HTTP/1.
    Http1,
    /// The end of the connection.
    End,
    /// Something else than a reply or the end.
    Other(ConnectionError),
}

impl fmt::Display for Instead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http1 => formatter.write_str("it answers in HTTP/1.1"),
            Self::End => formatter.write_str("it closes the connection"),
            Self::Other(ConnectionError::NotHttp2) => {
                formatter.write_str("it sends something else")
            }
            Self::Other(error) => error.fmt(formatter),
        }
    }
}
