//! The command line of weighttp.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_record::RequestLog;

use super::form::Form;
use super::usage::{usage, version};
use crate::Ending;
use crate::getopt::{self, Row, flag, value};

const SHORT: &str = "hVvikqdlr6FSa:m:n:t:c:b:e:p:s:u:A:B:C:H:K:P:T:X:";
const BRUNTS: &[Row] = &[
    value("", "brunt-report").in_full(),
    flag("", "text").in_full(),
];
const EXIT_ERROR: u8 = 1;
/// What `-s` sets the number of requests to, where there is none before it.
const CUTOFF_REQUESTS: u64 = 50_000;
const FIELDS_MAX: usize = 64;
const PORT: u16 = 80;

/// Where connections go in place of the host of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// A host, with its port.
    Host(String, u16),
    /// A Unix socket: a server, and no proxy.
    Socket(PathBuf),
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requests in all.
    pub requests: u64,
    /// Threads.
    pub threads: NonZeroU32,
    /// Connections.
    pub clients: NonZeroU32,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Requests in flight per connection.
    pub pipeline: NonZeroU32,
    /// Whether the address is to be one of IPv6.
    pub is_ipv6: bool,
    /// Method.
    pub method: String,
    /// Header lines as typed.
    pub headers: Vec<String>,
    /// Values of `Cookie`.
    pub cookies: Vec<String>,
    /// File of the body.
    pub body: Option<PathBuf>,
    /// Media type of the body, where one is given.
    pub content_type: Option<String>,
    /// User and password for the server.
    pub user: Option<String>,
    /// User and password for the proxy.
    pub proxy_user: Option<String>,
    /// Where connections go.
    pub proxy: Option<Proxy>,
    /// Local addresses, as typed.
    pub sources: Vec<String>,
    /// Seconds, at most.
    pub limit_s: Option<u64>,
    /// Seconds after which a request without a reply has failed.
    pub cutoff_s: u64,
    /// Whether all percentiles are printed.
    pub percentiles: bool,
    /// Whether doubts about averages are printed.
    pub warnings: bool,
    /// File of percentiles; `-` for standard output.
    pub csv: Option<PathBuf>,
    /// Whether version and progress are left out.
    pub is_quiet: bool,
    /// The URL, as typed.
    pub url: String,
    /// Host of the URL.
    pub host: String,
    /// Port of the URL.
    pub port: u16,
    /// Path of the URL with query; empty where there is none.
    pub path: String,
    /// Form of the report.
    pub form: Form,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
}

/// Something is wrong with a command line: what is printed, and the exit code.
pub(super) fn wrong(form: Form, is_quiet: bool, message: &str) -> Ending {
    let before = if is_quiet { "" } else { version(form) };
    Ending {
        stdout: format!("{before}{}{}", version(form), usage()),
        stderr: format!("\nerror: {message}\n\n"),
        code: EXIT_ERROR,
    }
}

/// What C's `strtoul` makes of it: the digits that it begins with, 0 without any.
fn leading_number(typed: &str) -> u64 {
    let typed = typed.trim_start().trim_start_matches('+');
    let end = typed.find(|letter: char| !letter.is_ascii_digit());
    let digits = &typed[..end.unwrap_or(typed.len())];
    digits
        .parse()
        .unwrap_or(if digits.is_empty() { 0 } else { u64::MAX })
}

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(
        getopt::Options::new("", SHORT, BRUNTS, words),
        &["A", "P", "C"],
    )
}

