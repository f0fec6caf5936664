//! The command line of ab.

use std::path::PathBuf;

use brunt_record::RequestLog;

use crate::Ending;
use crate::ending::ensure;
use crate::getopt::*;
use crate::libraries::digits;
use crate::request::bracketed;

/// Exit code of a command line that is wrong: EINVAL.
const EXIT_USAGE: u8 = 22;
/// What has the figures as a page.
const PAGES: &str = "`brunt -o FILE.html URL` writes a page";
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

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbOptions {
    /// The name that the program was called by.
    called: String,
    /// Requests in all.
    pub requests: u32,
    /// Requests at once; above 0.
    pub concurrency: u32,
    /// Seconds, at most; absent without a limit.
    pub time_limit_s: Option<u32>,
    /// Longest time to a reply, seconds.
    pub timeout_s: u32,
    /// Local address.
    pub source: Option<String>,
    /// Method of the requests; absent: the usual one.
    method: Option<String>,
    /// File of the body.
    pub body: Option<PathBuf>,
    /// Media type of the body.
    pub content_type: String,
    /// The value of `Cookie`.
    pub cookie: Option<String>,
    /// Users with their passwords, each in a field of its own, by whose name it is.
    pub users: Vec<(&'static str, String)>,
    /// Header lines as typed.
    pub headers: Vec<String>,
    /// Host of the proxy, if any, and its port, which is 0 where none is given.
    pub proxy: Option<(String, u16)>,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Whether replies of any length are good.
    pub any_length: bool,
    /// Whether the run goes on after a connection has failed.
    pub goes_on: bool,
    /// Whether percentiles are left out.
    pub no_percentiles: bool,
    /// Whether deviations, medians and warnings are left out.
    pub no_confidence: bool,
    /// Whether progress is left out.
    is_quiet: bool,
    /// File for all percentiles.
    pub csv: Option<PathBuf>,
    /// File with a line for each request.
    pub gnuplot: Option<PathBuf>,
    /// How much is printed of requests and replies: from 2 on their texts, from 3 on statuses.
    pub verbosity: u32,
    /// Version of TLS, as typed.
    pub tls_protocol: Option<String>,
    /// Cipher suites, as typed.
    pub cipher_suites: Option<String>,
    /// PEM file of the client's certificate and key.
    pub identity: Option<PathBuf>,
    /// Whether the server is not asked for by its name.
    pub no_server_name: bool,
    /// The target.
    pub url: Url,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
}

/// The options.
pub fn table() -> Table<AbOptions> {
    Style::Letters.table(vec![
        value("-n", |o, typed| {
            o.requests = number(typed);
            let line = "Invalid number of requests\n";
            ensure(o.requests > 0, || Ending::error(line, EXIT_ERROR))
        }),
        any("-c", |o, typed| o.concurrency = at_most(typed)),
        any("-t", |o, typed| {
            o.time_limit_s = Some(number(typed)).filter(|&s| s > 0);
            o.requests = TIMED_REQUESTS;
        }),
        any("-s", |o, typed| o.timeout_s = at_most(typed)),
        // Buffers are the kernel's to size.
        any("-b", |_, _| {}),
        text("-B", |o| &mut o.source),
        takes(Takes::Nothing, value("-i", |o, _| o.only_method("HEAD"))),
        value("-p", |o, typed| o.send("POST", typed)),
        value("-u", |o, typed| o.send("PUT", typed)),
        text("-m", |o| &mut o.method),
        text("-T", |o| &mut o.content_type),
        secret(text("-C", |o| &mut o.cookie)),
        secret(user("-A", "Authorization")),
        secret(user("-P", "Proxy-Authorization")),
        field(text("-H", |o| &mut o.headers)),
        any("-X", |o, typed| {
            let (host, port) = typed.split_once(':').unwrap_or((typed, "0"));
            let port = u16::try_from(leading_number(port)).unwrap_or(0);
            o.proxy = Some((host.to_owned(), port));
        }),
        flag("-k", |o| o.keep_alive = true),
        flag("-l", |o| o.any_length = true),
        flag("-r", |o| o.goes_on = true),
        flag("-d", |o| o.no_percentiles = true),
        flag("-S", |o| o.no_confidence = true),
        flag("-q", |o| o.is_quiet = true),
        text("-e", |o| &mut o.csv),
        text("-g", |o| &mut o.gnuplot),
        refused("-w", PAGES),
        refused("-x", PAGES),
        refused("-y", PAGES),
        refused("-z", PAGES),
        any("-v", |o, typed| o.verbosity = number(typed)),
        text("-f", |o| &mut o.tls_protocol),
        text("-Z", |o| &mut o.cipher_suites),
        text("-E", |o| &mut o.identity),
        flag("-I", |o| o.no_server_name = true),
        end("-h", |o| o.usage("")),
        end("-V", |_| Ending::printed(BANNER)),
        report(|o| &mut o.brunt_report),
    ])
}

/// A user and a password, sent in this field.
fn user(names: &'static str, field: &'static str) -> Row<AbOptions> {
    reads(names, move |o: &mut AbOptions, typed| {
        o.users.push((field, typed.trim_start().to_owned()));
        Ok(())
    })
}

/// What C's `atoi` makes of it: the digits that it begins with, 0 without any.
fn leading_number(typed: &str) -> i64 {
    let typed = typed.trim_start();
    let (number, _) = digits(typed.trim_start_matches(['+', '-']));
    let number = i32::try_from(number.unwrap_or(0)).unwrap_or(i32::MAX);
    let sign = if typed.starts_with('-') { -1 } else { 1 };
    sign * i64::from(number)
}

/// The same; 0 for what is below.
fn number(typed: &str) -> u32 {
    u32::try_from(leading_number(typed)).unwrap_or(0)
}

/// The same; all that fits for what is below 0.
fn at_most(typed: &str) -> u32 {
    u32::try_from(leading_number(typed)).unwrap_or(u32::MAX)
}

/// The lines that stand before everything else.
pub(super) const BANNER: &str = "\
This is ApacheBench, Version 2.3 <$Revision$>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/
Licensed to The Apache Software Foundation, http://www.apache.org/

";

impl AbOptions {
    /// Whether requests and replies are printed.
    pub(super) fn prints_replies(&self) -> bool {
        self.verbosity >= 2
    }

    /// Progress is printed every so many requests; absent: not at all.
    pub fn progress_every(&self) -> Option<u32> {
        let is_told = !self.is_quiet && self.requests > PROGRESS_FROM;
        is_told.then(|| (self.requests / 10).max(PROGRESS_LEAST))
    }

    /// Method of the requests.
    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("GET")
    }

    /// Reads the words behind the program's name, which messages call `called`.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(called: &str, words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            called: called.to_owned(),
            requests: 1,
            concurrency: 1,
            timeout_s: 30,
            content_type: "text/plain".to_owned(),
            ..Self::default()
        };
        let (operands, wrong) = table().read_on(words, &mut options);
        // What is left behind a wrong option is taken as it is.
        let wrong = match wrong {
            Some(Wrong::Ends(ending)) => return Err(ending),
            Some(Wrong::Refused(line)) => return Err(Ending::error(&line, EXIT_USAGE)),
            Some(Wrong::NoOption(option)) => Some(("illegal option", option)),
            Some(Wrong::NoArgument(option)) => Some(("option requires an argument", option)),
            _ => None,
        };
        if let Some((what, option)) = wrong {
            let program = called.rsplit('/').next().unwrap_or(called);
            options.warning = format!("{program}: {what} -- {}\n", &option[1..]);
        }
        options.check(&operands)?;
        Ok(options)
    }

    /// Requests with the content of a file.
    fn send(&mut self, method: &str, file: &str) -> Result<(), Ending> {
        self.body = Some(file.into());
        self.only_method(method)
    }

    fn only_method(&mut self, method: &str) -> Result<(), Ending> {
        let line = format!("Cannot mix {method} with other methods\n");
        let earlier = self.method.replace(method.to_owned());
        ensure(earlier.is_none(), || Ending::error(&line, EXIT_ERROR))
    }

    /// The usage text behind `message`.
    fn usage(&self, message: &str) -> Ending {
        let (warning, called) = (&self.warning, &self.called);
        let options = include_str!("options.txt");
        Ending {
            stderr: format!(
                "{warning}{message}Usage: {called} [options] \
                 [http[s]://]hostname[:port]/path\n{options}"
            ),
            code: EXIT_USAGE,
            ..Ending::default()
        }
    }

    /// Looks at the options together, and at the URL.
    fn check(&mut self, operands: &[String]) -> Result<(), Ending> {
        let wrong = |message: &str| self.usage(&format!("{}: {message}\n", self.called));
        let [url] = operands else {
            return Err(wrong("wrong number of arguments"));
        };
        let url = Url::parse(url).ok_or_else(|| wrong("invalid URL"))?;
        let (requests, concurrency) = (self.requests, self.concurrency);
        ensure(concurrency <= CONCURRENCY_MAX, || {
            wrong(&format!("Invalid Concurrency [Range 0..{CONCURRENCY_MAX}]"))
        })?;
        ensure(concurrency <= requests, || {
            wrong("Cannot use concurrency level greater than total number of requests")
        })?;
        let most = RequestLog::REQUESTS_MAX;
        ensure(u64::from(requests) <= most, || {
            Ending::of_brunt(format!(
                "-n may be {most} at most, since ab's figures are made of every request (64 bytes \
                 each); give -n {most} or less, or `brunt -n {requests} -c {concurrency} URL`, \
                 which has no limit"
            ))
        })?;
        self.url = url;
        self.concurrency = concurrency.max(1);
        Ok(())
    }
}

