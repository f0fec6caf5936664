//! Everything that is decided before a run.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};

use crate::protocol::{Protocol, Unit};
use brunt_proto::http2::ClientSettings;
use brunt_proto::messages::Framing;
use serde::{Deserialize, Serialize};

use crate::{
    HttpChoice, ProtocolSpec, RequestOutline, RequestSet, RequestSpec, Schedule, Streams, Target,
    TargetError, ThinkSpread, TlsSpec,
};

/// For how long set-up waits for a connection more, at least.
const SETUP_PATIENCE_NS: u64 = 10_000_000_000;

/// The backend that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendChoice {
    /// io_uring where the kernel allows it, else epoll.
    #[default]
    Auto,
    /// io_uring; where it is refused, epoll, and the report says so.
    Uring,
    /// epoll.
    Epoll,
}

/// When a run ends: whichever comes first. Without either, what makes the requests ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Length of the measure phase, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Requests sent in the measure phase.
    pub requests: Option<u64>,
}

/// For how many requests a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// As many as the server allows.
    Unlimited,
    /// At most this many; in HTTP/1.1 the last one asks the server to close.
    Requests(NonZeroU64),
}

/// What makes a request due. A connection is free while fewer requests are in flight on it than
/// [`Traffic::pipeline`] or, where HTTP/2 is spoken, [`Traffic::streams`] and the server allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadModel {
    /// A reply: each connection begins with as many requests as it may have in flight, and sends
    /// its next one when a reply is in.
    Closed {
        /// Connections that set-up opens per second, all workers together; absent: no limit.
        connect_per_s: Option<f64>,
    },
    /// Nothing: [`Load::connections`] are opened, kept open and, where they are lost, replaced.
    Held {
        /// Connections that set-up opens per second, all workers together; absent: no limit.
        connect_per_s: Option<f64>,
    },
    /// A schedule of requests. [`Load::connections`] are held, and each request takes a free one.
    Open {
        /// When requests are due, all workers together.
        schedule: Schedule,
        /// Connections that there may be, when none of those held is free; all workers together,
        /// not under [`Load::connections`].
        connections_max: NonZeroU32,
        /// Requests that may wait for a free connection, all workers together.
        queue_max: NonZeroU32,
    },
    /// A schedule of connections. Each carries the requests that [`Traffic::reuse`] allows, one
    /// after the other. At most [`Load::connections`] are open at once.
    Sessions {
        /// When connections are due, all workers together.
        schedule: Schedule,
        /// Connections due that may wait for their turn, all workers together.
        queue_max: NonZeroU32,
    },
}

impl LoadModel {
    /// The schedule, where there is one.
    pub fn schedule(&self) -> Option<&Schedule> {
        match self {
            Self::Closed { .. } | Self::Held { .. } => None,
            Self::Open { schedule, .. } | Self::Sessions { schedule, .. } => Some(schedule),
        }
    }

    /// Its name as stored.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Held { .. } => "held",
            Self::Open { .. } => "open",
            Self::Sessions { .. } => "sessions",
        }
    }

    /// Arrivals that can wait at once, all workers together, where there is a schedule.
    pub fn queue_max(&self) -> Option<NonZeroU32> {
        match self {
            Self::Closed { .. } | Self::Held { .. } => None,
            Self::Open { queue_max, .. } | Self::Sessions { queue_max, .. } => Some(*queue_max),
        }
    }

    /// How many workers there are on so many CPUs, where nobody says.
    pub fn default_workers(&self, cpus: u32) -> NonZeroU32 {
        let workers = match self.schedule() {
            // To be on time, a planned arrival needs a CPU that is not busy with something else.
            Some(_) => cpus.saturating_sub(1),
            None => cpus,
        };
        NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN)
    }

    /// Connections that set-up opens per second; absent: no limit, or they are planned.
    pub fn connect_per_s(&self) -> Option<f64> {
        match self {
            Self::Closed { connect_per_s } | Self::Held { connect_per_s } => *connect_per_s,
            Self::Open { .. } | Self::Sessions { .. } => None,
        }
    }
}

