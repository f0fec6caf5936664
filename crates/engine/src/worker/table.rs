//! The connections of a worker with what is in flight on them, and their deadlines.

use std::ops::{Index, IndexMut};

use brunt_io::backend::Slot;
use brunt_io::timers::Timers;
use brunt_load::share_u64;
use brunt_record::RequestTiming;

use crate::connection::{Connection, State};
use crate::protocol::{ClientProtocol, FREE_PLACE};

/// A deadline that was armed; it counts if it still is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    slot: Slot,
    at_ns: u64,
}

/// All connections by their slots, each with as many places for requests in flight.
#[derive(Debug)]
pub(super) struct ConnectionTable<P: ClientProtocol> {
    connections: Vec<Connection<P>>,
    /// `depth` places per connection, any of which may be free.
    places: Vec<RequestTiming>,
    depth: usize,
    pub(super) in_flight: u64,
    deadlines: Timers<Deadline>,
}

impl<P: ClientProtocol> ConnectionTable<P> {
    /// `slots` connections that are down, of which set-up waits for the first `awaited`.
    pub(super) fn new(protocol: &P, slots: u32, awaited: u32, depth: u32) -> Self {
        let connections = (0..slots)
            .map(|slot| Connection::new(protocol.connection(), slot < awaited))
            .collect();
        Self {
            connections,
            places: vec![FREE_PLACE; slots as usize * depth as usize],
            depth: depth as usize,
            in_flight: 0,
            deadlines: Timers::default(),
        }
    }

    /// Gives each connection its part of so many requests; absent: they share them.
    pub(super) fn deal(&mut self, requests: Option<u64>) {
        let Some(requests) = requests else {
            return;
        };
        let all = self.len();
        for (index, connection) in (0..).zip(&mut self.connections) {
            connection.part_left = share_u64(requests, all, index);
        }
    }

    /// Requests that may be in flight on each.
    pub(super) fn depth(&self) -> u32 {
        self.depth as u32
    }

    pub(super) fn len(&self) -> u32 {
        self.connections.len() as u32
    }

    /// The open connections, each with whether something is being sent on it.
    pub(super) fn open(&self) -> impl Iterator<Item = (Slot, bool)> {
        let connections = (0..).map(Slot).zip(&self.connections);
        connections
            .filter(|(_, connection)| connection.state == State::Open)
            .map(|(slot, connection)| (slot, connection.sending))
    }

    /// Connections whose requests have been in flight since before `at_ns`.
    pub(super) fn in_flight_since(&self, at_ns: u64) -> u32 {
        let waiting = self.slots().filter(|&slot| self.first_due_ns(slot) < at_ns);
        waiting.count() as u32
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<P> {
        (0..self.len()).map(Slot)
    }

    /// The connections alone, which nothing is in flight on any more.
    pub(super) fn into_connections(self) -> impl Iterator<Item = (Slot, Connection<P>)> {
        (0..).map(Slot).zip(self.connections)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection<P>> {
        self.connections.iter()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Connection<P>> {
        self.connections.get_mut(slot.0 as usize)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection<P>> {
        self.connections.iter_mut()
    }

    /// A connection with its places.
    #[inline]
    pub(super) fn with_places(&mut self, slot: Slot) -> (&mut Connection<P>, &[RequestTiming]) {
        let index = slot.0 as usize;
        (
            &mut self.connections[index],
            &self.places[index * self.depth..(index + 1) * self.depth],
        )
    }

    /// `count` requests are about to take places of the connection.
    #[inline]
    pub(super) fn start_requests(
        &mut self,
        slot: Slot,
        count: u32,
    ) -> (&mut Connection<P>, &mut [RequestTiming]) {
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        connection.in_flight += count;
        self.in_flight += u64::from(count);
        let places = &mut self.places[index * self.depth..(index + 1) * self.depth];
        (connection, places)
    }

    /// The request in `place` is no longer in flight.
    #[inline]
    pub(super) fn end_request(&mut self, slot: Slot, place: u32) -> RequestTiming {
        let index = slot.0 as usize;
        self.connections[index].in_flight -= 1;
        self.in_flight -= 1;
        let place = index * self.depth + place as usize;
        std::mem::replace(&mut self.places[place], FREE_PLACE)
    }

    /// When the first of the requests in flight was due; [`u64::MAX`] for none.
    pub(super) fn first_due_ns(&self, slot: Slot) -> u64 {
        let index = slot.0 as usize;
        let places = &self.places[index * self.depth..(index + 1) * self.depth];
        let due_ns = places.iter().map(|place| place.due_ns).min();
        due_ns.unwrap_or(u64::MAX)
    }

    /// Makes sure that the connection is looked at when its deadline comes. Later deadlines than
    /// the one that is armed cost nothing: it is armed anew when it comes up.
    #[inline]
    pub(super) fn arm(&mut self, slot: Slot, at_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        if at_ns < connection.armed_ns {
            connection.armed_ns = at_ns;
            self.deadlines.push(at_ns, Deadline { slot, at_ns });
        }
    }

    /// The earliest deadline.
    #[inline]
    pub(super) fn next_deadline_ns(&self) -> u64 {
        self.deadlines.next_ns().unwrap_or(u64::MAX)
    }

    /// Takes the earliest deadline that has come.
    #[inline]
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Deadline> {
        self.deadlines.pop_due(now_ns)
    }

    /// The connection whose deadline has come; absent if an earlier one was armed for it since.
    pub(super) fn disarm(&mut self, deadline: Deadline) -> Option<Slot> {
        let connection = &mut self.connections[deadline.slot.0 as usize];
        if connection.armed_ns != deadline.at_ns {
            return None;
        }
        connection.armed_ns = u64::MAX;
        Some(deadline.slot)
    }
}

impl<P: ClientProtocol> Index<Slot> for ConnectionTable<P> {
    type Output = Connection<P>;

    #[inline]
    fn index(&self, slot: Slot) -> &Connection<P> {
        &self.connections[slot.0 as usize]
    }
}

impl<P: ClientProtocol> IndexMut<Slot> for ConnectionTable<P> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Connection<P> {
        &mut self.connections[slot.0 as usize]
    }
}
