//! Frames on the wire (RFC 6455 section 5): their heads, the masking of what they hold, and Close
//! frames; what is refused of a peer, and of what is to be offered to it.

use thiserror::Error;

use crate::http1::{ReplyError, RequestError};

/// Most bytes that a control frame holds (RFC 6455 section 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;
/// Most bytes of a head: two, a length of 64 bits, a key.
pub(super) const HEAD_BYTES_MAX: usize = 14;
/// Bit of a frame's first byte: the frame is the last of its message.
pub(super) const FINAL: u8 = 0x80;
/// Bits of a frame's first byte that extensions use.
pub(super) const RESERVED: u8 = 0x70;
/// Bit of a frame's second byte: a masking key follows.
pub(super) const MASKED: u8 = 0x80;
/// Values of a frame's second byte in place of a length: the length follows in 16 or 64 bits.
pub(super) const LENGTH_16: u8 = 126;
pub(super) const LENGTH_64: u8 = 127;

/// What hides the payload of a frame that a client sends (RFC 6455 section 5.3).
pub type MaskKey = [u8; 4];

/// What a frame is (RFC 6455 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further part of a message.
    Continuation = 0,
    /// A message of UTF-8, or its first part.
    Text = 1,
    /// A message of any bytes, or its first part.
    Binary = 2,
    /// The end of what its sender sends.
    Close = 8,
    /// To be answered by a pong of the same payload.
    Ping = 9,
    /// The answer to a ping, or sent unasked.
    Pong = 10,
}

impl Opcode {
    /// The opcode with this number; absent where the number is reserved.
    pub(super) fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    /// Whether frames of this opcode are control frames: never in parts, and allowed between the
    /// frames of a message.
    pub fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// Bytes of the head of a frame of `length` bytes, with a key or without one.
pub fn frame_head_bytes(length: u64, has_key: bool) -> u64 {
    let length_bytes = match length {
        0..=125 => 0,
        126..=0xffff => 2,
        _ => 8,
    };
    2 + length_bytes + if has_key { 4 } else { 0 }
}

/// Appends the head of a frame of `length` bytes, which have still to be masked where there is a
/// `key`.
pub fn put_head(
    out: &mut Vec<u8>,
    opcode: Opcode,
    is_final: bool,
    length: u64,
    key: Option<MaskKey>,
) {
    let masked = if key.is_some() { MASKED } else { 0 };
    out.push(opcode as u8 | if is_final { FINAL } else { 0 });
    match length {
        0..=125 => out.push(masked | length as u8),
        126..=0xffff => {
            out.push(masked | LENGTH_16);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(masked | LENGTH_64);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    if let Some(key) = key {
        out.extend_from_slice(&key);
    }
}

/// Appends a whole frame, the last one of its message, masked where there is a `key`.
pub fn put_frame(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], key: Option<MaskKey>) {
    put_head(out, opcode, true, payload.len() as u64, key);
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = key {
        mask(&mut out[start..], key);
    }
}

/// Masks a payload from its first byte on, or takes its mask away.
pub fn mask(payload: &mut [u8], key: MaskKey) {
    if key == [0; 4] {
        return;
    }
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let mut words = payload.chunks_exact_mut(8);
    for word in &mut words {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        word.copy_from_slice(&(u64::from_ne_bytes(bytes) ^ wide).to_ne_bytes());
    }
    for (byte, key_byte) in words.into_remainder().iter_mut().zip(key.iter().cycle()) {
        *byte ^= key_byte;
    }
}

/// The key for what follows the first `bytes` of a payload.
pub(super) fn key_behind(key: MaskKey, bytes: usize) -> MaskKey {
    let mut behind = key;
    behind.rotate_left(bytes % 4);
    behind
}

/// Appends a Close frame; of `reason` as much as a control frame can hold. Without a code it holds
/// nothing.
pub fn put_close(out: &mut Vec<u8>, code: Option<CloseCode>, reason: &str, key: Option<MaskKey>) {
    let Some(code) = code else {
        return put_frame(out, Opcode::Close, &[], key);
    };
    let mut end = reason.len().min(CONTROL_BYTES_MAX - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut payload = [0; CONTROL_BYTES_MAX];
    payload[..2].copy_from_slice(&code.number().to_be_bytes());
    payload[2..2 + end].copy_from_slice(&reason.as_bytes()[..end]);
    put_frame(out, Opcode::Close, &payload[..2 + end], key);
}

/// The code in the payload of a Close frame.
pub(super) fn read_close(payload: &[u8]) -> Result<Option<CloseCode>, Fault> {
    match payload {
        [] => Ok(None),
        [_] => Err(Fault::CloseLength),
        [high, low, reason @ ..] => {
            let number = u16::from_be_bytes([*high, *low]);
            let code = CloseCode::of(number).ok_or(Fault::CloseCode(number))?;
            std::str::from_utf8(reason).map_err(|_| Fault::CloseReason)?;
            Ok(Some(code))
        }
    }
}

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
        and_names(location)
    )]
    Refused {
        /// The status.
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

fn and_names(location: &Option<String>) -> String {
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
