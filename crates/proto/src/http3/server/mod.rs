//! A server's side of all connections of a socket, over QUIC: datagrams, addresses and a time in,
//! events out, datagrams to be sent when asked.

mod connection;

use std::net::SocketAddr;

pub use connection::{Connection, Event, Read};

use crate::quic::{Admission, Arrival, Ecn, Listener, Sent, ServerTransport};

/// One place in so many is kept for clients that receive at their addresses.
const PROVEN_PART: u32 = 4;

/// Whose a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The connection of this number, which begins with it.
    Begun(u32),
    /// The connection of this number.
    Of(u32),
    /// Nobody's.
    Nobody,
    /// That of a connection which would have been one too many.
    Refused,
    /// That of a connection whose handshake failed with it.
    Failed,
}

/// The server's side of the connections of one socket (RFC 9114). They have numbers, from 0, dense;
/// that of one that is over is free again.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    connections: Vec<Option<Box<Connection>>>,
    /// How many there are.
    open: u32,
    connections_max: u32,
}

impl Server {
    /// A server without connections, which takes `connections_max` at a time and refuses further
    /// ones. What is random in packets follows from `seed`, but for ids and keys.
    pub fn new(transport: &ServerTransport, connections_max: u32, seed: [u8; 32]) -> Self {
        Self {
            listener: Listener::new(transport, seed),
            connections: Vec::new(),
            open: 0,
            connections_max,
        }
    }

    /// Takes a datagram. What it brings about is given out by the connection's events. What is to
    /// be sent back at once, as one datagram, is appended to `answer`, which is empty.
    pub fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        ecn: Option<Ecn>,
        now_ns: u64,
        answer: &mut Vec<u8>,
    ) -> Received {
        let admission = self.admission();
        let arrival = self
            .listener
            .receive(from, datagram, ecn, now_ns, admission, answer);
        match arrival {
            Arrival::New(quic) => {
                let number = quic.number();
                if self.connections.len() <= number {
                    self.connections.resize_with(number + 1, || None);
                }
                self.connections[number] = Some(Box::new(Connection::new(*quic)));
                self.open += 1;
                Received::Begun(number as u32)
            }
            Arrival::Of(number, event) => {
                let Some(Some(connection)) = self.connections.get_mut(number) else {
                    return Received::Nobody;
                };
                connection.quic.take(event);
                Received::Of(number as u32)
            }
            Arrival::Answered | Arrival::Nobody => Received::Nobody,
            Arrival::Refused => Received::Refused,
            Arrival::Failed => Received::Failed,
        }
    }

    /// The last quarter of the places is for clients that receive at their addresses, so that
    /// datagrams from invented ones cannot take all of them.
    fn admission(&self) -> Admission {
        let kept = self.connections_max / PROVEN_PART;
        match self.connections_max.saturating_sub(self.open) {
            0 => Admission::Nobody,
            left if left <= kept => Admission::Proven,
            _ => Admission::All,
        }
    }

    /// The connection of this number, while it lasts.
    pub fn connection(&mut self, number: u32) -> Option<&mut Connection> {
        self.connections.get_mut(number as usize)?.as_deref_mut()
    }

    /// Appends what is to be sent next on a connection to `out`, which is empty, and gives to whom;
    /// absent for nothing. To be called after anything that happens on it, until there is nothing.
    pub fn transmit(
        &mut self,
        number: u32,
        now_ns: u64,
        out: &mut Vec<u8>,
    ) -> Option<(SocketAddr, Sent)> {
        let connection = self.connections.get_mut(number as usize)?.as_deref_mut()?;
        // Not before: the number of a connection that is over would be free while it is here.
        self.listener.hear(&mut connection.quic);
        connection.quic.transmit(now_ns, out)
    }

    /// When [`expire`](Self::expire) is to be called; [`u64::MAX`] for never. Changes with all that
    /// happens on the connection.
    pub fn deadline_ns(&mut self, number: u32) -> u64 {
        let connection = self.connection(number);
        connection.map_or(u64::MAX, |connection| connection.quic.deadline_ns())
    }

    /// A timer of a connection is due.
    pub fn expire(&mut self, number: u32, now_ns: u64) {
        if let Some(connection) = self.connection(number) {
            connection.quic.expire(now_ns);
        }
    }

    /// Forgets a connection that is over and of which nobody needs to be told any more; to be
    /// called when there is nothing to be sent on it. Gives whether it was.
    pub fn forget(&mut self, number: u32) -> bool {
        let Some(place) = self.connections.get_mut(number as usize) else {
            return false;
        };
        let Some(connection) = place else {
            return false;
        };
        self.listener.hear(&mut connection.quic);
        let is_drained = connection.quic.is_drained();
        if is_drained {
            *place = None;
            self.open -= 1;
        }
        is_drained
    }

    /// Forgets a connection at once, whatever its client makes of that; to be called when there is
    /// nothing to be sent on it.
    pub fn give_up(&mut self, number: u32) {
        let place = self.connections.get_mut(number as usize);
        if let Some(connection) = place.and_then(Option::take) {
            self.listener.forget(&connection.quic);
            self.open -= 1;
        }
    }
}
