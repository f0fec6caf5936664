//! The commands: the options that each has of its own, what those of a run mean there, and how a
//! command line is read.

use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_experiment::Varied;
use brunt_fleet::{AllowedTarget, Job};
use brunt_judge::{ChangeLimit, SweepAxis};
use brunt_load::{TlsVersion, units};
use brunt_server::{BackendKind, Stall, TcpService};
use clap::builder::{Resettable, Str};
use clap::{
    Arg, ArgAction, ArgGroup, Args, CommandFactory, FromArgMatches, Id, Parser, Subcommand,
};

use crate::args::{
    AnyLoadArguments, FramingArguments, LoadArguments, MessageArguments, OutputArguments,
    WebSocketArguments,
};
use crate::objectives::change_limit;
use crate::refusals::{self, Given, Refusal};
use crate::values::{
    TLS_VERSIONS, body_sizes, largest, listed_name, one_of, pairs, positive_duration, sweep_rounds,
    whole_u32, whole_u64, workers,
};

/// A load generator for servers of HTTP, WebSocket and TCP that says what limited each run.
///
/// Without a URL it starts its own reference server on loopback, which works for 10 us on each
/// request, and loads that.
#[derive(Debug, Parser)]
#[command(
    name = "brunt",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = include_str!("help/program.txt")
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) websocket: WebSocketArguments,
    /// Print what packages install beside the program, and exit: man, man-COMMAND, complete-bash,
    /// complete-zsh or complete-fish
    #[arg(long, value_name = "KIND", exclusive = true, hide = true)]
    pub(crate) generate: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the reference server, whose answers are known exactly
    Serve(ServeArguments),
    /// Measure which of several servers is faster, from rounds of load that take turns
    Compare(Box<CompareArguments>),
    /// Measure how a server scales: rounds of load at several values of one setting
    Sweep(Box<SweepArguments>),
    /// Find the highest rate at which a server meets objectives
    Find(Box<FindArguments>),
    /// Load a server that takes messages over TCP, in any framing
    Tcp(Box<TcpArguments>),
    /// Print a report from a stored run or experiment
    Report(ReportArguments),
    /// Merge stored runs of one plan, made on several machines or by several processes at once
    Merge(MergeArguments),
    /// Make one load with several agents, on this machine or on others
    Fleet(Box<FleetArguments>),
    /// Make a part of the load that brunt fleet asks for
    Agent(AgentArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// A run or experiment stored by --output FILE.json; - is standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_sweep),
    override_usage = include_str!("help/sweep-usage.txt"),
    after_help = include_str!("help/sweep.txt")
)]
pub(crate) struct SweepArguments {
    /// Rounds of each value; of 6 and more the report has 95 % intervals of the medians
    #[arg(long, value_name = "N", default_value = "3", value_parser = sweep_rounds,
          help_heading = "Sweep")]
    pub(crate) rounds: NonZeroU32,
    /// The option that is varied, and its values: connections=1..1000:10 is -c 1..1000:10
    #[arg(long, value_name = "NAME=VALUES", value_parser = str::parse::<Varied>,
          help_heading = "Sweep")]
    pub(crate) vary: Vec<Varied>,
    /// Sizes of each request's body, bytes
    #[arg(long, value_name = "VALUES", value_parser = body_sizes, help_heading = "Sweep",
          conflicts_with_all = ["body", "urls", "targets"])]
    pub(crate) body_size: Option<Varied>,
    /// The values in ascending order in each round [default: shuffled anew in each, by --seed]
    #[arg(long, help_heading = "Sweep")]
    pub(crate) fixed_order: bool,
    /// Load at the start of each round, not counted; --warmup is before all of them, at the largest
    /// value
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = units::duration_ns,
          help_heading = "Sweep")]
    pub(crate) round_warmup: u64,
    #[command(flatten)]
    pub(crate) typed: AnyLoadArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_find),
    override_usage = "brunt find [OPTIONS] --objective 'p99 < 10ms, errors < 0.1%' URL",
    after_help = include_str!("help/find.txt")
)]
pub(crate) struct FindArguments {
    /// Highest rate to try, requests per second
    #[arg(long, value_name = "RATE", default_value = "1m", value_parser = units::rate)]
    pub(crate) max_rate: f64,
    /// Longest time that the search may take; when it is over, the answer is what is known by then
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = positive_duration)]
    pub(crate) budget: u64,
    #[command(flatten)]
    pub(crate) typed: AnyLoadArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_compare),
    override_usage = include_str!("help/compare-usage.txt"),
    after_help = include_str!("help/compare.txt")
)]
pub(crate) struct CompareArguments {
    /// Pairs of rounds that count [default: 10]. brunt makes further pairs in place of those that
    /// do not count, half as many at most
    #[arg(long, value_name = "N", value_parser = pairs, help_heading = "Comparison")]
    pub(crate) pairs: Option<NonZeroU32>,
    /// Go on until each --fail-if is shown to be exceeded or kept, for this long at most. brunt
    /// looks four times at most, each time at twice as many pairs
    #[arg(long, value_name = "TIME", value_parser = positive_duration, requires = "fail_if",
          conflicts_with = "pairs", help_heading = "Comparison")]
    pub(crate) until_decided: Option<u64>,
    /// Exit code 1 where the whole interval of a server's difference from the first one is beyond
    /// this, or where nothing can be said: 'cpu > +3%' (CPU time per reply), 'rate < -5%', with -r
    /// 'p99 > +5%' (p50, p90, p99, p99.9); may be given again
    #[arg(long, value_name = "TEXT", value_parser = change_limit, help_heading = "Comparison")]
    pub(crate) fail_if: Vec<ChangeLimit>,
    /// What this URL's side, or this stored run, is called in reports [default: its --start command
    /// where the URLs are the same]; may be given once for each, in their order
    #[arg(long, value_name = "TEXT", help_heading = "Comparison")]
    pub(crate) label: Vec<String>,
    /// Start the server of this URL before each of its rounds, with sh -c, and end it after the
    /// round: SIGTERM to its process group, SIGKILL after 5 s
    #[arg(long, value_name = "COMMAND", help_heading = "Servers")]
    pub(crate) start: Vec<String>,
    /// The server is ready when this answers with 200 [default: when it takes a connection]
    #[arg(long, value_name = "URL", requires = "start", help_heading = "Servers")]
    pub(crate) ready: Vec<String>,
    /// Longest wait for a server to be ready
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_duration,
          requires = "start", help_heading = "Servers")]
    pub(crate) ready_timeout: u64,
    #[command(flatten)]
    pub(crate) typed: AnyLoadArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_tcp),
    override_usage = include_str!("help/tcp-usage.txt"),
    after_help = include_str!("help/tcp.txt")
)]
pub(crate) struct TcpArguments {
    #[command(flatten)]
    pub(crate) exchange: ExchangeArguments,
    #[command(flatten)]
    pub(crate) streams: StreamArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_fleet),
    override_usage = include_str!("help/fleet-usage.txt"),
    after_help = include_str!("help/fleet.txt"),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    pub(crate) command: Option<FleetCommand>,
    #[command(flatten)]
    pub(crate) agents: AgentsArguments,
    #[command(flatten)]
    pub(crate) typed: AnyLoadArguments,
    #[command(flatten)]
    pub(crate) broker: BrokerArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Measure how a server scales, as brunt sweep does
    #[command(
        mut_args(of_fleet),
        override_usage = include_str!("help/fleet-sweep-usage.txt")
    )]
    Sweep(Box<OfFleet<SweepArguments>>),
    /// Find the highest rate at which a server meets objectives, as brunt find does
    #[command(
        mut_args(of_fleet),
        override_usage = include_str!("help/fleet-find-usage.txt")
    )]
    Find(Box<OfFleet<FindArguments>>),
    /// Load a server that takes messages over TCP, as brunt tcp does
    #[command(
        mut_args(of_fleet_tcp),
        override_usage = include_str!("help/fleet-tcp-usage.txt")
    )]
    Tcp(Box<OfFleet<TcpArguments>>),
}

