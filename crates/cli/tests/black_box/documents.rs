//! The commands of README and of the pages: each is taken as it stands there, with addresses, files
//! and amounts put in, and does what it says on a server that answers it. The options that the
//! pages name exist.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::support::certificates::{Authority, Identity};
use crate::support::documents::{arguments, assert_serves, commands, page};
use crate::support::foreign::free_address;
use crate::support::process::{Process, binary, brunt};
use crate::support::redis::Redis;
use crate::support::run::EXACT;
use crate::support::serve::{Serve, ServeTcp, ServeUnix};

const PAGES: [&str; 17] = [
    "README.md",
    "docs/requests.md",
    "docs/load.md",
    "docs/tls-and-http2.md",
    "docs/serve.md",
    "docs/objectives.md",
    "docs/reports.md",
    "docs/verdict.md",
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
/// Pages about HTTP: each of their commands succeeds, and their options are in the help.
const ABOUT_HTTP: usize = 8;

/// What is put in place of amounts that would take long, by the option before them.
const AMOUNTS: [(&str, &str); 10] = [
    ("-n", "200"),
    ("-r", "500"),
    ("-T", "5s"),
    ("--connection-rate", "200"),
    ("--ping", "50ms"),
    ("--replies", "1"),
    ("--rounds", "1"),
    ("--bandwidth", "100m"),
    ("--connections-max", "1000"),
    ("--stages", "50ms:100..500,50ms:500,50ms:500..0"),
];
/// Lengths of a run. A machine that is busy with other things may spoil one: then the next is made.
const LENGTHS: [&str; 5] = ["150ms", "200ms", "500ms", "1s", "3s"];

/// What the commands are run against.
struct Servers {
    http: Serve,
    tls: Serve,
    /// Asks for a certificate.
    mutual: Serve,
    /// The certificate that it takes.
    client: Identity,
    /// It keeps the files of that.
    _authority: Authority,
    unix: ServeUnix,
    other: Serve,
    redis: Redis,
    echo: ServeTcp,
    secure_echo: ServeTcp,
    sink: ServeTcp,
    source: ServeTcp,
}

impl Servers {
    fn start(directory: &Path) -> Self {
        let authority = Authority::new();
        let clients = authority.roots().display().to_string();
        Self {
            http: Serve::start(),
            tls: Serve::start_secure(&["--http3"]),
            mutual: Serve::start_secure(&["--client-ca", &clients]),
            client: authority.client(),
            _authority: authority,
            unix: ServeUnix::start(&directory.join("app.sock")),
            other: Serve::start(),
            redis: Redis::start(),
            echo: ServeTcp::start("echo", &[]),
            secure_echo: ServeTcp::start_secure("echo"),
            sink: ServeTcp::start("sink", &[]),
            source: ServeTcp::start("source", &[]),
        }
    }

    /// What is put behind this option, where it takes a file or a process of the servers.
    fn file_or_process(&self, option: &str) -> Option<String> {
        let shown = |path: &Path| Some(path.display().to_string());
        match option {
            "--unix-socket" => shown(&self.unix.socket),
            "--cacert" => shown(&self.mutual.certificate()),
            "--cert" => shown(&self.client.certificate),
            "--key" => shown(&self.client.key),
            "--watch" => Some(self.http.id().to_string()),
            _ => None,
        }
    }

    /// The server in place of `word`, where that is an address, and the certificate that goes with
    /// it.
    fn in_place_of(
        &self,
        word: &str,
        words: &[String],
        started: SocketAddr,
    ) -> Option<(String, Option<PathBuf>)> {
        let has = |option: &str, value: &str| {
            let mut pairs = words.windows(2);
            pairs.any(|pair| pair[0] == option && pair[1].starts_with(value))
        };
        let is = |option: &str| words.iter().any(|word| word == option);
        let path = word.splitn(4, '/').nth(3).map(|path| format!("/{path}"));
        let is_route = |path: &String| path.starts_with("/delay/") || path.starts_with("/stall/");
        let path = path.filter(is_route).unwrap_or_else(|| "/".to_owned());
        let socket = |server: &Serve| server.url("/websocket").replacen("http", "ws", 1);
        let is_address = ["host:", "localhost:"]
            .iter()
            .any(|host| word.starts_with(host));
        Some(match word {
            _ if word.contains("://") && is("--start") => (format!("http://{started}/"), None),
            "URL" => (self.http.url("/"), None),
            _ if word.ends_with("/counters") => (self.sink.server.url("/counters"), None),
            _ if word.ends_with("/status") => (self.http.url("/counters"), None),
            _ if word.contains(":8081/") => (self.other.url("/"), None),
            _ if word.starts_with("http://") => (self.http.url(&path), None),
            _ if word.starts_with("https://") => {
                let tls = if is("--cert") {
                    &self.mutual
                } else {
                    &self.tls
                };
                (tls.url(&path), Some(tls.certificate()))
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

/// Puts servers, amounts and this length into `words`.
fn adapt(words: &mut Vec<String>, servers: &Servers, started: SocketAddr, length: &str) {
    let original = words.clone();
    let mut certificate = None;
    let mut previous = "";
    for (word, before) in words.iter_mut().zip(&original) {
        let amount = AMOUNTS.iter().find(|(option, _)| *option == previous);
        if previous == "-d" {
            length.clone_into(word);
        } else if let Some((_, amount)) = amount {
            (*amount).clone_into(word);
        } else if previous == "-c" {
            let few = if before.contains("..") {
                "1..4:x2"
            } else {
                "4"
            };
            few.clone_into(word);
        } else if let Some(value) = servers.file_or_process(previous) {
            *word = value;
        } else if let Some((address, file)) = servers.in_place_of(before, &original, started) {
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
    let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
    let is_verified = !has("-k") && !has("--cacert");
    if let Some(file) = certificate.as_ref().filter(|_| is_verified) {
        add(&["--cacert", file]);
    }
    if !["-d", "-n", "--stages"].iter().any(|option| has(option)) {
        add(&["-d", length]);
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

/// What a command of the pages about HTTP prints.
fn shown_by(words: &[String]) -> &'static str {
    let has = |option: &str| words.iter().any(|word| word == option);
    match words.first().map(String::as_str) {
        Some("report") if has("-o") => "",
        Some("merge") => "agents ",
        Some("compare") => "would not show",
        _ if has("--hold") => "open at the end",
        _ => "throughput",
    }
}

/// Runs `command`, and fails the test if brunt does not take it, or prints no result. Where it
/// `must_succeed`, one of its runs has to be valid and to print what it is for.
fn run(command: &str, directory: &Path, servers: &Servers, must_succeed: bool) {
    let words = arguments(command);
    let is = |names: &[&str]| {
        words
            .first()
            .is_some_and(|word| names.contains(&word.as_str()))
    };
    if is(&["serve"]) {
        return assert_serves(&words);
    }
    let stored = words.iter().filter(|word| word.ends_with(".json")).count();
    let reads = is(&["report"]) || is(&["compare", "merge"]) && stored > 1;
    let mut last = None;
    for length in LENGTHS {
        let mut words = words.clone();
        // What `--start` starts listens there.
        let started = free_address();
        if !reads {
            adapt(&mut words, servers, started, length);
        }
        let mut brunt = binary();
        brunt.current_dir(directory).env("TOKEN", "a-token");
        brunt.env("STARTED", started.to_string());
        brunt.args(&words);
        let outcome = Process::start(brunt).wait();
        // A short run may miss an objective (1), break an invariant (3) or say nothing (4).
        let is_taken = matches!(outcome.code, Some(0 | 1 | 3 | 4));
        assert!(is_taken, "{command}: {outcome:?}");
        let is_silent = is(&["report"]) && words.iter().any(|word| word == "-o");
        assert!(
            is_silent || !outcome.stdout.is_empty(),
            "{command}: {outcome:?}"
        );
        // What no busy machine breaks is not broken.
        let invalid = outcome.stdout.lines().find(|line| line.contains("INVALID"));
        let broken = invalid.into_iter();
        let mut broken = broken.flat_map(|line| line.split([' ', ',', ':', ';', '(', ')']));
        assert!(
            !broken.any(|id| EXACT.contains(&id)),
            "{command}: {outcome:?}"
        );
        // Whatever the window, requests to these servers are answered.
        let mut failures = ["NO-SUCCESS", "SERVER-FAILED"].into_iter();
        let has_failed = failures.any(|failure| outcome.stdout.contains(failure));
        let is_shown = !must_succeed || outcome.stdout.contains(shown_by(&words));
        assert!(is_shown, "{command}: {outcome:?}");
        if !has_failed && (!must_succeed || outcome.code == Some(0)) {
            return;
        }
        last = Some(outcome);
    }
    panic!("{command}: no run did: {last:?}");
}

#[test]
fn the_commands_of_all_pages_work() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [
        ("auth", "PING\r\n"),
        ("body.json", "{}"),
        ("fields.txt", "X-One: 1\n"),
        ("urls.txt", "/\n/bytes/10\n"),
        ("users.log", "/\n  /bytes/10\n"),
        ("script.lua", "function response(status) end\n"),
        ("targets.txt", "GET /\nX-One: 1\n\nHEAD /bytes/10\n"),
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
    let servers = Servers::start(directory.path());
    for name in ["old", "new"] {
        let path = directory.path().join(name);
        let brunt = env!("CARGO_BIN_EXE_brunt");
        let script = format!("#!/bin/sh\nexec {brunt} serve --listen $STARTED\n");
        std::fs::write(&path, script).expect("the directory is ours");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("the file is ours");
    }
    // Pages say how to print and to merge them.
    for name in ["run", "a", "b"] {
        let command = format!("brunt -o {name}.json URL");
        run(&command, directory.path(), &servers, true);
    }
    let pages: Vec<(usize, Vec<String>)> = PAGES.into_iter().map(commands).enumerate().collect();
    assert!(
        pages.iter().map(|(_, page)| page.len()).sum::<usize>() >= 90,
        "{pages:?}"
    );
    // Commands of one page may need what those before them wrote; the pages are independent.
    let pages = Mutex::new(pages.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let page = pages.lock().expect("no thread panics with it").next();
                    let Some((number, page)) = page else { break };
                    for command in page {
                        run(&command, directory.path(), &servers, number < ABOUT_HTTP);
                    }
                }
            });
        }
    });
}

#[test]
fn the_options_that_they_name_exist() {
    let commands = ["", "serve", "tcp", "compare", "sweep", "find"];
    let help = commands.map(|command| brunt(&format!("{command} --help")).stdout);
    let help = help.concat();
    let known: Vec<_> = help.split([' ', ',', '\n', '[', '=']).collect();
    for name in &PAGES[..ABOUT_HTTP] {
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
