//! ab's text of a run.

use std::fmt::Write;

use brunt_measure::{FailureScope, Run};

use super::options::Options;
use super::seen::Seen;
use super::times::{self, ConnectionTimes, Times};
use super::usage::BANNER;

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Measured {
    seen: Seen,
    /// What TLS was negotiated, as ab words it; absent in clear text.
    tls: Option<String>,
    /// Length of the run, nanoseconds.
    taken_ns: u64,
    /// Requests that have come to their end, failed ones too.
    complete: u64,
    /// Of these, those that failed.
    failed: Failed,
    /// Replies with another status than 2xx.
    non_2xx: u64,
    /// Bytes received.
    bytes: u64,
    /// Bytes of the requests that were sent.
    sent_bytes: u64,
    times: ConnectionTimes,
}

/// Requests that failed, by what failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Failed {
    /// The connection was not opened.
    connect: u64,
    /// It broke while the reply was read.
    receive: u64,
    /// The content was longer or shorter than the first reply's.
    length: u64,
}

impl Failed {
    fn total(&self) -> u64 {
        self.connect + self.receive + self.length
    }
}

impl Measured {
    fn of(options: &Options, run: &Run, seen: &Seen) -> Self {
        let summary = run.summary();
        let all = &summary.lifetime;
        let receive = all.failures.total(FailureScope::Request);
        let replies = all.replies.total();
        let successes = all.replies.iter().filter(|(status, _)| status / 100 == 2);
        let successes: u64 = successes.map(|(_, count)| count).sum();
        Self {
            seen: seen.clone(),
            tls: tls(run),
            taken_ns: run.window_ns,
            complete: replies + receive,
            failed: Failed {
                connect: all.failures.total(FailureScope::Connect),
                receive,
                length: if options.any_length {
                    0
                } else {
                    seen.other_lengths
                },
            },
            non_2xx: replies - successes,
            bytes: all.bytes_received.saturating_sub(all.overhead_bytes),
            sent_bytes: all.bytes_sent,
            times: times_of(options, run, replies),
        }
    }
}

/// What was negotiated, as OpenSSL names it, without the bits of keys, which are not known here.
fn tls(run: &Run) -> Option<String> {
    let tls = run.first().negotiated.tls.as_ref()?;
    let version = tls.version.replace("TLS ", "TLSv");
    Some(format!("{version},{}", tls.cipher_suite))
}

fn times_of(options: &Options, run: &Run, replies: u64) -> ConnectionTimes {
    let latencies = &run.latencies;
    let mut processing = latencies.response.clone();
    processing.merge(&latencies.response_error);
    let opening = &latencies.connect;
    let mut total = latencies.with_connect.clone();
    total.merge(&latencies.response_error);
    let reused = replies.saturating_sub(opening.count());
    ConnectionTimes {
        connect: Times::with_zeros(opening, reused),
        processing: Times::of(&processing),
        waiting: Times::of(&latencies.first_byte),
        total: Times::of(if options.keep_alive {
            &processing
        } else {
            &total
        }),
    }
}

/// What is printed when the load begins.
pub fn heading(options: &Options) -> String {
    let through = match &options.proxy {
        Some(proxy) => format!("[through {}:{}] ", proxy.host, proxy.port),
        None => String::new(),
    };
    let end = match options.progress_every {
        Some(_) => "\n",
        None => "...",
    };
    let host = &options.url.host;
    format!("{BANNER}Benchmarking {host} {through}(be patient){end}")
}

/// What is printed at the end of a run in whose replies this was seen.
pub fn report(options: &Options, run: &Run, seen: &Seen) -> String {
    print(options, &Measured::of(options, run, seen))
}

/// All percentiles, for the file of `-e`.
pub fn csv(options: &Options, run: &Run) -> String {
    let replies = run.summary().lifetime.replies.total();
    times::csv(&times_of(options, run, replies).total)
}

fn print(options: &Options, measured: &Measured) -> String {
    let mut text = String::new();
    if options.progress_every.is_none() {
        text.push_str("..done\n");
    }
    text.push_str("\n\n");
    server(options, measured, &mut text);
    counts(options, measured, &mut text);
    rates(options, measured, &mut text);
    let total = &measured.times.total;
    if measured.complete > 0 {
        times::table(&measured.times, options.confidence, &mut text);
        if options.percentiles && total.total() > 1 {
            times::percentiles(total, &mut text);
        }
    }
    text
}

