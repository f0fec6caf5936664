//! Sends: silent where the socket is sure to take them, waited for where it is not.
//!
//! A silent send completes only if the socket has no room for all of it, and waits for none. So at
//! most one send per connection is ever pending in the kernel, however little its peer reads.

use super::ring::RingSet;
use super::{Operation, Uring, user_data};
use crate::backend::{self, AT_ONCE_BYTES_MAX, Event, Outgoing, PayloadId, Slot};
use crate::transport::Stream;

/// What a connection sends.
#[derive(Debug, Default)]
pub struct Sends {
    /// What the caller asked for and has no completion of yet, and how much of it was sent.
    outgoing: Option<Outgoing>,
    taken: usize,
    /// It is in `Uring::held`.
    is_held: bool,
    /// The latest silent send, by its number in the ring, and what of it was not taken.
    silent: Part,
    silent_number: u64,
    /// The rest of it goes first.
    is_resuming: bool,
    /// A send of the rest, or of `outgoing`, is with the ring, with this number.
    is_queued: bool,
    queued_number: u64,
    /// A silent send did not fit: none is silent any more.
    is_felt: bool,
    /// The peer sends no more.
    pub(super) has_peer_ended: bool,
    /// A send failed: told when everything that the peer had sent is received.
    pub(super) failed: Option<Event>,
    /// Bytes that it left.
    failed_bytes: usize,
    /// It was asked what is left of the send in flight.
    is_counted: bool,
}

/// A part of a shared payload.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    payload: u32,
    start: u32,
    end: u32,
}

impl Part {
    fn outgoing(self) -> Outgoing {
        Outgoing::Shared {
            payload: PayloadId(self.payload),
            start: self.start,
            end: self.end,
        }
    }
}

/// How a send ended.
enum Outcome {
    /// The kernel took so many bytes.
    Taken(usize),
    /// It took none, and could not wait any longer.
    Again,
    Failed(i32),
}

impl Outcome {
    fn of(result: i32) -> Self {
        match result {
            1.. => Self::Taken(result as usize),
            0 => Self::Failed(libc::EPIPE),
            _ if result == -libc::EAGAIN => Self::Again,
            _ => Self::Failed(-result),
        }
    }
}

