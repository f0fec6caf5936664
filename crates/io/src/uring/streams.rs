//! Byte streams in rings. They are received for as long as bytes come, for once, or to throw bytes
//! away. They are sent silently where the socket is sure to take them, and waited for where it is
//! not.
//!
//! A silent send completes only if the socket has no room for all of it, and waits for none. So at
//! most one send per connection is ever pending in the kernel, however little its peer reads.

use std::io;

use io_uring::cqueue;

use super::ring::RingSet;
use super::{DISCARD_BYTES_MAX, Filled, Operation, Receiving, Uring, UringTransport, user_data};
use crate::backend::{self, AT_ONCE_BYTES_MAX, Event, Outgoing, PayloadId, Peer, Slot};
use crate::receive_stamps;
use crate::transport::Stream;

/// What a connection sends.
#[derive(Debug, Default)]
pub struct Sends {
    /// What the caller asked for and has no completion of yet, and how much of it was sent.
    outgoing: Option<Outgoing>,
    taken: u32,
    /// It is in `Uring::held`.
    is_held: bool,
    /// The latest silent send, by its number in the ring, and what of it was not taken.
    silent: PayloadPart,
    silent_number: u64,
    /// The rest of it goes first.
    is_resuming: bool,
    /// A send of the rest, or of `outgoing`, is with the ring, with this number.
    is_queued: bool,
    queued_number: u64,
    /// A silent send did not fit: none is silent any more.
    is_felt: bool,
    /// The peer sends no more.
    has_peer_ended: bool,
    /// The send that failed last, if any did: it takes no room on a connection that works.
    failure: Option<Box<SendFailure>>,
    /// It was asked what is left of the send in flight.
    is_counted: bool,
}

/// A send that failed.
#[derive(Debug, Default)]
struct SendFailure {
    /// Told when everything that the peer had sent is received.
    event: Option<Event>,
    /// Bytes that were not sent.
    unsent_bytes: usize,
}

/// A part of a shared payload.
#[derive(Clone, Copy, Debug, Default)]
struct PayloadPart {
    payload: u32,
    start: u32,
    end: u32,
}

impl PayloadPart {
    fn outgoing(self) -> Outgoing {
        Outgoing::Shared {
            payload: PayloadId(self.payload),
            start: self.start,
            end: self.end,
        }
    }
}

/// How a send ended.
enum SendOutcome {
    /// The kernel took so many bytes.
    Taken(u32),
    /// It took none, and could not wait any longer.
    Again,
    Failed(i32),
}

