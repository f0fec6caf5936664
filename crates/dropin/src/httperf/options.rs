//! The command line of httperf.

mod values;

use std::path::PathBuf;

use brunt_load::HIDDEN;

pub use self::values::Period;
use self::values::{EXIT_ERROR, Parameters, client, count, error, fixed, period, seconds, unfit};
use super::usage::USAGE;
use crate::Ending;
use crate::getopt::{self, Row, attached, flag, value};

/// Exit code of options that do not go together.
const EXIT_CONFLICT: u8 = 255;
/// Why brunt does not print bytes, and what does.
const NO_BYTES: &str = "brunt prints no bytes of requests and replies; send one by `curl -v`";

const ROWS: &[Row] = &[
    value("", "add-header"),
    value("", "burst-length"),
    value("", "client"),
    flag("", "close-with-reset"),
    value("d", "debug"),
    value("", "failure-status"),
    flag("h", "help"),
    flag("", "hog"),
    value("", "http-version"),
    value("", "max-connections"),
    value("", "max-piped-calls"),
    value("", "method"),
    flag("", "no-host-hdr"),
    value("", "num-calls"),
    value("", "num-conns"),
    value("", "period"),
    value("", "port"),
    attached("", "print-reply").refused(NO_BYTES),
    attached("", "print-request").refused(NO_BYTES),
    value("", "rate"),
    value("", "recv-buffer"),
    flag("", "retry-on-failure"),
    value("", "send-buffer"),
    value("", "server"),
    value("", "server-name"),
    flag("", "session-cookies"),
    flag("", "ssl"),
    value("", "ssl-ciphers"),
    flag("", "ssl-no-reuse"),
    value("", "think-timeout"),
    value("", "timeout"),
    value("", "uri"),
    flag("v", "verbose"),
    flag("V", "version"),
    value("", "wlog"),
    value("", "wsess"),
    value("", "wsesslog"),
    value("", "wset"),
    value("", "brunt-report").in_full(),
];

/// What each connection or session sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Connections, all alike.
    Calls {
        /// How many.
        connections: u32,
        /// Requests of each.
        calls: u32,
    },
    /// Sessions, all alike.
    Sessions {
        /// How many.
        sessions: u32,
        /// Requests of each.
        calls: u32,
        /// Between bursts, seconds.
        think_s: f64,
    },
    /// Sessions of a log.
    Log {
        /// How many.
        sessions: u32,
        /// Between bursts, where the log does not say, seconds.
        think_s: f64,
        /// The log.
        path: PathBuf,
    },
}

/// Which requests are sent, where the workload does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Uris {
    /// One URI, sent over and over.
    #[default]
    One,
    /// The URIs of a list.
    List {
        /// Whether the list begins again at its end.
        wraps: bool,
        /// The file of the list: URIs one after another, each with a zero byte behind it.
        path: PathBuf,
    },
    /// A working set.
    Set {
        /// How many.
        requests: u32,
        /// New ones per request.
        step: f64,
    },
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// What header lines end with, as typed.
    pub add_header: Option<String>,
    /// Requests that are sent at once.
    pub burst: u32,
    /// Which of how many clients this is.
    pub client: (u32, u32),
    /// Whether connections are to be reset at their end.
    pub close_with_reset: bool,
    /// A reply with this status fails its session.
    pub failure_status: Option<u16>,
    /// Whether all ports are to be used.
    pub hog: bool,
    /// HTTP/1.0 instead of HTTP/1.1.
    pub is_http_1_0: bool,
    /// Connections of a session, at most; 0 for as many as it takes.
    pub connections_max: u32,
    /// Requests in flight on one, at most; 0 for a whole burst.
    pub piped_max: u32,
    /// Method of the requests.
    pub method: Option<String>,
    /// Whether requests have no field `Host`.
    pub no_host: bool,
    /// When connections or sessions begin.
    pub period: Period,
    /// The value of `--period` as typed, where it was typed last and has no fixed time.
    pub period_typed: Option<String>,
    /// TCP port.
    pub port: u16,
    /// Bytes of the receive buffer.
    pub receive_bytes: u32,
    /// Bytes of the send buffer.
    pub send_bytes: u32,
    /// Whether what failed by its status is sent again.
    pub retries: bool,
    /// Name or address.
    pub server: String,
    /// Value of `Host` in its place.
    pub server_name: Option<String>,
    /// Whether sessions have cookies.
    pub cookies: bool,
    /// Whether connections are over TLS.
    pub is_secure: bool,
    /// Cipher suites, as typed.
    pub ciphers: Option<String>,
    /// Whether TLS sessions are not resumed.
    pub no_resumption: bool,
    /// Beside the time-out, until a reply begins, seconds.
    pub think_timeout_s: f64,
    /// Longest time without progress, seconds; 0 for no limit.
    pub timeout_s: f64,
    /// Path of the requests, or what their paths begin with.
    pub uri: String,
    /// Whether more is printed.
    pub is_verbose: bool,
    /// What is sent.
    pub workload: Workload,
    /// Which requests are sent.
    pub uris: Uris,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// Whether the version is printed.
    pub tells_version: bool,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
}

