//! What the world outside may do to a run while it lasts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Longest sleep of a worker: it notices an interrupt within this time.
pub(crate) const NOTICE_NS: u64 = 50_000_000;
/// From an interrupt to the end of the window: longer than any worker sleeps.
const INTERRUPT_MARGIN_NS: u64 = NOTICE_NS + 10_000_000;
/// From an interrupt to the end of drain, at most.
const INTERRUPTED_DRAIN_NS: u64 = 1_000_000_000;

/// The handle to interrupt a run by. Workers look at it once a turn.
#[derive(Debug, Default)]
pub struct Control {
    interrupted: AtomicBool,
    hurried: AtomicBool,
    aborted: AtomicBool,
    /// When the interrupt took effect, `u64::MAX` for not yet.
    interrupted_ns: Later,
    /// The end of the window that several agents agreed on before its time, `u64::MAX` for none.
    agreed_end_ns: Later,
    /// Whether a round that is ready waits for its start.
    holds_start: AtomicBool,
    /// When the load of the round that is ready begins, `u64::MAX` while that is not known.
    start_ns: Later,
    /// Whether a round by count that is done waits for its end.
    holds_end: AtomicBool,
    /// How long a round by count took that waits for its end, `u64::MAX` for none.
    done_window_ns: Later,
}

/// An instant or a length in nanoseconds, which is not known at first.
#[derive(Debug)]
struct Later(AtomicU64);

impl Default for Later {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Later {
    /// [`u64::MAX`] while it is not known.
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn known(&self) -> Option<u64> {
        Some(self.get()).filter(|&ns| ns < u64::MAX)
    }

    /// What is known, which is not known any more then.
    fn take(&self) -> Option<u64> {
        Some(self.0.swap(u64::MAX, Ordering::Relaxed)).filter(|&ns| ns < u64::MAX)
    }

    fn set(&self, ns: u64) {
        self.0.store(ns, Ordering::Relaxed);
    }

    /// The earliest counts.
    fn set_min(&self, ns: u64) {
        self.0.fetch_min(ns, Ordering::Relaxed);
    }
}

impl Control {
    /// Asks for the end of the measure phase, and of drain a second later at most. What was
    /// measured is the result. Only sets a flag: may be called by a signal handler.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Asks for the end of the measure phase without any drain. What was measured is the result.
    /// Only sets flags: may be called by a signal handler.
    pub fn hurry(&self) {
        self.hurried.store(true, Ordering::Relaxed);
        self.interrupt();
    }

    /// The window ends at this instant of the run's clock, if it would go on: agents that agree on
    /// it have windows of one length. It is to be known 60 ms before. What was measured is the
    /// result; replies are waited for as after [`Control::interrupt`]. Of a round by count that is
    /// done ([`Control::done_window_ns`]) it is the end of the window that all agents have.
    pub fn end_at(&self, end_ns: u64) {
        self.agreed_end_ns.set_min(end_ns);
    }

    /// Whether the run was ended before its time, in whatever way.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_interrupted() || self.agreed_end_ns.known().is_some()
    }

    /// Whether the end was asked for.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// From now on a round that is ready waits until its start is known ([`Control::start_at`]).
    pub fn hold_start(&self) {
        self.holds_start.store(true, Ordering::Relaxed);
    }

    /// The load of the next round whose start is held begins at this instant of the run's clock.
    pub fn start_at(&self, load_ns: u64) {
        self.start_ns.set(load_ns);
    }

    /// From now on a round by count that is done waits until its end is known
    /// ([`Control::end_at`]): that of the agent that takes longest.
    pub fn hold_end(&self) {
        self.holds_end.store(true, Ordering::Relaxed);
    }

    /// Whether rounds by count wait for their end.
    pub(crate) fn holds_end(&self) -> bool {
        self.holds_end.load(Ordering::Relaxed)
    }

    /// How long the window lasted until all that this agent has of a count was done, nanoseconds;
    /// absent unless it waits for its end.
    pub fn done_window_ns(&self) -> Option<u64> {
        self.done_window_ns.known()
    }

    /// All that this agent has of a count was done within a window of this length.
    pub(crate) fn is_done_after(&self, window_ns: u64) {
        self.done_window_ns.set(window_ns);
    }

    /// The end that several agents agreed on, once it is known.
    pub(crate) fn agreed_end_ns(&self) -> Option<u64> {
        self.agreed_end_ns.known()
    }

    /// Whether rounds wait for their start.
    pub(crate) fn holds_start(&self) -> bool {
        self.holds_start.load(Ordering::Relaxed)
    }

    /// When the load begins that was held, once that is known. It is known for one round.
    pub(crate) fn take_start(&self) -> Option<u64> {
        self.start_ns.take()
    }

    /// The interrupt takes effect: it came by `at_ns`, which is now, or in simulation an instant
    /// that no worker has reached.
    pub(crate) fn interrupted_at(&self, at_ns: u64) {
        self.interrupted_ns.set_min(at_ns);
    }

    /// Whether an interrupt has taken effect by `now_ns`.
    pub(crate) fn is_interrupted_by(&self, now_ns: u64) -> bool {
        now_ns >= self.interrupted_ns.get()
    }

    /// Forgets what the round before had.
    pub(crate) fn begin_round(&self) {
        self.done_window_ns.set(u64::MAX);
    }

    /// The end of the window that an interrupt or an agreement sets, `u64::MAX` for none. All
    /// workers know it before it comes.
    pub(crate) fn end_ns(&self) -> u64 {
        let interrupted_ns = self.interrupted_ns.get();
        let interrupted_ns = interrupted_ns.saturating_add(INTERRUPT_MARGIN_NS);
        let agreed_ns = self.agreed_end_ns.get();
        interrupted_ns.min(agreed_ns)
    }

    /// The end of drain that an interrupt sets, `u64::MAX` for none.
    pub(crate) fn drain_end_ns(&self) -> u64 {
        let interrupted_ns = self.interrupted_ns.get();
        let agreed_ns = self.agreed_end_ns.get();
        interrupted_ns
            .min(agreed_ns)
            .saturating_add(INTERRUPTED_DRAIN_NS)
    }

    /// Whether nothing is to be waited for any more.
    pub(crate) fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::Relaxed)
    }

    /// Makes the workers leave at once; there will be no result.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agreed_end_is_that_of_the_window_and_a_drain_follows() {
        let control = Control::default();
        assert_eq!(
            (control.end_ns(), control.drain_end_ns()),
            (u64::MAX, u64::MAX)
        );
        assert!(!control.is_cut_short());
        for (agreed_ns, end_ns) in [(5_000, 5_000), (9_000, 5_000), (4_000, 4_000)] {
            control.end_at(agreed_ns);
            assert_eq!(control.end_ns(), end_ns);
            assert_eq!(control.drain_end_ns(), end_ns + INTERRUPTED_DRAIN_NS);
        }
        assert!(control.is_cut_short() && !control.is_interrupted());
        // An interrupt that comes too late for it changes nothing.
        control.interrupted_at(4_000);
        assert_eq!(control.end_ns(), 4_000);
    }
}
