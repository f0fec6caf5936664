//! h2load's text of a run. Writing to a string cannot fail.

use std::fmt::Write;

use brunt_judge::RunFigures;
use brunt_load::HttpChoice;
use brunt_record::{FailureKind, FailureScope, LoggedEnd, RequestLog, Run, Tally};

use super::options::H2loadOptions;
use crate::Ending;
use crate::ending::strerror;
use crate::libraries::{deviation, share};
use crate::libraries::{openssl_suite, temporary_key};

/// What is printed when a load of so many requests begins.
pub fn heading(options: &H2loadOptions, requests: u64) -> String {
    let threads = options.threads;
    let period = duration(options.period_ns as f64 / 1e3).replace(".00", "");
    let lines = (0..threads).map(|number| {
        let clients = share(options.clients, threads, number);
        let rate = options.rate.map(|rate| share(rate, threads, number));
        let paced = rate
            .filter(|&rate| clients > rate)
            .map(|rate| format!("Up to {rate} client(s) will be created every {period} "));
        let paced = paced.unwrap_or_default();
        let what = match options.duration_ns {
            Some(ns) => format!(
                "Timing-based test with {}s of warm-up time and {}s of main duration for \
                 measurements.",
                options.warmup_ns as f64 / 1e9,
                ns as f64 / 1e9
            ),
            None => format!("{} total requests", requests_of(options, requests, number)),
        };
        format!("spawning thread #{number}: {clients} total client(s). {paced}{what}\n")
    });
    "starting benchmark...\n".to_owned() + &lines.collect::<String>()
}

/// The share of `requests` that a thread sends. With a timing script, each client of the thread
/// sends as many as any other client.
fn requests_of(options: &H2loadOptions, requests: u64, thread: u64) -> u64 {
    let (threads, clients) = (options.threads, options.clients);
    match &options.timing_script {
        Some(_) => requests / clients * share(clients, threads, thread),
        None => share(requests, threads, thread),
    }
}

/// The outcome of one client.
#[derive(Clone, Copy, Debug, Default)]
struct ClientStatistics {
    from_ns: Option<u64>,
    to_ns: u64,
    done: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
struct H2loadMeasured {
    protocol: &'static str,
    /// Lines about TLS.
    tls: String,
    taken_ns: u64,
    /// What is counted.
    all: Tally,
    total: u64,
    failed: u64,
    times: Times,
}

/// Requests in flight on connections that were given up for want of a reply: in HTTP/1.1 brunt says
/// of those behind the oldest that they were not answered.
fn timed_out(all: &Tally) -> u64 {
    match all.failures.get(FailureKind::TimedOut) {
        0 => 0,
        oldest => oldest + all.failures.get(FailureKind::Unanswered),
    }
}

/// The instant before which the replies that are counted came, nanoseconds from the start of the
/// window: the log has those that came later, too.
fn counted_until_ns(options: &H2loadOptions, run: &Run) -> u64 {
    options.duration_ns.map_or(u64::MAX, |_| run.window_ns)
}

impl H2loadMeasured {
    fn of(options: &H2loadOptions, requests: u64, run: &Run, log: &RequestLog) -> Self {
        let summary = run.summary();
        // What is due at the end of a run by count may be sent behind its window.
        let all = match options.duration_ns {
            Some(_) => summary.window,
            None => summary.lifetime,
        };
        let negotiated = &run.first().negotiated;
        let mut measured = Self {
            protocol: match (negotiated.protocol.alpn, &negotiated.tls) {
                (Some("h2"), None) => "h2c",
                (Some(name), _) => name,
                // It loads with HTTP alone.
                (None, _) => negotiated.protocol.name,
            },
            taken_ns: run.window_ns,
            tls: tls_lines(run),
            all,
            ..Self::default()
        };
        let times = &mut measured.times;
        let until_ns = counted_until_ns(options, run);
        let mut clients: Vec<ClientStatistics> = Vec::new();
        for request in log.requests() {
            let us = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / 1e3;
            let place = request.connection as usize;
            clients.resize(clients.len().max(place + 1), ClientStatistics::default());
            let client = &mut clients[place];
            let opening_us = request.opening_us();
            let opening_ns = opening_us.unwrap_or(0) * 1_000;
            let from_ns = request.sent_ns.saturating_sub(opening_ns);
            client.from_ns.get_or_insert(from_ns);
            client.to_ns = client.to_ns.max(request.done_ns.min(until_ns));
            let opening_us = opening_us.map(|us| us as f64);
            times.connect.0.extend(opening_us);
            let is_reply = matches!(request.end, LoggedEnd::Reply(_));
            if !is_reply || request.done_ns >= until_ns {
                continue;
            }
            let first_us = us(request.sent_ns, request.first_byte_ns);
            times
                .first_byte
                .0
                .extend(opening_us.map(|us| us + first_us));
            client.done += 1;
            times.request.0.push(us(request.sent_ns, request.done_ns));
        }
        let replies = &measured.all.replies;
        (measured.total, measured.failed) = match options.duration_ns {
            Some(_) => {
                let failures = measured.all.failures.total(FailureScope::Request);
                (replies.total(), replies.errors() + failures)
            }
            // What was not sent, since its connection failed, has failed, too.
            None => (requests, requests.saturating_sub(replies.successes())),
        };
        let rates = clients.iter().filter_map(|client| {
            let ns = client.to_ns.saturating_sub(client.from_ns?);
            (ns > 0).then(|| client.done as f64 * 1e9 / ns as f64)
        });
        measured.times.rate = Sample(rates.collect());
        measured
    }
}

/// Bytes as h2load prints them.
fn bytes(count: f64) -> String {
    let units = [("G", 1_073_741_824.0), ("M", 1_048_576.0), ("K", 1_024.0)];
    match units.into_iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{:.2}{unit}B", count / size),
        None => format!("{count:.0}B"),
    }
}

