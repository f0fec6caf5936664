//! The outcome of the requests of each stage of a schedule: those that were due in it.

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merges};
use crate::{ArrivalCounts, Histogram, Population, histogram};

/// Most stages whose requests are recorded apart: each takes memory in every worker.
pub const STAGES_RECORDED_MAX: usize = 64;

/// The requests that were due in one stage and in the window, of one worker or of all together.
/// Whenever they were answered, they belong to this stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// The outcome of the arrivals planned in it.
    pub arrivals: ArrivalCounts,
    /// The outcome of those that were sent.
    pub population: Population,
    /// Response times of successful replies (status below 400), two significant digits.
    #[serde(deserialize_with = "histogram::with_two_digits")]
    pub response: Histogram,
    /// Lower bounds of the response times of what was never answered because it took too long, two
    /// significant digits: requests that timed out or were censored, and arrivals never sent.
    #[serde(deserialize_with = "histogram::with_two_digits")]
    pub unfinished: Histogram,
}

impl Default for StageRecord {
    fn default() -> Self {
        Self {
            arrivals: ArrivalCounts::default(),
            population: Population::default(),
            response: Histogram::of_two_digits(),
            unfinished: Histogram::of_two_digits(),
        }
    }
}

merges!(StageRecord: arrivals population response unfinished);

impl StageRecord {
    /// Replies with an error status (400 and above).
    pub fn errors(&self) -> u64 {
        self.population
            .recorded
            .saturating_sub(self.response.count())
    }
}

/// Stages of two workers are merged one by one.
impl Merge for Vec<StageRecord> {
    fn merge(&mut self, others: &Self) {
        if self.len() < others.len() {
            self.resize_with(others.len(), StageRecord::default);
        }
        for (stage, other) in self.iter_mut().zip(others) {
            stage.merge(other);
        }
    }
}

/// A stage while it is recorded.
#[derive(Clone, Debug)]
struct Stage {
    /// End of the stage, from the start of the window.
    end_ns: u64,
    record: StageRecord,
    /// Lower bounds of what will not have ended by the end of the window, as the recorder has them
    /// of the whole window.
    until_end: Histogram,
}

/// Finds the stage of what is due. Nothing is allocated once the stages are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageRecorder(Vec<Stage>);

impl StageRecorder {
    /// Stages of these lengths, the first of which begins with the window. More than
    /// [`STAGES_RECORDED_MAX`] are not recorded.
    pub(crate) fn new(lengths_ns: &[u64]) -> Self {
        if lengths_ns.len() > STAGES_RECORDED_MAX {
            return Self::default();
        }
        let ends_ns = lengths_ns.iter().scan(0_u64, |end_ns, length_ns| {
            *end_ns = end_ns.saturating_add(*length_ns);
            Some(*end_ns)
        });
        let stages = ends_ns.map(|end_ns| Stage {
            end_ns,
            record: StageRecord::default(),
            until_end: Histogram::of_two_digits(),
        });
        Self(stages.collect())
    }

    /// The stage in which this offset from the start of the window lies, the last one if it lies
    /// behind all; absent without stages.
    pub(crate) fn at(&mut self, offset_ns: u64) -> Option<&mut StageRecord> {
        self.find(offset_ns).map(|stage| &mut stage.record)
    }

    /// Up to which offset the stage of this one reaches.
    pub(crate) fn end_ns(&self, offset_ns: u64) -> u64 {
        let stages = self.0.split_last().map_or(&[][..], |(_, before)| before);
        let index = stages.partition_point(|stage| stage.end_ns <= offset_ns);
        stages.get(index).map_or(u64::MAX, |stage| stage.end_ns)
    }

    /// `count` requests that are due from this offset on have not ended by the end of the window,
    /// `ns` later, which may still be brought forward.
    pub(crate) fn unfinished_at_end(&mut self, offset_ns: u64, ns: u64, count: u64) {
        if let Some(stage) = self.find(offset_ns) {
            stage.until_end.record_many(ns, count);
        }
    }

    /// The window ends so much earlier.
    pub(crate) fn end_earlier(&mut self, earlier_ns: u64) {
        for stage in &mut self.0 {
            if stage.until_end.count() > 0 {
                stage.until_end = stage.until_end.lowered_by(earlier_ns);
            }
        }
    }

