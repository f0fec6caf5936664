//! The command line of tcpkali.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use super::number::{COUNTS, EX_USAGE, SECONDS, SIZES, SPEEDS, Units, error, positive};
use super::usage;
use crate::Ending;
use crate::getopt::{self, Row, Wrong, flag, value};

/// Why brunt dumps nothing, and what does.
const NO_BYTES: &str = "brunt prints no bytes of messages; `tcpdump -X` does";
/// In place of certificates of a server.
const SERVES_TLS: &str = "`brunt serve --cert FILE --key FILE` serves TLS";
/// Options that have no long name.
const SHORT: &str = "hv";
/// The others in the order of tcpkali, then brunt's.
const ROWS: &[Row] = &[
    value("", "channel-lifetime"),
    value("", "channel-bandwidth-upstream"),
    value("", "channel-bandwidth-downstream")
        .refused("brunt takes all that comes; limit the rate of the server"),
    value("c", "connections"),
    value("", "connect-rate"),
    value("", "connect-timeout"),
    value("", "delay-send").refused("connections send at once; leave it out"),
    value("T", "duration"),
    flag("d", "dump-one").refused(NO_BYTES),
    flag("", "dump-one-in").refused(NO_BYTES),
    flag("", "dump-one-out").refused(NO_BYTES),
    flag("", "dump-all").refused(NO_BYTES),
    flag("", "dump-all-in").refused(NO_BYTES),
    flag("", "dump-all-out").refused(NO_BYTES),
    value("1", "first-message"),
    value("", "first-message-file"),
    flag("", "help"),
    value("H", "header"),
    flag("", "latency-connect"),
    flag("", "latency-first-byte"),
    value("", "latency-marker"),
    value("", "latency-marker-skip"),
    value("", "latency-percentiles"),
    value("l", "listen-port"),
    value("", "listen-mode"),
    value("m", "message"),
    value("f", "message-file"),
    value("r", "message-rate"),
    value("", "message-stop").refused("a run ends after -T"),
    value("", "nagle"),
    value("", "rcvbuf"),
    value("", "server").refused("type HOST:PORT without it"),
    value("", "sndbuf"),
    value("", "source-ip"),
    flag("", "ssl"),
    value("", "ssl-cert").refused(SERVES_TLS),
    value("", "ssl-key").refused(SERVES_TLS),
    flag("", "statsd"),
    value("", "statsd-host"),
    value("", "statsd-port"),
    value("", "statsd-namespace"),
    value("", "statsd-latency-window"),
    flag("e", "unescape-message-args"),
    flag("", "version"),
    value("", "verbose"),
    value("w", "workers"),
    value("", "write-combine"),
    flag("", "websocket"),
    flag("", "ws"),
    flag("", "message-marker"),
    value("", "brunt-report").in_full(),
];
/// A run that is to have no end lasts this long: a century.
const DURATION_NS_MAX: u64 = 100 * 365 * 86_400 * 1_000_000_000;
/// Response times are reported for parts of a run that are this long at least.
const WINDOW_NS_LEAST: u64 = 500_000_000;
const VERSION: &str = "tcpkali version 1.2.0 (libev, ssl)\n";

/// What a message is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// What was typed.
    Typed(String),
    /// The content of a file.
    File(PathBuf),
}

/// A message, and whether backslashes begin escapes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The content of the message.
    pub content: Content,
    /// `-e` stood before it.
    pub unescapes: bool,
}

/// Where metrics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statsd {
    /// The host of StatsD.
    pub host: String,
    /// The port of StatsD.
    pub port: u16,
    /// What the names of metrics begin with.
    pub namespace: String,
    /// Response times are of parts of the run, each so many nanoseconds long; absent: of all that
    /// is over.
    pub latency_window_ns: Option<u64>,
}

impl Default for Statsd {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8_125,
            namespace: "tcpkali".to_owned(),
            latency_window_ns: None,
        }
    }
}

