//! The command line of zrk.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_load::units::duration_ns;
use brunt_load::{Schedule, Target};

use super::usage::{USAGE, version};
use crate::Ending;
use crate::getopt::{self, Long, Options as Getopt};
use crate::wrk::Url;

const EXIT_USAGE: u8 = 2;
const THREADS_MAX: u32 = 64;
const SHORT: &str = "t:c:s:d:R:H:m:b:o:kh";
const LONG: &[Long] = &[
    long("threads", true, 't'),
    long("connections", true, 'c'),
    long("streams", true, 's'),
    long("duration", true, 'd'),
    long("rate", true, 'R'),
    long("closed", false, CLOSED),
    long("disable-keepalive", false, NO_KEEP_ALIVE),
    long("header", true, 'H'),
    long("method", true, 'm'),
    long("body", true, 'b'),
    long("script", true, SCRIPT),
    long("timeout", true, TIMEOUT),
    long("deadline", true, DEADLINE),
    long("deadline-abort", false, ABORT),
    long("interval", true, INTERVAL),
    long("refresh", true, REFRESH),
    long("latency", false, LATENCY),
    long("http2", false, HTTP2),
    long("h2c", false, HTTP2),
    long("http3", false, HTTP3),
    long("h3", false, HTTP3),
    long("insecure", false, 'k'),
    long("plain", false, NOTHING),
    long("no-tui", false, NOTHING),
    long("format", true, FORMAT),
    long("output", true, 'o'),
    long("hdr", true, HDR),
    long("timeseries", true, SERIES),
    long("timeseries-histogram", false, SERIES_HISTOGRAM),
    long("no-record-timeouts", false, NO_TIMEOUTS),
    long("record-timeouts", false, TIMEOUTS),
    long("slo-p99", true, P99),
    long("max-error-rate", true, ERROR_RATE),
    long("help", false, 'h'),
    long("version", false, VERSION),
    long("brunt-report", true, REPORT),
    long("explain", false, EXPLAIN),
];

/// Ids of options that have no letter.
const CLOSED: char = '\u{1}';
const NO_KEEP_ALIVE: char = '\u{2}';
const SCRIPT: char = '\u{3}';
const TIMEOUT: char = '\u{4}';
const DEADLINE: char = '\u{5}';
const NOTHING: char = '\u{6}';
const INTERVAL: char = '\u{7}';
const REFRESH: char = '\u{8}';
const LATENCY: char = '\u{b}';
const HTTP2: char = '\u{c}';
const HTTP3: char = '\u{e}';
const FORMAT: char = '\u{f}';
const HDR: char = '\u{10}';
const SERIES: char = '\u{11}';
const SERIES_HISTOGRAM: char = '\u{12}';
const NO_TIMEOUTS: char = '\u{13}';
const TIMEOUTS: char = '\u{14}';
const P99: char = '\u{15}';
const ERROR_RATE: char = '\u{16}';
const VERSION: char = '\u{17}';
const REPORT: char = '\u{18}';
const EXPLAIN: char = '\u{19}';
const ABORT: char = '\u{1a}';

/// zrk takes no abbreviations.
const fn long(name: &'static str, takes: bool, id: char) -> Long {
    Long {
        name,
        takes,
        id,
        is_peers: false,
    }
}

/// The form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, with a line for each interval before.
    Text,
    /// One JSON object.
    Json,
}

