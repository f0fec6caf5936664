//! One description per protocol: what plan, negotiation, limits, invariants, verdict and report
//! need to know of it. A protocol is added by a description, and a line in the list of all.

mod descriptions;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A protocol. Its description is what other crates ask, and its name is what is stored.
#[derive(Clone, Copy)]
pub struct Protocol(&'static ProtocolDescription);

impl Protocol {
    /// HTTP/1.1.
    pub const HTTP1: Self = Self(&descriptions::HTTP1);
    /// HTTP/2.
    pub const HTTP2: Self = Self(&descriptions::HTTP2);
    /// HTTP/3.
    pub const HTTP3: Self = Self(&descriptions::HTTP3);
    /// Messages over TCP.
    pub const MESSAGES: Self = Self(&descriptions::MESSAGES);
    /// WebSocket.
    pub const WEBSOCKET: Self = Self(&descriptions::WEBSOCKET);
    /// TCP by itself.
    pub const TCP: Self = Self(&descriptions::TCP);

    /// All protocols.
    pub const ALL: [Self; 6] = [
        Self::HTTP1,
        Self::HTTP2,
        Self::HTTP3,
        Self::MESSAGES,
        Self::WEBSOCKET,
        Self::TCP,
    ];

    /// The protocol of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name == name)
    }
}

impl Deref for Protocol {
    type Target = ProtocolDescription;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self::HTTP1
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

impl fmt::Debug for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::named(&name)
            .ok_or_else(|| D::Error::custom(format_args!("no protocol is called {name:?}")))
    }
}

/// A protocol above its transport.
#[derive(Debug)]
pub struct ProtocolDescription {
    /// The protocol's name as printed and stored.
    pub name: &'static str,
    /// What the protocol is, in a sentence.
    pub about: &'static str,
    /// The option that asks for this version of HTTP alone; absent for what is no version of HTTP.
    pub version_option: Option<&'static str>,
    /// What carries it.
    pub transport: Transport,
    /// What URLs begin with: in clear text, and over TLS.
    pub schemes: [&'static str; 2],
    /// The protocol's name in ALPN (RFC 7301); absent where none is offered.
    pub alpn: Option<&'static str>,
    /// Whether the protocol is spoken over TLS only where the server chose it by its name in ALPN.
    pub needs_alpn: bool,
    /// What is sent and answered, in words.
    pub unit: Unit,
    /// Whether a unit is a request of HTTP: it has a method, fields and a body.
    pub carries_http: bool,
    /// Whether replies come in the order of what they answer.
    pub is_in_order: bool,
    /// Whether a reply has a status, whose class says whether it is a success.
    pub has_statuses: bool,
    /// How many units may be in flight on a connection, and who says so.
    pub depth: Depth,
    /// What a connection needs before its first unit.
    pub greeting: Greeting,
    /// What a connection costs.
    pub cost: ConnectionCost,
    /// Bytes of the shortest reply that a lenient client takes.
    pub reply_bytes_least: u64,
    /// Whether frames around units, or between them, take bytes that are not the units' own.
    pub adds_frames: bool,
    /// Whether scripts can write the text of each unit.
    pub takes_texts: bool,
    /// What reports say of connections that last, where that is not all that the protocol knows.
    pub kept_alive: Option<&'static str>,
    /// What reports say of the protocol in clear text, where that is unusual.
    pub in_clear_text: Option<&'static str>,
    /// What to do where all that a server sends is malformed.
    pub malformed_advice: &'static str,
}

/// What carries a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Byte streams: TCP or Unix sockets, perhaps with TLS over them.
    Streams,
    /// Datagrams: UDP. The protocol sees to encryption by itself, as QUIC does.
    Datagrams,
}

/// The words for what is sent and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// One unit, in words.
    pub one: &'static str,
    /// Several units.
    pub many: &'static str,
    /// Units per second.
    pub per_s: &'static str,
}

