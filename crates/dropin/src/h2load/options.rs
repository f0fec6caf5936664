//! The command line of h2load.

use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::Ending;
use crate::getopt::{self, Long};

const SHORT: &str = "hn:c:t:m:i:f:w:W:H:p:d:r:D:T:N:B:v";
const LONG: &[Long] = &[
    long("requests", true, 'n'),
    long("clients", true, 'c'),
    long("threads", true, 't'),
    long("max-concurrent-streams", true, 'm'),
    long("input-file", true, 'i'),
    long("max-frame-size", true, 'f'),
    long("window-bits", true, 'w'),
    long("connection-window-bits", true, 'W'),
    long("header", true, 'H'),
    long("no-tls-proto", true, 'p'),
    long("data", true, 'd'),
    long("rate", true, 'r'),
    long("rate-period", true, 'P'),
    long("duration", true, 'D'),
    long("warm-up-time", true, 'U'),
    long("connection-active-timeout", true, 'T'),
    long("connection-inactivity-timeout", true, 'N'),
    long("base-uri", true, 'B'),
    long("npn-list", true, 'A'),
    long("h1", false, '1'),
    long("verbose", false, 'v'),
    long("version", false, 'V'),
    long("help", false, 'h'),
    long("ciphers", true, 'x'),
    long("tls13-ciphers", true, 'x'),
    long("timing-script-file", true, 'x'),
    long("header-table-size", true, 'x'),
    long("encoder-header-table-size", true, 'x'),
    long("log-file", true, 'x'),
    long("qlog-file-base", true, 'x'),
    long("connect-to", true, 'x'),
    long("rps", true, 'x'),
    long("groups", true, 'x'),
    long("no-udp-gso", false, 'x'),
    long("max-udp-payload-size", true, 'x'),
    long("ktls", false, 'x'),
    Long {
        is_peers: false,
        ..long("brunt-report", true, '\u{1}')
    },
    Long {
        is_peers: false,
        ..long("explain", false, '\u{2}')
    },
];
const SECOND_NS: u64 = 1_000_000_000;
const VERSION: &str = "h2load nghttp2/1.52.0\n";

const fn long(name: &'static str, takes: bool, id: char) -> Long {
    Long {
        name,
        takes,
        id,
        is_peers: true,
    }
}

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/2; over TLS HTTP/1.1 where the server has no HTTP/2.
    Two,
    /// HTTP/1.1.
    One,
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requests in all.
    pub requests: u64,
    /// Connections.
    pub clients: NonZeroU32,
    /// Threads.
    pub threads: NonZeroU32,
    /// Requests in flight per connection.
    pub streams: NonZeroU32,
    /// File with URIs in lines; `-` for standard input.
    pub input: Option<PathBuf>,
    /// Header fields, as typed.
    pub headers: Vec<String>,
    /// What is spoken in clear text.
    pub clear_text: Version,
    /// What is spoken over TLS.
    pub secured: Version,
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
    /// Time without a reply after which a request has failed, nanoseconds.
    pub timeout_ns: Option<u64>,
    /// What connections go to in place of the first URI.
    pub base: Option<String>,
    /// As typed.
    pub uris: Vec<String>,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// Whether the same is asked for in brunt's own options, and nothing is run.
    pub explains: bool,
}

pub(super) fn error(line: &str) -> Ending {
    Ending::error(line, 1)
}

fn number(option: char, typed: &str) -> Result<u64, Ending> {
    let parsed = typed.parse();
    parsed.map_err(|_| error(&format!("-{option}: bad option value: {typed}")))
}

/// An integer with a unit: h, m, s, ms; seconds without.
fn duration(option: &str, typed: &str) -> Result<u64, Ending> {
    let end = typed.find(|letter: char| !letter.is_ascii_digit());
    let (digits, unit) = typed.split_at(end.unwrap_or(typed.len()));
    let unit_ns = match unit {
        "h" => 3_600 * SECOND_NS,
        "m" => 60 * SECOND_NS,
        "" | "s" => SECOND_NS,
        "ms" => 1_000_000,
        _ => 0,
    };
    let ns = digits.parse::<u64>().ok();
    let ns = ns
        .and_then(|count| count.checked_mul(unit_ns))
        .filter(|&ns| ns > 0);
    ns.ok_or_else(|| error(&format!("{option}: value error {typed}")))
}

