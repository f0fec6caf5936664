//! What each worker is to do: a prepared plan, dealt out.

use std::num::NonZeroU32;
use std::sync::Arc;

use brunt_io::backend::{Peer, Slot};
use brunt_load::{LoadModel, Reuse, Schedule, SocketOptions, Spin, share};
use brunt_record::{Backend as BackendName, Transport};

use crate::budget::{Budget, Budgets};
use crate::control::Control;
use crate::observer::SnapshotSender;
use crate::prepare::Prepared;
use crate::worker::{Pace, Task};

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
const STREAM_RECEIVE_BYTES_MIN: u32 = 128 * 1024;

impl Prepared {
    /// What the worker with this number is to do in a round.
    pub(crate) fn task(
        self: &Arc<Self>,
        worker: u32,
        budget: Option<Arc<Budget>>,
        control: &Arc<Control>,
        snapshots: &SnapshotSender,
    ) -> Task {
        let plan = &self.plan;
        Task {
            prepared: Arc::clone(self),
            worker,
            pace: self.pace(worker),
            connections: share(plan.connections.get(), plan.workers.get(), worker),
            depth: self.negotiated.depth,
            requests_per_connection: self.requests_per_connection(),
            gather_ns: self.gather_ns(worker),
            timeout_ns: plan.timeout_ns,
            budget,
            part: plan
                .requests_of(worker..worker + 1)
                .filter(|_| plan.has_equal_parts),
            control: Arc::clone(control),
            snapshots: snapshots.clone(),
        }
    }

    /// One connection in this many is stamped by the kernel. What streams receive is never looked
    /// at, and without requests nothing comes.
    pub(crate) fn stamps_every(&self) -> Option<NonZeroU32> {
        let every = self.plan.stamps.every();
        every.filter(|_| self.awaits_replies())
    }

    /// Whether half of the connections pause for a part of a closed loop's warm-up.
    pub(crate) fn halves(&self) -> bool {
        self.plan.halves_warmup && self.awaits_replies()
    }

    fn awaits_replies(&self) -> bool {
        self.plan.one_way().is_none() && !self.plan.connects_only()
    }

    /// Whether requests are sent again that their servers did not process. What makes requests
    /// while the run goes on keeps none of them.
    pub(crate) fn sends_again(&self) -> bool {
        let plan = &self.plan;
        plan.sends_again
            && !plan.is_generated
            && !plan.has_equal_parts
            && !matches!(plan.model, LoadModel::Sessions { .. })
    }

    /// Requests of the window that a worker logs, at most; 0 for none.
    pub(crate) fn logged_requests_max(&self) -> u64 {
        let plan = &self.plan;
        match plan.stop.requests {
            // Nobody knows which worker sends how many.
            Some(requests) => plan.logged_requests_max.min(requests),
            None => plan.logged_requests_max.div_ceil(plan.workers.get().into()),
        }
    }

    /// Where the connection of a worker in a slot goes: to all servers alike, over all workers.
    pub(crate) fn peer_of(&self, worker: u32, slot: Slot) -> &Peer {
        let number = slot.0 as usize * self.plan.workers.get() as usize + worker as usize;
        match number % (self.further_peers.len() + 1) {
            0 => &self.peer,
            other => &self.further_peers[other - 1],
        }
    }

    /// Options of the sockets: those of the plan, with what streams are paced at, and how much of
    /// them is received at once.
    pub(crate) fn sockets(&self) -> SocketOptions {
        let plan = &self.plan;
        let streams = plan.one_way();
        let paced = streams.and_then(|it| it.paced_bytes_per_s(plan.connections.get()));
        SocketOptions {
            paced_bytes_per_s: paced.or(plan.sockets.paced_bytes_per_s),
            receive_bytes_min: streams
                .filter(|streams| streams.receives)
                .and_then(|_| NonZeroU32::new(STREAM_RECEIVE_BYTES_MIN)),
            ..plan.sockets.clone()
        }
    }

