//! Sockets: how client sockets and listening sockets are made and set up.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use brunt_load::SocketOptions;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use thiserror::Error;

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

/// Makes an unconnected socket for `peer`, bound to `source` where given. TCP has `options`; UDP
/// has those of its buffers, and says of what it receives all that is known.
pub fn client(
    peer: &Peer,
    source: Option<SocketAddr>,
    blocking: Blocking,
    options: &SocketOptions,
) -> io::Result<Socket> {
    let (domain, kind, protocol) = match peer {
        Peer::Tcp(to) => (Domain::for_address(*to), Type::STREAM, Some(Protocol::TCP)),
        Peer::Udp(to) => (Domain::for_address(*to), Type::DGRAM, Some(Protocol::UDP)),
        Peer::Unix(_) => (Domain::UNIX, Type::STREAM, None),
    };
    let kind = kind.cloexec();
    let kind = if blocking == Blocking::No {
        kind.nonblocking()
    } else {
        kind
    };
    let socket = Socket::new_raw(domain, kind, protocol)?;
    match peer {
        Peer::Tcp(_) => set_options(&socket, options).map_err(|(_, error)| error)?,
        Peer::Udp(to) => {
            set_buffers(&socket, options).map_err(|(_, error)| error)?;
            set_datagram_options(&socket, *to)?;
        }
        Peer::Unix(_) => return Ok(socket),
    }
    if let Some(source) = source {
        enable(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)?;
        socket.bind(&source.into())?;
    }
    Ok(socket)
}

/// Has a UDP socket say how marks, borders and drops are, and fragment nothing: whoever sends over
/// it finds out what the path carries (ip(7), IP_PMTUDISC_PROBE). Kernels without UDP_GRO (before
/// 5.0) give datagrams one by one.
pub(crate) fn set_datagram_options(socket: &Socket, to: SocketAddr) -> io::Result<()> {
    let probe: libc::c_int = libc::IP_PMTUDISC_PROBE;
    if to.is_ipv4() {
        enable(socket, libc::IPPROTO_IP, libc::IP_RECVTOS)?;
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, probe)?;
    } else {
        enable(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS)?;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe)?;
    }
    enable(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL)?;
    let _ = enable(socket, libc::SOL_UDP, libc::UDP_GRO);
    Ok(())
}

/// Why an option of a socket cannot be had.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SocketOptionError(String);

/// An option that cannot be set, as typed, with the kernel's reason.
type Refused = (&'static str, io::Error);

fn refused(option: &'static str) -> impl FnOnce(io::Error) -> Refused {
    move |error| (option, error)
}

const CONGESTION: &str = "--congestion";
/// The names of the congestion controls that the kernel has.
const CONGESTIONS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Whether a socket to `target` can have these options, all of them in full.
///
/// # Errors
///
/// The kernel refuses one, or gives less.
pub fn check_options(target: SocketAddr, options: &SocketOptions) -> Result<(), SocketOptionError> {
    let buffers = try_options(target, options).map_err(|(option, reason)| {
        SocketOptionError(match &options.congestion {
            Some(name) if option == CONGESTION => {
                let names = std::fs::read_to_string(CONGESTIONS);
                let names = names.unwrap_or_else(|_| "none that it names".to_owned());
                format!(
                    "{option} {name}: {reason}; this kernel has {}",
                    names.trim()
                )
            }
            _ => format!("cannot set {option}: {reason}"),
        })
    })?;
    let asked = [
        ("--sndbuf", options.send_buffer_bytes, "net.core.wmem_max"),
        (
            "--rcvbuf",
            options.receive_buffer_bytes,
            "net.core.rmem_max",
        ),
    ];
    for ((option, asked, setting), bytes) in asked.into_iter().zip(buffers) {
        // The kernel doubles what is asked for, to have room for its own (socket(7), SO_SNDBUF),
        // and cuts it to a limit without a word.
        let given = bytes / 2;
        if let Some(asked) = asked.filter(|asked| given < asked.get() as usize) {
            return Err(SocketOptionError(format!(
                "{option} asks for {asked} bytes and the kernel gives {given}; raise it with \
                 `sysctl -w {setting}={asked}`, or ask for less"
            )));
        }
    }
    Ok(())
}

/// Sets the options of a socket that is not used further; gives the sizes of its buffers.
fn try_options(target: SocketAddr, options: &SocketOptions) -> Result<[usize; 2], Refused> {
    let domain = Domain::for_address(target);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).map_err(refused("them"))?;
    set_options(&socket, options)?;
    Ok([
        socket.send_buffer_size().map_err(refused("--sndbuf"))?,
        socket.recv_buffer_size().map_err(refused("--rcvbuf"))?,
    ])
}

