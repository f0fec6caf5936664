//! One connection: datagrams and a time in, datagrams and events out.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Event, VarInt};

use super::client::ClientTransport;
use super::lost::Lost;

/// Datagrams that are sent at once.
const DATAGRAMS_AT_ONCE: usize = 10;
/// Where a peer is, for quinn-proto: connections have connected sockets, and neither they nor their
/// peers move (RFC 5737).
const REMOTE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

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

/// What is to be sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of each datagram; of the last one what is left.
    pub segment_bytes: NonZeroU16,
    /// The mark of all; absent for none.
    pub ecn: Option<Ecn>,
}

/// The client's side of one connection.
///
/// It has an endpoint of its own, and an id of length zero: its socket says whose datagrams are.
pub struct Connection {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub(crate) inner: quinn_proto::Connection,
    origin: Instant,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

impl Connection {
    /// Begins a handshake at `now_ns`. What is random in packets follows from `seed`. Absent where
    /// `transport` has a name that no certificate can have.
    pub fn open(transport: &ClientTransport, seed: [u8; 32], now_ns: u64) -> Option<Self> {
        let config = std::sync::Arc::clone(&transport.endpoint);
        let mut endpoint = Endpoint::new(config, None, true, Some(seed));
        let now = transport.origin + Duration::from_nanos(now_ns);
        let client = transport.client.clone();
        let begun = endpoint.connect(now, client, REMOTE, &transport.server_name);
        let (handle, inner) = begun.ok()?;
        Some(Self {
            endpoint,
            handle,
            inner,
            origin: transport.origin,
        })
    }

    fn instant(&self, now_ns: u64) -> Instant {
        self.origin + Duration::from_nanos(now_ns)
    }

    /// Takes a datagram that came.
    pub fn receive(&mut self, datagram: &[u8], ecn: Option<Ecn>, now_ns: u64) {
        let now = self.instant(now_ns);
        let ecn = ecn.map(|mark| match mark {
            Ecn::Capable0 => EcnCodepoint::Ect0,
            Ecn::Capable1 => EcnCodepoint::Ect1,
            Ecn::CongestionExperienced => EcnCodepoint::Ce,
        });
        // A client has no answer to what belongs to no connection.
        let mut answer = Vec::new();
        let bytes = BytesMut::from(datagram);
        let event = self
            .endpoint
            .handle(now, REMOTE, None, ecn, bytes, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.inner.handle_event(event);
            self.tell_endpoint();
        }
    }

    /// Appends what is to be sent next to `out`, which is empty; absent for nothing. To be called
    /// after anything that happens on the connection, until there is nothing.
    pub fn transmit(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Option<Sent> {
        let now = self.instant(now_ns);
        let transmit = self.inner.poll_transmit(now, DATAGRAMS_AT_ONCE, out)?;
        let segment_bytes = transmit.segment_size.unwrap_or(transmit.size);
        let segment_bytes = u16::try_from(segment_bytes)
            .ok()
            .and_then(NonZeroU16::new)?;
        self.tell_endpoint();
        Some(Sent {
            segment_bytes,
            ecn: transmit.ecn.map(|mark| match mark {
                EcnCodepoint::Ect0 => Ecn::Capable0,
                EcnCodepoint::Ect1 => Ecn::Capable1,
                EcnCodepoint::Ce => Ecn::CongestionExperienced,
            }),
        })
    }

    /// When [`expire`](Self::expire) is to be called; [`u64::MAX`] for never. Changes with all that
    /// happens on the connection.
    pub fn deadline_ns(&mut self) -> u64 {
        self.inner.poll_timeout().map_or(u64::MAX, |at| {
            let since = at.saturating_duration_since(self.origin);
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        })
    }

    /// A timer is due.
    pub fn expire(&mut self, now_ns: u64) {
        let now = self.instant(now_ns);
        self.inner.handle_timeout(now);
        self.tell_endpoint();
    }

    /// Ends the connection with a code of the protocol above. What says so to the peer is still to
    /// be sent.
    pub fn close(&mut self, code: u64, now_ns: u64) {
        let now = self.instant(now_ns);
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.inner.close(now, code, Bytes::new());
    }

    /// Whether the connection is over: only what says so is still to be sent.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// What happened.
    pub(crate) fn poll(&mut self) -> Option<Result<Event, Lost>> {
        Some(match self.inner.poll()? {
            Event::ConnectionLost { reason } => Err(Lost::of(reason)),
            event => Ok(event),
        })
    }

    fn tell_endpoint(&mut self) {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(self.handle, event) {
                self.inner.handle_event(answer);
            }
        }
    }
}
