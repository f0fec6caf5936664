//! The help of `brunt fleet`, and the options of `brunt agent`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_fleet::AllowedTarget;
use clap::{Arg, Args};

use crate::broker_args::BrokerArguments;
use crate::refusals::FLEET;
use crate::values::{positive_duration, whole_u32};

/// What the help of a fleet says below the options.
pub(crate) const FLEET_HELP: &str = "\
    Agents are started by themselves (brunt agent), and wait for this command. Each takes its \
    share of connections, workers and rates, and all measure one window. What they recorded is \
    merged exactly. An agent that dies or falls silent ends the load: the report says INVALID, \
    names it, and has what the others measured.\n\
    brunt fleet sweep, find and tcp are brunt sweep, find and tcp by agents, with the same \
    options.\n\
    Exit codes are those of a run. See docs/fleet.md.";

/// Which agents a fleet has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct AgentsArguments {
    /// Agents to wait for
    #[arg(long, value_name = "N", value_parser = whole_u32, conflicts_with_all = ["local", "ssh"],
          required_unless_present_any = ["local", "ssh"])]
    pub(crate) agents: Option<NonZeroU32>,
    /// Start so many agents on this machine and, without --nats, a NATS server for them, which must
    /// be installed
    #[arg(long, value_name = "N", value_parser = whole_u32, conflicts_with = "ssh")]
    pub(crate) local: Option<NonZeroU32>,
    /// Start an agent on each of these machines, commas between: ssh brings the port of a NATS
    /// server that is started here; brunt must be in the search path there
    #[arg(
        long,
        value_name = "HOSTS",
        value_delimiter = ',',
        conflicts_with = "nats"
    )]
    pub(crate) ssh: Vec<String>,
    /// Longest wait for the agents
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_duration)]
    pub(crate) gather: u64,
}

/// Options of an agent.
#[derive(Debug, Args)]
#[command(
    override_usage = "brunt agent --nats URL [OPTIONS]",
    after_help = "Makes its part of the load that brunt fleet asks for, and ends. A load whose \
        coordinator is gone for 10 s is ended.\n\
        Exit codes: 0 the coordinator has the result; 2 there is none, or it could not be handed \
        over; 130 interrupted. See docs/fleet.md."
)]
pub(crate) struct AgentArguments {
    #[command(flatten)]
    pub(crate) broker: BrokerArguments,
    /// What reports call this agent [default: the machine's name]
    #[arg(long, value_name = "NAME", help_heading = "Agent")]
    pub(crate) name: Option<String>,
    /// Load this server only, as it is named in the URL: all of its ports, or one; may be given
    /// again [default: any]
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Agent",
          value_parser = str::parse::<AllowedTarget>)]
    pub(crate) allow_target: Vec<AllowedTarget>,
    /// Run scripts (-s of brunt fleet): whoever may speak as coordinator can then run programs on
    /// the agent's machine
    #[arg(long, help_heading = "Agent")]
    pub(crate) allow_scripts: bool,
    /// Longest wait for a coordinator [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = "Agent")]
    pub(crate) wait: Option<u64>,
    /// Write what was measured to this file where the coordinator is gone; brunt merge reads it
    #[arg(long, value_name = "FILE", help_heading = "Agent")]
    pub(crate) keep: Option<PathBuf>,
}

/// An option as the help of a fleet has it.
pub(crate) fn of_fleet(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "url" => option.help(
            "URL of the server: http[s]://HOST[:PORT]/PATH, ws[s]:// for messages of WebSocket, or \
             tcp://HOST:PORT and tls://HOST:PORT for messages as brunt tcp has them",
        ),
        "messages" => option.help(
            "Message to send where the URL is ws://, wss://, tcp:// or tls://; as with brunt tcp. \
             Several are sent in turns, or as --order says",
        ),
        "threads" => option.help(
            "Worker threads, all agents together [default: of each agent as many as a run would \
             have there, with --local one]",
        ),
        id if FLEET.has(id) => option.hide(true),
        _ => option,
    }
}
