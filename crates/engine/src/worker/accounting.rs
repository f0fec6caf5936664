//! What a worker keeps of its requests: the record, what is shown while it runs, how long the
//! server takes at present; and what it looks at more closely than it counts: connections with
//! stamps, the beginnings of responses.

use std::num::NonZeroU32;

use brunt_io::backend::{ClientBackend, Slot};
use brunt_proto::{BodiesWanted, Body};
use brunt_record::{
    Answer, ErrorBody, FailureKind, Instants, LogPlace, LoggedResponse, Misplaced, Opening, Parts,
    Recorder, RequestTiming, Tally,
};

use super::Worker;
use crate::connection::SendTime;
use crate::observer::Progress;
use crate::protocol::ClientProtocol;
use crate::workload::Workload;

/// The record of a worker, and what follows from the same events.
#[derive(Debug)]
pub(super) struct Accounting {
    pub(super) recorder: Recorder,
    /// When the last request was answered or failed, 0 for none.
    pub(super) last_done_ns: u64,
    /// Mean of the latest service times, which count for less the older they are.
    pub(super) service_ns: u64,
    /// Mean of what send calls, network and server alone took, in an open loop; 0 where no stamp
    /// told them yet.
    stamped_ns: u64,
}

/// The mean of the latest values, which count for less the older they are; 0 before the first.
fn moving_mean(mean_ns: u64, latest_ns: u64) -> u64 {
    match mean_ns {
        0 => latest_ns,
        _ => mean_ns - mean_ns / 8 + latest_ns / 8,
    }
}

impl Accounting {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            last_done_ns: 0,
            service_ns: 0,
            stamped_ns: 0,
        }
    }

    /// Everything that the worker counted so far, whatever the phase.
    fn tallies(&mut self) -> [&Tally; 3] {
        let tallies = &self.recorder.record().tallies;
        [&tallies.before, &tallies.measure, &tallies.after]
    }

    /// What is shown of it, with as many arrivals that wait.
    pub(super) fn progress(&mut self, waiting: u64) -> Progress {
        let mut progress = Progress {
            live: self.recorder.live().into(),
            waiting,
            ..Progress::default()
        };
        for tally in self.tallies() {
            progress.successes += tally.replies.successes();
            progress.errors += tally.replies.errors();
            progress.failures += tally.failures.iter().map(|(_, count)| count).sum::<u64>();
            progress.bytes_received += tally.bytes_received;
            progress.bytes_sent += tally.bytes_sent;
        }
        let arrivals = &self.recorder.record().arrivals_all;
        progress.failures += arrivals.skipped_full + arrivals.skipped_late;
        progress
    }

    /// Requests that were answered in time so far.
    pub(super) fn replies(&mut self) -> u64 {
        let tallies = self.tallies().into_iter();
        tallies.map(|tally| tally.replies.total()).sum()
    }

    /// A request was answered in time, the first one since an `opening` of its connection if that
    /// is given.
    #[inline]
    pub(super) fn answered(
        &mut self,
        opening: Option<Opening>,
        timing: RequestTiming,
        done_ns: u64,
        answer: &Answer,
    ) {
        self.last_done_ns = done_ns;
        let service_ns = done_ns.saturating_sub(timing.sent_ns);
        self.service_ns = moving_mean(self.service_ns, service_ns);
        if let Some(opening) = opening {
            self.recorder
                .reply_on_new_connection(timing, done_ns, answer.outcome, opening);
        }
        self.recorder.reply(timing, done_ns, answer);
    }

    /// The kernel's stamps told the parts of a response time, which are recorded if that
    /// `is_recorded`.
    pub(super) fn split(
        &mut self,
        due_ns: u64,
        parts: Parts,
        misplaced: Option<Misplaced>,
        is_recorded: bool,
    ) {
        if is_recorded {
            self.recorder.split(due_ns, parts, misplaced);
        }
        let answering_ns = parts.send_ns.saturating_add(parts.server_ns);
        self.stamped_ns = moving_mean(self.stamped_ns, answering_ns);
    }

    /// How long the server takes for a request at present, without what brunt adds where stamps
    /// tell that.
    #[inline]
    pub(super) fn answering_ns(&self) -> u64 {
        match self.stamped_ns {
            0 => self.service_ns,
            known_ns => known_ns,
        }
    }
}

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// The record, for events that nothing else follows from.
    #[inline]
    pub(super) fn recorder(&mut self) -> &mut Recorder {
        &mut self.connections.accounting.recorder
    }

    /// Counts what came on the connection and was never shown.
    pub(super) fn take_overhead(&mut self, slot: Slot, now_ns: u64) {
        let bytes = self.backend.take_overhead(slot);
        if bytes > 0 {
            self.recorder().received(now_ns, bytes);
            self.recorder().tally(now_ns).overhead_bytes += bytes;
            self.connections[slot].received_bytes += bytes;
        }
    }

    /// Counts what QUIC counted on the connection up to `at_ns`.
    pub(super) fn settle_quic_of(&mut self, slot: Slot, at_ns: u64) {
        let connection = &mut self.connections[slot].protocol;
        if let Some(counts) = self.protocol.take_quic(connection) {
            self.recorder().tally(at_ns).quic.merge(&counts);
        }
    }

    /// Counts the rest of the bytes of a connection with nothing in flight, of which `end` ends
    /// what the protocol keeps, or that of the round. Gives whether there were any: it must not go
    /// on then.
    pub(super) fn settle_rest(
        &mut self,
        slot: Slot,
        now_ns: u64,
        end: impl FnOnce(&mut P, &mut P::Connection) -> u64,
    ) -> bool {
        self.connections
            .settle_overhead(slot, now_ns, &mut self.protocol);
        self.settle_quic_of(slot, now_ns);
        let bytes = end(&mut self.protocol, &mut self.connections[slot].protocol);
        if bytes > 0 {
            self.recorder().tally(now_ns).overhead_bytes += bytes;
        }
        bytes > 0
    }

    /// Records a request that failed in this way, with the bytes of its incomplete response, and is
    /// no longer in flight.
    pub(super) fn request_failed(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        now_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
    ) {
        let place = self.log_place(slot);
        let accounting = &mut self.connections.accounting;
        accounting.last_done_ns = now_ns;
        let recorder = &mut accounting.recorder;
        recorder.request_failed(timing, now_ns, kind, discarded_bytes);
        if recorder.keeps_log() {
            recorder.log_failure(timing, now_ns, kind, discarded_bytes, place);
        }
        self.connections[slot].has_ended_one = true;
    }

    /// Where the log says that a request was.
    pub(super) fn log_place(&self, slot: Slot) -> LogPlace {
        LogPlace {
            connection: slot.0,
            opening: self.connections[slot].opening(),
        }
    }
}

