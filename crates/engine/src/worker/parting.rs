//! Connections that a worker ends: it says so and reads the server to its end, so that nothing that
//! it was sent is lost and nothing that it sends meets a closed socket.

use brunt_io::backend::{ClientBackend, Slot};

use super::{Mode, Worker};
use crate::connection::State;
use crate::protocol::{ClientProtocol, Parting};

/// A server that says nothing for so long has nothing more to say.
const QUIET_NS: u64 = 1_000_000_000;

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Ends an open connection with nothing in flight as its protocol says, and replaces it.
    pub(super) fn part(&mut self, slot: Slot, now_ns: u64) {
        if !self.protocol.parts() {
            return self.replace(slot, now_ns);
        }
        self.write_to(slot);
        let connection = &mut self.connections[slot];
        let parting = (self.protocol).part(&mut connection.protocol, self.output.out());
        self.flush();
        let waits = match parting {
            Parting::AtOnce => false,
            Parting::Answered => true,
            Parting::Heard => !self.connections[slot].sending && self.backend.finish(slot),
        };
        if !waits {
            return self.replace(slot, now_ns);
        }
        let until_ns = now_ns.saturating_add(self.task.timeout_ns);
        let quiet_ns = now_ns.saturating_add(QUIET_NS);
        self.connections[slot].state = State::Parting { quiet_ns, until_ns };
        self.connections.arm(slot, until_ns.min(quiet_ns));
        self.opening.parting += 1;
        self.accounting.recorder.disconnected(now_ns);
    }

    /// Something came on a connection, which the server may be parting from.
    #[inline]
    pub(super) fn note_parting(&mut self, slot: Slot, now_ns: u64) {
        if P::PARTS
            && let State::Parting { quiet_ns, .. } = &mut self.connections[slot].state
        {
            *quiet_ns = now_ns.saturating_add(QUIET_NS);
        }
    }

    /// The connection came to its end. Gives whether that was awaited; it is replaced then.
    pub(super) fn has_parted(&mut self, slot: Slot, now_ns: u64) -> bool {
        let is_parting = matches!(self.connections[slot].state, State::Parting { .. });
        if is_parting {
            self.replace(slot, now_ns);
        }
        is_parting
    }

    /// The last round is over: ends all connections. What goes wrong with that is not reported any
    /// more.
    pub(crate) fn leave(&mut self) {
        self.part_from(0);
    }

    /// Ends the open connections from slot `first` on, and waits until that is done, for as long as
    /// a drain may take.
    pub(super) fn part_from(&mut self, first: u32) {
        if !self.protocol.parts() {
            return;
        }
        self.timeline.mode = Mode::Drain;
        let now_ns = self.backend.now_ns();
        let is_greeting = |state| matches!(state, State::Greeting { .. });
        let mut greeting = Vec::new();
        for slot in self.connections.slots() {
            let state = self.connections[slot].state;
            // On others, something may still come that belongs to a round that is over.
            let is_left_behind = self.round.left_behind.binary_search(&slot).is_ok();
            if is_greeting(state) {
                greeting.push(slot);
            } else if let State::Connecting { .. } = state {
                // Nothing was said on it.
                self.backend.close(slot);
                self.connections[slot].state = State::Down { retry_ns: u64::MAX };
            } else if state == State::Open && (slot.0 >= first || is_left_behind) {
                self.part(slot, now_ns);
            }
        }
        let is_recalled = self.task.control.is_recalled_by(now_ns);
        let patience_ns = match is_recalled {
            // Others wait to take its place.
            true => self.task.drain_limit_ns.min(QUIET_NS),
            false => self.task.drain_limit_ns,
        };
        let limit_ns = now_ns.saturating_add(patience_ns);
        let greeting_limit_ns = limit_ns.min(now_ns.saturating_add(QUIET_NS));
        loop {
            let now_ns = self.backend.now_ns();
            let control = &self.task.control;
            let until_ns = if control.is_aborted() || control.is_hurried() {
                now_ns
            } else if self.opening.parting > 0 {
                limit_ns
            } else if greeting.is_empty() || control.is_interrupted() {
                now_ns
            } else {
                greeting_limit_ns
            };
            // What was written is sent in any case.
            if self.turn(until_ns).is_err() || until_ns <= now_ns {
                break;
            }
            let now_ns = self.backend.now_ns();
            greeting.retain(|&slot| {
                let state = self.connections[slot].state;
                if state == State::Open {
                    self.part(slot, now_ns);
                }
                is_greeting(state)
            });
        }
    }
}