/// A URL's parts, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
        let without = |scheme| typed.strip_prefix(scheme).filter(|rest| !rest.is_empty());
        let secure = without("https://");
        let rest = without("http://").or(secure).unwrap_or(typed);
        let (server, path) = rest.split_at(rest.find('/')?);
        let (host, port) = if let Some(bracketed) = server.strip_prefix('[') {
            let (host, behind) = bracketed.split_once(']')?;
            (host, behind.strip_prefix(':'))
        } else {
            let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
            (host, server[host.len()..].strip_prefix(':'))
        };
        // A scope is not taken.
        if host.is_empty() || host.contains('%') {
            return None;
        }
        let own = if secure.is_some() { 443 } else { 80 };
        let port = port.map_or(Some(own), |port| port.parse().ok());
        let port = port.filter(|&port| port > 0)?;
        let mut authority = bracketed(host);
        if port != own {
            authority += &format!(":{port}");
        }
        Some(Self {
            typed: typed.to_owned(),
            is_secure: secure.is_some(),
            host: host.to_owned(),
            port,
            authority,
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn parse(line: &str) -> Result<AbOptions, Ending> {
        let words = words(line);
        AbOptions::parse("ab", &words)
    }

    #[test]
    fn options_are_taken_as_ab_takes_them() {
        let options = parse("-kn200 -c 4 -t 3 -q --brunt-report f h:81/a?b").expect("good");
        // A time limit sets the number when it is read.
        assert_eq!((options.requests, options.time_limit_s), (50_000, Some(3)));
        assert!(options.keep_alive && options.progress_every().is_none());
        assert_eq!(options.brunt_report, Some("f".into()));
        assert_eq!((options.url.port, &*options.url.authority), (81, "h:81"));
        let options = parse("-t 1 -n 500 https://h:443/").expect("good");
        assert_eq!(
            (options.requests, options.progress_every()),
            (500, Some(100))
        );
        assert_eq!(
            (options.url.is_secure, &*options.url.authority),
            (true, "h")
        );
        let options = parse("-n 3x -X p:8080 -i http://[::1]:81/").expect("good");
        assert_eq!((options.requests, options.method()), (3, "HEAD"));
        assert_eq!(options.server(), ("p", 8080));
        assert_eq!(options.url.authority, "[::1]:81");
        let refused = parse("-w h/").expect_err("no table in HTML");
        let line = "brunt: -w is not supported: `brunt -o FILE.html URL` writes a page\n";
        assert_eq!((refused.code, &*refused.stderr), (22, line));
    }
}
