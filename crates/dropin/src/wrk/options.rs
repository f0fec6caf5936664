//! The command line of wrk and of wrk2: its URL, each part as typed, and the units of its numbers,
//! which the report has too.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_load::{Scheme, Target};
use brunt_record::WORKERS_MAX;

use crate::Ending;
use crate::ending::ensure;
use crate::getopt::*;
use crate::libraries::{at_least_1, digits};
use crate::request::{self, bracketed};

/// Whose command line it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// wrk: as many requests as replies allow.
    #[default]
    Wrk,
    /// wrk2: a planned rate.
    Wrk2,
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrkOptions {
    /// wrk2 also where wrk was called with one of its options.
    pub program: Program,
    /// Threads, each with its connections; not more than these.
    threads: u64,
    /// Connections, all threads together.
    connections: u64,
    /// Length of the run, seconds; above 0.
    pub duration_s: u64,
    /// Longest time to a reply, seconds.
    pub timeout_s: u64,
    /// Whether the distribution of latencies is printed.
    pub latency: bool,
    /// Whether that from the send is printed as well (wrk2).
    pub uncorrected_latency: bool,
    /// Whether a batch of pipelined requests has one latency; always so in wrk.
    pub batch_latency: bool,
    /// Requests per second, all threads together (wrk2).
    pub rate_per_s: u64,
    /// File of a Lua script.
    pub script: Option<PathBuf>,
    /// Header fields as typed.
    pub headers: Vec<String>,
    /// The target.
    pub url: Url,
    /// Arguments of the script: the URL as typed and the words behind it.
    pub arguments: Vec<String>,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// The version was asked for, once or more.
    version: String,
}

/// The options of both tools: wrk takes those of wrk2 as well.
pub fn table() -> Table<WrkOptions> {
    Style::GetoptLong.table(vec![
        amount("-c --connections", &METRIC, |o| &mut o.connections),
        amount("-d --duration", &TIME_S, |o| &mut o.duration_s),
        amount("-t --threads", &METRIC, |o| &mut o.threads),
        text("-s --script", |o| &mut o.script),
        field(text("-H --header", |o| &mut o.headers)),
        flag("-L --latency", |o| o.latency = true),
        flag("-U --u_latency", |o| {
            o.become_wrk2();
            o.latency = true;
            o.uncorrected_latency = true;
        }),
        flag("-B --batch_latency", |o| {
            o.become_wrk2();
            o.batch_latency = true;
        }),
        amount("-T --timeout", &TIME_S, |o| &mut o.timeout_s),
        end("--help", |o| o.usage(None)),
        flag("-v --version", |o| o.version.push_str(&version(o.program))),
        value("-R --rate", |o, typed| {
            o.become_wrk2();
            o.rate_per_s = o.amount(&METRIC, typed)?;
            Ok(())
        }),
        end("-r", |o| o.usage(None)),
        end("-?", |o| o.usage(None)),
        report(|o| &mut o.brunt_report),
    ])
}
/// An option with an amount.
fn amount(
    names: &'static str,
    units: &'static Units,
    place: Place<WrkOptions, u64>,
) -> Row<WrkOptions> {
    reads(names, move |o: &mut WrkOptions, typed| {
        *place(o) = o.amount(units, typed)?;
        Ok(())
    })
}

/// The last line of the usage text, which no blanks follow.
const TIMES: &str = "  Time arguments may include a time unit (2s, 2m, 2h)\n";
/// Columns to which the other lines are filled with blanks.
const WIDTH: usize = 54;

/// The version whose command line and text these are, and in brackets, where wrk names what makes
/// the load, brunt.
fn version(program: Program) -> String {
    let version = match program {
        Program::Wrk => "4.1.0",
        Program::Wrk2 => "4.0.0",
    };
    let brunt = env!("CARGO_PKG_VERSION");
    format!("wrk {version} [brunt {brunt}] Copyright (C) 2012 Will Glozer\n")
}

