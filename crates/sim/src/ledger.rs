//! What is known of a simulated machine over the window: an account for each worker of its CPU's
//! time, and of its server's.

use brunt_measure::{ThreadUse, Window};

/// How a stretch of a worker's time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// It ran.
    Running,
    /// It wanted to run, and the hypervisor had its CPU.
    Stolen,
    /// It wanted to run, and another process had its CPU.
    Queued,
}

/// The account of one worker. Only what lies in the window is in it, but for the CPU time of its
/// whole life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    window: Window,
    life_cpu_ns: u64,
    running_ns: u64,
    stolen_ns: u64,
    queued_ns: u64,
    involuntary_switches: u64,
    served_ns: u64,
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

    /// The worker is gone since `at_ns`: a window without an end ended there.
    pub(super) fn end_by(&mut self, at_ns: u64) {
        let Window { start_ns, end_ns } = self.window;
        self.window.end_ns = end_ns.min(at_ns.max(start_ns));
    }

    /// The worker spent a stretch of time so.
    pub(super) fn note(&mut self, from_ns: u64, to_ns: u64, how: Spent) {
        let within_ns = self.within_ns(from_ns, to_ns);
        match how {
            Spent::Running => {
                self.life_cpu_ns += to_ns - from_ns;
                self.running_ns += within_ns;
            }
            Spent::Stolen => self.stolen_ns += within_ns,
            Spent::Queued => self.queued_ns += within_ns,
        }
    }

    /// Another process took the CPU from the running worker.
    pub(super) fn switched(&mut self, at_ns: u64) {
        let is_within = (self.window.start_ns..self.window.end_ns).contains(&at_ns);
        self.involuntary_switches += u64::from(is_within);
    }

    /// A place of the server served a request.
    pub(super) fn served(&mut self, from_ns: u64, to_ns: u64) {
        self.served_ns += self.within_ns(from_ns, to_ns);
    }

    /// The window.
    pub(super) fn window(&self) -> Window {
        self.window
    }

    /// Steal, nanoseconds.
    pub(super) fn stolen_ns(&self) -> u64 {
        self.stolen_ns
    }

    /// Service times of all places of the server together, nanoseconds.
    pub(super) fn served_ns(&self) -> u64 {
        self.served_ns
    }

    /// CPU time of the worker's whole life, nanoseconds.
    pub(crate) fn life_cpu_ns(&self) -> u64 {
        self.life_cpu_ns
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

    fn within_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let Window { start_ns, end_ns } = self.window;
        to_ns.min(end_ns).saturating_sub(from_ns.max(start_ns))
    }
}
