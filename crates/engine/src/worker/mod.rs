//! The worker loop: one thread's connections, from the first connection attempt to the end of
//! drain.

mod accounting;
mod arrivals;
mod attempts;
mod bandwidth;
mod connections;
mod dialling;
mod draining;
mod error_bodies;
mod free;
mod generated;
mod halving;
mod kernel_sample;
mod logging;
mod output;
mod parting;
mod requests;
mod responses;
mod retry;
mod set_up;
mod streams;
mod table;

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use brunt_io::backend::{ClientBackend, Event, Peer, Slot};
use brunt_io::spin::Spinner;
use brunt_load::{Arrivals, RequestSource, SocketOptions, Spin, ThinkTime};
use brunt_probe::thread_meter::ThreadMeter;
use brunt_record::{FailureKind, Recorder, Window};

use crate::backlog::Backlog;
use crate::budget::Budget;
use crate::connection::State;
use crate::control::{Control, NOTICE_NS};
use crate::expectation::Expectation;
use crate::failure;
use crate::generated::Generated;
use crate::observer::{Shown, Snapshot, SnapshotSender};
use crate::protocol::{ClientProtocol, StartOfWorker};
use crate::sources::Sources;
use crate::trial::Gauge;
use accounting::Accounting;
use bandwidth::StreamAccounts;
use dialling::Opening;
use free::FreeConnections;
use halving::Experiment;
use output::Output;
use requests::Supply;
use table::ConnectionTable;

/// A worker that does not run for so long, though it has something to do, was stopped: no scheduler
/// lets a thread wait as long.
const PAUSE_LEAST_NS: u64 = 200_000_000;
/// Deadlines that one turn sees to: however many fall due at once, events, arrivals and interrupts
/// are not held up for long.
const DEADLINES_PER_TURN: u32 = 1_024;
/// A worker that polls sleeps through gaps of at least this: a CPU that slept is slower for a
/// while, which shorter ones are not worth.
const SLEEP_LEAST_NS: u64 = 1_000_000;
/// It is back from such a sleep this long before something is expected: sleeps end late.
const WAKE_UP_NS: u64 = 100_000;
/// What makes requests due, as far as one worker is concerned.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// Replies.
    Closed {
        /// Set-up opens a connection every so many nanoseconds; 0: as fast as it can.
        connect_gap_ns: f64,
    },
    /// Nothing: connections are kept open.
    Held {
        /// As above.
        connect_gap_ns: f64,
    },
    /// Planned instants of requests.
    Open {
        arrivals: Arrivals,
        /// Lengths of the stages that the window has, nanoseconds; empty without stages.
        stages_ns: Vec<u64>,
        connections_max: u32,
        queue_max: u32,
    },
    /// Planned instants of connections.
    Sessions { arrivals: Arrivals, queue_max: u32 },
}

/// What one worker is to do.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) worker: u32,
    pub(crate) peer: Peer,
    pub(crate) further_peers: Arc<[Peer]>,
    pub(crate) sources: Sources,
    /// Options of the sockets.
    pub(crate) sockets: SocketOptions,
    /// Workers that share them.
    pub(crate) workers: u32,
    pub(crate) pace: Pace,
    /// Connections to hold; with planned connections, most at once.
    pub(crate) connections: u32,
    /// Requests in flight per connection: pipelined in HTTP/1.1, streams in HTTP/2.
    pub(crate) depth: u32,
    /// Requests after which a connection is replaced.
    pub(crate) requests_per_connection: u64,
    /// What is sent.
    pub(crate) requests: RequestSource,
    /// Per request the place of its name, and how many names there are; empty for one request.
    pub(crate) name_of: Arc<[u32]>,
    pub(crate) names: usize,
    pub(crate) think_time: ThinkTime,
    /// One connection in this many is stamped by the kernel.
    pub(crate) stamps_every: Option<NonZeroU32>,
    /// Whether polling is wanted, where it is allowed.
    pub(crate) spin: Spin,
    /// Whether a worker whose CPU others use as well polls for a moment before it sleeps.
    pub(crate) lingers: bool,
    /// How long a sleep lasts at least, so that one wake-up serves several requests; 0 for as
    /// short as it gets.
    pub(crate) gather_ns: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) setup_limit_ns: u64,
    /// For how long set-up waits for a connection more.
    pub(crate) setup_patience_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    pub(crate) drain_limit_ns: u64,
    /// The requests of a run by count.
    pub(crate) budget: Option<Arc<Budget>>,
    /// Those of them that its connections have equal parts of; absent where they share them.
    pub(crate) part: Option<u64>,
    /// Whether the beginnings of error responses are kept.
    pub(crate) keeps_errors: bool,
    /// Requests of the window that are logged, at most; 0 for none.
    pub(crate) logged_requests_max: u64,
    /// Responses whose beginnings are logged, at most.
    pub(crate) logged_responses_max: u32,
    /// Whether half of the connections pause for a part of a closed loop's warm-up.
    pub(crate) halves: bool,
    /// Work added to each request, nanoseconds.
    pub(crate) busy_ns: u64,
    pub(crate) control: Arc<Control>,
    /// Where snapshots go; absent where nobody looks on.
    pub(crate) snapshots: Option<SnapshotSender>,
}

