//! Replies of a worker: received over HTTP/1.1, recorded, failed.

use brunt_load::Spin;
use brunt_measure::{Answer, FailureKind, Instants, Issue, Parts};

use super::{Speech, Worker};
use crate::backend::{Backend, HandOver, Slot};
use crate::connection::{Dialogue, State};
use crate::failure;
use crate::request::EncodedRequest;

/// When received bytes were where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    /// Their last byte reached this machine, by the kernel's stamp. Absent on connections without
    /// stamps.
    pub(super) stamp_ns: Option<u64>,
    /// The worker had them.
    pub(super) received_ns: u64,
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
        match self.speech {
            Speech::Http1 { .. } => self.receive_http1(slot, reception),
            Speech::Http2 { .. } => self.receive_http2(slot, reception),
        }
    }

    fn receive_http1(&mut self, slot: Slot, reception: Reception) {
        let index = slot.0 as usize;
        let total = self.backend.received().len();
        let (mut taken, mut was_answered) = (0, false);
        let mut now_ns = reception.received_ns;
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
            let (
                Dialogue::Http1 { parser, oldest },
                Speech::Http1 { limits, .. },
                EncodedRequest::Http1(request),
            ) = (&mut connection.dialogue, &self.speech, &*self.task.request)
            else {
                return;
            };
            if parser.pending_bytes() == 0 {
                connection.reply_from_ns = reception.received_ns;
            }
            let bytes = &self.backend.received()[taken..];
            match parser.receive(bytes, limits, request.is_head()) {
                Ok(progress) => {
                    taken += progress.consumed;
                    let Some(reply) = progress.reply else {
                        continue;
                    };
                    let place = *oldest;
                    *oldest = (place + 1) % self.task.depth;
                    if reception.stamp_ns.is_some() {
                        now_ns = self.backend.now_ns();
                    }
                    let first_byte_ns = connection.reply_from_ns;
                    let answer = answer_of(&reply, first_byte_ns);
                    self.replied_http1(index, place, reception, now_ns, &answer);
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
        self.go_on(slot, reception, now_ns, was_answered);
    }

    /// Everything that came is taken: the connection is used again, or replaced.
    pub(super) fn go_on(
        &mut self,
        slot: Slot,
        reception: Reception,
        now_ns: u64,
        has_more_room: bool,
    ) {
        let connection = &self.connections[slot.0 as usize];
        if connection.under_way == 0 && connection.requests_left == 0 {
            // In HTTP/1.1, the server was asked to close and did not say that it will.
            self.replace(slot, now_ns);
        } else if has_more_room {
            let free_ns = reception.stamp_ns.unwrap_or(reception.received_ns);
            self.available(slot, free_ns, now_ns);
        }
    }

    fn replied_http1(
        &mut self,
        index: usize,
        place: u32,
        reception: Reception,
        done_ns: u64,
        answer: &Answer,
    ) {
        let issue = self.take_issue(index, place);
        if self.replied(index, issue, done_ns, answer) && self.task.depth == 1 {
            // Pipelined requests share a send, so their parts cannot be told apart.
            let free_ns = self.connections[index].free_ns;
            let hand_over = self.backend.handed_over(Slot(index as u32));
            self.split(issue, reception, done_ns, free_ns, hand_over);
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
            self.recorder.reply(issue, done_ns, answer);
        } else {
            let bytes = answer.head_bytes + answer.body_bytes;
            self.progress.failures += 1;
            self.recorder
                .request_failed(issue, done_ns, FailureKind::TimedOut, bytes);
        }
        let connection = &mut self.connections[index];
        connection.has_replied = true;
        if let Some(due_ns) = connection.session_due_ns.take() {
            self.recorder.first_reply(due_ns, done_ns);
        }
        is_in_time && answer.status < 400
    }

    /// Records the parts of a response time where the kernel's stamps tell them.
    pub(super) fn split(
        &mut self,
        issue: Issue,
        reception: Reception,
        done_ns: u64,
        free_ns: u64,
        hand_over: Option<HandOver>,
    ) {
        let (Some(arrived_ns), Some(hand_over)) = (reception.stamp_ns, hand_over) else {
            return;
        };
        let parts = Parts::of(&Instants {
            due_ns: issue.due_ns,
            free_ns,
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
        let index = slot.0 as usize;
        if let Dialogue::Http1 { parser, .. } = &mut self.connections[index].dialogue {
            parser.reset();
        }
        self.fail_all(index, now_ns, FailureKind::Unanswered);
        self.replace(slot, now_ns);
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
            self.recorder.closed_idle(now_ns);
            self.replace(slot, now_ns);
            return;
        }
        let ended = match &mut connection.dialogue {
            Dialogue::Http1 { parser, oldest } => parser.end().map(|reply| (reply, *oldest)),
            Dialogue::Http2(_) => {
                self.streams_cut(index, now_ns);
                self.replace(slot, now_ns);
                return;
            }
        };
        match ended {
            Ok((Some(reply), place)) => {
                // The end of a connection has no stamp.
                let reception = Reception {
                    stamp_ns: None,
                    received_ns: now_ns,
                };
                if let Dialogue::Http1 { oldest, .. } = &mut connection.dialogue {
                    *oldest = (place + 1) % self.task.depth;
                }
                let answer = answer_of(&reply, connection.reply_from_ns);
                self.replied_http1(index, place, reception, now_ns, &answer);
                self.closed_by_reply(slot, now_ns, 0);
            }
            Ok((None, _)) => {
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
        if let State::Greeting { .. } = self.connections[index].state {
            self.greeting_failed(slot, now_ns, FailureKind::HandshakeCut);
            return;
        }
        if self.connections[index].under_way == 0 {
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

    /// The oldest request under way has no reply in time, nor have those behind it in HTTP/1.1.
    pub(super) fn time_out(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        if matches!(self.speech, Speech::Http2 { .. }) && self.cancel_late(slot, now_ns) {
            return;
        }
        self.fail_all(index, now_ns, FailureKind::TimedOut);
        self.replace(slot, now_ns);
    }
}

fn answer_of(reply: &brunt_proto::http1::Reply, first_byte_ns: u64) -> Answer {
    Answer {
        status: reply.status,
        retry_after: reply.retry_after,
        interim: reply.interim,
        head_bytes: reply.head_bytes,
        body_bytes: reply.body_bytes,
        first_byte_ns,
    }
}
