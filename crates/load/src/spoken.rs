//! What is spoken over the connections of a run.

use brunt_proto::messages::{Framing, Pattern, Template};
use brunt_protocols::{Protocol, Unit};
use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::{HttpChoice, Secret, Streams};

/// Most subprotocols that are offered.
const SUBPROTOCOLS_MAX: usize = 1_000;

/// What is spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spoken {
    /// HTTP.
    Http(HttpChoice),
    /// Messages over TCP, whose replies come in their order.
    Messages(MessageExchange),
    /// Messages of WebSocket.
    #[serde(rename = "websocket")]
    WebSocket(WebSocketExchange),
    /// Bytes without end, in a closed loop with a duration.
    Streams(Streams),
    /// Nothing: connections are opened and closed again, and each takes the place of a request.
    Connections,
}

impl Spoken {
    /// The protocols that it may be, the preferred one first. Over TLS the server chooses (ALPN);
    /// in clear text it is the last one.
    pub fn protocols(&self) -> &'static [Protocol] {
        match self {
            Self::Http(HttpChoice::Auto) => &[Protocol::HTTP2, Protocol::HTTP1],
            Self::Http(HttpChoice::Http1) => &[Protocol::HTTP1],
            Self::Http(HttpChoice::Http2) => &[Protocol::HTTP2],
            Self::Http(HttpChoice::Http3) => &[Protocol::HTTP3],
            Self::Messages(_) => &[Protocol::MESSAGES],
            Self::WebSocket(_) => &[Protocol::WEBSOCKET],
            Self::Streams(_) | Self::Connections => &[Protocol::TCP],
        }
    }

    /// The preferred one of its protocols.
    pub fn preferred(&self) -> Protocol {
        self.protocols()[0]
    }

    /// The one of its protocols that is spoken where nothing is negotiated.
    pub fn in_clear_text(&self) -> Protocol {
        let protocols = self.protocols();
        protocols[protocols.len() - 1]
    }

    /// The one of its protocols that a server of TLS chose by this name (ALPN), or by none.
    pub fn chosen(&self, alpn: Option<&[u8]>) -> Option<Protocol> {
        let is_chosen = |protocol: &&Protocol| match alpn {
            Some(name) => protocol.alpn.map(str::as_bytes) == Some(name),
            None => !protocol.needs_alpn,
        };
        self.protocols().iter().find(is_chosen).copied()
    }

    /// What its streams are; absent where connections carry units.
    pub fn one_way(&self) -> Option<&Streams> {
        match self {
            Self::Streams(streams) => Some(streams),
            _ => None,
        }
    }

    /// The words for what is sent and answered.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Connections => Unit::CONNECTIONS,
            _ => self.in_clear_text().unit,
        }
    }

    /// Whether each connection begins with an exchange of its own.
    pub(crate) fn is_opened_by_message(&self) -> bool {
        let opening = match self {
            Self::Messages(exchange) => exchange.opening.as_ref(),
            _ => None,
        };
        opening.is_some_and(|opening| opening.reply != Framing::None)
    }

    /// Whether replies are awaited. Where they are not, what is sent is done when it is sent.
    pub(crate) fn awaits_replies(&self) -> bool {
        match self {
            Self::Connections => false,
            Self::Messages(exchange) => exchange.reply != Framing::None,
            Self::WebSocket(exchange) => exchange.replies > 0,
            Self::Http(_) | Self::Streams(_) => true,
        }
    }

    /// Whether what comes unasked cannot be told from a reply.
    pub(crate) fn may_mistake_pushes(&self) -> bool {
        match self {
            Self::Messages(exchange) => exchange.reply != Framing::Echo,
            Self::WebSocket(exchange) => exchange.matching != ReplyMatch::Echo,
            Self::Http(_) | Self::Streams(_) | Self::Connections => false,
        }
    }

    /// Seed of what is random in the messages; absent where nothing is.
    pub fn seed_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Messages(exchange) => Some(&mut exchange.seed),
            Self::WebSocket(exchange) => Some(&mut exchange.seed),
            Self::Http(_) | Self::Streams(_) | Self::Connections => None,
        }
    }

    /// This value with the seed of `other`, where both have one.
    #[must_use]
    pub(crate) fn with_seed_of(mut self, other: &Self) -> Self {
        let mut other = other.clone();
        if let (Some(ours), Some(theirs)) = (self.seed_mut(), other.seed_mut()) {
            *ours = *theirs;
        }
        self
    }

    /// Leaves `protocol`, which is one of its own, as the only one.
    pub fn narrow_to(&mut self, protocol: Protocol) {
        if let Self::Http(http) = self {
            let choices = [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3].into_iter();
            let mut choices = choices.filter(|&it| Self::Http(it).preferred() == protocol);
            *http = choices.next().unwrap_or(*http);
        }
    }

    /// Which HTTP is spoken; absent where it is another protocol.
    pub fn http(&self) -> Option<HttpChoice> {
        match self {
            Self::Http(http) => Some(*http),
            _ => None,
        }
    }
}

