//! What was typed: the options of every command, before anything is looked up or opened.

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_judge::ChangeLimit;
use brunt_load::{ArrivalProcess, ServerCounter, ThinkTime, Watch, units};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::broker_args::BrokerArguments;
use crate::experiment_help::{COMPARE, FIND, SWEEP};
use crate::fail_if::change_limit;
use crate::fleet_args::{AgentArguments, AgentsArguments, FLEET_HELP, of_fleet};
use crate::output_args::OutputArguments;
use crate::part_args::PartArguments;
use crate::program_help::PROGRAM_HELP;
use crate::protocol_args::ProtocolArguments;
use crate::refusals::Given;
use crate::serve_args::ServeArguments;
use crate::source::{Fields, Source};
use crate::sweep_values::{Varied, body_sizes, varied};
use crate::tcp_args::{ExchangeArguments, FramingArguments, TCP_HELP, of_messages};
use crate::tcp_streams::StreamArguments;
use crate::values::{
    Stages, Unshown, header, length, method, pairs, positive_duration, request_timeout, requests,
    sequence_start, server_counter, stages, sweep_rounds, think_time, watch, whole_u32, whole_u64,
    workers,
};
use crate::websocket_args::WebSocketArguments;

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
    after_help = PROGRAM_HELP
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

/// The backend, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// io_uring where the kernel allows it, else epoll
    Auto,
    /// io_uring; epoll where it is refused, and the report says so
    Uring,
    /// epoll
    Epoll,
}

/// An arrival process, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsName {
    /// In even steps
    Constant,
    /// As from many independent users
    Poisson,
    /// One at a random instant of each step
    Uniform,
}

/// On which connections the kernel's receive time stamps are taken, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StampsName {
    /// All connections
    Full,
    /// One connection in 16
    Sampled,
    /// None: brunt's own share of the response times is not known
    Off,
}

/// Whether workers poll while they wait, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpinName {
    /// With planned arrivals, where CPUs are to spare
    Auto,
    /// Always: each worker uses a whole CPU
    On,
    /// Never
    Off,
}

