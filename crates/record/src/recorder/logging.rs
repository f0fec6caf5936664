//! What is logged of single requests, where a log is kept.

use super::Recorder;
use crate::request_log::LogPart;
use crate::{
    Answer, FailureKind, LoggedEnd, LoggedRequest, LoggedResponse, Opening, RequestLog,
    RequestTiming,
};

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
        let responses: Vec<u64> = log.responses().iter().map(|it| it.done_ns).collect();
        assert_eq!(responses, [10, 11]);
    }
}