impl Task {
    /// Connections that are opened in set-up and kept; none where they come by plan, or are what
    /// the load consists of.
    fn opened_first(&self, connects: bool) -> u32 {
        if connects { 0 } else { self.held() }
    }

    /// Connections that the load keeps, or goes by; none where they come by plan.
    fn held(&self) -> u32 {
        match self.pace {
            Pace::Closed { .. } | Pace::Held { .. } | Pace::Open { .. } => self.connections,
            Pace::Sessions { .. } => 0,
        }
    }
}

/// The instants that all workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Load begins: the start of the warm-up.
    pub(crate) load_ns: u64,
    /// The window; its end is `u64::MAX` for a run by count alone.
    pub(crate) window: Window,
}

/// What a worker gives at the end of a round.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) recorder: Recorder,
    /// What was not shown yet; absent where nobody looks on.
    pub(crate) rest: Option<Snapshot>,
    /// When the last request was answered or failed, 0 for none.
    pub(crate) last_done_ns: u64,
    /// Local addresses that were used, of those that brunt chose.
    pub(crate) sources_used: usize,
    /// What made the requests; absent where they were those of the plan.
    pub(crate) generated: Option<Box<Generated>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Connections are opened; nothing is sent.
    Setup,
    /// Requests are sent.
    Load,
    /// What is in flight is waited for; nothing is sent, nothing is opened.
    Drain,
}

/// The pace with its state.
#[derive(Debug)]
enum Pacing {
    Closed,
    Held,
    Open(Backlog),
    Sessions(Backlog),
}

/// What the worker does at present, and the edges of the window.
#[derive(Debug)]
struct Timeline {
    mode: Mode,
    measure_from_ns: u64,
    window_end_ns: u64,
}

/// What one round has beside its record.
#[derive(Debug)]
struct Round {
    /// Absent where nobody looks on.
    shown: Option<Shown>,
    /// Connections on which something was in flight when the round was over, in order.
    left_behind: Vec<Slot>,
    /// Error responses whose beginnings are still to be looked at.
    errors_left: u32,
    /// Responses whose beginnings are still to be logged.
    responses_left: u32,
    /// The window has begun.
    has_begun: bool,
    /// While half of the connections may pause; absent after it, and where they never do.
    halving: Option<Experiment>,
    /// Of the backend, before the round.
    stamps_clamped_before: u64,
}

/// When the worker is to run, and when it did.
#[derive(Debug)]
struct WakeUps {
    spinner: Spinner,
    /// Absent where nothing is to be read of the thread.
    meter: Option<ThreadMeter>,
    /// Says how busy the thread is in the warm-up; absent where nobody asks.
    gauge: Option<Gauge>,
    expectation: Expectation,
    /// When it ran last, or is to run next.
    ran_ns: u64,
    /// More arrivals are due than one turn may see to.
    is_behind: bool,
}

