//! Values of options: what was typed, or read from files, standard input and the environment, so
//! that secrets need not stand among the arguments, and checked.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv6Addr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brunt_experiment::Varied;
use brunt_io::files::{self, FileError};
use brunt_judge::{PAIRS_LEAST, PAIRS_MAX, SWEEP_ROUNDS_MAX, SweepAxis};
use brunt_load::{
    ReplyMatch, ServerCounter, Stage, Target, TargetError, ThinkSpread, ThinkTime, TlsVersion,
    Watch, units,
};
use brunt_proto::messages::{Pattern, unescape};
use brunt_record::WORKERS_MAX;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Numbers of a sequence have 12 digits.
const SEQUENCE_START_MAX: u64 = 100_000_000_000;

/// The stages of a schedule: a value of one option.
pub(crate) type Stages = Vec<Stage>;

/// The versions of TLS.
pub(crate) const TLS_VERSIONS: &[(&str, &str, TlsVersion)] = &[
    ("1.2", "TLS 1.2", TlsVersion::Tls12),
    ("1.3", "TLS 1.3", TlsVersion::Tls13),
];

/// A value by its name: each row has a name, what it means, and the value.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    rows: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = rows
        .iter()
        .map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|typed| {
        let row = rows.iter().find(|(name, ..)| *name == typed);
        row.map(|(.., value)| *value).ok_or("it is none of these")
    })
}

/// One of several parts of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberedPart {
    /// From 1.
    pub(crate) number: NonZeroU32,
    pub(crate) of: NonZeroU32,
}

/// A count of at least 1.
pub(crate) fn whole_u64(typed: &str) -> Result<NonZeroU64, String> {
    let count = units::count(typed).map_err(|error| error.to_string())?;
    NonZeroU64::new(count).ok_or_else(|| "it must be at least 1".to_owned())
}

/// A count of at least 1 that fits in 32 bits.
pub(crate) fn whole_u32(typed: &str) -> Result<NonZeroU32, String> {
    NonZeroU32::try_from(whole_u64(typed)?).map_err(|_| "it is too large".to_owned())
}