impl SendOutcome {
    fn of(result: i32) -> Self {
        match result {
            1.. => Self::Taken(result as u32),
            0 => Self::Failed(libc::EPIPE),
            _ if result == -libc::EAGAIN => Self::Again,
            _ => Self::Failed(-result),
        }
    }
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
        let (ring, place) = uring.home(slot);
        let connection = &mut uring.slots[slot.0 as usize];
        let data = user_data(Operation::Receive, connection.generation, slot);
        let bytes = connection.discard_bytes.min(DISCARD_BYTES_MAX) as u32;
        let outcome = if bytes > 0 {
            connection.receiving = Receiving::Discarding;
            uring.rings[ring].discard(place, bytes, data)
        } else if connection.has_receive_stamps {
            connection.receiving = Receiving::Many;
            uring.rings[ring].receive_messages(place, data)
        } else if connection.on_request || connection.single_receives > 0 {
            connection.single_receives = connection.single_receives.saturating_sub(1);
            connection.receiving = Receiving::Once;
            uring.rings[ring].receive_once(place, data)
        } else {
            connection.receiving = Receiving::Many;
            uring.rings[ring].receive(place, data)
        };
        uring.queued(slot, ring, outcome);
    }

    fn translate_receive(
        uring: &mut Uring,
        entry: &cqueue::Entry,
        slot: Slot,
        is_current: bool,
    ) -> Option<Event> {
        let mut result = entry.result();
        if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
            let ring = uring.completions_ring;
            let mut bytes = 0..result.max(0) as usize;
            if is_current && result > 0 && uring.slots[slot.0 as usize].has_receive_stamps {
                let read = receive_stamps::stamp_in;
                match uring.rings[ring].message(buffer, bytes.end, read) {
                    Some((of_bytes, stamp)) => {
                        uring.received_stamp_ns =
                            stamp.map(|unix_ns| uring.real_time.on_run_clock(unix_ns));
                        bytes = of_bytes;
                        result = bytes.len() as i32;
                    }
                    None => result = -libc::EBADMSG,
                }
            }
            if !is_current || result <= 0 {
                uring.rings[ring].buffers.put_back(buffer);
            } else {
                uring.received = Some(Filled {
                    ring,
                    buffer,
                    bytes,
                });
            }
        }
        if !is_current {
            return None;
        }
        let armed = cqueue::more(entry.flags());
        let connection = &mut uring.slots[slot.0 as usize];
        let receiving = connection.receiving;
        if !armed {
            connection.receiving = Receiving::No;
        }
        match result {
            1.. => {
                connection.received_turn = uring.turn;
                let bytes = u64::from(result.unsigned_abs());
                connection.discard_bytes = connection.discard_bytes.saturating_sub(bytes);
                let on_request = connection.on_request;
                if receiving == Receiving::Discarding {
                    if !on_request {
                        Self::arm_receive(uring, slot);
                    }
                    return Some(Event::Discarded(slot, bytes as u32));
                }
                if !armed && !on_request {
                    // What came may show that what follows is to be discarded.
                    uring.rearmed_next = Some((slot, connection.generation));
                }
                Some(Event::Received(slot))
            }
            0 => {
                connection.sends.has_peer_ended = true;
                // The failed send took the error of the socket.
                let failure = connection.sends.failure.as_mut();
                let failed = failure.and_then(|failure| failure.event.take());
                Some(failed.unwrap_or(Event::Ended(slot)))
            }
            // For another kind of receive.
            _ if result == -libc::ECANCELED => {
                Self::arm_receive(uring, slot);
                None
            }
            // All buffers were in use: they are free again by the time that this is submitted.
            // Whoever had some of them takes its turn after those that had none.
            _ if result == -libc::ENOBUFS => {
                if connection.received_turn == uring.turn {
                    uring.rearmed_last.push((slot, connection.generation));
                } else {
                    Self::arm_receive(uring, slot);
                }
                None
            }
            _ => {
                connection.sends.has_peer_ended = true;
                Some(Event::ReceiveFailed(slot, -result))
            }
        }
    }

    fn received(uring: &Uring) -> &[u8] {
        uring.shown()
    }

    fn send(uring: &mut Uring, slot: Slot, outgoing: Outgoing) {
        let sends = &mut uring.slots[slot.0 as usize].sends;
        sends.outgoing = Some(outgoing);
        sends.taken = 0;
        sends.is_counted = false;
        uring.queue_send(slot);
    }

    fn sent(uring: &mut Uring, slot: Slot, result: i32, is_silent: bool) -> Option<Event> {
        if is_silent {
            uring.silent_send_failed(slot, result)
        } else {
            uring.send_completed(slot, result)
        }
    }

    fn release_held(uring: &mut Uring) -> io::Result<()> {
        if uring.held.is_empty() {
            return Ok(());
        }
        let mut rings = RingSet::default();
        for &(slot, _) in &uring.held {
            rings.insert(uring.home(slot).0);
        }
        let mut next = 0;
        while let Some(ring) = rings.first_from(next) {
            uring.rings[ring].submit_and_settle()?;
            uring.settle_send_calls(ring);
            uring.touched.insert(ring);
            next = ring + 1;
        }
        for (slot, generation) in std::mem::take(&mut uring.held) {
            let connection = &mut uring.slots[slot.0 as usize];
            if connection.generation == generation {
                connection.sends.is_held = false;
                uring.queue_send(slot);
            }
        }
        Ok(())
    }

    fn completed(uring: &mut Uring) {
        // Silent sends that were not taken whole go on before anything else is sent: they are
        // taken for settled from now on.
        for index in 0..uring.completions.len() {
            let (data, result) = {
                let entry = &uring.completions[index];
                (entry.user_data(), entry.result())
            };
            if data >> 60 != Operation::SilentSend as u64 {
                continue;
            }
            let slot = Slot(data as u32);
            let taken = match SendOutcome::of(result) {
                SendOutcome::Taken(count) => count,
                SendOutcome::Again => 0,
                SendOutcome::Failed(_) => continue,
            };
            if uring.is_current(data) {
                let sends = &mut uring.slots[slot.0 as usize].sends;
                sends.is_felt = true;
                sends.is_resuming = true;
                let part = &mut sends.silent;
                part.start = part.start.saturating_add(taken).min(part.end);
                uring.queue_rest(slot);
            }
        }
    }

    fn is_send_pending(uring: &Uring, slot: Slot) -> bool {
        let (ring, _) = uring.home(slot);
        let sends = &uring.slots[slot.0 as usize].sends;
        sends.is_queued && uring.rings[ring].is_settled(sends.queued_number)
    }

    fn unsent_bytes(uring: &mut Uring, slot: Slot) -> u64 {
        let sends = &mut uring.slots[slot.0 as usize].sends;
        sends.is_counted = true;
        let left = match &sends.outgoing {
            Some(outgoing) => uring.payloads.bytes(outgoing).len() - sends.taken as usize,
            None => (sends.failure.as_ref()).map_or(0, |failure| failure.unsent_bytes),
        };
        left as u64
    }

    fn is_send_put_off(uring: &Uring, slot: Slot) -> bool {
        let (ring, _) = uring.home(slot);
        let sends = &uring.slots[slot.0 as usize].sends;
        let queued_number = if sends.is_queued {
            sends.queued_number
        } else {
            sends.silent_number
        };
        let waits = sends.is_held || sends.is_resuming && sends.outgoing.is_some();
        waits || !uring.rings[ring].has_taken(queued_number)
    }

    fn abandon_sends(uring: &mut Uring, slot: Slot, data: u64) -> bool {
        let sends = std::mem::take(&mut uring.slots[slot.0 as usize].sends);
        if sends.is_counted && sends.is_queued && !sends.is_resuming {
            uring.cut_sends.insert(data);
        }
        match sends.outgoing {
            Some(outgoing @ Outgoing::Owned(_)) if sends.is_queued && !sends.is_resuming => {
                uring.abandoned.insert(data, outgoing);
            }
            Some(outgoing) => uring.payloads.recycle::<Self>(outgoing),
            None => {}
        }
        sends.is_queued
    }

    fn buffer_of_abandoned(abandoned: Outgoing) -> Outgoing {
        abandoned
    }
}