/// On which connections the kernel notes when bytes arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stamps {
    /// On one in [`Stamps::SAMPLE_EVERY`].
    #[default]
    Sampled,
    /// On all.
    Full,
    /// On none.
    Off,
}

impl Stamps {
    /// One connection in this many is in the sample.
    pub const SAMPLE_EVERY: NonZeroU32 = NonZeroU32::MIN.saturating_add(15);

    /// One connection in this many is stamped; absent: none.
    pub fn every(self) -> Option<NonZeroU32> {
        match self {
            Self::Sampled => Some(Self::SAMPLE_EVERY),
            Self::Full => Some(NonZeroU32::MIN),
            Self::Off => None,
        }
    }
}

/// Whether a worker that waits polls instead of sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spin {
    /// With a schedule, where CPUs are to spare.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How many workers there are, and on which CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// For a server on this machine few, [`Workers::count`] at most, each bound to a CPU that the
    /// server leaves alone or can leave alone; else as `Scheduler`.
    Auto,
    /// [`Workers::count`], where the scheduler puts them.
    #[default]
    Scheduler,
    /// As `Scheduler`, since their number was given.
    Given,
    /// [`Workers::count`], each bound to one of these CPUs, in this order: the server has others.
    Bound(Vec<u32>),
}

/// What of the server is watched during the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watch {
    /// The processes behind the listening socket, where the target is on this machine.
    #[default]
    Auto,
    /// Nothing.
    Off,
    /// This process and its descendants.
    Process(u32),
    /// All processes of this name, and their descendants.
    Named(String),
    /// All processes in this control group and those below it, by its path.
    Cgroup(String),
    /// All processes in this container, by its id or its name.
    Container(String),
}

/// Where the server's own count of requests is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounter {
    /// What is fetched.
    pub target: Target,
    /// What is read in it: a path in JSON, such as `requests.total`, or the name of a Prometheus
    /// metric. Absent: found by what it looks like.
    pub path: Option<String>,
}

/// Options of TCP sockets. What is absent is left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// Whether small writes are sent at once (TCP_NODELAY).
    pub is_nodelay: bool,
    /// Bytes of payload that the send buffer is to hold (SO_SNDBUF). The kernel then no longer
    /// adapts its size.
    pub send_buffer_bytes: Option<NonZeroU32>,
    /// Bytes of payload that the receive buffer is to hold (SO_RCVBUF). The kernel then no longer
    /// adapts its size.
    pub receive_buffer_bytes: Option<NonZeroU32>,
    /// Most bytes of payload in a segment (TCP_MAXSEG).
    pub segment_bytes: Option<NonZeroU32>,
    /// The algorithm of congestion control (TCP_CONGESTION).
    pub congestion: Option<String>,
    /// Bytes per second that the kernel sends at most on one connection (SO_MAX_PACING_RATE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced_bytes_per_s: Option<NonZeroU64>,
    /// Bytes that are to be there before the socket counts as readable, unless it ends
    /// (SO_RCVLOWAT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_bytes_min: Option<NonZeroU32>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            is_nodelay: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            segment_bytes: None,
            congestion: None,
            paced_bytes_per_s: None,
            receive_bytes_min: None,
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The server under test.
    pub target: Target,
    /// Servers beside it that are loaded alike, and speak what it speaks: connections go to each in
    /// turn. Only the target is watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_targets: Vec<Target>,
    /// When requests are due, over how many connections, and for how long.
    pub load: Load,
    /// What each connection carries.
    pub traffic: Traffic,
    /// How connections are made, and what is spoken on them.
    pub connection: ConnectionSpec,
    /// How long what is asked of the server may take.
    pub limits: TimeLimits,
    /// The threads that make the load.
    pub workers: Workers,
    /// What is read and kept beside the counts.
    pub observation: Observation,
}

/// A warm-up and a window at one level of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What makes a request due.
    pub model: LoadModel,
    /// Connections held at once, all workers together. In a round of a session at most as many as
    /// its plan has: those that are open already are kept, and those that are too many are closed.
    pub connections: NonZeroU32,
    /// Length of the warm-up, nanoseconds.
    pub warmup_ns: u64,
    /// Whether half of the connections of a closed loop pause for parts of the warm-up, so that it
    /// shows by how much the rate follows them.
    pub halves_warmup: bool,
    /// When the window ends.
    pub stop: Stop,
    /// Limit of the drain phase, nanoseconds.
    pub drain_limit_ns: u64,
}

