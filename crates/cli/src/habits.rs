//! The command line of this process, and what people type who know other tools: what was meant,
//! where that is clear.

use anyhow::{Result, bail};
use brunt_load::HIDDEN;
use clap::Subcommand;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::LoadArguments;
use crate::commands::{Arguments, Command};
use crate::message;
use crate::refusals::Given;
use crate::values::Source;

/// Options of other load generators, and what brunt has in their place.
const ELSEWHERE: [(&[&str], &str); 4] = [
    (&["-z", "--time"], "the length of a run is -d TIME"),
    (
        &["--vus", "--users", "--clients", "--concurrency"],
        "connections are -c N",
    ),
    (&["-R", "--rps", "--qps"], "a rate is -r RATE"),
    (&["-X"], "a method is -m METHOD"),
];
/// Commands that send no requests of HTTP.
const NOT_OF_HTTP: [&str; 5] = ["agent", "merge", "report", "serve", "tcp"];

/// Reads the command line of this process, and which options were typed. Where it is wrong or asks
/// for the help or the version, that is said and the process ends.
pub(crate) fn arguments() -> (Arguments, Given) {
    Arguments::read(std::env::args_os()).unwrap_or_else(|error| {
        let typed = typed();
        if error.kind() == ErrorKind::DisplayHelp && is_short(&typed) {
            message::output(include_str!("help/short.txt"));
            message::exit_with(0)
        }
        message::exit_with_usage(&explain(error, &typed))
    })
}

/// The words of this process's command line.
pub(crate) fn typed() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Adds to an error about an unknown option of the command line `words` what was meant by it, and
/// hides what may be secret. What is only a little alike in spelling is not named.
fn explain(mut error: clap::Error, words: &[String]) -> clap::Error {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && option.starts_with("--verify-url ")
    {
        // A URL may hold a password.
        let hidden = ContextValue::String(HIDDEN.to_owned());
        error.insert(ContextKind::InvalidValue, hidden);
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => {
            option.clone()
        }
        _ => return error,
    };
    // Options of commands that were not typed, and the tip to give the option as a value.
    error.remove(ContextKind::Suggested);
    let is_guess = matches!(
        error.get(ContextKind::SuggestedArg),
        Some(ContextValue::String(option)) if !is_near(&unknown, option)
    );
    if is_guess {
        error.remove(ContextKind::SuggestedArg);
    }
    let is_of_http = words
        .get(1)
        .is_none_or(|first| !NOT_OF_HTTP.contains(&first.as_str()));
    let mut entries = ELSEWHERE.iter();
    if let Some((_, advice)) = entries.find(|(names, _)| names.contains(&unknown.as_str()))
        && is_of_http
    {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        let tips = vec![StyledStr::from(*advice)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Whether `typed` begins the option, or is one edit away from it.
fn is_near(typed: &str, option: &str) -> bool {
    option.starts_with(typed) || strsim::osa_distance(typed, option) <= 1
}

/// The URL that was typed, if any, once it is clear that nothing else was meant.
pub(crate) fn only_url(arguments: &LoadArguments) -> Result<Option<&str>> {
    let url = arguments.url.as_deref();
    let free: Vec<&String> = arguments.url.iter().chain(&arguments.behind_url).collect();
    // What stands behind the URL of a script is for the script.
    if arguments.script.is_none() {
        if let Some(word) = free
            .iter()
            .find(|word| word.contains('<') && !word.contains('/'))
        {
            bail!("`{word}` is not a URL; an objective is --objective '{word}'");
        }
        if let Some(number) = free.iter().find(|word| is_number(word)) {
            bail!(
                "`{number}` is not a URL; write it behind its option: a rate is -r {number}, a \
                 number of requests -n {number}, a time -d {number}"
            );
        }
        if let [first, _, ..] = free[..] {
            if is_word(first) {
                bail!("`{first}` is not a command of brunt; `brunt --help` lists them");
            }
            bail!(
                "one server is loaded at a time, and there are {}; run brunt once for each",
                free.len()
            );
        }
    }
    let taken = [
        ("-b", "the body of a request", &arguments.body),
        ("-u", "USER:PASSWORD", &arguments.user),
    ];
    for (option, what, source) in taken {
        if let (None, Some(Source::Typed(typed))) = (url, source)
            && typed.contains("://")
        {
            bail!("there is no URL: {option} takes {what}, and took the URL for it");
        }
    }
    Ok(url)
}

/// Whether a command line that asks for help asks for the short one of the program.
fn is_short(words: &[String]) -> bool {
    let is_command = |word: &str| word == "help" || Command::has_subcommand(word);
    let is_of_program = words.get(1).is_some_and(|first| !is_command(first));
    is_of_program && words.iter().any(|word| word == "-h")
}

/// Whether the text is an amount. As a URL, 10 would be the host 0.0.0.10.
fn is_number(typed: &str) -> bool {
    let digits = typed.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    typed.len() - digits.len() <= 2 && digits.parse::<f64>().is_ok()
}

/// Whether the text is a word alone, as commands are.
fn is_word(typed: &str) -> bool {
    typed != "localhost" && typed.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// What is said of words that are refused.
    fn explained(typed: &str) -> String {
        let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        let error = Arguments::try_parse_from(&words).expect_err(typed);
        explain(error, &words).to_string()
    }

    #[test]
    fn options_of_others_are_none_of_ours() {
        for (names, advice) in ELSEWHERE {
            for name in names {
                let message = explained(&format!("brunt {name} http://host/"));
                assert!(message.contains(&format!("tip: {advice}\n")), "{message}");
            }
        }
        for typed in ["brunt tcp -X POST h:1", "brunt report -z 5 a.json"] {
            assert!(!explained(typed).contains("tip:"), "{typed}");
        }
    }

    #[test]
    fn help_of_the_program_is_short_where_that_is_asked_for() {
        for (line, short) in [
            ("brunt -h", true),
            ("brunt -c 5 -h", true),
            ("brunt --help", false),
            ("brunt sweep -h", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(is_short(&words), short, "{line}");
        }
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        for (typed, meant) in [
            ("--connection", "'--connections'"),
            ("--arivals", "'--arrivals'"),
            ("--thinktime", "'--think-time'"),
            ("--ca-cert", "'--cacert'"),
            ("--durtaion", "'--duration'"),
        ] {
            let message = explained(&format!("brunt {typed} http://host/"));
            assert!(message.contains(meant), "{message}");
        }
        for typed in ["--sse", "--slo", "--resolve", "--proto", "--no-such"] {
            let message = explained(&format!("brunt {typed} http://host/"));
            assert!(!message.contains("tip:"), "{message}");
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
            ("-q http://host/ -c 10", Some("http://host/")),
            ("10.0.0.1:80/x", Some("10.0.0.1:80/x")),
            ("7zip", Some("7zip")),
            ("-s a.lua http://host/ 10 x", Some("http://host/")),
        ] {
            let found = url(typed).expect(typed);
            assert_eq!(found.as_deref(), expected, "{typed}");
        }
        for (typed, words) in [
            ("p99<20ms http://a/", "--objective 'p99<20ms'"),
            ("-q 10 http://a/", "a rate is -r 10"),
            ("http://a/ 1.5k", "-n 1.5k"),
            ("http://a/ http://b/", "there are 2"),
            ("localhost http://a/", "there are 2"),
            ("swep http://a/", "`swep` is not a command"),
            ("-b http://a/", "-b takes the body"),
            ("-u http://a/", "-u takes USER:PASSWORD"),
        ] {
            let error = url(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }
}
