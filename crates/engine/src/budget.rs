//! The requests of a run by count, drawn by the workers in shares that shrink towards the end.

use std::sync::atomic::{AtomicU64, Ordering};

/// Most requests drawn at once.
const DRAW_MAX: u64 = 1_024;
/// Draws per worker that the remainder should last for: the fastest worker takes most, and all
/// finish together.
const DRAWS_LEFT: u64 = 16;

/// Requests that may still be sent, shared by all workers.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
    workers: u64,
}

impl Budget {
    pub(crate) fn new(requests: u64, workers: u32) -> Self {
        Self {
            left: AtomicU64::new(requests),
            workers: u64::from(workers).max(1),
        }
    }

    /// Takes some of what is left; 0 when nothing is.
    pub(crate) fn draw(&self) -> u64 {
        let share = |left: u64| {
            (left / (self.workers * DRAWS_LEFT))
                .clamp(1, DRAW_MAX)
                .min(left)
        };
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left - share(left))
            })
            .map_or(0, share)
    }

    /// What nobody has drawn.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_shrink_and_add_up_to_the_total() {
        for total in [0, 1, 7, 1_000, 1_000_000] {
            let budget = Budget::new(total, 2);
            let draws: Vec<u64> =
                std::iter::from_fn(|| Some(budget.draw()).filter(|&draw| draw > 0)).collect();
            assert_eq!(draws.iter().sum::<u64>(), total);
            assert!(draws.is_sorted_by(|earlier, later| earlier >= later));
            assert_eq!((budget.draw(), budget.left()), (0, 0));
        }
    }
}
