//! A backend without a kernel: what clients do is scripted, and time is virtual.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use brunt_io::backend::{Backend, Event, Outgoing, PayloadId, ServerBackend, Slot};
use brunt_io::transport::Stream;

/// What the server did on one connection.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) sent: Vec<u8>,
    /// The parts of `sent`, one per send: the instant and the length.
    pub(crate) sends: Vec<(u64, usize)>,
    /// How many of them were parts of a payload.
    pub(crate) shared_sends: usize,
    pub(crate) closed: bool,
    pub(crate) is_reset: bool,
    /// A send that the peer does not take yet.
    pub(crate) held: bool,
    /// The bytes of it, where they are of this connection alone.
    pub(crate) held_bytes: usize,
}

/// The scripted backend.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    pub(crate) now_ns: u64,
    pub(crate) offered: VecDeque<Slot>,
    pub(crate) seen: BTreeMap<Slot, Seen>,
    /// Whether peers leave what is sent, but for the first `taken_first` bytes of a connection.
    pub(crate) hold_sends: bool,
    pub(crate) taken_first: usize,
    /// How long it takes to look for events when there are none.
    pub(crate) poll_ns: u64,
    /// How much later than asked for a sleep ends.
    pub(crate) oversleep_ns: u64,
    /// How far the clock moves on whenever it is read.
    pub(crate) reading_ns: u64,
    /// How far that has moved it.
    moved_ns: Cell<u64>,
    /// How often the worker slept.
    pub(crate) sleeps: u32,
    events: VecDeque<(Event, Vec<u8>)>,
    received: Vec<u8>,
    /// Nothing is received but what is asked for.
    on_request: bool,
    /// What is asked for, with the bytes that may be discarded.
    asked: BTreeMap<Slot, u64>,
    /// How many bytes were received or discarded on request.
    pub(crate) taken_bytes: u64,
    payloads: Vec<Arc<[u8]>>,
}

impl Scripted {
    /// A client connects.
    pub(crate) fn connect(&mut self) -> Slot {
        let slot = self.offered.pop_front().expect("the server offers a slot");
        self.seen.insert(slot, Seen::default());
        self.events.push_back((Event::Accepted(slot), Vec::new()));
        slot
    }

    /// Something happens to a connection.
    pub(crate) fn happen(&mut self, event: Event) {
        self.events.push_back((event, Vec::new()));
    }

    /// Bytes arrive.
    pub(crate) fn arrive(&mut self, slot: Slot, bytes: &[u8]) {
        self.events
            .push_back((Event::Received(slot), bytes.to_vec()));
    }

    /// Where the next event is that may be given out.
    fn next_index(&self) -> Option<usize> {
        self.events.iter().position(|(event, _)| {
            let is_receiving = matches!(
                event,
                Event::Received(_) | Event::Ended(_) | Event::ReceiveFailed(..)
            );
            !(self.on_request && is_receiving) || self.asked.contains_key(&event.slot())
        })
    }

    /// Bytes of memory in sends that no peer takes.
    pub(crate) fn held_bytes(&self) -> usize {
        let open = self.seen.values().filter(|seen| !seen.closed);
        open.map(|seen| seen.held_bytes).sum()
    }

    /// Bytes that were sent on all connections together.
    pub(crate) fn sent_bytes(&self) -> usize {
        self.seen.values().map(|seen| seen.sent.len()).sum()
    }

    /// The peers take what was held.
    pub(crate) fn release(&mut self) {
        self.hold_sends = false;
        for (slot, seen) in &mut self.seen {
            if std::mem::take(&mut seen.held) {
                seen.held_bytes = 0;
                self.events.push_back((Event::Sent(*slot), Vec::new()));
            }
        }
    }
}

impl Backend for Scripted {
    type Transport = Stream;

    fn now_ns(&self) -> u64 {
        let now_ns = self.now_ns + self.moved_ns.get();
        self.moved_ns.set(self.moved_ns.get() + self.reading_ns);
        now_ns
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.push(bytes);
        PayloadId(self.payloads.len() as u32 - 1)
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        let seen = self.seen.get_mut(&slot).expect("connected");
        assert!(
            !seen.held && !seen.closed,
            "one send at a time, none after close"
        );
        let before = seen.sent.len();
        let mut own_bytes = 0;
        match outgoing {
            Outgoing::Shared {
                payload,
                start,
                end,
            } => {
                assert!(start < end);
                let payload = &self.payloads[payload.0 as usize];
                seen.sent
                    .extend_from_slice(&payload[start as usize..end as usize]);
                seen.shared_sends += 1;
            }
            Outgoing::Owned(bytes) => {
                seen.sent.extend_from_slice(&bytes);
                own_bytes = bytes.capacity();
            }
        }
        let now_ns = self.now_ns + self.moved_ns.get();
        seen.sends.push((now_ns, seen.sent.len() - before));
        seen.held = self.hold_sends && seen.sent.len() > self.taken_first;
        if seen.held {
            seen.held_bytes = own_bytes;
        } else {
            self.events.push_back((Event::Sent(slot), Vec::new()));
        }
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn close(&mut self, slot: Slot) {
        self.seen.get_mut(&slot).expect("connected").closed = true;
        self.asked.remove(&slot);
        self.events.retain(|(event, _)| event.slot() != slot);
    }

    fn reset(&mut self, slot: Slot) {
        self.seen.get_mut(&slot).expect("connected").is_reset = true;
        self.close(slot);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let until_ns = until_ns.expect("a worker looks at its stop flag");
        if self.next_index().is_some() {
            return Ok(());
        }
        if until_ns > self.now_ns {
            self.sleeps += 1;
            self.now_ns = until_ns + self.oversleep_ns;
        } else {
            self.now_ns += self.poll_ns;
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        let index = self.next_index()?;
        let (event, received) = self.events.remove(index)?;
        self.received = received;
        if !self.on_request || matches!(event, Event::Accepted(_) | Event::Sent(_)) {
            return Some(event);
        }
        let discard_bytes = self.asked.remove(&event.slot()).unwrap_or(0) as usize;
        let length = self.received.len();
        if discard_bytes == 0 || length == 0 {
            self.taken_bytes += length as u64;
            return Some(event);
        }
        let rest = self.received.split_off(discard_bytes.min(length));
        self.received.clear();
        let count = length - rest.len();
        self.taken_bytes += count as u64;
        if !rest.is_empty() {
            self.events.insert(index, (event, rest));
        }
        Some(Event::Discarded(event.slot(), count as u32))
    }

    fn receive_on_request(&mut self) {
        self.on_request = true;
    }

    fn receive(&mut self, slot: Slot, discard_bytes: u64) {
        self.asked.entry(slot).or_insert(discard_bytes);
    }

    fn received(&self) -> &[u8] {
        &self.received
    }
}

impl ServerBackend for Scripted {
    fn listen(&mut self, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn accept(&mut self, slot: Slot) {
        self.offered.push_back(slot);
    }
}
