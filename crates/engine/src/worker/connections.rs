//! Connections of a worker: opened, lost, replaced, and the deadlines that they have.

use brunt_measure::FailureKind;

use super::{Deadline, Mode, Pacing, Worker};
use crate::backend::{Backend, Slot};
use crate::connection::State;
use crate::failure;

/// Failed attempts after which set-up no longer waits for a connection.
const SETUP_ATTEMPTS: u32 = 5;
/// Pause after a failed attempt; it doubles with each further one up to `RETRY_NS_MAX`.
const RETRY_NS_MIN: u64 = 10_000_000;
const RETRY_NS_MAX: u64 = 1_000_000_000;

impl<B: Backend> Worker<B> {
    /// Starts a connection attempt.
    pub(super) fn open(&mut self, slot: Slot, now_ns: u64) {
        let sources = &self.task.sources;
        let turn = self.task.worker.wrapping_add(self.attempts) as usize;
        let source = (!sources.is_empty()).then(|| sources[turn % sources.len()]);
        self.attempts = self.attempts.wrapping_add(1);
        self.opening += 1;
        let connection = &mut self.connections[slot.0 as usize];
        connection.state = State::Connecting { since_ns: now_ns };
        match self.backend.open(slot, &self.task.peer, source) {
            Ok(()) => self.arm(slot, now_ns + self.task.connect_timeout_ns),
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
        let connection = &mut self.connections[slot.0 as usize];
        let State::Connecting { since_ns } = connection.state else {
            return;
        };
        connection.state = State::Open;
        connection.attempts = 0;
        connection.parser.reset();
        connection.requests_left = self.task.requests_per_connection;
        connection.received_bytes = 0;
        connection.sending = false;
        connection.has_replied = false;
        self.opening -= 1;
        self.dark_since_ns = None;
        self.recorder.connected(now_ns, now_ns - since_ns);
        self.settle(slot);
        self.available(slot, now_ns, now_ns);
    }

    /// An attempt that was under way failed, and its slot is free again.
    pub(super) fn attempt_failed(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.note_failed_attempt(slot, now_ns, kind);
        if matches!(self.pacing, Pacing::Sessions(_)) {
            self.available(slot, now_ns, now_ns);
        }
    }

    fn note_failed_attempt(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.opening -= 1;
        self.progress.failures += 1;
        self.recorder.failed(now_ns, kind, 0);
        if self.recorder.live() == 0 {
            self.dark_since_ns.get_or_insert(now_ns);
        }
        let connection = &mut self.connections[slot.0 as usize];
        if matches!(self.pacing, Pacing::Sessions(_)) {
            // Whoever wanted this connection does not try again.
            connection.state = State::Down { retry_ns: u64::MAX };
            connection.free_ns = now_ns;
            self.offer(slot);
            return;
        }
        let pause_ns = (RETRY_NS_MIN << connection.attempts.min(16)).min(RETRY_NS_MAX);
        connection.attempts += 1;
        connection.state = State::Down {
            retry_ns: now_ns + pause_ns,
        };
        if connection.attempts >= SETUP_ATTEMPTS {
            self.settle(slot);
        }
        self.arm(slot, now_ns + pause_ns);
    }

    fn settle(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.connections[slot.0 as usize].settled, true) {
            self.unsettled -= 1;
        }
    }

    /// Ends an open connection and, if there is use for it, opens the next one in its place.
    pub(super) fn replace(&mut self, slot: Slot, now_ns: u64) {
        self.backend.close(slot);
        self.recorder.disconnected(now_ns);
        let connection = &mut self.connections[slot.0 as usize];
        connection.parser.reset();
        connection.state = State::Down { retry_ns: u64::MAX };
        match self.pacing {
            Pacing::Sessions(_) => self.available(slot, now_ns, now_ns),
            Pacing::Closed | Pacing::Open(_) => {
                if self.mode != Mode::Drain || self.waiting() > 0 {
                    self.open(slot, now_ns);
                }
            }
        }
    }

    /// Makes sure that the connection is looked at when its deadline comes. Later deadlines than
    /// the one that is armed cost nothing: it is armed anew when it comes up.
    pub(super) fn arm(&mut self, slot: Slot, at_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        if at_ns < connection.armed_ns {
            connection.armed_ns = at_ns;
            self.deadlines.push(at_ns, Deadline { slot, at_ns });
        }
    }

    pub(super) fn fall_due(&mut self, deadline: Deadline, now_ns: u64) {
        let slot = deadline.slot;
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        if connection.armed_ns != deadline.at_ns {
            return;
        }
        connection.armed_ns = u64::MAX;
        let due_ns = match connection.state {
            State::Down { retry_ns } => retry_ns,
            State::Connecting { since_ns } => since_ns + self.task.connect_timeout_ns,
            State::Open if connection.under_way > 0 => {
                let place = index * self.task.depth as usize + connection.oldest as usize;
                self.issues[place].due_ns + self.task.timeout_ns
            }
            State::Open if self.task.think_time_ns > 0 => self.resume_ns(slot),
            State::Open => u64::MAX,
        };
        if due_ns == u64::MAX {
            return;
        }
        if due_ns > now_ns {
            self.arm(slot, due_ns);
            return;
        }
        match self.connections[index].state {
            State::Down { .. } if self.mode == Mode::Drain && self.waiting() == 0 => {}
            State::Down { .. } => self.open(slot, now_ns),
            State::Connecting { .. } => {
                self.backend.close(slot);
                self.attempt_failed(slot, now_ns, FailureKind::ConnectTimedOut);
            }
            State::Open if self.connections[index].under_way > 0 => {
                self.fail_all(index, now_ns, FailureKind::TimedOut);
                self.replace(slot, now_ns);
            }
            State::Open => self.feed(slot, now_ns),
        }
    }
}
