//! What a worker's generator of requests, such as a script, did and took.

use crate::merged::{Merge, merge_fields};
use brunt_load::SessionCounts;
use serde::{Deserialize, Serialize};

/// What the generator of one worker did over the window. Times are measured of some calls, and hold
/// for all by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// Calls for the next requests.
    pub calls: u64,
    /// Time in them, with that of finding out what their texts hold, nanoseconds.
    pub calls_ns: u64,
    /// Responses that were reported to it.
    pub reported: u64,
    /// Time in that, nanoseconds.
    pub reported_ns: u64,
    /// Contents of responses that were longer than is kept for it, over the whole run.
    pub truncated: u64,
    /// Why it ended the run; null where it did not.
    pub error: Option<String>,
    /// Sessions that it replayed; null where it knows none.
    pub sessions: Option<SessionCounts>,
}

impl GeneratorUse {
    /// Bytes of a response's content that are kept for a generator where a worker has few
    /// connections, and where it has many.
    pub const BODY_BYTES_MAX: u32 = 16 << 20;
    const BODY_BYTES_LEAST: u32 = 64 << 10;
    /// Bytes of all contents that a worker keeps at once, as far as the least of each allows.
    const BODIES_BYTES: u32 = 1 << 30;

    /// Bytes of a response's content that are kept by a worker of so many connections.
    pub fn body_bytes_max(connections: u32) -> u32 {
        let share = Self::BODIES_BYTES / connections.max(1);
        share.clamp(Self::BODY_BYTES_LEAST, Self::BODY_BYTES_MAX)
    }

    /// The sum over several workers, and how many workers there are; absent for none.
    pub fn sum<'a>(used: impl IntoIterator<Item = &'a Self>) -> Option<(Self, u64)> {
        let mut sum: Option<(Self, u64)> = None;
        for one in used {
            let (all, count) = sum.get_or_insert_default();
            all.merge(one);
            *count += 1;
        }
        sum
    }

    /// The share of their time that `workers` workers were in it over the window, as far as that
    /// can be: it is an estimate. Absent without a window.
    pub fn share(&self, workers: u64, window_ns: u64) -> Option<f64> {
        let all_ns = window_ns as f64 * workers as f64;
        (all_ns > 0.0).then(|| (self.time_ns() as f64 / all_ns).min(1.0))
    }

    /// Time in all calls of the generator, nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.calls_ns.saturating_add(self.reported_ns)
    }

    /// Adds that of another worker.
    pub fn merge(&mut self, other: &Self) {
        merge_fields!(self, other: calls calls_ns reported reported_ns truncated);
        if self.error.is_none() {
            self.error.clone_from(&other.error);
        }
        if let Some(others) = &other.sessions {
            let sessions = self.sessions.get_or_insert_default();
            merge_fields!(sessions, others: begun completed failed reconnected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_added_up() {
        let worker = |calls_ns, error: Option<&str>| GeneratorUse {
            calls: 2,
            calls_ns,
            reported: 1,
            reported_ns: 10,
            truncated: 1,
            error: error.map(str::to_owned),
            sessions: error.map(|_| SessionCounts {
                begun: 3,
                completed: 2,
                ..SessionCounts::default()
            }),
        };
        let workers = [worker(100, None), worker(300, Some("oops"))];
        let (used, count) = GeneratorUse::sum(&workers).expect("two");
        assert_eq!(
            (used.calls, used.reported, used.truncated, count),
            (4, 2, 2, 2)
        );
        assert_eq!((used.time_ns(), used.error.as_deref()), (420, Some("oops")));
        assert_eq!(used.share(count, 1_000), Some(0.21));
        assert_eq!(used.share(count, 100), Some(1.0));
        assert_eq!(used.share(count, 0), None);
        assert_eq!(GeneratorUse::sum(&workers[..0]), None);
        let sessions = used
            .sessions
            .map(|sessions| (sessions.begun, sessions.completed));
        assert_eq!(sessions, Some((3, 2)));
    }

    #[test]
    fn bodies_are_bounded_in_all() {
        let kept = [1, 64, 1_024, 100_000].map(GeneratorUse::body_bytes_max);
        assert_eq!(kept, [16 << 20, 16 << 20, 1 << 20, 64 << 10]);
    }
}
