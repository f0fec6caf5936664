//! What zrk counts of an interval.

use brunt_engine::Progress;

use super::Figures;
use crate::recorded::Recorded;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) bytes: u64,
    pub(super) connect: u64,
    pub(super) read: u64,
    pub(super) timeout: u64,
    pub(super) deadline: u64,
    pub(super) status: u64,
}

impl Tally {
    /// What workers counted so far.
    pub(super) fn of(progress: &Progress, has_deadline: bool) -> Self {
        let Progress {
            successes,
            errors,
            failures,
            connect_failures,
            timeouts,
            bytes_received,
            ..
        } = *progress;
        Self {
            requests: successes + errors,
            bytes: bytes_received,
            connect: connect_failures,
            read: failures.saturating_sub(connect_failures + timeouts),
            timeout: if has_deadline { 0 } else { timeouts },
            deadline: if has_deadline { timeouts } else { 0 },
            status: errors,
        }
    }

    /// What the whole run came to.
    pub(super) fn of_run(figures: &Figures) -> Self {
        let counts = &figures.counts;
        Self {
            requests: counts.requests,
            bytes: counts.bytes,
            connect: counts.connect,
            read: counts.read,
            timeout: counts.timeout,
            deadline: figures.deadline,
            status: counts.status,
        }
    }

    /// What came since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            connect: self.connect.saturating_sub(earlier.connect),
            read: self.read.saturating_sub(earlier.read),
            timeout: self.timeout.saturating_sub(earlier.timeout),
            deadline: self.deadline.saturating_sub(earlier.deadline),
            status: self.status.saturating_sub(earlier.status),
        }
    }

    /// Errors of all kinds.
    pub(super) fn errors(&self) -> u64 {
        self.connect + self.read + self.timeout + self.deadline + self.status
    }
}

/// An interval, with times in seconds from the start of the run.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) from_s: f64,
    pub(super) at_s: f64,
    pub(super) tally: &'a Tally,
    pub(super) recorded: &'a Recorded,
    pub(super) lag_us: u64,
}
