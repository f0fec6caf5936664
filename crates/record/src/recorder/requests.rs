//! What is recorded and logged of requests.

use super::{Recorder, Recording};
use crate::request_log::LogPart;
use crate::{
    CarriedIn, FailureKind, LoggedEnd, LoggedRequest, LoggedResponse, Misplaced, Parts, Phase,
    Population, ReplyOutcome, RequestLog, StageRecord, Window,
};

/// When a request was due and when it was sent. In a closed loop, and within a connection that was
/// itself planned, a request is due when it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTiming {
    /// When the request was due: its response time counts from here, and it belongs to the window
    /// in which this lies.
    pub due_ns: u64,
    /// Just before it was handed to the backend, for the first time.
    pub sent_ns: u64,
    /// The number of the request in the run's set; of one that is made while the run goes on, that
    /// of its name, or [`crate::NO_NAME`].
    pub request: u32,
    /// How often it was sent again, since its server had not processed it.
    pub again: u8,
}

impl RequestTiming {
    /// A request that is due, and sent, for the first time; its number is still to be told.
    #[inline]
    pub fn first(due_ns: u64, sent_ns: u64) -> Self {
        Self {
            due_ns,
            sent_ns,
            request: 0,
            again: 0,
        }
    }
}

/// When a connection was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The attempt began.
    pub from_ns: u64,
    /// When the connection could carry requests: TCP, TLS and HTTP/2 settings were through.
    pub to_ns: u64,
}

impl Opening {
    /// How much of it a response time that counts from `due_ns` does not hold, nanoseconds. A
    /// request that was due while its connection was being opened has waited for the rest.
    pub(crate) fn before_ns(&self, due_ns: u64) -> u64 {
        self.to_ns.min(due_ns).saturating_sub(self.from_ns)
    }
}

/// A final reply that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of the reply, or what stands for it.
    pub outcome: ReplyOutcome,
    /// The reply reports an error and says when to ask again (`Retry-After`).
    pub retry_after: bool,
    /// Interim replies before it.
    pub interim: u16,
    /// Bytes of its head and of those of the interim replies; in HTTP/2 of the frames that carry
    /// them.
    pub head_bytes: u64,
    /// Bytes of its body with their framing.
    pub body_bytes: u64,
    /// When the first byte of the reply was received; moved into the time from the send to the end,
    /// where it lies outside.
    pub first_byte_ns: u64,
}

impl Recorder {
    /// `requests` requests of `bytes` bytes in all were handed to the backend. Later calls name
    /// them by the same `timing`.
    #[inline]
    pub fn sent(&mut self, timing: RequestTiming, requests: u32, bytes: u64) {
        self.last_due_ns = self.last_due_ns.max(timing.due_ns);
        let record = &mut self.recording.record;
        if record.first_send.get().is_none() {
            record.first_send.set(timing.sent_ns);
        }
        self.count_request(timing.due_ns, |population| {
            population.issued += u64::from(requests);
        });
        let tally = self.tally(timing.sent_ns);
        tally.requests_sent += u64::from(requests);
        tally.bytes_sent += bytes;
    }

    /// A request that its server had not processed was sent again at `now_ns`, in `bytes` bytes; it
    /// had waited for that since `lost_ns`. It is still the request that [`Recorder::sent`] was
    /// told of.
    #[cold]
    pub fn sent_again(&mut self, lost_ns: u64, now_ns: u64, bytes: u64) {
        self.waited_to_be_sent_again(lost_ns, now_ns);
        let tally = self.tally(now_ns);
        tally.sent_again += 1;
        tally.bytes_sent += bytes;
    }

    /// A request waited to be sent again from `lost_ns` to `until_ns`, on no connection.
    pub fn waited_to_be_sent_again(&mut self, lost_ns: u64, until_ns: u64) {
        let waited_ns = self.window.overlap_ns(lost_ns, until_ns);
        self.recording.record.awaiting_again_ns += waited_ns;
    }

    /// Counts one request in the figures by name, as [`Recorder::sent`] does in the others.
    #[inline]
    pub fn sent_by_name(&mut self, timing: RequestTiming) {
        self.names.sent(timing, self.window);
    }

    /// `bytes` bytes were read from a socket.
    #[inline]
    pub fn received(&mut self, at_ns: u64, bytes: u64) {
        self.tally(at_ns).bytes_received += bytes;
        if let Some(offset) = self.window.offset(at_ns) {
            self.point(offset).bytes_received += bytes;
        }
    }

