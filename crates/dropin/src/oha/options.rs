//! The command line of oha.

use std::path::PathBuf;

use brunt_load::HttpChoice;
use brunt_load::units::{count, duration_ns};

use super::VERSION;
use crate::Ending;
use crate::ending::ensure;
use crate::getopt::*;

const EXIT_USAGE: u8 = 2;
const SIGNATURES: &str = "brunt signs no requests; give the field by -H";
const PROXIES: &str = "brunt has no proxies; load the server itself";
const RANDOM_URLS: &str = "`brunt --urls FILE URL` takes a list of URLs";
const PACED: &str = "requests come evenly, by -q, or with pauses by `brunt --think-time`";
const CERTIFICATES: &str = "`brunt --cert FILE --key FILE URL` sends a certificate";
/// The options.
pub fn table() -> Table<OhaOptions> {
    Style::InFull.table(vec![
        value("-n", |o, typed| {
            let requests = count(typed).ok().filter(|&requests| requests > 0);
            o.requests = requests;
            ensure(requests.is_some(), || invalid("-n <N_REQUESTS>", typed))
        }),
        count_of("-c", "-c <N_CONNECTIONS>", |o| &mut o.connections),
        count_of("-p", "-p <N_HTTP2_PARALLEL>", |o| &mut o.streams),
        value("-z", |o, typed| {
            o.duration_ns = Some(time_ns("-z <DURATION>", typed)?);
            let wrong = || invalid("-z <DURATION>", typed);
            ensure(o.duration_ns != Some(0), wrong)
        }),
        flag("-w --wait-ongoing-requests-after-deadline", |o| {
            o.waits = true
        }),
        value("-q", |o, typed| {
            let rate = typed.parse::<f64>().ok();
            let rate = rate.filter(|rate| rate.is_finite() && *rate >= 0.0);
            let rate = rate.ok_or_else(|| invalid("-q <QUERY_PER_SECOND>", typed))?;
            o.rate_per_s = Some(rate).filter(|&rate| rate > 0.0);
            Ok(())
        }),
        refused("--burst-delay", PACED),
        refused("--burst-rate", PACED),
        refused("--rand-regex-url", RANDOM_URLS),
        refused("--urls-from-file", RANDOM_URLS),
        refused("--max-repeat", RANDOM_URLS),
        refused("--dump-urls", RANDOM_URLS),
        flag("--latency-correction", |o| o.is_corrected = true),
        flag("--no-tui", |_| {}),
        any("--fps", |_, _| {}),
        text("-m --method", |o| &mut o.method),
        field(text("-H", |o| &mut o.headers)),
        refused("-x --proxy", PROXIES),
        refused("--proxy-header", PROXIES),
        value("-t", |o, typed| {
            time_ns("-t <TIMEOUT>", typed).map(|ns| o.timeout_ns = Some(ns))
        }),
        value("--connect-timeout", |o, typed| {
            time_ns("--connect-timeout", typed).map(|ns| o.connect_timeout_ns = ns)
        }),
        refused("-A --accept", "type -H 'Accept: TYPE'"),
        secret(text("-d", |o| &mut o.body)),
        text("-D", |o| &mut o.body_file),
        refused(
            "-Z --body-path-lines",
            "`brunt --targets FILE` takes bodies",
        ),
        refused("-F --form", "type the body by -d, and its type by -T"),
        text("-T", |o| &mut o.content_type),
        secret(value("-a", |o, typed| {
            o.user = Some(typed.to_owned());
            ensure(typed.contains(':'), || invalid("-a <BASIC_AUTH>", typed))
        })),
        refused("--aws-session", SIGNATURES),
        refused("--aws-sigv4", SIGNATURES),
        refused("--proxy-http-version", PROXIES),
        refused("--proxy-http2", PROXIES),
        value("--http-version", |o, typed| {
            o.version = Some(match typed.trim() {
                "1.1" => HttpChoice::HTTP1,
                "2" | "2.0" => HttpChoice::HTTP2,
                "3" | "3.0" => HttpChoice::HTTP3,
                _ => return Err(invalid("--http-version <1.1, 2 or 3>", typed)),
            });
            Ok(())
        }),
        flag("--http2", |o| o.is_http2 = true),
        text("--host", |o| &mut o.host),
        flag("--disable-compression", |o| o.no_compression = true),
        any("-r --redirect", |o, typed| {
            if typed != "0" {
                let line = "brunt: -r has no effect: redirects are not followed\n";
                o.warning.push_str(line);
            }
        }),
        flag("--disable-keepalive", |o| o.closes = true),
        flag("--no-pre-lookup", |_| {}),
        flag("--ipv6", |_| {}),
        flag("--ipv4", |_| {}),
        text("--cacert", |o| &mut o.roots),
        refused("--cert", CERTIFICATES),
        refused("--key", CERTIFICATES),
        flag("--insecure", |o| o.insecure = true),
        refused(
            "--connect-to",
            "type the address in the URL, and --host NAME",
        ),
        flag("--no-color", |_| {}),
        flag("--disable-color", |_| {}),
        refused("--unix-socket", "type `brunt --unix-socket PATH URL`"),
        refused(
            "--stats-success-breakdown",
            "`brunt -v URL` has a row of error replies",
        ),
        refused("--db-url", "--brunt-report FILE keeps the whole run"),
        refused("--debug", "send one request by `curl -v`"),
        text("-o --output", |o| &mut o.output),
        value("--output-format", |o, typed| {
            o.form = match typed {
                "text" => ResultForm::Text,
                "json" => ResultForm::Json,
                "quiet" => ResultForm::Quiet,
                _ => return Err(invalid("--output-format <text, json or quiet>", typed)),
            };
            Ok(())
        }),
        flag("-j --json", |o| o.form = ResultForm::Json),
        refused(
            "-u --time-unit",
            "times have the unit that fits; leave it out",
        ),
        end("-h --help", |_| Ending::printed(include_str!("usage.txt"))),
        end("-V --version", |_| {
            let brunt = env!("CARGO_PKG_VERSION");
            Ending::printed(&format!("oha {VERSION} [brunt {brunt}]\n"))
        }),
        report(|o| &mut o.brunt_report),
    ])
}

