//! httperf's text of a run.

use std::fmt::Write;

use brunt_judge::RunFigures;
use brunt_load::sessions::{INTERVAL_NS, SessionFigures};
use brunt_record::{FailureKind, FailureScope, Run};

use super::number::general;
use super::options::{Options, Period, Uris, Workload};
use super::plan::CONNECTIONS_MAX;
use super::usage::VERSION;

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) sessions: SessionFigures,
    /// Length of the run, seconds.
    pub(super) taken_s: f64,
    /// Connections that were to be opened, and the most that were open.
    pub(super) connections: u64,
    pub(super) live_max: u64,
    /// Mean time from the beginning of an attempt to the open connection, milliseconds.
    pub(super) connect_ms: f64,
    pub(super) requests: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) replies: u64,
    pub(super) head_bytes: u64,
    pub(super) content_bytes: u64,
    /// Replies by the first digit of their status, from 1 to 5.
    pub(super) statuses: [u64; 5],
    /// CPU time of this process's threads in user space, seconds.
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) errors: Errors,
}

/// Errors, as httperf names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    pub(super) client_timeout: u64,
    pub(super) socket_timeout: u64,
    pub(super) refused: u64,
    pub(super) reset: u64,
    pub(super) no_descriptor: u64,
    pub(super) no_address: u64,
    pub(super) other: u64,
}

impl Errors {
    fn of(run: &Run) -> Self {
        use FailureKind::{
            ClosedBeforeReply, ConnectNoDescriptor, ConnectNoPort, ConnectRefused, ConnectTimedOut,
            HandshakeTimedOut, IdleReset, Reset, TimedOut, TruncatedBody, TruncatedHead,
            Unanswered,
        };
        let failures = &run.summary().lifetime.failures;
        let of = |kinds: &[FailureKind]| kinds.iter().map(|&kind| failures.get(kind)).sum();
        let scopes = [
            FailureScope::Connect,
            FailureScope::Connection,
            FailureScope::Request,
        ];
        let all: u64 = scopes.iter().map(|&scope| failures.total(scope)).sum();
        let mut errors = Self {
            client_timeout: of(&[TimedOut, ConnectTimedOut, HandshakeTimedOut]),
            refused: of(&[ConnectRefused]),
            reset: of(&[
                Reset,
                ClosedBeforeReply,
                TruncatedHead,
                TruncatedBody,
                IdleReset,
            ]),
            no_descriptor: of(&[ConnectNoDescriptor]),
            no_address: of(&[ConnectNoPort]),
            ..Self::default()
        };
        // A connection that is lost is one error, however many requests waited on it.
        let known = errors.total() + failures.get(Unanswered);
        errors.other = all.saturating_sub(known);
        errors
    }

    fn total(&self) -> u64 {
        self.client_timeout
            + self.socket_timeout
            + self.refused
            + self.reset
            + self.no_descriptor
            + self.no_address
            + self.other
    }
}

impl Measured {
    fn of(run: &Run, sessions: &SessionFigures) -> Self {
        let summary = run.summary();
        let all = &summary.lifetime;
        let mut statuses = [0; 5];
        for (status, count) in all.replies.iter() {
            if let Some(place) = statuses.get_mut(usize::from(status / 100).wrapping_sub(1)) {
                *place += count;
            }
        }
        let cpu_s = |ns: u64| ns as f64 / 1e9;
        let sum = |of: fn(&brunt_record::WorkerRecord) -> u64| run.workers().map(of).sum();
        Self {
            sessions: sessions.clone(),
            taken_s: run.window_ns as f64 / 1e9,
            connections: all.connections_opened + all.failures.total(FailureScope::Connect),
            live_max: summary.live.max.into(),
            connect_ms: run.latencies.connect.mean_ns().unwrap_or(0.0) / 1e6,
            requests: all.requests_sent,
            sent_bytes: all.bytes_sent,
            received_bytes: all.bytes_received.saturating_sub(all.overhead_bytes),
            replies: all.replies.total(),
            head_bytes: all.reply_head_bytes,
            content_bytes: all.reply_body_bytes,
            statuses,
            user_s: cpu_s(sum(|worker| worker.cpu_user_ns)),
            system_s: cpu_s(sum(|worker| worker.cpu_system_ns)),
            errors: Errors::of(run),
        }
    }
}