impl Default for Load {
    /// A closed loop without a warm-up and without an end.
    fn default() -> Self {
        Self {
            model: LoadModel::Closed {
                connect_per_s: None,
            },
            connections: Plan::CONNECTIONS_DEFAULT,
            warmup_ns: 0,
            halves_warmup: false,
            stop: Stop::default(),
            drain_limit_ns: 10_000_000_000,
        }
    }
}

/// What connections are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Requests or messages.
    #[default]
    Requests,
    /// Bytes without requests: see [`Streams`].
    Streams,
    /// They are opened and closed again with nothing sent, and each counts as a request.
    Connects,
    /// They are kept open.
    Hold,
}

impl Work {
    /// Whether it is of units that are counted and timed.
    pub fn has_units(self) -> bool {
        matches!(self, Self::Requests | Self::Connects)
    }
}

/// What each connection carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// The requests of HTTP.
    pub requests: RequestSet,
    /// Whether a generator that the plan does not hold, such as a script, makes the requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_generated: bool,
    /// Requests in flight per connection in HTTP/1.1 (pipelining), and messages.
    pub pipeline: NonZeroU32,
    /// Requests in flight per connection in HTTP/2; the server may allow fewer.
    pub streams: NonZeroU32,
    /// When connections are replaced.
    pub reuse: Reuse,
    /// From a reply to the request that follows it on its connection, on average, nanoseconds; not
    /// with a schedule of requests. In a closed loop the first requests are spread over it.
    pub think_time_ns: u64,
    /// How think times are spread around their mean.
    pub think_spread: ThinkSpread,
    /// Seed of think times, and of random numbers that are filled into requests of HTTP.
    pub think_seed: u64,
    /// Numbers that each sequence that is filled into requests leaves out at its start.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub sequence_offset: u64,
    /// Whether each connection has an equal part of the requests of a run by count from the start,
    /// and does not share what is left with the others. Equal means by at most one, over the
    /// workers first. In a closed loop a connection that fails gives up the rest of its part: only
    /// one that the server closes behind a response goes on.
    pub has_equal_parts: bool,
    /// Whether a request is sent again, on another connection, that the server did not process, as
    /// it said or as the protocol has it. It stays one request. Not requests of a generator, nor
    /// where connections are planned, or have equal parts.
    pub sends_again: bool,
}

impl Traffic {
    /// These requests, one at a time on each connection, as often as the server takes them.
    pub fn of(requests: RequestSet) -> Self {
        Self {
            requests,
            is_generated: false,
            pipeline: NonZeroU32::MIN,
            streams: NonZeroU32::MIN,
            reuse: Reuse::Unlimited,
            think_time_ns: 0,
            think_spread: ThinkSpread::Fixed,
            think_seed: 0,
            sequence_offset: 0,
            has_equal_parts: false,
            sends_again: false,
        }
    }
}

/// How connections are made, and what is spoken on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSpec {
    /// What is spoken.
    pub protocol: ProtocolSpec,
    /// How TLS is spoken below it, where the target's scheme says so.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub tls: TlsSpec,
    /// What clients tell the server in HTTP/2.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub http2: ClientSettings,
    /// Options of the sockets of TCP connections.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub sockets: SocketOptions,
    /// Local addresses to connect from; empty lets the kernel choose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_addresses: Vec<IpAddr>,
}

impl Default for ConnectionSpec {
    /// HTTP, with the options of the kernel.
    fn default() -> Self {
        Self {
            protocol: HttpChoice::AUTO.into(),
            tls: TlsSpec::default(),
            http2: ClientSettings::default(),
            sockets: SocketOptions::default(),
            source_addresses: Vec::new(),
        }
    }
}

