//! Raw TCP: what a worker reads, answers and sends on each connection.

use std::rc::Rc;
use std::sync::Arc;

use brunt_io::backend::{Outgoing, PayloadId, ServerBackend, Slot};
use brunt_proto::messages::{Framing, Scanner};

use super::TcpWorkerCounters;
use super::service::{Answers, TcpOptions, TcpService};
use crate::batch::{Hold, Room};
use crate::connection::INPUT_BYTES_MAX;
use crate::count::LinkCounters;
use crate::counters::Shared;
use crate::pattern;
use crate::worker::{Link, Linked, Serve, Service, Worker, WorkerSettings};

/// Bytes that are thrown away at once, at most.
const DISCARD_BYTES_MAX: u64 = 1 << 20;
/// Replies that one send can hold, at most, and about how many bytes they have.
const REPLIES_MAX: usize = 256;
const REPLIES_BYTES: usize = 64 * 1024;
/// A source with a rate sends so often per second, unless a piece would be too long.
const PIECES_PER_S: u64 = 200;
/// What a source's peer did not take for so long is not made up for.
const CATCH_UP_NS: u64 = 100_000_000;

/// What a worker of raw TCP has beside its connections.
pub(crate) struct Tcp<'a> {
    options: &'a TcpOptions,
    counters: Arc<TcpWorkerCounters>,
    /// Room for bytes that are to be sent back.
    room: Rc<Room>,
    /// What is sent from, without a copy.
    payload: PayloadId,
    /// Bytes of one reply; 0 for a service without known ones.
    reply_bytes: u64,
    /// How many times it is in the payload; of a service without known replies any number.
    answers_max: u64,
}

/// One slot's connection.
#[derive(Debug, Default)]
pub(crate) struct TcpConnection {
    link: Link,
    /// Bytes that a source has sent.
    sent_bytes: u64,
    /// When the worker is to come back.
    wake_ns: Option<u64>,
    /// Present while a message is incomplete or an answer waits, and on a source with a rate.
    work: Option<Box<Work>>,
}

impl Linked for TcpConnection {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    fn wake_ns(&mut self) -> Option<&mut Option<u64>> {
        Some(&mut self.wake_ns)
    }
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

impl Service for Tcp<'_> {
    type Connection = TcpConnection;

    const TURN_BYTES_MAX: usize = usize::MAX;

    fn counters(&self) -> &LinkCounters {
        &self.counters.links
    }

    fn leave(&mut self, connection: TcpConnection) -> bool {
        if let (Some(work), Some(_)) = (&connection.work, self.options.service.framing()) {
            self.counters.messages_abandoned.add(work.answers.count());
        }
        false
    }
}

impl<B: ServerBackend> Serve for Worker<B, Tcp<'_>> {
    fn accepted(&mut self, slot: Slot) {
        if let TcpService::Source(Some(_)) = self.service.options.service {
            let source_from_ns = self.backend.now_ns();
            let work = &mut self.connections[slot.0 as usize].work;
            work.get_or_insert_default().source_from_ns = source_from_ns;
        }
        self.drive(slot);
    }

    fn received(&mut self, slot: Slot) {
        self.receive(slot, self.backend.received().len() as u64);
    }

    fn discarded(&mut self, slot: Slot, bytes: u64) {
        self.service.counters.bytes_discarded.add(bytes);
        self.receive(slot, bytes);
    }

    fn sent(&mut self, slot: Slot) {
        self.go_on_later(slot);
    }

    fn ended(&mut self, slot: Slot) {
        let framing = self.service.options.service.framing();
        if matches!(framing, Some(Framing::UntilClose)) {
            self.end_message(slot);
        }
        self.drive(slot);
    }

    /// Sends what is due on a connection, unless a send is in flight, and reads on.
    fn drive(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        if !connection.link.open {
            return;
        }
        if !connection.link.sending {
            let is_source = matches!(self.service.options.service, TcpService::Source(_));
            let sends = match self.service.options.service {
                // Whoever has closed its side has enough.
                TcpService::Source(_) if connection.link.ended => false,
                TcpService::Source(rate) => self.send_source(slot, rate.map(u64::from)),
                _ => self.send_answers(slot),
            };
            let connection = &mut self.connections[slot.0 as usize];
            let is_waiting = connection.wake_ns.is_some() && !(is_source && connection.link.ended);
            if !sends && !is_waiting && connection.link.ended {
                return self.close(slot);
            }
            if !sends && !is_source {
                connection.work.take_if(|work| work.is_idle());
            }
        }
        self.read(slot);
    }
}