/// A command whose load a fleet makes.
#[derive(Debug, Args)]
pub(crate) struct OfFleet<T: Args> {
    #[command(flatten)]
    pub(crate) agents: AgentsArguments,
    #[command(flatten)]
    pub(crate) command: T,
    #[command(flatten)]
    pub(crate) broker: BrokerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// Runs stored by --output FILE.json, two or more: of the same plan, but for its connections,
    /// workers, requests and rates; - is standard input
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Messages and their replies.
#[derive(Debug, Args)]
pub(crate) struct ExchangeArguments {
    #[command(flatten)]
    pub(crate) list: MessageArguments,
    #[command(flatten)]
    pub(crate) framing: FramingArguments,
    /// Send nothing: open connections, with --tls the handshake too, and close them again, -c at a
    /// time or as planned. Connections per second are the throughput, the time to open one the
    /// latency
    #[arg(long, help_heading = "Load", conflicts_with_all = [
        "messages", "reply", "first", "order", "send", "receive", "both",
        "bandwidth", "hold", "pipeline", "no_keepalive", "requests_per_connection",
        "connection_rate", "verify_url"])]
    pub(crate) connect_only: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StreamArguments {
    /// Measure bandwidth: each connection sends without end. Bytes count that the server's kernel
    /// acknowledged in the window
    #[arg(long, help_heading = "Bandwidth",
          conflicts_with_all = ["messages", "reply", "first", "receive"])]
    pub(crate) send: bool,
    /// Measure bandwidth: the server sends without end, and brunt discards what it receives
    #[arg(long, help_heading = "Bandwidth",
          conflicts_with_all = ["messages", "reply", "first", "both"])]
    pub(crate) receive: bool,
    /// Measure bandwidth in both directions at once on each connection
    #[arg(long, help_heading = "Bandwidth",
          conflicts_with_all = ["messages", "reply", "first", "send"])]
    pub(crate) both: bool,
    /// Most bits per second that are sent, all connections together, as in 1g or 100mbit. The
    /// kernel paces them, each at an equal share
    #[arg(long, value_name = "SPEED", value_parser = units::link_bits_per_s,
          help_heading = "Bandwidth", conflicts_with = "receive")]
    pub(crate) bandwidth: Option<u64>,

    /// Send small writes at once (TCP_NODELAY)
    #[arg(long, value_name = "SWITCH", default_value = "on", help_heading = "Sockets",
          action = ArgAction::Set, value_parser = one_of(&[("on", "Yes", true), ("off", "No", false)]))]
    pub(crate) nodelay: bool,
    /// Bytes of each socket's send buffer, as in 256k [default: the kernel adapts it]
    #[arg(long, value_name = "BYTES", value_parser = whole_u32, help_heading = "Sockets")]
    pub(crate) sndbuf: Option<NonZeroU32>,
    /// Bytes of each socket's receive buffer [default: the kernel adapts it]
    #[arg(long, value_name = "BYTES", value_parser = whole_u32, help_heading = "Sockets")]
    pub(crate) rcvbuf: Option<NonZeroU32>,
    /// Most bytes of payload in a segment (TCP_MAXSEG)
    #[arg(long, value_name = "BYTES", value_parser = whole_u32, help_heading = "Sockets")]
    pub(crate) mss: Option<NonZeroU32>,
    /// Congestion control, as in cubic or bbr [default: that of the machine]
    #[arg(long, value_name = "NAME", help_heading = "Sockets")]
    pub(crate) congestion: Option<String>,
}

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
    after_help = include_str!("help/agent.txt")
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

