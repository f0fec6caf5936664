//! What is recorded of planned arrivals.

use super::Recorder;
use crate::{ArrivalCounts, StageRecord};

/// Why an arrival was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The queue was full.
    Full,
    /// The arrival had waited too long for a reply within its time-out.
    Late,
    /// The arrival still waited when drain ended.
    Unsent,
}

impl Recorder {
    /// An arrival was planned for `due_ns`. Exactly one of [`Recorder::arrival_sent`] and
    /// [`Recorder::arrival_skipped`] follows.
    pub fn arrival_planned(&mut self, due_ns: u64) {
        self.last_due_ns = self.last_due_ns.max(due_ns);
        self.count_arrival(due_ns, |arrivals| arrivals.planned += 1);
    }

    /// Counts an arrival that was sent (or its connection attempted) at `at_ns`, after waiting for
    /// a free connection or not.
    pub fn arrival_sent(&mut self, due_ns: u64, at_ns: u64, waited: bool) {
        let is_by_end = at_ns < self.window.end_ns;
        self.count_arrival(due_ns, |arrivals| {
            arrivals.sent += 1;
            *arrivals.sent_by_end.get_or_insert(0) += u64::from(is_by_end);
            arrivals.waited += u64::from(waited);
        });
    }

    /// Counts an arrival that was given up and never sent: it has no reply by `at_ns`, which may be
    /// the end of the window, still to come.
    pub fn arrival_skipped(&mut self, due_ns: u64, at_ns: u64, why: Skip) {
        self.count_arrival(due_ns, |arrivals| match why {
            Skip::Full => arrivals.skipped_full += 1,
            Skip::Late => arrivals.skipped_late += 1,
            Skip::Unsent => arrivals.unsent += 1,
        });
        if self.is_planned {
            self.unfinished(due_ns, at_ns);
        }
    }

    /// The first instant after `due_ns` at which arrivals count differently, if they are skipped
    /// because the queue is full and have no reply by `at_ns`. Arrivals before it can be reported
    /// together, by [`Recorder::arrivals_skipped`].
    pub fn alike_until_ns(&self, due_ns: u64, at_ns: u64) -> u64 {
        if due_ns < self.window.start_ns {
            return self.window.start_ns;
        }
        let offset_ns = self.window.offset(due_ns).filter(|_| self.is_planned);
        let Some(offset_ns) = offset_ns else {
            return u64::MAX;
        };
        let stage_end_ns = self
            .window
            .start_ns
            .saturating_add(self.stages.end_ns(offset_ns));
        let bound_ns = at_ns.saturating_sub(due_ns);
        let least_ns = self.until_end.least_alike_ns(bound_ns);
        at_ns
            .saturating_sub(least_ns)
            .saturating_add(1)
            .min(stage_end_ns)
            .max(due_ns + 1)
    }

    /// `count` arrivals were planned, the first for `due_ns` and the last before `until_ns`, which
    /// is [`Recorder::alike_until_ns`] of the first or earlier, and were skipped because the queue
    /// was full: they have no reply by `at_ns`.
    pub fn arrivals_skipped(&mut self, due_ns: u64, until_ns: u64, at_ns: u64, count: u64) {
        let last_due_ns = until_ns.saturating_sub(1).max(due_ns);
        self.last_due_ns = self.last_due_ns.max(last_due_ns);
        self.count_arrival(due_ns, |arrivals| {
            arrivals.planned += count;
            arrivals.skipped_full += count;
        });
        if self.is_planned {
            self.unfinished_many(due_ns, at_ns, at_ns.saturating_sub(last_due_ns), count);
        }
    }

    /// `waiting` arrivals wait for a free connection.
    pub fn waiting(&mut self, at_ns: u64, waiting: u64) {
        if let Some(offset) = self.window.offset(at_ns) {
            let point = self.point(offset);
            point.waiting_max = point.waiting_max.max(waiting);
        }
    }

    /// What was due at `due_ns` was sent `lag_ns` after brunt could have sent it.
    pub fn lag(&mut self, due_ns: u64, lag_ns: u64) {
        if self.window.contains(due_ns) {
            self.recording.latencies.lag.record(lag_ns);
        }
    }

    fn count_arrival(&mut self, due_ns: u64, count: impl Fn(&mut ArrivalCounts)) {
        let record = &mut self.recording.record;
        count(&mut record.arrivals_all);
        if let Some(offset_ns) = self.window.offset(due_ns) {
            count(&mut record.arrivals);
            if let Some(StageRecord { arrivals, .. }) = self.stages.at(offset_ns) {
                count(arrivals);
            }
        }
    }
}