/// How fast a connection sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// No limit: as fast as possible.
    Unlimited,
    /// Messages per second.
    Messages(f64),
    /// Bytes per second.
    Bytes(f64),
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Connections.
    pub connections: NonZeroU32,
    /// Connections that are opened per second.
    pub connect_rate: f64,
    /// Limit of an attempt to connect, nanoseconds.
    pub connect_timeout_ns: u64,
    /// Length of the measurement, nanoseconds.
    pub duration_ns: u64,
    /// What each connection begins with, one behind the other.
    pub first: Vec<Message>,
    /// What is sent again and again.
    pub messages: Vec<Message>,
    /// How fast each connection sends.
    pub rate: Rate,
    /// What ends a reply, and whether escapes are read in it; absent: nothing is waited for.
    pub marker: Option<Message>,
    /// Whether the time to connect is printed.
    pub latency_connect: bool,
    /// Whether the time to the first byte is printed.
    pub latency_first_byte: bool,
    /// Percentiles, as typed.
    pub percentiles: Vec<String>,
    /// Addresses to connect from.
    pub sources: Vec<IpAddr>,
    /// Threads; absent: as many as there are CPUs, and no more than connections.
    pub workers: Option<NonZeroU32>,
    /// Markers that are not looked at when a connection begins.
    pub marker_skip: u32,
    /// Whether the markers are the instants in messages.
    pub marks_messages: bool,
    /// Whether small writes wait for what is in flight; absent where no option says.
    pub nagle: Option<bool>,
    /// Bytes of the send buffer of each socket.
    pub send_buffer: Option<NonZeroU32>,
    /// Bytes of the receive buffer of each socket.
    pub receive_buffer: Option<NonZeroU32>,
    /// Where metrics go, if anywhere.
    pub statsd: Option<Statsd>,
    /// Whether TLS is spoken.
    pub is_secure: bool,
    /// Whether WebSocket is spoken.
    pub is_websocket: bool,
    /// Header fields of its upgrade, as typed.
    pub headers: Vec<String>,
    /// The servers, as typed; none where there is only something to listen for.
    pub servers: Vec<String>,
    /// Where connections are taken that send what nobody looks at: the host, where one was typed,
    /// and the port.
    pub listen: Option<(Option<String>, u16)>,
    /// How long a connection is used, seconds; absent: for ever.
    pub lifetime_s: Option<f64>,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
}

/// The command line without what may be secret: messages.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(
        getopt::Options::new("tcpkali", SHORT, ROWS, words),
        &["message", "first-message", "latency-marker"],
    )
}

/// How tcpkali ends where help is asked for.
fn help(text: &str) -> Ending {
    Ending {
        code: EX_USAGE,
        ..Ending::printed(text)
    }
}

