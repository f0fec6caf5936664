//! The io_uring backend: direct descriptors, multishot receives into provided buffers, batched
//! sends; as many rings as the connections need. What differs between streams and datagrams is in
//! files of their own.
//!
//! A worker waits in its first ring. Each further one has an eventfd, which the kernel writes to
//! when it has work for the ring, and which the first ring polls: so a turn costs what the rings
//! with something to do cost, however many there are. (Polling the rings' own descriptors would
//! not do: work that the kernel puts off until the ring is entered does not make them ready.)

mod datagrams;
mod ring;
mod streams;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use brunt_load::SocketOptions;
use io_uring::cqueue;
use ring::{Layout, Ring, RingSet, Timespec};

use crate::backend::{
    self, Backend, ClientBackend, Event, OutgoingOf, PayloadId, Payloads, Peer, ReceivedOf,
    SendCall, ServerBackend, Slot,
};
use crate::clock::{self, RealTime};
use crate::epoll::errno_of;
use crate::receive_stamps::SendCalls;
use crate::socket::{self, Blocking};
use crate::tcp_info::TcpInfo;
use crate::transport::{Stream, Transport};

/// Places in the file table of one ring. The table may not be larger than RLIMIT_NOFILE. Nor should
/// it: the kernel looks up what is to be cancelled, as every close asks it to, in lists whose
/// number does not grow with the table.
const RING_FILES_MAX: u32 = 16_384;
/// Receive buffers of the first ring; each further one has the fewest, since what arrives is spread
/// over all of them. The kernel fills up to 32 for one connection before it looks at the next.
const BUFFERS_MIN: u32 = 64;
const BUFFERS_MAX: u32 = 256;
/// Bytes that one receive discards at most.
const DISCARD_BYTES_MAX: u64 = 1 << 20;
/// Receives of one completion each after bytes were discarded: the end of that response, and the
/// begin of the next one, which may have to be discarded, too.
const SINGLE_RECEIVES: u8 = 2;

/// What a transport does with the sockets in rings.
#[doc(hidden)]
pub trait UringTransport: Transport {
    /// Bytes of a receive buffer.
    const BUFFER_BYTES: usize;

    /// Those of them that are for control messages.
    const CONTROL_BYTES: usize;

    /// What a connection sends.
    type Sends: Default;

    /// What is sent on a connection that is no more, until that completes.
    type Abandoned;

    /// What all connections have for it.
    type Instance: Default;

    /// Whether sockets to `peer` are of this transport.
    fn reaches(peer: &Peer) -> bool;

    /// Has a connection receive.
    fn arm_receive(uring: &mut Uring<Self>, slot: Slot);

    /// What a completion of a receive means to the caller, if anything.
    fn translate_receive(
        uring: &mut Uring<Self>,
        entry: &cqueue::Entry,
        slot: Slot,
        is_current: bool,
    ) -> Option<Event>;

    /// What was received last.
    fn received(uring: &Uring<Self>) -> Self::Received<'_>;

    /// Takes over what is to be sent on `slot`.
    fn send(uring: &mut Uring<Self>, slot: Slot, outgoing: Self::Outgoing);

    /// As [`Self::send`], without a completion where the kernel can do that. Returns whether no
    /// [`Event`] will say that it is sent.
    fn send_quietly(uring: &mut Uring<Self>, slot: Slot, outgoing: Self::Outgoing) -> bool {
        Self::send(uring, slot, outgoing);
        false
    }

    /// What a completion of a send means to the caller, if anything; of one that `is_silent`, that
    /// only completes where it could not be taken.
    fn sent(uring: &mut Uring<Self>, slot: Slot, result: i32, is_silent: bool) -> Option<Event>;

    /// Queues what waited for other sends to be submitted.
    fn release_held(_uring: &mut Uring<Self>) -> io::Result<()> {
        Ok(())
    }

    /// Completions were moved out of a ring, and nothing was done about them yet.
    fn completed(_uring: &mut Uring<Self>) {}

    /// Whether a send waits in the kernel for a peer that does not read, for certain.
    fn is_send_pending(_uring: &Uring<Self>, _slot: Slot) -> bool {
        false
    }

    /// What [`unsent_bytes`](crate::backend::ClientBackend::unsent_bytes) gives.
    fn unsent_bytes(_uring: &mut Uring<Self>, _slot: Slot) -> u64 {
        0
    }

