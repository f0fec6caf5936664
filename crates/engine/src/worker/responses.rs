//! What came on the connections of a worker: responses are taken and recorded, and what failed or
//! ended is seen to. What is sent next is up to `requests`.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_io::transport::Received;
use brunt_load::{RequestFailure, ResponseTimes};
use brunt_proto::Body;
use brunt_record::{Answer, FailureKind, FailureScope, LoggedResponse, RequestTiming};

use super::Worker;
use super::accounting::Reception;
use super::again::REFUSALS_MAX;
use super::pacing::Model;
use crate::connection::{SendTime, State};
use crate::failure;
use crate::generated::{Generated, OfPlace, ReceivedResponse};
use crate::protocol::{
    Broken, ClientProtocol, ConnectionEnd, ProtocolEvent, Taken, TimedOut, WorkerTransport,
};
use crate::workload::Workload;

/// The rest of a response that nobody reads is discarded where it has this many bytes: to ask for
/// that costs about as much as to receive a few thousand.
const DISCARD_BYTES_MIN: u64 = 64 * 1024;

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// Bytes came.
    pub(super) fn receive(&mut self, slot: Slot, received_ns: u64) {
        let byte_count = self.backend.received().byte_count();
        let reception = Reception {
            stamp_ns: self.backend.received_stamp_ns(),
            received_ns,
        };
        self.take_overhead(slot, received_ns);
        self.recorder().received(received_ns, byte_count as u64);
        self.connections.heard(slot, received_ns);
        let connection = &mut self.connections[slot];
        connection.received_bytes += byte_count as u64;
        connection.is_stamp_known = reception.stamp_ns.is_some();
        self.take_responses(slot, reception, byte_count);
    }

    /// Hands the bytes that came to the protocol, and follows what that brings about.
    fn take_responses(&mut self, slot: Slot, reception: Reception, byte_count: usize) {
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
            let Taken { consumed, event } = match self.protocol.receive(
                &mut connection.protocol,
                self.backend.received().after(taken),
                reception.received_ns,
                places,
                &mut self.output.out,
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
                    if let State::Greeting { connected_ns } = connection.state {
                        if let Some(capacity) = self.protocol.capacity(&connection.protocol) {
                            connection.depth = capacity.depth.min(self.task.depth);
                        }
                        self.opened(slot, now_ns, connected_ns);
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
                        let rest = (byte_count - taken) as u64;
                        self.closed_by_response(slot, now_ns, rest);
                        return;
                    }
                    has_more_room = true;
                }
                ProtocolEvent::Failed {
                    place,
                    kind,
                    discarded_bytes,
                    is_unprocessed,
                } => {
                    let timing = self.end_request(slot, place, Some(kind));
                    if is_unprocessed && self.may_be_sent_again(timing, now_ns, REFUSALS_MAX) {
                        self.give_back(slot, timing, now_ns, kind, discarded_bytes);
                    } else {
                        self.request_failed(slot, timing, now_ns, kind, discarded_bytes);
                    }
                    self.places_freed(slot, 1, reception.free_ns());
                    has_more_room = true;
                }
                ProtocolEvent::GoAway => {
                    self.recorder().tally(now_ns).goaways += 1;
                    self.give_up_part(slot);
                }
                ProtocolEvent::IdleReply => {
                    let tally = self.recorder().tally(now_ns);
                    tally.idle_replies += 1;
                    tally.overhead_bytes += consumed as u64;
                    self.closed_by_protocol(slot, now_ns, FailureKind::UnexpectedBytes);
                    return;
                }
                ProtocolEvent::Closed(kind) => {
                    self.closed_by_protocol(slot, now_ns, kind);
                    return;
                }
            }
            if P::IN_ORDER && taken == byte_count {
                // The end of a response is all that its bytes bring about.
                break;
            }
        }
        if self.is_flooded() {
            self.protocol_broken(slot, now_ns, P::FLOODED.into());
            return;
        }
        let grown = (self.connections).update_capacity(slot, now_ns, &self.protocol);
        if grown > 0 {
            self.places_freed(slot, grown, now_ns);
            has_more_room = true;
        }
        self.connections
            .settle_overhead(slot, now_ns, &mut self.protocol);
        let connection = &self.connections[slot];
        if connection.state == State::Open {
            // Over datagrams this follows from what is sent next.
            if P::Transport::IS_RELIABLE {
                let timeout_ns = self.protocol.next_timeout_ns(&connection.protocol);
                self.connections.arm(slot, timeout_ns);
            }
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
        self.recorder().received(now_ns, bytes);
        self.connections.heard(slot, now_ns);
        let connection = &mut self.connections[slot];
        connection.received_bytes += bytes;
        self.protocol.discarded(&mut connection.protocol, bytes);
    }

    /// What was asked to be sent on the connection was taken.
    pub(super) fn sent(&mut self, slot: Slot, now_ns: u64) {
        let connection = &mut self.connections[slot];
        connection.sending = false;
        if connection.uncounted_bytes > 0 {
            self.output.settle(connection, 0);
        }
        self.connections.stop_blocking(slot, now_ns);
        if P::WRITES_AHEAD {
            self.resume_output(slot);
        } else if self.connections[slot].state != State::Open {
            // It was what comes before the first request.
            return;
        }
        let connection = &mut self.connections[slot];
        if let Some(answered) = self.protocol.taken(&mut connection.protocol, now_ns) {
            self.answered_by_send(slot, now_ns, answered);
            return;
        }
        if P::WRITES_AHEAD {
            return;
        }
        // If the reply was seen first, it has been free since then.
        let free_ns = match connection.in_flight {
            0 => connection.free_ns,
            _ => now_ns,
        };
        match self.pacing.model {
            Model::Held => {}
            Model::Closed | Model::Sessions => self.send_next(slot, now_ns),
            Model::Open => self.available(slot, free_ns, now_ns),
        }
    }

    /// Counts what the kernel took of a large send that is cut short.
    pub(super) fn settle_send(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot];
        if connection.uncounted_bytes > 0 {
            let unsent_bytes = self.backend.unsent_bytes(slot);
            self.output.settle(connection, unsent_bytes);
        }
    }

    /// Counts what was flushed since this was last done.
    pub(super) fn count_output(&mut self, now_ns: u64) {
        // What the kernel took of sends whose connection had been closed.
        self.output.uncounted_bytes += self.backend.take_late_bytes();
        let bytes = std::mem::take(&mut self.output.uncounted_bytes);
        if bytes > 0 {
            self.recorder().tally(now_ns).bytes_sent += bytes;
        }
    }

    /// What was sent needs no response: it is answered now, `first` before what else was sent with
    /// it.
    fn answered_by_send(&mut self, slot: Slot, now_ns: u64, first: (u32, Answer)) {
        let reception = Reception::unstamped(now_ns);
        let mut answered = Some(first);
        while let Some((place, answer)) = answered {
            self.done(slot, place, reception, now_ns, &answer);
            let connection = &mut self.connections[slot].protocol;
            answered = self.protocol.taken(connection, now_ns);
        }
        self.reuse(slot, now_ns, now_ns, true);
    }

    /// The request in `place` is answered.
    fn done(
        &mut self,
        slot: Slot,
        place: u32,
        reception: Reception,
        done_ns: u64,
        answer: &Answer,
    ) {
        if self.source.is_generated() || self.sampling.reads(answer) {
            self.done_and_read(slot, place, reception, done_ns, answer);
            return;
        }
        let timing = self.connections.end_request(slot, place);
        self.record_done(slot, place, timing, reception, done_ns, answer);
    }

    /// The request in `place` is answered, by a response that is looked at: by what made the
    /// request, or since it is an error.
    #[inline(never)]
    fn done_and_read(
        &mut self,
        slot: Slot,
        place: u32,
        reception: Reception,
        done_ns: u64,
        answer: &Answer,
    ) {
        let generated = self.source.generated();
        let reads_error = self.sampling.reads(answer);
        let mut kept = None;
        if reads_error || generated.is_some_and(Generated::wants_contents) {
            let connection = &mut self.connections[slot].protocol;
            kept = self.protocol.take_body(connection);
        }
        if reads_error {
            self.read_error(answer, kept.as_ref());
        }
        let mut timing = self.connections.end_request(slot, place);
        let generated = self.source.generated();
        let request = generated.map(|generated| generated.request_in(slot, place));
        if let Some(request) = request {
            timing.request = request.name;
        }
        self.record_done(slot, place, timing, reception, done_ns, answer);
        if let Some(request) = request {
            self.show_generator(slot, request, timing, done_ns, answer, kept.as_ref());
        }
    }

    /// Shows the generator the response to this request, unless the window is over: it is counted
    /// in none then, and whoever counts what is shown is to come to the same.
    #[inline]
    fn show_generator(
        &mut self,
        slot: Slot,
        request: OfPlace,
        timing: RequestTiming,
        done_ns: u64,
        answer: &Answer,
        kept: Option<&Body>,
    ) {
        let is_measured = self.is_measured();
        let Some(generated) = self.source.generated_mut() else {
            return;
        };
        let connection = &self.connections[slot];
        let times = ResponseTimes {
            opening_ns: connection.opened_from_ns,
            opened_ns: connection.opened_ns,
            sent_ns: timing.sent_ns,
            first_byte_ns: answer.first_byte_ns,
            done_ns,
        };
        let is_late = done_ns.saturating_sub(timing.due_ns) > self.task.timeout_ns;
        let failure = is_late.then_some(RequestFailure::TimedOut);
        if done_ns < self.timeline.window_end_ns {
            let response = ReceivedResponse {
                answer,
                times,
                kept,
            };
            generated.show(slot, request, response, is_measured, &self.backend);
        }
        generated.end_requests(slot, request, 1, failure);
        self.follow_generator();
    }

    /// Records a request that is answered and no longer in flight.
    #[inline(always)]
    fn record_done(
        &mut self,
        slot: Slot,
        place: u32,
        timing: RequestTiming,
        reception: Reception,
        done_ns: u64,
        answer: &Answer,
    ) {
        let is_recorded = self.replied(slot, timing, done_ns, answer);
        if P::IN_ORDER && self.task.depth > 1 {
            // Pipelined requests share a send, so their parts cannot be told apart.
            return;
        }
        if P::WRITES_AHEAD {
            if let Some(sends) = self.connections[slot].sends() {
                let send = sends.of_places[place as usize];
                let accounting = &mut self.connections.accounting;
                let free_ns = reception.split(timing, done_ns, send, is_recorded, accounting);
                self.places_freed(slot, 1, free_ns);
            }
            return;
        }
        let is_planned = self.pacing.is_open_loop();
        let connection = &self.connections[slot];
        let send = SendTime {
            free_ns: if is_planned {
                connection.punctual_free_ns
            } else {
                connection.free_ns
            },
            send_call: self.backend.send_call(slot),
        };
        let accounting = &mut self.connections.accounting;
        let punctual_free_ns = reception.split(timing, done_ns, send, is_recorded, accounting);
        if is_planned {
            let connection = &mut self.connections[slot];
            connection.punctual_free_ns = punctual_free_ns;
            connection.late_ns = done_ns.saturating_sub(punctual_free_ns);
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
        let is_in_time = done_ns.saturating_sub(timing.due_ns) <= self.task.timeout_ns;
        if is_in_time {
            let service_ns = done_ns.saturating_sub(timing.sent_ns);
            self.wake_ups.replied(service_ns);
            let opening = self.connections[slot].opening();
            let accounting = &mut self.connections.accounting;
            accounting.answered(opening, timing, done_ns, answer);
            if self.recorder().keeps_log() {
                self.log_reply(slot, timing, done_ns, answer);
            }
        } else {
            let bytes = answer.head_bytes + answer.body_bytes;
            self.request_failed(slot, timing, done_ns, FailureKind::TimedOut, bytes);
        }
        let connection = &mut self.connections[slot];
        connection.has_ended_one = true;
        let due_ns = std::mem::replace(&mut connection.session_due_ns, u64::MAX);
        if due_ns != u64::MAX {
            self.recorder().first_reply(due_ns, done_ns);
        }
        is_in_time && answer.outcome.is_success()
    }

    /// Logs a request that is answered.
    #[cold]
    fn log_reply(&mut self, slot: Slot, timing: RequestTiming, done_ns: u64, answer: &Answer) {
        if self.sampling.takes_response() {
            let connection = &mut self.connections[slot].protocol;
            if let Some(body) = self.protocol.take_body(connection) {
                self.recorder().log_response(LoggedResponse {
                    done_ns,
                    head: body.head,
                    content: body.bytes,
                });
            }
            self.want_bodies();
        }
        let place = self.log_place(slot);
        self.recorder().log_reply(timing, done_ns, answer, place);
    }

    /// A response with an error is complete; `body` was kept of it.
    #[cold]
    fn read_error(&mut self, answer: &Answer, body: Option<&Body>) {
        let kept = &mut self.connections.accounting.recorder.record().error_bodies;
        if self.sampling.read_error(answer, body, kept) {
            self.want_bodies();
        }
    }

    /// Everything that came is taken: the connection, with room since `free_ns` if it
    /// `has_more_room`, is used again, or replaced.
    fn reuse(&mut self, slot: Slot, free_ns: u64, now_ns: u64, has_more_room: bool) {
        let connection = &self.connections[slot];
        if connection.in_flight == 0 && connection.requests_left == 0 {
            // In HTTP/1.1, the server was asked to close and did not say that it will.
            self.part(slot, now_ns);
            return;
        }
        if self.is_stuck(slot) {
            let connection = &mut self.connections[slot];
            connection.blocked_since_ns = connection.blocked_since_ns.min(now_ns);
            self.connections
                .arm(slot, now_ns.saturating_add(self.task.timeout_ns));
        }
        if has_more_room {
            self.available(slot, free_ns, now_ns);
        }
    }

    /// A timer of the protocol is due, or a request in flight has no response in time. The
    /// connection may not be open yet.
    pub(super) fn time_out(&mut self, slot: Slot, now_ns: u64) {
        let due_ns = self.connections.first_due_ns(slot);
        if P::IN_ORDER && due_ns.saturating_add(self.task.timeout_ns) <= now_ns {
            // What is behind a late response cannot come before it.
            return self.connection_timed_out(slot, now_ns, FailureKind::TimedOut);
        }
        if P::WRITES_AHEAD {
            self.write_to(slot);
        }
        let mut has_more_room = !P::IN_ORDER;
        loop {
            let (connection, places) = self.connections.with_places(slot);
            let out = &mut self.output.out;
            let connection = &mut connection.protocol;
            let Some(timed_out) = self.protocol.timed_out(connection, now_ns, places, out) else {
                break;
            };
            match timed_out {
                TimedOut::Request {
                    place,
                    discarded_bytes,
                } => {
                    let kind = FailureKind::TimedOut;
                    let timing = self.end_request(slot, place, Some(kind));
                    self.request_failed(slot, timing, now_ns, kind, discarded_bytes);
                    self.places_freed(slot, 1, now_ns);
                    has_more_room = true;
                    if self.give_up_part(slot) {
                        self.fail_all(slot, now_ns, kind);
                        self.replace(slot, now_ns);
                        return;
                    }
                }
                TimedOut::Connection(kind) => {
                    return self.connection_timed_out(slot, now_ns, kind);
                }
            }
        }
        if let State::Greeting { .. } = self.connections[slot].state {
            self.connections.arm(slot, self.connect_limit_ns(slot));
            return;
        }
        // What is given up may leave less room than there was.
        (self.connections).update_capacity(slot, now_ns, &self.protocol);
        let connection = &self.connections[slot];
        if connection.in_flight == 0 && connection.requests_left == 0 {
            self.part(slot, now_ns);
            return;
        }
        self.connections.arm(slot, self.next_deadline_ns(slot));
        if has_more_room {
            self.available(slot, now_ns, now_ns);
        }
    }

    /// Nothing is awaited on the connection any more: what is in flight on it fails with `kind`.
    fn connection_timed_out(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        if let State::Greeting { .. } = self.connections[slot].state {
            return self.greeting_failed(slot, now_ns, kind);
        }
        self.fail_all(slot, now_ns, kind);
        self.give_up_part(slot);
        self.connections.note_shut(slot, now_ns);
        self.part(slot, now_ns);
    }

    /// The server said in a response that it closes; `rest` bytes came after that response.
    fn closed_by_response(&mut self, slot: Slot, now_ns: u64, rest: u64) {
        self.recorder().log_closes();
        if rest > 0 {
            self.recorder()
                .failed(now_ns, FailureKind::UnexpectedBytes, rest);
        }
        self.fail_all(slot, now_ns, FailureKind::Unanswered);
        self.replace(slot, now_ns);
    }

    /// The server closes by a word of its protocol. The answer is sent if no other send is in
    /// flight.
    fn closed_by_protocol(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        self.flush();
        if self.has_closed(slot, now_ns) {
            return;
        }
        if self.connections[slot].in_flight == 0 {
            self.recorder().tally(now_ns).connections_closed_idle += 1;
        }
        self.give_up_connection(slot, now_ns, kind);
    }

    /// The connection is of no more use: what is in flight on it fails with `kind`.
    fn give_up_connection(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        if self.connections[slot].in_flight == 0 {
            self.connections[slot].late_ns = 0;
        }
        self.fail_all(slot, now_ns, kind);
        self.give_up_part(slot);
        self.replace(slot, now_ns);
    }

    /// What the server sent leaves the connection without use. What the protocol has to say about
    /// that is sent if no other send is in flight.
    fn protocol_broken(&mut self, slot: Slot, now_ns: u64, broken: Broken) {
        self.flush();
        if let State::Greeting { .. } = self.connections[slot].state {
            let kind = match broken.kind.scope() {
                FailureScope::Connect => broken.kind,
                _ => FailureKind::OtherProtocol,
            };
            self.greeting_failed(slot, now_ns, kind);
        } else {
            let idle = (FailureKind::UnexpectedBytes, broken.unexpected_bytes);
            self.connection_broken(slot, now_ns, broken.kind, idle);
        }
    }

    /// The server closed its side.
    pub(super) fn peer_closed(&mut self, slot: Slot, now_ns: u64) {
        if self.has_closed(slot, now_ns) {
            return;
        }
        let connection = &mut self.connections[slot];
        if let State::Greeting { .. } = connection.state {
            self.greeting_failed(slot, now_ns, FailureKind::HandshakeCut);
            return;
        }
        if connection.in_flight == 0 {
            let streams = self.workload.streams();
            match streams.map(|streams| streams.closed_by_server(slot)) {
                None => self.recorder().tally(now_ns).connections_closed_idle += 1,
                // It answers the end of our side.
                Some(true) => {}
                Some(false) => self.recorder().failed(now_ns, FailureKind::StreamEnded, 0),
            }
            self.give_up_connection(slot, now_ns, FailureKind::ClosedBeforeReply);
            return;
        }
        match self.protocol.ended(&mut connection.protocol) {
            ConnectionEnd::Completes { place, answer } => {
                if self.backend.is_cut(slot) {
                    // It has no length of its own, and may have been cut anywhere (RFC 9112 section
                    // 9.8).
                    let kind = FailureKind::TruncatedBody;
                    let timing = self.end_request(slot, place, Some(kind));
                    let bytes = answer.head_bytes + answer.body_bytes;
                    self.request_failed(slot, timing, now_ns, kind, bytes);
                } else {
                    // The end of a connection has no stamp.
                    let reception = Reception::unstamped(now_ns);
                    self.done(slot, place, reception, now_ns, &answer);
                }
                self.closed_by_response(slot, now_ns, 0);
            }
            ConnectionEnd::Fails(kind) => self.give_up_connection(slot, now_ns, kind),
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
        if self.has_closed(slot, now_ns) {
            return;
        }
        if let State::Greeting { .. } = self.connections[slot].state {
            let kind = match kind {
                // The server refuses what it was shown, such as no certificate.
                FailureKind::TlsBroken => FailureKind::TlsAlert,
                // A datagram found nobody there.
                FailureKind::Reset if !P::Transport::IS_RELIABLE => FailureKind::ConnectRefused,
                _ => FailureKind::HandshakeCut,
            };
            self.greeting_failed(slot, now_ns, kind);
            return;
        }
        if self.connections[slot].in_flight == 0 {
            self.recorder().failed(now_ns, idle.0, idle.1);
        }
        self.give_up_connection(slot, now_ns, kind);
    }

    /// The connection came to its end. Gives whether that was awaited; it is replaced then.
    fn has_closed(&mut self, slot: Slot, now_ns: u64) -> bool {
        let is_closing = matches!(self.connections[slot].state, State::Closing { .. });
        if is_closing {
            self.replace(slot, now_ns);
        }
        is_closing
    }

    /// Fails every request in flight with `kind`; where responses are in order, only the oldest,
    /// and the others, which wait behind it, as unanswered. The bytes of the incomplete responses
    /// are lost. What may be sent again has not failed.
    fn fail_all(&mut self, slot: Slot, now_ns: u64, kind: FailureKind) {
        let may_repeat = self.may_repeat_on(slot, kind);
        let mut kind = kind;
        while let Some((timing, discarded_bytes)) = self.take_any(slot, Some(kind)) {
            if may_repeat && discarded_bytes == 0 && self.may_repeat(timing, now_ns) {
                self.give_back(slot, timing, now_ns, kind, discarded_bytes);
            } else {
                // In any order, each fails by what had come of its response.
                let is_cut = kind == FailureKind::ClosedBeforeReply && discarded_bytes > 0;
                let kind = if is_cut && !P::IN_ORDER {
                    FailureKind::TruncatedBody
                } else {
                    kind
                };
                self.request_failed(slot, timing, now_ns, kind, discarded_bytes);
            }
            if P::IN_ORDER {
                kind = FailureKind::Unanswered;
            }
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

    /// Takes a request out of its place that has failed, or, without a kind, is given up at the end
    /// of the run.
    pub(super) fn end_request(
        &mut self,
        slot: Slot,
        place: u32,
        kind: Option<FailureKind>,
    ) -> RequestTiming {
        let mut timing = self.connections.end_request(slot, place);
        if let Some(generated) = self.source.generated_mut() {
            let request = generated.request_in(slot, place);
            timing.request = request.name;
            let failure = kind.map_or(RequestFailure::Unfinished, failure::for_generators);
            generated.end_requests(slot, request, 1, Some(failure));
        }
        timing
    }
}
