//! The worker loop: one thread's connections, from the first connection attempt to the end of
//! drain.

mod arrivals;
mod connections;
mod dialling;
mod output;
mod requests;
mod responses;
mod retry;
mod streams;
mod trial;

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use brunt_load::{Arrivals, RequestSource, Spin, ThinkTime, ThinkTimes};
use brunt_measure::{FailureKind, Issue, KernelSample, Recorder, SetUp};

use crate::backend::{Backend, Event, Peer, Slot};
use crate::backlog::Backlog;
use crate::budget::Budget;
use crate::connection::{Connection, State};
use crate::control::{Control, Progress};
use crate::expectation::Expectation;
use crate::failure;
use crate::gate::Start;
use crate::protocol::{ClientProtocol, FREE_PLACE};
use crate::sources::{Sources, Turns};
use crate::spin::Spinner;
use crate::thread_meter::ThreadMeter;
use crate::timers::Timers;

use dialling::Dialling;
use output::Output;
pub(crate) use trial::Trial;

/// A worker that does not run for so long, though it has something to do, was stopped: no scheduler
/// lets a thread wait as long.
const PAUSE_LEAST_NS: u64 = 200_000_000;
/// Longest sleep: a worker notices an interrupt within this time.
pub(crate) const NOTICE_NS: u64 = 50_000_000;
/// Deadlines that one turn sees to: however many fall due at once, events, arrivals and interrupts
/// are not held up for long.
const DEADLINES_PER_TURN: u32 = 1_024;
/// A worker that polls sleeps through gaps of at least this: a CPU that slept is slower for a
/// while, which shorter ones are not worth.
const SLEEP_LEAST_NS: u64 = 1_000_000;
/// It is back from such a sleep this long before something is expected: sleeps end late.
const WAKE_UP_NS: u64 = 100_000;
/// The kernel's account is read for one connection in this many, and this many in all.
const SAMPLE_EVERY: usize = 64;
const SAMPLE_MAX: u32 = 16;
/// What makes requests due, as far as one worker is concerned.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// Replies.
    Closed {
        /// Set-up opens a connection every so many nanoseconds; 0: as fast as it can.
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
    /// Local addresses.
    pub(crate) sources: Sources,
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
    /// How long a sleep lasts at least, so that one wake-up serves several requests; 0 for as
    /// short as it gets.
    pub(crate) gather_ns: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) setup_limit_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    pub(crate) drain_limit_ns: u64,
    /// The requests of a run by count.
    pub(crate) budget: Option<Arc<Budget>>,
    /// Work added to each request, nanoseconds.
    pub(crate) busy_ns: u64,
    /// Settings that change over the window.
    pub(crate) trial: Trial,
    pub(crate) control: Arc<Control>,
}

/// What a worker leaves behind.
pub(crate) struct Finished {
    pub(crate) recorder: Recorder,
    /// When the last request was answered or failed, 0 for none.
    pub(crate) last_done_ns: u64,
    /// Local addresses that were used, of those that brunt chose.
    pub(crate) sources_used: usize,
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
    Open(Backlog),
    Sessions(Backlog),
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    slot: Slot,
    at_ns: u64,
}

