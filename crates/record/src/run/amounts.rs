//! The amounts of a plan, which are divided among agents and added up by merging.

use serde::{Deserialize, Serialize};

use crate::bounded;

/// Most stages of a schedule.
pub(super) const STAGES_MAX: usize = 1_000;

/// The rates of a stage of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageRates {
    /// Arrivals per second at its start.
    pub from_per_s: f64,
    /// Arrivals per second at its end.
    pub to_per_s: f64,
}

/// The amounts of a plan, or an agent's share of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amounts {
    /// Connections held at once; with a schedule of connections, most at once.
    pub connections: u32,
    /// Connections that there can be in an open loop; null otherwise.
    pub connections_max: Option<u32>,
    /// Worker threads.
    pub workers: u32,
    /// Measured requests; null when only a duration was given.
    pub requests: Option<u64>,
    /// Connections that set-up opens per second; null for no limit.
    pub connect_per_s: Option<f64>,
    /// Arrivals per second throughout; null with stages or without a schedule.
    pub rate_per_s: Option<f64>,
    /// Arrivals per second at the start and the end of each stage; empty without stages.
    #[serde(deserialize_with = "bounded::list::<_, _, STAGES_MAX>")]
    pub stages: Vec<StageRates>,
    /// Arrivals that can wait at once; null without a schedule.
    pub queue_max: Option<u32>,
}

impl Amounts {
    /// Adds those of another agent, which are of the same kind.
    pub fn add(&mut self, other: &Self) {
        fn both<T>(own: &mut Option<T>, other: Option<T>, sum: impl Fn(T, T) -> T) {
            *own = own.take().zip(other).map(|(own, other)| sum(own, other));
        }
        self.connections = self.connections.saturating_add(other.connections);
        both(
            &mut self.connections_max,
            other.connections_max,
            u32::saturating_add,
        );
        self.workers = self.workers.saturating_add(other.workers);
        both(&mut self.requests, other.requests, u64::saturating_add);
        both(&mut self.connect_per_s, other.connect_per_s, rate_sum);
        both(&mut self.rate_per_s, other.rate_per_s, rate_sum);
        for (own, other) in self.stages.iter_mut().zip(&other.stages) {
            own.from_per_s = rate_sum(own.from_per_s, other.from_per_s);
            own.to_per_s = rate_sum(own.to_per_s, other.to_per_s);
        }
        both(&mut self.queue_max, other.queue_max, u32::saturating_add);
    }

    /// Connections that there can be at once.
    pub fn connections_most(&self) -> u32 {
        self.connections_max.unwrap_or(0).max(self.connections)
    }
}

/// A sum that is a number, whatever a stored run says.
fn rate_sum(own: f64, other: f64) -> f64 {
    (own + other).clamp(f64::MIN, f64::MAX)
}
