//! The clock of one agent: the phases of its part of the run, and labels of wall time.

use serde::{Deserialize, Serialize};

use crate::Once;

/// The edges of the phases, each written once; consecutive, so that no wall time is left out.
/// Nanoseconds from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEdges {
    /// Arguments are read, limits checked; workers are about to start. Start-up ends here.
    pub setup_start: Once,
    /// All workers left the barrier. Set-up ends here.
    pub warmup_start: Once,
    /// The window begins. Warm-up ends here.
    pub measure_start: Once,
    /// The window ends.
    pub measure_end: Once,
    /// The end that was planned, where the run was one by duration.
    pub measure_end_planned: Once,
    /// The last worker was done. Drain ends here.
    pub drain_end: Once,
    /// Results are merged. Only printing is left.
    pub finished: Once,
}

impl RunEdges {
    /// These instants, counted from `origin_ns`.
    #[must_use]
    pub fn since(self, origin_ns: u64) -> Self {
        Self {
            setup_start: self.setup_start.since(origin_ns),
            warmup_start: self.warmup_start.since(origin_ns),
            measure_start: self.measure_start.since(origin_ns),
            measure_end: self.measure_end.since(origin_ns),
            measure_end_planned: self.measure_end_planned.since(origin_ns),
            drain_end: self.drain_end.since(origin_ns),
            finished: self.finished.since(origin_ns),
        }
    }
}

/// When an agent ran. Its instants count from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClock {
    /// The wall clock when the window began, milliseconds since 1970-01-01 UTC. A label: no figure
    /// is computed from it. Several agents are laid side by side by it.
    pub window_start_unix_ms: u64,
    /// How far the wall clock moved against the monotonic one over the run, nanoseconds. A label.
    pub stepped_ns: i64,
    /// When the process started, nanoseconds from the start of the window: not above 0.
    pub process_start_ns: i64,
    /// Monotonic time from the start of the process until the results were merged, nanoseconds.
    pub process_ns: u64,
    /// The edges of the phases.
    pub edges: RunEdges,
}

impl AgentClock {
    /// The wall clock when the process started, milliseconds since 1970-01-01 UTC.
    pub fn started_unix_ms(&self) -> u64 {
        self.window_start_unix_ms
            .saturating_add_signed(self.process_start_ns.div_euclid(1_000_000))
    }

    /// Length of the drain, nanoseconds. Absent where it has no beginning or no end.
    pub fn drain_ns(&self) -> Option<u64> {
        let end_ns = self.edges.drain_end.get()?;
        Some(after_ns(self.edges.measure_end.get()?, end_ns))
    }
}

/// Time from `from_ns` to `to_ns`; 0 where that is earlier.
pub fn after_ns(from_ns: i64, to_ns: i64) -> u64 {
    u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0)
}
