//! The command line of ab.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_record::RequestLog;

use super::usage::{banner, usage};
use crate::Ending;
use crate::getopt::{self, Row, value};

/// Exit code of a command line that is wrong: EINVAL.
const EXIT_USAGE: u8 = 22;
/// Exit code of an option that is wrong by itself.
const EXIT_ERROR: u8 = 1;
/// What a time limit sets the number of requests to.
const TIMED_REQUESTS: u32 = 50_000;
/// Debian's; others have 20,000.
const CONCURRENCY_MAX: u32 = 200_000;
/// Progress is printed with more requests than this.
const PROGRESS_FROM: u32 = 150;
/// Progress is not printed more often than every so many requests.
const PROGRESS_LEAST: u32 = 100;
/// Brunt's own options; ab has none that are so long.
const REPORT: &str = "--brunt-report";
const OWN: &[Row] = &[value("", "brunt-report").in_full()];
const SHORT: &str = "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:";

/// The file whose content is the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyFile {
    /// Path of the file, as typed.
    pub path: PathBuf,
    /// Media type of the body.
    pub content_type: String,
}

/// The proxy that requests go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Name or address.
    pub host: String,
    /// Port; 0 where none is given.
    pub port: u16,
}

/// A user with a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Whether the proxy asks for the credentials, and not the server.
    pub is_proxys: bool,
    /// User and password with a colon between them, as typed.
    pub credentials: String,
}

/// Attributes of the elements of a table in HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Html {
    /// Attributes of the table.
    pub table: String,
    /// Attributes of the table's rows.
    pub row: String,
    /// Attributes of the table's cells.
    pub cell: String,
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requests in all.
    pub requests: u32,
    /// Requests at once.
    pub concurrency: NonZeroU32,
    /// Seconds, at most; absent without a limit.
    pub time_limit_s: Option<u32>,
    /// Longest time to a reply, seconds.
    pub timeout_s: u32,
    /// Local address.
    pub source: Option<String>,
    /// Method of the requests.
    pub method: String,
    /// What is sent with them.
    pub body: Option<BodyFile>,
    /// The value of `Cookie`.
    pub cookie: Option<String>,
    /// Users with their passwords, each a field of its own, as typed.
    pub users: Vec<User>,
    /// Header lines as typed.
    pub headers: Vec<String>,
    /// The proxy, if any.
    pub proxy: Option<Proxy>,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Whether replies of any length are good.
    pub any_length: bool,
    /// Whether the run goes on after a connection has failed.
    pub goes_on: bool,
    /// Whether percentiles are printed.
    pub percentiles: bool,
    /// Whether deviations, medians and warnings are printed.
    pub confidence: bool,
    /// Progress is printed every so many requests; absent: not at all.
    pub progress_every: Option<u32>,
    /// File for all percentiles.
    pub csv: Option<PathBuf>,
    /// File with a line for each request.
    pub gnuplot: Option<PathBuf>,
    /// The report is a table in HTML.
    pub html: Option<Html>,
    /// How much is printed of requests and replies: from 2 on their texts, from 3 on statuses.
    pub verbosity: u32,
    /// Version of TLS, as typed.
    pub tls_protocol: Option<String>,
    /// Cipher suites, as typed.
    pub cipher_suites: Option<String>,
    /// PEM file of the client's certificate and key.
    pub identity: Option<PathBuf>,
    /// Whether the server is asked for by its name.
    pub asks_by_name: bool,
    /// The target.
    pub url: Url,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
}

