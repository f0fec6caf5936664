//! How often something is read, so that reading it never costs more than a set part of a CPU.

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
