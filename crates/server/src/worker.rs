//! One worker: accepts, reads requests, sends answers, keeps time.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use brunt_engine::backend::{Backend, Event, Outgoing, PayloadId, Slot};

use crate::answer::{Context, Next, answer_input};
use crate::connection::{Connection, Work};
use crate::counters::{Shared, WorkerCounters};
use crate::reply::{self, Batch, Content, NULL_ANSWER};
use crate::request::{KnownHead, Reader};
use crate::slots::FreeSlots;
use crate::stream::{After, Step, Stream};

/// Slots offered for incoming connections at any time.
const OFFERS: u32 = 64;
/// How often the stop flag is looked at, at least.
const STOP_CHECK_NS: u64 = 50_000_000;
/// How long to wait after a failed accept, which mostly means that descriptors ran out.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// A worker on its backend.
pub(crate) struct Worker<'a, B> {
    backend: B,
    shared: &'a Shared,
    counters: &'a WorkerCounters,
    connections: Vec<Connection>,
    /// How many of them are open.
    open: u32,
    free: FreeSlots,
    offered: u32,
    /// No slot is offered before this instant.
    accept_again_ns: u64,
    /// Streams that wait for an instant. A set, because closed connections leave it at once:
    /// otherwise a client could pile up long delays.
    wakes: BTreeSet<(u64, Slot)>,
    /// Connections to go on with in the next turn, so that none holds up the others for long.
    again: Vec<Slot>,
    known: KnownHead,
    batch: Batch,
    null_payload: PayloadId,
    pattern_payload: PayloadId,
    /// Whether to poll instead of sleeping while there are connections.
    spin: bool,
}

