//! Requests that a generator makes while the run goes on: asked for, sent, their responses shown.

use brunt_io::backend::{ClientBackend, Peer, Slot};
use brunt_load::{RequestFailure, ResponseTimes};
use brunt_proto::Body;
use brunt_record::{Answer, FailureKind, RequestTiming};

use super::{Mode, Pacing, Worker, error_bodies};
use crate::failure;
use crate::generated::{Asked, Generated, OfPlace};
use crate::protocol::ClientProtocol;

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Has requests made by `generated` from now on, before the first connection is opened. Where
    /// the connections of an earlier round are kept, that made theirs, too.
    pub(crate) fn generate(&mut self, mut generated: Box<Generated>) {
        self.protocol.accept_texts();
        generated.begin(self.connections.len(), self.task.depth);
        self.accounting.recorder.generate_requests();
        self.generated = Some(generated);
        self.want_bodies();
    }

    /// Ends a round of the generator: what it did is recorded.
    pub(super) fn end_generating(&mut self) -> Option<Box<Generated>> {
        let mut generated = self.generated.take()?;
        let (used, names) = generated.end();
        let recorder = &mut self.accounting.recorder;
        recorder.record().generator = Some(used);
        recorder.name_requests(names);
        Some(generated)
    }

    /// What is kept of responses, as it is wanted now.
    pub(super) fn want_bodies(&mut self) {
        let reads_errors = self.task.keeps_errors && self.round.errors_left > 0;
        let for_errors = error_bodies::wanted(reads_errors, self.round.responses_left > 0);
        let generated = self.generated.as_ref();
        let wanted = generated.map_or(for_errors, |generated| generated.wanted(for_errors));
        self.protocol.want_bodies(wanted);
    }

    /// Where connections go that are opened now.
    pub(super) fn peer(&self) -> Peer {
        let generated = self.generated.as_ref();
        let address = generated.and_then(|generated| generated.generator().address());
        address.map_or_else(|| self.task.peer.clone(), Peer::Tcp)
    }

    /// Whether connections wait before each request, in a closed loop or in a session.
    pub(super) fn waits(&self) -> bool {
        let delays = |generated: &Generated| generated.delays();
        let is_planned = matches!(self.pacing, Pacing::Open(_));
        let generated = self.generated.as_deref().filter(|_| !is_planned);
        self.task.think_time.mean_ns > 0 || generated.is_some_and(delays)
    }

    /// Whether calls of the generator are those of the window, as far as that is known without
    /// looking at the clock.
    fn is_measured(&self) -> bool {
        let window_ns = self.timeline.measure_from_ns..self.timeline.window_end_ns;
        self.timeline.mode == Mode::Load && window_ns.contains(&self.wake_ups.ran_ns)
    }

    /// Sends the next batch on a connection that is open, in a closed loop or in a session. It is
    /// asked for when there is nothing in flight.
    #[inline(never)]
    pub(super) fn send_generated(&mut self, slot: Slot, now_ns: u64) {
        let connection = &self.connections[slot];
        let room = connection.room();
        if connection.in_flight > 0 || room == 0 || self.is_delayed(slot, now_ns) {
            return;
        }
        let due_ns = self.resume_ns(slot);
        let quota = self.take_quota(now_ns, room);
        if quota == 0 {
            if let Some(backlog) = self.backlog() {
                backlog.stop();
            }
            return;
        }
        let asked = self.ask(slot);
        let there = asked.count();
        let is_quick = (self.generated.as_mut()).is_some_and(|generated| generated.is_quick());
        let sent_ns = if is_quick {
            now_ns
        } else {
            self.backend.now_ns()
        };
        let is_over = sent_ns >= self.timeline.window_end_ns;
        let count = if is_over { 0 } else { quota.min(there.into()) };
        if count < quota {
            self.give_back_quota(now_ns, quota - count);
        }
        if count == 0 {
            if let Some(generated) = &mut self.generated {
                generated.put_off(slot);
            }
            // A session is over when it has no more requests.
            let is_session = matches!(self.pacing, Pacing::Sessions(_));
            if asked == Asked::Close || is_session && there == 0 {
                self.replace(slot, sent_ns);
            }
            return;
        }
        let connection = &self.connections[slot];
        if connection.is_stamp_known && connection.has_ended_one {
            let lag_ns = sent_ns.saturating_sub(due_ns);
            self.accounting.recorder.lag(sent_ns, lag_ns);
        }
        let timing = RequestTiming {
            due_ns: sent_ns,
            sent_ns,
            request: 0,
        };
        self.send_texts(slot, timing, count as u32);
    }

    /// When what a planned connection carries, which is about to be lost, goes on with another one;
    /// absent where it does not.
    pub(super) fn resumes_ns(&mut self, slot: Slot, now_ns: u64) -> Option<u64> {
        let is_measured = self.is_measured();
        let is_session = matches!(self.pacing, Pacing::Sessions(_));
        let is_load = self.timeline.mode == Mode::Load && now_ns < self.timeline.window_end_ns;
        let generated = self.generated.as_mut().filter(|_| is_session && is_load)?;
        if !generated.goes_on(slot) {
            return None;
        }
        let backend = &self.backend;
        let delay_ns = generated.delay_ns(slot, is_measured, || backend.now_ns());
        self.follow_generator();
        let due_ns = self.resume_ns(slot);
        Some(due_ns.max(now_ns.saturating_add(delay_ns)))
    }

    /// Whether connections that come due now are of no use.
    pub(super) fn begins_no_more(&self) -> bool {
        let is_session = matches!(self.pacing, Pacing::Sessions(_));
        let generated = self.generated.as_ref().filter(|_| is_session);
        generated.is_some_and(|generated| generated.begins_no_more())
    }

    /// Whether the connection is to wait before its next request; it is then looked at again.
    #[inline]
    fn is_delayed(&mut self, slot: Slot, now_ns: u64) -> bool {
        let is_measured = self.is_measured();
        if let Some(generated) = &mut self.generated
            && generated.delays()
        {
            let backend = &self.backend;
            let delay_ns = generated.delay_ns(slot, is_measured, || backend.now_ns());
            let connection = &mut self.connections[slot];
            connection.think_ns = connection.think_ns.saturating_add(delay_ns);
            self.follow_generator();
        }
        let due_ns = self.resume_ns(slot);
        if now_ns < due_ns {
            self.connections.arm(slot, due_ns);
        }
        now_ns < due_ns
    }

    /// What the connection has to send next.
    #[inline(always)]
    fn ask(&mut self, slot: Slot) -> Asked {
        let is_measured = self.is_measured();
        let Some(generated) = &mut self.generated else {
            return Asked::Nothing;
        };
        let backend = &self.backend;
        let asked = generated.ask(slot, is_measured, || backend.now_ns());
        if let Some(text) = generated.to_register() {
            let payload = self.backend.add_payload(text.into());
            generated.registered(payload);
        }
        self.follow_generator();
        asked
    }

    /// The generator was called: it may have failed, and may want to see something else.
    #[inline]
    fn follow_generator(&mut self) {
        let Some(generated) = &mut self.generated else {
            return;
        };
        if generated.error().is_some() {
            // What was measured so far is the result.
            self.task.control.interrupt();
        }
        if generated.has_changed_its_mind() {
            self.want_bodies();
        }
    }

    /// Whether an arrival can be sent on the connection, which is free: it is asked what. Without a
    /// generator there is always something to send.
    pub(super) fn has_request(&mut self, slot: Slot) -> bool {
        let is_planned = matches!(self.pacing, Pacing::Open(_));
        if self.generated.is_none() || !is_planned {
            return true;
        }
        let asked = self.ask(slot);
        if asked == Asked::Close {
            let connection = &mut self.connections[slot];
            // It is replaced when the last of what is in flight is answered.
            connection.requests_left = 0;
            if connection.in_flight == 0 {
                let now_ns = self.backend.now_ns();
                self.replace(slot, now_ns);
            }
        }
        asked.count() > 0
    }

    /// Whether the connection has nothing to send, ever.
    pub(super) fn is_parked(&self, slot: Slot) -> bool {
        let generated = self.generated.as_ref();
        generated.is_some_and(|generated| generated.is_parked(slot))
    }

    /// Whether all open connections of a worker with a generator wait for nothing that would come.
    pub(super) fn is_idle_for_good(&self) -> bool {
        let live = self.accounting.recorder.live();
        let generated = self.generated.as_ref();
        self.opening.in_flight == 0 && generated.is_some_and(|generated| generated.is_idle(live))
    }

    /// Sends the first `count` requests of what the connection has to send, which are as many at
    /// least, and for which it has room.
    pub(super) fn send_texts(&mut self, slot: Slot, timing: RequestTiming, count: u32) {
        let connection = &mut self.connections[slot];
        connection.requests_left -= u64::from(count);
        connection.is_used = true;
        connection.think_ns = match self.task.think_time.mean_ns {
            0 => 0,
            _ => self.supply.think_times.next_ns(),
        };
        self.write_to(slot);
        let Some(generated) = &mut self.generated else {
            return;
        };
        let (connection, places) = self.connections.start_requests(slot, count);
        let (protocol, out) = (&self.protocol, self.output.out());
        // The places are taken one after the other, around a ring.
        let mut first = None;
        let request = generated.write(
            slot,
            count,
            |kind| {
                let place = protocol.place_of_text(&mut connection.protocol);
                first = first.or(place);
                if let Some(place) = place {
                    places[place as usize] = RequestTiming {
                        request: kind.number(),
                        ..timing
                    };
                }
            },
            |text, payload| match payload {
                Some(payload) => out.append_payload(payload, text),
                None => out.bytes.extend_from_slice(text),
            },
        );
        let depth = self.task.depth;
        if let (Some(first), Some(request)) = (first, request) {
            let mut place = first;
            for number in 0..count {
                let request = generated.named(request, number);
                generated.place(slot, place, request);
                self.accounting.recorder.sent_by_name(RequestTiming {
                    request: request.name,
                    ..timing
                });
                place = if place + 1 == depth { 0 } else { place + 1 };
            }
        }
        let bytes = self.send_output();
        self.account_sent(slot, timing, count, bytes);
    }

    /// What was kept of the response that was given out last, if the generator wants to see it.
    #[inline]
    pub(super) fn kept_for_generator(&mut self, slot: Slot) -> Option<Body> {
        let generated = self.generated.as_ref()?;
        generated.wants_contents().then_some(())?;
        let connection = &mut self.connections[slot].protocol;
        self.protocol.take_body(connection)
    }

    /// Shows the generator the response to this request, unless the window is over: it is counted
    /// in none then, and whoever counts what is shown is to come to the same.
    #[inline]
    pub(super) fn show_generator(
        &mut self,
        (slot, request): (Slot, OfPlace),
        (timing, done_ns): (RequestTiming, u64),
        answer: &Answer,
        kept: Option<&Body>,
    ) {
        let is_measured = self.is_measured();
        let Some(generated) = &mut self.generated else {
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
        if done_ns >= self.timeline.window_end_ns {
            generated.end_requests(slot, request, 1, failure);
            self.follow_generator();
            return;
        }
        let (request, answer, backend) = ((slot, request), (answer, times), &self.backend);
        generated.show(request, answer, kept, failure, is_measured, || {
            backend.now_ns()
        });
        self.follow_generator();
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
        if let Some(generated) = &mut self.generated {
            let request = generated.request_in(slot, place);
            timing.request = request.name;
            let failure = kind.map_or(RequestFailure::Unfinished, failure::for_generators);
            generated.end_requests(slot, request, 1, Some(failure));
        }
        timing
    }
}