/// Where the body comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The command line.
    Typed(String),
    /// A file; `-` for standard input.
    File(PathBuf),
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Threads.
    pub threads: NonZeroU32,
    /// Connections.
    pub connections: NonZeroU32,
    /// Requests in flight per connection.
    pub streams: NonZeroU32,
    /// Length of the run, nanoseconds; above 0.
    pub duration_ns: u64,
    /// Requests per second at the beginning, all connections together.
    pub rate_per_s: u64,
    /// The same at the end, where the rate changes.
    pub rate_end_per_s: Option<u64>,
    /// Whether a response makes the next request due, and no schedule.
    pub is_closed: bool,
    /// Whether each request has a connection of its own.
    pub closes: bool,
    /// Longest time from a send to the response, nanoseconds; 0 for no limit.
    pub timeout_ns: u64,
    /// Longest time from the planned instant, nanoseconds; 0 for no limit.
    pub deadline_ns: u64,
    /// Whether the deadline is said to end requests in flight.
    pub aborts: bool,
    /// From one line, or row, to the next, nanoseconds; above 0.
    pub interval_ns: u64,
    /// Method.
    pub method: String,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Body,
    /// File of a Lua script.
    pub script: Option<PathBuf>,
    /// Words behind the URL, for the script.
    pub arguments: Vec<String>,
    /// Whether more percentiles are printed.
    pub latency: bool,
    /// Whether HTTP/2 is spoken.
    pub http2: bool,
    /// Whether HTTP/3 is spoken.
    pub http3: bool,
    /// Whether certificates are not verified.
    pub insecure: bool,
    /// Form of the report.
    pub format: Format,
    /// File of the report.
    pub output: Option<PathBuf>,
    /// File of the percentile distribution.
    pub hdr: Option<PathBuf>,
    /// File of the rows of intervals; `-` for standard output.
    pub series: Option<PathBuf>,
    /// Whether rows have their histograms.
    pub series_histogram: bool,
    /// Whether what was never answered is in the latencies.
    pub records_timeouts: bool,
    /// Limit of the 99th percentile, nanoseconds.
    pub p99_max_ns: Option<u64>,
    /// Limit of the share of errors.
    pub error_rate_max: Option<f64>,
    /// The target.
    pub target: Target,
    /// The URL as typed.
    pub url: String,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// Whether the same is asked for in brunt's own options, and nothing is run.
    pub explains: bool,
}

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(Getopt::new("", SHORT, LONG, words), &['b'])
}

/// The usage text behind what is wrong.
fn wrong(message: &str) -> Ending {
    Ending {
        stdout: String::new(),
        stderr: format!("zrk: {message}\n\n{USAGE}"),
        code: EXIT_USAGE,
    }
}

fn count(typed: &str) -> Result<u64, Ending> {
    let number = typed.strip_prefix('+').unwrap_or(typed).parse();
    number.map_err(|_| wrong("expected a number"))
}

fn count_of(typed: &str, what: &str) -> Result<NonZeroU32, Ending> {
    let number = u32::try_from(count(typed)?).map_err(|_| wrong("expected a number"))?;
    NonZeroU32::new(number).ok_or_else(|| wrong(&format!("{what} must be greater than 0")))
}

fn time_ns(typed: &str) -> Result<u64, Ending> {
    let is_plain = typed.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let ns = duration_ns(typed).ok().filter(|_| is_plain);
    ns.ok_or_else(|| wrong("invalid duration (use e.g. 500ms, 30s, 2m, 1h)"))
}

fn time_above_0_ns(typed: &str, what: &str) -> Result<u64, Ending> {
    match time_ns(typed)? {
        0 => Err(wrong(&format!("{what} must be greater than 0"))),
        ns => Ok(ns),
    }
}

fn share(typed: &str) -> Result<f64, Ending> {
    let (number, scale) = match typed.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (typed, 1.0),
    };
    let share = number.parse::<f64>().map(|number| number / scale);
    let share = share.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| wrong("expected a number"))
}

