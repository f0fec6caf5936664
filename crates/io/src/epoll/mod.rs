//! The epoll backend: non-blocking sockets and one shared receive buffer. What differs between
//! streams and datagrams is in files of their own.

mod datagrams;
mod streams;
mod wait;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use brunt_load::SocketOptions;
use rustix::event::epoll;
use rustix::io::Errno;

use crate::backend::{
    self, Backend, ClientBackend, Event, OutgoingOf, PayloadId, Payloads, Peer, ReceivedOf,
    SendCall, ServerBackend, Slot,
};
use crate::clock::{self, RealTime};
use crate::receive_stamps::SendCalls;
use crate::socket::{self, Blocking};
use crate::tcp_info::TcpInfo;
use crate::threads;
use crate::transport::{Stream, Transport};
use wait::Wait;
pub(crate) use wait::timespec;

/// Bytes read at once.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Readiness events taken at once.
const READY_MAX: usize = 1_024;
/// Reads of one socket in a turn: whoever sends without end must not keep the others, and the
/// caller's clock, waiting.
const READS_MAX: u32 = 8;
/// Bytes of all sockets after which a turn ends; the next one goes on from there. As many may be
/// written besides: whoever writes again as soon as a write is taken must not keep what is read
/// waiting, nor the caller's clock.
const TURN_BYTES_MAX: usize = 4 << 20;
/// Bytes discarded at once.
const DISCARD_BYTES_MAX: u64 = 1 << 20;
/// Marks the listening socket among the epoll tokens.
const LISTENER: u64 = u64::MAX;

/// What a transport does with the sockets of an instance.
pub trait EpollTransport: Transport {
    /// What is registered of a socket.
    #[doc(hidden)]
    const INTEREST: epoll::EventFlags;

    /// What an instance has for it.
    #[doc(hidden)]
    type Instance: Default;

    /// Whether sockets to `peer` are of this transport.
    #[doc(hidden)]
    fn reaches(peer: &Peer) -> bool;

    /// Sends as much as the kernel takes; the rest waits for the socket to become writable.
    #[doc(hidden)]
    fn push_out(instance: &mut Epoll<Self>, slot: Slot);

    /// What [`ClientBackend::unsent_bytes`] gives.
    #[doc(hidden)]
    fn unsent_bytes(_instance: &Epoll<Self>, _slot: Slot) -> u64 {
        0
    }

    /// Reads once.
    #[doc(hidden)]
    fn read(instance: &mut Epoll<Self>, slot: Slot) -> Option<Event>;

    /// What was read last.
    #[doc(hidden)]
    fn received(instance: &Epoll<Self>) -> Self::Received<'_>;
}

/// One worker's epoll instance and sockets, all of one transport.
pub struct Epoll<T: EpollTransport = Stream> {
    epoll: OwnedFd,
    waiting: Wait,
    slots: Vec<EpollConnection<T>>,
    payloads: Payloads,
    listener: Option<OwnedFd>,
    /// The connections that are accepted are of TCP.
    listens_on_tcp: bool,
    /// Accepted connections receive only what `receive` asks for.
    on_request: bool,
    offered: VecDeque<Slot>,
    accepting: bool,
    /// Readiness to look at, first to last; `ready_next` is the next one.
    ready: Vec<epoll::Event>,
    ready_next: usize,
    /// Reads again of the readiness in hand.
    reads: u32,
    /// Bytes read in this turn.
    turn_bytes: usize,
    /// Bytes written in this turn.
    turn_written: usize,
    /// Readiness that was not read to its end in this turn.
    unfinished: Vec<epoll::Event>,
    /// Events known without asking the kernel.
    events: VecDeque<(u32, Event)>,
    buffer: Box<[u8]>,
    /// Bytes in it that are shown.
    received: usize,
    own: T::Instance,
    /// Bytes that the latest read took, and that it asked for.
    read: (usize, usize),
    received_stamp_ns: Option<u64>,
    /// How long a wait that sleeps lasts at least.
    gather_ns: u64,
    send_calls: SendCalls,
    real_time: RealTime,
    sockets: SocketOptions,
}

