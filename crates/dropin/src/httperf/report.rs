//! httperf's text of a run.

use brunt_engine::PrepareError;
use brunt_judge::RunFigures;
use brunt_load::sessions::{INTERVAL_NS, SessionFigures, SessionLogError};
use brunt_record::{FailureKind, FailureScope, Run, Tally};

use super::options::{HttperfOptions, Period, Uris, Workload};
use super::plan::CONNECTIONS_MAX;
use crate::Ending;
use crate::ending::Cause;
use crate::libraries::{deviation, general};

/// The version, which runs print that are asked for it.
const VERSION: &str = "httperf: httperf-0.9.0 compiled without DEBUG without TIME_SYSCALLS.\n";

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
struct Measured {
    sessions: SessionFigures,
    /// Length of the run, seconds.
    taken_s: f64,
    all: Tally,
    /// Connections that were to be opened, and the most that were open.
    connections: u64,
    live_max: u64,
    /// Mean time from the beginning of an attempt to the open connection, milliseconds.
    connect_ms: f64,
    /// CPU time of this process's threads in user space, seconds.
    user_s: f64,
    system_s: f64,
    errors: Errors,
}

/// Errors by httperf's kinds: client-timo, connrefused, connreset, fd-unavail, addrunavail, other.
type Errors = [u64; 6];

fn errors(all: &Tally) -> Errors {
    use FailureKind as Kind;
    let mut errors = Errors::default();
    for (kind, count) in all.failures.iter() {
        let place = match kind {
            Kind::TimedOut | Kind::ConnectTimedOut | Kind::HandshakeTimedOut => 0,
            Kind::ConnectRefused => 1,
            Kind::Reset | Kind::ClosedBeforeReply | Kind::IdleReset => 2,
            Kind::TruncatedHead | Kind::TruncatedBody => 2,
            Kind::ConnectNoDescriptor => 3,
            Kind::ConnectNoPort => 4,
            // A connection that is lost is one error, however many requests waited on it.
            Kind::Unanswered => continue,
            _ => 5,
        };
        errors[place] += count;
    }
    errors
}

impl Measured {
    fn of(run: &Run, sessions: &SessionFigures) -> Self {
        let summary = run.summary();
        let all = summary.lifetime;
        let sum_s = |of: fn(&brunt_record::WorkerRecord) -> u64| {
            run.workers().map(of).sum::<u64>() as f64 / 1e9
        };
        Self {
            sessions: sessions.clone(),
            taken_s: run.window_ns as f64 / 1e9,
            connections: all.connections_opened + all.failures.total(FailureScope::Connect),
            live_max: summary.live.max.into(),
            connect_ms: run.latencies.connect.mean_ns().unwrap_or(0.0) / 1e6,
            user_s: sum_s(|worker| worker.cpu_user_ns),
            system_s: sum_s(|worker| worker.cpu_system_ns),
            errors: errors(&all),
            all,
        }
    }
}

/// The rate per second in the whole intervals of a run, by the counts of each.
fn rates(counts: &[u64], taken_s: f64) -> Vec<f64> {
    let interval_s = INTERVAL_NS as f64 / 1e9;
    let whole = (taken_s / interval_s) as usize;
    let counts = (0..whole).map(|place| counts.get(place).copied().unwrap_or(0));
    counts.map(|count| count as f64 / interval_s).collect()
}

/// The least, mean and largest of some rates, and their deviation; 0 of none.
fn spread(rates: &[f64]) -> [f64; 4] {
    let mean = per(rates.iter().sum(), rates.len() as f64);
    let least = rates.iter().copied().reduce(f64::min);
    let most = rates.iter().copied().reduce(f64::max);
    let deviation = deviation(rates.iter().copied(), mean);
    [least.unwrap_or(0.0), mean, most.unwrap_or(0.0), deviation]
}

/// The quotient; 0 where there is nothing to divide by.
fn per(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}

