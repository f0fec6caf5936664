//! The command line of httperf: its options, and their values as it reads them.

use std::path::PathBuf;

use crate::Ending;
use crate::ending::ensure;
use crate::getopt::*;
use crate::libraries::digits;

/// Exit code of options that do not go together.
const EXIT_CONFLICT: u8 = 255;
/// Why brunt does not print bytes, and what does.
const NO_BYTES: &str = "brunt prints no bytes of requests and replies; send one by `curl -v`";

/// The options.
pub fn table() -> Table<HttperfOptions> {
    Style::GetoptLong.table(vec![
        field(text("--add-header", |o| &mut o.add_header)),
        value("--burst-length", |o, typed| {
            o.burst = whole_of("burst-length", typed)?;
            ensure(o.burst > 0, || illegal("burst-length", "0"))
        }),
        typed("--client", |o| &mut o.client, client),
        flag("--close-with-reset", |o| o.close_with_reset = true),
        any("-d --debug", |o, _| {
            o.warning
                .push_str("httperf: sorry, need to recompile with -DDEBUG on...\n");
        }),
        value("--failure-status", |o, typed| {
            let status = u16::try_from(whole_of("failure status", typed)?).ok();
            o.failure_status = status.filter(|&status| status > 0);
            let wrong = || illegal("failure status", typed);
            ensure(o.failure_status.is_some(), wrong)
        }),
        end("-h --help", |_| Ending::printed(include_str!("usage.txt"))),
        flag("--hog", |o| o.hog = true),
        value("--http-version", |o, typed| {
            o.is_http_1_0 = typed == "1.0";
            let is_known = ["1.0", "1.1"].contains(&typed);
            ensure(is_known, || illegal("version number", typed))
        }),
        count("--max-connections", "max. # of connection", |o| {
            &mut o.connections_max
        }),
        count("--max-piped-calls", "max. # of piped calls", |o| {
            &mut o.piped_max
        }),
        text("--method", |o| &mut o.method),
        flag("--no-host-hdr", |o| o.no_host = true),
        count("--num-calls", "number of calls", |o| &mut o.calls),
        count("--num-conns", "number of connections", |o| {
            &mut o.connections
        }),
        value("--period", |o, typed| {
            o.period = period(typed)?;
            let is_fixed = matches!(o.period, Period::Fixed(_) | Period::Sequential);
            o.period_typed = (!is_fixed).then(|| typed.to_owned());
            Ok(())
        }),
        value("--port", |o, typed| {
            let port = u16::try_from(whole_of("port number", typed)?);
            o.port = Some(port.map_err(|_| illegal("port number", typed))?);
            Ok(())
        }),
        refused("--print-reply", NO_BYTES),
        refused("--print-request", NO_BYTES),
        value("--rate", |o, typed| {
            let rate = seconds_of("request rate", typed)?;
            o.period = fixed(if rate > 0.0 { 1.0 / rate } else { 0.0 });
            o.period_typed = None;
            Ok(())
        }),
        count("--recv-buffer", "receive buffer size", |o| {
            &mut o.receive_bytes
        }),
        flag("--retry-on-failure", |o| o.retries = true),
        count("--send-buffer", "send buffer size", |o| &mut o.send_bytes),
        text("--server", |o| &mut o.server),
        text("--server-name", |o| &mut o.server_name),
        flag("--session-cookies", |o| o.cookies = true),
        flag("--ssl", |o| o.is_secure = true),
        refused(
            "--ssl-ciphers",
            "brunt offers what rustls holds safe; leave it out",
        ),
        flag("--ssl-no-reuse", |o| o.no_resumption = true),
        seconds("--think-timeout", "think timeout value", |o| {
            &mut o.think_timeout_s
        }),
        seconds("--timeout", "connect timeout", |o| &mut o.timeout_s),
        shows(Shown::Path, text("--uri", |o| &mut o.uri)),
        flag("-v --verbose", |o| o.is_verbose = true),
        flag("-V --version", |o| o.tells_version = true),
        any("--wlog", |o, typed| {
            o.uris = Uris::List {
                wraps: typed.starts_with(['y', 'Y']),
                path: typed.split_once(',').map_or("", |(_, path)| path).into(),
            };
        }),
        value("--wsess", |o, typed| {
            let mut parameters = Parameters::of("wsess", typed);
            o.sessions = Some(Workload::Sessions {
                sessions: parameters.count("number of sessions (1st param)")?,
                calls: parameters.count("number of calls per session (2nd param)")?,
                think_s: parameters.seconds("user think time (3rd param)")?,
            });
            Ok(())
        }),
        value("--wsesslog", |o, typed| {
            let mut parameters = Parameters::of("wsesslog", typed);
            o.sessions = Some(Workload::Log {
                sessions: parameters.count("number of sessions (1st param)")?,
                think_s: parameters.seconds("user think time (2nd param)")?,
                path: parameters.path("session filename (3rd param)")?,
            });
            Ok(())
        }),
        value("--wset", |o, typed| {
            let mut parameters = Parameters::of("wset", typed);
            let requests = parameters.count("working set size (1st parameter)")?;
            let what = "target miss rate (2nd parameter)";
            ensure(typed.contains(','), || parameters.bad(what, typed))?;
            let step = parameters.seconds(what)?;
            o.uris = Uris::Set { requests, step };
            Ok(())
        }),
        report(|o| &mut o.brunt_report),
    ])
}