/// A URL's parts, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The whole of it.
    pub typed: String,
    /// Whether the URL is https.
    pub is_secure: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of `Host`: the port is named where it is not the scheme's own.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Url {
    /// Absent where ab calls it invalid.
    pub fn parse(typed: &str) -> Option<Self> {
        let without = |scheme| {
            typed
                .strip_prefix(scheme)
                .filter(|rest: &&str| !rest.is_empty())
        };
        let (is_secure, rest) = match (without("http://"), without("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, typed),
        };
        let (server, path) = rest.split_at(rest.find('/')?);
        let (host, port) = match server.strip_prefix('[') {
            Some(rest) => {
                let (host, behind) = rest.split_once(']')?;
                (host, behind.strip_prefix(':'))
            }
            None => match server.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (server, None),
            },
        };
        // A scope is not taken.
        if host.is_empty() || host.contains('%') {
            return None;
        }
        let own = if is_secure { 443 } else { 80 };
        let port = match port {
            Some(port) => port.parse().ok().filter(|&port| port > 0)?,
            None => own,
        };
        let bracketed = if server.starts_with('[') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let authority = if port == own {
            bracketed
        } else {
            format!("{bracketed}:{port}")
        };
        Some(Self {
            typed: typed.to_owned(),
            is_secure,
            host: host.to_owned(),
            port,
            authority,
            path: path.to_owned(),
        })
    }
}

/// The options as they are found, before they are looked at together.
#[derive(Debug)]
struct Typed<'a> {
    called: &'a str,
    requests: i64,
    concurrency: i64,
    tells_progress: bool,
    method: Option<String>,
    body: Option<PathBuf>,
    content_type: Option<String>,
    options: Options,
    /// What the C library says of them.
    warning: String,
}

impl Options {
    /// Whether requests and replies are printed.
    pub fn prints_replies(&self) -> bool {
        self.verbosity >= 2
    }

    /// Reads the words behind the program's name, which messages call `called`.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(called: &str, words: &[String]) -> Result<Self, Ending> {
        let mut typed = Typed::new(called);
        let mut words = words.iter();
        let mut operands = Vec::new();
        // Options end with the first word that is none.
        'words: while let Some(word) = words.next() {
            if let Some(attached) = word.strip_prefix(REPORT) {
                let path = match attached.strip_prefix('=') {
                    Some(path) => Some(path),
                    None => words.next().map(String::as_str),
                };
                typed.options.brunt_report = path.map(Into::into);
                continue;
            }
            let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
                operands.push(word);
                break;
            };
            if cluster.starts_with('-') {
                break;
            }
            let mut letters = cluster.chars();
            while let Some(letter) = letters.next() {
                let Some(takes) = takes_argument(letter) else {
                    // What is left is taken as it is.
                    typed.warning = format!("{}: illegal option -- {letter}\n", file_name(called));
                    break 'words;
                };
                if !takes {
                    typed.take(letter, "")?;
                    continue;
                }
                let attached = letters.as_str();
                let argument = if attached.is_empty() {
                    words.next().map(String::as_str)
                } else {
                    Some(attached)
                };
                let Some(argument) = argument else {
                    let program = file_name(called);
                    typed.warning = format!("{program}: option requires an argument -- {letter}\n");
                    break 'words;
                };
                typed.take(letter, argument)?;
                continue 'words;
            }
        }
        operands.extend(words);
        typed.finish(&operands)
    }
}

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(
        getopt::Options::new("", SHORT, OWN, words),
        &["A", "P", "C"],
    )
}

fn takes_argument(letter: char) -> Option<bool> {
    let at = SHORT.find(letter).filter(|_| letter != ':')?;
    Some(SHORT[at + letter.len_utf8()..].starts_with(':'))
}

fn file_name(called: &str) -> &str {
    called.rsplit('/').next().unwrap_or(called)
}

/// What C's `atoi` makes of it: the digits that it begins with, 0 without any.
fn leading_number(typed: &str) -> i64 {
    let typed = typed.trim_start();
    let unsigned = typed.trim_start_matches(['+', '-']);
    let digits = unsigned
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let number: i64 = unsigned[..digits]
        .parse()
        .unwrap_or(if digits > 0 { i64::MAX } else { 0 });
    let number = number.min(i32::MAX.into());
    if typed.starts_with('-') {
        -number
    } else {
        number
    }
}

