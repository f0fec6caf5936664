//! What a server on this machine received on all of its connections while the window lasted, those
//! of brunt and of others.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use brunt_io::backend::Peer;
use brunt_record::ServerConnections;

use crate::netlink::{FAMILIES, Listed, TcpSocket, sockets_at};
use crate::route::is_own;

/// With more sockets than this at the server's port they are not counted: a reading takes some
/// 1.5 µs for each.
const SOCKETS_MAX: usize = 20_000;
/// The evidence's name for it.
const FIELD: &str = "server_connections";

/// Reads the connections at the server's port, at both edges of the window.
#[derive(Debug)]
pub(crate) struct ConnectionsReader {
    /// The server's address, or why its connections cannot be read.
    address: Result<SocketAddr, String>,
    /// Most connections that brunt itself has.
    own_max: usize,
    first: Option<Result<ConnectionsReading, String>>,
}

/// The connections at one instant, in the order of the kernel's names for them.
#[derive(Debug)]
struct ConnectionsReading {
    at_ns: u64,
    connections: Vec<ReceivedCounts>,
}

/// What one connection has received.
#[derive(Clone, Copy, Debug)]
struct ReceivedCounts {
    /// The kernel's name for it.
    cookie: u64,
    bytes: u64,
    segments: u64,
}

impl ConnectionsReading {
    fn find(&self, cookie: u64) -> Option<&ReceivedCounts> {
        let found = self
            .connections
            .binary_search_by_key(&cookie, |connection| connection.cookie);
        found.ok().map(|index| &self.connections[index])
    }
}

impl ConnectionsReader {
    pub(crate) fn new(peer: &Peer, own_max: u64) -> Self {
        let address = match peer {
            Peer::Unix(_) => Err("connections at Unix sockets are not counted".to_owned()),
            Peer::Udp(_) => Err("what is sent over UDP is not counted per connection".to_owned()),
            Peer::Tcp(address) if is_own(address.ip()) => Ok(*address),
            Peer::Tcp(_) => Err("the server is on another machine".to_owned()),
        };
        Self {
            address,
            own_max: usize::try_from(own_max).unwrap_or(usize::MAX),
            first: None,
        }
    }

    pub(crate) fn begin(&mut self, now_ns: u64) {
        let read = |&address: &SocketAddr| read(address, now_ns);
        self.first = self.address.as_ref().ok().map(read);
    }

    pub(crate) fn end(
        self,
        now_ns: u64,
        missing: &mut BTreeMap<String, String>,
    ) -> Option<ServerConnections> {
        let counted = self.address.and_then(|address| {
            let first = self
                .first
                .unwrap_or_else(|| Err("no window began".to_owned()))?;
            let mut last = read(address, now_ns)?;
            // The kernel lists one socket after the other, while connections come and go: what it
            // lists twice was open all the while in between, together with all others of these.
            // As many as brunt may have are no others' even so.
            if last.connections.len() > self.own_max {
                let again = read(address, now_ns)?;
                last.connections
                    .retain(|connection| again.find(connection.cookie).is_some());
            }
            Ok(counted(&first, &last, self.own_max))
        });
        counted
            .map_err(|reason| missing.insert(FIELD.to_owned(), reason))
            .ok()
    }
}

fn read(address: SocketAddr, at_ns: u64) -> Result<ConnectionsReading, String> {
    let of_port = |listed, families: &[_], each: &mut dyn FnMut(TcpSocket)| {
        sockets_at(address.port(), listed, families, SOCKETS_MAX, each)
            .map_err(|error| format!("the kernel does not list the server's connections: {error}"))
    };
    let mut listeners = Vec::new();
    let mut families = Vec::new();
    of_port(Listed::Listening, &FAMILIES, &mut |socket| {
        listeners.push(socket.local);
        families.push(socket.family);
    })?;
    // A connection is of its listener's family.
    families.dedup();
    let server = Server::new(listeners, address.ip())?;
    let mut connections = Vec::new();
    of_port(Listed::Connections, &families, &mut |socket| {
        if server.has(&socket.local) {
            connections.push(ReceivedCounts {
                cookie: socket.cookie,
                bytes: socket.bytes_received,
                segments: socket.segments_received,
            });
        }
    })?;
    connections.sort_unstable_by_key(|connection| connection.cookie);
    connections.shrink_to_fit();
    Ok(ConnectionsReading { at_ns, connections })
}

/// The server that is loaded, among all that listen at its port: two may share a port, each at an
/// address of its own.
#[derive(Debug)]
struct Server {
    ip: IpAddr,
    listeners: Vec<IpAddr>,
}

impl Server {
    fn new(listeners: Vec<IpAddr>, ip: IpAddr) -> Result<Self, String> {
        // To connect to no address in particular is to connect to this machine.
        let ip = match ip.to_canonical() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        if !listeners.contains(&ip) && !listeners.iter().any(IpAddr::is_unspecified) {
            return Err(
                "no socket of this network namespace listens at the server's port".to_owned(),
            );
        }
        Ok(Self { ip, listeners })
    }

