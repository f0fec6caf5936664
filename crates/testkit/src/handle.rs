//! What is left of one worker's simulation when its backend is gone.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use brunt_record::Window;
use brunt_server::Counters;

use crate::counts::SimCounts;
use crate::cpu::Cpu;
use crate::ledger::Ledger;
use crate::settings::SimHost;

/// What remains of a simulation in the hands of whoever made it: its clock, and its counts and
/// accounts, which are complete once the backend is dropped.
#[derive(Clone, Debug)]
pub struct SimHandle {
    pub(crate) now_ns: Rc<Cell<u64>>,
    pub(crate) counts: Rc<RefCell<SimCounts>>,
    pub(crate) reference: Rc<RefCell<Option<Counters>>>,
    pub(crate) ledger: Rc<RefCell<Ledger>>,
}

impl SimHandle {
    /// Of a simulation whose clock starts at `start_ns`.
    pub(crate) fn starting_at(start_ns: u64) -> Self {
        Self {
            now_ns: Rc::new(Cell::new(start_ns)),
            counts: Rc::default(),
            reference: Rc::default(),
            ledger: Rc::default(),
        }
    }

    /// The CPU of its worker, on this machine.
    pub(crate) fn cpu(&self, host: Option<SimHost>) -> Cpu {
        Cpu::new(Rc::clone(&self.now_ns), host, Rc::clone(&self.ledger))
    }

    /// The virtual time, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    /// What network and server counted; all 0 until the backend is dropped.
    pub fn counts(&self) -> SimCounts {
        *self.counts.borrow()
    }

    /// What the reference server counted; absent until the backend is dropped, and where there is
    /// none.
    pub(crate) fn reference_counters(&self) -> Option<Counters> {
        self.reference.borrow().clone()
    }

    /// Has accounts kept of the window, which is still to come.
    pub(crate) fn observe(&self, window: Window) {
        self.ledger.borrow_mut().set_window(window);
    }

    /// The window ends now, if it has not ended before.
    pub(crate) fn end_window(&self) {
        self.ledger.borrow_mut().end_by(self.now_ns());
    }

    /// The accounts of the window, or of the part of it in which the backend lived.
    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger.borrow().clone()
    }
}
