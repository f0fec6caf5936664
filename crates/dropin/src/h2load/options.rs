//! The command line of h2load: its options, and their values as it reads them.

use std::path::PathBuf;

use brunt_load::{HttpChoice, TlsSpec};
use brunt_proto::http2::ClientSettings;

use crate::ending::ensure;
use crate::getopt::*;
use crate::libraries::{GROUPS, SECOND_NS, SUITES, SUITES_OF_1_3, iana_suite};
use crate::{Ending, libraries};

const VERSION: &str = "h2load nghttp2/1.52.0\n";
/// Longest payload of a datagram of QUIC.
const UDP_PAYLOAD_BYTES_MAX: u64 = 65_536;
/// Largest rate of requests on a connection, per second.
const RPS_MAX: f64 = 1e6;
/// What an address of a Unix socket has room for.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// In place of options that write more.
const WHOLE_RUN: &str = "--brunt-report FILE keeps the whole run";
const WINDOWS: &str = "-w and -W without effect over HTTP/3: the windows of QUIC are brunt's own";
const UDP_PAYLOADS: &str = "--max-udp-payload-size without effect over HTTP/3: it is brunt's own";
const ACTIVE: &str = "-T: bad value for the conn_active_timeout wait time:";
const INACTIVE: &str = "-N: bad value for the conn_inactivity_timeout wait time:";
const NO_RATE: &str = "-r: the rate at which connections are made must be positive.";
const QLOGS: &str = "--qlog-file-base without effect over HTTP/3: brunt writes no qlog";

