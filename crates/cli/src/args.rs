//! What can be typed of a load: the options that commands share, before anything is looked up or
//! opened.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_load::{
    ArrivalProcess, BackendChoice, Plan, ReplyMatch, RequestOrder, ServerCounter, Spin, Stamps,
    ThinkTime, TlsVersion, Watch, units,
};
use brunt_proto::messages::Framing;
use brunt_report::Format;
use clap::{ArgAction, Args};

use crate::objectives::{Objectives, objectives};
use crate::values::{
    HeaderFields, NumberedPart, Source, Stages, TLS_VERSIONS, header, method, numbered_part,
    one_of, positive_duration, reply_match, sequence_start, server_counter, server_name,
    think_time, unix_ns, watch, whole_u32, whole_u64, workers,
};

/// The seed of a plan that is shared out, unless one was typed.
const PART_SEED: u64 = 1;

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// What to load, as http[s]://HOST[:PORT]/PATH, or ws[s]:// for messages of WebSocket; without
    /// it, the built-in reference server
    pub(crate) url: Option<String>,
    /// Whatever comes after the URL: for a script; else refused, with what was meant
    #[arg(hide = true)]
    pub(crate) behind_url: Vec<String>,

    /// Connections that are open at once, all workers together; where --connection-rate plans them,
    /// the most at once [default: 64; where they are planned 10k]
    #[arg(short, long, value_name = "N", value_parser = whole_u32, help_heading = "Load")]
    pub(crate) connections: Option<NonZeroU32>,
    /// Number of worker threads; the scheduler places them [default: half of the usable CPUs for a
    /// server on this machine, each bound to a CPU; else one per usable CPU, one fewer with --rate,
    /// --stages or planned connections; at most one per connection]
    #[arg(short, long, value_name = "N", value_parser = workers, help_heading = "Load")]
    pub(crate) threads: Option<NonZeroU32>,
    /// Length of the measure phase [default: 10s, or no limit with --requests]
    #[arg(short, long, value_name = "TIME", value_parser = positive_duration,
          help_heading = "Load")]
    pub(crate) duration: Option<u64>,
    /// End the measure phase after so many requests; with --rate, after so many planned ones
    #[arg(short = 'n', long, value_name = "N", value_parser = whole_u64, help_heading = "Load")]
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
    #[arg(long, value_name = "LIST", value_parser = units::stages, help_heading = "Arrivals",
          allow_hyphen_values = true, conflicts_with_all = ["duration", "connection_rate"])]
    pub(crate) stages: Option<Stages>,
    /// With --requests-per-connection, --no-keepalive or --sessions: an open loop of so many new
    /// connections per second, each of which makes these requests and is closed. Without them: how
    /// many connections per second a closed loop opens before its load begins
    #[arg(long, value_name = "RATE", value_parser = units::rate, help_heading = "Arrivals",
          allow_hyphen_values = true)]
    pub(crate) connection_rate: Option<f64>,
    /// How the planned instants of --rate, --stages and --connection-rate are spaced [default:
    /// constant]
    #[arg(long, value_name = "PROCESS", help_heading = "Arrivals", value_parser = one_of(&[
              ("constant", "In even steps", ArrivalProcess::Constant),
              ("poisson", "As from many independent users", ArrivalProcess::Poisson),
              ("uniform", "One at a random instant of each even step", ArrivalProcess::Uniform)]))]
    pub(crate) arrivals: Option<ArrivalProcess>,
    /// Seed of all that is random: arrivals, think times, --order random and numbers that are
    /// filled in [default: a fresh one, named in the report]
    #[arg(long, value_name = "N", help_heading = "Arrivals")]
    pub(crate) seed: Option<u64>,
    /// Most connections of an open loop: where a planned request finds none free, brunt opens one
    /// more, up to this number [default: --connections]
    #[arg(long, value_name = "N", value_parser = whole_u32, help_heading = "Arrivals")]
    pub(crate) max_connections: Option<NonZeroU32>,

    /// Requests to send, a URL per line, all of one server; with a URL on the command line, paths
    /// suffice. weight=3 after a URL sends it three times as often; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets"], help_heading = "Request")]
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
    #[arg(long, value_name = "ORDER", default_value = "turns", help_heading = "Request",
          value_parser = one_of(&[
              ("turns", "One after the other, over and over", RequestOrder::Turns),
              ("connection", "One after the other on each connection by itself, which begins with \
               the first one", RequestOrder::ConnectionTurns),
              ("random", "A random one each time, likely in proportion to its weight",
               RequestOrder::Random { seed: 0 })]))]
    pub(crate) order: RequestOrder,
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
    pub(crate) headers: Vec<HeaderFields>,
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
    /// @- (standard input) or @env:NAME as they are. brunt changes nothing in it but what it fills
    /// in as in --body, and sends --body behind it. The URL says where to. Repeatable: several
    /// requests, also those of one text, are sent in turns
    #[arg(long, value_name = "TEXT", value_parser = Source::of, requires = "url",
          help_heading = "Request",
          conflicts_with_all = ["method", "headers", "user", "urls", "targets", "sessions",
                                "script", "http2", "streams"])]
    pub(crate) raw: Vec<Source>,
    /// Basic authentication (RFC 7617): USER:PASSWORD, or @FILE, @- or @env:NAME, which keep the
    /// password out of the list of processes
    #[arg(short, long, value_name = "USER", value_parser = Source::of,
          help_heading = "Request")]
    pub(crate) user: Option<Source>,

    #[command(flatten)]
    pub(crate) part: PartArguments,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArguments,

    /// Connect through a Unix socket; the URL gives Host and path
    #[arg(long, value_name = "PATH", requires_all = ["url"], help_heading = "Connections")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Local address to connect from; repeatable, each offers its own ports
    #[arg(
        long = "source-address",
        value_name = "IP",
        help_heading = "Connections"
    )]
    pub(crate) source_addresses: Vec<IpAddr>,
    /// Longest time that one connection may take to open, with TLS handshake and HTTP/2 settings
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive_duration,
          help_heading = "Connections")]
    pub(crate) connect_timeout: u64,
    /// Longest time that one request may take to the end of its reply, from its send or, in an open
    /// loop, from its planned instant
    #[arg(short = 'T', long, value_name = "TIME", default_value = "10s",
          value_parser = positive_duration, help_heading = "Connections")]
    pub(crate) timeout: u64,
    /// Longest wait for the last replies after the measure phase; 1 s after an interrupt [default:
    /// --timeout]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns,
          help_heading = "Connections")]
    pub(crate) drain: Option<u64>,
    /// Kernel interface
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Connections",
          value_parser = one_of(&[
              ("auto", "io_uring where the kernel allows it, else epoll", BackendChoice::Auto),
              ("uring", "io_uring; epoll where it is refused, and the report says so",
               BackendChoice::Uring),
              ("epoll", "epoll", BackendChoice::Epoll)]))]
    pub(crate) backend: BackendChoice,
    /// Connections on which the kernel notes when replies arrive, which tells brunt's own delay
    /// from that of server and network
    #[arg(long, value_name = "WHICH", default_value = "sampled", help_heading = "Connections",
          value_parser = one_of(&[
              ("full", "All connections", Stamps::Full),
              ("sampled", "One connection in 16", Stamps::Sampled),
              ("off", "None: brunt's own share of the response times is not known",
               Stamps::Off)]))]
    pub(crate) stamps: Stamps,
    /// Poll for the next planned instant instead of sleeping until then
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Connections",
          value_parser = one_of(&[
              ("auto", "In open loops, where CPUs are to spare", Spin::Auto),
              ("on", "Always: each worker uses a whole CPU", Spin::On),
              ("off", "Never", Spin::Off)]))]
    pub(crate) spin: Spin,
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
    #[arg(long, value_name = "URL[#PATH]", value_parser = server_counter,
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

