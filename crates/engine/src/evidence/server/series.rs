//! Readings over time, of which a bounded number is kept; and what the server used while idle.

/// Readings that are kept.
const READINGS_MAX: usize = 1_200;

/// Readings, evenly thinned out when there are too many.
#[derive(Debug)]
pub(super) struct Readings<T> {
    kept: Vec<T>,
    /// One in this many is kept.
    every: u32,
    /// Readings passed over since the last one that was kept.
    skipped: u32,
}

impl<T> Default for Readings<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            every: 1,
            skipped: 0,
        }
    }
}

impl<T> Readings<T> {
    /// Adds a reading, or passes over it.
    pub(super) fn add(&mut self, reading: T) {
        self.skipped += 1;
        if self.kept.is_empty() || self.skipped >= self.every {
            self.keep(reading);
        }
    }

    /// All that were kept, with the last one.
    pub(super) fn finish(mut self, last: T) -> Vec<T> {
        self.keep(last);
        self.kept
    }

    fn keep(&mut self, reading: T) {
        if self.kept.len() >= READINGS_MAX {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every = self.every.saturating_mul(2);
        }
        self.kept.push(reading);
        self.skipped = 0;
    }
}

/// What the server used before the load began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleUse {
    /// When it was read first, and its CPU until then.
    first: Option<(u64, u64)>,
    cpus_used: Option<f64>,
}

impl IdleUse {
    /// First reading: CPU until `now_ns`, where known.
    pub(super) fn begin(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.first = cpu_ns.map(|cpu_ns| (now_ns, cpu_ns));
    }

    /// Second reading.
    pub(super) fn end(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.cpus_used = self
            .first
            .zip(cpu_ns)
            .and_then(|((then_ns, before_ns), ns)| {
                let interval_ns = now_ns.checked_sub(then_ns).filter(|&ns| ns > 0)?;
                Some(ns.saturating_sub(before_ns) as f64 / interval_ns as f64)
            });
    }

    /// CPUs used between the two; absent without both.
    pub(super) fn cpus_used(&self) -> Option<f64> {
        self.cpus_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_bounded_and_evenly_spread() {
        for count in [1_u32, 2, 1_199, 1_200, 1_201, 5_000, 100_000] {
            let mut readings = Readings::default();
            (0..count).for_each(|at| readings.add(at));
            let kept = readings.finish(count);
            assert!(kept.len() <= READINGS_MAX);
            assert!(kept.len() > READINGS_MAX / 2 || kept.len() as u32 == count + 1);
            assert_eq!((kept[0], kept[kept.len() - 1]), (0, count));
            let steps: Vec<_> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let (last, others) = steps.split_last().unwrap();
            assert!(
                others.windows(2).all(|pair| pair[0] == pair[1]),
                "{count}: {steps:?}"
            );
            assert!(others.first().is_none_or(|step| last <= step), "{count}");
        }
    }

    #[test]
    fn idle_use_needs_two_readings_apart() {
        for (first, second, cpus_used) in [
            ((100, Some(50)), (200, Some(60)), Some(0.1)),
            ((100, Some(50)), (200, Some(250)), Some(2.0)),
            ((100, Some(50)), (200, Some(40)), Some(0.0)),
            ((100, Some(50)), (100, Some(60)), None),
            ((100, None), (200, Some(60)), None),
            ((100, Some(50)), (200, None), None),
        ] {
            let mut idle = IdleUse::default();
            idle.begin(first.0, first.1);
            idle.end(second.0, second.1);
            assert_eq!(idle.cpus_used(), cpus_used, "{first:?} {second:?}");
        }
    }
}