/// The options.
pub fn table() -> Table<H2loadOptions> {
    Style::GetoptLong.table(vec![
        count("-n --requests", |o| &mut o.requests),
        count("-c --clients", |o| &mut o.clients),
        text("-d --data", |o| &mut o.data),
        count("-t --threads", |o| &mut o.threads),
        count("-m --max-concurrent-streams", |o| &mut o.streams),
        value("-w --window-bits", |o, typed| {
            o.note_idle(WINDOWS);
            window_bytes("-w", typed).map(|bytes| o.http2.stream_window_bytes = bytes)
        }),
        typed(
            "-f --max-frame-size",
            |o| &mut o.http2.frame_bytes_max,
            frame_bytes,
        ),
        value("-W --connection-window-bits", |o, typed| {
            o.note_idle(WINDOWS);
            window_bytes("-W", typed).map(|bytes| o.http2.connection_window_bytes = bytes)
        }),
        any("-i --input-file", |o, typed| {
            (o.input, o.timing_script) = (Some(typed.into()), None);
        }),
        field(value("-H --header", |o, typed| {
            header(typed).map(|field| o.headers.push(field))
        })),
        value("-p --no-tls-proto", |o, typed| {
            o.clear_text = match &*typed.to_ascii_lowercase() {
                "h2c" => HttpChoice::HTTP2,
                "http/1.1" => HttpChoice::HTTP1,
                _ => return Err(error(&format!("-p: unsupported protocol {typed}"))),
            };
            Ok(())
        }),
        flag("-v --verbose", |o| {
            let line = "brunt: -v has no effect: --brunt-report FILE keeps the whole run\n";
            o.warning.push_str(line);
        }),
        end("-h --help", |_| Ending::printed(include_str!("usage.txt"))),
        end("--version", |_| Ending::printed(VERSION)),
        text("--ciphers", |o| &mut o.ciphers),
        value("-r --rate", |o, typed| {
            o.rate = Some(number("-r", typed)?);
            ensure(o.rate != Some(0), || error(NO_RATE))
        }),
        time("-T --connection-active-timeout", ACTIVE, |o| {
            &mut o.active_timeout_ns
        }),
        time("-N --connection-inactivity-timeout", INACTIVE, |o| {
            &mut o.inactivity_timeout_ns
        }),
        time("-D --duration", "-D: value error", |o| &mut o.duration_ns),
        any("--timing-script-file", |o, typed| {
            (o.input, o.timing_script) = (None, Some(typed.into()));
        }),
        typed("-B --base-uri", |o| &mut o.base, base),
        text("--npn-list", |o| &mut o.alpn),
        value("--rate-period", |o, typed| {
            o.period_ns = duration_ns("--rate-period: value error", typed)?;
            let line = "brunt: --rate-period must be longer than 0";
            ensure(o.period_ns > 0, || error(line))
        }),
        flag("--h1", |o| {
            o.clear_text = HttpChoice::HTTP1;
            o.alpn = "http/1.1".to_owned();
        }),
        table_size("--header-table-size", |o| &mut o.http2.decoder_table_bytes),
        table_size("--encoder-header-table-size", |o| {
            &mut o.http2.encoder_table_bytes
        }),
        value("--warm-up-time", |o, typed| {
            duration_ns("--warm-up-time: value error", typed).map(|ns| o.warmup_ns = ns)
        }),
        text("--log-file", |o| &mut o.log),
        value("--connect-to", |o, typed| {
            o.connect_to = host_and_port(typed);
            let wrong = || error(&format!("--connect-to: Invalid value {typed}"));
            ensure(o.connect_to.is_some(), wrong)
        }),
        value("--rps", |o, typed| {
            let per_s = typed.parse::<f64>().ok();
            let per_s = per_s.filter(|per_s| per_s.is_finite() && *per_s <= RPS_MAX);
            let per_s = per_s.ok_or_else(|| error(&format!("--rps: Invalid value {typed}")))?;
            o.rps = Some(per_s).filter(|&per_s| per_s > 0.0);
            Ok(())
        }),
        text("--groups", |o| &mut o.groups),
        text("--tls13-ciphers", |o| &mut o.ciphers_of_1_3),
        // Segments of QUIC are sent as the kernel takes them.
        flag("--no-udp-gso", |_| {}),
        any("--qlog-file-base", |o, _| o.note_idle(QLOGS)),
        value("--max-udp-payload-size", |o, typed| {
            let option = "--max-udp-payload-size";
            let wrong = || error(&format!("{option}: bad option value: {typed}"));
            let bytes = size(typed).ok_or_else(wrong)?;
            o.note_idle(UDP_PAYLOADS);
            let wrong = || error(&format!("{option}: must not exceed 65536"));
            ensure(bytes <= UDP_PAYLOAD_BYTES_MAX, wrong)
        }),
        flag("--ktls", |o| {
            let line = "brunt: --ktls has no effect: brunt itself encrypts\n";
            o.warning.push_str(line);
        }),
        in_full(text("--alpn-list", |o| &mut o.alpn)),
        in_full(text("--sni", |o| &mut o.tls.server_name)),
        in_full(flag("--h3", |o| o.alpn = "h3".to_owned())),
        in_full(refused("--histogram", WHOLE_RUN)),
        in_full(refused(
            "--tls-session-file",
            "`brunt --tls-resume` resumes sessions",
        )),
        in_full(refused("--output-file", WHOLE_RUN)),
        report(|o| &mut o.brunt_report),
    ])
}

/// An option with an integer without a sign.
fn count<V: From<u64> + 'static>(
    names: &'static str,
    place: Place<H2loadOptions, V>,
) -> Row<H2loadOptions> {
    typed(names, place, move |typed| number(&names[..2], typed))
}

/// An option with a time, of which 0 stands for none; `wrong` is said of what is none.
fn time(
    names: &'static str,
    wrong: &'static str,
    place: Place<H2loadOptions, Option<u64>>,
) -> Row<H2loadOptions> {
    typed(names, place, move |typed| {
        duration_ns(wrong, typed).map(|ns| Some(ns).filter(|&ns| ns > 0))
    })
}

