//! The traits of backends: connections in numbered slots, bytes out, events in. What backends have
//! in common: payloads held for their whole life, and buffers to reuse.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use brunt_load::SocketOptions;

use crate::tcp_info::TcpInfo;
use crate::transport::{Stream, Transport};

/// The place of one connection in a backend, chosen by the caller, from 0, dense. A slot is free
/// until `open` or `accept`, and free again after `close`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A UDP address: the sockets are connected, so that each has a port of its own.
    Udp(SocketAddr),
    /// The path of a Unix stream socket.
    Unix(PathBuf),
}

/// Whether this error means that the peer closed the connection. An attempt to connect that ended
/// with it had connected before anybody looked: a peer that does not take a connection refuses it
/// (ECONNREFUSED), also by a reset. A send that failed with it may have been answered.
pub(crate) fn is_by_peer(errno: i32) -> bool {
    matches!(errno, libc::ECONNRESET | libc::EPIPE)
}

/// Bytes that the backend holds for its whole life, so that they can be sent without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadId(pub u32);

/// What to send.
#[derive(Debug)]
pub enum Outgoing {
    /// A part of a payload given to [`Backend::add_payload`].
    Shared {
        /// The payload.
        payload: PayloadId,
        /// First byte.
        start: u32,
        /// First byte after the part; `start < end`.
        end: u32,
    },
    /// Bytes of this connection alone; handed back empty by [`Backend::take_buffer`] for reuse.
    Owned(Vec<u8>),
}

impl Transport for Stream {
    type Outgoing = Outgoing;
    type Received<'a> = &'a [u8];

    fn buffer_of(outgoing: Outgoing) -> Option<Vec<u8>> {
        match outgoing {
            Outgoing::Owned(buffer) => Some(buffer),
            Outgoing::Shared { .. } => None,
        }
    }
}

/// What is sent at once up to this size fits into the send buffer of any socket whose peer reads.
pub const AT_ONCE_BYTES_MAX: u32 = 16 * 1024;

/// Why the TLS handshake of a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The peer closed the connection, or it broke.
    Cut,
    /// The peer ended it with an alert.
    Alert,
    /// The peer's certificate did not pass.
    Certificate,
    /// The peer chose another protocol (ALPN) than the one that the run speaks.
    OtherProtocol,
    /// The peer broke the rules of TLS, or there is nothing that both sides can do.
    Broken,
}

/// The TLS handshake of an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secured {
    /// When the TCP connection was open and it began, on the run's clock.
    pub from_ns: u64,
    /// When it was complete.
    pub to_ns: u64,
    /// It resumed the session of an earlier connection.
    pub is_resumed: bool,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection attempt succeeded, with its TLS handshake where there is one; the backend
    /// receives from now on.
    Connected(Slot),
    /// The connection attempt failed with this errno. The caller must still `close` the slot.
    ConnectFailed(Slot, i32),
    /// The connection is there, and its TLS handshake failed. The caller must still `close` the
    /// slot.
    HandshakeFailed(Slot, HandshakeFailure),
    /// A connection was accepted into the slot; the backend receives from now on.
    Accepted(Slot),
    /// The offer to accept into the slot failed with this errno (the slot is free again).
    AcceptFailed(Slot, i32),
    /// Bytes came: [`Backend::received`] shows them until the next call of
    /// [`Backend::next_event`] or [`Backend::wait`].
    Received(Slot),
    /// As many bytes as this came, and nobody will see them: [`ClientBackend::discard`] allowed
    /// that.
    Discarded(Slot, u32),
    /// Everything given to `send` was taken by the kernel. Exactly one `Sent` or `SendFailed`
    /// follows each `send`, unless the slot is closed or the connection ends first.
    Sent(Slot),
    /// Sending failed with this errno; how much was taken is unknown. Where the peer closed a
    /// connection that was opened, all that it sent before is shown first.
    SendFailed(Slot, i32),
    /// The peer closed its side: no more bytes will come.
    Ended(Slot),
    /// Receiving failed with this errno: no more bytes will come.
    ReceiveFailed(Slot, i32),
}

impl Event {
    /// The slot that it is about.
    pub fn slot(self) -> Slot {
        match self {
            Self::Connected(slot)
            | Self::ConnectFailed(slot, _)
            | Self::HandshakeFailed(slot, _)
            | Self::Accepted(slot)
            | Self::AcceptFailed(slot, _)
            | Self::Received(slot)
            | Self::Discarded(slot, _)
            | Self::Sent(slot)
            | Self::SendFailed(slot, _)
            | Self::Ended(slot)
            | Self::ReceiveFailed(slot, _) => slot,
        }
    }
}

