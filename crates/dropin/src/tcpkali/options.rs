//! The command line of tcpkali.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use super::number::{COUNTS, EX_USAGE, SECONDS, Units, error, positive};
use super::usage;
use crate::Ending;
use crate::getopt::{self, Long};

const SHORT: &str = "dhc:e1:m:f:r:l:vw:T:H:";
/// Options that brunt has no equal of.
const WITHOUT_EQUAL: char = 'x';
const LONG: &[Long] = &[
    long("channel-lifetime", true, WITHOUT_EQUAL),
    long("channel-bandwidth-upstream", true, WITHOUT_EQUAL),
    long("channel-bandwidth-downstream", true, WITHOUT_EQUAL),
    long("connections", true, 'c'),
    long("connect-rate", true, 'R'),
    long("connect-timeout", true, 't'),
    long("delay-send", true, WITHOUT_EQUAL),
    long("duration", true, 'T'),
    long("dump-one", false, 'd'),
    long("dump-one-in", false, 'd'),
    long("dump-one-out", false, 'd'),
    long("dump-all", false, 'd'),
    long("dump-all-in", false, 'd'),
    long("dump-all-out", false, 'd'),
    long("first-message", true, '1'),
    long("first-message-file", true, 'F'),
    long("help", false, 'E'),
    long("header", true, 'H'),
    long("latency-connect", false, 'C'),
    long("latency-first-byte", false, 'B'),
    long("latency-marker", true, 'k'),
    long("latency-marker-skip", true, WITHOUT_EQUAL),
    long("latency-percentiles", true, 'p'),
    long("listen-port", true, 'l'),
    long("listen-mode", true, 'l'),
    long("message", true, 'm'),
    long("message-file", true, 'f'),
    long("message-rate", true, 'r'),
    long("message-stop", true, WITHOUT_EQUAL),
    long("nagle", true, 'N'),
    long("rcvbuf", true, WITHOUT_EQUAL),
    long("server", true, WITHOUT_EQUAL),
    long("sndbuf", true, WITHOUT_EQUAL),
    long("source-ip", true, 'I'),
    long("ssl", false, 'S'),
    long("ssl-cert", true, WITHOUT_EQUAL),
    long("ssl-key", true, WITHOUT_EQUAL),
    long("statsd", false, WITHOUT_EQUAL),
    long("statsd-host", true, WITHOUT_EQUAL),
    long("statsd-port", true, WITHOUT_EQUAL),
    long("statsd-namespace", true, WITHOUT_EQUAL),
    long("statsd-latency-window", true, WITHOUT_EQUAL),
    long("unescape-message-args", false, 'e'),
    long("version", false, 'V'),
    long("verbose", true, 'b'),
    long("workers", true, 'w'),
    long("write-combine", true, 'W'),
    long("websocket", false, 'H'),
    long("ws", false, 'H'),
    long("message-marker", false, WITHOUT_EQUAL),
    Long {
        is_peers: false,
        ..long("brunt-report", true, '\u{1}')
    },
    Long {
        is_peers: false,
        ..long("explain", false, '\u{2}')
    },
];
const VERSION: &str = "tcpkali version 1.2.0 (libev, ssl)\n";

const fn long(name: &'static str, takes: bool, id: char) -> Long {
    Long {
        name,
        takes,
        id,
        is_peers: true,
    }
}

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
    /// What it is made of.
    pub content: Content,
    /// `-e` stood before it.
    pub unescapes: bool,
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
    /// Messages per second on each connection; absent: as fast as can be.
    pub rate: Option<f64>,
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
    /// Whether TLS is spoken.
    pub is_secure: bool,
    /// The server, as typed.
    pub server: String,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// Whether to print brunt's own command line and run nothing.
    pub explains: bool,
}

