//! Answers whose pace all requests of the process share: drifting delays, limited rates, turns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use brunt_load::units;

/// The longest delay or interval of a route: one hour, nanoseconds.
pub(crate) const DURATION_NS_MAX: u64 = 3_600 * 1_000_000_000;
/// Distinct `/limit` paths that are paced; requests on more are refused at once.
const LIMITS_MAX: usize = 1_024;
/// What one answer takes out of a bucket. A bucket gains its rate in every nanosecond.
const ANSWER_COST: u64 = 1_000_000_000;
/// How much of the rate may be answered in one burst, nanoseconds.
const BURST_NS: u64 = 10_000_000;

/// The parameters of `/drift`: a delay that changes as the process grows older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drift {
    /// The delay at the start of the process, nanoseconds.
    pub(crate) from_ns: u64,
    /// The delay from the end of the period on, nanoseconds.
    pub(crate) to_ns: u64,
    /// How long the change takes, nanoseconds.
    pub(crate) period_ns: u64,
}

impl Drift {
    /// The drift of three durations as they are typed.
    pub(crate) fn of(from: &str, to: &str, period: &str) -> Option<Self> {
        let drift = Self {
            from_ns: duration_ns(from)?,
            to_ns: duration_ns(to)?,
            period_ns: duration_ns(period)?,
        };
        (drift.period_ns > 0).then_some(drift)
    }

    /// The delay of a request that is noticed at this instant, nanoseconds.
    pub(crate) fn delay_ns(&self, noticed_ns: u64) -> u64 {
        if noticed_ns >= self.period_ns {
            return self.to_ns;
        }
        let part = |ns: u64| u128::from(ns) * u128::from(noticed_ns) / u128::from(self.period_ns);
        // Never more than the distance, so it fits.
        if self.to_ns >= self.from_ns {
            self.from_ns + part(self.to_ns - self.from_ns) as u64
        } else {
            self.from_ns - part(self.from_ns - self.to_ns) as u64
        }
    }
}

/// When the server stalls: in the first part of every period. Periods are counted from the start of
/// the process, so that all connections have one silence. Over raw TCP, nothing is read or sent
/// then; typed as `SILENCE/PERIOD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The first part, nanoseconds, up to the period.
    pub silence_ns: u64,
    /// The period, nanoseconds, from 1.
    pub period_ns: u64,
}

impl Stall {
    /// The stall of two durations as they are typed.
    pub(crate) fn of(silence: &str, period: &str) -> Option<Self> {
        let (silence_ns, period_ns) = (duration_ns(silence)?, duration_ns(period)?);
        (period_ns > 0 && silence_ns <= period_ns).then_some(Self {
            silence_ns,
            period_ns,
        })
    }

    /// The first instant from this one on that is in no silence.
    pub(crate) fn end_ns(&self, at_ns: u64) -> u64 {
        let into_period_ns = at_ns % self.period_ns;
        if into_period_ns < self.silence_ns {
            (at_ns - into_period_ns).saturating_add(self.silence_ns)
        } else {
            at_ns
        }
    }
}

/// The parameters of `/limit`; requests with equal ones share one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Limit {
    /// Requests that are answered, per second.
    pub(crate) per_s: u64,
    /// The status of the others.
    pub(crate) status: u16,
}

/// What requests have in common, over all workers.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// What of each limit is left, and when that was computed.
    buckets: Mutex<BTreeMap<Limit, (u64, u64)>>,
    /// When the last turn that was given out ends.
    turns_end_ns: AtomicU64,
}

impl Pace {
    /// Counts a request against its limit; whether it is over it.
    pub(crate) fn exceeds(&self, limit: Limit, now_ns: u64) -> bool {
        let buckets = self.buckets.lock();
        let mut buckets = buckets.unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= LIMITS_MAX && !buckets.contains_key(&limit) {
            return true;
        }
        // A burst may come first, and it is at least one answer.
        let capacity = limit.per_s.saturating_mul(BURST_NS).max(ANSWER_COST);
        let (level, at_ns) = buckets.entry(limit).or_insert((capacity, now_ns));
        let gained = limit.per_s.saturating_mul(now_ns.saturating_sub(*at_ns));
        *level = level.saturating_add(gained).min(capacity);
        *at_ns = now_ns.max(*at_ns);
        let left = level.checked_sub(ANSWER_COST);
        *level = left.unwrap_or(*level);
        left.is_none()
    }

