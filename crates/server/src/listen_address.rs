//! Where the server listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// The path of a Unix stream socket. A socket left there by a server that is gone is replaced.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => path.display().fmt(formatter),
        }
    }
}