fn header(typed: &str) -> Result<(String, String), Ending> {
    match typed.split_once(':') {
        Some((name, value)) if !name.is_empty() => {
            let value = value.trim_matches([' ', '\t']);
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(wrong("invalid header (expected 'Name: Value')")),
    }
}

/// The target of a URL. `Host` has the port where it is not the scheme's own.
fn target(typed: &str) -> Result<Target, Ending> {
    let is_http = typed.starts_with("http://") || typed.starts_with("https://");
    let mut url = Url::parse(typed).filter(|_| is_http && !typed.contains('@'));
    if let Some(url) = &mut url {
        let usual = if url.scheme == "https" { 443 } else { 80 };
        let port = url.port.as_ref().and_then(|port| port.parse::<u16>().ok());
        url.port = port
            .filter(|&port| port != usual)
            .map(|port| port.to_string());
        // A query that no path comes before.
        if let Some((_, query)) = typed.split_once('?')
            && url.path == "/"
            && !typed.contains("/?")
        {
            url.path = format!("/?{query}");
        }
    }
    let target = url.as_ref().and_then(Url::target);
    target.ok_or_else(|| wrong("invalid URL (expected http:// or https://)"))
}

impl Options {
    fn of(target: Target, url: String) -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self {
            threads: number(2),
            connections: number(10),
            streams: NonZeroU32::MIN,
            duration_ns: 10_000_000_000,
            rate_per_s: 1_000,
            rate_end_per_s: None,
            is_closed: false,
            closes: false,
            timeout_ns: 2_000_000_000,
            deadline_ns: 0,
            aborts: false,
            interval_ns: 1_000_000_000,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Body::Typed(String::new()),
            script: None,
            arguments: Vec::new(),
            latency: false,
            http2: false,
            http3: false,
            insecure: false,
            format: Format::Text,
            output: None,
            hdr: None,
            series: None,
            series_histogram: false,
            records_timeouts: true,
            p99_max_ns: None,
            error_rate_max: None,
            target,
            url,
            brunt_report: None,
            explains: false,
        }
    }

    /// Whether the rows of intervals have standard output.
    pub fn series_is_output(&self) -> bool {
        self.series
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "-")
    }

    /// Takes one option; help and version end the command line.
    fn take(&mut self, id: char, argument: String) -> Result<(), Ending> {
        match id {
            't' => self.threads = count_of(&argument, "threads (-t)")?,
            'c' => self.connections = count_of(&argument, "connections (-c)")?,
            's' if argument.ends_with(".lua") => {
                return Err(wrong("-s is --streams; a script is given with --script"));
            }
            's' => self.streams = count_of(&argument, "streams (-s)")?,
            'd' => self.duration_ns = time_above_0_ns(&argument, "duration (-d)")?,
            'R' => {
                let (from, to) = match argument.split_once(':') {
                    Some((from, to)) => (from, Some(count(to)?)),
                    None => (&*argument, None),
                };
                (self.rate_per_s, self.rate_end_per_s) = (count(from)?, to);
            }
            CLOSED => self.is_closed = true,
            NO_KEEP_ALIVE => self.closes = true,
            'H' => self.headers.push(header(&argument)?),
            'm' => self.method = argument,
            'b' => {
                self.body = match argument.strip_prefix('@') {
                    Some(text) if text.starts_with('@') => Body::Typed(text.to_owned()),
                    Some(path) => Body::File(path.into()),
                    None => Body::Typed(argument),
                };
            }
            SCRIPT => self.script = Some(argument.into()),
            TIMEOUT => self.timeout_ns = time_ns(&argument)?,
            DEADLINE => self.deadline_ns = time_ns(&argument)?,
            ABORT => self.aborts = true,
            INTERVAL => self.interval_ns = time_above_0_ns(&argument, "--interval")?,
            REFRESH => {
                time_above_0_ns(&argument, "--refresh")?;
            }
            LATENCY => self.latency = true,
            HTTP2 => self.http2 = true,
            HTTP3 => self.http3 = true,
            'k' => self.insecure = true,
            FORMAT => {
                self.format = match &*argument {
                    "text" => Format::Text,
                    "json" => Format::Json,
                    _ => return Err(wrong("invalid --format (expected 'text' or 'json')")),
                };
            }
            'o' => self.output = Some(argument.into()),
            HDR => self.hdr = Some(argument.into()),
            SERIES => self.series = Some(argument.into()),
            SERIES_HISTOGRAM => self.series_histogram = true,
            NO_TIMEOUTS => self.records_timeouts = false,
            TIMEOUTS => self.records_timeouts = true,
            P99 => self.p99_max_ns = Some(time_ns(&argument)?),
            ERROR_RATE => self.error_rate_max = Some(share(&argument)?),
            REPORT => self.brunt_report = Some(argument.into()),
            EXPLAIN => self.explains = true,
            _ => {}
        }
        Ok(())
    }

    /// What of the options is wrong together.
    fn fault(&self) -> Option<&'static str> {
        let is_multiplexed = self.http2 || self.http3;
        let rates = [Some(self.rate_per_s), self.rate_end_per_s];
        let faults = [
            (
                self.threads.get() > THREADS_MAX,
                "threads (-t) exceeds the maximum this platform supports",
            ),
            (rates.contains(&Some(0)), "rate (-R) must be greater than 0"),
            (
                self.is_closed && self.rate_end_per_s.is_some(),
                "--closed is incompatible with a ramp (-R A:B)",
            ),
            (
                self.is_closed && self.deadline_ns > 0,
                "--closed is incompatible with --deadline",
            ),
            (
                self.closes && is_multiplexed,
                "--disable-keepalive is incompatible with --http2",
            ),
            (
                self.http2 && self.http3,
                "--http3 and --http2 are different transports; run them separately",
            ),
            (
                self.streams > NonZeroU32::MIN && !is_multiplexed,
                "streams (-s) requires --http2 or --http3; HTTP/1.1 has no second stream to open",
            ),
            (
                self.http3 && !self.target.scheme.is_secure(),
                "--http3 needs an https:// URL; QUIC has no cleartext mode",
            ),
            (
                self.script.is_some() && is_multiplexed,
                "brunt runs scripts over HTTP/1.1 alone: leave --http2 and --http3 out",
            ),
            (
                self.script.is_none() && !self.arguments.is_empty(),
                "unexpected argument after the URL (only --script takes any)",
            ),
            (
                rates
                    .iter()
                    .flatten()
                    .any(|&rate| rate as f64 > Schedule::RATE_MAX_PER_S),
                "rate (-R) is over 1000000000",
            ),
        ];
        faults
            .iter()
            .find_map(|&(is_wrong, words)| is_wrong.then_some(words))
    }
}

