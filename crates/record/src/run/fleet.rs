//! What the coordinator of a fleet knows of its agents.

use serde::{Deserialize, Serialize};

/// How an agent's window lay to the one that all agreed on, by the coordinator's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedClock {
    /// How much later it began, nanoseconds.
    pub start_skew_ns: i64,
    /// How far off that may be, nanoseconds.
    pub start_bound_ns: u64,
    /// How much later it ended, nanoseconds: the rest is drift.
    pub end_skew_ns: i64,
    /// How far off that may be, nanoseconds.
    pub end_bound_ns: u64,
    /// Exchanges between the two clocks.
    pub exchanges: u32,
    /// The shortest round trip of these, nanoseconds.
    pub round_trip_ns_min: u64,
}

/// An agent as the coordinator of its fleet knows it. What follows from its part alone is kept, for
/// merging leaves only what all recorded together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetAgent {
    /// What it is called: its machine's name, as a rule.
    pub name: String,
    /// How its window lay; null where its clock contradicted itself.
    pub clock: Option<AgreedClock>,
    /// The 99th percentile of its response times, nanoseconds; null with too few of them.
    pub response_p99_ns: Option<u64>,
    /// Brunt's own part of its response times, 0 to 1; null where that is not known.
    pub own_share: Option<f64>,
    /// What limited it by itself, such as `client_limited`.
    pub verdict: String,
    /// The invariants that its part broke by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// An agent that gave no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostAgent {
    /// What it is called.
    pub name: String,
    /// The number of its first worker.
    pub first_worker: u32,
    /// Its workers.
    pub workers: u32,
    /// What is known of that.
    pub reason: String,
    /// When that was known, nanoseconds from the start of the window.
    pub at_ns: i64,
}

impl AgreedClock {
    /// The part of a window of `window_ns` that it had in any case, nanoseconds from its start:
    /// from when on, and until when.
    pub fn sure_ns(&self, window_ns: u64) -> (i64, i64) {
        let bound = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let end_ns = bound(window_ns).saturating_add(self.end_skew_ns);
        (
            self.start_skew_ns
                .saturating_add(bound(self.start_bound_ns)),
            end_ns.saturating_sub(bound(self.end_bound_ns)),
        )
    }

    /// How much longer its window was by the coordinator's clock than by its own, nanoseconds.
    pub fn drift_ns(&self) -> i64 {
        self.end_skew_ns.saturating_sub(self.start_skew_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sure_lies_inside_of_the_bounds() {
        let clock = AgreedClock {
            start_skew_ns: -20,
            start_bound_ns: 50,
            end_skew_ns: 100,
            end_bound_ns: 60,
            ..AgreedClock::default()
        };
        assert_eq!(clock.sure_ns(1_000), (30, 1_040));
        assert_eq!(clock.drift_ns(), 120);
    }
}
