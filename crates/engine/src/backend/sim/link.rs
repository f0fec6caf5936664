//! One simulated connection: what brunt's side, the wire and the server's side hold of it.

use std::collections::VecDeque;

use super::reply::Template;
use super::request::{Request, Scanner};
use crate::backend::Slot;

/// The name of a connection. Places are used again, with another serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkId {
    index: u32,
    serial: u32,
}

/// Something that arrives at brunt's side, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A part of an answer; the last one of it `completes` it.
    Bytes {
        template: Template,
        start: u32,
        end: u32,
        completes: bool,
    },
    /// The server closed; this completes an answer that is delimited so.
    End { completes: bool },
    /// The server reset the connection.
    Reset,
}

/// How brunt's side stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Client {
    #[default]
    Connecting,
    Open,
    /// No more bytes will come, or there was never a connection.
    Ended,
    Closed,
}

/// How the server's side stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Server {
    /// It has not accepted the connection.
    #[default]
    Absent,
    Open,
    Closed,
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) slot: Option<Slot>,
    pub(super) client: Client,
    /// When brunt closed it.
    pub(super) closed_ns: Option<u64>,
    /// A send is not yet taken in full.
    pub(super) sending: bool,
    pub(super) scanner: Scanner,
    /// Requests on their way to the server.
    pub(super) in_flight: VecDeque<Request>,
    pub(super) server: Server,
    /// Requests that wait for their turn on this connection.
    pub(super) pending: VecDeque<Request>,
    /// The request whose turn it is.
    pub(super) serving: Option<Request>,
    pub(super) answered: u64,
    /// The server will not answer any more.
    pub(super) is_silent: bool,
    /// When the latest piece arrives at brunt's side: pieces never overtake each other.
    pub(super) last_arrival_ns: u64,
    /// What has arrived there and is not yet taken, and when.
    pub(super) arrivals: VecDeque<(u64, Piece)>,
    pub(super) bytes_arrived: u64,
    pub(super) bytes_taken: u64,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Links {
    places: Vec<(u32, Option<Link>)>,
    free: Vec<u32>,
}

impl Links {
    /// A new connection, for `slot`.
    pub(super) fn add(&mut self, slot: Slot) -> LinkId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (serial, place) = &mut self.places[index as usize];
        *place = Some(Link {
            slot: Some(slot),
            ..Link::default()
        });
        LinkId {
            index,
            serial: *serial,
        }
    }

    /// The connection of this name, while it lasts.
    pub(super) fn get(&self, id: LinkId) -> Option<&Link> {
        match &self.places[id.index as usize] {
            (serial, link) if *serial == id.serial => link.as_ref(),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        match &mut self.places[id.index as usize] {
            (serial, link) if *serial == id.serial => link.as_mut(),
            _ => None,
        }
    }

    /// Forgets the connection; its name will never be in use again.
    pub(super) fn remove(&mut self, id: LinkId) {
        if self.get(id).is_some() {
            let (serial, link) = &mut self.places[id.index as usize];
            *link = None;
            *serial = serial.wrapping_add(1);
            self.free.push(id.index);
        }
    }

    /// The names of all connections.
    pub(super) fn ids(&self) -> Vec<LinkId> {
        (0..)
            .zip(&self.places)
            .filter(|(_, (_, link))| link.is_some())
            .map(|(index, &(serial, _))| LinkId { index, serial })
            .collect()
    }
}
