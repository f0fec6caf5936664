//! The command line of tcpkali: its options, and numbers with units as it reads them.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::Ending;
use crate::ending::ensure;
use crate::getopt::*;

/// What tcpkali exits with when the command line is wrong.
const EX_USAGE: u8 = 64;
/// Why brunt dumps nothing, and what does.
const NO_BYTES: &str = "brunt prints no bytes of messages; `tcpdump -X` does";
const NO_LATENCY: &str = "brunt: -r @LATENCY is not supported; `brunt find --objective \
                          'p95 < ...'` searches for a rate";
/// In place of certificates of a server.
const SERVES_TLS: &str = "`brunt serve --cert FILE --key FILE` serves TLS";
/// In place of the listening side.
const SERVES_TCP: &str = "`brunt serve --tcp sink` takes bytes";
/// In place of metrics for StatsD.
const METRICS: &str = "`brunt tcp --progress json` tells programs how far a run has come";
/// A run that is to have no end lasts this long: a century.
const DURATION_NS_MAX: u64 = 100 * 365 * 86_400 * 1_000_000_000;
const VERSION: &str = "tcpkali version 1.2.0 (libev, ssl)\n";
/// The help text of `-h`.
const SHORT_HELP: &str = include_str!("usage-short.txt");
/// The help text of `--help`.
const LONG_HELP: &str = include_str!("usage-long.txt");

/// The options.
pub fn table() -> Table<TcpkaliOptions> {
    Style::GetoptLong.table(vec![
        value("--channel-lifetime", |o, typed| {
            let line = format!("Expected non-negative --channel-lifetime={typed}");
            above_0(typed, SECONDS, &line).map(|s| o.lifetime_s = Some(s))
        }),
        value("--channel-bandwidth-upstream", |o, typed| {
            let line = "Expecting --channel-bandwidth-upstream > 0";
            above_0(typed, SPEEDS, line).map(|per_s| o.rate = Rate::Bytes(per_s))
        }),
        refused(
            "--channel-bandwidth-downstream",
            "brunt takes all that comes; limit the rate of the server",
        ),
        value("-c --connections", |o, typed| {
            let line = "Expecting --connections > 0";
            o.connections = above_0(typed, COUNTS, line)? as u32;
            ensure(o.connections > 0, || error(line))
        }),
        value("--connect-rate", |o, typed| {
            expected("--connect-rate", typed, COUNTS).map(|per_s| o.connect_rate = per_s)
        }),
        typed(
            "--connect-timeout",
            |o| &mut o.connect_timeout_ns,
            |typed| expected("--connect-timeout", typed, SECONDS).map(ns),
        ),
        refused("--delay-send", "connections send at once; leave it out"),
        value("-T --duration", |o, typed| {
            o.duration_ns = match typed {
                // Endless.
                "-1" => DURATION_NS_MAX,
                typed => ns(expected("--duration", typed, SECONDS)?).min(DURATION_NS_MAX),
            };
            Ok(())
        }),
        refused("-d --dump-one", NO_BYTES),
        refused("--dump-one-in", NO_BYTES),
        refused("--dump-one-out", NO_BYTES),
        refused("--dump-all", NO_BYTES),
        refused("--dump-all-in", NO_BYTES),
        refused("--dump-all-out", NO_BYTES),
        secret(message("-1 --first-message", Content::Typed, |o| {
            &mut o.first
        })),
        message("--first-message-file", Content::File, |o| &mut o.first),
        end("-h", |_| help(SHORT_HELP)),
        end("--help", |_| help(LONG_HELP)),
        value("-H --header", |o, typed| {
            let header = Some(typed.to_owned());
            o.headers.extend(header.filter(|header| !header.is_empty()));
            let line = format!("--header={typed:?} should not contain '\\n'");
            ensure(!typed.contains('\n'), || error(&line))
        }),
        flag("--latency-connect", |o| o.latency_connect = true),
        flag("--latency-first-byte", |o| o.latency_first_byte = true),
        secret(value("--latency-marker", |o, typed| {
            let line = "--latency-marker: Non-empty marker expected";
            ensure(!typed.is_empty(), || error(line))?;
            o.marker = Some((typed.to_owned(), o.unescapes));
            o.check_markers("--latency-marker", "--message-marker")
        })),
        value("--latency-marker-skip", |o, typed| {
            skipped(typed).map(|count| o.marker_skip = count)
        }),
        value("--latency-percentiles", |o, typed| {
            percentiles(typed).map(|listed| o.percentiles.extend(listed))
        }),
        refused("-l --listen-port", SERVES_TCP),
        refused("--listen-mode", SERVES_TCP),
        secret(message("-m --message", Content::Typed, |o| &mut o.messages)),
        message("-f --message-file", Content::File, |o| &mut o.messages),
        value("-r --message-rate", |o, typed| {
            ensure(!typed.starts_with('@'), || error(NO_LATENCY))?;
            let per_s = above_0(typed, COUNTS, "Expecting --message-rate > 0");
            per_s.map(|per_s| o.rate = Rate::Messages(per_s))
        }),
        refused("--message-stop", "a run ends after -T"),
        value("--nagle", |o, typed| {
            o.nagle = Some(typed == "on");
            on_or_off(typed, "Expecting --nagle \"on\" or \"off\"")
        }),
        buffer("--rcvbuf", |o| &mut o.receive_buffer),
        refused("--server", "type HOST:PORT without it"),
        buffer("--sndbuf", |o| &mut o.send_buffer),
        value("--source-ip", |o, typed| {
            let line = format!("--source-ip={typed}: local IP address expected");
            o.sources.push(typed.parse().map_err(|_| error(&line))?);
            Ok(())
        }),
        flag("--ssl", |o| o.is_secure = true),
        refused("--ssl-cert", SERVES_TLS),
        refused("--ssl-key", SERVES_TLS),
        refused("--statsd", METRICS),
        refused("--statsd-host", METRICS),
        refused("--statsd-port", METRICS),
        refused("--statsd-namespace", METRICS),
        refused("--statsd-latency-window", METRICS),
        flag("-e --unescape-message-args", |o| o.unescapes = true),
        end("--version", |_| Ending::printed(VERSION)),
        // What they would print besides is in `--brunt-report`.
        flag("-v", |_| {}),
        any("--verbose", |_, _| {}),
        value("-w --workers", |o, typed| {
            let count = typed.parse().ok();
            o.workers = Some(count.ok_or_else(|| error(workers_expected(typed)))?);
            Ok(())
        }),
        value("--write-combine", |_, typed| {
            on_or_off(typed, "Expecting --write-combine off")
        }),
        flag("--websocket", |o| o.is_websocket = true),
        flag("--ws", |o| o.is_websocket = true),
        takes(
            Takes::Nothing,
            value("--message-marker", |o, _| {
                o.marks_messages = true;
                o.check_markers("--message-marker", "--latency-marker")
            }),
        ),
        report(|o| &mut o.brunt_report),
    ])
}

