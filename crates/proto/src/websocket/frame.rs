//! Frames on the wire (RFC 6455 section 5): their heads, the masking of what they hold, and Close
//! frames.

use super::fault::{CloseCode, Fault};

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
    Continuation,
    /// A message of UTF-8, or its first part.
    Text,
    /// A message of any bytes, or its first part.
    Binary,
    /// The end of what its sender sends.
    Close,
    /// To be answered by a pong of the same payload.
    Ping,
    /// The answer to a ping, or sent unasked.
    Pong,
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

    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
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
    out.push(opcode.number() | if is_final { FINAL } else { 0 });
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
