//! Connections of a worker: opened, lost, replaced, and the deadlines that they have.

use brunt_io::backend::{ClientBackend, Peer, Slot};
use brunt_record::FailureKind;

use super::table::Deadline;
use super::{Mode, Pacing, Task, Worker};
use crate::connection::{State, Writing};
use crate::failure;
use crate::protocol::ClientProtocol;

/// Failed attempts after which set-up no longer waits for a connection.
const SETUP_ATTEMPTS: u32 = 5;
/// Pause after a failed attempt; it doubles with each further one up to `RETRY_NS_MAX`.
pub(super) const RETRY_NS_MIN: u64 = 10_000_000;
pub(super) const RETRY_NS_MAX: u64 = 1_000_000_000;
/// A connection that lives as long was worth opening, even if it carried nothing.
const LIFE_NS_LEAST: u64 = 100_000_000;
/// The same of a stream, which is to last as long as the run.
const STREAM_LIFE_NS_LEAST: u64 = RETRY_NS_MAX;

impl Task {
    /// Where the connection in a slot goes: to all servers alike, over all workers.
    pub(super) fn peer_of(&self, slot: Slot) -> &Peer {
        let number = slot.0 as usize * self.workers as usize + self.worker as usize;
        match number % (self.further_peers.len() + 1) {
            0 => &self.peer,
            other => &self.further_peers[other - 1],
        }
    }
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Starts a connection attempt.
    pub(super) fn open(&mut self, slot: Slot, now_ns: u64) {
        if P::CONNECTS {
            self.stop_awaiting_retry(slot, now_ns);
            return self.reoffer_slot(slot, now_ns);
        }
        if let Some(generated) = &mut self.generated {
            generated.opening(slot);
        }
        let source = self.opening.sources.next(now_ns);
        self.stop_awaiting_retry(slot, now_ns);
        self.opening.in_flight += 1;
        self.accounting
            .recorder
            .opening(now_ns, self.opening.in_flight);
        let connection = &mut self.connections[slot];
        connection.state = State::Connecting { since_ns: now_ns };
        let opening = match self.generated {
            None => self.backend.open(slot, self.task.peer_of(slot), source),
            Some(_) => {
                let peer = self.peer();
                self.backend.open(slot, &peer, source)
            }
        };
        match opening {
            Ok(()) => self
                .connections
                .arm(slot, now_ns + self.task.connect_timeout_ns),
            Err(error) => {
                let kind = error
                    .raw_os_error()
                    .map_or(FailureKind::ConnectNoDescriptor, failure::of_connect);
                // Whoever opens it goes on with what waits.
                self.note_failed_attempt(slot, now_ns, kind);
            }
        }
    }

    pub(super) fn connected(&mut self, slot: Slot, now_ns: u64) {
        let connection = &mut self.connections[slot];
        let State::Connecting { since_ns } = connection.state else {
            return;
        };
        connection.received_bytes = 0;
        connection.sending = false;
        connection.has_ended_one = false;
        connection.think_ns = 0;
        connection.is_shut = false;
        connection.depth = self.task.depth;
        let connected_ns = self
            .backend
            .secured(slot)
            .map_or(now_ns, |secured| secured.from_ns);
        self.take_overhead(slot, now_ns);
        let is_stamped = self.is_stamped(slot);
        self.write_to(slot);
        let connection = &mut self.connections[slot];
        connection.writing =
            P::WRITES_AHEAD.then(|| Box::new(Writing::new(self.task.depth, is_stamped)));
        let out = self.output.out();
        if self.protocol.open(&mut connection.protocol, out, now_ns) {
            self.opened(slot, now_ns, since_ns, connected_ns);
        } else {
            connection.state = State::Greeting {
                since_ns,
                connected_ns,
            };
        }
    }

    /// The connection, whose attempt began at `since_ns`, can carry requests.
    pub(super) fn opened(&mut self, slot: Slot, now_ns: u64, since_ns: u64, connected_ns: u64) {
        self.attempt_ended(slot, now_ns);
        let was_gone = self.opening.probe.take().is_some();
        let connection = &mut self.connections[slot];
        let was_greeted = matches!(connection.state, State::Greeting { .. });
        connection.state = State::Open;
        connection.opened_ns = now_ns;
        connection.opened_from_ns = since_ns;
        connection.is_used = false;
        connection.requests_left = self.task.requests_per_connection;
        if connection.depth > 0 {
            self.opening.unavailable_since_ns = None;
        }
        let mut there_ns = connected_ns;
        if let Some(secured) = self.backend.secured(slot) {
            there_ns = secured.to_ns;
            let tls_ns = secured.to_ns.saturating_sub(secured.from_ns);
            self.accounting
                .recorder
                .secured(now_ns, tls_ns, secured.is_resumed);
        }
        if was_greeted {
            self.accounting
                .recorder
                .greeted(now_ns.saturating_sub(there_ns));
        }
        self.accounting
            .recorder
            .connected(now_ns, connected_ns.saturating_sub(since_ns));
        if let Some(generated) = &mut self.generated {
            generated.opened(slot);
        }
        if std::mem::take(&mut self.connections[slot].is_lacking) {
            self.opening.lacking -= 1;
        }
        if !self.connections[slot].settled {
            self.opening.progress_ns = now_ns;
        }
        self.settle(slot);
        // Had brunt been on time before, this connection would have been opened earlier.
        let late_ns = std::mem::take(&mut self.connections[slot].late_ns);
        let punctual_free_ns = now_ns.saturating_sub(late_ns);
        let depth = self.connections[slot].depth;
        self.connections[slot].punctual_free_ns = punctual_free_ns;
        self.places_freed(slot, depth, punctual_free_ns);
        self.available(slot, now_ns, now_ns);
        if was_gone {
            self.retry_soon(now_ns);
        }
    }

