//! The command line of oha.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_load::units::{count, duration_ns};
use brunt_load::{HttpChoice, Target};

use super::usage::{USAGE, version};
use crate::Ending;
use crate::getopt::{self, Long, Options as Getopt};

const EXIT_USAGE: u8 = 2;
const SHORT: &str = "n:c:p:z:wq:m:H:t:A:d:D:Z:F:T:a:x:r:jo:u:hV";
const LONG: &[Long] = &[
    long("wait-ongoing-requests-after-deadline", false, 'w'),
    long("burst-delay", true, REFUSED),
    long("burst-rate", true, REFUSED),
    long("rand-regex-url", false, REFUSED),
    long("urls-from-file", false, REFUSED),
    long("max-repeat", true, REFUSED),
    long("dump-urls", true, REFUSED),
    long("latency-correction", false, CORRECTION),
    long("no-tui", false, NOTHING),
    long("fps", true, NOTHING),
    long("method", true, 'm'),
    long("proxy-header", true, REFUSED),
    long("connect-timeout", true, CONNECT_TIMEOUT),
    long("form", true, 'F'),
    long("aws-session", true, REFUSED),
    long("aws-sigv4", true, REFUSED),
    long("proxy-http-version", true, REFUSED),
    long("proxy-http2", false, REFUSED),
    long("http-version", true, HTTP_VERSION),
    long("http2", false, HTTP2),
    long("host", true, HOST),
    long("disable-compression", false, NO_COMPRESSION),
    long("redirect", true, 'r'),
    long("disable-keepalive", false, NO_KEEP_ALIVE),
    long("no-pre-lookup", false, NOTHING),
    long("ipv6", false, NOTHING),
    long("ipv4", false, NOTHING),
    long("cacert", true, CACERT),
    long("cert", true, CERT),
    long("key", true, KEY),
    long("insecure", false, INSECURE),
    long("connect-to", true, CONNECT_TO),
    long("no-color", false, NOTHING),
    long("disable-color", false, NOTHING),
    long("unix-socket", true, SOCKET),
    long("stats-success-breakdown", false, BREAKDOWN),
    long("db-url", true, REFUSED),
    long("debug", false, REFUSED),
    long("output", true, 'o'),
    long("output-format", true, FORMAT),
    long("json", false, 'j'),
    long("time-unit", true, 'u'),
    long("help", false, 'h'),
    long("version", false, 'V'),
    long("brunt-report", true, REPORT),
];

/// Ids of options that have no letter.
const REFUSED: char = '\u{1}';
const NOTHING: char = '\u{2}';
const CORRECTION: char = '\u{3}';
const CONNECT_TIMEOUT: char = '\u{4}';
const HTTP_VERSION: char = '\u{5}';
const HTTP2: char = '\u{6}';
const HOST: char = '\u{7}';
const NO_COMPRESSION: char = '\u{8}';
const NO_KEEP_ALIVE: char = '\u{b}';
const CACERT: char = '\u{c}';
const CERT: char = '\u{e}';
const KEY: char = '\u{f}';
const INSECURE: char = '\u{10}';
const CONNECT_TO: char = '\u{11}';
const SOCKET: char = '\u{12}';
const BREAKDOWN: char = '\u{13}';
const FORMAT: char = '\u{14}';
const REPORT: char = '\u{15}';

/// oha takes no abbreviations.
const fn long(name: &'static str, takes: bool, id: char) -> Long {
    Long {
        name,
        takes,
        id,
        is_peers: false,
    }
}

/// The form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text.
    Text,
    /// JSON.
    Json,
    /// Nothing.
    Quiet,
}

