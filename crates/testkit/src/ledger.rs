//! What is known of a simulated machine over the window: an account for each worker of its CPU's
//! time, and of its server's.

use brunt_record::{Stolen, ThreadUse, Window};

/// How long before the window steal is read, nanoseconds.
const BEFORE_NS: u64 = 1_000_000_000;
/// How often steal is read, nanoseconds.
const READING_NS: i64 = 25_000_000;

/// Steal as it is read over time: number of each reading, and what it adds.
#[derive(Clone, Debug, Default)]
pub(super) struct StolenOverTime(Vec<(i64, u64)>);

impl StolenOverTime {
    /// Adds `ns` that were stolen by `offset_ns` from the start of the window. Stretches come
    /// nearly in order of their ends.
    fn add(&mut self, offset_ns: i64, ns: u64) {
        let number = offset_ns.div_euclid(READING_NS);
        match self.0.last_mut() {
            Some((last, sum_ns)) if *last >= number => *sum_ns += ns,
            _ => self.0.push((number, ns)),
        }
    }

    pub(super) fn stretches(&self, cpu: u32) -> impl Iterator<Item = Stolen> + '_ {
        self.0.iter().map(move |&(number, steal_ns)| Stolen {
            cpu,
            from_ns: number * READING_NS,
            until_ns: (number + 1) * READING_NS,
            steal_ns,
        })
    }
}

/// How a stretch of a worker's time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// The worker ran.
    Running,
    /// The worker wanted to run, and the hypervisor had its CPU.
    Stolen,
    /// The worker wanted to run, and another process had its CPU.
    Queued,
}

/// The account of one worker. Only what lies in the window is in it, but for the CPU time of its
/// whole life.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(super) window: Window,
    pub(super) life_cpu_ns: u64,
    running_ns: u64,
    pub(super) stolen_ns: u64,
    queued_ns: u64,
    involuntary_switches: u64,
    /// Service times of all places of the server together.
    pub(super) served_ns: u64,
    /// Steal of all places of the server together.
    pub(super) server_stolen_ns: u64,
    pub(super) stolen: StolenOverTime,
    pub(super) server_stolen: StolenOverTime,
}

impl Default for Ledger {
    /// The window is still to come.
    fn default() -> Self {
        Self {
            window: Window {
                start_ns: u64::MAX,
                end_ns: u64::MAX,
            },
            life_cpu_ns: 0,
            running_ns: 0,
            stolen_ns: 0,
            queued_ns: 0,
            involuntary_switches: 0,
            served_ns: 0,
            server_stolen_ns: 0,
            stolen: StolenOverTime::default(),
            server_stolen: StolenOverTime::default(),
        }
    }
}

impl Ledger {
    /// Fixes the window, before its start, and forgets an earlier one.
    pub(super) fn set_window(&mut self, window: Window) {
        *self = Self {
            window,
            life_cpu_ns: self.life_cpu_ns,
            ..Self::default()
        };
    }

    /// The worker ended at `at_ns`: a window without an end ended there.
    pub(super) fn end_by(&mut self, at_ns: u64) {
        let Window { start_ns, end_ns } = self.window;
        self.window.end_ns = end_ns.min(at_ns.max(start_ns));
    }

    /// The worker spent a stretch of time in this way.
    pub(super) fn note(&mut self, from_ns: u64, to_ns: u64, how: Spent) {
        let within_ns = self.within_ns(from_ns, to_ns);
        match how {
            Spent::Running => {
                self.life_cpu_ns += to_ns - from_ns;
                self.running_ns += within_ns;
            }
            Spent::Stolen => {
                self.stolen_ns += within_ns;
                if let Some(offset_ns) = self.last_offset_ns(from_ns, to_ns) {
                    self.stolen.add(offset_ns, to_ns - from_ns);
                }
            }
            Spent::Queued => self.queued_ns += within_ns,
        }
    }

    /// Records that another process took the CPU from the running worker.
    pub(super) fn switched(&mut self, at_ns: u64) {
        let is_within = (self.window.start_ns..self.window.end_ns).contains(&at_ns);
        self.involuntary_switches += u64::from(is_within);
    }

    /// A place of the server served a request.
    pub(super) fn served(&mut self, from_ns: u64, to_ns: u64) {
        self.served_ns += self.within_ns(from_ns, to_ns);
    }

    /// The hypervisor took CPU time from a place of the server that served.
    pub(super) fn server_stolen(&mut self, from_ns: u64, to_ns: u64) {
        let within_ns = self.within_ns(from_ns, to_ns);
        self.server_stolen_ns += within_ns;
        if let Some(offset_ns) = self.last_offset_ns(from_ns, to_ns) {
            self.server_stolen.add(offset_ns, to_ns - from_ns);
        }
    }

    /// The worker's thread over the window.
    pub(crate) fn thread_use(&self) -> ThreadUse {
        ThreadUse {
            interval_ns: self.window.length_ns(),
            cpu_user_ns: self.running_ns,
            cpu_system_ns: 0,
            spun_ns: 0,
            run_queue_wait_ns: Some(self.queued_ns),
            involuntary_switches: self.involuntary_switches,
        }
    }

    /// When a stretch was over, from the start of the window; the end of the window where the
    /// stretch reaches beyond it. Absent where it lies behind the window, or well before it.
    fn last_offset_ns(&self, from_ns: u64, to_ns: u64) -> Option<i64> {
        let Window { start_ns, end_ns } = self.window;
        let is_seen = from_ns < end_ns && to_ns.saturating_add(BEFORE_NS) > start_ns;
        let last_ns = to_ns.min(end_ns).saturating_sub(1);
        is_seen.then(|| last_ns.cast_signed().saturating_sub_unsigned(start_ns))
    }

    fn within_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let Window { start_ns, end_ns } = self.window;
        to_ns.min(end_ns).saturating_sub(from_ns.max(start_ns))
    }
}
