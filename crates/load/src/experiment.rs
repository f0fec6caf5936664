//! An experiment on a run: settings that change over the window, so that their effects can be told
//! apart from everything else that changes.

use std::num::NonZeroU32;

/// What is set for one part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Connections in use, all workers together.
    pub connections: NonZeroU32,
    /// Work added to each request, nanoseconds.
    pub delay_ns: u64,
}

/// Levels that take turns in equal parts of the window. Every round holds each level once, in an
/// order that turns from round to round, so that a steady drift falls on all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    levels: Vec<Level>,
    part_ns: u64,
    rounds: u32,
}

impl Experiment {
    /// `rounds` rounds of `levels`, each for `part_ns` at a time. At least one of each is needed:
    /// with fewer, the experiment has no length.
    pub fn new(levels: Vec<Level>, part_ns: u64, rounds: u32) -> Self {
        Self {
            levels,
            part_ns: part_ns.max(1),
            rounds,
        }
    }

    /// Length of a part, nanoseconds.
    pub fn part_ns(&self) -> u64 {
        self.part_ns
    }

    /// The level of every part, in the order of time.
    pub fn parts(&self) -> impl Iterator<Item = Level> + '_ {
        let count = self.levels.len();
        (0..self.rounds as usize).flat_map(move |round| {
            (0..count).map(move |place| {
                // Forwards and backwards in turn, from another beginning each two rounds.
                let place = if round % 2 == 0 {
                    place
                } else {
                    count - 1 - place
                };
                self.levels[(place + round / 2) % count]
            })
        })
    }

    /// The whole length, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.part_ns * self.levels.len() as u64 * u64::from(self.rounds)
    }

    /// The most connections of any level; absent without levels.
    pub fn connections_max(&self) -> Option<NonZeroU32> {
        self.levels.iter().map(|level| level.connections).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(connections: u32) -> Level {
        Level {
            connections: NonZeroU32::new(connections).expect("not 0"),
            delay_ns: 0,
        }
    }

    fn order(experiment: &Experiment) -> Vec<u32> {
        experiment
            .parts()
            .map(|level| level.connections.get())
            .collect()
    }

    #[test]
    fn a_steady_drift_falls_on_all_levels_alike() {
        let levels = vec![level(1), level(2), level(3), level(4)];
        for rounds in [2, 4, 8] {
            let experiment = Experiment::new(levels.clone(), 10, rounds);
            let order = order(&experiment);
            assert_eq!(order.len(), 4 * rounds as usize);
            assert_eq!(experiment.length_ns(), 10 * order.len() as u64);
            let mean_place = |level| {
                let places = order
                    .iter()
                    .enumerate()
                    .filter(|(_, given)| **given == level);
                places.map(|(place, _)| place).sum::<usize>() as f64 / f64::from(rounds)
            };
            for level in 1..=4 {
                let middle = (order.len() - 1) as f64 / 2.0;
                assert_eq!(mean_place(level), middle, "{level} in {order:?}");
            }
        }
    }

    #[test]
    fn the_order_turns() {
        let experiment = Experiment::new(vec![level(1), level(2), level(3)], 5, 4);
        assert_eq!(order(&experiment), [1, 2, 3, 3, 2, 1, 2, 3, 1, 1, 3, 2]);
        assert_eq!(experiment.connections_max(), NonZeroU32::new(3));
        let empty = Experiment::new(Vec::new(), 5, 4);
        assert!(order(&empty).is_empty());
        assert_eq!((empty.length_ns(), empty.connections_max()), (0, None));
    }
}
