//! TLS around any backend: handshakes on its own, plain text in and out.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use brunt_load::SocketOptions;
use brunt_proto::tls::{ClientSide, Scratch, ServerSide, Session, TlsError};

use crate::backend::{
    Backend, ClientBackend, Event, HandshakeFailure, Outgoing, PayloadId, Payloads, Peer, Secured,
    SendCall, ServerBackend, Slot,
};
use crate::tcp_info::TcpInfo;
use crate::transport::Stream;

/// The protocol that a server speaks which chooses none (RFC 7301).
const HTTP_1_1: &[u8] = b"http/1.1";

/// How long an accepted connection may take for its handshake. Without an end, clients that say
/// nothing would hold every slot that is offered.
const HANDSHAKE_NS_MAX: u64 = 10_000_000_000;
/// A buffer that grew beyond this is not kept.
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// A backend whose connections speak TLS over those of `B`.
///
/// `Connected` and `Accepted` come when the handshake is complete. A handshake that fails on the
/// accepting side closes the connection and is an `AcceptFailed`; one that takes longer than 10 s
/// there fails with `ETIMEDOUT`. On the opening side the caller sets limits. `Ended` comes with the
/// peer's `close_notify`, or with the end of the connection where the peer sends none; whether
/// plain text may have been cut off is reported by [`Backend::is_cut`].
///
/// A slot's overhead may be asked for after it was closed, too, until it is used again: only then
/// does it hold the bytes of a record that never became complete.
pub struct Tls<B> {
    inner: B,
    role: Role,
    payloads: Payloads,
    slots: Vec<TlsConnection>,
    scratch: Scratch,
    /// Plain text of the read in hand.
    plain: Vec<u8>,
    /// `plain` is that of the latest event.
    is_showing: bool,
    /// An empty buffer for what is written next, or one without capacity.
    out: Vec<u8>,
    /// Slots with records that wait for the caller's first send, or for the end of the turn.
    held: Vec<Slot>,
    /// When the handshake of each accepted connection has to be complete, or its alert sent. A set,
    /// because they are left at once: so it is never larger than the number of slots.
    handshakes: BTreeSet<(u64, Slot)>,
    /// Connections receive only what `receive` asks for.
    on_request: bool,
    /// Events known without asking the inner backend, with the generation of their connection.
    events: VecDeque<(u32, Event)>,
}

enum Role {
    Client {
        side: ClientSide,
        alpn: Option<&'static [u8]>,
    },
    Server(ServerSide),
}

#[derive(Default)]
struct TlsConnection {
    generation: u32,
    state: TlsState,
    /// What the send in flight on the inner backend holds.
    sending: Option<Sending>,
    /// Records that wait for it; or, without one, are held.
    queued: Vec<u8>,
    /// The last of them are the caller's.
    queued_is_callers: bool,
    /// An own send failed: so will the caller's next.
    send_errno: Option<i32>,
    session: Option<Box<Session>>,
    /// It ended without the peer's `close_notify`.
    is_cut: bool,
    /// When the handshake began.
    from_ns: u64,
    secured: Option<Secured>,
    overhead_bytes: u64,
    /// Its caller asked for plain text.
    is_wanted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// Of the handshake, or an alert.
    Own,
    /// What the caller sent, perhaps after something of the handshake.
    Callers,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TlsState {
    /// Free, or the inner backend has yet to connect or accept.
    #[default]
    Idle,
    Handshaking,
    /// An accepted connection whose handshake failed: it is closed once the alert is sent.
    Refused(i32),
    Open,
    /// The peer's `close_notify` came.
    Finished,
    /// Nothing more is received: the connection ended, or the session failed.
    Over,
}

impl<B: Backend<Transport = Stream>> Tls<B> {
    /// For connections that are opened. The application protocol `alpn` must be what the server
    /// chooses, except that one which chooses none is taken to speak `http/1.1`; absent: whatever
    /// it chooses. The memory of `side` is not shared: this backend has its own.
    pub fn client(inner: B, side: ClientSide, alpn: Option<&'static [u8]>) -> Self {
        let side = side.separate();
        Self::new(inner, Role::Client { side, alpn })
    }

    /// For connections that are accepted.
    pub fn server(inner: B, side: ServerSide) -> Self {
        Self::new(inner, Role::Server(side))
    }

    fn new(inner: B, role: Role) -> Self {
        Self {
            inner,
            role,
            payloads: Payloads::default(),
            slots: Vec::new(),
            scratch: Scratch::default(),
            plain: Vec::new(),
            is_showing: false,
            out: Vec::new(),
            held: Vec::new(),
            handshakes: BTreeSet::new(),
            on_request: false,
            events: VecDeque::new(),
        }
    }

