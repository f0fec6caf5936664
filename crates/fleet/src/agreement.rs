//! How far another clock is from ours, with a bound: the intersection of what exchanges say.
//!
//! A ping leaves at t1 on our clock and comes at t2 on the other one; the answer leaves there at t3
//! and comes at t4. Neither way takes less than no time, so the other clock is ahead by t2 − t1 at
//! most, and by t3 − t4 at least. That holds whatever the ways take, however unlike they are. What
//! several exchanges say holds at once, but for how far the clocks drift apart between them.

use std::collections::VecDeque;

/// How far two clocks may drift apart, as a part of the time: Linux lets NTP slew each by 500 ppm.
const DRIFT_MAX: f64 = 1e-3;
/// Exchanges that are kept. They come a few times a second: older ones have drifted too far to say
/// anything.
const KEPT: usize = 64;

/// One exchange with the other clock, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// Our clock when the ping left.
    pub sent_ns: u64,
    /// The other clock when it came.
    pub received_ns: u64,
    /// The other clock when the answer left.
    pub replied_ns: u64,
    /// Our clock when it came.
    pub returned_ns: u64,
}

impl ClockExchange {
    /// Time that both ways took, nanoseconds; absent where the readings contradict each other.
    pub fn round_trip_ns(&self) -> Option<u64> {
        let whole_ns = self.returned_ns.checked_sub(self.sent_ns)?;
        whole_ns.checked_sub(self.replied_ns.checked_sub(self.received_ns)?)
    }
}

/// How far the other clock is ahead of ours, at some instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreed {
    /// The middle of what is possible, nanoseconds.
    pub offset_ns: f64,
    /// How far off that is at most, nanoseconds.
    pub bound_ns: f64,
}

/// What exchanges with another clock say.
#[derive(Clone, Debug, Default)]
pub struct ClockAgreement {
    exchanges: VecDeque<ClockExchange>,
    count: u32,
    round_trip_ns_min: Option<u64>,
    round_trip_ns_max: u64,
}

