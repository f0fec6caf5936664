//! Replies of a worker, whatever the protocol: taken, recorded, failed.

use brunt_load::Spin;
use brunt_measure::{Answer, FailureKind, Instants, Issue, Parts};

use super::{Speech, Worker};
use crate::backend::{Backend, Slot};
use crate::connection::{State, StreamSend};

/// When received bytes were where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    /// Their last byte reached this machine, by the kernel's stamp. Absent on connections without
    /// stamps.
    pub(super) stamp_ns: Option<u64>,
    /// The worker had them.
    pub(super) received_ns: u64,
}

impl Reception {
    /// Since when what they answer is no longer under way.
    pub(super) fn free_ns(&self) -> u64 {
        self.stamp_ns.unwrap_or(self.received_ns)
    }
}

/// The mean of the latest values, which count for less the older they are; 0 before the first.
fn moving_mean(mean_ns: u64, latest_ns: u64) -> u64 {
    match mean_ns {
        0 => latest_ns,
        _ => mean_ns - mean_ns / 8 + latest_ns / 8,
    }
}

impl<B: Backend> Worker<B> {
    pub(super) fn receive(&mut self, slot: Slot, received_ns: u64) {
        let bytes = self.backend.received().len() as u64;
        let reception = Reception {
            stamp_ns: self.backend.received_stamp_ns(),
            received_ns,
        };
        self.take_overhead(slot, received_ns);
        self.recorder.received(received_ns, bytes);
        let connection = &mut self.connections[slot.0 as usize];
        connection.received_bytes += bytes;
        connection.heard_ns = received_ns;
        connection.is_stamp_known = reception.stamp_ns.is_some();
        match self.speech {
            Speech::Http1 { .. } => self.receive_http1(slot, reception),
            Speech::Http2 { .. } => self.receive_http2(slot, reception),
        }
    }

    /// Everything that came is taken: the connection, with room since `free_ns` if it
    /// `has_more_room`, is used again, or replaced.
    pub(super) fn go_on(&mut self, slot: Slot, free_ns: u64, now_ns: u64, has_more_room: bool) {
        let connection = &self.connections[slot.0 as usize];
        if connection.under_way == 0 && connection.requests_left == 0 {
            // In HTTP/1.1, the server was asked to close and did not say that it will.
            self.replace(slot, now_ns);
            return;
        }
        if connection.is_stuck() {
            self.arm(slot, now_ns.saturating_add(self.task.timeout_ns));
        }
        if has_more_room {
            self.available(slot, free_ns, now_ns);
        }
    }

    /// The request is answered. Gives whether the reply is in the response times.
    pub(super) fn replied(
        &mut self,
        index: usize,
        issue: Issue,
        done_ns: u64,
        answer: &Answer,
    ) -> bool {
        self.last_done_ns = done_ns;
        let is_in_time = done_ns.saturating_sub(issue.due_ns) <= self.task.timeout_ns;
        if is_in_time {
            if answer.status < 400 {
                self.progress.successes += 1;
            } else {
                self.progress.errors += 1;
            }
            let service_ns = done_ns.saturating_sub(issue.sent_ns);
            if self.task.spin == Spin::Auto {
                self.expectation.replied(service_ns);
            }
            self.service_ns = moving_mean(self.service_ns, service_ns);
            if !self.connections[index].has_ended_one {
                let best_ns = &mut self.recorder.record().first_service_ns_min;
                *best_ns = Some(best_ns.map_or(service_ns, |best_ns| best_ns.min(service_ns)));
            }
            self.recorder.reply(issue, done_ns, answer);
        } else {
            let bytes = answer.head_bytes + answer.body_bytes;
            self.progress.failures += 1;
            self.recorder
                .request_failed(issue, done_ns, FailureKind::TimedOut, bytes);
        }
        let connection = &mut self.connections[index];
        connection.has_ended_one = true;
        if let Some(due_ns) = connection.session_due_ns.take() {
            self.recorder.first_reply(due_ns, done_ns);
        }
        is_in_time && answer.status < 400
    }

