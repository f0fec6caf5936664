//! The protocol that a plan asks for: one kind of exchange for each, or for several that are alike.
//! What others ask of it, they ask of that exchange.

use std::fmt::Debug;
use std::ops::Deref;

use brunt_proto::messages::Pattern;
use serde::{Deserialize, Serialize};

use crate::protocol::{Protocol, Unit};
use crate::{HttpChoice, MessageExchange, Streams, WebSocketExchange, Withheld, Work};

/// The protocol that a plan asks for, with what it says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtocolSpec {
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

impl Deref for ProtocolSpec {
    type Target = dyn Exchange;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Http(http) => http,
            Self::Messages(exchange) => exchange,
            Self::WebSocket(exchange) => exchange,
            Self::Streams(streams) => streams,
            Self::Connections => &Connections,
        }
    }
}

impl ProtocolSpec {
    /// The exchange, to be changed; absent where there is nothing to change.
    pub fn exchange_mut(&mut self) -> Option<&mut dyn Exchange> {
        match self {
            Self::Http(http) => Some(http),
            Self::Messages(exchange) => Some(exchange),
            Self::WebSocket(exchange) => Some(exchange),
            Self::Streams(streams) => Some(streams),
            Self::Connections => None,
        }
    }
}

impl Exchange for Streams {
    fn protocols(&self) -> &'static [Protocol] {
        &[Protocol::TCP]
    }
}

/// Connections that are opened and closed again.
#[derive(Debug)]
struct Connections;

impl Exchange for Connections {
    fn protocols(&self) -> &'static [Protocol] {
        &[Protocol::TCP]
    }

    fn unit(&self) -> Unit {
        Unit::CONNECTIONS
    }

    fn awaits_replies(&self) -> bool {
        false
    }
}

macro_rules! protocol_from {
    ($($exchange:ty: $variant:ident)+) => {
        $(impl From<$exchange> for ProtocolSpec {
            fn from(exchange: $exchange) -> Self {
                Self::$variant(exchange)
            }
        })+
    };
}

protocol_from! {
    HttpChoice: Http
    MessageExchange: Messages
    WebSocketExchange: WebSocket
    Streams: Streams
}

/// How units are exchanged over the connections of a run, as a plan has it.
pub trait Exchange: Debug {
    /// The protocols that it may be, the preferred one first. Over TLS the server chooses (ALPN);
    /// in clear text it is the last one.
    fn protocols(&self) -> &'static [Protocol];

    /// The preferred one of its protocols.
    fn preferred(&self) -> Protocol {
        self.protocols()[0]
    }

    /// The one of its protocols that is spoken where nothing is negotiated.
    fn in_clear_text(&self) -> Protocol {
        let protocols = self.protocols();
        protocols[protocols.len() - 1]
    }

    /// The one of its protocols that a server of TLS chose by this name (ALPN), or by none.
    fn chosen(&self, alpn: Option<&[u8]>) -> Option<Protocol> {
        let is_chosen = |protocol: &&Protocol| match alpn {
            Some(name) => protocol.alpn.map(str::as_bytes) == Some(name),
            None => !protocol.needs_alpn,
        };
        self.protocols().iter().find(is_chosen).copied()
    }

    /// The words for what is sent and answered.
    fn unit(&self) -> Unit {
        self.in_clear_text().unit
    }

    /// Whether replies are awaited. Where they are not, what is sent is done when it is sent.
    fn awaits_replies(&self) -> bool {
        true
    }

    /// Whether what comes unasked cannot be told from a reply.
    fn may_mistake_pushes(&self) -> bool {
        false
    }

    /// What marks a reply; absent where nothing does.
    fn reply_pattern(&self) -> Option<&Pattern> {
        None
    }

    /// What reports say of it beside the protocol's name, where connections are for `work`.
    fn terms(&self, _work: Work) -> Vec<Term> {
        Vec::new()
    }

    /// Seed of what is random in the units; absent where nothing is.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// Gives it this seed, where it has one.
    fn set_seed(&mut self, _seed: u64) {}

    /// Leaves out what may be secret.
    fn withhold(&mut self) {}

    /// The parts that were left out.
    fn withheld(&self) -> Vec<Withheld> {
        Vec::new()
    }
}

/// An item of what reports say of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// Words.
    Words(String),
    /// A number, and what there are so many of.
    Count(u64, &'static str),
    /// Words, and the time behind them, nanoseconds.
    Time(&'static str, u64),
}

impl<W: Into<String>> From<W> for Term {
    fn from(words: W) -> Self {
        Self::Words(words.into())
    }
}