    /// A final reply is complete.
    pub fn reply(&mut self, timing: RequestTiming, done_ns: u64, answer: &Answer) {
        let tally = self.tally(done_ns);
        tally.replies.add(answer.outcome);
        tally.retry_afters += u64::from(answer.retry_after);
        tally.interim_replies += u64::from(answer.interim);
        tally.reply_head_bytes += answer.head_bytes;
        tally.reply_body_bytes += answer.body_bytes;
        let success = answer.outcome.is_success();
        if let Some(offset) = self.window.offset(done_ns) {
            let point = self.point(offset);
            if success {
                point.successes += 1;
            } else {
                point.errors += 1;
            }
        }
        let record = &mut self.recording.record;
        let size = answer.head_bytes + answer.body_bytes;
        record.reply_bytes_min = Some(record.reply_bytes_min.map_or(size, |min| min.min(size)));
        record.in_flight_ns += self.window.overlap_ns(timing.sent_ns, done_ns);
        if timing.sent_ns < self.window.start_ns {
            self.carried_in_ended(timing, done_ns, |carried_in| carried_in.answered += 1);
        }
        let Recording {
            record, latencies, ..
        } = &mut self.recording;
        if let Some(due_offset_ns) = self.window.offset(timing.due_ns) {
            record.population.recorded += 1;
            self.names.reply(timing, done_ns, answer);
            let response_ns = done_ns.saturating_sub(timing.due_ns);
            if let Some(stage) = self.stages.at(due_offset_ns) {
                stage.population.recorded += 1;
                if success {
                    stage.response.record(response_ns);
                }
            }
            if success {
                latencies.response.record(response_ns);
                let offset_ns = self.window.nearest_offset(done_ns);
                self.intervals.record(offset_ns, response_ns);
                let service_ns = done_ns.saturating_sub(timing.sent_ns);
                let first_byte_ns = answer.first_byte_ns.saturating_sub(timing.sent_ns);
                let first_byte_ns = first_byte_ns.min(service_ns);
                latencies.first_byte.record(first_byte_ns);
                latencies.transfer.record(service_ns - first_byte_ns);
                if self.is_planned {
                    latencies.service.record(service_ns);
                }
            } else {
                latencies.response_error.record(response_ns);
            }
        }
    }

    /// The parts of the response time of a successful reply to a request that was due at
    /// `due_ns`, and where a kernel stamp lay that had to be moved for them.
    pub fn split(&mut self, due_ns: u64, parts: Parts, misplaced: Option<Misplaced>) {
        let record = &mut self.recording.record;
        record.stamps_clamped += u64::from(misplaced.is_some());
        record.stamps_before_send += u64::from(misplaced == Some(Misplaced::BeforeSend));
        if self.window.contains(due_ns) {
            self.recording.latencies.split.record(&parts);
            let response_ns = parts.response_ns();
            let done_ns = due_ns.saturating_add(response_ns);
            if let Some(offset_ns) = self.window.offset(done_ns) {
                let point = self.point(offset_ns);
                point.stamped_response_ns = point.stamped_response_ns.saturating_add(response_ns);
                point.stamped_own_ns = point.stamped_own_ns.saturating_add(parts.own_ns());
            }
        }
    }

    /// The first reply of a connection since its `opening` is complete, with this outcome: what
    /// [`Recorder::reply`] is told of as well.
    pub fn reply_on_new_connection(
        &mut self,
        timing: RequestTiming,
        done_ns: u64,
        outcome: ReplyOutcome,
        opening: Opening,
    ) {
        let Recording {
            record, latencies, ..
        } = &mut self.recording;
        let service_ns = done_ns.saturating_sub(timing.sent_ns);
        let least_ns = &mut record.first_service_ns_min;
        *least_ns = Some(least_ns.map_or(service_ns, |ns| ns.min(service_ns)));
        if outcome.is_success() && self.window.contains(timing.due_ns) {
            let response_ns = done_ns.saturating_sub(timing.due_ns);
            let with_connect_ns = response_ns.saturating_add(opening.before_ns(timing.due_ns));
            latencies.with_connect.record(with_connect_ns);
        }
    }

    /// The first reply of a connection that was due at `due_ns` is complete.
    pub fn first_reply(&mut self, due_ns: u64, done_ns: u64) {
        if self.window.contains(due_ns) {
            let since_ns = done_ns.saturating_sub(due_ns);
            self.recording.latencies.first_reply.record(since_ns);
        }
    }

    /// A request failed, and `discarded_bytes` of its incomplete reply are lost with it.
    pub fn request_failed(
        &mut self,
        timing: RequestTiming,
        at_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
    ) {
        self.failed(at_ns, kind, discarded_bytes);
        self.recording.record.in_flight_ns += self.window.overlap_ns(timing.sent_ns, at_ns);
        if timing.sent_ns < self.window.start_ns {
            self.carried_in_ended(timing, at_ns, |carried_in| carried_in.failed += 1);
        }
        self.names.failed(timing, at_ns, kind, self.window);
        self.count_request(timing.due_ns, |population| population.failed += 1);
        if kind == FailureKind::TimedOut {
            self.unfinished(timing.due_ns, at_ns);
        }
    }

