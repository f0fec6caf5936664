//! `brunt h2load` beside the real h2load: the same requests, the same text but for its numbers.

use std::process::Command;

use regex_lite::Regex;

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, Process, binary};

fn run(is_real: bool, words: &[&str], url: &str) -> Outcome {
    let mut command = if is_real {
        Command::new("h2load")
    } else {
        let mut command = binary();
        command.arg("h2load");
        command
    };
    command.args(words.iter().map(|word| word.replace("URL", url)));
    Process::start(command).wait()
}

/// `text` line by line, numbers with their units as `#`, and the length of the rows of its table.
fn masked(text: &str) -> Vec<String> {
    let number = Regex::new(r"^\(?[0-9]+(\.[0-9]+)?(us|ms|s|[KMG]?B(/s)?|%)?\)?,?$");
    let number = number.expect("an expression");
    let lines = text.lines().map(|line| {
        let words = line.split_whitespace();
        let words = words.map(|word| if number.is_match(word) { "#" } else { word });
        let words: Vec<&str> = words.collect();
        let is_row = line.starts_with("time ") || line.starts_with("req/s ");
        let length = if is_row { line.len() } else { 0 };
        format!("{length} {}", words.join(" "))
    });
    lines.collect()
}

#[test]
fn runs_over_http_1_are_those_of_the_real_h2load() {
    for words in [
        &["--h1", "-n", "10", "-c", "2", "URL/a?b"][..],
        &["--h1", "-n", "7", "-c", "2", "-t", "2", "URL/"],
        &["-p", "http/1.1", "-n", "4", "-H", "X-A: b", "URL/500"],
    ] {
        let servers = [Keeping::start(), Keeping::start()];
        let url = |server: &Keeping| format!("http://{}", server.address);
        let real = run(true, words, &url(&servers[0]));
        let ours = run(false, words, &url(&servers[1]));
        let [one, other] = [&real, &ours].map(|outcome| masked(&outcome.stdout));
        assert_eq!(one, other, "{words:?}\n{}\n{}", real.stdout, ours.stdout);
        assert_eq!((real.code, ours.code), (Some(0), Some(0)), "{words:?}");
        let [real, ours] = servers.map(|server| server.requests());
        assert_eq!(real, ours, "{words:?}");
    }
}

#[test]
fn what_is_wrong_ends_as_in_the_real_h2load() {
    for words in [
        &[][..],
        &["--version"],
        &["-n", "x", "http://h/"],
        &["-n", "1", "-c", "2", "http://h/"],
        &["-r", "1", "-D", "1", "http://h/"],
        &["-p", "foo", "http://h/"],
    ] {
        let [real, ours] = [true, false].map(|is_real| run(is_real, words, ""));
        assert_eq!(real.stderr, ours.stderr, "{words:?}");
        assert_eq!(real.stdout, ours.stdout, "{words:?}");
        assert_eq!(real.code, ours.code, "{words:?}");
    }
    let ours = run(false, &["--rps", "5", "http://h/"], "");
    assert_eq!(ours.code, Some(1), "{ours:?}");
    assert!(ours.stderr.starts_with("brunt: "), "{ours:?}");
}
