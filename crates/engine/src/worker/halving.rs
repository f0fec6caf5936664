//! The experiment within the warm-up of a closed loop: half of the connections pause for a while,
//! and the replies are counted slice by slice.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_measure::{Halving, Window};

use super::{Pacing, Worker};
use crate::protocol::ClientProtocol;

/// An experiment that goes on.
#[derive(Debug)]
pub(super) struct Experiment {
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
        if length_ns < Halving::LENGTH_NS_MIN {
            return None;
        }
        let slice_ns = length_ns / Halving::SLICES as u64;
        let from_ns = window.start_ns - slice_ns * Halving::SLICES as u64;
        Some(Self {
            slice_end_ns: from_ns + slice_ns,
            replies_before: 0,
            is_halved: false,
            counted: Halving {
                connections,
                used_by_half: connections.div_ceil(2),
                slice_ns,
                replies: Vec::with_capacity(Halving::SLICES),
            },
        })
    }

    /// Whether the connection pauses.
    #[inline]
    pub(super) fn pauses(&self, slot: Slot) -> bool {
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
            self.accounting.recorder.record().halving = Some(over.counted);
        }
        if was_halved && !is_halved {
            self.free.next_released = 0;
            self.release();
        }
    }
}
