//! The window of a run, and where instants lie in it.

use crate::Phase;

/// The interval that every rate is counted in and divided by, on the clock of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first instant of the window.
    pub start_ns: u64,
    /// The first instant after it.
    pub end_ns: u64,
}

impl Window {
    /// The length of the window, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    #[inline]
    pub(crate) fn contains(&self, at_ns: u64) -> bool {
        self.phase(at_ns) == Phase::Measure
    }

    #[inline]
    pub(crate) fn offset(&self, at_ns: u64) -> Option<u64> {
        self.contains(at_ns).then(|| at_ns - self.start_ns)
    }

    /// The offset of the instant of the window that is nearest to `at_ns`.
    pub(crate) fn nearest_offset(&self, at_ns: u64) -> u64 {
        at_ns
            .min(self.end_ns.saturating_sub(1))
            .saturating_sub(self.start_ns)
    }

    /// How much of `[from_ns, to_ns)` lies in the window.
    pub(crate) fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns
            .min(self.end_ns)
            .saturating_sub(from_ns.max(self.start_ns))
    }

    #[inline]
    pub(crate) fn phase(&self, at_ns: u64) -> Phase {
        if at_ns < self.start_ns {
            Phase::Before
        } else if at_ns < self.end_ns {
            Phase::Measure
        } else {
            Phase::After
        }
    }
}
