//! The CPU of one simulated worker: work takes time on it, and others take it away.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::ledger::{Ledger, Spent};
use super::settings::SimHost;

/// The clock of a worker, which its work moves on.
#[derive(Debug)]
pub(super) struct Cpu {
    now_ns: Rc<Cell<u64>>,
    /// What takes the CPU from workers. Absent: nobody does, and no account is kept.
    host: Option<SimHost>,
    ledger: Rc<RefCell<Ledger>>,
}

impl Cpu {
    pub(super) fn new(
        now_ns: Rc<Cell<u64>>,
        host: Option<SimHost>,
        ledger: Rc<RefCell<Ledger>>,
    ) -> Self {
        Self {
            now_ns,
            host,
            ledger,
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    /// The worker, which was running, works for `work_ns`. Gives the time when it is done.
    pub(super) fn run(&self, work_ns: u64) -> u64 {
        let mut now_ns = self.now_ns.get();
        let mut left_ns = work_ns;
        let Some(host) = self.host else {
            now_ns += work_ns;
            self.now_ns.set(now_ns);
            return now_ns;
        };
        loop {
            now_ns = self.give_way(host, now_ns, true);
            let until_ns = (now_ns + left_ns).min(host.next_ns(now_ns));
            self.note(now_ns, until_ns, Spent::Running);
            left_ns -= until_ns - now_ns;
            now_ns = until_ns;
            if left_ns == 0 {
                break;
            }
        }
        self.now_ns.set(now_ns);
        now_ns
    }

    /// The worker slept, and is woken at `at_ns`. Gives the time when it has the CPU.
    pub(super) fn wake(&self, at_ns: u64) -> u64 {
        let now_ns = match self.host {
            Some(host) => self.give_way(host, at_ns, false),
            None => at_ns,
        };
        self.now_ns.set(now_ns);
        now_ns
    }

    /// Waits until nobody else has the CPU.
    fn give_way(&self, host: SimHost, from_ns: u64, mut is_running: bool) -> u64 {
        let mut now_ns = from_ns;
        while let Some((how, until_ns)) = host.taken(now_ns) {
            if is_running && how == Spent::Queued {
                self.ledger.borrow_mut().switched(now_ns);
                is_running = false;
            }
            self.note(now_ns, until_ns, how);
            now_ns = until_ns;
        }
        now_ns
    }

    fn note(&self, from_ns: u64, to_ns: u64, how: Spent) {
        if from_ns < to_ns {
            self.ledger.borrow_mut().note(from_ns, to_ns, how);
        }
    }
}

impl SimHost {
    /// What a worker that wants to run at `at_ns` meets, and until when, where it cannot.
    pub(super) fn taken(self, at_ns: u64) -> Option<(Spent, u64)> {
        let stolen = [
            self.steal.and_then(|steal| steal.until_ns(at_ns)),
            self.bursts.and_then(|bursts| bursts.until_ns(at_ns)),
        ];
        if let Some(until_ns) = stolen.into_iter().flatten().max() {
            return Some((Spent::Stolen, until_ns));
        }
        let until_ns = self.contention?.until_ns(at_ns)?;
        let stolen_ns = self.steal.map_or(u64::MAX, |steal| steal.next_ns(at_ns));
        let burst_ns = self.bursts.map_or(u64::MAX, |bursts| bursts.next_ns(at_ns));
        Some((Spent::Queued, until_ns.min(stolen_ns).min(burst_ns)))
    }

    /// Until when the CPU that is free at `at_ns` stays free.
    pub(super) fn next_ns(self, at_ns: u64) -> u64 {
        [self.steal, self.contention]
            .into_iter()
            .flatten()
            .map(|taken| taken.next_ns(at_ns))
            .chain(self.bursts.map(|bursts| bursts.next_ns(at_ns)))
            .min()
            .unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use brunt_record::{ThreadUse, Window};

    use super::super::settings::Taken;
    use super::*;

    fn taken(part_ns: u64, period_ns: u64) -> Option<Taken> {
        let period_ns = NonZeroU64::new(period_ns).expect("not 0");
        Some(Taken { part_ns, period_ns })
    }

    /// A worker that wakes at `from_ns` and works for `work_ns`: when it is done, and its account
    /// of `[100, 1_000)`.
    fn work(host: SimHost, from_ns: u64, work_ns: u64) -> (u64, Ledger) {
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        ledger.borrow_mut().set_window(Window {
            start_ns: 100,
            end_ns: 1_000,
        });
        let cpu = Cpu::new(Rc::default(), Some(host), Rc::clone(&ledger));
        cpu.wake(from_ns);
        let done_ns = cpu.run(work_ns);
        assert_eq!(cpu.now_ns(), done_ns);
        let ledger = ledger.borrow().clone();
        (done_ns, ledger)
    }

    #[test]
    fn work_goes_on_when_the_cpu_is_free() {
        let (steal, contention) = (taken(10, 100), taken(20, 100));
        let host = |steal, contention| SimHost {
            steal,
            contention,
            bursts: None,
        };
        let (only_steal, only_contention) = (host(steal, None), host(None, contention));
        let both = host(steal, contention);
        let whole = host(taken(500, 100), None);
        // (host, woken, work, done, ran, stolen, queued, switches)
        let cases = [
            (SimHost::default(), 100, 50, 150, 50, 0, 0, 0),
            (SimHost::default(), 0, 2_000, 2_000, 900, 0, 0, 0),
            (only_steal, 150, 50, 200, 50, 0, 0, 0),
            (only_steal, 150, 51, 211, 51, 10, 0, 0),
            (only_steal, 105, 10, 120, 10, 5, 0, 0),
            (only_steal, 105, 0, 110, 0, 5, 0, 0),
            (only_steal, 150, 200, 370, 200, 20, 0, 0),
            (only_contention, 105, 10, 130, 10, 0, 15, 0),
            (only_contention, 120, 100, 240, 100, 0, 20, 1),
            (only_contention, 120, 200, 360, 200, 0, 40, 2),
            (both, 150, 51, 221, 51, 10, 10, 1),
            (both, 115, 10, 130, 10, 0, 5, 0),
            // Before the window and after it.
            (only_steal, 50, 60, 120, 10, 10, 0, 0),
            (only_steal, 990, 20, 1_020, 10, 0, 0, 0),
            // What is left of a CPU that is taken for good.
            (whole, 150, 3, 400, 3, 247, 0, 0),
        ];
        for (host, woken_ns, work_ns, done_ns, ran_ns, stolen_ns, queued_ns, switches) in cases {
            let (is_done_ns, ledger) = work(host, woken_ns, work_ns);
            let what = format!("{host:?}, {work_ns} from {woken_ns}");
            assert_eq!(is_done_ns, done_ns, "{what}");
            assert_eq!(ledger.life_cpu_ns, work_ns, "{what}");
            assert_eq!(ledger.stolen_ns, stolen_ns, "{what}");
            let expected = ThreadUse {
                interval_ns: 900,
                cpu_user_ns: ran_ns,
                run_queue_wait_ns: Some(queued_ns),
                involuntary_switches: switches,
                ..ThreadUse::default()
            };
            assert_eq!(ledger.thread_use(), expected, "{what}");
        }
    }
}