    /// Whether the latest send of `slot` is not with the kernel yet.
    fn is_send_put_off(uring: &Uring<Self>, slot: Slot) -> bool;

    /// Forgets what `slot` sends. Gives whether a send that may wait is with the ring; what that
    /// one sends is kept until it completes, as the one with `data`.
    fn abandon_sends(uring: &mut Uring<Self>, slot: Slot, data: u64) -> bool;

    /// The buffer of what was kept so, which completed.
    fn buffer_of_abandoned(abandoned: Self::Abandoned) -> Self::Outgoing;
}

/// One worker's rings and connections, all of one transport.
#[derive(Default)]
pub struct Uring<T: UringTransport = Stream> {
    // Declared first: dropped before the payloads and addresses that they refer to.
    rings: Vec<Ring>,
    /// Of the rings after the first: those that have something queued, or that the kernel has work
    /// for.
    touched: RingSet,
    /// Of the same: those that have completions to be taken.
    ready: RingSet,
    ring_files: u32,
    slots: Vec<UringConnection<T>>,
    payloads: Payloads,
    /// Peers with the kernel's form of their address, which must not move.
    addresses: Vec<(Peer, Box<socket2::SockAddr>)>,
    /// What was being sent on connections that were closed meanwhile, by user data.
    abandoned: HashMap<u64, <T as UringTransport>::Abandoned>,
    /// Large sends of such connections, by user data, and what the kernel had taken of those that
    /// are complete since.
    cut_sends: HashSet<u64>,
    late_bytes: u64,
    /// Connections, with their generation, whose next send waits for the result of the last
    /// one.
    held: Vec<(Slot, u32)>,
    /// A connection, with its generation, that is to receive again when what it received is dealt
    /// with.
    rearmed_next: Option<(Slot, u32)>,
    /// Connections, with their generation, that are to receive again after all others.
    rearmed_last: Vec<(Slot, u32)>,
    /// Counts waits.
    turn: u32,
    /// Descriptors of a sample of the connections, or of all of them, for the kernel's accounts.
    accounts: BTreeMap<Slot, OwnedFd>,
    keeps_accounts: bool,
    sockets: SocketOptions,
    listener: Option<OwnedFd>,
    /// The connections that are accepted are of TCP.
    listens_on_tcp: bool,
    /// They receive only what `receive` asks for.
    on_request: bool,
    /// Completions taken from the ring with the number beside them; `next` is the next one.
    completions: Vec<cqueue::Entry>,
    completions_next: usize,
    completions_ring: usize,
    /// Events known without asking the kernel, with the generation of their connection.
    events: VecDeque<(u32, Event)>,
    received: Option<Filled>,
    received_stamp_ns: Option<u64>,
    own: T::Instance,
    send_calls: SendCalls,
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

#[derive(Default)]
struct UringConnection<T: UringTransport> {
    generation: u32,
    /// The number of what was last queued for it.
    queued_number: u64,
    /// Something was opened or offered, and not closed since.
    is_used: bool,
    connecting: bool,
    /// Whether the peer connected to us. It may leave answers unread for as long as it likes, so
    /// that its socket's buffer fills.
    accepted: bool,
    receiving: Receiving,
    /// Bytes that need not be shown, of those that come next.
    discard_bytes: u64,
    /// Receives of one completion each that come before one that stays armed.
    single_receives: u8,
    /// It is TCP: the kernel throws bytes away where it is asked to.
    may_discard: bool,
    /// It receives only when that is asked for.
    on_request: bool,
    /// `Uring::turn` when bytes came last.
    received_turn: u32,
    /// The times of its send calls are taken.
    is_stamped: bool,
    /// The kernel stamps what it receives.
    has_receive_stamps: bool,
    sends: T::Sends,
}

/// The receive of a connection that the kernel has, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Receiving {
    #[default]
    No,
    /// It stays armed.
    Many,
    /// It was armed to stay, and is being cancelled.
    Cancelled,
    /// One completion, with bytes.
    Once,
    /// One completion, of bytes that were thrown away.
    Discarding,
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
    Wake = 8,
    Finish = 9,
}

/// Generations fit into the 28 bits between operation and slot.
const GENERATION_MASK: u32 = (1 << 28) - 1;

fn user_data(operation: Operation, generation: u32, slot: Slot) -> u64 {
    (operation as u64) << 60 | u64::from(generation & GENERATION_MASK) << 32 | u64::from(slot.0)
}