/// The statuses that report errors (RFC 9110 section 15).
const FIRST_ERROR: u16 = 400;
/// Error responses that are looked at: a server that has but one kind of error is asked no further.
const ERRORS_READ_MAX: u32 = 64;

/// What is still to be looked at in a round.
#[derive(Debug)]
pub(super) struct Sampling {
    /// One connection in this many is stamped by the kernel.
    stamps_every: Option<NonZeroU32>,
    /// Error responses whose beginnings are still to be read.
    errors_left: u32,
    /// Responses whose beginnings are still to be logged.
    responses_left: u32,
}

/// When received bytes reached the machine and the worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    /// Their last byte reached this machine, by the kernel's stamp. Absent on connections without
    /// stamps.
    pub(super) stamp_ns: Option<u64>,
    /// The worker had them.
    pub(super) received_ns: u64,
}

impl Sampling {
    /// The samples of a round. `reads_errors`: the beginnings of error responses are kept.
    /// `responses_max`: so many beginnings of responses are logged.
    pub(super) fn new(
        stamps_every: Option<NonZeroU32>,
        reads_errors: bool,
        responses_max: u32,
    ) -> Self {
        Self {
            stamps_every,
            errors_left: if reads_errors { ERRORS_READ_MAX } else { 0 },
            responses_left: responses_max,
        }
    }

    /// Whether the kernel stamps what comes on the connection.
    #[inline]
    pub(super) fn is_stamped(&self, slot: Slot) -> bool {
        self.stamps_every
            .is_some_and(|every| slot.0.is_multiple_of(every.get()))
    }

    /// What is kept of responses: the beginnings of all that are logged, else of errors alone.
    pub(super) fn wanted(&self) -> BodiesWanted {
        if self.responses_left > 0 {
            return BodiesWanted {
                from_status: 0,
                bytes_max: LoggedResponse::BYTES_MAX,
                heads: true,
            };
        }
        if self.errors_left == 0 {
            return BodiesWanted::NONE;
        }
        BodiesWanted {
            from_status: FIRST_ERROR,
            bytes_max: ErrorBody::BYTES_MAX,
            heads: false,
        }
    }

    /// Whether the beginning of this response is to be read.
    #[inline]
    pub(super) fn reads(&self, answer: &Answer) -> bool {
        self.errors_left > 0 && !answer.outcome.is_success()
    }

    /// Reads a response with an error, of which `body` was kept: what the server says in its first
    /// one of each status is recorded. Gives whether that was the last to be read.
    #[cold]
    pub(super) fn read_error(
        &mut self,
        answer: &Answer,
        body: Option<&Body>,
        kept: &mut Vec<ErrorBody>,
    ) -> bool {
        if let (Some(status), Some(body)) = (answer.outcome.status(), body)
            && kept.iter().all(|one| one.status != status)
        {
            let most = body.bytes.len().min(ErrorBody::BYTES_MAX as usize);
            let beginning = &body.bytes[..most];
            kept.push(ErrorBody {
                status,
                text: String::from_utf8_lossy(beginning).into_owned(),
                is_cut: body.is_cut || beginning.len() < body.bytes.len(),
            });
        }
        self.errors_left -= 1;
        if kept.len() == ErrorBody::KEPT_MAX {
            self.errors_left = 0;
        }
        self.errors_left == 0
    }

