//! What protocols whose replies come in order keep of the requests in flight on a connection: a
//! ring of places.

use brunt_record::RequestTiming;

/// The requests in flight on one connection, oldest first, in places below the depth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InOrder {
    /// Place of the oldest one.
    oldest: u32,
    count: u32,
}

impl InOrder {
    /// How many there are.
    #[inline]
    pub(super) fn count(self) -> u32 {
        self.count
    }

    /// The place of the oldest one.
    #[inline]
    pub(super) fn oldest(self) -> u32 {
        self.oldest
    }

    /// The oldest one leaves its place, which is given.
    #[inline]
    pub(super) fn leave(&mut self, depth: u32) -> u32 {
        let place = self.oldest;
        self.oldest = self.place(1, depth);
        self.count -= 1;
        place
    }

    /// Gives the place of a request that was just written.
    #[inline]
    pub(super) fn take(&mut self, depth: u32) -> u32 {
        let place = self.place(self.count, depth);
        self.count += 1;
        place
    }

    /// The place of the one that has `before` others in flight before it.
    #[inline]
    fn place(self, before: u32, depth: u32) -> u32 {
        // Both are below the depth or equal to it.
        let place = self.oldest + before;
        if place >= depth { place - depth } else { place }
    }
}

/// Whether one of those in flight has no reply in time.
pub(super) fn is_late(places: &[RequestTiming], timeout_ns: u64, now_ns: u64) -> bool {
    let is_late = |place: &RequestTiming| place.due_ns.saturating_add(timeout_ns) <= now_ns;
    places.iter().any(is_late)
}