impl Uring {
    /// A backend of byte streams for about `slots` connections (more may be opened). The calling
    /// thread is the only one that may use it.
    ///
    /// # Errors
    ///
    /// The kernel refuses io_uring, or lacks what is needed (Linux 6.1).
    pub fn new(slots: u32) -> io::Result<Self> {
        Self::with_ring_files(slots, RING_FILES_MAX)
    }

    /// As [`Uring::new`], with at most `files` connections (at least 1) per ring.
    ///
    /// # Errors
    ///
    /// As [`Uring::new`].
    pub fn with_ring_files(slots: u32, files: u32) -> io::Result<Self> {
        Self::without_connections(slots, files)
    }

    /// Descriptors that a backend for `slots` connections needs where `limit` is RLIMIT_NOFILE: its
    /// rings, with an eventfd for each but the first, and the sample, which may be all of them.
    pub fn descriptors(slots: u64, limit: u64, keeps_accounts: bool) -> u64 {
        let ring_files = limit.clamp(1, RING_FILES_MAX.into());
        let kept = if keeps_accounts {
            slots
        } else {
            slots.div_ceil(SAMPLE_EVERY.into()).min(SAMPLE_MAX as u64)
        };
        (2 * slots.div_ceil(ring_files)).saturating_sub(1) + kept
    }
}

