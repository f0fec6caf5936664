//! What is spoken over the connections of a run.

use brunt_proto::messages::{Framing, Pattern, Template};

use crate::{HttpChoice, Streams};

/// What is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// HTTP.
    Http(HttpChoice),
    /// Messages over TCP, whose replies come in their order.
    Messages(MessageExchange),
    /// Messages of WebSocket.
    WebSocket(WebSocketExchange),
    /// Bytes without end, in a closed loop with a duration.
    Streams(Streams),
    /// Nothing: connections are opened and closed again, and each takes the place of a request.
    Connections,
}

impl Spoken {
    /// Which HTTP; absent where it is something else.
    pub fn http(&self) -> Option<HttpChoice> {
        match self {
            Self::Http(http) => Some(*http),
            Self::Messages(_) | Self::WebSocket(_) | Self::Streams(_) | Self::Connections => None,
        }
    }
}

impl From<HttpChoice> for Spoken {
    fn from(http: HttpChoice) -> Self {
        Self::Http(http)
    }
}

/// How messages are exchanged. What they are stands in the plan's set of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageExchange {
    /// Where the reply to a message ends; nowhere, where a message is done when it is sent.
    pub reply: Framing,
    /// What opens each connection, before its first message.
    pub opening: Option<OpeningMessage>,
    /// Seed of what is random in messages.
    pub seed: u64,
}

/// How messages of WebSocket are exchanged. What they are stands in the plan's set of requests, and
/// the path of the upgrade in its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketExchange {
    /// Header fields of the upgrade, beside those of the handshake.
    pub headers: Vec<(String, String)>,
    /// Subprotocols that are offered, of which the server has to choose one.
    pub subprotocols: Vec<String>,
    /// Whether messages are binary, and no texts.
    pub is_binary: bool,
    /// How many messages answer one. With 0, it is done when it is sent.
    pub replies: u32,
    /// Which messages of the server answer one.
    pub matching: ReplyMatch,
    /// Whether texts of the server must be UTF-8, and lengths as short as they can be written.
    pub is_strict: bool,
    /// Whether all masks are zero, and none random.
    pub has_zero_masks: bool,
    /// From one ping on a connection to the next, nanoseconds; absent: none is sent.
    pub ping_interval_ns: Option<u64>,
    /// Seed of masks, keys of handshakes and of what is random in messages.
    pub seed: u64,
}

/// Which messages of a server answer one that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplyMatch {
    /// All that begin while it is in flight.
    #[default]
    Any,
    /// Those that are the same.
    Echo,
    /// Those that have these bytes in them.
    Containing(Pattern),
}

/// What is sent once on each connection, when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningMessage {
    /// What is sent.
    pub message: Template,
    /// Where its reply ends, which is waited for; nowhere, where there is none.
    pub reply: Framing,
}

/// One of the messages of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpec {
    /// What its figures stand under.
    pub name: String,
    /// What is sent.
    pub template: Template,
}