/// What is printed at the end of a run of so many requests, with its log.
pub fn report(options: &H2loadOptions, requests: u64, run: &Run, log: &RequestLog) -> String {
    print(options, &H2loadMeasured::of(options, requests, run, log))
}

/// How a run ends whose host has no address.
pub fn unresolved(reason: &std::io::Error) -> Ending {
    Ending::error(&format!("getaddrinfo() failed: {}", strerror(reason)), 1)
}

/// What is printed in place of a run of so many requests whose server cannot be reached, or does
/// not speak what is asked of it, which took so long.
pub fn unreached(options: &H2loadOptions, requests: u64, taken_ns: u64) -> String {
    let total = if options.duration_ns.is_some() {
        0
    } else {
        requests
    };
    let measured = H2loadMeasured {
        taken_ns,
        total,
        failed: total,
        ..H2loadMeasured::default()
    };
    heading(options, requests) + &print(options, &measured)
}

/// A line for each request of the log that is counted, in the order of their ends: the instant at
/// which it was sent, microseconds since 1970; the status, -1 where it failed; microseconds to its
/// end.
pub fn log_lines(options: &H2loadOptions, run: &Run, log: &RequestLog) -> String {
    let start_us = run.first().clock.window_start_unix_ms * 1_000;
    let until_ns = counted_until_ns(options, run);
    let mut text = String::new();
    for request in log
        .requests()
        .take_while(|request| request.done_ns < until_ns)
    {
        let sent_us = start_us + request.sent_ns / 1_000;
        let taken_us = request.done_ns.saturating_sub(request.sent_ns) / 1_000;
        let status = match request.end {
            LoggedEnd::Reply(outcome) => i32::from(outcome.status().unwrap_or(0)),
            LoggedEnd::Failure(_) => -1,
        };
        let _ = writeln!(text, "{sent_us}\t{status}\t{taken_us}");
    }
    text
}

