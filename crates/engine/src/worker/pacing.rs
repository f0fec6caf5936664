//! When requests of a worker are due: by replies or by plan; what waits for a connection, and which
//! connections it may take.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::ops::Range;

use brunt_io::backend::Slot;
use brunt_load::{LoadModel, ThinkTime, ThinkTimes, share};
use brunt_record::{Halving, Window};

use crate::backlog::{Arrival, Backlog};
use crate::connection::{Connection, State};
use crate::protocol::ClientProtocol;
use crate::task::Task;

/// Connections that one turn hands out when the load begins.
const CONNECTIONS_PER_TURN: u32 = 1_024;
/// What makes requests due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// Replies.
    Closed,
    /// Nothing: connections are kept open.
    Held,
    /// Planned instants of requests.
    Open,
    /// Planned instants of connections.
    Sessions,
}

/// When requests are due, and which connections they may take.
#[derive(Debug)]
pub(super) struct Pacing {
    pub(super) model: Model,
    /// Empty where nothing is planned.
    pub(super) backlog: Backlog,
    /// More arrivals are due than one turn may send.
    pub(super) is_behind: bool,
    /// What arrivals may take, longest free first: open connections with room, or with planned
    /// connections empty slots. Some may have ceased to be free.
    pub(super) free: VecDeque<Slot>,
    /// When the connections taken by the arrivals of one batch would be free again, had each been
    /// sent when it could have been; earliest first.
    would_be_free_ns: VecDeque<u64>,
    /// Slots from here on were not released to the load yet; [`u32::MAX`] for none.
    next_released: u32,
    /// The think times; absent where users do not think.
    think_times: Option<ThinkTimes>,
    /// While half of the connections may pause; absent after it, and where they never do.
    pub(super) halving: Option<Experiment>,
}

impl Pacing {
    /// The pacing of a task, with the number of slots that it needs.
    pub(super) fn new(task: &Task) -> (Self, u32) {
        let plan = task.plan();
        let (worker, workers) = (task.worker, plan.workers.count.get());
        let arrivals = plan.load.model.schedule().map(|schedule| {
            let from_load = schedule.clone().after(plan.load.warmup_ns);
            from_load.arrivals(worker, workers)
        });
        let queue_max = plan.load.model.queue_max().map_or(0, NonZeroU32::get);
        let waiting_max = share(queue_max, workers, worker).max(1);
        let (model, slots) = match &plan.load.model {
            LoadModel::Closed { .. } => (Model::Closed, task.connections),
            LoadModel::Held { .. } => (Model::Held, task.connections),
            LoadModel::Open {
                connections_max, ..
            } => {
                let most = connections_max.max(&plan.load.connections).get();
                (Model::Open, share(most, workers, worker))
            }
            LoadModel::Sessions { .. } => (Model::Sessions, task.connections),
        };
        let think_time = ThinkTime {
            mean_ns: plan.traffic.think_time_ns,
            spread: plan.traffic.think_spread,
            seed: plan.traffic.think_seed,
        };
        let thinks = think_time.mean_ns > 0;
        let pacing = Self {
            model,
            backlog: Backlog::new(arrivals, waiting_max),
            is_behind: false,
            free: VecDeque::new(),
            would_be_free_ns: VecDeque::new(),
            next_released: u32::MAX,
            think_times: thinks.then(|| think_time.times(task.worker)),
            halving: None,
        };
        (pacing, slots)
    }

    /// Whether requests are due at planned instants.
    #[inline]
    pub(super) fn is_open_loop(&self) -> bool {
        self.model == Model::Open
    }

    /// Whether connections are due at planned instants.
    #[inline]
    pub(super) fn has_sessions(&self) -> bool {
        self.model == Model::Sessions
    }

