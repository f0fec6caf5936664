//! The command line of h2load.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_load::{HttpChoice, TlsSpec};
use brunt_proto::http2::ClientSettings;

use super::typed::{QLOGS, Typed, UDP_PAYLOADS, WINDOWS};
use super::wrong::error;
use super::{tls, uri, values};
use crate::Ending;
use crate::getopt::{self, Row, flag, value};

/// In place of options that write more.
const WHOLE_RUN: &str = "--brunt-report FILE keeps the whole run";
/// The options: h2load's in its order, then the ones of newer versions, then brunt's.
const ROWS: &[Row] = &[
    value("n", "requests"),
    value("c", "clients"),
    value("d", "data"),
    value("t", "threads"),
    value("m", "max-concurrent-streams"),
    value("w", "window-bits"),
    value("f", "max-frame-size"),
    value("W", "connection-window-bits"),
    value("i", "input-file"),
    value("H", "header"),
    value("p", "no-tls-proto"),
    flag("v", "verbose"),
    flag("h", "help"),
    flag("", "version"),
    value("", "ciphers"),
    value("r", "rate"),
    value("T", "connection-active-timeout"),
    value("N", "connection-inactivity-timeout"),
    value("D", "duration"),
    value("", "timing-script-file"),
    value("B", "base-uri"),
    value("", "npn-list"),
    value("", "rate-period"),
    flag("", "h1"),
    value("", "header-table-size"),
    value("", "encoder-header-table-size"),
    value("", "warm-up-time"),
    value("", "log-file"),
    value("", "connect-to"),
    value("", "rps"),
    value("", "groups"),
    value("", "tls13-ciphers"),
    flag("", "no-udp-gso"),
    value("", "qlog-file-base"),
    value("", "max-udp-payload-size"),
    flag("", "ktls"),
    value("", "alpn-list").in_full(),
    value("", "sni").in_full(),
    flag("", "h3").in_full(),
    flag("", "histogram").in_full().refused(WHOLE_RUN),
    value("", "tls-session-file")
        .in_full()
        .refused("`brunt --tls-resume` resumes sessions"),
    value("", "output-file").in_full().refused(WHOLE_RUN),
    value("", "brunt-report").in_full(),
];
const SECOND_NS: u64 = 1_000_000_000;
const VERSION: &str = "h2load nghttp2/1.52.0\n";
/// Longest payload of a datagram of QUIC.
const UDP_PAYLOAD_BYTES_MAX: u64 = 65_536;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Requests in all, or of each connection with a script with times; absent: not said.
    pub(super) requests: Option<u64>,
    /// Connections.
    pub clients: NonZeroU32,
    /// Threads.
    pub threads: NonZeroU32,
    /// Requests in flight per connection.
    pub streams: NonZeroU32,
    /// File with URIs in lines; `-` for standard input.
    pub input: Option<PathBuf>,
    /// File with times and URIs in lines; `-` for standard input.
    pub timing_script: Option<PathBuf>,
    /// The settings that are sent to the server in HTTP/2.
    pub http2: ClientSettings,
    /// Header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// What is spoken in clear text.
    pub clear_text: HttpChoice,
    /// What is offered over TLS.
    pub secured: HttpChoice,
    /// How TLS is spoken.
    pub tls: TlsSpec,
    /// File of the body.
    pub data: Option<PathBuf>,
    /// Connections that are made per period; absent: as fast as they can be.
    pub rate: Option<NonZeroU32>,
    /// Length of a period, nanoseconds.
    pub period_ns: u64,
    /// Length of the measurement, nanoseconds; absent: until all requests are answered.
    pub duration_ns: Option<u64>,
    /// Length of the warm-up, nanoseconds.
    pub warmup_ns: u64,
    /// Time that a connection has for its last requests, nanoseconds.
    pub active_timeout_ns: Option<u64>,
    /// Time without anything on a connection after which it is given up, nanoseconds.
    pub inactivity_timeout_ns: Option<u64>,
    /// What connections go to in place of the first URI.
    pub base: Option<String>,
    /// Host, and port if any, that connections go to in place of those of the URI.
    pub connect_to: Option<(String, Option<u16>)>,
    /// Requests per second on each connection; absent: as fast as replies come.
    pub rps: Option<f64>,
    /// File for a line per request.
    pub log: Option<PathBuf>,
    /// The URIs, as typed.
    pub uris: Vec<String>,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// Warnings for standard error: whole lines, or empty.
    pub warning: String,
}

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(getopt::Options::new("", "", ROWS, words), &[])
}