/// The order of a list of requests, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// One after the other, over and over
    Turns,
    /// One after the other on each connection by itself, which begins with the first one
    Connection,
    /// A random one each time, likely in proportion to its weight
    Random,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// What to load, as http[s]://HOST[:PORT]/PATH, or ws[s]:// for messages of WebSocket; without
    /// it, the built-in reference server
    pub(crate) url: Option<String>,
    /// Whatever comes after the URL: for a script; else refused, with what was meant
    #[arg(hide = true)]
    pub(crate) behind_url: Vec<String>,

    /// Connections held at once, all workers together; with planned connections, most at once
    /// [default: 64; 10k with planned connections]
    #[arg(short, long, value_name = "N", value_parser = whole_u32, help_heading = "Load")]
    pub(crate) connections: Option<NonZeroU32>,
    /// Number of worker threads; the scheduler places them [default: half of the usable CPUs for a
    /// server on this machine, each bound to a CPU; else one per usable CPU, with planned arrivals
    /// one fewer; at most one per connection]
    #[arg(short, long, value_name = "N", value_parser = workers, help_heading = "Load")]
    pub(crate) threads: Option<NonZeroU32>,
    /// Length of the measure phase [default: 10s, or no limit with --requests]
    #[arg(short, long, value_name = "TIME", value_parser = length, help_heading = "Load")]
    pub(crate) duration: Option<u64>,
    /// Number of requests to send in the measure phase; with --rate, of planned ones
    #[arg(short = 'n', long, value_name = "N", value_parser = requests, help_heading = "Load")]
    pub(crate) requests: Option<NonZeroU64>,
    /// Load before the measure phase, not counted in any rate [default: 1s, or none with
    /// --requests]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, help_heading = "Load")]
    pub(crate) warmup: Option<u64>,
    /// Show the first 512 bytes of one response of each error status, of four statuses at most
    #[arg(long, help_heading = "Load", conflicts_with = "redact")]
    pub(crate) show_errors: bool,
    /// Requests in flight per connection in HTTP/1.1 (pipelining)
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole_u32,
          help_heading = "Load")]
    pub(crate) pipeline: NonZeroU32,
    /// Send nothing: open the connections, at --connection-rate if that is given, keep them open
    /// for the duration, and report how many were lost
    #[arg(long, help_heading = "Load", conflicts_with_all = [
        "requests", "rate", "stages", "arrivals", "max_connections", "no_keepalive",
        "requests_per_connection", "think_time", "pipeline", "streams", "urls", "targets",
        "sessions", "script", "method", "body", "show_errors", "objective", "hdr_log", "hgrm",
        "latency", "verify_url"])]
    pub(crate) hold: bool,
    /// A new connection for each request; in HTTP/1.1 with Connection: close
    #[arg(long, help_heading = "Load",
          conflicts_with_all = ["requests_per_connection", "pipeline", "streams"])]
    pub(crate) no_keepalive: bool,
    /// Replace each connection after this many requests
    #[arg(long, value_name = "N", value_parser = whole_u64, help_heading = "Load")]
    pub(crate) requests_per_connection: Option<NonZeroU64>,
    /// Pause between a reply and the next request on its connection: always TIME, or random with
    /// that mean: TIME,exp (exponential) or TIME,uniform (0 to twice the mean). The first requests
    /// of a closed loop are spread over it
    #[arg(long, value_name = "TIME[,SPREAD]", value_parser = think_time, help_heading = "Load",
          conflicts_with_all = ["rate", "stages"])]
    pub(crate) think_time: Option<ThinkTime>,

    /// Open loop: requests per second, planned without regard to replies; response times count
    /// from the planned instants. At most 10m for each worker
    #[arg(short, long, value_name = "RATE", value_parser = units::rate, help_heading = "Arrivals",
          allow_hyphen_values = true, conflicts_with_all = ["stages", "connection_rate"])]
    pub(crate) rate: Option<f64>,
    /// Open loop whose rate changes: steps TIME:RATE and ramps TIME:RATE..RATE, as in
    /// 10s:1k..5k,30s:5k,10s:5k..0; their sum is the duration
    #[arg(long, value_name = "LIST", value_parser = stages, help_heading = "Arrivals",
          allow_hyphen_values = true, conflicts_with_all = ["duration", "connection_rate"])]
    pub(crate) stages: Option<Stages>,
    /// Connections per second, each with the requests of --requests-per-connection or
    /// --no-keepalive, or with a session of --sessions; with none of them, how fast set-up opens
    /// those of a closed loop
    #[arg(long, value_name = "RATE", value_parser = units::rate, help_heading = "Arrivals",
          allow_hyphen_values = true)]
    pub(crate) connection_rate: Option<f64>,
    /// How arrivals are spread around their rate [default: constant]
    #[arg(long, value_name = "PROCESS", help_heading = "Arrivals")]
    pub(crate) arrivals: Option<ArrivalsName>,
    /// Seed of all that is random: arrivals, think times, --order random and numbers that are
    /// filled in [default: a fresh one, named in the report]
    #[arg(long, value_name = "N", help_heading = "Arrivals")]
    pub(crate) seed: Option<u64>,
    /// Most connections: where an arrival finds none free, further ones are opened up to this
    /// number [default: --connections]
    #[arg(long, value_name = "N", value_parser = whole_u32, help_heading = "Arrivals")]
    pub(crate) max_connections: Option<NonZeroU32>,

    /// Requests to send, a URL per line, all of one server; with a URL on the command line, paths
    /// suffice. weight=3 after a URL sends it three times as often; - is standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "targets",
        help_heading = "Request"
    )]
    pub(crate) urls: Option<PathBuf>,
    /// Requests to send, as vegeta's targets: METHOD URL, perhaps weight=N, header fields and
    /// @BODYFILE, or JSON lines; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body"],
          help_heading = "Request")]
    pub(crate) targets: Option<PathBuf>,
    /// Sessions to replay, as httperf's --wsesslog has them: a path per line, followed by method=,
    /// think= (seconds) and contents='...' if need be; indented lines are requested all at once
    /// when the line above them is answered; an empty line begins the next session. Each session
    /// has a connection of its own: -c at a time, or --connection-rate of them per second.
    /// --think-time is the pause where a burst has none; - is standard input
    #[arg(long, value_name = "FILE", requires = "url", help_heading = "Request",
          conflicts_with_all = ["urls", "targets", "script", "method", "body", "rate", "stages",
                                "pipeline", "no_keepalive", "requests_per_connection",
                                "http2", "http3", "streams"])]
    pub(crate) sessions: Option<PathBuf>,
    /// Order of the requests of a list: in turns, or at random with the seed of --seed. Either
    /// keeps to their weights
    #[arg(
        long,
        value_name = "ORDER",
        value_enum,
        default_value = "turns",
        help_heading = "Request"
    )]
    pub(crate) order: OrderName,
    /// Run a script in Lua, as wrk does: it makes the requests and looks at the responses. Words
    /// after the URL are its arguments; options among them come after `--`. See docs/scripts.md
    #[arg(short, long, value_name = "FILE", requires = "url", help_heading = "Request",
          conflicts_with_all = ["urls", "targets", "pipeline", "no_keepalive", "http2",
                                "http3", "streams"])]
    pub(crate) script: Option<PathBuf>,
    /// Request method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD", value_parser = method, help_heading = "Request")]
    pub(crate) method: Option<String>,
    /// Header field `Name: value`, added to or in place of brunt's own. @env:NAME in the value is
    /// replaced by that variable; @FILE, @- (standard input) or @env:NAME alone hold fields, one
    /// per line. Repeatable
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = header,
          help_heading = "Request")]
    pub(crate) headers: Vec<Fields>,
    /// Body of each request: text, or @FILE, @- (standard input) or @env:NAME. In it, in header
    /// fields and in URLs, {{seq}}, {{rand LOW HIGH}} and {{uuid}} are filled in, over HTTP/1.1;
    /// \{{ is two braces. See docs/lists.md
    #[arg(short, long, value_name = "TEXT", value_parser = Source::of, help_heading = "Request")]
    pub(crate) body: Option<Source>,
    /// First number of {{seq}}, up to 100g, so that a run does not send those of the last one
    /// again; sequences with a start of their own begin as much later [default: 1]
    #[arg(long, value_name = "N", value_parser = sequence_start, help_heading = "Request",
          conflicts_with_all = ["script", "sessions"])]
    pub(crate) seq_from: Option<NonZeroU64>,
    /// The request byte by byte, in HTTP/1.1 or 1.0: text with \r, \n, \xHH and the like, or @FILE,
    /// @- (standard input) or @env:NAME as they are. It is sent as it is, followed by --body, but
    /// for what is filled in, as in --body. The URL says where to. Repeatable: several requests,
    /// also those of one text, are sent in turns
    #[arg(long, value_name = "TEXT", value_parser = Source::of, requires = "url",
          help_heading = "Request",
          conflicts_with_all = ["method", "headers", "user", "urls", "targets", "sessions",
                                "script", "http2", "streams"])]
    pub(crate) raw: Vec<Source>,
    /// Basic authentication (RFC 7617): USER:PASSWORD, or @FILE, @- or @env:NAME, which keep the
    /// password out of the list of processes
    #[arg(short, long, value_name = "USER", value_parser = Unshown(Source::of),
          help_heading = "Request")]
    pub(crate) user: Option<Source>,

    #[command(flatten)]
    pub(crate) part: PartArguments,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArguments,

    /// Connect through a Unix socket; the URL gives Host and path
    #[arg(
        long,
        value_name = "PATH",
        requires = "url",
        help_heading = "Connections"
    )]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Local address to connect from; repeatable, each offers its own ports
    #[arg(
        long = "source-address",
        value_name = "IP",
        help_heading = "Connections"
    )]
    pub(crate) source_addresses: Vec<IpAddr>,
    /// Limit of one connection attempt, with its TLS handshake and HTTP/2 settings
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive_duration,
          help_heading = "Connections")]
    pub(crate) connect_timeout: u64,
    /// Limit of one request to the end of its reply, from its send or, in an open loop, from its
    /// planned instant
    #[arg(short = 'T', long, value_name = "TIME", default_value = "10s",
          value_parser = request_timeout, help_heading = "Connections")]
    pub(crate) timeout: u64,
    /// Longest wait for the last replies after the measure phase; 1 s after an interrupt [default:
    /// --timeout]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns,
          help_heading = "Connections")]
    pub(crate) drain: Option<u64>,
    /// Kernel interface
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        hide_possible_values = false,
        help_heading = "Connections"
    )]
    pub(crate) backend: BackendName,
    /// Connections on which the kernel notes when replies arrive
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "sampled",
        help_heading = "Connections"
    )]
    pub(crate) stamps: StampsName,
    /// Poll for the next instant instead of sleeping
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Connections"
    )]
    pub(crate) spin: SpinName,
    /// Allow more worker threads than usable CPUs
    #[arg(long, help_heading = "Connections")]
    pub(crate) oversubscribe: bool,

    /// Server processes to watch: auto (those that listen, on this machine), off, a process id, a
    /// name, cgroup:PATH, or container:NAME
    #[arg(long, value_name = "WHAT", default_value = "auto", value_parser = watch,
          help_heading = "Evidence")]
    pub(crate) watch: Watch,
    /// Compare with the server's own count of requests, or of bytes of streams, read before and
    /// after the run; #PATH names it in JSON (requests.total) or a Prometheus metric [default PATH:
    /// found by itself]
    #[arg(long, value_name = "URL[#PATH]", value_parser = Unshown(server_counter),
          help_heading = "Evidence")]
    pub(crate) verify_url: Option<ServerCounter>,
    /// Speed of the slowest link on the way to the server in bits per second, as in 2.5gbit
    /// [default: what the driver of brunt's own interface says]
    #[arg(long, value_name = "SPEED", value_parser = units::link_bits_per_s,
          help_heading = "Evidence")]
    pub(crate) link_speed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,

    /// Read nothing of machine, network and server: there is no verdict. To measure what reading
    /// costs
    #[arg(long, hide = true)]
    pub(crate) no_evidence: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// A run or experiment stored by --output FILE.json; - is standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// The load of an experiment: what it speaks follows from the URL.
