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

/// The requests that a worker has drawn from those of a run by count. In other runs there is no end
/// of them.
#[derive(Debug)]
pub(crate) struct Quota {
    budget: Option<Arc<Budget>>,
    /// Drawn, and neither sent nor given back.
    pub(crate) drawn: u64,
    /// Requests that are due earlier do not count.
    from_ns: u64,
}

impl Quota {
    /// A quota for which no request counts before [`Quota::count_from`]; without a `budget` none
    /// ever does.
    pub(crate) fn new(budget: Option<Arc<Budget>>) -> Self {
        Self {
            budget,
            drawn: 0,
            from_ns: u64::MAX,
        }
    }

    /// Requests count that are due at `from_ns` or later.
    pub(crate) fn count_from(&mut self, from_ns: u64) {
        self.from_ns = from_ns;
    }

    /// Whether a request that is due at `due_ns` counts.
    #[inline]
    pub(crate) fn counts(&self, due_ns: u64) -> bool {
        self.budget.is_some() && due_ns >= self.from_ns
    }

    /// Takes up to `count` requests that are due at `due_ns`; gives how many may be sent.
    #[inline]
    pub(crate) fn take(&mut self, due_ns: u64, count: u64) -> u64 {
        let Some(budget) = &self.budget else {
            return count;
        };
        if due_ns < self.from_ns {
            return count;
        }
        while self.drawn < count {
            match budget.draw() {
                0 => break,
                drawn => self.drawn += drawn,
            }
        }
        let count = count.min(self.drawn);
        self.drawn -= count;
        count
    }

    /// Gives back what was taken at `due_ns` and is not sent.
    pub(crate) fn give_back(&mut self, due_ns: u64, count: u64) {
        if self.counts(due_ns) {
            self.drawn += count;
        }
    }

    /// Whether `count` requests that are due at `due_ns` are left. This worker draws them, so that
    /// others do not send them.
    pub(crate) fn secures(&mut self, due_ns: u64, count: u64) -> bool {
        let taken = self.take(due_ns, count);
        self.give_back(due_ns, taken);
        taken == count
    }

    /// Requests that are due at `due_ns` and left, for this worker and others.
    pub(crate) fn left(&self, due_ns: u64) -> u64 {
        let budget = self.budget.as_ref().filter(|_| self.counts(due_ns));
        budget.map_or(u64::MAX, |budget| self.drawn + budget.left())
    }

    /// Whether nothing more is to be sent, by this worker or by others.
    pub(crate) fn is_exhausted(&self) -> bool {
        let is_empty = |budget: &Arc<Budget>| budget.left() == 0;
        self.drawn == 0 && self.budget.as_ref().is_some_and(is_empty)
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

    #[test]
    fn without_a_count_everything_may_be_sent() {
        let mut quota = Quota::new(None);
        quota.count_from(0);
        assert_eq!(quota.take(5, 7), 7);
        quota.give_back(5, 7);
        assert_eq!((quota.drawn, quota.is_exhausted()), (0, false));
    }

    #[test]
    fn requests_count_from_the_start_of_the_window_and_come_to_an_end() {
        let mut quota = Quota::new(Some(Arc::new(Budget::new(3, 1))));
        assert_eq!(quota.take(9, 100), 100);
        quota.count_from(10);
        assert_eq!(quota.take(9, 100), 100);
        assert!(!quota.counts(9) && quota.counts(10));
        assert_eq!(quota.take(10, 2), 2);
        assert_eq!(quota.take(11, 2), 1);
        assert!(quota.is_exhausted());
        assert_eq!(quota.take(11, 1), 0);
    }

    #[test]
    fn what_one_worker_secures_is_not_left_for_others() {
        let budget = Arc::new(Budget::new(3, 2));
        let [mut own, mut other] = [0; 2].map(|_| Quota::new(Some(Arc::clone(&budget))));
        assert!(own.secures(9, 100) && own.left(9) == u64::MAX);
        for quota in [&mut own, &mut other] {
            quota.count_from(10);
        }
        assert!(own.secures(10, 2) && own.secures(10, 2));
        assert_eq!([own.left(10), other.left(10)], [3, 1]);
        assert!(!other.secures(10, 2) && !own.secures(10, 3));
        assert_eq!([own.take(10, 5), other.take(10, 5)], [2, 1]);
        assert!(!own.secures(10, 1) && own.left(10) == 0);
        assert!(Quota::new(None).secures(0, 100));
    }

    #[test]
    fn what_is_given_back_may_be_sent_later() {
        let mut quota = Quota::new(Some(Arc::new(Budget::new(2, 1))));
        quota.count_from(10);
        assert_eq!(quota.take(10, 2), 2);
        quota.give_back(9, 1);
        assert!(quota.is_exhausted());
        quota.give_back(10, 1);
        assert_eq!((quota.drawn, quota.is_exhausted()), (1, false));
        assert_eq!(quota.take(10, 2), 1);
    }
}
