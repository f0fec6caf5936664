//! The figures of the requests of a list, by their names.

use brunt_judge::{Quantile, ResponseQuantiles};
use brunt_record::{NameRecord, Run};
use serde::Serialize;

use super::Outcomes;

/// The outcome of the requests of one name that were issued in the window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NameFigures {
    /// Method and path, GET left out.
    pub name: String,
    /// Sent in all phases.
    pub requests_sent: u64,
    /// What became of them.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// Median of the response time of the successes, nanoseconds, to two significant digits. Left
    /// out, as the others, where there are too few or where it depends on what was never answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_p50_ns: Option<u64>,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_p99_ns: Option<u64>,
    /// Maximum, exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_max_ns: Option<u64>,
}

impl NameFigures {
    /// The figures of all names, in the order of the list.
    pub(super) fn all(run: &Run) -> Vec<Self> {
        run.names.iter().map(Self::new).collect()
    }

    pub(crate) fn new(record: &NameRecord) -> Self {
        let known = |q| match record.response_quantile(q) {
            Quantile::Known { ns, .. } => Some(ns),
            Quantile::AtLeast { .. } | Quantile::TooFew { .. } => None,
        };
        let unfinished = record.unfinished.max_ns().unwrap_or(0);
        let population = record.population;
        Self {
            name: record.name.clone(),
            requests_sent: record.requests_sent,
            outcomes: Outcomes::of(population, record.response.count(), record.errors()),
            response_p50_ns: known(0.5),
            response_p99_ns: known(0.99),
            response_max_ns: record.response.max_ns().filter(|&ns| ns >= unfinished),
        }
    }
}