impl<'a> Typed<'a> {
    fn new(called: &'a str) -> Self {
        Self {
            called,
            requests: 1,
            concurrency: 1,
            tells_progress: true,
            method: None,
            body: None,
            content_type: None,
            options: Options {
                requests: 1,
                concurrency: NonZeroU32::MIN,
                time_limit_s: None,
                timeout_s: 30,
                source: None,
                method: "GET".to_owned(),
                body: None,
                cookie: None,
                users: Vec::new(),
                headers: Vec::new(),
                proxy: None,
                keep_alive: false,
                any_length: false,
                goes_on: false,
                percentiles: true,
                confidence: true,
                progress_every: None,
                csv: None,
                gnuplot: None,
                html: None,
                verbosity: 0,
                tls_protocol: None,
                cipher_suites: None,
                identity: None,
                asks_by_name: true,
                url: Url {
                    typed: String::new(),
                    is_secure: false,
                    host: String::new(),
                    port: 0,
                    authority: String::new(),
                    path: String::new(),
                },
                brunt_report: None,
                warning: String::new(),
            },
            warning: String::new(),
        }
    }

    fn take(&mut self, letter: char, argument: &str) -> Result<(), Ending> {
        let options = &mut self.options;
        match letter {
            'n' => {
                self.requests = leading_number(argument);
                if self.requests <= 0 {
                    return Err(error("Invalid number of requests\n"));
                }
            }
            'c' => self.concurrency = leading_number(argument),
            't' => {
                let limit_s = u32::try_from(leading_number(argument)).unwrap_or(0);
                options.time_limit_s = (limit_s > 0).then_some(limit_s);
                self.requests = TIMED_REQUESTS.into();
            }
            's' => options.timeout_s = u32::try_from(leading_number(argument)).unwrap_or(u32::MAX),
            'B' => options.source = Some(argument.to_owned()),
            'i' => self.only_method("HEAD")?,
            'p' => {
                self.only_method("POST")?;
                self.body = Some(argument.into());
            }
            'u' => {
                self.only_method("PUT")?;
                self.body = Some(argument.into());
            }
            'm' => self.method = Some(argument.to_owned()),
            'T' => self.content_type = Some(argument.to_owned()),
            'C' => options.cookie = Some(argument.to_owned()),
            'A' | 'P' => options.users.push(User {
                is_proxys: letter == 'P',
                credentials: argument.trim_start().to_owned(),
            }),
            'H' => options.headers.push(argument.to_owned()),
            'X' => {
                let (host, port) = argument.split_once(':').unwrap_or((argument, "0"));
                options.proxy = Some(Proxy {
                    host: host.to_owned(),
                    port: u16::try_from(leading_number(port)).unwrap_or(0),
                });
            }
            'k' => options.keep_alive = true,
            'l' => options.any_length = true,
            'r' => options.goes_on = true,
            'd' => options.percentiles = false,
            'S' => options.confidence = false,
            'q' => self.tells_progress = false,
            'e' => options.csv = Some(argument.into()),
            'g' => options.gnuplot = Some(argument.into()),
            'w' => {
                self.html();
            }
            'x' => argument.clone_into(&mut self.html().table),
            'y' => argument.clone_into(&mut self.html().row),
            'z' => argument.clone_into(&mut self.html().cell),
            'v' => options.verbosity = u32::try_from(leading_number(argument)).unwrap_or(0),
            'f' => options.tls_protocol = Some(argument.to_owned()),
            'Z' => options.cipher_suites = Some(argument.to_owned()),
            'E' => options.identity = Some(argument.into()),
            'I' => options.asks_by_name = false,
            'h' => return Err(self.usage("")),
            'V' => {
                return Err(Ending {
                    stdout: banner(options.html.is_some()),
                    ..Ending::default()
                });
            }
            // Buffers are the kernel's to size.
            _ => {}
        }
        Ok(())
    }

