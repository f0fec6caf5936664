//! The protocols that there are, each known by its name.

mod http1;
mod http2;
mod http3;
mod messages;
mod tcp;
mod websocket;

use std::fmt;
use std::ops::Deref;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ProtocolDescription;

/// A protocol. Its description is what other crates ask, and its name is what is stored.
#[derive(Clone, Copy)]
pub struct Protocol(&'static ProtocolDescription);

impl Protocol {
    /// HTTP/1.1.
    pub const HTTP1: Self = Self(&http1::DESCRIPTION);
    /// HTTP/2.
    pub const HTTP2: Self = Self(&http2::DESCRIPTION);
    /// HTTP/3.
    pub const HTTP3: Self = Self(&http3::DESCRIPTION);
    /// Messages over TCP.
    pub const MESSAGES: Self = Self(&messages::DESCRIPTION);
    /// WebSocket.
    pub const WEBSOCKET: Self = Self(&websocket::DESCRIPTION);
    /// TCP by itself.
    pub const TCP: Self = Self(&tcp::DESCRIPTION);

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
        Self::ALL.into_iter().find(|it| it.name == name)
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
        deserializer.deserialize_str(Name)
    }
}

/// The names of all protocols.
const NAMES: [&str; Protocol::ALL.len()] = {
    let mut names = [""; Protocol::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Protocol::ALL[at].0.name;
        at += 1;
    }
    names
};

/// Reads a name without a copy of it, however long it is.
struct Name;

impl serde::de::Visitor<'_> for Name {
    type Value = Protocol;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a protocol")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Protocol, E> {
        Protocol::named(name).ok_or_else(|| E::unknown_variant(name, &NAMES))
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
        let mut names = NAMES;
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
