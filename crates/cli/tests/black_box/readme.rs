//! The commands of README and of the pages about HTTP work as they stand there, with addresses,
//! files and lengths put in; `documents.rs` has those of the other pages.

use std::path::Path;

use crate::support::certificates::{Authority, Identity};
use crate::support::documents::{arguments, assert_serves, commands, page};
use crate::support::process::{Outcome, Process, binary};
use crate::support::run::EXACT;
use crate::support::serve::{Serve, ServeUnix};

/// Lengths of a run. A machine that is busy with other things may spoil one: then the next is made,
/// and is harder to spoil.
const LENGTHS: [&str; 5] = ["200ms", "200ms", "500ms", "1s", "2s"];

/// The pages whose commands are run, and whose options must exist.
const PAGES: [&str; 8] = [
    "README.md",
    "docs/requests.md",
    "docs/load.md",
    "docs/tls-and-http2.md",
    "docs/serve.md",
    "docs/objectives.md",
    "docs/reports.md",
    "docs/verdict.md",
];

/// What the commands are run against.
struct Servers {
    tcp: Serve,
    unix: ServeUnix,
    tls: Serve,
    /// Asks for a certificate.
    mutual: Serve,
    /// The certificate that it takes.
    client: Identity,
}

/// Puts the servers of this test into `words`, and a length in place of the one that is there.
fn adapt(words: &mut Vec<String>, servers: &Servers, length: &str) {
    let tls = if words.iter().any(|word| word == "--cert") {
        &servers.mutual
    } else {
        &servers.tls
    };
    let is_verified = !words
        .iter()
        .any(|word| ["-k", "--cacert"].contains(&word.as_str()));
    if is_verified && words.iter().any(|word| word.starts_with("https://")) {
        words.extend(["--cacert", "of the server"].map(str::to_owned));
    }
    let mut previous = String::new();
    for word in words.iter_mut() {
        match previous.as_str() {
            "-d" | "--duration" => *word = length.to_owned(),
            "-n" | "--requests" => *word = "1000".to_owned(),
            "--stages" => *word = "100ms:100..500,100ms:500,50ms:500..0".to_owned(),
            // One arrival at least has to come in the short window.
            "-r" if word.as_str() == "90/m" => *word = "900/m".to_owned(),
            "--unix-socket" => *word = servers.unix.socket.display().to_string(),
            "--watch" => *word = servers.tcp.id().to_string(),
            "--verify-url" => *word = servers.tcp.url("/counters"),
            "--cacert" => *word = tls.certificate().display().to_string(),
            "--cert" => *word = servers.client.certificate.display().to_string(),
            "--key" => *word = servers.client.key.display().to_string(),
            _ if word.starts_with("http://") => *word = servers.tcp.url("/"),
            _ if word.starts_with("https://") => *word = tls.url("/"),
            _ if word == "host:6379" => *word = servers.tcp.url("").replacen("http://", "", 1),
            _ if word.starts_with("ws://") => {
                *word = servers.tcp.url("/websocket").replacen("http", "ws", 1);
            }
            _ => {}
        }
        previous.clone_from(word);
    }
    if !words
        .iter()
        .any(|word| ["-d", "-n", "--stages"].contains(&word.as_str()))
    {
        words.extend(["-d", length].map(str::to_owned));
    }
    words.extend(["--warmup", "50ms", "--oversubscribe"].map(str::to_owned));
}

fn run_in(directory: &Path, words: &[String]) -> Outcome {
    let mut command = binary();
    command
        .current_dir(directory)
        .env("TOKEN", "a-token")
        .args(words);
    Process::start(command).wait()
}

