//! The command line of h2load.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_load::{HttpChoice, TlsSpec};
use brunt_proto::http2::ClientSettings;

use super::typed::{QLOGS, Typed, UDP_PAYLOADS, WINDOWS};
use super::wrong::error;
use super::{tls, uri, values};
use crate::Ending;
use crate::getopt::{self, Long};

const SHORT: &str = "hn:c:t:m:i:f:w:W:H:p:d:r:D:T:N:B:v";
/// The long options: h2load's in its order, then the ones of newer versions, then brunt's.
const LONG: &[Long] = &[
    long("requests", true, 'n'),
    long("clients", true, 'c'),
    long("data", true, 'd'),
    long("threads", true, 't'),
    long("max-concurrent-streams", true, 'm'),
    long("window-bits", true, 'w'),
    long("max-frame-size", true, 'f'),
    long("connection-window-bits", true, 'W'),
    long("input-file", true, 'i'),
    long("header", true, 'H'),
    long("no-tls-proto", true, 'p'),
    long("verbose", false, 'v'),
    long("help", false, 'h'),
    long("version", false, VERSION_ID),
    long("ciphers", true, CIPHERS),
    long("rate", true, 'r'),
    long("connection-active-timeout", true, 'T'),
    long("connection-inactivity-timeout", true, 'N'),
    long("duration", true, 'D'),
    long("timing-script-file", true, SCRIPT),
    long("base-uri", true, 'B'),
    long("npn-list", true, ALPN),
    long("rate-period", true, PERIOD),
    long("h1", false, H1),
    long("header-table-size", true, TABLE),
    long("encoder-header-table-size", true, ENCODER_TABLE),
    long("warm-up-time", true, WARM_UP),
    long("log-file", true, LOG),
    long("connect-to", true, CONNECT_TO),
    long("rps", true, RPS),
    long("groups", true, GROUPS),
    long("tls13-ciphers", true, CIPHERS_1_3),
    long("no-udp-gso", false, OF_QUIC),
    long("qlog-file-base", true, QLOG),
    long("max-udp-payload-size", true, UDP_PAYLOAD),
    long("ktls", false, KTLS),
    newer("alpn-list", true, ALPN),
    newer("sni", true, SNI),
    newer("h3", false, H3),
    newer("histogram", false, UNKNOWN),
    newer("tls-session-file", true, UNKNOWN),
    newer("output-file", true, UNKNOWN),
    newer("brunt-report", true, REPORT),
];
// Ids of options without a letter.
const VERSION_ID: char = 'V';
const CIPHERS: char = 'x';
const CIPHERS_1_3: char = 'X';
const SCRIPT: char = 'S';
const ALPN: char = 'A';
const PERIOD: char = 'P';
const H1: char = '1';
const TABLE: char = 'b';
const ENCODER_TABLE: char = 'e';
const WARM_UP: char = 'U';
const LOG: char = 'l';
const CONNECT_TO: char = 'C';
const RPS: char = 'R';
const GROUPS: char = 'g';
const OF_QUIC: char = 'q';
const QLOG: char = 'Q';
const UDP_PAYLOAD: char = 'u';
const KTLS: char = 'k';
const SNI: char = 's';
const H3: char = '3';
const UNKNOWN: char = '?';
const REPORT: char = '\u{1}';
const SECOND_NS: u64 = 1_000_000_000;
const VERSION: &str = "h2load nghttp2/1.52.0\n";
/// Longest payload of a datagram of QUIC.
const UDP_PAYLOAD_BYTES_MAX: u64 = 65_536;

const fn long(name: &'static str, takes: bool, id: char) -> Long {
    Long {
        name,
        takes,
        id,
        is_peers: true,
    }
}

