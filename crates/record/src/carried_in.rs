//! Requests that were in flight when the window began, and their outcome in it.

use crate::merged::{Merge, merges};
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

merges!(CarriedIn: in_flight answered failed unanswered in_flight_ns);