/// A duration longer than 0, nanoseconds.
pub(crate) fn positive_duration(typed: &str) -> Result<u64, String> {
    match units::duration_ns(typed) {
        Ok(0) => Err("it must be longer than 0".to_owned()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}

/// A think time, without its seed: a duration, and how it is spread.
pub(crate) fn think_time(typed: &str) -> Result<ThinkTime, String> {
    let (mean, spread) = match typed.split_once(',') {
        None => (typed, ThinkSpread::Fixed),
        Some((mean, "exp")) => (mean, ThinkSpread::Exponential),
        Some((mean, "uniform")) => (mean, ThinkSpread::Uniform),
        Some((mean, "fixed")) => (mean, ThinkSpread::Fixed),
        Some((_, other)) => {
            return Err(format!(
                "`{other}` is not a spread; write a time, or a time and exp or uniform, as in \
                 1s,exp"
            ));
        }
    };
    Ok(ThinkTime {
        mean_ns: units::duration_ns(mean).map_err(|error| error.to_string())?,
        spread,
        seed: 0,
    })
}

/// Name and value of a header field, absent where it is none.
pub(crate) fn field(typed: &str) -> Option<(String, String)> {
    let (name, value) = typed.split_once(':')?;
    (!name.trim().is_empty()).then(|| (name.to_owned(), value.trim().to_owned()))
}

/// A header field, or where to read some.
pub(crate) fn header(typed: &str) -> Result<HeaderFields, String> {
    if typed.starts_with('@') {
        return Source::of(typed).map(HeaderFields::From);
    }
    field(typed)
        .map(|(name, value)| HeaderFields::One(name, value))
        .ok_or_else(|| "a header field is written as `Name: value`, or @FILE".to_owned())
}

/// A number of workers: at most as many as the record of a run may hold.
pub(crate) fn workers(typed: &str) -> Result<NonZeroU32, String> {
    let workers = whole_u32(typed)?;
    if workers.get() > WORKERS_MAX {
        return Err(format!("there can be {WORKERS_MAX} at most"));
    }
    Ok(workers)
}

/// The first number of a sequence: with so many digits that there is room for those behind it.
pub(crate) fn sequence_start(typed: &str) -> Result<NonZeroU64, String> {
    let start = whole_u64(typed)?;
    if start.get() > SEQUENCE_START_MAX {
        return Err("it can be 100g at most".to_owned());
    }
    Ok(start)
}

/// A number of pairs of rounds that a comparison can be made of.
pub(crate) fn pairs(typed: &str) -> Result<NonZeroU32, String> {
    let pairs = whole_u32(typed)?;
    if !(PAIRS_LEAST..=PAIRS_MAX).contains(&(pairs.get() as usize)) {
        return Err(format!(
            "a comparison takes {PAIRS_LEAST} to {PAIRS_MAX} pairs"
        ));
    }
    Ok(pairs)
}

/// A number of rounds of each value of a sweep.
pub(crate) fn sweep_rounds(typed: &str) -> Result<NonZeroU32, String> {
    let rounds = whole_u32(typed)?;
    if rounds.get() > SWEEP_ROUNDS_MAX {
        return Err(format!("there can be {SWEEP_ROUNDS_MAX} rounds at most"));
    }
    Ok(rounds)
}

/// A request method.
pub(crate) fn method(typed: &str) -> Result<String, String> {
    if ["get", "head", "post", "put", "delete", "options", "patch"].contains(&typed) {
        let method = typed.to_ascii_uppercase();
        return Err(format!("case matters in methods; write {method}"));
    }
    Ok(typed.to_owned())
}

/// A server name for TLS.
pub(crate) fn server_name(typed: &str) -> Result<String, String> {
    let is_odd = |character: char| character.is_whitespace() || "/:@".contains(character);
    match typed {
        // An IPv6 address has colons of its own.
        _ if typed.parse::<Ipv6Addr>().is_ok() => Ok(typed.to_owned()),
        _ if typed.is_empty() || typed.contains(is_odd) => {
            Err("give a host name alone, without scheme, port and path".to_owned())
        }
        _ => Ok(typed.to_owned()),
    }
}

/// Which messages of a server answer one.
pub(crate) fn reply_match(typed: &str) -> Result<ReplyMatch, String> {
    match typed.split_once('=') {
        None if typed == "any" => Ok(ReplyMatch::Any),
        None if typed == "echo" => Ok(ReplyMatch::Echo),
        Some(("contains", text)) => {
            let bytes = unescape(text).map_err(|reason| reason.to_string())?;
            let pattern = Pattern::new(&bytes).map(ReplyMatch::Containing);
            pattern.ok_or_else(|| "contains= takes 1 to 1024 bytes".to_owned())
        }
        _ => Err("write any, echo or contains=TEXT".to_owned()),
    }
}

/// Reads one name of a list that commas separate.
pub(crate) fn listed_name(typed: &str) -> Result<String, String> {
    let name = typed.trim();
    if name.is_empty() {
        return Err("a name is missing; names stand with commas between".to_owned());
    }
    Ok(name.to_owned())
}

/// What of the server is to be watched: `auto`, `off`, digits for a process id, a name, the path of
/// a control group, or the name or id of a container.
pub(crate) fn watch(typed: &str) -> Result<Watch, String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric();
    match typed.split_once(':') {
        Some(("cgroup", path)) => {
            let path = path.strip_prefix("/sys/fs/cgroup").unwrap_or(path);
            let path = path.trim_end_matches('/');
            if path.starts_with('/') {
                return Ok(Watch::Cgroup(path.to_owned()));
            }
            Err(format!(
                "`{typed}` is not a control group; give its path, as in \
                 cgroup:/system.slice/a.service"
            ))
        }
        Some(("container", name)) => {
            let is_good = |character| is_plain(character) || "_.-".contains(character);
            if name.starts_with(is_plain) && name.chars().all(is_good) {
                return Ok(Watch::Container(name.to_owned()));
            }
            Err(format!(
                "`{name}` is not a name or id of a container; `docker ps` and `podman ps` list them"
            ))
        }
        _ => match (typed, typed.parse::<u32>()) {
            ("auto", _) => Ok(Watch::Auto),
            ("off", _) => Ok(Watch::Off),
            ("", _) => Err("give auto, off, a process id or the name of a process".to_owned()),
            (_, Ok(pid)) if (1..=i32::MAX.unsigned_abs()).contains(&pid) => Ok(Watch::Process(pid)),
            _ if typed.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(format!("`{typed}` is not a process id"))
            }
            _ => Ok(Watch::Named(typed.to_owned())),
        },
    }
}