    /// Gives out the next turn, of this length; when it ends.
    pub(crate) fn turn_end_ns(&self, now_ns: u64, length_ns: u64) -> u64 {
        let after = |end_ns: u64| end_ns.max(now_ns).saturating_add(length_ns);
        // The function is total, so both arms hold the end of the turn before.
        let (Ok(before_ns) | Err(before_ns)) =
            self.turns_end_ns
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |end_ns| {
                    Some(after(end_ns))
                });
        after(before_ns)
    }
}

/// A duration as it is typed anywhere in brunt, up to an hour.
pub(crate) fn duration_ns(text: &str) -> Option<u64> {
    units::duration_ns(text)
        .ok()
        .filter(|ns| *ns <= DURATION_NS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;

    #[test]
    fn a_delay_drifts_in_a_straight_line() {
        let rising = Drift {
            from_ns: MS,
            to_ns: 3 * MS,
            period_ns: 4 * SECOND,
        };
        let falling = Drift {
            from_ns: 3 * MS,
            to_ns: MS,
            ..rising
        };
        for (at_ns, up_ns) in [
            (0, MS),
            (SECOND, 3 * MS / 2),
            (2 * SECOND, 2 * MS),
            (4 * SECOND - 1, 3 * MS - 1),
            (4 * SECOND, 3 * MS),
            (u64::MAX, 3 * MS),
        ] {
            assert_eq!(rising.delay_ns(at_ns), up_ns);
            // Rounded down on either side.
            assert!(falling.delay_ns(at_ns).abs_diff(4 * MS - up_ns) <= 1);
        }
        let longest = Drift {
            from_ns: 0,
            to_ns: 3_600 * SECOND,
            period_ns: 3_600 * SECOND,
        };
        assert_eq!(longest.delay_ns(1_234 * SECOND), 1_234 * SECOND);
    }

    #[test]
    fn a_limit_lets_its_rate_through() {
        // Asked evenly, at 1, 2 and 10 times the limit, over 10 s.
        for per_s in [1, 3, 100, 5_000, 1_000_000] {
            for times in [1, 2, 10] {
                let (pace, status) = (Pace::default(), 429);
                let limit = Limit { per_s, status };
                let asked = per_s.min(10_000) * 10 * times;
                let span_ns = 10 * SECOND * per_s.min(10_000) / per_s;
                let answered = (0..asked)
                    .filter(|index| !pace.exceeds(limit, 7 + index * span_ns / asked))
                    .count() as u64;
                let burst = (per_s / 100).max(1);
                let most = (per_s.min(10_000) * 10 + burst).min(asked);
                // A bucket of one is full while the next request is still to come.
                let least = if burst > 1 {
                    most - 2
                } else {
                    (per_s * 10 * times / (times + 1)).saturating_sub(1)
                };
                assert!(
                    (least..=most).contains(&answered),
                    "{per_s}/s, asked {asked}: {answered} of {least} to {most}"
                );
            }
        }
    }

    #[test]
    fn a_burst_is_ten_milliseconds_of_the_rate() {
        for (per_s, burst) in [(1, 1), (99, 1), (5_000, 50), (1_000_000, 10_000)] {
            let pace = Pace::default();
            let limit = Limit { per_s, status: 429 };
            // A long silence saves up no more than that; nor does time that goes back.
            for at_ns in [SECOND, 100 * SECOND, 50 * SECOND] {
                let answered = (0..20_000).filter(|_| !pace.exceeds(limit, at_ns)).count();
                let expected = if at_ns == 50 * SECOND { 0 } else { burst };
                assert_eq!(answered, expected, "{per_s}/s at {at_ns}");
            }
        }
    }

    #[test]
    fn limits_have_buckets_of_their_own_up_to_a_number() {
        let pace = Pace::default();
        for status in [429, 503] {
            let limit = Limit { per_s: 1, status };
            assert!(!pace.exceeds(limit, 0));
            assert!(pace.exceeds(limit, 0));
        }
        for per_s in 2..=LIMITS_MAX as u64 {
            pace.exceeds(Limit { per_s, status: 429 }, 0);
        }
        let limit = Limit {
            per_s: 1_000_000,
            status: 429,
        };
        assert!(pace.exceeds(limit, 0), "bounded");
    }

    #[test]
    fn turns_follow_each_other() {
        let pace = Pace::default();
        assert_eq!(pace.turn_end_ns(100, 10), 110);
        assert_eq!(pace.turn_end_ns(100, 10), 120);
        assert_eq!(pace.turn_end_ns(105, 5), 125);
        assert_eq!(pace.turn_end_ns(200, 10), 210);
        assert_eq!(pace.turn_end_ns(0, u64::MAX), u64::MAX);
    }
}
