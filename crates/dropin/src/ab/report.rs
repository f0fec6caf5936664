//! What ab says of a run, found in its log. Writing to a string cannot fail.

use std::fmt::{Display, Write};

use brunt_engine::PrepareError;
use brunt_judge::RunFigures;
use brunt_record::{FailureKind, FailureScope, LoggedEnd, LoggedRequest, RequestLog, Run};
use brunt_report::Foreign;
use time::OffsetDateTime;

use super::options::{AbOptions, BANNER};
use crate::Ending;
use crate::ending::Cause;
use crate::libraries::{Times, short_us};
use crate::libraries::{openssl_suite, temporary_key};

/// How requests fail whose connection ends in the ordinary way.
const CLOSED: [FailureKind; 3] = [
    FailureKind::ClosedBeforeReply,
    FailureKind::TruncatedHead,
    FailureKind::TruncatedBody,
];
const PERCENTILES: [u64; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AbMeasured {
    /// The `Server` field of the first reply; empty without one.
    server: Foreign,
    /// Bytes of the content of the first reply; 0 without one.
    document_bytes: u64,
    /// Rows about the TLS that was negotiated; none in clear text.
    tls: Vec<(&'static str, String)>,
    /// Length of the run, nanoseconds.
    taken_ns: u64,
    /// Requests that have come to their end, failed ones too.
    complete: u64,
    /// Connections that were not opened, as requests that failed, which are among the complete
    /// ones.
    failed_connect: u64,
    /// Requests whose connection broke while the reply was read.
    failed_receive: u64,
    /// Requests whose content was longer or shorter than the first reply's.
    failed_length: u64,
    /// Replies with another status than 2xx.
    non_2xx: u64,
    /// Replies behind which the connection was kept.
    kept: u64,
    /// Bytes received.
    bytes: u64,
    /// Bytes received that are content of replies.
    content_bytes: u64,
    /// Bytes of the requests that were sent.
    sent_bytes: u64,
    times: [Times; 4],
    /// The beginnings of replies, where they are to be printed, and the status in each.
    replies: Vec<(Foreign, Foreign)>,
}

/// The times of one request, microseconds: from its beginning to the open connection, which is 0
/// where the connection was open already; from the send to the end of the reply; from the send to
/// its first byte; from the beginning to the end.
fn taken_us(request: &LoggedRequest) -> [u64; 4] {
    let us = |to_ns: u64| to_ns.saturating_sub(request.sent_ns) / 1_000;
    let connect = request.opening_us().unwrap_or(0);
    let processing = us(request.done_ns);
    let waiting = us(request.first_byte_ns);
    [connect, processing, waiting, connect + processing]
}

impl AbMeasured {
    /// The outcome of `run`, with its log.
    pub fn of(options: &AbOptions, run: &Run, log: &RequestLog) -> Self {
        let all = &run.summary().lifetime;
        let responses = log.responses();
        let first = responses.first();
        let mut measured = Self {
            server: first
                .and_then(|first| field(&first.head, "server"))
                .unwrap_or_default(),
            tls: negotiated(options, run),
            taken_ns: run.window_ns,
            failed_connect: all.failures.total(FailureScope::Connect),
            sent_bytes: all.bytes_sent,
            ..Self::default()
        };
        if options.prints_replies() {
            let beginnings = responses.iter().map(|reply| {
                let status = reply.head.get(9..12).unwrap_or_default();
                let text = [&reply.head[..], &reply.content].concat();
                (Foreign::of(&text), Foreign::of(status))
            });
            measured.replies = beginnings.collect();
        }
        let mut times = [const { Vec::new() }; 4];
        for request in log.requests() {
            measured.take(options, &request);
            for (times, us) in times.iter_mut().zip(taken_us(&request)) {
                times.push(short_us(us));
            }
        }
        measured.times = times.map(Times::of);
        measured
    }

    /// Counts a request that has come to its end.
    fn take(&mut self, options: &AbOptions, request: &LoggedRequest) {
        let is_first = self.complete == 0;
        self.complete += 1;
        self.bytes += u64::from(request.head_bytes) + request.body_bytes;
        let is_closed = match request.end {
            LoggedEnd::Reply(outcome) => {
                let is_2xx = outcome.status().is_some_and(|status| status / 100 == 2);
                self.non_2xx += u64::from(!is_2xx);
                self.kept += u64::from(!request.closes);
                self.content_bytes += request.body_bytes;
                true
            }
            // What came before the ordinary end of the connection is taken as the reply.
            LoggedEnd::Failure(kind) => CLOSED.contains(&kind),
        };
        if !is_closed {
            self.failed_receive += 1;
        } else if is_first {
            self.document_bytes = request.body_bytes;
        } else if request.body_bytes != self.document_bytes && !options.any_length {
            self.failed_length += 1;
        }
    }
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
pub fn gnuplot(run: &Run, log: &RequestLog) -> String {
    let window_ns = i128::from(run.first().clock.window_start_unix_ms) * 1_000_000;
    let listed = log.requests().map(|request| {
        let taken_us = taken_us(&request);
        let from_ns = i128::from(request.sent_ns) - i128::from(taken_us[0]) * 1_000;
        let start_unix_s = (window_ns + from_ns).div_euclid(1_000_000_000);
        (taken_us, i64::try_from(start_unix_s).unwrap_or(0))
    });
    list(listed.collect())
}

/// Lists the times of requests with the instants at which the openings of their connections began,
/// seconds since 1970 (UTC).
fn list(mut requests: Vec<([u64; 4], i64)>) -> String {
    requests.sort_by_key(|([connect, processing, waiting, total], _)| {
        (*total, *waiting, *processing, *connect)
    });
    let mut text = "starttime\tseconds\tctime\tdtime\tttime\twait\n".to_owned();
    for ([connect, processing, waiting, total], start_unix_s) in requests {
        let times = [connect, processing, total, waiting].map(|us| ms(us).to_string());
        let (date, times) = (date(start_unix_s), times.join("\t"));
        let _ = writeln!(text, "{date}\t{start_unix_s}\t{times}");
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

/// Rows about what was negotiated in `run`; none in clear text, and none about a key exchange of a
/// kind that ab has no words for.
fn negotiated(options: &AbOptions, run: &Run) -> Vec<(&'static str, String)> {
    let Some(tls) = &run.first().negotiated.tls else {
        return Vec::new();
    };
    let version = tls.version.replace("TLS ", "TLSv");
    let suite = openssl_suite(&tls.cipher_suite);
    let is_short = suite.contains("AES128") || suite.contains("AES_128");
    let bits = if is_short { 128 } else { 256 };
    let key = tls.group.as_deref().and_then(temporary_key);
    let name = options.server_name().map(str::to_owned);
    let mut rows = vec![("SSL/TLS Protocol:", format!("{version},{suite},{bits}"))];
    rows.extend(key.map(|key| ("Server Temp Key:", key)));
    rows.extend(name.map(|name| ("TLS Server Name:", name)));
    rows
}

/// What is said of times, milliseconds.
#[derive(Clone, Copy, Debug)]
struct Spread {
    min: u64,
    mean: u64,
    stdev: f64,
    median: u64,
    max: u64,
}

impl Spread {
    fn of(times: &Times) -> Self {
        let half = times.total() / 2;
        let is_odd = times.total() > 1 && times.total() % 2 == 1;
        let next = half + u64::from(is_odd);
        let median_us = (times.at(half) + times.at(next)) / 2;
        Self {
            min: ms(times.at(0)),
            mean: ms(times.mean()),
            stdev: times.deviation() / 1e3,
            median: ms(median_us),
            max: ms(times.longest()),
        }
    }
}

/// Whole milliseconds, rounded.
fn ms(us: u64) -> u64 {
    us.saturating_add(500) / 1_000
}

/// The table of connection times, and what is doubtful about it.
fn times_table(times: &[Times; 4], confidence: bool, text: &mut String) {
    let names = [
        ("Connect:", "the initial connection time"),
        ("Processing:", "the processing time"),
        ("Waiting:", "the waiting time"),
        ("Total:", "the total time"),
    ];
    let rows = names.into_iter().zip(times.iter().map(Spread::of));
    text.push_str("\nConnection Times (ms)\n              min ");
    text.push_str(if confidence {
        " mean[+/-sd] median   max\n"
    } else {
        "  avg   max\n"
    });
    for ((name, _), row) in rows.clone() {
        let (min, mean, max) = (row.min, row.mean, row.max);
        let (stdev, median) = (row.stdev, row.median);
        text.push_str(&if confidence {
            format!("{name:<12}{min:5} {mean:4} {stdev:5.1} {median:6} {max:7}\n")
        } else {
            format!("{name:<12}{min:5} {mean:5}{max:5}\n")
        });
    }
    if !confidence {
        return;
    }
    for ((_, what), row) in rows {
        let apart = row.mean.abs_diff(row.median) as f64;
        text.push_str(&if apart > 2.0 * row.stdev {
            format!(
                "ERROR: The median and mean for {what} are more than twice the standard\n       \
                 deviation apart. These results are NOT reliable.\n"
            )
        } else if apart > row.stdev {
            format!(
                "WARNING: The median and mean for {what} are not within a normal deviation\n\
                 {:8}These results are probably not that reliable.\n",
                ""
            )
        } else {
            continue;
        });
    }
}

/// The table of percentiles.
fn percentiles(total: &Times, text: &mut String) {
    text.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for percent in PERCENTILES {
        let (us, end) = match percent {
            100 => (total.longest(), " (longest request)"),
            percent => (total.at(total.total() * percent / 100), ""),
        };
        let _ = writeln!(text, "{percent:4}%  {:5}{end}", ms(us));
    }
}

/// What is printed when the load begins, with this request.
pub fn heading(options: &AbOptions, request: &[u8]) -> String {
    let mut text = format!("{BANNER}Benchmarking {} ", options.url.host);
    if let Some((host, port)) = &options.proxy {
        let _ = write!(text, "[through {host}:{port}] ");
    }
    text.push_str("(be patient)");
    let is_told = options.progress_every().is_some();
    text.push_str(if is_told { "\n" } else { "..." });
    if options.prints_replies() {
        let request = String::from_utf8_lossy(request);
        let head = request.split_inclusive("\r\n\r\n").next().unwrap_or("");
        let method = options.method();
        let _ = writeln!(text, "INFO: {method} header == \n---\n{head}\n---");
    }
    text
}

/// What is printed at the end of a run with this outcome.
pub fn report(options: &AbOptions, measured: &AbMeasured) -> String {
    let mut text = String::new();
    for (reply, status) in &measured.replies {
        let _ = writeln!(text, "LOG: header received:\n{}", reply.lines());
        if options.verbosity >= 3 {
            let _ = writeln!(text, "LOG: Response code = {}", status.printable());
        }
    }
    if options.progress_every().is_none() {
        text.push_str("..done\n");
    }
    text.push_str("\n\n");
    text.push_str(&rows(options, measured));
    let [.., total] = &measured.times;
    if measured.complete > 0 {
        times_table(&measured.times, !options.no_confidence, &mut text);
        if !options.no_percentiles && total.total() > 1 {
            percentiles(total, &mut text);
        }
    }
    text
}

/// All percentiles, for the file of `-e`.
pub fn csv(measured: &AbMeasured) -> String {
    let [.., total] = &measured.times;
    let mut text = "Percentage served,Time in ms\n".to_owned();
    for percent in 0..=100_u32 {
        let us = match percent {
            0 => total.at(0),
            100 => total.longest(),
            percent => total.at((0.5 + total.total() as f64 * f64::from(percent) / 100.0) as u64),
        };
        let _ = writeln!(text, "{percent},{:.3}", us as f64 / 1e3);
    }
    text
}

/// Writes a row: a name, which is empty where it is that of the row before, and a value.
fn row(text: &mut String, name: &str, value: impl Display) {
    let _ = writeln!(text, "{name:<23} {value}");
}

/// The rows above the times.
fn rows(options: &AbOptions, measured: &AbMeasured) -> String {
    let mut rows = String::new();
    let text = &mut rows;
    row(text, "Server Software:", measured.server.lines());
    row(text, "Server Hostname:", &options.url.host);
    row(text, "Server Port:", options.url.port);
    for (name, value) in &measured.tls {
        row(text, name, value);
    }
    text.push('\n');
    row(text, "Document Path:", &options.url.path);
    let bytes = |count: u64| format!("{count} bytes");
    let length = if options.any_length {
        "Variable".to_owned()
    } else {
        bytes(measured.document_bytes)
    };
    row(text, "Document Length:", length);
    let (connect, receive) = (measured.failed_connect, measured.failed_receive);
    let lengths = measured.failed_length;
    let failed = connect + receive + lengths;
    let taken_s = measured.taken_ns as f64 / 1e9;
    text.push('\n');
    row(text, "Concurrency Level:", options.concurrency);
    let _ = writeln!(text, "Time taken for tests:   {taken_s:.3} seconds");
    row(text, "Complete requests:", measured.complete);
    row(text, "Failed requests:", failed);
    if failed > 0 {
        let _ = writeln!(
            text,
            "   (Connect: {connect}, Receive: {receive}, Length: {lengths}, Exceptions: 0)"
        );
    }
    if measured.non_2xx > 0 {
        row(text, "Non-2xx responses:", measured.non_2xx);
    }
    if options.keep_alive {
        row(text, "Keep-Alive requests:", measured.kept);
    }
    row(text, "Total transferred:", bytes(measured.bytes));
    if options.body.is_some() {
        row(text, "Total body sent:", measured.sent_bytes);
    }
    row(text, "HTML transferred:", bytes(measured.content_bytes));
    let complete = measured.complete as f64;
    if taken_s <= 0.0 || complete == 0.0 {
        return rows;
    }
    let per_s = complete / taken_s;
    let ms = taken_s * 1e3 / complete;
    let at_once_ms = f64::from(options.concurrency) * ms;
    let kib_per_s = |bytes: u64| bytes as f64 / 1024.0 / taken_s;
    let received = kib_per_s(measured.bytes);
    let _ = writeln!(
        text,
        "Requests per second:    {per_s:.2} [#/sec] (mean)\n\
         Time per request:       {at_once_ms:.3} [ms] (mean)\n\
         Time per request:       {ms:.3} [ms] (mean, across all concurrent requests)\n\
         Transfer rate:          {received:.2} [Kbytes/sec] received"
    );
    if options.body.is_some() {
        let sent = kib_per_s(measured.sent_bytes);
        let both = kib_per_s(measured.bytes + measured.sent_bytes);
        row(text, "", format!("{sent:.2} kb/s sent"));
        row(text, "", format!("{both:.2} kb/s total"));
    }
    rows
}

/// Where the codes of the resolver begin in ab's messages.
const RESOLVER_CODES: u32 = 670_000;
/// A time-out in ab's messages.
const TIMED_OUT: u32 = 70_007;

/// How a run ends that cannot be prepared. Absent where ab has no words for it.
pub fn preparation_ending(options: &AbOptions, error: &PrepareError) -> Option<Ending> {
    Some(match Cause::of(error)? {
        Cause::Resolve(reason) => {
            // EAI_NONAME, EAI_AGAIN.
            let code = 2 + u32::from(reason.starts_with("Temporary"));
            let what = format!("apr_sockaddr_info_get() for {}", options.server().0);
            ending(&what, &reason, RESOLVER_CODES + code)
        }
        Cause::Connect(reason, Some(code)) => ending("apr_socket_recv", &reason, code),
        Cause::Connect(..) => timed_out(),
    })
}

/// Why ab would have ended in the middle of `run`. Absent where it would have gone on.
pub fn run_ending(options: &AbOptions, run: &Run) -> Option<Ending> {
    let summary = run.summary();
    let failures = &summary.lifetime.failures;
    let mut ending = if failures.get(FailureKind::TimedOut) > 0 {
        timed_out()
    } else if failures.get(FailureKind::Reset) > 0 && !options.goes_on {
        ending("apr_socket_recv", "Connection reset by peer", 104)
    } else {
        return None;
    };
    let replies = summary.lifetime.replies.total();
    if replies > 0 {
        ending.stdout = format!("Total of {replies} requests completed\n");
    }
    Some(ending)
}

fn timed_out() -> Ending {
    let reason = "The timeout specified has expired";
    ending("apr_pollset_poll", reason, TIMED_OUT)
}

/// ab exits with what a process can give of the code.
fn ending(what: &str, reason: &str, code: u32) -> Ending {
    Ending::error(&format!("{what}: {reason} ({code})"), code as u8)
}

#[cfg(test)]
mod tests {
    use brunt_record::{Answer, LogPlace, Recorder, ReplyOutcome, RequestTiming, Window};

    use super::*;
    use crate::getopt::tests::words;

    fn options(line: &str) -> AbOptions {
        let words = words(line);
        AbOptions::parse("ab", &words).expect(line)
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
            let mut measured = AbMeasured::default();
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
            let expected = AbMeasured {
                document_bytes: 4,
                complete: 5,
                failed_receive: 1,
                failed_length: length,
                non_2xx: 1,
                kept: 3,
                bytes: 54,
                content_bytes,
                ..AbMeasured::default()
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
        let requests = vec![
            ([1_500, 19_999, 400, 21_499], 1_795_308_250),
            ([0, 900, 400, 900], 1_795_308_249),
        ];
        let expected = "\
starttime\tseconds\tctime\tdtime\tttime\twait
Sun Nov 22 00:44:09 2026\t1795308249\t0\t1\t1\t0
Sun Nov 22 00:44:10 2026\t1795308250\t2\t20\t21\t0
";
        assert_eq!(list(requests), expected);
    }

    fn of(us: &[u32]) -> Times {
        Times::of(us.to_vec())
    }

    #[test]
    fn percentiles_are_abs() {
        let times = of(&(1..=20).map(|ms| ms * 1_000).collect::<Vec<_>>());
        let mut text = String::new();
        percentiles(&times, &mut text);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "  50%     11",
                "  66%     14",
                "  75%     16",
                "  80%     17",
                "  90%     19",
                "  95%     20",
                "  98%     20",
                "  99%     20",
                " 100%     20 (longest request)",
            ]
        );
        let mut measured = AbMeasured::default();
        measured.times[3] = times;
        let csv = csv(&measured);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            (lines.len(), lines[1], lines[51]),
            (102, "0,1.000", "50,11.000")
        );
        assert_eq!((lines[99], lines[101]), ("98,20.000", "100,20.000"));
    }

    #[test]
    fn rows_are_abs() {
        let row = Spread::of(&of(&[20_499, 20_500, 21_500]));
        assert_eq!((row.min, row.mean, row.median, row.max), (20, 21, 21, 22));
        let row = Spread::of(&Times::default());
        assert_eq!(
            (row.min, row.mean, row.stdev, row.median, row.max),
            (0, 0, 0.0, 0, 0)
        );
    }

    #[test]
    fn doubtful_tables_say_so() {
        let mut text = String::new();
        let mut times: [Times; 4] = Default::default();
        times[1] = of(&[1_000, 1_000, 1_000, 9_000]);
        times_table(&times, true, &mut text);
        assert!(!text.contains("reliable"), "{text}");
        times[1] = Times::of([vec![1_000; 400], vec![2_000; 399]].concat());
        times_table(&times, true, &mut text);
        assert!(
            text.contains("WARNING: The median and mean for the processing"),
            "{text}"
        );
    }

    #[test]
    fn the_text_is_abs() {
        // Captured from ab, with times that give its table.
        let of = |us: u32| Times::of((0..20).map(|number| us + number * 10).collect());
        let measured = AbMeasured {
            server: Foreign::of(b"testd/1.0"),
            document_bytes: 14,
            content_bytes: 280,
            kept: 20,
            taken_ns: 224_280_000,
            complete: 20,
            bytes: 3_420,
            times: [of(20), of(20_600), of(20_600), of(20_620)],
            ..AbMeasured::default()
        };
        let options = options("-k -n 20 -c 2 http://127.0.0.1:18090/");
        let text = heading(&options, b"") + &report(&options, &measured);
        let expected = "\
This is ApacheBench, Version 2.3 <$Revision$>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/
Licensed to The Apache Software Foundation, http://www.apache.org/

Benchmarking 127.0.0.1 (be patient).....done


Server Software:        testd/1.0
Server Hostname:        127.0.0.1
Server Port:            18090

Document Path:          /
Document Length:        14 bytes

Concurrency Level:      2
Time taken for tests:   0.224 seconds
Complete requests:      20
Failed requests:        0
Keep-Alive requests:    20
Total transferred:      3420 bytes
HTML transferred:       280 bytes
Requests per second:    89.17 [#/sec] (mean)
Time per request:       22.428 [ms] (mean)
Time per request:       11.214 [ms] (mean, across all concurrent requests)
Transfer rate:          14.89 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.1      0       0
Processing:    21   21   0.1     21      21
Waiting:       21   21   0.1     21      21
Total:         21   21   0.1     21      21

Percentage of the requests served within a certain time (ms)
  50%     21
  66%     21
  75%     21
  80%     21
  90%     21
  95%     21
  98%     21
  99%     21
 100%     21 (longest request)
";
        assert_eq!(text, expected);
    }
}
