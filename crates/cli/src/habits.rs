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

/// Reads the command line of this process, and which options were typed. Where it is wrong or asks
/// for the help or the version, that is said and the process ends.
pub(crate) fn arguments() -> (Arguments, Given) {
    Arguments::read(std::env::args_os()).unwrap_or_else(|error| {
        if error.kind() == ErrorKind::DisplayHelp && is_short(&typed()) {
            message::output(include_str!("help/short.txt"));
            message::exit_with(0)
        }
        message::exit_with_usage(&explain(error))
    })
}

/// The words of this process's command line.
pub(crate) fn typed() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Adds to an error about an option of another load generator what brunt has in its place, and
/// hides what may be secret.
fn explain(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && option.starts_with("--verify-url ")
    {
        // A URL may hold a password.
        let hidden = ContextValue::String(HIDDEN.to_owned());
        error.insert(ContextKind::InvalidValue, hidden);
    }
    let mut entries = ELSEWHERE.iter();
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some((_, advice)) = entries.find(|(names, _)| names.contains(&option.as_str()))
    {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        let tips = vec![StyledStr::from(*advice)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// The URL that was typed, if any, once it is clear that nothing else was meant.
pub(crate) fn only_url(arguments: &LoadArguments) -> Result<Option<&str>> {
    let url = arguments.url.as_deref();
    let free: Vec<&String> = arguments.url.iter().chain(&arguments.behind_url).collect();
    // What stands behind the URL of a script is for the script.
    if arguments.script.is_none()
        && let [first, second, ..] = free[..]
    {
        if is_word(first) {
            bail!("`{first}` is not a command of brunt; `brunt --help` lists them");
        }
        bail!("one server is loaded at a time, and `{first}` and `{second}` are two");
    }
    Ok(url)
}

/// Whether a command line that asks for help asks for the short one of the program.
fn is_short(words: &[String]) -> bool {
    let is_command = |word: &str| word == "help" || Command::has_subcommand(word);
    let is_of_program = words.get(1).is_some_and(|first| !is_command(first));
    is_of_program && words.iter().any(|word| word == "-h")
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
        explain(error).to_string()
    }

    #[test]
    fn options_of_others_are_none_of_ours() {
        for (names, advice) in ELSEWHERE {
            for name in names {
                let message = explained(&format!("brunt {name} http://host/"));
                assert!(message.contains(&format!("tip: {advice}\n")), "{message}");
            }
        }
        // clap has a tip of its own for what is near.
        let message = explained("brunt --durtaion 5s http://host/");
        assert!(message.contains("'--duration'"), "{message}");
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
            (
                "-q 10 http://a/",
                "one server is loaded at a time, and `10` and",
            ),
            ("localhost http://a/", "one server is loaded at a time"),
            ("swep http://a/", "`swep` is not a command"),
        ] {
            let error = url(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }
}
