//! The commands of the pages that `readme.rs` does not run: about messages, WebSocket, experiments,
//! scripts, many connections and installing. Each is taken as it stands there, with addresses,
//! files and amounts put in, and does what it says on a server that answers it.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::support::documents::{arguments, assert_serves, commands};
use crate::support::foreign::free_address;
use crate::support::process::{Process, binary};
use crate::support::redis::Redis;
use crate::support::serve::{Serve, ServeTcp};

const PAGES: [&str; 9] = [
    "docs/drop-ins.md",
    "docs/experiments.md",
    "docs/install.md",
    "docs/many-connections.md",
    "docs/measurement.md",
    "docs/scripts.md",
    "docs/summary.md",
    "docs/tcp.md",
    "docs/websocket.md",
];

/// What is put in place of amounts that would take long, by the option before them.
const AMOUNTS: [(&str, &str); 10] = [
    ("-d", "150ms"),
    ("-n", "200"),
    ("-r", "500"),
    ("-T", "5s"),
    ("--connection-rate", "200"),
    ("--ping", "50ms"),
    ("--replies", "1"),
    ("--rounds", "1"),
    ("--bandwidth", "100m"),
    ("--connections-max", "1000"),
];
/// Commands whose length no option changes: a capacity is searched for on each side, and a preset
/// has its own.
const LONG: [&str; 2] = ["compare --objective", "sweep --preset"];

/// What the commands are run against.
struct Servers {
    http: Serve,
    tls: Serve,
    other: Serve,
    redis: Redis,
    echo: ServeTcp,
    secure_echo: ServeTcp,
    sink: ServeTcp,
    source: ServeTcp,
    /// Free: the commands of `--start` listen there.
    started: SocketAddr,
}

impl Servers {
    fn start() -> Self {
        Self {
            http: Serve::start(),
            tls: Serve::start_secure(&[]),
            other: Serve::start(),
            redis: Redis::start(),
            echo: ServeTcp::start("echo", &[]),
            secure_echo: ServeTcp::start_secure("echo"),
            sink: ServeTcp::start("sink", &[]),
            source: ServeTcp::start("source", &[]),
            started: free_address(),
        }
    }

    /// The server in place of `word`, where that is an address, and the certificate that goes with
    /// it.
    fn in_place_of(&self, word: &str, words: &[String]) -> Option<(String, Option<PathBuf>)> {
        let has = |option: &str, value: &str| {
            let mut pairs = words.windows(2);
            pairs.any(|pair| pair[0] == option && pair[1].starts_with(value))
        };
        let is = |option: &str| words.iter().any(|word| word == option);
        let path = word.splitn(4, '/').nth(3).map(|path| format!("/{path}"));
        let path = path.unwrap_or_else(|| "/".to_owned());
        let socket = |server: &Serve| server.url("/websocket").replacen("http", "ws", 1);
        let is_address = ["host:", "localhost:"]
            .iter()
            .any(|it| word.starts_with(it));
        Some(match word {
            _ if word.contains("://") && is("--start") => {
                (format!("http://{}/", self.started), None)
            }
            "URL" => (self.http.url("/"), None),
            _ if word.ends_with("/counters") => (format!("{}/counters", self.sink.http), None),
            _ if word.contains(":8081/") => (self.other.url("/"), None),
            _ if word.starts_with("http://") => (self.http.url(&path), None),
            _ if word.starts_with("https://") => {
                (self.tls.url(&path), Some(self.tls.certificate()))
            }
            _ if word.starts_with("ws://") => (socket(&self.http), None),
            _ if word.starts_with("wss://") => (socket(&self.tls), Some(self.tls.certificate())),
            _ if word.starts_with("tls://") && !has("--reply", "resp") => {
                let address = format!("tls://{}", self.secure_echo.address);
                (address, Some(self.secure_echo.certificate()))
            }
            _ if has("--reply", "resp") || has("--first-reply", "resp") => {
                let is_server = is_address || word.contains("://");
                (is_server.then(|| self.redis.address().to_string())?, None)
            }
            _ if word.starts_with("tcp://") => (format!("tcp://{}", self.echo.address), None),
            _ if is_address && is("--send") => (self.sink.address.to_string(), None),
            _ if is_address && is("--receive") => (self.source.address.to_string(), None),
            _ if is_address => (self.echo.address.to_string(), None),
            _ => return None,
        })
    }
}