/// The least, mean and largest of some values, with their deviation.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    least: f64,
    mean: f64,
    most: f64,
    deviation: f64,
    count: usize,
}

impl Spread {
    /// The spread of the rate per second over the whole intervals of a run, by the counts of each.
    fn of_rates(counts: &[u64], taken_s: f64) -> Self {
        let interval_s = INTERVAL_NS as f64 / 1e9;
        let whole = (taken_s / interval_s) as usize;
        let rates = (0..whole).map(|place| counts.get(place).copied().unwrap_or(0));
        let rates: Vec<f64> = rates.map(|count| count as f64 / interval_s).collect();
        let count = rates.len();
        if count == 0 {
            return Self::default();
        }
        let mean = rates.iter().sum::<f64>() / count as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        Self {
            least: rates.iter().copied().fold(f64::INFINITY, f64::min),
            mean,
            most: rates.iter().copied().fold(0.0, f64::max),
            deviation: match count {
                1 => 0.0,
                _ => (squares / (count - 1) as f64).sqrt(),
            },
            count,
        }
    }
}

/// The quotient; 0 where there is nothing to divide by.
fn per(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}

/// What is printed before the load: the command line with what holds where it says nothing.
pub fn heading(options: &Options) -> String {
    let mut text = String::new();
    if options.tells_version {
        text.push_str(VERSION);
    }
    text.push_str("httperf");
    let mut word = |name: &str, value: &str| {
        text.push_str(" --");
        text.push_str(name);
        text.push_str(value);
    };
    let flags = [
        ("verbose", options.is_verbose),
        ("hog", options.hog),
        ("close-with-reset", options.close_with_reset),
    ];
    for (name, _) in flags.into_iter().filter(|&(_, is_set)| is_set) {
        word(name, "");
    }
    for (name, seconds) in [
        ("think-timeout=", options.think_timeout_s),
        ("timeout=", options.timeout_s),
    ] {
        if seconds > 0.0 {
            word(name, &general(seconds));
        }
    }
    let (client, clients) = options.client;
    word("client=", &format!("{client}/{clients}"));
    word("server=", &options.server);
    if let Some(name) = &options.server_name {
        word("server_name=", name);
    }
    word("port=", &options.port.to_string());
    word("uri=", &options.uri);
    if let Some(status) = options.failure_status {
        word("failure-status=", &status.to_string());
    }
    if options.is_http_1_0 {
        word("http-version=", "1.0");
    }
    for (name, count) in [
        ("max-connections=", options.connections_max),
        ("max-piped-calls=", options.piped_max),
    ] {
        if count > 0 {
            word(name, &count.to_string());
        }
    }
    match (&options.period, &options.period_typed) {
        (Period::Fixed(period_s), _) => word("rate=", &general(1.0 / period_s)),
        (_, Some(typed)) => word("period=", typed),
        _ => {}
    }
    word("send-buffer=", &options.send_bytes.to_string());
    if options.retries {
        word("retry-on-failure", "");
    }
    word("recv-buffer=", &options.receive_bytes.to_string());
    for (name, is_set) in [
        ("session-cookies", options.cookies),
        ("ssl", options.is_secure),
        ("ssl-no-reuse", options.no_resumption),
    ] {
        if is_set {
            word(name, "");
        }
    }
    if let Some(header) = &options.add_header {
        word("add-header=", &format!("'{header}'"));
    }
    if let Some(method) = &options.method {
        word("method=", method);
    }
    match &options.workload {
        Workload::Calls { connections, calls } => {
            word("num-conns=", &connections.to_string());
            word("num-calls=", &calls.to_string());
        }
        Workload::Sessions {
            sessions,
            calls,
            think_s,
        } => word("wsess=", &format!("{sessions},{calls},{think_s:.3}")),
        Workload::Log {
            sessions,
            think_s,
            path,
        } => {
            let log = format!("{sessions},{think_s:.3},{}", path.display());
            word("wsesslog=", &log);
        }
    }
    if options.burst > 1 {
        word("burst-length=", &options.burst.to_string());
    }
    if let Uris::Set { requests, step } = options.uris {
        word("wset=", &format!("{requests},{step:.3}"));
    }
    text.push('\n');
    if options.is_verbose {
        let most = CONNECTIONS_MAX;
        text.push_str(&format!(
            "httperf: maximum number of open descriptors = {most}\n"
        ));
    }
    text
}

