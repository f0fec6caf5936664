//! The arrivals of one worker: those still to come, and those that wait for a free connection.

use std::collections::VecDeque;

use brunt_load::Arrivals;

/// Planned instants on the run's clock, in order.
#[derive(Debug)]
pub(crate) struct Backlog {
    arrivals: Arrivals,
    origin_ns: u64,
    /// The next to come; `u64::MAX` when there is none, or none yet.
    next_ns: u64,
    waiting: VecDeque<u64>,
    waiting_max: usize,
}

impl Backlog {
    /// Arrivals that do not come before [`Backlog::start`]. At most `waiting_max` wait.
    pub(crate) fn new(arrivals: Arrivals, waiting_max: u32) -> Self {
        Self {
            arrivals,
            origin_ns: 0,
            next_ns: u64::MAX,
            waiting: VecDeque::new(),
            waiting_max: waiting_max as usize,
        }
    }

    /// The load begins at `origin_ns`: planned instants count from there.
    pub(crate) fn start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
        self.advance();
    }

    /// There are no more to come.
    pub(crate) fn stop(&mut self) {
        self.next_ns = u64::MAX;
    }

    /// Whether there are no more to come.
    pub(crate) fn is_over(&self) -> bool {
        self.next_ns == u64::MAX
    }

    /// When the next one comes, `u64::MAX` for never.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next one if it comes before `before_ns`.
    pub(crate) fn take_before(&mut self, before_ns: u64) -> Option<u64> {
        let due_ns = self.next_ns;
        (due_ns < before_ns).then(|| {
            self.advance();
            due_ns
        })
    }

    /// Lets an arrival wait, behind those that do. False: there is no room.
    pub(crate) fn push(&mut self, due_ns: u64) -> bool {
        let has_room = self.waiting.len() < self.waiting_max;
        if has_room {
            self.waiting.push_back(due_ns);
        }
        has_room
    }

    /// The one that has waited longest.
    pub(crate) fn front(&self) -> Option<u64> {
        self.waiting.front().copied()
    }

    /// Takes it.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        self.waiting.pop_front()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn advance(&mut self) {
        self.next_ns = self.arrivals.next().map_or(u64::MAX, |offset_ns| {
            self.origin_ns.saturating_add(offset_ns)
        });
    }
}