impl Options {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        let mut found = Getopt::new("zrk", SHORT, LONG, words);
        let mut typed = Vec::new();
        while let Some(item) = found.next() {
            let (id, argument) = item.map_err(|message| {
                wrong(match message.contains("requires an argument") {
                    true => "an option is missing its value",
                    false => "unknown flag",
                })
            })?;
            match id {
                'h' => return Err(Ending::printed(USAGE)),
                VERSION => return Err(Ending::printed(&version())),
                _ => typed.push((id, argument.unwrap_or_default())),
            }
        }
        let operands = found.operands();
        let mut operands = operands.into_iter().filter(|word| !word.is_empty());
        let url = operands.next();
        // What is wrong about an option is said before what is wrong about the URL.
        let nowhere = "http://localhost/";
        let mut options = Self::of(target(nowhere)?, url.clone().unwrap_or_default());
        for (id, argument) in typed {
            options.take(id, argument)?;
        }
        let url = url.ok_or_else(|| wrong("missing target URL"))?;
        options.target = target(&url)?;
        options.arguments = operands.collect();
        if let Some(words) = options.fault() {
            return Err(wrong(words));
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
        let options = good("http://127.0.0.1:8080/");
        let counts = (options.threads.get(), options.connections.get());
        assert_eq!((counts, options.rate_per_s), ((2, 10), 1_000));
        assert_eq!(options.duration_ns, 10_000_000_000);
        assert!(!options.is_closed && options.records_timeouts);
        let options = good(
            "--plain --closed -t 12 -c 256 -d 15 -m POST --timeout 8s --format json http://h:80/u",
        );
        assert!(options.is_closed && options.format == Format::Json);
        assert_eq!(
            (&*options.method, options.timeout_ns),
            ("POST", 8_000_000_000)
        );
        assert_eq!(
            (&*options.target.authority, &*options.target.path),
            ("h", "/u")
        );
        let options = good("-t64 -c1024 -d20s -R1000000 --format json --plain http://h/b?a=1&b=2");
        assert_eq!(
            (options.rate_per_s, options.duration_ns),
            (1_000_000, 20_000_000_000)
        );
        assert_eq!(options.target.path, "/b?a=1&b=2");
        let options = good("-R 50000 -m POST -b @10KB -k -H A:b -H C:d=e --hdr h https://h/echo");
        assert_eq!(options.body, Body::File("10KB".into()));
        assert!(options.insecure);
        assert_eq!(options.headers[1], ("C".to_owned(), "d=e".to_owned()));
        let options = good("-R7:9 --rate 100:5000 -b @@x --max-error-rate 1% https://h?q");
        assert_eq!(options.rate_end_per_s, Some(5_000));
        assert_eq!(options.body, Body::Typed("@x".to_owned()));
        assert_eq!(
            (options.error_rate_max, &*options.target.path),
            (Some(0.01), "/?q")
        );
        let options = good("--script x.lua http://h/ a -- -b");
        assert_eq!(options.arguments, ["a", "-b"]);
    }

