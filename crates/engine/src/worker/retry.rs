//! When a connection that could not be opened is tried again.

use brunt_io::backend::{ClientBackend, Slot};

use super::connections::{RETRY_NS_MAX, RETRY_NS_MIN};
use super::{Mode, PAUSE_LEAST_NS, Pacing, Worker};
use crate::connection::State;
use crate::protocol::ClientProtocol;

/// While no connection is open, one of them is tried again after this part of the time for which
/// that has been so: the end of an outage is known as exactly.
const PROBE_PART: u64 = 8;
impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// How long to wait after an attempt of `slot` that failed: twice as long each time. One
    /// connection of a worker that has none open finds out when the server is back.
    pub(super) fn retry_pause_ns(&self, slot: Slot, now_ns: u64) -> u64 {
        if let Some(since_ns) = self.opening.unavailable_since_ns
            && self.opening.probe == Some(slot)
            && self.timeline.mode == Mode::Load
        {
            let down_ns = now_ns.saturating_sub(since_ns);
            return (down_ns / PROBE_PART).clamp(RETRY_NS_MIN, RETRY_NS_MAX);
        }
        let attempts = self.connections[slot].attempts;
        (RETRY_NS_MIN << attempts.min(16)).min(RETRY_NS_MAX)
    }

    /// The server is back: what waits for its next attempt need not wait as long as it was to.
    pub(super) fn retry_soon(&mut self, now_ns: u64) {
        if let Pacing::Sessions(_) = self.pacing {
            return;
        }
        for slot in self.connections.slots() {
            let connection = &mut self.connections[slot];
            if let State::Down { retry_ns } = &mut connection.state
                && *retry_ns < u64::MAX
            {
                *retry_ns = now_ns.min(*retry_ns);
                connection.attempts = 0;
                let at_ns = *retry_ns;
                self.connections.arm(slot, at_ns);
            }
        }
    }

    /// The connection waits no longer for its next attempt, or there will be none: until now brunt
    /// could do nothing for it. After its pause that is so while the worker is not run by a machine
    /// that is busy with other things.
    pub(super) fn stop_awaiting_retry(&mut self, slot: Slot, now_ns: u64) {
        let thinks = self.thinks_first(slot);
        let connection = &mut self.connections[slot];
        let since_ns = std::mem::replace(&mut connection.waiting_since_ns, u64::MAX);
        if let State::Down { retry_ns } = connection.state
            && since_ns < u64::MAX
        {
            let excused_until_ns = retry_ns.saturating_add(PAUSE_LEAST_NS);
            let until_ns = now_ns.min(excused_until_ns);
            let recorder = &mut self.accounting.recorder;
            match thinks && connection.attempts == 0 {
                true => recorder.thought(since_ns, until_ns),
                false => recorder.retry_awaited(since_ns, until_ns),
            }
        }
    }
}
