//! The arrivals of one worker: those still to come, and those that wait for a free connection.

use std::collections::VecDeque;

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
    waiting: VecDeque<Arrival>,
    waiting_max: usize,
}

impl Backlog {
    /// Arrivals that do not come before [`Backlog::start`]. At most `waiting_max` wait.
    pub(crate) fn new(arrivals: Arrivals, waiting_max: u32) -> Self {
        Self {
            arrivals: Some(arrivals),
            waiting_max: waiting_max as usize,
            ..Self::none()
        }
    }

    /// A backlog in which nothing is planned.
    pub(crate) fn none() -> Self {
        Self {
            arrivals: None,
            origin_ns: 0,
            next_ns: u64::MAX,
            waiting: VecDeque::new(),
            waiting_max: 0,
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

    /// The one that has waited longest.
    pub(crate) fn front(&self) -> Option<Arrival> {
        self.waiting.front().copied()
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

    /// Takes it.
    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        self.waiting.pop_front()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn advance(&mut self) {
        let offset_ns = self.arrivals.as_mut().and_then(Iterator::next);
        self.next_ns = offset_ns.map_or(u64::MAX, |offset_ns| {
            self.origin_ns.saturating_add(offset_ns)
        });
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::{ArrivalProcess, Schedule};

    use super::*;

    /// When waiting arrivals, due at `due_ns`, could have been sent.
    fn possible(due_ns: &[u64], free_ns: u64, places: u64, service_ns: u64) -> Vec<Option<u64>> {
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, 1.0, 0).unwrap();
        let mut backlog = Backlog::new(schedule.arrivals(0, 1), 100);
        for &due_ns in due_ns {
            let possible_ns = None;
            assert!(backlog.push(Arrival {
                due_ns,
                possible_ns
            }));
        }
        backlog.was_free(free_ns, places, service_ns);
        std::iter::from_fn(|| backlog.pop())
            .map(|arrival| arrival.possible_ns)
            .collect()
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
}
