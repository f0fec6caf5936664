//! Figures of the requests of a list, or of a generator, by their names.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::confidence::samples_needed;
use crate::quantile::quantile_of;
use crate::recorder::{Answer, RequestTiming};
use crate::sparse::grown_bytes;
use crate::{FailureKind, Histogram, Name, Population, Quantile, SparseHistogram, Window, bounded};

/// Most names of a run: as many as a list may have requests.
pub const NAMES_MAX: usize = 1 << 18;
/// Most names that a generator gives its requests and that are kept apart: the others share one.
pub const GENERATED_NAMES_MAX: usize = 4_096;
/// Of a request that a generator gave no name.
pub const NO_NAME: u32 = u32::MAX;
/// What requests without a name stand under, where others have one.
const UNNAMED: &str = "(no name)";
/// What those stand under whose names are too many.
const OTHER_NAMES: &str = "(other names)";
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
    issued: u64,
    recorded: u64,
    statuses: Statuses,
    /// Of those that were issued in the window, response times of successful replies (status below
    /// 400).
    pub response: SparseHistogram,
    /// Absent where all were answered.
    unanswered: Option<Box<Unanswered>>,
}

/// Answers by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Statuses {
    #[default]
    None,
    /// All had the same.
    One { status: u16, count: u64 },
    /// In the order of the statuses.
    #[expect(
        clippy::box_collection,
        reason = "few names have it, and each name takes two words less"
    )]
    Several(Box<Vec<StatusCount>>),
}

/// What became of the requests that were not answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Unanswered {
    failed: u64,
    censored: u64,
    failures: Vec<FailureCount>,
    /// Lower bounds of response times.
    bounds: SparseHistogram,
}

/// The outcome of the requests of one name, as it is stored.
#[derive(Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "NameRecord")
)]
struct StoredName {
    /// The name: method and path, GET left out.
    name: Name,
    /// Sent, in all phases.
    requests_sent: u64,
    /// The outcome of those that were issued in the window.
    population: Population,
    /// Of those, answers by status.
    #[serde(deserialize_with = "bounded::list::<_, _, KINDS_MAX>")]
    statuses: Vec<StatusCount>,
    /// Of those, failures by kind.
    #[serde(deserialize_with = "bounded::list::<_, _, KINDS_MAX>")]
    failures: Vec<FailureCount>,
    /// Of those, response times of successful replies (status below 400).
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

#[cfg(feature = "schema")]
impl schemars::JsonSchema for NameRecord {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        StoredName::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StoredName::json_schema(generator)
    }
}

impl NameRecord {
    /// One with this name, of which nothing was sent.
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

    /// One with this name, and so many answers.
    #[cfg(test)]
    pub(crate) fn answered(name: &str, count: u64) -> Self {
        Self {
            issued: count,
            recorded: count,
            ..Self::named(name)
        }
    }

    /// Of those that were issued in the window, answers by status.
    pub fn statuses(&self) -> Vec<StatusCount> {
        self.statuses.list()
    }

    /// Replies with an error status (400 and above).
    pub fn errors(&self) -> u64 {
        self.recorded.saturating_sub(self.response.count())
    }

    /// Lower bounds of the response times of those that timed out, or had no outcome when drain
    /// ended.
    pub(crate) fn unfinished(&self) -> SparseHistogram {
        let unanswered = self.unanswered.as_ref();
        unanswered.map_or_else(SparseHistogram::default, |it| it.bounds.clone())
    }

    /// The longest lower bound of the response time of one that timed out, or had no outcome when
    /// drain ended; absent where there is none.
    pub fn unfinished_max_ns(&self) -> Option<u64> {
        self.unanswered.as_ref().and_then(|it| it.bounds.max_ns())
    }

    /// The `q`-quantile of the response time of successful replies, with what is known of those
    /// that never came. It has no interval.
    pub fn response_quantile(&self, q: f64) -> Quantile {
        let bounds = self.unanswered.as_ref().map(|it| &it.bounds);
        let unfinished = bounds.map_or(0, SparseHistogram::count);
        let samples = self.response.count().saturating_add(unfinished);
        let needed = samples_needed(q);
        if samples < needed {
            return Quantile::TooFew { samples, needed };
        }
        let unfinished = bounds.map_or_else(Histogram::of_two_digits, SparseHistogram::expand);
        quantile_of(&self.response.expand(), &unfinished, q)
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        self.requests_sent = self.requests_sent.saturating_add(other.requests_sent);
        self.issued = self.issued.saturating_add(other.issued);
        self.recorded = self.recorded.saturating_add(other.recorded);
        for of in other.statuses.list() {
            self.statuses.add(of.status, of.count);
        }
        self.response.merge(&other.response);
        if let Some(others) = &other.unanswered {
            let own = self.unanswered();
            own.failed = own.failed.saturating_add(others.failed);
            own.censored = own.censored.saturating_add(others.censored);
            for of in &others.failures {
                add_failure(&mut own.failures, of.kind, of.count);
            }
            own.bounds.merge(&others.bounds);
        }
    }