impl<T: UringTransport> Uring<T> {
    fn without_connections(slots: u32, files: u32) -> io::Result<Self> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let ring_files = limit.unwrap_or(u64::MAX).min(files.into()).max(1) as u32;
        let mut uring = Self {
            ring_files,
            ..Self::default()
        };
        uring.slots.reserve_exact(slots as usize);
        uring.add_ring(slots.clamp(BUFFERS_MIN, BUFFERS_MAX).next_power_of_two())?;
        Ok(uring)
    }

    /// The bytes that were received last.
    fn shown(&self) -> &[u8] {
        self.received.as_ref().map_or(&[], |filled| {
            let buffers = &self.rings[filled.ring].buffers;
            &buffers.filled(filled.buffer, filled.bytes.end)[filled.bytes.start..]
        })
    }

    fn add_ring(&mut self, buffers: u32) -> io::Result<()> {
        let layout = Layout {
            buffers: buffers as u16,
            buffer_bytes: T::BUFFER_BYTES,
            control_bytes: T::CONTROL_BYTES,
        };
        let mut ring = Ring::new(self.ring_files, layout)?;
        let number = self.rings.len();
        if let Some(first) = self.rings.first_mut() {
            let eventfd = ring.signal()?;
            first.poll(eventfd, wake_data(number))?;
        }
        self.rings.push(ring);
        Ok(())
    }

    /// Grows the tables so that `slot` exists, and gives its ring and its place in the file table,
    /// which nothing of an earlier connection refers to any more.
    fn place(&mut self, slot: Slot) -> io::Result<(usize, u32)> {
        let index = slot.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, UringConnection::default);
        }
        let (ring, place) = self.home(slot);
        while self.rings.len() <= ring {
            self.add_ring(BUFFERS_MIN)?;
        }
        let number = self.slots[index].queued_number;
        if !self.rings[ring].has_taken(number) {
            self.rings[ring].submit()?;
            self.settle_send_calls(ring);
            if !self.rings[ring].has_taken(number) {
                // The kernel has no memory for it.
                return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
            }
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

    fn release_received(&mut self) {
        self.received_stamp_ns = None;
        if let Some(filled) = self.received.take() {
            self.rings[filled.ring].buffers.put_back(filled.buffer);
        }
        if let Some((slot, generation)) = self.rearmed_next.take() {
            self.rearm(slot, generation);
        }
    }

    /// Has a connection receive again, if it is still the one with this generation.
    fn rearm(&mut self, slot: Slot, generation: u32) {
        if self.slots[slot.0 as usize].generation == generation {
            T::arm_receive(self, slot);
        }
    }

    /// Has those receive again that were put last.
    fn rearm_last(&mut self) {
        while let Some((slot, generation)) = self.rearmed_last.pop() {
            self.rearm(slot, generation);
        }
    }

    /// Notes that something was just queued for `slot`, or why it could not be.
    fn queued(&mut self, slot: Slot, ring: usize, outcome: io::Result<()>) {
        self.slots[slot.0 as usize].queued_number = self.rings[ring].last_number();
        self.touched.insert(ring);
        self.remember(outcome);
    }

    /// Queues that closing `slot` sends a reset. Where the kernel does not know this (before 6.7)
    /// the socket is closed as usual.
    fn queue_reset(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let generation = self.slots[slot.0 as usize].generation;
        let data = user_data(Operation::SetOption, generation, slot);
        let outcome = self.rings[ring].reset_on_close(place, data);
        self.queued(slot, ring, outcome);
    }

    /// Queues the cancellation of an operation of the connection with `generation`.
    fn queue_cancel(&mut self, slot: Slot, operation: Operation, generation: u32) {
        let (ring, _) = self.home(slot);
        let target = user_data(operation, generation, slot);
        let own = user_data(Operation::Cancel, generation, slot);
        let outcome = self.rings[ring].cancel(target, own);
        self.touched.insert(ring);
        self.remember(outcome);
    }

    fn remember(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert(error);
        }
    }

    /// Keeps the send calls of stamped slots.
    fn settle_send_calls(&mut self, ring: usize) {
        for (slot, send_call) in self.rings[ring].take_send_calls() {
            self.send_calls.note(slot, send_call);
        }
    }

    /// Whether a completion is of the connection that is in its slot now.
    fn is_current(&self, data: u64) -> bool {
        let generation = (data >> 32) as u32 & GENERATION_MASK;
        self.slots
            .get(data as u32 as usize)
            .is_some_and(|connection| generation == connection.generation & GENERATION_MASK)
    }

    /// What a completion means to the caller, if anything.
    fn translate(&mut self, entry: &cqueue::Entry) -> Option<Event> {
        let data = entry.user_data();
        let slot = Slot(data as u32);
        let operation = data >> 60;
        if operation == Operation::Wake as u64 {
            return None;
        }
        let current = self.is_current(data);
        if operation == Operation::Receive as u64 {
            return T::translate_receive(self, entry, slot, current);
        }
        let result = entry.result();
        if !current {
            self.settle_former(data, result);
            return None;
        }
        let connection = &mut self.slots[slot.0 as usize];
        if operation == Operation::Connect as u64 {
            connection.connecting = false;
            if backend::is_by_peer(-result) {
                let failed = Event::ReceiveFailed(slot, -result);
                self.events.push_back((connection.generation, failed));
                return Some(Event::Connected(slot));
            }
            if result < 0 {
                return Some(Event::ConnectFailed(slot, -result));
            }
            T::arm_receive(self, slot);
            Some(Event::Connected(slot))
        } else if operation == Operation::Accept as u64 {
            connection.connecting = false;
            if result < 0 {
                connection.is_used = false;
                return Some(Event::AcceptFailed(slot, -result));
            }
            if !connection.on_request {
                T::arm_receive(self, slot);
            }
            Some(Event::Accepted(slot))
        } else if operation == Operation::Send as u64 {
            T::sent(self, slot, result, false)
        } else if operation == Operation::SilentSend as u64 {
            T::sent(self, slot, result, true)
        } else {
            None
        }
    }

    /// Sees to what completed for a connection that was closed before.
    fn settle_former(&mut self, data: u64, result: i32) {
        let slot = Slot(data as u32);
        if self.cut_sends.remove(&data) {
            self.late_bytes += result.max(0) as u64;
        }
        if let Some(abandoned) = self.abandoned.remove(&data) {
            let outgoing = T::buffer_of_abandoned(abandoned);
            self.payloads.recycle::<T>(outgoing);
        } else if data >> 60 == Operation::Accept as u64
            && result >= 0
            && !self.slots[slot.0 as usize].is_used
        {
            // It was accepted after all.
            let (ring, place) = self.home(slot);
            self.rings[ring].clear_file(place);
        }
    }

    /// Submits what is queued in the rings after the first, and has the kernel do its work for
    /// them; of those alone that have something to do.
    fn run_touched(&mut self) -> io::Result<()> {
        let mut next = 1;
        while let Some(ring) = self.touched.first_from(next) {
            self.rings[ring].submit_and_run()?;
            self.settle_send_calls(ring);
            if self.rings[ring].has_completions() {
                self.ready.insert(ring);
            }
            if !self.rings[ring].has_something_to_do() {
                self.touched.remove(ring);
            }
            next = ring + 1;
        }
        Ok(())
    }

    /// Takes the completions of the first ring, and notes which of the others the kernel has work
    /// for.
    fn take_first(&mut self) {
        self.settle_send_calls(0);
        self.take_completions(0);
        if self.rings.len() == 1 {
            return;
        }
        for index in 0..self.completions.len() {
            let entry = &self.completions[index];
            if entry.user_data() >> 60 != Operation::Wake as u64 {
                continue;
            }
            let ring = entry.user_data() as u32 as usize;
            self.touched.insert(ring);
            if !cqueue::more(entry.flags())
                && let Some(eventfd) = self.rings[ring].eventfd()
            {
                let outcome = self.rings[0].poll(eventfd, wake_data(ring));
                self.remember(outcome);
            }
        }
    }

    fn take_completions(&mut self, ring: usize) {
        self.completions.clear();
        self.completions_next = 0;
        self.completions_ring = ring;
        self.rings[ring].drain(&mut self.completions);
        T::completed(self);
    }
}

