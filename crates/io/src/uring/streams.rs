//! Byte streams, as rings carry them: how they are received and sent is in `receives` and `sends`.

use std::io;

use io_uring::cqueue;

use super::sends::Sends;
use super::{Uring, UringTransport};
use crate::backend::{Event, Outgoing, Peer, Slot};
use crate::receive_stamps;
use crate::transport::Stream;

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