impl WrkOptions {
    /// Reads the words behind the program's name, which messages call `called`.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for: in wrk that is the same.
    pub fn parse(program: Program, called: &str, words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            program,
            threads: 2,
            connections: 10,
            duration_s: 10,
            timeout_s: 2,
            batch_latency: program == Program::Wrk,
            ..Self::default()
        };
        options.arguments = table()
            .read(words, &mut options)
            .map_err(|wrong| wrong.ending(called, |line| options.usage(Some(line))))?;
        options.check()?;
        Ok(options)
    }

    /// Threads, each with its connections.
    pub fn threads(&self) -> NonZeroU32 {
        at_least_1(self.threads)
    }

    /// Connections, all threads together.
    pub fn connections(&self) -> NonZeroU32 {
        at_least_1(self.connections)
    }

    /// An amount; where it is none, the usage text is printed.
    fn amount(&self, units: &Units, typed: &str) -> Result<u64, Ending> {
        units.read(typed).ok_or_else(|| self.usage(None))
    }

    fn become_wrk2(&mut self) {
        if self.program == Program::Wrk {
            self.program = Program::Wrk2;
            self.batch_latency = false;
        }
    }

    /// The usage text behind `message`.
    fn usage(&self, message: Option<&str>) -> Ending {
        let text = match self.program {
            Program::Wrk => include_str!("wrk.txt"),
            Program::Wrk2 => include_str!("wrk2.txt"),
        };
        let lines = text.lines().map(|line| format!("{line:<WIDTH$}\n"));
        let lines: String = lines.chain([TIMES.to_owned()]).collect();
        Ending {
            stdout: format!("{}{lines}", self.version),
            stderr: message.map_or_else(String::new, |message| format!("{message}\n")),
            code: 1,
        }
    }

    /// Looks at the options together, and at the URL.
    fn check(&mut self) -> Result<(), Ending> {
        let Some(url) = self.arguments.first() else {
            return Err(self.usage(None));
        };
        ensure(self.threads > 0 && self.duration_s > 0, || self.usage(None))?;
        let wrong = |message: &str| self.usage(Some(message));
        let parsed = Url::parse(url);
        let url = parsed.ok_or_else(|| wrong(&format!("invalid URL: {url}")))?;
        ensure(
            self.connections > 0 && self.connections >= self.threads,
            || wrong("number of connections must be >= threads"),
        )?;
        let has_rate = self.program == Program::Wrk || self.rate_per_s > 0;
        ensure(has_rate, || {
            wrong("Throughput MUST be specified with the --rate or -R option")
        })?;
        self.url = url;
        for (name, count, most) in [
            ("threads", self.threads, WORKERS_MAX),
            ("connections", self.connections, u32::MAX),
        ] {
            ensure(count <= most.into(), || {
                Ending::of_brunt(format!("{count} {name} are over {most}"))
            })?;
        }
        Ok(())
    }
}

/// A row of units, each so many times the one before.
#[derive(Debug)]
pub(super) struct Units {
    scale: u32,
    base: &'static str,
    /// The last one is read, and never printed.
    names: &'static [&'static str],
}

const TIME_US: Units = Units {
    scale: 1_000,
    base: "us",
    names: &["ms", "s"],
};
/// Times in seconds, such as `2m`.
pub(super) const TIME_S: Units = Units {
    scale: 60,
    base: "s",
    names: &["m", "h"],
};
/// Bytes without the `B` behind them, such as `17.76G`.
pub(super) const BINARY: Units = Units {
    scale: 1_024,
    base: "",
    names: &["K", "M", "G", "T", "P"],
};
/// Numbers, such as `56.20k`.
pub(super) const METRIC: Units = Units {
    scale: 1_000,
    base: "",
    names: &["k", "M", "G", "T", "P"],
};

/// The share of a unit from which on a number is printed in it.
const STEP: f64 = 0.85;

impl Units {
    /// `number` in the unit that fits it; 0 for what is no number.
    pub(super) fn print(&self, number: f64, decimals: usize) -> String {
        let mut amount = if number.is_finite() { number } else { 0.0 };
        let scale = f64::from(self.scale);
        let mut unit = self.base;
        let printed = &self.names[..self.names.len() - 1];
        for name in printed {
            if amount < scale * STEP {
                break;
            }
            amount /= scale;
            unit = name;
        }
        format!("{amount:.decimals$}{unit}")
    }