    /// Makes the slot ready for another connection.
    fn prepare(&mut self, slot: Slot) {
        let index = slot.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, TlsConnection::default);
        }
        let connection = &mut self.slots[index];
        connection.secured = None;
        connection.overhead_bytes = 0;
    }

    /// Forgets a connection that the inner backend has closed, but for its overhead.
    fn release(&mut self, slot: Slot) {
        self.end_deadline(slot);
        let connection = &mut self.slots[slot.0 as usize];
        *connection = TlsConnection {
            generation: connection.generation.wrapping_add(1),
            overhead_bytes: connection.overhead_bytes + connection.unfinished_bytes(),
            ..TlsConnection::default()
        };
    }

    fn report(&mut self, event: Event) {
        let generation = self.slots[event.slot().0 as usize].generation;
        self.events.push_back((generation, event));
    }

    /// The connection is there: the handshake begins.
    fn begin(&mut self, slot: Slot) {
        let from_ns = self.inner.now_ns();
        let session = match &self.role {
            Role::Client { side, .. } => Session::client(side),
            Role::Server(side) => Session::server(side),
        };
        let connection = &mut self.slots[slot.0 as usize];
        connection.state = TlsState::Handshaking;
        connection.from_ns = from_ns;
        if let Role::Server(_) = self.role {
            self.handshakes.insert((from_ns + HANDSHAKE_NS_MAX, slot));
        }
        match session {
            Ok(session) => {
                connection.session = Some(Box::new(session));
                self.take(slot, false);
            }
            Err(error) => self.fail_handshake(slot, &error),
        }
    }

    /// Where to write the next records of `slot`: behind those that are held.
    fn out(&mut self, slot: Slot) -> Vec<u8> {
        let connection = &mut self.slots[slot.0 as usize];
        if connection.sending.is_none() && !connection.queued.is_empty() {
            std::mem::take(&mut connection.queued)
        } else if self.out.capacity() > 0 {
            std::mem::take(&mut self.out)
        } else {
            self.inner.take_buffer()
        }
    }

    /// Gives what was received to the session, if anything was, and reports the result.
    fn take(&mut self, slot: Slot, was_received: bool) {
        let mut out = self.out(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let bytes = was_received.then(|| self.inner.received());
        let bytes = bytes.unwrap_or_default();
        let is_listening = matches!(connection.state, TlsState::Handshaking | TlsState::Open);
        let (Some(session), true) = (&mut connection.session, is_listening) else {
            connection.overhead_bytes += bytes.len() as u64;
            self.put(slot, out, Sending::Own);
            return;
        };
        self.plain.clear();
        let before = session.kept_bytes() + bytes.len();
        let outcome = session.receive(bytes, &mut self.scratch, &mut self.plain, &mut out);
        let after = session.kept_bytes() + self.plain.len();
        let (is_handshaking, is_ended) = (session.is_handshaking(), session.is_ended());
        connection.overhead_bytes += before.saturating_sub(after) as u64;
        if is_handshaking || is_ended || outcome.is_err() {
            self.put(slot, out, Sending::Own);
        } else {
            self.hold(slot, out);
        }
        if self.slots[slot.0 as usize].state == TlsState::Handshaking {
            if !is_handshaking {
                self.complete_handshake(slot);
            } else if let Err(error) = &outcome {
                return self.fail_handshake(slot, error);
            }
        }
        if self.slots[slot.0 as usize].state != TlsState::Open {
            return;
        }
        if !self.plain.is_empty() {
            self.slots[slot.0 as usize].is_wanted = false;
            self.report(Event::Received(slot));
        }
        if outcome.is_err() {
            self.slots[slot.0 as usize].state = TlsState::Over;
            self.report(Event::ReceiveFailed(slot, libc::EPROTO));
        } else if is_ended {
            self.slots[slot.0 as usize].state = TlsState::Finished;
            self.report(Event::Ended(slot));
        }
    }

    fn complete_handshake(&mut self, slot: Slot) {
        self.end_deadline(slot);
        let to_ns = self.inner.now_ns();
        let connection = &mut self.slots[slot.0 as usize];
        let Some(session) = &connection.session else {
            return;
        };
        connection.secured = Some(Secured {
            from_ns: connection.from_ns,
            to_ns,
            is_resumed: session.is_resumed(),
        });
        connection.state = TlsState::Open;
        let event = match &self.role {
            Role::Server(_) => Event::Accepted(slot),
            Role::Client { alpn, .. } if is_expected(*alpn, session.alpn()) => {
                Event::Connected(slot)
            }
            Role::Client { .. } => {
                connection.go_over();
                connection.overhead_bytes += self.plain.len() as u64;
                Event::HandshakeFailed(slot, HandshakeFailure::OtherProtocol)
            }
        };
        self.report(event);
    }

    fn fail_handshake(&mut self, slot: Slot, error: &TlsError) {
        let failure = match error {
            TlsError::Certificate(_) => HandshakeFailure::Certificate,
            TlsError::Alert(_) => HandshakeFailure::Alert,
            TlsError::NoCommonProtocol => HandshakeFailure::OtherProtocol,
            TlsError::Broken(_) => HandshakeFailure::Broken,
        };
        self.end_handshake(slot, failure, libc::EPROTO);
    }

    /// Ends a handshake in failure; `errno` is what the accepting side's caller gets.
    fn end_handshake(&mut self, slot: Slot, failure: HandshakeFailure, errno: i32) {
        let connection = &mut self.slots[slot.0 as usize];
        match self.role {
            Role::Client { .. } => {
                connection.go_over();
                self.report(Event::HandshakeFailed(slot, failure));
            }
            Role::Server(_) if failure != HandshakeFailure::Cut && connection.sending.is_some() => {
                connection.state = TlsState::Refused(errno);
            }
            Role::Server(_) => self.refuse(slot, errno),
        }
    }

    /// Gives back the slot of an accepted connection.
    fn refuse(&mut self, slot: Slot, errno: i32) {
        self.inner.close(slot);
        self.release(slot);
        self.report(Event::AcceptFailed(slot, errno));
    }

    /// The handshake need not end any more, or has.
    fn end_deadline(&mut self, slot: Slot) {
        let from_ns = self.slots[slot.0 as usize].from_ns;
        self.handshakes.remove(&(from_ns + HANDSHAKE_NS_MAX, slot));
    }

    /// Closes accepted connections whose handshake takes too long, or whose peer does not take the
    /// alert.
    fn refuse_late(&mut self) {
        while let Some(&(deadline_ns, slot)) = self.handshakes.first()
            && deadline_ns <= self.inner.now_ns()
        {
            let errno = match self.slots[slot.0 as usize].state {
                TlsState::Refused(errno) => errno,
                _ => libc::ETIMEDOUT,
            };
            // Takes it out of the set.
            self.refuse(slot, errno);
        }
    }

    /// Sends records, or queues them behind those in flight.
    fn put(&mut self, slot: Slot, records: Vec<u8>, sending: Sending) {
        let connection = &mut self.slots[slot.0 as usize];
        if records.is_empty() || connection.send_errno.is_some() {
            self.spare(records);
        } else if connection.sending.is_none() {
            connection.sending = Some(sending);
            self.inner.send(slot, Outgoing::Owned(records));
        } else {
            connection.queued.extend_from_slice(&records);
            connection.queued_is_callers |= sending == Sending::Callers;
            self.spare(records);
        }
    }

    /// Keeps the last records of a handshake until the caller sends, which mostly is at once, or
    /// the turn ends: so they share a system call and a segment.
    fn hold(&mut self, slot: Slot, records: Vec<u8>) {
        let connection = &mut self.slots[slot.0 as usize];
        if records.is_empty() || connection.sending.is_some() {
            return self.put(slot, records, Sending::Own);
        }
        connection.queued = records;
        self.held.push(slot);
    }

    fn send_held(&mut self) {
        while let Some(slot) = self.held.pop() {
            let connection = &mut self.slots[slot.0 as usize];
            if connection.sending.is_none() {
                let records = std::mem::take(&mut connection.queued);
                self.put(slot, records, Sending::Own);
            }
        }
    }

    fn spare(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        let capacity = buffer.capacity();
        if capacity > self.out.capacity() && capacity <= SPARE_BYTES_MAX {
            self.out = buffer;
        }
    }

    /// The inner backend has sent everything.
    fn sent(&mut self, slot: Slot) -> Option<Event> {
        let connection = &mut self.slots[slot.0 as usize];
        let sent = connection.sending.take();
        if !connection.queued.is_empty() {
            let is_callers = std::mem::take(&mut connection.queued_is_callers);
            connection.sending = Some(if is_callers {
                Sending::Callers
            } else {
                Sending::Own
            });
            let queued = std::mem::take(&mut connection.queued);
            self.inner.send(slot, Outgoing::Owned(queued));
        } else if let TlsState::Refused(errno) = connection.state {
            self.refuse(slot, errno);
            return None;
        }
        (sent == Some(Sending::Callers)).then_some(Event::Sent(slot))
    }

    fn send_failed(&mut self, slot: Slot, errno: i32) -> Option<Event> {
        let connection = &mut self.slots[slot.0 as usize];
        let is_callers =
            connection.sending.take() == Some(Sending::Callers) || connection.queued_is_callers;
        connection.queued = Vec::new();
        connection.queued_is_callers = false;
        connection.send_errno = Some(errno);
        match connection.state {
            TlsState::Handshaking => self.end_handshake(slot, HandshakeFailure::Cut, errno),
            TlsState::Refused(errno) => self.refuse(slot, errno),
            _ => {}
        }
        is_callers.then_some(Event::SendFailed(slot, errno))
    }

    /// The inner backend receives no more: `event` says so to the caller, and `errno` to one whose
    /// accepted connection was never there.
    fn cut(&mut self, slot: Slot, event: Event, errno: i32) -> Option<Event> {
        let connection = &mut self.slots[slot.0 as usize];
        match connection.state {
            TlsState::Handshaking => self.end_handshake(slot, HandshakeFailure::Cut, errno),
            TlsState::Refused(errno) => self.refuse(slot, errno),
            TlsState::Open => {
                connection.go_over();
                connection.is_cut = true;
                return Some(event);
            }
            TlsState::Finished => connection.go_over(),
            TlsState::Idle | TlsState::Over => {}
        }
        None
    }

    /// Tells the peer that nothing more comes, where that is possible without waiting.
    fn notify_close(&mut self, slot: Slot) {
        let connection = &mut self.slots[slot.0 as usize];
        let is_possible = matches!(connection.state, TlsState::Open | TlsState::Finished)
            && connection.sending.is_none()
            && connection.send_errno.is_none();
        if !is_possible {
            return;
        }
        connection.go_over();
        let mut out = self.out(slot);
        if let Some(session) = self.slots[slot.0 as usize].session.take() {
            session.close(&mut out);
        }
        self.put(slot, out, Sending::Own);
    }

    /// Has the inner backend receive again, where the handshake or the caller waits for more.
    fn receive_more(&mut self, slot: Slot) {
        let connection = &self.slots[slot.0 as usize];
        let waits = match connection.state {
            TlsState::Handshaking => true,
            TlsState::Open => connection.is_wanted,
            TlsState::Idle | TlsState::Refused(_) | TlsState::Finished | TlsState::Over => false,
        };
        if self.on_request && waits {
            self.inner.receive(slot, 0);
        }
    }

    /// What an event of the inner backend means to the caller, if it is not reported.
    fn translate(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::Connected(slot) => {
                self.begin(slot);
                None
            }
            Event::Accepted(slot) => {
                self.begin(slot);
                self.receive_more(slot);
                None
            }
            Event::Received(slot) => {
                self.take(slot, true);
                self.receive_more(slot);
                None
            }
            Event::Sent(slot) => self.sent(slot),
            Event::SendFailed(slot, errno) => self.send_failed(slot, errno),
            Event::Ended(slot) => self.cut(slot, event, libc::ECONNABORTED),
            Event::ReceiveFailed(slot, errno) => self.cut(slot, event, errno),
            // Nothing is to be discarded: what comes has to be decrypted.
            Event::AcceptFailed(..)
            | Event::ConnectFailed(..)
            | Event::HandshakeFailed(..)
            | Event::Discarded(..) => Some(event),
        }
    }
}

