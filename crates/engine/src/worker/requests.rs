//! Requests of a worker: sent, answered, failed.

use brunt_load::Spin;
use brunt_measure::{Answer, FailureKind, Instants, Issue, Parts};
use brunt_proto::http1::Reply;

use super::{Mode, Pacing, Worker};
use crate::backend::{Backend, Outgoing, Slot};
use crate::connection::State;
use crate::failure;

/// When received bytes were where.
#[derive(Clone, Copy, Debug)]
struct Reception {
    /// Their last byte reached this machine, by the kernel's stamp. Absent on connections without
    /// stamps.
    stamp_ns: Option<u64>,
    /// The worker had them.
    received_ns: u64,
}

impl<B: Backend> Worker<B> {
    /// What was asked to be sent on the connection was taken.
    pub(super) fn sent(&mut self, slot: Slot, now_ns: u64) {
        self.connections[slot.0 as usize].sending = false;
        match self.pacing {
            Pacing::Closed | Pacing::Sessions(_) => self.feed(slot, now_ns),
            Pacing::Open(_) => self.available(slot, now_ns, now_ns),
        }
    }

    /// The slot became free, or may carry one more request, at `free_ns`.
    pub(super) fn available(&mut self, slot: Slot, free_ns: u64, now_ns: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        match self.pacing {
            Pacing::Open(_) => {
                if connection.under_way < self.task.depth {
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

    /// Sends as many requests as the connection may have under way, in a closed loop.
    pub(super) fn feed(&mut self, slot: Slot, now_ns: u64) {
        if self.mode != Mode::Load || now_ns >= self.window_end_ns {
            return;
        }
        let connection = &mut self.connections[slot.0 as usize];
        let is_allowed = slot.0 < self.slots_allowed;
        if connection.sending || connection.state != State::Open || !is_allowed {
            return;
        }
        let thinks = self.task.think_time_ns > 0;
        let room = u64::from(self.task.depth - connection.under_way);
        let count = room.min(connection.requests_left);
        if count == 0 || thinks && connection.under_way > 0 {
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
        let is_stamped = self.is_stamped(slot);
        let connection = &mut self.connections[slot.0 as usize];
        if is_stamped && connection.has_replied {
            // Since when it could have been sent is known by the kernel's stamp alone.
            self.recorder.lag(now_ns, now_ns.saturating_sub(due_ns));
        }
        let issue = Issue {
            due_ns: now_ns,
            sent_ns: now_ns,
        };
        self.send(slot, issue, count as u32);
    }

    /// From when on the connection may send again, in a closed loop.
    pub(super) fn resume_ns(&self, slot: Slot) -> u64 {
        let connection = &self.connections[slot.0 as usize];
        if connection.has_replied {
            connection.free_ns.saturating_add(self.task.think_time_ns)
        } else {
            0
        }
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
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        connection.requests_left -= u64::from(count);
        let closing = connection.requests_left == 0;
        let (start, end) = self.task.request.range(self.task.depth, count, closing);
        connection.sending = true;
        let base = index * self.task.depth as usize;
        for place in connection.under_way..connection.under_way + count {
            let place = (connection.oldest + place) % self.task.depth;
            self.issues[base + place as usize] = issue;
        }
        let was_idle = connection.under_way == 0;
        connection.under_way += count;
        self.under_way += u64::from(count);
        self.recorder.sent(issue, count, u64::from(end - start));
        if self.task.spin == Spin::Auto {
            self.expectation.sent(issue.sent_ns, count);
        }
        if was_idle {
            self.arm(slot, issue.due_ns + self.task.timeout_ns);
        }
        if self.busy_ns > 0 {
            self.backend.work(self.busy_ns * u64::from(count));
        }
        self.backend.send(
            slot,
            Outgoing::Shared {
                payload: self.payload,
                start,
                end,
            },
        );
    }

    pub(super) fn receive(&mut self, slot: Slot, received_ns: u64) {
        let index = slot.0 as usize;
        let total = self.backend.received().len();
        let reception = Reception {
            stamp_ns: self.backend.received_stamp_ns(),
            received_ns,
        };
        self.recorder.received(received_ns, total as u64);
        self.connections[index].received_bytes += total as u64;
        let (mut taken, mut was_answered) = (0, false);
        let mut now_ns = received_ns;
        while taken < total {
            let connection = &mut self.connections[index];
            if connection.under_way == 0 {
                let rest = (total - taken) as u64;
                self.progress.failures += 1;
                self.recorder
                    .failed(now_ns, FailureKind::UnexpectedBytes, rest);
                self.replace(slot, now_ns);
                return;
            }
            if connection.parser.pending_bytes() == 0 {
                connection.reply_from_ns = received_ns;
            }
            let bytes = &self.backend.received()[taken..];
            match connection
                .parser
                .receive(bytes, &self.limits, self.task.request.is_head())
            {
                Ok(progress) => {
                    taken += progress.consumed;
                    let Some(reply) = progress.reply else {
                        continue;
                    };
                    if reception.stamp_ns.is_some() {
                        now_ns = self.backend.now_ns();
                    }
                    self.replied(index, reception, now_ns, &reply);
                    was_answered = true;
                    if !reply.keep_alive {
                        self.closed_by_reply(slot, now_ns, (total - taken) as u64);
                        return;
                    }
                }
                Err(error) => {
                    self.fail_all(index, now_ns, failure::of_reply(error));
                    self.replace(slot, now_ns);
                    return;
                }
            }
        }
        let connection = &self.connections[index];
        if connection.under_way == 0 && connection.requests_left == 0 {
            // The server was asked to close and did not say that it will.
            self.replace(slot, now_ns);
        } else if was_answered {
            let free_ns = reception.stamp_ns.unwrap_or(received_ns);
            self.available(slot, free_ns, now_ns);
        }
    }

    /// The oldest request is answered.
    fn replied(&mut self, index: usize, reception: Reception, done_ns: u64, reply: &Reply) {
        let Some(issue) = self.pop_issue(index) else {
            return;
        };
        let answer = Answer {
            status: reply.status,
            retry_after: reply.retry_after,
            interim: reply.interim,
            head_bytes: reply.head_bytes,
            body_bytes: reply.body_bytes,
            first_byte_ns: self.connections[index].reply_from_ns,
        };
        self.last_done_ns = done_ns;
        if done_ns.saturating_sub(issue.due_ns) > self.task.timeout_ns {
            let bytes = reply.head_bytes + reply.body_bytes;
            self.progress.failures += 1;
            self.recorder
                .request_failed(issue, done_ns, FailureKind::TimedOut, bytes);
        } else {
            self.progress.replies += 1;
            let service_ns = done_ns.saturating_sub(issue.sent_ns);
            if self.task.spin == Spin::Auto {
                self.expectation.replied(service_ns);
            }
            self.service_ns = match self.service_ns {
                0 => service_ns,
                mean_ns => mean_ns - mean_ns / 8 + service_ns / 8,
            };
            if !self.connections[index].has_replied {
                let best_ns = &mut self.recorder.record().first_service_ns_min;
                *best_ns = Some(best_ns.map_or(service_ns, |best_ns| best_ns.min(service_ns)));
            }
            self.recorder.reply(issue, done_ns, &answer);
            self.split(index, issue, reception, done_ns, reply.status);
        }
        let connection = &mut self.connections[index];
        connection.has_replied = true;
        if let Some(due_ns) = connection.session_due_ns.take() {
            self.recorder.first_reply(due_ns, done_ns);
        }
    }

    /// Records the parts of a response time where the kernel's stamps tell them. Pipelined
    /// requests share a send, so theirs cannot be told apart.
    fn split(
        &mut self,
        index: usize,
        issue: Issue,
        reception: Reception,
        done_ns: u64,
        status: u16,
    ) {
        if self.task.depth > 1 || status >= 400 {
            return;
        }
        let Some(arrived_ns) = reception.stamp_ns else {
            return;
        };
        let Some(hand_over) = self.backend.handed_over(Slot(index as u32)) else {
            return;
        };
        let parts = Parts::of(&Instants {
            due_ns: issue.due_ns,
            free_ns: self.connections[index].free_ns,
            send_from_ns: hand_over.from_ns,
            send_to_ns: hand_over.to_ns,
            arrived_ns,
            received_ns: reception.received_ns,
            done_ns,
        });
        self.recorder.split(issue.due_ns, parts);
    }

    /// The server said in a reply that it closes; `rest` bytes came after that reply.
    fn closed_by_reply(&mut self, slot: Slot, now_ns: u64, rest: u64) {
        if rest > 0 {
            self.progress.failures += 1;
            self.recorder
                .failed(now_ns, FailureKind::UnexpectedBytes, rest);
        }
        self.connections[slot.0 as usize].parser.reset();
        self.fail_all(slot.0 as usize, now_ns, FailureKind::Unanswered);
        self.replace(slot, now_ns);
    }

    /// The server closed its side.
    pub(super) fn ended(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        if connection.under_way == 0 {
            self.recorder.closed_idle(now_ns);
            self.replace(slot, now_ns);
            return;
        }
        match connection.parser.end() {
            Ok(Some(reply)) => {
                // The end of a connection has no stamp.
                let reception = Reception {
                    stamp_ns: None,
                    received_ns: now_ns,
                };
                self.replied(index, reception, now_ns, &reply);
                self.closed_by_reply(slot, now_ns, 0);
            }
            Ok(None) => {
                self.fail_all(index, now_ns, FailureKind::ClosedBeforeReply);
                self.replace(slot, now_ns);
            }
            Err(error) => {
                self.fail_all(index, now_ns, failure::of_reply(error));
                self.replace(slot, now_ns);
            }
        }
    }

    /// The connection broke: `kind` if a request was under way, else `idle`.
    pub(super) fn broken(&mut self, slot: Slot, now_ns: u64, kind: FailureKind, idle: FailureKind) {
        let index = slot.0 as usize;
        if self.connections[index].under_way == 0 {
            self.progress.failures += 1;
            self.recorder.failed(now_ns, idle, 0);
        } else {
            self.fail_all(index, now_ns, kind);
        }
        self.replace(slot, now_ns);
    }

    /// Fails every request under way: the oldest with `kind`, the others as unanswered. The bytes
    /// of the incomplete reply are lost.
    pub(super) fn fail_all(&mut self, index: usize, now_ns: u64, kind: FailureKind) {
        let mut discarded = self.connections[index].parser.pending_bytes();
        let mut kind = kind;
        while let Some(issue) = self.pop_issue(index) {
            self.progress.failures += 1;
            self.recorder
                .request_failed(issue, now_ns, kind, std::mem::take(&mut discarded));
            self.last_done_ns = now_ns;
            kind = FailureKind::Unanswered;
        }
    }

    pub(super) fn pop_issue(&mut self, index: usize) -> Option<Issue> {
        let connection = &mut self.connections[index];
        if connection.under_way == 0 {
            return None;
        }
        let place = index * self.task.depth as usize + connection.oldest as usize;
        connection.oldest = (connection.oldest + 1) % self.task.depth;
        connection.under_way -= 1;
        self.under_way -= 1;
        Some(self.issues[place])
    }

    fn is_stamped(&self, slot: Slot) -> bool {
        self.task
            .stamps_every
            .is_some_and(|every| slot.0.is_multiple_of(every.get()))
    }
}