impl<'a, B: ServerBackend> Worker<B, Tcp<'a>> {
    /// Worker number `index` of those that `shared` counts, on a backend that listens.
    pub(crate) fn of_tcp(
        mut backend: B,
        options: &'a TcpOptions,
        shared: &Arc<Shared>,
        index: usize,
        settings: WorkerSettings,
    ) -> Self {
        backend.receive_on_request();
        let reply = match &options.service {
            TcpService::Reply { reply, .. } => &reply[..],
            _ => &[],
        };
        let replies = (REPLIES_BYTES / reply.len().max(1)).clamp(1, REPLIES_MAX);
        let bytes = match options.service {
            TcpService::Source(_) => pattern::pattern_payload(),
            _ => reply.repeat(replies),
        };
        let payload = backend.add_payload(bytes.into());
        let tcp = Tcp {
            options,
            counters: Arc::clone(shared.tcp_worker(index)),
            room: Room::new(settings.input_bytes_max, settings.connections_max, 1),
            payload,
            reply_bytes: reply.len() as u64,
            answers_max: if reply.is_empty() {
                u64::MAX
            } else {
                replies as u64
            },
        };
        Self::new(backend, shared, settings, tcp)
    }

    /// Deals with so many bytes that came: the backend shows them, unless they were discarded.
    fn receive(&mut self, slot: Slot, length: u64) {
        let service = &self.service.options.service;
        let mut messages = 0;
        if let Some(framing) = service.framing() {
            messages = self.take_messages(slot, framing);
        } else if service.answers() {
            self.echo(slot);
        }
        let connection = &mut self.connections[slot.0 as usize];
        let is_progress = match &mut connection.work {
            Some(work) if messages == 0 && work.scanner.pending_bytes() > 0 => {
                self.calendar.is_fast(&mut work.trickled_bytes, length)
            }
            _ => true,
        };
        if is_progress {
            connection.link.moved = self.calendar.page();
        }
        self.drive(slot);
    }

    /// What came, which is no messages, is to be sent back.
    fn echo(&mut self, slot: Slot) {
        let at_ns = self.due_ns();
        let bytes = self.backend.received();
        let work = &mut self.connections[slot.0 as usize].work;
        let work = work.get_or_insert_default();
        work.echo.extend_from_slice(bytes);
        work.answers.push(at_ns, 1, bytes.len() as u64);
        if !work.hold.set(work.echo.capacity(), &self.service.room) {
            self.overflow(slot);
        }
    }

    /// Bytes came in which messages may end. Returns how many did.
    fn take_messages(&mut self, slot: Slot, framing: &Framing) -> u64 {
        let echoes = matches!(self.service.options.service, TcpService::Echo(_));
        let (mut taken, mut messages) = (0, 0);
        loop {
            let connection = &mut self.connections[slot.0 as usize];
            let rest = &self.backend.received()[taken..];
            if rest.is_empty() {
                return messages;
            }
            let work = connection.work.get_or_insert_default();
            let Ok(scanned) = work.scanner.receive(framing, rest, b"") else {
                self.service.counters.connections_misframed.add(1);
                self.close(slot);
                return messages;
            };
            taken += scanned.consumed;
            if echoes {
                work.echo.extend_from_slice(&rest[..scanned.consumed]);
                let is_held = work.hold.set(work.echo.capacity(), &self.service.room);
                if !is_held || work.scanner.pending_bytes() > INPUT_BYTES_MAX as u64 {
                    self.overflow(slot);
                    return messages;
                }
            }
            if let Some(bytes) = scanned.message_bytes {
                messages += 1;
                self.message(slot, bytes);
            }
        }
    }

