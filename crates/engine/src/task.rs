//! What one worker is to do in a round, and when: a prepared plan, dealt out.

use std::num::NonZeroU32;
use std::sync::Arc;

use brunt_io::backend::{Peer, Slot};
use brunt_io::cpu::CpuUse;
use brunt_io::spin::Spinner;
use brunt_load::{LoadModel, Plan, SocketOptions, Spin, Work, share};
use brunt_record::{Backend as BackendName, Recorder, Transport, Window};

use crate::backlog::{Budget, Budgets};
use crate::generated::Generated;
use crate::observer::{Control, Shown, Snapshot};
use crate::prepare::Prepared;
use crate::protocol::NewWorker;

/// A worker that does not run for so long, though it has something to do, was stopped: no scheduler
/// lets a thread wait as long.
pub(crate) const PAUSE_NS_LEAST: u64 = 200_000_000;

/// What one worker is to do in a round.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) prepared: Arc<Prepared>,
    /// Its number among all workers of the plan.
    pub(crate) worker: u32,
    /// Its share of the connections: to hold; with planned connections, most at once.
    pub(crate) connections: u32,
    /// Requests in flight per connection, and their time-out: each request asks for them.
    pub(crate) depth: u32,
    pub(crate) timeout_ns: u64,
    /// Requests after which a connection is replaced.
    pub(crate) requests_per_connection: u64,
    /// How long a sleep lasts at least, so that one wake-up serves several requests; 0 for as
    /// short as it gets.
    pub(crate) gather_ns: u64,
    /// The requests of a run by count.
    pub(crate) budget: Option<Arc<Budget>>,
    /// Those of them that its connections have equal parts of; absent where they share them.
    pub(crate) part: Option<u64>,
    pub(crate) control: Arc<Control>,
}

impl Task {
    pub(crate) fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// What its backend is made for, on this machine.
    pub(crate) fn place<'m, M>(&self, machine: &'m mut M) -> NewWorker<'m, M> {
        NewWorker {
            machine,
            number: self.worker,
            slots: self.connections,
        }
    }

    /// Connections that the load keeps, or goes by; none where they come by plan.
    pub(crate) fn held(&self) -> u32 {
        match self.plan().load.model {
            LoadModel::Sessions { .. } => 0,
            _ => self.connections,
        }
    }
}

/// What a worker is given for a round.
#[derive(Debug)]
pub(crate) struct Preparation {
    pub(crate) task: Task,
    pub(crate) spinner: Spinner,
    pub(crate) shown: Shown,
    /// What makes its requests; absent where they are those of the plan.
    pub(crate) generated: Option<Box<Generated>>,
}

/// What a worker gives at the end of a round.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) recorder: Recorder,
    /// CPU that its thread used for the round.
    pub(crate) cpu: CpuUse,
    /// The CPU that it was bound to.
    pub(crate) bound_cpu: Option<u32>,
    /// When the last request was answered or failed, 0 for none.
    pub(crate) last_done_ns: u64,
    /// What it did not show yet of what it counted.
    pub(crate) last_shown: Snapshot,
    /// What made the requests; absent where they were those of the plan.
    pub(crate) generated: Option<Box<Generated>>,
}

/// What a worker does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Connections are opened; nothing is sent.
    Setup,
    /// Requests are sent.
    Load,
    /// What is in flight is waited for; nothing is sent, nothing is opened.
    Drain,
}

/// What the worker does at present, and the edges of the window.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) mode: Mode,
    pub(crate) measure_from_ns: u64,
    pub(crate) window_end_ns: u64,
}

impl Timeline {
    /// Of a round that begins with its set-up, before its window is known.
    pub(crate) fn new() -> Self {
        Self {
            mode: Mode::Setup,
            measure_from_ns: u64::MAX,
            window_end_ns: u64::MAX,
        }
    }

    pub(crate) fn set_window(&mut self, window: Window) {
        (self.measure_from_ns, self.window_end_ns) = (window.start_ns, window.end_ns);
    }

    /// The window ends at `end_ns`. Gives whether that is earlier than it was to.
    pub(crate) fn end_by(&mut self, end_ns: u64) -> bool {
        let is_earlier = end_ns < self.window_end_ns;
        self.window_end_ns = self.window_end_ns.min(end_ns);
        is_earlier
    }

