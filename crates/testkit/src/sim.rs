//! The backend of one simulated worker.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

use brunt_io::backend::{Backend, ClientBackend, Event, Outgoing, PayloadId, Peer, SendCall, Slot};
use brunt_io::payloads::Payloads;
use brunt_io::send_calls::SendCalls;
use brunt_io::tcp_info::TcpInfo;
use brunt_io::transport::Stream;
use brunt_server::Counters;

use crate::counts::SimCounts;
use crate::cpu::Cpu;
use crate::handle::SimHandle;
use crate::ledger::Ledger;
use crate::link::{Client, LinkId};
use crate::piece::{Completes, Piece};
use crate::reference::Reference;
use crate::settings::{Costs, LateWakeUps, SimSettings};
use crate::tls::Spoken;
use crate::waiting::{self, Outside};
use crate::world::{Notice, World};

/// Bytes given out at once.
const RECEIVE_BYTES: usize = 64 * 1024;

/// One worker's simulated network, server and clock. A client's side only: there is nobody who
/// could be accepted.
#[derive(Debug)]
pub struct Sim {
    cpu: Cpu,
    costs: Costs,
    late_wake_ups: Option<LateWakeUps>,
    no_socket: f64,
    network_ns: u64,
    world: World,
    slots: Vec<Option<LinkId>>,
    payloads: Payloads,
    received: Received,
    received_stamp_ns: Option<u64>,
    send_calls: SendCalls,
    /// Several pieces of answers that were taken at once.
    buffer: Vec<u8>,
    counts: Rc<RefCell<SimCounts>>,
    reference: Rc<RefCell<Option<Counters>>>,
    ledger: Rc<RefCell<Ledger>>,
}

/// Where the bytes of the latest `Received` are.
#[derive(Clone, Debug)]
enum Received {
    Nothing,
    Piece(Rc<[u8]>, u32, u32),
    Buffer,
}

impl Sim {
    /// A simulation for worker number `worker` whose clock starts at `start_ns`, of HTTP/1.1 in
    /// clear text.
    pub fn new(settings: &SimSettings, worker: u32, start_ns: u64) -> (Self, SimHandle) {
        Self::speaking(settings, &Spoken::default(), worker, start_ns)
    }

    /// The same, of another protocol. Over TLS it is the server's side alone that is simulated.
    pub fn speaking(
        settings: &SimSettings,
        spoken: &Spoken,
        worker: u32,
        start_ns: u64,
    ) -> (Self, SimHandle) {
        let handle = SimHandle::starting_at(start_ns);
        let sim = Self {
            cpu: handle.cpu(settings.host),
            costs: settings.costs,
            late_wake_ups: settings.late_wake_ups,
            no_socket: settings.server.faults.no_socket,
            network_ns: settings.network_ns,
            world: World::new(settings, spoken, worker, Rc::clone(&handle.ledger)),
            slots: Vec::new(),
            payloads: Payloads::default(),
            received: Received::Nothing,
            received_stamp_ns: None,
            send_calls: SendCalls::default(),
            buffer: Vec::new(),
            counts: Rc::clone(&handle.counts),
            reference: Rc::clone(&handle.reference),
            ledger: Rc::clone(&handle.ledger),
        };
        (sim, handle)
    }

    fn link_of(&self, slot: Slot) -> Option<LinkId> {
        *self.slots.get(slot.0 as usize)?
    }

    /// Takes what arrived on a connection: all bytes at hand, or the end.
    fn take_arrivals(&mut self, id: LinkId, slot: Slot) -> Option<Event> {
        let is_stamped = self.send_calls.includes(slot);
        let Self {
            world,
            buffer,
            received,
            received_stamp_ns,
            ..
        } = self;
        let (links, counts) = (&mut world.links, &mut world.counts);
        let link = links.get_mut(id)?;
        buffer.clear();
        if link.discard_bytes > 0 {
            let discarded = link.discard(counts);
            if discarded > 0 {
                if !link.arrivals.is_empty() {
                    world.notices.push_front((id, Notice::Arrived));
                }
                return Some(Event::Discarded(slot, discarded as u32));
            }
        }
        let mut taken = 0;
        while let Some((arrived_ns, piece)) = link.arrivals.front_mut() {
            let Piece::Bytes {
                bytes,
                start,
                end,
                completes,
            } = piece
            else {
                break;
            };
            let until = (*end).min(*start + (RECEIVE_BYTES - taken) as u32);
            if *start == until {
                break;
            }
            if taken == 0 {
                *received = Received::Piece(Rc::clone(bytes), *start, until);
            } else {
                if let Received::Piece(bytes, start, end) = &*received {
                    buffer.extend_from_slice(&bytes[*start as usize..*end as usize]);
                    *received = Received::Buffer;
                }
                buffer.extend_from_slice(&bytes[*start as usize..until as usize]);
            }
            *received_stamp_ns = is_stamped.then_some(*arrived_ns);
            taken += (until - *start) as usize;
            *start = until;
            if until == *end {
                counts.completed(*completes);
                link.is_greeted |= *completes == Completes::Opening;
                link.arrivals.pop_front();
            }
        }
        if taken > 0 {
            link.bytes_taken += taken as u64;
            counts.bytes_delivered += taken as u64;
            if !link.arrivals.is_empty() {
                world.notices.push_front((id, Notice::Arrived));
            }
            return Some(Event::Received(slot));
        }
        let (_, end) = link.arrivals.pop_front()?;
        link.client = Client::Ended;
        link.arrivals.clear();
        match end {
            Piece::End { completes } => {
                counts.completed(completes);
                Some(Event::Ended(slot))
            }
            _ if std::mem::take(&mut link.sending) => {
                Some(Event::SendFailed(slot, libc::ECONNRESET))
            }
            _ => Some(Event::ReceiveFailed(slot, libc::ECONNRESET)),
        }
    }
}

