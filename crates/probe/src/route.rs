//! Which way packets to the server go: loopback, or which network interface.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use brunt_io::backend::Peer;

use crate::netlink;

/// The way to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A Unix socket.
    UnixSocket,
    /// The peer is on this machine.
    Loopback,
    /// A network interface, by its name.
    Interface(String),
    /// It could not be found out, for this reason.
    Unknown(String),
}

impl Way {
    /// To `peer`. Nothing is sent.
    pub(super) fn to(peer: &Peer) -> Self {
        let address = match peer {
            Peer::Unix(_) => return Self::UnixSocket,
            Peer::Tcp(address) | Peer::Udp(address) => address,
        };
        let (local, remote) = match ends(*address) {
            Ok(ends) => ends,
            Err(error) => return Self::Unknown(format!("no route to {}: {error}", address.ip())),
        };
        if remote.is_loopback() || local == remote {
            return Self::Loopback;
        }
        match netlink::interface_to(remote) {
            Ok(name) => Self::Interface(name),
            Err(error) => Self::Unknown(format!("the kernel names no route to {remote}: {error}")),
        }
    }
}

/// Whether `address` is one of this machine's, in this network namespace.
pub(super) fn is_own(address: IpAddr) -> bool {
    ends(SocketAddr::new(address, 9)).is_ok_and(|(local, remote)| local == remote)
        || address.to_canonical().is_loopback()
}

/// The addresses of the two ends of a connection to `peer`, as the kernel would choose them.
fn ends(peer: SocketAddr) -> std::io::Result<(IpAddr, IpAddr)> {
    let any: SocketAddr = if peer.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    // To connect a UDP socket is to look up the route.
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    Ok((
        socket.local_addr()?.ip().to_canonical(),
        // Not what was asked for: 0.0.0.0 means this machine.
        socket.peer_addr()?.ip().to_canonical(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_reached_by_loopback() {
        let tcp = |text: &str| Peer::Tcp(text.parse().expect("an address"));
        for peer in ["127.0.0.1:80", "127.9.9.9:80", "0.0.0.0:80"] {
            assert_eq!(Way::to(&tcp(peer)), Way::Loopback, "{peer}");
        }
        assert_eq!(Way::to(&Peer::Unix("/run/a".into())), Way::UnixSocket);
        for (text, own) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("192.0.2.255", false),
        ] {
            assert_eq!(is_own(text.parse().expect("an address")), own, "{text}");
        }
    }
}
