//! The agents that `brunt fleet` starts itself, on this machine or over SSH, and the broker that it
//! starts for them.

use std::fs::{self, Permissions};
use std::num::NonZeroU32;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brunt_io::process_group::{Ended, ProcessGroup};
use brunt_io::{clock, threads};
use brunt_judge::shell_word;
use tempfile::TempDir;

use crate::{Broker, Job};

/// For how long an agent that was started here waits for its coordinator.
const WAIT: &str = "60s";
/// Never asks for a password, has no terminal, and ends where the port is taken on the other side.
const SSH: &str = "ssh -T -o BatchMode=yes -o ExitOnForwardFailure=yes";
/// Ports that the broker has on other machines: below those that Linux gives to clients.
const FORWARDED: Range<u16> = 20_000..32_768;

/// A broker that was named.
#[derive(Clone, Debug)]
pub struct NamedBroker {
    /// The broker, for the coordinator.
    pub broker: Broker,
    /// The job.
    pub job: Job,
    /// The options with which an agent on this machine finds it.
    pub options: Vec<String>,
}

/// What a fleet is gathered for.
#[derive(Clone, Debug)]
pub struct Task {
    /// How many agents there are, where others start them.
    pub agents: Option<NonZeroU32>,
    /// How many are started on this machine.
    pub local: Option<NonZeroU32>,
    /// Machines on which one is started over SSH.
    pub ssh: Vec<String>,
    /// The broker that was named; absent: one is started for agents that are started here.
    pub broker: Option<NamedBroker>,
    /// Longest wait for all of them, nanoseconds.
    pub gather_ns: u64,
    /// Whether scripts make the requests.
    pub has_script: bool,
    /// Whether anything but the plan makes the requests.
    pub is_generated: bool,
    /// Whether the number of workers was given.
    pub has_workers: bool,
    /// Whether nothing is said of who is there.
    pub is_quiet: bool,
}

/// Where the agents are, and those that were started here.
pub(crate) struct Started {
    pub(crate) count: NonZeroU32,
    pub(crate) broker: Broker,
    pub(crate) job: Job,
    /// Ended before the broker is.
    agents: Vec<(String, ProcessGroup)>,
    _own_broker: Option<LocalBroker>,
}

impl Started {
    /// Starts the agents of `task` that are started here, and a broker where they need one.
    pub(crate) fn new(task: &Task) -> Result<Self> {
        let starts = task.local.is_some() || !task.ssh.is_empty();
        let own_broker = match &task.broker {
            None if starts => Some(LocalBroker::start()?),
            _ => None,
        };
        let NamedBroker {
            broker,
            job,
            mut options,
        } = match (&own_broker, &task.broker) {
            (Some(own), _) => own.named()?,
            (None, Some(named)) => named.clone(),
            (None, None) => bail!("name the broker with --nats, or give --local N"),
        };
        let hosts = u32::try_from(task.ssh.len()).ok().and_then(NonZeroU32::new);
        let count = task.local.or(task.agents).or(hosts);
        let count = count.context("give --agents N, --local N or --ssh HOSTS")?;
        let leave = task.has_script.then(|| "--allow-scripts".to_owned());
        let commands = match (&own_broker, task.local) {
            (Some(own), None) => over_ssh(&task.ssh, own, leave, &job),
            (_, Some(count)) => {
                options.extend(leave);
                here(count, &options, &job)?
            }
            (None, None) => Vec::new(),
        };
        let agents = commands.into_iter().map(|(name, command)| {
            let group = ProcessGroup::start(&command).context("cannot start an agent")?;
            Ok((name, group))
        });
        let agents = agents.collect::<Result<_>>()?;
        Ok(Self {
            count,
            broker,
            job,
            agents,
            _own_broker: own_broker,
        })
    }

    /// An agent that ended without having been asked to, and its last words: one of those that are
    /// wanted. One that ended in good order has said so to the coordinator.
    pub(crate) fn gone(&self, is_wanted: impl Fn(&str) -> bool) -> Option<(&str, String)> {
        self.agents.iter().find_map(|(name, group)| {
            let ended = group.ended()?;
            if ended == Ended::Code(0) || !is_wanted(name) {
                return None;
            }
            let tail = group.tail();
            let last = tail.trim_end().lines().last().unwrap_or_default();
            let reason = match last.strip_prefix("brunt: ").unwrap_or(last) {
                "" => ended.to_string(),
                words => format!("{ended} ({words})"),
            };
            Some((name.as_str(), reason))
        })
    }
}

/// The options of an agent, as words of a shell.
fn agent_options(name: &str, job: &Job, broker: &[String]) -> String {
    let own = ["--name", name, "--job", job.name(), "--wait", WAIT];
    let own = own.into_iter().map(str::to_owned);
    let words = own.chain(broker.iter().cloned());
    let words: Vec<String> = words.map(|word| shell_word(&word)).collect();
    words.join(" ")
}

/// What starts agents on this machine: their names and commands.
fn here(count: NonZeroU32, broker: &[String], job: &Job) -> Result<Vec<(String, String)>> {
    let program = std::env::current_exe().context("cannot find brunt itself")?;
    let program = shell_word(&program.to_string_lossy());
    let command = |number: u32| {
        let name = format!("local-{number}");
        let options = agent_options(&name, job, broker);
        (name, format!("exec {program} agent {options}"))
    };
    Ok((1..=count.get()).map(command).collect())
}