impl Unit {
    /// Requests of HTTP.
    pub const REQUESTS: Self = Self {
        one: "request",
        many: "requests",
        per_s: "req/s",
    };
    /// Messages.
    pub const MESSAGES: Self = Self {
        one: "message",
        many: "messages",
        per_s: "msg/s",
    };
    /// Bytes of streams.
    pub const BYTES: Self = Self {
        one: "byte",
        many: "bytes",
        per_s: "B/s",
    };
    /// Connections that are only opened and closed again.
    pub const CONNECTIONS: Self = Self {
        one: "connection",
        many: "connections",
        per_s: "connections/s",
    };
}

/// How many units may be in flight on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The option that sets it.
    pub option: &'static str,
    /// The word for what a connection then has several of.
    pub many: &'static str,
    /// Where a report says how many, and how.
    pub place: DepthPlace,
    /// Whether client and server settle the depth, so that the server may allow less. A larger
    /// depth is then as good as more connections.
    pub is_settled: bool,
    /// Units that can be in flight on a connection at once, at most.
    pub in_flight_max: u32,
    /// Units that one connection can carry in its life, at most.
    pub units_per_connection_max: u64,
}

/// Where a report says how many units are in flight on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthPlace {
    /// Behind the number of connections: `, 8 streams each`.
    BesideConnections(&'static str),
    /// As an item of its own: `8 requests in a pipeline`.
    OfItsOwn(&'static str),
}

/// What a connection needs, once it is made, before its first unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// Nothing.
    Nothing,
    /// The message that the plan gives, and its reply, if it gives one.
    Planned,
    /// An exchange that the protocol prescribes. A report that has a row of its own for how long it
    /// took needs its name, and what it is an exchange of.
    Prescribed(Option<[&'static str; 2]>),
}

/// What a connection costs beyond its slot and its places for units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCost {
    /// Bytes of the protocol's state, for an estimate before a run.
    pub state_bytes: u64,
    /// Bytes of the protocol's state that a server may make brunt keep at most, for a check after
    /// a run.
    pub state_bytes_most: u64,
    /// What a server may send in advance of bytes that did not come, and is kept until they do.
    pub window: Option<Window>,
    /// Whether each connection writes units for itself and so holds copies of them. Otherwise all
    /// connections of a worker share one.
    pub copies_units: bool,
}

impl ConnectionCost {
    /// No state, and shared units.
    pub const NONE: Self = Self {
        state_bytes: 0,
        state_bytes_most: 0,
        window: None,
        copies_units: false,
    };
}

/// The receive windows of connections, which share a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes of all connections together.
    pub bytes_all: u64,
    /// Bytes of each connection at least, and at most.
    pub bytes_each: [u64; 2],
}

impl Window {
    /// The window of each of so many connections, bytes.
    pub fn of_each(&self, connections: u32) -> u64 {
        let [least, most] = self.bytes_each;
        let share = self.bytes_all / u64::from(connections.max(1));
        share.max(least).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_stored_as_its_name() {
        for protocol in Protocol::ALL {
            let stored = serde_json::to_string(&protocol).expect("a name");
            assert_eq!(stored, format!("\"{}\"", protocol.name));
            let read: Protocol = serde_json::from_str(&stored).expect(&stored);
            assert_eq!(read, protocol);
        }
        let error = serde_json::from_str::<Protocol>("\"gopher\"").expect_err("a name");
        assert!(error.to_string().contains("gopher"), "{error}");
    }

    #[test]
    fn connections_share_the_room_for_windows() {
        let window = Protocol::HTTP3.cost.window.expect("it has one");
        for (connections, kib) in [(0, 16_384), (1, 16_384), (64, 4_096), (100_000, 256)] {
            assert_eq!(window.of_each(connections), kib << 10, "{connections}");
        }
    }

    #[test]
    fn no_two_protocols_have_one_name() {
        let mut names = Protocol::ALL.map(|protocol| protocol.name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
