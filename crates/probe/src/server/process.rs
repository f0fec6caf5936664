//! One process of a server: its readings since the window began.

use super::proc_files::{self, ProcessReading, TickedCpu};
use super::threads::{ThreadTable, ThreadTimes};

/// One process that is watched.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) pid: u32,
    /// The last reading of the process; from the window's begin on.
    pub(super) last: ProcessReading,
    /// CPU of the process when the window began; 0 when the process began later.
    pub(super) first_cpu: TickedCpu,
    /// The CPU of children that it had waited for when the window began; 0 when it began later.
    pub(super) first_waited: TickedCpu,
    /// What watched children that have ended since had used in all their lives.
    pub(super) watched_children: TickedCpu,
    /// Whether its children count.
    pub(super) counts_children: bool,
    /// Threads of the process when the window began, none when it began later. Absent: unknown.
    pub(super) first_threads: Option<ThreadTable>,
    /// The last reading of its threads; absent when none was taken.
    pub(super) last_threads: Option<ThreadTable>,
    pub(super) has_ended: bool,
}

impl Watched {
    /// A process whose whole life counts, until its first readings are taken.
    pub(super) fn new(pid: u32, counts_children: bool) -> Option<Self> {
        Some(Self {
            pid,
            last: ProcessReading::of(pid)?,
            first_cpu: TickedCpu::default(),
            first_waited: TickedCpu::default(),
            watched_children: TickedCpu::default(),
            counts_children,
            first_threads: Some(ThreadTable::default()),
            last_threads: None,
            has_ended: false,
        })
    }

    /// Reads it again, unless it has ended: then the last reading stays.
    pub(super) fn update(&mut self) {
        if self.has_ended {
            return;
        }
        match ProcessReading::of(self.pid) {
            Some(reading) if reading.start_ticks == self.last.start_ticks => {
                self.has_ended = reading.has_ended;
                if self.has_ended {
                    // Its threads and its memory are gone; its CPU time is complete.
                    self.last.cpu = reading.cpu;
                    self.last.waited_cpu = reading.waited_cpu;
                } else {
                    self.last = reading;
                }
            }
            _ => self.has_ended = true,
        }
    }

    /// Reads its threads again. A process that ends while it is read has fewer by then, so that
    /// the table with more in it stays.
    pub(super) fn update_threads(&mut self) {
        let run_ns = |table: &Option<ThreadTable>| table.as_ref().map(ThreadTable::run_ns);
        let read = self.read_threads();
        if run_ns(&read) >= run_ns(&self.last_threads) {
            self.last_threads = read;
        }
    }

    /// What each of its threads did in the window until they were last read; absent: unknown.
    pub(super) fn threads_since_first(&self) -> Option<Vec<ThreadTimes>> {
        let (first, last) = self
            .first_threads
            .as_ref()
            .zip(self.last_threads.as_ref())?;
        Some(last.since(first).collect())
    }

    /// Counts the CPU of the process from now on.
    pub(super) fn begin(&mut self) {
        self.first_cpu = self.last.cpu;
        self.first_waited = self.last.waited_cpu;
        self.watched_children = TickedCpu::default();
    }

    pub(super) fn read_threads(&self) -> Option<ThreadTable> {
        ThreadTable::read(self.pid, |_| true)
    }

    /// CPU of the process since the window began, with that of children that nobody watched.
    pub(super) fn cpu(&self) -> TickedCpu {
        self.own_cpu().plus(self.unwatched_children())
    }

    pub(super) fn own_cpu(&self) -> TickedCpu {
        self.last.cpu.since(self.first_cpu)
    }

    /// CPU of children that it has waited for since the window began, beyond what was seen of them
    /// while they lived. Nothing is known of children that it does not wait for (SIGCHLD ignored).
    pub(super) fn unwatched_children(&self) -> TickedCpu {
        if !self.counts_children {
            return TickedCpu::default();
        }
        let waited = self.last.waited_cpu.since(self.first_waited);
        waited.since(self.watched_children)
    }

    /// What its parent is given when it waits for it, as far as it was seen: its own CPU, and that
    /// of the children that it has waited for, some perhaps after its last reading.
    pub(super) fn lifetime_cpu(&self) -> TickedCpu {
        let seen = self.first_waited.plus(self.watched_children);
        self.last.cpu.plus(self.last.waited_cpu.max(seen))
    }
}

/// CPU of a process: of its threads, which is exact; or by its own ticks where they show clearly
/// more, since threads have ended and taken their times with them.
pub(super) fn best_cpu_ns(exact_ns: Option<u64>, ticked_ns: u64) -> u64 {
    // User and system time are cut to whole ticks, each.
    let uncertain_ns = 2 * proc_files::tick_ns();
    match exact_ns {
        Some(exact_ns) if exact_ns.saturating_add(uncertain_ns) >= ticked_ns => exact_ns,
        _ => ticked_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn ticks_count_where_threads_have_ended() {
        for (exact_ns, ticked_ns, cpu_ns) in [
            (Some(1_003 * MS), 1_000 * MS, 1_003 * MS),
            (Some(995 * MS), 1_000 * MS, 995 * MS),
            (Some(300 * MS), 1_000 * MS, 1_000 * MS),
            (Some(0), 0, 0),
            (None, 70 * MS, 70 * MS),
        ] {
            assert_eq!(
                best_cpu_ns(exact_ns, ticked_ns),
                cpu_ns,
                "{exact_ns:?} {ticked_ns}"
            );
        }
    }

    const SEVEN_MS: TickedCpu = TickedCpu {
        user_ns: 7 * MS,
        system_ns: 0,
    };

    #[test]
    fn what_has_ended_keeps_its_last_reading() {
        let mut process = Watched::new(std::process::id(), true).unwrap();
        // As if its id had been given to another.
        process.last.start_ticks ^= 1;
        process.last.cpu = SEVEN_MS;
        process.last.waited_cpu = TickedCpu::default();
        process.update();
        assert!(process.has_ended);
        assert_eq!(process.cpu(), SEVEN_MS);
        process.update();
        assert_eq!(process.cpu(), SEVEN_MS);
    }
}