/// One worker: the owner of everything that its thread touches.
pub(crate) struct Worker<B, P: ClientProtocol> {
    backend: B,
    protocol: P,
    task: Task,
    recorder: Recorder,
    spinner: Spinner,
    /// Absent where nothing is to be read of the thread.
    meter: Option<ThreadMeter>,
    expectation: Expectation,
    pacing: Pacing,
    connections: Vec<Connection<P>>,
    output: Output,
    requests: RequestSource,
    /// Slots that set-up opens, and those opened since because none was free.
    slots_used: u32,
    /// Slots that may send: those below this number.
    slots_allowed: u32,
    /// The same before the last change.
    allowed_before: u32,
    /// Slots from here on were not looked at since.
    next_allowed: u32,
    /// Work added to each request, nanoseconds.
    busy_ns: u64,
    /// What an arrival may take, longest free first: open connections with room, or with planned
    /// connections empty slots. Some may have ceased to be free.
    free: VecDeque<Slot>,
    /// When the connections taken by the arrivals of one batch would be free again, had each been
    /// sent when it could have been; earliest first.
    would_be_free_ns: VecDeque<u64>,
    /// `depth` places per connection, any of which may be free.
    places: Vec<Issue>,
    deadlines: Timers<Deadline>,
    mode: Mode,
    think_times: ThinkTimes,
    /// Local addresses of connections.
    sources: Turns,
    /// Connection attempts in flight.
    opening: u32,
    /// More arrivals are due than one turn may see to.
    is_behind: bool,
    /// First attempts of set-up, and retries.
    dialling: Dialling,
    unsettled: u32,
    in_flight: u64,
    /// Requests drawn from the budget and not yet sent.
    quota: u64,
    window_end_ns: u64,
    measure_from_ns: u64,
    last_done_ns: u64,
    /// Mean of the latest service times, which count for less the older they are.
    service_ns: u64,
    /// The same of send calls, network and server alone, in an open loop; 0 where no stamp told
    /// them yet.
    answering_ns: u64,
    /// When it ran last, or is to run next.
    ran_ns: u64,
    /// Since when no connection is open.
    dark_since_ns: Option<u64>,
    /// The connection that finds out when one can be opened again, while none is open.
    probe: Option<Slot>,
    progress: Progress,
}

impl<B: Backend, P: ClientProtocol> Worker<B, P> {
    pub(crate) fn new(mut backend: B, mut protocol: P, task: Task, spinner: Spinner) -> Self {
        protocol.start(&mut |payload| backend.add_payload(payload));
        backend.set_stamps(task.stamps_every);
        backend.set_gathering(task.gather_ns);
        let (pacing, held, slots) = match &task.pace {
            Pace::Closed { .. } => (Pacing::Closed, task.connections, task.connections),
            Pace::Open {
                arrivals,
                connections_max,
                queue_max,
                ..
            } => {
                let backlog = Backlog::new(arrivals.clone(), *queue_max);
                (Pacing::Open(backlog), task.connections, *connections_max)
            }
            Pace::Sessions {
                arrivals,
                queue_max,
            } => {
                let backlog = Backlog::new(arrivals.clone(), *queue_max);
                (Pacing::Sessions(backlog), 0, task.connections)
            }
        };
        let mut recorder = Recorder::new(task.worker, held, slots);
        recorder.plan_names(Arc::clone(&task.name_of), task.names);
        if let Pace::Open { stages_ns, .. } = &task.pace {
            recorder.plan_requests();
            recorder.plan_stages(stages_ns);
        }
        recorder.record().edges.started.set(backend.now_ns());
        let connections = (0..slots)
            .map(|slot| Connection::new(protocol.connection(), slot < held))
            .collect();
        let places = vec![FREE_PLACE; slots as usize * task.depth as usize];
        Self {
            recorder,
            spinner,
            meter: None,
            expectation: Expectation::default(),
            pacing,
            connections,
            output: Output::default(),
            requests: task.requests.clone(),
            slots_used: held,
            slots_allowed: u32::MAX,
            allowed_before: u32::MAX,
            next_allowed: u32::MAX,
            busy_ns: task.busy_ns,
            free: VecDeque::new(),
            would_be_free_ns: VecDeque::new(),
            places,
            deadlines: Timers::default(),
            mode: Mode::Setup,
            think_times: task.think_time.times(task.worker),
            sources: task.sources.clone().turns(task.worker, task.workers, slots),
            is_behind: false,
            opening: 0,
            dialling: Dialling::default(),
            unsettled: held,
            in_flight: 0,
            quota: 0,
            window_end_ns: u64::MAX,
            measure_from_ns: u64::MAX,
            last_done_ns: 0,
            service_ns: 0,
            answering_ns: 0,
            ran_ns: u64::MAX,
            dark_since_ns: None,
            probe: None,
            progress: Progress::default(),
            backend,
            protocol,
            task,
        }
    }

    /// Has the calling thread, which is to run the worker, read over the window.
    pub(crate) fn meter(&mut self, meter: ThreadMeter) {
        self.meter = Some(meter);
    }

