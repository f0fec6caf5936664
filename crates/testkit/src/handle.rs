//! What is left of one worker's simulation when its backend is gone.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use brunt_server::Counters;

use crate::counts::SimCounts;
use crate::cpu::Cpu;
use crate::ledger::Ledger;
use crate::settings::SimHost;

/// What remains of a worker in the hands of its machine: its clock and its accounts, and the counts
/// of the machine. They are complete once the backend is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimHandle {
    pub(crate) now_ns: Rc<Cell<u64>>,
    pub(crate) counts: Rc<RefCell<SimCounts>>,
    /// Of the reference servers.
    pub(crate) reference: Rc<RefCell<Vec<Counters>>>,
    pub(crate) ledger: Rc<RefCell<Ledger>>,
}

impl SimHandle {
    /// The CPU of its worker, on this machine.
    pub(crate) fn cpu(&self, host: Option<SimHost>) -> Cpu {
        Cpu::new(Rc::clone(&self.now_ns), host, Rc::clone(&self.ledger))
    }
}
