//! The server's side of one socket: whose connection a datagram belongs to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{DatagramEvent, Endpoint, Incoming};

use super::connection::{Connection, Ecn};
use super::transport::ServerTransport;

/// Whose a datagram is.
#[expect(
    clippy::large_enum_variant,
    reason = "it is given on at once, and what comes often is not to be allocated"
)]
pub(crate) enum Arrival {
    /// A connection begins with it.
    New(Box<Connection>),
    /// It is of the connection with this number, which is to take it.
    Of(usize, quinn_proto::ConnectionEvent),
    /// It is of no connection, and there is something to be sent back.
    Answered,
    /// A connection would begin with it that may not. There is something to be sent back.
    Refused,
    /// A handshake failed with it. There may be something to be sent back.
    Failed,
    /// It is of no connection, and is passed over.
    Nobody,
}

/// Which connections may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// All.
    All,
    /// Those whose clients have shown that they receive at their addresses: others are asked to
    /// (Retry, RFC 9000 section 8.1.2).
    Proven,
    /// None.
    Nobody,
}

/// The connections of one socket, by the ids in their packets.
#[derive(Debug)]
pub(crate) struct Listener {
    endpoint: Endpoint,
    origin: Instant,
}

impl Listener {
    /// What is random in packets follows from `seed`, but for ids and keys.
    pub(crate) fn new(transport: &ServerTransport, seed: [u8; 32]) -> Self {
        let config = Arc::clone(&transport.endpoint);
        let server = Some(Arc::clone(&transport.server));
        Self {
            endpoint: Endpoint::new(config, server, true, Some(seed)),
            origin: transport.origin,
        }
    }

    /// Takes a datagram. `admission` is about a connection that begins with it. What is to be sent
    /// back at once is appended to `answer`.
    pub(crate) fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        ecn: Option<Ecn>,
        now_ns: u64,
        admission: Admission,
        answer: &mut Vec<u8>,
    ) -> Arrival {
        let now = self.origin + Duration::from_nanos(now_ns);
        let bytes = BytesMut::from(datagram);
        let ecn = ecn.map(Ecn::codepoint);
        match self.endpoint.handle(now, from, None, ecn, bytes, answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.admit(incoming, admission, now, answer)
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => Arrival::Of(handle.0, event),
            Some(DatagramEvent::Response(_)) => Arrival::Answered,
            None => Arrival::Nobody,
        }
    }

    fn admit(
        &mut self,
        incoming: Incoming,
        admission: Admission,
        now: Instant,
        answer: &mut Vec<u8>,
    ) -> Arrival {
        let is_proven = incoming.remote_address_validated();
        match admission {
            Admission::Nobody => {
                // What it gives is the address, which is that of the datagram.
                let _ = self.endpoint.refuse(incoming, answer);
                Arrival::Refused
            }
            Admission::Proven if !is_proven => match self.endpoint.retry(incoming, answer) {
                Ok(_) => Arrival::Answered,
                Err(error) => {
                    self.endpoint.ignore(error.into_incoming());
                    Arrival::Nobody
                }
            },
            Admission::All | Admission::Proven => {
                match self.endpoint.accept(incoming, now, answer, None) {
                    Ok((handle, inner)) => {
                        Arrival::New(Box::new(Connection::new(handle, inner, self.origin)))
                    }
                    Err(_) => Arrival::Failed,
                }
            }
        }
    }

    /// Forgets a connection at once, whatever its client makes of that.
    pub(crate) fn forget(&mut self, connection: &Connection) {
        connection.forget(&mut self.endpoint);
    }

    /// Hears what a connection has to say of its ids; to be called after all that happens on it.
    pub(crate) fn hear(&mut self, connection: &mut Connection) {
        connection.tell(&mut self.endpoint);
    }
}
