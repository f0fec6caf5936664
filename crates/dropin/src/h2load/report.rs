//! h2load's text of a run. Writing to a string cannot fail.

use std::fmt::Write;

use brunt_judge::RunFigures;
use brunt_load::HttpChoice;
use brunt_record::{FailureKind, FailureScope, LoggedEnd, RequestLog, Run, Tally};

use super::options::Options;
use super::times::{Sample, Times, duration};
use super::tls;
use crate::Ending;
use crate::ending::strerror;

/// What is printed when a load of so many requests begins.
pub fn heading(options: &Options, requests: u64) -> String {
    let threads = u64::from(options.threads.get());
    let share = |all: u64, number: u64| all / threads + u64::from(number < all % threads);
    let mut text = "starting benchmark...\n".to_owned();
    for number in 0..threads {
        let clients = share(options.clients.get().into(), number);
        let _ = write!(
            text,
            "spawning thread #{number}: {clients} total client(s). "
        );
        if let Some(rate) = options.rate {
            let rate = share(rate.get().into(), number);
            let period = duration(options.period_ns as f64 / 1e3);
            let period = period.replace(".00", "");
            if clients > rate {
                let _ = write!(
                    text,
                    "Up to {rate} client(s) will be created every {period} "
                );
            }
        }
        let _ = match options.duration_ns {
            Some(ns) => writeln!(
                text,
                "Timing-based test with {}s of warm-up time and {}s of main duration for \
                 measurements.",
                options.warmup_ns as f64 / 1e9,
                ns as f64 / 1e9
            ),
            None => writeln!(
                text,
                "{} total requests",
                requests_of(options, requests, number)
            ),
        };
    }
    text
}

/// The share of `requests` that a thread sends. With a timing script, each client of the thread
/// sends as many as any other client.
fn requests_of(options: &Options, requests: u64, thread: u64) -> u64 {
    let share = |all: u64, parts: u64| all / parts + u64::from(thread < all % parts);
    let (threads, clients) = (options.threads.get().into(), options.clients.get().into());
    match &options.timing_script {
        Some(_) => requests / clients * share(clients, threads),
        None => share(requests, threads),
    }
}

/// The outcome of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    from_ns: Option<u64>,
    to_ns: u64,
    done: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
