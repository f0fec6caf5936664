//! Requests that their servers did not process are sent again, and stay the requests that they are.

use std::collections::VecDeque;

use brunt_io::backend::{ClientBackend, Slot};
use brunt_load::RequestId;
use brunt_record::{FailureKind, RequestTiming};

use super::Worker;
use crate::protocol::{ClientProtocol, Next};
use crate::workload::Workload;

/// How often a request is sent again at most whose server says each time that it did not process
/// it.
pub(super) const REFUSALS_MAX: u8 = 8;
/// How often one is sent again whose connection ended: the server may have processed it (RFC 9110
/// section 9.2.2).
const REPEATS_MAX: u8 = 1;

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// Whether what is in flight on the connection, which ends in this way, may be sent again:
    /// where the server closed it, as it may at any time after a response (RFC 9112 section 9.3.1).
    pub(super) fn may_repeat_on(&self, slot: Slot, kind: FailureKind) -> bool {
        let is_closed = kind.is_cut() || kind == FailureKind::Unanswered;
        P::IN_ORDER && is_closed && self.connections[slot].has_ended_one
    }

    /// Whether the request, whose connection ended before its response began, may be sent again.
    pub(super) fn may_repeat(&self, timing: RequestTiming, now_ns: u64) -> bool {
        self.may_be_sent_again(timing, now_ns, REPEATS_MAX)
            && self.protocol.may_repeat(RequestId(timing.request))
    }

    /// Whether the request may be sent again that was so often at `most`.
    pub(super) fn may_be_sent_again(&self, timing: RequestTiming, now_ns: u64, most: u8) -> bool {
        let is_late = timing.due_ns.saturating_add(self.task.timeout_ns) <= now_ns;
        self.task.prepared.sends_again() && timing.again < most && !is_late
    }

    /// Lets a request, which is no longer in flight, wait to be sent again. Its connection takes no
    /// more: it would meet the same there.
    pub(super) fn give_back(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        now_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
    ) {
        self.recorder().tally(now_ns).discarded_bytes += discarded_bytes;
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
        if self.pacing.is_open_loop() && self.connections.live() > 0 {
            return;
        }
        while let Some(repeat) = self.repeats.pop(slot) {
            self.recorder()
                .waited_to_be_sent_again(repeat.lost_ns, now_ns);
            self.request_failed(slot, repeat.timing, now_ns, repeat.kind, 0);
        }
    }

    /// Sends what waits to what is free, in an open loop, and fails what has waited for too long.
    #[cold]
    pub(super) fn see_to_repeats(&mut self, now_ns: u64) {
        for repeat in self.repeats.take_late(now_ns) {
            let recorder = self.recorder();
            recorder.waited_to_be_sent_again(repeat.lost_ns, now_ns);
            self.request_failed(repeat.slot, repeat.timing, now_ns, FailureKind::TimedOut, 0);
        }
        if self.repeats.waits_for_any() {
            self.assign_waiting(now_ns);
            self.open_further(now_ns, now_ns);
        }
    }

    /// What waits is not sent again.
    pub(super) fn censor_repeats(&mut self, now_ns: u64) {
        for repeat in self.repeats.take_all() {
            let recorder = self.recorder();
            recorder.waited_to_be_sent_again(repeat.lost_ns, now_ns);
            recorder.censored(repeat.timing, now_ns, 0);
        }
    }

    /// Whether nothing more may be sent on the connection until what was sent again is answered:
    /// what is behind it might be lost with it (RFC 9112 section 9.3.2).
    #[inline]
    pub(super) fn keeps_alone(&mut self, slot: Slot) -> bool {
        let connection = &mut self.connections[slot];
        connection.is_alone &= connection.in_flight > 0 && !connection.has_ended_one;
        connection.is_alone
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
        let connection = &mut self.connections[slot];
        connection.is_alone = P::IN_ORDER && self.task.depth > 1 && !connection.has_ended_one;
        if self.pacing.is_open_loop() && self.sampling.is_stamped(slot) {
            connection.take_place(now_ns, now_ns);
        }
        connection.requests_left -= 1;
        connection.is_used = true;
        connection.think_ns = self.pacing.next_think_ns();
        let next = Next {
            request: RequestId(timing.request),
            behind: 0,
            closes: connection.requests_left == 0,
            now_ns,
        };
        self.write_to(slot);
        let (connection, places, _) = self.connections.start_requests(slot, 1);
        let out = &mut self.output.out;
        let place = self.protocol.request(&mut connection.protocol, next, out);
        places[place as usize] = timing;
        if let Some(sends) = connection.sends() {
            sends.written_again(place);
        }
        let bytes = self.send_unless_ahead();
        self.recorder().sent_again(repeat.lost_ns, now_ns, bytes);
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

/// A request that is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    /// Where it was.
    pub(super) slot: Slot,
    /// As it was sent.
    pub(super) timing: RequestTiming,
    /// Since when it waits.
    pub(super) lost_ns: u64,
    /// How it failed, if it is not sent again.
    pub(super) kind: FailureKind,
}

/// All that wait. In a closed loop, a request waits for the next connection in its slot; in an open
/// loop, for any.
#[derive(Debug)]
pub(super) struct Repeats {
    /// Oldest first, by slot; one line for all in an open loop. Empty before the first.
    lines: Vec<VecDeque<Repeat>>,
    pub(super) waiting: usize,
    is_shared: bool,
    timeout_ns: u64,
    /// None of them was due earlier.
    due_ns_min: u64,
}

