//! Each command that a report names next is one that brunt takes: any option of a run, in each of
//! the commands that are made of its command line, by the parser of command lines.

use std::ffi::OsString;

use brunt_judge::{at_rate, one_request, repeated, searched, swept, with_page};
use clap::{Arg, CommandFactory};

use crate::args::Arguments;
use crate::refusals::{self, Refusal};
use crate::sweep_values;

/// What an option takes, by its name in the code or by what its help calls its value.
const VALUES: [(&str, &str); 30] = [
    ("part", "0/2"),
    ("sni", "name"),
    ("stamps", "off"),
    ("spin", "off"),
    ("backend", "epoll"),
    ("arrivals", "poisson"),
    ("order", "random"),
    ("format", "text"),
    ("progress", "json"),
    ("watch", "1"),
    ("verify_url", "http://h/count"),
    ("stages", "5s:10"),
    ("objective", "p99 < 1ms, rate > 5"),
    ("headers", "A: b"),
    ("body_size", "9"),
    ("source_addresses", "127.0.0.1"),
    ("tls_min", "1.2"),
    ("tls_max", "1.3"),
    ("start_at", "1s"),
    ("think_time", "1ms"),
    ("N", "2"),
    ("TIME", "1s"),
    ("RATE", "5"),
    ("FILE", "file.txt"),
    ("METHOD", "PUT"),
    ("SPEED", "1gbit"),
    ("PATH", "/a"),
    ("NAME", "name"),
    ("USER", "a:b"),
    ("TEXT", "text"),
];
/// Options that others are needed for, as they are typed.
const NEED: [&str; 5] = [
    "-n 9",
    "--objective p99<1ms",
    "--http3",
    "-r 5",
    "--connection-rate 5",
];
/// Options that are searched with, and repeated with another length, in no advice: a rule asks for
/// them in the plan before.
const NOT_SEARCHED: [&str; 7] = [
    "connection_rate",
    "hold",
    "part",
    "script",
    "sessions",
    "stages",
    "think_time",
];

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for (place, part) in line.split('\'').enumerate() {
        // What is quoted has an odd place.
        if place % 2 == 1 {
            word.push_str(part);
            continue;
        }
        for (number, piece) in part.split(' ').enumerate() {
            if number > 0 {
                words.push(std::mem::take(&mut word));
            }
            word.push_str(piece);
        }
    }
    words.push(word);
    words
}

/// Why a command line is refused, if so.
fn refusal(typed: &[String], refusals: &[Refusal]) -> Option<String> {
    let mut typed: Vec<_> = typed.iter().map(OsString::from).collect();
    if sweep_values::is_sweep(&typed) {
        typed = sweep_values::rewritten(typed);
    }
    match Arguments::read(typed.into_iter()) {
        Ok((_, given)) => refusals
            .iter()
            .find_map(|&refusal| given.refuse(refusal).err())
            .map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// A run with this option, and with what it needs; absent where it is one of another command.
fn run_with(option: &Arg) -> Option<Vec<String>> {
    let id = option.get_id().as_str();
    let name = format!("--{}", option.get_long()?);
    let mut typed = vec!["brunt".to_owned(), name];
    if option.get_action().takes_values() {
        let called = option.get_value_names().and_then(|names| names.first());
        let called = called.map_or("", |name| name.as_str());
        let known = |wanted: &str| VALUES.iter().find(|(name, _)| *name == wanted);
        typed.push(known(id).or_else(|| known(called))?.1.to_owned());
    }
    let needs = std::iter::once("").chain(NEED);
    let lines = needs.map(|need| {
        let need = need.split(' ').filter(|word| !word.is_empty());
        let need = need.map(str::to_owned);
        let url = ["http://h/".to_owned()];
        [&typed[..], &need.collect::<Vec<_>>(), &url].concat()
    });
    lines
        .into_iter()
        .find(|line| refusal(line, &[refusals::HTTP]).is_none())
}

#[test]
fn each_command_that_is_named_next_is_taken() {
    let command = Arguments::command();
    let (mut tried, mut wrong) = (0, Vec::new());
    for option in command.get_arguments() {
        let Some(typed) = run_with(option) else {
            continue;
        };
        tried += 1;
        let id = option.get_id().as_str();
        let mut check = |line: Option<String>, refusals: &[Refusal]| {
            let line = line.expect("all of it is known");
            wrong.extend(refusal(&words(&line), refusals).map(|it| format!("{line}: {it}")));
        };
        if id != "hold" {
            check(one_request(&typed), &[]);
        }
        check(
            with_page(&typed, "page.html").or(Some("brunt".to_owned())),
            &[],
        );
        let options: &[&str] = match id {
            "hold" => &["-d 9s", "-c 9"],
            "stages" => &["-c 9", "-t 2", "--max-connections 99"],
            _ => &[
                "-d 9s",
                "-d 9s|--warmup 10s",
                "-c 9",
                "-t 2",
                "--link-speed 10gbit",
            ],
        };
        for options in options {
            let options: Vec<String> = options.split('|').map(str::to_owned).collect();
            check(repeated(&typed, &options), &[]);
        }
        if !NOT_SEARCHED.contains(&id) {
            let line = searched(&typed, "p99 < 5ms").expect("all of it is known");
            check(
                Some(line.clone()),
                &[refusals::EXPERIMENT, refusals::SEARCH],
            );
            check(at_rate(&words(&line), "50"), &[]);
            check(
                swept(&typed, "4,8,16"),
                &[refusals::EXPERIMENT, refusals::SWEEP],
            );
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(tried > 60, "{tried}");
}

#[test]
fn a_search_asks_for_what_the_run_asked_for() {
    for (typed, expected) in [
        (
            "brunt http://h/",
            "brunt find --objective 'p99 < 5ms' http://h/",
        ),
        (
            "brunt --objective 'p50 < 1ms, rate > 5' --junit a.xml --latency http://h/",
            "brunt find --objective 'p50 < 1ms' http://h/",
        ),
        (
            "brunt --objective 'a: rate > 5' --objective='errors = 0' -r 5 http://h/",
            "brunt find --objective 'errors = 0' http://h/",
        ),
        (
            "brunt --objective 'rate > 5' http://h/",
            "brunt find --objective 'p99 < 5ms' http://h/",
        ),
    ] {
        let found = searched(&words(typed), "p99 < 5ms");
        assert_eq!(found.as_deref(), Some(expected), "{typed}");
    }
}
