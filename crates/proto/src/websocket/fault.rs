//! What is refused of a peer, and of what is to be offered to it; the numbers of Close frames (RFC
//! 6455 section 7.4).

use thiserror::Error;

use crate::http1::{ReplyError, RequestError};

/// Why a frame was refused. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A bit of an extension is set (RSV1 to RSV3), and no extension was negotiated.
    #[error("a frame has a bit of an extension set, and none was negotiated")]
    ReservedBits,
    /// The opcode is one of those without a meaning.
    #[error("a frame has the opcode {0}, which has no meaning")]
    ReservedOpcode(u8),
    /// A control frame is not the last of its message.
    #[error("a control frame is in parts")]
    ControlInParts,
    /// A control frame holds more than 125 bytes.
    #[error("a control frame holds more than 125 bytes")]
    ControlTooLong,
    /// A part of a message that was not begun.
    #[error("a continuation has no message before it")]
    NothingToContinue,
    /// A message begins inside of another one.
    #[error("a message begins inside of another one")]
    MessageInside,
    /// A server's frame is masked.
    #[error("a frame of the server is masked")]
    Masked,
    /// A client's frame is not masked.
    #[error("a frame of the client is not masked")]
    NotMasked,
    /// The length has 64 bits, of which the highest is set.
    #[error("the length of a frame is beyond 63 bits")]
    LengthTooLarge,
    /// The length has more bytes than it takes; looked at where rules are strict.
    #[error("the length of a frame takes more bytes than it needs")]
    LengthNotShortest,
    /// A text is not UTF-8; looked at where rules are strict.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// A Close frame holds a single byte.
    #[error("a Close frame holds half of a code")]
    CloseLength,
    /// A Close frame holds a number that is no code to be sent.
    #[error("a Close frame has the code {0}, which must not be sent")]
    CloseCode(u16),
    /// The reason in a Close frame is not UTF-8.
    #[error("the reason of a Close frame is not UTF-8")]
    CloseReason,
}

impl Fault {
    /// The code to close the connection with.
    pub fn close_code(self) -> CloseCode {
        match self {
            Self::NotUtf8 | Self::CloseReason => CloseCode::INVALID_TEXT,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }
}

/// Why the server's answer to an upgrade is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The answer is no reply of HTTP/1.1.
    #[error("the reply to the upgrade is refused: {0}")]
    NotHttp(#[from] ReplyError),
    /// The answer has another status than 101.
    #[error(
        "the server answers the upgrade with status {status} in place of 101{}",
        told(location)
    )]
    Refused {
        /// Which.
        status: u16,
        /// Where the server sends the client (`Location`); absent where it names no other place.
        location: Option<String>,
    },
    /// The answer's `Upgrade` is not `websocket`, or its `Connection` does not name it.
    #[error("the server's reply 101 does not say `Upgrade: websocket` and `Connection: Upgrade`")]
    NotUpgraded,
    /// The answer's `Sec-WebSocket-Accept` is missing, or not made from the key that was sent.
    #[error("the server's Sec-WebSocket-Accept does not fit the key that was sent")]
    WrongAccept,
    /// The answer names an extension, and none was offered.
    #[error("the server wants the extension `{0}`, which was not offered; brunt speaks none")]
    Extension(String),
    /// The answer names a subprotocol that was not offered, or several.
    #[error("the server chose the subprotocol `{0}`, which was not offered")]
    OtherSubprotocol(String),
    /// The answer names none of the subprotocols that were offered.
    #[error("the server chose none of the subprotocols that were offered")]
    NoSubprotocol,
}

fn told(location: &Option<String>) -> String {
    let place = location
        .as_ref()
        .map(|place| format!(", and names `{place}`"));
    place.unwrap_or_default()
}

/// What a client refuses. The connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The answer to the upgrade.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// A frame.
    #[error(transparent)]
    Frame(#[from] Fault),
}

/// Why an upgrade cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OfferError {
    /// The text is not a request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The user's header fields hold one that the handshake needs itself.
    #[error("the header field `{0}` is part of the WebSocket handshake; leave it out")]
    Reserved(String),
    /// A subprotocol is not a token, or given twice.
    #[error("the subprotocol `{0}` is not a token (RFC 9110 section 5.6.2), or given twice")]
    Subprotocol(String),
}

/// Why a side closes a connection: a number that may stand in a Close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(u16);

impl CloseCode {
    /// The purpose is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// The sender leaves.
    pub const GOING_AWAY: Self = Self(1001);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// A text of the peer is not UTF-8.
    pub const INVALID_TEXT: Self = Self(1007);

    /// The code of a number; absent where it may not stand in a frame (RFC 6455 section 7.4, and
    /// IANA's registry): under 1000, reserved, or not registered below 3000.
    pub fn of(number: u16) -> Option<Self> {
        matches!(number, 1000..=1003 | 1007..=1014 | 3000..=4999).then_some(Self(number))
    }

    /// The code as it is on the wire: 1000 to 4999.
    pub fn number(self) -> u16 {
        self.0
    }
}