    /// A whole number with one of the units, in any case, or none. Absent where it is none.
    pub(super) fn read(&self, typed: &str) -> Option<u64> {
        let typed = typed.trim_start_matches(is_blank);
        let (is_negative, typed) = match typed.strip_prefix(['+', '-']) {
            Some(rest) => (typed.starts_with('-'), rest),
            None => (false, typed),
        };
        // As `sscanf` reads it.
        let (base, unit) = digits(typed);
        let base = base?;
        let is_negative = is_negative && base != u64::MAX;
        let base = if is_negative {
            base.wrapping_neg()
        } else {
            base
        };
        let unit = unit.trim_start_matches(is_blank);
        let end = unit.find(is_blank).unwrap_or(unit.len());
        let unit: String = unit[..end].chars().take(2).collect();
        if unit.is_empty() || unit.eq_ignore_ascii_case(self.base) {
            return Some(base);
        }
        let mut names = self.names.iter();
        let place = names.position(|name| name.eq_ignore_ascii_case(&unit))?;
        let scale = u64::from(self.scale).pow(place as u32 + 1);
        Some(base.saturating_mul(scale))
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Microseconds, such as `635.91us`.
pub(super) fn time_us(us: f64) -> String {
    if us >= 1_000_000.0 {
        TIME_S.print(us / 1_000_000.0, 2)
    } else {
        TIME_US.print(us, 2)
    }
}

/// `text` in a column of `width`, its digits under those of numbers with another unit: each of its
/// last two characters that is no letter leaves a blank behind it.
pub(super) fn column(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2);
    let blanks = 2 - letters.filter(char::is_ascii_alphabetic).count();
    let width = width - blanks;
    format!("{text:>width$.width$}{:blanks$}", "")
}

/// A URL's parts, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// The URL as typed.
    pub typed: String,
    /// The scheme: what stands before `://`.
    pub scheme: String,
    /// Name or address, without brackets.
    pub host: String,
    /// The port as typed; absent without one.
    pub port: Option<String>,
    /// All that follows host and port: path, query and fragment; `/` where there is no path.
    pub path: String,
}

impl Url {
    /// Absent where wrk calls it invalid.
    pub fn parse(typed: &str) -> Option<Self> {
        let (scheme, rest) = typed.split_once("://")?;
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
        if !is_scheme || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let server_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (server, behind) = rest.split_at(server_end);
        let server = match server.rsplit_once('@') {
            Some((user, _)) if user.contains('@') => return None,
            Some((_, server)) => server,
            None => server,
        };
        let (host, port) = host_and_port(server)?;
        let path = if behind.starts_with('/') { behind } else { "/" };
        Some(Self {
            typed: typed.to_owned(),
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port: port.map(str::to_owned),
            path: path.to_owned(),
        })
    }

    /// The port, or the scheme that stands for it: as in wrk's messages.
    pub fn service(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }

    /// The value of the Host header field: a port is named where one was typed.
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        match &self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }

    /// The server. Absent where the scheme stands for no port that is known.
    pub(crate) fn target(&self) -> Option<Target> {
        let is_secure = self.scheme.eq_ignore_ascii_case("https");
        let scheme = if is_secure {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let port = match &self.port {
            Some(port) => port.parse().ok()?,
            None if is_secure => 443,
            None if self.scheme.eq_ignore_ascii_case("http") => 80,
            None => return None,
        };
        // What may be secret before the host is not sent, and shown nowhere.
        let authority = self.authority();
        Some(Target {
            url: format!("{}://{authority}{}", self.scheme, self.path),
            host: self.host.clone(),
            port,
            ..request::target(scheme, &authority, &self.path)
        })
    }
}

