//! Whether the agents of a run loaded the server at the same time.

use super::{AgreedClock, Run};

/// Overlap of the agents' windows, as a share of their length, from which on they are one load.
const ONE_LOAD_LEAST: f64 = 0.9;

/// For how long the windows of all agents lasted at once: of a fleet at least, by the clocks that
/// its agents agreed on, else by their machines' wall clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowOverlap {
    /// The common part, nanoseconds.
    pub shared_ns: u64,
    /// The common part as a share of the window's length, 0 to 1.
    pub share: f64,
}

impl WindowOverlap {
    /// Whether rates of the agents may be added up.
    pub fn is_one_load(&self) -> bool {
        self.share >= ONE_LOAD_LEAST
    }
}

impl Run {
    /// For how long all agents measured at once. Absent for one agent.
    pub fn overlap(&self) -> Option<WindowOverlap> {
        if self.is_plain() {
            return None;
        }
        if let Some(shared_ns) = self.agreed_overlap_ns() {
            return Some(self.overlapping(shared_ns));
        }
        let starts = || {
            let agents = self.agents.iter();
            agents.map(|agent| agent.clock.window_start_unix_ms)
        };
        let apart_ms = starts().max()?.saturating_sub(starts().min()?);
        let shared_ns = self
            .window_ns
            .saturating_sub(apart_ms.saturating_mul(1_000_000));
        Some(self.overlapping(shared_ns))
    }

    fn overlapping(&self, shared_ns: u64) -> WindowOverlap {
        WindowOverlap {
            shared_ns,
            share: (shared_ns as f64 / self.window_ns.max(1) as f64).min(1.0),
        }
    }

    /// For how long all agents measured at once in any case, by the clocks that they agreed on,
    /// nanoseconds. Absent where one agreed on none.
    pub fn agreed_overlap_ns(&self) -> Option<u64> {
        let agents = self.agents.iter();
        let clocks = agents.map(|agent| agent.fleet.as_ref()?.clock);
        let clocks: Vec<AgreedClock> = clocks.collect::<Option<_>>()?;
        let sure = || clocks.iter().map(|clock| clock.sure_ns(self.window_ns));
        let start_ns = sure().map(|(start_ns, _)| start_ns).max()?;
        let end_ns = sure().map(|(_, end_ns)| end_ns).min()?;
        let shared_ns = u64::try_from(end_ns.saturating_sub(start_ns)).unwrap_or(0);
        Some(shared_ns.min(self.window_ns))
    }

    /// Why the agents' rates may not be added up. Absent where they may, and for one agent.
    pub fn not_one_load(&self) -> Option<String> {
        let overlap = self.overlap().filter(|overlap| !overlap.is_one_load())?;
        Some(format!(
            "the windows of the {} agents overlapped by {:.0} %: they are not one load",
            self.agents.len(),
            overlap.share * 100.0
        ))
    }
}
