//! What people type who know other tools: a guess at what was meant, where it is safe.

use anyhow::{Result, bail};
use brunt_load::redact_queries;
use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::{Arguments, LoadArguments};
use crate::source::Source;

/// What an option of another tool is about, and so which commands have something in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// How much load, and for how long.
    Load,
    /// Requests of HTTP.
    Requests,
    /// What is printed.
    Output,
    /// The address that a server listens on.
    Listening,
}

/// Options of wrk, ab, hey, h2load, oha, siege, k6, vegeta and curl that brunt has under another
/// name, or has not.
const ELSEWHERE: &[(About, &[&str], &str)] = &[
    (
        About::Load,
        &["-z", "--time"],
        "the length of a run is -d TIME",
    ),
    (
        About::Load,
        &["-D"],
        "the length of a run is -d TIME, a body from a file -b @FILE",
    ),
    (About::Load, &["-R", "--qps", "--rps"], "a rate is -r RATE"),
    (
        About::Load,
        &["--concurrency", "--vus", "--clients", "--users", "-U"],
        "connections are -c N",
    ),
    (
        About::Load,
        &["--workers", "-w"],
        "threads are -t N, and connections -c N",
    ),
    (
        About::Load,
        &["--iterations"],
        "a number of requests is -n N",
    ),
    (
        About::Load,
        &["--rampup", "--ramp-up"],
        "a rate that grows is --stages 10s:0..5k,30s:5k",
    ),
    (
        About::Load,
        &[
            "--p50",
            "--p90",
            "--p95",
            "--p99",
            "--threshold",
            "--thresholds",
        ],
        "what a run is to reach is --objective 'p99 < 10ms, errors < 0.1%'",
    ),
    (
        About::Load,
        &["--latencies", "--percentiles"],
        "percentiles are in every report; --latency prints them all",
    ),
    (About::Requests, &["-X"], "a method is -m METHOD"),
    (
        About::Requests,
        &["-I", "--head"],
        "HEAD requests are -m HEAD",
    ),
    (
        About::Requests,
        &["-i"],
        "a number of requests is -n N; HEAD requests are -m HEAD",
    ),
    (
        About::Requests,
        &["--data", "--data-binary", "--post-file", "--body-file"],
        "a body is -b TEXT, or from a file -b @FILE",
    ),
    (
        About::Requests,
        &["-p"],
        "a body from a file is -b @FILE; HTTP/2 in clear text is --http2",
    ),
    (
        About::Requests,
        &["-a", "--basic-auth"],
        "user and password are -u USER:PASSWORD",
    ),
    (
        About::Requests,
        &["-A"],
        "user and password are -u USER:PASSWORD, other header fields -H 'Name: value'",
    ),
    (
        About::Requests,
        &[
            "-C",
            "--content-type",
            "--user-agent",
            "--cookie",
            "--cookies",
        ],
        "a header field is -H 'Name: value'",
    ),
    (
        About::Requests,
        &["--location", "--follow", "--redirect"],
        "redirects are not followed; load the URL that they lead to",
    ),
    (
        About::Requests,
        &["-L"],
        "all percentiles are --latency; redirects are not followed",
    ),
    (
        About::Requests,
        &["-x", "--proxy"],
        "requests go to the server itself, and through no proxy",
    ),
    (
        About::Requests,
        &["-l"],
        "replies may differ in length: nothing need be given for that",
    ),
    (
        About::Requests,
        &["-f", "--file"],
        "a list of URLs is --urls FILE",
    ),
    (
        About::Requests,
        &[
            "--disable-keepalive",
            "--disable-keep-alive",
            "--no-keep-alive",
        ],
        "a new connection for each request is --no-keepalive",
    ),
    (
        About::Requests,
        &["--keepalive", "--keep-alive"],
        "connections are kept alive unless there is --no-keepalive",
    ),
    (
        About::Requests,
        &["--h1", "--http1.1"],
        "HTTP/1.1 alone is --http1",
    ),
    (About::Requests, &["--h2"], "HTTP/2 alone is --http2"),
    (About::Requests, &["--h3"], "HTTP/3 is --http3"),
    (
        About::Load,
        &["--connect-only"],
        "connections alone, opened and closed again, are brunt tcp --connect-only HOST:PORT",
    ),
    (
        About::Load,
        &["--unix"],
        "a Unix socket is --unix-socket PATH",
    ),
    (
        About::Output,
        &["-j", "--json"],
        "JSON on standard output is -o -",
    ),
    (
        About::Output,
        &["-e", "--csv"],
        "CSV on standard output is --format csv",
    ),
    (
        About::Output,
        &["--no-tui", "--silent"],
        "no progress line is -q",
    ),
    (
        About::Listening,
        &["-p", "-P", "--port", "--address", "--host", "--bind"],
        LISTEN,
    ),
];

