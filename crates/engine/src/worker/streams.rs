//! Connections whose responses come in any order: how many requests the server allows, those that
//! are late, and bytes that belong to none.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_record::FailureKind;

use super::{Pacing, Worker};
use crate::connection::{Connection, State};
use crate::protocol::{ClientProtocol, TimedOut};

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Takes over how many requests may be in flight on the connection. Gives whether there may be
    /// more than before.
    #[inline]
    pub(super) fn update_capacity(&mut self, slot: Slot, now_ns: u64) -> bool {
        let connection = &mut self.connections[slot];
        let Some(capacity) = self.protocol.capacity(&connection.protocol) else {
            return false;
        };
        if connection.state != State::Open {
            return false;
        }
        let before = connection.depth;
        connection.depth = capacity.depth.min(self.task.depth);
        if capacity.is_spent {
            // It finishes what is in flight and is replaced.
            connection.requests_left = 0;
        } else {
            let was_shut = std::mem::replace(&mut connection.is_shut, connection.depth == 0);
            if !connection.is_shut {
                self.opening.unavailable_since_ns = None;
            } else if !was_shut {
                self.accounting.recorder.shut(now_ns);
            }
        }
        let grown = self.connections[slot].depth.saturating_sub(before);
        self.places_freed(slot, grown, now_ns);
        grown > 0
    }

    /// So many more places of a connection are free since `free_ns`. In an open loop it is kept
    /// since when, where stamps tell it.
    pub(super) fn places_freed(&mut self, slot: Slot, places: u32, free_ns: u64) {
        if matches!(self.pacing, Pacing::Open(_))
            && let Some(sends) = self.connections[slot].sends()
        {
            sends.freed(places, free_ns);
        }
    }

    /// A timer of the protocol is due, or a request in flight has no response in time.
    pub(super) fn time_out(&mut self, slot: Slot, now_ns: u64) {
        if P::CONNECTS {
            return self.attempt_timed_out(slot, now_ns);
        }
        if P::WRITES_AHEAD {
            self.write_to(slot);
        }
        let mut has_more_room = !P::IN_ORDER;
        loop {
            let (connection, places) = self.connections.with_places(slot);
            let out = self.output.out();
            let connection = &mut connection.protocol;
            let Some(timed_out) = self.protocol.timed_out(connection, now_ns, places, out) else {
                break;
            };
            match timed_out {
                TimedOut::Request {
                    place,
                    discarded_bytes,
                } => {
                    let kind = FailureKind::TimedOut;
                    let issue = self.end_request(slot, place, Some(kind));
                    self.request_failed(slot, issue, now_ns, (kind, discarded_bytes));
                    self.places_freed(slot, 1, now_ns);
                    self.connections[slot].has_ended_one = true;
                    has_more_room = true;
                    if self.give_up_part(slot) {
                        self.fail_all(slot, now_ns, kind);
                        self.replace(slot, now_ns);
                        return;
                    }
                }
                TimedOut::Connection(kind) => {
                    self.fail_all(slot, now_ns, kind);
                    self.give_up_part(slot);
                    self.note_shut(slot, now_ns);
                    self.part(slot, now_ns);
                    return;
                }
            }
        }
        let connection = &self.connections[slot];
        if connection.in_flight == 0 && connection.requests_left == 0 {
            self.part(slot, now_ns);
            return;
        }
        self.connections.arm(slot, self.next_deadline_ns(slot));
        if has_more_room {
            self.available(slot, now_ns, now_ns);
        }
    }

    /// When an open connection is to be looked at: for [`Worker::time_out`], or to send again.
    pub(super) fn next_deadline_ns(&self, slot: Slot) -> u64 {
        let timeout_ns = self.next_timeout_ns(slot);
        if self.waits() && self.connections[slot].in_flight == 0 {
            timeout_ns.min(self.resume_ns(slot))
        } else {
            timeout_ns
        }
    }

    /// When [`Worker::time_out`] is to be called for an open connection; [`u64::MAX`] for never.
    pub(super) fn next_timeout_ns(&self, slot: Slot) -> u64 {
        let connection = &self.connections[slot];
        let first_due_ns = match connection.in_flight {
            0 => u64::MAX,
            _ => self.connections.first_due_ns(slot),
        };
        let limit_ns = match P::CONNECTS {
            true => self.attempt_limit_ns(slot),
            false => self.protocol.next_timeout_ns(&connection.protocol),
        };
        first_due_ns
            .saturating_add(self.task.timeout_ns)
            .min(limit_ns)
    }

    /// A connection is given up on which the server allows no request: where that is so of all,
    /// there is none to be had.
    fn note_shut(&mut self, slot: Slot, now_ns: u64) {
        let takes_none =
            |connection: &Connection<P>| connection.state != State::Open || connection.depth == 0;
        if self.connections[slot].is_shut
            && self.opening.unavailable_since_ns.is_none()
            && self.connections.iter().all(takes_none)
        {
            self.opening.unavailable_since_ns = Some(now_ns);
        }
    }

    /// Counts the bytes that belong to no response.
    #[inline]
    pub(super) fn settle_overhead(&mut self, slot: Slot, now_ns: u64) {
        let connection = &mut self.connections[slot].protocol;
        if let Some(controls) = self.protocol.take_controls(connection) {
            self.accounting.recorder.controls(now_ns, &controls);
        }
        let bytes = self.protocol.take_overhead(connection);
        if bytes > 0 {
            self.accounting.recorder.overhead(now_ns, bytes);
            let pushes = self.protocol.take_pushes(connection);
            self.accounting.recorder.pushed(now_ns, pushes);
        }
    }

    /// Ends what the protocol keeps of a connection that is no more, or of no further use, with
    /// nothing in flight, and counts the rest of its bytes.
    pub(super) fn settle_bytes(&mut self, slot: Slot, now_ns: u64) {
        self.settle_overhead(slot, now_ns);
        let connection = &mut self.connections[slot].protocol;
        let bytes = self.protocol.close(connection);
        if bytes > 0 {
            self.accounting.recorder.overhead(now_ns, bytes);
        }
    }
}