/// Where the server's own count is read. What stands behind `#` names the value in the answer, and
/// is not sent.
pub(crate) fn server_counter(typed: &str) -> Result<ServerCounter, TargetError> {
    let (url, path) = match typed.split_once('#') {
        Some((url, path)) => (url, Some(path.to_owned())),
        None => (typed, None),
    };
    Ok(ServerCounter {
        target: Target::parse(url, None)?,
        path: path.filter(|path| !path.is_empty()),
    })
}

/// A part, as `I/N`.
pub(crate) fn numbered_part(typed: &str) -> Result<NumberedPart, String> {
    let numbers = typed.split_once('/');
    let numbers = numbers.and_then(|(number, of)| number.parse().ok().zip(of.parse().ok()));
    match numbers {
        Some((number, of)) if number <= of => Ok(NumberedPart { number, of }),
        _ => Err(format!(
            "`{typed}` is not a part; write it as 1/4, 2/4 and so on to 4/4"
        )),
    }
}

/// An instant of the wall clock, nanoseconds.
pub(crate) fn unix_ns(typed: &str) -> Result<u64, String> {
    let (seconds, fraction) = typed.split_once('.').unwrap_or((typed, ""));
    let number = |digits: &str| -> Option<u64> {
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| are_digits)
    };
    let ns = number(&format!("{fraction:0<9}")).filter(|_| fraction.len() <= 9);
    let instant = number(seconds).and_then(|s| s.checked_mul(1_000_000_000)?.checked_add(ns?));
    instant.ok_or_else(|| {
        format!("`{typed}` is not an instant; give seconds since 1970-01-01 UTC, as date +%s does")
    })
}

/// What an option varies that may have several values; absent where it has one value.
pub(crate) fn of_option(axis: SweepAxis, typed: &str) -> Option<Result<Varied, String>> {
    let has_several = typed.contains("..") || typed.contains(',');
    has_several.then(|| Varied::read(axis, typed))
}

/// The largest value of such an option, as `parse` reads it where it is the only one.
pub(crate) fn largest<T, E: Display>(
    axis: SweepAxis,
    typed: &str,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, String> {
    let largest = match of_option(axis, typed).transpose()? {
        Some(varied) => varied.values.last().map(f64::to_string),
        None => None,
    };
    parse(largest.as_deref().unwrap_or(typed)).map_err(|error| error.to_string())
}

/// Sizes of bodies.
pub(crate) fn body_sizes(typed: &str) -> Result<Varied, String> {
    Varied::read(SweepAxis::BodyBytes, typed)
}

/// Largest file of header fields or credentials.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// What a value of the environment is asked for with.
pub(crate) const FROM_ENVIRONMENT: &str = "@env:";

/// Where the value of an option comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The value was typed.
    Typed(String),
    /// The value is read from a file.
    File(PathBuf),
    /// The value is read from standard input.
    StandardInput,
    /// The value is that of this environment variable.
    Variable(String),
}

/// A header field, as typed, or where to read some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFields {
    /// Name and value.
    One(String, String),
    /// One field per line.
    From(Source),
}

impl Source {
    /// Reads `TEXT`, `@FILE`, `@-` or `@env:NAME`.
    pub(crate) fn of(typed: &str) -> Result<Self, String> {
        if let Some(name) = typed.strip_prefix(FROM_ENVIRONMENT) {
            return Ok(Self::Variable(name.to_owned()));
        }
        match typed.strip_prefix('@') {
            None => Ok(Self::Typed(typed.to_owned())),
            Some("") => Err("a file is missing after @; @- is standard input".to_owned()),
            Some("-") => Ok(Self::StandardInput),
            Some(path) => Ok(Self::File(path.into())),
        }
    }

    /// The bytes of the source, at most `bytes_max`; `what` names the value in messages.
    pub(crate) fn read(&self, what: &str, bytes_max: u64) -> Result<Vec<u8>> {
        match self {
            Self::Typed(text) => Ok(text.clone().into_bytes()),
            Self::Variable(name) => variable(name).map(String::into_bytes),
            Self::File(path) => {
                let name = path.display().to_string();
                let file =
                    File::open(path).with_context(|| format!("cannot read {what} from {name}"))?;
                read_all(file, &name, what, bytes_max)
            }
            Self::StandardInput => read_all(io::stdin().lock(), "standard input", what, bytes_max),
        }
    }

