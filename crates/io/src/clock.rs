//! The one clock: the only file that asks the system for a time that brunt decides by.
#![expect(
    clippy::disallowed_methods,
    reason = "everything else is handed the time"
)]

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// How long a measured distance between wall time and the run's clock is used, nanoseconds. Both
/// are slewed alike, so only a step of wall time changes it.
const OFFSET_AGE_NS_MAX: u64 = 100_000_000;
/// Readings per measurement, of which the tightest counts.
const OFFSET_READINGS: usize = 8;
/// Nanoseconds of CLOCK_MONOTONIC since the first call in this process. The binary calls it first
/// thing, so that the origin is the start of the process.
pub fn now_ns() -> u64 {
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The instant 0 of this clock, for those who calculate with instants of the system's own form.
pub fn origin() -> Instant {
    *ORIGIN.get_or_init(Instant::now)
}

/// Wall-clock time, milliseconds since 1970-01-01 UTC: for labels only.
pub fn unix_ms() -> u64 {
    (unix_ns() / 1_000_000).max(0) as u64
}

/// When the clock of this process began, nanoseconds since 1970-01-01 UTC, as the wall clock is
/// now.
pub fn origin_unix_ns() -> u64 {
    let since_ns = now_ns();
    (unix_ns().max(0) as u64).saturating_sub(since_ns)
}

/// Wall-clock time, nanoseconds since 1970-01-01 UTC.
fn unix_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i64,
        Err(error) => -(error.duration().as_nanos() as i64),
    }
}

/// Turns instants of wall time, as the kernel stamps them, into instants of the run's clock.
#[derive(Debug, Default)]
pub struct RealTime {
    offset: Option<Offset>,
    clamped: u64,
}

/// Wall time minus the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    ns: i64,
    /// When the offset was measured, on the run's clock.
    measured_ns: u64,
}

/// A reading of wall time between two of the run's clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    before_ns: u64,
    unix_ns: i64,
    after_ns: u64,
}

impl RealTime {
    /// The instant on the run's clock of one that has passed, given as nanoseconds since
    /// 1970-01-01 UTC. Wall time that was set back or forth in between makes it wrong, for as long
    /// as 100 ms; but it is never later than now.
    pub fn on_run_clock(&mut self, unix_ns: i64) -> u64 {
        self.convert(unix_ns, now_ns(), measure)
    }

    /// Instants that came out later than now, which only a step of wall time brings about.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    fn convert(&mut self, unix_ns: i64, now_ns: u64, measure: impl FnOnce() -> Offset) -> u64 {
        let known = self
            .offset
            .filter(|offset| now_ns.saturating_sub(offset.measured_ns) < OFFSET_AGE_NS_MAX);
        let offset = *self.offset.insert(known.unwrap_or_else(measure));
        let run_ns = u64::try_from(unix_ns.saturating_sub(offset.ns)).unwrap_or(0);
        if run_ns > now_ns {
            self.clamped += 1;
            self.offset = None;
            return now_ns;
        }
        run_ns
    }
}

fn measure() -> Offset {
    tightest([(); OFFSET_READINGS].map(|()| {
        let before_ns = now_ns();
        Reading {
            before_ns,
            unix_ns: unix_ns(),
            after_ns: now_ns(),
        }
    }))
}

/// What the reading says that took the least time: it was interrupted least.
fn tightest(readings: [Reading; OFFSET_READINGS]) -> Offset {
    let mut best = readings[0];
    for reading in readings {
        if reading.after_ns - reading.before_ns < best.after_ns - best.before_ns {
            best = reading;
        }
    }
    let middle_ns = best.before_ns + (best.after_ns - best.before_ns) / 2;
    Offset {
        ns: best.unix_ns - middle_ns as i64,
        measured_ns: best.after_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// Some day in 2026.
    const UNIX_NS: i64 = 1_790_000_000_000_000_000;

    fn offset(ns: i64, measured_ns: u64) -> Offset {
        Offset { ns, measured_ns }
    }

    #[test]
    fn the_tightest_reading_counts() {
        let mut readings = [Reading {
            before_ns: 1_000,
            unix_ns: UNIX_NS + 9_000,
            after_ns: 9_000,
        }; OFFSET_READINGS];
        readings[5] = Reading {
            before_ns: 20_000,
            unix_ns: UNIX_NS + 20_030,
            after_ns: 20_060,
        };
        assert_eq!(tightest(readings), offset(UNIX_NS, 20_060));
    }

    #[test]
    fn an_offset_is_measured_anew_after_a_while() {
        let mut real_time = RealTime::default();
        let fresh = || offset(UNIX_NS, 5 * MS);
        let never = || unreachable!("it is known");
        assert_eq!(real_time.convert(UNIX_NS + 1, 5 * MS, fresh), 1);
        assert_eq!(real_time.convert(UNIX_NS + 2, 104 * MS, never), 2);
        let moved = || offset(UNIX_NS + 1, 105 * MS);
        assert_eq!(real_time.convert(UNIX_NS + 3, 105 * MS, moved), 2);
        assert_eq!(real_time.convert(UNIX_NS + 3, 204 * MS, never), 2);
        assert_eq!(real_time.clamped(), 0);
    }

    #[test]
    fn instants_lie_between_the_origin_and_now() {
        let mut real_time = RealTime::default();
        let at = |now_ns| move || offset(UNIX_NS, now_ns);
        assert_eq!(real_time.convert(UNIX_NS + 10, 10, at(10)), 10);
        assert_eq!(real_time.convert(UNIX_NS + 11, 10, at(10)), 10);
        assert_eq!(real_time.clamped(), 1);
        // What made it wrong is not used again.
        assert_eq!(
            real_time.convert(UNIX_NS + 12, 20, || offset(UNIX_NS + 2, 20)),
            10
        );
        assert_eq!(real_time.convert(0, 30, at(30)), 0);
        assert_eq!(real_time.convert(i64::MIN, 30, at(30)), 0);
        assert_eq!(real_time.clamped(), 1);
    }

    #[test]
    fn wall_time_read_now_is_now() {
        let mut real_time = RealTime::default();
        let before_ns = now_ns();
        let unix_ns = unix_ns();
        let after_ns = now_ns();
        let run_ns = real_time.on_run_clock(unix_ns);
        // The offset is known to half the width of a reading, far below a millisecond.
        assert!((before_ns.saturating_sub(MS)..=after_ns + MS).contains(&run_ns));
    }
}