/// Options of a broker.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(crate) struct BrokerArguments {
    /// NATS server that the fleet speaks over: nats://HOST:PORT, or tls://HOST:PORT, which is
    /// needed unless the server is on this machine
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// File with USER:PASSWORD for that server, on one line; - is standard input
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_credentials: Option<PathBuf>,
    /// PEM file of the roots to trust for that server [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_ca: Option<PathBuf>,
    /// PEM file of a client certificate for that server
    #[arg(long, value_name = "FILE", requires_all = ["nats", "nats_key"])]
    pub(crate) nats_cert: Option<PathBuf>,
    /// PEM file of the private key that goes with --nats-cert
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    pub(crate) nats_key: Option<PathBuf>,
    /// Speak to a server on another machine in clear text or without credentials, too: whoever can
    /// reach it can have agents make load
    #[arg(long, requires = "nats")]
    pub(crate) nats_insecure: bool,
    /// Name of the job: agents serve the coordinator that names the same one
    #[arg(long, value_name = "NAME", default_value = "brunt", requires = "nats",
          value_parser = str::parse::<Job>)]
    pub(crate) job: Job,
}

/// A kernel interface; absent: io_uring where the kernel allows it, else epoll.
type ServeBackend = Option<BackendKind>;

#[derive(Debug, Args)]
#[command(after_help = serve_routes())]
pub(crate) struct ServeArguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(short, long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Listen on a Unix socket instead
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Worker threads [default: one per usable CPU]
    #[arg(short, long, value_name = "N", value_parser = whole_u32)]
    pub(crate) threads: Option<NonZeroU32>,
    /// Kernel interface
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = one_of(&[
              ("auto", "io_uring where the kernel allows it, else epoll", None),
              ("uring", "io_uring or nothing", Some(BackendKind::Uring)),
              ("epoll", "epoll", Some(BackendKind::Epoll))]))]
    pub(crate) backend: ServeBackend,
    /// Poll instead of sleeping while there are connections: delays are exact to about a
    /// microsecond, and each worker uses a whole CPU
    #[arg(long)]
    pub(crate) spin: bool,
    /// Most connections at a time; further ones wait to be accepted
    #[arg(long, value_name = "N", default_value = "100k", value_parser = whole_u32)]
    pub(crate) connections_max: NonZeroU32,
    /// Close a connection after this time without progress, of its client or of an answer: idle,
    /// with half a head, or not reading; over HTTP/3, without packets. An answer that is due later
    /// is waited for; 0: no limit
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration_ns)]
    pub(crate) idle_timeout: u64,
    /// Bytes of input that may wait in memory, all connections together; a connection that wants
    /// more than its share is closed [default: an eighth of the memory that is available]
    #[arg(long, value_name = "N", value_parser = whole_u64)]
    pub(crate) input_max: Option<NonZeroU64>,
    /// Bytes of output that may be in memory, all connections together, with what is known of
    /// streams of HTTP/2 that are not answered yet; a connection that wants more than its share is
    /// closed [default: an eighth of the memory that is available]
    #[arg(long, value_name = "N", value_parser = whole_u64)]
    pub(crate) output_max: Option<NonZeroU64>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) tcp: ServeTcpArguments,
    #[command(flatten)]
    pub(crate) protocol: ServeProtocolArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS, HTTP/2 and HTTP/3")]