/// Where the body comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The command line.
    Typed(String),
    /// A file.
    File(PathBuf),
    /// A line of a file, another one for each request.
    Lines(PathBuf),
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Requests in all, where there is no duration.
    pub requests: NonZeroU64,
    /// Connections.
    pub connections: NonZeroU32,
    /// Requests in flight per connection.
    pub streams: NonZeroU32,
    /// Length of the run, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Requests per second, all connections together.
    pub rate_per_s: Option<f64>,
    /// Whether latencies count from the planned instants.
    pub is_corrected: bool,
    /// Method.
    pub method: String,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// Value of `Accept`.
    pub accept: Option<String>,
    /// Media type of the body.
    pub content_type: Option<String>,
    /// Value of `Host`.
    pub host: Option<String>,
    /// User and password.
    pub user: Option<String>,
    /// Whether compressed replies are asked for.
    pub compresses: bool,
    /// Body.
    pub body: Body,
    /// Longest time of a request, nanoseconds.
    pub timeout_ns: Option<u64>,
    /// Longest time to open a connection, nanoseconds.
    pub connect_timeout_ns: u64,
    /// Which HTTP is spoken.
    pub http: HttpChoice,
    /// Whether each request has a connection of its own.
    pub closes: bool,
    /// File of certificates to verify the server by.
    pub roots: Option<PathBuf>,
    /// Certificate of the client.
    pub certificate: Option<PathBuf>,
    /// Key of the client.
    pub key: Option<PathBuf>,
    /// Whether certificates are not verified.
    pub insecure: bool,
    /// Where connections to a server go instead: its host and port, and the others.
    pub connect_to: Vec<((String, u16), (String, u16))>,
    /// Unix socket to connect to.
    pub socket: Option<PathBuf>,
    /// Whether successes and errors have statistics of their own.
    pub has_breakdown: bool,
    /// File of the result.
    pub output: Option<PathBuf>,
    /// Form of the result.
    pub form: Form,
    /// Unit of times in text, with its length in seconds.
    pub unit: Option<(&'static str, f64)>,
    /// The target.
    pub target: Target,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
}

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(Getopt::new("", SHORT, LONG, words), &['d', 'a'])
}

/// What is wrong, with a word on help.
pub(super) fn wrong(message: &str) -> Ending {
    Ending {
        stderr: format!(
            "error: {message}\n\nUsage: oha [OPTIONS] <URL>\n\n\
             For more information, try '--help'.\n"
        ),
        code: EXIT_USAGE,
        ..Ending::default()
    }
}

fn invalid(option: &str, typed: &str) -> Ending {
    wrong(&format!("invalid value '{typed}' for '{option}'"))
}

fn count_of(option: &str, typed: &str) -> Result<NonZeroU32, Ending> {
    let number = typed.parse().ok().and_then(NonZeroU32::new);
    number.ok_or_else(|| invalid(option, typed))
}

/// A time as in `10s`, or several, as in `1m 30s`.
fn time_ns(option: &str, typed: &str) -> Result<u64, Ending> {
    let parts = typed.split_whitespace().map(duration_ns);
    let sum = parts.reduce(|sum, part| Ok(sum?.saturating_add(part?)));
    let has_unit = typed.ends_with(|last: char| last.is_ascii_alphabetic());
    let ns = sum.and_then(Result::ok).filter(|_| has_unit);
    ns.ok_or_else(|| invalid(option, typed))
}

fn unit(typed: &str) -> Option<(&'static str, f64)> {
    Some(match typed {
        "ns" => ("ns", 1e-9),
        "us" => ("us", 1e-6),
        "ms" => ("ms", 1e-3),
        "s" => ("sec", 1.0),
        "m" => ("min", 60.0),
        "h" => ("hr", 3_600.0),
        _ => return None,
    })
}

fn redirection(typed: &str) -> Option<((String, u16), (String, u16))> {
    let (rest, to_port) = typed.rsplit_once(':')?;
    let (rest, to_host) = match rest.strip_suffix(']') {
        Some(bracketed) => bracketed.rsplit_once(":[")?,
        None => rest.rsplit_once(':')?,
    };
    let (host, port) = rest.rsplit_once(':')?;
    Some((
        (host.to_owned(), port.parse().ok()?),
        (to_host.to_owned(), to_port.parse().ok()?),
    ))
}

impl Options {
    fn of(target: Target) -> Self {
        Self {
            requests: NonZeroU64::MIN.saturating_add(199),
            connections: NonZeroU32::MIN.saturating_add(49),
            streams: NonZeroU32::MIN,
            duration_ns: None,
            rate_per_s: None,
            is_corrected: false,
            method: "GET".to_owned(),
            headers: Vec::new(),
            accept: None,
            content_type: None,
            host: None,
            user: None,
            compresses: true,
            body: Body::Typed(String::new()),
            timeout_ns: None,
            connect_timeout_ns: 5_000_000_000,
            http: HttpChoice::HTTP1,
            closes: false,
            roots: None,
            certificate: None,
            key: None,
            insecure: false,
            connect_to: Vec::new(),
            socket: None,
            has_breakdown: false,
            output: None,
            form: Form::Text,
            unit: None,
            target,
            brunt_report: None,
            warning: String::new(),
        }
    }

