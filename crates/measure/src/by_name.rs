//! Figures of the requests of a list, by their names.

use serde::{Deserialize, Serialize};

use crate::quantile::quantile_of;
use crate::recorder::{Answer, RequestTiming};
use crate::{FailureKind, Population, Quantile, SparseHistogram, Window, bounded};

/// Most names of a run: as many as a list may have requests.
pub const NAMES_MAX: usize = 1 << 18;
/// Most different statuses, and most kinds of failure, that are kept apart under one name.
const KINDS_MAX: usize = 1_000;

/// How often a status was the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusCount {
    /// The status.
    pub status: u16,
    /// How often.
    pub count: u64,
}

/// How often a request failed in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureCount {
    /// The way.
    pub kind: FailureKind,
    /// How often.
    pub count: u64,
}

/// The outcome of the requests of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NameRecord {
    /// The name: method and path, GET left out.
    pub name: String,
    /// Sent, in all phases.
    pub requests_sent: u64,
    /// The outcome of those that were issued in the window.
    pub population: Population,
    /// Of those, answers by status.
    #[serde(deserialize_with = "bounded::list::<_, _, KINDS_MAX>")]
    pub statuses: Vec<StatusCount>,
    /// Of those, failures by kind.
    #[serde(deserialize_with = "bounded::list::<_, _, KINDS_MAX>")]
    pub failures: Vec<FailureCount>,
    /// Of those, response times of successful replies (status below 400).
    pub response: SparseHistogram,
    /// Lower bounds of the response times of those that timed out, or had no outcome when drain
    /// ended.
    pub unfinished: SparseHistogram,
}

impl NameRecord {
    /// Replies with an error status (400 and above).
    pub fn errors(&self) -> u64 {
        self.population
            .recorded
            .saturating_sub(self.response.count())
    }

    /// The `q`-quantile of the response time of successful replies, with what is known of those
    /// that never came. It has no interval.
    pub fn response_quantile(&self, q: f64) -> Quantile {
        quantile_of(&self.response.expand(), &self.unfinished.expand(), q)
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        self.requests_sent = self.requests_sent.saturating_add(other.requests_sent);
        self.population.merge(&other.population);
        for of in &other.statuses {
            add_status(&mut self.statuses, of.status, of.count);
        }
        for of in &other.failures {
            add_failure(&mut self.failures, of.kind, of.count);
        }
        self.response.merge(&other.response);
        self.unfinished.merge(&other.unfinished);
    }
}

/// Few are different: they are looked for one by one, and kept in order.
fn add_status(statuses: &mut Vec<StatusCount>, status: u16, count: u64) {
    match statuses.binary_search_by_key(&status, |of| of.status) {
        Ok(place) => statuses[place].count = statuses[place].count.saturating_add(count),
        Err(place) => statuses.insert(place, StatusCount { status, count }),
    }
}

fn add_failure(failures: &mut Vec<FailureCount>, kind: FailureKind, count: u64) {
    match failures.binary_search_by_key(&kind, |of| of.kind) {
        Ok(place) => failures[place].count = failures[place].count.saturating_add(count),
        Err(place) => failures.insert(place, FailureCount { kind, count }),
    }
}

/// Adds the records of another worker, which have the same names in the same order.
pub fn merge_names(names: &mut Vec<NameRecord>, others: Vec<NameRecord>) {
    if names.is_empty() {
        *names = others;
        return;
    }
    for (name, other) in names.iter_mut().zip(&others) {
        name.merge(other);
    }
}

/// Records by name, where requests have names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameRecorder {
    /// Per request, the place of its name; empty where no figures are kept.
    name_of: std::sync::Arc<[u32]>,
    records: Vec<NameRecord>,
}

impl NameRecorder {
    pub(crate) fn new(name_of: std::sync::Arc<[u32]>, names: usize) -> Self {
        Self {
            name_of,
            records: vec![NameRecord::default(); names],
        }
    }

    #[inline]
    fn of(&mut self, timing: RequestTiming) -> Option<&mut NameRecord> {
        if self.records.is_empty() {
            return None;
        }
        let name = *self.name_of.get(timing.request as usize)?;
        self.records.get_mut(name as usize)
    }

    #[inline]
    pub(crate) fn sent(&mut self, timing: RequestTiming, window: Window) {
        if let Some(record) = self.of(timing) {
            record.requests_sent += 1;
            record.population.issued += u64::from(window.contains(timing.due_ns));
        }
    }

    /// The request was due in the window.
    #[inline]
    pub(crate) fn reply(&mut self, timing: RequestTiming, done_ns: u64, answer: &Answer) {
        if let Some(record) = self.of(timing) {
            record.population.recorded += 1;
            if let Some(status) = answer.outcome.status() {
                add_status(&mut record.statuses, status, 1);
            }
            if answer.outcome.is_success() {
                let response_ns = done_ns.saturating_sub(timing.due_ns);
                record.response.record(response_ns);
            }
        }
    }

    pub(crate) fn failed(
        &mut self,
        timing: RequestTiming,
        at_ns: u64,
        kind: FailureKind,
        window: Window,
    ) {
        if window.contains(timing.due_ns)
            && let Some(record) = self.of(timing)
        {
            record.population.failed += 1;
            add_failure(&mut record.failures, kind, 1);
            if kind == FailureKind::TimedOut {
                let bound_ns = at_ns.saturating_sub(timing.due_ns);
                record.unfinished.record(bound_ns);
            }
        }
    }

    pub(crate) fn censored(&mut self, timing: RequestTiming, at_ns: u64, window: Window) {
        if window.contains(timing.due_ns)
            && let Some(record) = self.of(timing)
        {
            record.population.censored += 1;
            let bound_ns = at_ns.saturating_sub(timing.due_ns);
            record.unfinished.record(bound_ns);
        }
    }

    pub(crate) fn finish(self) -> Vec<NameRecord> {
        self.records
    }
}
