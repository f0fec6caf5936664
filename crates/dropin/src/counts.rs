//! What wrk, and tools that follow it, count of a run.

use brunt_judge::RunFigures;
use brunt_record::{FailureKind, FailureScope, Run};

/// Counts of a run, as wrk names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Length of the run, nanoseconds.
    pub duration_ns: u64,
    /// Complete replies, whatever their status.
    pub requests: u64,
    /// Bytes of replies, decrypted.
    pub bytes: u64,
    /// Connections that could not be opened.
    pub connect: u64,
    /// Replies that were truncated or are none.
    pub read: u64,
    /// Requests without a reply in time, among them those in flight to the end and beyond.
    pub timeout: u64,
    /// Replies with a status of 400 and above.
    pub status: u64,
}

impl Counts {
    /// The counts of `run`: replies of the window, errors of the whole run.
    pub fn of(run: &Run) -> Self {
        let summary = run.summary();
        let (window, all) = (&summary.window, &summary.lifetime);
        let timed_out = all.failures.get(FailureKind::TimedOut);
        let requests_failed = all.failures.total(FailureScope::Request);
        // Where a backlog was still being sent, what is in flight was sent just now.
        let never_answered = match summary.arrivals_all.unsent {
            0 => summary.population.censored,
            _ => 0,
        };
        let read = requests_failed
            .saturating_sub(timed_out)
            .saturating_add(all.failures.total(FailureScope::Connection));
        Self {
            duration_ns: run.window_ns,
            requests: window.replies.total(),
            bytes: window.bytes_received.saturating_sub(window.overhead_bytes),
            connect: all.failures.total(FailureScope::Connect),
            read,
            timeout: timed_out.saturating_add(never_answered),
            status: window.replies.total() - window.replies.successes(),
        }
    }

    /// Whether any request or connection failed.
    pub(crate) fn has_socket_error(&self) -> bool {
        self.connect > 0 || self.read > 0 || self.timeout > 0
    }

    /// `count` per second of the run; 0 for a run without length.
    pub(crate) fn per_s(&self, count: u64) -> f64 {
        if self.duration_ns == 0 {
            0.0
        } else {
            count as f64 * 1e9 / self.duration_ns as f64
        }
    }
}