/// How long what is asked of the server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// Limit of one request to the end of its reply, nanoseconds: from its planned instant with a
    /// schedule of requests, else from its send.
    pub timeout_ns: u64,
    /// Limit of set-up, nanoseconds, beside the time that opening the connections takes by plan;
    /// without one it lasts as long as it gets anywhere.
    pub setup_timeout_ns: Option<u64>,
    /// Limit of one connection attempt, nanoseconds: to the end of the TLS handshake where there is
    /// one, and in HTTP/2 to the server's first SETTINGS.
    pub connect_timeout_ns: u64,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            timeout_ns: 10_000_000_000,
            setup_timeout_ns: None,
            connect_timeout_ns: 5_000_000_000,
        }
    }
}

/// The threads that make the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// How many; at most one for each connection. The most, where `placement` finds their number.
    pub count: NonZeroU32,
    /// How many of them there are, and on which CPUs.
    pub placement: Placement,
    /// The backend that was asked for.
    pub backend: BackendChoice,
    /// Whether workers poll while they wait.
    pub spin: Spin,
    /// Allows more workers than usable CPUs.
    pub oversubscribe: bool,
    /// Memory that is held for the load beside it, bytes: by a script, say.
    pub held_beside_bytes: u64,
}

impl Default for Workers {
    /// One, wherever the scheduler puts it.
    fn default() -> Self {
        Self {
            count: NonZeroU32::MIN,
            placement: Placement::Given,
            backend: BackendChoice::Auto,
            spin: Spin::Auto,
            oversubscribe: true,
            held_beside_bytes: 0,
        }
    }
}

/// What is read and kept beside the counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Whether machine, network and server are read during the window. Without it there is no
    /// verdict: only for measuring what the readings cost.
    pub observe: bool,
    /// On which connections the kernel's receive time stamps are taken.
    pub stamps: Stamps,
    /// What of the server is watched.
    pub watch: Watch,
    /// The server's own count of requests, to be compared with brunt's.
    pub server_counter: Option<ServerCounter>,
    /// Speed of the link to the server, bits per second; absent: what the driver says.
    pub link_bits_per_s: Option<u64>,
    /// Whether the beginning of one response per error status is kept.
    pub keeps_errors: bool,
    /// Requests of the window that are logged one by one, at most; 0 for none.
    pub logged_requests_max: u64,
    /// Responses that the log has the beginnings of, at most, in HTTP/1.1: not with `keeps_errors`,
    /// nor of requests that a generator makes.
    pub logged_responses_max: u32,
}

impl Default for Observation {
    /// The machine and the server, and nothing of single requests.
    fn default() -> Self {
        Self {
            observe: true,
            stamps: Stamps::Sampled,
            watch: Watch::Auto,
            server_counter: None,
            link_bits_per_s: None,
            keeps_errors: false,
            logged_requests_max: 0,
            logged_responses_max: 0,
        }
    }
}

impl Plan {
    /// A closed loop of 64 connections by one worker, for 10 s after a warm-up of 1 s: what the
    /// program does without options, on one CPU.
    pub fn new(target: Target, requests: RequestSet) -> Self {
        let mut plan = Self::bare(target, requests);
        plan.workers.placement = Placement::Scheduler;
        plan.workers.oversubscribe = false;
        plan.load.stop.duration_ns = Some(Self::DURATION_NS_DEFAULT);
        plan.load.warmup_ns = Self::WARMUP_NS_DEFAULT;
        plan.load.halves_warmup = true;
        plan.traffic.sends_again = true;
        plan
    }

    /// As [`Plan::new`], without what the program does unasked: there is no warm-up and no end,
    /// nothing is sent again, and there are as many workers as are asked for.
    pub fn bare(target: Target, requests: RequestSet) -> Self {
        Self {
            target,
            further_targets: Vec::new(),
            load: Load::default(),
            traffic: Traffic::of(requests),
            connection: ConnectionSpec::default(),
            limits: TimeLimits::default(),
            workers: Workers::default(),
            observation: Observation::default(),
        }
    }

    /// A load on this server, such as `http://127.0.0.1:8080/`, with the defaults of the command
    /// line: GET requests in a closed loop of 64 connections for 10 s after a warm-up of 1 s, by as
    /// many workers as it takes.
    ///
    /// # Errors
    ///
    /// The URL is none that can be loaded.
    pub fn to(url: &str) -> Result<Self, TargetError> {
        let target = Target::parse(url, None)?;
        let requests = RequestSet::one(RequestSpec::get(&target.path));
        let mut plan = Self::new(target, requests);
        plan.workers.count = Self::CONNECTIONS_DEFAULT;
        plan.workers.placement = Placement::Auto;
        Ok(plan)
    }

