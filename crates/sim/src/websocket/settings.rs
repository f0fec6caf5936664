//! How the simulated server speaks WebSocket, beside what holds for all protocols.

use std::num::{NonZeroU32, NonZeroU64};

/// The simulated server's WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct SimWebSocket {
    /// The answer to each message, a text; absent: the same bytes in the same kind.
    pub reply: Option<Vec<u8>>,
    /// How often it answers each message; 0 for not at all.
    pub replies: u32,
    /// The text that comes unasked behind an answer, where
    /// [`extra_bytes`](super::SimFaults::extra_bytes) has it so.
    pub push: Vec<u8>,
    /// Most bytes of a frame: longer messages are in several.
    pub frame_bytes: NonZeroU32,
    /// A ping comes with every this many answers of a connection, before the last frame.
    pub ping_every: Option<NonZeroU64>,
    /// The code of Close frames, which come in place of an answer
    /// ([`goaway`](super::SimFaults::goaway)), or behind the last one
    /// ([`close_after`](super::SimServer::close_after)); absent for none.
    pub close_code: Option<u16>,
    /// The server answers Close frames, and ends the connection then.
    pub answers_closes: bool,
    /// What a malformed answer consists of.
    pub malformed: WebSocketMalformed,
}

impl Default for SimWebSocket {
    /// A server that answers with one echo in one frame.
    fn default() -> Self {
        Self {
            reply: None,
            replies: 1,
            push: b"push".to_vec(),
            frame_bytes: NonZeroU32::MAX,
            ping_every: None,
            close_code: Some(1_000),
            answers_closes: true,
            malformed: WebSocketMalformed::default(),
        }
    }
}

/// What a server must not send (RFC 6455).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebSocketMalformed {
    /// A bit of an extension is set.
    #[default]
    ReservedBit,
    /// An opcode without a meaning.
    ReservedOpcode,
    /// A frame is masked.
    Masked,
    /// A ping of 126 bytes.
    LongPing,
    /// A ping that is not the last frame of its message.
    PingInParts,
    /// A continuation of nothing.
    NothingToContinue,
    /// A message inside of another one.
    MessageInside,
    /// A Close with a code that stands for a connection without one.
    ReservedCode,
    /// A Close with half a code.
    HalfCode,
    /// A length with the highest of its 64 bits set.
    HugeLength,
}

impl WebSocketMalformed {
    /// All ways in which a message is malformed.
    pub const ALL: [Self; 10] = [
        Self::ReservedBit,
        Self::ReservedOpcode,
        Self::Masked,
        Self::LongPing,
        Self::PingInParts,
        Self::NothingToContinue,
        Self::MessageInside,
        Self::ReservedCode,
        Self::HalfCode,
        Self::HugeLength,
    ];

    /// The bytes.
    pub(super) fn bytes(self) -> Vec<u8> {
        match self {
            Self::ReservedBit => b"\xc1\x01a".to_vec(),
            Self::ReservedOpcode => b"\x83\x01a".to_vec(),
            Self::Masked => b"\x81\x81\x01\x02\x03\x04a".to_vec(),
            Self::LongPing => [&b"\x89\x7e\x00\x7e"[..], &[b'a'; 126]].concat(),
            Self::PingInParts => b"\x09\x01a".to_vec(),
            Self::NothingToContinue => b"\x80\x01a".to_vec(),
            Self::MessageInside => b"\x01\x01a\x81\x01b".to_vec(),
            Self::ReservedCode => b"\x88\x02\x03\xed".to_vec(),
            Self::HalfCode => b"\x88\x01\x03".to_vec(),
            Self::HugeLength => b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_proto::websocket::{Reader, Rules, Side};

    use super::*;

    #[test]
    fn what_is_malformed_is_refused() {
        let rules = Rules {
            side: Side::Client,
            is_strict: false,
        };
        for malformed in WebSocketMalformed::ALL {
            let bytes = malformed.bytes();
            let received = Reader::default().receive(&bytes, rules, |_| {});
            assert!(received.is_err(), "{malformed:?}: {received:?}");
        }
    }
}
