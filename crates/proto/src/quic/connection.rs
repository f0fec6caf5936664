//! One connection: datagrams and a time in, datagrams and events out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointEvent, Event,
    VarInt,
};

use super::error::Lost;
use super::transport::ClientTransport;

/// Datagrams that are sent at once.
const DATAGRAMS_AT_ONCE: usize = 10;

/// Explicit congestion notification (RFC 9000 section 13.4): the mark of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// ECT(0).
    Capable0,
    /// ECT(1).
    Capable1,
    /// CE.
    CongestionExperienced,
}

impl Ecn {
    pub(super) fn codepoint(self) -> EcnCodepoint {
        match self {
            Self::Capable0 => EcnCodepoint::Ect0,
            Self::Capable1 => EcnCodepoint::Ect1,
            Self::CongestionExperienced => EcnCodepoint::Ce,
        }
    }

    fn of(mark: EcnCodepoint) -> Self {
        match mark {
            EcnCodepoint::Ect0 => Self::Capable0,
            EcnCodepoint::Ect1 => Self::Capable1,
            EcnCodepoint::Ce => Self::CongestionExperienced,
        }
    }
}

/// What is to be sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of each datagram; of the last one what is left.
    pub segment_bytes: NonZeroU16,
    /// The mark of all; absent for none.
    pub ecn: Option<Ecn>,
}

/// Packets of a connection that were sent and lost so far, and its round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFigures {
    /// Packets sent.
    pub packets_sent: u64,
    /// Those of them that were held for lost (RFC 9002 section 6.1).
    pub packets_lost: u64,
    /// Bytes of these.
    pub bytes_lost: u64,
    /// The smoothed round trip (RFC 9002 section 5.3), nanoseconds.
    pub round_trip_ns: u64,
}

/// One connection. It must [tell](Self::tell) its endpoint of all that happens.
#[derive(Debug)]
pub(crate) struct Connection {
    handle: ConnectionHandle,
    pub(crate) inner: quinn_proto::Connection,
    origin: Instant,
}

impl Connection {
    /// A connection that begins, of an endpoint that knows it by `handle`. `origin` is the instant
    /// 0 of all times.
    pub(super) fn new(
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        origin: Instant,
    ) -> Self {
        Self {
            handle,
            inner,
            origin,
        }
    }

    /// Its number among the connections of its endpoint, from 0, dense.
    pub(crate) fn number(&self) -> usize {
        self.handle.0
    }

    fn instant(&self, now_ns: u64) -> Instant {
        self.origin + Duration::from_nanos(now_ns)
    }

    /// The nanoseconds of an instant.
    fn nanoseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.origin);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes what its endpoint made of a datagram.
    pub(crate) fn take(&mut self, event: ConnectionEvent) {
        self.inner.handle_event(event);
    }

    /// Appends what is to be sent next to `out`, which is empty, and gives to whom; absent for
    /// nothing. To be called after anything that happens on the connection, until there is nothing.
    pub(crate) fn transmit(
        &mut self,
        now_ns: u64,
        out: &mut Vec<u8>,
    ) -> Option<(SocketAddr, Sent)> {
        let now = self.instant(now_ns);
        let transmit = self.inner.poll_transmit(now, DATAGRAMS_AT_ONCE, out)?;
        let segment_bytes = transmit.segment_size.unwrap_or(transmit.size);
        let segment_bytes = u16::try_from(segment_bytes)
            .ok()
            .and_then(NonZeroU16::new)?;
        let sent = Sent {
            segment_bytes,
            ecn: transmit.ecn.map(Ecn::of),
        };
        Some((transmit.destination, sent))
    }

    /// When [`expire`](Self::expire) is to be called; [`u64::MAX`] for never. Changes with all that
    /// happens on the connection.
    pub(crate) fn deadline_ns(&mut self) -> u64 {
        let at = self.inner.poll_timeout();
        at.map_or(u64::MAX, |at| self.nanoseconds(at))
    }

    /// A timer is due.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        let now = self.instant(now_ns);
        self.inner.handle_timeout(now);
    }

    /// Ends the connection with a code of the protocol above, and a reason for people. What says so
    /// to the peer is still to be sent.
    pub(crate) fn close(&mut self, code: u64, reason: String, now_ns: u64) {
        let now = self.instant(now_ns);
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.inner.close(now, code, Bytes::from(reason));
    }

    /// Whether it is over, and the peer has had the time to learn of it.
    pub(crate) fn is_drained(&self) -> bool {
        self.inner.is_drained()
    }

    /// Its packets that were sent and lost so far, and its round trip.
    pub(crate) fn path_figures(&self) -> PathFigures {
        let path = self.inner.stats().path;
        PathFigures {
            packets_sent: path.sent_packets,
            packets_lost: path.lost_packets,
            bytes_lost: path.lost_bytes,
            round_trip_ns: u64::try_from(path.rtt.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// What happened.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Result<Event, Lost>> {
        Some(match self.inner.poll()? {
            Event::ConnectionLost { reason } => Err(Lost::of(reason)),
            event => Ok(event),
        })
    }

    /// Has its endpoint forget it.
    pub(super) fn forget(&self, endpoint: &mut Endpoint) {
        endpoint.handle_event(self.handle, EndpointEvent::drained());
    }

    /// Has the peer send so many bytes in advance of what is read, on all streams together.
    pub(crate) fn set_window(&mut self, bytes: u64) {
        let bytes = VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
        self.inner.set_receive_window(bytes);
    }

    /// Tells its endpoint of its ids and its end.
    pub(super) fn tell(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(answer) = endpoint.handle_event(self.handle, event) {
                self.inner.handle_event(answer);
            }
        }
    }
}

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