fn above_0(typed: &str, units: Units, line: &str) -> Result<f64, Ending> {
    positive(typed, units)?.ok_or_else(|| error(line))
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl Options {
    /// Reads a command line; `program` is the name that messages begin with.
    ///
    /// # Errors
    ///
    /// How tcpkali ends where it does not run: help, version, what is wrong; and what brunt has no
    /// equal of.
    pub fn parse(program: &str, words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            connections: NonZeroU32::MIN,
            connect_rate: 100.0,
            connect_timeout_ns: 1_000_000_000,
            duration_ns: 10_000_000_000,
            first: Vec::new(),
            messages: Vec::new(),
            rate: Rate::Unlimited,
            marker: None,
            marker_skip: 0,
            marks_messages: false,
            nagle: None,
            send_buffer: None,
            receive_buffer: None,
            latency_connect: false,
            latency_first_byte: false,
            percentiles: Vec::new(),
            sources: Vec::new(),
            workers: None,
            statsd: None,
            is_secure: false,
            is_websocket: false,
            headers: Vec::new(),
            servers: Vec::new(),
            listen: None,
            lifetime_s: None,
            brunt_report: None,
        };
        let mut unescapes = false;
        let (mut statsd, mut sends_metrics) = (Statsd::default(), false);
        let mut found = getopt::Options::new(program, SHORT, ROWS, words);
        while let Some(item) = found.next() {
            let (name, argument) = item.map_err(|wrong| match wrong {
                Wrong::Refused(line) => error(&line),
                Wrong::Unreadable(line) => Ending {
                    stdout: usage::LONG.to_owned(),
                    ..error(&line)
                },
            })?;
            let typed = argument.unwrap_or_default();
            match name {
                "statsd" => sends_metrics = true,
                "statsd-host" => statsd.host = typed,
                "statsd-namespace" => statsd.namespace = typed,
                "statsd-port" => statsd.port = port(&typed, "--statsd-port")?,
                "statsd-latency-window" => {
                    let line = format!("Expected positive --statsd-latency-window={typed}");
                    statsd.latency_window_ns = Some(ns(above_0(&typed, SECONDS, &line)?));
                }
                _ => options.take(name, typed, &mut unescapes)?,
            }
        }
        check_window(&statsd, options.duration_ns)?;
        options.statsd = sends_metrics.then_some(statsd);
        options.take_servers(&found.operands())?;
        if options.percentiles.is_empty() {
            options.percentiles = ["95", "99", "99.5"].map(str::to_owned).to_vec();
        }
        options.check()?;
        Ok(options)
    }

    fn take(&mut self, name: &str, typed: String, unescapes: &mut bool) -> Result<(), Ending> {
        let typed_message = |content| Message {
            content,
            unescapes: *unescapes,
        };
        match name {
            "h" => return Err(help(usage::SHORT)),
            "help" => return Err(help(usage::LONG)),
            "version" => return Err(Ending::printed(VERSION)),
            "connections" => {
                let count = above_0(&typed, COUNTS, "Expecting --connections > 0")?;
                let count = NonZeroU32::new(count as u32);
                self.connections = count.ok_or_else(|| error("Expecting --connections > 0"))?;
            }
            "connect-rate" => {
                let line = format!("Expected positive --connect-rate={typed}");
                self.connect_rate = above_0(&typed, COUNTS, &line)?;
            }
            "connect-timeout" => {
                let line = format!("Expected positive --connect-timeout={typed}");
                self.connect_timeout_ns = ns(above_0(&typed, SECONDS, &line)?);
            }
            // Endless.
            "duration" if typed == "-1" => self.duration_ns = DURATION_NS_MAX,
            "duration" => {
                let line = format!("Expected positive --duration={typed}");
                self.duration_ns = ns(above_0(&typed, SECONDS, &line)?).min(DURATION_NS_MAX);
            }
            "unescape-message-args" => *unescapes = true,
            "message" => self.messages.push(typed_message(Content::Typed(typed))),
            "message-file" => self
                .messages
                .push(typed_message(Content::File(typed.into()))),
            "first-message" => self.first.push(typed_message(Content::Typed(typed))),
            "first-message-file" => self.first.push(typed_message(Content::File(typed.into()))),
            "latency-marker" if typed.is_empty() => {
                return Err(error("--latency-marker: Non-empty marker expected"));
            }
            "latency-marker" if self.marks_messages => {
                return Err(error(&one_marker("--latency-marker")));
            }
            "latency-marker" => self.marker = Some(typed_message(Content::Typed(typed))),
            "message-marker" if self.marker.is_some() => {
                return Err(error(&one_marker("--message-marker")));
            }
            "message-marker" => self.marks_messages = true,
            "latency-marker-skip" => self.marker_skip = skipped(&typed)?,
            "message-rate" if typed.starts_with('@') => {
                return Err(error(
                    "brunt: -r @LATENCY is not supported; `brunt find --objective 'p95 < ...'` \
                     searches for a rate",
                ));
            }
            "message-rate" => {
                let per_s = above_0(&typed, COUNTS, "Expecting --message-rate > 0")?;
                self.rate = Rate::Messages(per_s);
            }
            "channel-bandwidth-upstream" => {
                let line = "Expecting --channel-bandwidth-upstream > 0";
                self.rate = Rate::Bytes(above_0(&typed, SPEEDS, line)?);
            }
            "latency-connect" => self.latency_connect = true,
            "latency-first-byte" => self.latency_first_byte = true,
            "latency-percentiles" => self.percentiles.extend(percentiles(&typed)?),
            "nagle" if typed == "on" || typed == "off" => self.nagle = Some(typed == "on"),
            "nagle" => return Err(error("Expecting --nagle \"on\" or \"off\"")),
            "write-combine" if typed == "on" || typed == "off" => {}
            "write-combine" => return Err(error("Expecting --write-combine off")),
            "rcvbuf" => self.receive_buffer = Some(buffer(&typed, "--rcvbuf")?),
            "sndbuf" => self.send_buffer = Some(buffer(&typed, "--sndbuf")?),
            "source-ip" => {
                let address = typed.parse();
                let line = format!("--source-ip={typed}: local IP address expected");
                self.sources.push(address.map_err(|_| error(&line))?);
            }
            "workers" => {
                let count = typed.parse().ok();
                self.workers = Some(count.ok_or_else(|| error(workers_expected(&typed)))?);
            }
            "ssl" => self.is_secure = true,
            // What it would print besides is in `--brunt-report`.
            "v" | "verbose" => {}
            "listen-port" => {
                let (host, digits) = match typed.split_once(':') {
                    Some((host, digits)) => (Some(host.to_owned()), digits),
                    None => (None, typed.as_str()),
                };
                self.listen = Some((host, port(digits, "--listen-port")?));
            }
            "listen-mode" if typed == "silent" => {}
            "listen-mode" if typed == "active" => {
                return Err(error(
                    "brunt: --listen-mode=active is not supported; `brunt serve --tcp source` \
                     sends without end",
                ));
            }
            "listen-mode" => {
                return Err(error(&format!(
                    "--listen-mode={typed} is not one of {{silent|active}}"
                )));
            }
            "channel-lifetime" => {
                let line = format!("Expected non-negative --channel-lifetime={typed}");
                self.lifetime_s = Some(above_0(&typed, SECONDS, &line)?);
            }
            "websocket" | "ws" => self.is_websocket = true,
            "header" if typed.is_empty() => {}
            "header" if typed.contains('\n') => {
                return Err(error(&format!(
                    "--header={typed:?} should not contain '\\n'"
                )));
            }
            "header" => self.headers.push(typed),
            "brunt-report" => self.brunt_report = Some(typed.into()),
            _ => {}
        }
        Ok(())
    }

    fn take_servers(&mut self, servers: &[String]) -> Result<(), Ending> {
        match servers {
            [] if self.listen.is_some() => Ok(()),
            [] => Err(Ending {
                stdout: usage::SHORT.to_owned(),
                ..error("Expecting target <host:port> or --listen-port. See -h or --help.")
            }),
            servers => {
                self.servers = servers.to_vec();
                Ok(())
            }
        }
    }

    fn check(&self) -> Result<(), Ending> {
        if self.listen.is_some() && (self.is_websocket || self.is_secure) {
            return Err(error(
                "brunt: -l takes bytes in clear text only; `brunt serve` speaks WebSocket at \
                 /websocket, and TLS with --tls",
            ));
        }
        if self.servers.is_empty() {
            return Ok(());
        }
        if !self.headers.is_empty() && !self.is_websocket {
            return Err(error("--header option ignored without --websocket"));
        }
        if self.messages.is_empty() && !self.marks_messages && self.marker.is_some() {
            return Err(error(
                "--latency-marker is given, but no messages are supposed to be sent. Specify \
                 --message?",
            ));
        }
        if self.messages.is_empty() && matches!(self.rate, Rate::Messages(_)) {
            return Err(error(
                "--message-rate parameter makes no sense without --message or --message-file",
            ));
        }
        let connections = f64::from(self.connections.get());
        let seconds = self.duration_ns as f64 / 1e9;
        if connections / self.connect_rate > seconds {
            let rate = self.connect_rate;
            return Err(error(&format!(
                "{connections} connections can not be opened at a rate {rate} within test \
                 duration {seconds}.\nDecrease --connections={connections}, or increase \
                 --duration={seconds} or --connect-rate={rate}."
            )));
        }
        Ok(())
    }
}