    /// Whether arrivals were planned and all have come.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.model, Model::Open | Model::Sessions) && self.backlog.is_over()
    }

    /// A batch of arrivals is taken in. If many have come due since brunt last looked, the later
    /// ones find nothing free where those before them, sent in time, would have been answered by
    /// now.
    #[inline]
    pub(super) fn begin_batch(&mut self) {
        self.would_be_free_ns.clear();
    }

    /// The arrival of `due_ns` as one of the batch: it takes what is free since `free_ns`, or what
    /// would be, had those before it been sent in time and answered after `answering_ns`.
    #[inline]
    pub(super) fn arrival(
        &mut self,
        due_ns: u64,
        free_ns: Option<u64>,
        answering_ns: u64,
    ) -> Arrival {
        let free_ns = free_ns.or_else(|| self.would_be_free_ns.pop_front());
        let possible_ns = free_ns.map(|free_ns| due_ns.max(free_ns));
        if self.is_open_loop()
            && let Some(possible_ns) = possible_ns
        {
            self.would_be_free_ns.push_back(possible_ns + answering_ns);
        }
        Arrival {
            due_ns,
            possible_ns,
        }
    }

    /// Whether an arrival may take the connection.
    #[inline]
    pub(super) fn can_take<P: ClientProtocol>(&self, connection: &Connection<P>) -> bool {
        match self.model {
            Model::Closed | Model::Held => false,
            Model::Open => connection.has_room(),
            Model::Sessions => connection.state == State::Down { retry_ns: u64::MAX },
        }
    }

    /// Lets arrivals find the connection, which one may take.
    #[inline]
    pub(super) fn offer<P: ClientProtocol>(&mut self, slot: Slot, connection: &mut Connection<P>) {
        if !connection.is_offered {
            connection.is_offered = true;
            self.free.push_back(slot);
        }
    }

    /// All connections are to be released to the load.
    pub(super) fn start_release(&mut self) {
        self.next_released = 0;
    }

    /// Whether some of `all` connections were not released yet.
    #[inline]
    pub(super) fn is_releasing(&self, all: u32) -> bool {
        self.next_released < all
    }

    /// The connections that one turn releases, of `all`: as many as leave it short.
    pub(super) fn release(&mut self, all: u32) -> Range<u32> {
        let first = self.next_released.min(all);
        let end = all.min(first.saturating_add(CONNECTIONS_PER_TURN));
        self.next_released = if end == all { u32::MAX } else { end };
        first..end
    }

    /// No further connections are released. Gives those that were not, of `all`.
    pub(super) fn end_release(&mut self, all: u32) -> Range<u32> {
        let first = std::mem::replace(&mut self.next_released, u32::MAX);
        first.min(all)..all
    }

    /// Whether users think before each request.
    #[inline]
    pub(super) fn thinks(&self) -> bool {
        self.think_times.is_some()
    }

    /// How long a user thinks before the next request, nanoseconds; 0 where users do not think.
    #[inline]
    pub(super) fn next_think_ns(&mut self) -> u64 {
        self.think_times.as_mut().map_or(0, ThinkTimes::next_ns)
    }

    /// How long a user who is there already when the load begins thinks before the first request,
    /// nanoseconds; absent where users do not think.
    pub(super) fn rest_think_ns(&mut self) -> Option<u64> {
        self.think_times.as_mut().map(ThinkTimes::rest_ns)
    }

    /// Begins the experiment with half of `connections`, in a closed loop whose load begins at
    /// `load_ns`. Where users think, there is none: after a pause all would send at once, which
    /// such users never do.
    pub(super) fn start_halving(&mut self, connections: u32, load_ns: u64, window: Window) {
        if self.model == Model::Closed && !self.thinks() {
            self.halving = Experiment::new(connections, load_ns, window);
        }
    }

    /// Whether the connection pauses in the experiment.
    #[inline]
    pub(super) fn pauses(&self, slot: Slot) -> bool {
        let halving = self.halving.as_ref();
        halving.is_some_and(|experiment| experiment.pauses(slot))
    }

    /// When a slice of the experiment is over; `u64::MAX` without one.
    #[inline]
    pub(super) fn next_slice_ns(&self) -> u64 {
        let halving = self.halving.as_ref();
        halving.map_or(u64::MAX, |experiment| experiment.slice_end_ns)
    }
}

/// An experiment that goes on.
#[derive(Debug)]
pub(super) struct Experiment {
    from_ns: u64,
    /// When the slice that is being counted ends.
    slice_end_ns: u64,
    /// Replies before it.
    replies_before: u64,
    /// Whether half of the connections pause in it.
    is_halved: bool,
    counted: Halving,
}

impl Experiment {
    /// The experiment that fills the end of the warm-up, which lasts from `load_ns` to the start of
    /// `window`. Absent where it would be too short.
    fn new(connections: u32, load_ns: u64, window: Window) -> Option<Self> {
        let warmup_ns = window.start_ns.saturating_sub(load_ns);
        let length_ns = warmup_ns.min(Halving::LENGTH_NS_MAX);
        if length_ns < Halving::LENGTH_NS_MIN || connections > Halving::CONNECTIONS_MAX {
            return None;
        }
        let slice_ns = length_ns / Halving::SLICES as u64;
        let from_ns = window.start_ns - slice_ns * Halving::SLICES as u64;
        Some(Self {
            from_ns,
            slice_end_ns: from_ns + slice_ns,
            replies_before: 0,
            is_halved: false,
            counted: Halving {
                connections,
                used_by_half: connections.div_ceil(2),
                slice_ns,
                starved: 0,
                replies: Vec::with_capacity(Halving::SLICES),
            },
        })
    }

    /// Whether the connection pauses.
    #[inline]
    fn pauses(&self, slot: Slot) -> bool {
        self.is_halved && slot.0 % 2 == 1
    }

    pub(super) fn is_over(&self) -> bool {
        self.counted.replies.len() == Halving::SLICES
    }