/// What each connection or session sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Connections, all alike.
    Calls {
        /// How many.
        connections: u32,
        /// Requests of each.
        calls: u32,
    },
    /// Sessions, all alike.
    Sessions {
        /// How many.
        sessions: u32,
        /// Requests of each.
        calls: u32,
        /// Between bursts, seconds.
        think_s: f64,
    },
    /// Sessions of a log.
    Log {
        /// How many.
        sessions: u32,
        /// Between bursts, where the log does not say, seconds.
        think_s: f64,
        /// The log.
        path: PathBuf,
    },
}

/// Which requests are sent, where the workload does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Uris {
    /// One URI, sent over and over.
    #[default]
    One,
    /// The URIs of a list.
    List {
        /// Whether the list begins again at its end.
        wraps: bool,
        /// The file of the list: URIs one after another, each with a zero byte behind it.
        path: PathBuf,
    },
    /// A working set.
    Set {
        /// How many.
        requests: u32,
        /// New ones per request.
        step: f64,
    },
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttperfOptions {
    /// What header lines end with, as typed.
    pub add_header: Option<String>,
    /// Requests that are sent at once.
    pub burst: u32,
    /// Which of how many clients this is.
    pub client: (u32, u32),
    /// Whether connections are to be reset at their end.
    pub close_with_reset: bool,
    /// A reply with this status fails its session.
    pub failure_status: Option<u16>,
    /// Whether all ports are to be used.
    pub hog: bool,
    /// HTTP/1.0 instead of HTTP/1.1.
    pub is_http_1_0: bool,
    /// Connections of a session, at most; 0 for as many as it takes.
    pub connections_max: u32,
    /// Requests in flight on one, at most; 0 for a whole burst.
    pub piped_max: u32,
    /// Method of the requests.
    pub method: Option<String>,
    /// Whether requests have no field `Host`.
    pub no_host: bool,
    /// When connections or sessions begin.
    pub period: Period,
    /// The value of `--period` as typed, where it was typed last and has no fixed time.
    pub period_typed: Option<String>,
    /// TCP port, where that is said.
    port: Option<u16>,
    /// Bytes of the receive buffer.
    pub receive_bytes: u32,
    /// Bytes of the send buffer.
    pub send_bytes: u32,
    /// Whether what failed by its status is sent again.
    pub retries: bool,
    /// Name or address.
    pub server: String,
    /// Value of `Host` in its place.
    pub server_name: Option<String>,
    /// Whether sessions have cookies.
    pub cookies: bool,
    /// Whether connections are over TLS.
    pub is_secure: bool,
    /// Whether TLS sessions are not resumed.
    pub no_resumption: bool,
    /// Beside the time-out, until a reply begins, seconds.
    pub think_timeout_s: f64,
    /// Longest time without progress, seconds; 0 for no limit.
    pub timeout_s: f64,
    /// Path of the requests, or what their paths begin with.
    pub uri: String,
    /// Whether more is printed.
    pub is_verbose: bool,
    /// How many connections there are, all alike.
    connections: u32,
    /// Requests of each of them.
    calls: u32,
    /// Sessions in their place.
    sessions: Option<Workload>,
    /// Which requests are sent.
    pub uris: Uris,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// Whether the version is printed.
    pub tells_version: bool,
    /// What is said about the options; whole lines, or empty.
    pub warning: String,
}

