//! Responses of a worker: taken, recorded, failed.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_load::Spin;
use brunt_record::{Answer, FailureKind, Instants, Opening, Parts, RequestTiming};

use super::{Pacing, Worker};
use crate::connection::{SendTime, State};
use crate::protocol::{Broken, ClientProtocol, Ending, Progress, ProtocolEvent};

/// The rest of a response that nobody reads is discarded where it has this many bytes: to ask for
/// that costs about as much as to receive a few thousand.
const DISCARD_BYTES_MIN: u64 = 64 * 1024;

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
    /// Since when what they answer is no longer in flight.
    pub(super) fn free_ns(&self) -> u64 {
        self.stamp_ns.unwrap_or(self.received_ns)
    }
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    pub(super) fn receive(&mut self, slot: Slot, received_ns: u64) {
        let bytes = self.backend.received().len() as u64;
        let reception = Reception {
            stamp_ns: self.backend.received_stamp_ns(),
            received_ns,
        };
        self.take_overhead(slot, received_ns);
        self.accounting.received(received_ns, bytes);
        self.note_parting(slot, received_ns);
        let connection = &mut self.connections[slot];
        connection.received_bytes += bytes;
        connection.is_stamp_known = reception.stamp_ns.is_some();
        self.take_responses(slot, reception);
    }

    /// Hands what came to the protocol, and follows what that brings about.
    fn take_responses(&mut self, slot: Slot, reception: Reception) {
        if P::WRITES_AHEAD {
            self.write_to(slot);
        }
        if P::MAY_BE_PUSHED_TO {
            let is_put_off = self.backend.is_put_off(slot);
            let connection = &mut self.connections[slot].protocol;
            self.protocol.note_put_off(connection, is_put_off);
        }
        let mut now_ns = reception.received_ns;
        let (mut taken, mut has_more_room) = (0, false);
        loop {
            let (connection, places) = self.connections.with_places(slot);
            let Progress { consumed, event } = match self.protocol.receive(
                &mut connection.protocol,
                &self.backend.received()[taken..],
                reception.received_ns,
                places,
                self.output.out(),
            ) {
                Ok(progress) => progress,
                Err(broken) => {
                    self.protocol_broken(slot, now_ns, broken);
                    return;
                }
            };
            taken += consumed;
            let Some(event) = event else {
                self.discard_unread(slot);
                break;
            };
            match event {
                ProtocolEvent::Ready => {
                    if let State::Greeting {
                        since_ns,
                        connected_ns,
                    } = connection.state
                    {
                        if let Some(capacity) = self.protocol.capacity(&connection.protocol) {
                            connection.depth = capacity.depth.min(self.task.depth);
                        }
                        self.opened(slot, now_ns, since_ns, connected_ns);
                        self.write_to(slot);
                    }
                }
                ProtocolEvent::Done {
                    place,
                    answer,
                    closes,
                } => {
                    if reception.stamp_ns.is_some() {
                        now_ns = self.backend.now_ns();
                    }
                    self.done(slot, place, reception, now_ns, &answer);
                    if closes {
                        let rest = self.backend.received().len() - taken;
                        self.closed_by_response(slot, now_ns, rest as u64);
                        return;
                    }
                    has_more_room = true;
                }
                ProtocolEvent::Failed {
                    place,
                    kind,
                    discarded_bytes,
                } => {
                    let timing = self.end_request(slot, place, Some(kind));
                    self.request_failed(slot, timing, now_ns, (kind, discarded_bytes));
                    self.places_freed(slot, 1, reception.free_ns());
                    self.connections[slot].has_ended_one = true;
                    has_more_room = true;
                }
                ProtocolEvent::GoAway => {
                    self.accounting.recorder.gone_away(now_ns);
                    self.give_up_part(slot);
                }
                ProtocolEvent::Closed(kind) => {
                    self.closed_by_protocol(slot, now_ns, kind);
                    return;
                }
            }
            if P::IN_ORDER && taken == self.backend.received().len() {
                // The end of a response is all that its bytes bring about.
                break;
            }
        }
        if self.is_flooded() {
            let flooded = Broken {
                kind: P::FLOODED,
                unexpected_bytes: 0,
            };
            self.protocol_broken(slot, now_ns, flooded);
            return;
        }
        has_more_room |= self.update_capacity(slot, now_ns);
        self.settle_overhead(slot, now_ns);
        let connection = &self.connections[slot];
        if connection.state == State::Open {
            let timeout_ns = self.protocol.next_timeout_ns(&connection.protocol);
            self.connections.arm(slot, timeout_ns);
            self.reuse(slot, reception.free_ns(), now_ns, has_more_room);
        }
    }

    /// What nobody reads of a response that is not complete, the backend need not show, where it is
    /// long.
    #[inline]
    fn discard_unread(&mut self, slot: Slot) {
        let connection = &self.connections[slot].protocol;
        let bytes = self.protocol.unread_bytes(connection);
        if bytes >= DISCARD_BYTES_MIN {
            self.backend.discard(slot, bytes);
        }
    }

    /// Bytes of a response came, and nobody saw them.
    pub(super) fn discarded(&mut self, slot: Slot, now_ns: u64, bytes: u64) {
        self.accounting.received(now_ns, bytes);
        self.note_parting(slot, now_ns);
        let connection = &mut self.connections[slot];
        connection.received_bytes += bytes;
        self.protocol.discarded(&mut connection.protocol, bytes);
    }

    /// The request in `place` is answered.
    pub(super) fn done(
        &mut self,
        slot: Slot,
        place: u32,
        reception: Reception,
        done_ns: u64,
        answer: &Answer,
    ) {
        if self.generated.is_some() {
            self.generated_done(slot, place, reception, done_ns, answer);
            return;
        }
        if self.round.errors_left > 0 && !answer.outcome.is_success() {
            let connection = &mut self.connections[slot].protocol;
            let body = self.protocol.take_body(connection);
            self.keep_error(answer, body.as_ref());
        }
        let timing = self.connections.end_request(slot, place);
        self.record_done(slot, place, timing, (reception, done_ns), answer);
    }

    /// The same of a request that a generator made, which is shown the response.
    #[inline(never)]
    fn generated_done(
        &mut self,
        slot: Slot,
        place: u32,
        reception: Reception,
        done_ns: u64,
        answer: &Answer,
    ) {
        let mut kept = self.kept_for_generator(slot);
        if self.round.errors_left > 0 && !answer.outcome.is_success() {
            if kept.is_none() {
                let connection = &mut self.connections[slot].protocol;
                kept = self.protocol.take_body(connection);
            }
            self.keep_error(answer, kept.as_ref());
        }
        let mut timing = self.connections.end_request(slot, place);
        let Some(generated) = &self.generated else {
            return;
        };
        let request = generated.request_in(slot, place);
        timing.request = request.name;
        self.record_done(slot, place, timing, (reception, done_ns), answer);
        self.show_generator((slot, request), (timing, done_ns), answer, kept.as_ref());
    }

    /// Records a request that is answered and no longer in flight.
    #[inline(always)]
    fn record_done(
        &mut self,
        slot: Slot,
        place: u32,
        timing: RequestTiming,
        (reception, done_ns): (Reception, u64),
        answer: &Answer,
    ) {
        let is_recorded = self.replied(slot, timing, done_ns, answer);
        let connection = &mut self.connections[slot];
        if P::IN_ORDER && self.task.depth > 1 {
            // Pipelined requests share a send, so their parts cannot be told apart.
            return;
        }
        if P::WRITES_AHEAD {
            if let Some(sends) = connection.sends() {
                let send = sends.of_places[place as usize];
                let free_ns = self.split(timing, reception, done_ns, send, is_recorded);
                self.places_freed(slot, 1, free_ns);
            }
            return;
        }
        let is_planned = matches!(self.pacing, Pacing::Open(_));
        let send = SendTime {
            free_ns: if is_planned {
                connection.punctual_free_ns
            } else {
                connection.free_ns
            },
            send_call: self.backend.send_call(slot),
        };
        let punctual_free_ns = self.split(timing, reception, done_ns, send, is_recorded);
        if is_planned {
            let connection = &mut self.connections[slot];
            connection.punctual_free_ns = punctual_free_ns;
            connection.late_ns = done_ns.saturating_sub(punctual_free_ns);
        }
    }

    /// The server said in a response that it closes; `rest` bytes came after that response.
    fn closed_by_response(&mut self, slot: Slot, now_ns: u64, rest: u64) {
        self.accounting.recorder.log_closes();
        if rest > 0 {
            self.accounting
                .failed(now_ns, FailureKind::UnexpectedBytes, rest);
        }
        self.fail_all(slot, now_ns, FailureKind::Unanswered);
        self.replace(slot, now_ns);
    }

    /// The server closes by a word of its protocol. The answer is sent if no other send is in
    /// flight.
    fn closed_by_protocol(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.flush();
        if self.has_parted(slot, now_ns) {
            return;
        }
        if self.connections[slot].in_flight == 0 {
            self.connections[slot].late_ns = 0;
            self.accounting.recorder.closed_idle(now_ns);
        } else {
            self.fail_all(slot, now_ns, kind);
        }
        self.give_up_part(slot);
        self.replace(slot, now_ns);
    }

    /// What the server sent leaves the connection without use. What the protocol has to say about
    /// that is sent if no other send is in flight.
    fn protocol_broken(&mut self, slot: Slot, now_ns: u64, broken: Broken) {
        self.flush();
        if let State::Greeting { .. } = self.connections[slot].state {
            let kind = match broken.kind {
                kind @ (FailureKind::UpgradeRefused | FailureKind::OpeningRefused) => kind,
                _ => FailureKind::OtherProtocol,
            };
            self.greeting_failed(slot, now_ns, kind);
        } else {
            let idle = (FailureKind::UnexpectedBytes, broken.unexpected_bytes);
            self.connection_broken(slot, now_ns, broken.kind, idle);
        }
    }

    /// Everything that came is taken: the connection, with room since `free_ns` if it
    /// `has_more_room`, is used again, or replaced.
    pub(super) fn reuse(&mut self, slot: Slot, free_ns: u64, now_ns: u64, has_more_room: bool) {
        let connection = &self.connections[slot];
        if connection.in_flight == 0 && connection.requests_left == 0 {
            // In HTTP/1.1, the server was asked to close and did not say that it will.
            self.part(slot, now_ns);
            return;
        }
        if connection.is_stuck() {
            let connection = &mut self.connections[slot];
            connection.blocked_since_ns = connection.blocked_since_ns.min(now_ns);
            self.connections
                .arm(slot, now_ns.saturating_add(self.task.timeout_ns));
        }
        if has_more_room {
            self.available(slot, free_ns, now_ns);
        }
    }

    /// What was sent on the connection before is taken, or it is no more.
    pub(super) fn stop_blocking(&mut self, slot: Slot, now_ns: u64) {
        let since_ns = &mut self.connections[slot].blocked_since_ns;
        if *since_ns < u64::MAX {
            let since_ns = std::mem::replace(since_ns, u64::MAX);
            self.accounting.recorder.blocked(since_ns, now_ns);
        }
    }

    /// The request is answered. Gives whether the reply is in the response times.
    pub(super) fn replied(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        done_ns: u64,
        answer: &Answer,
    ) -> bool {
        self.accounting.last_done_ns = done_ns;
        let is_in_time = done_ns.saturating_sub(timing.due_ns) <= self.task.timeout_ns;
        if is_in_time {
            if answer.outcome.is_success() {
                self.accounting.progress.successes += 1;
            } else {
                self.accounting.progress.errors += 1;
            }
            let service_ns = done_ns.saturating_sub(timing.sent_ns);
            if self.task.spin == Spin::Auto {
                self.wake_ups.expectation.replied(service_ns);
            }
            self.accounting.served(service_ns);
            let connection = &self.connections[slot];
            if !connection.has_ended_one {
                let opening = Opening {
                    from_ns: connection.opened_from_ns,
                    to_ns: connection.opened_ns,
                };
                self.accounting.recorder.reply_on_new_connection(
                    timing,
                    done_ns,
                    answer.outcome,
                    opening,
                );
            }
            self.accounting.recorder.reply(timing, done_ns, answer);
            if self.accounting.recorder.keeps_log() {
                self.log_reply(slot, timing, done_ns, answer);
            }
        } else {
            let bytes = answer.head_bytes + answer.body_bytes;
            self.request_failed(slot, timing, done_ns, (FailureKind::TimedOut, bytes));
        }
        let connection = &mut self.connections[slot];
        connection.has_ended_one = true;
        if let Some(due_ns) = connection.session_due_ns.take() {
            self.accounting.recorder.first_reply(due_ns, done_ns);
        }
        is_in_time && answer.outcome.is_success()
    }

    /// Finds the parts of a response time where the kernel's stamps tell them, and records them if
    /// the response time `is_recorded`. Gives since when the place of the request would be free,
    /// had brunt taken no time: what makes the next request there later than that is brunt's fault,
    /// and not the server's.
    pub(super) fn split(
        &mut self,
        timing: RequestTiming,
        reception: Reception,
        done_ns: u64,
        send: SendTime,
        is_recorded: bool,
    ) -> u64 {
        let free_ns = reception.free_ns();
        let (Some(arrived_ns), Some(send_call)) = (reception.stamp_ns, send.send_call) else {
            return free_ns;
        };
        let (parts, misplaced) = Parts::of(&Instants {
            due_ns: timing.due_ns,
            free_ns: send.free_ns,
            send_from_ns: send_call.from_ns,
            send_to_ns: send_call.to_ns,
            arrived_ns,
            received_ns: reception.received_ns,
            done_ns,
        });
        if is_recorded {
            self.accounting
                .recorder
                .split(timing.due_ns, (parts, misplaced));
        }
        let answering_ns = parts.send_ns.saturating_add(parts.server_ns);
        self.accounting.served_by_stamp(answering_ns);
        timing.due_ns.saturating_add(parts.rest_ns())
    }

    /// The server closed its side.
    pub(super) fn peer_closed(&mut self, slot: Slot, now_ns: u64) {
        if self.has_parted(slot, now_ns) {
            return;
        }
        let connection = &mut self.connections[slot];
        if let State::Greeting { .. } = connection.state {
            self.greeting_failed(slot, now_ns, FailureKind::HandshakeCut);
            return;
        }
        if connection.in_flight == 0 {
            connection.late_ns = 0;
            match self.stream_answered(slot) {
                true => {}
                false if P::IS_STREAM => {
                    self.accounting.failed(now_ns, FailureKind::StreamEnded, 0);
                }
                false => self.accounting.recorder.closed_idle(now_ns),
            }
            self.give_up_part(slot);
            self.replace(slot, now_ns);
            return;
        }
        match self.protocol.ended(&mut connection.protocol) {
            Ending::Completes { place, answer } => {
                if self.backend.is_cut(slot) {
                    // It has no length of its own, and may have been cut anywhere (RFC 9112 section
                    // 9.8).
                    let kind = FailureKind::TruncatedBody;
                    let timing = self.end_request(slot, place, Some(kind));
                    let bytes = answer.head_bytes + answer.body_bytes;
                    self.request_failed(slot, timing, now_ns, (kind, bytes));
                } else {
                    // The end of a connection has no stamp.
                    let reception = Reception {
                        stamp_ns: None,
                        received_ns: now_ns,
                    };
                    self.done(slot, place, reception, now_ns, &answer);
                }
                self.closed_by_response(slot, now_ns, 0);
            }
            Ending::Fails(kind) => {
                self.fail_all(slot, now_ns, kind);
                self.give_up_part(slot);
                self.replace(slot, now_ns);
            }
            Ending::Cuts => {
                let cut = Some(FailureKind::ClosedBeforeReply);
                while let Some((timing, discarded_bytes)) = self.take_any(slot, cut) {
                    let kind = if discarded_bytes == 0 {
                        FailureKind::ClosedBeforeReply
                    } else {
                        FailureKind::TruncatedBody
                    };
                    self.request_failed(slot, timing, now_ns, (kind, discarded_bytes));
                }
                self.give_up_part(slot);
                self.replace(slot, now_ns);
            }
        }
    }

    /// The connection broke: `kind` if a request was in flight, else the kind and bytes of `idle`.
    pub(super) fn connection_broken(
        &mut self,
        slot: Slot,
        now_ns: u64,
        kind: FailureKind,
        idle: (FailureKind, u64),
    ) {
        if self.has_parted(slot, now_ns) {
            return;
        }
        if let State::Greeting { .. } = self.connections[slot].state {
            let kind = match kind {
                // The server refuses what it was shown, such as no certificate.
                FailureKind::TlsBroken => FailureKind::TlsAlert,
                _ => FailureKind::HandshakeCut,
            };
            self.greeting_failed(slot, now_ns, kind);
            return;
        }
        if self.connections[slot].in_flight == 0 {
            self.connections[slot].late_ns = 0;
            self.accounting.failed(now_ns, idle.0, idle.1);
        } else {
            self.fail_all(slot, now_ns, kind);
        }
        self.give_up_part(slot);
        self.replace(slot, now_ns);
    }

    /// Fails every request in flight with `kind`; where responses are in order, only the oldest,
    /// and the others, which wait behind it, as unanswered. The bytes of the incomplete responses
    /// are lost.
    pub(super) fn fail_all(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        let mut kind = kind;
        while let Some((timing, discarded_bytes)) = self.take_any(slot, Some(kind)) {
            self.request_failed(slot, timing, now_ns, (kind, discarded_bytes));
            if P::IN_ORDER {
                kind = FailureKind::Unanswered;
            }
        }
    }
}