/// How a server is told where to listen.
const LISTEN: &str = "the address to listen on is --listen 127.0.0.1:8080";

/// Options whose values brunt sweep varies.
const VARIED: [&str; 5] = [
    "--connections ",
    "--threads ",
    "--rate ",
    "--requests ",
    "--streams ",
];

/// Methods of RFC 9110 section 9.
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// Units of time that are words of their own elsewhere.
const UNITS: [&str; 12] = [
    "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h",
];

/// The words of this process's command line.
pub(crate) fn typed() -> Vec<String> {
    let words = std::env::args_os();
    words.map(|it| it.to_string_lossy().into_owned()).collect()
}

/// Adds to an error about the arguments, which are `words`, what was probably meant.
pub(crate) fn explain(mut error: clap::Error, words: &[String]) -> clap::Error {
    let context = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (option, value) = (
        context(ContextKind::InvalidArg),
        context(ContextKind::InvalidValue),
    );
    let advice = match (error.kind(), option, value) {
        (ErrorKind::ValueValidation, Some(option), Some(value)) => {
            advice_on_value(&option, &value, words)
        }
        (ErrorKind::UnknownArgument, Some(option), _) => {
            let advice = advice_on_option(&option, words);
            if advice.is_none() {
                drop_escape(&mut error);
            }
            advice
        }
        _ => None,
    };
    if let Some(advice) = advice {
        // What is alike in spelling alone would only confuse.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![StyledStr::from(advice)]),
        );
    }
    error
}

/// Takes away the tip to give an option as a value behind `--`: nothing here takes one.
fn drop_escape(error: &mut clap::Error) {
    if let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested)
        && tips
            .iter()
            .any(|tip| tip.to_string().contains("as a value"))
    {
        error.remove(ContextKind::Suggested);
    }
}

/// What was meant by `value` of `option`.
fn advice_on_value(option: &str, value: &str, words: &[String]) -> Option<String> {
    if let Some(word) = words.iter().find(|word| word.ends_with(value))
        && let Some(advice) = two_dashes(word, words)
    {
        return Some(advice);
    }
    if is_grouped(value) {
        let plain = value.replace(',', "");
        return Some(format!("write a number without commas: {plain}"));
    }
    let is_varied = VARIED.iter().any(|name| option.starts_with(name));
    if is_varied
        && let Some((from, to)) = value.split_once('-')
        && is_number(from)
        && is_number(to)
    {
        return Some(format!(
            "several values are for brunt sweep: {from}..{to}:1"
        ));
    }
    (is_varied && (value.contains("..") || value.contains(',')))
        .then(|| "several values of a setting are for brunt sweep".to_owned())
}

/// What was meant by an option that there is not.
fn advice_on_option(typed: &str, words: &[String]) -> Option<String> {
    let command = command_of(words);
    // Of several letters behind one dash only the first unknown one is named.
    let at = words.iter().position(|word| word.starts_with(typed));
    if let Some(at) = at {
        let (word, before) = (&words[at], &words[at.saturating_sub(1)]);
        let is_negative = word[1..].starts_with(|first: char| first.is_ascii_digit());
        if is_negative && before.starts_with('-') {
            return Some(format!("{before} takes no value below 0, such as {word}"));
        }
        if let Some(advice) = two_dashes(word, words) {
            return Some(advice);
        }
    }
    if command == Some("serve") && !typed.starts_with('-') {
        return Some(LISTEN.to_owned());
    }
    advice(typed, command).map(str::to_owned)
}

/// The advice to write a long option with two dashes, where it was typed with one as in Go's tools.
fn two_dashes(word: &str, words: &[String]) -> Option<String> {
    let name = word.strip_prefix('-')?;
    let name = name.split('=').next().unwrap_or(name);
    if name.starts_with('-') || name.len() < 3 {
        return None;
    }
    let long = format!("--{name}");
    let command = command_of(words);
    let all = Arguments::command();
    let of_command = command.and_then(|name| all.find_subcommand(name));
    let mut options = of_command.unwrap_or(&all).get_arguments();
    if options.any(|option| option.get_long() == Some(name)) {
        return Some(format!("long options have two dashes: {long}"));
    }
    advice(&long, command).map(str::to_owned)
}

