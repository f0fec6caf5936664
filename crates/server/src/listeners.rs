//! The protocols that the server speaks, where it listens, and the sockets for that.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use brunt_io::socket;

/// Ports that are tried, where the kernel chooses one that is to be free for TCP and UDP.
const PORTS_TRIED_MAX: u32 = 16;

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

/// The file of a Unix socket, which goes with the server.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody else may have removed it already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A listening socket per worker (several may be one and the same), those of UDP apart, and where
/// they listen.
pub(crate) struct Listeners {
    pub(crate) sockets: Vec<Arc<OwnedFd>>,
    pub(crate) datagrams: Vec<Arc<OwnedFd>>,
    pub(crate) address: ListenAddress,
}

impl Listeners {
    /// The file of a Unix socket.
    pub(crate) fn file(&self) -> Option<SocketFile> {
        match &self.address {
            ListenAddress::Unix(path) => Some(SocketFile(path.clone())),
            ListenAddress::Tcp(_) => None,
        }
    }
}

/// Listens for `workers` workers on an address, and `with_udp` for as many on the same port of UDP.
///
/// # Errors
///
/// As the kernel says.
pub(crate) fn listen(
    address: &ListenAddress,
    workers: u32,
    with_udp: bool,
) -> io::Result<Listeners> {
    let asked = match address {
        ListenAddress::Tcp(asked) => *asked,
        ListenAddress::Unix(path) => {
            let socket = Arc::new(listen_unix(path)?);
            return Ok(Listeners {
                sockets: (0..workers).map(|_| Arc::clone(&socket)).collect(),
                datagrams: Vec::new(),
                address: address.clone(),
            });
        }
    };
    let workers_of_udp = if with_udp { workers } else { 0 };
    let mut tries = 1;
    loop {
        let (sockets, chosen) = shared_port(asked, workers, socket::listen_tcp)?;
        match shared_port(chosen, workers_of_udp, socket::listen_udp) {
            // A port that the kernel chose is free for TCP alone.
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && asked.port() == 0
                    && tries < PORTS_TRIED_MAX =>
            {
                tries += 1;
            }
            datagrams => {
                return Ok(Listeners {
                    sockets,
                    datagrams: datagrams?.0,
                    address: ListenAddress::Tcp(chosen),
                });
            }
        }
    }
}

/// A socket per worker on one address, which `listen` makes; and that address.
fn shared_port(
    address: SocketAddr,
    workers: u32,
    listen: fn(SocketAddr, bool) -> io::Result<OwnedFd>,
) -> io::Result<(Vec<Arc<OwnedFd>>, SocketAddr)> {
    if workers == 0 {
        return Ok((Vec::new(), address));
    }
    let shares = workers > 1;
    if shares && address.port() != 0 {
        // Sharing would also let a second server in beside a first one, unnoticed.
        drop(listen(address, false)?);
    }
    let first = listen(address, shares)?;
    let address = socket::local_address(first.as_fd())?;
    let mut sockets = vec![Arc::new(first)];
    for _ in 1..workers {
        sockets.push(Arc::new(listen(address, true)?));
    }
    Ok((sockets, address))
}

fn listen_unix(path: &Path) -> io::Result<OwnedFd> {
    match socket::listen_unix(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
            std::fs::remove_file(path)?;
            socket::listen_unix(path)
        }
        outcome => outcome,
    }
}

/// Whether `path` is a socket that nobody listens on.
fn is_abandoned(path: &Path) -> bool {
    // Connecting to a regular file is refused too, and that is nobody's leftover.
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    is_socket
        && matches!(
            std::os::unix::net::UnixStream::connect(path),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused
        )
}

/// What a request comes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http1,
    Http2,
    Http3,
    /// Messages of WebSocket, each in the place of a request.
    WebSocket,
}

impl Protocol {
    /// Its code for an end without an error: of HTTP/2 (RFC 9113 section 7) but in HTTP/3 (RFC 9114
    /// section 8.1). WebSocket makes its own of the former.
    pub(crate) fn no_error(self) -> u32 {
        self.code(0, 0x100)
    }

    /// Its code for a fault of the server.
    pub(crate) fn internal_error(self) -> u32 {
        self.code(2, 0x102)
    }

    /// Its code for a request that was not processed.
    pub(crate) fn refused(self) -> u32 {
        self.code(7, 0x10b)
    }

    fn code(self, of_others: u32, of_http3: u32) -> u32 {
        if self == Self::Http3 {
            of_http3
        } else {
            of_others
        }
    }
}
