//! What protocols write, and how that becomes what a backend sends: over streams a protocol appends
//! whenever something happens, over datagrams it is asked when the connection can send. What makes
//! the backends of workers.

use std::io;

use brunt_io::backend::{Backend, Outgoing, PayloadId};
use brunt_io::epoll::Epoll;
use brunt_io::transport::{Datagram, OutgoingDatagrams, Stream, Transport};
use brunt_io::uring::Uring;
use brunt_proto::tls::ClientSide;

/// A transport, as workers use it.
pub(crate) trait WorkerTransport: Transport {
    /// Whether the transport sends again what is lost. Where it does not, protocols have timers of
    /// their own for that, which run from the first send on.
    const IS_RELIABLE: bool;

    /// Attempts to open connections that set-up has in flight at once, per worker: more would only
    /// overflow what the server has them wait in.
    const ATTEMPTS_MAX: u32;

    /// Sends a part of a payload that the backend holds; absent where payloads are not shared.
    fn shared(part: PayloadPart) -> Option<Self::Outgoing>;

    /// What is to be sent of what was written to `out`, and how many bytes that is; absent for
    /// nothing. While a send is in flight (`is_sending`) it waits in the `outbox`, which is absent
    /// where nothing is written ahead. `transmit` asks a protocol over datagrams, at this time.
    fn next(
        out: &mut Out,
        outbox: Option<&mut Vec<u8>>,
        is_sending: bool,
        transmit: impl FnOnce(u64, &mut Vec<u8>) -> Option<OutgoingDatagrams>,
        backend: &mut impl Backend<Transport = Self>,
    ) -> Option<(Self::Outgoing, u64)>;
}

impl WorkerTransport for Stream {
    const IS_RELIABLE: bool = true;
    /// An accept queue.
    const ATTEMPTS_MAX: u32 = 128;

    #[inline]
    fn shared(part: PayloadPart) -> Option<Outgoing> {
        Some(Outgoing::Shared {
            payload: part.payload,
            start: part.start,
            end: part.end,
        })
    }

    #[inline]
    fn next(
        out: &mut Out,
        outbox: Option<&mut Vec<u8>>,
        is_sending: bool,
        _transmit: impl FnOnce(u64, &mut Vec<u8>) -> Option<OutgoingDatagrams>,
        backend: &mut impl Backend<Transport = Self>,
    ) -> Option<(Outgoing, u64)> {
        if let Some(part) = out.shared.take() {
            let outgoing = Self::shared(part)?;
            return Some((outgoing, u64::from(part.end - part.start)));
        }
        if out.bytes.is_empty() {
            return None;
        }
        let written = std::mem::replace(&mut out.bytes, backend.take_buffer());
        if let Some(waiting) = outbox {
            if is_sending {
                *waiting = written;
                return None;
            }
            // An idle connection keeps no buffer.
            *waiting = Vec::new();
        }
        let bytes = written.len() as u64;
        Some((Outgoing::Owned(written), bytes))
    }
}

impl WorkerTransport for Datagram {
    const IS_RELIABLE: bool = false;
    /// The receive buffer of a socket. Linux has it hold 92 datagrams of a handshake by default,
    /// and what is lost there is sent again after a second (RFC 9002 section 6.2.2).
    const ATTEMPTS_MAX: u32 = 32;

    fn shared(_part: PayloadPart) -> Option<OutgoingDatagrams> {
        None
    }

    fn next(
        out: &mut Out,
        _outbox: Option<&mut Vec<u8>>,
        is_sending: bool,
        transmit: impl FnOnce(u64, &mut Vec<u8>) -> Option<OutgoingDatagrams>,
        backend: &mut impl Backend<Transport = Self>,
    ) -> Option<(OutgoingDatagrams, u64)> {
        if !std::mem::take(&mut out.is_due) || is_sending {
            return None;
        }
        let datagrams = transmit(backend.now_ns(), &mut out.bytes)?;
        out.bytes = backend.take_buffer();
        let bytes = datagrams.bytes.len() as u64;
        Some((datagrams, bytes))
    }
}

/// A part of a payload that the backend holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadPart {
    pub(crate) payload: PayloadId,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What is written on one connection and not yet handed to the backend. Over datagrams that is
