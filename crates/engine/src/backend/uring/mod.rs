//! The io_uring backend: direct descriptors, multishot receives into provided buffers, batched
//! sends; as many rings as the connections need.

mod buffers;
mod ring;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use io_uring::cqueue;
use rustix::event::{PollFd, PollFlags};

use super::epoll::{errno_of, timespec};
use super::hand_overs::HandOvers;
use super::payloads::Payloads;
use super::{Backend, Event, HandOver, Outgoing, PayloadId, Peer, Slot};
use crate::clock::{self, RealTime};
use crate::socket::{self, Blocking};
use crate::tcp_info::TcpInfo;
use ring::{Ring, Timespec};

/// Places in the file table of one ring. The table may not be larger than RLIMIT_NOFILE.
const RING_FILES_MAX: u32 = 16_384;
/// Receive buffers of one ring.
const BUFFERS_MAX: u32 = 256;
/// Parts of shared payloads up to this size (of the whole payload) are sent without a completion:
/// they fit into any socket's send buffer, and a failure shows on the receiving side too.
const SILENT_BYTES_MAX: usize = 16 * 1024;
/// One connection in this many keeps a descriptor, so that the kernel's account of it can be read.
const SAMPLE_EVERY: u32 = 64;
/// Connections in that sample at most.
const SAMPLE_MAX: usize = 16;

/// One worker's rings and connections.
pub struct Uring {
    // Declared first: dropped before the payloads and addresses that they refer to.
    rings: Vec<Ring>,
    ring_files: u32,
    buffers_per_ring: u16,
    slots: Vec<Connection>,
    payloads: Payloads,
    /// Peers with the kernel's form of their address, which must not move.
    addresses: Vec<(Peer, Box<socket2::SockAddr>)>,
    /// What was being sent on connections that were closed meanwhile, by user data.
    abandoned: Vec<(u64, Outgoing)>,
    sample: Vec<(Slot, OwnedFd)>,
    listener: Option<OwnedFd>,
    /// Completions taken from the ring with the number beside them; `next` is the next one.
    completions: Vec<cqueue::Entry>,
    completions_next: usize,
    completions_ring: usize,
    /// Events known without asking the kernel, with the generation of their connection.
    events: VecDeque<(u32, Event)>,
    received: Option<Filled>,
    received_stamp_ns: Option<u64>,
    hand_overs: HandOvers,
    real_time: RealTime,
    fault: Option<io::Error>,
}

#[derive(Clone, Debug)]
struct Filled {
    ring: usize,
    buffer: u16,
    /// Where in the buffer the received bytes are.
    bytes: Range<usize>,
}

#[derive(Debug, Default)]
struct Connection {
    generation: u32,
    /// `Ring::handovers` when something was last queued for it.
    queued_at: u32,
    connecting: bool,
    /// Whether the peer connected to us. It may leave answers unread for as long as it likes, so
    /// that its socket's buffer fills; sends that then wait side by side would mix their bytes.
    accepted: bool,
    receiving: bool,
    is_stamped: bool,
    sending: Option<Outgoing>,
}

/// What a completion answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Operation {
    Connect = 1,
    Accept = 2,
    Receive = 3,
    Send = 4,
    SilentSend = 5,
    Cancel = 6,
    SetOption = 7,
}

/// Generations fit into the 28 bits between operation and slot.
const GENERATION_MASK: u32 = (1 << 28) - 1;

fn user_data(operation: Operation, generation: u32, slot: Slot) -> u64 {
    (operation as u64) << 60 | u64::from(generation & GENERATION_MASK) << 32 | u64::from(slot.0)
}