/// What signals that the kernel has work for `ring`.
fn wake_data(ring: usize) -> u64 {
    (Operation::Wake as u64) << 60 | ring as u64
}

impl<T: UringTransport> Backend for Uring<T> {
    type Transport = T;

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn send(&mut self, slot: Slot, outgoing: OutgoingOf<Self>) {
        T::send(self, slot, outgoing);
    }

    fn send_quietly(&mut self, slot: Slot, outgoing: OutgoingOf<Self>) -> bool {
        T::send_quietly(self, slot, outgoing)
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        if T::is_send_pending(self, slot) && !self.slots[slot.0 as usize].accepted {
            // The peer does not read: the kernel would keep what it was sent for minutes.
            self.queue_reset(slot);
        }
        let connection = &mut self.slots[slot.0 as usize];
        let generation = connection.generation;
        connection.generation = generation.wrapping_add(1);
        connection.is_used = false;
        let connecting = std::mem::take(&mut connection.connecting);
        let receiving = std::mem::take(&mut connection.receiving) != Receiving::No;
        let accepted = connection.accepted;
        let sending = T::abandon_sends(self, slot, user_data(Operation::Send, generation, slot));
        if connecting && accepted {
            // No socket may be put into the place once that is empty.
            self.queue_cancel(slot, Operation::Accept, generation);
            self.queued(slot, ring, Ok(()));
        }
        if !self.rings[ring].has_taken(self.slots[slot.0 as usize].queued_number) {
            // A submission that still waits would find the next connection in its place.
            let outcome = self.rings[ring].submit();
            self.settle_send_calls(ring);
            self.remember(outcome);
        }
        if connecting && !accepted {
            self.queue_cancel(slot, Operation::Connect, generation);
        }
        if receiving {
            self.queue_cancel(slot, Operation::Receive, generation);
        }
        if sending {
            self.queue_cancel(slot, Operation::Send, generation);
        }
        self.rings[ring].clear_file(place);
        self.accounts.remove(&slot);
    }

    fn reset(&mut self, slot: Slot) {
        self.queue_reset(slot);
        self.close(slot);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.release_received();
        if let Some(error) = self.fault.take() {
            return Err(error);
        }
        self.turn = self.turn.wrapping_add(1);
        self.rearm_last();
        T::release_held(self)?;
        self.run_touched()?;
        let is_idle = self.ready.is_empty() && self.touched.first_from(1).is_none();
        let until_ns = if is_idle && self.events.is_empty() && self.held.is_empty() {
            until_ns
        } else {
            Some(0)
        };
        match until_ns.map(|until_ns| until_ns.saturating_sub(clock::now_ns())) {
            Some(0) => self.rings[0].submit_and_run()?,
            timeout_ns => self.rings[0].submit_and_wait(timeout_ns.map(|ns| {
                Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32)
            }))?,
        }
        self.take_first();
        self.run_touched()
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
                let ring = self.ready.first_from(0)?;
                self.ready.remove(ring);
                self.take_completions(ring);
                continue;
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

    fn received(&self) -> ReceivedOf<'_, Self> {
        T::received(self)
    }

    fn receive_on_request(&mut self) {
        self.on_request = true;
    }

    fn receive(&mut self, slot: Slot, discard_bytes: u64) {
        let connection = &mut self.slots[slot.0 as usize];
        if connection.receiving != Receiving::No {
            return;
        }
        connection.discard_bytes = if connection.may_discard {
            discard_bytes
        } else {
            0
        };
        T::arm_receive(self, slot);
    }
}