impl Repeats {
    /// None. Any connection takes what waits if that `is_shared`, for `timeout_ns` from when it was
    /// due.
    pub(super) fn new(is_shared: bool, timeout_ns: u64) -> Self {
        Self {
            lines: Vec::new(),
            waiting: 0,
            is_shared,
            timeout_ns,
            due_ns_min: u64::MAX,
        }
    }

    /// Whether none waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether any connection may take one that waits.
    pub(super) fn waits_for_any(&self) -> bool {
        self.is_shared && self.waiting > 0
    }

    /// Whether one waits that the connection in `slot` may take.
    pub(super) fn waits_for(&self, slot: Slot) -> bool {
        self.waiting > 0
            && self
                .lines
                .get(self.line(slot))
                .is_some_and(|line| !line.is_empty())
    }

    /// Lets one wait, behind the others.
    pub(super) fn push(&mut self, repeat: Repeat) {
        let line = self.line(repeat.slot);
        if line >= self.lines.len() {
            self.lines.resize_with(line + 1, VecDeque::new);
        }
        self.lines[line].push_back(repeat);
        self.waiting += 1;
        self.due_ns_min = self.due_ns_min.min(repeat.timing.due_ns);
    }

    /// Takes the oldest that the connection in `slot` may take.
    pub(super) fn pop(&mut self, slot: Slot) -> Option<Repeat> {
        let line = self.line(slot);
        let repeat = self.lines.get_mut(line)?.pop_front()?;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.due_ns_min = u64::MAX;
        }
        Some(repeat)
    }

    /// When the first of them may have waited for too long; [`u64::MAX`] for never.
    #[inline]
    pub(super) fn next_time_out_ns(&self) -> u64 {
        self.due_ns_min.saturating_add(self.timeout_ns)
    }

    /// Takes those that were due `timeout_ns` ago, or longer.
    pub(super) fn take_late(&mut self, now_ns: u64) -> Vec<Repeat> {
        if now_ns < self.next_time_out_ns() {
            return Vec::new();
        }
        let timeout_ns = self.timeout_ns;
        self.take(|repeat| repeat.timing.due_ns.saturating_add(timeout_ns) <= now_ns)
    }

    /// Takes all of them.
    pub(super) fn take_all(&mut self) -> Vec<Repeat> {
        self.take(|_| true)
    }

    fn take(&mut self, is_taken: impl Fn(&Repeat) -> bool) -> Vec<Repeat> {
        let mut taken = Vec::new();
        for line in &mut self.lines {
            taken.extend(line.iter().filter(|repeat| is_taken(repeat)));
            line.retain(|repeat| !is_taken(repeat));
        }
        self.waiting -= taken.len();
        let waiting = self.lines.iter().flatten();
        let due_ns = waiting.map(|repeat| repeat.timing.due_ns);
        self.due_ns_min = due_ns.min().unwrap_or(u64::MAX);
        taken
    }

    fn line(&self, slot: Slot) -> usize {
        if self.is_shared { 0 } else { slot.0 as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat(slot: u32, due_ns: u64) -> Repeat {
        Repeat {
            slot: Slot(slot),
            timing: RequestTiming::first(due_ns, due_ns),
            lost_ns: due_ns,
            kind: FailureKind::Reset,
        }
    }

    fn waiting(is_shared: bool) -> Repeats {
        let mut repeats = Repeats::new(is_shared, 100);
        for (slot, due_ns) in [(3, 10), (1, 30), (3, 20)] {
            repeats.push(repeat(slot, due_ns));
        }
        repeats
    }

    #[test]
    fn in_a_closed_loop_each_waits_for_its_slot_and_in_an_open_loop_for_any() {
        let mut own = waiting(false);
        assert!(own.waits_for(Slot(1)) && !own.waits_for(Slot(2)) && !own.waits_for(Slot(9)));
        assert!(!own.waits_for_any());
        assert_eq!(own.pop(Slot(2)), None);
        assert_eq!(own.pop(Slot(3)), Some(repeat(3, 10)));
        assert_eq!(own.pop(Slot(3)), Some(repeat(3, 20)));
        assert_eq!((own.pop(Slot(3)), own.waiting), (None, 1));
        let mut shared = waiting(true);
        assert!(shared.waits_for_any() && shared.waits_for(Slot(9)));
        let in_order = [0; 3].map(|_| shared.pop(Slot(9)).map(|repeat| repeat.timing.due_ns));
        assert_eq!(in_order, [Some(10), Some(30), Some(20)]);
        assert!(shared.is_empty() && !shared.waits_for_any());
        assert_eq!(shared.next_time_out_ns(), u64::MAX);
    }

    #[test]
    fn what_waited_for_too_long_is_found_and_the_rest_at_the_end() {
        for is_shared in [false, true] {
            let mut repeats = waiting(is_shared);
            assert_eq!(repeats.next_time_out_ns(), 110);
            assert_eq!(repeats.take_late(109), []);
            assert_eq!(repeats.take_late(125), [repeat(3, 10), repeat(3, 20)]);
            assert_eq!((repeats.waiting, repeats.next_time_out_ns()), (1, 130));
            assert_eq!(repeats.take_all(), [repeat(1, 30)]);
            assert!(repeats.is_empty() && repeats.take_late(u64::MAX).is_empty());
        }
    }
}