#[derive(Default)]
struct EpollConnection<T: Transport> {
    socket: Option<OwnedFd>,
    generation: u32,
    state: ConnectionState,
    /// The connection is in `Epoll::unfinished`.
    is_unfinished: bool,
    /// Whether the peer connected to us.
    accepted: bool,
    /// The times of its send calls are taken.
    is_stamped: bool,
    /// The kernel stamps what it receives.
    has_receive_stamps: bool,
    /// Bytes that need not be shown, of those that come next.
    discard_bytes: u64,
    /// The connection is TCP: the kernel throws bytes away where it is asked to.
    may_discard: bool,
    /// The connection receives only when it is asked to.
    on_request: bool,
    /// The connection has been asked to receive.
    is_wanted: bool,
    /// Readiness that nobody asked for yet.
    kept: Option<epoll::Event>,
    /// A send waits for room in the socket. Only set on datagram sockets.
    awaits_room: bool,
    /// What is being sent, and how much of it the kernel took.
    sending: Option<(<T as Transport>::Outgoing, usize)>,
    /// A send failed: told when everything that the peer had sent is read.
    failed: Option<Event>,
    /// Bytes that it left.
    failed_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConnectionState {
    #[default]
    Free,
    Connecting,
    Open,
    /// The peer will send no more.
    Ended,
}

impl Epoll {
    /// An instance for byte streams, without sockets.
    ///
    /// # Errors
    ///
    /// No descriptor is free.
    pub fn new() -> io::Result<Self> {
        Self::without_sockets()
    }
}

impl<T: EpollTransport> Epoll<T> {
    fn without_sockets() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            waiting: Wait::of_kernel(epoll.as_fd()),
            epoll,
            slots: Vec::new(),
            payloads: Payloads::default(),
            listener: None,
            listens_on_tcp: false,
            on_request: false,
            offered: VecDeque::new(),
            accepting: false,
            ready: Vec::with_capacity(READY_MAX),
            ready_next: 0,
            reads: 0,
            turn_bytes: 0,
            turn_written: 0,
            unfinished: Vec::new(),
            events: VecDeque::new(),
            buffer: vec![0; RECEIVE_BYTES].into(),
            received: 0,
            own: T::Instance::default(),
            read: (0, 0),
            received_stamp_ns: None,
            gather_ns: 0,
            send_calls: SendCalls::default(),
            real_time: RealTime::default(),
            sockets: SocketOptions::default(),
        })
    }

    /// This instance as it is on a kernel without epoll_pwait2 (Linux before 5.11), for tests.
    #[must_use]
    pub fn without_pwait2(self) -> Self {
        Self {
            waiting: Wait::Ppoll,
            ..self
        }
    }

    fn connection(&mut self, slot: Slot) -> &mut EpollConnection<T> {
        let index = slot.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, EpollConnection::default);
        }
        &mut self.slots[index]
    }

    fn register(&mut self, slot: Slot, socket: OwnedFd, state: ConnectionState) -> io::Result<()> {
        let generation = self.connection(slot).generation;
        epoll::add(&self.epoll, &socket, token(generation, slot), T::INTEREST)?;
        let connection = self.connection(slot);
        connection.socket = Some(socket);
        connection.state = state;
        Ok(())
    }

    /// Whether more may wait behind the bytes just read: an edge-triggered socket says it once.
    fn must_read_again(&self) -> bool {
        let closing = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let (taken, asked) = self.read;
        if taken == 0 {
            return false;
        }
        let flags = self.ready[self.ready_next - 1].flags;
        taken == asked || flags.intersects(closing)
    }

    /// Looks at the readiness in hand again, in this turn or, after many reads, in the next.
    fn read_again(&mut self) {
        if self.reads < READS_MAX {
            self.reads += 1;
            self.ready_next -= 1;
            return;
        }
        self.reads = 0;
        let ready = self.ready[self.ready_next - 1];
        let connection = self.connection(Slot(ready.data.u64() as u32));
        if !std::mem::replace(&mut connection.is_unfinished, true) {
            self.unfinished.push(ready);
        }
    }

    fn accept_next(&mut self) -> Option<Event> {
        let slot = *self.offered.front()?;
        let listener = self.listener.as_ref()?;
        let flags = rustix::net::SocketFlags::NONBLOCK | rustix::net::SocketFlags::CLOEXEC;
        match rustix::net::accept_with(listener, flags) {
            Ok(socket) => {
                self.offered.pop_front();
                match self.register(slot, socket, ConnectionState::Open) {
                    Ok(()) => {
                        let (may_discard, on_request) = (self.listens_on_tcp, self.on_request);
                        let connection = self.connection(slot);
                        connection.accepted = true;
                        connection.may_discard = may_discard;
                        connection.on_request = on_request;
                        Some(Event::Accepted(slot))
                    }
                    Err(error) => Some(Event::AcceptFailed(slot, errno_of(&error))),
                }
            }
            Err(Errno::AGAIN) => {
                self.accepting = false;
                None
            }
            // The peer gave up while it waited: the next one may be there.
            Err(Errno::INTR | Errno::CONNABORTED) => None,
            Err(errno) => {
                self.accepting = false;
                self.offered.pop_front();
                Some(Event::AcceptFailed(slot, errno.raw_os_error()))
            }
        }
    }

    /// Looks at one readiness event; it may yield an event for the caller.
    fn look(&mut self, slot: Slot, flags: epoll::EventFlags) -> Option<Event> {
        match self.slots[slot.0 as usize].state {
            ConnectionState::Free => None,
            ConnectionState::Connecting => {
                let event = self.finish_connect(slot);
                let came = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
                if matches!(event, Some(Event::Connected(_))) && flags.intersects(came) {
                    // An edge-triggered socket says it once.
                    self.ready_next -= 1;
                }
                event
            }
            ConnectionState::Open | ConnectionState::Ended => {
                if flags.contains(epoll::EventFlags::OUT) {
                    T::push_out(self, slot);
                }
                let connection = &mut self.slots[slot.0 as usize];
                if connection.on_request && !connection.is_wanted {
                    let ready = self.ready[self.ready_next - 1];
                    connection.keep(ready);
                    return None;
                }
                let event = T::read(self, slot);
                if event.is_some() {
                    self.slots[slot.0 as usize].is_wanted = false;
                }
                event
            }
        }
    }

    fn finish_connect(&mut self, slot: Slot) -> Option<Event> {
        let connection = &mut self.slots[slot.0 as usize];
        let socket = connection.socket.as_ref()?;
        match rustix::net::sockopt::socket_error(socket) {
            Ok(Ok(())) => {
                connection.state = ConnectionState::Open;
                Some(Event::Connected(slot))
            }
            Ok(Err(errno)) | Err(errno) => {
                connection.state = ConnectionState::Ended;
                let errno = errno.raw_os_error();
                if backend::is_by_peer(errno) {
                    let failed = Event::ReceiveFailed(slot, errno);
                    self.events.push_back((connection.generation, failed));
                    return Some(Event::Connected(slot));
                }
                Some(Event::ConnectFailed(slot, errno))
            }
        }
    }
}