    /// Opens the connections, and gives the outcome. Returns when each is open or has failed
    /// often enough, or when the limit is over: the run then begins with those that are open.
    pub(crate) fn set_up(&mut self) -> io::Result<SetUp> {
        let gap_ns = match self.task.pace {
            Pace::Closed { connect_gap_ns } => connect_gap_ns,
            Pace::Open { .. } | Pace::Sessions { .. } => 0.0,
        };
        let from_ns = self.backend.now_ns();
        self.dialling = Dialling::new(self.slots_used, from_ns, gap_ns);
        let limit_ns = from_ns.saturating_add(self.task.setup_limit_ns);
        while self.unsettled > 0
            && self.backend.now_ns() < limit_ns
            && !self.task.control.is_aborted()
        {
            self.turn(limit_ns)?;
        }
        let timed_out = self.unsettled > 0;
        let (asked, open) = (self.slots_used, self.recorder.live());
        let record = self.recorder.record();
        record.edges.ready.set(self.backend.now_ns());
        let so_far = &record.tallies.before;
        let set_up = SetUp {
            asked,
            open,
            opened: so_far.connections_opened,
            failures: so_far.failures.clone(),
            timed_out,
        };
        record.set_up = Some(set_up.clone());
        Ok(set_up)
    }

    /// Sends, measures and drains, as the common start says.
    pub(crate) fn run(mut self, start: Start) -> io::Result<Finished> {
        let window = start.window;
        self.recorder.set_window(window);
        (self.measure_from_ns, self.window_end_ns) = (window.start_ns, window.end_ns);
        let lived_from_ns = self.backend.now_ns();
        while self.backend.now_ns() < start.load_ns {
            self.turn(start.load_ns)?;
        }
        self.mode = Mode::Load;
        self.begin(start.load_ns);
        while self.goes_on() {
            self.turn(self.window_end_ns)?;
        }
        let left_ns = self.backend.now_ns();
        let spun_ns = self.spinner.spun_ns();
        let thread = self
            .meter
            .as_ref()
            .and_then(|meter| meter.end(left_ns, spun_ns));
        self.drain()?;
        if thread.is_some() {
            self.recorder.record().thread = thread;
        }
        self.recorder
            .record()
            .edges
            .window_start
            .set(window.start_ns.max(lived_from_ns));
        self.recorder
            .record()
            .edges
            .window_end
            .set(self.window_end_ns.min(left_ns));
        self.recorder.record().unsent = self.quota;
        Ok(Finished {
            recorder: self.recorder,
            last_done_ns: self.last_done_ns,
            sources_used: self.sources.used(),
        })
    }

    /// Whether the window is still open for this worker, and there is something left to do.
    fn goes_on(&mut self) -> bool {
        if self.task.control.is_aborted() {
            return false;
        }
        let now_ns = self.backend.now_ns();
        let end_ns = self.task.control.end_ns();
        if end_ns < self.window_end_ns {
            self.window_end_ns = end_ns;
            self.recorder.end_window_at(end_ns);
        }
        if now_ns >= self.window_end_ns {
            return false;
        }
        if now_ns >= self.measure_from_ns
            && let Some(meter) = &mut self.meter
            && !meter.has_begun()
        {
            meter.begin(now_ns, self.spinner.spun_ns());
        }
        match &self.task.budget {
            Some(budget) if now_ns >= self.measure_from_ns => {
                let exhausted = self.quota == 0 && budget.left() == 0;
                let dark = self.dark_since_ns.is_some_and(|since_ns| {
                    now_ns - since_ns.max(self.measure_from_ns) > self.task.timeout_ns
                });
                !(self.is_done(exhausted) || dark)
            }
            _ => true,
        }
    }