/// A port of TCP or UDP.
fn port(typed: &str, option: &str) -> Result<u16, Ending> {
    let digits = typed.bytes().take_while(u8::is_ascii_digit).count();
    match typed[..digits].parse::<u32>() {
        Ok(port @ 1..65_535) => Ok(port as u16),
        other => Err(error(&format!(
            "{option}={} is not in [1..65535]",
            other.unwrap_or(0)
        ))),
    }
}

/// Refuses a `--statsd-latency-window` that is longer than the run, or too short.
fn check_window(statsd: &Statsd, duration_ns: u64) -> Result<(), Ending> {
    let Some(window_ns) = statsd.latency_window_ns else {
        return Ok(());
    };
    let window = format!("--statsd-latency-window={}s", window_ns as f64 / 1e9);
    if window_ns > duration_ns {
        let duration = duration_ns as f64 / 1e9;
        return Err(error(&format!("{window} exceeds --duration={duration}s.")));
    }
    if window_ns < WINDOW_NS_LEAST {
        return Err(error(&format!("{window} is too small. Try 0.5s.")));
    }
    Ok(())
}

/// What is wrong with a number of threads.
fn workers_expected(typed: &str) -> &'static str {
    match typed.as_bytes().first() {
        Some(b'0'..=b'9') => "Expected --workers > 1",
        Some(b's') => "Expected -w <N> (--workers) or --ws (--websocket), but not -ws.",
        _ => "Expected --workers <N> (-w <N>), or --websocket (--ws)",
    }
}

/// The message that markers of two kinds are asked for, the second by `option`.
fn one_marker(option: &str) -> String {
    let other = match option {
        "--latency-marker" => "--message-marker",
        _ => "--latency-marker",
    };
    format!("{option}: {other} is already specified, use one or the other")
}

/// How many markers are left out.
fn skipped(typed: &str) -> Result<u32, Ending> {
    if typed == "0" {
        return Ok(0);
    }
    let count = positive(typed, COUNTS)?;
    count
        .map(|count| count as u32)
        .ok_or_else(|| error("--latency-marker-skip: Failed to parse or out of range expression"))
}

/// The size of a buffer.
fn buffer(typed: &str, option: &str) -> Result<NonZeroU32, Ending> {
    let bytes = positive(typed, SIZES)?.map(|bytes| bytes as u32);
    let bytes = bytes.and_then(NonZeroU32::new);
    bytes.ok_or_else(|| error(&format!("Expecting {option} > 0")))
}

/// Percentiles with commas or slashes between.
fn percentiles(typed: &str) -> Result<Vec<String>, Ending> {
    let listed = typed.split([',', '/']).map(str::trim_start);
    let listed = listed.map(|percentile| match percentile.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(percentile.to_owned()),
        Ok(_) => Err(error(&format!(
            "--latency-percentiles: {typed}: Failed to parse: bad latency percentile \
             specification, expected range is [0..100]"
        ))),
        Err(_) => Err(error(&format!(
            "--latency-percentiles: {typed}: Failed to parse: bad number"
        ))),
    });
    listed.collect()
}
