//! What ab says of a run, found in its log.

use brunt_judge::RunFigures;
use brunt_record::{
    FailureKind, FailureScope, LoggedEnd, LoggedRequest, ReplyOutcome, RequestLog, Run,
};
use brunt_report::Foreign;
use time::OffsetDateTime;

use super::options::Options;
use super::times::{ConnectionTimes, Times};
use super::tls::{self, Tls};

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The `Server` field of the first reply; empty without one.
    pub(super) server: Foreign,
    /// Bytes of the content of the first reply; 0 without one.
    pub(super) document_bytes: u64,
    /// What TLS was negotiated; absent in clear text.
    pub(super) tls: Option<Tls>,
    /// Length of the run, nanoseconds.
    pub(super) taken_ns: u64,
    /// Requests that have come to their end, failed ones too.
    pub(super) complete: u64,
    /// The requests that failed; they are among the complete ones.
    pub(super) failed: Failed,
    /// Replies with another status than 2xx.
    pub(super) non_2xx: u64,
    /// Replies behind which the connection was kept.
    pub(super) kept: u64,
    /// Bytes received.
    pub(super) bytes: u64,
    /// Bytes received that are content of replies.
    pub(super) content_bytes: u64,
    /// Bytes of the requests that were sent.
    pub(super) sent_bytes: u64,
    pub(super) times: ConnectionTimes,
    /// The beginnings of replies, where they are to be printed.
    pub(super) replies: Vec<Beginning>,
    /// Each request, where they are to be listed.
    pub(super) listed: Vec<Listed>,
}

/// Requests that failed, by what failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failed {
    /// The connection was not opened.
    pub(super) connect: u64,
    /// The connection broke while the reply was read.
    pub(super) receive: u64,
    /// The content was longer or shorter than the first reply's.
    pub(super) length: u64,
}

impl Failed {
    pub(super) fn total(&self) -> u64 {
        self.connect + self.receive + self.length
    }
}

/// The beginning of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beginning {
    /// The head of the reply and what follows it.
    pub(super) text: Foreign,
    /// The status, as it stands in the head.
    pub(super) status: Foreign,
}

/// A request of the file of `-g`. Durations are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// When the opening of the request's connection began, seconds since 1970 (UTC).
    pub(super) start_unix_s: i64,
    pub(super) connect_us: u64,
    pub(super) total_us: u64,
    pub(super) waiting_us: u64,
}

/// The times of one request, microseconds.
struct Taken {
    connect_us: u64,
    processing_us: u64,
    waiting_us: u64,
}

impl Taken {
    fn of(request: &LoggedRequest) -> Self {
        let us = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) / 1_000;
        Self {
            connect_us: request.opening_us().unwrap_or(0),
            processing_us: us(request.sent_ns, request.done_ns),
            waiting_us: us(request.sent_ns, request.first_byte_ns),
        }
    }
}

impl Measured {
    /// The outcome of `run`, with its log.
    pub fn of(options: &Options, run: &Run, log: &RequestLog) -> Self {
        let all = &run.summary().lifetime;
        let responses = log.responses();
        let mut measured = Self {
            server: responses
                .first()
                .and_then(|first| field(&first.head, "server"))
                .unwrap_or_default(),
            tls: tls::negotiated(options, run),
            taken_ns: run.window_ns,
            failed: Failed {
                connect: all.failures.total(FailureScope::Connect),
                ..Failed::default()
            },
            sent_bytes: all.bytes_sent,
            ..Self::default()
        };
        if options.prints_replies() {
            let beginning = |head: &[u8], content: &[u8]| Beginning {
                status: Foreign::of(head.get(9..12).unwrap_or_default()),
                text: Foreign::of(&[head, content].concat()),
            };
            let responses = responses.iter();
            let beginnings = responses.map(|reply| beginning(&reply.head, &reply.content));
            measured.replies = beginnings.collect();
        }
        let first_unix_ns =
            i128::from(run.first().clock.window_start_unix_ms).saturating_mul(1_000_000);
        let mut times = [const { Vec::new() }; 4];
        for request in log.requests() {
            measured.take(options, &request);
            let taken = Taken::of(&request);
            let total_us = taken.connect_us + taken.processing_us;
            let parts = [
                taken.connect_us,
                taken.processing_us,
                taken.waiting_us,
                total_us,
            ];
            for (times, us) in times.iter_mut().zip(parts) {
                times.push(u32::try_from(us).unwrap_or(u32::MAX));
            }
            if options.gnuplot.is_some() {
                let from_ns = i128::from(request.sent_ns) - i128::from(taken.connect_us) * 1_000;
                let start_unix_s = (first_unix_ns + from_ns).div_euclid(1_000_000_000);
                measured.listed.push(Listed {
                    start_unix_s: i64::try_from(start_unix_s).unwrap_or(0),
                    connect_us: taken.connect_us,
                    total_us,
                    waiting_us: taken.waiting_us,
                });
            }
        }
        let [connect, processing, waiting, total] = times.map(Times::of);
        measured.times = ConnectionTimes {
            connect,
            processing,
            waiting,
            total,
        };
        measured
    }

    /// Counts a request that has come to its end.
    fn take(&mut self, options: &Options, request: &LoggedRequest) {
        let is_first = self.complete == 0;
        self.complete += 1;
        self.bytes += u64::from(request.head_bytes) + request.body_bytes;
        let is_closed = match request.end {
            LoggedEnd::Reply(outcome) => {
                self.count_status(outcome);
                self.kept += u64::from(!request.closes);
                self.content_bytes += request.body_bytes;
                true
            }
            LoggedEnd::Failure(kind) => is_end(kind),
        };
        if !is_closed {
            self.failed.receive += 1;
        } else if is_first {
            self.document_bytes = request.body_bytes;
        } else if request.body_bytes != self.document_bytes && !options.any_length {
            self.failed.length += 1;
        }
    }