impl TlsConnection {
    /// Bytes of a record that is not complete, while it may still become so.
    fn unfinished_bytes(&self) -> u64 {
        match (&self.session, self.state) {
            (Some(session), TlsState::Handshaking | TlsState::Open) => session.kept_bytes() as u64,
            _ => 0,
        }
    }

    /// Nothing more is received.
    fn go_over(&mut self) {
        self.overhead_bytes += self.unfinished_bytes();
        self.state = TlsState::Over;
    }
}

/// Whether a server that chose `chosen` speaks what is expected.
fn is_expected(expected: Option<&[u8]>, chosen: Option<&[u8]>) -> bool {
    match (expected, chosen) {
        (None, _) => true,
        (Some(expected), Some(chosen)) => expected == chosen,
        (Some(expected), None) => expected == HTTP_1_1,
    }
}

impl<B: Backend<Transport = Stream>> Backend for Tls<B> {
    type Transport = Stream;

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        let mut out = self.out(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let errno = match (&mut connection.session, connection.send_errno) {
            (_, Some(errno)) => Some(errno),
            (None, None) => Some(libc::ENOTCONN),
            (Some(session), None) => session
                .send(self.payloads.bytes(&outgoing), &mut out)
                .is_err()
                .then_some(libc::EPROTO),
        };
        self.payloads.recycle::<Stream>(outgoing);
        if let Some(errno) = errno {
            self.spare(out);
            self.report(Event::SendFailed(slot, errno));
        } else if out.is_empty() {
            self.spare(out);
            self.report(Event::Sent(slot));
        } else {
            self.put(slot, out, Sending::Callers);
        }
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        self.notify_close(slot);
        self.inner.close(slot);
        self.release(slot);
    }