/// The words behind the program's name as a report may show them: without what may be secret, which
/// are header fields, and the query of the path.
pub fn shown(words: &[String]) -> Vec<String> {
    let found = getopt::Options::new("", "", ROWS, words);
    let mut shown = getopt::shown(found, &[]);
    let mut follows = false;
    for word in &mut shown {
        if follows && let Some((path, _)) = word.split_once('?') {
            *word = format!("{path}?{HIDDEN}");
        }
        follows = word == "--uri";
    }
    shown
}

impl Default for Workload {
    fn default() -> Self {
        Self::Calls {
            connections: 1,
            calls: 1,
        }
    }
}

/// Numbers of a workload of connections, which count where no other was typed.
#[derive(Debug)]
struct Typed {
    options: Options,
    connections: u32,
    calls: u32,
    port: Option<u16>,
    is_session: bool,
}

impl Options {
    /// Reads the words behind the program's name, which messages call `called`.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help is asked for.
    pub fn parse(called: &str, words: &[String]) -> Result<Self, Ending> {
        let program = called.rsplit('/').next().unwrap_or(called);
        let mut found = getopt::Options::new(program, "", ROWS, words);
        let mut typed = Typed {
            options: Self {
                burst: 1,
                client: (0, 1),
                receive_bytes: 16 * 1024,
                send_bytes: 4 * 1024,
                server: "localhost".to_owned(),
                uri: "/".to_owned(),
                ..Self::default()
            },
            connections: 1,
            calls: 1,
            port: None,
            is_session: false,
        };
        while let Some(item) = found.next() {
            let (name, argument) = item.map_err(|wrong| Ending::error(wrong.line(), EXIT_ERROR))?;
            typed.take(name, argument.unwrap_or_default())?;
        }
        typed.finish()
    }

    /// Whether the report is about sessions.
    pub(super) fn has_sessions(&self) -> bool {
        !matches!(self.workload, Workload::Calls { .. })
    }
}