impl Options {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        let mut typed = Typed {
            clients: 1,
            threads: 1,
            streams: 1,
            alpn: "h2,http/1.1".to_owned(),
            ..Typed::default()
        };
        let mut options = Self {
            requests: None,
            clients: NonZeroU32::MIN,
            threads: NonZeroU32::MIN,
            streams: NonZeroU32::MIN,
            input: None,
            timing_script: None,
            // Its windows are h2load's, too.
            http2: ClientSettings::default(),
            headers: Vec::new(),
            clear_text: HttpChoice::HTTP2,
            secured: HttpChoice::AUTO,
            tls: TlsSpec::default(),
            data: None,
            rate: None,
            period_ns: SECOND_NS,
            duration_ns: None,
            warmup_ns: 0,
            active_timeout_ns: None,
            inactivity_timeout_ns: None,
            base: None,
            connect_to: None,
            rps: None,
            log: None,
            uris: Vec::new(),
            brunt_report: None,
            warning: String::new(),
        };
        let mut found = getopt::Options::new("h2load", "", ROWS, words);
        while let Some(item) = found.next() {
            let (name, argument) = item.map_err(|wrong| error(wrong.line()))?;
            options.take(name, argument.unwrap_or_default(), &mut typed)?;
        }
        options.uris = found.operands();
        if options.uris.is_empty() && options.input.is_none() && options.timing_script.is_none() {
            return Err(error("no URI or input file given"));
        }
        options.check(&typed)?;
        let positive = |count: u64| NonZeroU32::try_from(NonZeroU64::new(count)?).ok();
        let too_large = |name: &str| error(&format!("brunt: -{name} is too large"));
        options.clients = positive(typed.clients).ok_or_else(|| too_large("c"))?;
        options.threads = positive(typed.threads).ok_or_else(|| too_large("t"))?;
        options.streams = positive(typed.streams).ok_or_else(|| too_large("m"))?;
        options.rate = match typed.rate {
            None => None,
            Some(rate) => Some(positive(rate).ok_or_else(|| too_large("r"))?),
        };
        options.requests = typed.requests;
        options.secured = tls::offered(&typed.alpn)?;
        options.warn_of_quic(&typed);
        options.tls.insecure = true;
        options.tls.cipher_suites = tls::suites(&typed)?;
        options.tls.groups = tls::groups(typed.groups.as_deref())?;
        Ok(options)
    }

    fn take(&mut self, name: &str, argument: String, typed: &mut Typed) -> Result<(), Ending> {
        let number = |option: &str| values::number(option, &argument);
        let duration = |said: &str| {
            let ns = values::duration_ns(&argument);
            ns.ok_or_else(|| error(&format!("{said} {argument}")))
        };
        match name {
            "requests" => typed.requests = Some(number("-n")?),
            "clients" => typed.clients = number("-c")?,
            "threads" => typed.threads = number("-t")?,
            "max-concurrent-streams" => typed.streams = number("-m")?,
            "input-file" => (self.input, self.timing_script) = (Some(argument.into()), None),
            "timing-script-file" => {
                (self.input, self.timing_script) = (None, Some(argument.into()))
            }
            "max-frame-size" => self.http2.frame_bytes_max = values::frame_bytes(&argument)?,
            "window-bits" => {
                self.http2.stream_window_bytes = values::window_bytes("-w", &argument)?;
                typed.note_idle(WINDOWS);
            }
            "connection-window-bits" => {
                self.http2.connection_window_bytes = values::window_bytes("-W", &argument)?;
                typed.note_idle(WINDOWS);
            }
            "header-table-size" => {
                self.http2.decoder_table_bytes =
                    values::table_bytes("header-table-size", &argument)?;
            }
            "encoder-header-table-size" => {
                let bytes = values::table_bytes("encoder-header-table-size", &argument)?;
                self.http2.encoder_table_bytes = bytes;
            }
            "header" => self.headers.push(values::header(&argument)?),
            "no-tls-proto" => {
                self.clear_text = match &*argument.to_ascii_lowercase() {
                    "h2c" => HttpChoice::HTTP2,
                    "http/1.1" => HttpChoice::HTTP1,
                    _ => return Err(error(&format!("-p: unsupported protocol {argument}"))),
                }
            }
            "npn-list" | "alpn-list" => typed.alpn = argument,
            "h3" => typed.alpn = "h3".to_owned(),
            "h1" => {
                self.clear_text = HttpChoice::HTTP1;
                typed.alpn = "http/1.1".to_owned();
            }
            "ciphers" => typed.ciphers = Some(argument),
            "tls13-ciphers" => typed.ciphers_of_1_3 = Some(argument),
            "groups" => typed.groups = Some(argument),
            "sni" => self.tls.server_name = Some(argument),
            "data" => self.data = Some(argument.into()),
            "rate" => {
                typed.rate = Some(number("-r")?);
                if typed.rate == Some(0) {
                    let line = "-r: the rate at which connections are made must be positive.";
                    return Err(error(line));
                }
            }
            "rate-period" => {
                self.period_ns = duration("--rate-period: value error")?;
                if self.period_ns == 0 {
                    return Err(error("brunt: --rate-period must be longer than 0"));
                }
            }
            "duration" => self.duration_ns = positive_ns(duration("-D: value error")?),
            "warm-up-time" => self.warmup_ns = duration("--warm-up-time: value error")?,
            "connection-active-timeout" => {
                let said = "-T: bad value for the conn_active_timeout wait time:";
                self.active_timeout_ns = positive_ns(duration(said)?);
            }
            "connection-inactivity-timeout" => {
                let said = "-N: bad value for the conn_inactivity_timeout wait time:";
                self.inactivity_timeout_ns = positive_ns(duration(said)?);
            }
            "base-uri" => self.base = Some(base(argument)?),
            "connect-to" => {
                let to = values::host_and_port(&argument);
                let to =
                    to.ok_or_else(|| error(&format!("--connect-to: Invalid value {argument}")))?;
                self.connect_to = Some(to);
            }
            "rps" => {
                let per_s = argument.parse::<f64>().ok();
                let per_s = per_s.filter(|per_s| per_s.is_finite() && *per_s <= RPS_MAX);
                let per_s =
                    per_s.ok_or_else(|| error(&format!("--rps: Invalid value {argument}")))?;
                self.rps = Some(per_s).filter(|&per_s| per_s > 0.0);
            }
            "log-file" => self.log = Some(argument.into()),
            "brunt-report" => self.brunt_report = Some(argument.into()),
            "max-udp-payload-size" => {
                let bytes = values::size(&argument).ok_or_else(|| {
                    error(&format!(
                        "--max-udp-payload-size: bad option value: {argument}"
                    ))
                })?;
                if bytes > UDP_PAYLOAD_BYTES_MAX {
                    return Err(error("--max-udp-payload-size: must not exceed 65536"));
                }
                typed.note_idle(UDP_PAYLOADS);
            }
            "qlog-file-base" => typed.note_idle(QLOGS),
            "ktls" => {
                let line = "brunt: --ktls has no effect: brunt itself encrypts\n";
                self.warning.push_str(line);
            }
            "verbose" => {
                let line = "brunt: -v has no effect: --brunt-report FILE keeps the whole run\n";
                self.warning.push_str(line);
            }
            "version" => return Err(Ending::printed(VERSION)),
            "help" => return Err(Ending::printed(USAGE)),
            // `--no-udp-gso`: segments of QUIC are sent as the kernel takes them.
            _ => {}
        }
        Ok(())
    }

    /// Says which options have no effect with what is spoken.
    fn warn_of_quic(&mut self, typed: &Typed) {
        if self.secured != HttpChoice::HTTP3 {
            if typed.idle_over_quic.contains(&QLOGS) {
                let line = "Warning: --qlog-file-base: only effective in quic, ignoring.\n";
                self.warning.push_str(line);
            }
            return;
        }
        for (option, reason) in &typed.idle_over_quic {
            let line = format!("brunt: {option} without effect over HTTP/3: {reason}\n");
            self.warning.push_str(&line);
        }
    }

    fn check(&self, typed: &Typed) -> Result<(), Ending> {
        let Typed {
            clients,
            threads,
            streams,
            rate,
            ..
        } = *typed;
        let is_timed = self.duration_ns.is_some();
        let has_script = self.timing_script.is_some();
        let requests = typed.requests.unwrap_or(1);
        for (is_wrong, line) in [
            (
                clients == 0,
                "-c: the number of clients must be strictly greater than 0.",
            ),
            (
                rate.is_some() && is_timed,
                "-r, -D: they are mutually exclusive.",
            ),
            (
                has_script && self.rps.is_some(),
                "--timing-script-file, --rps: they are mutually exclusive.",
            ),
            (
                requests == 0 && !is_timed,
                "-n: the number of requests must be strictly greater than 0 if timing-based test \
                 is not being run.",
            ),
            (
                streams == 0,
                "-m: the max concurrent streams must be strictly greater than 0.",
            ),
            (
                threads == 0,
                "-t: the number of threads must be strictly greater than 0.",
            ),
            (
                !has_script && requests < clients && !is_timed,
                "-n, -c: the number of requests must be greater than or equal to the clients.",
            ),
            (
                clients < threads,
                "-c, -t: the number of clients must be greater than or equal to the number of \
                 threads.",
            ),
            (
                rate.is_some_and(|rate| rate < threads),
                "-r, -t: the connection rate must be greater than or equal to the number of \
                 threads.",
            ),
            (
                rate.is_some_and(|rate| rate > clients),
                "-r, -c: the connection rate must be smaller than or equal to the number of \
                 clients.",
            ),
            (
                rate.is_some() && (self.rps.is_some() || has_script),
                "brunt: -r and a rate of requests cannot be given together; leave one of them out",
            ),
            (
                has_script && is_timed,
                "brunt: --timing-script-file says how long the run is; leave -D out",
            ),
        ] {
            if is_wrong {
                return Err(error(line));
            }
        }
        Ok(())
    }

    /// Requests of a run without a duration: of all connections together, where the script with
    /// times, if any, has so many lines.
    pub(super) fn requests_in_all(&self, lines: usize) -> u64 {
        let clients = u64::from(self.clients.get());
        match (&self.timing_script, self.requests) {
            (None, requests) => requests.unwrap_or(1),
            (Some(_), requests) => {
                let lines = lines as u64;
                requests.unwrap_or(lines).min(lines).saturating_mul(clients)
            }
        }
    }

    /// The warning of a script with times that has so many lines, fewer than requests.
    pub fn script_warning(&self, lines: usize) -> Option<String> {
        let asked = self.requests.filter(|_| self.timing_script.is_some())?;
        (asked > lines as u64).then(|| {
            format!(
                "-n: the number of requests must be less than or equal to the number of timing \
                 script entries. Setting number of requests to {lines}\n"
            )
        })
    }
}