    /// Whether a connection at this address of the port is one of the server's.
    fn has(&self, local: &IpAddr) -> bool {
        let has_own = |ip: &IpAddr| self.listeners.contains(ip);
        *local == self.ip || (!has_own(&self.ip) && !has_own(local))
    }
}

/// What was received between two readings. Of a connection that ended in between, nothing is known.
/// Brunt has `own_max` of them at most.
fn counted(
    first: &ConnectionsReading,
    last: &ConnectionsReading,
    own_max: usize,
) -> ServerConnections {
    let mut bytes_received = 0_u64;
    let mut segments: Vec<u64> = Vec::with_capacity(last.connections.len());
    for now in &last.connections {
        let before = first.find(now.cookie);
        let rise = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0));
        let bytes = rise(now.bytes, before.map(|before| before.bytes));
        bytes_received = bytes_received.saturating_add(bytes);
        segments.push(rise(now.segments, before.map(|before| before.segments)));
    }
    segments.sort_unstable();
    let sum = |segments: &[u64]| segments.iter().sum();
    ServerConnections {
        interval_ns: last.at_ns.saturating_sub(first.at_ns),
        connections: segments.len() as u64,
        bytes_received,
        segments_received: sum(&segments),
        segments_received_beyond: sum(&segments[..segments.len().saturating_sub(own_max)]),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A connection and the server's end of it, which has read what was sent.
    fn connected(listener: &TcpListener, address: SocketAddr) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(address).unwrap();
        let (server, _) = listener.accept().unwrap();
        (client, server)
    }

    fn send((client, server): &mut (TcpStream, TcpStream), text: &[u8]) {
        client.write_all(text).unwrap();
        let mut got = vec![0; text.len()];
        server.read_exact(&mut got).unwrap();
    }

    #[test]
    fn all_that_the_server_receives_is_counted() {
        // The server's socket, and the address that is loaded: a socket of IPv6 may take IPv4.
        for (bound, loaded) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("0.0.0.0:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
            ("[::]:0", "127.0.0.1"),
        ] {
            let listener = TcpListener::bind(bound).unwrap();
            let port = listener.local_addr().unwrap().port();
            let address = SocketAddr::new(loaded.parse().unwrap(), port);
            let mut ours = connected(&listener, address);
            let mut others = connected(&listener, address);
            send(&mut ours, b"before the window");
            let mut reader = ConnectionsReader::new(&Peer::Tcp(address), 1);
            reader.begin(1_000);
            send(&mut ours, b"ours");
            send(&mut others, b"of somebody else");
            let mut late = connected(&listener, address);
            send(&mut late, b"late");
            send(&mut late, b"later");
            let gone = connected(&listener, address);
            drop(gone);
            let mut missing = BTreeMap::new();
            let found = reader.end(5_000, &mut missing);
            let expected = ServerConnections {
                interval_ns: 4_000,
                connections: 3,
                bytes_received: 29,
                segments_received: 4,
                // Were brunt's the one with two.
                segments_received_beyond: 2,
            };
            assert_eq!((found, missing.len()), (Some(expected), 0), "{bound}");
        }
    }

    #[test]
    fn what_cannot_be_counted_says_why() {
        let unused = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        for (peer, words) in [
            (
                Peer::Tcp("192.0.2.1:80".parse().unwrap()),
                "another machine",
            ),
            (Peer::Unix("/run/x".into()), "Unix"),
            (Peer::Tcp(unused), "network namespace"),
        ] {
            let mut reader = ConnectionsReader::new(&peer, 1);
            reader.begin(1);
            let mut missing = BTreeMap::new();
            assert_eq!(reader.end(2, &mut missing), None);
            assert!(missing[FIELD].contains(words), "{missing:?}");
        }
    }

    #[test]
    fn servers_that_share_a_port_are_told_apart() {
        let connections = [("127.0.0.1", 1), ("10.0.0.1", 2), ("10.0.0.2", 3)];
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        // Who listens, what is loaded, whose connections count.
        for (listening, loaded, numbers) in [
            (vec!["0.0.0.0"], "127.0.0.1", vec![1, 2, 3]),
            (vec!["::"], "0.0.0.0", vec![1, 2, 3]),
            (vec!["0.0.0.0", "10.0.0.1"], "127.0.0.1", vec![1, 3]),
            (vec!["0.0.0.0", "10.0.0.1"], "10.0.0.1", vec![2]),
            (vec!["127.0.0.1"], "127.0.0.1", vec![1]),
        ] {
            let listeners = listening.iter().map(|local| ip(local)).collect();
            let server = Server::new(listeners, ip(loaded)).unwrap();
            let found = connections.iter().filter(|(at, _)| server.has(&ip(at)));
            let found: Vec<_> = found.map(|&(_, number)| number).collect();
            assert_eq!(found, numbers, "{listening:?} {loaded}");
        }
        assert!(Server::new(Vec::new(), ip("127.0.0.1")).is_err());
    }
}