/// What the first thread says as its work goes on, and what was negotiated.
fn progress(options: &H2loadOptions, measured: &H2loadMeasured) -> String {
    let threads = options.threads;
    let clients = options.clients.div_ceil(threads);
    let say = |all: u64, ended: std::ops::Range<u64>, what: &str| -> String {
        let step = (all / 10).max(1);
        let ended = ended.map(|ended| ended + 1);
        let told = ended.filter(|ended| ended.is_multiple_of(step));
        let lines = told.map(|ended| format!("progress: {}% {what}\n", ended * 100 / all));
        lines.collect()
    };
    let negotiated = match measured.protocol {
        "" => String::new(),
        protocol => format!("{}Application protocol: {protocol}\n", measured.tls),
    };
    let of_threads = |lines: &str| -> String {
        let each = (0..threads).map(|thread| lines.replace("#0", &format!("#{thread}")));
        each.collect()
    };
    if options.duration_ns.is_some() {
        let started = of_threads("Warm-up started for thread #0.\n");
        let said = say(clients, 0..clients, "of clients started");
        let begins = of_threads(
            "Warm-up phase is over for thread #0.\n\
             Main benchmark duration is started for thread #0.\n",
        );
        let ends = of_threads(
            "Main benchmark duration is over for thread #0. Stopping all clients.\n\
             Stopped all clients for thread #0\n",
        );
        // Without a warm-up that is over before anything is negotiated.
        if options.warmup_ns > 0 {
            started + &said + &negotiated + &begins + &ends
        } else {
            started + &said + &begins + &negotiated + &ends
        }
    } else if let Some(rate) = options.rate {
        let at_once = rate.div_ceil(threads).min(clients);
        let said = |ended| say(clients, ended, "of clients started");
        said(0..at_once) + &negotiated + &said(at_once..clients)
    } else {
        let share = requests_of(options, measured.total, 0);
        let done = match measured.all.replies.total() {
            done if done >= measured.total => share,
            done => done / threads,
        };
        negotiated + &say(share, 0..done, "done")
    }
}

fn print(options: &H2loadOptions, measured: &H2loadMeasured) -> String {
    let mut text = progress(options, measured);
    let taken_s = (measured.taken_ns as f64 / 1e9).max(1e-9);
    let H2loadMeasured {
        all, total, failed, ..
    } = measured;
    let (done, succeeded) = (all.replies.total(), all.replies.successes());
    let _ = writeln!(
        text,
        "\nfinished in {}, {:.2} req/s, {}/s\n\
         requests: {total} total, {} started, {done} done, {succeeded} succeeded, {failed} failed, \
         {} errored, {} timeout",
        duration(measured.taken_ns as f64 / 1e3),
        done as f64 / taken_s,
        bytes(all.bytes_received as f64 / taken_s),
        all.requests_sent,
        failed - (done - succeeded).min(*failed),
        timed_out(all)
    );
    let [s2, s3, s4, s5] = [2, 3, 4, 5].map(|class| all.replies.class(class));
    let amount = |count: u64| format!("{} ({count})", bytes(count as f64));
    let _ = writeln!(
        text,
        "status codes: {s2} 2xx, {s3} 3xx, {s4} 4xx, {s5} 5xx\n\
         traffic: {} total, {} headers (space savings 0.00%), {} data",
        amount(all.bytes_received),
        amount(all.reply_head_bytes),
        amount(all.reply_body_bytes)
    );
    // Builds of h2load that speak HTTP/3 are newer ones, with other rows.
    let is_newer = options.secured == HttpChoice::HTTP3;
    if is_newer {
        let quic = &all.quic;
        let (sent, received) = (quic.datagrams_sent, quic.datagrams_received);
        let _ = writeln!(text, "UDP datagram: {sent} sent, {received} received");
    }
    text + &measured.times.rows(is_newer)
}

/// Durations in microseconds, or rates.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample(pub(super) Vec<f64>);

/// What is said of a sample; 0 throughout of none.
#[derive(Clone, Copy, Debug, Default)]
struct SampleRow {
    min: f64,
    max: f64,
    mean: f64,
    stdev: f64,
    /// The share within one standard deviation of the mean, percent.
    within: f64,
}