impl ClockAgreement {
    /// Adds an exchange; one whose readings contradict each other is left out.
    pub fn add(&mut self, exchange: ClockExchange) {
        let Some(round_trip_ns) = exchange.round_trip_ns() else {
            return;
        };
        self.count = self.count.saturating_add(1);
        let shortest_ns = self.round_trip_ns_min.get_or_insert(round_trip_ns);
        *shortest_ns = round_trip_ns.min(*shortest_ns);
        self.round_trip_ns_max = self.round_trip_ns_max.max(round_trip_ns);
        if self.exchanges.len() == KEPT {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(exchange);
    }

    /// How many there were.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The shortest time that both ways took, nanoseconds; absent without any exchange.
    pub fn round_trip_ns_min(&self) -> Option<u64> {
        self.round_trip_ns_min
    }

    /// The longest time that both ways took, nanoseconds.
    pub fn round_trip_ns_max(&self) -> u64 {
        self.round_trip_ns_max
    }

    /// How far the other clock is ahead at `at_ns` on ours. Absent without an exchange, and where
    /// two contradict each other: a clock was set, or drifts faster than any should.
    pub fn at(&self, at_ns: u64) -> Option<Agreed> {
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        for exchange in &self.exchanges {
            let drift = |of_ns: u64| at_ns.abs_diff(of_ns) as f64 * DRIFT_MAX;
            let ahead =
                |theirs_ns: u64, ours_ns: u64| (i128::from(theirs_ns) - i128::from(ours_ns)) as f64;
            let upper = ahead(exchange.received_ns, exchange.sent_ns) + drift(exchange.sent_ns);
            let lower =
                ahead(exchange.replied_ns, exchange.returned_ns) - drift(exchange.returned_ns);
            most = most.min(upper);
            least = least.max(lower);
        }
        (least.is_finite() && most.is_finite() && least <= most).then(|| Agreed {
            offset_ns: least.midpoint(most),
            bound_ns: (most - least) / 2.0,
        })
    }
}

impl Agreed {
    /// The reading of the other clock at `at_ns` on ours.
    pub fn theirs_ns(&self, at_ns: u64) -> u64 {
        let ns = i128::from(at_ns) + self.offset_ns.round() as i128;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    /// How much later than `at_ns` on our clock it is when the other one reads `theirs_ns`.
    pub fn later_ns(&self, theirs_ns: u64, at_ns: u64) -> i64 {
        let ns = i128::from(theirs_ns) - self.offset_ns.round() as i128 - i128::from(at_ns);
        ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A clock that is ahead by `offset_ns` at our 0 and gains `drift`, over ways that take `there`
    /// and `back`.
    fn exchange(
        at_ns: u64,
        offset_ns: i64,
        drift: f64,
        there_ns: u64,
        back_ns: u64,
    ) -> ClockExchange {
        let theirs = |ours_ns: u64| {
            let ns = ours_ns as f64 * (1.0 + drift);
            (ns as i64 + offset_ns) as u64
        };
        let come_ns = at_ns + there_ns;
        let left_ns = come_ns + 50_000;
        ClockExchange {
            sent_ns: at_ns,
            received_ns: theirs(come_ns),
            replied_ns: theirs(left_ns),
            returned_ns: left_ns + back_ns,
        }
    }

    /// A sequence of numbers that looks random.
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn the_bound_holds_the_truth_whatever_the_ways_take() {
        let mut seed = 0x9e37_79b9_7f4a_7c15;
        for round in 0..500 {
            // An hour ahead, or a minute behind (the clocks of processes begin at different times).
            let offset_ns = [3_600_000_000_000, -50_000_000_000, 0, 17][round % 4];
            let drift = [0.0, 4e-4, -4e-4][round % 3];
            let (least_there, least_back) = (next(&mut seed) % (20 * MS), next(&mut seed) % MS);
            let mut agreement = ClockAgreement::default();
            let mut at_ns = 100_000 * MS;
            for _ in 0..40 {
                let there_ns = least_there + next(&mut seed) % (5 * MS);
                let back_ns = least_back + next(&mut seed) % (5 * MS);
                agreement.add(exchange(at_ns, offset_ns, drift, there_ns, back_ns));
                at_ns += 100 * MS;
            }
            for ahead_ns in [0, 1_000 * MS, 3_000 * MS] {
                let then_ns = at_ns + ahead_ns;
                let truth = offset_ns as f64 + then_ns as f64 * drift;
                let agreed = agreement.at(then_ns).expect("they agree");
                let error = (agreed.offset_ns - truth).abs();
                assert!(error <= agreed.bound_ns + 1_000.0, "{error} {agreed:?}");
                // The bound is that of the shortest ways, and what may have drifted since.
                let widest = (least_there + least_back) as f64 / 2.0 + 5e6 + ahead_ns as f64 * 1e-3;
                assert!(agreed.bound_ns <= widest, "{agreed:?} {widest}");
            }
        }
    }

    #[test]
    fn many_exchanges_say_more_than_one() {
        let mut agreement = ClockAgreement::default();
        agreement.add(exchange(1_000 * MS, 500, 0.0, 4 * MS, MS));
        let one = agreement.at(1_000 * MS).expect("one exchange");
        agreement.add(exchange(1_010 * MS, 500, 0.0, MS, 4 * MS));
        let two = agreement.at(1_010 * MS).expect("two exchanges");
        assert!(two.bound_ns < one.bound_ns / 2.0, "{one:?} {two:?}");
        assert_eq!(agreement.round_trip_ns_min(), Some(5 * MS));
        assert_eq!(agreement.count(), 2);
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let mut agreement = ClockAgreement::default();
        assert_eq!(agreement.at(0), None);
        agreement.add(exchange(10_000 * MS, 0, 0.0, MS, MS));
        assert!(agreement.at(10_000 * MS).is_some());
        agreement.add(exchange(11_000 * MS, 500 * MS as i64, 0.0, MS, MS));
        assert_eq!(agreement.at(11_000 * MS), None);
        // Readings that contradict each other by themselves are none.
        let mut wrong = exchange(12_000 * MS, 0, 0.0, MS, MS);
        wrong.replied_ns = wrong.received_ns + 10_000 * MS;
        agreement.add(wrong);
        assert_eq!(agreement.count(), 2);
    }

    #[test]
    fn instants_are_taken_over() {
        let agreed = Agreed {
            offset_ns: -250.0,
            bound_ns: 3.0,
        };
        assert_eq!(agreed.theirs_ns(1_000), 750);
        assert_eq!(agreed.theirs_ns(100), 0);
        assert_eq!(agreed.later_ns(760, 1_000), 10);
    }
}