/// Largest rate of requests on a connection, per second.
const RPS_MAX: f64 = 1e6;
const USAGE: &str = include_str!("usage.txt");

/// A time that may be 0, which stands for none.
fn positive_ns(ns: u64) -> Option<u64> {
    (ns > 0).then_some(ns)
}

fn base(typed: String) -> Result<String, Ending> {
    if let Some(path) = typed.strip_prefix("unix:") {
        if path.is_empty() || path.len() > SOCKET_PATH_BYTES_MAX {
            let line = format!("--base-uri: invalid UNIX domain socket path: {typed}");
            return Err(error(&line));
        }
    } else if !uri::is_base(&typed) {
        return Err(error(&format!("--base-uri: invalid base URI: {typed}")));
    }
    Ok(typed)
}

/// What an address of a Unix socket has room for.
const SOCKET_PATH_BYTES_MAX: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn parse(line: &str) -> Result<Options, Ending> {
        let words = words(line);
        Options::parse(&words)
    }

    #[test]
    fn options_are_taken_as_h2load_takes_them() {
        let options = parse("-n100 -c 4 --thr 2 -m10 -H A:b http://h/").expect("good");
        assert_eq!((options.requests, options.clients.get()), (Some(100), 4));
        assert_eq!((options.threads.get(), options.streams.get()), (2, 10));
        assert_eq!(options.headers, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(options.clear_text, HttpChoice::HTTP2);
        assert_eq!(options.http2.stream_window_bytes, (1 << 30) - 1);
        let options = parse("--h1 -D 2m --warm-up-time=500ms -c 9 http://h/ u").expect("good");
        assert_eq!(options.duration_ns, Some(120 * SECOND_NS));
        assert_eq!((options.warmup_ns, options.uris.len()), (SECOND_NS / 2, 2));
        assert_eq!(
            (options.clear_text, options.secured),
            (HttpChoice::HTTP1, HttpChoice::HTTP1)
        );
        let options = parse("-p HTTP/1.1 -r 5 --rate-period 2 -n 9 -c 9 -i f").expect("good");
        assert_eq!(
            (options.clear_text, options.secured),
            (HttpChoice::HTTP1, HttpChoice::AUTO)
        );
        assert_eq!(options.period_ns, 2 * SECOND_NS);
        let options =
            parse("-w 16 -W 20 -f 32K --header-table-size 8K -T 3 -N 500ms u").expect("ok");
        let expected = ClientSettings {
            stream_window_bytes: 65_535,
            connection_window_bytes: (1 << 20) - 1,
            frame_bytes_max: 32_768,
            decoder_table_bytes: 8_192,
            encoder_table_bytes: 4_096,
        };
        assert_eq!(options.http2, expected);
        let times = (options.active_timeout_ns, options.inactivity_timeout_ns);
        assert_eq!(times, (Some(3 * SECOND_NS), Some(SECOND_NS / 2)));
        let options = parse("--rps 2.5 --connect-to h:9 --log-file l -D 0 u").expect("good");
        assert_eq!((options.rps, options.duration_ns), (Some(2.5), None));
        assert_eq!(options.connect_to, Some(("h".to_owned(), Some(9))));
        let options = parse("--h3 -m 7 u").expect("good");
        assert_eq!(
            (options.secured, &*options.warning),
            (HttpChoice::HTTP3, "")
        );
    }

    #[test]
    fn what_has_no_effect_with_what_is_spoken_is_said() {
        let given = "-w 20 --max-udp-payload-size 1200 --qlog-file-base q u";
        let warning = |line: String| parse(&line).expect("good").warning;
        assert_eq!(
            warning(given.to_owned()),
            "Warning: --qlog-file-base: only effective in quic, ignoring.\n"
        );
        assert_eq!(
            warning(format!("--alpn-list=h3 {given}")),
            "brunt: -w and -W without effect over HTTP/3: the windows of QUIC are brunt's own\n\
             brunt: --max-udp-payload-size without effect over HTTP/3: it is brunt's own\n\
             brunt: --qlog-file-base without effect over HTTP/3: brunt writes no qlog\n"
        );
    }
}
