//! When a worker is to run, and when it did: whether it polls or sleeps, and for how long.

use std::collections::VecDeque;

use brunt_io::spin::Spinner;
use brunt_load::Spin;
use brunt_probe::thread_meter::ThreadMeter;
use brunt_record::{Recorder, ThreadUse};

use crate::task::{Mode, PAUSE_NS_LEAST, Timeline};

/// A worker that polls sleeps through gaps of at least this: a CPU that slept is slower for a
/// while, which shorter ones are not worth.
const SLEEP_NS_LEAST: u64 = 1_000_000;
/// How long before something is expected such a sleep is to end, because sleeps end late.
const WAKE_UP_NS: u64 = 100_000;

/// When the worker is to run, and when it did.
#[derive(Debug)]
pub(super) struct WakeUps {
    pub(super) spinner: Spinner,
    /// Whether polling is wanted, where it is allowed.
    spin: Spin,
    /// The meter of the thread; absent where its use is not read.
    pub(super) meter: Option<ThreadMeter>,
    expectation: Expectation,
    /// When the worker ran last, or is to run next.
    pub(super) ran_ns: u64,
}

impl WakeUps {
    pub(super) fn new(spinner: Spinner, spin: Spin) -> Self {
        Self {
            spinner,
            spin,
            meter: None,
            expectation: Expectation::default(),
            ran_ns: u64::MAX,
        }
    }

    /// The window has begun.
    #[inline]
    pub(super) fn begin_window(&mut self, now_ns: u64) {
        if let Some(meter) = &mut self.meter {
            meter.begin(now_ns, self.spinner.spun_ns());
        }
    }

    /// What the thread used over the window, which ends at `left_ns`.
    pub(super) fn end_window(&self, left_ns: u64) -> Option<ThreadUse> {
        let meter = self.meter.as_ref()?;
        meter.end(left_ns, self.spinner.spun_ns())
    }

    /// The worker runs now. Where it did not for long, though it was to, somebody stopped it.
    #[inline]
    pub(super) fn runs(&mut self, now_ns: u64, mode: Mode, recorder: &mut Recorder) {
        if now_ns.saturating_sub(self.ran_ns) >= PAUSE_NS_LEAST && mode == Mode::Load {
            recorder.paused(self.ran_ns, now_ns);
        }
        self.ran_ns = now_ns;
    }

    /// The worker waits until `wake_ns`, and is not expected to run before. What is overdue already
    /// waited for its turn, not for the worker to run.
    #[inline]
    pub(super) fn waits(&mut self, from_ns: u64, wake_ns: u64) {
        self.ran_ns = wake_ns.max(from_ns);
    }

    /// Requests were sent.
    #[inline]
    pub(super) fn sent(&mut self, sent_ns: u64, count: u32) {
        if self.spin == Spin::Auto {
            self.expectation.sent(sent_ns, count);
        }
    }

    /// A reply took so long.
    #[inline]
    pub(super) fn replied(&mut self, service_ns: u64) {
        if self.spin == Spin::Auto {
            self.expectation.replied(service_ns);
        }
    }

    /// The instant until which a worker that may poll can sleep: shortly before the next arrival or
    /// reply is expected. `now_ns` where it is not to sleep, `u64::MAX` where it is not to poll.
    #[inline]
    pub(super) fn quiet_until_ns(
        &mut self,
        now_ns: u64,
        timeline: &Timeline,
        in_flight: u64,
        is_opening: bool,
        arrival_ns: u64,
    ) -> u64 {
        if timeline.mode == Mode::Setup || !self.spinner.may_spin(now_ns) {
            return u64::MAX;
        }
        match self.spin {
            Spin::Off => u64::MAX,
            Spin::On => now_ns,
            Spin::Auto if is_opening => now_ns,
            Spin::Auto => {
                let reply_ns = self.expectation.quiet_until_ns(now_ns, in_flight);
                let expected_ns = reply_ns.min(arrival_ns);
                if expected_ns > now_ns + SLEEP_NS_LEAST {
                    expected_ns - WAKE_UP_NS
                } else {
                    now_ns
                }
            }
        }
    }
}