impl From<HttpChoice> for Spoken {
    fn from(http: HttpChoice) -> Self {
        Self::Http(http)
    }
}

/// How messages are exchanged. What they are stands in the plan's set of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebSocketExchange {
    /// Header fields of the upgrade, beside those of the handshake.
    pub headers: Secret<Vec<(String, String)>>,
    /// Subprotocols that are offered, of which the server has to choose one.
    #[serde(deserialize_with = "bounded::list::<_, _, SUBPROTOCOLS_MAX>")]
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
    /// Time from one ping on a connection to the next, nanoseconds; absent: none is sent.
    pub ping_interval_ns: Option<u64>,
    /// Seed of masks, keys of handshakes and of what is random in messages.
    pub seed: u64,
}

/// Which messages of a server answer one that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplyMatch {
    /// All messages that begin while it is in flight.
    #[default]
    Any,
    /// The messages that are equal to it.
    Echo,
    /// The messages that have these bytes in them.
    Containing(Pattern),
}

/// What is sent once on each connection, when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpeningMessage {
    /// What is sent.
    pub message: Secret<Template>,
    /// Where its reply ends, which is waited for; nowhere, where there is none.
    pub reply: Framing,
}

/// One of the messages of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageSpec {
    /// What its figures stand under.
    pub name: String,
    /// What is sent.
    pub template: Template,
}

impl OpeningMessage {
    /// Bytes that it has at most when it is sent.
    pub fn bytes_max(&self) -> u64 {
        self.message.bytes(Template::bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_tls_the_server_chooses_among_those_that_were_asked_for() {
        use HttpChoice::{Auto, Http1, Http2};
        let (h1, h2) = (Some(Protocol::HTTP1), Some(Protocol::HTTP2));
        // (what was asked for, what the server chose, what is spoken)
        for (http, alpn, protocol) in [
            (Auto, Some("h2"), h2),
            (Auto, Some("http/1.1"), h1),
            (Auto, None, h1),
            (Auto, Some("h3"), None),
            (Http1, Some("http/1.1"), h1),
            (Http1, None, h1),
            (Http1, Some("h2"), None),
            (Http2, Some("h2"), h2),
            (Http2, None, None),
        ] {
            let chosen = Spoken::Http(http).chosen(alpn.map(str::as_bytes));
            assert_eq!(chosen, protocol, "{http:?} {alpn:?}");
        }
        assert_eq!(Spoken::Connections.chosen(None), Some(Protocol::TCP));
    }

    #[test]
    fn in_clear_text_it_is_http_1_unless_http_2_was_asked_for() {
        use HttpChoice::{Auto, Http1, Http2};
        for (http, protocol) in [
            (Auto, Protocol::HTTP1),
            (Http1, Protocol::HTTP1),
            (Http2, Protocol::HTTP2),
        ] {
            assert_eq!(Spoken::Http(http).in_clear_text(), protocol, "{http:?}");
        }
    }

    #[test]
    fn what_was_chosen_is_not_left_to_the_server_again() {
        for protocol in [Protocol::HTTP1, Protocol::HTTP2] {
            let mut spoken = Spoken::from(HttpChoice::Auto);
            spoken.narrow_to(protocol);
            assert_eq!(spoken.protocols(), [protocol]);
        }
        let mut spoken = Spoken::Connections;
        spoken.narrow_to(Protocol::TCP);
        assert_eq!(spoken, Spoken::Connections);
    }
}
