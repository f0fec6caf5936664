//! When replies can come, as far as the past tells: a worker that polls may sleep until then.

use std::collections::VecDeque;

/// One part in this many of what a service time is above the floor raises it.
const FLOOR_RISE_PARTS: u64 = 256;

/// The replies in flight, by the first instant at which each is to be expected.
///
/// Most servers need a certain time for any answer. That floor is followed down at once and up
/// slowly, so a server whose times vary is expected to answer soon, and is polled for.
#[derive(Debug, Default)]
pub(crate) struct Expectation {
    floor_ns: Option<u64>,
    /// The instants in order. The entry of a request that was answered sooner stays until its
    /// instant.
    not_before_ns: VecDeque<u64>,
}

impl Expectation {
    /// `count` requests were sent.
    pub(crate) fn sent(&mut self, at_ns: u64, count: u32) {
        let Some(floor_ns) = self.floor_ns else {
            return;
        };
        // A lower floor must not bring disorder: who was sent later is not expected earlier.
        let latest_ns = self.not_before_ns.back().copied().unwrap_or(0);
        let not_before_ns = latest_ns.max(at_ns.saturating_add(floor_ns));
        self.not_before_ns.extend((0..count).map(|_| not_before_ns));
    }

    /// A request was answered after `service_ns`.
    pub(crate) fn replied(&mut self, service_ns: u64) {
        self.floor_ns = Some(match self.floor_ns {
            Some(floor_ns) if floor_ns < service_ns => {
                floor_ns + (service_ns - floor_ns) / FLOOR_RISE_PARTS
            }
            _ => service_ns,
        });
    }

    /// The instant before which no reply is to be expected, with `in_flight` requests unanswered:
    /// `now_ns` where one may come any time, `u64::MAX` where nothing is in flight.
    pub(crate) fn quiet_until_ns(&mut self, now_ns: u64, in_flight: u64) -> u64 {
        while self
            .not_before_ns
            .front()
            .is_some_and(|&not_before_ns| not_before_ns <= now_ns)
        {
            self.not_before_ns.pop_front();
        }
        if in_flight > self.not_before_ns.len() as u64 {
            return now_ns;
        }
        match self.not_before_ns.front() {
            Some(&not_before_ns) if in_flight > 0 => not_before_ns,
            _ => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_expected_before_the_floor() {
        let mut expectation = Expectation::default();
        assert_eq!(expectation.quiet_until_ns(5, 0), u64::MAX);
        expectation.sent(10, 1);
        assert_eq!(
            expectation.quiet_until_ns(11, 1),
            11,
            "nothing is known yet"
        );
        expectation.replied(1_000);
        expectation.sent(2_000, 2);
        expectation.sent(2_500, 1);
        assert_eq!(expectation.quiet_until_ns(2_999, 3), 3_000);
        // Two may come any time, and one later.
        assert_eq!(expectation.quiet_until_ns(3_000, 3), 3_000);
        assert_eq!(expectation.quiet_until_ns(3_010, 1), 3_500);
        assert_eq!(expectation.quiet_until_ns(3_600, 1), 3_600);
        assert_eq!(expectation.quiet_until_ns(3_600, 0), u64::MAX);
    }

    #[test]
    fn the_floor_falls_at_once_and_rises_slowly() {
        let mut expectation = Expectation::default();
        for (service_ns, floor_ns) in [(1_000, 1_000), (400, 400), (2_960, 410), (410, 410)] {
            expectation.replied(service_ns);
            assert_eq!(expectation.floor_ns, Some(floor_ns));
        }
        // Order is kept when it falls.
        expectation.sent(1_000, 1);
        expectation.replied(10);
        expectation.sent(1_001, 1);
        assert_eq!(expectation.quiet_until_ns(1_002, 2), 1_410);
        assert_eq!(expectation.quiet_until_ns(1_410, 1), 1_410);
    }
}