impl LoadArguments {
    /// Whether a server is named. Else it is brunt's own.
    pub(crate) fn has_server(&self) -> bool {
        self.url.is_some() || self.urls.is_some() || self.targets.is_some()
    }

    /// Has the window and the warm-up of a plan be so long, where nothing that was typed says how
    /// long they are.
    pub(crate) fn set_lengths(&self, plan: &mut Plan, window_ns: u64, warmup_ns: u64) {
        plan.load.warmup_ns = self.warmup.unwrap_or(warmup_ns);
        if self.duration.is_none() && self.stages.is_none() && self.requests.is_none() {
            plan.load.stop.duration_ns = Some(window_ns);
        }
    }

    /// Whether requests come from elsewhere than the plan.
    pub(crate) fn is_generated(&self) -> bool {
        self.script.is_some() || self.sessions.is_some()
    }

    /// The seed of all that is random: a fresh one, unless one was typed or other parts are to have
    /// the same.
    pub(crate) fn seed(&self) -> u64 {
        let chosen = || match self.part.part {
            Some(_) => PART_SEED,
            None => fresh_seed(),
        };
        self.seed.unwrap_or_else(chosen)
    }

    /// The order of a list, with the seed of what is random.
    pub(crate) fn request_order(&self) -> RequestOrder {
        match self.order {
            RequestOrder::Random { .. } => RequestOrder::Random { seed: self.seed() },
            order => order,
        }
    }
}