    /// Whether something may be sent at `now_ns`.
    #[inline]
    pub(crate) fn sends_at(&self, now_ns: u64) -> bool {
        self.mode == Mode::Load && now_ns < self.window_end_ns
    }

    /// Whether the window has begun by `now_ns`.
    #[inline]
    pub(crate) fn has_begun(&self, now_ns: u64) -> bool {
        now_ns >= self.measure_from_ns
    }

    /// Whether what is done at `at_ns` is measured.
    #[inline]
    pub(crate) fn measures(&self, at_ns: u64) -> bool {
        self.sends_at(at_ns) && self.has_begun(at_ns)
    }

    /// What is skipped at `now_ns` will have had no reply by then: by the end of the window, where
    /// that is known.
    #[inline]
    pub(crate) fn unanswered_until_ns(&self, now_ns: u64) -> u64 {
        if self.is_endless() {
            now_ns
        } else {
            self.window_end_ns
        }
    }

    /// Whether the window has no end of its own.
    #[inline]
    pub(crate) fn is_endless(&self) -> bool {
        self.window_end_ns == u64::MAX
    }
}

/// Arrivals per second and worker up to which gaps are long enough to be polled through. Beyond
/// it, a wake-up per request and per reply would cost more than the requests themselves.
const SLOW_RATE_MAX_PER_S: f64 = 20_000.0;
/// Beyond that rate, how long a sleep lasts at least.
const GATHER_NS: u64 = 30_000;
/// Requests in flight per worker in a closed loop over datagrams that are many: each waits for all
/// others at the server.
const IN_FLIGHT_MANY: u64 = 50;
/// With so many, how long a sleep lasts at least: for each a small part of the 2.5 µs that a worker
/// spends on a reply, so that the time in flight is far longer; and at most.
const GATHER_NS_PER_REQUEST: u64 = 150;
const GATHER_NS_MAX: u64 = 200_000;
/// Bytes of a stream that are worth a wake-up: with one for each segment, a third of the CPU time
/// of receiving would be spent on those.
const STREAM_RECEIVE_BYTES_MIN: NonZeroU32 = NonZeroU32::new(128 * 1024).unwrap();

impl Prepared {
    /// What the worker with this number is to do in a round.
    pub(crate) fn task(
        self: &Arc<Self>,
        worker: u32,
        budget: Option<Arc<Budget>>,
        control: &Arc<Control>,
    ) -> Task {
        let plan = &self.plan;
        let (all, workers) = (plan.load.connections.get(), plan.workers.count.get());
        let connections = share(all, workers, worker);
        let possible = self.negotiated.protocol.depth.units_per_connection_max;
        let wanted = plan.requests_per_connection();
        let requests = plan.requests_of(worker..worker + 1);
        Task {
            prepared: Arc::clone(self),
            worker,
            connections,
            depth: self.negotiated.depth,
            requests_per_connection: wanted.map_or(possible, |count| count.min(possible)),
            gather_ns: self.gather_ns(connections),
            timeout_ns: plan.limits.timeout_ns,
            budget,
            part: requests.filter(|_| plan.traffic.has_equal_parts),
            control: Arc::clone(control),
        }
    }

    /// One connection in this many is stamped by the kernel. What streams receive is never looked
    /// at, and without requests nothing comes.
    pub(crate) fn stamps_every(&self) -> Option<NonZeroU32> {
        let every = self.plan.observation.stamps.every();
        every.filter(|_| self.awaits_replies())
    }

    /// Whether half of the connections pause for a part of a closed loop's warm-up.
    pub(crate) fn pauses_half(&self) -> bool {
        self.plan.load.halves_warmup && self.awaits_replies()
    }

    fn awaits_replies(&self) -> bool {
        matches!(self.plan.work(), Work::Requests | Work::Hold)
    }

    /// Whether requests are sent again that their servers did not process. What makes requests
    /// while the run goes on keeps none of them.
    pub(crate) fn sends_again(&self) -> bool {
        let plan = &self.plan;
        plan.traffic.sends_again
            && !plan.traffic.is_generated
            && !plan.traffic.has_equal_parts
            && !matches!(plan.load.model, LoadModel::Sessions { .. })
    }

