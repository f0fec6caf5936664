//! The loop of a worker over streams: it accepts connections, hands what comes on them to its
//! service, and keeps time.

mod http;
mod http2;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod tests_bounds;
#[cfg(test)]
mod tests_http2;
#[cfg(test)]
mod tests_websocket;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brunt_io::backend::{Event, ServerBackend, Slot};

use crate::calendar::Calendar;
use crate::count::LinkCounters;
use crate::counters::Shared;
use crate::http2::Http2Options;
use crate::offers::Offers;

pub(crate) use http::Http;

/// How often the stop flag is looked at, at least.
pub(crate) const STOP_CHECK_NS: u64 = 50_000_000;

/// How a worker serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerSettings {
    /// The most connections at a time.
    pub(crate) connections_max: u32,
    /// Whether to poll instead of sleeping while there are connections.
    pub(crate) spin: bool,
    /// Whether the backend speaks TLS.
    pub(crate) is_tls: bool,
    /// How long a connection may stay open without progress of its client or of an answer,
    /// nanoseconds; absent: for good.
    pub(crate) idle_timeout_ns: Option<u64>,
    /// Input that may wait, all connections together, bytes.
    pub(crate) input_bytes_max: usize,
    /// Output in memory, all connections together, bytes.
    pub(crate) output_bytes_max: usize,
    pub(crate) http2: Http2Options,
}

/// What a worker serves, beside its connections.
pub(crate) trait Service: Sized {
    type Connection: Linked;

    /// Bytes that a turn sends, about, to connections that go on after a send.
    const TURN_BYTES_MAX: usize;

    fn counters(&self) -> &LinkCounters;

    /// Deals with what a connection leaves that is being closed; whether it ends by a reset.
    fn leave(&mut self, connection: Self::Connection) -> bool;
}

/// What a worker of a service does on its connections.
pub(crate) trait Serve {
    /// A connection was accepted.
    fn accepted(&mut self, slot: Slot);

    /// Bytes came, which the backend shows.
    fn received(&mut self, slot: Slot);

    /// So many bytes came, and were thrown away since the service asked for that.
    fn discarded(&mut self, slot: Slot, bytes: u64);

    /// A send is complete.
    fn sent(&mut self, slot: Slot);

    /// The peer has closed its side.
    fn ended(&mut self, slot: Slot);

    /// Goes on with what is incomplete: its instant or its turn has come.
    fn drive(&mut self, slot: Slot);
}

/// A worker on its backend.
pub(crate) struct Worker<B, S: Service> {
    pub(crate) backend: B,
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: WorkerSettings,
    pub(crate) connections: Vec<S::Connection>,
    /// How many connections are open.
    open: u32,
    offers: Offers,
    pub(crate) calendar: Calendar,
    /// Connections on which something waits for an instant.
    pub(crate) wakes: Wakes<Slot>,
    /// Connections to go on with in the turns that follow, so that none holds up the others for
    /// long.
    again: VecDeque<Slot>,
    /// Bytes given to the backend in this turn, as far as the service counts them.
    pub(crate) turn_bytes: usize,
    pub(crate) service: S,
}

