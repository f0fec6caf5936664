//! The window of a run.

/// The interval that every rate is counted in and divided by, on the clock of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}
