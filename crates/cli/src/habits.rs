//! What people type who know other tools: a guess at what was meant, where it is safe.

use anyhow::{Result, bail};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::LoadArguments;

/// Options of wrk, ab, hey, h2load, oha, siege, k6 and curl that brunt has under another name.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["-z", "--time"], "the length of a run is -d TIME"),
    (
        &["-D"],
        "the length of a run is -d TIME, a body from a file -b @FILE",
    ),
    (&["-R", "--qps", "--rps"], "a rate is -r RATE"),
    (
        &["--concurrency", "--vus", "--clients"],
        "connections are -c N",
    ),
    (&["--iterations"], "a number of requests is -n N"),
    (&["-X"], "a method is -m METHOD"),
    (&["-i", "-I", "--head"], "HEAD requests are -m HEAD"),
    (
        &["--data", "--data-binary", "--post-file", "--body-file"],
        "a body is -b TEXT, or from a file -b @FILE",
    ),
    (
        &["-p"],
        "a body from a file is -b @FILE; HTTP/2 in clear text is --http2",
    ),
    (
        &["-a", "--basic-auth"],
        "user and password are -u USER:PASSWORD",
    ),
    (
        &["-A"],
        "user and password are -u USER:PASSWORD, other header fields -H 'Name: value'",
    ),
    (
        &["-C", "--content-type", "--user-agent", "--cookie"],
        "a header field is -H 'Name: value'",
    ),
    (
        &["-L", "--location", "--follow", "--redirect"],
        "redirects are not followed; load the URL that they lead to",
    ),
    (
        &[
            "--disable-keepalive",
            "--disable-keep-alive",
            "--no-keep-alive",
        ],
        "a new connection for each request is --no-keepalive",
    ),
    (
        &["--keepalive", "--keep-alive"],
        "connections are kept alive unless there is --no-keepalive",
    ),
    (&["--h1", "--http1.1"], "HTTP/1.1 alone is --http1"),
    (&["--h2"], "HTTP/2 alone is --http2"),
    (&["-j", "--json"], "JSON on standard output is -o -"),
    (&["-e", "--csv"], "CSV on standard output is --format csv"),
    (&["--no-tui", "--silent"], "no progress line is -q"),
    (
        &["--connect-only"],
        "connections alone, opened and closed again, are brunt tcp --connect-only HOST:PORT",
    ),
    (&["--unix"], "a Unix socket is --unix-socket PATH"),
];

/// Options whose values brunt sweep varies.
const VARIED: [&str; 5] = [
    "--connections ",
    "--threads ",
    "--rate ",
    "--requests ",
    "--streams ",
];

/// Adds to an error about several values which command takes them, and to one about an unknown
/// option what stands in its place here.
pub(crate) fn explain(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::ValueValidation
        && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidValue)
        && VARIED.iter().any(|name| option.starts_with(name))
        && (typed.contains("..") || typed.contains(','))
    {
        let advice = StyledStr::from("several values of a setting are for brunt sweep");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![advice]),
        );
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && let Some(advice) = advice(typed)
    {
        let advice = StyledStr::from(advice);
        // What is alike in spelling alone would only confuse.
        error.remove(ContextKind::SuggestedArg);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![advice]),
        );
    }
    error
}

fn advice(typed: &str) -> Option<&'static str> {
    let is_meant = |names: &&(&[&str], &str)| names.0.contains(&typed);
    ELSEWHERE.iter().find(is_meant).map(|&(_, advice)| advice)
}

/// The URL that was typed, if any, once it is clear that nothing else was meant.
pub(crate) fn only_url(arguments: &LoadArguments) -> Result<Option<&str>> {
    let behind = match arguments.script {
        // It is for the script.
        Some(_) => &[][..],
        None => &arguments.behind_url,
    };
    let behind = behind.iter().map(String::as_str);
    let words = || arguments.url.as_deref().into_iter().chain(behind.clone());
    if let Some(number) = words().find(|word| is_number(word)) {
        if arguments.output.quiet {
            bail!("`{number}` is no URL: -q is quiet and takes no value; a rate is -r {number}");
        }
        bail!(
            "`{number}` is no URL, and the option before it takes no value; see `brunt --help` for \
             those that do"
        );
    }
    let count = words().count();
    if let Some(word) = arguments
        .url
        .as_deref()
        .filter(|word| count > 1 && is_word(word))
    {
        bail!("`{word}` is no command of brunt; `brunt --help` lists them");
    }
    if count > 1 {
        bail!("one URL is loaded at a time, and there are {count}; run brunt once for each");
    }
    Ok(arguments.url.as_deref())
}

/// Whether it is a word alone, as commands are.
fn is_word(typed: &str) -> bool {
    typed != "localhost"
        && typed
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
}

/// Whether it is an amount of something. As a URL, 10 would be the host 0.0.0.10.
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

    #[test]
    fn options_of_others_are_none_of_ours() {
        for name in ELSEWHERE.iter().flat_map(|(names, _)| *names) {
            let error = Arguments::try_parse_from(["brunt", name, "http://host/"]);
            let error = error.expect_err(name);
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{name}");
            let message = explain(error).to_string();
            let advice = advice(name).expect("it is listed");
            assert!(message.contains(&format!("tip: {advice}\n")), "{message}");
        }
    }

    #[test]
    fn several_values_are_for_a_sweep() {
        for (typed, is_told) in [("1..9:2", true), ("1,2", true), ("x", false)] {
            let error = Arguments::try_parse_from(["brunt", "-c", typed, "http://host/"]);
            let message = explain(error.expect_err(typed)).to_string();
            assert_eq!(message.contains("brunt sweep"), is_told, "{message}");
        }
    }

    #[test]
    fn the_url_stands_alone() {
        let url = |typed: &str| {
            let words = ["brunt"].into_iter().chain(typed.split_whitespace());
            let arguments = Arguments::try_parse_from(words).expect(typed).load;
            only_url(&arguments).map(|url| url.map(str::to_owned))
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
            ("swep http://a/", "`swep` is no command"),
            ("localhost http://a/", "there are 2"),
            ("-q 10 http://a/", "a rate is -r 10"),
            ("-q 10", "a rate is -r 10"),
            ("-k 100 http://a/", "`100` is no URL"),
            ("http://a/ 1.5k", "`1.5k` is no URL"),
        ] {
            let error = url(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }
}