impl<B: ServerBackend, S: Service> Worker<B, S>
where
    Self: Serve,
{
    /// A worker on a backend that listens.
    pub(crate) fn new(
        backend: B,
        shared: &Arc<Shared>,
        settings: WorkerSettings,
        service: S,
    ) -> Self {
        Self {
            backend,
            shared: Arc::clone(shared),
            settings,
            connections: Vec::new(),
            open: 0,
            offers: Offers::new(settings.connections_max, settings.is_tls),
            calendar: Calendar::new(settings.idle_timeout_ns),
            wakes: Wakes::default(),
            again: VecDeque::new(),
            turn_bytes: 0,
            service,
        }
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    ///
    /// Only what leaves the backend unusable.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.turn()?;
        }
        for index in 0..self.connections.len() {
            self.close(Slot(index as u32));
        }
        Ok(())
    }

    /// One turn: what is due, then what comes.
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        let now_ns = self.backend.now_ns();
        let wake_ns = self.go_on(now_ns);
        let check_ns = now_ns + STOP_CHECK_NS;
        let until_ns = wake_ns.map_or(check_ns, |wake_ns| wake_ns.min(check_ns));
        self.backend.wait(Some(until_ns))?;
        while let Some(event) = self.backend.next_event() {
            self.handle(event);
        }
        Ok(())
    }

    /// Turns until there is nothing more to do at this instant. Gives the instant at which there
    /// will be something, if nothing comes before.
    pub(crate) fn settle(&mut self) -> io::Result<Option<u64>> {
        loop {
            let now_ns = self.backend.now_ns();
            let wake_ns = self.go_on(now_ns).filter(|&wake_ns| wake_ns > now_ns);
            self.backend.wait(Some(now_ns))?;
            let mut event = self.backend.next_event();
            if event.is_none() && self.again.is_empty() {
                return Ok(wake_ns);
            }
            while let Some(happened) = event {
                self.handle(happened);
                event = self.backend.next_event();
            }
        }
    }

    /// Does what is due; gives when the next is.
    fn go_on(&mut self, now_ns: u64) -> Option<u64> {
        self.offer_slots(now_ns);
        if self.calendar.turns(now_ns) {
            self.close_idle();
        }
        self.turn_bytes = 0;
        for _ in 0..self.again.len() {
            if self.turn_bytes >= S::TURN_BYTES_MAX {
                break;
            }
            if let Some(slot) = self.again.pop_front() {
                self.connections[slot.0 as usize].link().queued = false;
                self.drive(slot);
            }
        }
        while let Some(slot) = self.wakes.next(now_ns) {
            if let Some(wake_ns) = self.connections[slot.0 as usize].wake_ns() {
                *wake_ns = None;
            }
            self.drive(slot);
        }
        if !self.again.is_empty() || self.settings.spin && self.open > 0 {
            return Some(now_ns);
        }
        let due_ns = self.wakes.first_ns();
        due_ns.into_iter().chain(self.offers.again_ns(now_ns)).min()
    }

    fn offer_slots(&mut self, now_ns: u64) {
        while let Some(slot) = self.offers.next(now_ns) {
            let index = slot.0 as usize;
            if self.connections.len() <= index {
                self.connections
                    .resize_with(index + 1, S::Connection::default);
            }
            self.backend.accept(slot);
        }
    }

    /// Closes the connections that have been idle for too long.
    fn close_idle(&mut self) {
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            let has_wake = connection.wake_ns().is_some_and(|at_ns| at_ns.is_some());
            let link = connection.link();
            if !link.open {
                continue;
            }
            if has_wake && !link.sending {
                // An answer goes on at an instant that is still to come: the peer has to wait.
                link.moved = self.calendar.page();
            } else if self.calendar.is_idle(link.moved) {
                self.service.counters().timed_out.add(1);
                self.close(Slot(index as u32));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Received(slot) => {
                let bytes = self.backend.received().len() as u64;
                self.service.counters().bytes_received.add(bytes);
                self.received(slot);
            }
            Event::Discarded(slot, bytes) => {
                let bytes = u64::from(bytes);
                self.service.counters().bytes_received.add(bytes);
                self.discarded(slot, bytes);
            }
            Event::Sent(slot) => {
                let link = self.connections[slot.0 as usize].link();
                link.sending = false;
                link.moved = self.calendar.page();
                self.sent(slot);
            }
            Event::Accepted(slot) => {
                self.offers.accepted();
                self.service.counters().accepted.add(1);
                self.open += 1;
                let connection = &mut self.connections[slot.0 as usize];
                *connection = S::Connection::default();
                let link = connection.link();
                link.open = true;
                link.moved = self.calendar.page();
                self.accepted(slot);
            }
            Event::AcceptFailed(slot, errno) => {
                let (now_ns, counters) = (self.backend.now_ns(), self.service.counters());
                self.offers.failed(slot, errno, now_ns, counters);
            }
            Event::Ended(slot) => {
                self.connections[slot.0 as usize].link().ended = true;
                self.ended(slot);
            }
            // A server never connects.
            Event::SendFailed(slot, _)
            | Event::ReceiveFailed(slot, _)
            | Event::Connected(slot)
            | Event::ConnectFailed(slot, _)
            | Event::HandshakeFailed(slot, _) => self.close(slot),
        }
    }
}