    /// The records, in the order of the stages.
    pub(crate) fn finish(self) -> Vec<StageRecord> {
        let finished = self.0.into_iter().map(|mut stage| {
            stage.record.unfinished.merge(&stage.until_end);
            stage.record
        });
        finished.collect()
    }

    fn find(&mut self, offset_ns: u64) -> Option<&mut Stage> {
        let last = self.0.len().checked_sub(1)?;
        let index = self.0.partition_point(|stage| stage.end_ns <= offset_ns);
        self.0.get_mut(index.min(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_belongs_to_the_stage_in_which_it_is_due() {
        let mut recorder = StageRecorder::new(&[10, 5, 20]);
        let ends_ns = [0, 9, 10, 14, 15, 40].map(|offset_ns| recorder.end_ns(offset_ns));
        assert_eq!(ends_ns, [10, 10, 15, 15, u64::MAX, u64::MAX]);
        for (offset_ns, times) in [(0, 1), (9, 1), (10, 3), (14, 1), (15, 1), (34, 1), (35, 2)] {
            for _ in 0..times {
                let stage = recorder.at(offset_ns).expect("there are stages");
                stage.arrivals.planned += 1;
            }
        }
        let planned = |stage: &StageRecord| stage.arrivals.planned;
        let stages = recorder.finish();
        assert_eq!(stages.iter().map(planned).collect::<Vec<_>>(), [2, 4, 4]);
    }

    #[test]
    fn without_stages_or_with_too_many_nothing_is_kept() {
        for stages in [0, STAGES_RECORDED_MAX + 1] {
            let mut recorder = StageRecorder::new(&vec![10; stages]);
            assert!(recorder.at(0).is_none());
            assert!(recorder.finish().is_empty());
        }
        let most = StageRecorder::new(&[10; STAGES_RECORDED_MAX]);
        assert_eq!(most.finish().len(), STAGES_RECORDED_MAX);
    }

    #[test]
    fn bounds_that_reach_to_the_end_move_with_it() {
        let mut recorder = StageRecorder::new(&[1_000, 1_000]);
        recorder.unfinished_at_end(1_200, 800, 1);
        recorder
            .at(1_300)
            .expect("there are stages")
            .unfinished
            .record(50);
        recorder.end_earlier(300);
        let stages = recorder.finish();
        assert_eq!(stages[0].unfinished.count(), 0);
        assert_eq!(stages[1].unfinished.count(), 2);
        assert_eq!(stages[1].unfinished.min_ns(), Some(50));
        // Never above what it is, and below it by a bucket's width at most.
        let bound_ns = stages[1].unfinished.max_ns().expect("two bounds");
        assert!((490..=500).contains(&bound_ns), "{bound_ns}");
    }

    #[test]
    fn a_stored_stage_is_read_as_it_was() {
        let mut stage = StageRecord::default();
        stage.arrivals.planned = 3;
        stage.population.recorded = 2;
        stage.response.record(123_456_789);
        stage.unfinished.record(7_000_000_000_000);
        let json = serde_json::to_string(&stage).expect("a stage serialises");
        let read: StageRecord = serde_json::from_str(&json).expect("what was written");
        assert_eq!(read, stage);
        assert_eq!(read.errors(), 1);
        // Another resolution is none of a stage's.
        let mut finer = Histogram::default();
        finer.record(123_456_789);
        let finer = serde_json::to_value(finer).expect("a histogram serialises");
        let mut value = serde_json::to_value(&stage).expect("a stage serialises");
        value["response"] = finer;
        let error = serde_json::from_value::<StageRecord>(value).map(drop);
        let error = error.expect_err("three digits").to_string();
        assert!(error.contains("are not those of"), "{error}");
    }

    #[test]
    fn stages_of_workers_add_up_one_by_one() {
        let of = |counts: &[u64]| -> Vec<StageRecord> {
            let stage = |&planned: &u64| {
                let mut stage = StageRecord::default();
                stage.arrivals.planned = planned;
                stage.response.record(planned);
                stage
            };
            counts.iter().map(stage).collect()
        };
        let mut sum = Vec::new();
        sum.merge(&of(&[1, 2]));
        sum.merge(&of(&[30, 40]));
        sum.merge(&Vec::new());
        let planned: Vec<u64> = sum.iter().map(|stage| stage.arrivals.planned).collect();
        assert_eq!(planned, [31, 42]);
        assert_eq!(sum[1].response.count(), 2);
        assert_eq!(sum[1].response.max_ns(), Some(40));
    }
}
