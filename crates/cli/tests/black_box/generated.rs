//! Manual pages and completions: they know every option that `--help` has, and real programs take
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::process::{Process, brunt, success};

const COMMANDS: [&str; 9] = [
    "serve", "compare", "sweep", "find", "tcp", "report", "merge", "fleet", "agent",
];

/// What `brunt --generate KIND` prints.
fn generated(kind: &str) -> String {
    let outcome = success(&format!("--generate {kind}"));
    assert_eq!(outcome.stderr, "", "{kind}");
    outcome.stdout
}

/// The long options that the help of a command lists, or of the program (`""`).
fn options(command: &str) -> BTreeSet<String> {
    let outcome = brunt(&format!("{command} --help"));
    let lines = outcome.stdout.lines();
    // Options are indented less than what is said of them.
    let lines = lines.filter(|line| line.starts_with("  -") || line.starts_with("      --"));
    let names = lines.filter_map(|line| {
        let at = line.find("--")?;
        let name = line[at + 2..].split([' ', ',', '=', '[']).next()?;
        Some(name.to_owned())
    });
    let names: BTreeSet<String> = names.collect();
    assert!(names.len() > 2, "{command}: {}", outcome.stdout);
    names
}

#[test]
fn every_option_of_the_help_is_in_its_manual_page() {
    assert!(options("").contains("connections"));
    for command in std::iter::once("").chain(COMMANDS) {
        let kind = match command {
            "" => "man".to_owned(),
            _ => format!("man-{command}"),
        };
        let page = generated(&kind).replace("\\-", "-");
        for option in options(command) {
            // Bold, as a whole word.
            let shown = format!("\\fB--{option}\\fR");
            assert!(page.contains(&shown), "{kind}: no {shown}");
        }
        assert!(!page.contains("no-evidence"), "{kind} shows what is hidden");
    }
    let page = generated("man").replace("\\-", "-");
    for command in COMMANDS {
        assert!(page.contains(&format!("brunt-{command}(1)")), "{command}");
    }
    for tool in [
        "wrk", "wrk2", "ab", "weighttp", "httperf", "h2load", "tcpkali", "nuttcp", "oha",
    ] {
        assert!(page.contains(tool), "{tool}");
    }
}

#[test]
fn the_commands_of_these_tests_are_those_of_the_help() {
    let help = brunt("--help").stdout;
    let (_, commands) = help.split_once("\nCommands:\n").expect("commands");
    let (commands, _) = commands.split_once("\n\n").expect("an end");
    let names = commands
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert_eq!(names, COMMANDS);
}

#[test]
fn mandoc_finds_no_error_in_the_pages() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kinds = COMMANDS.map(|command| format!("man-{command}"));
    for kind in kinds.iter().map(String::as_str).chain(["man"]) {
        let path = directory.path().join(format!("{kind}.1"));
        fs::write(&path, generated(kind)).expect("written");
        let mut mandoc = Command::new("mandoc");
        mandoc.args(["-T", "lint", "-W", "error"]).arg(&path);
        let outcome = Process::start(mandoc).wait();
        assert_eq!((outcome.code, &*outcome.stdout), (Some(0), ""), "{kind}");
    }
}

/// Writes the completion for `shell` into `directory`.
fn completion(shell: &str, directory: &Path) -> PathBuf {
    let path = directory.join(format!("completion.{shell}"));
    fs::write(&path, generated(&format!("complete-{shell}"))).expect("written");
    path
}

/// What fish offers behind `typed`: the words alone.
fn offered(completion: &Path, typed: &str) -> BTreeSet<String> {
    let mut fish = Command::new("fish");
    fish.env("HOME", completion.parent().expect("a directory"));
    let script = format!("source {}; complete -C '{typed}'", completion.display());
    fish.args(["--no-config", "-c", &script]);
    let outcome = Process::start(fish).wait().exits(0);
    let lines = outcome.stdout.lines();
    let words = lines.filter_map(|line| line.split('\t').next());
    words.map(str::to_owned).collect()
}

#[test]
fn every_option_of_the_help_is_completed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let fish = completion("fish", directory.path());
    let bash = completion("bash", directory.path());
    let zsh = completion("zsh", directory.path());
    let mut checked = Command::new("zsh");
    checked.arg("-n").arg(&zsh);
    Process::start(checked).wait().exits(0);
    let zsh = fs::read_to_string(zsh).expect("it was written");
    for command in std::iter::once("").chain(COMMANDS) {
        let by_fish = offered(&fish, &format!("brunt {command} --"));
        // As bash itself calls it, with the words that are on the line.
        let words = format!("brunt {command} --");
        let script = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _brunt brunt -- \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; printf '%s\\n' \
             \"${{COMPREPLY[@]}}\"",
            bash.display()
        );
        let mut shell = Command::new("bash");
        shell.args(["--norc", "-c", &script]);
        let by_bash = Process::start(shell).wait().stdout;
        let by_bash: BTreeSet<&str> = by_bash.lines().collect();
        // In zsh's, the part of a command begins with a case of its name.
        let part = match command {
            "" => &zsh[..],
            _ => {
                let head = format!("({command})\n");
                let at = zsh.find(&head).expect("a case");
                let rest = &zsh[at..];
                &rest[..rest.find("\n;;").expect("an end")]
            }
        };
        let options = options(command);
        for option in &options {
            let option = format!("--{option}");
            assert!(by_fish.contains(&option), "fish, {command}: {option}");
            assert!(by_bash.contains(&*option), "bash, {command}: {option}");
            let in_zsh = ['[', '=', '\'']
                .iter()
                .any(|behind| part.contains(&format!("{option}{behind}")));
            assert!(in_zsh, "zsh, {command}: {option}");
        }
        assert_eq!(by_bash.len(), options.len(), "{command}: {by_bash:?}");
        assert!(
            !part.contains("--no-evidence"),
            "{command} shows what is hidden"
        );
    }
    let tools = offered(&fish, "brunt w");
    for tool in ["wrk", "wrk2", "weighttp"] {
        assert!(tools.contains(tool), "{tools:?}");
    }
    assert_eq!(
        offered(&fish, "brunt --backend "),
        ["auto", "epoll", "uring"].map(str::to_owned).into()
    );
}
