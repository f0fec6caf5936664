//! When a thread that waits polls instead of sleeping: precise to about a microsecond, at the
//! price of a CPU.

use brunt_load::Spin;

use crate::cpu::{
    Contention, ContentionProbe, Cpus, LOOK_NS, PAUSE_NS_MAX, PAUSE_NS_MIN, is_contended,
};

/// How long a thread has to poll undisturbed until its next pause is the shortest again.
const CALM_NS: u64 = 1_000_000_000;

/// The longest that one look for something to do takes. One that took longer was not polling: the
/// thread had lost its CPU, to a server that does its work there, or was stopped.
const POLL_NS_MAX: u64 = 50_000;

/// Decides for one thread, turn by turn, whether to poll, and accounts for the time that it polled
/// in vain.
///
/// [`Spin::Auto`] takes a CPU only from nobody. It never polls unless CPUs are to spare: fewer
/// threads that may poll than usable CPUs, or, where the process was confined to some CPUs of the
/// machine, no more. And it stops for a while (0.1 s, doubling up to 10 s) whenever other threads
/// wanted the CPU: more than 10 % of the time was spent in the run queue, or the kernel switched
/// the thread out more than 100 times in 50 ms.
///
/// In virtual time it must be [`Spin::Off`]: polling does not make that time pass.
#[derive(Debug)]
pub struct Spinner {
    policy: Policy,
    /// Opened at the first look, which is made by the thread in question.
    probe: Option<ContentionProbe>,
    /// Since when the thread polls without finding work.
    polling_since_ns: Option<u64>,
    spun_ns: u64,
}

impl Spinner {
    /// A spinner for one of `threads` threads that may poll (workers, and those of a server in the
    /// same process), in a process that has `cpus`. The thread that polls must be the one that
    /// calls the other functions.
    pub fn new(spin: Spin, threads: u32, cpus: Cpus) -> Self {
        Self {
            policy: Policy::new(spin, threads, cpus),
            probe: None,
            polling_since_ns: None,
            spun_ns: 0,
        }
    }

    /// Whether to poll instead of sleeping at this turn; to be asked at every turn, also when no
    /// precision is `wanted` and the answer is no. `now_ns` is a reading of the clock that is made
    /// when nothing is left to do, just before the wait; it never decreases.
    pub fn spins(&mut self, now_ns: u64, wanted: bool) -> bool {
        self.settle(now_ns);
        if !wanted {
            return false;
        }
        let probe = &mut self.probe;
        let spins = self.policy.spins(now_ns, || {
            probe.get_or_insert_with(ContentionProbe::of_thread).read()
        });
        if spins {
            self.polling_since_ns = Some(now_ns);
        }
        spins
    }

    /// Whether polling is possible now, were it wanted.
    pub fn may_spin(&self, now_ns: u64) -> bool {
        match self.policy.state {
            SpinState::Never => false,
            SpinState::Always | SpinState::Polling { .. } => true,
            SpinState::Pausing { until_ns } => now_ns >= until_ns,
        }
    }

    /// Something came or fell due: from `now_ns` until the next turn's [`Spinner::spins`] the
    /// thread works. May be called any number of times per turn; without a call, the whole turn
    /// was spent polling without work.
    pub fn worked(&mut self, now_ns: u64) {
        self.settle(now_ns);
    }

    /// Accounts for what was polled in vain until now.
    fn settle(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.polling_since_ns.take() {
            let polled_ns = now_ns.saturating_sub(since_ns);
            if polled_ns <= POLL_NS_MAX {
                self.spun_ns += polled_ns;
            }
        }
    }

    /// Time spent polling without work, nanoseconds: CPU time that was no work. It grows when
    /// [`Spinner::worked`] or [`Spinner::spins`] is called.
    pub fn spun_ns(&self) -> u64 {
        self.spun_ns
    }
}