/// An option with a message, which stands behind those that were typed for this place before.
fn message(
    names: &'static str,
    content: fn(String) -> Content,
    place: Place<TcpkaliOptions, Vec<TypedMessage>>,
) -> Row<TcpkaliOptions> {
    reads(names, move |o: &mut TcpkaliOptions, typed| {
        let content = content(typed.to_owned());
        let unescapes = o.unescapes;
        place(o).push(TypedMessage { content, unescapes });
        Ok(())
    })
}

/// An option with the size of a buffer.
fn buffer(
    name: &'static str,
    place: Place<TcpkaliOptions, Option<NonZeroU32>>,
) -> Row<TcpkaliOptions> {
    typed(name, place, move |typed| {
        let bytes = positive(typed, SIZES)?.map(|bytes| bytes as u32);
        let bytes = bytes.and_then(NonZeroU32::new);
        bytes.ok_or_else(|| error(&format!("Expecting {name} > 0")))
    })
}

/// What a message is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// What was typed.
    Typed(String),
    /// The content of a file, which is called so.
    File(String),
}

/// A message, and whether backslashes begin escapes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedMessage {
    /// The content of the message.
    pub content: Content,
    /// `-e` stood before it.
    pub unescapes: bool,
}

/// How fast a connection sends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Rate {
    /// No limit: as fast as possible.
    #[default]
    Unlimited,
    /// Messages per second.
    Messages(f64),
    /// Bytes per second.
    Bytes(f64),
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpkaliOptions {
    /// Connections; above 0.
    pub connections: u32,
    /// Connections that are opened per second.
    pub connect_rate: f64,
    /// Limit of an attempt to connect, nanoseconds.
    pub connect_timeout_ns: u64,
    /// Length of the measurement, nanoseconds.
    pub duration_ns: u64,
    /// Whether backslashes begin escapes in what is typed from here on.
    unescapes: bool,
    /// What each connection begins with, one behind the other.
    pub first: Vec<TypedMessage>,
    /// What is sent again and again.
    pub messages: Vec<TypedMessage>,
    /// How fast each connection sends.
    pub rate: Rate,
    /// What ends a reply, and whether escapes are read in it; absent: nothing is waited for.
    pub marker: Option<(String, bool)>,
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
    /// Whether TLS is spoken.
    pub is_secure: bool,
    /// Whether WebSocket is spoken.
    pub is_websocket: bool,
    /// Header fields of its upgrade, as typed.
    pub headers: Vec<String>,
    /// The servers, as typed.
    pub servers: Vec<String>,
    /// How long a connection is used, seconds; absent: for ever.
    pub lifetime_s: Option<f64>,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
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

/// The value of an option that has to be above 0.
fn expected(option: &str, typed: &str, units: Units) -> Result<f64, Ending> {
    above_0(typed, units, &format!("Expected positive {option}={typed}"))
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn on_or_off(typed: &str, line: &str) -> Result<(), Ending> {
    ensure(["on", "off"].contains(&typed), || error(line))
}

impl TcpkaliOptions {
    /// Reads a command line; `program` is the name that messages begin with.
    ///
    /// # Errors
    ///
    /// How tcpkali ends where it does not run: help, version, what is wrong; and what brunt has no
    /// equal of.
    pub fn parse(program: &str, words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            connections: 1,
            connect_rate: 100.0,
            connect_timeout_ns: 1_000_000_000,
            duration_ns: 10_000_000_000,
            ..Self::default()
        };
        let found = table().read(words, &mut options);
        options.servers = found.map_err(|wrong| match wrong {
            Wrong::Refused(line) => error(&line),
            wrong => wrong.ending(program, |line| Ending {
                stdout: LONG_HELP.to_owned(),
                ..error(line)
            }),
        })?;
        if options.percentiles.is_empty() {
            options.percentiles = ["95", "99", "99.5"].map(str::to_owned).to_vec();
        }
        options.check()?;
        Ok(options)
    }

    /// Refuses markers of two kinds, of which `option` is the later one.
    fn check_markers(&self, option: &str, other: &str) -> Result<(), Ending> {
        ensure(self.marker.is_none() || !self.marks_messages, || {
            error(&format!(
                "{option}: {other} is already specified, use one or the other"
            ))
        })
    }

    /// Looks at the options together.
    fn check(&self) -> Result<(), Ending> {
        ensure(!self.servers.is_empty(), || Ending {
            stdout: SHORT_HELP.to_owned(),
            ..error("Expecting target <host:port> or --listen-port. See -h or --help.")
        })?;
        let has_messages = !self.messages.is_empty();
        let line = if !self.headers.is_empty() && !self.is_websocket {
            "--header option ignored without --websocket"
        } else if !has_messages && !self.marks_messages && self.marker.is_some() {
            "--latency-marker is given, but no messages are supposed to be sent. Specify --message?"
        } else if !has_messages && matches!(self.rate, Rate::Messages(_)) {
            "--message-rate parameter makes no sense without --message or --message-file"
        } else {
            return self.check_ramp();
        };
        Err(error(line))
    }

    /// Refuses more connections than can be opened while the run lasts.
    fn check_ramp(&self) -> Result<(), Ending> {
        let connections = f64::from(self.connections);
        let seconds = self.duration_ns as f64 / 1e9;
        let rate = self.connect_rate;
        ensure(connections / rate <= seconds, || {
            error(&format!(
                "{connections} connections can not be opened at a rate {rate} within test \
                 duration {seconds}.\nDecrease --connections={connections}, or increase \
                 --duration={seconds} or --connect-rate={rate}."
            ))
        })
    }
}

/// What is wrong with a number of threads.
fn workers_expected(typed: &str) -> &'static str {
    match typed.as_bytes().first() {
        Some(b'0'..=b'9') => "Expected --workers > 1",
        Some(b's') => "Expected -w <N> (--workers) or --ws (--websocket), but not -ws.",
        _ => "Expected --workers <N> (-w <N>), or --websocket (--ws)",
    }
}

