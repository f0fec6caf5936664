//! One worker of raw TCP: accepts, reads, answers, keeps time.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use brunt_io::backend::{Event, Outgoing, PayloadId, ServerBackend, Slot};
use brunt_proto::messages::{Framing, Scanner};

use super::answers::Answers;
use super::counters::TcpWorkerCounters;
use super::fault::TcpFaultKind;
use super::service::{TcpDelay, TcpFault, TcpOptions, TcpService};
use crate::calendar::Calendar;
use crate::connection::INPUT_BYTES_MAX;
use crate::counters::{Shared, mix};
use crate::offers::{Offers, Refused};
use crate::pattern;
use crate::room::{Hold, Room};
use crate::worker::{STOP_CHECK_NS, Settings};

/// Bytes that are thrown away at once, at most.
const DISCARD_BYTES_MAX: u64 = 1 << 20;
/// Replies that one send can hold, at most, and about how many bytes they have.
const REPLIES_MAX: usize = 256;
const REPLIES_BYTES: usize = 64 * 1024;
/// A source with a rate sends so often per second, unless a piece would be too long.
const PIECES_PER_S: u64 = 200;
/// What a source's peer did not take for so long is not made up for.
const CATCH_UP_NS: u64 = 100_000_000;

/// A worker on its backend.
pub(crate) struct TcpWorker<'a, B> {
    backend: B,
    options: &'a TcpOptions,
    shared: &'a Shared,
    counters: &'a TcpWorkerCounters,
    connections: Vec<Connection>,
    /// How many of them are open.
    open: u32,
    offers: Offers,
    calendar: Calendar,
    /// Connections on which something waits for an instant.
    wakes: BTreeSet<(u64, Slot)>,
    /// Connections to go on with in the next turn, so that none holds up the others for long.
    again: Vec<Slot>,
    /// Room for bytes that are to be sent back.
    room: Rc<Room>,
    payload: Payload,
    /// Exponential delays so far.
    draws: u64,
    spin: bool,
}

/// What is sent from, without a copy.
#[derive(Clone, Copy, Debug)]
struct Payload {
    id: PayloadId,
    /// Bytes of one reply; 0 for a service without known ones.
    reply_bytes: u64,
    /// How many times it is in the payload.
    replies: u64,
}

/// One slot's connection.
#[derive(Debug, Default)]
struct Connection {
    open: bool,
    /// Whether a send is in flight.
    sending: bool,
    /// Whether the peer has closed its side.
    ended: bool,
    /// What to do when nothing is in flight and no answer waits.
    ending: Option<Ending>,
    /// Nothing more is read.
    is_deaf: bool,
    /// The fault of the connection has happened.
    has_failed: bool,
    /// The page of the worker's calendar on which it got on last.
    moved: u16,
    /// Messages, or bytes, before its fault: those that came, or that a source sent.
    units: u64,
    /// When the worker is to come back.
    wake_ns: Option<u64>,
    /// Present while a message is incomplete or an answer waits, and on a source with a rate.
    work: Option<Box<Work>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Close,
    Reset,
}

/// What is kept of a connection that is not idle.
#[derive(Debug, Default)]
struct Work {
    scanner: Scanner,
    /// Bytes that came since the connection got on, and completed nothing.
    trickled_bytes: u64,
    answers: Answers,
    /// Bytes to be sent back: those of `answers`, then those of an incomplete message.
    echo: Vec<u8>,
    hold: Hold,
    /// Since when a source with a rate has been sending, and how much.
    source_from_ns: u64,
    source_bytes: u64,
}

impl Work {
    fn is_idle(&self) -> bool {
        self.answers.is_empty() && self.scanner.pending_bytes() == 0
    }
}

/// What a message, or a piece of bytes, gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admitted {
    /// The answer to the message.
    Answer,
    /// The answer to the message, behind which the fault happens.
    Last(TcpFaultKind),
    /// The fault.
    Fault(TcpFaultKind),
}

