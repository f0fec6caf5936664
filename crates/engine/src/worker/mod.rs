//! One thread's connections, from the first attempt of set-up to the end of drain: the rounds of a
//! worker. What it does in a turn is in `turn`, which hands what came to `responses`, which has
//! `requests` send what comes next. All else are parts that know nothing of the worker.

mod accounting;
mod again;
mod connections;
mod opening;
mod output;
mod pacing;
mod requests;
mod responses;
mod source;
mod turn;
mod wake_ups;

use std::io;
use std::sync::Arc;

use brunt_io::backend::{ClientBackend, Slot};
use brunt_io::cpu::CpuUse;
use brunt_load::LoadModel;
use brunt_probe::thread_meter::ThreadMeter;
use brunt_record::{Backend, Recorder, SetUp};

use crate::backlog::Quota;
use crate::connection::State;
use crate::observer::Shown;
use crate::protocol::{ClientProtocol, WorkerTransport};
use crate::task::{Finished, Mode, Preparation, Task, Timeline};
use crate::workload::{Carried, Streams, Workload};
use accounting::{Accounting, Sampling};
use again::Repeats;
use connections::Connections;
use output::Output;
use pacing::{Model, Pacing};
use source::Source;
use wake_ups::WakeUps;

/// One worker: the owner of everything that its thread touches.
pub(crate) struct Worker<B, P: ClientProtocol, W> {
    backend: B,
    protocol: P,
    workload: W,
    task: Task,
    connections: Connections<P>,
    output: Output,
    pacing: Pacing,
    repeats: Repeats,
    source: Source,
    quota: Quota,
    sampling: Sampling,
    timeline: Timeline,
    wake_ups: WakeUps,
    shown: Shown,
    /// Connections on which something was in flight when the round was over, in order.
    left_behind: Vec<Slot>,
    window_has_begun: bool,
    /// Of the backend, before the round.
    stamps_clamped_before: u64,
}

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    pub(crate) fn new(
        mut backend: B,
        mut protocol: P,
        mut workload: W,
        preparation: Preparation,
    ) -> Self {
        let task = &preparation.task;
        let workers = task.plan().workers.count.get();
        protocol.start(task.worker, workers, &mut |payload| {
            backend.add_payload(payload)
        });
        backend.set_stamps(task.prepared.stamps_every());
        backend.set_sockets(&task.prepared.sockets());
        if let Some(streams) = workload.streams() {
            streams.start(&mut backend);
        }
        Self::with(backend, protocol, workload, preparation)
    }

    /// The worker for another round: it keeps the connections that it needs and that are at
    /// rest, and closes the others. Nothing else is left of the round before.
    pub(crate) fn again(mut self, preparation: Preparation) -> Self {
        self.part_from(preparation.task.held());
        let now_ns = self.backend.now_ns();
        self.flush();
        let mut next = Self::with(self.backend, self.protocol, self.workload, preparation);
        let left_behind = &self.left_behind;
        for slot in next.connections.keep(self.connections, left_behind, now_ns) {
            next.backend.reset(slot);
        }
        for slot in next.connections.slots() {
            let connection = &next.connections[slot];
            if connection.state == State::Open {
                let timeout_ns = next.protocol.next_timeout_ns(&connection.protocol);
                next.connections.arm(slot, timeout_ns);
            }
        }
        next
    }

    fn with(mut backend: B, mut protocol: P, mut workload: W, preparation: Preparation) -> Self {
        let Preparation {
            task,
            spinner,
            shown,
            generated,
        } = preparation;
        let prepared = Arc::clone(&task.prepared);
        let plan = &prepared.plan;
        let logged_max = prepared.logged_requests_max();
        let responses_max = match logged_max {
            0 => 0,
            _ => plan.observation.logged_responses_max,
        };
        let stamps_every = prepared.stamps_every();
        let sampling = Sampling::new(stamps_every, plan.observation.keeps_errors, responses_max);
        backend.set_gathering(task.gather_ns);
        let (pacing, slots) = Pacing::new(&task);
        let held = task.held();
        let mut recorder = Recorder::new(task.worker, held, slots);
        let name_of = Arc::clone(plan.traffic.requests.name_of());
        recorder.plan_names(name_of, plan.traffic.requests.names().len());
        if let LoadModel::Open { schedule, .. } = &plan.load.model {
            recorder.plan_requests();
            let stages = schedule.stages().iter();
            let stages_ns: Vec<u64> = stages.map(|stage| stage.duration_ns).collect();
            recorder.plan_stages(&stages_ns);
        }
        let mut source = Source::planned(plan, task.worker);
        if let Some(mut generated) = generated {
            protocol.accept_texts();
            generated.begin(slots, task.depth);
            recorder.generate_requests();
            source.generated = Some(generated);
        }
        let is_attempts = workload.carried() == Carried::Attempt;
        if is_attempts {
            recorder.count_attempts();
        }
        if let Some(streams) = workload.streams() {
            streams.begin_round(slots);
        }
        if logged_max > 0 {
            recorder.keep_log(logged_max);
        }
        recorder.record().edges.started.set(backend.now_ns());
        // A load that consists of opening connections has none before it.
        let opened_first = if is_attempts { 0 } else { held };
        let mut connections = Connections::new(
            &protocol,
            Accounting::new(recorder),
            slots,
            opened_first,
            task.depth,
            prepared.sources.turns(task.worker),
            task.requests_per_connection,
        );
        connections.share_out(task.part);
        protocol.want_bodies(source.wanted(sampling.wanted()));
        Self {
            connections,
            output: Output::default(),
            repeats: Repeats::new(pacing.is_open_loop(), task.timeout_ns),
            pacing,
            source,
            quota: Quota::new(task.budget.clone()),
            sampling,
            timeline: Timeline::new(),
            wake_ups: WakeUps::new(spinner, prepared.spin()),
            shown,
            left_behind: Vec::new(),
            window_has_begun: false,
            stamps_clamped_before: backend.stamps_clamped(),
            backend,
            protocol,
            workload,
            task,
        }
    }

    /// Opens the connections, and gives the outcome. Returns when each is open or has failed
    /// often enough, when no more of them were opened for a while, or when the limit is over: the
    /// run then begins with those that are open.
    pub(crate) fn set_up(&mut self) -> io::Result<SetUp> {
        let plan = self.task.plan();
        let workers = f64::from(plan.workers.count.get());
        let connect_per_s = plan.load.model.connect_per_s();
        let gap_ns = connect_per_s.map_or(0.0, |rate_per_s| workers * 1e9 / rate_per_s);
        let from_ns = self.backend.now_ns();
        let setup_limit_ns = plan.setup_limit_ns().unwrap_or(u64::MAX);
        let patience_ns = plan.setup_patience_ns();
        let limit_ns = from_ns.saturating_add(setup_limit_ns);
        self.connections.start_set_up(from_ns, gap_ns);
        while self.connections.awaited > 0 && !self.task.control.is_aborted() {
            let stalls_ns = self.connections.progress_ns.saturating_add(patience_ns);
            let until_ns = limit_ns.min(stalls_ns);
            if self.backend.now_ns() >= until_ns {
                break;
            }
            self.turn(until_ns)?;
        }
        let timed_out = self.connections.awaited > 0;
        let now_ns = self.backend.now_ns();
        let waited_ns = now_ns.saturating_sub(self.connections.progress_ns);
        let (asked, open) = (self.connections.slots_used, self.connections.live());
        let record = self.connections.accounting.recorder.record();
        record.edges.ready.set(now_ns);
        let so_far = &record.tallies.before;
        let set_up = SetUp {
            asked,
            open,
            opened: so_far.connections_opened,
            failures: so_far.failures.clone(),
            timed_out,
            waited_ns: timed_out.then_some(waited_ns),
        };
        record.set_up = Some(set_up.clone());
        if self.workload.carried() == Carried::Attempt {
            self.connections.offer_all(self.backend.now_ns());
        }
        Ok(set_up)
    }

    /// Sees to the connections for `ns`: while the start of the load is not known, or between two
    /// rounds.
    pub(crate) fn stand_by(&mut self, ns: u64) -> io::Result<()> {
        let now_ns = self.backend.now_ns();
        self.turn(now_ns.saturating_add(ns))
    }

    /// Sends, measures and drains: the load begins at `load_ns` for all workers.
    pub(crate) fn run(&mut self, load_ns: u64) -> io::Result<Finished> {
        let window = self.task.prepared.window_from(load_ns);
        self.recorder().set_window(window);
        self.timeline.set_window(window);
        self.quota.count_from(window.start_ns);
        let lived_from_ns = self.backend.now_ns();
        if self.task.plan().observation.observe && self.task.prepared.backend != Backend::Sim {
            self.wake_ups.meter = Some(ThreadMeter::of_thread());
        }
        // An agreed start may be far off.
        while self.backend.now_ns() < load_ns && !self.task.control.is_aborted() {
            self.turn(load_ns)?;
        }
        self.timeline.mode = Mode::Load;
        if self.task.prepared.pauses_half() {
            let connections = self.task.connections;
            self.pacing.start_halving(connections, load_ns, window);
        }
        if let Some(streams) = self.workload.streams() {
            streams.set_window(window);
        }
        self.start_load(load_ns);
        while self.goes_on() {
            self.turn(self.timeline.window_end_ns)?;
        }
        let left_ns = self.backend.now_ns();
        self.read_streams(left_ns, true);
        self.settle_quic(left_ns.min(self.timeline.window_end_ns));
        if self.pacing.model == Model::Held {
            self.recorder().held_until_now();
        }
        let thread = self.wake_ups.end_window(left_ns);
        self.drain()?;
        let window_end_ns = self.timeline.window_end_ns;
        let record = self.connections.accounting.recorder.record();
        if thread.is_some() {
            record.thread = thread;
        }
        let edges = &mut record.edges;
        edges.window_start.set(window.start_ns.max(lived_from_ns));
        edges.window_end.set(window_end_ns.min(left_ns));
        record.unsent += self.quota.drawn;
        Ok(self.finish())
    }

    /// The load begins.
    fn start_load(&mut self, load_ns: u64) {
        self.pacing.backlog.start(load_ns);
        let is_planned = matches!(self.pacing.model, Model::Open | Model::Sessions);
        if !is_planned && self.waits() {
            // Users who are there already do not all begin at once.
            for connection in self.connections.iter_mut() {
                connection.free_ns = load_ns;
                if let Some(think_ns) = self.pacing.rest_think_ns() {
                    connection.think_ns = think_ns;
                }
            }
        }
        if !self.pacing.has_sessions() {
            self.connections.retry_rest(load_ns);
        }
        self.pacing.start_release();
        self.release();
    }

    /// Whether the window is still open for this worker, and there is something left to do.
    fn goes_on(&mut self) -> bool {
        if self.task.control.is_aborted() {
            return false;
        }
        let now_ns = self.backend.now_ns();
        let end_ns = self.task.control.end_ns();
        if self.timeline.end_by(end_ns) {
            self.recorder().end_window_at(end_ns);
        }
        if now_ns >= self.timeline.window_end_ns {
            return false;
        }
        if !self.timeline.has_begun(now_ns) {
            return true;
        }
        if !self.window_has_begun {
            self.window_has_begun = true;
            self.wake_ups.begin_window(now_ns);
            let lacking = self.connections.lacking;
            self.recorder().record().live.unopened_at_start = Some(lacking);
            self.settle_quic(self.timeline.measure_from_ns);
        }
        if self.quota.counts(now_ns) {
            let since_ns = self.connections.unavailable_since_ns;
            let is_unavailable = since_ns.is_some_and(|since_ns| {
                now_ns - since_ns.max(self.timeline.measure_from_ns) > self.task.timeout_ns
            });
            return !(self.is_done(self.quota.is_exhausted()) || is_unavailable);
        }
        // What is generated comes to an end by itself.
        !self.timeline.is_endless() || !self.is_done(false)
    }

    /// Counts what QUIC counted on all connections, as of before `edge_ns`.
    fn settle_quic(&mut self, edge_ns: u64) {
        if P::Transport::IS_RELIABLE {
            return;
        }
        for slot in self.connections.slots() {
            self.settle_quic_of(slot, edge_ns.saturating_sub(1));
        }
    }

    /// Whether a run by count, whose count is `exhausted` or not, has nothing left to do. Stages
    /// may be over before the count is reached; where a duration was given, that is waited for.
    fn is_done(&self, exhausted: bool) -> bool {
        let is_endless = self.timeline.is_endless();
        let is_awaited = !self.repeats.is_empty()
            || match self.pacing.model {
                Model::Closed | Model::Held => false,
                Model::Open => !self.pacing.backlog.waiting.is_empty(),
                Model::Sessions => {
                    let opening = self.connections.attempts + self.connections.resuming;
                    let in_use = self.connections.live() + opening;
                    // There is no use for a connection without a request left for it.
                    !exhausted && (!self.pacing.backlog.waiting.is_empty() || in_use > 0)
                }
            };
        let is_over = is_endless && (self.pacing.is_over() || self.is_idle_for_good());
        (exhausted || is_over) && self.connections.in_flight == 0 && !is_awaited
    }

    /// Whether all open connections of a worker with a generator wait for nothing that would come.
    fn is_idle_for_good(&self) -> bool {
        let live = self.connections.live();
        self.connections.attempts == 0
            && self.connections.spare.is_empty()
            && (self.source.generated()).is_some_and(|generated| generated.is_idle(live))
    }

    /// The end of the load: what was sent is followed until it has an outcome.
    fn drain(&mut self) -> io::Result<()> {
        let now_ns = self.backend.now_ns();
        // What was due in the window belongs to it, however late this worker is.
        let window_end_ns = self.timeline.window_end_ns;
        let due_before_ns = now_ns.saturating_add(1).min(window_end_ns);
        self.take_arrivals(now_ns);
        while self.pacing.backlog.next_ns < due_before_ns && !self.task.control.is_aborted() {
            self.turn(now_ns)?;
        }
        self.pacing.backlog.stop();
        self.end_release(now_ns);
        self.timeline.mode = Mode::Drain;
        let limit_ns = window_end_ns
            .min(now_ns)
            .saturating_add(self.task.plan().load.drain_limit_ns);
        self.wind_up_streams(limit_ns)?;
        // Planned requests that wait are still sent, unless somebody is in a hurry; planned
        // connections are no longer opened.
        let sends = self.pacing.is_open_loop();
        loop {
            let now_ns = self.backend.now_ns();
            let control = &self.task.control;
            let limit_ns = limit_ns.min(control.drain_end_ns());
            let is_cut_short = control.leaves_at_once();
            let is_ended = control.is_interrupted_by(now_ns);
            if !sends || is_cut_short || is_ended {
                self.give_up_waiting(now_ns);
            }
            if is_cut_short || is_ended {
                self.censor_repeats(now_ns);
            }
            let waits = !self.pacing.backlog.waiting.is_empty() || !self.repeats.is_empty();
            let is_done = self.connections.in_flight == 0 && !waits;
            if is_done || is_cut_short || now_ns >= limit_ns {
                break;
            }
            self.turn(limit_ns)?;
        }
        self.censor();
        Ok(())
    }

    /// Ends our side of streams, and waits for the servers.
    fn wind_up_streams(&mut self, limit_ns: u64) -> io::Result<()> {
        while let Some(streams) = self.workload.streams() {
            let now_ns = self.backend.now_ns();
            let control = &self.task.control;
            let is_cut_short = control.leaves_at_once();
            let limit_ns = limit_ns.min(control.drain_end_ns());
            let open = self.connections.open();
            match streams.wind_up(now_ns, open, &mut self.backend) {
                Some(until_ns) if !is_cut_short && now_ns < limit_ns => {
                    self.turn(limit_ns.min(until_ns))?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// What is still in flight has no outcome.
    fn censor(&mut self) {
        let now_ns = self.backend.now_ns();
        for slot in self.connections.slots() {
            self.take_overhead(slot, now_ns);
            self.settle_send(slot);
        }
        self.count_output(now_ns);
        let kernel = self
            .connections
            .kernel_sample(&self.protocol, &self.backend);
        for slot in self.connections.slots() {
            let is_open = self.connections[slot].state == State::Open;
            if is_open && self.workload.carried() != Carried::Requests {
                // Nobody waits for what is still in flight on a stream; where opening is what is
                // requested, there is no connection in an open slot.
                if let Some(streams) = self.workload.streams() {
                    streams.closing(slot, true, &self.backend);
                    self.backend.reset(slot);
                }
                self.connections.stay_down(slot);
            }
            self.connections.stop_awaiting_retry(slot, now_ns);
            self.connections.stop_blocking(slot, now_ns);
            let mut is_left_behind = false;
            while let Some((timing, discarded_bytes)) = self.take_any(slot, None) {
                self.recorder().censored(timing, now_ns, discarded_bytes);
                is_left_behind = true;
            }
            is_left_behind |= self.settle_rest(slot, now_ns, P::end_round);
            if is_left_behind {
                self.left_behind.push(slot);
            }
        }
        self.give_up_waiting(now_ns);
        self.censor_repeats(now_ns);
        let gave_up = self.connections.unavailable_since_ns.is_some();
        if self.quota.is_exhausted() || gave_up {
            self.recorder().opens_no_more(now_ns, gave_up);
        }
        let stamps_clamped = self.backend.stamps_clamped();
        let record = self.connections.accounting.recorder.record();
        record.kernel = kernel;
        record.streams = self.workload.streams().map(Streams::end_round);
        record.stamps_clamped += stamps_clamped - self.stamps_clamped_before;
        record.spun_ns = self.wake_ups.spinner.spun_ns();
        record.edges.drained.set(now_ns);
    }

    /// What the round gives.
    fn finish(&mut self) -> Finished {
        let now_ns = self.backend.now_ns();
        let progress = self.progress();
        let last_shown = self.shown.since(now_ns, progress);
        self.shown.due_ns = u64::MAX;
        let mut generated = self.source.generated.take();
        if let Some(generated) = &mut generated {
            let (used, names) = generated.end();
            self.recorder().record().generator = Some(used);
            self.recorder().name_requests(names);
        }
        self.recorder().record().unexpected = self.protocol.take_unexpected();
        let spent = Recorder::new(self.task.worker, 0, 0);
        let accounting = &mut self.connections.accounting;
        Finished {
            recorder: std::mem::replace(&mut accounting.recorder, spent),
            cpu: CpuUse::default(),
            bound_cpu: None,
            last_done_ns: accounting.last_done_ns,
            last_shown,
            generated,
        }
    }

    /// The last round is over: ends all connections. What goes wrong with that is not reported any
    /// more.
    pub(crate) fn leave(&mut self) {
        self.part_from(0);
        self.backend.leave();
    }

    /// Ends the open connections from slot `first` on, and waits until that is done, for as long as
    /// a drain may take.
    fn part_from(&mut self, first: u32) {
        if !self.protocol.parts() {
            return;
        }
        self.timeline.mode = Mode::Drain;
        let now_ns = self.backend.now_ns();
        for slot in self.connections.slots() {
            // On others, something may still come that belongs to a round that is over.
            let is_left_behind = self.left_behind.binary_search(&slot).is_ok();
            match self.connections[slot].state {
                State::Open if slot.0 >= first || is_left_behind => self.part(slot, now_ns),
                // Nothing was asked on it.
                State::Connecting | State::Greeting { .. } => {
                    self.backend.close(slot);
                    self.connections.stay_down(slot);
                }
                _ => {}
            }
        }
        let limit_ns = now_ns.saturating_add(self.task.plan().load.drain_limit_ns);
        loop {
            let now_ns = self.backend.now_ns();
            let is_over = self.connections.closing == 0 || self.task.control.leaves_at_once();
            let until_ns = if is_over { now_ns } else { limit_ns };
            // What was written is sent in any case.
            if self.turn(until_ns).is_err() || until_ns <= now_ns {
                break;
            }
        }
    }
}