impl Uring {
    /// A backend for about `slots` connections (more may be opened). The calling thread is the
    /// only one that may use it.
    ///
    /// # Errors
    ///
    /// The kernel refuses io_uring, or lacks what is needed (Linux 6.1).
    pub fn new(slots: u32) -> io::Result<Self> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let ring_files = limit.unwrap_or(u64::MAX).min(u64::from(RING_FILES_MAX)) as u32;
        let buffers = slots.clamp(16, BUFFERS_MAX).next_power_of_two() as u16;
        let mut uring = Self {
            rings: Vec::new(),
            ring_files,
            buffers_per_ring: buffers,
            slots: Vec::new(),
            payloads: Payloads::default(),
            addresses: Vec::new(),
            abandoned: Vec::new(),
            sample: Vec::new(),
            listener: None,
            completions: Vec::new(),
            completions_next: 0,
            completions_ring: 0,
            events: VecDeque::new(),
            received: None,
            received_stamp_ns: None,
            hand_overs: HandOvers::default(),
            real_time: RealTime::default(),
            fault: None,
        };
        uring.slots.reserve_exact(slots as usize);
        uring.rings.push(Ring::new(ring_files, buffers)?);
        Ok(uring)
    }

    /// Grows the tables so that `slot` exists, and gives its ring and its place in the file table.
    fn place(&mut self, slot: Slot) -> io::Result<(usize, u32)> {
        let index = slot.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Connection::default);
        }
        let (ring, place) = self.home(slot);
        while self.rings.len() <= ring {
            self.rings
                .push(Ring::new(self.ring_files, self.buffers_per_ring)?);
        }
        Ok((ring, place))
    }

    fn home(&self, slot: Slot) -> (usize, u32) {
        (
            (slot.0 / self.ring_files) as usize,
            slot.0 % self.ring_files,
        )
    }

    fn address_index(&mut self, peer: &Peer) -> io::Result<usize> {
        if let Some(index) = self.addresses.iter().position(|(known, _)| known == peer) {
            return Ok(index);
        }
        self.addresses
            .push((peer.clone(), Box::new(socket::address(peer)?)));
        Ok(self.addresses.len() - 1)
    }

    fn arm_receive(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let connection = &mut self.slots[slot.0 as usize];
        connection.receiving = true;
        let data = user_data(Operation::Receive, connection.generation, slot);
        let outcome = if connection.is_stamped {
            self.rings[ring].receive_stamped(place, data)
        } else {
            self.rings[ring].receive(place, data)
        };
        self.queued(slot, ring, outcome);
    }

    fn release_received(&mut self) {
        self.received_stamp_ns = None;
        if let Some(filled) = self.received.take() {
            self.rings[filled.ring].buffers.put_back(filled.buffer);
        }
    }

    /// Queues the send of what is in `sending`.
    fn queue_send(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let Some(outgoing) = &connection.sending else {
            return;
        };
        let bytes = self.payloads.bytes(outgoing);
        // A client has no more than its payload under way, as long as the server answers what it
        // has read; so the send buffer never fills. A server has no such bound.
        let silent = !connection.accepted
            && self
                .payloads
                .shared_bytes(outgoing)
                .is_some_and(|bytes| bytes <= SILENT_BYTES_MAX);
        let operation = if silent {
            Operation::SilentSend
        } else {
            Operation::Send
        };
        let data = user_data(operation, connection.generation, slot);
        // SAFETY: shared payloads live as long as the rings; owned bytes are kept in `sending`,
        // and in `abandoned` after a close, until the completion comes.
        let outcome = unsafe { self.rings[ring].send(place, bytes, silent, data) };
        if connection.is_stamped {
            self.rings[ring].stamp_send(slot);
        }
        if silent {
            connection.sending = None;
            self.events
                .push_back((connection.generation, Event::Sent(slot)));
        }
        self.queued(slot, ring, outcome);
    }

    /// Notes that something was just queued for `slot`, or why it could not be.
    fn queued(&mut self, slot: Slot, ring: usize, outcome: io::Result<()>) {
        self.slots[slot.0 as usize].queued_at = self.rings[ring].handovers;
        self.remember(outcome);
    }

    fn remember(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert(error);
        }
    }

    /// Keeps how stamped sends were handed over.
    fn settle_hand_overs(&mut self, ring: usize) {
        for (slot, hand_over) in self.rings[ring].take_hand_overs() {
            self.hand_overs.note(slot, hand_over);
        }
    }

    /// What a completion means to the caller, if anything.
    fn translate(&mut self, entry: &cqueue::Entry) -> Option<Event> {
        let data = entry.user_data();
        let slot = Slot(data as u32);
        let operation = data >> 60;
        let connection = self.slots.get_mut(slot.0 as usize)?;
        let current =
            (data >> 32) as u32 & GENERATION_MASK == connection.generation & GENERATION_MASK;
        if operation == Operation::Receive as u64 {
            return self.translate_receive(entry, slot, current);
        }
        if !current {
            self.settle_abandoned(data);
            return None;
        }
        let result = entry.result();
        if operation == Operation::Connect as u64 {
            connection.connecting = false;
            if result < 0 {
                return Some(Event::ConnectFailed(slot, -result));
            }
            self.arm_receive(slot);
            Some(Event::Connected(slot))
        } else if operation == Operation::Accept as u64 {
            connection.connecting = false;
            if result < 0 {
                return Some(Event::AcceptFailed(slot, -result));
            }
            self.arm_receive(slot);
            Some(Event::Accepted(slot))
        } else if operation == Operation::Send as u64 {
            let outgoing = connection.sending.take()?;
            let whole = result >= 0 && result as usize == self.payloads.bytes(&outgoing).len();
            self.payloads.recycle(outgoing);
            match result {
                // MSG_WAITALL makes the kernel go on until all is sent or the connection breaks.
                _ if whole => Some(Event::Sent(slot)),
                0.. => Some(Event::SendFailed(slot, libc::EPIPE)),
                _ => Some(Event::SendFailed(slot, -result)),
            }
        } else if operation == Operation::SilentSend as u64 {
            // It was reported as sent when it was queued; the connection is broken.
            Some(Event::ReceiveFailed(
                slot,
                if result < 0 { -result } else { libc::EPIPE },
            ))
        } else {
            None
        }
    }

    fn translate_receive(
        &mut self,
        entry: &cqueue::Entry,
        slot: Slot,
        current: bool,
    ) -> Option<Event> {
        let mut result = entry.result();
        if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
            let ring = self.completions_ring;
            let mut bytes = 0..result.max(0) as usize;
            if current && result > 0 && self.slots[slot.0 as usize].is_stamped {
                match self.rings[ring].stamped(buffer, bytes.end) {
                    Some(stamped) => {
                        let stamp = stamped.stamp;
                        self.received_stamp_ns =
                            stamp.map(|unix_ns| self.real_time.on_run_clock(unix_ns));
                        bytes = stamped.bytes;
                        result = bytes.len() as i32;
                    }
                    None => result = -libc::EBADMSG,
                }
            }
            if !current || result <= 0 {
                self.rings[ring].buffers.put_back(buffer);
            } else {
                self.received = Some(Filled {
                    ring,
                    buffer,
                    bytes,
                });
            }
        }
        if !current {
            return None;
        }
        let armed = cqueue::more(entry.flags());
        self.slots[slot.0 as usize].receiving = armed;
        match result {
            1.. => {
                if !armed {
                    self.arm_receive(slot);
                }
                Some(Event::Received(slot))
            }
            0 => Some(Event::Ended(slot)),
            // All buffers were in use: they are free again by the time that this is submitted.
            _ if result == -libc::ENOBUFS => {
                self.arm_receive(slot);
                None
            }
            _ => Some(Event::ReceiveFailed(slot, -result)),
        }
    }

    fn settle_abandoned(&mut self, data: u64) {
        if let Some(index) = self.abandoned.iter().position(|(known, _)| *known == data) {
            let (_, outgoing) = self.abandoned.swap_remove(index);
            self.payloads.recycle(outgoing);
        }
    }

    /// Waits on all rings at once.
    fn wait_many(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.run_all()?;
        if self.take_completions(0) || until_ns == Some(0) {
            return Ok(());
        }
        let timeout = until_ns.map(|until_ns| timespec(until_ns.saturating_sub(clock::now_ns())));
        let mut descriptors: Vec<PollFd<'_>> = self
            .rings
            .iter()
            .map(|ring| PollFd::from_borrowed_fd(ring.descriptor(), PollFlags::IN))
            .collect();
        match rustix::event::poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.run_all()?;
        self.take_completions(0);
        Ok(())
    }

    fn run_all(&mut self) -> io::Result<()> {
        self.rings.iter_mut().try_for_each(Ring::submit_and_run)
    }

    /// Takes the completions of the first ring from `from` on that has any.
    fn take_completions(&mut self, from: usize) -> bool {
        for ring in 0..self.rings.len() {
            self.settle_hand_overs(ring);
        }
        self.completions.clear();
        self.completions_next = 0;
        for (index, ring) in self.rings.iter_mut().enumerate().skip(from) {
            ring.drain(&mut self.completions);
            if !self.completions.is_empty() {
                self.completions_ring = index;
                return true;
            }
        }
        self.completions_ring = self.rings.len();
        false
    }
}