/// An option with the size of a header table.
fn table_size(name: &'static str, place: Place<H2loadOptions, u32>) -> Row<H2loadOptions> {
    typed(name, place, move |typed| {
        let wrong = || error(&format!("{name}: Bad option value: {typed}"));
        u32::try_from(size(typed).ok_or_else(wrong)?).map_err(|_| {
            let line = "Value too large.  It should be less than or equal to";
            error(&format!("{name}: {line} {}", u32::MAX))
        })
    })
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct H2loadOptions {
    /// Requests in all, or of each connection with a script with times; absent: not said.
    pub(super) requests: Option<u64>,
    /// Connections.
    pub clients: u64,
    /// Threads.
    pub threads: u64,
    /// Requests in flight per connection.
    pub streams: u64,
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
    /// What is offered over TLS, as typed: protocols of ALPN.
    alpn: String,
    /// What is offered over TLS.
    pub secured: HttpChoice,
    /// How TLS is spoken.
    pub tls: TlsSpec,
    /// Cipher suites of TLS 1.2, as typed.
    ciphers: Option<String>,
    /// Cipher suites of TLS 1.3, as typed.
    ciphers_of_1_3: Option<String>,
    /// Groups of key exchange, as typed.
    groups: Option<String>,
    /// Options without effect over HTTP/3, each with a reason, in the order in which they were
    /// given.
    idle_over_quic: Vec<&'static str>,
    /// File of the body.
    pub data: Option<PathBuf>,
    /// Connections that are made per period; absent: as fast as they can be.
    pub rate: Option<u64>,
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

impl H2loadOptions {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            clients: 1,
            threads: 1,
            streams: 1,
            clear_text: HttpChoice::HTTP2,
            alpn: "h2,http/1.1".to_owned(),
            period_ns: SECOND_NS,
            ..Self::default()
        };
        let found = table().read(words, &mut options);
        options.uris = found.map_err(|wrong| wrong.ending("h2load", error))?;
        let has_file = options.input.is_some() || options.timing_script.is_some();
        let has_uri = has_file || !options.uris.is_empty();
        ensure(has_uri, || error("no URI or input file given"))?;
        options.check()?;
        options.secured = offered(&options.alpn)?;
        options.warn_of_quic();
        options.tls.insecure = true;
        options.tls.cipher_suites = options.suites()?;
        let known = GROUPS.map(|(name, iana)| (name, iana.to_owned()));
        if let Some(groups) = &options.groups {
            options.tls.groups = iana_names("--groups", groups, &known)?;
        }
        Ok(options)
    }

    /// An option was given that has no effect over HTTP/3.
    fn note_idle(&mut self, option: &'static str) {
        if !self.idle_over_quic.contains(&option) {
            self.idle_over_quic.push(option);
        }
    }

    /// Says which options have no effect with what is spoken.
    fn warn_of_quic(&mut self) {
        if self.secured == HttpChoice::HTTP3 {
            let lines = self.idle_over_quic.iter();
            self.warning
                .extend(lines.map(|line| format!("brunt: {line}\n")));
        } else if self.idle_over_quic.contains(&QLOGS) {
            let line = "Warning: --qlog-file-base: only effective in quic, ignoring.\n";
            self.warning.push_str(line);
        }
    }

    /// Cipher suites in their order, those of TLS 1.3 and those of 1.2; IANA names.
    fn suites(&self) -> Result<Vec<String>, Ending> {
        let typed = self.ciphers_of_1_3.as_deref().unwrap_or(USUAL_OF_1_3);
        let known = SUITES_OF_1_3.map(|name| (name, name.to_owned()));
        let mut suites = iana_names("--tls13-ciphers", typed, &known)?;
        let typed = self.ciphers.as_deref().unwrap_or(USUAL);
        let known = SUITES.map(|name| (name, iana_suite(name)));
        suites.extend(iana_names("--ciphers", typed, &known)?);
        Ok(suites)
    }

    /// Looks at the options together.
    fn check(&self) -> Result<(), Ending> {
        let Self {
            clients,
            threads,
            streams,
            rate,
            ..
        } = *self;
        let is_timed = self.duration_ns.is_some();
        let has_script = self.timing_script.is_some();
        let requests = self.requests.unwrap_or(1);
        let line = if clients == 0 {
            "-c: the number of clients must be strictly greater than 0."
        } else if rate.is_some() && is_timed {
            "-r, -D: they are mutually exclusive."
        } else if has_script && self.rps.is_some() {
            "--timing-script-file, --rps: they are mutually exclusive."
        } else if requests == 0 && !is_timed {
            "-n: the number of requests must be strictly greater than 0 if timing-based test \
                 is not being run."
        } else if streams == 0 {
            "-m: the max concurrent streams must be strictly greater than 0."
        } else if threads == 0 {
            "-t: the number of threads must be strictly greater than 0."
        } else if !has_script && requests < clients && !is_timed {
            "-n, -c: the number of requests must be greater than or equal to the clients."
        } else if clients < threads {
            "-c, -t: the number of clients must be greater than or equal to the number of \
                 threads."
        } else if rate.is_some_and(|rate| rate < threads) {
            "-r, -t: the connection rate must be greater than or equal to the number of \
                 threads."
        } else if rate.is_some_and(|rate| rate > clients) {
            "-r, -c: the connection rate must be smaller than or equal to the number of \
                 clients."
        } else if rate.is_some() && (self.rps.is_some() || has_script) {
            "brunt: -r and a rate of requests cannot be given together; leave one of them out"
        } else if has_script && is_timed {
            "brunt: --timing-script-file says how long the run is; leave -D out"
        } else {
            return self.check_sizes();
        };
        Err(error(line))
    }

    fn check_sizes(&self) -> Result<(), Ending> {
        let counts = [
            ("c", self.clients),
            ("t", self.threads),
            ("m", self.streams),
            ("r", self.rate.unwrap_or(1)),
        ];
        match counts.iter().find(|(_, count)| *count > u32::MAX.into()) {
            Some((name, _)) => Err(error(&format!("brunt: -{name} is too large"))),
            None => Ok(()),
        }
    }

    /// Requests of a run without a duration: of all connections together, where the script with
    /// times, if any, has so many lines.
    pub(super) fn requests_in_all(&self, lines: usize) -> u64 {
        let lines = lines as u64;
        if self.timing_script.is_none() {
            return self.requests.unwrap_or(1);
        }
        let each = self.requests.unwrap_or(lines).min(lines);
        each.saturating_mul(self.clients)
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

fn base(typed: &str) -> Result<String, Ending> {
    let (is_good, what) = match typed.strip_prefix("unix:") {
        Some(path) => {
            let is_good = (1..=SOCKET_PATH_BYTES_MAX).contains(&path.len());
            (is_good, "UNIX domain socket path")
        }
        None => (is_absolute(typed) && path_of(typed).is_some(), "base URI"),
    };
    let wrong = || error(&format!("--base-uri: invalid {what}: {typed}"));
    ensure(is_good, wrong)?;
    Ok(typed.to_owned())
}

/// How h2load ends where its command line is wrong.
pub(super) fn error(line: &str) -> Ending {
    Ending::error(line, 1)
}

/// An integer without a sign; `name` is for the message.
pub(super) fn number(name: &str, typed: &str) -> Result<u64, Ending> {
    let wrong = || error(&format!("{name}: bad option value: {typed}"));
    let (number, rest) = digits(typed).ok_or_else(wrong)?;
    ensure(rest.is_empty(), wrong)?;
    Ok(number)
}

/// Digits at the beginning, within 63 bits, and what is behind them.
fn digits(typed: &str) -> Option<(u64, &str)> {
    let (number, rest) = libraries::digits(typed);
    let number = number.filter(|&number| i64::try_from(number).is_ok());
    Some((number?, rest))
}

/// An integer with one of the units k, m and g, which are powers of 1,024.
pub(super) fn size(typed: &str) -> Option<u64> {
    let (number, unit) = digits(typed)?;
    let unit: u64 = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Nanoseconds of an integer with a unit: h, m, s, ms; seconds without. What is wrong is `said`.
pub(super) fn duration_ns(said: &str, typed: &str) -> Result<u64, Ending> {
    let ns = digits(typed).and_then(|(number, unit)| {
        let unit_ns = match &*unit.to_ascii_lowercase() {
            "h" => 3_600 * SECOND_NS,
            "m" => 60 * SECOND_NS,
            "" | "s" => SECOND_NS,
            "ms" => 1_000_000,
            _ => return None,
        };
        number.checked_mul(unit_ns)
    });
    ns.ok_or_else(|| error(&format!("{said} {typed}")))
}

/// Longest payload of a frame.
pub(super) fn frame_bytes(typed: &str) -> Result<u32, Ending> {
    let wrong = || error(&format!("--max-frame-size: bad option value: {typed}"));
    let bytes = size(typed).ok_or_else(wrong)?;
    match u32::try_from(bytes).unwrap_or(u32::MAX) {
        ..16_384 => Err(error("--max-frame-size: minimum 16384")),
        16_777_216.. => Err(error("--max-frame-size: maximum 16777215")),
        bytes => Ok(bytes),
    }
}

/// The largest value of so many bits.
pub(super) fn window_bytes(option: &str, typed: &str) -> Result<u32, Ending> {
    let bits = number("", typed).ok().filter(|&bits| bits <= 30);
    let range = "specify the integer in the range [0, 30], inclusive";
    let bits = bits.ok_or_else(|| error(&format!("{option}: {range}")))?;
    Ok((1 << bits) - 1)
}

/// A header field: its name in lower case, and its value.
pub(super) fn header(typed: &str) -> Result<(String, String), Ending> {
    let mut letters = typed.chars();
    let first = letters.next().map_or(0, char::len_utf8);
    // The colon before a pseudo header is not the one behind its name.
    let colon = typed[first..].find(':').map(|at| first + at);
    let Some(colon) = colon.filter(|&at| !(at == 1 && typed.starts_with(':'))) else {
        return Err(error(&format!("-H: invalid header: {typed}")));
    };
    let value =
        typed[colon + 1..].trim_start_matches(|character: char| character.is_ascii_whitespace());
    if value.is_empty() {
        let line = format!("-H: invalid header - value missing: {}", &typed[..colon]);
        return Err(error(&line));
    }
    Ok((typed[..colon].to_ascii_lowercase(), value.to_owned()))
}

/// Host, and port where one is given.
pub(super) fn host_and_port(typed: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match typed.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            let no_port = rest.is_empty().then_some("");
            (host, rest.strip_prefix(':').or(no_port)?)
        }
        // An address of IPv6 without brackets has no port.
        None if typed.matches(':').count() > 1 => (typed, ""),
        None => typed.split_once(':').unwrap_or((typed, "")),
    };
    let port = if port.is_empty() {
        0
    } else {
        port.parse().ok()?
    };
    // Port 0 stands for that of the URI.
    let port = Some(port).filter(|&port| port > 0);
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// Whether a URI has a scheme and a host.
pub(super) fn is_absolute(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return false;
    };
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
    let has_host = !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']);
    is_scheme && !scheme.is_empty() && has_host
}

/// Path and query of a URI, or of a path; absent where it is neither.
pub(super) fn path_of(uri: &str) -> Option<String> {
    let is_text = uri.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if !is_text || !(uri.starts_with('/') || is_absolute(uri)) {
        return None;
    }
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or(rest);
    let path = rest.find(['/', '?']).map_or("", |at| &rest[at..]);
    let root = if path.starts_with('/') { "" } else { "/" };
    Some(format!("{root}{path}"))
}

/// What a list of protocols (ALPN) offers; what brunt does not know is left out. The first one says
/// whether it is spoken over QUIC.
fn offered(list: &str) -> Result<HttpChoice, Ending> {
    let has = |protocol: &str| list.split(',').any(|listed| listed == protocol);
    let line = match (list.split(',').next(), has("h2"), has("http/1.1")) {
        (Some("h3"), ..) => return Ok(HttpChoice::HTTP3),
        (Some("h3-29"), ..) => "h3-29 is a draft of HTTP/3; give --alpn-list=h3",
        (_, true, true) => return Ok(HttpChoice::AUTO),
        (_, true, false) => return Ok(HttpChoice::HTTP2),
        (_, false, true) => return Ok(HttpChoice::HTTP1),
        (_, false, false) => &format!(
            "--alpn-list={list}: brunt speaks h2 and http/1.1, or h3 where it is the first; give \
             one of them"
        ),
    };
    Err(Ending::of_brunt(line))
}

/// What is offered of TLS 1.3 unless something else is asked for.
const USUAL_OF_1_3: &str =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
/// What is offered of TLS 1.2 unless something else is asked for, as far as brunt has it.
const USUAL: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
                     ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
                     ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

/// The IANA names of those of a list that are known; at least one has to be.
fn iana_names(option: &str, list: &str, known: &[(&str, String)]) -> Result<Vec<String>, Ending> {
    let mut names: Vec<String> = Vec::new();
    for word in list.split(':') {
        let mut known = known.iter();
        let found = known.find(|(name, _)| name.eq_ignore_ascii_case(word));
        names.extend(
            found
                .map(|(_, iana)| iana.clone())
                .filter(|iana| !names.contains(iana)),
        );
    }
    if names.is_empty() {
        let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Err(Ending::of_brunt(format!(
            "{option} {list}: brunt has none of these; give some of {}",
            known.join(":")
        )));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn parse(line: &str) -> Result<H2loadOptions, Ending> {
        let words = words(line);
        H2loadOptions::parse(&words)
    }

    #[test]
    fn options_are_taken_as_h2load_takes_them() {
        let options = parse("-n100 -c 4 --thr 2 -m10 -H A:b http://h/").expect("good");
        assert_eq!((options.requests, options.clients), (Some(100), 4));
        assert_eq!((options.threads, options.streams), (2, 10));
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
    fn numbers_have_units() {
        for (typed, bytes) in [
            ("10", Some(10)),
            ("10K", Some(10_240)),
            ("2m", Some(2 << 20)),
            ("1g", Some(1 << 30)),
            ("1x", None),
            ("", None),
            ("-1", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(size(typed), bytes, "{typed}");
        }
        for (typed, ns) in [
            ("0", Some(0)),
            ("2", Some(2 * SECOND_NS)),
            ("3S", Some(3 * SECOND_NS)),
            ("1m", Some(60 * SECOND_NS)),
            ("5ms", Some(5_000_000)),
            ("1H", Some(3_600 * SECOND_NS)),
            ("1.5", None),
            ("1 s", None),
        ] {
            assert_eq!(duration_ns("", typed).ok(), ns, "{typed}");
        }
    }

    #[test]
    fn fields_and_hosts() {
        let named = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(header("X-A: b:c "), named("x-a", "b:c "));
        assert_eq!(header(":method:PUT"), named(":method", "PUT"));
        for wrong in ["x", "::a", "", "x:", "x:  "] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
        for (typed, expected) in [
            ("h", Some(("h", None))),
            ("h:80", Some(("h", Some(80)))),
            ("h:", Some(("h", None))),
            ("[::1]:9", Some(("::1", Some(9)))),
            ("[::1]", Some(("::1", None))),
            ("::1", Some(("::1", None))),
            (":", None),
            (":80", None),
            ("h:x", None),
            ("h:65536", None),
        ] {
            let found = host_and_port(typed);
            let found = found.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(found, expected, "{typed}");
        }
    }

    #[test]
    fn lists_are_openssls() {
        assert_eq!(offered("h2,h2-16,h2-14,http/1.1"), Ok(HttpChoice::AUTO));
        assert_eq!(offered("http/1.1,h2"), Ok(HttpChoice::AUTO));
        assert_eq!(offered("h2"), Ok(HttpChoice::HTTP2));
        assert_eq!(offered("http/1.1"), Ok(HttpChoice::HTTP1));
        assert_eq!(offered("h3,h3-29"), Ok(HttpChoice::HTTP3));
        assert_eq!(offered("h2,h3"), Ok(HttpChoice::HTTP2));
        for list in ["foo", "h3-29", "h3-29,h3", "foo,h3", ""] {
            assert!(offered(list).is_err(), "{list}");
        }
        let options = |line: &str| {
            let words = words(line);
            H2loadOptions::parse(&words).expect(line).tls.cipher_suites
        };
        let names = options("--ciphers AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256 u");
        assert_eq!(names.len(), 4);
        assert_eq!(names[3], "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
        let usual = options("u");
        assert_eq!((&*usual[0], usual.len()), ("TLS_AES_128_GCM_SHA256", 9));
        let expected = ["x25519", "secp256r1", "secp384r1"].map(str::to_owned);
        let words = |line| words(&format!("--groups {line} u"));
        let options = H2loadOptions::parse(&words("X25519:P-256:P-384:P-521")).expect("some");
        assert_eq!(options.tls.groups, expected);
        let ending = H2loadOptions::parse(&words("P-521")).expect_err("none");
        assert!(
            ending
                .stderr
                .starts_with("brunt: --groups P-521: brunt has none of these")
        );
    }
}
