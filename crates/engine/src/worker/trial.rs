//! An experiment in a worker: how many of its connections may be used, and what work is added to
//! each request, part by part of the window.

use brunt_load::{Experiment, share};

/// What one worker is to do in one part of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Connections that may be used: the slots below this number.
    pub(super) slots: u32,
    /// Work added to each request, nanoseconds.
    pub(super) busy_ns: u64,
}

/// The settings of one worker over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trial {
    /// In the order of time.
    settings: Vec<Setting>,
    part_ns: u64,
    /// Parts that have begun.
    begun: usize,
}

impl Trial {
    /// The part of `experiment` that concerns one of `workers` workers, each of whose requests is
    /// given `busy_ns` of work besides.
    pub(crate) fn new(experiment: &Experiment, busy_ns: u64, worker: u32, workers: u32) -> Self {
        let settings = experiment
            .parts()
            .map(|level| Setting {
                slots: share(level.connections.get(), workers, worker),
                busy_ns: busy_ns.saturating_add(level.delay_ns),
            })
            .collect();
        Self {
            settings,
            part_ns: experiment.part_ns(),
            begun: 0,
        }
    }

    /// When the next part begins in a window that begins at `window_start_ns`; `u64::MAX` for
    /// never.
    pub(super) fn next_ns(&self, window_start_ns: u64) -> u64 {
        if self.begun >= self.settings.len() {
            return u64::MAX;
        }
        window_start_ns.saturating_add(self.part_ns.saturating_mul(self.begun as u64))
    }

    /// The setting that begins by `now_ns`, if one does. Parts that were slept through are left
    /// out.
    pub(super) fn begin(&mut self, window_start_ns: u64, now_ns: u64) -> Option<Setting> {
        let mut setting = None;
        while self.next_ns(window_start_ns) <= now_ns {
            setting = self.settings.get(self.begun).copied();
            self.begun += 1;
        }
        setting
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use brunt_load::Level;

    use super::*;

    fn level(connections: u32, delay_ns: u64) -> Level {
        Level {
            connections: NonZeroU32::new(connections).expect("not 0"),
            delay_ns,
        }
    }

    #[test]
    fn settings_begin_at_their_instants() {
        let experiment = Experiment::new(vec![level(8, 0), level(5, 7)], 100, 2);
        let setting = |slots, busy_ns| Some(Setting { slots, busy_ns });
        let mut trial = Trial::new(&experiment, 3, 0, 2);
        assert_eq!(trial.next_ns(1_000), 1_000);
        assert_eq!(trial.begin(1_000, 999), None);
        assert_eq!(trial.begin(1_000, 1_000), setting(4, 3));
        assert_eq!(trial.begin(1_000, 1_099), None);
        assert_eq!(trial.next_ns(1_000), 1_100);
        assert_eq!(trial.begin(1_000, 1_150), setting(3, 10));
        // One part was slept through.
        assert_eq!(trial.begin(1_000, 1_300), setting(4, 3));
        assert_eq!(trial.next_ns(1_000), u64::MAX);
        assert_eq!(trial.begin(1_000, u64::MAX - 1), None);
        let mut other = Trial::new(&experiment, 0, 1, 2);
        assert_eq!(other.begin(0, 100), setting(2, 7));
    }

    #[test]
    fn no_experiment_has_no_setting() {
        let mut trial = Trial::default();
        assert_eq!(trial.next_ns(5), u64::MAX);
        assert_eq!(trial.begin(5, 9), None);
    }
}