    #[test]
    fn what_is_wrong_is_said_before_the_usage_text() {
        for (line, words) in [
            ("", "missing target URL"),
            ("--nope http://h/", "unknown flag"),
            ("--closedd http://h/", "unknown flag"),
            ("--clos http://h/", "unknown flag"),
            ("http://h/ -c", "an option is missing its value"),
            ("-c x http://h/", "expected a number"),
            ("-c 0 http://h/", "connections (-c) must be greater than 0"),
            ("-t 0 http://h/", "threads (-t) must be greater than 0"),
            ("-t 65 http://h/", "threads (-t) exceeds the maximum"),
            ("-d abc http://h/", "invalid duration"),
            (
                "--interval 0 http://h/",
                "--interval must be greater than 0",
            ),
            ("-R 0 http://h/", "rate (-R) must be greater than 0"),
            ("-R 5:0 http://h/", "rate (-R) must be greater than 0"),
            ("-H x http://h/", "invalid header"),
            ("--format xml http://h/", "invalid --format"),
            ("--max-error-rate 2 http://h/", "expected a number"),
            (
                "--closed -R 1:2 http://h/",
                "--closed is incompatible with a ramp",
            ),
            (
                "--closed --deadline 1s http://h/",
                "--closed is incompatible with --deadline",
            ),
            (
                "--http2 --disable-keepalive http://h/",
                "--disable-keepalive is incompatible",
            ),
            ("-s 4 http://h/", "streams (-s) requires --http2 or --http3"),
            ("-s x.lua http://h/", "-s is --streams"),
            ("--http3 http://h/", "--http3 needs an https:// URL"),
            (
                "--http2 --http3 https://h/",
                "--http3 and --http2 are different transports",
            ),
            ("http://h/ more", "unexpected argument after the URL"),
            ("h:80/", "invalid URL"),
            ("ftp://h/", "invalid URL"),
        ] {
            let ending = parse(line).expect_err(line);
            assert_eq!((ending.code, &*ending.stdout), (2, ""), "{line}");
            assert!(
                ending.stderr.starts_with(&format!("zrk: {words}")),
                "{line}: {ending:?}"
            );
            assert!(ending.stderr.ends_with(USAGE), "{line}");
        }
    }

    #[test]
    fn help_and_version_end_well() {
        for (line, begin) in [("--version", "zrk 3.0.0 ["), ("-c 4 -h", "zrk - ")] {
            let ending = parse(line).expect_err(line);
            assert_eq!((ending.code, &*ending.stderr), (0, ""), "{line}");
            assert!(ending.stdout.starts_with(begin), "{ending:?}");
        }
    }
}