/// One part in this many of what a service time is above the floor raises it.
const FLOOR_RISE_PARTS: u64 = 256;

/// The replies in flight, by the first instant at which each is to be expected.
///
/// Most servers need a certain time for any answer. That floor is followed down at once and up
/// slowly, so a server whose times vary is expected to answer soon, and is polled for.
#[derive(Debug, Default)]
struct Expectation {
    floor_ns: Option<u64>,
    /// The instants in order. The entry of a request that was answered sooner stays until its
    /// instant.
    not_before_ns: VecDeque<u64>,
}

impl Expectation {
    /// `count` requests were sent.
    fn sent(&mut self, at_ns: u64, count: u32) {
        let Some(floor_ns) = self.floor_ns else {
            return;
        };
        // A lower floor must not bring disorder: who was sent later is not expected earlier.
        let latest_ns = self.not_before_ns.back().copied().unwrap_or(0);
        let not_before_ns = latest_ns.max(at_ns.saturating_add(floor_ns));
        self.not_before_ns.extend((0..count).map(|_| not_before_ns));
    }

    /// A request was answered after `service_ns`.
    fn replied(&mut self, service_ns: u64) {
        self.floor_ns = Some(match self.floor_ns {
            Some(floor_ns) if floor_ns < service_ns => {
                floor_ns + (service_ns - floor_ns) / FLOOR_RISE_PARTS
            }
            _ => service_ns,
        });
    }

    /// The instant before which no reply is to be expected, with `in_flight` requests unanswered:
    /// `now_ns` where one may come any time, `u64::MAX` where nothing is in flight.
    fn quiet_until_ns(&mut self, now_ns: u64, in_flight: u64) -> u64 {
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
    use brunt_io::cpu::Cpus;

    use super::*;

    fn wake_ups(spin: Spin) -> WakeUps {
        let cpus = Cpus {
            usable: 4,
            is_confined: false,
        };
        WakeUps::new(Spinner::new(spin, 1, cpus), spin)
    }

    #[test]
    fn a_worker_that_may_poll_is_to_be_back_before_something_is_expected() {
        let mut timeline = Timeline::new();
        let until_ns = |spin, timeline: &Timeline, is_opening, arrival_ns| {
            wake_ups(spin).quiet_until_ns(5, timeline, 0, is_opening, arrival_ns)
        };
        assert_eq!(until_ns(Spin::On, &timeline, false, 10), u64::MAX);
        timeline.mode = Mode::Load;
        assert_eq!(until_ns(Spin::Off, &timeline, false, 10), u64::MAX);
        assert_eq!(until_ns(Spin::On, &timeline, false, 10), 5);
        let far_ns = 5 + 10 * SLEEP_NS_LEAST;
        assert_eq!(until_ns(Spin::Auto, &timeline, true, far_ns), 5);
        assert_eq!(
            until_ns(Spin::Auto, &timeline, false, far_ns),
            far_ns - WAKE_UP_NS
        );
        assert_eq!(
            until_ns(Spin::Auto, &timeline, false, 5 + SLEEP_NS_LEAST),
            5
        );
    }

    #[test]
    fn a_worker_that_does_not_run_when_it_is_to_was_stopped() {
        let paused = |mode, late_ns| {
            let mut recorder = Recorder::new(0, 1, 1);
            let mut wake_ups = wake_ups(Spin::Off);
            wake_ups.waits(10, 100);
            wake_ups.runs(100 + late_ns, mode, &mut recorder);
            assert_eq!(wake_ups.ran_ns, 100 + late_ns);
            recorder.record().pauses.len()
        };
        assert_eq!(paused(Mode::Load, PAUSE_NS_LEAST), 1);
        assert_eq!(paused(Mode::Load, PAUSE_NS_LEAST - 1), 0);
        assert_eq!(paused(Mode::Setup, PAUSE_NS_LEAST), 0);
    }

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