    /// Takes one option.
    fn take(&mut self, id: char, argument: String) -> Result<(), Ending> {
        match id {
            'n' => {
                let requests = count(&argument).ok().and_then(NonZeroU64::new);
                self.requests = requests.ok_or_else(|| invalid("-n <N_REQUESTS>", &argument))?;
            }
            'c' => self.connections = count_of("-c <N_CONNECTIONS>", &argument)?,
            'p' => self.streams = count_of("-p <N_HTTP2_PARALLEL>", &argument)?,
            'z' => match time_ns("-z <DURATION>", &argument)? {
                0 => return Err(invalid("-z <DURATION>", &argument)),
                ns => self.duration_ns = Some(ns),
            },
            'q' => {
                let rate = argument.parse::<f64>().ok();
                let rate = rate.filter(|rate| rate.is_finite() && *rate >= 0.0);
                let rate = rate.ok_or_else(|| invalid("-q <QUERY_PER_SECOND>", &argument))?;
                self.rate_per_s = Some(rate).filter(|&rate| rate > 0.0);
            }
            CORRECTION => self.is_corrected = true,
            'm' => self.method = argument,
            'H' => {
                let (name, value) = argument
                    .split_once(':')
                    .ok_or_else(|| invalid("-H <HEADERS>", &argument))?;
                let value = value.trim_start_matches(' ').to_owned();
                self.headers.push((name.to_ascii_lowercase(), value));
            }
            't' => self.timeout_ns = Some(time_ns("-t <TIMEOUT>", &argument)?),
            CONNECT_TIMEOUT => {
                self.connect_timeout_ns = time_ns("--connect-timeout", &argument)?;
            }
            'A' => self.accept = Some(argument),
            'd' => self.body = Body::Typed(argument),
            'D' => self.body = Body::File(argument.into()),
            'Z' => self.body = Body::Lines(argument.into()),
            'T' => self.content_type = Some(argument),
            'a' if argument.contains(':') => self.user = Some(argument),
            'a' => return Err(invalid("-a <BASIC_AUTH>", &argument)),
            HTTP2 => self.http = HttpChoice::HTTP2,
            HTTP_VERSION => {
                self.http = match argument.trim() {
                    "1.1" => HttpChoice::HTTP1,
                    "2" | "2.0" => HttpChoice::HTTP2,
                    "3" | "3.0" => HttpChoice::HTTP3,
                    _ => return Err(invalid("--http-version <1.1, 2 or 3>", &argument)),
                };
            }
            HOST => self.host = Some(argument),
            NO_COMPRESSION => self.compresses = false,
            NO_KEEP_ALIVE => self.closes = true,
            CACERT => self.roots = Some(argument.into()),
            CERT => self.certificate = Some(argument.into()),
            KEY => self.key = Some(argument.into()),
            INSECURE => self.insecure = true,
            CONNECT_TO => {
                let entry = redirection(&argument);
                let entry = entry.ok_or_else(|| invalid("--connect-to <CONNECT_TO>", &argument))?;
                self.connect_to.push(entry);
            }
            SOCKET => self.socket = Some(argument.into()),
            BREAKDOWN => self.has_breakdown = true,
            'o' => self.output = Some(argument.into()),
            'j' => self.form = Form::Json,
            FORMAT => {
                self.form = match &*argument {
                    "text" => Form::Text,
                    "json" => Form::Json,
                    "quiet" => Form::Quiet,
                    _ => return Err(invalid("--output-format <text, json or quiet>", &argument)),
                };
            }
            'u' => {
                let unit = unit(&argument);
                self.unit = Some(unit.ok_or_else(|| invalid("--time-unit", &argument))?);
            }
            'r' if argument != "0" => {
                let line = "brunt: -r has no effect: redirects are not followed\n";
                self.warning.push_str(line);
            }
            REPORT => self.brunt_report = Some(argument.into()),
            _ => {}
        }
        Ok(())
    }
}