fn line(text: &mut String, name: &str, value: &dyn std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name:<23} {value}");
}

fn server(options: &Options, measured: &Measured, text: &mut String) {
    line(text, "Server Software:", &measured.seen.server);
    line(text, "Server Hostname:", &options.url.host);
    line(text, "Server Port:", &options.url.port);
    if let Some(tls) = &measured.tls {
        line(text, "SSL/TLS Protocol:", tls);
        if options.url.host.parse::<std::net::IpAddr>().is_err() {
            line(text, "TLS Server Name:", &options.url.host);
        }
    }
    text.push('\n');
    line(text, "Document Path:", &options.url.path);
    if options.any_length {
        line(text, "Document Length:", &"Variable");
    } else {
        let bytes = format!("{} bytes", measured.seen.document_bytes.unwrap_or(0));
        line(text, "Document Length:", &bytes);
    }
    text.push('\n');
}

fn counts(options: &Options, measured: &Measured, text: &mut String) {
    let failed = measured.failed;
    line(text, "Concurrency Level:", &options.concurrency);
    let taken = format!("{:.3} seconds", measured.taken_ns as f64 / 1e9);
    line(text, "Time taken for tests:", &taken);
    line(text, "Complete requests:", &measured.complete);
    line(text, "Failed requests:", &failed.total());
    if failed.total() > 0 {
        let Failed {
            connect,
            receive,
            length,
        } = failed;
        let _ = writeln!(
            text,
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: 0)"
        );
    }
    if measured.non_2xx > 0 {
        line(text, "Non-2xx responses:", &measured.non_2xx);
    }
    if options.keep_alive {
        line(text, "Keep-Alive requests:", &measured.seen.kept);
    }
    let bytes = format!("{} bytes", measured.bytes);
    line(text, "Total transferred:", &bytes);
    if options.body.is_some() {
        line(text, "Total body sent:", &measured.sent_bytes);
    }
    let bytes = format!("{} bytes", measured.seen.content_bytes);
    line(text, "HTML transferred:", &bytes);
}

fn rates(options: &Options, measured: &Measured, text: &mut String) {
    let taken_s = measured.taken_ns as f64 / 1e9;
    let complete = measured.complete as f64;
    if taken_s <= 0.0 || complete == 0.0 {
        return;
    }
    let per_s = format!("{:.2} [#/sec] (mean)", complete / taken_s);
    line(text, "Requests per second:", &per_s);
    let ms = taken_s * 1e3 / complete;
    let concurrent = f64::from(options.concurrency.get()) * ms;
    line(
        text,
        "Time per request:",
        &format!("{concurrent:.3} [ms] (mean)"),
    );
    let across = "(mean, across all concurrent requests)";
    line(text, "Time per request:", &format!("{ms:.3} [ms] {across}"));
    let kib_per_s = |bytes: u64| bytes as f64 / 1024.0 / taken_s;
    let received = format!("{:.2} [Kbytes/sec] received", kib_per_s(measured.bytes));
    line(text, "Transfer rate:", &received);
    if options.body.is_some() {
        let sent = kib_per_s(measured.sent_bytes);
        line(text, "", &format!("{sent:.2} kb/s sent"));
        let both = kib_per_s(measured.bytes + measured.sent_bytes);
        line(text, "", &format!("{both:.2} kb/s total"));
    }
}

#[cfg(test)]
mod tests {
    use brunt_measure::Histogram;

    use super::*;

    fn options(line: &str) -> Options {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse("ab", &words).expect(line)
    }

    #[test]
    fn the_text_is_abs() {
        // Captured from ab, with times that give its table.
        let of = |us: u64| {
            let mut durations = Histogram::default();
            (0..20).for_each(|number| durations.record(us * 1_000 + number * 10_000));
            Times::of(&durations)
        };
        let measured = Measured {
            seen: Seen {
                server: "testd/1.0".to_owned(),
                document_bytes: Some(14),
                content_bytes: 280,
                kept: 20,
                ..Seen::default()
            },
            taken_ns: 224_280_000,
            complete: 20,
            bytes: 3_420,
            times: ConnectionTimes {
                connect: of(20),
                processing: of(20_600),
                waiting: of(20_600),
                total: of(20_620),
            },
            ..Measured::default()
        };
        let options = options("-k -n 20 -c 2 http://127.0.0.1:18090/");
        let text = heading(&options) + &print(&options, &measured);
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
