//! Readings over time, of which a bounded number is kept: a long run has fewer points per minute.

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
}
