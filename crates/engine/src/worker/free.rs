//! Which connections may carry what comes next.

use std::collections::VecDeque;

use brunt_io::backend::Slot;

/// What arrivals may take.
#[derive(Debug)]
pub(super) struct FreeConnections {
    /// Longest free first: open connections with room, or with planned connections empty slots.
    /// Some may have ceased to be free.
    pub(super) slots: VecDeque<Slot>,
    /// When the connections taken by the arrivals of one batch would be free again, had each been
    /// sent when it could have been; earliest first.
    pub(super) would_be_free_ns: VecDeque<u64>,
    /// Slots from here on were not released to the load yet; [`u32::MAX`] for none.
    pub(super) next_released: u32,
}

impl Default for FreeConnections {
    fn default() -> Self {
        Self {
            slots: VecDeque::new(),
            would_be_free_ns: VecDeque::new(),
            next_released: u32::MAX,
        }
    }
}
