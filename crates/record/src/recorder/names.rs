//! What is recorded of the requests of each name, where requests have names.

use std::sync::Arc;

use super::{Answer, RequestTiming};
use crate::by_name::{OTHER_NAMES, UNNAMED, merge_by_name, name_buckets_max};
use crate::{FailureKind, GENERATED_NAMES_MAX, NO_NAME, NameRecord, Window};

/// Records by name, where requests have names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameRecorder {
    /// Per request, the place of its name; empty where no figures are kept.
    name_of: Arc<[u32]>,
    records: Vec<NameRecord>,
    /// Whether there is anything to keep.
    is_kept: bool,
    /// Most buckets of a histogram.
    buckets_max: usize,
    /// The names of generated requests; absent where requests are those of a list.
    generated: Option<Box<Generated>>,
}

/// What is kept beside the records where a generator names its requests, or does not.
#[derive(Clone, Debug, Default)]
struct Generated {
    /// The names, by their numbers; given at the end.
    names: Vec<String>,
    /// The record of requests without a name: counts alone, as long as there are no names.
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

    /// A recorder of requests whose names, if any, come while the run goes on: the number of a
    /// request is that of its name.
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
            return self
                .generated
                .as_mut()
                .map(|generated| &mut generated.unnamed);
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
        let buckets_max = self.buckets_max;
        if let Some(record) = self.of(timing) {
            record.population.recorded += 1;
            if only_counts {
                return;
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
            record.population.failed += 1;
            if kind == FailureKind::TimedOut {
                let bound_ns = at_ns.saturating_sub(timing.due_ns);
                record.unfinished.record_within(bound_ns, buckets_max);
            }
        }
    }

    pub(crate) fn censored(&mut self, timing: RequestTiming, at_ns: u64, window: Window) {
        let buckets_max = self.buckets_max;
        if window.contains(timing.due_ns)
            && let Some(record) = self.of(timing)
        {
            record.population.censored += 1;
            let bound_ns = at_ns.saturating_sub(timing.due_ns);
            record.unfinished.record_within(bound_ns, buckets_max);
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
    use crate::{forget_unnamed, merge_names};

    const WINDOW: Window = Window {
        start_ns: 0,
        end_ns: 1_000,
    };

    fn sent(recorder: &mut NameRecorder, name: u32) {
        let timing = RequestTiming {
            due_ns: 10,
            sent_ns: 10,
            request: name,
            again: 0,
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
