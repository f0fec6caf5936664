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
    /// Present while a message is incomplete or an answer waits.
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
    answers: Answers,
    /// Bytes to be sent back: those of `answers`, then those of an incomplete message.
    echo: Vec<u8>,
    hold: Hold,
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
        if let (Some(work), Some(_)) = (connection.work, self.options.service.framing()) {
            self.counters.messages_abandoned.add(work.answers.count());
        }
        false
    }
}

impl<B: ServerBackend> Serve for Worker<B, Tcp<'_>> {
    fn accepted(&mut self, slot: Slot) {
        self.drive(slot);
    }

    fn received(&mut self, slot: Slot) {
        let service = &self.service.options.service;
        if let Some(framing) = service.framing() {
            self.take_messages(slot, framing);
        } else if service.answers() {
            self.echo(slot);
        }
        self.read_on(slot);
    }

    fn discarded(&mut self, slot: Slot, bytes: u64) {
        self.service.counters.bytes_discarded.add(bytes);
        self.read_on(slot);
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
        let stall = self.service.options.stall;
        if let Some(stall) = stall.filter(|_| !connection.link.ended) {
            let now_ns = self.backend.now_ns();
            let until_ns = stall.end_ns(now_ns);
            if until_ns > now_ns {
                return self.wake_at(slot, Some(until_ns));
            }
        }
        if !connection.link.sending {
            let sends = match self.service.options.service {
                // Whoever has closed its side has enough.
                TcpService::Source if connection.link.ended => false,
                TcpService::Source => self.send_source(slot),
                _ => self.send_answers(slot),
            };
            let connection = &mut self.connections[slot.0 as usize];
            if !sends {
                if connection.link.ended && connection.wake_ns.is_none() {
                    return self.close(slot);
                }
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
            TcpService::Source => pattern::pattern_payload(),
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

    /// Something came, and is dealt with.
    fn read_on(&mut self, slot: Slot) {
        self.connections[slot.0 as usize].link.moved = self.calendar.page();
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

    /// Bytes came in which messages may end.
    fn take_messages(&mut self, slot: Slot, framing: &Framing) {
        let echoes = matches!(self.service.options.service, TcpService::Echo(_));
        let mut taken = 0;
        loop {
            let connection = &mut self.connections[slot.0 as usize];
            let rest = &self.backend.received()[taken..];
            if rest.is_empty() {
                return;
            }
            let work = connection.work.get_or_insert_default();
            let Ok(scanned) = work.scanner.receive(framing, rest, b"") else {
                self.service.counters.connections_misframed.add(1);
                return self.close(slot);
            };
            taken += scanned.consumed;
            if echoes {
                work.echo.extend_from_slice(&rest[..scanned.consumed]);
                let is_held = work.hold.set(work.echo.capacity(), &self.service.room);
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
            TcpService::Sink(_) | TcpService::Source => return,
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
            TcpService::Source | TcpService::Sink(None) => DISCARD_BYTES_MAX,
            _ => 0,
        };
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

    /// Sends the next piece of a source.
    fn send_source(&mut self, slot: Slot) -> bool {
        let connection = &mut self.connections[slot.0 as usize];
        let start = pattern::pattern_start(connection.sent_bytes);
        connection.sent_bytes += pattern::PIECE_BYTES_MAX;
        let outgoing = Outgoing::Shared {
            payload: self.service.payload,
            start,
            // A piece and a period of the pattern at most.
            end: start + pattern::PIECE_BYTES_MAX as u32,
        };
        self.send(slot, pattern::PIECE_BYTES_MAX, outgoing);
        true
    }

    fn send(&mut self, slot: Slot, bytes: u64, outgoing: Outgoing) {
        self.service.counters.bytes_sent.add(bytes);
        self.connections[slot.0 as usize].link.sending = true;
        self.backend.send(slot, outgoing);
    }
}

#[cfg(test)]
mod tests;