fn set_buffers(socket: &Socket, options: &SocketOptions) -> Result<(), Refused> {
    if let Some(bytes) = options.send_buffer_bytes {
        let set = socket.set_send_buffer_size(bytes.get() as usize);
        set.map_err(refused("--sndbuf"))?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        let set = socket.set_recv_buffer_size(bytes.get() as usize);
        set.map_err(refused("--rcvbuf"))?;
    }
    Ok(())
}

/// Sets the options of a TCP socket that is not connected yet: the window scale and the segment
/// size are agreed on with the connection.
fn set_options(socket: &Socket, options: &SocketOptions) -> Result<(), Refused> {
    let nodelay = socket.set_tcp_nodelay(options.is_nodelay);
    // Urgent bytes are received like all others (RFC 6093 section 6), and counted.
    let inline = nodelay.and_then(|()| socket.set_out_of_band_inline(true));
    inline.map_err(refused("them"))?;
    set_buffers(socket, options)?;
    if let Some(bytes) = options.segment_bytes {
        set_bytes(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes).map_err(refused("--mss"))?;
    }
    if let Some(name) = &options.congestion {
        let set = rustix::net::sockopt::set_tcp_congestion(socket, name);
        set.map_err(|errno| (CONGESTION, errno.into()))?;
    }
    if let Some(bytes_per_s) = options.paced_bytes_per_s {
        // TCP itself paces what it sends (since Linux 4.13), or the queue discipline `fq` where the
        // route has it.
        let (option, bytes_per_s) = (libc::SO_MAX_PACING_RATE, bytes_per_s.get());
        set(socket, libc::SOL_SOCKET, option, bytes_per_s).map_err(refused("--bandwidth"))?;
    }
    if let Some(bytes) = options.receive_bytes_min {
        let set = set_bytes(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
        set.map_err(refused("them"))?;
    }
    Ok(())
}

/// An option that takes a number of bytes.
fn set_bytes(socket: &Socket, level: i32, option: i32, bytes: NonZeroU32) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes.get()).map_err(|_| io::ErrorKind::InvalidInput)?;
    set(socket, level, option, bytes)
}