/// One worker: the owner of everything that its thread touches.
pub(crate) struct Worker<B, P: ClientProtocol> {
    backend: B,
    protocol: P,
    task: Task,
    connections: ConnectionTable<P>,
    output: Output,
    opening: Opening,
    pacing: Pacing,
    free: FreeConnections,
    supply: Supply,
    accounting: Accounting,
    timeline: Timeline,
    wake_ups: WakeUps,
    round: Round,
    streams: StreamAccounts,
    /// What makes the requests; absent where they are those of the plan.
    generated: Option<Box<Generated>>,
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    pub(crate) fn new(mut backend: B, mut protocol: P, task: Task, spinner: Spinner) -> Self {
        let start = StartOfWorker {
            worker: task.worker,
            workers: task.workers,
            timeout_ns: task.timeout_ns,
        };
        protocol.start(start, &mut |payload| backend.add_payload(payload));
        backend.set_stamps(task.stamps_every);
        backend.set_sockets(&task.sockets);
        if P::IS_STREAM {
            backend.keep_accounts();
        }
        Self::with(backend, protocol, task, spinner)
    }

    /// The same worker for another round: it keeps the connections that it needs and that are at
    /// rest, and closes the others. Nothing else is left of the round before.
    pub(crate) fn again(mut self, task: Task, spinner: Spinner) -> Self {
        self.part_from(task.held());
        let now_ns = self.backend.now_ns();
        self.flush();
        let mut next = Self::with(self.backend, self.protocol, task, spinner);
        next.opening.sources = self.opening.sources;
        let held = next.opening.slots_used;
        for (slot, connection) in self.connections.into_connections() {
            let is_open = match P::CONNECTS {
                true => self.round.left_behind.binary_search(&slot).is_ok(),
                false => !matches!(connection.state, State::Down { .. }),
            };
            if slot.0 < held
                && connection.is_at_rest()
                && self.round.left_behind.binary_search(&slot).is_err()
            {
                next.accounting.recorder.kept_open(now_ns);
                next.connections[slot] = connection.kept(now_ns);
                next.opening.unsettled -= 1;
                next.opening.lacking -= 1;
            } else if is_open {
                next.backend.reset(slot);
            }
        }
        next
    }

    fn with(mut backend: B, mut protocol: P, task: Task, spinner: Spinner) -> Self {
        let responses_left = match task.logged_requests_max {
            0 => 0,
            _ => task.logged_responses_max,
        };
        protocol.want_bodies(error_bodies::wanted(task.keeps_errors, responses_left > 0));
        backend.set_gathering(task.gather_ns);
        let held = task.held();
        let (pacing, slots) = match &task.pace {
            Pace::Closed { .. } => (Pacing::Closed, task.connections),
            Pace::Held { .. } => (Pacing::Held, task.connections),
            Pace::Open {
                arrivals,
                connections_max,
                queue_max,
                ..
            } => {
                let backlog = Backlog::new(arrivals.clone(), *queue_max);
                (Pacing::Open(backlog), *connections_max)
            }
            Pace::Sessions {
                arrivals,
                queue_max,
            } => {
                let backlog = Backlog::new(arrivals.clone(), *queue_max);
                (Pacing::Sessions(backlog), task.connections)
            }
        };
        let mut recorder = Recorder::new(task.worker, held, slots);
        recorder.plan_names(Arc::clone(&task.name_of), task.names);
        if let Pace::Open { stages_ns, .. } = &task.pace {
            recorder.plan_requests();
            recorder.plan_stages(stages_ns);
        }
        if P::CONNECTS {
            recorder.count_attempts();
        }
        if task.logged_requests_max > 0 {
            recorder.keep_log(task.logged_requests_max);
        }
        recorder.record().edges.started.set(backend.now_ns());
        let sources = task.sources.clone();
        let mut connections =
            ConnectionTable::new(&protocol, slots, task.opened_first(P::CONNECTS), task.depth);
        connections.deal(task.part);
        Self {
            connections,
            output: Output::default(),
            opening: Opening::new(
                sources.turns(task.worker, task.workers, slots),
                task.opened_first(P::CONNECTS),
            ),
            pacing,
            free: FreeConnections::default(),
            supply: Supply {
                source: task.requests.clone(),
                quota: 0,
                think_times: task.think_time.times(task.worker),
                busy_ns: task.busy_ns,
            },
            accounting: Accounting::new(recorder),
            timeline: Timeline {
                mode: Mode::Setup,
                measure_from_ns: u64::MAX,
                window_end_ns: u64::MAX,
            },
            wake_ups: WakeUps {
                spinner,
                meter: None,
                gauge: None,
                expectation: Expectation::default(),
                ran_ns: u64::MAX,
                is_behind: false,
            },
            round: Round {
                shown: task
                    .snapshots
                    .clone()
                    .map(|sender| Shown::new(sender, task.worker)),
                left_behind: Vec::new(),
                errors_left: error_bodies::to_read(task.keeps_errors),
                responses_left,
                has_begun: false,
                halving: None,
                stamps_clamped_before: backend.stamps_clamped(),
            },
            streams: StreamAccounts::new(if P::IS_STREAM { slots } else { 0 }),
            backend,
            protocol,
            task,
            generated: None,
        }
    }