    /// A request was still in flight when drain ended.
    pub fn censored(&mut self, timing: RequestTiming, at_ns: u64, discarded_bytes: u64) {
        self.recording.record.in_flight_at_end += 1;
        self.recording.record.in_flight_ns += self.window.overlap_ns(timing.sent_ns, at_ns);
        self.tally(at_ns).discarded_bytes += discarded_bytes;
        if timing.sent_ns < self.window.start_ns {
            self.carried_in_outlasted(timing, at_ns);
        }
        self.names.censored(timing, at_ns, self.window);
        self.count_request(timing.due_ns, |population| population.censored += 1);
        self.unfinished(timing.due_ns, at_ns);
    }

    /// A request that was sent before the window ended at `at_ns`: `count` counts how, where that
    /// is in the window.
    fn carried_in_ended(
        &mut self,
        timing: RequestTiming,
        at_ns: u64,
        count: impl Fn(&mut CarriedIn),
    ) {
        match self.window.phase(at_ns) {
            Phase::Before => {}
            Phase::Measure => {
                self.carried_in.in_flight_ns += self.window.overlap_ns(timing.sent_ns, at_ns);
                count(&mut self.carried_in);
            }
            Phase::After => self.carried_in_outlasted(timing, at_ns),
        }
    }

    /// A request that was sent before the window was in flight until after it, as of `at_ns`. With
    /// a schedule of requests it is one of warm-up's, whatever it took; else its place in the loop
    /// was taken throughout, and no request of the window speaks for it.
    fn carried_in_outlasted(&mut self, timing: RequestTiming, at_ns: u64) {
        self.carried_in.in_flight_ns += self.window.overlap_ns(timing.sent_ns, at_ns);
        self.carried_in.unanswered += 1;
        let Window { start_ns, end_ns } = self.window;
        if !self.is_planned && start_ns < end_ns && start_ns <= at_ns {
            let outlasted_ns = at_ns.saturating_sub(timing.sent_ns);
            self.recording.latencies.unfinished.record(outlasted_ns);
        }
    }

    fn count_request(&mut self, due_ns: u64, count: impl Fn(&mut Population)) {
        if let Some(offset_ns) = self.window.offset(due_ns) {
            count(&mut self.recording.record.population);
            if let Some(StageRecord { population, .. }) = self.stages.at(offset_ns) {
                count(population);
            }
        }
    }
}

/// Where a request was in flight.
#[derive(Clone, Copy, Debug)]
pub struct LogPlace {
    /// The number of the connection in its worker.
    pub connection: u32,
    /// How the connection was opened, where the request is its first.
    pub opening: Option<Opening>,
}

impl Recorder {
    /// Has each request of the window logged that comes to an end, up to `max` of them.
    pub fn keep_log(&mut self, max: u64) {
        let connections = self.recording.record.live.most;
        self.log = Some(Box::new(LogPart::new(max, connections)));
    }

    /// Whether requests are logged.
    #[inline]
    pub fn keeps_log(&self) -> bool {
        self.log.is_some()
    }

    /// Logs what [`Recorder::reply`] is told of.
    pub fn log_reply(
        &mut self,
        timing: RequestTiming,
        done_ns: u64,
        answer: &Answer,
        place: LogPlace,
    ) {
        let is_of_window = self.window.contains(timing.due_ns);
        if let Some(log) = self.log.as_mut().filter(|_| is_of_window) {
            log.push(LoggedRequest {
                first_byte_ns: answer.first_byte_ns.clamp(timing.sent_ns, done_ns),
                body_bytes: answer.body_bytes,
                head_bytes: u32::try_from(answer.head_bytes).unwrap_or(u32::MAX),
                ..logged(timing, done_ns, LoggedEnd::Reply(answer.outcome), place)
            });
        }
    }

    /// Logs what [`Recorder::request_failed`] is told of.
    pub fn log_failure(
        &mut self,
        timing: RequestTiming,
        at_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
        place: LogPlace,
    ) {
        let is_of_window = self.window.contains(timing.due_ns);
        if let Some(log) = self.log.as_mut().filter(|_| is_of_window) {
            log.push(LoggedRequest {
                body_bytes: discarded_bytes,
                closes: true,
                ..logged(timing, at_ns, LoggedEnd::Failure(kind), place)
            });
        }
    }

    /// The server closes the connection behind the reply that was logged last.
    pub fn log_closes(&mut self) {
        if let Some(log) = &mut self.log {
            log.closes();
        }
    }

    /// Logs the beginning of a reply.
    pub fn log_response(&mut self, response: LoggedResponse) {
        if let Some(log) = &mut self.log {
            log.responses.push(response);
        }
    }

    /// Adds the log to that of the round, where there is one.
    pub fn hand_over_log(&mut self, round: &mut RequestLog) {
        if let Some(log) = self.log.take() {
            round.add(*log);
        }
    }
}

