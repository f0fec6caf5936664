//! Which connections a worker opens when: the first attempts of set-up, and retries behind them,
//! under one bound.

use std::collections::VecDeque;

use brunt_io::backend::{ClientBackend, Slot};

use super::{Mode, Pacing, Worker};
use crate::connection::State;
use crate::protocol::ClientProtocol;
use crate::sources::Turns;

/// Attempts in flight at once, per worker: more would only overflow the server's accept queue. It
/// holds for the first attempts of set-up and for retries, but not for the connection that takes
/// the place of one that did its work, nor for one that waiting arrivals ask for.
pub(super) const DIALLING_MAX: u32 = 128;

/// Attempts that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Dialling {
    /// First attempts are due from here on, one per `gap_ns`.
    from_ns: u64,
    gap_ns: f64,
    /// The next slot to be tried for the first time, and the first of those that set-up leaves
    /// alone.
    next: u32,
    end: u32,
    /// Slots whose pause after a failure is over.
    retries: VecDeque<Slot>,
    /// Bounded attempts in flight.
    in_flight: u32,
}

/// How a worker opens its connections.
#[derive(Debug)]
pub(super) struct Opening {
    /// Local addresses of connections.
    pub(super) sources: Turns,
    /// Connection attempts in flight.
    pub(super) in_flight: u32,
    /// First attempts of set-up, and retries.
    pub(super) dialling: Dialling,
    /// Connections that set-up still waits for.
    pub(super) unsettled: u32,
    /// Connections to be held that are not open, and are not just being replaced.
    pub(super) lacking: u32,
    /// When set-up opened a connection for the first time that it still waited for.
    pub(super) progress_ns: u64,
    /// Slots that set-up opens, and those opened since because none was free.
    pub(super) slots_used: u32,
    /// Since when no connection is open, or none takes a request.
    pub(super) unavailable_since_ns: Option<u64>,
    /// Slots that wait for the end of a pause, to be opened again for what they carried.
    pub(super) resuming: u32,
    /// Connections whose servers are to answer that nothing more is sent.
    pub(super) parting: u32,
    /// The connection that finds out when one can be opened again, while none is open.
    pub(super) probe: Option<Slot>,
}

impl Opening {
    /// Of a worker that is to hold so many connections.
    pub(super) fn new(sources: Turns, held: u32) -> Self {
        Self {
            sources,
            in_flight: 0,
            dialling: Dialling::default(),
            unsettled: held,
            lacking: held,
            progress_ns: 0,
            slots_used: held,
            unavailable_since_ns: None,
            resuming: 0,
            parting: 0,
            probe: None,
        }
    }
}

impl Dialling {
    /// First attempts for the slots below `slots`.
    pub(super) fn new(slots: u32, from_ns: u64, gap_ns: f64) -> Self {
        Self {
            from_ns,
            gap_ns,
            end: slots,
            ..Self::default()
        }
    }

    /// When the next first attempt is due, `u64::MAX` when there was one for each slot.
    fn due_ns(&self) -> u64 {
        if self.next == self.end {
            return u64::MAX;
        }
        let offset_ns = (self.gap_ns * f64::from(self.next)) as u64;
        self.from_ns.saturating_add(offset_ns)
    }

    /// The slot to be tried at `now_ns`, if there is one and the bound allows it.
    fn next(&mut self, now_ns: u64) -> Option<Slot> {
        if self.in_flight >= DIALLING_MAX {
            return None;
        }
        if self.due_ns() <= now_ns {
            let slot = Slot(self.next);
            self.next += 1;
            return Some(slot);
        }
        self.retries.pop_front()
    }

    /// Whether no attempt waits for its turn.
    fn is_empty(&self) -> bool {
        self.next == self.end && self.retries.is_empty()
    }

    /// Lets the slot be tried again, behind those that wait for it already.
    pub(super) fn push(&mut self, slot: Slot) {
        self.retries.push_back(slot);
    }

    /// A bounded attempt has ended.
    pub(super) fn ended(&mut self) {
        self.in_flight -= 1;
    }
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Makes the attempts whose turn it is; gives when the next one is due by plan.
    pub(super) fn dial(&mut self) -> u64 {
        let dials = self.timeline.mode != Mode::Drain || self.waiting() > 0;
        if self.opening.dialling.is_empty() || !dials {
            return u64::MAX;
        }
        // Attempts that fail at once leave the bound as it is.
        for _ in 0..DIALLING_MAX {
            let now_ns = self.backend.now_ns();
            let Some(slot) = self.opening.dialling.next(now_ns) else {
                let is_full = self.opening.dialling.in_flight >= DIALLING_MAX;
                return if is_full {
                    u64::MAX
                } else {
                    self.opening.dialling.due_ns()
                };
            };
            let connection = &mut self.connections[slot];
            if let State::Down { .. } = connection.state {
                connection.is_bounded = true;
                self.opening.dialling.in_flight += 1;
                self.open(slot, now_ns);
            }
        }
        // There may be more.
        0
    }

    /// Load begins: what set-up could not open, or gave up, is tried as anything that failed.
    pub(super) fn dial_the_rest(&mut self, now_ns: u64) {
        if let Pacing::Sessions(_) = self.pacing {
            return;
        }
        self.opening.dialling.retries.clear();
        self.opening.dialling.next = self.opening.dialling.end;
        for slot in (0..self.opening.slots_used).map(Slot) {
            let connection = &mut self.connections[slot];
            if let State::Down { retry_ns } = &mut connection.state {
                if *retry_ns == u64::MAX {
                    *retry_ns = now_ns;
                }
                let retry_ns = *retry_ns;
                self.connections.arm(slot, retry_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_attempts_come_before_retries_and_one_bound_holds_for_both() {
        let mut dialling = Dialling::new(200, 1_000, 0.0);
        assert_eq!(dialling.next(999), None);
        dialling.push(Slot(7));
        dialling.push(Slot(8));
        for slot in 0..DIALLING_MAX {
            assert_eq!(dialling.next(1_000), Some(Slot(slot)));
            dialling.in_flight += 1;
        }
        assert_eq!(dialling.next(1_000), None);
        dialling.ended();
        assert_eq!(dialling.next(1_000), Some(Slot(DIALLING_MAX)));
        dialling.next = 200;
        assert_eq!(dialling.due_ns(), u64::MAX);
        assert_eq!(dialling.next(1_000), Some(Slot(7)));
        dialling.in_flight = DIALLING_MAX;
        assert_eq!(dialling.next(1_000), None);
    }

    #[test]
    fn while_a_planned_attempt_is_still_to_come_a_retry_has_its_turn() {
        let mut dialling = Dialling::new(2, 0, 100.0);
        dialling.push(Slot(9));
        assert_eq!(dialling.next(0), Some(Slot(0)));
        assert_eq!(dialling.due_ns(), 100);
        assert_eq!(dialling.next(99), Some(Slot(9)));
        assert_eq!(dialling.next(99), None);
        assert_eq!(dialling.next(100), Some(Slot(1)));
    }
}