/// A long option that h2load 1.52 does not have: it makes no abbreviation of another option
/// ambiguous.
const fn newer(name: &'static str, takes: bool, id: char) -> Long {
    Long {
        is_peers: false,
        ..long(name, takes, id)
    }
}

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
    getopt::shown(getopt::Options::new("", SHORT, LONG, words), &[])
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
        let mut found = getopt::Options::new("h2load", SHORT, LONG, words);
        while let Some(item) = found.next() {
            let (letter, argument) = item.map_err(|message| error(&message))?;
            options.take(letter, argument.unwrap_or_default(), &mut typed)?;
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

    fn take(&mut self, letter: char, argument: String, typed: &mut Typed) -> Result<(), Ending> {
        let number = || values::number(&format!("-{letter}"), &argument);
        let duration = |said: &str| {
            let ns = values::duration_ns(&argument);
            ns.ok_or_else(|| error(&format!("{said} {argument}")))
        };
        match letter {
            'n' => typed.requests = Some(number()?),
            'c' => typed.clients = number()?,
            't' => typed.threads = number()?,
            'm' => typed.streams = number()?,
            'i' => (self.input, self.timing_script) = (Some(argument.into()), None),
            SCRIPT => (self.input, self.timing_script) = (None, Some(argument.into())),
            'f' => self.http2.frame_bytes_max = values::frame_bytes(&argument)?,
            'w' | 'W' => {
                let bytes = values::window_bytes(letter, &argument)?;
                typed.note_idle(WINDOWS);
                match letter {
                    'w' => self.http2.stream_window_bytes = bytes,
                    _ => self.http2.connection_window_bytes = bytes,
                }
            }
            TABLE => {
                self.http2.decoder_table_bytes =
                    values::table_bytes("header-table-size", &argument)?;
            }
            ENCODER_TABLE => {
                let bytes = values::table_bytes("encoder-header-table-size", &argument)?;
                self.http2.encoder_table_bytes = bytes;
            }
            'H' => self.headers.push(values::header(&argument)?),
            'p' => {
                self.clear_text = match &*argument.to_ascii_lowercase() {
                    "h2c" => HttpChoice::HTTP2,
                    "http/1.1" => HttpChoice::HTTP1,
                    _ => return Err(error(&format!("-p: unsupported protocol {argument}"))),
                }
            }
            ALPN => typed.alpn = argument,
            H3 => typed.alpn = "h3".to_owned(),
            H1 => {
                self.clear_text = HttpChoice::HTTP1;
                typed.alpn = "http/1.1".to_owned();
            }
            CIPHERS => typed.ciphers = Some(argument),
            CIPHERS_1_3 => typed.ciphers_of_1_3 = Some(argument),
            GROUPS => typed.groups = Some(argument),
            SNI => self.tls.server_name = Some(argument),
            'd' => self.data = Some(argument.into()),
            'r' => {
                typed.rate = Some(number()?);
                if typed.rate == Some(0) {
                    let line = "-r: the rate at which connections are made must be positive.";
                    return Err(error(line));
                }
            }
            PERIOD => {
                self.period_ns = duration("--rate-period: value error")?;
                if self.period_ns == 0 {
                    return Err(error("brunt: --rate-period must be longer than 0"));
                }
            }
            'D' => self.duration_ns = positive_ns(duration("-D: value error")?),
            WARM_UP => self.warmup_ns = duration("--warm-up-time: value error")?,
            'T' => {
                let said = "-T: bad value for the conn_active_timeout wait time:";
                self.active_timeout_ns = positive_ns(duration(said)?);
            }
            'N' => {
                let said = "-N: bad value for the conn_inactivity_timeout wait time:";
                self.inactivity_timeout_ns = positive_ns(duration(said)?);
            }
            'B' => self.base = Some(base(argument)?),
            CONNECT_TO => {
                let to = values::host_and_port(&argument);
                let to =
                    to.ok_or_else(|| error(&format!("--connect-to: Invalid value {argument}")))?;
                self.connect_to = Some(to);
            }
            RPS => {
                let per_s = argument.parse::<f64>().ok();
                let per_s = per_s.filter(|per_s| per_s.is_finite() && *per_s <= RPS_MAX);
                let per_s =
                    per_s.ok_or_else(|| error(&format!("--rps: Invalid value {argument}")))?;
                self.rps = Some(per_s).filter(|&per_s| per_s > 0.0);
            }
            LOG => self.log = Some(argument.into()),
            REPORT => self.brunt_report = Some(argument.into()),
            UDP_PAYLOAD => {
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
            // Segments of QUIC are sent as the kernel takes them.
            OF_QUIC => {}
            QLOG => typed.note_idle(QLOGS),
            KTLS => {
                let line = "brunt: --ktls has no effect: brunt itself encrypts\n";
                self.warning.push_str(line);
            }
            'v' => {
                let line = "brunt: -v has no effect: --brunt-report FILE keeps the whole run\n";
                self.warning.push_str(line);
            }
            VERSION_ID | 'h' => {
                let stdout = if letter == 'h' { HELP } else { VERSION };
                return Err(Ending::printed(stdout));
            }
            _ => {
                return Err(error(
                    "brunt: of h2load's newer options --alpn-list, --h3 and --sni are taken; in \
                     place of --output-file and --histogram, --brunt-report FILE keeps the whole \
                     run, and --tls-resume of brunt resumes sessions",
                ));
            }
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
const HELP: &str = include_str!("usage.txt");

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

    #[test]
    fn what_is_wrong_is_said_as_in_h2load() {
        for (line, expected) in [
            ("", "no URI or input file given\n"),
            ("-n x u", "-n: bad option value: x\n"),
            (
                "-c 0 u",
                "-c: the number of clients must be strictly greater than 0.\n",
            ),
            ("-n 1 -c 2 u", "-n, -c: the number of requests must be"),
            ("-c 2 -n 5 -t 3 u", "-c, -t: the number of clients must be"),
            ("-r 1 -D 1 u", "-r, -D: they are mutually exclusive.\n"),
            (
                "-c 2 -n 2 -t 2 -r 1 u",
                "-r, -t: the connection rate must be",
            ),
            ("-r 2 u", "-r, -c: the connection rate must be"),
            ("-r 0 u", "-r: the rate at which connections are"),
            ("-n 0 u", "-n: the number of requests must be strictly"),
            ("-m 0 u", "-m: the max concurrent streams must be"),
            ("-t 0 u", "-t: the number of threads must be strictly"),
            ("-D x u", "-D: value error x\n"),
            ("-T x u", "-T: bad value for the conn_active_timeout"),
            ("-N x u", "-N: bad value for the conn_inactivity_timeout"),
            ("-p foo u", "-p: unsupported protocol foo\n"),
            ("-q u", "h2load: invalid option -- 'q'\n"),
            ("-w 31 u", "-w: specify the integer in the range [0, 30],"),
            ("-f 5 u", "--max-frame-size: minimum 16384\n"),
            ("-H x u", "-H: invalid header: x\n"),
            ("-B foo u", "--base-uri: invalid base URI: foo\n"),
            ("-B unix: u", "--base-uri: invalid UNIX domain socket path:"),
            ("--rps x u", "--rps: Invalid value x\n"),
            ("--connect-to : u", "--connect-to: Invalid value :\n"),
            ("--alpn-list h3-29 u", "brunt: h3-29 is a draft of HTTP/3"),
            ("--histogram u", "brunt: of h2load's newer options"),
        ] {
            let ending = parse(line).expect_err(line);
            assert!(ending.stderr.starts_with(expected), "{line}: {ending:?}");
            assert_eq!(ending.code, 1, "{line}");
        }
        assert_eq!(parse("--version").expect_err("printed").stdout, VERSION);
    }
}