    /// Whether the beginning of the response at hand is to be logged. It is one less then.
    pub(super) fn takes_response(&mut self) -> bool {
        let takes = self.responses_left > 0;
        self.responses_left -= u32::from(takes);
        takes
    }
}

impl Reception {
    /// The reception of bytes without a stamp.
    pub(super) fn unstamped(received_ns: u64) -> Self {
        Self {
            stamp_ns: None,
            received_ns,
        }
    }

    /// Since when the requests that these bytes answer are no longer in flight.
    #[inline]
    pub(super) fn free_ns(&self) -> u64 {
        self.stamp_ns.unwrap_or(self.received_ns)
    }

    /// Finds the parts of a response time where the kernel's stamps tell them, and records them if
    /// the response time `is_recorded`. Gives since when the place of the request would be free,
    /// had brunt taken no time: what makes the next request there later than that is brunt's fault,
    /// and not the server's.
    #[inline]
    pub(super) fn split(
        self,
        timing: RequestTiming,
        done_ns: u64,
        send: SendTime,
        is_recorded: bool,
        accounting: &mut Accounting,
    ) -> u64 {
        // The parts of what was sent again are those of several sends.
        let (Some(arrived_ns), Some(send_call), 0) = (self.stamp_ns, send.send_call, timing.again)
        else {
            return self.free_ns();
        };
        let (parts, misplaced) = Parts::of(&Instants {
            due_ns: timing.due_ns,
            free_ns: send.free_ns,
            send_from_ns: send_call.from_ns,
            send_to_ns: send_call.to_ns,
            arrived_ns,
            received_ns: self.received_ns,
            done_ns,
        });
        accounting.split(timing.due_ns, parts, misplaced, is_recorded);
        timing.due_ns.saturating_add(parts.rest_ns())
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::{ReplyOutcome, Skip};

    use super::*;

    #[test]
    fn the_mean_follows_the_latest_values() {
        assert_eq!(moving_mean(0, 80), 80);
        assert_eq!(moving_mean(80, 160), 90);
        assert_eq!(moving_mean(80, 0), 70);
    }

    #[test]
    fn what_is_shown_is_what_was_counted() {
        let mut accounting = Accounting::new(Recorder::new(0, 1, 1));
        let recorder = &mut accounting.recorder;
        recorder.received(5, 100);
        recorder.failed(6, FailureKind::ConnectTimedOut, 0);
        recorder.arrival_skipped(7, 8, Skip::Full);
        recorder.arrivals_skipped(8, 9, 9, 3);
        recorder.tally(9).bytes_sent += 70;
        let progress = accounting.progress(4);
        assert_eq!((progress.bytes_received, progress.bytes_sent), (100, 70));
        assert_eq!((progress.failures, progress.waiting), (5, 4));
        assert_eq!(accounting.replies(), 0);
    }

    fn answer(status: u16) -> Answer {
        Answer {
            outcome: ReplyOutcome::of_status(status),
            retry_after: false,
            interim: 0,
            head_bytes: 0,
            body_bytes: 0,
            first_byte_ns: 0,
        }
    }

    fn body(text: &str) -> Body {
        Body {
            bytes: text.as_bytes().to_vec(),
            ..Body::default()
        }
    }

    #[test]
    fn one_connection_in_so_many_is_stamped() {
        let stamped = |every| {
            let sampling = Sampling::new(NonZeroU32::new(every), false, 0);
            (0..6)
                .filter(|&slot| sampling.is_stamped(Slot(slot)))
                .count()
        };
        assert_eq!([stamped(0), stamped(1), stamped(4)], [0, 6, 2]);
    }

    #[test]
    fn what_is_kept_of_responses_gets_less_as_they_are_read() {
        let mut sampling = Sampling::new(None, true, 2);
        assert!(sampling.wanted().heads);
        assert!(sampling.takes_response() && sampling.takes_response());
        assert!(!sampling.takes_response());
        assert_eq!(sampling.wanted().from_status, FIRST_ERROR);
        let mut kept = Vec::new();
        assert!(sampling.reads(&answer(500)) && !sampling.reads(&answer(200)));
        for _ in 1..ERRORS_READ_MAX {
            assert!(!sampling.read_error(&answer(500), Some(&body("down")), &mut kept));
        }
        assert!(sampling.read_error(&answer(500), Some(&body("down")), &mut kept));
        assert!(!sampling.reads(&answer(500)));
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].status, kept[0].text.as_str()), (500, "down"));
        assert_eq!(sampling.wanted().bytes_max, BodiesWanted::NONE.bytes_max);
    }

    #[test]
    fn errors_of_enough_kinds_are_read_and_no_more() {
        let mut sampling = Sampling::new(None, true, 0);
        let mut kept = Vec::new();
        let read = (400..600).take_while(|&status| {
            !sampling.read_error(&answer(status), Some(&body("no")), &mut kept)
        });
        assert_eq!(read.count() + 1, ErrorBody::KEPT_MAX);
    }
}