/// What to type in place of an option that brunt does not have in place of h2load.
fn instead(letter: char) -> &'static str {
    match letter {
        'f' | 'w' | 'W' => "receive windows are as large as HTTP/2 allows; leave it out",
        'T' => "a connection has no largest age; leave it out, or give -N",
        _ => "see `brunt --help` for what it is called there, or leave it out",
    }
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
        let mut options = Self {
            requests: 1,
            clients: NonZeroU32::MIN,
            threads: NonZeroU32::MIN,
            streams: NonZeroU32::MIN,
            input: None,
            headers: Vec::new(),
            clear_text: Version::Two,
            secured: Version::Two,
            data: None,
            rate: None,
            period_ns: SECOND_NS,
            duration_ns: None,
            warmup_ns: 0,
            timeout_ns: None,
            base: None,
            uris: Vec::new(),
            brunt_report: None,
            explains: false,
        };
        let mut found = getopt::Options::new("h2load", SHORT, LONG, words);
        while let Some(item) = found.next() {
            let (letter, argument) = item.map_err(|message| error(&message))?;
            options.take(letter, argument.unwrap_or_default())?;
        }
        options.uris = found.operands();
        options.check()?;
        Ok(options)
    }

    fn take(&mut self, letter: char, argument: String) -> Result<(), Ending> {
        let count = |what: &str| {
            let count = number(letter, &argument)?;
            let count = NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX));
            count.ok_or_else(|| {
                error(&format!(
                    "-{letter}: {what} must be strictly greater than 0."
                ))
            })
        };
        match letter {
            'n' => self.requests = number('n', &argument)?,
            'c' => self.clients = count("the number of clients")?,
            't' => self.threads = count("the number of threads")?,
            'm' => self.streams = count("the max concurrent streams")?,
            'i' => self.input = Some(argument.into()),
            'H' => self.headers.push(argument),
            'p' => {
                self.clear_text = match &*argument {
                    "h2c" => Version::Two,
                    "http/1.1" => Version::One,
                    other => return Err(error(&format!("-p: unsupported protocol {other}"))),
                }
            }
            'A' => {
                let first = argument.split(',').next();
                self.secured = match first {
                    Some("http/1.1") => Version::One,
                    _ => Version::Two,
                };
            }
            '1' => (self.clear_text, self.secured) = (Version::One, Version::One),
            'd' => self.data = Some(argument.into()),
            'r' => {
                let rate = number('r', &argument)?;
                self.rate = NonZeroU32::new(u32::try_from(rate).unwrap_or(u32::MAX));
            }
            'P' => self.period_ns = duration("--rate-period", &argument)?,
            'D' => self.duration_ns = Some(duration("-D", &argument)?),
            'U' => self.warmup_ns = duration("--warm-up-time", &argument)?,
            'N' => self.timeout_ns = Some(duration("-N", &argument)?),
            'B' => self.base = Some(argument),
            '\u{1}' => self.brunt_report = Some(argument.into()),
            '\u{2}' => self.explains = true,
            // Nothing is printed beside the report.
            'v' => {}
            'V' | 'h' => {
                let help = "\
Usage: h2load [OPTIONS]... [URI]...
brunt in place of h2load takes -n -c -t -m -i -H -p -d -r -D -N -B -v, --rate-period,
--warm-up-time, --npn-list, --h1, --version and --help, and also --explain and
--brunt-report FILE. They mean what they mean in h2load.
";
                return Err(Ending {
                    stdout: if letter == 'V' { VERSION } else { help }.to_owned(),
                    ..Ending::default()
                });
            }
            _ => {
                let name = match letter {
                    'x' => "this option of h2load".to_owned(),
                    letter => format!("-{letter}"),
                };
                let line = format!("brunt: {name}: {}", instead(letter));
                return Err(error(&line));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Ending> {
        let clients = self.clients.get();
        for (is_wrong, line) in [
            (
                self.uris.is_empty() && self.input.is_none(),
                "no URI or input file given",
            ),
            (
                self.rate.is_some() && self.duration_ns.is_some(),
                "-r, -D: they are mutually exclusive.",
            ),
            (
                self.duration_ns.is_none() && self.requests < u64::from(clients),
                "-n, -c: the number of requests must be greater than or equal to the clients.",
            ),
            (
                self.threads.get() > clients,
                "-c, -t: the number of clients must be greater than or equal to the number of \
                 threads.",
            ),
            (
                self.warmup_ns > 0 && self.duration_ns.is_none(),
                "brunt: --warm-up-time needs -D",
            ),
        ] {
            if is_wrong {
                return Err(error(line));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, Ending> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_are_taken_as_h2load_takes_them() {
        let options = parse("-n100 -c 4 --thr 2 -m10 -H a:b http://h/").expect("good");
        assert_eq!((options.requests, options.clients.get()), (100, 4));
        assert_eq!((options.threads.get(), options.streams.get()), (2, 10));
        assert_eq!(options.clear_text, Version::Two);
        let options = parse("--h1 -D 2m --warm-up-time=500ms -c 9 http://h/ u").expect("good");
        assert_eq!(options.duration_ns, Some(120 * SECOND_NS));
        assert_eq!((options.warmup_ns, options.uris.len()), (SECOND_NS / 2, 2));
        assert_eq!(
            (options.clear_text, options.secured),
            (Version::One, Version::One)
        );
        let options = parse("-p http/1.1 -r 5 --rate-period 2 -n 9 -i f").expect("good");
        assert_eq!(
            (options.clear_text, options.secured),
            (Version::One, Version::Two)
        );
        assert_eq!(options.period_ns, 2 * SECOND_NS);
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
            ("-D x u", "-D: value error x\n"),
            ("-p foo u", "-p: unsupported protocol foo\n"),
            ("-q u", "h2load: invalid option -- 'q'\n"),
            ("-w 20 u", "brunt: -w: receive windows are"),
            ("--rps 5 u", "brunt: this option of h2load: see"),
            ("--warm-up-time 1 u", "brunt: --warm-up-time needs -D\n"),
        ] {
            let ending = parse(line).expect_err(line);
            assert!(ending.stderr.starts_with(expected), "{line}: {ending:?}");
            assert_eq!(ending.code, 1, "{line}");
        }
        assert_eq!(parse("--version").expect_err("printed").stdout, VERSION);
    }
}
