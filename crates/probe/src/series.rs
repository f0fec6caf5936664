//! Readings over time, of which a bounded number is kept, and how often something is read, so that
//! it never costs more than a set part of a CPU.

/// Most readings that are kept, the last one included.
const READINGS_MAX: usize = 1_200;

/// Readings at even distances. When there is no room for more, every second one is left out, and
/// from then on every second one that comes.
#[derive(Debug)]
pub(super) struct Readings<T> {
    kept: Vec<T>,
    /// One reading in this many is kept.
    every: u64,
    count: u64,
}

impl<T> Default for Readings<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            every: 1,
            count: 0,
        }
    }
}

impl<T> Readings<T> {
    /// Adds a reading, or passes over it.
    pub(super) fn add(&mut self, reading: T) {
        // One place is left for the last one.
        if self.kept.len() + 1 >= READINGS_MAX {
            let mut place = 0_u64;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
        }
        if self.count.is_multiple_of(self.every) {
            self.kept.push(reading);
        }
        self.count += 1;
    }

    /// All that were kept, with the last one.
    pub(super) fn finish(mut self, last: T) -> Vec<T> {
        self.kept.push(last);
        self.kept
    }
}

/// A pause is at least this many times as long as a reading: reading takes 0.25 % of a CPU at most.
/// The host, its steal and the server have a pace each, which makes 0.75 % in all.
const PAUSES_PER_COST: u64 = 400;

/// The pause between two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pause_min_ns: u64,
    pause_max_ns: u64,
    cost_ns: u64,
    readings: u64,
}

impl Pace {
    /// Never faster and never slower than these.
    pub(crate) const fn new(pause_min_ns: u64, pause_max_ns: u64) -> Self {
        Self {
            pause_min_ns,
            pause_max_ns,
            cost_ns: 0,
            readings: 0,
        }
    }

    /// A reading took `cpu_ns` of CPU.
    pub(crate) fn note(&mut self, cpu_ns: u64) {
        self.cost_ns = self.cost_ns.saturating_add(cpu_ns);
        self.readings += 1;
    }

    /// Readings noted.
    pub(crate) fn readings(&self) -> u64 {
        self.readings
    }

    /// Time from one reading to the next, nanoseconds, by what readings have cost on average.
    pub(crate) fn pause_ns(&self) -> u64 {
        let cost_ns = self.cost_ns.checked_div(self.readings).unwrap_or(0);
        cost_ns
            .saturating_mul(PAUSES_PER_COST)
            .clamp(self.pause_min_ns, self.pause_max_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_bounded_evenly_spread_and_keep_their_ends() {
        for count in [
            0_u64, 1, 2, 1_198, 1_199, 1_200, 1_201, 2_399, 5_000, 100_000,
        ] {
            let mut readings = Readings::default();
            (0..count).for_each(|at| readings.add(at));
            let kept = readings.finish(count);
            assert!(kept.len() <= READINGS_MAX, "{count}: {}", kept.len());
            assert!(kept.len() >= READINGS_MAX / 2 || kept.len() as u64 == count + 1);
            assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&count)));
            let steps: Vec<_> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let others = &steps[..steps.len().saturating_sub(1)];
            assert!(others.windows(2).all(|pair| pair[0] == pair[1]), "{count}");
            assert!(steps.last() <= others.first().or(steps.last()), "{count}");
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn costly_readings_come_seldom() {
        for (costs_ns, pause_ns) in [
            (vec![], 100 * MS),
            (vec![40_000; 10], 100 * MS),
            (vec![250_000], 100 * MS),
            (vec![500_000], 200 * MS),
            (vec![900_000, 100_000, 500_000], 200 * MS),
            (vec![100 * MS], 2_000 * MS),
            (vec![u64::MAX, u64::MAX], 2_000 * MS),
        ] {
            let mut pace = Pace::new(100 * MS, 2_000 * MS);
            costs_ns.iter().for_each(|&cost_ns| pace.note(cost_ns));
            assert_eq!(pace.pause_ns(), pause_ns, "{costs_ns:?}");
            assert_eq!(pace.readings(), costs_ns.len() as u64);
        }
    }
}
