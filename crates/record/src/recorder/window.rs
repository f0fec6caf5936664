//! Where instants lie in a window.

use crate::{Phase, Window};

impl Window {
    #[inline]
    pub(crate) fn contains(&self, at_ns: u64) -> bool {
        self.phase(at_ns) == Phase::Measure
    }

    #[inline]
    pub(super) fn offset(&self, at_ns: u64) -> Option<u64> {
        self.contains(at_ns).then(|| at_ns - self.start_ns)
    }

    /// The offset of the instant of the window that is nearest to `at_ns`.
    pub(super) fn nearest_offset(&self, at_ns: u64) -> u64 {
        at_ns
            .min(self.end_ns.saturating_sub(1))
            .saturating_sub(self.start_ns)
    }

    /// How much of `[from_ns, to_ns)` lies in the window.
    pub(super) fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns
            .min(self.end_ns)
            .saturating_sub(from_ns.max(self.start_ns))
    }

    #[inline]
    pub(super) fn phase(&self, at_ns: u64) -> Phase {
        if at_ns < self.start_ns {
            Phase::Before
        } else if at_ns < self.end_ns {
            Phase::Measure
        } else {
            Phase::After
        }
    }
}
