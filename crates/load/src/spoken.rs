//! What is spoken over the connections of a run: one kind of exchange for each protocol, or for
//! several that are alike. What others ask of it, they ask of that exchange.

use std::ops::Deref;

use crate::protocol::{Protocol, Unit};
use serde::{Deserialize, Serialize};

use crate::exchange::Exchange;
use crate::{HttpChoice, MessageExchange, Streams, WebSocketExchange};

/// What is spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl Deref for Spoken {
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

impl Spoken {
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

    fn one_way(&self) -> Option<&Streams> {
        Some(self)
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

    fn connects_only(&self) -> bool {
        true
    }

    fn awaits_replies(&self) -> bool {
        false
    }
}

macro_rules! spoken_from {
    ($($exchange:ty: $variant:ident)+) => {
        $(impl From<$exchange> for Spoken {
            fn from(exchange: $exchange) -> Self {
                Self::$variant(exchange)
            }
        })+
    };
}

spoken_from! {
    HttpChoice: Http
    MessageExchange: Messages
    WebSocketExchange: WebSocket
    Streams: Streams
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_alone_have_one_protocol() {
        let spoken = Spoken::Connections;
        assert_eq!(spoken.chosen(None), Some(Protocol::TCP));
        assert_eq!(spoken.protocols(), [Protocol::TCP]);
        assert_eq!(spoken.unit(), Unit::CONNECTIONS);
    }
}