/// What is printed before the load: the command line with what holds where it says nothing.
pub fn heading(options: &HttperfOptions) -> String {
    let flag = |name: &str, is_set: bool| is_set.then(|| name.to_owned());
    let value = |name: &str, value: &dyn std::fmt::Display| Some(format!("{name}={value}"));
    let text = |name, typed: &Option<String>| typed.as_ref().and_then(|typed| value(name, typed));
    let header = options.add_header.as_ref();
    let quoted = header.map(|header| format!("'{header}'"));
    let seconds = |name, s: f64| value(name, &general(s)).filter(|_| s > 0.0);
    let count = |name, count: u32| value(name, &count).filter(|_| count > 0);
    let (client, clients) = options.client;
    let workload = match options.workload() {
        Workload::Calls { connections, calls } => {
            format!("num-conns={connections} --num-calls={calls}")
        }
        Workload::Sessions {
            sessions,
            calls,
            think_s,
        } => format!("wsess={sessions},{calls},{think_s:.3}"),
        Workload::Log {
            sessions,
            think_s,
            path,
        } => format!("wsesslog={sessions},{think_s:.3},{}", path.display()),
    };
    let words = [
        flag("verbose", options.is_verbose),
        flag("hog", options.hog),
        flag("close-with-reset", options.close_with_reset),
        seconds("think-timeout", options.think_timeout_s),
        seconds("timeout", options.timeout_s),
        value("client", &format!("{client}/{clients}")),
        value("server", &options.server),
        text("server_name", &options.server_name),
        value("port", &options.port()),
        value("uri", &options.uri),
        options
            .failure_status
            .and_then(|status| value("failure-status", &status)),
        flag("http-version=1.0", options.is_http_1_0),
        count("max-connections", options.connections_max),
        count("max-piped-calls", options.piped_max),
        match (&options.period, &options.period_typed) {
            (Period::Fixed(period_s), _) => value("rate", &general(1.0 / period_s)),
            (_, typed) => text("period", typed),
        },
        value("send-buffer", &options.send_bytes),
        flag("retry-on-failure", options.retries),
        value("recv-buffer", &options.receive_bytes),
        flag("session-cookies", options.cookies),
        flag("ssl", options.is_secure),
        flag("ssl-no-reuse", options.no_resumption),
        text("add-header", &quoted),
        text("method", &options.method),
        Some(workload),
        value("burst-length", &options.burst).filter(|_| options.burst > 1),
        match options.uris {
            Uris::Set { requests, step } => Some(format!("wset={requests},{step:.3}")),
            _ => None,
        },
    ];
    let words = words.iter().flatten().map(|word| format!(" --{word}"));
    let words: String = words.collect();
    let version = if options.tells_version { VERSION } else { "" };
    let most = format!("httperf: maximum number of open descriptors = {CONNECTIONS_MAX}\n");
    let most = if options.is_verbose { &*most } else { "" };
    format!("{version}httperf{words}\n{most}")
}

/// What is printed at the end of a run with this outcome of its sessions.
pub fn report(options: &HttperfOptions, run: &Run, sessions: &SessionFigures) -> String {
    print(options, &Measured::of(run, sessions))
}

/// What is printed where nobody takes connections.
fn refused(options: &HttperfOptions) -> String {
    let all = u64::from(options.sessions());
    let mut measured = Measured {
        connections: all,
        live_max: 1,
        errors: [0, all, 0, 0, 0, 0],
        ..Measured::default()
    };
    measured.sessions.counts.begun = all;
    measured.sessions.counts.failed = all;
    measured.sessions.lengths = vec![all];
    print(options, &measured)
}