impl HttperfOptions {
    /// Reads the words behind the program's name, which messages call `called`.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help is asked for.
    pub fn parse(called: &str, words: &[String]) -> Result<Self, Ending> {
        let program = called.rsplit('/').next().unwrap_or(called);
        let mut options = Self {
            burst: 1,
            client: (0, 1),
            connections: 1,
            calls: 1,
            receive_bytes: 16 * 1024,
            send_bytes: 4 * 1024,
            server: "localhost".to_owned(),
            uri: "/".to_owned(),
            ..Self::default()
        };
        let found = table().read(words, &mut options);
        found.map_err(|wrong| wrong.ending(program, |line| Ending::error(line, EXIT_ERROR)))?;
        options.check()?;
        Ok(options)
    }

    /// TCP port.
    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(if self.is_secure { 443 } else { 80 })
    }

    /// What is sent.
    pub fn workload(&self) -> Workload {
        let (connections, calls) = (self.connections, self.calls);
        let sessions = self.sessions.clone();
        sessions.unwrap_or(Workload::Calls { connections, calls })
    }

    /// Whether the report is about sessions.
    pub(super) fn has_sessions(&self) -> bool {
        self.sessions.is_some()
    }

    /// How many connections or sessions there are.
    pub(super) fn sessions(&self) -> u32 {
        match self.sessions {
            Some(Workload::Sessions { sessions, .. } | Workload::Log { sessions, .. }) => sessions,
            _ => self.connections,
        }
    }

    /// Looks at the options together.
    fn check(&self) -> Result<(), Ending> {
        ensure(!self.cookies || self.has_sessions(), || {
            let text = "--session-cookie requires session-oriented workload (e.g., --wsess)";
            Ending::error(&format!("httperf: {text}"), EXIT_CONFLICT)
        })?;
        let calls = match self.workload() {
            Workload::Calls { calls, .. } | Workload::Sessions { calls, .. } => calls,
            Workload::Log { .. } => 1,
        };
        ensure(self.sessions() > 0 && calls > 0, || {
            Ending::of_brunt("nothing is asked for: give counts above 0")
        })?;
        let ahead = self.burst.saturating_sub(self.has_sessions().into());
        ensure(self.piped_max == 0 || self.piped_max >= ahead, || {
            Ending::of_brunt(
                "--max-piped-calls cannot be less than a burst has: a session has one connection \
                 at a time here",
            )
        })
    }
}

/// Exit code of a command line that is wrong.
pub(super) const EXIT_ERROR: u8 = 1;

/// When connections or sessions begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Period {
    /// Each begins when the one before is over.
    #[default]
    Sequential,
    /// Each begins so many seconds after the one before.
    Fixed(f64),
    /// Random times between beginnings, uniformly distributed between these two, seconds.
    Uniform(f64, f64),
    /// Random times between beginnings, exponentially distributed with this mean, seconds.
    Exponential(f64),
    /// Stages, one after another: the time between beginnings and the length of the stage, both in
    /// seconds.
    Steps(Vec<(f64, f64)>),
}

pub(super) fn error(text: &str) -> Ending {
    Ending::error(&format!("httperf: {text}"), EXIT_ERROR)
}

/// A whole number from 0 on, followed by nothing.
fn whole(typed: &str) -> Option<u32> {
    typed.trim_start().parse().ok()
}

/// A number of seconds or per second, followed by nothing.
fn real(typed: &str) -> Option<f64> {
    let value: f64 = typed.trim_start().parse().ok()?;
    value.is_finite().then_some(value)
}

/// What is wrong with the value of an option, which is this.
fn illegal(what: &str, typed: &str) -> Ending {
    error(&format!("illegal {what} {typed}"))
}