#[command(group = ArgGroup::new("secure").args(["tls", "http3"]).multiple(true))]
pub(crate) struct ServeProtocolArguments {
    /// Speak TLS, by default with a certificate made for localhost, 127.0.0.1, ::1 and the address
    /// of --listen
    #[arg(long)]
    pub(crate) tls: bool,
    /// PEM file of the certificate to show, followed by those that lead to its root
    #[arg(long, value_name = "FILE", requires = "secure")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of the private key that goes with --cert [default: the same file]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Write the certificate to this file, in PEM: for --cacert of clients
    #[arg(long, value_name = "FILE", requires = "secure")]
    pub(crate) cert_out: Option<PathBuf>,
    /// Ask clients for a certificate, and trust those that lead to a root in this PEM file
    #[arg(long, value_name = "FILE", requires = "secure")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Application protocols to offer (ALPN), preferred first, with commas between. Which one is
    /// spoken follows from a connection's first bytes in any case
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "h2,http/1.1",
          value_parser = listed_name, requires = "secure")]
    pub(crate) alpn: Vec<String>,
    /// Oldest version of TLS to speak [default: 1.2]
    #[arg(long, value_name = "VERSION", requires = "secure", value_parser = one_of(TLS_VERSIONS))]
    pub(crate) tls_min: Option<TlsVersion>,
    /// Newest version of TLS to speak [default: 1.3]
    #[arg(long, value_name = "VERSION", requires = "secure", value_parser = one_of(TLS_VERSIONS))]
    pub(crate) tls_max: Option<TlsVersion>,
    /// Let no client resume the session of an earlier connection
    #[arg(long, requires = "secure")]
    pub(crate) no_tls_resume: bool,
    /// Speak TLS, and HTTP/3, too: over UDP, on the port of --listen, with as many threads of its
    /// own
    #[arg(long, conflicts_with = "unix_socket")]
    pub(crate) http3: bool,
    /// Streams of HTTP/2 or HTTP/3 that a client may have in flight on a connection; further ones
    /// are refused
    #[arg(long, value_name = "N", default_value = "1k", value_parser = whole_u32)]
    pub(crate) h2_streams: NonZeroU32,
    /// Requests of HTTP/2 or HTTP/3 on a connection, the last one with a GOAWAY; later ones are
    /// ignored [default: no limit]
    #[arg(long, value_name = "N", value_parser = whole_u64)]
    pub(crate) h2_requests: Option<NonZeroU64>,
}