    /// Reads text in UTF-8; `what` names it in errors.
    pub(crate) fn read_text(&self, what: &str) -> Result<String> {
        let bytes = self.read(what, TEXT_BYTES_MAX)?;
        String::from_utf8(bytes).with_context(|| format!("{what} is not text in UTF-8"))
    }
}

pub(crate) fn read_all(
    input: impl Read,
    name: &str,
    what: &str,
    bytes_max: u64,
) -> Result<Vec<u8>> {
    match files::read_bounded(input, bytes_max) {
        Err(FileError::TooLarge { bytes_max }) => {
            let most_mb = bytes_max >> 20;
            bail!("{name} is too large: {what} may have {most_mb} MiB");
        }
        read => read.with_context(|| format!("cannot read {what} from {name}")),
    }
}

/// `text` with each `@env:NAME` replaced by the value of the variable.
pub(crate) fn with_environment(text: &str) -> Result<String> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(FROM_ENVIRONMENT) {
        value.push_str(before);
        let is_in_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let length = after
            .find(|character| !is_in_name(character))
            .unwrap_or(after.len());
        let (name, after) = after.split_at(length);
        value.push_str(&variable(name)?);
        rest = after;
    }
    value.push_str(rest);
    Ok(value)
}

fn variable(name: &str) -> Result<String> {
    if name.is_empty() {
        bail!("the name of a variable is missing after {FROM_ENVIRONMENT}");
    }
    std::env::var(name)
        .ok()
        .with_context(|| format!("{FROM_ENVIRONMENT}{name}: there is no such variable, or no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_their_name_and_lose_blanks_around_the_value() {
        let one =
            |name: &str, value: &str| Ok(HeaderFields::One(name.to_owned(), value.to_owned()));
        assert_eq!(header("X-A: b: c "), one("X-A", "b: c"));
        assert_eq!(header("X-Empty:"), one("X-Empty", ""));
        assert_eq!(header("X-At:@b"), one("X-At", "@b"));
        let file = Source::File("fields".into());
        assert_eq!(header("@fields"), Ok(HeaderFields::From(file)));
        assert!(header("no colon").is_err());
        assert!(header(": value").is_err());
        assert!(header("@").is_err());
    }

    #[test]
    fn think_times() {
        use ThinkSpread::{Exponential, Fixed, Uniform};
        for (typed, mean_ns, spread) in [
            ("1s", 1_000_000_000, Fixed),
            ("1s,fixed", 1_000_000_000, Fixed),
            ("20ms,exp", 20_000_000, Exponential),
            ("0,uniform", 0, Uniform),
        ] {
            let expected = ThinkTime {
                mean_ns,
                spread,
                seed: 0,
            };
            assert_eq!(think_time(typed), Ok(expected), "{typed}");
        }
        for typed in ["", ",exp", "1s,", "1s,poisson", "1s,exp,exp", "exp"] {
            assert!(think_time(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn case_matters_in_methods() {
        for typed in ["GET", "PROPFIND", "M-SEARCH", ""] {
            assert_eq!(method(typed).as_deref(), Ok(typed), "{typed}");
        }
        let error = method("post").expect_err("in small letters");
        assert!(error.contains("write POST"), "{error}");
    }

    #[test]
    fn server_names() {
        for typed in ["example.org", "localhost", "::1", "xn--bcher-kva.a"] {
            assert_eq!(server_name(typed).as_deref(), Ok(typed), "{typed}");
        }
        for typed in ["", " ", "host:443", "https://host", "user@host", "a b"] {
            let error = server_name(typed).expect_err(typed);
            assert!(error.contains("host name"), "{typed}: {error}");
        }
    }

    #[test]
    fn listed_names() {
        assert_eq!(listed_name(" x25519 ").as_deref(), Ok("x25519"));
        assert!(listed_name("").is_err());
        assert!(listed_name(" ").is_err());
    }

    #[test]
    fn what_is_watched() {
        let named = |name: &str| Ok(Watch::Named(name.to_owned()));
        let group = |group: &str| Ok(Watch::Cgroup(group.to_owned()));
        let container = |name: &str| Ok(Watch::Container(name.to_owned()));
        for (typed, expected) in [
            ("auto", Ok(Watch::Auto)),
            ("off", Ok(Watch::Off)),
            ("1", Ok(Watch::Process(1))),
            ("4194304", Ok(Watch::Process(4_194_304))),
            ("nginx", named("nginx")),
            ("7zip", named("7zip")),
            ("-1", named("-1")),
            ("cgroup:/sys/fs/cgroup/a.slice/", group("/a.slice")),
            ("cgroup:/a.slice/b.service", group("/a.slice/b.service")),
            ("container:4f1c7d2e9a0b", container("4f1c7d2e9a0b")),
            ("container:my_app-web-1.a", container("my_app-web-1.a")),
        ] {
            assert_eq!(watch(typed), expected, "{typed}");
        }
        let wrong = "|0|2147483648|99999999999999999999|cgroup:|cgroup:a|cgroup:/|container:|\
                     container:-web|container:web/1";
        for typed in wrong.split('|') {
            assert!(watch(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn a_counters_place_is_not_part_of_its_url() {
        for (typed, url, path) in [
            ("host/status", "http://host/status", None),
            ("host/status#", "http://host/status", None),
            (
                "http://host:1/c?x=1#requests.total",
                "http://host:1/c?x=1",
                Some("requests.total"),
            ),
            (
                "host#http_requests_total{code=\"200\"}",
                "http://host/",
                Some("http_requests_total{code=\"200\"}"),
            ),
            ("host#a#b", "http://host/", Some("a#b")),
        ] {
            let counter = server_counter(typed).expect(typed);
            assert_eq!(counter.target.url, url, "{typed}");
            assert_eq!(counter.path.as_deref(), path, "{typed}");
        }
        for typed in ["", "#requests", "ftp://host/#x"] {
            assert!(server_counter(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn parts_are_numbered_from_one() {
        let typed = |typed| numbered_part(typed).map(|part| (part.number.get(), part.of.get()));
        assert_eq!(typed("1/1"), Ok((1, 1)));
        assert_eq!(typed("3/4"), Ok((3, 4)));
        for wrong in "|1|/|0/4|5/4|1/0|1/4/2|-1/4|a/b|1 / 4".split('|') {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn instants_are_seconds() {
        assert_eq!(unix_ns("0"), Ok(0));
        assert_eq!(unix_ns("1764160200"), Ok(1_764_160_200_000_000_000));
        assert_eq!(unix_ns("1764160200.5"), Ok(1_764_160_200_500_000_000));
        assert_eq!(unix_ns("1.000000001"), Ok(1_000_000_001));
        for wrong in "|.|-1|+1|now|1.0000000001|1e9|99999999999999|1.-5".split('|') {
            assert!(unix_ns(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_option_with_several_values_has_the_largest() {
        let read = |typed| largest(SweepAxis::Connections, typed, units::count);
        for (typed, expected) in [("7", 7), ("1,9", 9), ("1..5:2", 5), ("1..6:2", 5)] {
            assert_eq!(read(typed), Ok(expected), "{typed}");
        }
        for typed in ["1..x", "x", "1..9", ""] {
            assert!(read(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn where_a_value_comes_from() {
        for (typed, source) in [
            ("text", Source::Typed("text".to_owned())),
            ("", Source::Typed(String::new())),
            ("a@b", Source::Typed("a@b".to_owned())),
            ("@file", Source::File("file".into())),
            ("@./-", Source::File("./-".into())),
            ("@@", Source::File("@".into())),
            ("@-", Source::StandardInput),
            ("@env:NAME", Source::Variable("NAME".to_owned())),
            ("x@env:NAME", Source::Typed("x@env:NAME".to_owned())),
        ] {
            assert_eq!(Source::of(typed), Ok(source), "{typed}");
        }
        assert!(Source::of("@").is_err());
    }

    #[test]
    fn variables_are_put_in_their_places() {
        let path = std::env::var("PATH").expect("cargo needs it");
        for (typed, value) in [
            ("Bearer x".to_owned(), "Bearer x".to_owned()),
            ("Bearer @env:PATH".to_owned(), format!("Bearer {path}")),
            (
                "a @env:PATH, @env:PATH.".to_owned(),
                format!("a {path}, {path}."),
            ),
        ] {
            assert_eq!(with_environment(&typed).expect("it is set"), value);
        }
        for (typed, words) in [
            ("@env:", "name of a variable is missing"),
            ("@env: PATH", "name of a variable is missing"),
            (
                "x @env:BRUNT_NO_SUCH_VARIABLE",
                "@env:BRUNT_NO_SUCH_VARIABLE",
            ),
        ] {
            let error = with_environment(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