impl<'a, B: Backend> Worker<'a, B> {
    /// Worker number `index` of those that `shared` counts, for at most `connections_max`
    /// connections from `listener`. With `spin` it never sleeps while it has any.
    pub(crate) fn new(
        mut backend: B,
        listener: BorrowedFd<'_>,
        shared: &'a Shared,
        index: usize,
        connections_max: u32,
        spin: bool,
    ) -> io::Result<Self> {
        backend.listen(listener)?;
        let null_payload = backend.add_payload(reply::null_payload());
        let pattern_payload = backend.add_payload(reply::pattern_payload());
        Ok(Self {
            backend,
            shared,
            counters: shared.worker(index),
            connections: Vec::new(),
            open: 0,
            free: FreeSlots::new(connections_max),
            offered: 0,
            accept_again_ns: 0,
            wakes: BTreeSet::new(),
            again: Vec::new(),
            known: KnownHead::default(),
            batch: Batch::default(),
            null_payload,
            pattern_payload,
            spin,
        })
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    ///
    /// Only what leaves the backend unusable.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.turn()?;
        }
        for index in 0..self.connections.len() {
            if self.connections[index].open {
                self.close(Slot(index as u32));
            }
        }
        Ok(())
    }

    /// One turn: what is due, then what comes.
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        let now_ns = self.backend.now_ns();
        self.offer_slots(now_ns);
        let mut again = std::mem::take(&mut self.again);
        for slot in again.drain(..) {
            self.drive(slot);
        }
        self.again = again;
        while let Some(&(at_ns, slot)) = self.wakes.first()
            && at_ns <= now_ns
        {
            self.wakes.pop_first();
            if let Some(work) = &mut self.connections[slot.0 as usize].work {
                work.wake_ns = None;
            }
            self.drive(slot);
        }
        let mut until_ns = now_ns + STOP_CHECK_NS;
        if let Some((at_ns, _)) = self.wakes.first() {
            until_ns = until_ns.min(*at_ns);
        }
        if self.accept_again_ns > now_ns {
            until_ns = until_ns.min(self.accept_again_ns);
        }
        if self.spin && self.open > 0 {
            until_ns = now_ns;
        }
        self.backend.wait(Some(until_ns))?;
        while let Some(event) = self.backend.next_event() {
            self.handle(event);
        }
        Ok(())
    }

    fn offer_slots(&mut self, now_ns: u64) {
        while self.offered < OFFERS && now_ns >= self.accept_again_ns {
            let Some(slot) = self.free.take() else {
                return;
            };
            let index = slot.0 as usize;
            if self.connections.len() <= index {
                self.connections.resize_with(index + 1, Connection::default);
            }
            self.offered += 1;
            self.backend.accept(slot);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Received(slot) => self.receive(slot),
            Event::Sent(slot) => {
                let connection = &mut self.connections[slot.0 as usize];
                connection.sending = false;
                if connection.work.is_some() {
                    self.again.push(slot);
                } else if connection.ended || connection.after != After::KeepOpen {
                    self.close(slot);
                }
            }
            Event::Accepted(slot) => {
                self.offered -= 1;
                self.counters.accepted.add(1);
                self.open += 1;
                self.connections[slot.0 as usize] = Connection {
                    open: true,
                    ..Connection::default()
                };
            }
            Event::AcceptFailed(slot, _) => {
                self.offered -= 1;
                self.counters.accepts_failed.add(1);
                self.free.give_back(slot);
                self.accept_again_ns = self.backend.now_ns() + ACCEPT_PAUSE_NS;
            }
            Event::Ended(slot) => {
                let connection = &mut self.connections[slot.0 as usize];
                connection.ended = true;
                let idle = connection.work.is_none() && !connection.sending;
                if idle {
                    self.close(slot)
                } else {
                    self.drive(slot)
                }
            }
            Event::SendFailed(slot, _) | Event::ReceiveFailed(slot, _) => self.close(slot),
            // This worker never connects.
            Event::Connected(slot)
            | Event::ConnectFailed(slot, _)
            | Event::HandshakeFailed(slot, _) => self.close(slot),
        }
    }

    fn receive(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let bytes = self.backend.received();
        self.counters.bytes_received.add(bytes.len() as u64);
        if connection.after != After::KeepOpen {
            return;
        }
        if connection.sending || connection.work.is_some() {
            let work = connection.work.get_or_insert_default();
            if matches!(work.stream, Some(Stream::Silence)) {
                return;
            }
            if !work.keep(bytes, self.backend.now_ns()) {
                self.counters.overflowed.add(1);
                self.close(slot);
            } else if work.stream.is_none() {
                self.drive(slot);
            }
            return;
        }
        // Nothing is incomplete: the common case, answered from the received bytes in place.
        let mut reader = Reader::default();
        let context = Context {
            shared: self.shared,
            counters: self.counters,
            noticed_ns: &|| self.backend.now_ns(),
            now_ns: &|| self.backend.now_ns(),
        };
        let (taken, next) = answer_input(
            &mut reader,
            &mut self.known,
            bytes,
            &mut self.batch,
            &context,
        );
        let wants_input = matches!(next, Next::Request | Next::Input);
        if wants_input && taken == bytes.len() && reader.is_idle() {
            self.flush(slot);
            return;
        }
        let mut work = Box::<Work>::default();
        work.reader = reader;
        // What is left is at most what was received at once.
        work.keep(&bytes[taken..], self.backend.now_ns());
        connection.work = Some(work);
        self.proceed(slot, next);
    }

    /// Sends what was answered, and goes on according to `next`.
    fn proceed(&mut self, slot: Slot, next: Next) {
        let connection = &mut self.connections[slot.0 as usize];
        match next {
            Next::Request | Next::Input => {}
            Next::Stream(stream) => {
                connection.work.get_or_insert_default().stream = Some(stream);
            }
            Next::End(after) => {
                connection.after = after;
                connection.work = None;
            }
        }
        let sends = self.flush(slot);
        if !sends && !matches!(next, Next::Input) {
            self.drive(slot);
        }
    }

    /// Goes on with whatever is incomplete on a connection, unless a send is under way.
    fn drive(&mut self, slot: Slot) {
        loop {
            let connection = &mut self.connections[slot.0 as usize];
            if connection.sending {
                return;
            }
            if connection.after != After::KeepOpen {
                return self.close(slot);
            }
            let Some(work) = &mut connection.work else {
                if connection.ended {
                    self.close(slot);
                }
                return;
            };
            if work.wake_ns.is_some() {
                return;
            }
            if let Some(stream) = &mut work.stream {
                let out = self.batch.bytes();
                match stream.step(self.backend.now_ns(), out, self.counters) {
                    Step::Pattern { start, end } => return self.send_pattern(slot, start, end),
                    Step::Bytes => {}
                    Step::Answer { due_ns } => work.due_ns = Some(due_ns),
                    Step::Wait { until_ns } => {
                        work.wake_ns = Some(until_ns);
                        self.wakes.insert((until_ns, slot));
                        return;
                    }
                    Step::Silence => {
                        if connection.ended {
                            self.close(slot);
                        }
                        return;
                    }
                    Step::Done(after) => {
                        work.stream = None;
                        connection.after = after;
                    }
                }
            } else if work.is_done() {
                connection.work = None;
            } else {
                let noticed_ns = work.noticed_ns;
                let context = Context {
                    shared: self.shared,
                    counters: self.counters,
                    noticed_ns: &|| noticed_ns,
                    now_ns: &|| self.backend.now_ns(),
                };
                let (reader, input) = work.parts();
                let (taken, next) =
                    answer_input(reader, &mut self.known, input, &mut self.batch, &context);
                work.take(taken);
                match next {
                    Next::Request => {}
                    Next::Input if self.batch.content() == Content::Nothing => {
                        if connection.ended {
                            self.close(slot);
                        } else if work.is_done() {
                            connection.work = None;
                        }
                        return;
                    }
                    Next::Input => {}
                    Next::Stream(stream) => work.stream = Some(stream),
                    Next::End(after) => {
                        connection.after = after;
                        connection.work = None;
                    }
                }
            }
            if self.flush(slot) {
                return;
            }
        }
    }

    fn send_pattern(&mut self, slot: Slot, start: u32, end: u32) {
        self.counters.bytes_sent.add(u64::from(end - start));
        let payload = self.pattern_payload;
        self.send(
            slot,
            Outgoing::Shared {
                payload,
                start,
                end,
            },
        );
    }

    /// Sends the batch; false when there is nothing in it.
    fn flush(&mut self, slot: Slot) -> bool {
        let outgoing = match self.batch.content() {
            Content::Nothing => return false,
            Content::Nulls(count) => {
                self.counters.bytes_sent.add(self.batch.settle());
                self.batch.clear();
                let end = count * NULL_ANSWER.len() as u32;
                Outgoing::Shared {
                    payload: self.null_payload,
                    start: 0,
                    end,
                }
            }
            Content::Bytes => {
                self.counters.bytes_sent.add(self.batch.settle());
                Outgoing::Owned(self.batch.take_bytes(self.backend.take_buffer()))
            }
        };
        self.send(slot, outgoing);
        true
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        let connection = &mut self.connections[slot.0 as usize];
        connection.sending = true;
        if let Some(work) = &mut connection.work {
            let now_ns = self.backend.now_ns();
            if let Some(due_ns) = work.due_ns.take() {
                self.counters.delayed(now_ns.saturating_sub(due_ns));
            }
            // What waits behind this has its turn from now on.
            work.noticed_ns = now_ns;
        }
        self.backend.send(slot, outgoing);
    }

    fn close(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if !connection.open {
            return;
        }
        if let Some(work) = connection.work.take() {
            if let Some(at_ns) = work.wake_ns {
                self.wakes.remove(&(at_ns, slot));
            }
            if let Some(Stream::NullAt { .. }) = work.stream {
                self.counters.abandoned.add(1);
            }
        }
        let abrupt = connection.after == After::Reset;
        *connection = Connection::default();
        self.open -= 1;
        self.counters.closed.add(1);
        if abrupt {
            self.backend.reset(slot);
        } else {
            self.backend.close(slot);
        }
        self.free.give_back(slot);
    }
}

#[cfg(test)]
mod scripted;
#[cfg(test)]
mod tests;