fn serve_routes() -> String {
    let routes = brunt_server::ROUTES.lines();
    let rows = routes.map(|route| format!("  {route}\n"));
    format!("Routes:\n{}", rows.collect::<String>())
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Raw TCP")]
pub(crate) struct ServeTcpArguments {
    /// Serve raw TCP on a second address, counted in /counters as `tcp`: echo and echo=FRAMING
    /// send back what they read, at once or message by message; sink and sink=FRAMING throw it
    /// away; source sends without end; reply=FRAMING:REPLY answers each message with a text
    /// (escapes as \r\n), or, where REPLY is a number (10, 64k), with so many letters, framed as
    /// the messages are. FRAMING: line, delim=BYTES, fixed=N, len8, len16be, len16le, len24be,
    /// len24le, len32be, len32le with @OFFSET and +N or -N, marker=BYTES*N, until-close. --threads
    /// are of this address then; HTTP has one more
    #[arg(long, value_name = "WHAT", value_parser = str::parse::<TcpService>)]
    pub(crate) tcp: Option<TcpService>,
    /// Where to serve it: an address, or the path of a Unix socket (with a slash in it)
    #[arg(
        long,
        value_name = "IP:PORT|PATH",
        default_value = "127.0.0.1:8081",
        requires = "tcp"
    )]
    pub(crate) tcp_listen: String,
    /// Answer so long after the message was noticed. With echo and reply=
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, requires = "tcp")]
    pub(crate) tcp_delay: Option<u64>,
    /// Neither read nor send in the first SILENCE of every PERIOD
    #[arg(long, value_name = "SILENCE/PERIOD", value_parser = str::parse::<Stall>,
          requires = "tcp")]
    pub(crate) tcp_stall: Option<Stall>,
}

impl Arguments {
    /// Reads a command line, its first word included, and which options were typed.
    ///
    /// # Errors
    ///
    /// It is wrong, or it asks for the help or the version.
    pub(crate) fn read(
        words: impl Iterator<Item = OsString>,
    ) -> Result<(Self, Given), clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let given = Given::of(&command, &matches);
        let arguments = Self::from_arg_matches(&matches);
        let arguments = arguments.map_err(|error| error.format(&mut command))?;
        Ok((arguments, given))
    }
}