/// What is printed at the end of a run with this outcome of its sessions.
pub fn report(options: &Options, run: &Run, sessions: &SessionFigures) -> String {
    print(options, &Measured::of(run, sessions))
}

/// What is printed where nobody takes connections.
pub(super) fn refused(options: &Options) -> String {
    let all = u64::from(options.sessions());
    let mut sessions = SessionFigures::default();
    sessions.counts.begun = all;
    sessions.counts.failed = all;
    sessions.lengths = vec![all];
    let errors = Errors {
        refused: all,
        ..Errors::default()
    };
    let measured = Measured {
        sessions,
        connections: all,
        live_max: 1,
        errors,
        ..Measured::default()
    };
    print(options, &measured)
}

fn print(options: &Options, measured: &Measured) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(options, measured, &mut text);
    text
}

fn write_all(options: &Options, measured: &Measured, text: &mut String) -> std::fmt::Result {
    let taken_s = measured.taken_s;
    let replies = measured.replies as f64;
    if options.is_verbose {
        let counts = &measured.sessions.replies_by_interval;
        let interval_s = INTERVAL_NS as f64 / 1e9;
        let whole = (taken_s / interval_s) as usize;
        for count in (0..whole).map(|place| counts.get(place).copied().unwrap_or(0)) {
            writeln!(text, "reply-rate = {:<8.1}", count as f64 / interval_s)?;
        }
    }
    writeln!(text, "Maximum connect burst length: 1\n")?;
    writeln!(
        text,
        "Total: connections {} requests {} replies {} test-duration {taken_s:.3} s\n",
        measured.connections, measured.requests, measured.replies
    )?;
    write_connections(measured, text)?;
    let requests = measured.requests as f64;
    writeln!(
        text,
        "Request rate: {:.1} req/s ({:.1} ms/req)",
        per(requests, taken_s),
        per(1e3 * taken_s, requests)
    )?;
    // Sizes are whole numbers there.
    let bytes = per(measured.sent_bytes as f64, requests).floor();
    writeln!(text, "Request size [B]: {bytes:.1}\n")?;
    let rates = Spread::of_rates(&measured.sessions.replies_by_interval, taken_s);
    writeln!(
        text,
        "Reply rate [replies/s]: min {:.1} avg {:.1} max {:.1} stddev {:.1} ({} samples)",
        rates.least, rates.mean, rates.most, rates.deviation, rates.count
    )?;
    let seen = measured.sessions.replies as f64;
    writeln!(
        text,
        "Reply time [ms]: response {:.1} transfer {:.1}",
        per(measured.sessions.response_ns as f64 / 1e6, seen),
        per(measured.sessions.transfer_ns as f64 / 1e6, seen)
    )?;
    let head = per(measured.head_bytes as f64, replies).floor();
    let content = per(measured.content_bytes as f64, replies).floor();
    writeln!(
        text,
        "Reply size [B]: header {head:.1} content {content:.1} footer 0.0 (total {:.1})",
        head + content
    )?;
    let [informed, success, moved, wrong, failed] = measured.statuses;
    writeln!(
        text,
        "Reply status: 1xx={informed} 2xx={success} 3xx={moved} 4xx={wrong} 5xx={failed}\n"
    )?;
    let (user_s, system_s) = (measured.user_s, measured.system_s);
    writeln!(
        text,
        "CPU time [s]: user {user_s:.2} system {system_s:.2} (user {:.1}% system {:.1}% total \
         {:.1}%)",
        per(100.0 * user_s, taken_s),
        per(100.0 * system_s, taken_s),
        per(100.0 * (user_s + system_s), taken_s)
    )?;
    let bytes_per_s = per(
        (measured.sent_bytes + measured.received_bytes) as f64,
        taken_s,
    );
    writeln!(
        text,
        "Net I/O: {:.1} KB/s ({:.1}*10^6 bps)\n",
        bytes_per_s / 1024.0,
        bytes_per_s * 8.0 / 1e6
    )?;
    write_errors(&measured.errors, text)?;
    if options.has_sessions() {
        write_sessions(measured, text)?;
    }
    Ok(())
}