    fn reset(&mut self, slot: Slot) {
        self.inner.reset(slot);
        self.release(slot);
    }

    fn leave(&mut self) {
        for slot in 0..self.slots.len() as u32 {
            self.notify_close(Slot(slot));
        }
        // What cannot be sent, nobody hears.
        let _ = self.inner.wait(Some(0));
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.is_showing = false;
        self.send_held();
        self.refuse_late();
        let deadline_ns = self.handshakes.first().map(|&(at_ns, _)| at_ns);
        let until_ns = if self.events.is_empty() {
            until_ns.into_iter().chain(deadline_ns).min()
        } else {
            Some(0)
        };
        self.inner.wait(until_ns)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.is_showing = false;
        loop {
            while let Some((generation, event)) = self.events.pop_front() {
                if generation == self.slots[event.slot().0 as usize].generation {
                    self.is_showing = matches!(event, Event::Received(_));
                    return Some(event);
                }
            }
            let event = self.inner.next_event()?;
            if let Some(event) = self.translate(event) {
                return Some(event);
            }
        }
    }

    fn received(&self) -> &[u8] {
        if self.is_showing { &self.plain } else { &[] }
    }

    fn secured(&self, slot: Slot) -> Option<Secured> {
        self.slots.get(slot.0 as usize)?.secured
    }

