//! The handshakes of accepted connections: which have taken too long, and which make room.

use std::collections::BTreeSet;

use crate::backend::Slot;

/// How long an accepted connection may take for its handshake. Without an end, clients that say
/// nothing would hold every slot that is offered.
pub(super) const HANDSHAKE_NS_MAX: u64 = 10_000_000_000;
/// How long a client may say nothing while no slot is offered any more: longer than a round trip
/// with a segment that is sent again.
pub(super) const SILENCE_NS_MAX: u64 = 500_000_000;
/// How many make room at once.
const ROOM: usize = 64;

/// The handshakes in progress. Sets, because they are left at once: so they are never larger than
/// the number of slots.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// Slots offered for connections that have yet to come.
    offered: u32,
    /// When each handshake has to be complete, or its alert sent.
    deadlines: BTreeSet<(u64, Slot)>,
    /// When the client of each handshake was heard last.
    heard: BTreeSet<(u64, Slot)>,
}

impl Handshakes {
    /// A slot is offered.
    pub(super) fn offer(&mut self) {
        self.offered += 1;
    }

    /// An offered slot has a connection, or an error.
    pub(super) fn taken(&mut self) {
        self.offered = self.offered.saturating_sub(1);
    }

    /// A handshake began.
    pub(super) fn begin(&mut self, slot: Slot, now_ns: u64) {
        self.deadlines.insert((now_ns + HANDSHAKE_NS_MAX, slot));
        self.heard.insert((now_ns, slot));
    }

    /// The client of a handshake sent something.
    pub(super) fn hear(&mut self, slot: Slot, before_ns: u64, now_ns: u64) {
        if self.heard.remove(&(before_ns, slot)) {
            self.heard.insert((now_ns, slot));
        }
    }

    /// A handshake is over, or need not end any more.
    pub(super) fn end(&mut self, slot: Slot, from_ns: u64, heard_ns: u64) {
        self.deadlines.remove(&(from_ns + HANDSHAKE_NS_MAX, slot));
        self.heard.remove(&(heard_ns, slot));
    }

    /// When the next handshake may have to end.
    pub(super) fn wake_ns(&self) -> Option<u64> {
        let deadline_ns = self.deadlines.first().map(|&(at_ns, _)| at_ns);
        let is_short = self.offered == 0;
        let oldest = self.heard.first().filter(|_| is_short);
        let silence_ns = oldest.map(|&(heard_ns, _)| heard_ns + SILENCE_NS_MAX);
        deadline_ns.into_iter().chain(silence_ns).min()
    }

    /// The handshakes that have taken too long and, while no slot is offered, the ones whose
    /// clients have been silent for the longest time.
    pub(super) fn late(&self, now_ns: u64) -> Vec<Slot> {
        let is_over = |&&(at_ns, _): &&(u64, Slot)| at_ns <= now_ns;
        let mut late: Vec<_> = self.deadlines.iter().take_while(is_over).collect();
        if self.offered == 0 && late.is_empty() {
            let is_silent = |&&(heard_ns, _): &&(u64, Slot)| heard_ns + SILENCE_NS_MAX <= now_ns;
            late.extend(self.heard.iter().take_while(is_silent).take(ROOM));
        }
        late.into_iter().map(|&(_, slot)| slot).collect()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.deadlines.len(), self.heard.len());
        self.deadlines.len()
    }
}
