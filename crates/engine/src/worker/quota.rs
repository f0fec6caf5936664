//! What a worker may still send of a run by count.

use std::sync::Arc;

use crate::budget::Budget;

/// The requests that a worker has drawn from those of a run by count. In other runs there is no end
/// of them.
#[derive(Debug)]
pub(super) struct Quota {
    budget: Option<Arc<Budget>>,
    /// Drawn, and neither sent nor given back.
    drawn: u64,
    /// Requests that are due earlier do not count.
    from_ns: u64,
}

impl Quota {
    /// A quota for which no request counts before [`Quota::count_from`]; without a `budget` none
    /// ever does.
    pub(super) fn new(budget: Option<Arc<Budget>>) -> Self {
        Self {
            budget,
            drawn: 0,
            from_ns: u64::MAX,
        }
    }

    /// Requests count that are due at `from_ns` or later.
    pub(super) fn count_from(&mut self, from_ns: u64) {
        self.from_ns = from_ns;
    }

    /// Whether a request that is due at `due_ns` counts.
    #[inline]
    pub(super) fn counts(&self, due_ns: u64) -> bool {
        self.budget.is_some() && due_ns >= self.from_ns
    }

    /// Takes up to `count` requests that are due at `due_ns`; gives how many may be sent.
    #[inline]
    pub(super) fn take(&mut self, due_ns: u64, count: u64) -> u64 {
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
    pub(super) fn give_back(&mut self, due_ns: u64, count: u64) {
        if self.counts(due_ns) {
            self.drawn += count;
        }
    }

    /// Whether `count` requests that are due at `due_ns` are left. This worker draws them, so that
    /// others do not send them.
    pub(super) fn secures(&mut self, due_ns: u64, count: u64) -> bool {
        let taken = self.take(due_ns, count);
        self.give_back(due_ns, taken);
        taken == count
    }

    /// Requests that are due at `due_ns` and left, for this worker and others.
    pub(super) fn left(&self, due_ns: u64) -> u64 {
        let budget = self.budget.as_ref().filter(|_| self.counts(due_ns));
        budget.map_or(u64::MAX, |budget| self.drawn + budget.left())
    }

    /// Whether nothing more is to be sent, by this worker or by others.
    pub(super) fn is_exhausted(&self) -> bool {
        let is_empty = |budget: &Arc<Budget>| budget.left() == 0;
        self.drawn == 0 && self.budget.as_ref().is_some_and(is_empty)
    }

    /// What was drawn and not sent.
    pub(super) fn drawn(&self) -> u64 {
        self.drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_count_everything_may_be_sent() {
        let mut quota = Quota::new(None);
        quota.count_from(0);
        assert_eq!(quota.take(5, 7), 7);
        quota.give_back(5, 7);
        assert_eq!((quota.drawn(), quota.is_exhausted()), (0, false));
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
        assert_eq!((quota.drawn(), quota.is_exhausted()), (1, false));
        assert_eq!(quota.take(10, 2), 1);
    }
}
