//! Agents that something else than the user starts: `brunt fleet` with a command of the user's or
//! over SSH, or Kubernetes by a manifest; and the NATS servers that they speak over.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::Value;

use crate::support::foreign::{free_address, of_pypi};
use crate::support::nats::{Nats, programs};
use crate::support::process::{Outcome, Process, binary, refused, start};
use crate::support::serve::Serve;
use crate::support::sshd::Sshd;
use crate::support::stored::{Stored, assert_exact, number};

/// The names of the agents of a run, in order.
fn names(run: &Value) -> Vec<String> {
    let agents = run["agents"].as_array().expect("a list").iter();
    let names = agents.filter_map(|agent| agent["fleet"]["name"].as_str());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// The run of agents that something else than the test started, and their names.
fn started(options: &[&str], path: &str) -> (Outcome, Vec<String>) {
    let (server, stored) = (Serve::start(), Stored::new());
    let (file, url) = (stored.path("run.json"), server.url("/delay/1ms"));
    let load = "-c 4 -d 500ms --warmup 0s -q -o";
    let mut command = binary();
    command.env("PATH", path).arg("fleet").args(options);
    command.args(load.split(' ')).args([file, url]);
    let outcome = Process::start(command).wait();
    if outcome.code == Some(2) {
        return (outcome, Vec::new());
    }
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    let run = stored.read("run.json");
    assert_exact(&run);
    let requests = server.settled().requests;
    assert_eq!(number(&run, "/summary/all_phases/sent"), requests);
    let names = names(&run);
    (outcome, names)
}

/// The search path, with these directories before it.
fn path_with(directories: &[&Path]) -> String {
    let path = std::env::var("PATH").expect("a search path");
    let directories = directories.iter().map(|it| it.display().to_string());
    let all: Vec<String> = directories.chain([path]).collect();
    all.join(":")
}

#[test]
fn agents_are_started_by_a_command_of_the_users() {
    let path = path_with(&[]);
    let brunt = env!("CARGO_BIN_EXE_brunt");
    let command = format!("test {{index}} -le 2 && exec {brunt} agent {{options}}");
    let (_, names) = started(&["-t", "2", "--agents", "2", "--launch", &command], &path);
    assert_eq!(names, ["agent-1", "agent-2"]);
    let fails = [
        "--agents",
        "2",
        "--launch",
        "echo no such queue; exit {index}",
    ];
    let (outcome, _) = started(&fails, &path);
    refused(&outcome, "{options}");
    let fails = "echo no such queue >&2; exit 1 # {options}";
    let (outcome, _) = started(&["--agents", "2", "--launch", fails], &path);
    refused(&outcome, "ended with exit code 1 (no such queue)");
}

#[test]
fn agents_are_started_over_ssh() {
    let brunt = Path::new(env!("CARGO_BIN_EXE_brunt"));
    let there = path_with(&[brunt.parent().expect("a directory")]);
    let sshd = Sshd::start(&there, &["east", "south"]);
    let path = path_with(&[&sshd.programs()]);
    // Both are one machine, and it has the broker, too: each needs a port of its own there.
    let (_, names) = started(&["-t", "2", "--ssh", "east,south"], &path);
    assert_eq!(names, ["east", "south"]);
    for (host, reason) in [
        ("nowhere", "Connection refused"),
        ("stranger", "Host key verification failed"),
    ] {
        let (outcome, _) = started(&["--ssh", &format!("east,{host}")], &path);
        let words = format!("agent {host}: ended with exit code 255 (");
        refused(&outcome, &words);
        refused(&outcome, reason);
    }
    let without = Sshd::start("/nonexistent", &["bare"]);
    let (outcome, _) = started(&["--ssh", "bare"], &path_with(&[&without.programs()]));
    refused(&outcome, "agent bare: ended with exit code 127");
}

#[test]
fn a_fleet_speaks_over_nats_servers_old_and_new() {
    let mut versions = Vec::new();
    for program in programs() {
        let mut asked = Command::new(&program);
        asked.arg("--version");
        versions.push(Process::start(asked).wait().stdout);
        // It is started by brunt, with users and a port of its own.
        let directory = program.parent().expect("a directory");
        let (_, names) = started(&["--local", "4"], &path_with(&[directory]));
        let all: Vec<String> = (1..=4).map(|number| format!("local-{number}")).collect();
        assert_eq!(names, all, "{}", program.display());
        // Messages of 64 KiB at most bring a result of 3 MB.
        let (address, server, stored) = (free_address(), Serve::start(), Stored::new());
        let nats = Nats::start_program(&program, address, "max_payload: 65536");
        let paths: String = (0..16_000)
            .map(|item| format!("/?item={item:060}\n"))
            .collect();
        std::fs::write(stored.place("paths"), &paths).expect("the directory is ours");
        let agent = start(&format!("agent --nats {} --wait 60s", nats.url()));
        let outcome = start(&format!(
            "fleet --agents 1 --nats {} --urls {} -c 8 -d 1s --warmup 0s -q -o {} {}",
            nats.url(),
            stored.path("paths"),
            stored.path("run.json"),
            server.url("/")
        ))
        .wait();
        assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
        assert_eq!(agent.wait().code, Some(0));
        let run = stored.read("run.json");
        let bytes = run["names"].to_string().len();
        assert!(bytes > 3_000_000, "{bytes}");
        assert_exact(&run);
        let requests = server.settled().requests;
        assert_eq!(number(&run, "/summary/all_phases/sent"), requests);
    }
    assert_ne!(versions[0], versions[1]);
    assert!(versions[1].contains("2.15"), "{versions:?}");
}

/// The words behind `key` in YAML whose texts are those of JSON, an item on a line.
fn items(manifest: &str, key: &str) -> Vec<String> {
    let lines = manifest.lines().map(str::trim);
    let lines = lines.skip_while(|line| *line != key).skip(1);
    let texts = lines.map_while(|line| line.strip_prefix("- "));
    texts
        .map(|text| serde_json::from_str(text).expect("a text"))
        .collect()
}

/// The text of a Secret under `key`.
fn secret(manifest: &str, key: &str) -> Option<String> {
    let start = format!("  {key}: ");
    let text = manifest
        .lines()
        .find_map(|line| line.strip_prefix(&start))?;
    Some(serde_json::from_str(text).expect("a text"))
}

/// A manifest, which Kubernetes takes.
fn manifest(options: &str) -> String {
    let outcome = start(&format!("fleet manifest --image brunt:1 {options}")).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let is_valid = is_valid(&outcome.stdout);
    assert!(is_valid, "{}", outcome.stdout);
    outcome.stdout
}

/// What the schemas of Kubernetes say.
fn is_valid(manifest: &str) -> bool {
    let stored = Stored::new();
    std::fs::write(stored.place("all.yaml"), manifest).expect("the directory is ours");
    let mut command = Command::new(of_pypi("kubernetes-validate-1.37.0", "kubernetes-validate"));
    command.arg("--strict").arg(stored.place("all.yaml"));
    Process::start(command).wait().code == Some(0)
}

/// What Kubernetes makes of the manifest of two agents: its NATS server and its agents.
struct Deployed {
    stored: Stored,
    url: String,
    agents: [Process; 2],
    _nats: Nats,
}

impl Deployed {
    /// Secrets are files, and the index is filled in.
    fn new(manifest: &str) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // The certificate is one of localhost. No client is given a port below 32768.
        let own = std::process::id() as u16 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + own % 10_000;
        let stored = Stored::new();
        for name in ["agent", "coordinator", "ca.pem", "key.pem", "nats.conf"] {
            let text = secret(manifest, name).expect(name);
            std::fs::write(stored.place(name), text).expect("the directory is ours");
        }
        let here = |text: String| text.replace("/etc/brunt", &stored.path(""));
        let configuration = std::fs::read_to_string(stored.place("nats.conf"));
        let configuration = configuration.expect("it is there");
        let configuration = configuration.replace("listen: \"0.0.0.0:4222\"\n", "");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let nats = Nats::start_at(address, &here(configuration));
        let url = format!("tls://localhost:{port}");
        let agents = ["0", "1"].map(|index| {
            let words = items(manifest, "args:").into_iter();
            let words = words.map(|word| {
                let word = word.replace("$(JOB_COMPLETION_INDEX)", index);
                here(word.replace("tls://brunt-nats:4222", &url))
            });
            let mut command = binary();
            command.args(words).env("JOB_COMPLETION_INDEX", index);
            Process::start(command)
        });
        Self {
            stored,
            url,
            agents,
            _nats: nats,
        }
    }

    /// Makes a load; gives how it ended, and how the agents did.
    fn load(self, load: &str) -> (Outcome, [Outcome; 2], Stored) {
        let stored = self.stored;
        let outcome = start(&format!(
            "fleet --agents 2 --nats {} --nats-ca {} --nats-credentials {} -c 4 -t 2 -d 500ms -q \
             --warmup 0s -o {} {load}",
            self.url,
            stored.path("ca.pem"),
            stored.path("coordinator"),
            stored.path("run.json"),
        ))
        .wait();
        (outcome, self.agents.map(Process::wait), stored)
    }
}

