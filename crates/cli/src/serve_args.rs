//! What was typed of `brunt serve`.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::serve_tcp_args::ServeTcpArguments;
use crate::values::{TlsVersionName, idle_timeout, listed_name, whole_u32, whole_u64};

/// The backend of the server, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeBackendName {
    /// io_uring where the kernel allows it, else epoll
    Auto,
    /// io_uring or nothing
    Uring,
    /// epoll
    Epoll,
}

#[derive(Debug, Args)]
#[command(after_help = serve_routes())]
pub(crate) struct ServeArguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(short, long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Listen on a Unix socket instead
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Worker threads [default: one per usable CPU]
    #[arg(short, long, value_name = "N", value_parser = whole_u32)]
    pub(crate) threads: Option<NonZeroU32>,
    /// Kernel interface
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) backend: ServeBackendName,
    /// Poll instead of sleeping while there are connections: delays are exact to about a
    /// microsecond, and each worker uses a whole CPU
    #[arg(long)]
    pub(crate) spin: bool,
    /// Most connections at a time; further ones wait to be accepted
    #[arg(long, value_name = "N", default_value = "100k", value_parser = whole_u32)]
    pub(crate) connections_max: NonZeroU32,
    /// Close a connection after this time without progress, of its client or of an answer: idle,
    /// with half a head, or not reading. A body or a message has to come at 500 bytes per second,
    /// on average over this time. An answer that is due later is waited for; 0: no limit
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = idle_timeout)]
    pub(crate) idle_timeout: u64,
    /// Bytes of input that may wait in memory, all connections together: half of them shared
    /// evenly, half for those that have more, a 16th of what is left and 1 MiB at most each; one
    /// that wants more is closed [default: an eighth of the memory that is available]
    #[arg(long, value_name = "N", value_parser = whole_u64)]
    pub(crate) input_max: Option<NonZeroU64>,
    /// Bytes of output that may be in memory, all connections together, with what is known of
    /// streams of HTTP/2 that are not answered yet. Shared as those of --input-max; a connection
    /// for which little is left sends less at a time, and one that wants more is closed [default:
    /// an eighth of the memory that is available]
    #[arg(long, value_name = "N", value_parser = whole_u64)]
    pub(crate) output_max: Option<NonZeroU64>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) tcp: ServeTcpArguments,
    #[command(flatten)]
    pub(crate) protocol: ServeProtocolArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS, HTTP/2 and HTTP/3")]
#[command(group = ArgGroup::new("secure").args(["tls", "http3"]).multiple(true))]
pub(crate) struct ServeProtocolArguments {
    /// Speak TLS, by default with a certificate made for localhost, 127.0.0.1, ::1 and the address
    /// of --listen
    #[arg(long)]
    pub(crate) tls: bool,
    /// PEM file of the certificate to show, followed by those that lead to its root
    #[arg(long, value_name = "FILE", requires = "secure")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of the private key that goes with --cert [default: the same file]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Write the certificate to this file, in PEM: for --cacert of clients
    #[arg(long, value_name = "FILE", requires = "secure")]
    pub(crate) cert_out: Option<PathBuf>,
    /// Ask clients for a certificate, and trust those that lead to a root in this PEM file
    #[arg(long, value_name = "FILE", requires = "secure")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Application protocols to offer (ALPN), preferred first, with commas between. Which one is
    /// spoken follows from a connection's first bytes in any case
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "h2,http/1.1",
        value_parser = listed_name,
        requires = "secure"
    )]
    pub(crate) alpn: Vec<String>,
    /// Oldest version of TLS to speak [default: 1.2]
    #[arg(long, value_name = "VERSION", requires = "secure")]
    pub(crate) tls_min: Option<TlsVersionName>,
    /// Newest version of TLS to speak [default: 1.3]
    #[arg(long, value_name = "VERSION", requires = "secure")]
    pub(crate) tls_max: Option<TlsVersionName>,
    /// Let no client resume the session of an earlier connection
    #[arg(long, requires = "secure")]
    pub(crate) no_tls_resume: bool,
    /// Speak TLS, and HTTP/3, too: over UDP, on the port of --listen, with as many threads of its
    /// own
    #[arg(long, conflicts_with = "unix_socket")]
    pub(crate) http3: bool,
    /// Streams of HTTP/2 or HTTP/3 that a client may have in flight on a connection; further ones
    /// are refused
    #[arg(long, value_name = "N", default_value = "1k", value_parser = whole_u32)]
    pub(crate) h2_streams: NonZeroU32,
    /// Requests of HTTP/2 or HTTP/3 on a connection, the last one with a GOAWAY; later ones are
    /// ignored [default: no limit]
    #[arg(long, value_name = "N", value_parser = whole_u64)]
    pub(crate) h2_requests: Option<NonZeroU64>,
}

fn serve_routes() -> String {
    let mut text = "Routes:\n".to_owned();
    for route in brunt_server::ROUTES.lines() {
        text.push_str(&format!("  {route}\n"));
    }
    text
}