    fn receive_on_request(&mut self) {
        self.on_request = true;
        self.inner.receive_on_request();
    }

    fn receive(&mut self, slot: Slot, _discard_bytes: u64) {
        // Nothing is discarded: what comes has to be decrypted.
        self.slots[slot.0 as usize].is_wanted = true;
        self.inner.receive(slot, 0);
    }
}

impl<B: ClientBackend<Transport = Stream>> ClientBackend for Tls<B> {
    fn set_stamps(&mut self, every: Option<NonZeroU32>) {
        self.inner.set_stamps(every);
    }

    fn set_sockets(&mut self, options: &SocketOptions) {
        self.inner.set_sockets(options);
    }

    fn open(&mut self, slot: Slot, peer: &Peer, source: Option<SocketAddr>) -> io::Result<()> {
        self.inner.open(slot, peer, source)?;
        self.prepare(slot);
        Ok(())
    }

    /// In bytes of records.
    fn unsent_bytes(&mut self, slot: Slot) -> u64 {
        let connection = &self.slots[slot.0 as usize];
        let queued_bytes = if connection.queued_is_callers {
            connection.queued.len() as u64
        } else {
            0
        };
        self.inner.unsent_bytes(slot) + queued_bytes
    }

    fn take_late_bytes(&mut self) -> u64 {
        self.inner.take_late_bytes()
    }

    fn set_gathering(&mut self, gather_ns: u64) {
        self.inner.set_gathering(gather_ns);
    }

    fn is_handshaking(&self, slot: Slot) -> bool {
        self.slots
            .get(slot.0 as usize)
            .is_some_and(|connection| connection.state == TlsState::Handshaking)
    }

    fn is_cut(&self, slot: Slot) -> bool {
        self.slots
            .get(slot.0 as usize)
            .is_some_and(|connection| connection.is_cut)
    }

    fn take_overhead(&mut self, slot: Slot) -> u64 {
        self.slots.get_mut(slot.0 as usize).map_or(0, |connection| {
            std::mem::take(&mut connection.overhead_bytes)
        })
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.inner.received_stamp_ns()
    }

    fn send_call(&self, slot: Slot) -> Option<SendCall> {
        self.inner.send_call(slot)
    }

    fn stamps_clamped(&self) -> u64 {
        self.inner.stamps_clamped()
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let connection = self.slots.get(slot.0 as usize)?;
        let info = self.inner.tcp_info(slot)?;
        Some(TcpInfo {
            // Those of an incomplete record are neither shown nor overhead yet.
            bytes_unread: info.bytes_unread + connection.unfinished_bytes(),
            ..info
        })
    }
}

impl<B: ServerBackend> ServerBackend for Tls<B> {
    fn listen(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        self.inner.listen(listener)
    }

    fn accept(&mut self, slot: Slot) {
        self.prepare(slot);
        self.inner.accept(slot);
    }
}