#[derive(Debug, Args)]
pub(crate) struct AnyLoadArguments {
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) websocket: WebSocketArguments,
    #[command(flatten)]
    pub(crate) framing: FramingArguments,
}

/// A search for the capacity of a server.
#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Highest rate to try, requests per second
    #[arg(long, value_name = "RATE", default_value = "1m", value_parser = units::rate)]
    pub(crate) max_rate: f64,
}

/// Sweeps that are often wanted, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepPreset {
    /// -c 1..256:x2 --rounds 3 -d 500ms
    Quick,
    /// -c 1..1000:10 --rounds 3 -d 1s, the loop that many scripts around ab make
    Classic,
}

#[derive(Debug, Args)]
#[command(
    mut_args(|option| SWEEP.of(option)),
    override_usage = "brunt sweep [OPTIONS] -c 1..1000:10 URL\n       \
        brunt sweep [OPTIONS] --preset classic URL",
    after_help = "One of -c, -r, -t, --streams, -n and --body-size has several values:\n  \
        1..1000:10   from 1 in steps of 10 up to 1000\n  \
        1..10k:x2    from 1, each twice the one before, up to 10k\n  \
        1,10,100     these; parts may be mixed, as in 1,2,10..100:10\n\
        See docs/experiments.md."
)]
pub(crate) struct SweepArguments {
    /// Rounds of each value; of 6 and more the report has 95 % intervals of the medians
    #[arg(long, value_name = "N", default_value = "3", value_parser = sweep_rounds,
          help_heading = "Sweep")]
    pub(crate) rounds: NonZeroU32,
    /// The option that is varied, and its values: connections=1..1000:10 is -c 1..1000:10
    #[arg(long, value_name = "NAME=VALUES", value_parser = varied, help_heading = "Sweep")]
    pub(crate) vary: Vec<Varied>,
    /// Sizes of each request's body, bytes
    #[arg(long, value_name = "VALUES", value_parser = body_sizes, help_heading = "Sweep",
          conflicts_with_all = ["body", "urls", "targets", "preset"])]
    pub(crate) body_size: Option<Varied>,
    /// A sweep that is often wanted
    #[arg(long, value_name = "NAME", help_heading = "Sweep",
          conflicts_with_all = ["vary", "connections", "rounds", "duration"])]
    pub(crate) preset: Option<SweepPreset>,
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
    mut_args(|option| FIND.of(option)),
    override_usage = "brunt find [OPTIONS] --objective 'p99 < 10ms, errors < 0.1%' URL",
    after_help = "Open loop: low load shows whether any rate can meet the objectives. Then the \
        rate is doubled until an objective is missed (or lowered until all are met). The gap \
        between the two rates is halved until they differ by 2 %. The rate that holds is measured \
        three times more, each for three times as long, and the rate that missed once before that \
        and once after it. After an overload the search waits at low load until the server has \
        recovered. Where brunt is the limit, the search goes on below \
        that rate. When --budget is over, the answer is what is known by then. An objective is met \
        only if the pessimistic end of its 95 % interval meets it; windows are as long as that \
        needs. -r is the first rate, -d the shortest window [default: 2s], --warmup that of each \
        step [default: 500ms], -c the connections that are held, --max-connections those that may \
        be opened [default: 1k].\n\
        Exit codes: 0 a rate holds (when the budget is over: at least that rate), or brunt was the \
        limit before the server; 1 no rate holds. See docs/experiments.md."
)]
pub(crate) struct FindArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    /// Longest time that the search may take; when it is over, the answer is what is known by then
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = positive_duration)]
    pub(crate) budget: u64,
    #[command(flatten)]
    pub(crate) typed: AnyLoadArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(|option| COMPARE.of(option)),
    override_usage = "brunt compare [OPTIONS] URL URL...\n       \
        brunt compare [OPTIONS] --objective 'p99 < 10ms' URL URL...\n       \
        brunt compare OLD.json NEW.json...",
    after_help = "Rounds of the servers take turns, in pairs of random order, so that a change of \
        the machine affects all alike. A closed loop compares throughput at equal connections, -r \
        response times at an equal rate, and --objective the highest rates that hold objectives, \
        by a search of each in turns (-r is its first rate). Stored runs are compared by the \
        interval that each has by itself: it does not include how runs vary from one to the \
        next.\n\
        --start, --ready, --warmup-command and --stop are given once for each URL, in the order of \
        the URLs, and '' where there is none. With --start only one server runs at a time, so that \
        two builds can use one port:\n  \
        brunt compare --start './old -p 8080' --start './new -p 8080' URL URL\n\
        Exit codes: 0 compared; 1 a limit of --fail-if is exceeded, or nothing can be said of it; \
        4 nothing can be said of a server. See docs/experiments.md."
)]
pub(crate) struct CompareArguments {
    /// Pairs of rounds that count [default: 10]. brunt makes further pairs in place of those that
    /// do not count, half as many at most
    #[arg(long, value_name = "N", value_parser = pairs, conflicts_with = "objective",
          help_heading = "Comparison")]
    pub(crate) pairs: Option<NonZeroU32>,
    /// Go on until each --fail-if is shown to be exceeded or kept, for this long at most. brunt
    /// looks four times at most, each time at twice as many pairs
    #[arg(long, value_name = "TIME", value_parser = positive_duration, requires = "fail_if",
          conflicts_with_all = ["pairs", "objective"], help_heading = "Comparison")]
    pub(crate) until_decided: Option<u64>,
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    /// Exit code 1 where the whole interval of a server's difference from the first one is beyond
    /// this, or where nothing can be said: 'cpu > +3%' (CPU time per reply), 'rate < -5%', with -r
    /// 'p99 > +5%' (p50, p90, p99, p99.9), with --objective 'capacity < -5%'; may be given again
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
    /// Run this to its end before each round of this URL's server, to fill caches, for example
    #[arg(long, value_name = "COMMAND", help_heading = "Servers")]
    pub(crate) warmup_command: Vec<String>,
    /// Run this to end the server, before its process group is ended: for one that --start leaves
    /// to run by itself, such as a container
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "start",
        help_heading = "Servers"
    )]
    pub(crate) stop: Vec<String>,
    #[command(flatten)]
    pub(crate) typed: AnyLoadArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_messages),
    override_usage = "brunt tcp [OPTIONS] -m MESSAGE --reply FRAMING HOST:PORT\n       \
                      brunt tcp [OPTIONS] --hold | --connect-only HOST:PORT\n       \
                      brunt tcp [OPTIONS] --send | --receive | --both HOST:PORT",
    after_help = TCP_HELP
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
    override_usage = "brunt fleet --local N [OPTIONS] URL\n       \
        brunt fleet --ssh HOSTS [OPTIONS] URL\n       \
        brunt fleet --agents N --nats URL [OPTIONS] URL\n       \
        brunt fleet sweep --local N [OPTIONS] -c 2..1000:x2 URL\n       \
        brunt fleet find --local N [OPTIONS] --objective 'p99 < 10ms' URL\n       \
        brunt fleet tcp --local N [OPTIONS] HOST:PORT",
    after_help = FLEET_HELP,
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
    Sweep(Box<FleetSweepArguments>),
    /// Find the highest rate at which a server meets objectives, as brunt find does
    Find(Box<FleetFindArguments>),
    /// Load a server that takes messages over TCP, as brunt tcp does
    Tcp(Box<FleetTcpArguments>),
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_fleet),
    override_usage = "brunt fleet sweep --local N [OPTIONS] -c 2..1000:x2 URL\n       \
        brunt fleet sweep --ssh HOSTS [OPTIONS] -c 2..1000:x2 URL\n       \
        brunt fleet sweep --agents N --nats URL [OPTIONS] -c 2..1000:x2 URL"
)]
pub(crate) struct FleetSweepArguments {
    #[command(flatten)]
    pub(crate) agents: AgentsArguments,
    #[command(flatten)]
    pub(crate) sweep: SweepArguments,
    #[command(flatten)]
    pub(crate) broker: BrokerArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_fleet),
    override_usage = "brunt fleet find --local N [OPTIONS] --objective TEXT URL\n       \
        brunt fleet find --ssh HOSTS [OPTIONS] --objective TEXT URL\n       \
        brunt fleet find --agents N --nats URL [OPTIONS] --objective TEXT URL"
)]
pub(crate) struct FleetFindArguments {
    #[command(flatten)]
    pub(crate) agents: AgentsArguments,
    #[command(flatten)]
    pub(crate) find: FindArguments,
    #[command(flatten)]
    pub(crate) broker: BrokerArguments,
}

