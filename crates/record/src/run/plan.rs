//! The plan of a run as it is stored: what was asked for, and nothing that running found out.

use brunt_protocols::{Protocol, Unit};
use serde::{Deserialize, Serialize};

use super::amounts::{Amounts, STAGES_MAX, StageRates};
use super::one_way::{SocketsDescription, StreamsDescription};
use crate::bounded;

/// Most header fields of a request whose names are kept.
const HEADERS_MAX: usize = 10_000;
/// Most cipher suites or groups that are named.
const TLS_NAMES_MAX: usize = 1_000;

/// How arrivals are spread around their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArrivalProcess {
    /// Evenly.
    #[default]
    Constant,
    /// As a Poisson process.
    Poisson,
    /// One arrival at random in each interval of 1/rate.
    Uniform,
}

impl ArrivalProcess {
    /// Its name as typed and stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
            Self::Uniform => "uniform",
        }
    }
}

/// How think times are spread around their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThinkSpread {
    /// Always the mean.
    #[default]
    Fixed,
    /// Exponentially.
    Exp,
    /// Evenly from 0 to twice the mean.
    Uniform,
}

impl ThinkSpread {
    /// Its name as typed and stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Exp => "exp",
            Self::Uniform => "uniform",
        }
    }
}

/// The pause between a response and the next request on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkDescription {
    /// Its mean, nanoseconds; above 0.
    pub mean_ns: u64,
    /// How it is spread around the mean.
    pub spread: ThinkSpread,
}

/// A stretch of a schedule over which the rate changes evenly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageDescription {
    /// Its length, nanoseconds.
    pub duration_ns: u64,
    /// Arrivals per second at its start.
    pub from_per_s: f64,
    /// Arrivals per second at its end.
    pub to_per_s: f64,
}

/// A schedule of arrivals, and the room for those that must wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleDescription {
    /// How arrivals are spread around the rate.
    pub process: ArrivalProcess,
    /// Arrivals per second throughout; null with stages.
    pub rate_per_s: Option<f64>,
    /// The stages asked for; empty for one rate throughout.
    #[serde(deserialize_with = "bounded::list::<_, _, STAGES_MAX>")]
    pub stages: Vec<StageDescription>,
    /// Arrivals that can wait at once, all workers together.
    pub queue_max: u32,
}

impl ScheduleDescription {
    /// Whether the rate is planned to change over the window.
    pub fn varies(&self) -> bool {
        let rates = self
            .stages
            .iter()
            .flat_map(|stage| [stage.from_per_s, stage.to_per_s]);
        let first = self.stages.first().map(|stage| stage.from_per_s);
        rates.into_iter().any(|rate| Some(rate) != first)
    }
}

/// What makes a request due.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelDescription {
    /// A response: each connection sends its next request when one is in.
    Closed {
        /// Connections that set-up opens per second; null for no limit.
        connect_per_s: Option<f64>,
    },
    /// Nothing: connections are opened, and kept open.
    Held {
        /// Connections that set-up opens per second; null for no limit.
        connect_per_s: Option<f64>,
    },
    /// A schedule of requests.
    Open {
        /// When they are due.
        schedule: ScheduleDescription,
        /// Connections that there can be.
        connections_max: u32,
    },
    /// A schedule of connections, each with its requests, in HTTP/1.1 one after the other.
    Sessions {
        /// When they are due.
        schedule: ScheduleDescription,
    },
}

impl ModelDescription {
    /// The schedule, where there is one.
    pub fn schedule(&self) -> Option<&ScheduleDescription> {
        match self {
            Self::Closed { .. } | Self::Held { .. } => None,
            Self::Open { schedule, .. } | Self::Sessions { schedule } => Some(schedule),
        }
    }