    /// Counts the slices that are over by `now_ns`, with so many replies. Gives whether what paused
    /// goes on.
    pub(super) fn count(&mut self, now_ns: u64, replies: u64) -> bool {
        let was_halved = self.is_halved;
        while now_ns >= self.slice_end_ns && !self.is_over() {
            self.counted.replies.push(replies - self.replies_before);
            self.replies_before = replies;
            self.is_halved = Halving::pauses_half(self.counted.replies.len());
            self.slice_end_ns += self.counted.slice_ns;
        }
        was_halved && !self.is_halved
    }

    /// Requests that have been in flight since before this instant had no reply in all of it.
    pub(super) fn starved_before_ns(&self) -> u64 {
        self.from_ns + self.counted.slice_ns
    }

    /// What the experiment counted. `starved`: the connections whose first requests are unanswered.
    pub(super) fn conclude(self, starved: u32) -> Halving {
        Halving {
            starved,
            ..self.counted
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::{ArrivalProcess, Schedule};

    use super::*;

    /// One arrival per second, of which `waiting_max` may wait.
    fn pacing(waiting_max: u32) -> Pacing {
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, 1.0, 0).expect("a rate");
        Pacing {
            model: Model::Open,
            backlog: Backlog::new(Some(schedule.arrivals(0, 1)), waiting_max),
            is_behind: false,
            free: VecDeque::new(),
            would_be_free_ns: VecDeque::new(),
            next_released: u32::MAX,
            think_times: None,
            halving: None,
        }
    }

    #[test]
    fn connections_are_released_a_turn_at_a_time() {
        let mut pacing = pacing(0);
        let all = CONNECTIONS_PER_TURN + 5;
        assert!(!pacing.is_releasing(all));
        pacing.start_release();
        assert!(pacing.is_releasing(all));
        assert_eq!(pacing.release(all), 0..CONNECTIONS_PER_TURN);
        assert_eq!(pacing.release(all), CONNECTIONS_PER_TURN..all);
        assert!(!pacing.is_releasing(all));
        assert_eq!(pacing.release(all), all..all);
        pacing.start_release();
        assert_eq!(pacing.release(all).len(), CONNECTIONS_PER_TURN as usize);
        assert_eq!(pacing.end_release(all), CONNECTIONS_PER_TURN..all);
        assert_eq!(pacing.end_release(all), all..all);
    }

    #[test]
    fn in_a_late_batch_arrivals_take_what_those_before_them_would_have_left() {
        let mut pacing = pacing(10);
        pacing.begin_batch();
        let mut at = |due_ns, free_ns| pacing.arrival(due_ns, free_ns, 100).possible_ns;
        assert_eq!(at(10, Some(5)), Some(10));
        assert_eq!(at(20, Some(30)), Some(30));
        // Nothing more is free: the first would have been answered at 110, the second at 130.
        assert_eq!(at(40, None), Some(110));
        assert_eq!(at(200, None), Some(200));
        assert_eq!(at(201, None), Some(210));
        pacing.begin_batch();
        assert_eq!(pacing.arrival(300, None, 100).possible_ns, None);
    }

    #[test]
    fn what_is_planned_comes_from_the_start_of_the_load_until_it_is_stopped() {
        let mut pacing = pacing(1);
        assert_eq!(pacing.backlog.next_ns, u64::MAX);
        pacing.backlog.start(5);
        let first_ns = pacing.backlog.next_ns;
        assert!((5..u64::MAX).contains(&first_ns));
        assert_eq!(pacing.backlog.take_before(first_ns), None);
        assert_eq!(pacing.backlog.take_before(first_ns + 1), Some(first_ns));
        assert!(!pacing.is_over());
        pacing.backlog.stop();
        assert!(pacing.is_over());
    }

    #[test]
    fn half_of_the_connections_pause_in_some_slices_and_replies_are_counted_in_each() {
        let window = Window {
            start_ns: 10 * Halving::LENGTH_NS_MAX,
            end_ns: u64::MAX,
        };
        let mut experiment = Experiment::new(4, 0, window).expect("the warm-up is long enough");
        let (mut replies, mut paused, mut went_on) = (0, 0, 0);
        while !experiment.is_over() {
            let pausing = (0..4).filter(|&slot| experiment.pauses(Slot(slot))).count();
            paused += u32::from(pausing == 2);
            assert!(pausing == 0 || pausing == 2);
            replies += 10;
            went_on += u32::from(experiment.count(experiment.slice_end_ns, replies));
        }
        assert!(paused > 0 && paused < Halving::SLICES as u32 && went_on > 0);
        assert!(!experiment.pauses(Slot(1)));
        let counted = experiment.conclude(3);
        assert_eq!(counted.replies, vec![10; Halving::SLICES]);
        assert_eq!((counted.starved, counted.used_by_half), (3, 2));
    }

    #[test]
    fn a_short_warm_up_has_no_room_for_it() {
        let window = Window {
            start_ns: 100 + Halving::LENGTH_NS_MIN,
            end_ns: u64::MAX,
        };
        assert!(Experiment::new(4, 101, window).is_none());
        assert!(Experiment::new(4, 100, window).is_some());
    }
}