impl<T: EpollTransport> Backend for Epoll<T> {
    type Transport = T;

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn send(&mut self, slot: Slot, outgoing: OutgoingOf<Self>) {
        self.slots[slot.0 as usize].sending = Some((outgoing, 0));
        T::push_out(self, slot);
    }

    fn send_quietly(&mut self, slot: Slot, outgoing: OutgoingOf<Self>) -> bool {
        self.send(slot, outgoing);
        let connection = &self.slots[slot.0 as usize];
        let sent = (connection.generation, Event::Sent(slot));
        let is_quiet = !connection.is_stamped && self.events.back() == Some(&sent);
        if is_quiet {
            self.events.pop_back();
        }
        is_quiet
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        let connection = &mut self.slots[slot.0 as usize];
        let next = EpollConnection {
            generation: connection.generation.wrapping_add(1),
            is_unfinished: connection.is_unfinished,
            ..EpollConnection::default()
        };
        let former = std::mem::replace(connection, next);
        if let Some(socket) = &former.socket
            && former.sending.is_some()
            && !former.accepted
        {
            // The peer does not read: the kernel would keep what it was sent for minutes.
            reset_on_close(socket);
        }
        // Closing the last descriptor of a socket also takes it out of the epoll set.
        if let Some((outgoing, _)) = former.sending {
            self.payloads.recycle::<T>(outgoing);
        }
    }