/// The system call that gave a send to the kernel, or the first of several: clock readings around
/// it, on the run's clock. What the kernel takes later waits for the peer or the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendCall {
    /// Just before the call. One call may carry sends of other connections, too.
    pub from_ns: u64,
    /// Just after it returned. The reply may have come before that.
    pub to_ns: u64,
}

/// What a backend sends at once.
pub type OutgoingOf<B> = <<B as Backend>::Transport as Transport>::Outgoing;

/// What came on a slot of a backend at once.
pub type ReceivedOf<'a, B> = <<B as Backend>::Transport as Transport>::Received<'a>;

/// One worker's hold on the kernel (or on the simulated network).
///
/// The order of calls in one turn: `open`, `send`, `close`, `accept` as needed, then `wait`, then
/// `next_event` until it gives `None`. What was asked for may be put off until `wait`. No event of
/// a connection is given after its slot was closed, even if the slot is in use again.
pub trait Backend {
    /// What its slots are.
    type Transport: Transport;

    /// Nanoseconds on the run's one monotonic clock (virtual in simulation).
    fn now_ns(&self) -> u64;

    /// Registers bytes that later `send`s refer to.
    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId;

    /// Sends. At most one send may be in flight on a slot: wait for `Sent`.
    fn send(&mut self, slot: Slot, outgoing: OutgoingOf<Self>);

    /// Sends; gives whether nothing is to be waited for: there will be no `Sent`, and the next send
    /// may begin. Where the times of send calls are taken there always is one.
    fn send_quietly(&mut self, slot: Slot, outgoing: OutgoingOf<Self>) -> bool {
        self.send(slot, outgoing);
        false
    }

    /// An empty buffer with capacity, from earlier `Outgoing::Owned` sends, or a new one.
    fn take_buffer(&mut self) -> Vec<u8>;

    /// Ends whatever is in the slot and frees it.
    fn close(&mut self, slot: Slot);

    /// As [`Backend::close`], but with a reset (RST) to the peer where the kernel offers it.
    fn reset(&mut self, slot: Slot) {
        self.close(slot);
    }

    /// Tells the peers of all open connections that nothing more comes, where they need more than
    /// the end of the connection for that. Nothing else may follow.
    fn leave(&mut self) {}

    /// Hands everything asked for to the kernel and waits until there is an event or until
    /// `until_ns` (forever when absent; not at all when it has passed).
    ///
    /// # Errors
    ///
    /// Only what leaves the backend unusable.
    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()>;

    /// The next event, if there is one without waiting.
    fn next_event(&mut self) -> Option<Event>;

    /// What came with the latest `Received` event.
    fn received(&self) -> ReceivedOf<'_, Self>;

    /// Has connections that are accepted receive nothing but what [`Backend::receive`] asks for, so
    /// that a peer that sends more than is wanted has to wait. Called before the first
    /// [`ServerBackend::accept`].
    fn receive_on_request(&mut self) {}

    /// Has the accepted connection in `slot` receive once: one [`Event::Received`],
    /// [`Event::Ended`] or [`Event::ReceiveFailed`] follows, or, where `discard_bytes` is not 0 and
    /// the backend can, one [`Event::Discarded`] of that many bytes at most. Asking again before
    /// that changes nothing. Over TLS, bytes that came with the handshake are shown without being
    /// asked for.
    fn receive(&mut self, _slot: Slot, _discard_bytes: u64) {}

    /// How the connection in `slot` was secured. Absent in clear text.
    fn secured(&self, _slot: Slot) -> Option<Secured> {
        None
    }
}

/// What a load needs of a backend beside that: connections of its own making, and when what
/// happened on them.
pub trait ClientBackend: Backend {
    /// Takes the kernel's time stamps, and the times of send calls, on every slot whose number is
    /// divisible by `every` (absent: on no slot). Called before the first `open`; connections that
    /// were accepted are never stamped.
    fn set_stamps(&mut self, _every: Option<NonZeroU32>) {}

    /// Options of the sockets of TCP connections that are opened from now on; without it, those of
    /// [`SocketOptions::default`].
    fn set_sockets(&mut self, _options: &SocketOptions) {}

    /// Keeps the kernel's account of every connection that is opened from now on, and not of a
    /// sample alone.
    fn keep_accounts(&mut self) {}

    /// Starts a connection attempt in a free slot, from `source` (its port is left to the kernel)
    /// where given. An error is a limit of this machine (no descriptor, no port, no memory) or a
    /// refusal that the kernel gave at once; the slot stays free.
    fn open(&mut self, slot: Slot, peer: &Peer, source: Option<SocketAddr>) -> io::Result<()>;

    /// The next `bytes` bytes that come on `slot` need not be shown: those that are not are told by
    /// [`Event::Discarded`]. Bytes that are shown meanwhile count among them; asked again, the new
    /// number takes the place of what is left. A backend that cannot discard shows all of them.
    fn discard(&mut self, _slot: Slot, _bytes: u64) {}