impl Backend for Uring {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn add_payload(&mut self, bytes: Vec<u8>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn set_stamps(&mut self, every: Option<NonZeroU32>) {
        self.hand_overs.set_every(every);
    }

    fn open(&mut self, slot: Slot, peer: &Peer, source: Option<SocketAddr>) -> io::Result<()> {
        let socket = socket::client(peer, source, Blocking::Yes)?;
        let is_stamped = self.hand_overs.opened(slot);
        if is_stamped {
            socket::enable_receive_stamps(&socket)?;
        }
        let address = self.address_index(peer)?;
        let (ring, place) = self.place(slot)?;
        self.rings[ring].set_file(place, socket.as_raw_fd())?;
        let connection = &mut self.slots[slot.0 as usize];
        connection.connecting = true;
        connection.accepted = false;
        connection.is_stamped = is_stamped;
        let data = user_data(Operation::Connect, connection.generation, slot);
        // SAFETY: the address is boxed in `addresses`, which only grows and outlives the rings.
        unsafe { self.rings[ring].connect(place, &self.addresses[address].1, data) }?;
        self.queued(slot, ring, Ok(()));
        if slot.0.is_multiple_of(SAMPLE_EVERY) && self.sample.len() < SAMPLE_MAX {
            self.sample.push((slot, socket.into()));
        }
        Ok(())
    }

    fn listen(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        self.listener = Some(listener.try_clone_to_owned()?);
        Ok(())
    }

    fn accept(&mut self, slot: Slot) {
        let (ring, place) = match self.place(slot) {
            Ok(found) => found,
            Err(error) => {
                let generation = self.slots[slot.0 as usize].generation;
                let event = Event::AcceptFailed(slot, errno_of(&error));
                self.events.push_back((generation, event));
                return;
            }
        };
        let Some(listener) = self.listener.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        let connection = &mut self.slots[slot.0 as usize];
        connection.connecting = true;
        connection.accepted = true;
        connection.is_stamped = false;
        let data = user_data(Operation::Accept, connection.generation, slot);
        let outcome = self.rings[ring].accept(listener, place, data);
        self.queued(slot, ring, outcome);
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        self.slots[slot.0 as usize].sending = Some(outgoing);
        self.queue_send(slot);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let generation = connection.generation;
        connection.generation = generation.wrapping_add(1);
        let (connecting, receiving) = (connection.connecting, connection.receiving);
        (connection.connecting, connection.receiving) = (false, false);
        let sending = connection.sending.take();
        if connection.queued_at == self.rings[ring].handovers {
            // A submission that still waits would find the next connection in its place.
            let outcome = self.rings[ring].submit();
            self.settle_hand_overs(ring);
            self.remember(outcome);
        }
        let mut cancel = |operation| {
            let target = user_data(operation, generation, slot);
            let own = user_data(Operation::Cancel, generation, slot);
            let outcome = self.rings[ring].cancel(target, own);
            if let Err(error) = outcome {
                self.fault.get_or_insert(error);
            }
        };
        if connecting {
            cancel(Operation::Connect);
            cancel(Operation::Accept);
        }
        if receiving {
            cancel(Operation::Receive);
        }
        if let Some(outgoing) = sending {
            cancel(Operation::Send);
            self.abandoned
                .push((user_data(Operation::Send, generation, slot), outgoing));
        }
        self.rings[ring].clear_file(place);
        if let Some(index) = self.sample.iter().position(|(known, _)| *known == slot) {
            self.sample.swap_remove(index);
        }
    }

    fn reset(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let generation = self.slots[slot.0 as usize].generation;
        let data = user_data(Operation::SetOption, generation, slot);
        // Where the kernel does not know this (before 6.7) the socket is closed as usual.
        let outcome = self.rings[ring].reset_on_close(place, data);
        self.queued(slot, ring, outcome);
        self.close(slot);
    }

    fn set_gathering(&mut self, gather_ns: u64) {
        // Several rings are waited for by poll(2), which has no such thing.
        if let [ring] = self.rings.as_mut_slice() {
            ring.set_gathering((gather_ns / 1_000) as u32);
        }
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.release_received();
        if let Some(error) = self.fault.take() {
            return Err(error);
        }
        let until_ns = if self.events.is_empty() {
            until_ns
        } else {
            Some(0)
        };
        if self.rings.len() > 1 {
            return self.wait_many(until_ns);
        }
        match until_ns.map(|until_ns| until_ns.saturating_sub(clock::now_ns())) {
            Some(0) => self.rings[0].submit_and_run()?,
            timeout_ns => self.rings[0].submit_and_wait(timeout_ns.map(|ns| {
                Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32)
            }))?,
        }
        self.take_completions(0);
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        self.release_received();
        loop {
            if let Some((generation, event)) = self.events.pop_front() {
                if generation == self.slots[event.slot().0 as usize].generation {
                    return Some(event);
                }
                continue;
            }
            let Some(entry) = self.completions.get(self.completions_next).cloned() else {
                if self.completions_ring < self.rings.len()
                    && self.take_completions(self.completions_ring + 1)
                {
                    continue;
                }
                return None;
            };
            if self.completions_next.is_multiple_of(8) {
                let outcome = self.rings[self.completions_ring].submit_batch();
                self.remember(outcome);
            }
            self.completions_next += 1;
            if let Some(event) = self.translate(&entry) {
                return Some(event);
            }
        }
    }

    fn received(&self) -> &[u8] {
        self.received.as_ref().map_or(&[], |filled| {
            let buffers = &self.rings[filled.ring].buffers;
            &buffers.filled(filled.buffer, filled.bytes.end)[filled.bytes.start..]
        })
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.received_stamp_ns
    }

    fn handed_over(&self, slot: Slot) -> Option<HandOver> {
        self.hand_overs.latest(slot)
    }

    fn stamps_clamped(&self) -> u64 {
        self.real_time.clamped()
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let (_, socket) = self.sample.iter().find(|(known, _)| *known == slot)?;
        TcpInfo::read(socket.as_fd()).ok()
    }
}
