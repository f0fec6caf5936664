//! The connections whose accounts the kernel can be asked for: those that keep a descriptor, which
//! sockets in a ring's table do without.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::backend::Slot;

/// One connection in this many keeps a descriptor.
const SAMPLE_EVERY: u32 = 64;
/// Most connections that keep a descriptor.
const SAMPLE_MAX: usize = 16;

/// A sample of the connections, or all of them.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    sockets: BTreeMap<Slot, OwnedFd>,
    keeps_all: bool,
}

impl Accounts {
    /// Descriptors that are kept of `slots` connections.
    pub(super) fn descriptors(slots: u64, keeps_all: bool) -> u64 {
        match keeps_all {
            true => slots,
            false => slots.div_ceil(SAMPLE_EVERY.into()).min(SAMPLE_MAX as u64),
        }
    }

    /// Keeps those of all connections that are opened from now on.
    pub(super) fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// A connection was opened: its descriptor is kept, or closed.
    pub(super) fn opened(&mut self, slot: Slot, socket: OwnedFd) {
        let is_sampled = slot.0.is_multiple_of(SAMPLE_EVERY) && self.sockets.len() < SAMPLE_MAX;
        if is_sampled || self.keeps_all {
            self.sockets.insert(slot, socket);
        }
    }

    /// The connection is no more.
    pub(super) fn closed(&mut self, slot: Slot) {
        self.sockets.remove(&slot);
    }

    /// The descriptor of a connection; absent where it keeps none.
    pub(super) fn of(&self, slot: Slot) -> Option<BorrowedFd<'_>> {
        self.sockets.get(&slot).map(AsFd::as_fd)
    }
}