/// What a message gets that comes behind `units` others.
fn admit(fault: Option<TcpFault>, units: u64) -> Admitted {
    match fault {
        Some(fault) if units >= fault.after => Admitted::Fault(fault.kind),
        Some(fault) if units + 1 == fault.after && is_behind_an_answer(fault.kind) => {
            Admitted::Last(fault.kind)
        }
        _ => Admitted::Answer,
    }
}

/// Whether a fault happens behind an answer, and not instead of the next one.
fn is_behind_an_answer(kind: TcpFaultKind) -> bool {
    matches!(kind, TcpFaultKind::Close | TcpFaultKind::Unread)
}

impl<'a, B: ServerBackend> TcpWorker<'a, B> {
    /// Worker number `index` of those that `shared` counts, for connections from `listener`.
    pub(crate) fn new(
        mut backend: B,
        listener: BorrowedFd<'_>,
        options: &'a TcpOptions,
        shared: &'a Shared,
        index: usize,
        settings: Settings,
    ) -> io::Result<Self> {
        backend.listen(listener)?;
        backend.receive_on_request();
        let (bytes, reply_bytes, replies) = match &options.service {
            TcpService::Reply { reply, .. } => {
                let replies = (REPLIES_BYTES / reply.len().max(1)).clamp(1, REPLIES_MAX);
                (reply.repeat(replies), reply.len(), replies)
            }
            TcpService::Source(_) => (pattern::pattern_payload(), 0, 0),
            // Nothing is sent from it.
            TcpService::Echo(_) | TcpService::Sink(_) => (Vec::new(), 0, 0),
        };
        let payload = Payload {
            id: backend.add_payload(bytes.into()),
            reply_bytes: reply_bytes as u64,
            replies: replies as u64,
        };
        Ok(Self {
            backend,
            options,
            shared,
            counters: shared.tcp_worker(index),
            connections: Vec::new(),
            open: 0,
            offers: Offers::new(settings.connections_max, settings.is_tls),
            calendar: Calendar::new(settings.idle_timeout_ns),
            wakes: BTreeSet::new(),
            again: Vec::new(),
            room: Room::new(settings.input_bytes_max, settings.connections_max, 1),
            payload,
            draws: (index as u64) << 48,
            spin: settings.spin,
        })
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
    pub(super) fn turn(&mut self) -> io::Result<()> {
        let now_ns = self.backend.now_ns();
        while let Some(slot) = self.offers.next(now_ns) {
            let index = slot.0 as usize;
            if self.connections.len() <= index {
                self.connections.resize_with(index + 1, Connection::default);
            }
            self.backend.accept(slot);
        }
        if self.calendar.turns(now_ns) {
            self.close_idle();
        }
        let mut again = std::mem::take(&mut self.again);
        for slot in again.drain(..) {
            self.go_on(slot);
        }
        self.again = again;
        while let Some(&(at_ns, slot)) = self.wakes.first()
            && at_ns <= now_ns
        {
            self.wakes.pop_first();
            self.connections[slot.0 as usize].wake_ns = None;
            self.go_on(slot);
        }
        let wake_ns = self.wakes.first().map(|(at_ns, _)| *at_ns);
        let offer_ns = self.offers.again_ns(now_ns);
        let until_ns = match self.spin && self.open > 0 {
            true => now_ns,
            false => wake_ns
                .into_iter()
                .chain(offer_ns)
                .fold(now_ns + STOP_CHECK_NS, u64::min),
        };
        self.backend.wait(Some(until_ns))?;
        while let Some(event) = self.backend.next_event() {
            self.handle(event);
        }
        Ok(())
    }

    /// Closes the connections that have been idle for too long.
    fn close_idle(&mut self) {
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            if !connection.open {
                continue;
            }
            if connection.wake_ns.is_some() && !connection.sending {
                connection.moved = self.calendar.page();
            } else if self.calendar.is_idle(connection.moved) {
                self.counters.timed_out.add(1);
                self.close(Slot(index as u32));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Received(slot) => {
                let length = self.backend.received().len() as u64;
                self.counters.bytes_received.add(length);
                self.receive(slot, length);
            }
            Event::Discarded(slot, length) => {
                let length = u64::from(length);
                self.counters.bytes_received.add(length);
                self.counters.bytes_discarded.add(length);
                self.receive(slot, length);
            }
            Event::Sent(slot) => {
                let connection = &mut self.connections[slot.0 as usize];
                connection.sending = false;
                connection.moved = self.calendar.page();
                self.again.push(slot);
            }
            Event::Accepted(slot) => self.accepted(slot),
            Event::AcceptFailed(slot, errno) => {
                match self.offers.failed(slot, errno, self.backend.now_ns()) {
                    Refused::Handshake => self.counters.handshakes_failed.add(1),
                    Refused::Accept => self.counters.accepts_failed.add(1),
                }
            }
            Event::Ended(slot) => {
                self.connections[slot.0 as usize].ended = true;
                if matches!(self.options.service.framing(), Some(Framing::UntilClose)) {
                    self.end_message(slot);
                }
                self.go_on(slot);
            }
            // This worker never connects.
            Event::SendFailed(slot, _)
            | Event::ReceiveFailed(slot, _)
            | Event::Connected(slot)
            | Event::ConnectFailed(slot, _)
            | Event::HandshakeFailed(slot, _) => self.close(slot),
        }
    }

    fn accepted(&mut self, slot: Slot) {
        self.offers.accepted();
        self.counters.accepted.add(1);
        self.open += 1;
        self.connections[slot.0 as usize] = Connection {
            open: true,
            moved: self.calendar.page(),
            ..Connection::default()
        };
        if let TcpService::Source(Some(_)) = self.options.service {
            let source_from_ns = self.backend.now_ns();
            let work = &mut self.connections[slot.0 as usize].work;
            work.get_or_insert_default().source_from_ns = source_from_ns;
        }
        let is_source = matches!(self.options.service, TcpService::Source(_));
        match self.options.fault {
            Some(fault) if fault.after == 0 && is_behind_an_answer(fault.kind) && !is_source => {
                self.fail(slot, fault.kind);
            }
            _ => {}
        }
        self.go_on(slot);
    }

    /// The fault happens.
    fn fail(&mut self, slot: Slot, kind: TcpFaultKind) {
        let connection = &mut self.connections[slot.0 as usize];
        if !std::mem::replace(&mut connection.has_failed, true) {
            self.counters.fault(kind);
        }
        match kind {
            TcpFaultKind::Close | TcpFaultKind::Refuse | TcpFaultKind::Cut => {
                connection.ending = Some(Ending::Close);
            }
            TcpFaultKind::Reset => connection.ending = Some(Ending::Reset),
            TcpFaultKind::Silent => {}
            TcpFaultKind::Unread => connection.is_deaf = true,
        }
    }

    /// Deals with so many bytes that came: the backend shows them, unless they were discarded.
    fn receive(&mut self, slot: Slot, length: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.ending.is_some() || connection.is_deaf {
            return;
        }
        let units = connection.units;
        match &self.options.service {
            TcpService::Source(_) => {}
            TcpService::Sink(None) | TcpService::Echo(None) => self.take_bytes(slot, length),
            TcpService::Sink(Some(framing))
            | TcpService::Echo(Some(framing))
            | TcpService::Reply { framing, .. } => self.take_messages(slot, framing),
        }
        let connection = &mut self.connections[slot.0 as usize];
        let is_progress = match &mut connection.work {
            Some(work) if connection.units == units && work.scanner.pending_bytes() > 0 => {
                self.calendar.is_fast(&mut work.trickled_bytes, length)
            }
            _ => true,
        };
        if is_progress {
            connection.moved = self.calendar.page();
        }
        self.go_on(slot);
    }

    /// Bytes came that are no messages.
    fn take_bytes(&mut self, slot: Slot, length: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        let mut admitted = length;
        let mut fails = None;
        if let Some(fault) = self.options.fault {
            let left = fault.after.saturating_sub(connection.units);
            admitted = length.min(left);
            if length > left || length == left && is_behind_an_answer(fault.kind) {
                fails = Some(fault.kind);
            }
        }
        connection.units += length;
        if self.options.service.answers() && admitted > 0 {
            let at_ns = self.due_ns();
            let bytes = &self.backend.received()[..admitted as usize];
            let connection = &mut self.connections[slot.0 as usize];
            let work = connection.work.get_or_insert_default();
            work.echo.extend_from_slice(bytes);
            work.answers.push(at_ns, 1, admitted);
            if !work.hold.set(work.echo.capacity(), &self.room) {
                return self.overflow(slot);
            }
        }
        if let Some(kind) = fails {
            self.fail(slot, kind);
        }
    }

    /// Bytes came in which messages may end.
    fn take_messages(&mut self, slot: Slot, framing: &Framing) {
        let echoes = matches!(self.options.service, TcpService::Echo(_));
        let mut taken = 0;
        loop {
            let connection = &mut self.connections[slot.0 as usize];
            let rest = &self.backend.received()[taken..];
            if rest.is_empty() || connection.ending.is_some() || connection.is_deaf {
                break;
            }
            let work = connection.work.get_or_insert_default();
            let Ok(scanned) = work.scanner.receive(framing, rest, b"") else {
                self.counters.misframed.add(1);
                return self.close(slot);
            };
            taken += scanned.consumed;
            let is_answered = !(connection.has_failed && connection.ending.is_none());
            if echoes && is_answered {
                work.echo.extend_from_slice(&rest[..scanned.consumed]);
                let is_held = work.hold.set(work.echo.capacity(), &self.room);
                if !is_held || work.scanner.pending_bytes() > INPUT_BYTES_MAX as u64 {
                    return self.overflow(slot);
                }
            }
            if let Some(bytes) = scanned.message_bytes {
                self.message(slot, bytes);
            }
        }
    }

    /// The peer closed its side, which ends a message.
    fn end_message(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.ending.is_some() || connection.is_deaf {
            return;
        }
        let work = connection.work.get_or_insert_default();
        if let Ok(Some(bytes)) = work.scanner.end(&Framing::UntilClose) {
            self.message(slot, bytes);
        }
    }

    /// A message of so many bytes is complete.
    fn message(&mut self, slot: Slot, bytes: u64) {
        self.counters.messages.add(1);
        let connection = &mut self.connections[slot.0 as usize];
        let admitted = admit(self.options.fault, connection.units);
        connection.units += 1;
        let answer_bytes = match self.options.service {
            TcpService::Echo(_) => bytes,
            TcpService::Reply { .. } => self.payload.reply_bytes,
            TcpService::Sink(_) | TcpService::Source(_) => 0,
        };
        let answers = self.options.service.answers();
        match admitted {
            Admitted::Answer | Admitted::Last(_) if answers => {
                let at_ns = self.due_ns();
                if let Some(work) = &mut self.connections[slot.0 as usize].work {
                    work.answers.push(at_ns, 1, answer_bytes);
                }
            }
            Admitted::Fault(TcpFaultKind::Cut) => {
                self.counters.unanswered.add(1);
                let at_ns = self.due_ns();
                if let Some(work) = &mut self.connections[slot.0 as usize].work {
                    work.answers.push_part(at_ns, answer_bytes / 2);
                }
            }
            Admitted::Fault(_) if answers => self.counters.unanswered.add(1),
            _ => {}
        }
        if let Admitted::Last(kind) | Admitted::Fault(kind) = admitted {
            self.fail(slot, kind);
        }
    }

    /// When a message that is noticed now is to be answered; 0: at once.
    fn due_ns(&mut self) -> u64 {
        let (delay, stall) = (self.options.delay, self.options.stall);
        if delay.is_none() && stall.is_none() {
            return 0;
        }
        let delay_ns = match delay {
            None => 0,
            Some(TcpDelay::Fixed(ns)) => ns,
            Some(TcpDelay::Exponential(mean_ns)) => {
                self.draws += 1;
                exponential_ns(mean_ns, mix(self.draws))
            }
        };
        let at_ns = self.backend.now_ns().saturating_add(delay_ns);
        stall.map_or(at_ns, |stall| stall.end_ns(at_ns))
    }

    /// Closes a connection for whose output there is no room.
    fn overflow(&mut self, slot: Slot) {
        self.counters.overflowed.add(1);
        self.close(slot);
    }

    /// Sends what is due on a connection, unless a send is in flight, and reads on.
    fn go_on(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        if !connection.open {
            return;
        }
        if !connection.sending {
            let sends = match self.options.service {
                // Whoever has closed its side has enough.
                TcpService::Source(_) if connection.ended => false,
                TcpService::Source(rate) => self.send_source(slot, rate.map(u64::from)),
                _ => self.send_answers(slot),
            };
            let connection = &mut self.connections[slot.0 as usize];
            let is_source = matches!(self.options.service, TcpService::Source(_));
            let is_waiting = connection.wake_ns.is_some() && !(is_source && connection.ended);
            if !sends && !is_waiting && (connection.ended || connection.ending.is_some()) {
                return self.close(slot);
            }
            if !sends && connection.work.as_ref().is_some_and(|work| work.is_idle()) {
                self.release(slot);
            }
        }
        self.read(slot);
    }

    /// Forgets what is kept of a connection that is idle, unless it is a source.
    fn release(&mut self, slot: Slot) {
        if !matches!(self.options.service, TcpService::Source(_)) {
            self.connections[slot.0 as usize].work = None;
        }
    }

    /// Has the connection receive, unless it is to receive no more, or not now.
    fn read(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        if connection.ended || connection.ending.is_some() || connection.is_deaf {
            return;
        }
        let work = connection.work.as_ref();
        if work.is_some_and(|work| work.answers.is_full()) {
            return;
        }
        let discard_bytes = match self.options.service {
            TcpService::Source(_) => DISCARD_BYTES_MAX,
            TcpService::Sink(None) => match self.options.fault {
                Some(fault) if fault.after > connection.units => {
                    DISCARD_BYTES_MAX.min(fault.after - connection.units)
                }
                _ => DISCARD_BYTES_MAX,
            },
            _ => 0,
        };
        if let (TcpService::Sink(_), Some(stall)) = (&self.options.service, self.options.stall) {
            let now_ns = self.backend.now_ns();
            let until_ns = stall.end_ns(now_ns);
            if until_ns > now_ns {
                return self.wake_at(slot, until_ns);
            }
        }
        self.backend.receive(slot, discard_bytes);
    }

    fn wake_at(&mut self, slot: Slot, at_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        if let Some(before_ns) = connection.wake_ns.replace(at_ns) {
            self.wakes.remove(&(before_ns, slot));
        }
        self.wakes.insert((at_ns, slot));
    }

    /// Sends the answers that are due; false where none is.
    fn send_answers(&mut self, slot: Slot) -> bool {
        let Some(work) = &mut self.connections[slot.0 as usize].work else {
            return false;
        };
        let Some(next_ns) = work.answers.next_ns() else {
            return false;
        };
        let now_ns = match next_ns {
            0 => 0,
            _ => self.backend.now_ns(),
        };
        if next_ns > now_ns {
            self.wake_at(slot, next_ns);
            return false;
        }
        let echoes = self.payload.reply_bytes == 0;
        let answers_max = if echoes {
            u64::MAX
        } else {
            self.payload.replies
        };
        let counters = self.counters;
        let due = work.answers.take(now_ns, answers_max, |answers, late_ns| {
            counters.delayed(answers, late_ns);
        });
        if self.options.service.framing().is_some() {
            counters.replies.add(due.answers);
        }
        let outgoing = if echoes {
            // Never more than is kept.
            let bytes = due.bytes as usize;
            let mut out = self.backend.take_buffer();
            if bytes == work.echo.len() {
                std::mem::swap(&mut out, &mut work.echo);
            } else {
                out.extend_from_slice(&work.echo[..bytes]);
                work.echo.drain(..bytes);
            }
            work.hold.correct(work.echo.capacity());
            Outgoing::Owned(out)
        } else {
            Outgoing::Shared {
                payload: self.payload.id,
                start: 0,
                end: due.bytes as u32,
            }
        };
        if due.bytes == 0 {
            // Half of a single byte.
            return false;
        }
        self.send(slot, due.bytes, outgoing);
        true
    }

    /// Sends the next piece of a source; false where none is due, or none is left.
    fn send_source(&mut self, slot: Slot, rate: Option<u64>) -> bool {
        let units = self.connections[slot.0 as usize].units;
        let mut piece = pattern::PIECE_BYTES_MAX;
        if let Some(fault) = self.options.fault {
            let left = fault.after.saturating_sub(units);
            if left == 0 {
                self.fail(slot, fault.kind);
                return false;
            }
            piece = piece.min(left);
        }
        let stall = self.options.stall;
        if rate.is_some() || stall.is_some() {
            let now_ns = self.backend.now_ns();
            let mut at_ns = now_ns;
            if let (Some(rate), Some(work)) = (rate, &mut self.connections[slot.0 as usize].work) {
                piece = piece.min((rate / PIECES_PER_S).max(1));
                at_ns = work.due_ns(rate, piece);
                if at_ns.saturating_add(CATCH_UP_NS) < now_ns {
                    work.source_from_ns = now_ns;
                    work.source_bytes = 0;
                    at_ns = work.due_ns(rate, piece);
                }
            }
            let at_ns = at_ns.max(now_ns);
            let at_ns = stall.map_or(at_ns, |stall| stall.end_ns(at_ns));
            if at_ns > now_ns {
                self.wake_at(slot, at_ns);
                return false;
            }
        }
        let connection = &mut self.connections[slot.0 as usize];
        connection.units += piece;
        if let Some(work) = &mut connection.work {
            work.source_bytes += piece;
        }
        let start = pattern::pattern_start(units);
        let outgoing = Outgoing::Shared {
            payload: self.payload.id,
            start,
            // A piece and a period of the pattern at most.
            end: start + piece as u32,
        };
        self.send(slot, piece, outgoing);
        true
    }

    fn send(&mut self, slot: Slot, bytes: u64, outgoing: Outgoing) {
        self.counters.bytes_sent.add(bytes);
        self.connections[slot.0 as usize].sending = true;
        self.backend.send(slot, outgoing);
    }

    fn close(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if !connection.open {
            return;
        }
        let connection = std::mem::take(connection);
        if let Some(at_ns) = connection.wake_ns {
            self.wakes.remove(&(at_ns, slot));
        }
        if let (Some(work), Some(_)) = (&connection.work, self.options.service.framing()) {
            self.counters.abandoned.add(work.answers.count());
        }
        self.open -= 1;
        self.counters.closed.add(1);
        match connection.ending {
            Some(Ending::Reset) => self.backend.reset(slot),
            Some(Ending::Close) | None => self.backend.close(slot),
        }
        self.offers.give_back(slot);
    }
}

impl Work {
    /// When a source has `piece` bytes more to send, at so many bytes per second.
    fn due_ns(&self, rate: u64, piece: u64) -> u64 {
        let bytes = u128::from(self.source_bytes + piece);
        let ns = bytes * 1_000_000_000 / u128::from(rate.max(1));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        self.source_from_ns.saturating_add(ns)
    }
}

/// A delay of an exponential distribution with this mean, from a random word.
fn exponential_ns(mean_ns: u64, word: u64) -> u64 {
    // Above 0, and at most 1.
    let unit = ((word >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    // Less than 37 times the mean.
    (-unit.ln() * mean_ns as f64) as u64
}

#[cfg(test)]
mod tests;
