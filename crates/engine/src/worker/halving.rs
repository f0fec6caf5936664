//! The experiment within the warm-up of a closed loop: half of the connections pause for a while,
//! and the replies are counted slice by slice.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_record::{Halving, Window};

use super::{Pacing, Worker};
use crate::connection::State;
use crate::protocol::ClientProtocol;

/// An experiment that goes on.
#[derive(Debug)]
pub(super) struct Experiment {
    from_ns: u64,
    /// When the slice that is counted ends.
    slice_end_ns: u64,
    /// Replies before it.
    replies_before: u64,
    /// Whether half of the connections pause in it.
    is_halved: bool,
    counted: Halving,
}

impl Experiment {
    /// One that ends with the warm-up that lasts from `load_ns` to the start of `window`. Absent
    /// where it would be too short.
    fn new(connections: u32, load_ns: u64, window: Window) -> Option<Self> {
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
    fn pauses(&self, slot: Slot) -> bool {
        self.is_halved && slot.0 % 2 == 1
    }

    /// When it is to be looked at again.
    pub(super) fn next_ns(&self) -> u64 {
        self.slice_end_ns
    }

    fn is_over(&self) -> bool {
        self.counted.replies.len() == Halving::SLICES
    }
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Begins the experiment, where there is to be one.
    pub(super) fn start_halving(&mut self, load_ns: u64, window: Window) {
        // After a pause all would send at once, which users who think never do.
        let thinks = self.task.think_time.mean_ns > 0;
        if self.task.halves && !thinks && matches!(self.pacing, Pacing::Closed) {
            self.round.halving = Experiment::new(self.task.connections, load_ns, window);
        }
    }

    /// Counts the slices that are over, and lets go on what paused.
    pub(super) fn count_slices(&mut self, now_ns: u64) {
        let progress = self.accounting.progress;
        let Some(experiment) = &mut self.round.halving else {
            return;
        };
        if now_ns < experiment.slice_end_ns {
            return;
        }
        let replies = progress.successes + progress.errors;
        let was_halved = experiment.is_halved;
        while now_ns >= experiment.slice_end_ns && !experiment.is_over() {
            let counted = &mut experiment.counted;
            counted.replies.push(replies - experiment.replies_before);
            experiment.replies_before = replies;
            experiment.is_halved = Halving::pauses_half(counted.replies.len());
            experiment.slice_end_ns += counted.slice_ns;
        }
        let is_halved = experiment.is_halved;
        if experiment.is_over()
            && let Some(over) = self.round.halving.take()
        {
            let mut counted = over.counted;
            counted.starved = self.waiting_since(over.from_ns + counted.slice_ns);
            self.accounting.recorder.record().halving = Some(counted);
        }
        if was_halved && !is_halved {
            self.end_pause();
        }
    }

    /// Connections whose requests have been in flight since before `at_ns`.
    fn waiting_since(&self, at_ns: u64) -> u32 {
        let slots = self.connections.slots();
        let waiting = slots.filter(|&slot| self.connections.first_due_ns(slot) < at_ns);
        waiting.count() as u32
    }

    /// What paused goes on: connections that the server closed meanwhile are opened again.
    fn end_pause(&mut self) {
        for slot in self.connections.slots() {
            let is_closed = State::Down { retry_ns: u64::MAX };
            if self.connections[slot].state == is_closed {
                self.opening.dialling.push(slot);
            }
        }
        self.free.next_released = 0;
        self.release();
    }

    /// Whether the connection pauses in the experiment.
    #[inline]
    pub(super) fn pauses(&self, slot: Slot) -> bool {
        let experiment = self.round.halving.as_ref();
        experiment.is_some_and(|experiment| experiment.pauses(slot))
    }
}