    /// Has the calling thread, which is to run the worker, read over the window.
    pub(crate) fn meter(&mut self, meter: ThreadMeter) {
        self.wake_ups.meter = Some(meter);
    }

    /// Has it said how busy the calling thread, which is to run the worker, is in the warm-up.
    pub(crate) fn gauge(&mut self, gauge: Gauge) {
        self.wake_ups.gauge = Some(gauge);
    }

    /// Sends, measures and drains, as the common start says.
    pub(crate) fn run(&mut self, start: Start) -> io::Result<Finished> {
        let window = start.window;
        self.accounting.recorder.set_window(window);
        (self.timeline.measure_from_ns, self.timeline.window_end_ns) =
            (window.start_ns, window.end_ns);
        let lived_from_ns = self.backend.now_ns();
        while self.backend.now_ns() < start.load_ns {
            self.turn(start.load_ns)?;
        }
        self.timeline.mode = Mode::Load;
        self.start_halving(start.load_ns, window);
        self.schedule_readings(window);
        self.start_load(start.load_ns);
        while self.goes_on() {
            self.turn(self.timeline.window_end_ns)?;
        }
        let left_ns = self.backend.now_ns();
        self.read_streams(left_ns, true);
        if let Pacing::Held = self.pacing {
            self.accounting.recorder.held_until_now();
        }
        let spun_ns = self.wake_ups.spinner.spun_ns();
        let thread = self
            .wake_ups
            .meter
            .as_ref()
            .and_then(|meter| meter.end(left_ns, spun_ns));
        self.drain()?;
        if thread.is_some() {
            self.accounting.recorder.record().thread = thread;
        }
        self.accounting
            .recorder
            .record()
            .edges
            .window_start
            .set(window.start_ns.max(lived_from_ns));
        self.accounting
            .recorder
            .record()
            .edges
            .window_end
            .set(self.timeline.window_end_ns.min(left_ns));
        self.accounting.recorder.record().unsent += self.supply.quota;
        let now_ns = self.backend.now_ns();
        let (progress, recorder) = (self.accounting.progress, &mut self.accounting.recorder);
        let rest = self.round.shown.take();
        let streams = self.streams.so_far();
        let rest = rest.map(|shown| shown.rest(now_ns, progress, streams, recorder.response()));
        let generated = self.end_generating();
        let recorder = &mut self.accounting.recorder;
        let spent = Recorder::new(self.task.worker, 0, 0);
        Ok(Finished {
            recorder: std::mem::replace(recorder, spent),
            rest,
            last_done_ns: self.accounting.last_done_ns,
            sources_used: self.opening.sources.used(),
            generated,
        })
    }

    /// Sees to the connections between two rounds, for `ns` at most.
    pub(crate) fn idle(&mut self, ns: u64) -> io::Result<()> {
        self.timeline.mode = Mode::Drain;
        let now_ns = self.backend.now_ns();
        self.turn(now_ns.saturating_add(ns))
    }