    /// Whether a run by count, whose count is `exhausted` or not, has nothing left to do. Stages
    /// may be over before the count is reached; where a duration was given, that is waited for.
    fn is_done(&self, exhausted: bool) -> bool {
        let is_over = |backlog: &Backlog| backlog.is_over() && self.window_end_ns == u64::MAX;
        let (is_over, is_awaited) = match &self.pacing {
            Pacing::Closed => (false, false),
            Pacing::Open(backlog) => (is_over(backlog), backlog.waiting() > 0),
            Pacing::Sessions(backlog) => {
                let in_use = self.recorder.live() + self.opening;
                // There is no use for a connection without a request left for it.
                let is_awaited = !exhausted && (backlog.waiting() > 0 || in_use > 0);
                (is_over(backlog), is_awaited)
            }
        };
        (exhausted || is_over) && self.in_flight == 0 && !is_awaited
    }

    fn drain(&mut self) -> io::Result<()> {
        let now_ns = self.backend.now_ns();
        // What was due in the window belongs to it, however late this worker is.
        let due_before_ns = now_ns.saturating_add(1).min(self.window_end_ns);
        self.admit(now_ns);
        while self.next_arrival_ns() < due_before_ns && !self.task.control.is_aborted() {
            self.turn(now_ns)?;
        }
        if let Some(backlog) = self.backlog() {
            backlog.stop();
        }
        self.end_hand_out(now_ns);
        self.mode = Mode::Drain;
        let from_ns = self.window_end_ns.min(now_ns);
        let limit_ns = from_ns.saturating_add(self.task.drain_limit_ns);
        // Planned requests that wait are still sent, unless somebody is in a hurry; planned
        // connections are no longer opened.
        let sends = matches!(self.pacing, Pacing::Open(_));
        loop {
            let now_ns = self.backend.now_ns();
            let control = &self.task.control;
            let limit_ns = limit_ns.min(control.drain_end_ns());
            let is_cut_short = control.is_aborted() || control.is_hurried();
            if !sends || is_cut_short || control.is_interrupted_by(now_ns) {
                self.give_up_waiting(now_ns);
            }
            let is_done = self.in_flight == 0 && self.waiting() == 0;
            if is_done || is_cut_short || now_ns >= limit_ns {
                break;
            }
            self.turn(limit_ns)?;
        }
        let now_ns = self.backend.now_ns();
        self.count_output(now_ns);
        for index in 0..self.connections.len() {
            self.take_overhead(Slot(index as u32), now_ns);
        }
        self.take_kernel_sample();
        for index in 0..self.connections.len() {
            self.stop_awaiting_retry(Slot(index as u32), now_ns);
            while let Some((issue, discarded_bytes)) = self.take_any(index) {
                self.recorder.censored(issue, now_ns, discarded_bytes);
            }
            self.settle_bytes(index, now_ns);
        }
        self.give_up_waiting(now_ns);
        let stamps_clamped = self.backend.stamps_clamped();
        let record = self.recorder.record();
        record.stamps_clamped += stamps_clamped;
        record.spun_ns = self.spinner.spun_ns();
        record.edges.drained.set(now_ns);
        Ok(())
    }

    /// One turn of the loop: hand over, wait, take what came, see to what is due.
    fn turn(&mut self, until_ns: u64) -> io::Result<()> {
        let dial_ns = self.dial();
        self.flush();
        let from_ns = self.backend.now_ns();
        self.runs(from_ns);
        self.count_output(from_ns);
        let quiet_until_ns = self.quiet_until_ns(from_ns);
        let wake_ns = if self.spinner.spins(from_ns, quiet_until_ns == from_ns) {
            from_ns
        } else {
            let due_ns = self.deadlines.next_ns().unwrap_or(u64::MAX);
            let arrival_ns = self.next_arrival_ns().max(from_ns + self.task.gather_ns);
            let behind_ns = if std::mem::take(&mut self.is_behind) || self.hands_out() {
                from_ns
            } else {
                u64::MAX
            };
            until_ns
                .min(behind_ns)
                .min(dial_ns)
                .min(self.task.trial.next_ns(self.measure_from_ns))
                .min(from_ns + NOTICE_NS)
                .min(due_ns)
                .min(arrival_ns)
                .min(quiet_until_ns.max(from_ns + 1))
        };
        // Until then it is not expected to run. What is overdue already waited for its turn, not
        // for the worker to run.
        self.ran_ns = wake_ns.max(from_ns);
        self.backend.wait(Some(wake_ns))?;
        if self.next_arrival_ns() < u64::MAX {
            // Before the events: what it sends is then reported as sent in the same turn.
            self.admit(self.backend.now_ns());
        }
        while let Some(event) = self.backend.next_event() {
            self.handle(event);
        }
        let now_ns = self.backend.now_ns();
        self.runs(now_ns);
        for _ in 0..DEADLINES_PER_TURN {
            let Some(deadline) = self.deadlines.pop_due(now_ns) else {
                break;
            };
            self.fall_due(deadline, now_ns);
        }
        if self.hands_out() {
            self.hand_out();
        }
        if self.expire(now_ns) && !self.free.is_empty() && self.waiting() > 0 {
            self.serve(now_ns);
        }
        if self.mode == Mode::Load
            && let Some(setting) = self.task.trial.begin(self.measure_from_ns, now_ns)
        {
            self.busy_ns = setting.busy_ns;
            self.allow(setting.slots);
        }
        self.progress.live = u64::from(self.recorder.live());
        self.progress.waiting = self.waiting() as u64;
        self.task.control.show(self.task.worker, self.progress);
        Ok(())
    }