/// What starts an agent on each host: the broker's port is brought there, and the agent reads its
/// password from the connection.
fn over_ssh(
    hosts: &[String],
    broker: &LocalBroker,
    leave: Option<String>,
    job: &Job,
) -> Vec<(String, String)> {
    let address = broker.address();
    let file = shell_word(&broker.agent_credentials().to_string_lossy());
    let command = |(host, port): (&String, u16)| {
        let url = format!("nats://127.0.0.1:{port}");
        let options = ["--nats", &url, "--nats-credentials", "-"].map(str::to_owned);
        let options: Vec<_> = options.into_iter().chain(leave.clone()).collect();
        let agent = format!("brunt agent {}", agent_options(host, job, &options));
        let (word, agent) = (shell_word(host), shell_word(&agent));
        let command = format!("exec {SSH} -R {port}:{address} -- {word} {agent} < {file}");
        (host.clone(), command)
    };
    hosts.iter().zip(ports(address)).map(command).collect()
}

/// The port of the broker at `address` on each host. They differ: two agents may be on one host, or
/// one on this machine, where the broker's own port is taken.
fn ports(address: &str) -> impl Iterator<Item = u16> {
    let port = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    let own: u16 = port.unwrap_or_default();
    let count = FORWARDED.end - FORWARDED.start;
    // The system gave the broker one of its free ports: as good as a random number.
    (own % count..count)
        .chain(0..count)
        .map(|place| FORWARDED.start + place)
}

/// The file with the credentials of agents.
const AGENT: &str = "agent";
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
struct LocalBroker {
    url: String,
    coordinator: String,
    /// Dropped before the directory.
    _server: ProcessGroup,
    /// Others cannot look into it.
    directory: TempDir,
}

impl LocalBroker {
    /// Starts one.
    fn start() -> Result<Self> {
        let Some(program) = installed() else {
            bail!(
                "{PROGRAM} is not installed: install it (on Debian and Ubuntu, apt install \
                 {PROGRAM}), or name a NATS server with --nats"
            );
        };
        let directory = tempfile::Builder::new()
            .prefix("brunt-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("cannot create a directory for the broker")?;
        let [coordinator, agent] =
            ["coordinator", "agent"].map(|user| format!("{user}:{}", Job::fresh().name()));
        let file = directory.path().join("nats.conf");
        let configuration = configuration(directory.path(), &coordinator, &agent);
        for (path, text) in [
            (&file, &configuration),
            (&directory.path().join(AGENT), &agent),
        ] {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let command = format!(
            "exec {} -c {}",
            shell_word(&program.to_string_lossy()),
            shell_word(&file.to_string_lossy())
        );
        let server = ProcessGroup::start(&command);
        let server = server.with_context(|| format!("cannot start {}", program.display()))?;
        let url = await_address(directory.path(), &server)?;
        Ok(Self {
            url,
            directory,
            coordinator,
            _server: server,
        })
    }

    /// The broker, for a job that nobody else has.
    fn named(&self) -> Result<NamedBroker> {
        let credentials = self.agent_credentials();
        let credentials = credentials.to_string_lossy();
        let options = ["--nats", &self.url, "--nats-credentials", &credentials];
        Ok(NamedBroker {
            broker: Broker {
                url: self.url.clone(),
                credentials: Some(self.coordinator.parse()?),
                ..Broker::default()
            },
            job: Job::fresh(),
            options: options.map(str::to_owned).into(),
        })
    }

    /// Where it listens: HOST:PORT.
    fn address(&self) -> &str {
        self.url.trim_start_matches("nats://")
    }

    /// The file with an agent's credentials.
    fn agent_credentials(&self) -> PathBuf {
        self.directory.path().join(AGENT)
    }
}

/// The configuration: users with the least that they need, as docs/fleet.md has them. Each is
/// USER:PASSWORD.
fn configuration(directory: &Path, coordinator: &str, agent: &str) -> String {
    let user = |credentials: &str, publishes: &str, subscribes: &str| {
        let (user, password) = credentials.split_once(':').unwrap_or_default();
        format!(
            "    {{ user: \"{user}\", password: \"{password}\", permissions: {{\n      \
             publish: \"{publishes}\", subscribe: \"{subscribes}\" }} }}\n"
        )
    };
    format!(
        "listen: \"127.0.0.1:-1\"\nports_file_dir: {:?}\n\
         authorization {{\n  users: [\n{}{}  ]\n}}\n",
        directory.display().to_string(),
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
    let path = paths.find(|path| path.extension().is_some_and(|ending| ending == "ports"))?;
    let text = fs::read_to_string(path).ok()?;
    let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(ports.get("nats")?.get(0)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_ports_of_their_own() {
        for (address, first) in [
            ("127.0.0.1:20000", 20_000 + 20_000 % 12_768),
            ("127.0.0.1:12767", 32_767),
            ("127.0.0.1:0", 20_000),
        ] {
            let ports: Vec<u16> = ports(address).take(1_000).collect();
            assert_eq!(ports[0], first, "{address}");
            assert!(ports.iter().all(|port| FORWARDED.contains(port)));
            let distinct: std::collections::BTreeSet<_> = ports.iter().collect();
            assert_eq!(distinct.len(), ports.len(), "{address}");
        }
    }
}