impl Options {
    /// Reads the words behind the program's name, in this form unless they ask for another.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(form: Form, words: &[String]) -> Result<Self, Ending> {
        let mut options = Self::empty(form);
        let mut method = None;
        let mut proxy = None;
        let mut shown = None;
        let (mut threads, mut clients, mut pipeline) = (1, 1, 0);
        let mut found = getopt::Options::new("weighttp", SHORT, BRUNTS, words);
        while let Some(item) = found.next() {
            let (name, argument) = match item {
                Ok((name, argument)) => (name, argument.unwrap_or_default()),
                Err(unreadable) => {
                    let message = unreadable.line();
                    let letter = message.trim_end_matches('\'').chars().next_back();
                    let letter = letter.unwrap_or('?');
                    let message = if message.contains("requires an argument") {
                        format!("option requires an argument: -{letter}")
                    } else {
                        format!("unknown option: -{letter}")
                    };
                    return Err(wrong(form, true, &message));
                }
            };
            match name {
                "brunt-report" => options.brunt_report = Some(argument.into()),
                "text" => options.form = Form::Text,
                "v" if options.form == Form::Json => {
                    return Err(wrong(form, true, "unknown option: -v"));
                }
                "V" | "v" => shown = shown.max(Some(0)),
                "h" => shown = Some(1),
                "n" => options.requests = leading_number(&argument),
                "t" => threads = leading_number(&argument),
                "c" => clients = leading_number(&argument),
                "k" => options.keep_alive = true,
                "K" => {
                    pipeline = leading_number(&argument);
                    options.keep_alive |= pipeline >= 2;
                }
                "6" => options.is_ipv6 = true,
                "i" => method = Some("HEAD".to_owned()),
                "m" => method = Some(argument),
                "p" | "u" => {
                    options.body = Some(argument.into());
                    method = Some(if name == "p" { "POST" } else { "PUT" }.to_owned());
                }
                "T" => options.content_type = Some(argument),
                "A" => options.user = Some(argument),
                "P" => options.proxy_user = Some(argument),
                "H" => options.headers.push(argument),
                "C" => options.cookies.push(argument),
                "B" => options.sources = argument.split(',').map(str::to_owned).collect(),
                "X" => proxy = Some(argument),
                "a" => {
                    options.limit_s =
                        Some(leading_number(&argument)).filter(|&limit_s| limit_s > 0);
                }
                "s" => {
                    options.cutoff_s = leading_number(&argument);
                    if options.requests == 0 {
                        options.requests = CUTOFF_REQUESTS;
                    }
                }
                "d" => options.percentiles = false,
                "S" => options.warnings = false,
                "q" => options.is_quiet = true,
                "e" => options.csv = Some(argument.into()),
                "b" | "F" => {
                    let line = format!("brunt: -{name} has no effect: the kernel decides\n");
                    options.warning.push_str(&line);
                }
                // Taken for the sake of ab's users.
                _ => {}
            }
        }
        let operands = found.operands();
        let form = options.form;
        let is_quiet = options.is_quiet;
        if let Some(level) = shown {
            let help = if level > 0 { usage() } else { String::new() };
            return Err(Ending {
                stdout: format!("{}{help}", version(form)),
                ..Ending::default()
            });
        }
        let wrong = |message: &str| wrong(form, is_quiet, message);
        let [url] = &operands[..] else {
            return Err(wrong(match operands.len() {
                0 => "missing URI argument",
                _ => "too many arguments",
            }));
        };
        options.url.clone_from(url);
        for (is_wrong, message) in [
            (options.requests == 0, "num of requests has to be > 0"),
            (threads == 0, "thread count has to be > 0"),
            (threads > options.requests, "thread_count > req_count"),
            (clients == 0, "num of concurrent clients has to be > 0"),
            (clients > options.requests, "concur_count > req_count"),
            (threads > clients, "thread_count > concur_count"),
            (options.headers.len() > FIELDS_MAX, "too many headers"),
            (options.cookies.len() > FIELDS_MAX, "too many cookies"),
        ] {
            if is_wrong {
                return Err(wrong(message));
            }
        }
        if options.requests > RequestLog::REQUESTS_MAX {
            return Err(wrong(&format!(
                "-n may be {} at most, since the figures are made of every request; `brunt -n` \
                 has no limit",
                RequestLog::REQUESTS_MAX
            )));
        }
        let count = |number: u64| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
        };
        (options.threads, options.clients) = (count(threads), count(clients));
        options.pipeline = count(pipeline);
        options.method = method.unwrap_or_else(|| "GET".to_owned());
        options.take_url().map_err(wrong)?;
        options.check_headers().map_err(wrong)?;
        options.proxy = match proxy {
            Some(path) if path.starts_with('/') => Some(Proxy::Socket(path.into())),
            Some(typed) => {
                let (host, port) = match typed.rsplit_once(':') {
                    Some((host, port)) => (host, port.parse().ok().filter(|&port| port > 0)),
                    None => (&*typed, Some(PORT)),
                };
                let message = format!("could not parse -X proxy: {typed}");
                let port = port.ok_or_else(|| wrong(&message))?;
                Some(Proxy::Host(host.to_owned(), port))
            }
            None => None,
        };
        Ok(options)
    }

    fn empty(form: Form) -> Self {
        Self {
            requests: 0,
            threads: NonZeroU32::MIN,
            clients: NonZeroU32::MIN,
            keep_alive: false,
            pipeline: NonZeroU32::MIN,
            is_ipv6: false,
            method: String::new(),
            headers: Vec::new(),
            cookies: Vec::new(),
            body: None,
            content_type: None,
            user: None,
            proxy_user: None,
            proxy: None,
            sources: Vec::new(),
            limit_s: None,
            cutoff_s: 4,
            percentiles: true,
            warnings: true,
            csv: None,
            is_quiet: false,
            url: String::new(),
            host: String::new(),
            port: PORT,
            path: String::new(),
            form,
            brunt_report: None,
            warning: String::new(),
        }
    }

    fn take_url(&mut self) -> Result<(), &'static str> {
        let rest = self.url.strip_prefix("http://").unwrap_or(&self.url);
        if rest.starts_with("https://") {
            return Err("no ssl support yet");
        }
        let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) => {
                let port = port.parse().ok().filter(|&port| port > 0);
                (host, port.ok_or("could not parse URI")?)
            }
            None => (server, PORT),
        };
        (self.host, self.port, self.path) = (host.to_owned(), port, path.to_owned());
        Ok(())
    }

    /// The header line of this name, in lower case with its colon.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter().map(String::as_str);
        headers.find(|line| {
            let start = line.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
        })
    }

    fn check_headers(&self) -> Result<(), &'static str> {
        if self.header("connection:").is_some() {
            return Err("Connection request header not allowed; use -k param to enable keep-alive");
        }
        let is_host = |line: &&String| line.to_ascii_lowercase().starts_with("host:");
        if self.headers.iter().filter(is_host).count() > 1 {
            return Err("duplicate Host header");
        }
        let is_coded = self.header("transfer-encoding:").is_some();
        if self.body.is_some() && is_coded && self.header("content-length:").is_some() {
            return Err("Content-Length must be omitted if Transfer-Encoding provided");
        }
        if self.content_type.is_some() && self.header("content-type:").is_some() {
            return Err("Content-Type duplicated in -H and -T params");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn parse(line: &str) -> Result<Options, Ending> {
        let words = words(line);
        Options::parse(Form::Json, &words)
    }

    #[test]
    fn options_are_taken_as_weighttp_takes_them() {
        let options = parse("-n10 -c 4 -t2 -K 8 -q http://h:81/a?b -e - --text").expect("good");
        assert_eq!((options.requests, options.clients.get()), (10, 4));
        assert!(options.keep_alive && options.is_quiet && options.form == Form::Text);
        assert_eq!(
            (&*options.host, options.port, &*options.path),
            ("h", 81, "/a?b")
        );
        let options = parse("-s 9 h -X p:3128 -T a/b -p f").expect("good");
        assert_eq!((options.requests, options.cutoff_s), (50_000, 9));
        assert_eq!(options.proxy, Some(Proxy::Host("p".to_owned(), 3128)));
        assert_eq!((&*options.method, &*options.path), ("POST", ""));
        let options = parse("-n 1 -X /run/s -i h/").expect("good");
        assert_eq!(options.proxy, Some(Proxy::Socket("/run/s".into())));
        assert_eq!(options.method, "HEAD");
    }

    #[test]
    fn what_is_wrong_ends_as_in_weighttp() {
        for (line, message) in [
            ("", "missing URI argument"),
            ("-n 1 a b", "too many arguments"),
            ("h/", "num of requests has to be > 0"),
            ("-n 2 -c 3 h/", "concur_count > req_count"),
            ("-n 2 -t 2 h/", "thread_count > concur_count"),
            ("-x h/", "unknown option: -x"),
            ("-v h/", "unknown option: -v"),
            ("h/ -n", "option requires an argument: -n"),
            ("-n 1 https://h/", "no ssl support yet"),
            ("-n 1 h:x/", "could not parse URI"),
            ("-n 1 -X p:x h/", "could not parse -X proxy: p:x"),
        ] {
            let ending = parse(line).expect_err(line);
            assert_eq!(
                (ending.code, ending.stderr),
                (1, format!("\nerror: {message}\n\n"))
            );
            assert!(ending.stdout.contains("weighttp <options> <URI>\n"));
        }
        for (line, has_help) in [("-V", false), ("-h", true), ("-V -h", true)] {
            let ending = parse(line).expect_err(line);
            assert_eq!(ending.stdout.contains("-n num"), has_help, "{line}");
            assert_eq!(ending.code, 0, "{line}");
        }
    }
}
