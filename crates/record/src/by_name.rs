//! Figures of the requests of a list, or of a generator, by their names.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merge_fields};
use crate::{Population, SparseHistogram};

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
    }

    /// Keeps at most so many buckets of each histogram.
    fn coarsen(&mut self, buckets_max: usize) {
        self.response.coarsen(buckets_max);
        self.unfinished.coarsen(buckets_max);
    }

    /// Bytes that it takes in memory, at most.
    pub fn held_bytes_max(&self) -> usize {
        let histograms = self.response.held_bytes_max() + self.unfinished.held_bytes_max();
        size_of::<Self>() + self.name.len() + histograms
    }
}

/// Adds the records of another worker: those of a list, which have no names yet and the same
/// places, or those of a generator, by their names.
pub fn merge_names(names: &mut Vec<NameRecord>, others: Vec<NameRecord>) {
    if names.is_empty() {
        *names = others;
    } else if others.iter().all(|other| other.name.is_empty()) {
        merge_alike(names, &others);
    } else {
        merge_by_name(names, others);
    }
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
        assert_eq!(size_of::<NameRecord>(), 112);
        let mut record = NameRecord::default();
        record.response.record(1_000);
        assert_eq!(record.held_bytes_max(), 192);
        for ns in [2_000, 3_000, 4_000] {
            record.response.record(ns);
        }
        assert!(record.held_bytes_max() <= 240);
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
        record.response.record(1_000);
        (record.population.failed, record.population.censored) = (1, 2);
        record.unfinished.record(7_000);
        let stored = read(&record);
        let expected =
            r#"{"name":"POST /a","requests_sent":9,"population":{"issued":8,"recorded":5,"#;
        assert!(stored.starts_with(expected), "{stored}");
        let mut twice = record.clone();
        twice.merge(&record);
        assert_eq!(twice.population.failed, 2);
        assert_eq!(twice.unfinished.max_ns(), Some(7_000));
        assert_eq!(twice.errors(), 8);
    }
}
