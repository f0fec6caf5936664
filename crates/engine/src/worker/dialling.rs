//! Which connections a worker opens when: the first attempts of set-up, and retries behind them,
//! under one bound.

use std::collections::VecDeque;

use brunt_io::backend::Slot;

/// Attempts that wait for their turn.
#[derive(Debug)]
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
    /// Bounded attempts in flight, and how many there may be. The bound holds for the first
    /// attempts of set-up and for retries, but not for the connection that takes the place of one
    /// that did its work, nor for one that waiting arrivals ask for.
    in_flight: u32,
    most: u32,
}

impl Dialling {
    /// First attempts for the slots below `slots`, of which `most` may be in flight at once.
    pub(super) fn new(slots: u32, from_ns: u64, gap_ns: f64, most: u32) -> Self {
        Self {
            from_ns,
            gap_ns,
            next: 0,
            end: slots,
            retries: VecDeque::new(),
            in_flight: 0,
            most,
        }
    }

    /// When the next attempt is due by plan; `u64::MAX` for never, and while as many are in flight
    /// as may be.
    pub(super) fn next_ns(&self) -> u64 {
        if self.in_flight >= self.most {
            u64::MAX
        } else {
            self.due_ns()
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
    pub(super) fn next(&mut self, now_ns: u64) -> Option<Slot> {
        if self.in_flight >= self.most {
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
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.end && self.retries.is_empty()
    }

    /// Lets the slot be tried again, behind those that wait for it already.
    pub(super) fn push(&mut self, slot: Slot) {
        self.retries.push_back(slot);
    }

    /// No attempt waits for its turn any more.
    pub(super) fn clear(&mut self) {
        self.retries.clear();
        self.next = self.end;
    }

    /// A bounded attempt begins.
    pub(super) fn began(&mut self) {
        self.in_flight += 1;
    }

    /// A bounded attempt has ended.
    pub(super) fn ended(&mut self) {
        self.in_flight -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_attempts_come_before_retries_and_one_bound_holds_for_both() {
        const MOST: u32 = 50;
        let mut dialling = Dialling::new(200, 1_000, 0.0, MOST);
        assert_eq!(dialling.next(999), None);
        dialling.push(Slot(7));
        dialling.push(Slot(8));
        for slot in 0..MOST {
            assert_eq!(dialling.next(1_000), Some(Slot(slot)));
            dialling.began();
        }
        assert_eq!(dialling.next(1_000), None);
        dialling.ended();
        assert_eq!(dialling.next(1_000), Some(Slot(MOST)));
        dialling.next = 200;
        assert_eq!(dialling.due_ns(), u64::MAX);
        assert_eq!(dialling.next(1_000), Some(Slot(7)));
        dialling.in_flight = MOST;
        assert_eq!(dialling.next(1_000), None);
    }

    #[test]
    fn while_a_planned_attempt_is_still_to_come_a_retry_has_its_turn() {
        let mut dialling = Dialling::new(2, 0, 100.0, 1);
        dialling.push(Slot(9));
        assert_eq!(dialling.next(0), Some(Slot(0)));
        assert_eq!(dialling.due_ns(), 100);
        assert_eq!(dialling.next(99), Some(Slot(9)));
        assert_eq!(dialling.next(99), None);
        assert_eq!(dialling.next(100), Some(Slot(1)));
    }
}
