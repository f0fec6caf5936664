//! The slots that are offered for incoming connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use brunt_io::backend::Slot;

use crate::count::LinkCounters;

/// Slots offered at any time; with TLS, until the handshake is complete.
const OFFERS: u32 = 64;
const OFFERS_TLS: u32 = 1_024;
/// How long to wait after a failed accept, which mostly means that descriptors ran out.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// Which slots below a limit are free, and how many of them are offered. The lowest comes first, so
/// that the backend's tables stay dense.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    /// Free slots that were taken before.
    returned: BinaryHeap<Reverse<u32>>,
    /// Slots from here on were never taken.
    untouched: u32,
    connections_max: u32,
    offered: u32,
    is_tls: bool,
    /// No slot is offered before this instant.
    again_ns: u64,
}

impl Offers {
    /// The slots for so many connections at a time.
    pub(crate) fn new(connections_max: u32, is_tls: bool) -> Self {
        Self {
            connections_max,
            is_tls,
            ..Self::default()
        }
    }

    /// The next slot to offer at this instant, if there is one.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<Slot> {
        let offers_max = if self.is_tls { OFFERS_TLS } else { OFFERS };
        if self.offered >= offers_max || now_ns < self.again_ns {
            return None;
        }
        let slot = match self.returned.pop() {
            Some(Reverse(slot)) => slot,
            None if self.untouched < self.connections_max => {
                self.untouched += 1;
                self.untouched - 1
            }
            None => return None,
        };
        self.offered += 1;
        Some(Slot(slot))
    }

    /// When slots are offered again, where none are at this instant because an accept failed.
    pub(crate) fn again_ns(&self, now_ns: u64) -> Option<u64> {
        (self.again_ns > now_ns).then_some(self.again_ns)
    }

    /// A connection took one.
    pub(crate) fn accepted(&mut self) {
        self.offered -= 1;
    }

    /// No connection came into an offered slot, which is free again.
    pub(crate) fn failed(&mut self, slot: Slot, errno: i32, now_ns: u64, counters: &LinkCounters) {
        self.offered -= 1;
        self.give_back(slot);
        if self.is_tls && !is_shortage(errno) {
            counters.handshakes_failed.add(1);
        } else {
            counters.accepts_failed.add(1);
            self.again_ns = now_ns.saturating_add(ACCEPT_PAUSE_NS);
        }
    }

    /// A connection was closed.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.returned.push(Reverse(slot.0));
    }
}

/// Whether an accept failed because something ran out.
fn is_shortage(errno: i32) -> bool {
    matches!(
        errno,
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_accept_is_followed_by_a_pause() {
        let mut offers = Offers::new(2, true);
        assert_eq!(
            [offers.next(0), offers.next(0), offers.next(0)],
            [Some(Slot(0)), Some(Slot(1)), None]
        );
        let counters = LinkCounters::default();
        offers.failed(Slot(1), libc::EPROTO, 5, &counters);
        assert_eq!(counters.handshakes_failed.get(), 1);
        assert_eq!(offers.again_ns(5), None);
        assert_eq!(offers.next(5), Some(Slot(1)));
        offers.failed(Slot(1), libc::EMFILE, 5, &counters);
        assert_eq!(counters.accepts_failed.get(), 1);
        let again_ns = offers.again_ns(5).expect("a pause");
        assert_eq!(offers.next(again_ns - 1), None);
        assert_eq!(offers.next(again_ns), Some(Slot(1)));
        offers.accepted();
        offers.give_back(Slot(0));
        assert_eq!(offers.next(again_ns), Some(Slot(0)));
    }

    #[test]
    fn the_lowest_free_slot_comes_first() {
        let mut offers = Offers::new(3, false);
        assert_eq!(
            [offers.next(0), offers.next(0)],
            [Some(Slot(0)), Some(Slot(1))]
        );
        offers.give_back(Slot(1));
        offers.give_back(Slot(0));
        let rest: Vec<_> = std::iter::from_fn(|| offers.next(0)).collect();
        assert_eq!(rest, [Slot(0), Slot(1), Slot(2)]);
    }
}
