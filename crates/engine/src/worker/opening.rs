//! How attempts to open a connection end, and which connections an open loop opens again.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_record::{FailureKind, ReplyOutcome};

use super::Worker;
use super::pacing::Model;
use crate::connection::State;
use crate::protocol::{ClientProtocol, answer};
use crate::task::Mode;
use crate::workload::Workload;

/// A connection that nothing took for so long was not needed. So long before an arrival one is
/// opened for it: longer than that mostly takes.
pub(super) const IDLE_NS: u64 = 100_000_000;

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// When the connection is to be there.
    pub(super) fn connect_limit_ns(&self, slot: Slot) -> u64 {
        let since_ns = self.connections[slot].opened_from_ns;
        since_ns.saturating_add(self.task.plan().limits.connect_timeout_ns)
    }

    /// A connection is there, over TLS where there is TLS.
    pub(super) fn connected(&mut self, slot: Slot, now_ns: u64) {
        match self.connections[slot].state {
            State::Connecting => {}
            State::Attempting => return self.attempt_made(slot, now_ns),
            _ => return,
        }
        let is_stamped = self.sampling.is_stamped(slot);
        self.connections[slot].established(self.task.depth, is_stamped);
        let secured = self.backend.secured(slot);
        let connected_ns = secured.map_or(now_ns, |secured| secured.from_ns);
        self.take_overhead(slot, now_ns);
        self.write_to(slot);
        let connection = &mut self.connections[slot];
        let out = &mut self.output.out;
        if self.protocol.open(&mut connection.protocol, out, now_ns) {
            self.opened(slot, now_ns, connected_ns);
        } else {
            connection.state = State::Greeting { connected_ns };
        }
    }

    /// The connection, for which TCP was there at `connected_ns`, can carry requests.
    pub(super) fn opened(&mut self, slot: Slot, now_ns: u64, connected_ns: u64) {
        let connection = &self.connections[slot];
        let since_ns = connection.opened_from_ns;
        let was_greeted = matches!(connection.state, State::Greeting { .. });
        let was_probe = self.connections.opened(slot, now_ns);
        let there_ns = self.note_secured(slot, now_ns).unwrap_or(connected_ns);
        let recorder = self.recorder();
        if was_greeted {
            recorder.greeted(now_ns.saturating_sub(there_ns));
        }
        recorder.connected(now_ns, connected_ns.saturating_sub(since_ns));
        self.source.opened(slot);
        let connection = &self.connections[slot];
        let (depth, punctual_free_ns) = (connection.depth, connection.punctual_free_ns);
        self.places_freed(slot, depth, punctual_free_ns);
        self.available(slot, now_ns, now_ns);
        if was_probe && !self.pacing.has_sessions() {
            self.connections.retry_soon(now_ns);
        }
    }

    /// Records the TLS handshake of a connection; gives when it was over, absent without TLS.
    pub(super) fn note_secured(&mut self, slot: Slot, now_ns: u64) -> Option<u64> {
        let of_protocol = || self.protocol.secured(&self.connections[slot].protocol);
        let secured = self.backend.secured(slot).or_else(of_protocol)?;
        let tls_ns = secured.to_ns.saturating_sub(secured.from_ns);
        self.recorder().secured(now_ns, tls_ns, secured.is_resumed);
        Some(secured.to_ns)
    }

    /// The connection that was requested is open, with its TLS.
    fn attempt_made(&mut self, slot: Slot, now_ns: u64) {
        if self.connections[slot].in_flight == 0 {
            // It belongs to a round that is over, which the next one closes.
            return;
        }
        let since_ns = self.connections[slot].opened_from_ns;
        let secured = self.backend.secured(slot);
        let connected_ns = secured.map_or(now_ns, |secured| secured.from_ns);
        self.note_secured(slot, now_ns);
        let recorder = self.recorder();
        recorder.connected(now_ns, connected_ns.saturating_sub(since_ns));
        recorder.disconnected(now_ns);
        if let Some(timing) = self.end_attempt(slot, now_ns) {
            let answer = answer(ReplyOutcome::SUCCESS, 0, 0, now_ns);
            self.replied(slot, timing, now_ns, &answer);
        }
        self.connections[slot].attempts = 0;
        self.connections.offer(slot, now_ns);
        self.available(slot, now_ns, now_ns);
    }

    /// An attempt that was in flight failed, and its slot is free again.
    pub(super) fn attempt_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        if let State::Attempting = self.connections[slot].state {
            let pauses = self.pacing.model == Model::Closed;
            return self.attempt_missed(slot, now_ns, kind, pauses);
        }
        self.backend.close(slot);
        self.take_overhead(slot, now_ns);
        self.note_failed_attempt(slot, now_ns, kind);
        if self.pacing.has_sessions() {
            self.available(slot, now_ns, now_ns);
        }
    }

    /// An attempt that is a request failed. The slot `pauses` in a closed loop, as one that is
    /// opened for requests does: a server at its limits is not to be run over.
    pub(super) fn attempt_missed(
        &mut self,
        slot: Slot,
        now_ns: u64,
        kind: FailureKind,
        pauses: bool,
    ) {
        let Some(timing) = self.end_attempt(slot, now_ns) else {
            return;
        };
        self.request_failed(slot, timing, now_ns, kind, 0);
        if pauses {
            self.connections
                .retry_later(slot, now_ns, self.timeline.mode);
        } else {
            self.connections.offer(slot, now_ns);
            self.available(slot, now_ns, now_ns);
        }
    }

    /// The server broke off an attempt that had got as far as its greeting.
    pub(super) fn greeting_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.backend.close(slot);
        self.lose(slot, now_ns);
        self.attempt_failed(slot, now_ns, kind);
    }

    /// Opens a further connection for a request that was due at `due_ns`, where that is allowed and
    /// more requests wait than those being opened will take.
    pub(super) fn open_further(&mut self, due_ns: u64, now_ns: u64) {
        let per_connection = u64::from(self.task.depth).min(self.task.requests_per_connection);
        let waiting = self.pacing.backlog.waiting.len() + self.repeats.waiting;
        let may_grow = self.pacing.is_open_loop()
            && self.timeline.mode == Mode::Load
            && u64::from(self.connections.attempts) * per_connection < waiting as u64;
        if may_grow && let Some(slot) = self.connections.use_slot() {
            // A brunt that is never late would have begun to open it when the request was due.
            self.connections[slot].late_ns = now_ns.saturating_sub(due_ns);
            self.open(slot, now_ns);
        }
    }

    /// An attempt failed that was no request: it is made again after a pause, where it is to be.
    pub(super) fn note_failed_attempt(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        if !self.repeats.is_empty() {
            self.fail_repeats(slot, now_ns);
        }
        self.connections.attempt_failed(slot, now_ns, kind);
        self.source.unopened(slot);
        if self.pacing.has_sessions() {
            // Whoever wanted this connection does not try again.
            self.connections.stay_down(slot);
            self.connections[slot].free_ns = now_ns;
            self.mark_free(slot);
        } else if self.give_up_part(slot) {
            self.connections.stay_down(slot);
            self.connections.settle(slot);
        } else {
            self.connections
                .retry_later(slot, now_ns, self.timeline.mode);
        }
    }

    /// Opens another connection in place of one that an open loop lost, or sets its slot aside. One
    /// that `was_idle` for long is replaced only if no other is free, and shortly before the next
    /// arrival: else those that a server closes when they are idle would be opened for nobody. What
    /// waits longer than that finds has further ones opened.
    pub(super) fn replace_planned(&mut self, slot: Slot, now_ns: u64, was_idle: bool) {
        let next_ns = self.pacing.backlog.next_ns;
        let is_needed = next_ns < self.timeline.window_end_ns && self.has_request_left(now_ns);
        let is_free = u64::from(self.connections.live()) > self.connections.in_flight;
        let is_last = !is_free && self.connections.attempts == 0;
        let waits = !self.pacing.backlog.waiting.is_empty() || self.repeats.waits_for_any();
        let at_ns = if waits || is_needed && !was_idle {
            Some(now_ns)
        } else if is_needed && is_last {
            Some(next_ns.saturating_sub(IDLE_NS))
        } else {
            None
        };
        match at_ns {
            Some(at_ns) if at_ns <= now_ns => self.open(slot, now_ns),
            _ => self.connections.set_aside(slot, at_ns, now_ns),
        }
    }

    /// Whether a request is left for a connection that is opened now, beside those that are being
    /// opened or are free already.
    pub(super) fn has_request_left(&mut self, now_ns: u64) -> bool {
        let live = u64::from(self.connections.live());
        let free = live.saturating_sub(self.connections.in_flight);
        let others = u64::from(self.connections.attempts) + free;
        if self.pacing.model == Model::Closed {
            self.quota.secures(now_ns, others + 1)
        } else {
            // An arrival takes what nobody has drawn.
            self.quota.left(now_ns) > others
        }
    }
}
