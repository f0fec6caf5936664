//! One worker: accepts, reads requests, sends answers, keeps time.

mod http2;
mod websocket;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brunt_io::backend::{Event, Outgoing, PayloadId, ServerBackend, Slot};

use crate::answer::Context;
use crate::batch::{self, Batch, Content};
use crate::calendar::Calendar;
use crate::connection::{Connection, Work};
use crate::counters::{Shared, WorkerCounters};
use crate::directed::Asked;
use crate::http1::reply::NULL_ANSWER;
use crate::http1::request::{KnownHead, Reader};
use crate::http1::stream::{After, Step, Stream};
use crate::http1::{Next, answer_input};
use crate::http2::Http2Options;
use crate::offers::{Offers, Refused};
use crate::pattern;
use crate::room::{Hold, INPUT_BUFFERS, OUTPUT_BUFFERS, Room};
use crate::websocket::Session as WebSocket;

/// How often the stop flag is looked at, at least.
pub(crate) const STOP_CHECK_NS: u64 = 50_000_000;

/// Bytes that a turn sends, about, of answers that take more than one send. However many such
/// answers there are, what comes meanwhile is seen to as soon.
const TURN_BYTES_MAX: usize = 1 << 20;

/// A worker on its backend.
pub(crate) struct Worker<B> {
    backend: B,
    shared: Arc<Shared>,
    counters: Arc<WorkerCounters>,
    connections: Vec<Connection>,
    /// How many connections are open.
    open: u32,
    offers: Offers,
    /// Connections on which something waits for an instant. A set, because closed connections leave
    /// it at once: otherwise a client could pile up long delays.
    wakes: BTreeSet<(u64, Slot)>,
    calendar: Calendar,
    /// Room for input that waits.
    room: Rc<Room>,
    /// Room for output.
    output: Rc<Room>,
    /// Connections to go on with in the turns that follow, so that none holds up the others for
    /// long.
    again: VecDeque<Slot>,
    /// Bytes given to the backend in this turn.
    turn_bytes: usize,
    known: KnownHead,
    batch: Batch,
    null_payload: PayloadId,
    pattern_payload: PayloadId,
    /// Memory for the field block in hand.
    scratch: Vec<u8>,
    /// When those answers of HTTP/2 in the batch were due that had to wait for an instant.
    dues: Vec<u64>,
    settings: Settings,
    /// Requests that nobody has heard of who is to decide on their answers.
    asked: Vec<Asked>,
}

/// How a worker serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
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
    /// Whether the host decides on the answers over HTTP/2.
    pub(crate) is_directed: bool,
}

impl<B: ServerBackend> Worker<B> {
    /// Worker number `index` of those that `shared` counts, on a backend that listens.
    pub(crate) fn new(
        mut backend: B,
        shared: &Arc<Shared>,
        index: usize,
        settings: Settings,
    ) -> Self {
        let null_payload = backend.add_payload(batch::null_payload().into());
        let pattern_payload = backend.add_payload(pattern::pattern_payload().into());
        Self {
            backend,
            shared: Arc::clone(shared),
            counters: Arc::clone(shared.worker(index)),
            connections: Vec::new(),
            open: 0,
            offers: Offers::new(settings.connections_max, settings.is_tls),
            wakes: BTreeSet::new(),
            calendar: Calendar::new(settings.idle_timeout_ns),
            room: Room::new(
                settings.input_bytes_max,
                settings.connections_max,
                INPUT_BUFFERS,
            ),
            output: Room::new(
                settings.output_bytes_max,
                settings.connections_max,
                OUTPUT_BUFFERS,
            ),
            again: VecDeque::new(),
            turn_bytes: 0,
            known: KnownHead::default(),
            batch: Batch::new(settings.is_tls),
            null_payload,
            pattern_payload,
            scratch: Vec::new(),
            dues: Vec::new(),
            settings,
            asked: Vec::new(),
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
            if self.connections[index].open {
                self.close(Slot(index as u32));
            }
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
            if self.turn_bytes >= TURN_BYTES_MAX {
                break;
            }
            if let Some(slot) = self.again.pop_front() {
                self.connections[slot.0 as usize].queued = false;
                self.drive(slot);
            }
        }
        while let Some(&(at_ns, slot)) = self.wakes.first()
            && at_ns <= now_ns
        {
            self.wakes.pop_first();
            let connection = &mut self.connections[slot.0 as usize];
            if let Some(work) = &mut connection.work {
                work.wake_ns = None;
            }
            if let Some(http2) = &mut connection.http2 {
                http2.wake_ns = None;
            }
            self.drive(slot);
        }
        if !self.again.is_empty() || self.settings.spin && self.open > 0 {
            return Some(now_ns);
        }
        let due_ns = self.wakes.first().map(|&(at_ns, _)| at_ns);
        due_ns.into_iter().chain(self.offers.again_ns(now_ns)).min()
    }

