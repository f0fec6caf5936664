//! Figures of the requests of a list, or of a generator, by their names.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merge_fields};
use crate::sparse::grown_bytes;
use crate::{FailureKind, Population, SparseHistogram};

/// Most names of a run: as many as a list may have requests.
pub const NAMES_MAX: usize = 1 << 18;
/// Most names that a generator gives its requests and that are kept apart: the others share one.
pub const GENERATED_NAMES_MAX: usize = 4_096;
/// The number of requests that a generator gave no name.
pub const NO_NAME: u32 = u32::MAX;
/// What requests without a name stand under, where others have one.
pub(crate) const UNNAMED: &str = "(no name)";
/// The name under which requests stand whose names are beyond those that are kept apart.
pub(crate) const OTHER_NAMES: &str = "(other names)";

/// How often a status was the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCount {
    /// The status.
    pub status: u16,
    /// How often.
    pub count: u64,
}

/// How often a request failed in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The way.
    pub kind: FailureKind,
    /// How often.
    pub count: u64,
}

/// Most buckets of the response times of all names together, in one worker. Where each may have
/// fewer than it has filled, neighbours are counted together.
const NAMES_BUCKETS_MAX: usize = 1 << 23;
/// Most buckets of one name, where there are few names.
const NAME_BUCKETS_MAX: usize = 8_192;

/// Most buckets of the response times of a name among so many.
pub(crate) fn name_buckets_max(names: usize) -> usize {
    (NAMES_BUCKETS_MAX / names.max(1)).min(NAME_BUCKETS_MAX)
}

/// The outcome of the requests of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRecord {
    /// The name: method and path, GET left out.
    pub name: String,
    /// Sent, in all phases.
    pub requests_sent: u64,
    /// The outcome of those that were issued in the window.
    pub population: Population,
    /// Answers to the requests that were issued in the window, by status.
    pub statuses: Vec<StatusCount>,
    /// Failures of the requests that were issued in the window, by kind.
    pub failures: Vec<FailureCount>,
    /// Response times of the successful replies (status below 400) to requests that were issued in
    /// the window.
    pub response: SparseHistogram,
    /// Lower bounds of the response times of those that timed out, or had no outcome when drain
    /// ended.
    pub unfinished: SparseHistogram,
}

impl NameRecord {
    /// A record with this name, under which nothing was sent.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Replies with an error status (400 and above).
    pub fn errors(&self) -> u64 {
        let recorded = self.population.recorded;
        recorded.saturating_sub(self.response.count())
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        merge_fields!(self, other: requests_sent population response unfinished);
        for of in &other.statuses {
            self.add_status(of.status, of.count);
        }
        for of in &other.failures {
            self.add_failure(of.kind, of.count);
        }
    }

    /// Counts answers with a status. Few are different: they are kept in order.
    pub(crate) fn add_status(&mut self, status: u16, count: u64) {
        let statuses = &mut self.statuses;
        match statuses.binary_search_by_key(&status, |of| of.status) {
            Ok(place) => statuses[place].count.merge(&count),
            Err(place) => {
                // Most names have one.
                statuses.reserve_exact(1);
                statuses.insert(place, StatusCount { status, count });
            }
        }
    }

    /// Counts failures of a kind, in the order of kinds.
    pub(crate) fn add_failure(&mut self, kind: FailureKind, count: u64) {
        let failures = &mut self.failures;
        match failures.binary_search_by_key(&kind, |of| of.kind) {
            Ok(place) => failures[place].count.merge(&count),
            Err(place) => failures.insert(place, FailureCount { kind, count }),
        }
    }

    /// Keeps at most so many buckets of each histogram.
    fn coarsen(&mut self, buckets_max: usize) {
        self.response.coarsen(buckets_max);
        self.unfinished.coarsen(buckets_max);
    }

    /// Bytes that it takes in memory, at most.
    pub fn held_bytes_max(&self) -> usize {
        let lists = grown_bytes(&self.statuses) + grown_bytes(&self.failures);
        let histograms = self.response.held_bytes_max() + self.unfinished.held_bytes_max();
        size_of::<Self>() + self.name.len() + lists + histograms
    }
}

/// Adds the records of another worker: those of a list, which have no names yet and the same
/// places, or those of a generator, by their names.
pub fn merge_names(names: &mut Vec<NameRecord>, others: Vec<NameRecord>) {
    if names.is_empty() {
        *names = others;
        return;
    }
    if others.iter().all(|other| other.name.is_empty()) {
        merge_alike(names, &others);
        return;
    }
    merge_by_name(names, others);
}

/// Adds records with the same places.
pub(crate) fn merge_alike(names: &mut [NameRecord], others: &[NameRecord]) {
    let buckets_max = name_buckets_max(names.len());
    for (name, other) in names.iter_mut().zip(others) {
        name.merge(other);
        name.coarsen(buckets_max);
    }
}

pub(crate) fn merge_by_name(names: &mut Vec<NameRecord>, others: Vec<NameRecord>) {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, name) in names.iter().enumerate() {
        places.insert(name.name.clone(), place);
    }
    for mut other in others {
        if names.len() > GENERATED_NAMES_MAX && !places.contains_key(&other.name) {
            other.name = OTHER_NAMES.into();
        }
        match places.get(&other.name) {
            Some(&place) => names[place].merge(&other),
            None => {
                places.insert(other.name.clone(), names.len());
                names.push(other);
            }
        }
    }
}

/// Forgets the figures of generated requests of which none has a name: they are those of the run.
pub fn forget_unnamed(names: &mut Vec<NameRecord>) {
    if names.iter().all(|name| name.name == UNNAMED) {
        names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a name takes in a worker, while little is known of it.
    #[test]
    fn a_name_is_small() {
        assert_eq!(size_of::<NameRecord>(), 160);
        let mut record = NameRecord::default();
        record.add_status(200, 1);
        record.response.record(1_000);
        assert_eq!(record.held_bytes_max(), 288);
        assert_eq!(record.statuses.capacity(), 1);
        record.add_status(200, 3);
        for ns in [2_000, 3_000, 4_000] {
            record.response.record(ns);
        }
        assert!(record.held_bytes_max() <= 336);
    }

    #[test]
    fn a_name_is_stored_whole() {
        let mut record = NameRecord::named("POST /a");
        let read = |record: &NameRecord| {
            let stored = serde_json::to_string(record).expect("it can be stored");
            let read: NameRecord = serde_json::from_str(&stored).expect("its own form");
            assert_eq!(read, *record, "{stored}");
            stored
        };
        read(&record);
        record.requests_sent = 9;
        (record.population.issued, record.population.recorded) = (8, 5);
        record.add_status(200, 1);
        read(&record);
        record.add_status(404, 3);
        record.add_status(200, 1);
        record.response.record(1_000);
        (record.population.failed, record.population.censored) = (1, 2);
        record.add_failure(FailureKind::TimedOut, 1);
        record.unfinished.record(7_000);
        let stored = read(&record);
        let expected =
            r#"{"name":"POST /a","requests_sent":9,"population":{"issued":8,"recorded":5,"#;
        assert!(stored.starts_with(expected), "{stored}");
        assert!(stored.contains(r#"[{"status":200,"count":2},{"status":404,"count":3}]"#));
        let mut twice = record.clone();
        twice.merge(&record);
        assert_eq!(twice.population.failed, 2);
        assert_eq!(twice.unfinished.max_ns(), Some(7_000));
        assert_eq!(twice.errors(), 8);
    }
}