impl Uring {
    /// Takes over what is to be sent on `slot`.
    pub(super) fn send_next(&mut self, slot: Slot, outgoing: Outgoing) {
        let sends = &mut self.slots[slot.0 as usize].sends;
        sends.outgoing = Some(outgoing);
        sends.taken = 0;
        sends.is_counted = false;
        self.queue_send(slot);
    }

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
            sends.silent = Part {
                payload: payload.0,
                start,
                end,
            };
            let generation = connection.generation;
            self.events.push_back((generation, Event::Sent(slot)));
            self.send_queued(slot, ring, outcome);
        } else {
            let bytes = &self.payloads.bytes(outgoing)[sends.taken..];
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

    fn send_queued(&mut self, slot: Slot, ring: usize, outcome: std::io::Result<()>) {
        if self.slots[slot.0 as usize].is_stamped {
            self.rings[ring].stamp_send(slot);
        }
        self.queued(slot, ring, outcome);
    }

    /// Queues what waited for silent sends to be submitted, where those came through.
    pub(super) fn release_held(&mut self) -> std::io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut rings = RingSet::default();
        for &(slot, _) in &self.held {
            rings.insert(self.home(slot).0);
        }
        let mut next = 0;
        while let Some(ring) = rings.first_from(next) {
            self.rings[ring].submit_and_settle()?;
            self.settle_send_calls(ring);
            self.touched.insert(ring);
            next = ring + 1;
        }
        for (slot, generation) in std::mem::take(&mut self.held) {
            let connection = &mut self.slots[slot.0 as usize];
            if connection.generation == generation {
                connection.sends.is_held = false;
                self.queue_send(slot);
            }
        }
        Ok(())
    }

    /// Looks for silent sends that were not taken whole among the completions just moved out:
    /// before anything else is sent, since they are taken for settled from now on.
    pub(super) fn resume_silent_sends(&mut self) {
        for index in 0..self.completions.len() {
            let (data, result) = {
                let entry = &self.completions[index];
                (entry.user_data(), entry.result())
            };
            if data >> 60 != Operation::SilentSend as u64 {
                continue;
            }
            let slot = Slot(data as u32);
            let taken = match Outcome::of(result) {
                Outcome::Taken(count) => count as u32,
                Outcome::Again => 0,
                Outcome::Failed(_) => continue,
            };
            if self.is_current(data) {
                let sends = &mut self.slots[slot.0 as usize].sends;
                sends.is_felt = true;
                sends.is_resuming = true;
                let part = &mut sends.silent;
                part.start = part.start.saturating_add(taken).min(part.end);
                self.queue_rest(slot);
            }
        }
    }

    /// What the failure of a silent send, which was reported as sent, means to the caller.
    pub(super) fn silent_send_failed(&mut self, slot: Slot, result: i32) -> Option<Event> {
        match Outcome::of(result) {
            // The rest is being sent.
            Outcome::Taken(_) | Outcome::Again => None,
            Outcome::Failed(errno) => {
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
            sends.failed.get_or_insert(event);
        }
        None
    }

    /// What the completion of a send that was waited for means to the caller.
    pub(super) fn send_completed(&mut self, slot: Slot, result: i32) -> Option<Event> {
        let sends = &mut self.slots[slot.0 as usize].sends;
        sends.is_queued = false;
        let taken = match Outcome::of(result) {
            Outcome::Taken(count) => count,
            Outcome::Again => 0,
            Outcome::Failed(errno) => {
                sends.is_resuming = false;
                let event = match sends.outgoing.take() {
                    Some(outgoing) => {
                        sends.failed_bytes = self.payloads.bytes(&outgoing).len() - sends.taken;
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
            part.start = part.start.saturating_add(taken as u32).min(part.end);
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
        if sends.taken < self.payloads.bytes(&outgoing).len() {
            sends.outgoing = Some(outgoing);
            self.queue_send(slot);
            return None;
        }
        self.payloads.recycle::<Stream>(outgoing);
        Some(Event::Sent(slot))
    }

    /// Whether a send waits in the kernel for room in the socket of `slot`, for certain.
    pub(super) fn is_send_pending(&self, slot: Slot) -> bool {
        let (ring, _) = self.home(slot);
        let sends = &self.slots[slot.0 as usize].sends;
        sends.is_queued && self.rings[ring].is_settled(sends.queued_number)
    }

    /// Whether the latest send of `slot` is still in the queue of its ring, or waits to get there.
    pub(super) fn is_send_put_off(&self, slot: Slot) -> bool {
        let (ring, _) = self.home(slot);
        let sends = &self.slots[slot.0 as usize].sends;
        let queued_number = match sends.is_queued {
            true => sends.queued_number,
            false => sends.silent_number,
        };
        let waits = sends.is_held || sends.is_resuming && sends.outgoing.is_some();
        waits || !self.rings[ring].has_taken(queued_number)
    }

    /// What [`unsent_bytes`](crate::backend::ClientBackend::unsent_bytes) gives.
    pub(super) fn bytes_left(&mut self, slot: Slot) -> u64 {
        let sends = &mut self.slots[slot.0 as usize].sends;
        sends.is_counted = true;
        let left = match &sends.outgoing {
            Some(outgoing) => self.payloads.bytes(outgoing).len() - sends.taken,
            None => sends.failed_bytes,
        };
        left as u64
    }

    /// Forgets what `slot` sends. Gives whether a send that may wait is with the ring; what that
    /// one sends is kept until it completes, as the one with `data`.
    pub(super) fn abandon_sends(&mut self, slot: Slot, data: u64) -> bool {
        let sends = std::mem::take(&mut self.slots[slot.0 as usize].sends);
        if sends.is_counted && sends.is_queued && !sends.is_resuming {
            self.cut_sends.insert(data);
        }
        match sends.outgoing {
            Some(outgoing @ Outgoing::Owned(_)) if sends.is_queued && !sends.is_resuming => {
                self.abandoned.insert(data, outgoing);
            }
            Some(outgoing) => self.payloads.recycle::<Stream>(outgoing),
            None => {}
        }
        sends.is_queued
    }
}