/// Runs a command until a run is valid. What no busy machine breaks must never be broken.
fn valid_run(directory: &Path, command: &str, servers: &Servers) {
    let mut invalid = Vec::new();
    for length in LENGTHS {
        let mut words = arguments(command);
        let told = match words.first().map(String::as_str) {
            Some("report") => "throughput",
            Some("merge") => {
                for file in &words[1..] {
                    let mut run = arguments("brunt http://host/");
                    adapt(&mut run, servers, length);
                    run.extend(["-o", file].map(str::to_owned));
                    run_in(directory, &run);
                }
                "agents "
            }
            Some("compare") => {
                adapt(&mut words, servers, length);
                "would not show"
            }
            _ => {
                adapt(&mut words, servers, length);
                if words.iter().any(|word| word == "--hold") {
                    "open at the end"
                } else {
                    "throughput"
                }
            }
        };
        let outcome = run_in(directory, &words);
        assert!(outcome.stdout.contains(told), "{command}: {outcome:?}");
        if outcome.code == Some(0) {
            return;
        }
        // Random arrivals may leave so short a window empty.
        if outcome.stdout.contains("none was sent") {
            invalid.push("nothing was planned".to_owned());
            continue;
        }
        let first = outcome.stdout.lines().find(|line| line.contains("INVALID"));
        let first = first.unwrap_or_else(|| panic!("{command}: {outcome:?}"));
        let mut broken = first.split(|character: char| !character.is_ascii_alphanumeric());
        assert_eq!(outcome.code, Some(3), "{command}: {outcome:?}");
        assert!(!broken.any(|id| EXACT.contains(&id)), "{command}: {first}");
        invalid.push(first.to_owned());
    }
    panic!(
        "{command}: no run of {} was valid: {invalid:#?}",
        LENGTHS.len()
    );
}

#[test]
fn the_commands_work() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = Authority::new();
    let clients = authority.roots();
    let clients = clients.to_str().expect("a path in UTF-8");
    let place = |name| directory.path().join(name);
    let servers = Servers {
        tcp: Serve::start(),
        unix: ServeUnix::start(&place("app.sock")),
        tls: Serve::start_secure(&["--http3"]),
        mutual: Serve::start_secure(&["--client-ca", clients]),
        client: authority.client(),
    };
    for (name, text) in [
        ("body.json", "{}"),
        ("fields.txt", "X-One: 1\n"),
        ("urls.txt", "/\n/bytes/10\n"),
        ("users.log", "/\n  /bytes/10\n"),
        ("get.raw", "GET /?{{rand 1 9}} HTTP/1.1\r\nHost: x\r\n\r\n"),
        (
            "post.raw",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{{seq 1000}}",
        ),
        ("script.lua", "function response(status) end\n"),
        ("targets.txt", "GET /\nX-One: 1\n\nHEAD /bytes/10\n"),
    ] {
        std::fs::write(place(name), text).expect("the directory is ours");
    }
    let commands: Vec<String> = PAGES.into_iter().flat_map(commands).collect();
    assert!(commands.len() >= 45, "{commands:?}");
    for command in commands {
        let words = arguments(&command);
        if words.first().is_some_and(|word| word == "serve") {
            assert_serves(&words);
        } else {
            valid_run(directory.path(), &command, &servers);
        }
    }
}

#[test]
fn the_options_that_they_name_exist() {
    let help: String = ["", "serve", "tcp", "compare", "sweep", "find"]
        .map(|command| {
            let words = command.split_terminator(' ').chain(["--help"]);
            run_in(
                Path::new("."),
                &words.map(str::to_owned).collect::<Vec<_>>(),
            )
            .stdout
        })
        .concat();
    let known: Vec<_> = help.split([' ', ',', '\n', '[', '=']).collect();
    for name in PAGES {
        let mut named = 0;
        for code in page(name)
            .split("```")
            .step_by(2)
            .flat_map(|prose| prose.split('`').skip(1).step_by(2))
        {
            let option = code.split([' ', '=']).next().unwrap_or_default();
            if option.starts_with('-') && option.len() > 1 {
                assert!(known.contains(&option), "{name} names {option}");
                named += 1;
            }
        }
        assert!(named > 0, "{name}");
    }
}
