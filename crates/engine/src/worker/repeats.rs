//! Requests that their servers did not process, and that wait to be sent again.

use std::collections::VecDeque;

use brunt_io::backend::Slot;
use brunt_record::{FailureKind, RequestTiming};

/// A request that is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    /// Where it was.
    pub(super) slot: Slot,
    /// As it was sent.
    pub(super) timing: RequestTiming,
    /// Since when it waits.
    pub(super) lost_ns: u64,
    /// How it failed, if it is not sent again.
    pub(super) kind: FailureKind,
}

/// All that wait. In a closed loop, a request waits for the next connection in its slot; in an open
/// loop, for any.
#[derive(Debug)]
pub(super) struct Repeats {
    /// Oldest first, by slot; one line for all in an open loop. Empty before the first.
    lines: Vec<VecDeque<Repeat>>,
    waiting: usize,
    is_shared: bool,
    timeout_ns: u64,
    /// None of them was due earlier.
    due_ns_min: u64,
    /// Connections that carry one, and nothing behind it until it is answered.
    alone: Vec<Slot>,
}

impl Repeats {
    /// None. Any connection takes what waits if that `is_shared`, for `timeout_ns` from when it was
    /// due.
    pub(super) fn new(is_shared: bool, timeout_ns: u64) -> Self {
        Self {
            lines: Vec::new(),
            waiting: 0,
            is_shared,
            timeout_ns,
            due_ns_min: u64::MAX,
            alone: Vec::new(),
        }
    }

    /// Whether none waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether a connection of a closed loop has something else to look at than what it sends next.
    #[inline]
    pub(super) fn is_at_work(&self) -> bool {
        self.waiting > 0 || !self.alone.is_empty()
    }

    /// Whether any connection may take one that waits.
    pub(super) fn waits_for_any(&self) -> bool {
        self.is_shared && self.waiting > 0
    }

    /// Whether one waits that the connection in `slot` may take.
    pub(super) fn waits_for(&self, slot: Slot) -> bool {
        self.waiting > 0
            && self
                .lines
                .get(self.line(slot))
                .is_some_and(|it| !it.is_empty())
    }

    /// Lets one wait, behind the others.
    pub(super) fn push(&mut self, repeat: Repeat) {
        let line = self.line(repeat.slot);
        if line >= self.lines.len() {
            self.lines.resize_with(line + 1, VecDeque::new);
        }
        self.lines[line].push_back(repeat);
        self.waiting += 1;
        self.due_ns_min = self.due_ns_min.min(repeat.timing.due_ns);
    }

    /// Takes the oldest that the connection in `slot` may take.
    pub(super) fn pop(&mut self, slot: Slot) -> Option<Repeat> {
        let line = self.line(slot);
        let repeat = self.lines.get_mut(line)?.pop_front()?;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.due_ns_min = u64::MAX;
        }
        Some(repeat)
    }

    /// When the first of them may have waited for too long; [`u64::MAX`] for never.
    #[inline]
    pub(super) fn next_time_out_ns(&self) -> u64 {
        self.due_ns_min.saturating_add(self.timeout_ns)
    }

    /// Takes those that were due `timeout_ns` ago, or longer.
    pub(super) fn take_late(&mut self, now_ns: u64) -> Vec<Repeat> {
        if now_ns < self.next_time_out_ns() {
            return Vec::new();
        }
        let timeout_ns = self.timeout_ns;
        self.take(|repeat| repeat.timing.due_ns.saturating_add(timeout_ns) <= now_ns)
    }

    /// Takes all of them.
    pub(super) fn take_all(&mut self) -> Vec<Repeat> {
        self.take(|_| true)
    }

    fn take(&mut self, is_taken: impl Fn(&Repeat) -> bool) -> Vec<Repeat> {
        let mut taken = Vec::new();
        for line in &mut self.lines {
            taken.extend(line.iter().filter(|repeat| is_taken(repeat)));
            line.retain(|repeat| !is_taken(repeat));
        }
        self.waiting -= taken.len();
        let waiting = self.lines.iter().flatten();
        let due_ns = waiting.map(|repeat| repeat.timing.due_ns);
        self.due_ns_min = due_ns.min().unwrap_or(u64::MAX);
        taken
    }

    /// Nothing is sent on the connection behind the request that is on it, until
    /// [`Repeats::release`].
    pub(super) fn keep_alone(&mut self, slot: Slot) {
        if !self.is_alone(slot) {
            self.alone.push(slot);
        }
    }

    #[inline]
    pub(super) fn is_alone(&self, slot: Slot) -> bool {
        self.alone.contains(&slot)
    }

    pub(super) fn release(&mut self, slot: Slot) {
        self.alone.retain(|&alone| alone != slot);
    }

    fn line(&self, slot: Slot) -> usize {
        if self.is_shared { 0 } else { slot.0 as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat(slot: u32, due_ns: u64) -> Repeat {
        Repeat {
            slot: Slot(slot),
            timing: RequestTiming::first(due_ns, due_ns),
            lost_ns: due_ns,
            kind: FailureKind::Reset,
        }
    }

    fn waiting(is_shared: bool) -> Repeats {
        let mut repeats = Repeats::new(is_shared, 100);
        for (slot, due_ns) in [(3, 10), (1, 30), (3, 20)] {
            repeats.push(repeat(slot, due_ns));
        }
        repeats
    }

    #[test]
    fn in_a_closed_loop_each_waits_for_its_slot_and_in_an_open_loop_for_any() {
        let mut own = waiting(false);
        assert!(own.waits_for(Slot(1)) && !own.waits_for(Slot(2)) && !own.waits_for(Slot(9)));
        assert!(!own.waits_for_any());
        assert_eq!(own.pop(Slot(2)), None);
        assert_eq!(own.pop(Slot(3)), Some(repeat(3, 10)));
        assert_eq!(own.pop(Slot(3)), Some(repeat(3, 20)));
        assert_eq!((own.pop(Slot(3)), own.waiting()), (None, 1));
        let mut shared = waiting(true);
        assert!(shared.waits_for_any() && shared.waits_for(Slot(9)));
        let in_order = [0; 3].map(|_| shared.pop(Slot(9)).map(|it| it.timing.due_ns));
        assert_eq!(in_order, [Some(10), Some(30), Some(20)]);
        assert!(shared.is_empty() && !shared.waits_for_any());
        assert_eq!(shared.next_time_out_ns(), u64::MAX);
    }

    #[test]
    fn what_waited_for_too_long_is_found_and_the_rest_at_the_end() {
        for is_shared in [false, true] {
            let mut repeats = waiting(is_shared);
            assert_eq!(repeats.next_time_out_ns(), 110);
            assert_eq!(repeats.take_late(109), []);
            assert_eq!(repeats.take_late(125), [repeat(3, 10), repeat(3, 20)]);
            assert_eq!((repeats.waiting(), repeats.next_time_out_ns()), (1, 130));
            assert_eq!(repeats.take_all(), [repeat(1, 30)]);
            assert!(repeats.is_empty() && repeats.take_late(u64::MAX).is_empty());
        }
    }

    #[test]
    fn a_connection_is_looked_at_while_something_waits_or_is_alone_on_it() {
        let mut repeats = Repeats::new(false, 100);
        assert!(!repeats.is_at_work());
        repeats.keep_alone(Slot(4));
        repeats.keep_alone(Slot(4));
        assert!(repeats.is_at_work() && repeats.is_alone(Slot(4)) && !repeats.is_alone(Slot(5)));
        repeats.release(Slot(4));
        assert!(!repeats.is_at_work());
    }
}