impl<B: ServerBackend, S: Service> Worker<B, S> {
    /// Has the connection go on in one of the turns that follow.
    pub(crate) fn go_on_later(&mut self, slot: Slot) {
        let link = self.connections[slot.0 as usize].link();
        if !std::mem::replace(&mut link.queued, true) {
            self.again.push_back(slot);
        }
    }

    /// Has the worker come back at this instant; absent: not before something happens.
    pub(crate) fn wake_at(&mut self, slot: Slot, at_ns: Option<u64>) {
        if let Some(wake_ns) = self.connections[slot.0 as usize].wake_ns() {
            self.wakes.plan(slot, wake_ns, at_ns);
        }
    }

    /// Closes a connection for whose input, or output, there is no room.
    pub(crate) fn overflow(&mut self, slot: Slot) {
        self.service.counters().overflowed.add(1);
        self.close(slot);
    }

    pub(crate) fn close(&mut self, slot: Slot) {
        self.wake_at(slot, None);
        let connection = &mut self.connections[slot.0 as usize];
        if !connection.link().open {
            return;
        }
        let connection = std::mem::take(connection);
        let is_reset = self.service.leave(connection);
        self.open -= 1;
        self.service.counters().closed.add(1);
        if is_reset {
            self.backend.reset(slot);
        } else {
            self.backend.close(slot);
        }
        self.offers.give_back(slot);
    }
}

/// What each connection has, whatever is spoken on it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Whether there is a connection in the slot.
    pub(crate) open: bool,
    /// Whether a send is in flight.
    pub(crate) sending: bool,
    /// Whether the peer has closed its side.
    pub(crate) ended: bool,
    /// Whether the connection is among those to go on with.
    pub(crate) queued: bool,
    /// The page of the worker's calendar on which the peer or an answer to it got on last.
    pub(crate) moved: u16,
}

/// A connection of a service, or a slot without one.
pub(crate) trait Linked: Default {
    fn link(&mut self) -> &mut Link;

    /// Where it is noted when the worker is to come back; absent where nothing waits.
    fn wake_ns(&mut self) -> Option<&mut Option<u64>>;
}

/// Those that wait for an instant, each with a note of its own instant. A set, because what is over
/// leaves it at once: otherwise a client could pile up long delays.
#[derive(Debug)]
pub(crate) struct Wakes<K>(BTreeSet<(u64, K)>);

impl<K> Default for Wakes<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Copy + Ord> Wakes<K> {
    /// Has `key`, which waits for what `noted_ns` says, wait for another instant; absent: for none.
    pub(crate) fn plan(&mut self, key: K, noted_ns: &mut Option<u64>, at_ns: Option<u64>) {
        if *noted_ns == at_ns {
            return;
        }
        if let Some(before_ns) = std::mem::replace(noted_ns, at_ns) {
            self.0.remove(&(before_ns, key));
        }
        if let Some(at_ns) = at_ns {
            self.0.insert((at_ns, key));
        }
    }

    /// Takes the next one whose instant has come by `now_ns`; its note is the caller's to clear.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<K> {
        let &(at_ns, key) = self.0.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.0.pop_first();
        Some(key)
    }

    /// The first instant that is waited for.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.0.first().map(|&(at_ns, _)| at_ns)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
