//! What a worker keeps of its requests: the record, what is shown while it runs, and how long the
//! server takes at present.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_proto::Body;
use brunt_record::{
    Answer, FailureKind, FailureScope, Histogram, LogPlace, LoggedResponse, Misplaced, Parts,
    Recorder, RequestTiming, Skip,
};

use super::Worker;
use crate::connection::Connection;
use crate::observer::Progress;
use crate::protocol::ClientProtocol;
use crate::workload::Workload;

/// The record of a worker, and what follows from the same events.
#[derive(Debug)]
pub(super) struct Accounting {
    recorder: Recorder,
    progress: Progress,
    /// When the last request was answered or failed, 0 for none.
    pub(super) last_done_ns: u64,
    /// Mean of the latest service times, which count for less the older they are.
    pub(super) service_ns: u64,
    /// The same of send calls, network and server alone, in an open loop; 0 where no stamp told
    /// them yet.
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
            progress: Progress::default(),
            last_done_ns: 0,
            service_ns: 0,
            stamped_ns: 0,
        }
    }

    /// The record, for events that nothing else follows from.
    #[inline]
    pub(super) fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Open connections.
    #[inline]
    pub(super) fn live(&self) -> u32 {
        self.recorder.live()
    }

    /// What is shown, with the response times so far.
    pub(super) fn shown(&self) -> (Progress, &Histogram) {
        (self.progress, self.recorder.response())
    }

    /// Requests that were answered in time so far.
    #[inline]
    pub(super) fn replies(&self) -> u64 {
        self.progress.successes + self.progress.errors
    }

    /// How the worker stands at the end of a turn: arrivals that wait, and bytes that it sent.
    #[inline]
    pub(super) fn turned(&mut self, waiting: u64, bytes_sent: u64) {
        self.progress.live = u64::from(self.recorder.live());
        self.progress.waiting = waiting;
        self.progress.bytes_sent = bytes_sent;
    }

    /// Ends the record, which is given with the time of the last outcome of a request, 0 for none.
    pub(super) fn end(&mut self, worker: u32) -> (Recorder, u64) {
        let spent = Recorder::new(worker, 0, 0);
        let recorder = std::mem::replace(&mut self.recorder, spent);
        (recorder, self.last_done_ns)
    }

    /// Bytes came.
    #[inline]
    pub(super) fn received(&mut self, now_ns: u64, bytes: u64) {
        self.progress.bytes_received += bytes;
        self.recorder.received(now_ns, bytes);
    }

    /// Counts what came on the connection and belongs to no response.
    #[inline]
    pub(super) fn settle_overhead<P: ClientProtocol>(
        &mut self,
        connection: &mut Connection<P>,
        now_ns: u64,
        protocol: &mut P,
    ) {
        let connection = &mut connection.protocol;
        if let Some(controls) = protocol.take_controls(connection) {
            self.recorder.controls(now_ns, &controls);
        }
        let bytes = protocol.take_overhead(connection);
        if bytes > 0 {
            self.recorder.overhead(now_ns, bytes);
            let pushes = protocol.take_pushes(connection);
            self.recorder.pushed(now_ns, pushes);
        }
    }

    /// What was sent on the connection before is taken, or it is no more.
    #[inline]
    pub(super) fn stop_blocking<P: ClientProtocol>(
        &mut self,
        connection: &mut Connection<P>,
        now_ns: u64,
    ) {
        if connection.blocked_since_ns < u64::MAX {
            let since_ns = std::mem::replace(&mut connection.blocked_since_ns, u64::MAX);
            self.recorder.blocked(since_ns, now_ns);
        }
    }

    /// An attempt to connect, or a connection without a request in flight, failed.
    pub(super) fn failed(&mut self, now_ns: u64, kind: FailureKind, discarded_bytes: u64) {
        self.progress.failures += 1;
        self.progress.connect_failures += u64::from(kind.scope() == FailureScope::Connect);
        self.recorder.failed(now_ns, kind, discarded_bytes);
    }

    /// What is sent on the connection at `sent_ns` could have been since `due_ns`, where that is
    /// known: by the kernel's stamp alone.
    #[inline]
    pub(super) fn lag<P: ClientProtocol>(
        &mut self,
        connection: &Connection<P>,
        sent_ns: u64,
        due_ns: u64,
    ) {
        if connection.is_stamp_known && connection.has_ended_one {
            let lag_ns = sent_ns.saturating_sub(due_ns);
            self.recorder.lag(sent_ns, lag_ns);
        }
    }

    /// An arrival is never sent: it has no reply by `until_ns`.
    pub(super) fn arrival_skipped(&mut self, due_ns: u64, until_ns: u64, why: Skip) {
        self.progress.failures += 1;
        self.progress.timeouts += 1;
        self.recorder.arrival_skipped(due_ns, until_ns, why);
    }

    /// So many arrivals between `due_ns` and `until_ns` found the queue full at `at_ns`.
    pub(super) fn arrivals_skipped(
        &mut self,
        (due_ns, until_ns): (u64, u64),
        at_ns: u64,
        skipped: u64,
    ) {
        self.progress.failures += skipped;
        self.progress.timeouts += skipped;
        self.recorder
            .arrivals_skipped(due_ns, until_ns, at_ns, skipped);
    }

    /// A request of the connection was answered in time.
    #[inline]
    pub(super) fn answered<P: ClientProtocol>(
        &mut self,
        connection: &Connection<P>,
        timing: RequestTiming,
        done_ns: u64,
        answer: &Answer,
    ) {
        self.last_done_ns = done_ns;
        if answer.outcome.is_success() {
            self.progress.successes += 1;
        } else {
            self.progress.errors += 1;
        }
        let service_ns = done_ns.saturating_sub(timing.sent_ns);
        self.service_ns = moving_mean(self.service_ns, service_ns);
        if let Some(opening) = connection.opening() {
            self.recorder
                .reply_on_new_connection(timing, done_ns, answer.outcome, opening);
        }
        self.recorder.reply(timing, done_ns, answer);
    }

    /// Logs the beginning of a response.
    pub(super) fn log_response(&mut self, done_ns: u64, body: Body) {
        self.recorder.log_response(LoggedResponse {
            done_ns,
            head: body.head,
            content: body.bytes,
        });
    }

    /// The kernel's stamps told the parts of a response time, which are recorded if that
    /// `is_recorded`.
    pub(super) fn split(
        &mut self,
        due_ns: u64,
        (parts, misplaced): (Parts, Option<Misplaced>),
        is_recorded: bool,
    ) {
        if is_recorded {
            self.recorder.split(due_ns, (parts, misplaced));
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
    /// Counts what came on the connection and was never shown.
    pub(super) fn take_overhead(&mut self, slot: Slot, now_ns: u64) {
        let bytes = self.backend.take_overhead(slot);
        if bytes > 0 {
            self.accounting.received(now_ns, bytes);
            self.accounting.recorder.overhead(now_ns, bytes);
            self.connections[slot].received_bytes += bytes;
        }
    }

    /// Counts what QUIC counted on the connection up to `at_ns`.
    pub(super) fn settle_quic_of(&mut self, slot: Slot, at_ns: u64) {
        let connection = &mut self.connections[slot].protocol;
        if let Some(counts) = self.protocol.take_quic(connection) {
            self.accounting.recorder.quic(at_ns, &counts);
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
        let connection = &mut self.connections[slot];
        self.accounting
            .settle_overhead(connection, now_ns, &mut self.protocol);
        self.settle_quic_of(slot, now_ns);
        let bytes = end(&mut self.protocol, &mut self.connections[slot].protocol);
        if bytes > 0 {
            self.accounting.recorder.overhead(now_ns, bytes);
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
        (kind, discarded_bytes): (FailureKind, u64),
    ) {
        let place = self.log_place(slot);
        let accounting = &mut self.accounting;
        accounting.progress.failures += 1;
        accounting.progress.timeouts += u64::from(kind == FailureKind::TimedOut);
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

#[cfg(test)]
mod tests {
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
        accounting.received(5, 100);
        accounting.failed(6, FailureKind::ConnectTimedOut, 0);
        accounting.arrival_skipped(7, 8, Skip::Full);
        accounting.arrivals_skipped((8, 9), 9, 3);
        accounting.turned(4, 70);
        let (progress, response) = accounting.shown();
        assert_eq!((progress.bytes_received, progress.bytes_sent), (100, 70));
        assert_eq!((progress.failures, progress.waiting), (5, 4));
        assert_eq!((progress.connect_failures, progress.timeouts), (1, 4));
        assert_eq!((accounting.replies(), response.count()), (0, 0));
    }
}