#[derive(Debug, Args)]
#[command(
    mut_args(|option| of_messages(of_fleet(option))),
    override_usage = "brunt fleet tcp --local N [OPTIONS] HOST:PORT\n       \
        brunt fleet tcp --ssh HOSTS [OPTIONS] HOST:PORT\n       \
        brunt fleet tcp --agents N --nats URL [OPTIONS] HOST:PORT",
    after_help = TCP_HELP
)]
pub(crate) struct FleetTcpArguments {
    #[command(flatten)]
    pub(crate) agents: AgentsArguments,
    #[command(flatten)]
    pub(crate) exchange: ExchangeArguments,
    #[command(flatten)]
    pub(crate) streams: StreamArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
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

impl Arguments {
    /// Reads a command line, its first word included, and which options were typed.
    ///
    /// # Errors
    ///
    /// It is wrong, or it asks for the help or the version.
    pub(crate) fn read(
        words: impl Iterator<Item = OsString>,
    ) -> Result<(Self, Given), clap::Error> {
        let words: Vec<OsString> = words.collect();
        if let Some(found) = Self::read_load(&words) {
            return Ok(found);
        }
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let given = Given::of(&command, &matches);
        let arguments = Self::from_arg_matches(&matches);
        let arguments = arguments.map_err(|error| error.format(&mut command))?;
        Ok((arguments, given))
    }

