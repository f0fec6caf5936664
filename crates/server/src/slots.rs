//! Which slots are free: the lowest first, so that the backend's tables stay dense.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use brunt_io::backend::Slot;

/// The free slots below a limit.
#[derive(Debug)]
pub(crate) struct FreeSlots {
    returned: BinaryHeap<Reverse<u32>>,
    /// Slots from here on were never taken.
    untouched: u32,
    limit: u32,
}

impl FreeSlots {
    /// All slots from 0 up to `limit`.
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            returned: BinaryHeap::new(),
            untouched: 0,
            limit,
        }
    }

    /// The lowest free slot.
    pub(crate) fn take(&mut self) -> Option<Slot> {
        if let Some(Reverse(slot)) = self.returned.pop() {
            return Some(Slot(slot));
        }
        let slot = self.untouched;
        (slot < self.limit).then(|| {
            self.untouched += 1;
            Slot(slot)
        })
    }

    /// Gives back a slot that was taken.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.returned.push(Reverse(slot.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_slot_comes_first() {
        let mut free = FreeSlots::new(3);
        assert_eq!([free.take(), free.take()], [Some(Slot(0)), Some(Slot(1))]);
        free.give_back(Slot(1));
        free.give_back(Slot(0));
        let rest: Vec<_> = std::iter::from_fn(|| free.take()).collect();
        assert_eq!(rest, [Slot(0), Slot(1), Slot(2)]);
    }
}