impl Uring {
    /// Queues the send of what the caller asked for, unless something must come first.
    fn queue_send(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let sends = &mut connection.sends;
        let Some(outgoing) = &sends.outgoing else {
            return;
        };
        if sends.is_resuming {
            return;
        }
        if !self.rings[ring].is_settled(sends.silent_number) {
            // Not all of the one before may have been taken: bytes must not overtake others.
            if !std::mem::replace(&mut sends.is_held, true) {
                self.held.push((slot, connection.generation));
            }
            return;
        }
        // A client has no more than that in flight, as long as the server reads before it answers.
        // A server has no such bound.
        if let Outgoing::Shared {
            payload,
            start,
            end,
        } = *outgoing
            // A failure shows on the receiving side, too.
            && end - start <= AT_ONCE_BYTES_MAX
            && !connection.accepted
            && !sends.is_felt
        {
            let bytes = self.payloads.bytes(outgoing);
            let data = user_data(Operation::SilentSend, connection.generation, slot);
            // SAFETY: shared payloads live as long as the rings.
            let outcome = unsafe { self.rings[ring].send_silently(place, bytes, data) };
            sends.outgoing = None;
            sends.silent_number = self.rings[ring].last_number();
            sends.silent = PayloadPart {
                payload: payload.0,
                start,
                end,
            };
            let generation = connection.generation;
            self.events.push_back((generation, Event::Sent(slot)));
            self.send_queued(slot, ring, outcome);
        } else {
            let bytes = &self.payloads.bytes(outgoing)[sends.taken as usize..];
            let data = user_data(Operation::Send, connection.generation, slot);
            // SAFETY: shared payloads live as long as the rings; owned bytes are kept in
            // `outgoing`, and in `abandoned` after a close, until the completion comes.
            let outcome = unsafe { self.rings[ring].send(place, bytes, data) };
            sends.is_queued = true;
            sends.queued_number = self.rings[ring].last_number();
            self.send_queued(slot, ring, outcome);
        }
    }