    /// This plan with so many connections, and no more workers than that.
    #[must_use]
    pub fn with_connections(mut self, connections: NonZeroU32) -> Self {
        self.load.connections = connections;
        self.workers.count = self.workers.count.min(connections);
        self
    }

    /// This plan with requests at planned instants, whatever the responses do: an open loop over
    /// its connections. It ends with the last stage of the schedule, where there are stages.
    #[must_use]
    pub fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.load.stop.duration_ns = schedule.duration_ns().or(self.load.stop.duration_ns);
        self.load.model = LoadModel::Open {
            schedule,
            connections_max: self.load.connections,
            queue_max: Self::QUEUE_DEFAULT,
        };
        self
    }

    /// This plan with the seeds of `other`, as far as both plans have them. Two plans that differ
    /// only in their seeds become equal.
    #[must_use]
    pub fn with_seeds_of(mut self, other: &Self) -> Self {
        self.traffic.think_seed = other.traffic.think_seed;
        self.traffic.requests = self
            .traffic
            .requests
            .with_seed_of(other.traffic.requests.order());
        if let (
            LoadModel::Open { schedule, .. } | LoadModel::Sessions { schedule, .. },
            Some(theirs),
        ) = (&mut self.load.model, other.load.model.schedule())
        {
            *schedule = schedule.clone().with_seed(theirs.seed());
        }
        if let Some(seed) = other.connection.protocol.seed()
            && let Some(exchange) = self.connection.protocol.exchange_mut()
        {
            exchange.set_seed(seed);
        }
        self
    }

    /// Connections of a closed loop, unless something else is asked for.
    pub const CONNECTIONS_DEFAULT: NonZeroU32 = NonZeroU32::new(64).unwrap();
    /// Arrivals that can wait at once, unless something else is asked for.
    pub const QUEUE_DEFAULT: NonZeroU32 = NonZeroU32::new(1_000_000).unwrap();
    /// Length of the measure phase, unless something else is asked for, nanoseconds.
    pub const DURATION_NS_DEFAULT: u64 = 10_000_000_000;
    /// Length of the warm-up, unless something else is asked for, nanoseconds.
    pub const WARMUP_NS_DEFAULT: u64 = 1_000_000_000;

    /// What its connections are for.
    pub fn work(&self) -> Work {
        match (&self.connection.protocol, &self.load.model) {
            (ProtocolSpec::Streams(_), _) => Work::Streams,
            (ProtocolSpec::Connections, _) => Work::Connects,
            (_, LoadModel::Held { .. }) => Work::Hold,
            _ => Work::Requests,
        }
    }

    /// What its streams are; absent where connections carry none.
    pub fn one_way(&self) -> Option<&Streams> {
        match &self.connection.protocol {
            ProtocolSpec::Streams(streams) => Some(streams),
            _ => None,
        }
    }

    /// Units that are to be in flight on each connection over `protocol`.
    pub fn depth_over(&self, protocol: Protocol) -> u32 {
        let asked = if protocol.depth.is_settled {
            self.traffic.streams
        } else {
            self.traffic.pipeline
        };
        asked.get().min(protocol.depth.in_flight_max)
    }

    /// All servers, the target first.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        std::iter::once(&self.target).chain(&self.further_targets)
    }

    /// The URLs of all servers.
    pub fn urls(&self) -> String {
        let urls: Vec<&str> = self.targets().map(|target| target.url.as_str()).collect();
        urls.join(" ")
    }

    /// The first request; absent where connections carry none.
    pub fn first_request(&self) -> Option<RequestOutline> {
        let has_units = self.work().has_units();
        has_units.then(|| self.traffic.requests.first_outline())?
    }

    /// How TLS is spoken; absent in clear text.
    pub fn tls(&self) -> Option<&TlsSpec> {
        let is_secure = self.target.scheme.is_secure();
        is_secure.then_some(&self.connection.tls)
    }

    /// Requests after which a connection is replaced; absent: no limit.
    pub fn requests_per_connection(&self) -> Option<u64> {
        match self.traffic.reuse {
            Reuse::Unlimited => None,
            Reuse::Requests(count) => Some(count.get()),
        }
    }

    /// Whether connections are used for more than one request.
    pub fn keepalive(&self) -> bool {
        self.requests_per_connection() != Some(1)
    }

    /// Whether each connection begins with an exchange of its own, before its first request.
    pub fn is_opened_by_message(&self) -> bool {
        let opening = match &self.connection.protocol {
            ProtocolSpec::Messages(exchange) => exchange.opening.as_ref(),
            _ => None,
        };
        opening.is_some_and(|opening| opening.reply != Framing::None)
    }

    /// Whether replies are awaited; else what is sent is done with that.
    pub fn awaits_replies(&self) -> bool {
        self.connection.protocol.awaits_replies()
    }

    /// The words for what is sent.
    pub fn unit(&self) -> Unit {
        match self.work() {
            Work::Streams => Unit::REQUESTS,
            _ => self.connection.protocol.unit(),
        }
    }

    /// Connections that there can be at once.
    pub fn connections_most(&self) -> u32 {
        match self.load.model {
            LoadModel::Open {
                connections_max, ..
            } => connections_max.max(self.load.connections).get(),
            _ => self.load.connections.get(),
        }
    }

    /// How long set-up lasts at most, nanoseconds: until `setup_timeout_ns` after the last of the
    /// first attempts is due. Absent without a limit.
    pub fn setup_limit_ns(&self) -> Option<u64> {
        let ramp_ns = self.load.model.connect_per_s().map_or(0, |per_s| {
            (f64::from(self.load.connections.get()) * 1e9 / per_s) as u64
        });
        let limit_ns = self.limits.setup_timeout_ns?;
        Some(limit_ns.saturating_add(ramp_ns))
    }

    /// For how long set-up waits for a connection more, nanoseconds: ten seconds, or as long as one
    /// attempt may take, beside the time from one attempt to the next by plan.
    pub fn setup_patience_ns(&self) -> u64 {
        let gap_ns = self.load.model.connect_per_s().map_or(0, |per_s| {
            (f64::from(self.workers.count.get()) * 1e9 / per_s) as u64
        });
        let waits_ns = SETUP_PATIENCE_NS.max(self.limits.connect_timeout_ns);
        waits_ns.saturating_add(gap_ns)
    }
}