struct Measured {
    protocol: &'static str,
    /// Lines about TLS.
    tls: String,
    taken_ns: u64,
    total: u64,
    started: u64,
    done: u64,
    succeeded: u64,
    failed: u64,
    timed_out: u64,
    statuses: [u64; 6],
    bytes: u64,
    head_bytes: u64,
    body_bytes: u64,
    /// Datagrams sent and received.
    datagrams: (u64, u64),
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
fn counted_until_ns(options: &Options, run: &Run) -> u64 {
    options.duration_ns.map_or(u64::MAX, |_| run.window_ns)
}

impl Measured {
    fn of(options: &Options, requests: u64, run: &Run, log: &RequestLog) -> Self {
        let summary = run.summary();
        // What is due at the end of a run by count may be sent behind its window.
        let all = match options.duration_ns {
            Some(_) => &summary.window,
            None => &summary.lifetime,
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
            started: all.requests_sent,
            timed_out: timed_out(all),
            bytes: all.bytes_received,
            head_bytes: all.reply_head_bytes,
            body_bytes: all.reply_body_bytes,
            done: all.replies.total(),
            succeeded: all.replies.successes(),
            ..Self::default()
        };
        for (status, count) in all.replies.iter() {
            if let Some(counted) = measured.statuses.get_mut(usize::from(status / 100)) {
                *counted += count;
            }
        }
        measured.tls = tls::lines(run);
        measured.datagrams = (all.quic.datagrams_sent, all.quic.datagrams_received);
        let times = &mut measured.times;
        let until_ns = counted_until_ns(options, run);
        let mut clients: Vec<Client> = Vec::new();
        for request in log.requests() {
            let us = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / 1e3;
            let place = request.connection as usize;
            if clients.len() <= place {
                clients.resize(place + 1, Client::default());
            }
            let client = &mut clients[place];
            let opening_us = request.opening_us();
            let opening_ns = opening_us.unwrap_or(0) * 1_000;
            client
                .from_ns
                .get_or_insert(request.sent_ns.saturating_sub(opening_ns));
            client.to_ns = client.to_ns.max(request.done_ns.min(until_ns));
            if let Some(us_of_opening) = opening_us {
                times.connect.0.push(us_of_opening as f64);
            }
            let is_reply = matches!(request.end, LoggedEnd::Reply(_));
            if !is_reply || request.done_ns >= until_ns {
                continue;
            }
            if let Some(us_of_opening) = opening_us {
                let first_us = us(request.sent_ns, request.first_byte_ns);
                times.first_byte.0.push(us_of_opening as f64 + first_us);
            }
            client.done += 1;
            times.request.0.push(us(request.sent_ns, request.done_ns));
        }
        (measured.total, measured.failed) = match options.duration_ns {
            Some(_) => {
                let failures = all.failures.total(FailureScope::Request);
                let failed = measured.done - measured.succeeded + failures;
                (measured.done, failed)
            }
            // What was not sent, since its connection failed, has failed, too.
            None => (requests, requests.saturating_sub(measured.succeeded)),
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
    for (unit, size) in [("G", 1_073_741_824.0), ("M", 1_048_576.0), ("K", 1_024.0)] {
        if count >= size {
            return format!("{:.2}{unit}B", count / size);
        }
    }
    format!("{count:.0}B")
}

/// What is printed at the end of a run of so many requests, with its log.
pub fn report(options: &Options, requests: u64, run: &Run, log: &RequestLog) -> String {
    print(options, &Measured::of(options, requests, run, log))
}

/// How a run ends whose host has no address.
pub fn unresolved(reason: &std::io::Error) -> Ending {
    Ending::error(&format!("getaddrinfo() failed: {}", strerror(reason)), 1)
}

/// What is printed in place of a run of so many requests whose server cannot be reached, or does
/// not speak what is asked of it, which took so long.
pub fn unreached(options: &Options, requests: u64, taken_ns: u64) -> String {
    let total = match options.duration_ns {
        Some(_) => 0,
        None => requests,
    };
    let measured = Measured {
        taken_ns,
        total,
        failed: total,
        ..Measured::default()
    };
    heading(options, requests) + &print(options, &measured)
}

/// A line for each request of the log that is counted, in the order of their ends: the instant at
/// which it was sent, microseconds since 1970; the status, -1 where it failed; microseconds to its
/// end.
pub fn log_lines(options: &Options, run: &Run, log: &RequestLog) -> String {
    let start_us = run.first().clock.window_start_unix_ms * 1_000;
    let until_ns = counted_until_ns(options, run);
    let mut text = String::new();
    for request in log.requests().take_while(|it| it.done_ns < until_ns) {
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
fn print_progress(text: &mut String, options: &Options, measured: &Measured) {
    let threads = u64::from(options.threads.get());
    let clients = u64::from(options.clients.get()).div_ceil(threads);
    let say = |text: &mut String, all: u64, ended: std::ops::Range<u64>, what: &str| {
        let step = (all / 10).max(1);
        for ended in ended.filter(|ended| (ended + 1).is_multiple_of(step)) {
            let _ = writeln!(text, "progress: {}% {what}", (ended + 1) * 100 / all);
        }
    };
    let negotiated = match measured.protocol {
        "" => String::new(),
        protocol => format!("{}Application protocol: {protocol}\n", measured.tls),
    };
    let of_threads = |text: &mut String, lines: &str| {
        for thread in 0..threads {
            text.push_str(&lines.replace("#0", &format!("#{thread}")));
        }
    };
    if options.duration_ns.is_some() {
        let begins = "Warm-up phase is over for thread #0.\n\
                      Main benchmark duration is started for thread #0.\n";
        of_threads(text, "Warm-up started for thread #0.\n");
        say(text, clients, 0..clients, "of clients started");
        // Without a warm-up that is over before anything is negotiated.
        if options.warmup_ns > 0 {
            text.push_str(&negotiated);
            of_threads(text, begins);
        } else {
            of_threads(text, begins);
            text.push_str(&negotiated);
        }
        let ends = "Main benchmark duration is over for thread #0. Stopping all clients.\n\
                    Stopped all clients for thread #0\n";
        of_threads(text, ends);
    } else if let Some(rate) = options.rate {
        let at_once = u64::from(rate.get()).div_ceil(threads).min(clients);
        say(text, clients, 0..at_once, "of clients started");
        text.push_str(&negotiated);
        say(text, clients, at_once..clients, "of clients started");
    } else {
        text.push_str(&negotiated);
        let share = requests_of(options, measured.total, 0);
        let done = match measured.done {
            done if done >= measured.total => share,
            done => done / threads,
        };
        say(text, share, 0..done, "done");
    }
}

fn print(options: &Options, measured: &Measured) -> String {
    let mut text = String::new();
    print_progress(&mut text, options, measured);
    let taken_s = (measured.taken_ns as f64 / 1e9).max(1e-9);
    let _ = writeln!(
        text,
        "\nfinished in {}, {:.2} req/s, {}/s",
        duration(measured.taken_ns as f64 / 1e3),
        measured.done as f64 / taken_s,
        bytes(measured.bytes as f64 / taken_s)
    );
    let _ = writeln!(
        text,
        "requests: {} total, {} started, {} done, {} succeeded, {} failed, {} errored, {} timeout",
        measured.total,
        measured.started,
        measured.done,
        measured.succeeded,
        measured.failed,
        measured.failed - (measured.done - measured.succeeded).min(measured.failed),
        measured.timed_out
    );
    let [_, _, s2, s3, s4, s5] = measured.statuses;
    let _ = writeln!(text, "status codes: {s2} 2xx, {s3} 3xx, {s4} 4xx, {s5} 5xx");
    let amount = |count: u64| format!("{} ({count})", bytes(count as f64));
    let _ = writeln!(
        text,
        "traffic: {} total, {} headers (space savings 0.00%), {} data",
        amount(measured.bytes),
        amount(measured.head_bytes),
        amount(measured.body_bytes)
    );
    // Builds of h2load that speak HTTP/3 are newer ones, with other rows.
    if options.secured == HttpChoice::HTTP3 {
        let (sent, received) = measured.datagrams;
        let _ = writeln!(text, "UDP datagram: {sent} sent, {received} received");
        text.push_str(&measured.times.newer_rows());
    } else {
        text.push_str(&measured.times.rows());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn options(line: &str) -> Options {
        let words = words(line);
        Options::parse(&words).expect(line)
    }

    #[test]
    fn the_text_is_h2loads() {
        let options = options("--h1 -n 10 -c 2 http://127.0.0.1:18090/");
        let measured = Measured {
            protocol: "http/1.1",
            taken_ns: 103_860_000,
            total: 10,
            started: 10,
            done: 10,
            succeeded: 10,
            statuses: [0, 0, 10, 0, 0, 0],
            bytes: 1_470,
            head_bytes: 900,
            body_bytes: 140,
            times: Times {
                request: Sample(vec![20_430.0, 21_060.0, 20_600.0, 20_600.0]),
                connect: Sample(vec![55.0, 195.0]),
                first_byte: Sample(vec![21_110.0, 21_250.0]),
                rate: Sample(vec![48.34, 48.40]),
            },
            ..Measured::default()
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
}
