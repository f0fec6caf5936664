//! h2load's text of a run. Writing to a string cannot fail.

use std::fmt::Write;

use brunt_measure::{FailureKind, FailureScope, LoggedEnd, Protocol, RequestLog, Run};

use super::options::Options;

/// What is printed when the load begins.
pub fn heading(options: &Options) -> String {
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
            let _ = write!(
                text,
                "Up to {rate} client(s) will be created every {period} "
            );
        }
        let _ = match options.duration_ns {
            Some(ns) => writeln!(
                text,
                "Timing-based test with {}s of warm-up time and {}s of main duration for \
                 measurements.",
                options.warmup_ns / 1_000_000_000,
                ns / 1_000_000_000
            ),
            None => writeln!(text, "{} total requests", share(options.requests, number)),
        };
    }
    text
}

/// Durations in microseconds, or rates.
#[derive(Clone, Debug, Default)]
struct Sample(Vec<f64>);

impl Sample {
    /// Least, largest, mean, standard deviation, and the share within one of it, percent.
    fn row(&self) -> [f64; 5] {
        let count = self.0.len() as f64;
        if self.0.is_empty() {
            return [0.0; 5];
        }
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.0.iter().copied().fold(0.0, f64::max);
        let mean = self.0.iter().sum::<f64>() / count;
        let squares: f64 = self.0.iter().map(|it| (it - mean).powi(2)).sum();
        let stdev = (squares / (count - 1.0).max(1.0)).sqrt();
        let within = self.0.iter().filter(|&it| (it - mean).abs() <= stdev);
        [
            least,
            most,
            mean,
            stdev,
            within.count() as f64 * 100.0 / count,
        ]
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
    request: Sample,
    connect: Sample,
    first_byte: Sample,
    rate: Sample,
}

impl Measured {
    fn of(options: &Options, run: &Run, log: &RequestLog) -> Self {
        let summary = run.summary();
        let all = &summary.window;
        let negotiated = &run.first().negotiated;
        let mut measured = Self {
            protocol: match (negotiated.protocol, &negotiated.tls) {
                // It loads with HTTP alone.
                (Protocol::Http1 | Protocol::Streams, _) => "http/1.1",
                (Protocol::Http2, Some(_)) => "h2",
                (Protocol::Http2, None) => "h2c",
                // Not of a plan of h2load's.
                (Protocol::Messages, _) => "messages",
                (Protocol::WebSocket, _) => "websocket",
            },
            taken_ns: run.window_ns,
            started: all.requests_sent,
            timed_out: all.failures.get(FailureKind::TimedOut),
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
        measured.failed = measured.done - measured.succeeded
            + all.failures.total(FailureScope::Request)
            + all.failures.total(FailureScope::Connect);
        if let Some(tls) = &negotiated.tls {
            let version = tls.version.replace("TLS ", "TLSv");
            let suite = &tls.cipher_suite;
            measured.tls = format!("TLS Protocol: {version}\nCipher: {suite}\n");
        }
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
            client.to_ns = client.to_ns.max(request.done_ns);
            if let Some(us_of_opening) = opening_us {
                measured.connect.0.push(us_of_opening as f64);
                let first_us = us(request.sent_ns, request.first_byte_ns);
                measured.first_byte.0.push(us_of_opening as f64 + first_us);
            }
            if matches!(request.end, LoggedEnd::Failure(_)) {
                continue;
            }
            client.done += 1;
            measured
                .request
                .0
                .push(us(request.sent_ns, request.done_ns));
        }
        measured.total = match options.duration_ns {
            Some(_) => measured.done,
            None => options.requests,
        };
        let rates = clients.iter().filter_map(|client| {
            let ns = client.to_ns.saturating_sub(client.from_ns?);
            (ns > 0).then(|| client.done as f64 * 1e9 / ns as f64)
        });
        measured.rate = Sample(rates.collect());
        measured
    }
}

/// Microseconds as h2load prints them.
fn duration(us: f64) -> String {
    if us >= 1e6 {
        format!("{:.2}s", us / 1e6)
    } else if us >= 1e3 {
        format!("{:.2}ms", us / 1e3)
    } else {
        format!("{us:.0}us")
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

/// What is printed at the end of a run, with its log.
pub fn report(options: &Options, run: &Run, log: &RequestLog) -> String {
    print(options, &Measured::of(options, run, log))
}

fn print(options: &Options, measured: &Measured) -> String {
    let mut text = measured.tls.clone();
    let _ = writeln!(text, "Application protocol: {}", measured.protocol);
    if options.duration_ns.is_none() {
        // The first thread tells of its share.
        let threads = u64::from(options.threads.get());
        let share = measured.total.div_ceil(threads);
        let ended = measured.done + measured.failed;
        let ended = if ended >= measured.total {
            share
        } else {
            ended / threads
        };
        let step = (share / 10).max(1);
        let mut next = step;
        while next <= ended && share > 0 {
            let _ = writeln!(text, "progress: {}% done", next * 100 / share);
            next += step;
        }
    }
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
    text.push_str("                     min         max         mean         sd        +/- sd\n");
    for (name, sample) in [
        ("time for request:", &measured.request),
        ("time for connect:", &measured.connect),
        ("time to 1st byte:", &measured.first_byte),
    ] {
        let row = sample.row();
        let [least, most, mean, stdev] = [row[0], row[1], row[2], row[3]].map(duration);
        let within = row[4];
        let _ = writeln!(
            text,
            "{name} {least:>10}  {most:>10}  {mean:>10}  {stdev:>10}{within:9.2}%"
        );
    }
    let [least, most, mean, stdev, within] = measured.rate.row();
    let _ = writeln!(
        text,
        "req/s           : {least:10.2}  {most:10.2}  {mean:10.2}  {stdev:10.2}{within:9.2}%"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
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
            request: Sample(vec![20_430.0, 21_060.0, 20_600.0, 20_600.0]),
            connect: Sample(vec![55.0, 195.0]),
            first_byte: Sample(vec![21_110.0, 21_250.0]),
            rate: Sample(vec![48.34, 48.40]),
            ..Measured::default()
        };
        let text = heading(&options) + &print(&options, &measured);
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
        let text = heading(&options(
            "-n 5 -c 3 -t 2 -r 2 --rate-period 500ms http://h/",
        ));
        let second = "spawning thread #1: 1 total client(s). Up to 1 client(s) will be created \
                      every 500ms 2 total requests\n";
        assert!(text.ends_with(second), "{text}");
    }
}