    /// The report is a table, without further attributes.
    fn html(&mut self) -> &mut Html {
        self.options.html.get_or_insert_with(|| Html {
            table: String::new(),
            row: String::new(),
            cell: "bgcolor=white".to_owned(),
        })
    }

    fn only_method(&mut self, method: &str) -> Result<(), Ending> {
        if self.method.is_some() {
            return Err(error(&format!("Cannot mix {method} with other methods\n")));
        }
        self.method = Some(method.to_owned());
        Ok(())
    }

    /// The usage text behind `message`.
    fn usage(&self, message: &str) -> Ending {
        Ending {
            stdout: String::new(),
            stderr: format!("{}{message}{}", self.warning, usage(self.called)),
            code: EXIT_USAGE,
        }
    }

    fn finish(mut self, operands: &[&String]) -> Result<Options, Ending> {
        let called = self.called;
        let wrong = |message: &str| self.usage(&format!("{called}: {message}\n"));
        let [url] = operands else {
            return Err(wrong("wrong number of arguments"));
        };
        let Some(url) = Url::parse(url) else {
            return Err(wrong("invalid URL"));
        };
        let concurrency = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        if concurrency > CONCURRENCY_MAX {
            let message = format!("Invalid Concurrency [Range 0..{CONCURRENCY_MAX}]");
            return Err(wrong(&message));
        }
        let requests = u32::try_from(self.requests).unwrap_or(u32::MAX);
        if concurrency > requests {
            let message = "Cannot use concurrency level greater than total number of requests";
            return Err(wrong(message));
        }
        if u64::from(requests) > RequestLog::REQUESTS_MAX {
            let most = RequestLog::REQUESTS_MAX;
            let line = format!(
                "brunt: -n may be {most} at most, since ab's figures are made of every request (64 \
                 bytes each); give -n {most} or less, or `brunt -n {requests} -c {concurrency} \
                 URL`, which has no limit"
            );
            return Err(Ending::error(&line, EXIT_ERROR));
        }
        self.options.warning = self.warning;
        self.options.requests = requests;
        self.options.concurrency = NonZeroU32::new(concurrency).unwrap_or(NonZeroU32::MIN);
        self.options.url = url;
        self.options.progress_every = (self.tells_progress && requests > PROGRESS_FROM)
            .then(|| (requests / 10).max(PROGRESS_LEAST));
        let content_type = self.content_type.unwrap_or_else(|| "text/plain".to_owned());
        self.options.body = self.body.map(|path| BodyFile { path, content_type });
        if let Some(method) = self.method {
            self.options.method = method;
        }
        Ok(self.options)
    }
}

fn error(message: &str) -> Ending {
    Ending::error(message, EXIT_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn parse(line: &str) -> Result<Options, Ending> {
        let words = words(line);
        Options::parse("ab", &words)
    }

    #[test]
    fn options_are_taken_as_ab_takes_them() {
        let options = parse("-kn200 -c 4 -t 3 -q --brunt-report f h:81/a?b").expect("good");
        // A time limit sets the number when it is read.
        assert_eq!((options.requests, options.time_limit_s), (50_000, Some(3)));
        assert!(options.keep_alive && options.progress_every.is_none());
        assert_eq!(options.brunt_report, Some("f".into()));
        assert_eq!((options.url.port, &*options.url.authority), (81, "h:81"));
        let options = parse("-t 1 -n 500 https://h:443/").expect("good");
        assert_eq!((options.requests, options.progress_every), (500, Some(100)));
        assert_eq!(
            (options.url.is_secure, &*options.url.authority),
            (true, "h")
        );
        let options = parse("-n 3x -X p:8080 -i http://[::1]:81/").expect("good");
        assert_eq!((options.requests, &*options.method), (3, "HEAD"));
        assert_eq!(options.server(), ("p", 8080));
        assert_eq!(options.url.authority, "[::1]:81");
    }
}