/// Puts servers and amounts into `words`.
fn adapt(words: &mut Vec<String>, servers: &Servers) {
    let original = words.clone();
    let mut certificate = None;
    let mut previous = "";
    for (word, before) in words.iter_mut().zip(&original) {
        let amount = AMOUNTS.iter().find(|(option, _)| *option == previous);
        if let Some((_, amount)) = amount {
            (*amount).clone_into(word);
        } else if previous == "-c" {
            let few = if before.contains("..") {
                "1..4:x2"
            } else {
                "4"
            };
            few.clone_into(word);
        } else if let Some((address, file)) = servers.in_place_of(before, &original) {
            *word = address;
            certificate = certificate.or(file);
        }
        previous = before;
    }
    let certificate = certificate.map(|file| file.display().to_string());
    let has = |option: &str| original.iter().any(|word| word == option);
    // Behind this are the arguments of a script.
    let end = words.iter().position(|word| word == "--");
    let behind = words.split_off(end.unwrap_or(words.len()));
    let mut add = |more: &[&str]| words.extend(more.iter().map(|&it| it.to_owned()));
    if let Some(file) = &certificate {
        add(&["--cacert", file]);
    }
    if !["-d", "-n"].iter().any(|it| has(it)) {
        add(&["-d", "150ms"]);
    }
    if !has("--warmup") {
        add(&["--warmup", "20ms"]);
    }
    match original.first().map(String::as_str) {
        Some("find") => add(&["--budget", "3s", "--max-rate", "1k"]),
        // Fewer would not do for two figures.
        Some("compare") => add(&["--pairs", "8"]),
        Some("sweep") => add(&["--round-warmup", "20ms"]),
        _ => {}
    }
    if has("-t") {
        add(&["--oversubscribe"]);
    }
    words.extend(behind);
}

/// Runs `command`, and fails the test if brunt does not take it, or prints no result.
fn run(command: &str, directory: &Path, servers: &Servers) {
    let mut words = arguments(command);
    if words.first().is_some_and(|word| word == "serve") {
        return assert_serves(&words);
    }
    let reads = words.first().is_some_and(|word| word == "report");
    let stored = words.iter().filter(|word| word.ends_with(".json"));
    let compares_stored = words.first().is_some_and(|it| it == "compare") && stored.count() > 1;
    if !reads && !compares_stored {
        adapt(&mut words, servers);
    }
    let mut brunt = binary();
    brunt.current_dir(directory).args(&words);
    let outcome = Process::start(brunt).wait();
    // A short run may miss an objective (1), break an invariant (3) or say nothing (4).
    let is_taken = outcome
        .code
        .is_some_and(|code| [0, 1, 3, 4].contains(&code));
    assert!(is_taken, "{command}: {words:?}: {outcome:?}");
    let is_silent = reads && words.iter().any(|word| word == "-o");
    assert!(
        is_silent || !outcome.stdout.is_empty(),
        "{command}: {outcome:?}"
    );
    // Whatever the window, requests to these servers are answered.
    for failure in ["NO-SUCCESS", "SERVER-FAILED"] {
        assert!(!outcome.stdout.contains(failure), "{command}: {outcome:?}");
    }
}

#[test]
fn the_commands_of_all_other_pages_work() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [
        ("auth", "PING\r\n"),
        ("image.bin", "\u{1}\u{2}"),
        ("request.bin", "\0\0\0\u{2}hi"),
        ("subscribe.json", "{}"),
        ("get.raw", "GET /?{{rand 1 9}} HTTP/1.1\r\nHost: x\r\n\r\n"),
        (
            "post.raw",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{{seq 1000}}",
        ),
        ("post.lua", "wrk.method = 'POST'\n"),
        ("cart.lua", "function init(args) end\n"),
    ] {
        std::fs::write(directory.path().join(name), text).expect("the directory is ours");
    }
    let servers = Servers::start();
    for name in ["old", "new"] {
        let path = directory.path().join(name);
        let brunt = env!("CARGO_BIN_EXE_brunt");
        let script = format!(
            "#!/bin/sh\nexec {brunt} serve --listen {}\n",
            servers.started
        );
        std::fs::write(&path, script).expect("the directory is ours");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("the file is ours");
    }
    // A page says how to print it.
    run("brunt -o run.json URL", directory.path(), &servers);
    let pages: Vec<Vec<String>> = PAGES.into_iter().map(commands).collect();
    assert!(pages.iter().map(Vec::len).sum::<usize>() >= 40, "{pages:?}");
    // Commands of one page may need what those before them wrote; the pages are independent.
    let pages = Mutex::new(pages.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let page = pages.lock().expect("no thread panics with it").next();
                    let Some(page) = page else { break };
                    for command in page {
                        if !LONG.iter().any(|it| command.contains(it)) {
                            run(&command, directory.path(), &servers);
                        }
                    }
                }
            });
        }
    });
}