    fn offer_slots(&mut self, now_ns: u64) {
        while let Some(slot) = self.offers.next(now_ns) {
            let index = slot.0 as usize;
            if self.connections.len() <= index {
                self.connections.resize_with(index + 1, Connection::default);
            }
            self.backend.accept(slot);
        }
    }

    /// Closes the connections that have been idle for too long.
    fn close_idle(&mut self) {
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            if !connection.open {
                continue;
            }
            if connection.waits_for_its_time() {
                connection.moved = self.calendar.page();
            } else if self.calendar.is_idle(connection.moved) {
                self.counters.timed_out.add(1);
                self.close(Slot(index as u32));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Received(slot) => self.receive(slot),
            Event::Sent(slot) => {
                let connection = &mut self.connections[slot.0 as usize];
                connection.sending = false;
                connection.sending_hold = Hold::default();
                connection.moved = self.calendar.page();
                if connection.http2.is_some() {
                    self.sent_http2(slot);
                } else if connection.work.is_some() {
                    self.go_on_later(slot);
                } else if connection.ended || connection.after != After::KeepOpen {
                    self.close(slot);
                }
            }
            Event::Accepted(slot) => {
                self.offers.accepted();
                self.counters.accepted.add(1);
                let secured = self.backend.secured(slot);
                let is_resumed = secured.is_some_and(|secured| secured.is_resumed);
                self.counters.handshakes_resumed.add(u64::from(is_resumed));
                self.open += 1;
                self.connections[slot.0 as usize] = Connection {
                    open: true,
                    moved: self.calendar.page(),
                    ..Connection::default()
                };
            }
            Event::AcceptFailed(slot, errno) => {
                match self.offers.failed(slot, errno, self.backend.now_ns()) {
                    Refused::Handshake => self.counters.handshakes_failed.add(1),
                    Refused::Accept => self.counters.accepts_failed.add(1),
                }
            }
            Event::Ended(slot) => {
                let connection = &mut self.connections[slot.0 as usize];
                connection.ended = true;
                if connection.http2.is_some() {
                    return self.drive_http2(slot);
                }
                let idle = connection.work.is_none() && !connection.sending;
                if idle {
                    self.close(slot)
                } else {
                    self.drive(slot)
                }
            }
            Event::SendFailed(slot, _) | Event::ReceiveFailed(slot, _) => self.close(slot),
            // This worker never connects, and discards nothing.
            Event::Connected(slot)
            | Event::ConnectFailed(slot, _)
            | Event::HandshakeFailed(slot, _)
            | Event::Discarded(slot, _) => self.close(slot),
        }
    }