impl Sample {
    fn row(&self) -> SampleRow {
        if self.0.is_empty() {
            return SampleRow::default();
        }
        let count = self.0.len() as f64;
        let values = self.0.iter().copied();
        let mean = values.clone().sum::<f64>() / count;
        let stdev = deviation(values.clone(), mean);
        let within = values.clone().filter(|value| (value - mean).abs() <= stdev);
        SampleRow {
            min: values.clone().fold(f64::INFINITY, f64::min),
            within: within.count() as f64 * 100.0 / count,
            max: values.fold(0.0, f64::max),
            mean,
            stdev,
        }
    }

    /// The median, and the values behind 95 and 99 % of the others; 0 of none.
    fn quantiles(&self) -> [f64; 3] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(0.0);
        let half = sorted.len() / 2;
        let is_even = sorted.len().is_multiple_of(2);
        let lower = if is_even {
            half.saturating_sub(1)
        } else {
            half
        };
        let median = (at(lower) + at(half)) / 2.0;
        let behind = |share: f64| at((sorted.len() as f64 * share) as usize);
        [median, behind(0.95), behind(0.99)]
    }
}

/// What took how long.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) request: Sample,
    pub(super) connect: Sample,
    pub(super) first_byte: Sample,
    /// Requests per second of each client.
    pub(super) rate: Sample,
}

impl Times {
    /// The rows of version 1.52, or those of versions from 1.69 on.
    pub(super) fn rows(&self, is_newer: bool) -> String {
        let width = if is_newer { 12 } else { 16 };
        let head = if is_newer {
            "                 min         max         median      p95         p99         \
             mean        sd         +/- sd\n"
        } else {
            "                     min         max         mean         sd        +/- sd\n"
        };
        let first_byte = if is_newer { "TTFB" } else { "time to 1st byte" };
        let of = |what| {
            if is_newer {
                what
            } else {
                format!("time for {what}")
            }
        };
        let named = [
            (
                of("request".to_owned()),
                &self.request,
                duration as fn(f64) -> String,
            ),
            (of("connect".to_owned()), &self.connect, duration),
            (first_byte.to_owned(), &self.first_byte, duration),
            ("req/s".to_owned(), &self.rate, rate),
        ];
        let mut text = head.to_owned();
        for (name, sample, shown) in named {
            let row = sample.row();
            let mut columns = vec![row.min, row.max, row.mean, row.stdev];
            if is_newer {
                columns.splice(2..2, sample.quantiles());
            }
            let columns = columns
                .into_iter()
                .map(|value| format!("{:>10}", shown(value)));
            let columns = columns.collect::<Vec<_>>().join("  ");
            let _ = writeln!(text, "{name:<width$}: {columns}{:9.2}%", row.within);
        }
        text
    }
}

fn rate(per_s: f64) -> String {
    format!("{per_s:.2}")
}

/// Microseconds as h2load prints them.
pub(super) fn duration(us: f64) -> String {
    if us >= 1e6 {
        format!("{:.2}s", us / 1e6)
    } else if us >= 1e3 {
        format!("{:.2}ms", us / 1e3)
    } else {
        format!("{us:.0}us")
    }
}