    /// Requests of the window that a worker logs, at most; 0 for none.
    pub(crate) fn logged_requests_max(&self) -> u64 {
        let plan = &self.plan;
        let most = plan.observation.logged_requests_max;
        match plan.load.stop.requests {
            // Nobody knows which worker sends how many.
            Some(requests) => most.min(requests),
            None => most.div_ceil(plan.workers.count.get().into()),
        }
    }

    /// Where the connection of a worker in a slot goes: to all servers alike, over all workers.
    pub(crate) fn peer_of(&self, worker: u32, slot: Slot) -> &Peer {
        let number = slot.0 as usize * self.plan.workers.count.get() as usize + worker as usize;
        &self.peers[number % self.peers.len()]
    }

    /// Options of the sockets: those of the plan, with what streams are paced at, and how much of
    /// them is received at once.
    pub(crate) fn sockets(&self) -> SocketOptions {
        let plan = &self.plan;
        let streams = plan.one_way();
        let receives = streams.is_some_and(|streams| streams.receives);
        let paced =
            streams.and_then(|streams| streams.paced_bytes_per_s(plan.load.connections.get()));
        SocketOptions {
            paced_bytes_per_s: paced.or(plan.connection.sockets.paced_bytes_per_s),
            receive_bytes_min: receives.then_some(STREAM_RECEIVE_BYTES_MIN),
            ..plan.connection.sockets.clone()
        }
    }

    /// What the workers of this process draw the requests of a run by count from.
    pub(crate) fn budgets(&self) -> Budgets {
        // Workers in simulation do not live at the same time.
        if self.plan.traffic.has_equal_parts || self.backend == BackendName::Sim {
            let of_worker = |worker| self.plan.requests_of(worker..worker + 1);
            return Budgets::new(self.workers.clone().filter_map(of_worker), 1);
        }
        let requests = self.plan.requests_of(self.workers.clone());
        Budgets::new(requests, self.worker_count())
    }

    fn gather_ns(&self, connections: u32) -> u64 {
        let has_schedule = self.plan.load.model.schedule().is_some();
        let is_fast = has_schedule && !self.is_slow();
        let in_flight = u64::from(connections) * u64::from(self.negotiated.depth);
        // A server has a few replies in each datagram, and each wakes the worker up.
        let is_woken_often = !has_schedule
            && self.negotiated.protocol.transport == Transport::Datagrams
            && in_flight >= IN_FLIGHT_MANY;
        match self.plan.workers.spin {
            // Virtual time is not saved by sleeping.
            _ if self.backend == BackendName::Sim => 0,
            Spin::Auto | Spin::Off if is_fast => GATHER_NS,
            Spin::Auto | Spin::Off if is_woken_often => {
                GATHER_NS_MAX.min(in_flight.saturating_mul(GATHER_NS_PER_REQUEST))
            }
            Spin::Auto | Spin::Off | Spin::On => 0,
        }
    }

    /// Whether workers poll: always when it was asked for; by default where planned instants are
    /// to be met and are so far apart that sleeping through the gaps would be the rule.
    pub(crate) fn spin(&self) -> Spin {
        match self.plan.workers.spin {
            Spin::Auto if !self.is_slow() => Spin::Off,
            // Polling does not make virtual time pass.
            _ if self.backend == BackendName::Sim => Spin::Off,
            spin => spin,
        }
    }

    /// Whether there is a schedule, with long gaps.
    fn is_slow(&self) -> bool {
        self.plan.load.model.schedule().is_some_and(|schedule| {
            schedule.rate_max() / f64::from(self.plan.workers.count.get()) <= SLOW_RATE_MAX_PER_S
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_in_the_window_is_measured_and_nothing_is_sent_after_it() {
        let mut timeline = Timeline::new();
        assert!(timeline.is_endless() && !timeline.sends_at(0));
        let window = Window {
            start_ns: 10,
            end_ns: 20,
        };
        timeline.set_window(window);
        timeline.mode = Mode::Load;
        let at = [9, 10, 19, 20];
        assert_eq!(
            at.map(|at_ns| timeline.sends_at(at_ns)),
            [true, true, true, false]
        );
        assert_eq!(
            at.map(|at_ns| timeline.measures(at_ns)),
            [false, true, true, false]
        );
        assert!(!timeline.end_by(25) && timeline.end_by(15));
        assert!(!timeline.measures(15));
        timeline.mode = Mode::Drain;
        assert!(!timeline.sends_at(12));
    }
}
