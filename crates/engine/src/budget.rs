//! The requests of a run by count, drawn by the workers in shares that shrink towards the end.

use std::sync::Arc;
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

/// What the workers of a process draw from.
#[derive(Debug)]
pub(crate) enum Budgets {
    /// All from the same.
    Common(Arc<Budget>),
    /// Each from its own.
    OfEach(Vec<Arc<Budget>>),
}

impl Budgets {
    pub(crate) fn common(requests: u64, workers: u32) -> Self {
        Self::Common(Arc::new(Budget::new(requests, workers)))
    }

    /// A budget of its own for each worker, with these numbers of requests.
    pub(crate) fn of_each(requests: &[u64]) -> Self {
        let own = |&requests: &u64| Arc::new(Budget::new(requests, 1));
        Self::OfEach(requests.iter().map(own).collect())
    }

    /// The budget of the worker at `place` among the workers of the process.
    pub(crate) fn of(&self, place: usize) -> Option<Arc<Budget>> {
        match self {
            Self::Common(budget) => Some(Arc::clone(budget)),
            Self::OfEach(budgets) => budgets.get(place).cloned(),
        }
    }

    /// What nobody has drawn.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Common(budget) => budget.left(),
            Self::OfEach(budgets) => budgets.iter().map(|budget| budget.left()).sum(),
        }
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

    #[test]
    fn workers_have_one_budget_or_their_own() {
        let common = Budgets::common(5, 2);
        assert_eq!(common.of(1).map(|budget| budget.left()), Some(5));
        assert_eq!(common.left(), 5);
        let own = Budgets::of_each(&[3, 2]);
        assert_eq!(own.of(0).map(|budget| budget.draw()), Some(1));
        assert_eq!(own.of(1).map(|budget| budget.left()), Some(2));
        assert!(own.of(2).is_none());
        assert_eq!(own.left(), 4);
    }
}