    fn receive(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let bytes = self.backend.received();
        self.counters.bytes_received.add(bytes.len() as u64);
        if connection.after != After::KeepOpen {
            return;
        }
        if connection.http2.is_some() {
            return self.receive_http2(slot, 0);
        }
        let is_progress = match connection.work.as_deref_mut() {
            None => true,
            Some(work) if work.is_in_head() => false,
            Some(work) => {
                let length = bytes.len() as u64;
                self.calendar.is_fast(&mut work.trickled_bytes, length)
            }
        };
        if is_progress {
            connection.moved = self.calendar.page();
        }
        if !connection.begun && !self.begin(slot) {
            return;
        }
        let connection = &mut self.connections[slot.0 as usize];
        let bytes = self.backend.received();
        if connection
            .work
            .as_ref()
            .is_some_and(|work| work.websocket.is_some())
        {
            return self.receive_websocket(slot);
        }
        if connection.sending || connection.work.is_some() {
            let work = connection.work.get_or_insert_default();
            if matches!(work.stream, Some(Stream::Silence)) {
                return;
            }
            if !work.keep(bytes, self.backend.now_ns(), &self.room) {
                self.overflow(slot);
            } else if work.stream.is_none() && !connection.queued {
                self.drive(slot);
            }
            return;
        }
        // Nothing is incomplete: the common case, answered from the received bytes in place.
        self.batch.fit_into(self.output.grant_bytes());
        let mut reader = Reader::default();
        let context = Context {
            shared: &self.shared,
            counters: &self.counters,
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
        let is_kept = work.keep(&bytes[taken..], self.backend.now_ns(), &self.room);
        connection.work = Some(work);
        if is_kept {
            self.proceed(slot, next);
        } else {
            self.batch.clear();
            self.overflow(slot);
        }
    }

    /// Closes a connection for whose input, or output, there is no room.
    fn overflow(&mut self, slot: Slot) {
        self.counters.overflowed.add(1);
        self.close(slot);
    }

    /// Sends what was answered, and goes on according to `next`.
    fn proceed(&mut self, slot: Slot, next: Next) {
        let connection = &mut self.connections[slot.0 as usize];
        match next {
            Next::Request | Next::Input => {}
            Next::Stream(stream) => {
                connection.work.get_or_insert_default().stream = Some(stream);
            }
            Next::WebSocket(route) => {
                let work = connection.work.get_or_insert_default();
                work.websocket = Some(WebSocket::boxed(route));
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

    /// Goes on with whatever is incomplete on a connection, unless a send is in flight.
    fn drive(&mut self, slot: Slot) {
        if self.connections[slot.0 as usize].http2.is_some() {
            return self.drive_http2(slot);
        }
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
            if work.websocket.is_some() {
                return self.drive_websocket(slot);
            }
            self.batch.fit_into(self.output.grant_bytes());
            if let Some(stream) = &mut work.stream {
                let now_ns = self.backend.now_ns();
                match stream.step(now_ns, &mut self.batch, &self.counters) {
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
                    shared: &self.shared,
                    counters: &self.counters,
                    noticed_ns: &|| noticed_ns,
                    now_ns: &|| self.backend.now_ns(),
                };
                let (taken, next) = answer_input(
                    &mut work.reader,
                    &mut self.known,
                    work.input.rest(),
                    &mut self.batch,
                    &context,
                );
                work.input.take(taken);
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
                    Next::WebSocket(route) => work.websocket = Some(WebSocket::boxed(route)),
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

    /// Has the connection go on in one of the turns that follow.
    fn go_on_later(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.connections[slot.0 as usize].queued, true) {
            self.again.push_back(slot);
        }
    }

    fn send_pattern(&mut self, slot: Slot, start: u32, end: u32) {
        if self.settings.is_tls && !self.holds_sending(slot, (end - start) as usize) {
            return self.overflow(slot);
        }
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
        let content = self.batch.content();
        let is_held = match content {
            Content::Nothing => {
                self.batch.clear();
                return false;
            }
            Content::Nulls(_) if !self.settings.is_tls => true,
            Content::Nulls(_) => self.holds_sending(slot, self.batch.length()),
            Content::Bytes => self.holds_batch(slot),
        };
        if !is_held {
            self.batch.clear();
            self.dues.clear();
            self.overflow(slot);
            return true;
        }
        let outgoing = match content {
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

    /// Tells the room for output how many bytes are sent next; false when there is no room for
    /// them.
    fn holds_sending(&mut self, slot: Slot, bytes: usize) -> bool {
        let hold = &mut self.connections[slot.0 as usize].sending_hold;
        hold.set(bytes, &self.output)
    }

    /// Tells the room for output how many bytes of the batch are sent next, and how much memory the
    /// batch takes; false when there is no room for them.
    fn holds_batch(&mut self, slot: Slot) -> bool {
        if !self.holds_sending(slot, self.batch.length()) {
            return false;
        }
        // A batch that was used before may hold more memory than there is room for now.
        self.batch.trim(self.output.grant_bytes());
        let hold = &mut self.connections[slot.0 as usize].sending_hold;
        hold.correct(self.batch.capacity());
        true
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        self.turn_bytes += match &outgoing {
            Outgoing::Shared { start, end, .. } => (end - start) as usize,
            Outgoing::Owned(bytes) => bytes.len(),
        };
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
        if let Some(http2) = &mut connection.http2 {
            http2.session.all_sent();
            if !self.dues.is_empty() {
                let now_ns = self.backend.now_ns();
                for due_ns in self.dues.drain(..) {
                    self.counters.delayed(now_ns.saturating_sub(due_ns));
                }
            }
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
            let waits = work.websocket.is_some_and(|websocket| websocket.waits());
            if waits || matches!(work.stream, Some(Stream::NullAt { .. })) {
                self.counters.abandoned.add(1);
            }
        }
        self.asked.retain(|asked| asked.slot != slot);
        if let Some(mut http2) = connection.http2.take() {
            if let Some(at_ns) = http2.wake_ns {
                self.wakes.remove(&(at_ns, slot));
            }
            http2.session.abandon(&self.counters);
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
        self.offers.give_back(slot);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_bounds;
#[cfg(test)]
mod tests_http2;
#[cfg(test)]
mod tests_websocket;
