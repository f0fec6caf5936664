//! Figures of the requests of a list, or of a generator, by their names.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::quantile::quantile_of;
use crate::recorder::{Answer, RequestTiming};
use crate::{FailureKind, Population, Quantile, SparseHistogram, Window, bounded};

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

/// Adds the records of another worker: those of a list, which have no names yet and the same
/// places, or those of a generator, by their names.
pub fn merge_names(names: &mut Vec<NameRecord>, others: Vec<NameRecord>) {
    if names.is_empty() {
        *names = others;
        return;
    }
    if others.iter().all(|other| other.name.is_empty()) {
        for (name, other) in names.iter_mut().zip(&others) {
            name.merge(other);
        }
        return;
    }
    merge_by_name(names, others);
}

fn merge_by_name(names: &mut Vec<NameRecord>, others: Vec<NameRecord>) {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, name) in names.iter().enumerate() {
        places.insert(name.name.clone(), place);
    }
    for mut other in others {
        if names.len() > GENERATED_NAMES_MAX && !places.contains_key(&other.name) {
            OTHER_NAMES.clone_into(&mut other.name);
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

/// Records by name, where requests have names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameRecorder {
    /// Per request, the place of its name; empty where no figures are kept.
    name_of: Arc<[u32]>,
    records: Vec<NameRecord>,
    /// There is anything to keep.
    is_kept: bool,
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
            generated: None,
        }
    }

    /// One for requests whose names, if any, come while the run goes on: the number of a request is
    /// that of its name.
    pub(crate) fn of_generator() -> Self {
        Self {
            is_kept: true,
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
            record.population.issued += u64::from(window.contains(timing.due_ns));
        }
    }

    /// The request was due in the window.
    #[inline]
    pub(crate) fn reply(&mut self, timing: RequestTiming, done_ns: u64, answer: &Answer) {
        let only_counts = self.is_kept && self.only_counts(timing);
        if let Some(record) = self.of(timing) {
            record.population.recorded += 1;
            if only_counts {
                return;
            }
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
        let mut records = self.records;
        let Some(generated) = self.generated else {
            return records;
        };
        for (place, record) in records.iter_mut().enumerate() {
            let name = generated.names.get(place).map(String::as_str);
            let name = name.filter(|_| place < GENERATED_NAMES_MAX);
            name.unwrap_or(OTHER_NAMES).clone_into(&mut record.name);
        }
        let unnamed = NameRecord {
            name: UNNAMED.to_owned(),
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