fn host_and_port(server: &str) -> Option<(&str, Option<&str>)> {
    let (host, behind) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            let is_address = |byte: u8| byte.is_ascii_hexdigit() || b":.%".contains(&byte);
            let (address, zone) = host.split_once('%').unwrap_or((host, ""));
            if !address.bytes().all(is_address) || zone.contains(['[', ']', ':']) {
                return None;
            }
            (host, behind)
        }
        None => {
            let end = server.find(':').unwrap_or(server.len());
            let (host, behind) = server.split_at(end);
            // The underscore is a name's in container networks; wrk's parser lets it pass in some
            // builds alone.
            let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if !host.bytes().all(is_host) {
                return None;
            }
            (host, behind)
        }
    };
    if host.is_empty() {
        return None;
    }
    if behind.is_empty() {
        return Some((host, None));
    }
    let port = behind.strip_prefix(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && port.parse::<u16>().is_ok()).then_some((host, Some(port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn parse(program: Program, line: &str) -> Result<WrkOptions, Ending> {
        WrkOptions::parse(program, "wrk", &words(line))
    }

    fn good(program: Program, line: &str) -> WrkOptions {
        parse(program, line).expect(line)
    }

    #[test]
    fn defaults_are_wrks() {
        let options = good(Program::Wrk, "http://h/");
        assert_eq!(
            (options.threads().get(), options.connections().get()),
            (2, 10)
        );
        assert_eq!((options.duration_s, options.timeout_s), (10, 2));
        assert!(!options.latency && options.batch_latency);
        assert_eq!((options.rate_per_s, options.script), (0, None));
        assert_eq!(options.arguments, ["http://h/"]);
    }

    #[test]
    fn command_lines_in_use() {
        let options = good(Program::Wrk, "-t12 -c400 -d30s http://h:1/");
        assert_eq!(
            (
                options.threads().get(),
                options.connections().get(),
                options.duration_s
            ),
            (12, 400, 30)
        );
        let options = good(
            Program::Wrk,
            "--latency -d 15 -c 256 --timeout 8 -t 28 http://h/ -s pipeline.lua -- 16 -x",
        );
        assert_eq!((options.latency, options.timeout_s), (true, 8));
        assert_eq!(options.arguments, ["http://h/", "16", "-x"]);
        assert_eq!(options.script, Some("pipeline.lua".into()));
        let options = good(
            Program::Wrk,
            "-Lt4 --script=./x.lua --dur 2m -c1k http://h/ a b",
        );
        assert_eq!((options.threads().get(), options.duration_s), (4, 120));
        assert_eq!(options.connections().get(), 1_000);
        assert_eq!(options.arguments, ["http://h/", "a", "b"]);
        let line = "--rate=2k --connections=100 --threads=2 --duration=30 --u_latency http://h/";
        let options = good(Program::Wrk2, line);
        assert_eq!(options.rate_per_s, 2_000);
        assert!(options.latency && options.uncorrected_latency && !options.batch_latency);
        let options = good(Program::Wrk, "-H a --brunt-report run.json http://h/ -H b");
        assert_eq!(options.headers, ["a", "b"]);
        assert_eq!(options.brunt_report, Some("run.json".into()));
    }

    #[test]
    fn wrk_with_an_option_of_wrk2_is_wrk2() {
        for (line, program) in [
            ("http://h/", Program::Wrk),
            ("-R10 http://h/", Program::Wrk2),
            ("http://h/ --rate 10", Program::Wrk2),
            ("-R10 -B http://h/", Program::Wrk2),
            ("-UR10 http://h/", Program::Wrk2),
        ] {
            assert_eq!(good(Program::Wrk, line).program, program, "{line}");
        }
        assert!(good(Program::Wrk, "-R10 -B http://h/").batch_latency);
    }

    #[test]
    fn more_than_can_be_is_said() {
        for (line, words) in [
            ("-t 9999 -c 9999 http://h/", "9999 threads are over 4096"),
            ("-c 9G http://h/", "9000000000 connections are over"),
        ] {
            let ending = parse(Program::Wrk, line).expect_err(line);
            assert!(ending.stderr.contains(words), "{line}: {ending:?}");
        }
    }

    #[test]
    fn a_unit_begins_at_85_of_100_of_it() {
        for (us, printed) in [
            (0.0, "0.00us"),
            (635.91, "635.91us"),
            (849.994, "849.99us"),
            (849.999, "850.00us"),
            (850.0, "0.85ms"),
            (890.0, "0.89ms"),
            (12_920.0, "12.92ms"),
            (849_999.0, "850.00ms"),
            // There is no further unit until a whole second.
            (850_000.0, "850.00ms"),
            (999_999.0, "1000.00ms"),
            (1_000_000.0, "1.00s"),
            (1_030_000.0, "1.03s"),
            (50_990_000.0, "50.99s"),
            (51_000_000.0, "0.85m"),
            (60_000_000.0, "1.00m"),
            (3_600_000_000.0, "60.00m"),
            (36_000_000_000.0, "600.00m"),
        ] {
            assert_eq!(time_us(us), printed, "{us}");
        }
        for (seconds, printed) in [
            (1.0, "1s"),
            (30.0, "30s"),
            (50.0, "50s"),
            (51.0, "1m"),
            (60.0, "1m"),
            (89.0, "1m"),
            // To the even one.
            (90.0, "2m"),
            (100.0, "2m"),
            (150.0, "2m"),
            (3_600.0, "60m"),
        ] {
            assert_eq!(TIME_S.print(seconds, 0), printed, "{seconds}");
        }
        for (number, printed) in [
            (0.0, "0.00"),
            (98.7, "98.70"),
            (849.99, "849.99"),
            (850.0, "0.85k"),
            (56_200.0, "56.20k"),
            (849_990.0, "849.99k"),
            (850_000.0, "0.85M"),
            (850e6, "0.85G"),
            (850e9, "0.85T"),
            (850e12, "850.00T"),
        ] {
            assert_eq!(METRIC.print(number, 2), printed, "{number}");
        }
        for (bytes, printed) in [
            (294.0, "294.00"),
            (870.0, "870.00"),
            (870.4, "0.85K"),
            (871.0, "0.85K"),
            (14_500.0, "14.16K"),
            (891_289.0, "870.40K"),
            (891_290.0, "0.85M"),
            (19_069_654_466.0, "17.76G"),
            (1e18, "909494.70T"),
        ] {
            assert_eq!(BINARY.print(bytes, 2), printed, "{bytes}");
        }
    }

    #[test]
    fn what_is_no_number_is_0() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(
                time_us(number),
                if number > 0.0 { "0.00s" } else { "0.00us" }
            );
            assert_eq!(METRIC.print(number, 2), "0.00");
        }
    }

    #[test]
    fn columns_are_padded_as_letters_ask() {
        for (text, width, column_text) in [
            ("635.91us", 8, "635.91us"),
            ("20.37ms", 8, " 20.37ms"),
            ("1.03s", 8, "  1.03s "),
            ("98.70", 8, " 98.70  "),
            ("56.20k", 8, " 56.20k "),
            ("185.60us", 10, "  185.60us"),
            ("6.58", 10, "    6.58  "),
            ("101.00", 9, " 101.00  "),
            // Too wide: truncated, as in C.
            ("1000.00ms", 8, "1000.00m"),
        ] {
            assert_eq!(column(text, width), column_text, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_wrk_reads_them() {
        for (typed, number, time_s) in [
            ("12", Some(12), Some(12)),
            (" +12", Some(12), Some(12)),
            ("1k", Some(1_000), None),
            ("1K", Some(1_000), None),
            ("2M", Some(2_000_000), Some(120)),
            ("2m", Some(2_000_000), Some(120)),
            ("1g", Some(1_000_000_000), None),
            ("1P", Some(1_000_000_000_000_000), None),
            ("3s", None, Some(3)),
            ("3S", None, Some(3)),
            ("2h", None, Some(7_200)),
            ("2 h", None, Some(7_200)),
            ("2h more", None, Some(7_200)),
            ("500ms", None, None),
            ("1.5s", None, None),
            ("1.5", None, None),
            ("10x", None, None),
            ("", None, None),
            ("k", None, None),
            ("-", None, None),
            ("99999999999999999999", Some(u64::MAX), Some(u64::MAX)),
        ] {
            assert_eq!(METRIC.read(typed), number, "{typed}");
            assert_eq!(TIME_S.read(typed), time_s, "{typed}");
        }
        assert_eq!(METRIC.read("-1"), Some(u64::MAX));
    }

    #[test]
    fn parts_are_as_typed() {
        for (typed, host, service, authority, path) in [
            ("http://h", "h", "http", "h", "/"),
            ("http://h:80/", "h", "80", "h:80", "/"),
            (
                "http://h:8080/p/a?q=1#frag",
                "h",
                "8080",
                "h:8080",
                "/p/a?q=1#frag",
            ),
            ("http://h?x=1", "h", "http", "h", "/"),
            ("http://[::1]:81/a b", "", "", "", ""),
            ("http://[::1]:81/a%20b", "::1", "81", "[::1]:81", "/a%20b"),
            ("https://h/{a}|b", "h", "https", "h", "/{a}|b"),
            ("http://u:p@h:1/x", "h", "1", "h:1", "/x"),
            ("http://a_b-c.d/", "a_b-c.d", "http", "a_b-c.d", "/"),
        ] {
            let url = Url::parse(typed);
            if host.is_empty() {
                assert_eq!(url, None, "{typed}");
                continue;
            }
            let url = url.expect(typed);
            assert_eq!(
                (&*url.host, url.service(), &*url.authority(), &*url.path),
                (host, service, authority, path),
                "{typed}"
            );
        }
    }

    #[test]
    fn invalid_ones() {
        for typed in [
            "",
            "h",
            "localhost:8080/",
            "127.0.0.1:8080",
            "/path",
            "http:/h/",
            "http://",
            "http:///x",
            "http://h:/",
            "http://h:65536/",
            "http://h:8x/",
            "http://h#frag",
            "http://h x/",
            "http://[::1/",
            "http://ü/",
            "h2://h/",
            "http://a@b@c/",
        ] {
            assert_eq!(Url::parse(typed), None, "{typed}");
        }
    }

    #[test]
    fn the_target_is_what_the_url_says() {
        let target = |typed: &str| Url::parse(typed).expect(typed).target();
        let secret = target("http://u:hidden@h:80/?q").expect("it has a port");
        assert!(!secret.url.contains("hidden"));
        assert_eq!((secret.port, &*secret.authority), (80, "h:80"));
        assert_eq!(target("https://h/").map(|target| target.port), Some(443));
        assert_eq!(target("ftp://h/"), None);
        let other = target("ftp://h:21/").expect("it has a port");
        assert_eq!((other.port, other.scheme), (21, Scheme::Http));
    }
}
