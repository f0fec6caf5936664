//! Connections whose responses come in any order: how many requests the server allows, those that
//! are late, and bytes that belong to none.

use brunt_measure::FailureKind;

use super::{Pacing, Worker};
use crate::backend::{Backend, Slot};
use crate::connection::{Connection, State};
use crate::protocol::ClientProtocol;

impl<B: Backend, P: ClientProtocol> Worker<B, P> {
    /// Takes over how many requests may be in flight on the connection. Gives whether there may be
    /// more than before.
    pub(super) fn follow_capacity(&mut self, slot: Slot, now_ns: u64) -> bool {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.state != State::Open {
            return false;
        }
        let Some(capacity) = self.protocol.capacity(&connection.protocol) else {
            return false;
        };
        let before = connection.depth;
        connection.depth = capacity.depth.min(self.task.depth);
        if capacity.is_spent {
            // It finishes what is in flight and is replaced.
            connection.requests_left = 0;
        } else if connection.depth > 0 {
            connection.shut_ns = u64::MAX;
            self.dark_since_ns = None;
        } else if connection.shut_ns == u64::MAX {
            connection.shut_ns = now_ns;
            self.recorder.shut(now_ns);
            self.arm(slot, now_ns.saturating_add(self.task.timeout_ns));
        }
        let grown = self.connections[slot.0 as usize]
            .depth
            .saturating_sub(before);
        self.places_freed(slot.0 as usize, grown, now_ns);
        grown > 0
    }

    /// So many more places of a connection are free since `free_ns`. In an open loop it is kept
    /// since when, where stamps tell it.
    pub(super) fn places_freed(&mut self, index: usize, places: u32, free_ns: u64) {
        if matches!(self.pacing, Pacing::Open(_))
            && let Some(sends) = self.connections[index].sends()
        {
            sends.freed(places, free_ns);
        }
    }

    /// A server that allowed no request on the connection for as long as one may take is tried on
    /// another one.
    pub(super) fn leave_shut(&mut self, slot: Slot, now_ns: u64) {
        let takes_none =
            |connection: &Connection<P>| connection.state != State::Open || connection.depth == 0;
        if self.dark_since_ns.is_none() && self.connections.iter().all(takes_none) {
            self.dark_since_ns = Some(now_ns);
        }
        self.replace(slot, now_ns);
    }

    /// Cancels the requests that have no response in time. Where nothing was heard for as long, nor
    /// since one of them was sent, the connection itself is dead, and the others go with it.
    pub(super) fn cancel_late(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        let limit_ns = now_ns.saturating_sub(self.task.timeout_ns);
        let heard_ns = self.connections[index].heard_ns;
        let is_dead = heard_ns <= limit_ns
            && self
                .places(index)
                .iter()
                .any(|place| place.due_ns <= limit_ns && heard_ns < place.sent_ns);
        self.write_to(slot);
        for place in 0..self.task.depth {
            if self.places(index)[place as usize].due_ns > limit_ns {
                continue;
            }
            let connection = &mut self.connections[index].protocol;
            let discarded_bytes = self.protocol.cancel(connection, place, self.output.out());
            let issue = self.take(index, place);
            self.fail(issue, now_ns, FailureKind::TimedOut, discarded_bytes);
            self.places_freed(index, 1, now_ns);
        }
        let connection = &mut self.connections[index];
        connection.has_ended_one = true;
        if is_dead {
            self.fail_all(index, now_ns, FailureKind::Unanswered);
            self.replace(slot, now_ns);
            return;
        }
        if connection.in_flight > 0 {
            let due_ns = self.first_due_ns(index);
            self.arm(slot, due_ns.saturating_add(self.task.timeout_ns));
        } else if connection.requests_left == 0 {
            self.replace(slot, now_ns);
            return;
        } else if connection.shut_ns < u64::MAX {
            let shut_ns = connection.shut_ns;
            self.arm(slot, shut_ns.saturating_add(self.task.timeout_ns));
        }
        self.available(slot, now_ns, now_ns);
    }

    /// Counts the bytes that belong to no response.
    pub(super) fn settle_overhead(&mut self, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index].protocol;
        let bytes = self.protocol.take_overhead(connection);
        if bytes > 0 {
            self.recorder.overhead(now_ns, bytes);
        }
    }

    /// Ends what the protocol keeps of a connection that is no more, or of no further use, with
    /// nothing in flight, and counts the rest of its bytes.
    pub(super) fn settle_bytes(&mut self, index: usize, now_ns: u64) {
        self.settle_overhead(index, now_ns);
        let connection = &mut self.connections[index].protocol;
        let bytes = self.protocol.close(connection);
        if bytes > 0 {
            self.recorder.overhead(now_ns, bytes);
        }
    }
}
