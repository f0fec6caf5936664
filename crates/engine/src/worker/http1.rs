//! HTTP/1.1 in a worker: requests out of the shared payload, replies in their order.

use brunt_measure::{Answer, FailureKind, Issue};
use brunt_proto::http1::Reply;

use super::replies::Reception;
use super::{Pacing, Speech, Worker};
use crate::backend::{Backend, Outgoing, Slot};
use crate::connection::{Dialogue, StreamSend};
use crate::failure;
use crate::request::EncodedRequest;

impl<B: Backend> Worker<B> {
    /// Has the backend send `count` requests; gives their bytes.
    pub(super) fn write_http1(&mut self, slot: Slot, issue: Issue, count: u32) -> u64 {
        let depth = self.task.depth;
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        let (Speech::Http1 { payload, .. }, EncodedRequest::Http1(request)) =
            (&self.speech, &*self.task.request)
        else {
            return 0;
        };
        let Dialogue::Http1 { oldest, .. } = connection.dialogue else {
            return 0;
        };
        let closing = connection.requests_left == 0;
        let (start, end) = request.range(depth, count, closing);
        connection.sending = true;
        let base = index * depth as usize;
        for place in connection.under_way..connection.under_way + count {
            let place = (oldest + place) % depth;
            self.issues[base + place as usize] = issue;
        }
        let payload = *payload;
        self.backend.send(
            slot,
            Outgoing::Shared {
                payload,
                start,
                end,
            },
        );
        u64::from(end - start)
    }

    pub(super) fn receive_http1(&mut self, slot: Slot, reception: Reception) {
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
            let (Dialogue::Http1 { parser, oldest }, EncodedRequest::Http1(request)) =
                (&mut connection.dialogue, &*self.task.request)
            else {
                return;
            };
            if parser.pending_bytes() == 0 {
                connection.reply_from_ns = reception.received_ns;
            }
            let bytes = &self.backend.received()[taken..];
            match parser.receive(bytes, &self.limits, request.is_head()) {
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
        self.go_on(slot, reception.free_ns(), now_ns, was_answered);
    }

    /// The server closed its side, with requests under way.
    pub(super) fn reply_ended(&mut self, slot: Slot, now_ns: u64) {
        let index = slot.0 as usize;
        let connection = &mut self.connections[index];
        let Dialogue::Http1 { parser, oldest } = &mut connection.dialogue else {
            return;
        };
        match parser.end() {
            Ok(Some(reply)) => {
                // The end of a connection has no stamp.
                let reception = Reception {
                    stamp_ns: None,
                    received_ns: now_ns,
                };
                let place = *oldest;
                *oldest = (place + 1) % self.task.depth;
                let answer = answer_of(&reply, connection.reply_from_ns);
                if self.backend.is_cut(slot) {
                    // It has no length of its own, and may have been cut anywhere (RFC 9112 section
                    // 9.8).
                    let issue = self.take_issue(index, place);
                    let bytes = answer.head_bytes + answer.body_bytes;
                    self.fail(issue, now_ns, FailureKind::TruncatedBody, bytes);
                } else {
                    self.replied_http1(index, place, reception, now_ns, &answer);
                }
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

    fn replied_http1(
        &mut self,
        index: usize,
        place: u32,
        reception: Reception,
        done_ns: u64,
        answer: &Answer,
    ) {
        let issue = self.take_issue(index, place);
        let is_recorded = self.replied(index, issue, done_ns, answer);
        if self.task.depth > 1 {
            // Pipelined requests share a send, so their parts cannot be told apart.
            return;
        }
        let connection = &self.connections[index];
        let is_planned = matches!(self.pacing, Pacing::Open(_));
        let send = StreamSend {
            free_ns: if is_planned {
                connection.punctual_free_ns
            } else {
                connection.free_ns
            },
            hand_over: self.backend.handed_over(Slot(index as u32)),
        };
        let punctual_free_ns = self.split(issue, reception, done_ns, send, is_recorded);
        if is_planned {
            let connection = &mut self.connections[index];
            connection.punctual_free_ns = punctual_free_ns;
            connection.late_ns = done_ns.saturating_sub(punctual_free_ns);
        }
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
}

fn answer_of(reply: &Reply, first_byte_ns: u64) -> Answer {
    Answer {
        status: reply.status,
        retry_after: reply.retry_after,
        interim: reply.interim,
        head_bytes: reply.head_bytes,
        body_bytes: reply.body_bytes,
        first_byte_ns,
    }
}