    /// The peer closed its side, which ends a message.
    fn end_message(&mut self, slot: Slot) {
        let work = &mut self.connections[slot.0 as usize].work;
        let work = work.get_or_insert_default();
        if let Ok(Some(bytes)) = work.scanner.end(&Framing::UntilClose) {
            self.message(slot, bytes);
        }
    }

    /// A message of so many bytes is complete.
    fn message(&mut self, slot: Slot, bytes: u64) {
        self.service.counters.messages.add(1);
        let answer_bytes = match self.service.options.service {
            TcpService::Echo(_) => bytes,
            TcpService::Reply { .. } => self.service.reply_bytes,
            TcpService::Sink(_) | TcpService::Source(_) => return,
        };
        let at_ns = self.due_ns();
        if let Some(work) = &mut self.connections[slot.0 as usize].work {
            work.answers.push(at_ns, 1, answer_bytes);
        }
    }

    /// When a message that is noticed now is to be answered; 0: at once.
    fn due_ns(&self) -> u64 {
        let (delay_ns, stall) = (self.service.options.delay_ns, self.service.options.stall);
        if delay_ns.is_none() && stall.is_none() {
            return 0;
        }
        let at_ns = self.backend.now_ns().saturating_add(delay_ns.unwrap_or(0));
        stall.map_or(at_ns, |stall| stall.end_ns(at_ns))
    }

    /// Has the connection receive, unless it is to receive no more, or not now.
    fn read(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        if connection.link.ended {
            return;
        }
        let work = connection.work.as_ref();
        if work.is_some_and(|work| work.answers.is_full()) {
            return;
        }
        let discard_bytes = match self.service.options.service {
            TcpService::Source(_) | TcpService::Sink(None) => DISCARD_BYTES_MAX,
            _ => 0,
        };
        if let (TcpService::Sink(_), Some(stall)) =
            (&self.service.options.service, self.service.options.stall)
        {
            let now_ns = self.backend.now_ns();
            let until_ns = stall.end_ns(now_ns);
            if until_ns > now_ns {
                return self.wake_at(slot, Some(until_ns));
            }
        }
        self.backend.receive(slot, discard_bytes);
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
            self.wake_at(slot, Some(next_ns));
            return false;
        }
        let echoes = self.service.reply_bytes == 0;
        let counters = &self.service.counters;
        let answers_max = self.service.answers_max;
        let due = work.answers.take(now_ns, answers_max, |answers, late_ns| {
            counters.lateness.add(answers, late_ns);
        });
        if self.service.options.service.framing().is_some() {
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
                payload: self.service.payload,
                start: 0,
                end: due.bytes as u32,
            }
        };
        self.send(slot, due.bytes, outgoing);
        true
    }

    /// Sends the next piece of a source; false where none is due, or none is left.
    fn send_source(&mut self, slot: Slot, rate: Option<u64>) -> bool {
        let mut piece = pattern::PIECE_BYTES_MAX;
        let stall = self.service.options.stall;
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
                self.wake_at(slot, Some(at_ns));
                return false;
            }
        }
        let connection = &mut self.connections[slot.0 as usize];
        let start = pattern::pattern_start(connection.sent_bytes);
        connection.sent_bytes += piece;
        if let Some(work) = &mut connection.work {
            work.source_bytes += piece;
        }
        let outgoing = Outgoing::Shared {
            payload: self.service.payload,
            start,
            // A piece and a period of the pattern at most.
            end: start + piece as u32,
        };
        self.send(slot, piece, outgoing);
        true
    }

    fn send(&mut self, slot: Slot, bytes: u64, outgoing: Outgoing) {
        self.service.counters.bytes_sent.add(bytes);
        self.connections[slot.0 as usize].link.sending = true;
        self.backend.send(slot, outgoing);
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

#[cfg(test)]
mod tests;
