//! The time that calls of a generator take, estimated from a part of them.

/// Number of calls that are timed at first; after them, one call in `TIMED_EVERY` is timed. Two
/// readings of the clock would take a hundredth of the time of a request. The period is one that no
/// script has, so that the timed calls stand for the others.
const TIMED_FIRST: u64 = 1_000;
const TIMED_EVERY: u64 = 31;
/// Time that calls take, by those that are timed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallTime {
    pub(super) calls: u64,
    pub(super) ns: u64,
    /// The latest call was timed.
    pub(super) was_timed: bool,
}

impl CallTime {
    /// Counts one more call. Gives, where the call is to be timed, how many calls it stands for.
    pub(super) fn count(&mut self) -> Option<u64> {
        self.calls += 1;
        if self.calls <= TIMED_FIRST {
            Some(1)
        } else {
            self.calls
                .is_multiple_of(TIMED_EVERY)
                .then_some(TIMED_EVERY)
        }
    }

    pub(super) fn add(&mut self, ns: u64, calls: u64) {
        self.ns = self.ns.saturating_add(ns.saturating_mul(calls));
        self.was_timed = true;
    }

    /// Whether calls take less than `ns` on average, as far as enough were timed.
    pub(super) fn is_below(&self, ns: u64) -> bool {
        self.calls > TIMED_FIRST && self.ns < self.calls.saturating_mul(ns)
    }

    /// Takes the time of `call`, if it is counted and its turn has come.
    #[inline]
    pub(super) fn time<T>(
        &mut self,
        is_counted: bool,
        now_ns: impl Fn() -> u64,
        call: impl FnOnce() -> T,
    ) -> T {
        let stands_for = if is_counted { self.count() } else { None };
        let Some(calls) = stands_for else {
            return call();
        };
        let from_ns = now_ns();
        let outcome = call();
        self.add(now_ns().saturating_sub(from_ns), calls);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_timed_seldom_and_stand_for_all() {
        let mut time = CallTime::default();
        let clock = std::cell::Cell::new(0);
        let calls = TIMED_FIRST + 100 * TIMED_EVERY;
        for _ in 0..calls {
            time.time(true, || clock.get(), || clock.set(clock.get() + 7));
        }
        assert_eq!(time.calls, calls);
        let off = time.ns.abs_diff(7 * calls);
        assert!(off <= 7 * TIMED_EVERY, "{} of {}", time.ns, 7 * calls);
        assert!(time.is_below(8) && !time.is_below(7));
        time.time(false, || unreachable!("not counted"), || {});
        assert_eq!(time.calls, calls);
    }
}