fn write_connections(measured: &Measured, text: &mut String) -> std::fmt::Result {
    let taken_s = measured.taken_s;
    let connections = measured.connections as f64;
    writeln!(
        text,
        "Connection rate: {:.1} conn/s ({:.1} ms/conn, <={} concurrent connections)",
        per(connections, taken_s),
        per(1e3 * taken_s, connections),
        measured.live_max
    )?;
    let all = &measured.sessions.lifetimes;
    let count = all.count as f64;
    let mean_ms = per(all.sum_ns as f64 / 1e6, count);
    let variance = per(all.squares_ms - count * mean_ms * mean_ms, count - 1.0);
    writeln!(
        text,
        "Connection time [ms]: min {:.1} avg {mean_ms:.1} max {:.1} median {:.1} stddev {:.1}",
        all.min_ns as f64 / 1e6,
        all.max_ns as f64 / 1e6,
        all.median_ms().map_or(0.0, |ms| ms as f64 + 0.5),
        variance.max(0.0).sqrt()
    )?;
    writeln!(
        text,
        "Connection time [ms]: connect {:.1}",
        measured.connect_ms
    )?;
    let length = per(measured.replies as f64, count);
    writeln!(text, "Connection length [replies/conn]: {length:.3}\n")
}

fn write_errors(errors: &Errors, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "Errors: total {} client-timo {} socket-timo {} connrefused {} connreset {}",
        errors.total(),
        errors.client_timeout,
        errors.socket_timeout,
        errors.refused,
        errors.reset
    )?;
    writeln!(
        text,
        "Errors: fd-unavail {} addrunavail {} ftab-full 0 other {}",
        errors.no_descriptor, errors.no_address, errors.other
    )
}

