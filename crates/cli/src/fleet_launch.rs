//! The agents that `brunt fleet` starts itself: on this machine, over SSH or with a command of the
//! user's, and the broker that it starts for them.

use std::num::NonZeroU32;

use anyhow::{Context, Result, bail};
use brunt_fleet::{Broker, Job};
use brunt_judge::shell_word;

use crate::broker_args::BrokerArguments;
use crate::fleet_args::AgentsArguments;
use crate::local_broker::LocalBroker;
use crate::process_group::{Ended, ProcessGroup};

/// For how long an agent that was started here waits for its coordinator.
const WAIT: &str = "60s";
/// What `--launch` has in place of the number of an agent, from 1.
const INDEX: &str = "{index}";
/// What it has in place of the options of `brunt agent`.
const OPTIONS: &str = "{options}";
/// Never asks for a password, and ends where the port of the broker is taken on the other side.
const SSH: &str = "ssh -o BatchMode=yes -o ExitOnForwardFailure=yes";

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
    pub(crate) fn new(
        asked: &AgentsArguments,
        given: &BrokerArguments,
        runs_scripts: bool,
    ) -> Result<Self> {
        let starts = asked.local.is_some() || asked.launch.is_some() || !asked.ssh.is_empty();
        let own_broker = match &given.nats {
            None if starts => Some(LocalBroker::start()?),
            _ => None,
        };
        let (broker, job) = match (&own_broker, &given.nats) {
            (Some(own), _) => (own.broker()?, Job::fresh()),
            (None, Some(url)) => (given.broker(url)?, given.job()?),
            (None, None) => bail!("name the broker with --nats, or give --local N"),
        };
        let count = asked.count();
        let count = count.context("give --agents N, --local N or --ssh HOSTS")?;
        let mut options: Vec<String> = match &own_broker {
            Some(own) if !asked.ssh.is_empty() => options_over_ssh(own).into(),
            Some(own) => own.agent_options().into(),
            None => broker_options(asked, given),
        };
        if runs_scripts {
            options.push("--allow-scripts".to_owned());
        }
        let commands = match &own_broker {
            Some(own) if !asked.ssh.is_empty() => over_ssh(&asked.ssh, own, &options, &job),
            _ => here(asked, count, &options, &job)?,
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
    /// wanted. What ends in good order may have left the agent to something else, as `sbatch` does.
    pub(crate) fn gone(&self, is_wanted: impl Fn(&str) -> bool) -> Option<(&str, String)> {
        self.agents.iter().find_map(|(name, group)| {
            let ended = is_wanted(name).then(|| group.ended()).flatten()?;
            if ended == Ended::Code(0) {
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

/// The options of the broker, for an agent that is started here. Who the coordinator is there is
/// not for agents elsewhere: a command of the user's says who they are.
fn broker_options(asked: &AgentsArguments, given: &BrokerArguments) -> Vec<String> {
    let files = [
        ("--nats-ca", &given.nats_ca),
        ("--nats-credentials", &given.nats_credentials),
        ("--nats-cert", &given.nats_cert),
        ("--nats-key", &given.nats_key),
    ];
    let passed = match asked.launch {
        Some(_) => 1,
        None => files.len(),
    };
    let files = files.into_iter().take(passed).filter_map(|(option, path)| {
        let path = path.as_ref()?.to_string_lossy().into_owned();
        Some([option.to_owned(), path])
    });
    let url = given.nats.iter();
    let url = url.map(|url| ["--nats".to_owned(), url.clone()]);
    let mut options: Vec<String> = url.chain(files).flatten().collect();
    if given.nats_insecure {
        options.push("--nats-insecure".to_owned());
    }
    options
}

/// The options of an agent, as words of a shell.
fn agent_options(name: &str, job: &Job, broker: &[String]) -> String {
    let own = ["--name", name, "--job", job.name(), "--wait", WAIT];
    let own = own.into_iter().map(str::to_owned);
    let words = own.chain(broker.iter().cloned());
    let words: Vec<String> = words.map(|word| shell_word(&word)).collect();
    words.join(" ")
}

/// What starts agents on this machine, or as `--launch` says: their names and commands.
fn here(
    asked: &AgentsArguments,
    count: NonZeroU32,
    broker: &[String],
    job: &Job,
) -> Result<Vec<(String, String)>> {
    let numbers = 1..=count.get();
    if let Some(template) = &asked.launch {
        if !template.contains(OPTIONS) {
            bail!("--launch needs {OPTIONS}, as in --launch 'srun -N 1 brunt agent {OPTIONS}'");
        }
        let command = |number: u32| {
            let name = format!("agent-{number}");
            let options = agent_options(&name, job, broker);
            let command = template.replace(INDEX, &number.to_string());
            (name, command.replace(OPTIONS, &options))
        };
        return Ok(numbers.map(command).collect());
    }
    if asked.local.is_none() {
        return Ok(Vec::new());
    }
    let program = std::env::current_exe().context("cannot find brunt itself")?;
    let program = shell_word(&program.to_string_lossy());
    let command = |number: u32| {
        let name = format!("local-{number}");
        let options = agent_options(&name, job, broker);
        (name, format!("exec {program} agent {options}"))
    };
    Ok(numbers.map(command).collect())
}

/// The options of the broker, for an agent whose password comes through the connection.
fn options_over_ssh(broker: &LocalBroker) -> [String; 4] {
    let url = format!("nats://{}", broker.address());
    ["--nats", &url, "--nats-credentials", "/dev/stdin"].map(str::to_owned)
}

/// What starts an agent on each host: the broker's port is brought there, and the agent reads its
/// password from the connection.
fn over_ssh(
    hosts: &[String],
    broker: &LocalBroker,
    options: &[String],
    job: &Job,
) -> Vec<(String, String)> {
    let address = broker.address();
    let port = address.rsplit(':').next().unwrap_or_default();
    let file = shell_word(&broker.agent_credentials().to_string_lossy());
    let command = |host: &String| {
        let agent = format!("brunt agent {}", agent_options(host, job, options));
        let (word, agent) = (shell_word(host), shell_word(&agent));
        let command = format!("exec {SSH} -R {port}:{address} -- {word} {agent} < {file}");
        (host.clone(), command)
    };
    hosts.iter().map(command).collect()
}