/// The command line without what may be secret: messages.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(
        getopt::Options::new("tcpkali", SHORT, LONG, words),
        &['m', '1', 'k'],
    )
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
            rate: None,
            marker: None,
            latency_connect: false,
            latency_first_byte: false,
            percentiles: ["95", "99", "99.5"].map(str::to_owned).to_vec(),
            sources: Vec::new(),
            workers: None,
            is_secure: false,
            server: String::new(),
            brunt_report: None,
            explains: false,
        };
        let mut unescapes = false;
        let mut found = getopt::Options::new(program, SHORT, LONG, words);
        while let Some(item) = found.next() {
            let (id, argument) = item.map_err(|line| Ending {
                stdout: usage::long(),
                ..error(&line)
            })?;
            options.take(id, argument.unwrap_or_default(), &mut unescapes)?;
        }
        options.take_servers(&found.operands())?;
        options.check()?;
        Ok(options)
    }

    fn take(&mut self, id: char, typed: String, unescapes: &mut bool) -> Result<(), Ending> {
        let typed_message = |content| Message {
            content,
            unescapes: *unescapes,
        };
        match id {
            'h' | 'E' => {
                return Err(Ending {
                    stdout: if id == 'h' {
                        usage::short()
                    } else {
                        usage::long()
                    },
                    stderr: String::new(),
                    code: EX_USAGE,
                });
            }
            'V' => {
                return Err(Ending {
                    stdout: VERSION.to_owned(),
                    ..Ending::default()
                });
            }
            'c' => {
                let count = above_0(&typed, COUNTS, "Expecting --connections > 0")?;
                let count = NonZeroU32::new(count as u32);
                self.connections = count.ok_or_else(|| error("Expecting --connections > 0"))?;
            }
            'R' => {
                let line = format!("Expected positive --connect-rate={typed}");
                self.connect_rate = above_0(&typed, COUNTS, &line)?;
            }
            't' => {
                let line = format!("Expected positive --connect-timeout={typed}");
                self.connect_timeout_ns = ns(above_0(&typed, SECONDS, &line)?);
            }
            'T' => {
                let line = format!("Expected positive --duration={typed}");
                self.duration_ns = ns(above_0(&typed, SECONDS, &line)?);
            }
            'e' => *unescapes = true,
            'm' => self.messages.push(typed_message(Content::Typed(typed))),
            'f' => self
                .messages
                .push(typed_message(Content::File(typed.into()))),
            '1' => self.first.push(typed_message(Content::Typed(typed))),
            'F' => self.first.push(typed_message(Content::File(typed.into()))),
            'k' => self.marker = Some(typed_message(Content::Typed(typed))),
            'r' if typed.starts_with('@') => {
                return Err(error(
                    "brunt: -r @LATENCY: `brunt find --objective 'p95 < ...'` searches a rate",
                ));
            }
            'r' => {
                self.rate = Some(above_0(&typed, COUNTS, "Expecting --message-rate > 0")?);
            }
            'C' => self.latency_connect = true,
            'B' => self.latency_first_byte = true,
            'p' => self.percentiles = percentiles(&typed)?,
            'N' if typed == "off" => {}
            'N' if typed == "on" => {
                return Err(error("brunt: --nagle=on: brunt sends each message at once"));
            }
            'N' => return Err(error("Expecting --nagle \"on\" or \"off\"")),
            'W' if typed == "on" || typed == "off" => {}
            'W' => return Err(error("Expecting --write-combine off")),
            'I' => {
                let address = typed.parse();
                let line = format!("--source-ip={typed}: local IP address expected");
                self.sources.push(address.map_err(|_| error(&line))?);
            }
            'w' => {
                let count = typed.parse().ok();
                self.workers = Some(count.ok_or_else(|| error("Expected --workers > 1"))?);
            }
            'S' => self.is_secure = true,
            // What it would print besides is in `--brunt-report`.
            'v' | 'b' => {}
            'd' => return Err(error("brunt: dumps: see docs/drop-ins.md")),
            'l' => {
                return Err(error(
                    "brunt: -l: `brunt serve --tcp sink` or `--tcp source` is the other end",
                ));
            }
            'H' => return Err(error("brunt: WebSocket: see docs/drop-ins.md")),
            '\u{1}' => self.brunt_report = Some(typed.into()),
            '\u{2}' => self.explains = true,
            _ => return Err(error("brunt: this option of tcpkali: see docs/drop-ins.md")),
        }
        Ok(())
    }

    fn take_servers(&mut self, servers: &[String]) -> Result<(), Ending> {
        match servers {
            [] => Err(Ending {
                stdout: usage::short(),
                ..error("Expecting target <host:port> or --listen-port. See -h or --help.")
            }),
            [server] => {
                self.server.clone_from(server);
                Ok(())
            }
            _ => Err(error("brunt: one server is loaded at a time")),
        }
    }

    fn check(&self) -> Result<(), Ending> {
        if self.messages.is_empty() {
            return Err(error(match (self.rate, &self.marker) {
                (Some(_), _) => {
                    "--message-rate parameter makes no sense without --message or --message-file"
                }
                (None, Some(_)) => {
                    "--latency-marker is given, but no messages are supposed to be sent. Specify \
                     --message?"
                }
                (None, None) => "brunt: there is no message; give one with -m",
            }));
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

    /// Messages per second on all connections.
    pub(super) fn rate_in_all(&self) -> Option<f64> {
        self.rate
            .map(|rate| rate * f64::from(self.connections.get()))
    }

    /// Threads.
    pub(super) fn threads(&self, cpus: NonZeroU32) -> NonZeroU32 {
        self.workers.unwrap_or(cpus.min(self.connections))
    }

    /// How many messages the connections may have sent at most; absent without a rate.
    pub(super) fn planned(&self) -> Option<NonZeroU64> {
        let messages = self.rate_in_all()? * self.duration_ns as f64 / 1e9;
        NonZeroU64::new(messages.ceil() as u64)
    }
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
