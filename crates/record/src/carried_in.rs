//! Requests that were in flight when the window began, and their outcome in it.

use serde::{Deserialize, Serialize};

/// The requests of warm-up that were in flight when the window began. None of them is one of the
/// window's [`Population`](crate::Population), but the window shows how they fared:
/// `in_flight = answered + failed + unanswered`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedIn {
    /// Sent before the window, and neither answered nor failed when it began.
    pub in_flight: u64,
    /// Requests in flight at the window's beginning that were answered in the window, whatever the
    /// status.
    pub answered: u64,
    /// Requests in flight at the window's beginning that failed in the window.
    pub failed: u64,
    /// Requests in flight at the window's beginning that still were when it ended: each took longer
    /// than the window.
    pub unanswered: u64,
    /// The time in the window that they were in flight, summed over them, nanoseconds.
    pub in_flight_ns: u64,
}

impl CarriedIn {
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
        self.answered = self.answered.saturating_add(other.answered);
        self.failed = self.failed.saturating_add(other.failed);
        self.unanswered = self.unanswered.saturating_add(other.unanswered);
        self.in_flight_ns = self.in_flight_ns.saturating_add(other.in_flight_ns);
    }
}
