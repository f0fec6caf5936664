//! Driving the connections that speak WebSocket.

use brunt_io::backend::{ServerBackend, Slot};

use super::{Http, Worker};
use crate::answer::Context;
use crate::websocket::Step;

impl<B: ServerBackend> Worker<B, Http> {
    /// Takes what was received.
    pub(super) fn receive_websocket(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let bytes = self.backend.received();
        let Some(work) = &mut connection.work else {
            return;
        };
        let now_ns = self.backend.now_ns();
        let Some(websocket) = &mut work.websocket else {
            return;
        };
        let waits =
            work.wake_ns.is_some() || !work.input.rest().is_empty() || websocket.is_sending();
        if connection.link.sending || waits {
            if !work.keep(bytes, now_ns, &self.service.room) {
                self.overflow(slot);
            }
            return;
        }
        work.noticed_ns = now_ns;
        self.service
            .batch
            .fit_into(self.service.output.grant_bytes());
        let clock = || self.backend.now_ns();
        let context = Context::new(&self.shared, &self.service.counters, Some(now_ns), &clock);
        let (taken, step) =
            websocket.advance(bytes, &mut self.service.batch, &self.service.room, &context);
        if !websocket.is_in_message() {
            connection.link.moved = self.calendar.page();
        }
        let rest = &bytes[taken..];
        if !rest.is_empty() && !work.input.keep(rest, &self.service.room) {
            self.service.batch.clear();
            return self.overflow(slot);
        }
        self.follow_websocket(slot, step);
    }

    /// Goes on with what waits; no send is in flight.
    pub(super) fn drive_websocket(&mut self, slot: Slot) {
        let Some(work) = &mut self.connections[slot.0 as usize].work else {
            return;
        };
        let Some(websocket) = &mut work.websocket else {
            return;
        };
        self.service
            .batch
            .fit_into(self.service.output.grant_bytes());
        let noticed_ns = work.noticed_ns;
        let clock = || self.backend.now_ns();
        let context = Context::new(
            &self.shared,
            &self.service.counters,
            Some(noticed_ns),
            &clock,
        );
        let rest = work.input.rest();
        let (taken, step) =
            websocket.advance(rest, &mut self.service.batch, &self.service.room, &context);
        work.input.take(taken);
        self.follow_websocket(slot, step);
    }

    fn follow_websocket(&mut self, slot: Slot, step: Step) {
        let connection = &mut self.connections[slot.0 as usize];
        match step {
            Step::Overflow => {
                self.service.batch.clear();
                return self.overflow(slot);
            }
            Step::Pattern { start, end } => return self.send_pattern(slot, start, end),
            Step::End(after) => connection.after = after,
            Step::Answer { due_ns } => {
                if let Some(work) = &mut connection.work {
                    work.due_ns = Some(due_ns);
                }
            }
            Step::Input | Step::Wait { .. } | Step::Send => {}
        }
        if self.flush(slot) {
            return;
        }
        let connection = &self.connections[slot.0 as usize];
        match step {
            Step::Wait { until_ns } => self.wake_at(slot, Some(until_ns)),
            Step::End(_) => self.close(slot),
            _ if connection.link.ended => self.close(slot),
            _ => {}
        }
    }
}