/// How many markers are left out.
fn skipped(typed: &str) -> Result<u32, Ending> {
    if typed == "0" {
        return Ok(0);
    }
    let line = "--latency-marker-skip: Failed to parse or out of range expression";
    above_0(typed, COUNTS, line).map(|count| count as u32)
}

/// Percentiles with commas or slashes between.
fn percentiles(typed: &str) -> Result<Vec<String>, Ending> {
    let listed = typed.split([',', '/']).map(str::trim_start);
    let listed = listed.map(|percentile| {
        let line = format!("--latency-percentiles: {typed}: Failed to parse: bad");
        let value = percentile.parse::<f64>();
        let value = value.map_err(|_| error(&format!("{line} number")))?;
        ensure((0.0..=100.0).contains(&value), || {
            let range = "latency percentile specification, expected range is [0..100]";
            error(&format!("{line} {range}"))
        })?;
        Ok(percentile.to_owned())
    });
    listed.collect()
}

/// Units, those of one factor together.
type Units = &'static [(&'static str, f64)];

const COUNTS: Units = &[("k", 1e3), ("m", 1e6)];
const SIZES: Units = &[("k", 1_024.0), ("m", 1_048_576.0)];
/// Bytes per second.
const SPEEDS: Units = &[
    ("bps", 0.125),
    ("kbps Kbps", 125.0),
    ("mbps Mbps", 125e3),
    ("gbps Gbps", 125e6),
    ("Bps", 1.0),
    ("kBps KBps", 1e3),
    ("mBps MBps", 1e6),
    ("gBps GBps", 1e9),
];
const SECONDS: Units = &[
    ("ms millisecond milliseconds", 0.001),
    ("s second seconds", 1.0),
    ("m min minute minutes", 60.0),
    ("h hr hour hours", 3_600.0),
    ("d day days", 86_400.0),
    ("y year years", 31_536_000.0),
];

