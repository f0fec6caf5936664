//! The command line of oha.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_load::units::{count, duration_ns};
use brunt_load::{HttpChoice, Target};

use super::usage::{USAGE, version};
use crate::Ending;
use crate::getopt::{self, Options as Getopt, Row, flag, value};

const EXIT_USAGE: u8 = 2;
/// Options that have no long name.
const SHORT: &str = "n:c:p:z:q:H:t:d:D:T:a:";
const SIGNATURES: &str = "brunt signs no requests; give the field by -H";
const PROXIES: &str = "brunt has no proxies; load the server itself";
const RANDOM_URLS: &str = "`brunt --urls FILE URL` takes a list of URLs";
const PACED: &str = "requests come evenly, by -q, or with pauses by `brunt --think-time`";
const CERTIFICATES: &str = "`brunt --cert FILE --key FILE URL` sends a certificate";
const ROWS: &[Row] = &[
    flag("w", "wait-ongoing-requests-after-deadline").in_full(),
    value("", "burst-delay").in_full().refused(PACED),
    value("", "burst-rate").in_full().refused(PACED),
    flag("", "rand-regex-url").in_full().refused(RANDOM_URLS),
    flag("", "urls-from-file").in_full().refused(RANDOM_URLS),
    value("", "max-repeat").in_full().refused(RANDOM_URLS),
    value("", "dump-urls").in_full().refused(RANDOM_URLS),
    flag("", "latency-correction").in_full(),
    flag("", "no-tui").in_full(),
    value("", "fps").in_full(),
    value("m", "method").in_full(),
    value("x", "proxy").in_full().refused(PROXIES),
    value("", "proxy-header").in_full().refused(PROXIES),
    value("", "connect-timeout").in_full(),
    value("A", "accept")
        .in_full()
        .refused("type -H 'Accept: TYPE'"),
    value("Z", "body-path-lines")
        .in_full()
        .refused("`brunt --targets FILE` takes bodies"),
    value("F", "form")
        .in_full()
        .refused("type the body by -d, and its type by -T"),
    value("", "aws-session").in_full().refused(SIGNATURES),
    value("", "aws-sigv4").in_full().refused(SIGNATURES),
    value("", "proxy-http-version").in_full().refused(PROXIES),
    flag("", "proxy-http2").in_full().refused(PROXIES),
    value("", "http-version").in_full(),
    flag("", "http2").in_full(),
    value("", "host").in_full(),
    flag("", "disable-compression").in_full(),
    value("r", "redirect").in_full(),
    flag("", "disable-keepalive").in_full(),
    flag("", "no-pre-lookup").in_full(),
    flag("", "ipv6").in_full(),
    flag("", "ipv4").in_full(),
    value("", "cacert").in_full(),
    value("", "cert").in_full().refused(CERTIFICATES),
    value("", "key").in_full().refused(CERTIFICATES),
    flag("", "insecure").in_full(),
    value("", "connect-to")
        .in_full()
        .refused("type the address in the URL, and --host NAME"),
    flag("", "no-color").in_full(),
    flag("", "disable-color").in_full(),
    value("", "unix-socket")
        .in_full()
        .refused("type `brunt --unix-socket PATH URL`"),
    flag("", "stats-success-breakdown")
        .in_full()
        .refused("`brunt -v URL` has a row of error replies"),
    value("", "db-url")
        .in_full()
        .refused("--brunt-report FILE keeps the whole run"),
    flag("", "debug")
        .in_full()
        .refused("send one request by `curl -v`"),
    value("o", "output").in_full(),
    value("", "output-format").in_full(),
    flag("j", "json").in_full(),
    value("u", "time-unit")
        .in_full()
        .refused("times have the unit that fits; leave it out"),
    flag("h", "help").in_full(),
    flag("V", "version").in_full(),
    value("", "brunt-report").in_full(),
];

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
    /// Whether certificates are not verified.
    pub insecure: bool,
    /// File of the result.
    pub output: Option<PathBuf>,
    /// Form of the result.
    pub form: Form,
    /// The target.
    pub target: Target,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
}

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(Getopt::new("", SHORT, ROWS, words), &["d", "a"])
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
            insecure: false,
            output: None,
            form: Form::Text,
            target,
            brunt_report: None,
            warning: String::new(),
        }
    }

    /// Takes one option.
    fn take(&mut self, name: &str, argument: String) -> Result<(), Ending> {
        match name {
            "n" => {
                let requests = count(&argument).ok().and_then(NonZeroU64::new);
                self.requests = requests.ok_or_else(|| invalid("-n <N_REQUESTS>", &argument))?;
            }
            "c" => self.connections = count_of("-c <N_CONNECTIONS>", &argument)?,
            "p" => self.streams = count_of("-p <N_HTTP2_PARALLEL>", &argument)?,
            "z" => match time_ns("-z <DURATION>", &argument)? {
                0 => return Err(invalid("-z <DURATION>", &argument)),
                ns => self.duration_ns = Some(ns),
            },
            "q" => {
                let rate = argument.parse::<f64>().ok();
                let rate = rate.filter(|rate| rate.is_finite() && *rate >= 0.0);
                let rate = rate.ok_or_else(|| invalid("-q <QUERY_PER_SECOND>", &argument))?;
                self.rate_per_s = Some(rate).filter(|&rate| rate > 0.0);
            }
            "latency-correction" => self.is_corrected = true,
            "method" => self.method = argument,
            "H" => {
                let (name, value) = argument
                    .split_once(':')
                    .ok_or_else(|| invalid("-H <HEADERS>", &argument))?;
                let value = value.trim_start_matches(' ').to_owned();
                self.headers.push((name.to_ascii_lowercase(), value));
            }
            "t" => self.timeout_ns = Some(time_ns("-t <TIMEOUT>", &argument)?),
            "connect-timeout" => {
                self.connect_timeout_ns = time_ns("--connect-timeout", &argument)?;
            }
            "d" => self.body = Body::Typed(argument),
            "D" => self.body = Body::File(argument.into()),
            "T" => self.content_type = Some(argument),
            "a" if argument.contains(':') => self.user = Some(argument),
            "a" => return Err(invalid("-a <BASIC_AUTH>", &argument)),
            "http2" => self.http = HttpChoice::HTTP2,
            "http-version" => {
                self.http = match argument.trim() {
                    "1.1" => HttpChoice::HTTP1,
                    "2" | "2.0" => HttpChoice::HTTP2,
                    "3" | "3.0" => HttpChoice::HTTP3,
                    _ => return Err(invalid("--http-version <1.1, 2 or 3>", &argument)),
                };
            }
            "host" => self.host = Some(argument),
            "disable-compression" => self.compresses = false,
            "disable-keepalive" => self.closes = true,
            "cacert" => self.roots = Some(argument.into()),
            "insecure" => self.insecure = true,
            "output" => self.output = Some(argument.into()),
            "json" => self.form = Form::Json,
            "output-format" => {
                self.form = match &*argument {
                    "text" => Form::Text,
                    "json" => Form::Json,
                    "quiet" => Form::Quiet,
                    _ => return Err(invalid("--output-format <text, json or quiet>", &argument)),
                };
            }
            "redirect" if argument != "0" => {
                let line = "brunt: -r has no effect: redirects are not followed\n";
                self.warning.push_str(line);
            }
            "brunt-report" => self.brunt_report = Some(argument.into()),
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
        let mut found = Getopt::new("oha", SHORT, ROWS, words);
        let mut typed: Vec<(&str, String)> = Vec::new();
        while let Some(item) = found.next() {
            let (name, argument) =
                item.map_err(|error| wrong(error.line().trim_start_matches("oha: ")))?;
            match name {
                "help" => return Err(Ending::printed(USAGE)),
                "version" => return Err(Ending::printed(&version())),
                _ => typed.push((name, argument.unwrap_or_default())),
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
        let has = |wanted: &str| typed.iter().any(|&(name, _)| name == wanted);
        for (is_wrong, words) in [
            (has("n") && has("z"), "-n cannot be used with -z"),
            (has("d") && has("D"), "-d cannot be used with -D"),
            (
                has("http2") && has("http-version"),
                "--http2 and --http-version are exclusive",
            ),
            (
                has("wait-ongoing-requests-after-deadline") && !has("z"),
                "-w needs -z: a run by count has no deadline",
            ),
        ] {
            if is_wrong {
                return Err(wrong(words));
            }
        }
        // Without a scheme it is none in oha, which most URLs typed so are not meant to be.
        let target = Target::parse(url, None).map_err(|reason| wrong(&reason.to_string()))?;
        let mut options = Self::of(target);
        for (name, argument) in typed {
            options.take(name, argument)?;
        }
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
        let options = good("-p 8 --http2 --insecure https://h/");
        assert_eq!(
            (options.http, options.streams.get()),
            (HttpChoice::HTTP2, 8)
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
            ("-d a -D b http://h/", "-d cannot be used with -D"),
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
            (
                "-n 4 --rand-regex-url http://h/[a-z]",
                "brunt: --rand-regex-url is not supported: `brunt --urls FILE URL` takes",
            ),
            (
                "-F a=b http://h/",
                "brunt: -F is not supported: type the body",
            ),
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
