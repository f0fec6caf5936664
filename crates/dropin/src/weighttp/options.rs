//! The command line of weighttp.

use std::path::PathBuf;

use brunt_record::RequestLog;

use crate::Ending;
use crate::getopt::*;
use crate::libraries::digits;
use crate::request::line_of;

const EXIT_ERROR: u8 = 1;
/// What `-s` sets the number of requests to, where there is none before it.
const CUTOFF_REQUESTS: u64 = 50_000;
const FIELDS_MAX: usize = 64;
// A blank ends its first line.
const EXAMPLE: &str =
    "example: \n  weighttp -n 500000 -c 100 -t 2 -K 64 http://localhost/index.html\n\n";

/// In whose form the report is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// JSON, of weighttp 0.5.
    #[default]
    Json,
    /// Text, of weighttp 0.4 and older.
    Text,
}

/// Where connections go in place of the host of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// A host, with its port.
    Host(String, u16),
    /// A Unix socket: a server, and no proxy.
    Socket(PathBuf),
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeighttpOptions {
    /// Requests in all.
    pub requests: u64,
    /// Threads.
    pub threads: u64,
    /// Connections.
    pub clients: u64,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Requests in flight per connection; 0 and 1 are the same.
    pub pipeline: u64,
    /// Whether the address is to be one of IPv6.
    pub is_ipv6: bool,
    /// Method of the requests; absent: the usual one.
    method: Option<String>,
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
    /// Where connections go, as typed.
    proxy_typed: Option<String>,
    /// Where connections go.
    pub proxy: Option<Proxy>,
    /// Local addresses, as typed.
    pub sources: Vec<String>,
    /// Seconds, at most.
    pub limit_s: Option<u64>,
    /// Seconds after which a request without a reply has failed.
    pub cutoff_s: u64,
    /// Whether percentiles are left out.
    pub no_percentiles: bool,
    /// Whether doubts about averages are left out.
    pub no_warnings: bool,
    /// File of percentiles; `-` for standard output.
    pub csv: Option<PathBuf>,
    /// Whether version and progress are left out.
    pub is_quiet: bool,
    /// The version is asked for.
    asks_version: bool,
    /// Help is asked for.
    asks_help: bool,
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

/// The options.
pub fn table() -> Table<WeighttpOptions> {
    Style::InFull.table(vec![
        flag("-h", |o| o.asks_help = true),
        flag("-V", |o| o.asks_version = true),
        takes(Takes::Nothing, value("-v", WeighttpOptions::ask_version)),
        // Taken for the sake of ab's users.
        flag("-r", |_| {}),
        flag("-l", |_| {}),
        flag("-i", |o| o.method = Some("HEAD".to_owned())),
        flag("-k", |o| o.keep_alive = true),
        flag("-q", |o| o.is_quiet = true),
        flag("-d", |o| o.no_percentiles = true),
        flag("-6", |o| o.is_ipv6 = true),
        flag("-F", |o| o.warning.push_str(&of_the_kernel('F'))),
        flag("-S", |o| o.no_warnings = true),
        any("-a", |o, typed| {
            o.limit_s = Some(leading_number(typed)).filter(|&s| s > 0);
        }),
        text("-m", |o| &mut o.method),
        any("-n", |o, typed| o.requests = leading_number(typed)),
        any("-t", |o, typed| o.threads = leading_number(typed)),
        any("-c", |o, typed| o.clients = leading_number(typed)),
        any("-b", |o, _| o.warning.push_str(&of_the_kernel('b'))),
        text("-e", |o| &mut o.csv),
        any("-p", |o, typed| o.send("POST", typed)),
        any("-s", |o, typed| {
            o.cutoff_s = leading_number(typed);
            if o.requests == 0 {
                o.requests = CUTOFF_REQUESTS;
            }
        }),
        any("-u", |o, typed| o.send("PUT", typed)),
        secret(text("-A", |o| &mut o.user)),
        any("-B", |o, typed| {
            o.sources = typed.split(',').map(str::to_owned).collect()
        }),
        secret(text("-C", |o| &mut o.cookies)),
        field(text("-H", |o| &mut o.headers)),
        any("-K", |o, typed| {
            o.pipeline = leading_number(typed);
            o.keep_alive |= o.pipeline >= 2;
        }),
        secret(text("-P", |o| &mut o.proxy_user)),
        text("-T", |o| &mut o.content_type),
        text("-X", |o| &mut o.proxy_typed),
        report(|o| &mut o.brunt_report),
        flag("--text", |o| o.form = Form::Text),
    ])
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

fn usage() -> String {
    [include_str!("usage.txt"), EXAMPLE].concat()
}

/// The lines that name the version.
pub(super) fn version(form: Form) -> &'static str {
    match form {
        Form::Json => "\nweighttp 0.5 - lightweight and simple webserver benchmarking tool\n\n",
        Form::Text => "weighttp 0.4 - a lightweight and simple webserver benchmarking tool\n\n",
    }
}

/// What C's `strtoul` makes of it: the digits that it begins with, 0 without any.
fn leading_number(typed: &str) -> u64 {
    let (number, _) = digits(typed.trim_start().trim_start_matches('+'));
    number.unwrap_or(0)
}

fn of_the_kernel(letter: char) -> String {
    format!("brunt: -{letter} has no effect: the kernel decides\n")
}

impl WeighttpOptions {
    /// Method of the requests.
    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("GET")
    }

    /// Reads the words behind the program's name, in this form unless they ask for another.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for.
    pub fn parse(form: Form, words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            form,
            threads: 1,
            clients: 1,
            cutoff_s: 4,
            ..Self::default()
        };
        let operands = table().read(words, &mut options).map_err(|found| {
            let message = match found {
                Wrong::Ends(ending) => return ending,
                Wrong::NoOption(option) => format!("unknown option: {option}"),
                Wrong::NoArgument(option) => format!("option requires an argument: {option}"),
                Wrong::Name(line) | Wrong::Refused(line) => format!("weighttp: {line}"),
            };
            wrong(form, true, &message)
        })?;
        if options.asks_help || options.asks_version {
            let help = options.asks_help.then(usage).unwrap_or_default();
            let text = format!("{}{help}", version(options.form));
            return Err(Ending::printed(&text));
        }
        let checked = options.check(&operands);
        checked.map_err(|message| wrong(options.form, options.is_quiet, &message))?;
        Ok(options)
    }

    /// `-v`, which version 0.5 has no longer.
    fn ask_version(&mut self, _: &str) -> Result<(), Ending> {
        self.asks_version = true;
        match self.form {
            Form::Json => Err(wrong(Form::Json, true, "unknown option: -v")),
            Form::Text => Ok(()),
        }
    }

    /// A request with the content of a file.
    fn send(&mut self, method: &str, path: &str) {
        self.body = Some(path.into());
        self.method = Some(method.to_owned());
    }

    /// Looks at the options together, and at the URL.
    fn check(&mut self, operands: &[String]) -> Result<(), String> {
        let [url] = operands else {
            let is_missing = operands.is_empty();
            let message = if is_missing {
                "missing URI argument"
            } else {
                "too many arguments"
            };
            return Err(message.to_owned());
        };
        self.url.clone_from(url);
        let (requests, threads, clients) = (self.requests, self.threads, self.clients);
        let rules = [
            (requests > 0, "num of requests has to be > 0"),
            (threads > 0, "thread count has to be > 0"),
            (threads <= requests, "thread_count > req_count"),
            (clients > 0, "num of concurrent clients has to be > 0"),
            (clients <= requests, "concur_count > req_count"),
            (threads <= clients, "thread_count > concur_count"),
            (self.headers.len() <= FIELDS_MAX, "too many headers"),
            (self.cookies.len() <= FIELDS_MAX, "too many cookies"),
        ];
        if let Some((_, message)) = rules.iter().find(|(is_kept, _)| !is_kept) {
            return Err((*message).to_owned());
        }
        if requests > RequestLog::REQUESTS_MAX {
            return Err(format!(
                "-n may be {} at most, since the figures are made of every request; `brunt -n` \
                 has no limit",
                RequestLog::REQUESTS_MAX
            ));
        }
        self.take_url()?;
        self.check_headers()?;
        self.take_proxy()
    }

    fn take_proxy(&mut self) -> Result<(), String> {
        self.proxy = match &self.proxy_typed {
            Some(path) if path.starts_with('/') => Some(Proxy::Socket(path.into())),
            Some(typed) => {
                let (host, port) = typed.rsplit_once(':').unwrap_or((typed, "80"));
                let port = port.parse().ok().filter(|&port| port > 0);
                let port = port.ok_or_else(|| format!("could not parse -X proxy: {typed}"))?;
                Some(Proxy::Host(host.to_owned(), port))
            }
            None => None,
        };
        Ok(())
    }

    fn take_url(&mut self) -> Result<(), &'static str> {
        let rest = self.url.strip_prefix("http://").unwrap_or(&self.url);
        if rest.starts_with("https://") {
            return Err("no ssl support yet");
        }
        let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = server.rsplit_once(':').unwrap_or((server, "80"));
        let port = port.parse().ok().filter(|&port| port > 0);
        let port = port.ok_or("could not parse URI")?;
        (self.host, self.port, self.path) = (host.to_owned(), port, path.to_owned());
        Ok(())
    }

    /// The header line of this name, in lower case with its colon.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        line_of(&self.headers, name)
    }

    fn check_headers(&self) -> Result<(), &'static str> {
        let has = |name| self.header(name).is_some();
        let is_host = |line: &&String| line.to_ascii_lowercase().starts_with("host:");
        let is_coded = has("transfer-encoding:");
        Err(if has("connection:") {
            "Connection request header not allowed; use -k param to enable keep-alive"
        } else if self.headers.iter().filter(is_host).count() > 1 {
            "duplicate Host header"
        } else if self.body.is_some() && is_coded && has("content-length:") {
            "Content-Length must be omitted if Transfer-Encoding provided"
        } else if self.content_type.is_some() && has("content-type:") {
            "Content-Type duplicated in -H and -T params"
        } else {
            return Ok(());
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn parse(line: &str) -> Result<WeighttpOptions, Ending> {
        let words = words(line);
        WeighttpOptions::parse(Form::Json, &words)
    }

    #[test]
    fn options_are_taken_as_weighttp_takes_them() {
        let options = parse("-n10 -c 4 -t2 -K 8 -q http://h:81/a?b -e - --text").expect("good");
        assert_eq!((options.requests, options.clients), (10, 4));
        assert!(options.keep_alive && options.is_quiet && options.form == Form::Text);
        assert_eq!(
            (&*options.host, options.port, &*options.path),
            ("h", 81, "/a?b")
        );
        let options = parse("-s 9 h -X p:3128 -T a/b -p f").expect("good");
        assert_eq!((options.requests, options.cutoff_s), (50_000, 9));
        assert_eq!(options.proxy, Some(Proxy::Host("p".to_owned(), 3128)));
        assert_eq!((options.method(), &*options.path), ("POST", ""));
        let options = parse("-n 1 -X /run/s -i h/").expect("good");
        assert_eq!(options.proxy, Some(Proxy::Socket("/run/s".into())));
        assert_eq!(options.method(), "HEAD");
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