/// The command that the first word is; absent for `brunt URL`.
fn command_of(words: &[String]) -> Option<&str> {
    let first = words.get(1)?;
    let all = Arguments::command();
    all.find_subcommand(first).map(|_| first.as_str())
}

/// What `command` has in the place of an option of others.
fn advice(typed: &str, command: Option<&str>) -> Option<&'static str> {
    let has = |about: About| match command {
        Some("serve") => about == About::Listening,
        Some("agent") => false,
        Some("report" | "merge") => about == About::Output,
        Some("tcp") => matches!(about, About::Load | About::Output),
        _ => about != About::Listening,
    };
    let is_meant = |entry: &&(About, &[&str], &str)| entry.1.contains(&typed) && has(entry.0);
    ELSEWHERE
        .iter()
        .find(is_meant)
        .map(|&(_, _, advice)| advice)
}

/// Refuses an objective in the place of a URL.
pub(crate) fn refuse_objective(arguments: &LoadArguments) -> Result<()> {
    let mut free = arguments.url.iter().chain(&arguments.behind_url);
    match free.find(|word| word.contains('<') && !word.contains('/')) {
        Some(word) => bail!("`{word}` is not a URL; an objective is --objective '{word}'"),
        None => Ok(()),
    }
}

/// The URL that was typed, if any, once it is clear that nothing else was meant.
pub(crate) fn only_url(arguments: &LoadArguments) -> Result<Option<&str>> {
    url_among(arguments, &typed())
}

fn url_among<'a>(arguments: &'a LoadArguments, words: &[String]) -> Result<Option<&'a str>> {
    let behind = match arguments.script {
        // It is for the script.
        Some(_) => &[][..],
        None => &arguments.behind_url,
    };
    if arguments.script.is_none() {
        refuse_objective(arguments)?;
    }
    let url = arguments.url.as_deref();
    let behind = behind.iter().map(String::as_str);
    let mut free = url.into_iter().chain(behind.clone());
    if let Some(option) = free
        .clone()
        .find(|word| word.len() > 1 && word.starts_with('-'))
    {
        let advice = advice(option, None).map(|it| format!("; {it}"));
        bail!(
            "`{option}` comes after `--`, so it is not an option, and no script (-s FILE) \
             takes it; leave `--` out{}",
            advice.unwrap_or_default()
        );
    }
    if let Some(number) = free.find(|word| is_number(word)) {
        bail!("{}", about_number(number, words));
    }
    let count = url.into_iter().chain(behind).count();
    if count > 1 {
        let long = words.iter().find_map(|word| two_dashes(word, words));
        match (long, url) {
            (Some(advice), _) => bail!("{advice}"),
            (None, Some(word)) if is_word(word) => bail!("{}", about_word(word, words)),
            _ => {
                bail!("one URL is loaded at a time, and there are {count}; run brunt once for each")
            }
        }
    }
    match (url, &arguments.body) {
        (None, Some(Source::Typed(body))) if body.contains("://") => {
            bail!("there is no URL: -b takes the body of a request, and took the URL for it")
        }
        (Some(url), _) => check_scheme(url)?,
        _ => {}
    }
    Ok(url)
}

/// What is said of a number where a URL is expected.
fn about_number(number: &str, words: &[String]) -> String {
    let at = words.iter().position(|word| word == number).unwrap_or(0);
    let before = words.get(at.wrapping_sub(1)).map_or("", String::as_str);
    let is_cluster = before.starts_with('-') && !before.starts_with("--");
    if is_cluster && before.ends_with('q') {
        return format!(
            "`{number}` is not a URL: -q is quiet and takes no value; a rate is -r {number}"
        );
    }
    if let Some(advice) = two_dashes(before, words) {
        return format!("`{number}` is not a URL; {advice}");
    }
    if before.starts_with('-') {
        return format!("`{number}` is not a URL, and {before} takes no value; leave it out");
    }
    let is_time = number.ends_with('s') || number.ends_with('h');
    let option = if is_time { "-d" } else { "-n" };
    format!(
        "`{number}` is not a URL; write it behind the option that it is for, such as {option} \
         {number}"
    )
}

/// What is said of a word where a URL is expected, and one follows.
fn about_word(word: &str, words: &[String]) -> String {
    if METHODS
        .iter()
        .any(|method| word.eq_ignore_ascii_case(method))
    {
        let method = word.to_ascii_uppercase();
        return format!("`{word}` is not a command of brunt; a method is -m {method}");
    }
    let at = words.iter().position(|it| it == word).unwrap_or(0);
    let before = words.get(at.wrapping_sub(1)).map_or("", String::as_str);
    if UNITS.contains(&word) && is_number(before) {
        let unit = if word == "ms" { word } else { &word[..1] };
        return format!("write a time as one word: {before}{unit}");
    }
    if ["run", "attack", "bench", "load", "start", "test"].contains(&word) {
        return format!(
            "`{word}` is not a command of brunt; a load is brunt URL, without a command"
        );
    }
    format!("`{word}` is not a command of brunt; `brunt --help` lists them")
}

