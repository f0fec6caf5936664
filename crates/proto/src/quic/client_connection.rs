//! One connection of a client: datagrams and a time in, datagrams and events out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{DatagramEvent, Endpoint, Event};

use super::client::ClientTransport;
use super::connection::{Connection, Ecn, PathFigures, Sent};
use super::lost::Lost;

/// Where a peer is, for quinn-proto: connections have connected sockets, and neither they nor their
/// peers move (RFC 5737).
const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

/// The client's side of one connection.
///
/// It has an endpoint of its own, and an id of length zero: its socket says whose datagrams are.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    endpoint: Endpoint,
    connection: Connection,
    origin: Instant,
}

impl ClientConnection {
    /// Begins a handshake at `now_ns`. What is random in packets follows from `seed`. Absent where
    /// `transport` has a name that no certificate can have.
    pub(crate) fn open(transport: &ClientTransport, seed: [u8; 32], now_ns: u64) -> Option<Self> {
        let origin = transport.origin;
        let config = Arc::clone(&transport.endpoint);
        let mut endpoint = Endpoint::new(config, None, true, Some(seed));
        let now = origin + Duration::from_nanos(now_ns);
        let client = transport.client.clone();
        let begun = endpoint.connect(now, client, REMOTE, &transport.server_name);
        let (handle, inner) = begun.ok()?;
        Some(Self {
            endpoint,
            connection: Connection::new(handle, inner, origin),
            origin,
        })
    }

    /// Its streams.
    #[inline]
    pub(crate) fn inner(&mut self) -> &mut quinn_proto::Connection {
        &mut self.connection.inner
    }

    /// Takes a datagram that came.
    pub(crate) fn receive(&mut self, datagram: &[u8], ecn: Option<Ecn>, now_ns: u64) {
        let now = self.origin + Duration::from_nanos(now_ns);
        let ecn = ecn.map(Ecn::codepoint);
        // A client has no answer to what belongs to no connection.
        let mut answer = Vec::new();
        let bytes = BytesMut::from(datagram);
        let event = self
            .endpoint
            .handle(now, REMOTE, None, ecn, bytes, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.connection.take(event);
            self.connection.tell(&mut self.endpoint);
        }
    }

    /// Appends what is to be sent next to `out`, which is empty; absent for nothing. To be called
    /// after anything that happens on the connection, until there is nothing.
    pub(crate) fn transmit(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Option<Sent> {
        let (_, sent) = self.connection.transmit(now_ns, out)?;
        self.connection.tell(&mut self.endpoint);
        Some(sent)
    }

    /// When [`expire`](Self::expire) is to be called; [`u64::MAX`] for never. Changes with all that
    /// happens on the connection.
    pub(crate) fn deadline_ns(&mut self) -> u64 {
        self.connection.deadline_ns()
    }

    /// A timer is due.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        self.connection.expire(now_ns);
        self.connection.tell(&mut self.endpoint);
    }

    /// Ends the connection with a code of the protocol above. What says so to the peer is still to
    /// be sent.
    pub(crate) fn close(&mut self, code: u64, now_ns: u64) {
        self.connection.close(code, String::new(), now_ns);
    }

    /// Its packets that were sent and lost so far, and its round trip.
    pub(crate) fn path_figures(&self) -> PathFigures {
        self.connection.path_figures()
    }

    /// What happened.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Result<Event, Lost>> {
        self.connection.poll()
    }
}