/// The decision alone: it gets the readings as arguments.
#[derive(Debug)]
struct Policy {
    state: SpinState,
    /// How long the next pause will be.
    pause_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpinState {
    Never,
    Always,
    Polling {
        since_ns: u64,
        /// The latest look, and what was read.
        looked_ns: u64,
        seen: Contention,
    },
    /// Leaves the CPU to others.
    Pausing {
        until_ns: u64,
    },
}

impl Policy {
    fn new(spin: Spin, threads: u32, cpus: Cpus) -> Self {
        let state = match spin {
            Spin::On => SpinState::Always,
            Spin::Auto if has_room(threads, cpus) => SpinState::Pausing { until_ns: 0 },
            Spin::Auto | Spin::Off => SpinState::Never,
        };
        Self {
            state,
            pause_ns: PAUSE_NS_MIN,
        }
    }

    fn spins(&mut self, now_ns: u64, read: impl FnOnce() -> Contention) -> bool {
        match &mut self.state {
            SpinState::Never => false,
            SpinState::Always => true,
            SpinState::Pausing { until_ns } if now_ns < *until_ns => false,
            SpinState::Pausing { .. } => {
                self.state = SpinState::Polling {
                    since_ns: now_ns,
                    looked_ns: now_ns,
                    seen: read(),
                };
                true
            }
            SpinState::Polling { looked_ns, .. } if now_ns < *looked_ns + LOOK_NS => true,
            SpinState::Polling {
                since_ns,
                looked_ns,
                seen,
            } => {
                let reading = read();
                if !is_contended(reading.since(*seen), now_ns - *looked_ns) {
                    *looked_ns = now_ns;
                    *seen = reading;
                    return true;
                }
                if now_ns - *since_ns >= CALM_NS {
                    self.pause_ns = PAUSE_NS_MIN;
                }
                self.state = SpinState::Pausing {
                    until_ns: now_ns + self.pause_ns,
                };
                self.pause_ns = (2 * self.pause_ns).min(PAUSE_NS_MAX);
                false
            }
        }
    }
}

/// Whether `threads` may poll without taking a CPU from anybody.
fn has_room(threads: u32, cpus: Cpus) -> bool {
    // A confined process was given its CPUs; others have the rest of the machine.
    threads < cpus.usable || (cpus.is_confined && threads == cpus.usable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const CALM: Contention = contention(0, 0);

    const fn contention(involuntary_switches: u64, run_queue_wait_ns: u64) -> Contention {
        Contention {
            involuntary_switches,
            run_queue_wait_ns: Some(run_queue_wait_ns),
        }
    }

    fn cpus(usable: u32, is_confined: bool) -> Cpus {
        Cpus {
            usable,
            is_confined,
        }
    }

    fn auto() -> Policy {
        Policy::new(Spin::Auto, 1, cpus(2, false))
    }

    /// How much of a minute is spent polling, in turns of 0.1 ms, when `read` gives the readings.
    fn polled_ns(read: impl Fn(u64) -> Contention) -> u64 {
        let mut policy = auto();
        let turn_ns = MS / 10;
        let turns = (0..60_000 * MS).step_by(turn_ns as usize);
        turns
            .filter(|now_ns| policy.spins(*now_ns, || read(*now_ns)))
            .count() as u64
            * turn_ns
    }

    #[test]
    fn auto_needs_cpus_to_spare() {
        let cases = [
            (1, cpus(2, false), true),
            (2, cpus(2, false), false),
            (3, cpus(2, false), false),
            (1, cpus(1, false), false),
            (1, cpus(1, true), true),
            (2, cpus(2, true), true),
            (3, cpus(2, true), false),
        ];
        for (threads, cpus, spins) in cases {
            let mut policy = Policy::new(Spin::Auto, threads, cpus);
            assert_eq!(policy.spins(5, || CALM), spins, "{threads} on {cpus:?}");
            assert!(Policy::new(Spin::On, threads, cpus).spins(5, || unreachable!()));
            assert!(!Policy::new(Spin::Off, threads, cpus).spins(5, || unreachable!()));
        }
    }

    #[test]
    fn it_looks_now_and_then_and_takes_the_change() {
        let mut policy = auto();
        // What happened before it polled says nothing.
        assert!(policy.spins(0, || contention(900, 900 * MS)));
        for now_ns in [1, LOOK_NS - 1] {
            assert!(policy.spins(now_ns, || unreachable!("too early")));
        }
        assert!(policy.spins(LOOK_NS, || contention(990, 900 * MS)));
        assert!(policy.spins(2 * LOOK_NS, || contention(1_080, 900 * MS)));
        assert!(!policy.spins(3 * LOOK_NS, || contention(1_181, 900 * MS)));
        let again_ns = 3 * LOOK_NS + PAUSE_NS_MIN;
        assert!(!policy.spins(again_ns - 1, || unreachable!("it pauses")));
        assert!(policy.spins(again_ns, || contention(9_999, 999 * MS)));
        assert!(policy.spins(again_ns + LOOK_NS, || contention(9_999, 999 * MS)));
    }

    #[test]
    fn pauses_double_under_contention_and_shorten_after_calm() {
        let mut policy = auto();
        let mut now_ns = 0;
        let mut waited_ns = 0;
        // Polls for one interval that is contended; the pause that follows.
        let mut pause_after = |policy: &mut Policy, calm_ns: u64| {
            let mut looked_ns = now_ns;
            assert!(policy.spins(now_ns, || contention(0, waited_ns)));
            while looked_ns < now_ns + calm_ns {
                looked_ns += LOOK_NS;
                assert!(policy.spins(looked_ns, || contention(0, waited_ns)));
            }
            now_ns = looked_ns + LOOK_NS;
            waited_ns += LOOK_NS;
            assert!(!policy.spins(now_ns, || contention(0, waited_ns)));
            let SpinState::Pausing { until_ns } = policy.state else {
                panic!("{policy:?}")
            };
            let pause_ns = until_ns - now_ns;
            now_ns = until_ns;
            pause_ns / MS
        };
        let pauses: Vec<u64> = (0..9).map(|_| pause_after(&mut policy, 0)).collect();
        assert_eq!(
            pauses,
            [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
        );
        assert_eq!(pause_after(&mut policy, CALM_NS / 2), 10_000);
        assert_eq!(pause_after(&mut policy, CALM_NS), 100);
        assert_eq!(pause_after(&mut policy, 0), 200);
    }

    #[test]
    fn little_is_taken_from_a_busy_machine_and_all_of_an_idle_one() {
        assert_eq!(polled_ns(|_| CALM), 60_000 * MS);
        // Somebody else wants the CPU all the time: half of it is waited for.
        let taken_ns = polled_ns(|now_ns| contention(0, now_ns / 2));
        assert!(taken_ns < 700 * MS, "{taken_ns} ns of a minute");
    }

    #[test]
    fn time_polled_in_vain_is_accounted() {
        let mut spinner = Spinner::new(Spin::On, 1, cpus(1, false));
        spinner.worked(50);
        assert_eq!(spinner.spun_ns(), 0, "it did not poll yet");
        for now_ns in [100, 110, 120] {
            assert!(spinner.spins(now_ns, true));
        }
        assert_eq!(spinner.spun_ns(), 20);
        spinner.worked(125);
        spinner.worked(130);
        assert_eq!(spinner.spun_ns(), 25);
        assert!(spinner.spins(200, true));
        assert_eq!(spinner.spun_ns(), 25, "what took until 200 was work");
        spinner.worked(207);
        assert_eq!(spinner.spun_ns(), 32);
        assert!(spinner.spins(300, true));
        assert!(!spinner.spins(310, false));
        spinner.worked(900);
        assert_eq!(spinner.spun_ns(), 42, "from 310 on it slept");

        // Stopped for 3 s in the middle of a look.
        assert!(spinner.spins(1_000, true));
        assert!(spinner.spins(3_000_001_000, true));
        assert_eq!(spinner.spun_ns(), 42);

        let mut spinner = Spinner::new(Spin::Off, 1, cpus(2, false));
        for now_ns in [100, 200] {
            assert!(!spinner.spins(now_ns, true));
        }
        assert_eq!(spinner.spun_ns(), 0, "sleep is no polling");
    }

    #[test]
    fn the_thread_at_hand_is_read() {
        let mut spinner = Spinner::new(Spin::Auto, 1, cpus(2, false));
        assert!(!spinner.spins(0, false));
        assert!(spinner.probe.is_none());
        assert!(spinner.spins(0, true));
        assert!(spinner.probe.is_some());
    }
}
