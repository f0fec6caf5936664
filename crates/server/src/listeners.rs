//! The sockets that the server listens on.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brunt_io::socket;

use crate::listen_address::ListenAddress;

/// Ports that are tried, where the kernel chooses one that is to be free for TCP and UDP.
const PORTS_TRIED_MAX: u32 = 16;

/// The file of a Unix socket, which goes with the server.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody else may have removed it already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A listening socket per worker (several may be one and the same), and where they listen.
pub(crate) struct Listeners {
    pub(crate) sockets: Vec<Arc<OwnedFd>>,
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

/// Listens for `workers` workers on an address of TCP or of a Unix socket.
///
/// # Errors
///
/// As the kernel says.
pub(crate) fn listen(address: &ListenAddress, workers: u32) -> io::Result<Listeners> {
    match address {
        ListenAddress::Unix(path) => {
            let socket = Arc::new(listen_unix(path)?);
            let sockets = (0..workers).map(|_| Arc::clone(&socket)).collect();
            Ok(Listeners {
                sockets,
                address: address.clone(),
            })
        }
        ListenAddress::Tcp(address) => {
            let (sockets, address) = shared_port(*address, workers, socket::listen_tcp)?;
            Ok(Listeners {
                sockets,
                address: ListenAddress::Tcp(address),
            })
        }
    }
}

/// Listens for `workers` workers on an address, and for as many on the same port of UDP; gives the
/// sockets of UDP apart.
///
/// # Errors
///
/// As the kernel says.
pub(crate) fn listen_with_udp(
    address: SocketAddr,
    workers: u32,
) -> io::Result<(Listeners, Vec<Arc<OwnedFd>>)> {
    let mut tries = 1;
    loop {
        let (sockets, chosen) = shared_port(address, workers, socket::listen_tcp)?;
        match shared_port(chosen, workers, socket::listen_udp) {
            Ok((of_udp, _)) => {
                let address = ListenAddress::Tcp(chosen);
                return Ok((Listeners { sockets, address }, of_udp));
            }
            // A port that the kernel chose is free for TCP alone.
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && address.port() == 0
                    && tries < PORTS_TRIED_MAX =>
            {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A socket per worker on one address, which `listen` makes; and that address.
fn shared_port(
    address: SocketAddr,
    workers: u32,
    listen: fn(SocketAddr, bool) -> io::Result<OwnedFd>,
) -> io::Result<(Vec<Arc<OwnedFd>>, SocketAddr)> {
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