    /// Queues the send of what a silent one left.
    fn queue_rest(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let rest = connection.sends.silent.outgoing();
        let data = user_data(Operation::Send, connection.generation, slot);
        // SAFETY: shared payloads live as long as the rings.
        let outcome = unsafe { self.rings[ring].send(place, self.payloads.bytes(&rest), data) };
        connection.sends.is_queued = true;
        connection.sends.queued_number = self.rings[ring].last_number();
        self.send_queued(slot, ring, outcome);
    }

    fn send_queued(&mut self, slot: Slot, ring: usize, outcome: io::Result<()>) {
        if self.slots[slot.0 as usize].is_stamped {
            self.rings[ring].stamp_send(slot);
        }
        self.queued(slot, ring, outcome);
    }

    /// What the failure of a silent send, which was reported as sent, means to the caller.
    fn silent_send_failed(&mut self, slot: Slot, result: i32) -> Option<Event> {
        match SendOutcome::of(result) {
            // The rest is being sent.
            SendOutcome::Taken(_) | SendOutcome::Again => None,
            SendOutcome::Failed(errno) => {
                self.send_failed(slot, Event::ReceiveFailed(slot, errno), errno)
            }
        }
    }

    /// A send failed, which `event` tells: at once, or when everything that came is received.
    fn send_failed(&mut self, slot: Slot, event: Event, errno: i32) -> Option<Event> {
        let connection = &mut self.slots[slot.0 as usize];
        let sends = &mut connection.sends;
        if !backend::is_by_peer(errno) || connection.accepted || sends.has_peer_ended {
            return Some(event);
        }
        if errno != libc::EPIPE {
            let failure = sends.failure.get_or_insert_default();
            failure.event.get_or_insert(event);
        }
        None
    }

    /// What the completion of a send that was waited for means to the caller.
    fn send_completed(&mut self, slot: Slot, result: i32) -> Option<Event> {
        let sends = &mut self.slots[slot.0 as usize].sends;
        sends.is_queued = false;
        let taken = match SendOutcome::of(result) {
            SendOutcome::Taken(count) => count,
            SendOutcome::Again => 0,
            SendOutcome::Failed(errno) => {
                sends.is_resuming = false;
                let event = match sends.outgoing.take() {
                    Some(outgoing) => {
                        let failure = sends.failure.get_or_insert_default();
                        failure.unsent_bytes =
                            self.payloads.bytes(&outgoing).len() - sends.taken as usize;
                        self.payloads.recycle::<Stream>(outgoing);
                        Event::SendFailed(slot, errno)
                    }
                    None => Event::ReceiveFailed(slot, errno),
                };
                return self.send_failed(slot, event, errno);
            }
        };
        // MSG_WAITALL makes the kernel go on until all is sent, but not for ever.
        if sends.is_resuming {
            let part = &mut sends.silent;
            part.start = part.start.saturating_add(taken).min(part.end);
            if part.start < part.end {
                self.queue_rest(slot);
            } else {
                sends.is_resuming = false;
                self.queue_send(slot);
            }
            return None;
        }
        let outgoing = sends.outgoing.take()?;
        sends.taken += taken;
        if (sends.taken as usize) < self.payloads.bytes(&outgoing).len() {
            sends.outgoing = Some(outgoing);
            self.queue_send(slot);
            return None;
        }
        self.payloads.recycle::<Stream>(outgoing);
        Some(Event::Sent(slot))
    }
}