/// A seed that the operating system chose, short enough to be typed again.
pub(crate) fn fresh_seed() -> u64 {
    RandomState::new().hash_one(()) >> u32::BITS
}

/// A load of any kind: what it speaks follows from the URL.
#[derive(Debug, Args)]
pub(crate) struct AnyLoadArguments {
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) websocket: WebSocketArguments,
    #[command(flatten)]
    pub(crate) framing: FramingArguments,
}

/// Options of a part.
#[derive(Debug, Default, Args)]
pub(crate) struct PartArguments {
    /// Make only part I of N of this load, as in 2/4: its share of workers, connections and rates.
    /// Give each part the same options, in a process of its own, on any machine; brunt merge makes
    /// one run of what they store
    #[arg(long, value_name = "I/N", value_parser = numbered_part, help_heading = "Load",
          requires_all = ["threads", "url"], conflicts_with = "requests")]
    pub(crate) part: Option<NumberedPart>,
    /// When the load begins, by the clocks of the machines: seconds since 1970-01-01 UTC, as in
    /// $(date -d '20 seconds' +%s). Connections are opened before that
    #[arg(long, value_name = "SECONDS", value_parser = unix_ns, requires = "part",
          help_heading = "Load")]
    pub(crate) start_at: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS, HTTP/2 and HTTP/3")]
pub(crate) struct ProtocolArguments {
    /// Speak HTTP/1.1 [default: over TLS what the server chooses (ALPN), in clear text HTTP/1.1]
    #[arg(long, conflicts_with_all = ["http2", "http3", "streams"])]
    pub(crate) http1: bool,
    /// Speak HTTP/2; in clear text without asking whether the server does (prior knowledge)
    #[arg(long, conflicts_with = "pipeline")]
    pub(crate) http2: bool,
    /// Speak HTTP/3, over UDP, without asking whether the server does (prior knowledge); without a
    /// URL the built-in server does
    #[arg(long, conflicts_with_all = ["http2", "pipeline", "raw", "unix_socket"])]
    pub(crate) http3: bool,
    /// Requests in flight per connection in HTTP/2 and HTTP/3; the server may allow fewer
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = whole_u32)]
    pub(crate) streams: Option<NonZeroU32>,
    /// Server name to ask for (SNI) and to verify [default: the URL's host]
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) sni: Option<String>,
    /// PEM file of the roots to trust [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of the client's certificate, followed by those that lead to its root
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of the private key that goes with --cert [default: the same file]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Accept any certificate of the server
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Oldest version of TLS to offer [default: 1.2]
    #[arg(long, value_name = "VERSION", value_parser = one_of(TLS_VERSIONS))]
    pub(crate) tls_min: Option<TlsVersion>,
    /// Newest version of TLS to offer [default: 1.3]
    #[arg(long, value_name = "VERSION", value_parser = one_of(TLS_VERSIONS))]
    pub(crate) tls_max: Option<TlsVersion>,
    /// Let a connection resume the session of an earlier one [default: each makes a full
    /// handshake]
    #[arg(long, conflicts_with = "http3")]
    pub(crate) tls_resume: bool,
}

/// What is sent in place of requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "WebSocket (ws:// and wss://)")]
pub(crate) struct MessageArguments {
    /// Message to send: text with \n, \xHH and the like, {conn}, {seq}, {rand:N} and {now}, or
    /// @FILE, @-, @env:NAME as they are. Several are sent in turns, or as --order says
    #[arg(long = "message", value_name = "MESSAGE", value_parser = Source::of)]
    pub(crate) messages: Vec<Source>,
    /// Message that each connection sends once, before all others
    #[arg(long, value_name = "MESSAGE", value_parser = Source::of)]
    pub(crate) first: Option<Source>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "WebSocket (ws:// and wss://)")]
