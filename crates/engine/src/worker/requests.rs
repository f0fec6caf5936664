//! Requests of a worker: drawn, sent, kept until they are answered.

use brunt_load::Spin;
use brunt_measure::Issue;

use super::{Mode, Pacing, Worker};
use crate::backend::{Backend, Slot};
use crate::connection::State;
use crate::protocol::{ClientProtocol, FREE_PLACE, Next};

impl<B: Backend, P: ClientProtocol> Worker<B, P> {
    /// What was asked to be sent on the connection was taken.
    pub(super) fn sent(&mut self, slot: Slot, now_ns: u64) {
        self.connections[slot.0 as usize].sending = false;
        if P::WRITES_AHEAD {
            self.sent_ahead(slot);
            return;
        }
        let connection = &self.connections[slot.0 as usize];
        // If the reply was seen first, it has been free since then.
        let free_ns = match connection.in_flight {
            0 => connection.free_ns,
            _ => now_ns,
        };
        match self.pacing {
            Pacing::Closed | Pacing::Sessions(_) => self.feed(slot, now_ns),
            Pacing::Open(_) => self.available(slot, free_ns, now_ns),
        }
    }

    /// The slot became free, or may carry one more request, at `free_ns`.
    pub(super) fn available(&mut self, slot: Slot, free_ns: u64, now_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        match self.pacing {
            Pacing::Open(_) => {
                if connection.in_flight < connection.depth {
                    connection.free_ns = free_ns;
                }
                self.freed(slot, free_ns);
                self.serve(now_ns);
            }
            Pacing::Sessions(_) if connection.state != State::Open => {
                connection.free_ns = free_ns;
                self.freed(slot, free_ns);
                if self.mode == Mode::Load {
                    self.serve(now_ns);
                }
            }
            Pacing::Closed | Pacing::Sessions(_) => {
                connection.free_ns = free_ns;
                self.feed(slot, now_ns);
            }
        }
    }

    /// Sends as many requests as the connection may have in flight, in a closed loop.
    pub(super) fn feed(&mut self, slot: Slot, now_ns: u64) {
        if self.mode != Mode::Load || now_ns >= self.window_end_ns {
            return;
        }
        let connection = &mut self.connections[slot.0 as usize];
        let is_allowed = slot.0 < self.slots_allowed;
        if !connection.may_write() || connection.state != State::Open || !is_allowed {
            return;
        }
        let thinks = self.task.think_time.mean_ns > 0;
        let count = connection.room();
        if count == 0 || thinks && connection.in_flight > 0 {
            return;
        }
        let due_ns = self.resume_ns(slot);
        if now_ns < due_ns {
            self.arm(slot, due_ns);
            return;
        }
        let count = self.draw(now_ns, count);
        if count == 0 {
            if let Some(backlog) = self.backlog() {
                // There is no request for the connections that are still to come.
                backlog.stop();
            }
            return;
        }
        let connection = &self.connections[slot.0 as usize];
        if connection.is_stamp_known && connection.has_ended_one {
            // Since when it could have been sent is known by the kernel's stamp alone.
            self.recorder.lag(now_ns, now_ns.saturating_sub(due_ns));
        }
        let issue = Issue {
            due_ns: now_ns,
            sent_ns: now_ns,
            request: 0,
        };
        self.send(slot, issue, count as u32);
    }

    /// From when on the connection may send again, in a closed loop.
    pub(super) fn resume_ns(&self, slot: Slot) -> u64 {
        let connection = &self.connections[slot.0 as usize];
        connection.free_ns.saturating_add(connection.think_ns)
    }

    /// Takes up to `count` requests that are due at `due_ns` from what may still be sent.
    pub(super) fn draw(&mut self, due_ns: u64, count: u64) -> u64 {
        let Some(budget) = &self.task.budget else {
            return count;
        };
        if due_ns < self.measure_from_ns {
            return count;
        }
        while self.quota < count {
            match budget.draw() {
                0 => break,
                drawn => self.quota += drawn,
            }
        }
        let count = count.min(self.quota);
        self.quota -= count;
        count
    }

    /// Sends `count` requests on a connection that has room for them.
    pub(super) fn send(&mut self, slot: Slot, issue: Issue, count: u32) {
        let connection = &mut self.connections[slot.0 as usize];
        connection.requests_left -= u64::from(count);
        connection.is_used = true;
        if self.task.think_time.mean_ns > 0 {
            connection.think_ns = self.think_times.next_ns();
        }
        let closes = connection.requests_left == 0;
        let free_ns = match self.pacing {
            Pacing::Open(_) => connection.punctual_free_ns,
            Pacing::Closed | Pacing::Sessions(_) => connection.free_ns,
        };
        self.write_to(slot);
        let connection = &mut self.connections[slot.0 as usize];
        let first_place = slot.0 as usize * self.task.depth as usize;
        for behind in (0..count).rev() {
            let request = self.requests.next_id();
            let next = Next {
                request,
                behind,
                closes,
            };
            let out = self.output.out();
            let place = self.protocol.request(&mut connection.protocol, next, out);
            let issue = Issue {
                request: request.0,
                ..issue
            };
            self.places[first_place + place as usize] = issue;
            self.recorder.sent_by_name(issue);
            if let Some(sends) = connection.sends() {
                sends.written(place, free_ns);
            }
        }
        connection.in_flight += count;
        self.in_flight += u64::from(count);
        let bytes = if P::WRITES_AHEAD { 0 } else { self.hand_over() };
        self.recorder.sent(issue, count, bytes);
        if self.task.spin == Spin::Auto {
            self.expectation.sent(issue.sent_ns, count);
        }
        self.arm(slot, issue.due_ns + self.task.timeout_ns);
        if self.busy_ns > 0 {
            self.backend.work(self.busy_ns * u64::from(count));
        }
    }

    /// The request in `place` is no longer in flight.
    pub(super) fn take(&mut self, index: usize, place: u32) -> Issue {
        self.connections[index].in_flight -= 1;
        self.in_flight -= 1;
        let place = index * self.task.depth as usize + place as usize;
        std::mem::replace(&mut self.places[place], FREE_PLACE)
    }

    /// Takes a request out of a connection that is lost, with the bytes of its incomplete response.
    pub(super) fn take_any(&mut self, index: usize) -> Option<(Issue, u64)> {
        let connection = &mut self.connections[index];
        if connection.in_flight == 0 {
            return None;
        }
        let (place, discarded_bytes) = self.protocol.abandon(&mut connection.protocol)?;
        Some((self.take(index, place), discarded_bytes))
    }

    /// When the first of the requests in flight was due; [`u64::MAX`] for none.
    pub(super) fn first_due_ns(&self, index: usize) -> u64 {
        let due = self.places(index).iter().map(|place| place.due_ns);
        due.min().unwrap_or(u64::MAX)
    }

    /// The places of a connection.
    pub(super) fn places(&self, index: usize) -> &[Issue] {
        let depth = self.task.depth as usize;
        &self.places[index * depth..(index + 1) * depth]
    }

    pub(super) fn is_stamped(&self, slot: Slot) -> bool {
        self.task
            .stamps_every
            .is_some_and(|every| slot.0.is_multiple_of(every.get()))
    }
}