    /// Finds the parts of a response time where the kernel's stamps tell them, and records them if
    /// the response time `is_recorded`. Gives since when the place of the request would be free,
    /// had brunt taken no time: what makes the next request there later than that is brunt's fault,
    /// and not the server's.
    pub(super) fn split(
        &mut self,
        issue: Issue,
        reception: Reception,
        done_ns: u64,
        send: StreamSend,
        is_recorded: bool,
    ) -> u64 {
        let free_ns = reception.free_ns();
        let (Some(arrived_ns), Some(hand_over)) = (reception.stamp_ns, send.hand_over) else {
            return free_ns;
        };
        let (parts, was_moved) = Parts::of(&Instants {
            due_ns: issue.due_ns,
            free_ns: send.free_ns,
            send_from_ns: hand_over.from_ns,
            send_to_ns: hand_over.to_ns,
            arrived_ns,
            received_ns: reception.received_ns,
            done_ns,
        });
        if is_recorded {
            self.recorder.split(issue.due_ns, (parts, was_moved));
        }
        let answering_ns = parts.send_ns.saturating_add(parts.server_ns);
        self.answering_ns = moving_mean(self.answering_ns, answering_ns);
        issue.due_ns.saturating_add(parts.rest_ns())
    }

    /// The server closed its side.
    pub(super) fn ended(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        if let State::Greeting { .. } = connection.state {
            self.greeting_failed(slot, now_ns, FailureKind::HandshakeCut);
            return;
        }
        if connection.under_way == 0 {
            connection.late_ns = 0;
            self.recorder.closed_idle(now_ns);
            self.replace(slot, now_ns);
            return;
        }
        match self.speech {
            Speech::Http1 { .. } => self.reply_ended(slot, now_ns),
            Speech::Http2 { .. } => {
                self.streams_cut(index, now_ns);
                self.replace(slot, now_ns);
            }
        }
    }

    /// The connection broke: `kind` if a request was under way, else `idle`.
    pub(super) fn broken(&mut self, slot: Slot, now_ns: u64, kind: FailureKind, idle: FailureKind) {
        let index = slot.0 as usize;
        if let State::Greeting { .. } = self.connections[index].state {
            let kind = match kind {
                // The server refuses what it was shown, such as no certificate.
                FailureKind::TlsBroken => FailureKind::TlsAlert,
                _ => FailureKind::HandshakeCut,
            };
            self.greeting_failed(slot, now_ns, kind);
            return;
        }
        if self.connections[index].under_way == 0 {
            self.connections[index].late_ns = 0;
            self.progress.failures += 1;
            self.recorder.failed(now_ns, idle, 0);
        } else {
            self.fail_all(index, now_ns, kind);
        }
        self.replace(slot, now_ns);
    }

    /// Fails every request under way: in HTTP/1.1 the oldest with `kind` and the others, which
    /// wait behind it, as unanswered; in HTTP/2 all with `kind`. The bytes of the incomplete
    /// replies are lost.
    pub(super) fn fail_all(&mut self, index: usize, now_ns: u64, kind: FailureKind) {
        let mut kind = kind;
        while let Some((issue, discarded_bytes)) = self.take_any(index) {
            self.fail(issue, now_ns, kind, discarded_bytes);
            if let Speech::Http1 { .. } = self.speech {
                kind = FailureKind::Unanswered;
            }
        }
    }

    /// A request failed that is no longer under way.
    pub(super) fn fail(
        &mut self,
        issue: Issue,
        now_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
    ) {
        self.progress.failures += 1;
        self.recorder
            .request_failed(issue, now_ns, kind, discarded_bytes);
        self.last_done_ns = now_ns;
    }

    /// A request under way has no reply in time: nor have those behind it in HTTP/1.1.
    pub(super) fn time_out(&mut self, slot: Slot, now_ns: u64) {
        match self.speech {
            Speech::Http1 { .. } => {
                self.fail_all(slot.0 as usize, now_ns, FailureKind::TimedOut);
                self.replace(slot, now_ns);
            }
            Speech::Http2 { .. } => self.cancel_late(slot, now_ns),
        }
    }
}