/// Refuses what begins like a URL and is none of HTTP, with what was meant.
fn check_scheme(typed: &str) -> Result<()> {
    let url = &without_secrets(typed);
    if url.eq_ignore_ascii_case("version") {
        bail!("`{url}` is not a command of brunt; the version is brunt --version");
    }
    for scheme in ["http", "https"] {
        let Some(rest) = url.strip_prefix(scheme) else {
            continue;
        };
        let typo = [":///", "//", ":/"].iter().find(|it| rest.starts_with(*it));
        if let Some(typo) = typo
            && !(rest.starts_with("://") && *typo != ":///")
        {
            let rest = &rest[typo.len()..];
            bail!("`{url}` is not a URL; write it as {scheme}://{rest}");
        }
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok(());
    };
    match &*scheme.to_ascii_lowercase() {
        "tcp" | "tls" => bail!(
            "{scheme}:// is spoken by brunt tcp: brunt tcp -m MESSAGE --reply FRAMING \
             {scheme}://{rest}, or brunt tcp --hold, --connect-only, --send or --receive"
        ),
        "unix" => bail!(
            "a Unix socket is given beside a URL: brunt --unix-socket /{} http://localhost/",
            rest.trim_start_matches('/')
        ),
        "http" | "https" => Ok(()),
        _ => bail!(
            "`{url}` has the scheme `{scheme}`; there are http, https, ws and wss, and tcp and tls \
             with brunt tcp"
        ),
    }
}

/// A URL without its query, user and password.
pub(crate) fn without_secrets(typed: &str) -> String {
    let url = redact_queries(typed);
    match url.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, rest)) => format!("{scheme}://***@{rest}"),
            None => url,
        },
        None => url,
    }
}

/// Whether commas group the digits of a number: `10,000`.
fn is_grouped(typed: &str) -> bool {
    let mut parts = typed.split(',');
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let first = parts.next().unwrap_or_default();
    let mut others = parts.peekable();
    (1..=3).contains(&first.len())
        && is_digits(first)
        && others.peek().is_some()
        && others.all(|part| part.len() == 3 && is_digits(part))
}

/// Whether the text is a word alone, as commands are.
fn is_word(typed: &str) -> bool {
    typed != "localhost"
        && typed
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
}