    /// The server broke off an attempt that had got as far as its greeting.
    pub(super) fn greeting_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.backend.close(slot);
        self.lose(slot, now_ns);
        self.attempt_failed(slot, now_ns, kind);
    }

    /// Counts what came on the connection and was never shown.
    pub(super) fn take_overhead(&mut self, slot: Slot, now_ns: u64) {
        let bytes = self.backend.take_overhead(slot);
        if bytes > 0 {
            self.accounting.received(now_ns, bytes);
            self.accounting.recorder.overhead(now_ns, bytes);
            self.connections[slot].received_bytes += bytes;
        }
    }

    /// Forgets a connection that is no more, and on which nothing is in flight.
    fn lose(&mut self, slot: Slot, now_ns: u64) {
        self.take_overhead(slot, now_ns);
        self.settle_bytes(slot, now_ns);
        self.connections[slot].writing = None;
        self.output.forget(slot);
    }

    /// An attempt that was in flight failed, and its slot is free again.
    pub(super) fn attempt_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.take_overhead(slot, now_ns);
        self.note_failed_attempt(slot, now_ns, kind);
        if matches!(self.pacing, Pacing::Sessions(_)) {
            self.available(slot, now_ns, now_ns);
        }
    }

    fn attempt_ended(&mut self, slot: Slot, now_ns: u64) {
        self.opening.in_flight -= 1;
        self.accounting
            .recorder
            .opening(now_ns, self.opening.in_flight);
        if std::mem::take(&mut self.connections[slot].is_bounded) {
            self.opening.dialling.ended();
        }
    }

    fn note_failed_attempt(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.attempt_ended(slot, now_ns);
        self.lacks(slot);
        self.accounting.failed(now_ns, kind, 0);
        if let Some(generated) = &mut self.generated {
            generated.unopened(slot);
        }
        if self.accounting.recorder.live() == 0 {
            self.opening.unavailable_since_ns.get_or_insert(now_ns);
            self.opening.probe.get_or_insert(slot);
        }
        if matches!(self.pacing, Pacing::Sessions(_)) {
            // Whoever wanted this connection does not try again.
            let connection = &mut self.connections[slot];
            connection.state = State::Down { retry_ns: u64::MAX };
            connection.free_ns = now_ns;
            self.mark_free(slot);
            return;
        }
        if self.give_up_part(slot) {
            self.connections[slot].state = State::Down { retry_ns: u64::MAX };
            self.settle(slot);
            return;
        }
        self.open_later(slot, now_ns);
    }

    /// Lets a pause go by before the next attempt. In set-up a slot that failed often enough is not
    /// tried again: the places are for those that were not.
    pub(super) fn open_later(&mut self, slot: Slot, now_ns: u64) {
        let pause_ns = self.retry_pause_ns(slot, now_ns);
        let connection = &mut self.connections[slot];
        connection.attempts += 1;
        connection.waiting_since_ns = now_ns;
        connection.state = State::Down {
            retry_ns: now_ns + pause_ns,
        };
        if self.timeline.mode == Mode::Setup && connection.attempts >= SETUP_ATTEMPTS {
            self.settle(slot);
        } else {
            self.connections.arm(slot, now_ns + pause_ns);
        }
    }

    /// An attempt of the connection failed, or led to nothing.
    fn lacks(&mut self, slot: Slot) {
        let is_held = slot.0 < self.task.opened_first(P::CONNECTS);
        if is_held && !std::mem::replace(&mut self.connections[slot].is_lacking, true) {
            self.opening.lacking += 1;
        }
    }

    fn settle(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.connections[slot].settled, true) {
            self.opening.unsettled -= 1;
        }
    }

    /// Ends an open connection and, if there is use for it, opens the next one in its place.
    pub(super) fn replace(&mut self, slot: Slot, now_ns: u64) {
        let resume_ns = self.resumes_ns(slot, now_ns);
        self.end_stream(slot);
        self.stop_blocking(slot, now_ns);
        self.backend.close(slot);
        match self.connections[slot].state {
            State::Parting { .. } => self.opening.parting -= 1,
            _ => self.accounting.recorder.disconnected(now_ns),
        }
        self.lose(slot, now_ns);
        if let Some(generated) = &mut self.generated {
            generated.closed(slot);
        }
        let connection = &mut self.connections[slot];
        connection.state = State::Down { retry_ns: u64::MAX };
        // One that was ended at once, and before it carried a request, is a failed attempt but for
        // the name: a server at its limits is not to be run over. It may happen once. So is a
        // stream that did not last, whatever it carried.
        let life_ns = now_ns.saturating_sub(connection.opened_ns);
        let is_in_vain = match P::IS_STREAM {
            true => life_ns < STREAM_LIFE_NS_LEAST,
            false => !connection.is_used && life_ns < LIFE_NS_LEAST,
        };
        let was_in_vain = connection.attempts > 0;
        connection.attempts = if is_in_vain {
            connection.attempts.max(1)
        } else {
            0
        };
        if is_in_vain {
            self.lacks(slot);
        }
        let connection = &mut self.connections[slot];
        if let Some(resume_ns) = resume_ns {
            connection.state = State::Down {
                retry_ns: resume_ns.min(u64::MAX - 1),
            };
            self.opening.resuming += 1;
            self.connections.arm(slot, resume_ns);
            return;
        }
        match self.pacing {
            // A server that serves one after the other would wait for its request.
            _ if self.pauses(slot) => {}
            Pacing::Sessions(_) => self.available(slot, now_ns, now_ns),
            _ if self.timeline.mode == Mode::Drain && self.waiting() == 0 => {}
            _ if self.connections[slot].part_left == 0 => {}
            _ if is_in_vain && was_in_vain => self.open_later(slot, now_ns),
            Pacing::Closed if self.timeline.mode == Mode::Load && self.thinks_first(slot) => {
                let connection = &mut self.connections[slot];
                let retry_ns = now_ns.saturating_add(connection.think_ns).min(u64::MAX - 1);
                connection.state = State::Down { retry_ns };
                connection.waiting_since_ns = now_ns;
                self.connections.arm(slot, retry_ns);
            }
            _ if self.timeline.mode == Mode::Setup => self.opening.dialling.push(slot),
            Pacing::Closed | Pacing::Held | Pacing::Open(_) => self.open(slot, now_ns),
        }
    }

    /// Whether a user who was answered on the connection, which is gone, thinks before the next one
    /// is opened: a server that serves one connection after the other would wait for its request.
    pub(super) fn thinks_first(&self, slot: Slot) -> bool {
        let connection = &self.connections[slot];
        connection.is_used && connection.think_ns > 0
    }

    pub(super) fn fall_due(&mut self, deadline: Deadline, now_ns: u64) {
        let Some(slot) = self.connections.disarm(deadline) else {
            return;
        };
        let connection = &self.connections[slot];
        let timeout_ns = self.next_timeout_ns(slot);
        let due_ns = match connection.state {
            State::Down { retry_ns } => retry_ns,
            State::Connecting { since_ns } | State::Greeting { since_ns, .. } => {
                since_ns + self.task.connect_timeout_ns
            }
            State::Open if connection.is_stuck() => {
                connection.free_ns.saturating_add(self.task.timeout_ns)
            }
            State::Open => self.next_deadline_ns(slot),
            State::Parting { quiet_ns, until_ns } => quiet_ns.min(until_ns),
        };
        if due_ns == u64::MAX {
            return;
        }
        if due_ns > now_ns {
            self.connections.arm(slot, due_ns);
            return;
        }
        match self.connections[slot].state {
            State::Down { .. } if matches!(self.pacing, Pacing::Sessions(_)) => {
                self.opening.resuming -= 1;
                if self.timeline.mode == Mode::Load {
                    self.open(slot, now_ns);
                } else {
                    self.connections[slot].state = State::Down { retry_ns: u64::MAX };
                }
            }
            State::Down { .. } => {
                self.stop_awaiting_retry(slot, now_ns);
                let connection = &mut self.connections[slot];
                connection.state = State::Down { retry_ns: u64::MAX };
                // Now for its turn.
                connection.waiting_since_ns = now_ns;
                self.opening.dialling.push(slot);
            }
            State::Connecting { .. } => {
                let kind = if self.backend.is_handshaking(slot) {
                    FailureKind::HandshakeTimedOut
                } else {
                    FailureKind::ConnectTimedOut
                };
                self.backend.close(slot);
                self.attempt_failed(slot, now_ns, kind);
            }
            State::Greeting { .. } => {
                self.greeting_failed(slot, now_ns, FailureKind::HandshakeTimedOut);
            }
            State::Parting { .. } => self.replace(slot, now_ns),
            State::Open if self.connections[slot].is_stuck() => {
                // Nothing can be sent on it, and nothing is awaited.
                self.accounting
                    .failed(now_ns, FailureKind::UnexpectedBytes, 0);
                self.replace(slot, now_ns);
            }
            State::Open if timeout_ns <= now_ns => self.time_out(slot, now_ns),
            State::Open => {
                self.send_next(slot, now_ns);
                if P::WRITES_AHEAD {
                    let timeout_ns = self.next_timeout_ns(slot);
                    self.connections.arm(slot, timeout_ns);
                }
            }
        }
    }
}
