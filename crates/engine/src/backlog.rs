//! What is left to be sent: the requests of a run by count, drawn by the workers in shares that
//! shrink towards the end; and the arrivals of one worker, those still to come and those that wait
//! for a free connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_load::Arrivals;

/// An arrival that has come due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The planned instant of the arrival.
    pub(crate) due_ns: u64,
    /// When a brunt that is never late could have sent this arrival, which waits only because
    /// earlier ones were sent late. Absent where that is not known.
    pub(crate) possible_ns: Option<u64>,
}

/// Planned instants on the run's clock, in order.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Instants of the arrivals to come; absent where nothing is planned.
    arrivals: Option<Arrivals>,
    origin_ns: u64,
    /// The next to come; `u64::MAX` when there is none, or none yet.
    pub(crate) next_ns: u64,
    /// Oldest first.
    pub(crate) waiting: VecDeque<Arrival>,
    waiting_max: usize,
}

impl Backlog {
    /// Arrivals that do not come before [`Backlog::start`]; absent where nothing is planned. At
    /// most `waiting_max` wait.
    pub(crate) fn new(arrivals: Option<Arrivals>, waiting_max: u32) -> Self {
        Self {
            arrivals,
            origin_ns: 0,
            next_ns: u64::MAX,
            waiting: VecDeque::new(),
            waiting_max: waiting_max as usize,
        }
    }

    /// The load begins at `origin_ns`: planned instants count from there.
    pub(crate) fn start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
        self.advance();
    }

    /// No further arrivals come.
    pub(crate) fn stop(&mut self) {
        self.next_ns = u64::MAX;
    }

    /// Whether no further arrivals come.
    pub(crate) fn is_over(&self) -> bool {
        self.next_ns == u64::MAX
    }

    /// Takes the next one if it comes before `before_ns`.
    pub(crate) fn take_before(&mut self, before_ns: u64) -> Option<u64> {
        let due_ns = self.next_ns;
        (due_ns < before_ns).then(|| {
            self.advance();
            due_ns
        })
    }

    /// Passes over those that come before `before_ns`, over `most` at most and no more at once than
    /// is quickly done; gives how many.
    pub(crate) fn skip_before(&mut self, before_ns: u64, most: u64) -> u64 {
        if self.next_ns >= before_ns || most == 0 {
            return 0;
        }
        let before_offset_ns = before_ns.saturating_sub(self.origin_ns);
        let skipped = (self.arrivals.as_mut()).map_or(0, |arrivals| {
            arrivals.skip_before(before_offset_ns, most - 1)
        });
        self.advance();
        1 + skipped
    }

    /// Whether no further arrival may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.waiting_max
    }

    /// Lets an arrival wait, behind those that do. False: there is no room.
    pub(crate) fn push(&mut self, arrival: Arrival) -> bool {
        let has_room = self.waiting.len() < self.waiting_max;
        if has_room {
            self.waiting.push_back(arrival);
        }
        has_room
    }

    /// A connection has had room for `places` requests since `free_ns`, unnoticed. If that was
    /// before the one that has waited longest came due, those that wait could have been sent on
    /// it, in each place one after the other, each taking `service_ns`.
    pub(crate) fn was_free(&mut self, free_ns: u64, places: u64, service_ns: u64) {
        let is_news = self
            .waiting
            .front()
            .is_some_and(|first| first.possible_ns.is_none() && first.due_ns >= free_ns);
        if is_news {
            for index in 0..self.waiting.len() {
                // The place that is free first is that of the arrival this many before.
                let before = index.checked_sub(places as usize);
                let ahead_ns = before.and_then(|before| self.waiting[before].possible_ns);
                let place_ns = ahead_ns.map_or(free_ns, |at_ns| at_ns + service_ns);
                let arrival = &mut self.waiting[index];
                arrival.possible_ns = Some(arrival.due_ns.max(place_ns));
            }
        }
    }

    fn advance(&mut self) {
        let offset_ns = self.arrivals.as_mut().and_then(Iterator::next);
        self.next_ns = offset_ns.map_or(u64::MAX, |offset_ns| {
            self.origin_ns.saturating_add(offset_ns)
        });
    }
}

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

/// What the workers of a process draw from: one budget for all, or one for each; none in a run that
/// is not by count.
#[derive(Debug)]
pub(crate) struct Budgets(Vec<Arc<Budget>>);

impl Budgets {
    /// Budgets of so many requests each, which so many workers share.
    pub(crate) fn new(requests: impl IntoIterator<Item = u64>, workers: u32) -> Self {
        let budget = |requests| Arc::new(Budget::new(requests, workers));
        Self(requests.into_iter().map(budget).collect())
    }

    /// The budget of the worker at `place` among the workers of the process.
    pub(crate) fn of(&self, place: usize) -> Option<Arc<Budget>> {
        let place = if self.0.len() == 1 { 0 } else { place };
        self.0.get(place).cloned()
    }

    /// What nobody has drawn.
    pub(crate) fn left(&self) -> u64 {
        self.0.iter().map(|budget| budget.left()).sum()
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
        let counts = due_ns >= self.from_ns;
        let Some(budget) = self.budget.as_ref().filter(|_| counts) else {
            return count;
        };
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
    use brunt_load::{ArrivalProcess, Schedule};

    use super::*;

    /// When waiting arrivals, due at `due_ns`, could have been sent.
    fn possible(due_ns: &[u64], free_ns: u64, places: u64, service_ns: u64) -> Vec<Option<u64>> {
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, 1.0, 0).unwrap();
        let mut backlog = Backlog::new(Some(schedule.arrivals(0, 1)), 100);
        for &due_ns in due_ns {
            let possible_ns = None;
            assert!(backlog.push(Arrival {
                due_ns,
                possible_ns
            }));
        }
        backlog.was_free(free_ns, places, service_ns);
        let waiting = backlog.waiting.iter();
        waiting.map(|arrival| arrival.possible_ns).collect()
    }

    #[test]
    fn what_waits_could_have_gone_out_in_each_free_place_one_after_the_other() {
        let at = |instants: &[u64]| instants.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(
            possible(&[10, 11, 12, 13], 5, 1, 100),
            at(&[10, 110, 210, 310])
        );
        assert_eq!(
            possible(&[10, 11, 12, 13], 5, 3, 100),
            at(&[10, 11, 12, 110])
        );
        assert_eq!(possible(&[10, 200, 201], 5, 2, 100), at(&[10, 200, 201]));
        // It was not free when the first came due.
        assert_eq!(possible(&[10, 11], 11, 2, 100), vec![None, None]);
    }

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
        let common = Budgets::new([5], 2);
        assert_eq!(common.of(1).map(|budget| budget.left()), Some(5));
        assert_eq!(common.left(), 5);
        let own = Budgets::new([3, 2], 1);
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
