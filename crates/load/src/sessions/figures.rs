//! Outcomes of sessions, of their connections and of their replies.

use crate::{ResponseTimes, SessionCounts};

/// Interval of counts over time, nanoseconds.
pub const INTERVAL_NS: u64 = 5_000_000_000;
/// Intervals that are kept: two months.
const INTERVALS_MAX: usize = 1 << 20;
/// Longer sessions count as those of this length.
const LENGTH_MAX: usize = 1 << 20;
const MS: u64 = 1_000_000;
/// Connections that live longer count as those of this lifetime, milliseconds, in the counts.
const LIFETIME_MS_MAX: usize = 100_000;

/// Outcomes of the sessions of one worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFigures {
    /// How many sessions there were, by their outcome.
    pub counts: SessionCounts,
    /// Connections of the sessions that were completed.
    pub connections: u64,
    /// Duration of completed sessions, from the opening of the first connection to the last reply,
    /// nanoseconds, summed up.
    pub completed_ns: u128,
    /// Duration of failed sessions, from the opening of the first connection to the end,
    /// nanoseconds, summed up.
    pub failed_ns: u128,
    /// How many sessions ended with so many replies, from 0 on.
    pub lengths: Vec<u64>,
    /// How many sessions were completed in each interval of [`INTERVAL_NS`], from the first request
    /// on.
    pub completed_by_interval: Vec<u64>,
    /// How many replies came in each of these intervals.
    pub replies_by_interval: Vec<u64>,
    /// Replies of all sessions.
    pub replies: u64,
    /// Time from a request to the first byte of its reply, nanoseconds, summed up.
    pub response_ns: u128,
    /// Time from the first byte of a reply to its end, nanoseconds, summed up.
    pub transfer_ns: u128,
    /// How long connections lived, from their opening to their last reply; only connections that
    /// had a reply count.
    pub lifetimes: Lifetimes,
    /// When the first request that was answered was sent; absent before its reply.
    pub first_ns: Option<u64>,
}

/// How long connections lived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifetimes {
    /// How many connections there were.
    pub count: u64,
    /// The shortest, nanoseconds.
    pub min_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
    /// The sum of the lifetimes, nanoseconds.
    pub sum_ns: u128,
    /// The sum of their squares, milliseconds squared.
    pub squares_ms: f64,
    /// How many lived so many whole milliseconds, from 0 on; the last ones longer.
    pub by_ms: Vec<u64>,
}

/// A session that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) is_complete: bool,
    /// When the opening of the session's first connection began, and when the session ended.
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) connections: u32,
    pub(super) replies: u32,
}

impl SessionFigures {
    pub(super) fn replied(&mut self, times: ResponseTimes) {
        self.replies += 1;
        let response_ns = times.first_byte_ns.saturating_sub(times.sent_ns);
        self.response_ns += u128::from(response_ns);
        let transfer_ns = times.done_ns.saturating_sub(times.first_byte_ns);
        self.transfer_ns += u128::from(transfer_ns);
        let first_ns = *self.first_ns.get_or_insert(times.sent_ns);
        add_in_time(&mut self.replies_by_interval, first_ns, times.done_ns);
    }

    pub(super) fn ended(&mut self, ended: Ended) {
        let Ended { from_ns, to_ns, .. } = ended;
        let lasted_ns = u128::from(to_ns.saturating_sub(from_ns));
        add_at(&mut self.lengths, (ended.replies as usize).min(LENGTH_MAX));
        if !ended.is_complete {
            self.counts.failed += 1;
            self.failed_ns += lasted_ns;
            return;
        }
        self.counts.completed += 1;
        self.completed_ns += lasted_ns;
        self.connections += u64::from(ended.connections);
        let first_ns = self.first_ns.unwrap_or(from_ns);
        add_in_time(&mut self.completed_by_interval, first_ns, to_ns);
    }

    /// A connection that had a reply is over; it lived so long.
    pub(super) fn lived(&mut self, ns: u64) {
        let all = &mut self.lifetimes;
        all.min_ns = if all.count == 0 {
            ns
        } else {
            all.min_ns.min(ns)
        };
        all.max_ns = all.max_ns.max(ns);
        all.count += 1;
        all.sum_ns += u128::from(ns);
        all.squares_ms += (ns as f64 / 1e6).powi(2);
        let ms = usize::try_from(ns / MS).unwrap_or(LIFETIME_MS_MAX);
        add_at(&mut all.by_ms, ms.min(LIFETIME_MS_MAX));
    }
}

impl Lifetimes {
    /// The least whole number of milliseconds that half of them do not live beyond; absent without
    /// any.
    pub fn median_ms(&self) -> Option<usize> {
        let mut below = 0;
        self.by_ms.iter().position(|&count| {
            below += count;
            count > 0 && below * 2 >= self.count
        })
    }
}

fn add_in_time(counts: &mut Vec<u64>, from_ns: u64, at_ns: u64) {
    let interval = at_ns.saturating_sub(from_ns) / INTERVAL_NS;
    let interval = usize::try_from(interval).unwrap_or(INTERVALS_MAX);
    if interval < INTERVALS_MAX {
        add_at(counts, interval);
    }
}

fn add_at(counts: &mut Vec<u64>, place: usize) {
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_added_up() {
        let mut figures = SessionFigures::default();
        for (is_complete, to_ns, replies) in [
            (true, 1_000, 3),
            (true, 2 * INTERVAL_NS + 1_000, 1),
            (false, 400, 0),
        ] {
            figures.first_ns.get_or_insert(100);
            figures.ended(Ended {
                is_complete,
                from_ns: 100,
                to_ns,
                connections: 2,
                replies,
            });
        }
        assert_eq!((figures.counts.completed, figures.counts.failed), (2, 1));
        assert_eq!(figures.connections, 4);
        assert_eq!(figures.lengths, [1, 1, 0, 1]);
        assert_eq!(figures.completed_by_interval, [1, 0, 1]);
        let lasted_ns = u128::from(2 * INTERVAL_NS + 1_800);
        assert_eq!((figures.completed_ns, figures.failed_ns), (lasted_ns, 300));
    }

    #[test]
    fn replies_and_connections_are_added_up() {
        let mut figures = SessionFigures::default();
        for sent_ns in [1_000, INTERVAL_NS] {
            figures.replied(ResponseTimes {
                sent_ns,
                first_byte_ns: sent_ns + 30,
                done_ns: sent_ns + 1_070,
                ..ResponseTimes::default()
            });
        }
        assert_eq!((figures.response_ns, figures.transfer_ns), (60, 2_080));
        assert_eq!(figures.replies_by_interval, [1, 1]);
        assert_eq!(figures.lifetimes.median_ms(), None);
        for ms in [34, 31, 400_000] {
            figures.lived(ms * MS + 700_000);
        }
        let all = &figures.lifetimes;
        assert_eq!((all.count, all.median_ms()), (3, Some(34)));
        assert_eq!((all.min_ns, all.max_ns), (31_700_000, 400_000_700_000));
        assert_eq!(all.by_ms.len(), LIFETIME_MS_MAX + 1);
    }
}
