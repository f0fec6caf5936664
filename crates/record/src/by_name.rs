//! Figures of the requests of a list, or of a generator, by their names.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merge_fields};
use crate::sparse::grown_bytes;
use crate::{FailureKind, Name, Population, SparseHistogram};

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
pub fn name_buckets_max(names: usize) -> usize {
    (NAMES_BUCKETS_MAX / names.max(1)).min(NAME_BUCKETS_MAX)
}

/// The outcome of the requests of one name. It is small where all of them were answered alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredName", into = "StoredName")]
pub struct NameRecord {
    /// The name: method and path, GET left out.
    pub name: Name,
    /// Sent, in all phases.
    pub requests_sent: u64,
    pub(crate) issued: u64,
    pub(crate) recorded: u64,
    pub(crate) statuses: Statuses,
    /// Response times of the successful replies (status below 400) to requests that were issued in
    /// the window.
    pub response: SparseHistogram,
    /// The requests that were not answered; absent where all were.
    pub(crate) unanswered: Option<Box<Unanswered>>,
}

/// Answers by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Statuses {
    #[default]
    None,
    /// All had the same.
    One { status: u16, count: u64 },
    /// Several statuses, in ascending order.
    #[expect(
        clippy::box_collection,
        reason = "few names have it, and each name takes two words less"
    )]
    Several(Box<Vec<StatusCount>>),
}

/// What became of the requests that were not answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unanswered {
    pub(crate) failed: u64,
    pub(crate) censored: u64,
    pub(crate) failures: Vec<FailureCount>,
    /// Lower bounds of response times.
    pub(crate) bounds: SparseHistogram,
}

/// The outcome of the requests of one name, as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredName {
    /// The name: method and path, GET left out.
    name: Name,
    /// Sent, in all phases.
    requests_sent: u64,
    /// The outcome of those that were issued in the window.
    population: Population,
    /// Answers to the requests that were issued in the window, by status.
    statuses: Vec<StatusCount>,
    /// Failures of the requests that were issued in the window, by kind.
    failures: Vec<FailureCount>,
    /// Response times of the successful replies (status below 400) to requests that were issued in
    /// the window.
    response: SparseHistogram,
    /// Lower bounds of the response times of those that timed out, or had no outcome when drain
    /// ended.
    unfinished: SparseHistogram,
}

impl From<StoredName> for NameRecord {
    fn from(stored: StoredName) -> Self {
        let population = stored.population;
        let mut record = Self {
            name: stored.name,
            requests_sent: stored.requests_sent,
            issued: population.issued,
            recorded: population.recorded,
            response: stored.response,
            ..Self::default()
        };
        for of in stored.statuses {
            record.statuses.add(of.status, of.count);
        }
        let unanswered = Unanswered {
            failed: population.failed,
            censored: population.censored,
            failures: stored.failures,
            bounds: stored.unfinished,
        };
        if unanswered != Unanswered::default() {
            record.unanswered = Some(Box::new(unanswered));
        }
        record
    }
}

impl From<NameRecord> for StoredName {
    fn from(record: NameRecord) -> Self {
        let population = record.population();
        let unanswered = record.unanswered.map_or_else(Unanswered::default, |it| *it);
        Self {
            name: record.name,
            requests_sent: record.requests_sent,
            population,
            statuses: record.statuses.list(),
            failures: unanswered.failures,
            response: record.response,
            unfinished: unanswered.bounds,
        }
    }
}