    /// The schedule, to be changed, where there is one.
    pub fn schedule_mut(&mut self) -> Option<&mut ScheduleDescription> {
        match self {
            Self::Closed { .. } | Self::Held { .. } => None,
            Self::Open { schedule, .. } | Self::Sessions { schedule } => Some(schedule),
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
}

/// What a stored model says, before it is believed. Read field by field: serde's own way of reading
/// tagged enumerations keeps a copy of all that is there, whatever it is.
#[derive(Deserialize)]
struct StoredModel {
    kind: ModelKind,
    connect_per_s: Option<f64>,
    schedule: Option<ScheduleDescription>,
    connections_max: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModelKind {
    Closed,
    Held,
    Open,
    Sessions,
}

impl<'de> Deserialize<'de> for ModelDescription {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredModel {
            kind,
            connect_per_s,
            schedule,
            connections_max,
        } = StoredModel::deserialize(deserializer)?;
        Ok(match kind {
            ModelKind::Closed => Self::Closed { connect_per_s },
            ModelKind::Held => Self::Held { connect_per_s },
            ModelKind::Open => Self::Open {
                schedule: bounded::present("schedule", schedule)?,
                connections_max: bounded::present("connections_max", connections_max)?,
            },
            ModelKind::Sessions => Self::Sessions {
                schedule: bounded::present("schedule", schedule)?,
            },
        })
    }
}

/// Which HTTP was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HttpChoice {
    /// Over TLS what the server chooses, in clear text HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Which backend was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BackendChoice {
    /// io_uring where the kernel allows it, else epoll.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
    /// A simulated network in virtual time.
    Sim,
}

/// Whether a worker that waits polls instead of sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// On which connections the kernel notes when bytes arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stamps {
    /// On none.
    Off,
    /// On some.
    Sampled {
        /// One connection in this many.
        every: u32,
    },
    /// On all.
    Full,
}

/// In which order the requests of a list are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    /// One after the other, over and over.
    Turns,
    /// The same on each connection by itself, which begins with the first one.
    ConnectionTurns,
    /// Each time any of them, all alike or by their weights.
    Random,
}

/// Most methods of a list that are kept.
pub const METHODS_MAX: usize = 16;

/// A list of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListDescription {
    /// How many requests it has.
    pub requests: u64,
    /// In which order they are sent.
    pub order: ListOrder,
    /// Whether some are sent more often than others, by their weights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_weighted: bool,
    /// The methods of its requests, each once, or some of them where there are many.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<_, _, METHODS_MAX>"
    )]
    pub methods: Vec<String>,
}

/// A request, without what may be secret: of header fields the names alone, of the body its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestDescription {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names of its header fields, without those that brunt adds, in the order in which they are
    /// sent.
    #[serde(deserialize_with = "bounded::list::<_, _, HEADERS_MAX>")]
    pub header_names: Vec<String>,
    /// Length of its body, bytes.
    pub body_bytes: u64,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestsDescription {
    /// The request, or the first one of a list; null for messages.
    pub first: Option<RequestDescription>,
    /// The list; null for a single request or message.
    pub list: Option<ListDescription>,
}

impl RequestsDescription {
    /// The methods that are sent, each once; none for messages.
    pub fn methods(&self) -> Vec<&str> {
        match (&self.list, &self.first) {
            (Some(list), _) if !list.methods.is_empty() => {
                list.methods.iter().map(String::as_str).collect()
            }
            (_, Some(first)) => vec![&first.method],
            (_, None) => Vec::new(),
        }
    }
}

/// Messages and their replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessagesDescription {
    /// The message, or the first one of a list, as it is shown: what was typed, cut short, or the
    /// name of its file.
    pub first: String,
    /// Where the reply to each ends, as typed, such as `line`; `none` where none is awaited.
    pub reply: String,
    /// What each connection begins with; null for nothing.
    pub opening: Option<OpeningDescription>,
}

/// Messages of WebSocket and what answers them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebSocketDescription {
    /// The message, or the first one of a list, as it is shown: what was typed, cut short, or the
    /// name of its file.
    pub first: String,
    /// Whether messages are binary, and no texts.
    pub binary: bool,
    /// How many messages answer one; with 0, it is done when it is sent.
    pub replies: u32,
    /// Whether only a message that is the same answers one.
    pub echo: bool,
    /// Subprotocols that are offered.
    pub subprotocols: Vec<String>,
    /// Whether texts are checked for UTF-8.
    pub strict: bool,
    /// Whether all masks are zero.
    pub zero_masks: bool,
    /// From one ping on a connection to the next, nanoseconds; null for none.
    pub ping_interval_ns: Option<u64>,
}