/// nothing: the protocol is asked.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// A part of a shared payload: not with `bytes`.
    pub(super) shared: Option<PayloadPart>,
    /// Bytes of this connection alone; over datagrams an empty buffer for what it sends.
    pub(crate) bytes: Vec<u8>,
    /// Something happened that a protocol over datagrams is to be asked after.
    is_due: bool,
}

impl Out {
    pub(crate) fn is_empty(&self) -> bool {
        self.shared.is_none() && self.bytes.is_empty()
    }

    /// Something happens on the connection, whose `outbox` has what waits for a send in flight.
    #[inline]
    pub(crate) fn begin<'a>(&mut self, outbox: impl FnOnce() -> Option<&'a mut Vec<u8>>) {
        self.is_due = true;
        if self.is_empty()
            && let Some(outbox) = outbox()
            && !outbox.is_empty()
        {
            std::mem::swap(&mut self.bytes, outbox);
        }
    }

    /// Forgets what was written.
    pub(crate) fn clear(&mut self) {
        self.shared = None;
        self.bytes.clear();
        self.is_due = false;
    }

    /// Appends the text of a request, which is all of `payload` where the backend holds it.
    pub(crate) fn append_text(&mut self, text: &[u8], payload: Option<PayloadId>) {
        let Some(payload) = payload else {
            self.bytes.extend_from_slice(text);
            return;
        };
        let part = PayloadPart::of(payload, 0..text.len() as u32);
        self.append_shared(part, text);
    }

    /// Appends the bytes of `part`, which are those of `whole` there: without a copy if they are
    /// all, or follow those of the part before them.
    pub(crate) fn append_shared(&mut self, part: PayloadPart, whole: &[u8]) {
        match &mut self.shared {
            None if self.bytes.is_empty() => self.shared = Some(part),
            Some(before) if before.end == part.start && before.payload == part.payload => {
                before.end = part.end;
            }
            _ => {
                if let Some(before) = self.shared.take() {
                    self.copy(before, whole);
                }
                self.copy(part, whole);
            }
        }
    }

    fn copy(&mut self, part: PayloadPart, whole: &[u8]) {
        let bytes = &whole[part.start as usize..part.end as usize];
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a copy of the bytes of `part`, which are those of `whole` there, to be changed.
    pub(crate) fn append_copy(&mut self, part: PayloadPart, whole: &[u8]) -> &mut [u8] {
        let from = self.owned(whole).len();
        self.copy(part, whole);
        &mut self.bytes[from..]
    }

    /// The bytes of this connection alone, behind what is written, to be added to; `whole` is the
    /// payload of a shared part.
    pub(crate) fn owned(&mut self, whole: &[u8]) -> &mut Vec<u8> {
        if let Some(before) = self.shared.take() {
            self.copy(before, whole);
        }
        &mut self.bytes
    }
}

/// A worker whose backend is made.
#[derive(Debug)]
pub(crate) struct NewWorker<'m, M> {
    /// Where it lives.
    pub(crate) machine: &'m mut M,
    pub(crate) number: u32,
    /// Connections that it has at once.
    pub(crate) slots: u32,
}

/// What makes the backends of workers, of either transport.
#[derive(Debug)]
pub(crate) struct Backends<M, S, D> {
    pub(crate) streams: fn(NewWorker<'_, M>) -> io::Result<S>,
    pub(crate) datagrams: fn(NewWorker<'_, M>) -> io::Result<D>,
}

/// The kernel's io_uring.
pub(crate) const ON_URING: Backends<(), Uring, Uring<Datagram>> = Backends {
    streams: |worker| Uring::new(worker.slots),
    datagrams: |worker| Uring::of_datagrams(worker.slots),
};

/// The kernel's epoll.
pub(crate) const ON_EPOLL: Backends<(), Epoll, Epoll<Datagram>> = Backends {
    streams: |_| Epoll::new(),
    datagrams: |_| Epoll::of_datagrams(),
};

/// The client's side of TLS, as negotiated.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    pub(crate) side: ClientSide,
    /// What every server is to choose (ALPN).
    pub(crate) alpn: Option<&'static [u8]>,
}