impl Backend for Sim {
    type Transport = Stream;

    fn now_ns(&self) -> u64 {
        self.cpu.run(self.costs.clock_ns)
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        let from_ns = self.cpu.now_ns();
        let now_ns = self.cpu.run(self.costs.send_ns);
        let to_ns = now_ns;
        self.send_calls.note(slot, SendCall { from_ns, to_ns });
        if let Some(id) = self.link_of(slot) {
            self.world.send(now_ns, id, self.payloads.bytes(&outgoing));
        }
        self.payloads.recycle::<Stream>(outgoing);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        let now_ns = self.cpu.run(self.costs.open_ns);
        if let Some(id) = self.link_of(slot) {
            self.world.close(now_ns, id);
            self.slots[slot.0 as usize] = None;
        }
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let from_ns = self.cpu.run(self.costs.wait_ns);
        let late = self.late_wake_ups;
        waiting::wait(&self.cpu, &mut self.world, (from_ns, until_ns), late)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.received = Received::Nothing;
        self.received_stamp_ns = None;
        loop {
            let (id, notice) = self.world.notices.pop_front()?;
            let Some(slot) = self.world.open_link(id).and_then(|link| link.slot) else {
                continue;
            };
            let event = match notice {
                Notice::Connected => {
                    let opens = u64::from(self.world.opens_with_tcp());
                    self.world.counts.connections_established += opens;
                    Some(Event::Connected(slot))
                }
                Notice::ConnectFailed(errno) => Some(Event::ConnectFailed(slot, errno)),
                Notice::Sent => Some(Event::Sent(slot)),
                Notice::Arrived => {
                    let event = self.take_arrivals(id, slot);
                    self.world.unhold_reference(self.cpu.now_ns(), id);
                    event
                }
            };
            if event.is_some() {
                self.cpu.run(self.costs.event_ns);
                return event;
            }
        }
    }

    #[inline]
    fn received(&self) -> &[u8] {
        match &self.received {
            Received::Nothing => &[],
            Received::Piece(bytes, start, end) => &bytes[*start as usize..*end as usize],
            Received::Buffer => &self.buffer,
        }
    }
}

impl ClientBackend for Sim {
    fn set_stamps(&mut self, every: Option<NonZeroU32>) {
        self.send_calls.set_every(every);
    }

    fn open(&mut self, slot: Slot, _peer: &Peer, _source: Option<SocketAddr>) -> io::Result<()> {
        let now_ns = self.cpu.run(self.costs.open_ns);
        if self.world.chance(self.no_socket) {
            self.world.counts.connections_impossible += 1;
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let index = slot.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some(self.world.attempt(now_ns, slot));
        self.send_calls.opened(slot);
        Ok(())
    }

    fn discard(&mut self, slot: Slot, bytes: u64) {
        let link = self
            .link_of(slot)
            .and_then(|id| self.world.links.get_mut(id));
        if let Some(link) = link {
            link.discard_bytes = bytes;
        }
    }

    /// Only of streams: servers of all else read to the end what was sent, in any case.
    fn finish(&mut self, slot: Slot) -> bool {
        let now_ns = self.cpu.now_ns();
        let id = self.link_of(slot);
        id.is_some_and(|id| self.world.finish_stream(now_ns, id))
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.received_stamp_ns
    }

    fn send_call(&self, slot: Slot) -> Option<SendCall> {
        self.send_calls.latest(slot)
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let id = self.link_of(slot)?;
        let link = self.world.links.get(id)?;
        let stream = self.world.stream_account(self.cpu.now_ns(), id);
        Some(TcpInfo {
            bytes_received: link.bytes_arrived,
            bytes_unread: link.bytes_arrived - link.bytes_taken,
            min_rtt_ns: Some(2 * self.network_ns),
            ..stream.unwrap_or_default()
        })
    }
}

impl Drop for Sim {
    /// Brunt is gone, and its connections with it; what is in flight comes to its end.
    fn drop(&mut self) {
        let now_ns = self.cpu.now_ns();
        self.ledger.borrow_mut().end_by(now_ns);
        for id in self.slots.drain(..).flatten() {
            self.world.close(now_ns, id);
        }
        self.world.pass(u64::MAX);
        *self.counts.borrow_mut() = self.world.total_counts();
        let reference = self.world.reference.as_ref().filter(|it| !it.is_directed());
        *self.reference.borrow_mut() = reference.map(Reference::counters);
    }
}