/// The form of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// Text.
    #[default]
    Text,
    /// JSON.
    Json,
    /// Nothing.
    Quiet,
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OhaOptions {
    /// Requests in all, where that is said.
    pub requests: Option<u64>,
    /// Connections.
    pub connections: u32,
    /// Requests in flight per connection.
    pub streams: u32,
    /// Length of the run, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Whether requests in flight are waited for when the time is over, as they always are.
    waits: bool,
    /// Requests per second, all connections together.
    pub rate_per_s: Option<f64>,
    /// Whether latencies count from the planned instants.
    pub is_corrected: bool,
    /// Method.
    pub method: String,
    /// Header fields as typed.
    pub headers: Vec<String>,
    /// Media type of the body.
    pub content_type: Option<String>,
    /// Value of `Host`.
    pub host: Option<String>,
    /// User and password.
    pub user: Option<String>,
    /// Whether compressed replies are not asked for.
    pub no_compression: bool,
    /// Body as typed.
    pub body: Option<String>,
    /// File of the body.
    pub body_file: Option<PathBuf>,
    /// Longest time of a request, nanoseconds.
    pub timeout_ns: Option<u64>,
    /// Longest time to open a connection, nanoseconds.
    pub connect_timeout_ns: u64,
    /// HTTP/2 is spoken.
    is_http2: bool,
    /// Which HTTP is spoken, where that is said.
    version: Option<HttpChoice>,
    /// Whether each request has a connection of its own.
    pub closes: bool,
    /// File of certificates to verify the server by.
    pub roots: Option<PathBuf>,
    /// Whether certificates are not verified.
    pub insecure: bool,
    /// File of the result.
    pub output: Option<PathBuf>,
    /// Form of the result.
    pub form: ResultForm,
    /// The URL, as typed.
    pub url: String,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
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

pub(super) fn invalid(option: &str, typed: &str) -> Ending {
    wrong(&format!("invalid value '{typed}' for '{option}'"))
}

/// A number above 0.
fn count_of(
    names: &'static str,
    option: &'static str,
    place: Place<OhaOptions, u32>,
) -> Row<OhaOptions> {
    typed(names, place, move |typed| {
        let number = typed.parse().ok().filter(|&number: &u32| number > 0);
        number.ok_or_else(|| invalid(option, typed))
    })
}

/// A time as in `10s`, or several, as in `1m 30s`.
fn time_ns(option: &str, typed: &str) -> Result<u64, Ending> {
    let parts = typed.split_whitespace().map(duration_ns);
    let sum = parts.reduce(|sum, part| Ok(sum?.saturating_add(part?)));
    let has_unit = typed.ends_with(|last: char| last.is_ascii_alphabetic());
    let ns = sum.and_then(Result::ok).filter(|_| has_unit);
    ns.ok_or_else(|| invalid(option, typed))
}

impl OhaOptions {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            connections: 50,
            streams: 1,
            method: "GET".to_owned(),
            connect_timeout_ns: 5_000_000_000,
            ..Self::default()
        };
        let operands = table().read(words, &mut options);
        let operands = operands
            .map_err(|found| found.ending("oha", |line| wrong(line.trim_start_matches("oha: "))))?;
        let missing = "the following required arguments were not provided: <URL>";
        options.url = match &operands[..] {
            [url] => url.clone(),
            [] => return Err(wrong(missing)),
            [_, more, ..] => return Err(wrong(&format!("unexpected argument '{more}' found"))),
        };
        let is_timed = options.duration_ns.is_some();
        let words = if options.requests.is_some() && is_timed {
            "-n cannot be used with -z"
        } else if options.body.is_some() && options.body_file.is_some() {
            "-d cannot be used with -D"
        } else if options.is_http2 && options.version.is_some() {
            "--http2 and --http-version are exclusive"
        } else if options.waits && !is_timed {
            "-w needs -z: a run by count has no deadline"
        } else {
            return Ok(options);
        };
        Err(wrong(words))
    }

    /// Which HTTP is spoken.
    pub(super) fn http(&self) -> HttpChoice {
        let usual = if self.is_http2 {
            HttpChoice::HTTP2
        } else {
            HttpChoice::HTTP1
        };
        self.version.unwrap_or(usual)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::getopt::tests::words;
    use crate::oha::plan;

    fn parse(line: &str) -> Result<OhaOptions, Ending> {
        OhaOptions::parse(&words(line))
    }

    fn good(line: &str) -> OhaOptions {
        parse(line).expect(line)
    }

    #[test]
    fn command_lines_in_use() {
        let options = good("http://127.0.0.1:3000");
        assert_eq!((options.requests, options.connections), (None, 50));
        assert_eq!(
            (options.form, options.http()),
            (ResultForm::Text, HttpChoice::HTTP1)
        );
        let options = good("--no-tui -z 10s -c 100 --output-format json http://h:81/x");
        assert_eq!(
            (options.duration_ns, options.form),
            (Some(10_000_000_000), ResultForm::Json)
        );
        let options = good("-n 10k -q 500 --latency-correction -j -H A:b -m POST -d x https://h/");
        assert_eq!(
            (options.requests, options.rate_per_s),
            (Some(10_000), Some(500.0))
        );
        assert!(options.is_corrected && options.form == ResultForm::Json);
        assert_eq!(options.headers, ["A:b"]);
        let options = good("-p 8 --http2 --insecure https://h/");
        assert_eq!((options.http(), options.streams), (HttpChoice::HTTP2, 8));
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
            let planned = parse(line).and_then(|options| plan(&options, b"", NonZeroU32::MIN));
            let ending = planned.expect_err(line);
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
        assert_eq!(parse("--help").expect_err("it is asked for").code, 0);
    }
}