/// What is sent once on each connection, without what it holds, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpeningDescription {
    /// Its bytes, at most.
    pub bytes: u64,
    /// Where the reply to it ends, as typed; `none` where none is awaited.
    pub reply: String,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "TLS 1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "TLS 1.3")]
    Tls13,
}

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsDescription {
    /// Server name that is asked for (SNI; an address is not) and, unless insecure, verified.
    pub server_name: String,
    /// Whether the server's certificate is not verified.
    pub insecure: bool,
    /// Whether later connections may resume the session of an earlier one.
    pub resumption: bool,
    /// Whether a client certificate is offered.
    pub client_certificate: bool,
    /// Oldest version offered.
    pub version_min: TlsVersion,
    /// Newest version offered.
    pub version_max: TlsVersion,
    /// Cipher suites offered; empty: all.
    #[serde(deserialize_with = "bounded::list::<_, _, TLS_NAMES_MAX>")]
    pub cipher_suites: Vec<String>,
    /// Key exchange groups offered; empty: the usual ones.
    #[serde(deserialize_with = "bounded::list::<_, _, TLS_NAMES_MAX>")]
    pub groups: Vec<String>,
}

/// What clients tell the server in HTTP/2, where that is not the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Http2Description {
    /// Receive window of each stream, bytes.
    pub stream_window_bytes: u32,
    /// Receive window of the connection, bytes.
    pub connection_window_bytes: u32,
    /// Longest payload of a frame, bytes.
    pub frame_bytes_max: u32,
    /// Dynamic table of the server's field blocks, bytes.
    pub decoder_table_bytes: u32,
    /// Dynamic table of brunt's field blocks at most, bytes.
    pub encoder_table_bytes: u32,
}

/// When a run ends: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopDescription {
    /// Length of the measure phase, nanoseconds; null when only a count was given.
    pub duration_ns: Option<u64>,
    /// Number of measured requests; null when only a duration was given.
    pub requests: Option<u64>,
}

/// What was asked for. Its amounts are those of all agents together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanDescription {
    /// The URL.
    pub url: String,
    /// Path of the Unix socket, where one is used in place of the URL's host.
    pub unix_socket: Option<String>,
    /// What is sent.
    pub requests: RequestsDescription,
    /// What makes a request due.
    pub model: ModelDescription,
    /// Connections held at once; with a schedule of connections, most at once.
    pub connections: u32,
    /// Worker threads.
    pub workers: u32,
    /// Which HTTP was asked for; null where something else is spoken.
    pub http: Option<HttpChoice>,
    /// The messages that are exchanged; absent where HTTP is spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesDescription>,
    /// The messages of WebSocket that are exchanged; absent where something else is spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocketDescription>,
    /// Whether connections are only opened and closed again: each attempt is a request, which is
    /// answered when the connection is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub connects_only: bool,
    /// How TLS is spoken; null in clear text.
    pub tls: Option<TlsDescription>,
    /// Requests in flight per connection in HTTP/1.1 (pipelining), and messages.
    pub pipeline: u32,
    /// Requests in flight per connection in HTTP/2; the server may allow fewer.
    pub streams: u32,
    /// What clients tell the server in HTTP/2; absent where it is the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Description>,
    /// The one-way streams that connections carry; absent where they carry requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<StreamsDescription>,
    /// Options of TCP sockets; absent where all are the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketsDescription>,
    /// Requests after which a connection is replaced; null for no limit.
    pub requests_per_connection: Option<u64>,
    /// Think times; null without any.
    pub think: Option<ThinkDescription>,
    /// When the run ends.
    pub stop: StopDescription,
    /// Each connection had an equal part of the requests from the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_equal_parts: bool,
    /// Length of the warm-up, nanoseconds.
    pub warmup_ns: u64,
    /// Limit of one request, nanoseconds: from its planned instant with a schedule of requests,
    /// else from its send.
    pub timeout_ns: u64,
    /// Limit of set-up, nanoseconds, beside the time that opening the connections takes by plan;
    /// null where it went on as long as it got anywhere.
    pub setup_timeout_ns: Option<u64>,
    /// Limit of one connection attempt, nanoseconds.
    pub connect_timeout_ns: u64,
    /// Limit of the drain phase, nanoseconds.
    pub drain_limit_ns: u64,
    /// Which backend was asked for.
    pub backend: BackendChoice,
    /// On which connections the kernel's receive stamps are taken.
    pub stamps: Stamps,
    /// Whether workers poll while they wait.
    pub spin: Spin,
    /// Whether more workers than usable CPUs are allowed.
    pub oversubscribe: bool,
    /// Whether machine, network and server are read during the window.
    pub observe: bool,
}

