//! Batches of several requests, and how each of them ends.

use brunt_load::{BatchOutcome, RequestFailure};

/// The batches of several requests that are in flight or waiting.
#[derive(Debug, Default)]
pub(super) struct Batches {
    batches: Vec<OfBatch>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OfBatch {
    /// Requests that have no outcome yet.
    pub(super) left: u32,
    /// Why the first one that failed did.
    pub(super) failure: Option<RequestFailure>,
}

impl Batches {
    pub(super) fn add(&mut self, batch: OfBatch) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.batches[number as usize] = batch;
                number
            }
            None => {
                self.batches.push(batch);
                self.batches.len() as u32 - 1
            }
        }
    }

    /// `count` requests of a batch have this outcome; how the batch ended, if no other is left.
    pub(super) fn end(
        &mut self,
        number: u32,
        count: u32,
        failure: Option<RequestFailure>,
    ) -> Option<BatchOutcome> {
        let batch = &mut self.batches[number as usize];
        batch.left = batch.left.saturating_sub(count);
        batch.failure = batch.failure.or(failure);
        (batch.left == 0).then(|| {
            self.free.push(number);
            outcome(batch.failure)
        })
    }
}

pub(super) fn outcome(failure: Option<RequestFailure>) -> BatchOutcome {
    failure.map_or(BatchOutcome::Answered, BatchOutcome::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_with_the_last_of_its_requests() {
        let mut batches = Batches::default();
        let batch = |left| OfBatch {
            left,
            failure: None,
        };
        let (first, second) = (batches.add(batch(3)), batches.add(batch(2)));
        let (late, lost) = (RequestFailure::TimedOut, RequestFailure::ConnectionLost);
        assert_eq!(batches.end(first, 1, Some(late)), None);
        assert_eq!(batches.end(second, 2, None), Some(BatchOutcome::Answered));
        assert_eq!(batches.end(first, 1, Some(lost)), None);
        let failed = BatchOutcome::Failed(late);
        assert_eq!(batches.end(first, 1, None), Some(failed));
        // Their numbers are used again.
        assert!(batches.add(batch(2)) < 2 && batches.add(batch(2)) < 2);
    }
}