    /// Reads a command line that asks for a run, and for nothing else. Absent where it may be
    /// wrong, or ask for something else.
    fn read_load(words: &[OsString]) -> Option<(Self, Given)> {
        let typed: Vec<&str> = words.iter().skip(1).filter_map(|it| it.to_str()).collect();
        if typed.iter().any(|word| is_command(word)) {
            return None;
        }
        let mut command = described(&typed);
        let matches = command.try_get_matches_from_mut(words).ok()?;
        let arguments = Self {
            command: None,
            load: LoadArguments::from_arg_matches(&matches).ok()?,
            websocket: WebSocketArguments::from_arg_matches(&matches).ok()?,
            generate: None,
        };
        Some((arguments, Given::of(&command, &matches)))
    }
}

/// Whether the word is one of the commands.
pub(crate) fn is_command(word: &str) -> bool {
    word == "help" || Command::has_subcommand(word)
}

/// The options that the words behind the program's name are read by: those of all commands, where
/// the first word is one, else those of a run. To describe all commands takes several times as long
/// as to read a command line.
pub(crate) fn described(typed: &[impl AsRef<str>]) -> clap::Command {
    match typed.first().is_some_and(|it| is_command(it.as_ref())) {
        true => Arguments::command(),
        false => {
            let command = LoadArguments::augment_args(clap::Command::new("brunt"));
            WebSocketArguments::augment_args(command)
        }
    }
}

impl ArrivalsName {
    /// The process that it names.
    pub(crate) fn process(self) -> ArrivalProcess {
        match self {
            Self::Constant => ArrivalProcess::Constant,
            Self::Poisson => ArrivalProcess::Poisson,
            Self::Uniform => ArrivalProcess::Uniform,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_run_is_read_as_among_all_commands() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "brunt",
            "brunt -c 4 -d 1s http://h/ -H a:b --http2",
            "brunt -m a ws://h/ --depth 3 -- x",
        ] {
            let (found, _) = Arguments::read_load(&words(line)).expect(line);
            let all = Arguments::try_parse_from(words(line)).expect(line);
            assert_eq!(format!("{found:?}"), format!("{all:?}"));
        }
        for line in [
            "brunt --version",
            "brunt --help",
            "brunt help",
            "brunt --generate man",
            "brunt sweep -c 1,2 http://h/",
            "brunt -c 4 sweep",
            "brunt --nope",
            "brunt -c 0",
        ] {
            assert!(Arguments::read_load(&words(line)).is_none(), "{line}");
        }
    }
}