pub(crate) struct WebSocketArguments {
    #[command(flatten)]
    pub(crate) list: MessageArguments,
    /// Send binary messages instead of texts
    #[arg(long)]
    pub(crate) binary: bool,
    /// Messages of the server that answer one of brunt's; with 0, a message is done when the kernel
    /// has taken it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) replies: u32,
    /// Which messages of the server are answers: any (all that begin while a message is in flight),
    /// echo (those equal to the message), or contains=TEXT (those that contain it); the others are
    /// counted as pushes
    #[arg(long, value_name = "MATCH", default_value = "any", value_parser = reply_match)]
    pub(crate) reply_match: ReplyMatch,
    /// Messages in flight per connection, answered in their order
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) depth: NonZeroU32,
    /// Send a ping on each connection at this interval
    #[arg(long, value_name = "INTERVAL", value_parser = positive_duration)]
    pub(crate) ping: Option<u64>,
    /// Offer this subprotocol; the server has to choose one of those offered. Repeatable
    #[arg(long = "subprotocol", value_name = "NAME")]
    pub(crate) subprotocols: Vec<String>,
}

/// Where replies end, and what comes before the first message.
#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct FramingArguments {
    /// Where the reply to a message ends: one of the framings at the end of `brunt tcp --help`;
    /// none: a message is done when the kernel has taken it
    #[arg(long, value_name = "FRAMING")]
    pub(crate) reply: Option<Framing>,
    /// Where the reply to --first ends; brunt waits for it [default: as --reply]
    #[arg(long, value_name = "FRAMING", requires = "first")]
    pub(crate) first_reply: Option<Framing>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Write the report to this file, in the form that its name ends in, and text to the terminal;
    /// - is standard output. Repeatable
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Form of the report [default: text, or with --output what the file's name ends in: .json,
    /// .html, .csv, .txt, .md, and json without an ending]
    #[arg(long, value_name = "FORM", value_parser = one_of(&[
              ("text", "Aligned lines for people", Format::Text),
              ("json", "The whole run, readable by `brunt report`", Format::Json),
              ("summary", "One line of JSON with 34 keys, for programs", Format::Summary),
              ("csv", "A header and one row", Format::Csv),
              ("markdown", "A few lines for a pull request", Format::Markdown),
              ("html", "A page with charts, in one file that needs no network", Format::Html)]))]
    pub(crate) format: Option<Format>,
    /// No progress on standard error; with --output, nothing on the terminal
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Form of the progress on standard error; docs/reports.md describes the fields of JSON
    #[arg(long = "progress", value_name = "FORM", default_value = "text",
          conflicts_with = "quiet", action = ArgAction::Set, value_parser = one_of(&[
              ("text", "A live line on a terminal, else a line now and then", false),
              ("json", "One object per line: when a phase begins, and each second", true)]))]
    pub(crate) json_progress: bool,
    /// Everything in the text report: all signals of the verdict, resources, invariants and status
    /// codes
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Leave out what may be secret: queries of URLs, messages, subprotocols and the commands of
    /// --start are neither printed nor stored. Header values, bodies, --first and the arguments of
    /// scripts never are
    #[arg(long)]
    pub(crate) redact: bool,
    /// The full percentile spectrum in the text report
    #[arg(long)]
    pub(crate) latency: bool,
    /// Write response times over time to this file, as an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr_log: Option<PathBuf>,
    /// Write the percentiles of the response times to this file, as HdrHistogram's tools do
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
    /// What the run is to reach, as in 'p99 < 10ms, errors < 0.1%, rate > 5k', errors = 0,
    /// max < 1s, mean < 2ms, or of one name, 'login: p99 < 50ms'; may be given again. Exit code 1
    /// where that is not shown with 95 % confidence
    #[arg(long, value_name = "TEXT", value_parser = objectives)]
    pub(crate) objective: Vec<Objectives>,
    /// Write the objectives as test results to this file, in JUnit's form
    #[arg(long, value_name = "FILE", requires = "objective")]
    pub(crate) junit: Option<PathBuf>,
}
