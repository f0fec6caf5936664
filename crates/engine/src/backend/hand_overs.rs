//! Which slots are stamped, and the latest hand-over of each of them.

use std::num::NonZeroU32;

use super::{HandOver, Slot};

/// The stamped slots of a backend.
#[derive(Debug, Default)]
pub(super) struct HandOvers {
    every: Option<NonZeroU32>,
    /// By slot number divided by `every`.
    latest: Vec<Option<HandOver>>,
}

impl HandOvers {
    /// Stamps the slots whose number is divisible by `every`.
    pub(super) fn set_every(&mut self, every: Option<NonZeroU32>) {
        self.every = every;
        self.latest.clear();
    }

    /// Whether the slot is stamped.
    pub(super) fn includes(&self, slot: Slot) -> bool {
        self.index(slot).is_some()
    }

    /// Whether the slot, just opened, is stamped; nothing is known of its hand-overs from now on.
    pub(super) fn opened(&mut self, slot: Slot) -> bool {
        let Some(index) = self.index(slot) else {
            return false;
        };
        if self.latest.len() <= index {
            self.latest.resize(index + 1, None);
        }
        self.latest[index] = None;
        true
    }

    /// Notes the latest hand-over of an opened slot; of one that is not stamped, nothing.
    pub(super) fn note(&mut self, slot: Slot, hand_over: HandOver) {
        if let Some(latest) = self
            .index(slot)
            .and_then(|index| self.latest.get_mut(index))
        {
            *latest = Some(hand_over);
        }
    }

    /// The latest hand-over of a stamped slot.
    pub(super) fn latest(&self, slot: Slot) -> Option<HandOver> {
        *self.latest.get(self.index(slot)?)?
    }

    fn index(&self, slot: Slot) -> Option<usize> {
        let every = self.every?.get();
        slot.0
            .is_multiple_of(every)
            .then_some((slot.0 / every) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HAND_OVER: HandOver = HandOver {
        from_ns: 1,
        to_ns: 2,
    };

    #[test]
    fn one_slot_in_so_many_is_stamped() {
        for (every, stamped) in [(0, &[][..]), (1, &[0, 1, 2, 3, 4, 5, 6]), (3, &[0, 3, 6])] {
            let mut hand_overs = HandOvers::default();
            hand_overs.set_every(NonZeroU32::new(every));
            for number in (0..7).rev() {
                let slot = Slot(number);
                assert_eq!(hand_overs.opened(slot), stamped.contains(&number));
                assert_eq!(hand_overs.latest(slot), None);
                hand_overs.note(slot, HAND_OVER);
            }
            for number in 0..7 {
                let known = hand_overs.latest(Slot(number));
                assert_eq!(known, stamped.contains(&number).then_some(HAND_OVER));
            }
            assert!(!hand_overs.opened(Slot(0)) || hand_overs.latest(Slot(0)).is_none());
            assert_eq!(hand_overs.latest(Slot(3_000)), None);
        }
    }
}