    /// Whether the window is still open for this worker, and there is something left to do.
    fn goes_on(&mut self) -> bool {
        if self.task.control.is_aborted() {
            return false;
        }
        let now_ns = self.backend.now_ns();
        if self.task.control.is_recalled_by(now_ns) {
            return false;
        }
        let end_ns = self.task.control.end_ns();
        if end_ns < self.timeline.window_end_ns {
            self.timeline.window_end_ns = end_ns;
            self.accounting.recorder.end_window_at(end_ns);
        }
        if now_ns >= self.timeline.window_end_ns {
            return false;
        }
        if let Some(gauge) = &mut self.wake_ups.gauge {
            gauge.turn(now_ns, &self.wake_ups.spinner);
            if now_ns >= self.timeline.measure_from_ns {
                self.wake_ups.gauge = None;
            }
        }
        if now_ns >= self.timeline.measure_from_ns && !self.round.has_begun {
            self.round.has_begun = true;
            let lacking = self.opening.lacking;
            self.accounting.recorder.unopened_at_start(lacking);
        }
        if now_ns >= self.timeline.measure_from_ns
            && let Some(meter) = &mut self.wake_ups.meter
            && !meter.has_begun()
        {
            meter.begin(now_ns, self.wake_ups.spinner.spun_ns());
        }
        match &self.task.budget {
            Some(budget) if now_ns >= self.timeline.measure_from_ns => {
                let exhausted = self.supply.quota == 0 && budget.left() == 0;
                let is_unavailable = self.opening.unavailable_since_ns.is_some_and(|since_ns| {
                    now_ns - since_ns.max(self.timeline.measure_from_ns) > self.task.timeout_ns
                });
                !(self.is_done(exhausted) || is_unavailable)
            }
            // What is generated comes to an end by itself.
            None if self.timeline.window_end_ns == u64::MAX
                && now_ns >= self.timeline.measure_from_ns =>
            {
                !self.is_done(false)
            }
            _ => true,
        }
    }

    /// Whether a run by count, whose count is `exhausted` or not, has nothing left to do. Stages
    /// may be over before the count is reached; where a duration was given, that is waited for.
    fn is_done(&self, exhausted: bool) -> bool {
        let is_over =
            |backlog: &Backlog| backlog.is_over() && self.timeline.window_end_ns == u64::MAX;
        let (is_over, is_awaited) = match &self.pacing {
            Pacing::Closed | Pacing::Held => (false, false),
            Pacing::Open(backlog) => (is_over(backlog), backlog.waiting() > 0),
            Pacing::Sessions(backlog) => {
                let Opening {
                    in_flight,
                    resuming,
                    ..
                } = self.opening;
                let in_use = self.accounting.recorder.live() + in_flight + resuming;
                // There is no use for a connection without a request left for it.
                let is_awaited = !exhausted && (backlog.waiting() > 0 || in_use > 0);
                (is_over(backlog), is_awaited)
            }
        };
        let is_idle = self.timeline.window_end_ns == u64::MAX && self.is_idle_for_good();
        (exhausted || is_over || is_idle) && self.connections.in_flight() == 0 && !is_awaited
    }

    /// One turn of the loop: send, wait, take what came, see to what is due.
    fn turn(&mut self, until_ns: u64) -> io::Result<()> {
        if let Some(generated) = &self.generated {
            generated.turn();
        }
        let dial_ns = self.dial();
        self.flush();
        let from_ns = self.backend.now_ns();
        self.runs(from_ns);
        self.count_output(from_ns);
        let quiet_until_ns = self.quiet_until_ns(from_ns);
        let wake_ns = if self
            .wake_ups
            .spinner
            .spins(from_ns, quiet_until_ns == from_ns)
            || self.lingers(from_ns)
        {
            from_ns
        } else {
            let due_ns = self.connections.next_deadline_ns();
            let arrival_ns = self.next_arrival_ns().max(from_ns + self.task.gather_ns);
            let behind_ns = if std::mem::take(&mut self.wake_ups.is_behind) || self.is_releasing() {
                from_ns
            } else {
                u64::MAX
            };
            let slice_ns = self
                .round
                .halving
                .as_ref()
                .map_or(u64::MAX, Experiment::next_ns);
            until_ns
                .min(behind_ns)
                .min(slice_ns)
                .min(dial_ns)
                .min(from_ns + NOTICE_NS)
                .min(due_ns)
                .min(arrival_ns)
                .min(self.streams.next_ns())
                .min(quiet_until_ns.max(from_ns + 1))
        };
        // Until then it is not expected to run. What is overdue already waited for its turn, not
        // for the worker to run.
        self.wake_ups.ran_ns = wake_ns.max(from_ns);
        self.backend.wait(Some(wake_ns))?;
        if self.next_arrival_ns() < u64::MAX {
            // Before the events: what it sends is then reported as sent in the same turn.
            self.take_arrivals(self.backend.now_ns());
        }
        while let Some(event) = self.backend.next_event() {
            self.handle(event);
        }
        let now_ns = self.backend.now_ns();
        self.runs(now_ns);
        for _ in 0..DEADLINES_PER_TURN {
            let Some(deadline) = self.connections.pop_due(now_ns) else {
                break;
            };
            self.fall_due(deadline, now_ns);
        }
        self.count_slices(now_ns);
        if now_ns >= self.streams.next_ns() {
            self.read_streams(now_ns, false);
        }
        if self.is_releasing() {
            self.release();
        }
        if self.drop_expired(now_ns) && !self.free.slots.is_empty() && self.waiting() > 0 {
            self.assign_waiting(now_ns);
        }
        self.accounting.progress.live = u64::from(self.accounting.recorder.live());
        self.accounting.progress.waiting = self.waiting() as u64;
        if let Some(shown) = &mut self.round.shown
            && now_ns >= shown.due_ns()
        {
            let Accounting {
                progress, recorder, ..
            } = &self.accounting;
            let streams = self.streams.so_far();
            shown.show(now_ns, *progress, streams, recorder.response());
        }
        Ok(())
    }