impl NameRecord {
    /// A record with this name, under which nothing was sent.
    pub fn named(name: impl Into<Name>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The outcome of those that were issued in the window.
    pub fn population(&self) -> Population {
        let unanswered = self.unanswered.as_deref();
        Population {
            issued: self.issued,
            recorded: self.recorded,
            failed: unanswered.map_or(0, |it| it.failed),
            censored: unanswered.map_or(0, |it| it.censored),
        }
    }

    /// Answers to the requests that were issued in the window, by status.
    pub fn statuses(&self) -> Vec<StatusCount> {
        self.statuses.list()
    }

    /// Replies with an error status (400 and above).
    pub fn errors(&self) -> u64 {
        self.recorded.saturating_sub(self.response.count())
    }

    /// Lower bounds of the response times of those that timed out, or had no outcome when drain
    /// ended.
    pub fn unfinished(&self) -> SparseHistogram {
        let unanswered = self.unanswered.as_ref();
        unanswered.map_or_else(SparseHistogram::default, |it| it.bounds.clone())
    }

    /// The longest lower bound of the response time of one that timed out, or had no outcome when
    /// drain ended; absent where there is none.
    pub fn unfinished_max_ns(&self) -> Option<u64> {
        self.unanswered.as_ref().and_then(|it| it.bounds.max_ns())
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        merge_fields!(self, other: requests_sent issued recorded response);
        for of in other.statuses.list() {
            self.statuses.add(of.status, of.count);
        }
        if let Some(others) = &other.unanswered {
            let own = self.unanswered();
            merge_fields!(own, others: failed censored bounds);
            for of in &others.failures {
                add_failure(&mut own.failures, of.kind, of.count);
            }
        }
    }

    pub(crate) fn unanswered(&mut self) -> &mut Unanswered {
        self.unanswered.get_or_insert_default()
    }

    /// Keeps at most so many buckets of each histogram.
    fn coarsen(&mut self, buckets_max: usize) {
        self.response.coarsen(buckets_max);
        if let Some(unanswered) = &mut self.unanswered {
            unanswered.bounds.coarsen(buckets_max);
        }
    }

    /// Bytes that it takes in memory, at most, without its name.
    pub fn held_bytes_max(&self) -> usize {
        let statuses = match &self.statuses {
            Statuses::None | Statuses::One { .. } => 0,
            Statuses::Several(list) => size_of::<Vec<StatusCount>>() + grown_bytes(list),
        };
        let unanswered = self.unanswered.as_ref().map_or(0, |it| {
            let failures = grown_bytes(&it.failures);
            size_of::<Unanswered>() + failures + it.bounds.held_bytes_max()
        });
        size_of::<Self>() + statuses + self.response.held_bytes_max() + unanswered
    }
}

impl Statuses {
    pub(crate) fn add(&mut self, status: u16, count: u64) {
        match self {
            Self::None => *self = Self::One { status, count },
            Self::One {
                status: only,
                count: held,
            } if *only == status => *held = held.saturating_add(count),
            Self::One {
                status: only,
                count: held,
            } => {
                let mut list = vec![StatusCount {
                    status: *only,
                    count: *held,
                }];
                add_status(&mut list, status, count);
                *self = Self::Several(Box::new(list));
            }
            Self::Several(list) => add_status(list, status, count),
        }
    }

    /// The counts in the order of the statuses.
    fn list(&self) -> Vec<StatusCount> {
        match self {
            Self::None => Vec::new(),
            &Self::One { status, count } => vec![StatusCount { status, count }],
            Self::Several(list) => list.to_vec(),
        }
    }
}

/// Few are different: they are looked for one by one, and kept in order.
fn add_status(statuses: &mut Vec<StatusCount>, status: u16, count: u64) {
    match statuses.binary_search_by_key(&status, |of| of.status) {
        Ok(place) => statuses[place].count = statuses[place].count.saturating_add(count),
        Err(place) => statuses.insert(place, StatusCount { status, count }),
    }
}

pub(crate) fn add_failure(failures: &mut Vec<FailureCount>, kind: FailureKind, count: u64) {
    match failures.binary_search_by_key(&kind, |of| of.kind) {
        Ok(place) => failures[place].count = failures[place].count.saturating_add(count),
        Err(place) => failures.insert(place, FailureCount { kind, count }),
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
        places.insert(name.name.to_string(), place);
    }
    for mut other in others {
        if names.len() > GENERATED_NAMES_MAX && !places.contains_key(&*other.name) {
            other.name = OTHER_NAMES.into();
        }
        match places.get(&*other.name) {
            Some(&place) => names[place].merge(&other),
            None => {
                places.insert(other.name.to_string(), names.len());
                names.push(other);
            }
        }
    }
}

/// Forgets the figures of generated requests of which none has a name: they are those of the run.
pub fn forget_unnamed(names: &mut Vec<NameRecord>) {
    if names.iter().all(|name| &*name.name == UNNAMED) {
        names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a name takes in a worker, while little is known of it.
    #[test]
    fn a_name_is_small() {
        assert_eq!(size_of::<NameRecord>(), 88);
        let mut record = NameRecord::default();
        record.statuses.add(200, 1);
        record.response.record(1_000);
        assert_eq!(record.held_bytes_max(), 88);
        record.statuses.add(200, 3);
        for ns in [2_000, 3_000, 4_000] {
            record.response.record(ns);
        }
        assert!(record.held_bytes_max() <= 216);
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
        (record.requests_sent, record.issued, record.recorded) = (9, 8, 5);
        record.statuses.add(200, 1);
        read(&record);
        record.statuses.add(404, 3);
        record.statuses.add(200, 1);
        record.response.record(1_000);
        let unanswered = record.unanswered();
        (unanswered.failed, unanswered.censored) = (1, 2);
        add_failure(&mut unanswered.failures, FailureKind::TimedOut, 1);
        unanswered.bounds.record(7_000);
        let stored = read(&record);
        let expected =
            r#"{"name":"POST /a","requests_sent":9,"population":{"issued":8,"recorded":5,"#;
        assert!(stored.starts_with(expected), "{stored}");
        assert!(stored.contains(r#"[{"status":200,"count":2},{"status":404,"count":3}]"#));
        let mut twice = record.clone();
        twice.merge(&record);
        assert_eq!(twice.population().failed, 2);
        assert_eq!(twice.unfinished_max_ns(), Some(7_000));
        assert_eq!(twice.errors(), 8);
    }
}