    /// Tells the peer that nothing more will be sent on `slot` (FIN); what comes is still received.
    /// No send may be in flight on it. Gives whether that is done; over TLS it is not.
    fn finish(&mut self, _slot: Slot) -> bool {
        false
    }

    /// Bytes of the latest send on `slot`, of more than [`AT_ONCE_BYTES_MAX`], that the kernel has
    /// not taken, as far as is known: it is in flight, or failed. To be asked before the slot is
    /// closed; what turns out to be taken after that is told by
    /// [`ClientBackend::take_late_bytes`].
    fn unsent_bytes(&mut self, _slot: Slot) -> u64 {
        0
    }

    /// Bytes that the kernel had taken, as was found only after their slot was closed; of sends
    /// that were asked for before that, and since this was last asked.
    fn take_late_bytes(&mut self) -> u64 {
        0
    }

    /// Lets a wait that sleeps go on for `gather_ns` although there is an event, so that more of
    /// them are taken at once. A backend that cannot just does not.
    fn set_gathering(&mut self, _gather_ns: u64) {}

    /// Whether what was sent last on `slot` has not been handed to the kernel yet: nothing that
    /// came until now answers it. False where that is not known.
    fn is_put_off(&self, _slot: Slot) -> bool {
        false
    }

    /// Whether the connection in `slot`, of which no event was given yet, is there and in its TLS
    /// handshake.
    fn is_handshaking(&self, _slot: Slot) -> bool {
        false
    }

    /// Whether the connection in `slot`, of which [`Event::Ended`] was given, may have been cut by
    /// others than the peer: over TLS, because it ended without a closing alert (RFC 8446 section
    /// 6.1).
    fn is_cut(&self, _slot: Slot) -> bool {
        false
    }

    /// Bytes that came on `slot` since this was last asked and that [`Backend::received`] never
    /// shows: TLS handshakes and the overhead of TLS records.
    fn take_overhead(&mut self, _slot: Slot) -> u64 {
        0
    }

    /// When the last of the bytes shown by [`Backend::received`] reached this machine's kernel, on
    /// the run's clock; never later than now. Absent on a slot without stamps, and where the kernel
    /// gave none (a Unix socket).
    fn received_stamp_ns(&self) -> Option<u64> {
        None
    }

    /// The latest send call on `slot`. Absent on a slot without stamps, and before the first send
    /// since the slot was opened. To be asked when the response is complete: a later send would
    /// replace it.
    fn send_call(&self, _slot: Slot) -> Option<SendCall> {
        None
    }

    /// Time stamps that lay in the future and were taken for the time of their reading. Only a step
    /// of wall time brings that about.
    fn stamps_clamped(&self) -> u64 {
        0
    }

    /// The kernel's own account of an open connection. Absent where this connection is not in the
    /// backend's sample, or is not TCP.
    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo>;

    /// As `tcp_info`, of a connection on which bytes keep coming in: what is said to be unread may
    /// have come after the rest was read.
    fn moving_tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        self.tcp_info(slot)
    }
}

/// What a server needs of a backend beside that: connections that others make.
pub trait ServerBackend: Backend<Transport = Stream> {
    /// Sets the listening socket that `accept` takes from. It must be non-blocking and outlive
    /// the backend.
    fn listen(&mut self, listener: BorrowedFd<'_>) -> io::Result<()>;

    /// Offers a free slot for the next incoming connection.
    fn accept(&mut self, slot: Slot);
}

/// Buffers kept for reuse; more are given back to the allocator.
const SPARE_BUFFERS_MAX: usize = 256;
/// A buffer that grew beyond this is not kept.
const SPARE_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Payloads and spare buffers of one backend.
#[derive(Debug, Default)]
pub struct Payloads {
    shared: Vec<Arc<[u8]>>,
    spare: Vec<Vec<u8>>,
}

impl Payloads {
    /// Keeps `bytes` for the life of the backend. Their address never changes.
    pub fn add(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.shared.push(bytes);
        PayloadId(self.shared.len() as u32 - 1)
    }

    /// The bytes of `outgoing`.
    #[inline]
    pub fn bytes<'a>(&'a self, outgoing: &'a Outgoing) -> &'a [u8] {
        match outgoing {
            Outgoing::Shared {
                payload,
                start,
                end,
            } => &self.shared[payload.0 as usize][*start as usize..*end as usize],
            Outgoing::Owned(bytes) => bytes,
        }
    }

    /// An empty buffer.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives back what was sent.
    pub fn recycle<T: Transport>(&mut self, outgoing: T::Outgoing) {
        if let Some(mut buffer) = T::buffer_of(outgoing)
            && self.spare.len() < SPARE_BUFFERS_MAX
            && buffer.capacity() <= SPARE_BUFFER_BYTES_MAX
        {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