fn print(options: &HttperfOptions, measured: &Measured) -> String {
    let taken_s = measured.taken_s;
    let (all, sessions) = (&measured.all, &measured.sessions);
    let (connections, requests) = (measured.connections, all.requests_sent);
    let replies = all.replies.total();
    let rates = rates(&sessions.replies_by_interval, taken_s);
    let shown = rates.iter().filter(|_| options.is_verbose);
    let shown: String = shown
        .map(|rate| format!("reply-rate = {rate:<8.1}\n"))
        .collect();
    let request_rate = per(requests as f64, taken_s);
    let request_ms = per(1e3 * taken_s, requests as f64);
    // Sizes are whole numbers there.
    let request_bytes = per(all.bytes_sent as f64, requests as f64).floor();
    let head = per(all.reply_head_bytes as f64, replies as f64).floor();
    let content = per(all.reply_body_bytes as f64, replies as f64).floor();
    let reply_bytes = head + content;
    let [least, mean, most, deviation] = spread(&rates);
    let samples = rates.len();
    let response_ms = per(sessions.response_ns as f64 / 1e6, sessions.replies as f64);
    let transfer_ms = per(sessions.transfer_ns as f64 / 1e6, sessions.replies as f64);
    let [informed, success, moved, wrong, failed] =
        [1, 2, 3, 4, 5].map(|class| all.replies.class(class));
    let (user_s, system_s) = (measured.user_s, measured.system_s);
    let [user, system, both] =
        [user_s, system_s, user_s + system_s].map(|cpu_s| per(100.0 * cpu_s, taken_s));
    let received = all.bytes_received.saturating_sub(all.overhead_bytes);
    let bytes_per_s = per((all.bytes_sent + received) as f64, taken_s);
    let (kb_per_s, mbps) = (bytes_per_s / 1024.0, bytes_per_s * 8.0 / 1e6);
    let [client, refused, reset, descriptors, addresses, other] = measured.errors;
    let total: u64 = measured.errors.iter().sum();
    let of_connections = of_connections(measured);
    let of_sessions = options.has_sessions().then(|| of_sessions(measured));
    let of_sessions = of_sessions.unwrap_or_default();
    format!(
        "{shown}Maximum connect burst length: 1\n\n\
         Total: connections {connections} requests {requests} replies {replies} test-duration \
         {taken_s:.3} s\n\n\
         {of_connections}\n\
         Request rate: {request_rate:.1} req/s ({request_ms:.1} ms/req)\n\
         Request size [B]: {request_bytes:.1}\n\n\
         Reply rate [replies/s]: min {least:.1} avg {mean:.1} max {most:.1} stddev \
         {deviation:.1} ({samples} samples)\n\
         Reply time [ms]: response {response_ms:.1} transfer {transfer_ms:.1}\n\
         Reply size [B]: header {head:.1} content {content:.1} footer 0.0 (total \
         {reply_bytes:.1})\n\
         Reply status: 1xx={informed} 2xx={success} 3xx={moved} 4xx={wrong} 5xx={failed}\n\n\
         CPU time [s]: user {user_s:.2} system {system_s:.2} (user {user:.1}% system \
         {system:.1}% total {both:.1}%)\n\
         Net I/O: {kb_per_s:.1} KB/s ({mbps:.1}*10^6 bps)\n\n\
         Errors: total {total} client-timo {client} socket-timo 0 connrefused {refused} connreset \
         {reset}\n\
         Errors: fd-unavail {descriptors} addrunavail {addresses} ftab-full 0 other {other}\n\
         {of_sessions}"
    )
}

fn of_connections(measured: &Measured) -> String {
    let (connections, live_max) = (measured.connections as f64, measured.live_max);
    let connect_ms = measured.connect_ms;
    let rate = per(connections, measured.taken_s);
    let each_ms = per(1e3 * measured.taken_s, connections);
    let all = &measured.sessions.lifetimes;
    let count = all.count as f64;
    let mean_ms = per(all.sum_ns as f64 / 1e6, count);
    let variance = per(all.squares_ms - count * mean_ms * mean_ms, count - 1.0);
    let (min_ms, max_ms) = (all.min_ns as f64 / 1e6, all.max_ns as f64 / 1e6);
    let median_ms = all.median_ms().map_or(0.0, |ms| ms as f64 + 0.5);
    let deviation_ms = variance.max(0.0).sqrt();
    let length = per(measured.all.replies.total() as f64, count);
    format!(
        "Connection rate: {rate:.1} conn/s ({each_ms:.1} ms/conn, <={live_max} concurrent \
         connections)\n\
         Connection time [ms]: min {min_ms:.1} avg {mean_ms:.1} max {max_ms:.1} median \
         {median_ms:.1} stddev {deviation_ms:.1}\n\
         Connection time [ms]: connect {connect_ms:.1}\n\
         Connection length [replies/conn]: {length:.3}\n"
    )
}