/// Whether a value is what it is unless something else is asked for.
fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::{
        ArrivalProcess, Framing, MessageExchange, RequestOrder, RequestSet, RequestSpec, Schedule,
        Target,
    };

    fn plan(seed: u64, rate_per_s: f64, is_messages: bool) -> Plan {
        let target = Target::parse("http://127.0.0.1:1/", None).expect("a URL");
        let requests = vec![RequestSpec::get("/")];
        let order = RequestOrder::Random { seed };
        let mut plan = Plan::new(target, RequestSet::of(requests, order).expect("one"));
        plan.traffic.think_seed = seed;
        plan.load.model = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Poisson, rate_per_s, seed)
                .expect("a rate"),
            connections_max: NonZeroU32::MIN,
            queue_max: NonZeroU32::MIN,
        };
        if is_messages {
            plan.connection.protocol = MessageExchange {
                reply: Framing::Echo,
                opening: None,
                seed,
            }
            .into();
        }
        plan
    }

    #[test]
    fn plans_that_differ_in_seeds_alone_become_equal() {
        for is_messages in [false, true] {
            let (one, other) = (plan(1, 100.0, is_messages), plan(2, 100.0, is_messages));
            assert_ne!(one, other);
            assert_eq!(one.with_seeds_of(&other), other);
        }
    }

    #[test]
    fn what_is_no_seed_stays() {
        let (one, other) = (plan(1, 100.0, false), plan(2, 200.0, true));
        let changed = one.with_seeds_of(&other);
        assert_ne!(changed, other);
        assert_eq!(changed, plan(2, 100.0, false));
    }
}
