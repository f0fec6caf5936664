//! Receives: armed for as long as bytes come, for once, or to throw bytes away.

use io_uring::cqueue;

use super::{DISCARD_BYTES_MAX, Filled, Operation, Receiving, Uring, UringTransport, user_data};
use crate::backend::{Event, Slot};
use crate::receive_stamps;

impl Uring {
    pub(super) fn arm_receive(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let data = user_data(Operation::Receive, connection.generation, slot);
        let bytes = connection.discard_bytes.min(DISCARD_BYTES_MAX) as u32;
        let outcome = if bytes > 0 {
            connection.receiving = Receiving::Discarding;
            self.rings[ring].discard(place, bytes, data)
        } else if connection.has_receive_stamps {
            connection.receiving = Receiving::Many;
            self.rings[ring].receive_messages(place, data)
        } else if connection.on_request || connection.single_receives > 0 {
            connection.single_receives = connection.single_receives.saturating_sub(1);
            connection.receiving = Receiving::Once;
            self.rings[ring].receive_once(place, data)
        } else {
            connection.receiving = Receiving::Many;
            self.rings[ring].receive(place, data)
        };
        self.queued(slot, ring, outcome);
    }

    pub(super) fn translate_receive(
        &mut self,
        entry: &cqueue::Entry,
        slot: Slot,
        current: bool,
    ) -> Option<Event> {
        let mut result = entry.result();
        if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
            let ring = self.completions_ring;
            let mut bytes = 0..result.max(0) as usize;
            if current && result > 0 && self.slots[slot.0 as usize].has_receive_stamps {
                let read = receive_stamps::stamp_in;
                match self.rings[ring].message(buffer, bytes.end, read) {
                    Some((of_bytes, stamp)) => {
                        self.received_stamp_ns =
                            stamp.map(|unix_ns| self.real_time.on_run_clock(unix_ns));
                        bytes = of_bytes;
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
        let connection = &mut self.slots[slot.0 as usize];
        let receiving = connection.receiving;
        if !armed {
            connection.receiving = Receiving::No;
        }
        match result {
            1.. => {
                connection.received_turn = self.turn;
                let bytes = u64::from(result.unsigned_abs());
                connection.discard_bytes = connection.discard_bytes.saturating_sub(bytes);
                let on_request = connection.on_request;
                if receiving == Receiving::Discarding {
                    if !on_request {
                        self.arm_receive(slot);
                    }
                    return Some(Event::Discarded(slot, bytes as u32));
                }
                if !armed && !on_request {
                    // What came may show that what follows is to be discarded.
                    self.rearmed_next = Some((slot, connection.generation));
                }
                Some(Event::Received(slot))
            }
            0 => {
                connection.sends.has_peer_ended = true;
                // The failed send took the error of the socket.
                let failed = connection.sends.failed.take();
                Some(failed.unwrap_or(Event::Ended(slot)))
            }
            // For another kind of receive.
            _ if result == -libc::ECANCELED => {
                self.arm_receive(slot);
                None
            }
            // All buffers were in use: they are free again by the time that this is submitted.
            // Whoever had some of them takes its turn after those that had none.
            _ if result == -libc::ENOBUFS => {
                if connection.received_turn == self.turn {
                    self.rearmed_last.push((slot, connection.generation));
                } else {
                    self.arm_receive(slot);
                }
                None
            }
            _ => {
                connection.sends.has_peer_ended = true;
                Some(Event::ReceiveFailed(slot, -result))
            }
        }
    }
}

impl<T: UringTransport> Uring<T> {
    /// Has a connection receive again, if it is still the one with this generation.
    pub(super) fn rearm(&mut self, slot: Slot, generation: u32) {
        if self.slots[slot.0 as usize].generation == generation {
            T::arm_receive(self, slot);
        }
    }

    /// Has those receive again that were put last.
    pub(super) fn rearm_last(&mut self) {
        while let Some((slot, generation)) = self.rearmed_last.pop() {
            self.rearm(slot, generation);
        }
    }
}