    fn reset(&mut self, slot: Slot) {
        if let Some(socket) = &self.slots[slot.0 as usize].socket {
            reset_on_close(socket);
        }
        self.close(slot);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.turn_bytes = 0;
        self.turn_written = 0;
        if self.ready_next < self.ready.len() {
            // The kernel keeps what became ready meanwhile.
            self.ready.drain(..self.ready_next);
            self.ready_next = 0;
            return Ok(());
        }
        let must_not_wait = !self.events.is_empty()
            || !self.unfinished.is_empty()
            || (self.accepting && !self.offered.is_empty());
        let timeout_ns = if must_not_wait {
            Some(0)
        } else {
            until_ns.map(|until_ns| until_ns.saturating_sub(clock::now_ns()))
        };
        let gather_ns = self.gather_ns.min(timeout_ns.unwrap_or(u64::MAX));
        if gather_ns > 0 {
            threads::sleep(gather_ns);
        }
        let timeout_ns = timeout_ns.map(|timeout_ns| timeout_ns - gather_ns);
        self.ready.clear();
        self.ready_next = 0;
        let outcome = self
            .waiting
            .wait(self.epoll.as_fd(), &mut self.ready, timeout_ns);
        for ready in self.unfinished.drain(..) {
            self.slots[ready.data.u64() as u32 as usize].is_unfinished = false;
            self.ready.push(ready);
        }
        match outcome {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        loop {
            if self.must_read_again() {
                self.read_again();
            } else if self.read.0 > 0 {
                self.reads = 0;
            }
            self.read = (0, 0);
            self.received = 0;
            self.received_stamp_ns = None;
            if self.turn_written < TURN_BYTES_MAX
                && let Some((generation, event)) = self.events.pop_front()
            {
                if generation == self.slots[event.slot().0 as usize].generation {
                    return Some(event);
                }
                continue;
            }
            if self.accepting && !self.offered.is_empty() {
                if let Some(event) = self.accept_next() {
                    return Some(event);
                }
                continue;
            }
            if self.turn_bytes >= TURN_BYTES_MAX {
                return None;
            }
            let ready = *self.ready.get(self.ready_next)?;
            self.ready_next += 1;
            let token = ready.data.u64();
            if token == LISTENER {
                self.accepting = true;
                continue;
            }
            let (generation, slot) = ((token >> 32) as u32, Slot(token as u32));
            if generation != self.slots[slot.0 as usize].generation {
                continue;
            }
            if let Some(event) = self.look(slot, ready.flags) {
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
        if std::mem::replace(&mut connection.is_wanted, true) {
            return;
        }
        connection.discard_bytes = if connection.may_discard {
            discard_bytes
        } else {
            0
        };
        if let Some(ready) = connection.kept.take()
            && !std::mem::replace(&mut connection.is_unfinished, true)
        {
            self.unfinished.push(ready);
        }
    }
}

impl<T: EpollTransport> ClientBackend for Epoll<T> {
    fn set_stamps(&mut self, every: Option<NonZeroU32>) {
        self.send_calls.set_every(every);
    }

    fn set_sockets(&mut self, options: &SocketOptions) {
        self.sockets = options.clone();
    }

    fn open(&mut self, slot: Slot, peer: &Peer, source: Option<SocketAddr>) -> io::Result<()> {
        if !T::reaches(peer) {
            return Err(io::Error::from_raw_os_error(libc::EPROTOTYPE));
        }
        let socket = socket::client(peer, source, Blocking::No, &self.sockets)?;
        let is_stamped = self.send_calls.opened(slot);
        let has_receive_stamps = is_stamped && socket::enable_receive_stamps(&socket, peer)?;
        let state = match socket.connect(&socket::address(peer)?) {
            Ok(()) => ConnectionState::Open,
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
                ConnectionState::Connecting
            }
            Err(error) => return Err(error),
        };
        self.register(slot, socket.into(), state)?;
        let connection = self.connection(slot);
        connection.is_stamped = is_stamped;
        connection.has_receive_stamps = has_receive_stamps;
        connection.may_discard = matches!(peer, Peer::Tcp(_));
        connection.accepted = false;
        if state == ConnectionState::Open {
            let generation = self.connection(slot).generation;
            self.events.push_back((generation, Event::Connected(slot)));
        }
        Ok(())
    }

    fn discard(&mut self, slot: Slot, bytes: u64) {
        let connection = &mut self.slots[slot.0 as usize];
        if connection.may_discard {
            connection.discard_bytes = bytes;
        }
    }

    fn unsent_bytes(&mut self, slot: Slot) -> u64 {
        T::unsent_bytes(self, slot)
    }

    fn finish(&mut self, slot: Slot) -> bool {
        let socket = self.slots[slot.0 as usize].socket.as_ref();
        socket.is_some_and(|socket| {
            // A peer that is gone need not know.
            rustix::net::shutdown(socket, rustix::net::Shutdown::Write).is_ok()
        })
    }

    fn set_gathering(&mut self, gather_ns: u64) {
        self.gather_ns = gather_ns;
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.received_stamp_ns
    }

    fn send_call(&self, slot: Slot) -> Option<SendCall> {
        self.send_calls.latest(slot)
    }

    fn stamps_clamped(&self) -> u64 {
        self.real_time.clamped()
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let socket = self.slots.get(slot.0 as usize)?.socket.as_ref()?;
        TcpInfo::read(socket.as_fd()).ok()
    }

    fn moving_tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let socket = self.slots.get(slot.0 as usize)?.socket.as_ref()?;
        TcpInfo::read_moving(socket.as_fd()).ok()
    }
}

impl ServerBackend for Epoll {
    fn listen(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        let listener = listener.try_clone_to_owned()?;
        let interest = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(
            &self.epoll,
            &listener,
            epoll::EventData::new_u64(LISTENER),
            interest,
        )?;
        self.listens_on_tcp = socket::is_tcp(listener.as_fd());
        self.listener = Some(listener);
        Ok(())
    }

    fn accept(&mut self, slot: Slot) {
        self.connection(slot);
        self.offered.push_back(slot);
        self.accepting = true;
    }
}

impl<T: Transport> EpollConnection<T> {
    /// Keeps readiness to receive for when that is asked for: an edge-triggered socket says it
    /// once.
    fn keep(&mut self, ready: epoll::Event) {
        let receiving = epoll::EventFlags::IN
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::HUP
            | epoll::EventFlags::ERR;
        let before = self
            .kept
            .map_or(epoll::EventFlags::empty(), |kept| kept.flags);
        let flags = (before | ready.flags) & receiving;
        if !flags.is_empty() {
            self.kept = Some(epoll::Event { flags, ..ready });
        }
    }
}

/// What readiness of a connection is known by.
fn token(generation: u32, slot: Slot) -> epoll::EventData {
    epoll::EventData::new_u64(u64::from(generation) << 32 | u64::from(slot.0))
}

/// Has closing `socket` send a reset. One that cannot linger is closed in the ordinary way.
fn reset_on_close(socket: &OwnedFd) {
    let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

pub(super) fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
