//! What streams and datagrams do differently in rings, and streams: how they are received and sent
//! is in `receives` and `sends`.

use std::io;

use io_uring::cqueue;

use super::Uring;
use super::sends::Sends;
use crate::backend::{Event, Outgoing, Peer, Slot};
use crate::receive_stamps;
use crate::transport::{Stream, Transport};

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

impl UringTransport for Stream {
    const BUFFER_BYTES: usize = 16 * 1024;
    const CONTROL_BYTES: usize = receive_stamps::CONTROL_BYTES;

    type Sends = Sends;
    type Abandoned = Outgoing;
    type Instance = ();

    fn reaches(peer: &Peer) -> bool {
        matches!(peer, Peer::Tcp(_) | Peer::Unix(_))
    }

    fn arm_receive(uring: &mut Uring, slot: Slot) {
        uring.arm_receive(slot);
    }

    fn translate_receive(
        uring: &mut Uring,
        entry: &cqueue::Entry,
        slot: Slot,
        is_current: bool,
    ) -> Option<Event> {
        uring.translate_receive(entry, slot, is_current)
    }

    fn received(uring: &Uring) -> &[u8] {
        uring.shown()
    }

    fn send(uring: &mut Uring, slot: Slot, outgoing: Outgoing) {
        uring.send_next(slot, outgoing);
    }

    fn sent(uring: &mut Uring, slot: Slot, result: i32, is_silent: bool) -> Option<Event> {
        match is_silent {
            true => uring.silent_send_failed(slot, result),
            false => uring.send_completed(slot, result),
        }
    }

    fn release_held(uring: &mut Uring) -> io::Result<()> {
        uring.release_held()
    }

    fn completed(uring: &mut Uring) {
        uring.resume_silent_sends();
    }

    fn is_send_pending(uring: &Uring, slot: Slot) -> bool {
        uring.is_send_pending(slot)
    }

    fn unsent_bytes(uring: &mut Uring, slot: Slot) -> u64 {
        uring.bytes_left(slot)
    }

    fn is_send_put_off(uring: &Uring, slot: Slot) -> bool {
        uring.is_send_put_off(slot)
    }

    fn abandon_sends(uring: &mut Uring, slot: Slot, data: u64) -> bool {
        uring.abandon_sends(slot, data)
    }

    fn buffer_of_abandoned(abandoned: Outgoing) -> Outgoing {
        abandoned
    }
}
