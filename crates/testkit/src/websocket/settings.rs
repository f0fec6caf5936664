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
    /// [`extra_bytes`](crate::SimFaults::extra_bytes) has it so.
    pub push: Vec<u8>,
    /// Most bytes of a frame: longer messages are in several.
    pub frame_bytes: NonZeroU32,
    /// A ping comes with every this many answers of a connection, before the last frame.
    pub ping_every: Option<NonZeroU64>,
    /// The code of Close frames, which come in place of an answer
    /// ([`goaway`](crate::SimFaults::goaway)), or behind the last one
    /// ([`close_after`](crate::SimServer::close_after)); absent for none.
    pub close_code: Option<u16>,
    /// The server answers Close frames, and ends the connection then.
    pub answers_closes: bool,
    /// What a malformed answer consists of.
    pub malformed: &'static [u8],
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
            // A bit of an extension is set.
            malformed: b"\xc1\x01a",
        }
    }
}