fn write_sessions(measured: &Measured, text: &mut String) -> std::fmt::Result {
    let sessions = &measured.sessions;
    let counts = sessions.counts;
    let (completed, failed) = (counts.completed as f64, counts.failed as f64);
    let rates = Spread::of_rates(&sessions.completed_by_interval, measured.taken_s);
    writeln!(
        text,
        "\nSession rate [sess/s]: min {:.2} avg {:.2} max {:.2} stddev {:.2} ({}/{})",
        rates.least,
        per(completed, measured.taken_s),
        rates.most,
        rates.deviation,
        counts.completed,
        counts.begun
    )?;
    writeln!(
        text,
        "Session: avg {:.2} connections/session",
        per(sessions.connections as f64, completed)
    )?;
    let lifetime_s = per(sessions.completed_ns as f64 / 1e9, completed);
    writeln!(text, "Session lifetime [s]: {lifetime_s:.1}")?;
    let fail_time_s = per(sessions.failed_ns as f64 / 1e9, failed);
    writeln!(text, "Session failtime [s]: {fail_time_s:.1}")?;
    text.push_str("Session length histogram:");
    for count in &sessions.lengths {
        write!(text, " {count}")?;
    }
    text.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use brunt_load::sessions::Lifetimes;

    use super::*;
    use crate::shell::words;

    fn options(line: &str) -> Options {
        let words = words(line);
        Options::parse("httperf", &words).expect(line)
    }

    #[test]
    fn the_first_line_is_the_command_line_with_defaults() {
        for (line, expected) in [
            (
                "--server h --num-conns 10",
                "httperf --client=0/1 --server=h --port=80 --uri=/ --send-buffer=4096 \
                 --recv-buffer=16384 --num-conns=10 --num-calls=1",
            ),
            (
                "--hog --verbose --timeout=1.25 --think-timeout=3 --close-with-reset --client=0/3 \
                 --server-name=x --uri=/y --method=PUT --http-version=1.0 --add-header=a \
                 --send-buffer=1000 --recv-buffer=2000 --num-calls=2 --num-conns=2 \
                 --burst-length=2 --debug=0 --no-host-hdr --max-connections=3 --max-piped-calls=4 \
                 --failure-status=500",
                "httperf --verbose --hog --close-with-reset --think-timeout=3 --timeout=1.25 \
                 --client=0/3 --server=localhost --server_name=x --port=80 --uri=/y \
                 --failure-status=500 --http-version=1.0 --max-connections=3 --max-piped-calls=4 \
                 --send-buffer=1000 --recv-buffer=2000 --add-header='a' --method=PUT --num-conns=2 \
                 --num-calls=2 --burst-length=2\nhttperf: maximum number of open descriptors = \
                 20000",
            ),
            (
                "--wsess=1,3,0 --rate=100 --period=e0.01 --session-cookies --retry-on-failure \
                 --ssl-no-reuse --wset=3,1",
                "httperf --client=0/1 --server=localhost --port=80 --uri=/ --period=e0.01 \
                 --send-buffer=4096 --retry-on-failure --recv-buffer=16384 --session-cookies \
                 --ssl-no-reuse --wsess=1,3,0.000 --wset=3,1.000",
            ),
            (
                "--wsesslog=3,0.1,a.log --period d0.001",
                "httperf --client=0/1 --server=localhost --port=80 --uri=/ --rate=1000 \
                 --send-buffer=4096 --recv-buffer=16384 --wsesslog=3,0.100,a.log",
            ),
        ] {
            assert_eq!(heading(&options(line)), format!("{expected}\n"));
        }
    }

    #[test]
    fn the_text_is_httperfs() {
        // Captured from httperf --wsess=4,2,0.1 --rate 4 --uri /500.
        let mut lifetimes = Lifetimes {
            count: 4,
            min_ns: 151_900_000,
            max_ns: 155_000_000,
            sum_ns: 613_200_000,
            squares_ms: 94_008.62,
            by_ms: vec![0; 156],
        };
        for ms in [151, 153, 153, 155] {
            lifetimes.by_ms[ms] += 1;
        }
        let mut sessions = SessionFigures {
            lifetimes,
            connections: 4,
            completed_ns: 620_000_000,
            lengths: vec![0, 0, 4],
            replies: 8,
            response_ns: 210_400_000,
            ..SessionFigures::default()
        };
        sessions.counts.begun = 4;
        sessions.counts.completed = 4;
        let measured = Measured {
            sessions,
            taken_s: 0.904,
            connections: 4,
            live_max: 1,
            requests: 8,
            sent_bytes: 520,
            received_bytes: 1_184,
            replies: 8,
            head_bytes: 1_072,
            content_bytes: 112,
            statuses: [0, 4, 0, 0, 4],
            user_s: 0.23,
            system_s: 0.66,
            ..Measured::default()
        };
        let expected = "\
Maximum connect burst length: 1

Total: connections 4 requests 8 replies 8 test-duration 0.904 s

Connection rate: 4.4 conn/s (226.0 ms/conn, <=1 concurrent connections)
Connection time [ms]: min 151.9 avg 153.3 max 155.0 median 153.5 stddev 1.3
Connection time [ms]: connect 0.0
Connection length [replies/conn]: 2.000

Request rate: 8.8 req/s (113.0 ms/req)
Request size [B]: 65.0

Reply rate [replies/s]: min 0.0 avg 0.0 max 0.0 stddev 0.0 (0 samples)
Reply time [ms]: response 26.3 transfer 0.0
Reply size [B]: header 134.0 content 14.0 footer 0.0 (total 148.0)
Reply status: 1xx=0 2xx=4 3xx=0 4xx=0 5xx=4

CPU time [s]: user 0.23 system 0.66 (user 25.4% system 73.0% total 98.5%)
Net I/O: 1.8 KB/s (0.0*10^6 bps)

Errors: total 0 client-timo 0 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 0 addrunavail 0 ftab-full 0 other 0

Session rate [sess/s]: min 0.00 avg 4.42 max 0.00 stddev 0.00 (4/4)
Session: avg 1.00 connections/session
Session lifetime [s]: 0.2
Session failtime [s]: 0.0
Session length histogram: 0 0 4
";
        assert_eq!(print(&options("--wsess=4,2,0.1"), &measured), expected);
    }

    #[test]
    fn rates_are_those_of_whole_intervals() {
        let rates = Spread::of_rates(&[50, 60, 7], 12.0);
        assert_eq!((rates.least, rates.mean, rates.most), (10.0, 11.0, 12.0));
        assert_eq!(rates.count, 2);
        assert!((rates.deviation - 2.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Spread::of_rates(&[50], 4.9).count, 0);
    }
}