/// The kernel's form of the peer's address.
pub fn address(peer: &Peer) -> io::Result<SockAddr> {
    match peer {
        Peer::Tcp(address) | Peer::Udp(address) => Ok((*address).into()),
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

/// Bytes that a UDP socket of many clients asks for, of what it has received and not yet taken; the
/// kernel cuts it to `net.core.rmem_max`.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Makes a UDP socket for a [`DatagramListener`](crate::listener::DatagramListener). With
/// `shared_port`, several sockets may have one address and the kernel spreads clients over them
/// (SO_REUSEPORT).
///
/// # Errors
///
/// The address is in use, not local, or not permitted.
pub fn listen_udp(address: SocketAddr, shared_port: bool) -> io::Result<OwnedFd> {
    let kind = Type::DGRAM.cloexec();
    let socket = Socket::new_raw(Domain::for_address(address), kind, Some(Protocol::UDP))?;
    socket.set_reuse_port(shared_port)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    set_datagram_options(&socket, address)?;
    socket.bind(&address.into())?;
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

/// Has the kernel give the time at which bytes received from `peer` reached it (SO_TIMESTAMPNS);
/// see `receive_stamps`. Gives whether it does. Bytes of a Unix socket come without, and room for
/// control messages would be room for descriptors that the peer sends. Emulators lack the option.
pub fn enable_receive_stamps(socket: &Socket, peer: &Peer) -> io::Result<bool> {
    if matches!(peer, Peer::Unix(_)) {
        return Ok(false);
    }
    match enable(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(false),
        outcome => outcome.map(|()| true),
    }
}
/// Sets an option that is on or off.
fn enable(socket: &Socket, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    set(socket, level, option, on)
}

/// Sets an option to a value of the type that it has.
fn set<T: Copy>(
    socket: &Socket,
    level: libc::c_int,
    option: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which outlives the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(&value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    fn loopback() -> SocketAddr {
        ([127, 0, 0, 1], 9).into()
    }

    #[test]
    fn options_reach_the_socket() {
        let options = SocketOptions {
            is_nodelay: false,
            send_buffer_bytes: NonZeroU32::new(20_000),
            receive_buffer_bytes: NonZeroU32::new(30_000),
            segment_bytes: NonZeroU32::new(1_000),
            congestion: Some("reno".to_owned()),
            paced_bytes_per_s: NonZeroU64::new(5_000_000_000),
            receive_bytes_min: NonZeroU32::new(7_000),
        };
        check_options(loopback(), &options).expect("the kernel has them");
        let socket = client(&Peer::Tcp(loopback()), None, Blocking::Yes, &options);
        let socket = socket.expect("a socket");
        assert!(!socket.tcp_nodelay().expect("it says"));
        assert_eq!(socket.send_buffer_size().expect("it says"), 40_000);
        assert_eq!(socket.recv_buffer_size().expect("it says"), 60_000);
        let congestion = rustix::net::sockopt::tcp_congestion(&socket).expect("it says");
        assert_eq!(congestion, "reno");
        let mut rate = 0_u64;
        let mut length = size_of::<u64>() as libc::socklen_t;
        // SAFETY: the pointer and length describe `rate`, which outlives the call.
        let outcome = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                std::ptr::from_mut(&mut rate).cast(),
                &mut length,
            )
        };
        assert_eq!((outcome, rate), (0, 5_000_000_000));
    }

    #[test]
    fn urgent_bytes_are_received_in_their_place() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("it says");
        let options = SocketOptions::default();
        let socket = client(&Peer::Tcp(address), None, Blocking::Yes, &options);
        let mut socket = socket.expect("a socket");
        socket.connect(&address.into()).expect("it listens");
        let (peer, _) = listener.accept().expect("a connection");
        let mut peer = Socket::from(peer);
        for byte in [b"1", b"2"] {
            peer.write_all(b"in order").expect("there is room");
            peer.send_out_of_band(byte).expect("there is room");
        }
        drop(peer);
        let mut received = String::new();
        socket.read_to_string(&mut received).expect("all of it");
        assert_eq!(received, "in order1in order2");
    }

    #[test]
    fn what_the_kernel_does_not_give_in_full_is_refused() {
        let huge = SocketOptions {
            send_buffer_bytes: NonZeroU32::new(i32::MAX as u32),
            ..SocketOptions::default()
        };
        let refusal = check_options(loopback(), &huge).expect_err("no kernel gives that");
        assert!(
            refusal.to_string().contains("net.core.wmem_max"),
            "{refusal}"
        );
        let unknown = SocketOptions {
            congestion: Some("nosuch".to_owned()),
            ..SocketOptions::default()
        };
        let refusal = check_options(loopback(), &unknown)
            .expect_err("it has no such")
            .to_string();
        assert!(
            refusal.contains("nosuch") && refusal.contains("reno"),
            "{refusal}"
        );
    }
}
