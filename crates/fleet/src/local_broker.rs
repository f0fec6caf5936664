//! A NATS server of our own, for the time of one load: on loopback, with users that nobody else
//! knows.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brunt_io::process_group::ProcessGroup;
use brunt_io::{clock, threads};
use brunt_judge::shell_word;

use crate::{Broker, Job};

/// The program.
const PROGRAM: &str = "nats-server";
/// Directories of servers that the search path of an ordinary user often lacks.
const EXTRA_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];
/// Longest wait for the server.
const START_NS: u64 = 10_000_000_000;
/// How often it is looked whether it is there.
const LOOK_NS: u64 = 20_000_000;

/// The server, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct LocalBroker {
    url: String,
    coordinator: String,
    /// Dropped before the directory.
    _server: ProcessGroup,
    directory: PrivateDirectory,
}

/// A directory that others cannot look into, removed when this is dropped.
#[derive(Debug)]
struct PrivateDirectory(PathBuf);

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What is left of it harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl LocalBroker {
    /// Starts one.
    pub(crate) fn start() -> Result<Self> {
        let Some(program) = installed() else {
            bail!(
                "{PROGRAM} is not installed: install it (on Debian and Ubuntu, apt install \
                 {PROGRAM}), or name a NATS server with --nats"
            );
        };
        let path = std::env::temp_dir().join(format!("brunt-{}", Job::fresh().name()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot create {}", path.display()))?;
        let directory = PrivateDirectory(path);
        let [coordinator, agent] =
            ["coordinator", "agent"].map(|user| format!("{user}:{}", Job::fresh().name()));
        let configuration = configuration(&directory.0, &coordinator, &agent);
        directory.write("nats.conf", &configuration)?;
        directory.write("agent", &agent)?;
        let file = directory.0.join("nats.conf");
        let command = format!(
            "exec {} -c {}",
            shell_word(&program.to_string_lossy()),
            shell_word(&file.to_string_lossy())
        );
        let server = ProcessGroup::start(&command);
        let server = server.with_context(|| format!("cannot start {}", program.display()))?;
        let url = await_address(&directory.0, &server)?;
        Ok(Self {
            url,
            directory,
            coordinator,
            _server: server,
        })
    }

    /// The broker, for the coordinator.
    pub(crate) fn broker(&self) -> Result<Broker> {
        Ok(Broker {
            url: self.url.clone(),
            credentials: Some(self.coordinator.parse()?),
            ..Broker::default()
        })
    }

    /// Where it listens: HOST:PORT.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("nats://")
    }

    /// The file with an agent's credentials.
    pub(crate) fn agent_credentials(&self) -> PathBuf {
        self.directory.0.join("agent")
    }

    /// Options that an agent is started with.
    pub(crate) fn agent_options(&self) -> [String; 4] {
        let credentials = self.agent_credentials();
        [
            "--nats".to_owned(),
            self.url.clone(),
            "--nats-credentials".to_owned(),
            credentials.to_string_lossy().into_owned(),
        ]
    }
}

impl PrivateDirectory {
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.0.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The configuration.
fn configuration(directory: &Path, coordinator: &str, agent: &str) -> String {
    format!(
        "listen: \"127.0.0.1:-1\"\nports_file_dir: {:?}\n{}",
        directory.display().to_string(),
        users(coordinator, agent)
    )
}

/// Users with the least that they need, as docs/fleet.md has them. Each is USER:PASSWORD.
fn users(coordinator: &str, agent: &str) -> String {
    let user = |credentials: &str, publishes: &str, subscribes: &str| {
        let (user, password) = credentials.split_once(':').unwrap_or_default();
        format!(
            "    {{ user: \"{user}\", password: \"{password}\", permissions: {{\n      \
             publish: \"{publishes}\", subscribe: \"{subscribes}\" }} }}\n"
        )
    };
    format!(
        "authorization {{\n  users: [\n{}{}  ]\n}}\n",
        user(coordinator, "brunt.*.to.*", "brunt.*.from.*"),
        user(agent, "brunt.*.from.*", "brunt.*.to.*"),
    )
}

fn installed() -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&search_path);
    let directories = directories.chain(EXTRA_DIRECTORIES.iter().map(PathBuf::from));
    directories
        .map(|directory| directory.join(PROGRAM))
        .find(|path| path.is_file())
}

/// Waits until the server has written which port it took.
fn await_address(directory: &Path, server: &ProcessGroup) -> Result<String> {
    let began_ns = clock::now_ns();
    loop {
        if let Some(url) = address_in(directory) {
            return Ok(url);
        }
        if let Some(ended) = server.ended() {
            bail!("{PROGRAM} {ended}: {}", server.tail().trim_end());
        }
        if clock::now_ns() - began_ns > START_NS {
            bail!("{PROGRAM} did not start within 10 s");
        }
        threads::sleep(LOOK_NS);
    }
}

/// Where the server listens, by its file; absent until that is whole.
fn address_in(directory: &Path) -> Option<String> {
    let entries = fs::read_dir(directory).ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let path = paths.find(|path| path.extension().is_some_and(|it| it == "ports"))?;
    let text = fs::read_to_string(path).ok()?;
    let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(ports.get("nats")?.get(0)?.as_str()?.to_owned())
}
