//! The README's commands work as they stand there, with addresses, files and lengths put in.

use std::path::Path;

use crate::support::certificates::{Authority, Identity};
use crate::support::exporter::Exporter;
use crate::support::process::{Outcome, Process, binary, first_line};
use crate::support::serve::{Serve, ServeUnix};

/// The commands in fenced blocks, without comments.
fn commands() -> Vec<String> {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).expect("the README is in the repository");
    readme
        .split("```")
        .skip(1)
        .step_by(2)
        .flat_map(str::lines)
        .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned())
        .filter(|line| line.starts_with("brunt ") || line.starts_with("cargo run"))
        .collect()
}

/// The arguments of a command, quotes removed.
fn arguments(command: &str) -> Vec<String> {
    let program = if command.starts_with("brunt ") {
        "brunt"
    } else {
        "cargo run --release"
    };
    let rest = command.strip_prefix(program).expect("one of the two");
    let rest = rest.trim().trim_start_matches("-- ");
    let mut words = Vec::new();
    let mut quoted = false;
    let mut inside = false;
    for character in rest.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => inside = false,
            _ => {
                if !std::mem::replace(&mut inside, true) {
                    words.push(String::new());
                }
                words.last_mut().expect("one was begun").push(character);
            }
        }
    }
    assert!(!quoted, "{command}: a quote is open");
    words
}

/// What the commands are run against.
struct Servers {
    tcp: Serve,
    unix: ServeUnix,
    tls: Serve,
    /// Asks for a certificate.
    mutual: Serve,
    /// The certificate that it takes.
    client: Identity,
    exporter: Exporter,
}

/// Puts the servers of this test into `words`, and short lengths.
fn adapt(words: &mut Vec<String>, servers: &Servers) {
    let tls = match words.iter().any(|word| word == "--cert") {
        true => &servers.mutual,
        false => &servers.tls,
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
            "-d" | "--duration" => *word = "200ms".to_owned(),
            "-n" | "--requests" => *word = "1000".to_owned(),
            "--stages" => *word = "100ms:100..500,100ms:500,50ms:500..0".to_owned(),
            // One arrival at least has to come in the short window.
            "-r" if word.as_str() == "90/m" => *word = "900/m".to_owned(),
            "--unix-socket" => *word = servers.unix.socket.display().to_string(),
            "--watch" => *word = servers.tcp.id().to_string(),
            "--watch-url" => *word = servers.exporter.url("/metrics"),
            "--verify-url" => *word = servers.tcp.url("/counters"),
            "--cacert" => *word = tls.certificate().display().to_string(),
            "--cert" => *word = servers.client.certificate.display().to_string(),
            "--key" => *word = servers.client.key.display().to_string(),
            _ if word.starts_with("http://") => *word = servers.tcp.url("/"),
            _ if word.starts_with("https://") => *word = tls.url("/"),
            _ => {}
        }
        previous.clone_from(word);
    }
    if !words
        .iter()
        .any(|word| ["-d", "-n", "--stages"].contains(&word.as_str()))
    {
        words.extend(["-d", "200ms"].map(str::to_owned));
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
        tls: Serve::start_secure(&place("server.pem"), &[]),
        mutual: Serve::start_secure(&place("mutual.pem"), &["--client-ca", clients]),
        client: authority.client(),
        exporter: Exporter::start(),
    };
    for (name, text) in [("body.json", "{}"), ("fields.txt", "X-One: 1\n")] {
        std::fs::write(place(name), text).expect("the directory is ours");
    }
    let commands = commands();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let mut words = arguments(&command);
        match words.first().map(String::as_str) {
            Some("serve") => {
                let listen = words.iter().position(|word| word == "--listen");
                if let Some(address) = listen.and_then(|at| words.get_mut(at + 1)) {
                    "127.0.0.1:0".clone_into(address);
                }
                let mut serve = binary();
                serve.args(&words);
                let (process, stdout) = Process::start_open(serve);
                let line = first_line(stdout);
                assert!(
                    line.starts_with("listening on "),
                    "{command}: {}",
                    process.kill()
                );
                continue;
            }
            Some("report") => {}
            Some("calibrate") => {
                words.extend(["--no-store", "--step", "150ms"].map(str::to_owned));
            }
            _ => adapt(&mut words, &servers),
        }
        let outcome = run_in(directory.path(), &words);
        // 3 is a run on a machine that is too loaded for its checks: the command was right.
        assert!(
            matches!(outcome.code, Some(0 | 3)),
            "{command}: {outcome:?}"
        );
        let told = if words[0] == "calibrate" {
            "calibrated"
        } else {
            "throughput"
        };
        assert!(outcome.stdout.contains(told), "{command}: {outcome:?}");
    }
}

#[test]
fn the_options_that_it_names_exist() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).expect("the README is in the repository");
    let help: String = [&["--help"][..], &["serve", "--help"]]
        .map(|words| {
            run_in(
                Path::new("."),
                &words.iter().map(ToString::to_string).collect::<Vec<_>>(),
            )
            .stdout
        })
        .concat();
    let known: Vec<_> = help.split([' ', ',', '\n']).collect();
    let mut named = 0;
    for code in readme
        .split("```")
        .step_by(2)
        .flat_map(|prose| prose.split('`').skip(1).step_by(2))
    {
        let option = code.split(' ').next().unwrap_or_default();
        if option.starts_with('-') && option.len() > 1 {
            assert!(known.contains(&option), "the README names {option}");
            named += 1;
        }
    }
    assert!(named > 5, "{named}");
}