    /// The worker runs now. Where it did not for long, though it was to, somebody stopped it.
    fn runs(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.ran_ns) >= PAUSE_LEAST_NS && self.mode == Mode::Load {
            self.recorder.paused(self.ran_ns, now_ns);
        }
        self.ran_ns = now_ns;
    }

    /// Until when a worker that may poll can sleep all the same: shortly before the next arrival
    /// or reply is to be expected. `now_ns` for not at all, `u64::MAX` where it is not to poll.
    fn quiet_until_ns(&mut self, now_ns: u64) -> u64 {
        if self.mode == Mode::Setup || !self.spinner.may_spin(now_ns) {
            return u64::MAX;
        }
        match self.task.spin {
            Spin::Off => u64::MAX,
            Spin::On => now_ns,
            Spin::Auto if self.opening > 0 => now_ns,
            Spin::Auto => {
                let reply_ns = self.expectation.quiet_until_ns(now_ns, self.in_flight);
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
        self.spinner.worked(now_ns);
        if now_ns >= self.next_arrival_ns() && !self.is_behind {
            // A long batch of events must not hold up what has come due meanwhile.
            self.admit(now_ns);
        }
        match event {
            Event::Received(slot) => self.receive(slot, now_ns),
            Event::Sent(slot) => self.sent(slot, now_ns),
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
                self.broken(slot, now_ns, kind, (FailureKind::IdleReset, 0));
            }
            Event::Ended(slot) => self.ended(slot, now_ns),
            // A client offers no slots to accept into.
            Event::Accepted(_) | Event::AcceptFailed(..) => {}
        }
    }

    fn take_kernel_sample(&mut self) {
        let mut sample = KernelSample::default();
        for index in (0..self.connections.len()).step_by(SAMPLE_EVERY) {
            let connection = &self.connections[index];
            // Only connections at rest: bytes of a reply in flight may be anywhere between the
            // kernel and here.
            let at_rest = connection.state == State::Open
                && connection.in_flight == 0
                && !self.protocol.may_still_hear(&connection.protocol);
            if !at_rest || sample.connections == SAMPLE_MAX {
                continue;
            }
            let Some(info) = self.backend.tcp_info(Slot(index as u32)) else {
                continue;
            };
            sample.merge(&KernelSample {
                connections: 1,
                kernel_bytes_received: info.bytes_received,
                own_bytes_received: connection.received_bytes + info.bytes_unread,
                min_rtt_ns: info.min_rtt_ns,
                segments_sent: info.segments_sent,
                segments_retransmitted: info.segments_retransmitted,
                segments_received: info.segments_received,
                segments_out_of_order: info.segments_out_of_order,
                busy_ns: info.busy_ns,
                receive_window_limited_ns: info.receive_window_limited_ns,
                send_buffer_limited_ns: info.send_buffer_limited_ns,
                receive_rtt_ns_max: info.receive_rtt_ns,
            });
        }
        self.recorder.record().kernel = sample;
    }
}
