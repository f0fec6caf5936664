//! Connections as requests: opened, and closed as soon as they are open.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_record::Recorder;

use super::{Carried, Workload};

/// Attempts of one worker, one at a time in each slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts;

impl Workload for Attempts {
    #[inline]
    fn carried(&self) -> Carried {
        Carried::Attempt
    }

    fn begin_round(&mut self, _slots: u32, recorder: &mut Recorder) {
        recorder.count_attempts();
    }

    /// Set-up opens none: the load consists of opening them.
    fn opened_first(&self, _held: u32) -> u32 {
        0
    }

    /// What is open here is a slot that can take an attempt: there is no connection in it.
    fn gives_up<B: ClientBackend>(&mut self, _slot: Slot, _backend: &mut B) -> bool {
        true
    }
}