/// A whole number from 0 on.
fn whole_of(what: &str, typed: &str) -> Result<u32, Ending> {
    whole(typed).ok_or_else(|| illegal(what, typed))
}

/// Seconds, or a number per second; 0 for what is below.
fn seconds_of(what: &str, typed: &str) -> Result<f64, Ending> {
    let number = real(typed).map(|number| number.max(0.0));
    number.ok_or_else(|| illegal(what, typed))
}

/// An option with a whole number from 0 on, which is what messages call so.
fn count(
    name: &'static str,
    what: &'static str,
    place: Place<HttperfOptions, u32>,
) -> Row<HttperfOptions> {
    typed(name, place, move |typed| whole_of(what, typed))
}

/// An option with seconds, which are what messages call so.
fn seconds(
    name: &'static str,
    what: &'static str,
    place: Place<HttperfOptions, f64>,
) -> Row<HttperfOptions> {
    typed(name, place, move |typed| seconds_of(what, typed))
}

/// The parameters of an option, with commas between them.
pub(super) struct Parameters<'a> {
    option: &'static str,
    rest: &'a str,
}

impl<'a> Parameters<'a> {
    pub(super) fn of(option: &'static str, rest: &'a str) -> Self {
        Self { option, rest }
    }

    /// The next one, up to its comma, if `read` can read it.
    fn next<T>(&mut self, what: &str, read: impl Fn(&'a str) -> Option<T>) -> Result<T, Ending> {
        let (word, rest) = self.rest.split_once(',').unwrap_or((self.rest, ""));
        let value = read(word).filter(|_| !word.is_empty());
        let value = value.ok_or_else(|| self.bad(what, self.rest))?;
        self.rest = rest;
        Ok(value)
    }

    pub(super) fn bad(&self, what: &str, rest: &str) -> Ending {
        let option = self.option;
        error(&format!("bad {what} in --{option} arg (rest: `{rest}')"))
    }

    pub(super) fn count(&mut self, what: &str) -> Result<u32, Ending> {
        self.next(what, whole)
    }

    pub(super) fn seconds(&mut self, what: &str) -> Result<f64, Ending> {
        self.next(what, |word| real(word).map(|number| number.max(0.0)))
    }

    /// All that is left.
    pub(super) fn path(&self, what: &str) -> Result<PathBuf, Ending> {
        ensure(!self.rest.is_empty(), || self.bad(what, ""))?;
        Ok(self.rest.into())
    }
}

pub(super) fn client(typed: &str) -> Result<(u32, u32), Ending> {
    let number = |typed| {
        let (number, rest) = digits(typed);
        (number.and_then(|number| u32::try_from(number).ok()), rest)
    };
    let wrong = |what: &str, rest: &str| error(&format!("{what} (rest: `{rest}')"));
    let (client, rest) = number(typed);
    let client = client.ok_or_else(|| wrong("bad client id", typed))?;
    let clients = rest.strip_prefix('/');
    let clients = clients.ok_or_else(|| wrong("client id not followed by `/'", rest))?;
    let all = number(clients).0.filter(|&all| client < all);
    let all = all.ok_or_else(|| wrong("bad number of clients", clients))?;
    Ok((client, all))
}

fn fixed(period_s: f64) -> Period {
    of_mean(period_s, Period::Fixed)
}

/// A period of this mean; each begins when the one before is over where that is 0.
fn of_mean(mean_s: f64, period: impl Fn(f64) -> Period) -> Period {
    if mean_s > 0.0 {
        period(mean_s)
    } else {
        Period::Sequential
    }
}

fn period(typed: &str) -> Result<Period, Ending> {
    let mean = |typed: &str| {
        let seconds = real(typed).filter(|&seconds| seconds >= 0.0);
        seconds.ok_or_else(|| illegal("mean interarrival time", typed))
    };
    let letter = typed.chars().next().filter(char::is_ascii_alphabetic);
    let times = &typed[letter.map_or(0, char::len_utf8)..];
    match letter {
        Some('d') | None => Ok(fixed(mean(times)?)),
        Some('e') => Ok(of_mean(mean(times)?, Period::Exponential)),
        Some('u') => {
            let no_most = "minimum interarrival time not followed by `,MAX_IAT' (rest: `')";
            let (least, most) = times.split_once(',').ok_or_else(|| error(no_most))?;
            let least_s = mean(least)?;
            let most_s = real(most).filter(|&most_s| most_s >= least_s);
            let most_s = most_s.ok_or_else(|| illegal("request period", most))?;
            Ok(of_mean(most_s, |most_s| Period::Uniform(least_s, most_s)))
        }
        Some('v') => steps(times),
        Some(letter) => Err(illegal(
            &format!("interarrival distribution '{letter}' in"),
            typed,
        )),
    }
}

/// Times and lengths in turns; the last length may be left out.
fn steps(typed: &str) -> Result<Period, Ending> {
    let numbers: Option<Vec<f64>> = typed.split(',').map(real).collect();
    let numbers = numbers.filter(|numbers| numbers.iter().all(|&number| number > 0.0));
    let numbers = numbers.ok_or_else(|| illegal("mean interarrival time", typed))?;
    let steps = numbers.chunks(2).map(|step| match *step {
        [period_s, length_s] => (period_s, length_s),
        _ => (step[0], f64::INFINITY),
    });
    Ok(Period::Steps(steps.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn parse(line: &str) -> Result<HttperfOptions, Ending> {
        let words = words(line);
        HttperfOptions::parse("httperf", &words)
    }

    #[test]
    fn command_lines_are_read() {
        let calls = |connections, calls| Workload::Calls { connections, calls };
        let options = parse("--ser=h --por 81 --ur /x --num-con 10 --num-ca 3 --ra 20 --timeo 5");
        assert_eq!(options.expect_err("ambiguous").code, 1);
        let line = "--server=h --port 81 --uri /x --num-con 10 --num-ca 3 --ra 20 --timeo 5 word";
        let options = parse(line).expect("good");
        assert_eq!(
            (&*options.server, options.port(), &*options.uri),
            ("h", 81, "/x")
        );
        assert_eq!(options.workload(), calls(10, 3));
        assert_eq!(
            (options.period, options.timeout_s),
            (Period::Fixed(0.05), 5.0)
        );
        let options = parse("--ssl --hog --period=u1,3 -v").expect("good");
        assert_eq!(
            (options.port(), options.hog, options.is_verbose),
            (443, true, true)
        );
        assert_eq!(options.period, Period::Uniform(1.0, 3.0));
        let options = parse("--wsess=5,7,0.5 --burst-len 3 --session-cookie --num-calls 9");
        let sessions = Workload::Sessions {
            sessions: 5,
            calls: 7,
            think_s: 0.5,
        };
        assert_eq!(options.expect("good").workload(), sessions);
        let options = parse("--wsesslog=5,1,a,b.log --wset=10,0.5 --client 3/5").expect("good");
        let log = Workload::Log {
            sessions: 5,
            think_s: 1.0,
            path: "a,b.log".into(),
        };
        assert_eq!((options.workload(), options.client), (log, (3, 5)));
        let set = Uris::Set {
            requests: 10,
            step: 0.5,
        };
        assert_eq!(options.uris, set);
    }

    #[test]
    fn secrets_are_not_shown() {
        let words = [
            "--server=h",
            "--add-header",
            "Cookie: hush\\nX: hush\\n",
            "--uri=/x?hush",
        ];
        let words = words.map(str::to_owned);
        let expected = [
            "--server",
            "h",
            "--add-header",
            "Cookie: ...",
            "--uri",
            "/x?...",
        ];
        assert_eq!(table().shown(&words), expected);
    }

    #[test]
    fn periods() {
        for (typed, period) in [
            ("0", Period::Sequential),
            ("0.5", Period::Fixed(0.5)),
            ("d2", Period::Fixed(2.0)),
            ("e0.1", Period::Exponential(0.1)),
            (
                "v0.5,10,0.1",
                Period::Steps(vec![(0.5, 10.0), (0.1, f64::INFINITY)]),
            ),
        ] {
            assert_eq!(
                parse(&format!("--period {typed}")).expect(typed).period,
                period
            );
        }
    }
}
