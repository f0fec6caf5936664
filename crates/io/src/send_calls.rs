//! Which slots are stamped, and the latest send call of each of them.

use std::num::NonZeroU32;

use crate::backend::{SendCall, Slot};

/// The stamped slots of a backend.
#[derive(Debug, Default)]
pub struct SendCalls {
    every: Option<NonZeroU32>,
    /// The latest call of each stamped slot, by slot number divided by `every`.
    latest: Vec<Option<SendCall>>,
}

impl SendCalls {
    /// Stamps the slots whose number is divisible by `every`.
    pub fn set_every(&mut self, every: Option<NonZeroU32>) {
        self.every = every;
        self.latest.clear();
    }

    /// Whether the slot is stamped.
    pub fn includes(&self, slot: Slot) -> bool {
        self.index(slot).is_some()
    }

    /// Whether the slot, just opened, is stamped; nothing is known of its send calls from now on.
    pub fn opened(&mut self, slot: Slot) -> bool {
        let Some(index) = self.index(slot) else {
            return false;
        };
        if self.latest.len() <= index {
            self.latest.resize(index + 1, None);
        }
        self.latest[index] = None;
        true
    }

    /// Notes the latest send call of an opened slot; of one that is not stamped, nothing.
    pub fn note(&mut self, slot: Slot, send_call: SendCall) {
        if let Some(latest) = self
            .index(slot)
            .and_then(|index| self.latest.get_mut(index))
        {
            *latest = Some(send_call);
        }
    }

    /// The latest send call of a stamped slot.
    pub fn latest(&self, slot: Slot) -> Option<SendCall> {
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

    const SEND_CALL: SendCall = SendCall {
        from_ns: 1,
        to_ns: 2,
    };

    #[test]
    fn one_slot_in_so_many_is_stamped() {
        for (every, stamped) in [(0, &[][..]), (1, &[0, 1, 2, 3, 4, 5, 6]), (3, &[0, 3, 6])] {
            let mut send_calls = SendCalls::default();
            send_calls.set_every(NonZeroU32::new(every));
            for number in (0..7).rev() {
                let slot = Slot(number);
                assert_eq!(send_calls.opened(slot), stamped.contains(&number));
                assert_eq!(send_calls.latest(slot), None);
                send_calls.note(slot, SEND_CALL);
            }
            for number in 0..7 {
                let known = send_calls.latest(Slot(number));
                assert_eq!(known, stamped.contains(&number).then_some(SEND_CALL));
            }
            assert!(!send_calls.opened(Slot(0)) || send_calls.latest(Slot(0)).is_none());
            assert_eq!(send_calls.latest(Slot(3_000)), None);
        }
    }
}