impl Options {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        let mut found = Getopt::new("oha", SHORT, LONG, words);
        let mut typed: Vec<(char, String)> = Vec::new();
        while let Some(item) = found.next() {
            let (id, argument) = item.map_err(|message| {
                let message = message.strip_prefix("oha: ").unwrap_or(&message);
                wrong(message)
            })?;
            match id {
                'h' => return Err(Ending::printed(USAGE)),
                'V' => return Err(Ending::printed(&version())),
                REFUSED | 'F' | 'x' => {
                    let option = match id {
                        REFUSED => format!("--{}", found.last_long()),
                        letter => format!("-{letter}"),
                    };
                    return Err(wrong(&format!(
                        "brunt does not do what {option} asks for: see docs/drop-ins.md"
                    )));
                }
                _ => typed.push((id, argument.unwrap_or_default())),
            }
        }
        let operands = found.operands();
        let url = match &operands[..] {
            [url] => url,
            [] => {
                return Err(wrong(
                    "the following required arguments were not provided: <URL>",
                ));
            }
            [_, more, ..] => return Err(wrong(&format!("unexpected argument '{more}' found"))),
        };
        let has = |wanted: char| typed.iter().any(|&(id, _)| id == wanted);
        let bodies = ['d', 'D', 'Z'].iter().filter(|&&id| has(id)).count();
        for (is_wrong, words) in [
            (has('n') && has('z'), "-n cannot be used with -z"),
            (bodies > 1, "-d, -D and -Z cannot be used with one another"),
            (
                has(HTTP2) && has(HTTP_VERSION),
                "--http2 and --http-version are exclusive",
            ),
            (
                has('w') && !has('z'),
                "-w needs -z: a run by count has no deadline",
            ),
            (has(CERT) != has(KEY), "--cert and --key are given together"),
        ] {
            if is_wrong {
                return Err(wrong(words));
            }
        }
        // Without a scheme it is none in oha, which most URLs typed so are not meant to be.
        let target = Target::parse(url, None).map_err(|reason| wrong(&reason.to_string()))?;
        let mut options = Self::of(target);
        for (id, argument) in typed {
            options.take(id, argument)?;
        }
        options.target.unix_socket.clone_from(&options.socket);
        if options.http == HttpChoice::HTTP3 && !options.target.scheme.is_secure() {
            return Err(wrong("--http-version 3 needs an https URL"));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn parse(line: &str) -> Result<Options, Ending> {
        Options::parse(&words(line))
    }

    fn good(line: &str) -> Options {
        parse(line).expect(line)
    }

    #[test]
    fn command_lines_in_use() {
        let options = good("http://127.0.0.1:3000");
        assert_eq!(
            (options.requests.get(), options.connections.get()),
            (200, 50)
        );
        assert_eq!(
            (options.form, options.http),
            (Form::Text, HttpChoice::HTTP1)
        );
        let options = good("--no-tui -z 10s -c 100 --output-format json http://h:81/x");
        assert_eq!(
            (options.duration_ns, options.form),
            (Some(10_000_000_000), Form::Json)
        );
        let options = good("-n 10k -q 500 --latency-correction -j -H A:b -m POST -d x https://h/");
        assert_eq!(
            (options.requests.get(), options.rate_per_s),
            (10_000, Some(500.0))
        );
        assert!(options.is_corrected && options.form == Form::Json);
        assert_eq!(options.headers, [("a".to_owned(), "b".to_owned())]);
        let options =
            good("-p 8 --http2 --insecure -u ms --connect-to h:443:[::1]:8443 https://h/");
        let entry = (("h".to_owned(), 443), ("::1".to_owned(), 8_443));
        assert_eq!(
            (options.http, options.streams.get()),
            (HttpChoice::HTTP2, 8)
        );
        assert_eq!(
            (options.connect_to, options.unit),
            (vec![entry], Some(("ms", 1e-3)))
        );
        assert!(good("-r 5 http://h/").warning.contains("redirects"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, words) in [
            ("", "the following required arguments"),
            ("http://h/ more", "unexpected argument 'more' found"),
            ("--nope http://h/", "unrecognized option '--nope'"),
            ("-n 0 http://h/", "invalid value '0' for '-n <N_REQUESTS>'"),
            ("-n 5 -z 5s http://h/", "-n cannot be used with -z"),
            ("-z 5 http://h/", "invalid value '5' for '-z <DURATION>'"),
            ("-d a -D b http://h/", "-d, -D and -Z cannot be used"),
            ("-H x http://h/", "invalid value 'x' for '-H <HEADERS>'"),
            ("--output-format xml http://h/", "invalid value 'xml'"),
            (
                "--http2 --http-version 2 http://h/",
                "--http2 and --http-version are exclusive",
            ),
            (
                "--http-version 3 http://h/",
                "--http-version 3 needs an https URL",
            ),
            ("--cert c https://h/", "--cert and --key are given together"),
            (
                "-n 4 --rand-regex-url http://h/[a-z]",
                "brunt does not do what --rand-regex-url asks for",
            ),
            ("-F a=b http://h/", "brunt does not do what -F asks for"),
            ("ftp://h/", "`ftp://h/` has the scheme `ftp`"),
        ] {
            let ending = parse(line).expect_err(line);
            assert_eq!((ending.code, &*ending.stdout), (2, ""), "{line}");
            let begin = format!("error: {words}");
            assert!(ending.stderr.starts_with(&begin), "{line}: {ending:?}");
        }
        assert!(
            parse("-V")
                .expect_err("it is asked for")
                .stdout
                .starts_with("oha 1.15.0 [")
        );
        assert_eq!(parse("--help").expect_err("it is asked for").stdout, USAGE);
    }
}
