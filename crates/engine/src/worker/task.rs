//! What one worker is to do in a round, and when.

use std::sync::Arc;

use brunt_load::{Arrivals, Plan};
use brunt_record::{Recorder, Window};

use crate::budget::Budget;
use crate::control::Control;
use crate::generated::Generated;
use crate::observer::{Snapshot, SnapshotSender};
use crate::prepare::Prepared;

/// A worker that does not run for so long, though it has something to do, was stopped: no scheduler
/// lets a thread wait as long.
pub(super) const PAUSE_NS_LEAST: u64 = 200_000_000;

/// What makes requests due, as far as one worker is concerned.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// Replies.
    Closed {
        /// Set-up opens a connection every so many nanoseconds; 0: as fast as it can.
        connect_gap_ns: f64,
    },
    /// Nothing: connections are kept open.
    Held {
        /// As above.
        connect_gap_ns: f64,
    },
    /// Planned instants of requests.
    Open {
        arrivals: Arrivals,
        /// Lengths of the stages that the window has, nanoseconds; empty without stages.
        stages_ns: Vec<u64>,
        connections_max: u32,
        queue_max: u32,
    },
    /// Planned instants of connections.
    Sessions { arrivals: Arrivals, queue_max: u32 },
}

/// What one worker is to do in a round.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) prepared: Arc<Prepared>,
    /// Its number among all workers of the plan.
    pub(crate) worker: u32,
    pub(crate) pace: Pace,
    /// Its share of the connections: to hold; with planned connections, most at once.
    pub(crate) connections: u32,
    /// Requests in flight per connection, and their time-out: each request asks for them.
    pub(crate) depth: u32,
    pub(crate) timeout_ns: u64,
    /// Requests after which a connection is replaced.
    pub(crate) requests_per_connection: u64,
    /// How long a sleep lasts at least, so that one wake-up serves several requests; 0 for as
    /// short as it gets.
    pub(crate) gather_ns: u64,
    /// The requests of a run by count.
    pub(crate) budget: Option<Arc<Budget>>,
    /// Those of them that its connections have equal parts of; absent where they share them.
    pub(crate) part: Option<u64>,
    pub(crate) control: Arc<Control>,
    /// Where snapshots go.
    pub(crate) snapshots: SnapshotSender,
}

impl Task {
    pub(super) fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// Connections that the load keeps, or goes by; none where they come by plan.
    pub(super) fn held(&self) -> u32 {
        match self.pace {
            Pace::Closed { .. } | Pace::Held { .. } | Pace::Open { .. } => self.connections,
            Pace::Sessions { .. } => 0,
        }
    }
}

/// The instants that all workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Load begins: the start of the warm-up.
    pub(crate) load_ns: u64,
    /// The window; its end is `u64::MAX` for a run by count alone.
    pub(crate) window: Window,
}

/// What a worker gives at the end of a round.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) recorder: Recorder,
    /// What was not shown yet; absent where nobody looks on.
    pub(crate) rest: Option<Snapshot>,
    /// When the last request was answered or failed, 0 for none.
    pub(crate) last_done_ns: u64,
    /// Local addresses that were used, of those that brunt chose.
    pub(crate) sources_used: usize,
    /// What made the requests; absent where they were those of the plan.
    pub(crate) generated: Option<Box<Generated>>,
}

/// What a worker does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Connections are opened; nothing is sent.
    Setup,
    /// Requests are sent.
    Load,
    /// What is in flight is waited for; nothing is sent, nothing is opened.
    Drain,
}

/// What the worker does at present, and the edges of the window.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) mode: Mode,
    pub(super) measure_from_ns: u64,
    pub(super) window_end_ns: u64,
}

impl Timeline {
    /// Of a round that begins with its set-up, before its window is known.
    pub(super) fn new() -> Self {
        Self {
            mode: Mode::Setup,
            measure_from_ns: u64::MAX,
            window_end_ns: u64::MAX,
        }
    }

    pub(super) fn set_window(&mut self, window: Window) {
        (self.measure_from_ns, self.window_end_ns) = (window.start_ns, window.end_ns);
    }

    /// The window ends at `end_ns`. Gives whether that is earlier than it was to.
    pub(super) fn end_by(&mut self, end_ns: u64) -> bool {
        let is_earlier = end_ns < self.window_end_ns;
        self.window_end_ns = self.window_end_ns.min(end_ns);
        is_earlier
    }

    pub(super) fn enter(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Whether something may be sent at `now_ns`.
    #[inline]
    pub(super) fn sends_at(&self, now_ns: u64) -> bool {
        self.mode == Mode::Load && now_ns < self.window_end_ns
    }

    /// Whether the window has begun by `now_ns`.
    #[inline]
    pub(super) fn has_begun(&self, now_ns: u64) -> bool {
        now_ns >= self.measure_from_ns
    }

    /// Whether what is done at `at_ns` is measured.
    #[inline]
    pub(super) fn measures(&self, at_ns: u64) -> bool {
        self.sends_at(at_ns) && self.has_begun(at_ns)
    }

    /// What is skipped at `now_ns` will have had no reply by then: by the end of the window, where
    /// that is known.
    #[inline]
    pub(super) fn unanswered_until_ns(&self, now_ns: u64) -> u64 {
        if self.is_endless() {
            now_ns
        } else {
            self.window_end_ns
        }
    }

    /// Whether the window has no end of its own.
    #[inline]
    pub(super) fn is_endless(&self) -> bool {
        self.window_end_ns == u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_in_the_window_is_measured_and_nothing_is_sent_after_it() {
        let mut timeline = Timeline::new();
        assert!(timeline.is_endless() && !timeline.sends_at(0));
        let window = Window {
            start_ns: 10,
            end_ns: 20,
        };
        timeline.set_window(window);
        timeline.enter(Mode::Load);
        let at = [9, 10, 19, 20];
        assert_eq!(
            at.map(|at_ns| timeline.sends_at(at_ns)),
            [true, true, true, false]
        );
        assert_eq!(
            at.map(|at_ns| timeline.measures(at_ns)),
            [false, true, true, false]
        );
        assert!(!timeline.end_by(25) && timeline.end_by(15));
        assert!(!timeline.measures(15));
        timeline.enter(Mode::Drain);
        assert!(!timeline.sends_at(12));
    }
}