#[test]
fn a_manifest_has_what_its_agents_need() {
    let server = Serve::start();
    let text = manifest("--agents 2 --allow-target 127.0.0.1 --wait 90s");
    assert_eq!(text.matches("\nkind: ").count(), 4, "{text}");
    let (outcome, agents, stored) = Deployed::new(&text).load(&server.url("/"));
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    for outcome in agents {
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    let run = stored.read("run.json");
    assert_exact(&run);
    assert_eq!(names(&run), ["agent-0", "agent-1"]);
    let words = items(&text, "args:");
    for pair in [["--wait", "90s"], ["--allow-target", "127.0.0.1"]] {
        assert!(words.windows(2).any(|it| it == pair), "{pair:?}: {words:?}");
    }
    assert!(!words.iter().any(|word| word == "--allow-scripts"));
    // Each has passwords of its own.
    let again = manifest("--agents 2");
    assert_ne!(secret(&again, "agent"), secret(&text, "agent"));
    // The schemas refuse what is none of theirs.
    assert!(!is_valid(
        &text.replace("  completions: 2", "  completion: 2")
    ));
}

#[test]
fn agents_of_a_manifest_run_scripts_where_they_may() {
    let (server, scripts) = (Serve::start(), Stored::new());
    let script = "function request() return wrk.format(nil, '/bytes/20') end\n";
    std::fs::write(scripts.place("a.lua"), script).expect("the directory is ours");
    let load = format!("-s {} {}", scripts.path("a.lua"), server.url("/"));
    let may = manifest("--agents 2 --allow-scripts");
    let (outcome, agents, stored) = Deployed::new(&may).load(&load);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    for outcome in agents {
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    let run = stored.read("run.json");
    assert_exact(&run);
    assert_eq!(run["plan"]["is_generated"], true);
    assert!(number(&run, "/summary/replies/successes") > 0);
    let (outcome, ..) = Deployed::new(&manifest("--agents 2")).load(&load);
    refused(&outcome, "--allow-scripts");
}

#[test]
fn agents_of_a_manifest_speak_over_a_server_that_is_there() {
    let files = Stored::new();
    let given = ["credentials", "ca", "cert", "key"].map(|name| {
        let text = format!("agent:{name} \"of\" it\n");
        std::fs::write(files.place(name), &text).expect("the directory is ours");
        (format!("--nats-{name} {}", files.path(name)), text)
    });
    let options = |count: usize| -> String {
        let options = given.iter().take(count).map(|(option, _)| option.as_str());
        options.collect::<Vec<_>>().join(" ")
    };
    // Without files, the Secret is to be there.
    let url = "--nats tls://n.example:4222";
    let alone = manifest(&format!("--agents 3 {url} --job night"));
    assert!(alone.contains("\n  completions: 3\n"), "{alone}");
    assert_eq!(alone.matches("kind: ").count(), 1, "{alone}");
    assert!(alone.contains("secretName: brunt-fleet"), "{alone}");
    let expected = "agent --nats tls://n.example:4222 --nats-credentials /etc/brunt/agent \
                    --job night --wait 1h --name agent-$(JOB_COMPLETION_INDEX)";
    assert_eq!(items(&alone, "args:").join(" "), expected);
    // With files, they are in it.
    let with = manifest(&format!("--agents 3 {url} {}", options(4)));
    let words = items(&with, "args:").join(" ");
    let keys = ["agent", "ca.pem", "agent-cert.pem", "agent-key.pem"];
    for ((option, text), key) in given.iter().zip(keys) {
        assert_eq!(secret(&with, key).as_ref(), Some(text));
        let option = option.split(' ').next().expect("a word");
        let expected = format!("{option} /etc/brunt/{key}");
        assert!(words.contains(&expected), "{expected}: {words}");
        assert!(
            with.contains(&format!("{{key: {key}, path: {key}}}")),
            "{with}"
        );
    }
    // In clear text there may be nothing to hide.
    let open = manifest("--agents 1 --nats nats://n.example:4222 --nats-insecure");
    assert!(!open.contains("ecret"), "{open}");
    assert!(items(&open, "args:").contains(&"--nats-insecure".to_owned()));
    let without = given[1].0.as_str();
    let command = format!("fleet manifest --agents 1 --image i {url} {without}");
    refused(&start(&command).wait(), "--nats-credentials");
}