fn of_sessions(measured: &Measured) -> String {
    let sessions = &measured.sessions;
    let (completed, begun) = (sessions.counts.completed, sessions.counts.begun);
    let [least, _, most, deviation] =
        spread(&rates(&sessions.completed_by_interval, measured.taken_s));
    let rate = per(completed as f64, measured.taken_s);
    let connections = per(sessions.connections as f64, completed as f64);
    let lifetime_s = per(sessions.completed_ns as f64 / 1e9, completed as f64);
    let failed = sessions.counts.failed as f64;
    let fail_time_s = per(sessions.failed_ns as f64 / 1e9, failed);
    let lengths = sessions.lengths.iter().map(|count| format!(" {count}"));
    let lengths: String = lengths.collect();
    format!(
        "\nSession rate [sess/s]: min {least:.2} avg {rate:.2} max {most:.2} stddev \
         {deviation:.2} ({completed}/{begun})\n\
         Session: avg {connections:.2} connections/session\n\
         Session lifetime [s]: {lifetime_s:.1}\n\
         Session failtime [s]: {fail_time_s:.1}\n\
         Session length histogram:{lengths}\n"
    )
}

/// ECONNREFUSED.
const CONNECTION_REFUSED: u32 = 111;

/// How a run ends that cannot be prepared. Absent where httperf has no words for it.
pub fn preparation_ending(options: &HttperfOptions, error: &PrepareError) -> Option<Ending> {
    match Cause::of(error)? {
        Cause::Resolve(_) => {
            let what = "httperf.core_addr_intern: invalid server address";
            Some(ended(options, &format!("{what} {}", options.server)))
        }
        // Each of its connections would be an error, and it ends well.
        Cause::Connect(_, Some(CONNECTION_REFUSED)) => Some(Ending {
            stdout: heading(options) + &refused(options),
            stderr: "brunt: NO-SUCCESS: nobody takes connections there\n".to_owned(),
            code: 0,
        }),
        Cause::Connect(..) => None,
    }
}

/// How the program ends where a file cannot be read.
pub fn unread(options: &HttperfOptions, path: &std::path::Path) -> Ending {
    let line = format!("httperf: can't open {}", path.display());
    ended(options, &line)
}

/// How the program ends where a log of sessions cannot be read.
pub fn unread_log(options: &HttperfOptions, error: &SessionLogError) -> Ending {
    ended(options, &format!("brunt: --wsesslog: {error}"))
}

fn ended(options: &HttperfOptions, line: &str) -> Ending {
    Ending {
        stdout: heading(options),
        ..Ending::error(line, 1)
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::sessions::Lifetimes;

    use super::*;
    use crate::getopt::tests::words;

    fn options(line: &str) -> HttperfOptions {
        let words = words(line);
        HttperfOptions::parse("httperf", &words).expect(line)
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
        let mut all = Tally {
            requests_sent: 8,
            bytes_sent: 520,
            bytes_received: 1_184,
            reply_head_bytes: 1_072,
            reply_body_bytes: 112,
            ..Tally::default()
        };
        for status in [200, 200, 200, 200, 500, 500, 500, 500] {
            all.replies.add(status);
        }
        let measured = Measured {
            sessions,
            taken_s: 0.904,
            connections: 4,
            live_max: 1,
            all,
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
        let found = rates(&[50, 60, 7], 12.0);
        assert_eq!(found, [10.0, 12.0]);
        let [least, mean, most, deviation] = spread(&found);
        assert_eq!((least, mean, most), (10.0, 11.0, 12.0));
        assert!((deviation - 2.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(spread(&rates(&[50], 4.9)), [0.0; 4]);
    }
}
