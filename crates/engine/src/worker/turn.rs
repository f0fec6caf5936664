//! One turn of a worker: what was written is sent, events and deadlines are waited for and handed
//! on, and what has come due is seen to.

use std::io;

use brunt_io::backend::{ClientBackend, Event, Slot};
use brunt_record::FailureKind;

use super::Worker;
use super::connections::{Deadline, NextAttempt};
use super::pacing::Model;
use crate::connection::State;
use crate::failure;
use crate::observer::{NOTICE_NS, Progress};
use crate::protocol::{ClientProtocol, WorkerTransport};
use crate::task::Mode;
use crate::workload::{Carried, Workload};

/// Deadlines that one turn sees to: however many fall due at once, events, arrivals and interrupts
/// are not held up for long.
const DEADLINES_PER_TURN: u32 = 1_024;

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// One turn of the loop: send, wait, take what came, see to what is due.
    pub(super) fn turn(&mut self, until_ns: u64) -> io::Result<()> {
        if let Some(generated) = self.source.generated() {
            generated.turn();
        }
        let dial_ns = self.dial();
        self.flush();
        let from_ns = self.backend.now_ns();
        self.runs(from_ns);
        self.count_output(from_ns);
        let wake_ns = self.wake_ns(from_ns, until_ns.min(dial_ns));
        self.wake_ups.waits(from_ns, wake_ns);
        self.backend.wait(Some(wake_ns))?;
        if self.pacing.backlog.next_ns < u64::MAX {
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
        if now_ns >= self.pacing.next_slice_ns() {
            self.count_slices(now_ns);
        }
        if now_ns >= self.next_reading_ns() {
            self.read_streams(now_ns, false);
        }
        if self.is_releasing() {
            self.release();
        }
        if self.drop_expired(now_ns)
            && !self.pacing.free.is_empty()
            && !self.pacing.backlog.waiting.is_empty()
        {
            self.assign_waiting(now_ns);
        }
        if !self.repeats.is_empty() {
            self.see_to_repeats(now_ns);
        }
        if now_ns >= self.shown.due_ns {
            let progress = self.progress();
            self.shown.show(now_ns, progress);
        }
        Ok(())
    }

    /// What is shown of the worker now.
    pub(super) fn progress(&mut self) -> Progress {
        let waiting = self.pacing.backlog.waiting.len() as u64;
        self.connections.accounting.progress(waiting)
    }

    /// Until when the worker sleeps from `from_ns` on, for events and `until_ns` at most.
    fn wake_ns(&mut self, from_ns: u64, until_ns: u64) -> u64 {
        let in_flight = self.connections.in_flight;
        let arrival_ns = self.pacing.backlog.next_ns;
        let is_opening = self.connections.attempts > 0;
        let quiet_until_ns = self.wake_ups.quiet_until_ns(
            from_ns,
            &self.timeline,
            in_flight,
            is_opening,
            arrival_ns,
        );
        // Not to sleep now is to poll.
        let polls = quiet_until_ns == from_ns;
        if self.wake_ups.spinner.spins(from_ns, polls) {
            return from_ns;
        }
        if std::mem::take(&mut self.pacing.is_behind) || self.is_releasing() {
            return from_ns;
        }
        until_ns
            .min(self.pacing.next_slice_ns())
            .min(from_ns + NOTICE_NS)
            .min(self.connections.next_deadline_ns())
            .min(arrival_ns.max(from_ns + self.task.gather_ns))
            .min(self.repeats.next_time_out_ns())
            .min(self.next_reading_ns())
            .min(quiet_until_ns.max(from_ns + 1))
    }

    /// The worker runs now.
    fn runs(&mut self, now_ns: u64) {
        let mode = self.timeline.mode;
        self.wake_ups
            .runs(now_ns, mode, &mut self.connections.accounting.recorder);
    }

    /// Makes the attempts whose turn it is; gives when the next one is due by plan.
    fn dial(&mut self) -> u64 {
        let waits = !self.pacing.backlog.waiting.is_empty() || !self.repeats.is_empty();
        let dials = self.timeline.mode != Mode::Drain || waits;
        if self.connections.dialling.is_empty() || !dials {
            return u64::MAX;
        }
        // Attempts that fail at once leave the bound as it is.
        for _ in 0..P::Transport::ATTEMPTS_MAX {
            let now_ns = self.backend.now_ns();
            match self.connections.next_attempt(now_ns) {
                NextAttempt::Now(slot) => self.open(slot, now_ns),
                NextAttempt::At(at_ns) => return at_ns,
            }
        }
        // There may be more.
        0
    }

    fn handle(&mut self, event: Event) {
        let now_ns = self.backend.now_ns();
        self.runs(now_ns);
        self.wake_ups.spinner.worked(now_ns);
        if now_ns >= self.pacing.backlog.next_ns && !self.pacing.is_behind {
            // A long batch of events must not hold up what has come due meanwhile.
            self.take_arrivals(now_ns);
        }
        match event {
            Event::Received(slot) => self.receive(slot, now_ns),
            Event::Discarded(slot, bytes) => self.discarded(slot, now_ns, bytes.into()),
            Event::Sent(slot) => self.sent(slot, now_ns),
            Event::Connected(slot) => self.connected(slot, now_ns),
            Event::ConnectFailed(slot, errno) => {
                self.attempt_failed(slot, now_ns, failure::of_connect(errno));
            }
            Event::HandshakeFailed(slot, reason) => {
                self.attempt_failed(slot, now_ns, failure::of_handshake(reason));
            }
            Event::SendFailed(slot, errno) | Event::ReceiveFailed(slot, errno) => {
                let idle = (self.workload.broken_idle(), 0);
                self.connection_broken(slot, now_ns, failure::of_socket(errno), idle);
            }
            Event::Ended(slot) => self.peer_closed(slot, now_ns),
            // A client offers no slots to accept into.
            Event::Accepted(_) | Event::AcceptFailed(..) => {}
        }
    }

    /// A deadline has come, which may have been put off meanwhile.
    fn fall_due(&mut self, deadline: Deadline, now_ns: u64) {
        let Some(slot) = self.connections.disarm(deadline) else {
            return;
        };
        let is_stuck = self.is_stuck(slot);
        let connection = &self.connections[slot];
        let timeout_ns = self.next_timeout_ns(slot);
        let limit_ns = self.connect_limit_ns(slot);
        let due_ns = match connection.state {
            State::Down { retry_ns } => retry_ns,
            State::Connecting => limit_ns,
            // A transport that sends again what is lost needs no timer of the protocol.
            State::Greeting { .. } if P::Transport::IS_RELIABLE => limit_ns,
            State::Greeting { .. } => {
                limit_ns.min(self.protocol.next_timeout_ns(&connection.protocol))
            }
            // It belongs to a round that is over.
            State::Attempting if connection.in_flight == 0 => u64::MAX,
            State::Attempting => timeout_ns.min(limit_ns),
            State::Open if is_stuck => connection.free_ns.saturating_add(self.task.timeout_ns),
            State::Open => self.next_deadline_ns(slot),
            State::Closing { quiet_ns, until_ns } => quiet_ns.min(until_ns),
        };
        if due_ns == u64::MAX {
            return;
        }
        if due_ns > now_ns {
            self.connections.arm(slot, due_ns);
            return;
        }
        let state = connection.state;
        match state {
            State::Down { .. } if self.pacing.has_sessions() => {
                self.connections.resuming -= 1;
                if self.timeline.mode == Mode::Load {
                    self.open(slot, now_ns);
                } else {
                    self.connections.stay_down(slot);
                }
            }
            State::Down { .. } if !self.is_wanted(slot, now_ns) => self.connections.stay_down(slot),
            State::Down { .. } => {
                // It waits for its turn.
                self.connections.stop_awaiting_retry(slot, now_ns);
                self.connections.stay_down(slot);
                self.connections.queue(slot, now_ns);
            }
            State::Connecting | State::Attempting => {
                let kind = if now_ns < limit_ns {
                    FailureKind::TimedOut
                } else if self.backend.is_handshaking(slot) {
                    FailureKind::HandshakeTimedOut
                } else {
                    FailureKind::ConnectTimedOut
                };
                self.attempt_failed(slot, now_ns, kind);
            }
            State::Greeting { .. } if now_ns < limit_ns => self.time_out(slot, now_ns),
            State::Greeting { .. } => {
                self.greeting_failed(slot, now_ns, FailureKind::HandshakeTimedOut);
            }
            State::Closing { .. } => self.replace(slot, now_ns),
            State::Open if is_stuck => {
                // Nothing can be sent on it, and nothing is awaited.
                self.recorder()
                    .failed(now_ns, FailureKind::UnexpectedBytes, 0);
                self.replace(slot, now_ns);
            }
            State::Open if timeout_ns <= now_ns => self.time_out(slot, now_ns),
            State::Open => {
                self.send_next(slot, now_ns);
                if P::WRITES_AHEAD {
                    self.connections.arm(slot, self.next_timeout_ns(slot));
                }
            }
        }
    }

    /// Whether there is something to be sent on the connection in `slot`, if it is opened now.
    fn is_wanted(&mut self, slot: Slot, now_ns: u64) -> bool {
        self.workload.carried() == Carried::Attempt
            || !self.pacing.backlog.waiting.is_empty()
            || self.repeats.waits_for(slot)
            || self.has_request_left(now_ns)
    }

    /// Whether connections were not released to the load yet.
    fn is_releasing(&self) -> bool {
        self.timeline.mode == Mode::Load && self.pacing.is_releasing(self.connections.len())
    }

    /// Has the next connections send, or take what waits: as many per turn as leave it short.
    pub(super) fn release(&mut self) {
        for slot in self.pacing.release(self.connections.len()).map(Slot) {
            let now_ns = self.backend.now_ns();
            self.runs(now_ns);
            match self.pacing.model {
                Model::Closed => {
                    self.note_first_request(slot, now_ns);
                    self.send_next(slot, now_ns);
                }
                Model::Held => {}
                Model::Open | Model::Sessions => self.mark_free(slot),
            }
        }
        self.assign_waiting(self.backend.now_ns());
    }

    /// The connection has its first request now, or the window is over without it.
    fn note_first_request(&mut self, slot: Slot, now_ns: u64) {
        let connection = &self.connections[slot];
        if !connection.is_used && connection.state == State::Open {
            self.recorder()
                .add_time(0, now_ns, |live| &mut live.not_begun_ns);
        }
    }

    /// Notes the connections that the window had no time for.
    pub(super) fn end_release(&mut self, now_ns: u64) {
        let unreleased = self.pacing.end_release(self.connections.len());
        if self.pacing.model == Model::Closed {
            for slot in unreleased.map(Slot) {
                self.note_first_request(slot, now_ns);
            }
        }
    }

    /// Counts slices of the experiment that are over, and records it when all are. Lets go on what
    /// paused: connections that the server closed meanwhile are opened again.
    fn count_slices(&mut self, now_ns: u64) {
        let Some(experiment) = &mut self.pacing.halving else {
            return;
        };
        let replies = self.connections.accounting.replies();
        let goes_on = experiment.count(now_ns, replies);
        if experiment.is_over()
            && let Some(over) = self.pacing.halving.take()
        {
            let starved = self.connections.in_flight_since(over.starved_before_ns());
            self.recorder().record().halving = Some(over.conclude(starved));
        }
        if goes_on {
            self.connections.queue_closed();
            self.pacing.start_release();
            self.release();
        }
    }

    /// When the accounts of streams are to be read next; [`u64::MAX`] for never.
    #[inline]
    fn next_reading_ns(&mut self) -> u64 {
        let streams = self.workload.streams();
        streams.map_or(u64::MAX, |streams| streams.next_ns)
    }

    /// Reads the accounts of streams, since that is due or the window `is_over`.
    pub(super) fn read_streams(&mut self, now_ns: u64, is_over: bool) {
        if let Some(streams) = self.workload.streams() {
            let open = self.connections.open().map(|(slot, _)| slot);
            streams.read(now_ns, is_over, open, &self.backend);
        }
    }
}