impl<T: UringTransport> ClientBackend for Uring<T> {
    fn set_stamps(&mut self, every: Option<NonZeroU32>) {
        self.send_calls.set_every(every);
    }

    fn set_sockets(&mut self, options: &SocketOptions) {
        self.sockets = options.clone();
    }

    fn keep_accounts(&mut self) {
        self.keeps_accounts = true;
    }

    fn open(&mut self, slot: Slot, peer: &Peer, source: Option<SocketAddr>) -> io::Result<()> {
        if !T::reaches(peer) {
            return Err(io::Error::from_raw_os_error(libc::EPROTOTYPE));
        }
        let socket = socket::client(peer, source, Blocking::Yes, &self.sockets)?;
        let is_stamped = self.send_calls.opened(slot);
        let has_receive_stamps = is_stamped && socket::enable_receive_stamps(&socket, peer)?;
        let address = self.address_index(peer)?;
        let (ring, place) = self.place(slot)?;
        self.rings[ring].set_file(place, socket.as_raw_fd())?;
        let connection = &mut self.slots[slot.0 as usize];
        connection.is_used = true;
        connection.connecting = true;
        connection.accepted = false;
        connection.is_stamped = is_stamped;
        connection.has_receive_stamps = has_receive_stamps;
        connection.discard_bytes = 0;
        connection.single_receives = 0;
        connection.may_discard = matches!(peer, Peer::Tcp(_));
        connection.on_request = false;
        let data = user_data(Operation::Connect, connection.generation, slot);
        // SAFETY: the address is boxed in `addresses`, which only grows and outlives the rings.
        unsafe { self.rings[ring].connect(place, &self.addresses[address].1, data) }?;
        self.queued(slot, ring, Ok(()));
        let is_sampled = slot.0.is_multiple_of(SAMPLE_EVERY) && self.accounts.len() < SAMPLE_MAX;
        if is_sampled || self.keeps_accounts {
            self.accounts.insert(slot, socket.into());
        }
        Ok(())
    }

    fn discard(&mut self, slot: Slot, bytes: u64) {
        let connection = &mut self.slots[slot.0 as usize];
        if !connection.may_discard {
            return;
        }
        connection.discard_bytes = bytes;
        connection.single_receives = SINGLE_RECEIVES;
        if connection.receiving == Receiving::Many {
            connection.receiving = Receiving::Cancelled;
            let generation = connection.generation;
            self.queue_cancel(slot, Operation::Receive, generation);
        }
    }

    fn unsent_bytes(&mut self, slot: Slot) -> u64 {
        T::unsent_bytes(self, slot)
    }

    fn take_late_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.late_bytes)
    }

    fn finish(&mut self, slot: Slot) -> bool {
        let (ring, place) = self.home(slot);
        let generation = self.slots[slot.0 as usize].generation;
        let data = user_data(Operation::Finish, generation, slot);
        let outcome = self.rings[ring].finish(place, data);
        self.queued(slot, ring, outcome);
        true
    }

    fn set_gathering(&mut self, gather_ns: u64) {
        self.rings[0].set_gathering((gather_ns / 1_000) as u32);
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.received_stamp_ns
    }

    fn send_call(&self, slot: Slot) -> Option<SendCall> {
        self.send_calls.latest(slot)
    }

    fn is_put_off(&self, slot: Slot) -> bool {
        T::is_send_put_off(self, slot)
    }

    fn stamps_clamped(&self) -> u64 {
        self.real_time.clamped()
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        TcpInfo::read(self.accounts.get(&slot)?.as_fd()).ok()
    }

    fn moving_tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        TcpInfo::read_moving(self.accounts.get(&slot)?.as_fd()).ok()
    }
}

impl ServerBackend for Uring {
    fn listen(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        self.listens_on_tcp = socket::is_tcp(listener);
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
        connection.is_used = true;
        connection.connecting = true;
        connection.accepted = true;
        connection.is_stamped = false;
        connection.has_receive_stamps = false;
        connection.discard_bytes = 0;
        connection.single_receives = 0;
        connection.may_discard = self.listens_on_tcp;
        connection.on_request = self.on_request;
        let data = user_data(Operation::Accept, connection.generation, slot);
        let outcome = self.rings[ring].accept(listener, place, data);
        self.queued(slot, ring, outcome);
    }
}

/// One connection in this many keeps a descriptor.
const SAMPLE_EVERY: u32 = 64;
/// Most connections that keep a descriptor.
const SAMPLE_MAX: usize = 16;
