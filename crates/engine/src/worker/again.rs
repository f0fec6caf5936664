//! Requests that their servers did not process are sent again, and stay the requests that they are.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_load::RequestId;
use brunt_record::{FailureKind, RequestTiming};

use super::Worker;
use super::repeats::Repeat;
use crate::protocol::{ClientProtocol, Next};
use crate::workload::Workload;

/// How often a request is sent again at most whose server says each time that it did not process
/// it.
const REFUSALS_MAX: u8 = 8;
/// The same of one whose connection ended: the server may have processed it (RFC 9110 section
/// 9.2.2).
const REPEATS_MAX: u8 = 1;

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// The server did not process the request in `place`, as it said.
    #[cold]
    pub(super) fn refused(
        &mut self,
        slot: Slot,
        place: u32,
        now_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
    ) {
        let timing = self.end_request(slot, place, Some(kind));
        if self.may_be_sent_again(timing, now_ns, REFUSALS_MAX) {
            self.give_back(slot, timing, now_ns, (kind, discarded_bytes));
        } else {
            self.request_failed(slot, timing, now_ns, (kind, discarded_bytes));
        }
    }

    /// Whether what is in flight on the connection, which ends in this way, may be sent again:
    /// where the server closed it, as it may at any time after a response (RFC 9112 section 9.3.1).
    pub(super) fn may_repeat_on(&self, slot: Slot, kind: FailureKind) -> bool {
        let is_closed = matches!(
            kind,
            FailureKind::ClosedBeforeReply
                | FailureKind::Reset
                | FailureKind::TruncatedHead
                | FailureKind::TruncatedBody
                | FailureKind::Unanswered
        );
        P::IN_ORDER && is_closed && self.connections[slot].has_ended_one
    }

    /// Whether the request, whose connection ended before its response began, may be sent again.
    pub(super) fn may_repeat(&self, timing: RequestTiming, now_ns: u64) -> bool {
        self.may_be_sent_again(timing, now_ns, REPEATS_MAX)
            && self.protocol.may_repeat(RequestId(timing.request))
    }

    fn may_be_sent_again(&self, timing: RequestTiming, now_ns: u64, most: u8) -> bool {
        let is_late = timing.due_ns.saturating_add(self.task.timeout_ns) <= now_ns;
        self.task.sends_again && timing.again < most && !is_late
    }

    /// Lets a request, which is no longer in flight, wait to be sent again. Its connection takes no
    /// more: it would meet the same there.
    pub(super) fn give_back(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        now_ns: u64,
        (kind, discarded_bytes): (FailureKind, u64),
    ) {
        self.accounting
            .recorder()
            .discarded(now_ns, discarded_bytes);
        self.connections[slot].requests_left = 0;
        self.repeats.push(Repeat {
            slot,
            timing,
            lost_ns: now_ns,
            kind,
        });
    }

    /// Fails what waits for the connection in `slot`, which cannot be opened: in an open loop what
    /// waits for any, if there is none.
    #[cold]
    pub(super) fn fail_repeats(&mut self, slot: Slot, now_ns: u64) {
        if self.pacing.is_open_loop() && self.accounting.live() > 0 {
            return;
        }
        while let Some(repeat) = self.repeats.pop(slot) {
            let recorder = self.accounting.recorder();
            recorder.waited_to_be_sent_again(repeat.lost_ns, now_ns);
            self.request_failed(slot, repeat.timing, now_ns, (repeat.kind, 0));
        }
    }

    /// Sends what waits to what is free, in an open loop, and fails what has waited for too long.
    #[cold]
    pub(super) fn see_to_repeats(&mut self, now_ns: u64) {
        for repeat in self.repeats.take_late(now_ns) {
            let recorder = self.accounting.recorder();
            recorder.waited_to_be_sent_again(repeat.lost_ns, now_ns);
            let failure = (FailureKind::TimedOut, 0);
            self.request_failed(repeat.slot, repeat.timing, now_ns, failure);
        }
        if self.repeats.waits_for_any() {
            self.assign_waiting(now_ns);
            self.open_further(now_ns, now_ns);
        }
    }

    /// What waits is not sent again.
    pub(super) fn censor_repeats(&mut self, now_ns: u64) {
        for repeat in self.repeats.take_all() {
            let recorder = self.accounting.recorder();
            recorder.waited_to_be_sent_again(repeat.lost_ns, now_ns);
            recorder.censored(repeat.timing, now_ns, 0);
        }
    }

    /// Whether nothing more may be sent on the connection until what was sent again is answered:
    /// what is behind it might be lost with it (RFC 9112 section 9.3.2).
    #[inline]
    pub(super) fn keeps_alone(&mut self, slot: Slot) -> bool {
        if !self.repeats.is_alone(slot) {
            return false;
        }
        let connection = &self.connections[slot];
        let keeps = connection.in_flight > 0 && !connection.has_ended_one;
        if !keeps {
            self.repeats.release(slot);
        }
        keeps
    }

    /// Sends again what waits for the connection, in a closed loop, as far as it has room. Gives
    /// whether something else may follow.
    #[cold]
    pub(super) fn send_again(&mut self, slot: Slot) -> bool {
        while self.repeats.waits_for(slot) {
            if self.keeps_alone(slot) || !self.connections[slot].has_room() {
                return false;
            }
            if let Some(repeat) = self.repeats.pop(slot) {
                self.repeat(slot, repeat);
            }
        }
        !self.keeps_alone(slot)
    }

    /// Sends a request again, on a connection with room for it.
    pub(super) fn repeat(&mut self, slot: Slot, repeat: Repeat) {
        let now_ns = self.backend.now_ns();
        let timing = RequestTiming {
            again: repeat.timing.again + 1,
            ..repeat.timing
        };
        let is_new = !self.connections[slot].has_ended_one;
        self.repeats.release(slot);
        if P::IN_ORDER && self.task.depth > 1 && is_new {
            self.repeats.keep_alone(slot);
        }
        let connection = &mut self.connections[slot];
        if self.pacing.is_open_loop() && self.sampling.is_stamped(slot) {
            connection.take_place(now_ns, now_ns);
        }
        connection.requests_left -= 1;
        connection.is_used = true;
        if let Some(think_ns) = self.pacing.next_think_ns() {
            connection.think_ns = think_ns;
        }
        let next = Next {
            request: RequestId(timing.request),
            behind: 0,
            closes: connection.requests_left == 0,
            now_ns,
        };
        self.write_to(slot);
        let (connection, places) = self.connections.start_requests(slot, 1);
        let out = self.output.out();
        let place = self.protocol.request(&mut connection.protocol, next, out);
        places[place as usize] = timing;
        if let Some(sends) = connection.sends() {
            sends.written_again(place);
        }
        let bytes = if P::WRITES_AHEAD {
            0
        } else {
            self.send_written()
        };
        let recorder = self.accounting.recorder();
        recorder.sent_again(repeat.lost_ns, now_ns, bytes);
        self.await_reply(slot, timing.due_ns, now_ns, 1);
    }

    /// Awaits the replies to `count` requests that were sent at `sent_ns`, the first due at
    /// `due_ns`.
    #[inline]
    pub(super) fn await_reply(&mut self, slot: Slot, due_ns: u64, sent_ns: u64, count: u32) {
        self.wake_ups.sent(sent_ns, count);
        self.connections.arm(slot, due_ns + self.task.timeout_ns);
    }
}
