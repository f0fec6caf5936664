//! Requests of a worker: drawn, sent, kept until they are answered.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_load::{RequestSource, Spin, ThinkTimes};
use brunt_record::{Answer, FailureKind, RequestTiming};

use super::responses::Reception;
use super::{Mode, Pacing, Worker};
use crate::connection::State;
use crate::protocol::{ClientProtocol, Next};

/// What may still be sent, and how.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) source: RequestSource,
    /// Requests drawn from the budget and not yet sent.
    pub(super) quota: u64,
    pub(super) think_times: ThinkTimes,
    /// Work added to each request, nanoseconds.
    pub(super) busy_ns: u64,
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// What was asked to be sent on the connection was taken.
    pub(super) fn sent(&mut self, slot: Slot, now_ns: u64) {
        self.connections[slot].sending = false;
        self.stop_blocking(slot, now_ns);
        if P::WRITES_AHEAD {
            self.resume_output(slot);
            let connection = &mut self.connections[slot].protocol;
            if let Some(answered) = self.protocol.taken(connection, now_ns) {
                self.answered_by_send(slot, now_ns, answered);
            }
            return;
        }
        let connection = &mut self.connections[slot];
        if connection.state != State::Open {
            // It was what comes before the first request.
            return;
        }
        if let Some(answered) = self.protocol.taken(&mut connection.protocol, now_ns) {
            self.answered_by_send(slot, now_ns, answered);
            return;
        }
        // If the reply was seen first, it has been free since then.
        let free_ns = match connection.in_flight {
            0 => connection.free_ns,
            _ => now_ns,
        };
        match self.pacing {
            Pacing::Held => {}
            Pacing::Closed | Pacing::Sessions(_) => self.send_next(slot, now_ns),
            Pacing::Open(_) => self.available(slot, free_ns, now_ns),
        }
    }

    /// What was sent needs no response: it is answered now, `first` before what else was sent with
    /// it.
    fn answered_by_send(&mut self, slot: Slot, now_ns: u64, first: (u32, Answer)) {
        let reception = Reception {
            stamp_ns: None,
            received_ns: now_ns,
        };
        let mut answered = Some(first);
        while let Some((place, answer)) = answered {
            self.done(slot, place, reception, now_ns, &answer);
            let connection = &mut self.connections[slot].protocol;
            answered = self.protocol.taken(connection, now_ns);
        }
        self.reuse(slot, now_ns, now_ns, true);
    }

    /// The slot became free, or may carry one more request, at `free_ns`.
    pub(super) fn available(&mut self, slot: Slot, free_ns: u64, now_ns: u64) {
        let connection = &mut self.connections[slot];
        match self.pacing {
            Pacing::Open(_) => {
                if connection.in_flight < connection.depth {
                    connection.free_ns = free_ns;
                }
                self.mark_free_since(slot, free_ns);
                self.assign_waiting(now_ns);
            }
            Pacing::Sessions(_) if connection.state != State::Open => {
                connection.free_ns = free_ns;
                self.mark_free_since(slot, free_ns);
                if self.timeline.mode == Mode::Load {
                    self.assign_waiting(now_ns);
                }
            }
            Pacing::Closed | Pacing::Sessions(_) => {
                connection.free_ns = free_ns;
                self.send_next(slot, now_ns);
            }
            Pacing::Held => {}
        }
    }

    /// Sends as many requests as the connection may have in flight, in a closed loop.
    pub(super) fn send_next(&mut self, slot: Slot, now_ns: u64) {
        let sends = self.timeline.mode == Mode::Load && !matches!(self.pacing, Pacing::Held);
        if !sends || now_ns >= self.timeline.window_end_ns {
            return;
        }
        // A server that serves one connection after the other would wait for its first request.
        if self.pauses(slot) && self.connections[slot].is_used {
            return;
        }
        let connection = &mut self.connections[slot];
        if !connection.may_write() || connection.state != State::Open {
            return;
        }
        if P::IS_STREAM {
            self.send_stream(slot, now_ns);
            return;
        }
        if self.generated.is_some() {
            self.send_generated(slot, now_ns);
            return;
        }
        let thinks = self.task.think_time.mean_ns > 0;
        let count = connection.room();
        if count == 0 || thinks && connection.in_flight > 0 {
            return;
        }
        let due_ns = self.resume_ns(slot);
        if now_ns < due_ns {
            self.connections.arm(slot, due_ns);
            return;
        }
        let count = self.take_quota(now_ns, count);
        if count == 0 {
            if let Some(backlog) = self.backlog() {
                // There is no request for the connections that are still to come.
                backlog.stop();
            }
            return;
        }
        let connection = &self.connections[slot];
        if connection.is_stamp_known && connection.has_ended_one {
            // Since when it could have been sent is known by the kernel's stamp alone.
            self.accounting
                .recorder
                .lag(now_ns, now_ns.saturating_sub(due_ns));
        }
        let timing = RequestTiming {
            due_ns: now_ns,
            sent_ns: now_ns,
            request: 0,
        };
        self.send(slot, timing, count as u32);
    }

    /// From when on the connection may send again, in a closed loop.
    pub(super) fn resume_ns(&self, slot: Slot) -> u64 {
        let connection = &self.connections[slot];
        connection.free_ns.saturating_add(connection.think_ns)
    }

    /// Takes up to `count` requests that are due at `due_ns` from what may still be sent.
    pub(super) fn take_quota(&mut self, due_ns: u64, count: u64) -> u64 {
        let Some(budget) = &self.task.budget else {
            return count;
        };
        if due_ns < self.timeline.measure_from_ns {
            return count;
        }
        while self.supply.quota < count {
            match budget.draw() {
                0 => break,
                drawn => self.supply.quota += drawn,
            }
        }
        let count = count.min(self.supply.quota);
        self.supply.quota -= count;
        count
    }

    /// A connection of a closed loop failed: where it has a part of its own of the run's requests,
    /// the rest of that is not sent. Gives whether it has.
    pub(super) fn give_up_part(&mut self, slot: Slot) -> bool {
        let gives_up = self.task.part.is_some() && matches!(self.pacing, Pacing::Closed);
        if gives_up {
            let left = std::mem::take(&mut self.connections[slot].part_left);
            let taken = self.take_quota(u64::MAX, left);
            self.accounting.recorder.record().unsent += taken;
        }
        gives_up
    }

    /// Gives back what was taken at `due_ns` and is not sent.
    pub(super) fn give_back_quota(&mut self, due_ns: u64, count: u64) {
        if self.task.budget.is_some() && due_ns >= self.timeline.measure_from_ns {
            self.supply.quota += count;
        }
    }

    /// Sends `count` requests on a connection that has room for them.
    pub(super) fn send(&mut self, slot: Slot, timing: RequestTiming, count: u32) {
        if P::CONNECTS {
            return self.attempt(slot, timing);
        }
        let connection = &mut self.connections[slot];
        let sent = match self.task.part {
            // One that goes on in the place of another one goes on with what that was at.
            Some(_) => connection.part_sent,
            None => self.task.requests_per_connection - connection.requests_left,
        };
        connection.requests_left -= u64::from(count);
        if self.task.part.is_some() && timing.due_ns >= self.timeline.measure_from_ns {
            connection.part_left -= u64::from(count);
            connection.part_sent += u64::from(count);
        }
        connection.is_used = true;
        if self.task.think_time.mean_ns > 0 {
            connection.think_ns = self.supply.think_times.next_ns();
        }
        let closes = connection.requests_left == 0;
        let free_ns = match self.pacing {
            Pacing::Open(_) => connection.punctual_free_ns,
            Pacing::Closed | Pacing::Held | Pacing::Sessions(_) => connection.free_ns,
        };
        self.write_to(slot);
        let (connection, places) = self.connections.start_requests(slot, count);
        for behind in (0..count).rev() {
            let before = sent + u64::from(count - 1 - behind);
            let request = self.supply.source.next_id(before);
            let next = Next {
                request,
                behind,
                closes,
                now_ns: timing.sent_ns,
            };
            let out = self.output.out();
            let place = self.protocol.request(&mut connection.protocol, next, out);
            let timing = RequestTiming {
                request: request.0,
                ..timing
            };
            places[place as usize] = timing;
            self.accounting.recorder.sent_by_name(timing);
            if let Some(sends) = connection.sends() {
                sends.written(place, free_ns);
            }
        }
        let bytes = if P::WRITES_AHEAD {
            0
        } else {
            self.send_output()
        };
        self.account_sent(slot, timing, count, bytes);
    }

    /// Accounts for `count` requests that were sent, and when they are late.
    #[inline]
    pub(super) fn account_sent(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        count: u32,
        bytes: u64,
    ) {
        self.accounting.recorder.sent(timing, count, bytes);
        if self.task.spin == Spin::Auto {
            self.wake_ups.expectation.sent(timing.sent_ns, count);
        }
        self.connections
            .arm(slot, timing.due_ns + self.task.timeout_ns);
        if self.supply.busy_ns > 0 {
            self.backend.work(self.supply.busy_ns * u64::from(count));
        }
    }

    /// Takes a request out of a connection that is lost, with the bytes of its incomplete response;
    /// without a kind of failure the connection is not, but the run over.
    pub(super) fn take_any(
        &mut self,
        slot: Slot,
        kind: Option<FailureKind>,
    ) -> Option<(RequestTiming, u64)> {
        let connection = &mut self.connections[slot];
        if connection.in_flight == 0 {
            return None;
        }
        let (place, discarded_bytes) = self.protocol.abandon(&mut connection.protocol)?;
        Some((self.end_request(slot, place, kind), discarded_bytes))
    }

    pub(super) fn is_stamped(&self, slot: Slot) -> bool {
        self.task
            .stamps_every
            .is_some_and(|every| slot.0.is_multiple_of(every.get()))
    }
}
