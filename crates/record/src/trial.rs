//! What workers did that the warm-up showed to be too few: the round began anew with more.

use serde::{Deserialize, Serialize};

use crate::once::since_ns;
use crate::{ArrivalCounts, Tally, WorkerRecord};

/// Most trials: each has up to twice the workers of the one before.
pub(crate) const TRIALS_MAX: usize = 32;

/// One beginning of a round that had too few workers: a phase of its own, of which no figure but
/// the counts is kept. `sent = answered + failed + cut_off`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// How many workers there were.
    pub workers: u32,
    /// When the trial's set-up began, nanoseconds from the start of the window.
    pub from_ns: i64,
    /// When the last of its workers had no request in flight any more, or gave up waiting.
    pub until_ns: i64,
    /// What its workers counted, set-up and drain included.
    pub tally: Tally,
    /// The outcome of the arrivals that were planned in it; all 0 in a closed loop.
    pub arrivals: ArrivalCounts,
    /// Requests that were still in flight when brunt waited no longer and closed their connections:
    /// no failure of the server's.
    pub cut_off: u64,
}

impl TrialRecord {
    /// The trial of workers whose set-up began at `from_ns`, on the clock of the process.
    pub fn of<'a>(from_ns: u64, workers: impl Iterator<Item = &'a WorkerRecord>) -> Self {
        let mut trial = Self {
            from_ns: from_ns.cast_signed(),
            until_ns: from_ns.cast_signed(),
            ..Self::default()
        };
        for worker in workers {
            trial.workers += 1;
            trial.tally.merge(&worker.tallies.lifetime());
            trial.arrivals.merge(&worker.arrivals_all);
            trial.cut_off = trial.cut_off.saturating_add(worker.in_flight_at_end);
            let drained_ns = worker.edges.drained.get().unwrap_or(trial.until_ns);
            trial.until_ns = trial.until_ns.max(drained_ns);
        }
        trial
    }

    /// Counts its instants, which are those of the clock of the process, from `origin_ns`: the
    /// start of the window.
    pub fn count_from(&mut self, origin_ns: u64) {
        self.from_ns = since_ns(self.from_ns, origin_ns);
        self.until_ns = since_ns(self.until_ns, origin_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Once;

    #[test]
    fn a_trial_is_the_sum_of_its_workers_in_all_phases() {
        let mut workers = [WorkerRecord::default(), WorkerRecord::default()];
        workers[0].tallies.before.requests_sent = 5;
        workers[0].tallies.after.requests_sent = 1;
        workers[1].tallies.before.requests_sent = 7;
        workers[1].in_flight_at_end = 2;
        workers[1].arrivals_all.planned = 9;
        workers[0].edges.drained = Once::at(700);
        workers[1].edges.drained = Once::at(650);
        let mut trial = TrialRecord::of(100, workers.iter());
        assert_eq!((trial.workers, trial.cut_off), (2, 2));
        assert_eq!(trial.tally.requests_sent, 13);
        assert_eq!(trial.arrivals.planned, 9);
        trial.count_from(1_000);
        assert_eq!((trial.from_ns, trial.until_ns), (-900, -300));
    }
}
