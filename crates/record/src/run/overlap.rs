//! Whether the agents of a run loaded the server at the same time.

use super::Run;

/// Overlap of the agents' windows, as a share of their length, from which on they are one load.
const ONE_LOAD_LEAST: f64 = 0.9;

/// For how long the windows of all agents lasted at once, by their machines' wall clocks.
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
        let starts = || {
            let agents = self.agents.iter();
            agents.map(|agent| agent.clock.window_start_unix_ms)
        };
        let apart_ms = starts().max()?.saturating_sub(starts().min()?);
        let shared_ns = self
            .window_ns
            .saturating_sub(apart_ms.saturating_mul(1_000_000));
        Some(WindowOverlap {
            shared_ns,
            share: shared_ns as f64 / self.window_ns.max(1) as f64,
        })
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
