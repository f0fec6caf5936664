//! A window that grows until the hypervisor has left enough of it alone (`--extend`).

use brunt_judge::Clean;
use brunt_record::{CpuTimes, Window};

/// What is held up by steal may last so long after it, nanoseconds.
const AFTER_STEAL_NS: u64 = 100_000_000;

/// How long a window was to be, and how much of it nothing was stolen in.
#[derive(Debug)]
pub(crate) struct Extension {
    planned: Window,
    /// Steal of each CPU by the latest reading, and when that was.
    latest: Vec<(u32, u64)>,
    latest_ns: u64,
    /// Until when requests that steal held up may still be in flight.
    dirty_until_ns: u64,
    clean_ns: u64,
}

impl Extension {
    /// The extension of a window that lasts as long as planned, or at most twice as long.
    pub(crate) fn new(planned: Window) -> Self {
        Self {
            planned,
            latest: Vec::new(),
            latest_ns: planned.start_ns,
            dirty_until_ns: 0,
            clean_ns: 0,
        }
    }

    /// The window at its longest.
    pub(crate) fn longest(&self) -> Window {
        let length_ns = self.planned.length_ns();
        Window {
            end_ns: self.planned.end_ns.saturating_add(length_ns),
            ..self.planned
        }
    }

    /// Takes a reading of the CPUs. Gives whether the window may end.
    pub(crate) fn look(&mut self, now_ns: u64, cpus: &[CpuTimes]) -> bool {
        if now_ns < self.planned.start_ns {
            return false;
        }
        let read: Vec<(u32, u64)> = cpus.iter().map(|it| (it.cpu, it.steal_ns)).collect();
        let is_stolen = !self.latest.is_empty() && read != self.latest;
        if is_stolen {
            self.dirty_until_ns = now_ns.saturating_add(AFTER_STEAL_NS);
        }
        let clean_from_ns = self.latest_ns.max(self.dirty_until_ns);
        self.clean_ns += now_ns.saturating_sub(clean_from_ns);
        (self.latest, self.latest_ns) = (read, now_ns.max(self.latest_ns));
        let window_ns = now_ns - self.planned.start_ns;
        now_ns >= self.planned.end_ns && Clean::is_enough(self.clean_ns, window_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// When a window of `seconds` ends, looked at every 50 ms, on two CPUs from one of which 10 ms
    /// are stolen at these times.
    fn ends_at_ms(seconds: u64, is_stolen_at_ms: impl Fn(u64) -> bool) -> Option<u64> {
        let planned = Window {
            start_ns: 500 * MS,
            end_ns: 500 * MS + seconds * 1_000 * MS,
        };
        let mut extension = Extension::new(planned);
        let longest = extension.longest();
        let mut steal_ns = 70 * MS;
        for ms in (0..longest.end_ns / MS).step_by(50) {
            if is_stolen_at_ms(ms) {
                steal_ns += 10 * MS;
            }
            let cpus = [(0, 0), (1, steal_ns)].map(|(cpu, steal_ns)| CpuTimes {
                cpu,
                steal_ns,
                ..CpuTimes::default()
            });
            if extension.look(ms * MS, &cpus) {
                return Some(ms - 500);
            }
        }
        None
    }

    #[test]
    fn a_window_that_nobody_disturbs_is_as_long_as_planned() {
        assert_eq!(ends_at_ms(10, |_| false), Some(10_000));
        // Before it, nothing counts.
        assert_eq!(ends_at_ms(10, |ms| ms < 500), Some(10_000));
        // A short one needs 2 s.
        assert_eq!(ends_at_ms(1, |_| false), None);
        assert_eq!(ends_at_ms(2, |_| false), Some(2_000));
    }

    #[test]
    fn a_window_grows_until_half_of_it_was_left_alone() {
        // 0.3 of each second are lost to what is stolen in its beginning.
        assert_eq!(ends_at_ms(10, |ms| ms % 1_000 < 150), Some(10_000));
        // The first 8 s: at 15.8 s half is clean.
        let ended = ends_at_ms(10, |ms| ms < 8_500).expect("it grows");
        assert!((16_000..16_300).contains(&ended), "{ended}");
        // Always: it is over when it is twice as long.
        assert_eq!(ends_at_ms(10, |_| true), None);
    }
}
