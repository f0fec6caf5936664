//! The experiment within the warm-up of a closed loop: half of the connections pause for a while,
//! and the replies are counted slice by slice.

use brunt_io::backend::Slot;
use brunt_record::{Halving, Window};

/// An experiment that goes on.
#[derive(Debug)]
pub(super) struct Experiment {
    from_ns: u64,
    /// When the slice that is being counted ends.
    slice_end_ns: u64,
    /// Replies before it.
    replies_before: u64,
    /// Whether half of the connections pause in it.
    is_halved: bool,
    counted: Halving,
}

impl Experiment {
    /// The experiment that fills the end of the warm-up, which lasts from `load_ns` to the start of
    /// `window`. Absent where it would be too short.
    pub(super) fn new(connections: u32, load_ns: u64, window: Window) -> Option<Self> {
        let warmup_ns = window.start_ns.saturating_sub(load_ns);
        let length_ns = warmup_ns.min(Halving::LENGTH_NS_MAX);
        if length_ns < Halving::LENGTH_NS_MIN || connections > Halving::CONNECTIONS_MAX {
            return None;
        }
        let slice_ns = length_ns / Halving::SLICES as u64;
        let from_ns = window.start_ns - slice_ns * Halving::SLICES as u64;
        Some(Self {
            from_ns,
            slice_end_ns: from_ns + slice_ns,
            replies_before: 0,
            is_halved: false,
            counted: Halving {
                connections,
                used_by_half: connections.div_ceil(2),
                slice_ns,
                starved: 0,
                replies: Vec::with_capacity(Halving::SLICES),
            },
        })
    }

    /// Whether the connection pauses.
    #[inline]
    pub(super) fn pauses(&self, slot: Slot) -> bool {
        self.is_halved && slot.0 % 2 == 1
    }

    /// When the experiment is to be looked at again.
    pub(super) fn next_ns(&self) -> u64 {
        self.slice_end_ns
    }

    pub(super) fn is_over(&self) -> bool {
        self.counted.replies.len() == Halving::SLICES
    }

    /// Counts the slices that are over by `now_ns`, with so many replies. Gives whether what paused
    /// goes on.
    pub(super) fn count(&mut self, now_ns: u64, replies: u64) -> bool {
        let was_halved = self.is_halved;
        while now_ns >= self.slice_end_ns && !self.is_over() {
            self.counted.replies.push(replies - self.replies_before);
            self.replies_before = replies;
            self.is_halved = Halving::pauses_half(self.counted.replies.len());
            self.slice_end_ns += self.counted.slice_ns;
        }
        was_halved && !self.is_halved
    }

    /// Requests that have been in flight since before this instant had no reply in all of it.
    pub(super) fn starved_before_ns(&self) -> u64 {
        self.from_ns + self.counted.slice_ns
    }

    /// What the experiment counted. `starved`: the connections whose first requests are unanswered.
    pub(super) fn conclude(self, starved: u32) -> Halving {
        Halving {
            starved,
            ..self.counted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_connections_pause_in_some_slices_and_replies_are_counted_in_each() {
        let window = Window {
            start_ns: 10 * Halving::LENGTH_NS_MAX,
            end_ns: u64::MAX,
        };
        let mut experiment = Experiment::new(4, 0, window).expect("the warm-up is long enough");
        let (mut replies, mut paused, mut went_on) = (0, 0, 0);
        while !experiment.is_over() {
            let pausing = (0..4).filter(|&slot| experiment.pauses(Slot(slot))).count();
            paused += u32::from(pausing == 2);
            assert!(pausing == 0 || pausing == 2);
            replies += 10;
            went_on += u32::from(experiment.count(experiment.next_ns(), replies));
        }
        assert!(paused > 0 && paused < Halving::SLICES as u32 && went_on > 0);
        assert!(!experiment.pauses(Slot(1)));
        let counted = experiment.conclude(3);
        assert_eq!(counted.replies, vec![10; Halving::SLICES]);
        assert_eq!((counted.starved, counted.used_by_half), (3, 2));
    }

    #[test]
    fn a_short_warm_up_has_no_room_for_it() {
        let window = Window {
            start_ns: 100 + Halving::LENGTH_NS_MIN,
            end_ns: u64::MAX,
        };
        assert!(Experiment::new(4, 101, window).is_none());
        assert!(Experiment::new(4, 100, window).is_some());
    }
}