impl Typed {
    fn take(&mut self, name: &str, typed: String) -> Result<(), Ending> {
        let options = &mut self.options;
        match name {
            "add-header" => options.add_header = Some(typed),
            "burst-length" => {
                options.burst = count(&typed, "burst-length")?;
                if options.burst == 0 {
                    return Err(error("illegal burst-length 0"));
                }
            }
            "client" => options.client = client(&typed)?,
            "close-with-reset" => options.close_with_reset = true,
            "debug" => {
                options
                    .warning
                    .push_str("httperf: sorry, need to recompile with -DDEBUG on...\n");
            }
            "failure-status" => {
                let status = count(&typed, "failure status")?;
                let status = u16::try_from(status).ok().filter(|&status| status > 0);
                let wrong = || error(&format!("illegal failure status {typed}"));
                options.failure_status = Some(status.ok_or_else(wrong)?);
            }
            "help" => {
                return Err(Ending::printed(USAGE));
            }
            "hog" => options.hog = true,
            "http-version" => {
                options.is_http_1_0 = match typed.as_str() {
                    "1.0" => true,
                    "1.1" => false,
                    other => return Err(error(&format!("illegal version number {other}"))),
                };
            }
            "max-connections" => options.connections_max = count(&typed, "max. # of connection")?,
            "max-piped-calls" => options.piped_max = count(&typed, "max. # of piped calls")?,
            "method" => options.method = Some(typed),
            "no-host-hdr" => options.no_host = true,
            "num-calls" => self.calls = count(&typed, "number of calls")?,
            "num-conns" => self.connections = count(&typed, "number of connections")?,
            "period" => {
                options.period = period(&typed)?;
                let is_fixed = matches!(options.period, Period::Fixed(_) | Period::Sequential);
                options.period_typed = (!is_fixed).then_some(typed);
            }
            "port" => {
                let port = count(&typed, "port number")?;
                let wrong = |_| error(&format!("illegal port number {typed}"));
                self.port = Some(u16::try_from(port).map_err(wrong)?);
            }
            "rate" => {
                let rate = seconds(&typed, "request rate")?;
                options.period = fixed(if rate > 0.0 { 1.0 / rate } else { 0.0 });
                options.period_typed = None;
            }
            "recv-buffer" => options.receive_bytes = count(&typed, "receive buffer size")?,
            "retry-on-failure" => options.retries = true,
            "send-buffer" => options.send_bytes = count(&typed, "send buffer size")?,
            "server" => options.server = typed,
            "server-name" => options.server_name = Some(typed),
            "session-cookies" => options.cookies = true,
            "ssl" => options.is_secure = true,
            "ssl-ciphers" => options.ciphers = Some(typed),
            "ssl-no-reuse" => options.no_resumption = true,
            "think-timeout" => options.think_timeout_s = seconds(&typed, "think timeout value")?,
            "timeout" => options.timeout_s = seconds(&typed, "connect timeout")?,
            "uri" => options.uri = typed,
            "verbose" => options.is_verbose = true,
            "version" => options.tells_version = true,
            "wlog" => {
                let wraps = typed.starts_with('y') || typed.starts_with('Y');
                let path = typed.split_once(',').map_or("", |(_, path)| path);
                options.uris = Uris::List {
                    wraps,
                    path: path.into(),
                };
            }
            "wsess" => {
                let mut parameters = Parameters {
                    option: "wsess",
                    rest: &typed,
                };
                options.workload = Workload::Sessions {
                    sessions: parameters.count("number of sessions (1st param)")?,
                    calls: parameters.count("number of calls per session (2nd param)")?,
                    think_s: parameters.seconds("user think time (3rd param)")?,
                };
                self.is_session = true;
            }
            "wsesslog" => {
                let mut parameters = Parameters {
                    option: "wsesslog",
                    rest: &typed,
                };
                let sessions = parameters.count("number of sessions (1st param)")?;
                let think_s = parameters.seconds("user think time (2nd param)")?;
                let path = parameters.rest;
                if path.is_empty() {
                    return Err(error(
                        "bad session filename (3rd param) in --wsesslog arg (rest: `')",
                    ));
                }
                options.workload = Workload::Log {
                    sessions,
                    think_s,
                    path: path.into(),
                };
                self.is_session = true;
            }
            "wset" => {
                let mut parameters = Parameters {
                    option: "wset",
                    rest: &typed,
                };
                let requests = parameters.count("working set size (1st parameter)")?;
                let what = "target miss rate (2nd parameter)";
                if !typed.contains(',') {
                    return Err(parameters.bad(what, &typed));
                }
                let step = parameters.seconds(what)?;
                options.uris = Uris::Set { requests, step };
            }
            "brunt-report" => options.brunt_report = Some(typed.into()),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Options, Ending> {
        let Self {
            mut options,
            connections,
            calls,
            port,
            is_session,
        } = self;
        options.port = port.unwrap_or(if options.is_secure { 443 } else { 80 });
        if !is_session {
            options.workload = Workload::Calls { connections, calls };
        }
        if options.cookies && !is_session {
            let text = "--session-cookie requires session-oriented workload (e.g., --wsess)";
            return Err(Ending::error(&format!("httperf: {text}"), EXIT_CONFLICT));
        }
        let (sessions, calls) = match options.workload {
            Workload::Calls { connections, calls } => (connections, calls),
            Workload::Sessions {
                sessions, calls, ..
            } => (sessions, calls),
            Workload::Log { sessions, .. } => (sessions, 1),
        };
        if sessions == 0 || calls == 0 {
            return Err(unfit("nothing is asked for: give counts above 0"));
        }
        if options.ciphers.is_some() {
            return Err(unfit(
                "--ssl-ciphers is not supported: brunt offers what rustls holds safe; leave it out",
            ));
        }
        let ahead = if is_session {
            options.burst.saturating_sub(1)
        } else {
            options.burst
        };
        if options.piped_max > 0 && options.piped_max < ahead {
            return Err(unfit(
                "--max-piped-calls cannot be less than a burst has: a session has one connection \
                 at a time here",
            ));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests;
