//! Options of the protocol: HTTP's versions, and TLS.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

use crate::values::{TlsVersionName, server_name, whole_u32};

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS, HTTP/2 and HTTP/3")]
pub(crate) struct ProtocolArguments {
    /// Speak HTTP/1.1 [default: over TLS what the server chooses (ALPN), in clear text HTTP/1.1]
    #[arg(long, conflicts_with_all = ["http2", "http3", "streams"])]
    pub(crate) http1: bool,
    /// Speak HTTP/2; in clear text without asking whether the server does (prior knowledge)
    #[arg(long, conflicts_with = "pipeline")]
    pub(crate) http2: bool,
    /// Speak HTTP/3, over UDP, without asking whether the server does (prior knowledge); without a
    /// URL the built-in server does
    #[arg(long, conflicts_with_all = ["http2", "pipeline", "raw", "unix_socket"])]
    pub(crate) http3: bool,
    /// Requests in flight per connection in HTTP/2 and HTTP/3; the server may allow fewer
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = whole_u32)]
    pub(crate) streams: Option<NonZeroU32>,
    /// Server name to ask for (SNI) and to verify [default: the URL's host]
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) sni: Option<String>,
    /// PEM file of the roots to trust [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of the client's certificate, followed by those that lead to its root
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of the private key that goes with --cert [default: the same file]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Accept any certificate of the server
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Oldest version of TLS to offer [default: 1.2]
    #[arg(long, value_name = "VERSION")]
    pub(crate) tls_min: Option<TlsVersionName>,
    /// Newest version of TLS to offer [default: 1.3]
    #[arg(long, value_name = "VERSION")]
    pub(crate) tls_max: Option<TlsVersionName>,
    /// Let a connection resume the session of an earlier one [default: each makes a full
    /// handshake]
    #[arg(long, conflicts_with = "http3")]
    pub(crate) tls_resume: bool,
}
