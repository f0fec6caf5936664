//! The agents that `brunt fleet` starts itself, on this machine or over SSH, and the broker that it
//! starts for them.

use std::num::NonZeroU32;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use brunt_io::process_group::{Ended, ProcessGroup};
use brunt_judge::shell_word;

use crate::local_broker::LocalBroker;
use crate::{Broker, Job};

/// For how long an agent that was started here waits for its coordinator.
const WAIT: &str = "60s";
/// Never asks for a password, has no terminal, and ends where the port is taken on the other side.
const SSH: &str = "ssh -T -o BatchMode=yes -o ExitOnForwardFailure=yes";
/// Ports that the broker has on other machines: below those that Linux gives to clients.
const FORWARDED: Range<u16> = 20_000..32_768;

/// Which agents a fleet has, and how they are reached.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// How many there are, where others start them.
    pub agents: Option<NonZeroU32>,
    /// How many are started on this machine.
    pub local: Option<NonZeroU32>,
    /// Machines on which one is started over SSH.
    pub ssh: Vec<String>,
    /// The broker that was named; absent: one is started for agents that are started here.
    pub broker: Option<NamedBroker>,
    /// Longest wait for all of them, nanoseconds.
    pub gather_ns: u64,
}

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

impl Agents {
    /// How many there are to be.
    fn count(&self) -> Option<NonZeroU32> {
        let hosts = u32::try_from(self.ssh.len()).ok().and_then(NonZeroU32::new);
        self.local.or(self.agents).or(hosts)
    }
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
    /// Starts what is asked for. Agents that are started here run scripts where that is asked for.
    pub(crate) fn new(asked: &Agents, runs_scripts: bool) -> Result<Self> {
        let starts = asked.local.is_some() || !asked.ssh.is_empty();
        let own_broker = match &asked.broker {
            None if starts => Some(LocalBroker::start()?),
            _ => None,
        };
        let (broker, job) = match (&own_broker, &asked.broker) {
            (Some(own), _) => (own.broker()?, Job::fresh()),
            (None, Some(named)) => (named.broker.clone(), named.job.clone()),
            (None, None) => bail!("name the broker with --nats, or give --local N"),
        };
        let count = asked.count();
        let count = count.context("give --agents N, --local N or --ssh HOSTS")?;
        let leave = runs_scripts.then(|| "--allow-scripts".to_owned());
        let commands = match (&own_broker, asked.local) {
            (Some(own), None) => over_ssh(&asked.ssh, own, leave, &job),
            (own, Some(count)) => {
                let options: Vec<String> = match (own, &asked.broker) {
                    (Some(own), _) => own.agent_options().into(),
                    (None, named) => named.iter().flat_map(|it| it.options.clone()).collect(),
                };
                let options: Vec<_> = options.into_iter().chain(leave).collect();
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
                said => format!("{ended} ({said})"),
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