/// The lines about what was negotiated; empty in clear text.
fn tls_lines(run: &Run) -> String {
    let Some(tls) = &run.first().negotiated.tls else {
        return String::new();
    };
    let version = tls.version.replace("TLS ", "TLSv");
    // QUIC does not tell it.
    let is_told = run.summary().lifetime.quic.is_none();
    let suite = is_told.then(|| format!("Cipher: {}\n", openssl_suite(&tls.cipher_suite)));
    let suite = suite.unwrap_or_default();
    let key = tls.group.as_deref().and_then(temporary_key);
    let key = key.map_or_else(String::new, |key| {
        // h2load has other names than ab for the same curves.
        let key = key.replace("P-256", "prime256v1");
        let key = key.replace("P-384", "secp384r1");
        format!("Server Temp Key: {key}\n")
    });
    format!("TLS Protocol: {version}\n{suite}{key}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn options(line: &str) -> H2loadOptions {
        let words = words(line);
        H2loadOptions::parse(&words).expect(line)
    }

    #[test]
    fn the_text_is_h2loads() {
        let options = options("--h1 -n 10 -c 2 http://127.0.0.1:18090/");
        let mut all = Tally {
            requests_sent: 10,
            bytes_received: 1_470,
            reply_head_bytes: 900,
            reply_body_bytes: 140,
            ..Tally::default()
        };
        (0..10).for_each(|_| all.replies.add(200));
        let measured = H2loadMeasured {
            protocol: "http/1.1",
            taken_ns: 103_860_000,
            total: 10,
            all,
            times: Times {
                request: Sample(vec![20_430.0, 21_060.0, 20_600.0, 20_600.0]),
                connect: Sample(vec![55.0, 195.0]),
                first_byte: Sample(vec![21_110.0, 21_250.0]),
                rate: Sample(vec![48.34, 48.40]),
            },
            ..H2loadMeasured::default()
        };
        let text = heading(&options, 10) + &print(&options, &measured);
        let lines: Vec<&str> = text.lines().collect();
        // Captured from h2load.
        assert_eq!(
            lines[..5],
            [
                "starting benchmark...",
                "spawning thread #0: 2 total client(s). 10 total requests",
                "Application protocol: http/1.1",
                "progress: 10% done",
                "progress: 20% done",
            ]
        );
        assert_eq!(
            lines[12..19],
            [
                "progress: 100% done",
                "",
                "finished in 103.86ms, 96.28 req/s, 13.82KB/s",
                "requests: 10 total, 10 started, 10 done, 10 succeeded, 0 failed, 0 errored, 0 \
                 timeout",
                "status codes: 10 2xx, 0 3xx, 0 4xx, 0 5xx",
                "traffic: 1.44KB (1470) total, 900B (900) headers (space savings 0.00%), 140B \
                 (140) data",
                "                     min         max         mean         sd        +/- sd",
            ]
        );
        let connect = "time for connect:       55us       195us       125us        99us   100.00%";
        assert_eq!(lines[20], connect);
        let rate = "req/s           :      48.34       48.40       48.37        0.04   100.00%";
        assert_eq!(lines[22], rate);
    }

    #[test]
    fn threads_have_their_shares() {
        let options_of = |line| options(line);
        let text = heading(
            &options_of("-n 5 -c 3 -t 2 -r 2 --rate-period 500ms http://h/"),
            5,
        );
        // The second thread makes its one client at once.
        let expected = "starting benchmark...\n\
                        spawning thread #0: 2 total client(s). Up to 1 client(s) will be created \
                        every 500ms 3 total requests\n\
                        spawning thread #1: 1 total client(s). 2 total requests\n";
        assert_eq!(text, expected);
        let scripted = options_of("--timing-script-file f -c 3 -t 2");
        assert!(heading(&scripted, 12).ends_with("#1: 1 total client(s). 4 total requests\n"));
    }

    #[test]
    fn newer_rows_have_quantiles() {
        let times = Times {
            // In an order that is not theirs.
            request: Sample((0..100).map(|number| f64::from(number * 7 % 100)).collect()),
            connect: Sample(vec![1_500.0]),
            first_byte: Sample::default(),
            rate: Sample(vec![30.0, 10.0, 20.0]),
        };
        let expected = [
            "                 min         max         median      p95         p99         mean    \
             \x20   sd         +/- sd",
            "request     :        0us        99us        50us        95us        99us        50us  \
             \x20     29us    58.00%",
            "connect     :     1.50ms      1.50ms      1.50ms      1.50ms      1.50ms      1.50ms  \
             \x20      0us   100.00%",
            "TTFB        :        0us         0us         0us         0us         0us         0us  \
             \x20      0us     0.00%",
            "req/s       :      10.00       30.00       20.00       30.00       30.00       20.00  \
             \x20    10.00   100.00%",
        ];
        let rows = times.rows(true);
        assert_eq!(rows.lines().collect::<Vec<_>>(), expected, "{rows}");
    }
}
