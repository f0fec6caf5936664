//! When a thread that has just worked polls for a moment before it sleeps: on a CPU that others use
//! as well.
//!
//! A sleep there gives the CPU to another thread, and the next reply takes it back a few
//! microseconds later: two switches, and caches that are cold. They cost more than a moment of
//! polling.

use crate::contention::{LOOK_NS, PAUSE_NS_MAX, PAUSE_NS_MIN, is_contended};
use crate::cpu::Contention;

/// How long to poll after work: about what a sleep costs.
const LINGER_NS: u64 = 20_000;

/// Decides for one thread, turn by turn.
///
/// It polls only while others want its CPU. Where more than half of the moments bring nothing, in
/// 50 ms, it sleeps at once for a while (0.1 s, doubling up to 10 s).
#[derive(Debug, Default)]
pub(crate) struct Linger {
    /// The latest look at whether others want the CPU, and what was read.
    looked_ns: u64,
    seen: Option<Contention>,
    is_crowded: bool,
    worked_ns: u64,
    /// The worker has polled since it worked last.
    is_trying: bool,
    /// Moments of polling since the latest look, and those that brought something.
    tries: u32,
    hits: u32,
    pause_ns: u64,
    sleeps_until_ns: u64,
}

impl Linger {
    /// Something came, or fell due.
    #[inline]
    pub(crate) fn worked(&mut self, now_ns: u64) {
        self.hits += u32::from(std::mem::take(&mut self.is_trying));
        self.worked_ns = now_ns;
    }

    /// Whether to poll instead of sleeping at this turn. `read` reads how others kept the thread
    /// from its CPU.
    pub(crate) fn lingers(&mut self, now_ns: u64, read: impl FnOnce() -> Contention) -> bool {
        if now_ns.saturating_sub(self.looked_ns) >= LOOK_NS {
            self.look(now_ns, read());
        }
        if !self.is_crowded
            || now_ns < self.sleeps_until_ns
            || now_ns >= self.worked_ns.saturating_add(LINGER_NS)
        {
            self.is_trying = false;
            return false;
        }
        self.tries += u32::from(!std::mem::replace(&mut self.is_trying, true));
        true
    }

    fn look(&mut self, now_ns: u64, reading: Contention) {
        let interval_ns = now_ns - self.looked_ns;
        self.looked_ns = now_ns;
        let before = self.seen.replace(reading);
        self.is_crowded =
            before.is_some_and(|before| is_contended(reading.since(before), interval_ns));
        if self.tries > 2 * self.hits {
            self.pause_ns = (2 * self.pause_ns).clamp(PAUSE_NS_MIN, PAUSE_NS_MAX);
            self.sleeps_until_ns = now_ns.saturating_add(self.pause_ns);
        } else if self.tries > 0 {
            self.pause_ns = 0;
        }
        (self.tries, self.hits) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of 1,000 turns of 10 µs polled, of a thread that others keep from its CPU for
    /// `waited` of 100 parts of the time, and that works in every turn whose number `works` has.
    fn polled(waited: u64, works: impl Fn(u64) -> bool) -> usize {
        let mut linger = Linger::default();
        let mut polls = |turn: &u64| {
            let now_ns = 10 * LOOK_NS + turn * 10_000;
            if works(*turn) {
                linger.worked(now_ns);
            }
            linger.lingers(now_ns, || Contention {
                involuntary_switches: 0,
                run_queue_wait_ns: Some(now_ns * waited / 100),
            })
        };
        // Two looks tell whether it is crowded.
        for turn in 0..10_000 {
            polls(&turn);
        }
        (10_000..11_000).filter(|turn| polls(turn)).count()
    }

    #[test]
    fn it_polls_where_others_want_the_cpu_and_work_comes_soon() {
        assert_eq!(polled(50, |_| true), 1_000);
        assert_eq!(polled(50, |turn| turn % 2 == 0), 1_000);
        assert_eq!(polled(5, |_| true), 0, "nobody else wants the CPU");
    }

    #[test]
    fn it_sleeps_where_polling_brings_nothing() {
        let polls = polled(50, |turn| turn % 100 == 0);
        assert!(polls < 30, "{polls}");
        assert_eq!(polled(50, |_| false), 0);
    }
}