    /// The worker runs now. Where it did not for long, though it was to, somebody stopped it.
    fn runs(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.wake_ups.ran_ns) >= PAUSE_LEAST_NS
            && self.timeline.mode == Mode::Load
        {
            self.accounting
                .recorder
                .paused(self.wake_ups.ran_ns, now_ns);
        }
        self.wake_ups.ran_ns = now_ns;
    }

    /// Whether to poll for a moment before sleeping, since a reply may be near.
    fn lingers(&mut self, now_ns: u64) -> bool {
        self.task.lingers
            && self.connections.in_flight() > 0
            && self.wake_ups.spinner.lingers(now_ns)
    }

    /// Until when a worker that may poll can sleep all the same: shortly before the next arrival
    /// or reply is to be expected. `now_ns` for not at all, `u64::MAX` where it is not to poll.
    fn quiet_until_ns(&mut self, now_ns: u64) -> u64 {
        if self.timeline.mode == Mode::Setup || !self.wake_ups.spinner.may_spin(now_ns) {
            return u64::MAX;
        }
        match self.task.spin {
            Spin::Off => u64::MAX,
            Spin::On => now_ns,
            Spin::Auto if self.opening.in_flight > 0 => now_ns,
            Spin::Auto => {
                let reply_ns = self
                    .wake_ups
                    .expectation
                    .quiet_until_ns(now_ns, self.connections.in_flight());
                let expected_ns = reply_ns.min(self.next_arrival_ns());
                if expected_ns > now_ns + SLEEP_LEAST_NS {
                    expected_ns - WAKE_UP_NS
                } else {
                    now_ns
                }
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let now_ns = self.backend.now_ns();
        self.runs(now_ns);
        self.wake_ups.spinner.worked(now_ns);
        if now_ns >= self.next_arrival_ns() && !self.wake_ups.is_behind {
            // A long batch of events must not hold up what has come due meanwhile.
            self.take_arrivals(now_ns);
        }
        match event {
            Event::Received(slot) => self.receive(slot, now_ns),
            Event::Discarded(slot, bytes) => self.discarded(slot, now_ns, bytes.into()),
            Event::Sent(slot) => self.sent(slot, now_ns),
            Event::Connected(slot) if P::CONNECTS => self.attempt_made(slot, now_ns),
            Event::ConnectFailed(slot, errno) if P::CONNECTS => {
                self.attempt_missed(slot, now_ns, failure::of_connect(errno));
            }
            Event::HandshakeFailed(slot, reason) if P::CONNECTS => {
                self.attempt_missed(slot, now_ns, failure::of_handshake(reason));
            }
            Event::Connected(slot) => self.connected(slot, now_ns),
            Event::ConnectFailed(slot, errno) => {
                self.backend.close(slot);
                self.attempt_failed(slot, now_ns, failure::of_connect(errno));
            }
            Event::HandshakeFailed(slot, reason) => {
                self.backend.close(slot);
                self.attempt_failed(slot, now_ns, failure::of_handshake(reason));
            }
            Event::SendFailed(slot, errno) | Event::ReceiveFailed(slot, errno) => {
                let kind = failure::of_socket(errno);
                let idle = match P::IS_STREAM {
                    true => FailureKind::StreamReset,
                    false => FailureKind::IdleReset,
                };
                self.connection_broken(slot, now_ns, kind, (idle, 0));
            }
            Event::Ended(slot) => self.peer_closed(slot, now_ns),
            // A client offers no slots to accept into.
            Event::Accepted(_) | Event::AcceptFailed(..) => {}
        }
    }
}