impl PlanDescription {
    /// Whether connections are used for more than one request.
    pub fn keepalive(&self) -> bool {
        self.requests_per_connection != Some(1)
    }

    /// Whether each connection begins with an exchange of its own, before its first request.
    pub fn is_opened_by_message(&self) -> bool {
        let opening = self.messages.as_ref().and_then(|it| it.opening.as_ref());
        opening.is_some_and(|opening| opening.reply != "none")
    }

    /// Whether replies are awaited; else what is sent is done with that.
    pub fn awaits_replies(&self) -> bool {
        let needs_none = self.connects_only
            || self.websocket.as_ref().is_some_and(|it| it.replies == 0)
            || self.messages.as_ref().is_some_and(|it| it.reply == "none");
        !needs_none
    }

    /// Whether what a server sends unasked while a message is in flight cannot be told from its
    /// reply.
    pub fn may_mistake_pushes(&self) -> bool {
        let is_any = self.websocket.as_ref().is_some_and(|it| !it.echo);
        let is_unlike = |it: &MessagesDescription| it.reply != "echo";
        is_any || self.messages.as_ref().is_some_and(is_unlike)
    }

    /// The words for what is sent.
    pub fn unit(&self) -> Unit {
        match (&self.messages, &self.websocket) {
            _ if self.connects_only => Unit::CONNECTIONS,
            (Some(_), _) => Protocol::MESSAGES.unit,
            (_, Some(_)) => Protocol::WEBSOCKET.unit,
            (None, None) => Protocol::HTTP1.unit,
        }
    }

    /// Mean think time, nanoseconds; 0 without any.
    pub fn think_time_ns(&self) -> u64 {
        self.think.map_or(0, |think| think.mean_ns)
    }

    /// One connection in this many has kernel receive stamps; absent: none.
    pub fn stamps_every(&self) -> Option<u32> {
        match self.stamps {
            Stamps::Off => None,
            Stamps::Sampled { every } => Some(every),
            Stamps::Full => Some(1),
        }
    }

    /// Connections that there can be at once.
    pub fn connections_most(&self) -> u32 {
        match self.model {
            ModelDescription::Open {
                connections_max, ..
            } => connections_max.max(self.connections),
            _ => self.connections,
        }
    }

    /// Its amounts: what several agents share out among them.
    pub fn amounts(&self) -> Amounts {
        let schedule = self.model.schedule();
        Amounts {
            connections: self.connections,
            connections_max: match self.model {
                ModelDescription::Open {
                    connections_max, ..
                } => Some(connections_max),
                _ => None,
            },
            workers: self.workers,
            requests: self.stop.requests,
            connect_per_s: match self.model {
                ModelDescription::Closed { connect_per_s }
                | ModelDescription::Held { connect_per_s } => connect_per_s,
                _ => None,
            },
            rate_per_s: schedule.and_then(|schedule| schedule.rate_per_s),
            stages: schedule.map_or_else(Vec::new, |schedule| {
                let stages = schedule.stages.iter();
                stages
                    .map(|stage| StageRates {
                        from_per_s: stage.from_per_s,
                        to_per_s: stage.to_per_s,
                    })
                    .collect()
            }),
            queue_max: schedule.map(|schedule| schedule.queue_max),
        }
    }

    /// Puts `amounts`, which are of the same kind, in place of its own.
    pub fn set_amounts(&mut self, amounts: &Amounts) {
        self.connections = amounts.connections;
        self.workers = amounts.workers;
        self.stop.requests = amounts.requests;
        match &mut self.model {
            ModelDescription::Closed { connect_per_s }
            | ModelDescription::Held { connect_per_s } => *connect_per_s = amounts.connect_per_s,
            ModelDescription::Open {
                connections_max, ..
            } => *connections_max = amounts.connections_max.unwrap_or(amounts.connections),
            ModelDescription::Sessions { .. } => {}
        }
        if let Some(schedule) = self.model.schedule_mut() {
            schedule.rate_per_s = amounts.rate_per_s;
            schedule.queue_max = amounts.queue_max.unwrap_or(0);
            for (stage, rates) in schedule.stages.iter_mut().zip(&amounts.stages) {
                (stage.from_per_s, stage.to_per_s) = (rates.from_per_s, rates.to_per_s);
            }
        }
    }
}