    fn unanswered(&mut self) -> &mut Unanswered {
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
    pub(crate) fn held_bytes_max(&self) -> usize {
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
    fn add(&mut self, status: u16, count: u64) {
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

    /// In the order of the statuses.
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

fn add_failure(failures: &mut Vec<FailureCount>, kind: FailureKind, count: u64) {
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

fn merge_by_name(names: &mut Vec<NameRecord>, others: Vec<NameRecord>) {
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

/// Records by name, where requests have names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameRecorder {
    /// Per request, the place of its name; empty where no figures are kept.
    name_of: Arc<[u32]>,
    records: Vec<NameRecord>,
    /// There is anything to keep.
    is_kept: bool,
    /// Most buckets of a histogram.
    buckets_max: usize,
    /// Absent where requests are those of a list.
    generated: Option<Box<Generated>>,
}

/// What is kept beside the records where a generator names its requests, or does not.
#[derive(Clone, Debug, Default)]
struct Generated {
    /// The names, by their numbers; given at the end.
    names: Vec<String>,
    /// Of requests without a name: counts alone, as long as there are no names.
    unnamed: NameRecord,
}

impl NameRecorder {
    pub(crate) fn new(name_of: Arc<[u32]>, names: usize) -> Self {
        Self {
            name_of,
            records: vec![NameRecord::default(); names],
            is_kept: names > 0,
            buckets_max: name_buckets_max(names),
            generated: None,
        }
    }

    /// One for requests whose names, if any, come while the run goes on: the number of a request is
    /// that of its name.
    pub(crate) fn of_generator() -> Self {
        Self {
            is_kept: true,
            buckets_max: name_buckets_max(GENERATED_NAMES_MAX),
            generated: Some(Box::default()),
            ..Self::default()
        }
    }

    /// Takes the names that the generator gave, by their numbers.
    pub(crate) fn set_names(&mut self, names: Vec<String>) {
        if let Some(generated) = &mut self.generated {
            generated.names = names;
        }
    }

    #[inline]
    fn of(&mut self, timing: RequestTiming) -> Option<&mut NameRecord> {
        if !self.is_kept {
            return None;
        }
        if self.generated.is_some() {
            return self.of_generated(timing.request);
        }
        let name = *self.name_of.get(timing.request as usize)?;
        self.records.get_mut(name as usize)
    }

    fn of_generated(&mut self, name: u32) -> Option<&mut NameRecord> {
        if name == NO_NAME {
            return self.generated.as_mut().map(|it| &mut it.unnamed);
        }
        let place = (name as usize).min(GENERATED_NAMES_MAX);
        if place >= self.records.len() {
            self.records.resize_with(place + 1, NameRecord::default);
        }
        self.records.get_mut(place)
    }

    /// Whether no more is kept of this request than how many of its kind there were.
    #[inline]
    fn only_counts(&self, timing: RequestTiming) -> bool {
        self.records.is_empty() && timing.request == NO_NAME
    }

    #[inline]
    pub(crate) fn sent(&mut self, timing: RequestTiming, window: Window) {
        if let Some(record) = self.of(timing) {
            record.requests_sent += 1;
            record.issued += u64::from(window.contains(timing.due_ns));
        }
    }

    /// The request was due in the window.
    #[inline]
    pub(crate) fn reply(&mut self, timing: RequestTiming, done_ns: u64, answer: &Answer) {
        let only_counts = self.is_kept && self.only_counts(timing);
        let buckets_max = self.buckets_max;
        if let Some(record) = self.of(timing) {
            record.recorded += 1;
            if only_counts {
                return;
            }
            if let Some(status) = answer.outcome.status() {
                record.statuses.add(status, 1);
            }
            if answer.outcome.is_success() {
                let response_ns = done_ns.saturating_sub(timing.due_ns);
                record.response.record_within(response_ns, buckets_max);
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
        let buckets_max = self.buckets_max;
        if window.contains(timing.due_ns)
            && let Some(record) = self.of(timing)
        {
            let unanswered = record.unanswered();
            unanswered.failed += 1;
            add_failure(&mut unanswered.failures, kind, 1);
            if kind == FailureKind::TimedOut {
                let bound_ns = at_ns.saturating_sub(timing.due_ns);
                unanswered.bounds.record_within(bound_ns, buckets_max);
            }
        }
    }

    pub(crate) fn censored(&mut self, timing: RequestTiming, at_ns: u64, window: Window) {
        let buckets_max = self.buckets_max;
        if window.contains(timing.due_ns)
            && let Some(record) = self.of(timing)
        {
            let unanswered = record.unanswered();
            unanswered.censored += 1;
            let bound_ns = at_ns.saturating_sub(timing.due_ns);
            unanswered.bounds.record_within(bound_ns, buckets_max);
        }
    }

    pub(crate) fn finish(self) -> Vec<NameRecord> {
        let mut records = self.records;
        let Some(generated) = self.generated else {
            return records;
        };
        for (place, record) in records.iter_mut().enumerate() {
            let name = generated.names.get(place).map(String::as_str);
            let name = name.filter(|_| place < GENERATED_NAMES_MAX);
            record.name = name.unwrap_or(OTHER_NAMES).into();
        }
        let unnamed = NameRecord {
            name: UNNAMED.into(),
            ..generated.unnamed
        };
        records.push(unnamed);
        records.retain(|record| record.requests_sent > 0);
        let mut merged = Vec::new();
        // A generator may give the same name twice.
        merge_by_name(&mut merged, records);
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        start_ns: 0,
        end_ns: 1_000,
    };

    fn sent(recorder: &mut NameRecorder, name: u32) {
        let timing = RequestTiming {
            due_ns: 10,
            sent_ns: 10,
            request: name,
        };
        recorder.sent(timing, WINDOW);
    }

    fn counts(names: &[NameRecord]) -> Vec<(&str, u64)> {
        names
            .iter()
            .map(|name| (&*name.name, name.requests_sent))
            .collect()
    }

    fn recorded(names: &[&str], requests: &[u32]) -> Vec<NameRecord> {
        let mut recorder = NameRecorder::of_generator();
        requests.iter().for_each(|&name| sent(&mut recorder, name));
        recorder.set_names(names.iter().map(|&name| name.to_owned()).collect());
        recorder.finish()
    }

    #[test]
    fn names_that_come_in_mid_run_are_merged_by_what_they_are() {
        let mut names = recorded(&["a", "b"], &[NO_NAME, 0, 1, 1]);
        assert_eq!(counts(&names), [("a", 1), ("b", 2), ("(no name)", 1)]);
        // Another worker met them in another order, one of them twice.
        merge_names(&mut names, recorded(&["b", "c", "b"], &[1, 0, 2]));
        merge_names(&mut names, recorded(&[], &[NO_NAME]));
        assert_eq!(
            counts(&names),
            [("a", 1), ("b", 4), ("(no name)", 2), ("c", 1)]
        );
        forget_unnamed(&mut names);
        assert_eq!(names.len(), 4);
        let mut names = recorded(&[], &[NO_NAME, NO_NAME]);
        assert_eq!(counts(&names), [("(no name)", 2)]);
        forget_unnamed(&mut names);
        assert!(names.is_empty());
    }

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

    #[test]
    fn names_are_bounded() {
        let requests: Vec<u32> = (0..GENERATED_NAMES_MAX as u32 + 100).collect();
        let names: Vec<String> = requests.iter().map(|name| format!("/{name}")).collect();
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut merged = recorded(&named, &requests);
        assert_eq!(merged.len(), GENERATED_NAMES_MAX + 1);
        assert_eq!(counts(&merged[GENERATED_NAMES_MAX..]), [(OTHER_NAMES, 100)]);
        // What another worker has beside them is no more.
        merge_names(&mut merged, recorded(&["new", "/7"], &[0, 1]));
        assert_eq!(merged.len(), GENERATED_NAMES_MAX + 1);
        assert_eq!(counts(&merged[7..8]), [("/7", 2)]);
        assert_eq!(counts(&merged[GENERATED_NAMES_MAX..]), [(OTHER_NAMES, 101)]);
    }
}
