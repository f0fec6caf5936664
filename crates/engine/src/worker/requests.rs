//! What a worker does next with its connections: what has come due or waits is given to those that
//! are free, written and sent, and those that are spent or lost are replaced.

use brunt_io::backend::{ClientBackend, Peer, Slot};
use brunt_record::{RequestTiming, Skip};

use super::Worker;
use super::opening::IDLE_NS;
use super::pacing::Model;
use crate::backlog::Arrival;
use crate::connection::State;
use crate::failure;
use crate::protocol::{ClientProtocol, Closing, Next};
use crate::task::Mode;
use crate::workload::{Carried, Workload};

/// Arrivals that one turn takes in or gives up one by one, so that events and interrupts are not
/// held up.
const ARRIVALS_PER_TURN: u32 = 1_024;
/// Requests of a run by count that are drawn at once for arrivals that find the queue full.
const DRAWN_PER_RANGE: u64 = 65_536;
/// An arrival that waits is given up when this many service times would not end within its
/// time-out: most replies take less.
const SERVICE_TIMES: u64 = 2;
/// Ranges of arrivals that find the queue full, which one turn passes over at most, so that events
/// and interrupts are not held up.
const RANGES_PER_TURN: u32 = 64;

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// Takes in the arrivals that have come due, or as many of them as one turn may. The others are
    /// left to the next one: the worker is behind.
    pub(super) fn take_arrivals(&mut self, now_ns: u64) {
        let before_ns = now_ns.saturating_add(1).min(self.timeline.window_end_ns);
        let (mut arrivals_left, mut ranges_left) = (ARRIVALS_PER_TURN, RANGES_PER_TURN);
        self.stop_if_none_begins(now_ns);
        if !self.repeats.is_empty() {
            self.assign_waiting(now_ns);
        }
        self.pacing.begin_batch();
        while self.pacing.backlog.next_ns < before_ns {
            if arrivals_left == 0 || ranges_left == 0 {
                self.pacing.is_behind = true;
                return;
            }
            if self.pacing.backlog.is_full() {
                ranges_left -= 1;
                self.skip_arrivals(before_ns, now_ns);
                continue;
            }
            arrivals_left -= 1;
            if self.begins_no_more() {
                self.stop_if_none_begins(now_ns);
                return;
            }
            let Some(due_ns) = self.pacing.backlog.take_before(before_ns) else {
                return;
            };
            if self.pacing.is_open_loop() && self.quota.take(due_ns, 1) == 0 {
                self.pacing.backlog.stop();
                return;
            }
            self.wake_ups.spinner.worked(now_ns);
            self.recorder().arrival_planned(due_ns);
            let is_next = self.pacing.backlog.waiting.is_empty() && self.repeats.is_empty();
            let free = if is_next { self.pop_free() } else { None };
            let free_ns = free.map(|slot| self.connections[slot].free_ns);
            let answering_ns = self.connections.accounting.answering_ns();
            let arrival = self.pacing.arrival(due_ns, free_ns, answering_ns);
            match free {
                Some(slot) => self.assign(slot, arrival),
                None => self.enqueue(arrival, now_ns),
            }
        }
    }

    /// The queue is full: passes over the arrivals that come before `before_ns`, or the first of
    /// them that count alike.
    fn skip_arrivals(&mut self, before_ns: u64, now_ns: u64) {
        let due_ns = self.pacing.backlog.next_ns;
        let at_ns = self.timeline.unanswered_until_ns(now_ns);
        let until_ns = before_ns.min(self.recorder().alike_until_ns(due_ns, at_ns));
        let is_counted = self.pacing.is_open_loop() && self.quota.counts(due_ns);
        let most = if is_counted {
            self.quota.take(due_ns, DRAWN_PER_RANGE)
        } else {
            u64::MAX
        };
        if most == 0 {
            self.pacing.backlog.stop();
            return;
        }
        let skipped = self.pacing.backlog.skip_before(until_ns, most);
        if is_counted {
            self.quota.give_back(due_ns, most - skipped);
        }
        self.pacing.begin_batch();
        self.recorder()
            .arrivals_skipped(due_ns, until_ns, at_ns, skipped);
        self.wake_ups.spinner.worked(now_ns);
    }

    /// Plans no further connections where they are of no use.
    fn stop_if_none_begins(&mut self, now_ns: u64) {
        if self.begins_no_more() {
            self.pacing.backlog.stop();
            self.give_up_waiting(now_ns);
        }
    }

    /// Whether connections that come due now are of no use.
    fn begins_no_more(&self) -> bool {
        let generated = self.source.generated();
        let begins_no_more = generated.is_some_and(|made| made.generator.begins_no_more());
        self.pacing.has_sessions() && begins_no_more
    }

    /// Gives the arrivals that wait to what is free, and before them what is to be sent again.
    pub(super) fn assign_waiting(&mut self, now_ns: u64) {
        self.stop_if_none_begins(now_ns);
        while self.repeats.waits_for_any()
            && let Some(slot) = self.pop_free()
            && let Some(repeat) = self.repeats.pop(slot)
        {
            self.repeat(slot, repeat);
            self.mark_free(slot);
        }
        if !self.drop_expired(now_ns) {
            return;
        }
        while !self.pacing.backlog.waiting.is_empty()
            && let Some(slot) = self.pop_free()
            && let Some(arrival) = self.pacing.backlog.waiting.pop_front()
        {
            self.assign(slot, arrival);
        }
    }

    /// Drops the arrivals that have waited so long that no reply is to be expected before their
    /// time is up. In a queue longer than the time-out, each request would else be sent just in
    /// time to fail. False: there are more of them than one turn may drop.
    #[inline]
    pub(super) fn drop_expired(&mut self, now_ns: u64) -> bool {
        // A session is to be replayed, however late it begins: its requests have time-outs of their
        // own.
        let is_replayed = self.source.is_generated() && self.pacing.has_sessions();
        let waiting = &mut self.pacing.backlog.waiting;
        if waiting.is_empty() || is_replayed {
            return true;
        }
        let (timeout_ns, accounting) = (self.task.timeout_ns, &mut self.connections.accounting);
        let needed_ns = (SERVICE_TIMES * accounting.service_ns).min(timeout_ns / 2);
        let patience_ns = timeout_ns - needed_ns;
        let mut left = ARRIVALS_PER_TURN;
        while let Some(&Arrival { due_ns, .. }) = waiting.front()
            && now_ns.saturating_sub(due_ns) >= patience_ns
        {
            if left == 0 {
                self.pacing.is_behind = true;
                return false;
            }
            left -= 1;
            waiting.pop_front();
            accounting
                .recorder
                .arrival_skipped(due_ns, now_ns, Skip::Late);
        }
        true
    }

    /// The arrivals that wait will not be sent.
    pub(super) fn give_up_waiting(&mut self, now_ns: u64) {
        while let Some(arrival) = self.pacing.backlog.waiting.pop_front() {
            self.recorder()
                .arrival_skipped(arrival.due_ns, now_ns, Skip::Unsent);
        }
    }

    /// Lets arrivals find the slot, if it is free for one.
    pub(super) fn mark_free(&mut self, slot: Slot) {
        if self.is_free(slot) {
            self.pacing.offer(slot, &mut self.connections[slot]);
        }
    }

    /// Lets what waits in an open loop find the slot, which has been free since `free_ns`.
    fn mark_free_since(&mut self, slot: Slot, free_ns: u64) {
        if self.is_free(slot) {
            let answering_ns = self.connections.accounting.answering_ns();
            let connection = &mut self.connections[slot];
            // While arrivals wait, every connection is full: all its room is new.
            let backlog = &mut self.pacing.backlog;
            backlog.was_free(free_ns, connection.room(), answering_ns);
            self.pacing.offer(slot, connection);
        }
    }

    fn is_free(&mut self, slot: Slot) -> bool {
        self.pacing.can_take(&self.connections[slot])
            && !self.keeps_alone(slot)
            && !self.source.is_parked(slot)
    }

    /// Takes what has been free longest.
    fn pop_free(&mut self) -> Option<Slot> {
        while let Some(slot) = self.pacing.free.pop_front() {
            self.connections[slot].is_offered = false;
            if self.is_free(slot) && self.has_request(slot) {
                return Some(slot);
            }
        }
        None
    }

    /// Sends what has come due, or opens it if it is a connection.
    fn assign(&mut self, slot: Slot, arrival: Arrival) {
        let now_ns = self.backend.now_ns();
        let due_ns = arrival.due_ns;
        let connection = &mut self.connections[slot];
        if self.pacing.is_open_loop() && self.sampling.is_stamped(slot) {
            connection.take_place(due_ns, now_ns);
        }
        let free_ns = arrival
            .possible_ns
            .map_or(connection.free_ns, |at_ns| at_ns.min(connection.free_ns));
        let available_ns = due_ns.max(free_ns);
        connection.free_ns = available_ns;
        let recorder = self.recorder();
        recorder.arrival_sent(due_ns, now_ns, available_ns > due_ns);
        recorder.lag(due_ns, now_ns.saturating_sub(available_ns));
        if self.pacing.is_open_loop() {
            let timing = RequestTiming::first(due_ns, now_ns);
            self.send(slot, timing, 1);
            // It may take more before this one is sent.
            self.mark_free(slot);
        } else {
            self.connections[slot].session_due_ns = due_ns;
            self.open(slot, now_ns);
        }
    }

    /// So many more places of a connection are free since `free_ns`. In an open loop it is kept
    /// since when, where stamps tell it.
    pub(super) fn places_freed(&mut self, slot: Slot, places: u32, free_ns: u64) {
        if self.pacing.is_open_loop()
            && let Some(sends) = self.connections[slot].sends()
        {
            sends.freed(places, free_ns);
        }
    }

    /// Lets an arrival wait, for a further connection where there is to be one. Where there is no
    /// room it is skipped.
    fn enqueue(&mut self, arrival: Arrival, now_ns: u64) {
        if self.pacing.backlog.push(arrival) {
            let waiting = self.pacing.backlog.waiting.len() as u64;
            self.recorder().waiting(now_ns, waiting);
            self.open_further(arrival.due_ns, now_ns);
        } else {
            let until_ns = self.timeline.unanswered_until_ns(now_ns);
            self.recorder()
                .arrival_skipped(arrival.due_ns, until_ns, Skip::Full);
        }
    }

    /// The slot became free, or may carry one more request, at `free_ns`.
    pub(super) fn available(&mut self, slot: Slot, free_ns: u64, now_ns: u64) {
        let connection = &mut self.connections[slot];
        match self.pacing.model {
            Model::Open => {
                if connection.in_flight < connection.depth {
                    connection.free_ns = free_ns;
                }
                self.mark_free_since(slot, free_ns);
                self.assign_waiting(now_ns);
            }
            Model::Sessions if connection.state != State::Open => {
                connection.free_ns = free_ns;
                self.mark_free(slot);
                if self.timeline.mode == Mode::Load {
                    self.assign_waiting(now_ns);
                }
            }
            Model::Closed | Model::Sessions => {
                connection.free_ns = free_ns;
                self.send_next(slot, now_ns);
            }
            Model::Held => {}
        }
    }

    /// Sends as many requests as the connection may have in flight, in a closed loop.
    pub(super) fn send_next(&mut self, slot: Slot, now_ns: u64) {
        let is_alone = self.connections[slot].is_alone;
        if (is_alone || !self.repeats.is_empty()) && !self.send_again(slot) {
            return;
        }
        if !self.timeline.sends_at(now_ns) || self.pacing.model == Model::Held {
            return;
        }
        let connection = &mut self.connections[slot];
        // A server that serves one connection after the other would wait for its first request.
        if self.pacing.pauses(slot) && connection.is_used {
            return;
        }
        if !connection.may_write() || connection.state != State::Open {
            return;
        }
        if let Carried::Bytes(chunk) = self.workload.carried() {
            self.send_bytes(slot, chunk, now_ns);
            return;
        }
        let room = connection.room();
        let is_one_by_one = self.pacing.thinks() || self.source.is_generated();
        if room == 0 || is_one_by_one && connection.in_flight > 0 {
            return;
        }
        let Some(due_ns) = self.due_ns(slot, now_ns) else {
            return;
        };
        let most = self.quota.take(now_ns, room);
        if most == 0 {
            // There is no request for the connections that are still to come.
            self.pacing.backlog.stop();
            return;
        }
        let (count, sent_ns) = if self.source.is_generated() {
            self.make_requests(slot, most, now_ns)
        } else {
            (most, now_ns)
        };
        if count > 0 {
            self.connections.lag(slot, sent_ns, due_ns);
            self.send(slot, RequestTiming::first(sent_ns, sent_ns), count as u32);
        }
    }

    /// Asks the generator for requests, of which `most` may be sent. Gives how many are there, and
    /// when they are sent; the rest of the quota is given back.
    #[inline(never)]
    fn make_requests(&mut self, slot: Slot, most: u64, now_ns: u64) -> (u64, u64) {
        let asked = self.ask(slot);
        let there = asked.unwrap_or(0);
        let generated = self.source.generated_mut();
        let is_quick = generated.is_some_and(|generated| generated.is_quick());
        let sent_ns = if is_quick {
            now_ns
        } else {
            self.backend.now_ns()
        };
        let is_over = sent_ns >= self.timeline.window_end_ns;
        let count = if is_over { 0 } else { most.min(there.into()) };
        if count < most {
            self.quota.give_back(now_ns, most - count);
        }
        if count == 0 {
            if let Some(generated) = self.source.generated_mut() {
                generated.put_off(slot);
            }
            // A session is over when it has no more requests.
            if asked.is_none() || self.pacing.has_sessions() && there == 0 {
                self.replace(slot, sent_ns);
            }
        }
        (count, sent_ns)
    }

    /// Sends `count` requests on a connection that has room for them.
    fn send(&mut self, slot: Slot, timing: RequestTiming, count: u32) {
        if self.workload.carried() == Carried::Attempt {
            self.request_connection(slot, timing);
            return;
        }
        let connection = &mut self.connections[slot];
        let sent = match self.task.part {
            // One that goes on in the place of another one goes on with what that was at.
            Some(_) => connection.part_sent,
            None => self.task.requests_per_connection - connection.requests_left,
        };
        connection.requests_left -= u64::from(count);
        if self.task.part.is_some() && self.timeline.has_begun(timing.due_ns) {
            connection.part_left -= u64::from(count);
            connection.part_sent += u64::from(count);
        }
        connection.is_used = true;
        connection.think_ns = self.pacing.next_think_ns();
        let closes = connection.requests_left == 0;
        let free_ns = if self.pacing.is_open_loop() {
            connection.punctual_free_ns
        } else {
            connection.free_ns
        };
        self.write_to(slot);
        let (connection, places, recorder) = self.connections.start_requests(slot, count);
        let (protocol, out) = (&mut self.protocol, &mut self.output.out);
        if let Some(generated) = self.source.generated_mut() {
            let next_place = || protocol.place_of_text(&mut connection.protocol);
            generated.write_to(slot, timing, count, next_place, places, out);
            for &name in &generated.written {
                recorder.sent_by_name(RequestTiming {
                    request: name,
                    ..timing
                });
            }
        } else {
            for behind in (0..count).rev() {
                let number = sent + u64::from(count - 1 - behind);
                let request = self.source.planned.next_id(number);
                let next = Next {
                    request,
                    behind,
                    closes,
                    now_ns: timing.sent_ns,
                };
                let place = protocol.request(&mut connection.protocol, next, out);
                let timing = RequestTiming {
                    request: request.0,
                    ..timing
                };
                places[place as usize] = timing;
                recorder.sent_by_name(timing);
                if let Some(sends) = connection.sends() {
                    sends.written(place, free_ns);
                }
            }
        }
        let bytes = self.send_unless_ahead();
        self.account_sent(slot, timing, count, bytes);
    }

    /// Accounts for `count` requests that were sent, and when they are late.
    #[inline]
    fn account_sent(&mut self, slot: Slot, timing: RequestTiming, count: u32, bytes: u64) {
        self.recorder().sent(timing, count, bytes);
        self.await_reply(slot, timing.due_ns, timing.sent_ns, count);
    }

    /// Opens a connection, which is what is requested, in a slot that can take an attempt.
    fn request_connection(&mut self, slot: Slot, timing: RequestTiming) {
        let now_ns = timing.sent_ns;
        let source = (self.connections).attempt(slot, now_ns, State::Attempting);
        let (connection, places, recorder) = self.connections.start_requests(slot, 1);
        connection.think_ns = self.pacing.next_think_ns();
        places[0] = timing;
        recorder.sent_by_name(timing);
        self.account_sent(slot, timing, 1, 0);
        self.connections.arm(
            slot,
            now_ns.saturating_add(self.task.plan().limits.connect_timeout_ns),
        );
        let peer = self.task.prepared.peer_of(self.task.worker, slot);
        if let Err(error) = self.backend.open(slot, peer, source) {
            // Whoever goes on with what waits would find the same at once.
            self.attempt_missed(slot, now_ns, failure::of_open(&error), true);
        }
    }

    /// An attempt that is a request has ended, which is given: what is in the slot is closed.
    pub(super) fn end_attempt(&mut self, slot: Slot, now_ns: u64) -> Option<RequestTiming> {
        let timing = self.connections.end_attempt(slot, now_ns)?;
        self.take_overhead(slot, now_ns);
        self.backend.close(slot);
        Some(timing)
    }

    /// Whether connections wait before each request, in a closed loop or in a session.
    pub(super) fn waits(&self) -> bool {
        self.pacing.thinks() || self.source.delays() && !self.pacing.is_open_loop()
    }

    /// Whether calls of the generator are those of the window, as far as that is known without
    /// looking at the clock.
    pub(super) fn is_measured(&self) -> bool {
        self.timeline.measures(self.wake_ups.ran_ns)
    }

    /// When the next request of the connection was due; absent while it waits, and it is then
    /// looked at again.
    #[inline]
    fn due_ns(&mut self, slot: Slot, now_ns: u64) -> Option<u64> {
        if self.source.delays() {
            let is_measured = self.is_measured();
            if let Some(generated) = self.source.generated_mut() {
                let delay_ns = generated.delay_ns(slot, is_measured, &self.backend);
                let think_ns = &mut self.connections[slot].think_ns;
                *think_ns = think_ns.saturating_add(delay_ns);
            }
            self.follow_generator();
        }
        let due_ns = self.connections[slot].resume_ns();
        if now_ns < due_ns {
            self.connections.arm(slot, due_ns);
        }
        (now_ns >= due_ns).then_some(due_ns)
    }

    /// How many requests the connection has to send next; absent where it is to be closed.
    #[inline(always)]
    fn ask(&mut self, slot: Slot) -> Option<u32> {
        let is_measured = self.is_measured();
        let Some(generated) = self.source.generated_mut() else {
            return Some(0);
        };
        let asked = generated.ask(slot, is_measured, &mut self.backend);
        self.follow_generator();
        asked
    }

    /// The generator was called: it may have failed, and may want to see something else.
    #[inline]
    pub(super) fn follow_generator(&mut self) {
        let Some(generated) = self.source.generated_mut() else {
            return;
        };
        if generated.error().is_some() {
            // What was measured so far is the result.
            self.task.control.interrupt();
        }
        if generated.withdrew_its_request() {
            self.want_bodies();
        }
    }

    /// What is kept of responses, as it is wanted now.
    pub(super) fn want_bodies(&mut self) {
        let wanted = self.source.wanted(self.sampling.wanted());
        self.protocol.want_bodies(wanted);
    }

    /// Whether an arrival can be sent on the connection, which is free: it is asked what. Without a
    /// generator there is always something to send.
    fn has_request(&mut self, slot: Slot) -> bool {
        if !self.source.is_generated() || !self.pacing.is_open_loop() {
            return true;
        }
        let asked = self.ask(slot);
        if asked.is_none() {
            let connection = &mut self.connections[slot];
            // It is replaced when the last of what is in flight is answered.
            connection.requests_left = 0;
            if connection.in_flight == 0 {
                self.replace(slot, self.backend.now_ns());
            }
        }
        asked.is_some_and(|there| there > 0)
    }

    /// A connection of a closed loop failed: where it has a part of its own of the run's requests,
    /// the rest of that is not sent. Gives whether it has.
    pub(super) fn give_up_part(&mut self, slot: Slot) -> bool {
        let gives_up = self.task.part.is_some() && self.pacing.model == Model::Closed;
        if gives_up {
            let left = std::mem::take(&mut self.connections[slot].part_left);
            let taken = self.quota.take(u64::MAX, left);
            self.recorder().record().unsent += taken;
        }
        gives_up
    }

    /// When a request in flight on the connection, or its protocol, has waited for too long;
    /// [`u64::MAX`] for never.
    pub(super) fn next_timeout_ns(&self, slot: Slot) -> u64 {
        let connection = &self.connections[slot];
        let first_due_ns = match connection.in_flight {
            0 => u64::MAX,
            _ => self.connections.first_due_ns(slot),
        };
        first_due_ns
            .saturating_add(self.task.timeout_ns)
            .min(self.protocol.next_timeout_ns(&connection.protocol))
    }

    /// When an open connection is to be looked at: for that, or to send again.
    pub(super) fn next_deadline_ns(&self, slot: Slot) -> u64 {
        let timeout_ns = self.next_timeout_ns(slot);
        let connection = &self.connections[slot];
        if self.waits() && connection.in_flight == 0 {
            timeout_ns.min(connection.resume_ns())
        } else {
            timeout_ns
        }
    }

    /// Whether nothing is awaited on the connection, and nothing can be sent.
    #[inline]
    pub(super) fn is_stuck(&self, slot: Slot) -> bool {
        let awaits_replies = !matches!(self.workload.carried(), Carried::Bytes(_));
        awaits_replies && self.connections[slot].is_stuck()
    }

    /// Starts a connection attempt.
    pub(super) fn open(&mut self, slot: Slot, now_ns: u64) {
        if self.workload.carried() == Carried::Attempt {
            // The pause after an attempt that failed is over: the next one is a request.
            self.connections.stop_awaiting_retry(slot, now_ns);
            self.connections.offer(slot, now_ns);
            self.available(slot, now_ns, now_ns);
            return;
        }
        let address = self.source.opening(slot).map(Peer::Tcp);
        let source = (self.connections).attempt(slot, now_ns, State::Connecting);
        let planned = self.task.prepared.peer_of(self.task.worker, slot);
        let peer = address.as_ref().unwrap_or(planned);
        match self.backend.open(slot, peer, source) {
            Ok(()) => self
                .connections
                .arm(slot, now_ns + self.task.plan().limits.connect_timeout_ns),
            // Whoever opens it goes on with what waits.
            Err(error) => self.note_failed_attempt(slot, now_ns, failure::of_open(&error)),
        }
    }

    /// Ends an open connection with nothing in flight as its protocol says, and replaces it.
    pub(super) fn part(&mut self, slot: Slot, now_ns: u64) {
        if !self.protocol.parts() {
            return self.replace(slot, now_ns);
        }
        self.write_to(slot);
        let connection = &mut self.connections[slot];
        let closing = (self.protocol).part(&mut connection.protocol, &mut self.output.out);
        self.flush();
        let waits = match closing {
            Closing::AtOnce => false,
            Closing::Answered => true,
            Closing::Heard => !self.connections[slot].sending && self.backend.finish(slot),
        };
        if waits {
            self.connections.part(slot, now_ns, self.task.timeout_ns);
        } else {
            self.replace(slot, now_ns);
        }
    }

    /// Ends an open connection and, if there is use for it, opens the next one in its place.
    pub(super) fn replace(&mut self, slot: Slot, now_ns: u64) {
        let resume_ns = self.resumes_ns(slot, now_ns);
        let connection = &self.connections[slot];
        let was_idle = connection.state == State::Open
            && now_ns.saturating_sub(connection.free_ns) >= IDLE_NS
            && self.connections.accounting.last_done_ns != now_ns;
        if let Some(streams) = self.workload.streams() {
            let is_drained = self.timeline.mode == Mode::Drain;
            streams.closing(slot, is_drained, &self.backend);
        }
        self.settle_send(slot);
        self.connections.stop_blocking(slot, now_ns);
        self.backend.close(slot);
        self.connections.closed(slot, now_ns);
        self.lose(slot, now_ns);
        self.source.closed(slot);
        let connection = &self.connections[slot];
        let life_ns = now_ns.saturating_sub(connection.opened_ns);
        // One that gave back all that was sent on it was of no use either.
        let was_of_use = connection.is_used && connection.has_ended_one;
        let is_doomed = self.workload.is_doomed(was_of_use, life_ns);
        let is_doomed_again = self.connections.lost(slot, is_doomed);
        if let Some(resume_ns) = resume_ns {
            self.connections.resume_at(slot, resume_ns);
            return;
        }
        let connection = &self.connections[slot];
        let (think_ns, part_left) = (connection.think_ns, connection.part_left);
        let thinks_first = connection.thinks_first();
        let mode = self.timeline.mode;
        let repeats = self.repeats.waits_for(slot);
        let has_request = repeats || !self.pacing.backlog.waiting.is_empty();
        let model = self.pacing.model;
        match model {
            // A server that serves one after the other would wait for its request.
            _ if self.pacing.pauses(slot) && !repeats => {}
            Model::Sessions => self.available(slot, now_ns, now_ns),
            _ if mode == Mode::Drain && !has_request => self.connections.unneeded(slot, now_ns),
            _ if part_left == 0 => self.connections.unneeded(slot, now_ns),
            Model::Closed if !repeats && !self.has_request_left(now_ns) => {
                self.connections.unneeded(slot, now_ns);
            }
            _ if is_doomed_again => self.connections.retry_later(slot, now_ns, mode),
            Model::Closed if mode == Mode::Load && thinks_first && !repeats => {
                let open_ns = now_ns.saturating_add(think_ns);
                self.connections.open_at(slot, open_ns, now_ns);
            }
            _ if mode == Mode::Setup => self.connections.queue(slot, now_ns),
            Model::Open => self.replace_planned(slot, now_ns, was_idle),
            Model::Closed | Model::Held => self.open(slot, now_ns),
        }
    }

    /// When what a planned connection carries, which is about to be lost, goes on with another one;
    /// absent where it does not.
    fn resumes_ns(&mut self, slot: Slot, now_ns: u64) -> Option<u64> {
        let is_measured = self.is_measured();
        let resumes = self.pacing.has_sessions() && self.timeline.sends_at(now_ns);
        let generated = self.source.generated_mut().filter(|_| resumes)?;
        if !generated.goes_on(slot) {
            return None;
        }
        let delay_ns = generated.delay_ns(slot, is_measured, &self.backend);
        self.follow_generator();
        let due_ns = self.connections[slot].resume_ns();
        Some(due_ns.max(now_ns.saturating_add(delay_ns)))
    }

    /// Forgets a connection that is no more, and on which nothing is in flight.
    pub(super) fn lose(&mut self, slot: Slot, now_ns: u64) {
        self.take_overhead(slot, now_ns);
        self.settle_rest(slot, now_ns, P::close);
        let connection = &mut self.connections[slot];
        connection.writing = None;
        self.output.forget(slot);
    }
}