    /// What the workers of this process draw the requests of a run by count from.
    pub(crate) fn budgets(&self) -> Option<Budgets> {
        if self.plan.has_equal_parts {
            let of_worker = |worker| self.plan.requests_of(worker..worker + 1);
            let of_workers = self.workers.clone().map(of_worker);
            let of_workers: Option<Vec<u64>> = of_workers.collect();
            return of_workers.map(|requests| Budgets::of_each(&requests));
        }
        let workers = self.workers.len() as u32;
        let requests = self.plan.requests_of(self.workers.clone());
        requests.map(|requests| Budgets::common(requests, workers))
    }

    fn requests_per_connection(&self) -> u64 {
        let possible = self.negotiated.protocol.depth.units_per_connection_max;
        match self.plan.reuse {
            Reuse::Unlimited => possible,
            Reuse::Requests(count) => count.get().min(possible),
        }
    }

    fn gather_ns(&self, worker: u32) -> u64 {
        let has_schedule = self.plan.model.schedule().is_some();
        let is_fast = has_schedule && !self.is_slow();
        let in_flight = self.in_flight_max(worker);
        // A server has a few replies in each datagram, and each wakes the worker up.
        let is_woken_often = !has_schedule
            && self.negotiated.protocol.transport == Transport::Datagrams
            && in_flight >= IN_FLIGHT_MANY;
        match self.plan.spin {
            // Virtual time is not saved by sleeping.
            _ if self.backend == BackendName::Sim => 0,
            Spin::Auto | Spin::Off if is_fast => GATHER_NS,
            Spin::Auto | Spin::Off if is_woken_often => {
                GATHER_NS_MAX.min(in_flight.saturating_mul(GATHER_NS_PER_REQUEST))
            }
            Spin::Auto | Spin::Off | Spin::On => 0,
        }
    }

    /// Requests that a worker may have in flight at most.
    fn in_flight_max(&self, worker: u32) -> u64 {
        let plan = &self.plan;
        let connections = share(plan.connections.get(), plan.workers.get(), worker);
        u64::from(connections) * u64::from(self.negotiated.depth)
    }

    /// Whether workers poll: always when it was asked for; by default where planned instants are
    /// to be met and are so far apart that sleeping through the gaps would be the rule.
    pub(crate) fn spin(&self) -> Spin {
        match self.plan.spin {
            Spin::Auto if !self.is_slow() => Spin::Off,
            // Polling does not make virtual time pass.
            _ if self.backend == BackendName::Sim => Spin::Off,
            spin => spin,
        }
    }

    /// Whether there is a schedule, with long gaps.
    fn is_slow(&self) -> bool {
        self.plan.model.schedule().is_some_and(|schedule| {
            schedule.rate_max() / f64::from(self.plan.workers.get()) <= SLOW_RATE_MAX_PER_S
        })
    }

    fn pace(&self, worker: u32) -> Pace {
        let plan = &self.plan;
        let workers = plan.workers.get();
        let arrivals = |schedule: &Schedule| {
            let from_load = schedule.clone().after(plan.warmup_ns);
            from_load.arrivals(worker, workers)
        };
        let connect_per_s = plan.model.connect_per_s();
        let connect_gap_ns =
            connect_per_s.map_or(0.0, |rate_per_s| f64::from(workers) * 1e9 / rate_per_s);
        match &plan.model {
            LoadModel::Closed { .. } => Pace::Closed { connect_gap_ns },
            LoadModel::Held { .. } => Pace::Held { connect_gap_ns },
            LoadModel::Open {
                schedule,
                connections_max,
                queue_max,
            } => Pace::Open {
                arrivals: arrivals(schedule),
                stages_ns: schedule
                    .stages()
                    .iter()
                    .map(|stage| stage.duration_ns)
                    .collect(),
                connections_max: share(
                    connections_max.max(&plan.connections).get(),
                    workers,
                    worker,
                ),
                queue_max: share(queue_max.get(), workers, worker).max(1),
            },
            LoadModel::Sessions {
                schedule,
                queue_max,
            } => Pace::Sessions {
                arrivals: arrivals(schedule),
                queue_max: share(queue_max.get(), workers, worker).max(1),
            },
        }
    }
}