fn logged(timing: RequestTiming, done_ns: u64, end: LoggedEnd, place: LogPlace) -> LoggedRequest {
    let opening_us = place.opening.map(|opening| {
        let us = opening.to_ns.saturating_sub(opening.from_ns) / 1_000;
        u32::try_from(us).map_or(LoggedRequest::REUSED - 1, |us| {
            us.min(LoggedRequest::REUSED - 1)
        })
    });
    LoggedRequest {
        due_ns: timing.due_ns,
        sent_ns: timing.sent_ns,
        first_byte_ns: done_ns,
        done_ns,
        body_bytes: 0,
        head_bytes: 0,
        connection: place.connection,
        request: timing.request,
        opening_us: opening_us.unwrap_or(LoggedRequest::REUSED),
        end,
        closes: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoggedEnd, ReplyOutcome, Window};

    const START_NS: u64 = 1_000_000;

    fn recorder(max: u64) -> Recorder {
        let mut recorder = Recorder::new(0, 2, 2);
        recorder.keep_log(max);
        recorder.set_window(Window {
            start_ns: START_NS,
            end_ns: START_NS + 1_000_000,
        });
        recorder
    }

    fn timing(sent_ns: u64) -> RequestTiming {
        RequestTiming {
            due_ns: sent_ns,
            sent_ns,
            request: 0,
            again: 0,
        }
    }

    fn reply(recorder: &mut Recorder, sent_ns: u64, done_ns: u64, opening: Option<Opening>) {
        let answer = Answer {
            outcome: ReplyOutcome::of_status(200),
            retry_after: false,
            interim: 0,
            head_bytes: 50,
            body_bytes: sent_ns % 100,
            first_byte_ns: sent_ns + 5,
        };
        let place = LogPlace {
            connection: 1,
            opening,
        };
        recorder.log_reply(timing(sent_ns), done_ns, &answer, place);
    }

    #[test]
    fn a_request_takes_one_cache_line() {
        assert_eq!(size_of::<LoggedRequest>(), 64);
        assert_eq!(RequestLog::REQUESTS_MAX, 16_777_216);
    }

    #[test]
    fn requests_of_the_window_are_kept_by_their_ends() {
        let mut log = RequestLog::new(START_NS);
        let opening = Opening {
            from_ns: START_NS - 7_900,
            to_ns: START_NS,
        };
        let mut recorders = [recorder(10), recorder(10)];
        // Sent before the window.
        reply(&mut recorders[0], START_NS - 1, START_NS + 1, Some(opening));
        reply(
            &mut recorders[0],
            START_NS + 1,
            START_NS + 40,
            Some(opening),
        );
        recorders[0].log_closes();
        reply(&mut recorders[1], START_NS + 3, START_NS + 20, None);
        let place = LogPlace {
            connection: 0,
            opening: None,
        };
        recorders[1].log_failure(
            timing(START_NS + 9),
            START_NS + 50,
            FailureKind::Reset,
            3,
            place,
        );
        for recorder in &mut recorders {
            recorder.hand_over_log(&mut log);
        }
        assert_eq!((log.len(), log.left_out(), log.is_empty()), (3, 0, false));
        let requests: Vec<LoggedRequest> = log.requests().collect();
        let [a, b, c] = &requests[..] else {
            panic!("{requests:?}");
        };
        assert_eq!(
            (a.sent_ns, a.first_byte_ns, a.done_ns, a.connection),
            (3, 8, 20, 3)
        );
        assert_eq!((a.opening_us(), a.closes, a.head_bytes), (None, false, 50));
        assert_eq!((b.done_ns, b.opening_us(), b.closes), (40, Some(7), true));
        assert_eq!((b.connection, b.body_bytes), (1, 1));
        assert_eq!(
            (c.end, c.body_bytes, c.closes, c.connection),
            (LoggedEnd::Failure(FailureKind::Reset), 3, true, 2)
        );
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut recorder = recorder(2);
        for number in 0..5 {
            reply(
                &mut recorder,
                START_NS + number,
                START_NS + 10 + number,
                None,
            );
        }
        // It is the last one that is left out.
        recorder.log_closes();
        for done_ns in [11, 10] {
            recorder.log_response(LoggedResponse {
                done_ns,
                ..LoggedResponse::default()
            });
        }
        let mut log = RequestLog::new(START_NS);
        recorder.hand_over_log(&mut log);
        recorder.hand_over_log(&mut log);
        assert_eq!((log.len(), log.left_out()), (2, 3));
        assert!(log.requests().all(|request| !request.closes));
        let responses: Vec<u64> = log
            .responses()
            .iter()
            .map(|response| response.done_ns)
            .collect();
        assert_eq!(responses, [10, 11]);
    }
}