/// A line about what is wrong with the command line.
pub(super) fn error(line: &str) -> Ending {
    Ending::error(line, EX_USAGE)
}

/// A number, perhaps with a unit behind it. Absent where it is none that is finite and above 0.
///
/// # Errors
///
/// The unit is unknown, with tcpkali's line.
pub(super) fn positive(typed: &str, units: Units) -> Result<Option<f64>, Ending> {
    let is_part = |letter: char| letter.is_ascii_digit() || ".+-".contains(letter);
    let end = typed.find(|letter| !is_part(letter)).unwrap_or(typed.len());
    let (number, unit) = typed.split_at(end);
    let Ok(number) = number.parse::<f64>() else {
        return Ok(None);
    };
    let mut known = units.iter();
    let factor = match known.find(|(names, _)| names.split(' ').any(|name| name == unit)) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() => 1.0,
        None => return Err(error(&format!("Unknown prefix \"{unit}\" in {typed}"))),
    };
    let value = number * factor;
    Ok(Some(value).filter(|value| value.is_finite() && *value > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        for (typed, units, value) in [
            ("5", COUNTS, Some(5.0)),
            ("5k", COUNTS, Some(5_000.0)),
            ("0.25m", COUNTS, Some(250_000.0)),
            ("2ms", SECONDS, Some(0.002)),
            ("1.5m", SECONDS, Some(90.0)),
            ("2days", SECONDS, Some(172_800.0)),
            ("64k", SIZES, Some(65_536.0)),
            ("10kbps", SPEEDS, Some(1_250.0)),
            ("1MBps", SPEEDS, Some(1e6)),
            ("x", COUNTS, None),
            ("", COUNTS, None),
            ("0", COUNTS, None),
            ("-1", COUNTS, None),
        ] {
            assert_eq!(positive(typed, units), Ok(value), "{typed}");
        }
        let wrong = positive("5q", COUNTS).expect_err("no unit");
        assert_eq!(
            (wrong.stderr.as_str(), wrong.code),
            ("Unknown prefix \"q\" in 5q\n", 64)
        );
    }
}
