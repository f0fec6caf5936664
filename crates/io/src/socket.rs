//! Sockets: how client sockets and listening sockets are made and set up.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::backend::Peer;

/// Connections that may wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

/// Whether operations on a socket return at once when they would block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// They wait: io_uring does the waiting, and would fail instead on a non-blocking socket.
    Yes,
    /// They fail with EAGAIN.
    No,
}

/// Makes an unconnected stream socket for `peer`, bound to `source` where given.
pub fn client(peer: &Peer, source: Option<SocketAddr>, blocking: Blocking) -> io::Result<Socket> {
    let (domain, protocol) = match peer {
        Peer::Tcp(address) => (Domain::for_address(*address), Some(Protocol::TCP)),
        Peer::Unix(_) => (Domain::UNIX, None),
    };
    let kind = Type::STREAM.cloexec();
    let kind = if blocking == Blocking::No {
        kind.nonblocking()
    } else {
        kind
    };
    let socket = Socket::new_raw(domain, kind, protocol)?;
    if matches!(peer, Peer::Tcp(_)) {
        socket.set_tcp_nodelay(true)?;
        if let Some(source) = source {
            bind_address_no_port(&socket)?;
            socket.bind(&source.into())?;
        }
    }
    Ok(socket)
}

/// The kernel's form of the peer's address.
pub fn address(peer: &Peer) -> io::Result<SockAddr> {
    match peer {
        Peer::Tcp(address) => Ok((*address).into()),
        Peer::Unix(path) => SockAddr::unix(path),
    }
}

/// Makes a non-blocking listening TCP socket. With `shared_port`, several sockets may listen on
/// one address and the kernel spreads connections over them (SO_REUSEPORT).
///
/// # Errors
///
/// The address is in use, not local, or not permitted.
pub fn listen_tcp(address: SocketAddr, shared_port: bool) -> io::Result<OwnedFd> {
    let kind = Type::STREAM.cloexec().nonblocking();
    let socket = Socket::new_raw(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared_port)?;
    // Accepted sockets inherit it.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Makes a non-blocking listening Unix socket at `path`, which must not exist.
///
/// # Errors
///
/// The path exists, is too long, or cannot be written.
pub fn listen_unix(path: &std::path::Path) -> io::Result<OwnedFd> {
    let kind = Type::STREAM.cloexec().nonblocking();
    let socket = Socket::new_raw(Domain::UNIX, kind, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The address that a TCP listening socket is bound to.
///
/// # Errors
///
/// The socket is not a TCP socket.
pub fn local_address(socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    let address = rustix::net::getsockname(socket)?;
    SocketAddr::try_from(address).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Whether a socket is one of TCP.
pub(crate) fn is_tcp(socket: BorrowedFd<'_>) -> bool {
    let domain = rustix::net::sockopt::socket_domain(socket);
    domain.is_ok_and(|domain| domain != rustix::net::AddressFamily::UNIX)
}

/// Takes bytes that wait in a TCP socket, `bytes` of them at most, without looking at them; gives
/// their number, 0 at the end. The kernel copies none of them (tcp(7), MSG_TRUNC).
pub fn discard(socket: BorrowedFd<'_>, bytes: usize) -> Result<usize, Errno> {
    let none = std::ptr::null_mut();
    // SAFETY: with this flag a TCP socket writes nothing to the address, which is null; another
    // kind of socket fails with EFAULT.
    let count = unsafe { libc::recv(socket.as_raw_fd(), none, bytes, libc::MSG_TRUNC) };
    usize::try_from(count).map_err(|_| last_errno())
}

/// Why the latest system call of this thread failed.
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Whether a socket to `peer` can have receive stamps. Those of a Unix socket come without, and
/// room for control messages would be room for descriptors that the peer sends.
pub fn has_receive_stamps(peer: &Peer) -> bool {
    matches!(peer, Peer::Tcp(_))
}

/// Has the kernel give the time at which received bytes reached it (SO_TIMESTAMPNS), where the
/// kind of socket knows it; see `receive_stamps`.
pub fn enable_receive_stamps(socket: &Socket) -> io::Result<()> {
    enable(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)
}

/// Lets the kernel choose the port at `connect`, when it knows the peer: then a port is taken per
/// pair of addresses and not per source address (IP_BIND_ADDRESS_NO_PORT).
fn bind_address_no_port(socket: &Socket) -> io::Result<()> {
    enable(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)
}

/// Sets an option that is on or off.
fn enable(socket: &Socket, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let enable: libc::c_int = 1;
    // SAFETY: the pointer and length describe `enable`, which outlives the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(&enable).cast(),
            size_of_val(&enable) as libc::socklen_t,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