/// Whether the text is an amount of something. As a URL, 10 would be the host 0.0.0.10.
fn is_number(typed: &str) -> bool {
    let digits = typed.trim_end_matches(|last: char| last.is_ascii_alphabetic() || last == '/');
    let unit = &typed[digits.len()..];
    let is_unit = ["", "k", "m", "g", "ms", "s", "h", "/s"].contains(&unit);
    let is_digit = |character: char| character.is_ascii_digit() || character == '.';
    is_unit && digits.parse::<f64>().is_ok() && digits.chars().all(is_digit)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;

    /// What is said of words that are refused.
    fn explained(typed: &[&str]) -> String {
        let words: Vec<String> = typed.iter().map(|word| (*word).to_owned()).collect();
        let error = Arguments::try_parse_from(typed).expect_err("they are refused");
        explain(error, &words).to_string()
    }

    #[test]
    fn options_of_others_are_none_of_ours() {
        for (about, names, advice) in ELSEWHERE {
            for name in *names {
                let typed = match about {
                    About::Listening => vec!["brunt", "serve", name],
                    _ => vec!["brunt", name, "http://host/"],
                };
                let message = explained(&typed);
                assert!(message.contains(&format!("tip: {advice}\n")), "{message}");
            }
        }
    }

    #[test]
    fn several_values_are_for_a_sweep() {
        for (typed, is_named) in [("1..9:2", true), ("1,2", true), ("x", false)] {
            let message = explained(&["brunt", "-c", typed, "http://host/"]);
            assert_eq!(message.contains("brunt sweep"), is_named, "{message}");
        }
    }

    #[test]
    fn the_url_stands_alone() {
        let url = |typed: &str| {
            let words = ["brunt"].into_iter().chain(typed.split_whitespace());
            let words: Vec<String> = words.map(str::to_owned).collect();
            let arguments = Arguments::try_parse_from(&words).expect(typed).load;
            url_among(&arguments, &words).map(|url| url.map(str::to_owned))
        };
        for (typed, expected) in [
            ("", None),
            ("http://host/", Some("http://host/")),
            ("-q http://host/ -c 10", Some("http://host/")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("10.0.0.1:80/x", Some("10.0.0.1:80/x")),
            ("7zip", Some("7zip")),
        ] {
            let found = url(typed).expect(typed);
            assert_eq!(found.as_deref(), expected, "{typed}");
        }
        for (typed, words) in [
            ("http://a/ http://b/", "there are 2"),
            ("http://a/ http://b/ http://c/", "there are 3"),
            ("swep http://a/", "`swep` is not a command"),
            ("localhost http://a/", "there are 2"),
            ("-q 10 http://a/", "a rate is -r 10"),
            ("-q 10", "a rate is -r 10"),
            ("-k 100 http://a/", "-k takes no value"),
            ("http://a/ -v 2", "-v takes no value"),
            ("http://a/ 1.5k", "such as -n 1.5k"),
            ("-q http://a/ 10s", "such as -d 10s"),
            ("-qv 10 http://a/", "-qv takes no value"),
            ("-vq 10 http://a/", "a rate is -r 10"),
            ("http://a/ -- --users 5", "`--users` comes after `--`"),
            ("http://a/ -- --users 5", "connections are -c N"),
            ("-q http://a/ -- -n 10", "`-n` comes after `--`"),
            ("-vus 10 http://a/", "connections are -c N"),
            ("POST http://a/", "-m POST"),
            ("get http://a/", "-m GET"),
            ("-d 10 sec http://a/", "write a time as one word: 10s"),
            ("-d 10 ms http://a/", "write a time as one word: 10ms"),
            ("run http://a/", "brunt URL, without a command"),
            ("-method POST http://a/", "two dashes: --method"),
            ("-body x http://a/", "two dashes: --body"),
            ("-b http://a/", "there is no URL: -b takes the body"),
            ("version", "brunt --version"),
            (
                "tcp://h:1",
                "brunt tcp -m MESSAGE --reply FRAMING tcp://h:1",
            ),
            ("tls://h:1", "--reply FRAMING tls://h:1"),
            ("unix:///run/a.sock", "--unix-socket /run/a.sock"),
            ("https//h/x", "write it as https://h/x"),
            ("http:/h/x", "write it as http://h/x"),
            ("http:///h/x", "write it as http://h/x"),
            ("htp://h/", "there are http, https, ws and wss"),
        ] {
            let error = url(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }

    #[test]
    fn what_was_meant_by_an_option_is_said() {
        for (typed, words) in [
            (
                "brunt -d -5s http://h/",
                "-d takes no value below 0, such as -5s",
            ),
            ("brunt -c -5 http://h/", "-c takes no value below 0"),
            ("brunt -c 1,000 http://h/", "without commas: 1000"),
            ("brunt -n 1,000,000 http://h/", "without commas: 1000000"),
            ("brunt sweep -c 1-10 http://h/", "brunt sweep: 1..10:1"),
            ("brunt -rate=50 http://h/", "two dashes: --rate"),
            ("brunt -duration 5s http://h/", "two dashes: --duration"),
            (
                "brunt -connections 5 http://h/",
                "two dashes: --connections",
            ),
            ("brunt -latency http://h/", "two dashes: --latency"),
            ("brunt -workers 10 http://h/", "threads are -t N"),
            ("brunt serve 8080", "--listen 127.0.0.1:8080"),
            ("brunt serve -p 8080", "--listen 127.0.0.1:8080"),
            ("brunt tcp -z 5s h:1", "-d TIME"),
        ] {
            let typed: Vec<_> = typed.split(' ').collect();
            let message = explained(&typed);
            assert!(message.contains(words), "{typed:?}: {message}");
            assert!(!message.contains("as a value"), "{typed:?}: {message}");
        }
        for typed in [
            "brunt --no-such http://h/",
            "brunt -l9 --p9 http://h/",
            // What is of requests is not an option of these.
            "brunt tcp -X POST h:1",
            "brunt report -z 5 a.json",
        ] {
            let typed: Vec<_> = typed.split(' ').collect();
            let message = explained(&typed);
            assert!(!message.contains("as a value"), "{typed:?}: {message}");
        }
        for typed in ["brunt tcp -X POST h:1", "brunt report -z 5 a.json"] {
            let message = explained(&typed.split(' ').collect::<Vec<_>>());
            assert!(!message.contains("tip:"), "{message}");
        }
    }
}