    fn count_status(&mut self, outcome: ReplyOutcome) {
        let is_2xx = outcome.status().is_some_and(|status| status / 100 == 2);
        self.non_2xx += u64::from(!is_2xx);
    }
}

/// Whether the connection came to its ordinary end: ab takes what came as the reply.
fn is_end(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::ClosedBeforeReply | FailureKind::TruncatedHead | FailureKind::TruncatedBody
    )
}

/// The value of the first field of this name in a head.
fn field(head: &[u8], name: &str) -> Option<Foreign> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let at = line.iter().position(|byte| *byte == b':')?;
        let (key, value) = (&line[..at], &line[at + 1..]);
        key.eq_ignore_ascii_case(name.as_bytes())
            .then(|| Foreign::of(value.trim_ascii_start()))
    })
}

/// The file of `-g`: a line for each request, by what they took.
pub fn gnuplot(measured: &Measured) -> String {
    let mut listed = measured.listed.clone();
    listed.sort_by_key(|request| {
        let processing_us = request.total_us - request.connect_us;
        (
            request.total_us,
            request.waiting_us,
            processing_us,
            request.connect_us,
        )
    });
    let mut text = "starttime\tseconds\tctime\tdtime\tttime\twait\n".to_owned();
    for request in listed {
        let ms = |us: u64| us.saturating_add(500) / 1_000;
        let columns = [
            date(request.start_unix_s),
            request.start_unix_s.to_string(),
            ms(request.connect_us).to_string(),
            ms(request.total_us - request.connect_us).to_string(),
            ms(request.total_us).to_string(),
            ms(request.waiting_us).to_string(),
        ];
        text.push_str(&columns.join("\t"));
        text.push('\n');
    }
    text
}

/// The time as C's `ctime` prints it, in UTC.
fn date(unix_s: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp(unix_s).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        &weekday[..3],
        &month[..3],
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.year()
    )
}

#[cfg(test)]
mod tests {
    use brunt_record::{Answer, LogPlace, Recorder, RequestTiming, Window};

    use super::*;
    use crate::shell::words;

    fn options(line: &str) -> Options {
        let words = words(line);
        Options::parse("ab", &words).expect(line)
    }

    /// A log with these ends of requests, each with the bytes of its content.
    fn logged(ends: &[(LoggedEnd, u64)]) -> RequestLog {
        let mut recorder = Recorder::new(0, 1, 1);
        recorder.keep_log(ends.len() as u64);
        recorder.set_window(Window {
            start_ns: 0,
            end_ns: 1_000,
        });
        let place = LogPlace {
            connection: 0,
            opening: None,
        };
        for (&(end, body_bytes), sent_ns) in ends.iter().zip(0..) {
            let timing = RequestTiming {
                due_ns: sent_ns,
                sent_ns,
                request: 0,
                again: 0,
            };
            match end {
                LoggedEnd::Reply(outcome) => {
                    let answer = Answer {
                        outcome,
                        retry_after: false,
                        interim: 0,
                        head_bytes: 10,
                        body_bytes,
                        first_byte_ns: sent_ns,
                    };
                    recorder.log_reply(timing, sent_ns, &answer, place);
                }
                LoggedEnd::Failure(kind) => {
                    recorder.log_failure(timing, sent_ns, kind, body_bytes, place);
                }
            }
        }
        let mut log = RequestLog::new(0);
        recorder.hand_over_log(&mut log);
        log
    }

    #[test]
    fn lengths_are_compared_with_the_first_replys() {
        let reply = LoggedEnd::Reply(ReplyOutcome::of_status(200));
        let error = LoggedEnd::Reply(ReplyOutcome::of_status(302));
        let truncated = LoggedEnd::Failure(FailureKind::TruncatedBody);
        let reset = LoggedEnd::Failure(FailureKind::Reset);
        for (line, length, content_bytes) in [("h/", 2, 17), ("-l h/", 0, 17)] {
            let mut measured = Measured::default();
            let ends = [
                (reply, 4),
                (reply, 4),
                (error, 9),
                (truncated, 3),
                (reset, 4),
            ];
            for request in logged(&ends).requests() {
                measured.take(&options(line), &request);
            }
            let expected = Measured {
                document_bytes: 4,
                complete: 5,
                failed: Failed {
                    connect: 0,
                    receive: 1,
                    length,
                },
                non_2xx: 1,
                kept: 3,
                bytes: 54,
                content_bytes,
                ..Measured::default()
            };
            assert_eq!(measured, expected);
        }
    }

    #[test]
    fn fields_are_found_in_any_case() {
        let head = b"HTTP/1.1 200 OK\r\nX: y\r\nSERVER:  a b\r\n\r\n";
        assert_eq!(field(head, "server"), Some(Foreign::of(b"a b")));
        assert_eq!(field(b"HTTP/1.1 200 OK\r\n\r\n", "server"), None);
    }

    #[test]
    fn requests_are_listed_by_what_they_took() {
        let listed = |start_unix_s, connect_us, total_us| Listed {
            start_unix_s,
            connect_us,
            total_us,
            waiting_us: 400,
        };
        let measured = Measured {
            listed: vec![
                listed(1_795_308_250, 1_500, 21_499),
                listed(1_795_308_249, 0, 900),
            ],
            ..Measured::default()
        };
        let expected = "\
starttime\tseconds\tctime\tdtime\tttime\twait
Sun Nov 22 00:44:09 2026\t1795308249\t0\t1\t1\t0
Sun Nov 22 00:44:10 2026\t1795308250\t2\t20\t21\t0
";
        assert_eq!(gnuplot(&measured), expected);
    }
}