/// An option as a command's help has it: in the words of `rows`, which have a line for each option
/// whose words are not those of a run, and hidden where the command refuses it.
fn reworded(option: Arg, rows: &[&'static str], refused: &[Refusal]) -> Arg {
    let id = option.get_id().as_str().to_owned();
    let mut rows = rows.iter().flat_map(|rows| rows.lines());
    let row = rows.find_map(|row| row.strip_prefix(&*id)?.strip_prefix(": "));
    let is_hidden = option.is_hide_set() || refused.iter().any(|refusal| refusal.has(&id));
    let option = option.hide(is_hidden);
    match row {
        Some(words) => option.help(words),
        None => option,
    }
}

const EXPERIMENT_ROWS: &str = include_str!("help/experiment-options.txt");
const SWEEP_ROWS: &str = include_str!("help/sweep-options.txt");
const FIND_ROWS: &str = include_str!("help/find-options.txt");
const COMPARE_ROWS: &str = include_str!("help/compare-options.txt");
const TCP_ROWS: &str = include_str!("help/tcp-options.txt");
const FLEET_ROWS: &str = include_str!("help/fleet-options.txt");

/// An option of a run in `brunt sweep`, where one of five may have several values.
fn of_sweep(option: Arg) -> Arg {
    let rows = [EXPERIMENT_ROWS, SWEEP_ROWS];
    let refused = [refusals::EXPERIMENT, refusals::SWEEP];
    let option = reworded(option, &rows, &refused);
    match option.get_id().as_str() {
        "connections" => several(option, SweepAxis::Connections, whole_u32),
        "streams" => several(option, SweepAxis::Streams, whole_u32),
        "threads" => several(option, SweepAxis::Workers, workers),
        "requests" => several(option, SweepAxis::Requests, whole_u64),
        "rate" => several(option, SweepAxis::Rate, units::rate),
        _ => option,
    }
}

/// An option that may have several values, of which the largest is that of a run.
fn several<T, E>(option: Arg, axis: SweepAxis, read: fn(&str) -> Result<T, E>) -> Arg
where
    T: Clone + Send + Sync + 'static,
    E: Display + 'static,
{
    option.value_parser(move |typed: &str| largest(axis, typed, read))
}

/// An option of a run in `brunt find`.
fn of_find(option: Arg) -> Arg {
    let rows = [EXPERIMENT_ROWS, FIND_ROWS];
    reworded(option, &rows, &[refusals::EXPERIMENT, refusals::SEARCH])
}

/// An option of a run in `brunt compare`.
fn of_compare(option: Arg) -> Arg {
    let rows = [EXPERIMENT_ROWS, COMPARE_ROWS];
    reworded(option, &rows, &[refusals::EXPERIMENT, refusals::COMPARE])
}

/// An option of a run in `brunt tcp`.
fn of_tcp(option: Arg) -> Arg {
    let option = reworded(option, &[TCP_ROWS], &[refusals::MESSAGES, refusals::TCP]);
    match option.get_id().as_str() {
        "url" => option
            .value_name("HOST:PORT")
            .help_heading(Resettable::<Str>::Reset),
        "messages" => option.short('m').help_heading("Messages"),
        "first" => option.help_heading("Messages"),
        "pipeline" => option.long("depth"),
        "unix_socket" => option.requires(Resettable::<Id>::Reset),
        "method" => option.short(None::<char>),
        _ => option,
    }
}

/// An option as `brunt fleet` has it.
fn of_fleet(option: Arg) -> Arg {
    let rows = [FLEET_ROWS, EXPERIMENT_ROWS];
    reworded(option, &rows, &[refusals::FLEET])
}

/// An option as `brunt fleet tcp` has it.
fn of_fleet_tcp(option: Arg) -> Arg {
    reworded(option, &[FLEET_ROWS], &[refusals::FLEET])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_refused_is_in_no_help_and_what_is_reworded_is_there() {
        use refusals::{COMPARE, EXPERIMENT, FLEET, MESSAGES, SEARCH, SWEEP, TCP};
        let always = ["behind_url", "no_evidence"];
        for (name, refused, rows) in [
            ("sweep", [EXPERIMENT, SWEEP], [EXPERIMENT_ROWS, SWEEP_ROWS]),
            ("find", [EXPERIMENT, SEARCH], [EXPERIMENT_ROWS, FIND_ROWS]),
            (
                "compare",
                [EXPERIMENT, COMPARE],
                [EXPERIMENT_ROWS, COMPARE_ROWS],
            ),
            ("tcp", [MESSAGES, TCP], [TCP_ROWS, ""]),
            ("fleet", [FLEET, FLEET], [EXPERIMENT_ROWS, FLEET_ROWS]),
        ] {
            let mut command = Arguments::command();
            let command = command.find_subcommand_mut(name).expect(name);
            for option in command.get_arguments() {
                let id = option.get_id().as_str();
                let is_refused =
                    refused.iter().any(|refusal| refusal.has(id)) || always.contains(&id);
                assert_eq!(option.is_hide_set(), is_refused, "{name} {id}");
            }
            for row in rows.iter().flat_map(|rows| rows.lines()) {
                let (id, words) = row.split_once(": ").expect(row);
                let option = command
                    .get_arguments()
                    .find(|option| option.get_id() == id)
                    .expect(row);
                assert_eq!(
                    option.get_help().map(ToString::to_string).as_deref(),
                    Some(words)
                );
            }
            let shown = command.render_long_help().to_string();
            assert!(!shown.contains("built-in"), "{name}: {shown}");
        }
        let mut command = Arguments::command();
        let command = command.find_subcommand_mut("tcp").expect("it is there");
        let shown = command.render_long_help().to_string();
        assert!(shown.contains("--depth <N>") && shown.contains("-m, --message <MESSAGE>"));
    }

    #[test]
    fn the_short_help_is_short_and_names_what_there_is() {
        let short = include_str!("help/short.txt");
        assert!(short.lines().count() <= 45);
        assert!(short.lines().all(|line| line.chars().count() <= 80));
        let program = Arguments::command();
        let is_option = |name: &str| {
            let mut options = program.get_arguments();
            options.any(|option| option.get_long() == Some(name)) || name == "help"
        };
        let words = short.split([' ', ',', ';', '`', '\n']);
        for name in words.filter_map(|word| word.strip_prefix("--")) {
            assert!(is_option(name), "--{name}");
        }
        let listed = short.split_once("Commands: ").map(|(_, rest)| rest);
        let (listed, _) = listed
            .and_then(|rest| rest.split_once('.'))
            .expect("the commands");
        let commands: Vec<&str> = program
            .get_subcommands()
            .map(|command| command.get_name())
            .collect();
        assert_eq!(listed.split(", ").collect::<Vec<_>>(), commands);
        let shown = program.get_arguments();
        let shown = shown.filter(|option| !option.is_positional() && !option.is_hide_set());
        assert!(shown.count() <= 75, "the help of a run stays readable");
    }
}
