//! The reader of frames: bytes of one side in, messages and control frames out.

use super::frame::{
    CONTROL_BYTES_MAX, CloseCode, FINAL, Fault, HEAD_BYTES_MAX, LENGTH_16, LENGTH_64, MASKED,
    MaskKey, Opcode, RESERVED, key_behind, mask, read_close,
};

/// Who reads: a client's frames are masked, a server's are not (RFC 6455 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client, which reads what the server sends.
    Client,
    /// The server, which reads what the client sends.
    Server,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Who reads.
    pub side: Side,
    /// Whether texts must be UTF-8, and lengths as short as they can be written. What else RFC 6455
    /// demands is always looked at.
    pub is_strict: bool,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

impl Kind {
    /// The opcode of its first frame.
    pub fn opcode(self) -> Opcode {
        match self {
            Self::Text => Opcode::Text,
            Self::Binary => Opcode::Binary,
        }
    }
}

/// A part of a message's payload, as it came.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// What the message is.
    pub kind: Kind,
    /// The bytes.
    pub bytes: &'a [u8],
    /// The key of their mask, from the first of these bytes on; absent where they are not masked.
    pub key: Option<MaskKey>,
}

/// What a peer sent. Bytes on the wire include the heads of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEvent {
    /// A message is complete.
    Message {
        /// What it is.
        kind: Kind,
        /// Bytes of its payload.
        payload_bytes: u64,
        /// Bytes on the wire of all its frames, heads included.
        wire_bytes: u64,
    },
    /// A ping, to be answered by a pong of the same payload.
    Ping {
        /// Bytes of its frame on the wire.
        wire_bytes: u64,
    },
    /// A pong.
    Pong {
        /// Bytes of its frame on the wire.
        wire_bytes: u64,
    },
    /// The peer sends nothing more.
    Close {
        /// Why, where it says so.
        code: Option<CloseCode>,
        /// Bytes of its frame on the wire.
        wire_bytes: u64,
    },
}

/// What [`Reader::receive`] did, or that of a [client](super::WebSocketClient).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReadProgress<E = FrameEvent> {
    /// Bytes taken. Without an event: all of them.
    pub consumed: usize,
    /// What the last of these bytes completed.
    pub event: Option<E>,
}

/// The state of what is received on one connection.
///
/// Small, and without memory of its own but for the payload of a control frame, of 125 bytes at
/// most; so messages may be of any length. The events depend on the bytes alone, not on how they
/// are cut: a fault is reported at the byte that shows it.
///
/// Every byte is accounted for: those taken are those of the events and
/// [`pending_bytes`](Self::pending_bytes), at any time.
#[derive(Debug, Default)]
pub struct Reader {
    head: [u8; HEAD_BYTES_MAX],
    head_length: u8,
    stage: ReaderStage,
    /// The message that is not complete.
    message: Option<Kind>,
    utf8: Utf8,
    payload_bytes: u64,
    message_wire_bytes: u64,
    /// Bytes on the wire of a head whose frame is not known yet, or of a control frame.
    frame_wire_bytes: u64,
    /// The payload of the latest control frame.
    control: Option<Box<Control>>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default)]
enum ReaderStage {
    #[default]
    Head,
    Payload(Frame),
    Failed(Fault),
}

/// The frame that is being received, whose head is complete.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Absent in a frame of a message.
    control: Option<Opcode>,
    is_final: bool,
    /// Bytes that are still to come.
    left: u64,
    /// The key of the mask, for the next of these bytes.
    key: Option<MaskKey>,
}

#[derive(Debug)]
struct Control {
    bytes: [u8; CONTROL_BYTES_MAX],
    length: u8,
}

impl Reader {
    /// Takes bytes up to the end of at most one message or control frame; to be called again with
    /// the rest. `data` gets the payload of messages as it comes, in pieces that are not empty.
    ///
    /// # Errors
    ///
    /// A frame is refused. All of `bytes` then count as taken: they are in
    /// [`pending_bytes`](Self::pending_bytes). Calls with further bytes give the same error and
    /// count these too.
    #[inline]
    pub fn receive(
        &mut self,
        bytes: &[u8],
        rules: Rules,
        mut data: impl FnMut(Piece<'_>),
    ) -> Result<ReadProgress, Fault> {
        let earlier = self.pending_bytes();
        let received = self.receive_frames(bytes, rules, &mut data);
        if let Err(fault) = received {
            *self = Self {
                stage: ReaderStage::Failed(fault),
                frame_wire_bytes: earlier + bytes.len() as u64,
                ..Self::default()
            };
        }
        received
    }

    fn receive_frames(
        &mut self,
        bytes: &[u8],
        rules: Rules,
        data: &mut impl FnMut(Piece<'_>),
    ) -> Result<ReadProgress, Fault> {
        let mut consumed = 0;
        loop {
            let frame = match self.stage {
                ReaderStage::Head => {
                    let Some(&byte) = bytes.get(consumed) else {
                        return Ok(ReadProgress {
                            consumed,
                            event: None,
                        });
                    };
                    consumed += 1;
                    let Some(frame) = self.receive_head(byte, rules)? else {
                        continue;
                    };
                    frame
                }
                ReaderStage::Payload(frame) => frame,
                ReaderStage::Failed(fault) => return Err(fault),
            };
            let rest = &bytes[consumed..];
            let taken = usize::try_from(frame.left).map_or(rest.len(), |left| left.min(rest.len()));
            consumed += taken;
            let event = self.receive_payload(frame, &rest[..taken], rules, data)?;
            if event.is_some() {
                return Ok(ReadProgress { consumed, event });
            }
            if matches!(self.stage, ReaderStage::Payload(_)) {
                // More is to come of this frame.
                return Ok(ReadProgress { consumed, event });
            }
        }
    }

    /// Takes the next byte of a head; gives the frame when it is complete.
    #[inline]
    fn receive_head(&mut self, byte: u8, rules: Rules) -> Result<Option<Frame>, Fault> {
        let place = self.head_length as usize;
        self.head[place] = byte;
        self.head_length += 1;
        self.frame_wire_bytes += 1;
        match place {
            0 => {
                self.check_first(byte)?;
                return Ok(None);
            }
            1 => self.check_second(byte, rules)?,
            _ => {}
        }
        let second = self.head[1];
        let length_end = match second & !MASKED {
            LENGTH_16 => 4,
            LENGTH_64 => 10,
            _ => 2,
        };
        let length_now = self.head_length as usize;
        if place == 2 && length_end == 10 && byte & 0x80 != 0 {
            return Err(Fault::LengthTooLarge);
        }
        if length_now < length_end {
            return Ok(None);
        }
        let length_field = &self.head[2..length_end];
        let length = match length_end {
            2 => u64::from(second & !MASKED),
            _ => length_field
                .iter()
                .fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        let least = match length_end {
            2 => 0,
            4 => 126,
            _ => 0x1_0000,
        };
        if length < least && rules.is_strict {
            return Err(Fault::LengthNotShortest);
        }
        let is_masked = second & MASKED != 0;
        let end = length_end + if is_masked { 4 } else { 0 };
        if length_now < end {
            return Ok(None);
        }
        let key = is_masked.then(|| {
            let mut key = [0; 4];
            key.copy_from_slice(&self.head[length_end..end]);
            key
        });
        Ok(Some(self.begin_frame(length, key)))
    }

    #[inline]
    fn check_first(&mut self, byte: u8) -> Result<(), Fault> {
        if byte & RESERVED != 0 {
            return Err(Fault::ReservedBits);
        }
        let number = byte & 0x0f;
        let opcode = Opcode::of(number).ok_or(Fault::ReservedOpcode(number))?;
        let is_final = byte & FINAL != 0;
        match opcode {
            Opcode::Close | Opcode::Ping | Opcode::Pong if !is_final => Err(Fault::ControlInParts),
            Opcode::Continuation if self.message.is_none() => Err(Fault::NothingToContinue),
            Opcode::Text | Opcode::Binary if self.message.is_some() => Err(Fault::MessageInside),
            Opcode::Text => {
                self.message = Some(Kind::Text);
                Ok(())
            }
            Opcode::Binary => {
                self.message = Some(Kind::Binary);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn check_second(&self, byte: u8, rules: Rules) -> Result<(), Fault> {
        let is_masked = byte & MASKED != 0;
        match rules.side {
            Side::Client if is_masked => return Err(Fault::Masked),
            Side::Server if !is_masked => return Err(Fault::NotMasked),
            _ => {}
        }
        let is_control = Opcode::of(self.head[0] & 0x0f).is_some_and(Opcode::is_control);
        if is_control && usize::from(byte & !MASKED) > CONTROL_BYTES_MAX {
            return Err(Fault::ControlTooLong);
        }
        Ok(())
    }

    #[inline]
    fn begin_frame(&mut self, length: u64, key: Option<MaskKey>) -> Frame {
        let opcode = Opcode::of(self.head[0] & 0x0f);
        let frame = Frame {
            control: opcode.filter(|opcode| opcode.is_control()),
            is_final: self.head[0] & FINAL != 0,
            left: length,
            key,
        };
        self.head_length = 0;
        if frame.control.is_some() {
            self.control = None;
        } else {
            self.message_wire_bytes += std::mem::take(&mut self.frame_wire_bytes);
        }
        self.stage = ReaderStage::Payload(frame);
        frame
    }

    /// Takes `bytes`, which are of the frame.
    #[inline]
    fn receive_payload(
        &mut self,
        mut frame: Frame,
        bytes: &[u8],
        rules: Rules,
        data: &mut impl FnMut(Piece<'_>),
    ) -> Result<Option<FrameEvent>, Fault> {
        frame.left -= bytes.len() as u64;
        match (frame.control, self.message) {
            (None, Some(kind)) => {
                self.message_wire_bytes += bytes.len() as u64;
                self.payload_bytes += bytes.len() as u64;
                if kind == Kind::Text && rules.is_strict && !self.is_utf8(bytes, frame.key) {
                    return Err(Fault::NotUtf8);
                }
                if !bytes.is_empty() {
                    let key = frame.key;
                    data(Piece { kind, bytes, key });
                }
            }
            _ => {
                self.frame_wire_bytes += bytes.len() as u64;
                self.keep_control(bytes, frame.key);
            }
        }
        frame.key = frame.key.map(|key| key_behind(key, bytes.len()));
        if frame.left > 0 {
            self.stage = ReaderStage::Payload(frame);
            return Ok(None);
        }
        self.stage = ReaderStage::Head;
        self.end_frame(frame, rules)
    }

    #[inline]
    fn end_frame(&mut self, frame: Frame, rules: Rules) -> Result<Option<FrameEvent>, Fault> {
        let Some(opcode) = frame.control else {
            return Ok(match self.message {
                Some(kind) if frame.is_final => {
                    if kind == Kind::Text && rules.is_strict && !self.utf8.is_complete() {
                        return Err(Fault::NotUtf8);
                    }
                    self.message = None;
                    Some(FrameEvent::Message {
                        kind,
                        payload_bytes: std::mem::take(&mut self.payload_bytes),
                        wire_bytes: std::mem::take(&mut self.message_wire_bytes),
                    })
                }
                _ => None,
            });
        };
        let event = match opcode {
            Opcode::Ping => FrameEvent::Ping {
                wire_bytes: self.frame_wire_bytes,
            },
            Opcode::Close => FrameEvent::Close {
                code: read_close(self.control_payload())?,
                wire_bytes: self.frame_wire_bytes,
            },
            _ => FrameEvent::Pong {
                wire_bytes: self.frame_wire_bytes,
            },
        };
        self.frame_wire_bytes = 0;
        Ok(Some(event))
    }

    fn keep_control(&mut self, bytes: &[u8], key: Option<MaskKey>) {
        if bytes.is_empty() {
            return;
        }
        let control = self.control.get_or_insert_with(|| {
            Box::new(Control {
                bytes: [0; CONTROL_BYTES_MAX],
                length: 0,
            })
        });
        let start = control.length as usize;
        let place = &mut control.bytes[start..start + bytes.len()];
        place.copy_from_slice(bytes);
        if let Some(key) = key {
            mask(place, key);
        }
        control.length += bytes.len() as u8;
    }

    fn is_utf8(&mut self, bytes: &[u8], key: Option<MaskKey>) -> bool {
        let Some(key) = key else {
            return self.utf8.add(bytes);
        };
        let mut room = [0; 256];
        bytes.chunks(room.len()).all(|masked| {
            // 256 is a multiple of a key's four bytes.
            let text = &mut room[..masked.len()];
            text.copy_from_slice(masked);
            mask(text, key);
            self.utf8.add(text)
        })
    }

    /// The payload of the control frame that was given out last; empty once another one begins.
    pub fn control_payload(&self) -> &[u8] {
        let kept = self.control.as_deref();
        kept.map_or(&[], |control| &control.bytes[..control.length.into()])
    }

    /// Bytes taken that are in no event: those of what is not complete or, after an error, of what
    /// was refused, all bytes of the failing call included.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.message_wire_bytes + self.frame_wire_bytes
    }

    /// Takes the [`pending_bytes`](Self::pending_bytes): they are in no later event.
    pub fn take_pending(&mut self) -> u64 {
        std::mem::take(&mut self.message_wire_bytes) + std::mem::take(&mut self.frame_wire_bytes)
    }

    /// Whether a message has begun that is not complete.
    #[inline]
    pub fn is_in_message(&self) -> bool {
        self.message.is_some()
    }

    /// How many of the bytes that come next nobody needs to see, where nobody wants the payload:
    /// those of a frame of a message, but for its last one.
    pub fn unread_bytes(&self, rules: Rules) -> u64 {
        let is_checked = rules.is_strict && self.message == Some(Kind::Text);
        match self.stage {
            ReaderStage::Payload(frame) if frame.control.is_none() && !is_checked => {
                frame.left.saturating_sub(1)
            }
            _ => 0,
        }
    }

    /// Tells the reader that so many bytes came and were thrown away: at most
    /// [`unread_bytes`](Self::unread_bytes).
    pub fn discarded(&mut self, bytes: u64) {
        if let ReaderStage::Payload(frame) = &mut self.stage {
            debug_assert!(bytes < frame.left, "the last byte completes the frame");
            frame.left -= bytes;
            frame.key = frame.key.map(|key| key_behind(key, (bytes % 4) as usize));
            self.message_wire_bytes += bytes;
            self.payload_bytes += bytes;
        }
    }
}

/// Most bytes of a character.
const CHARACTER_BYTES_MAX: usize = 4;

/// What is known of a text so far: the beginning of its last character, where that is cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8 {
    begun: [u8; CHARACTER_BYTES_MAX],
    length: u8,
}

impl Utf8 {
    /// Takes the next piece; false when the text is not UTF-8, whatever may follow.
    pub(super) fn add(&mut self, mut piece: &[u8]) -> bool {
        while self.length > 0 {
            let Some((&byte, rest)) = piece.split_first() else {
                return true;
            };
            piece = rest;
            self.begun[self.length as usize] = byte;
            self.length += 1;
            match std::str::from_utf8(&self.begun[..self.length as usize]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_some() => return false,
                // Still cut: never four bytes, which are a character or none.
                Err(_) => {}
            }
        }
        match std::str::from_utf8(piece) {
            Ok(_) => true,
            Err(error) if error.error_len().is_some() => false,
            Err(error) => {
                let cut = &piece[error.valid_up_to()..];
                self.begun[..cut.len()].copy_from_slice(cut);
                self.length = cut.len() as u8;
                true
            }
        }
    }

    /// Whether the text may end here.
    pub(super) fn is_complete(self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `bytes`, one by one and whole, are a text; and after how many bytes they are none.
    fn judged(bytes: &[u8]) -> (bool, usize) {
        let mut one_by_one = Utf8::default();
        let good = bytes
            .iter()
            .take_while(|byte| one_by_one.add(&[**byte]))
            .count();
        let is_text = good == bytes.len() && one_by_one.is_complete();
        for cut in 0..=bytes.len() {
            let mut state = Utf8::default();
            let is_good = state.add(&bytes[..cut]) && state.add(&bytes[cut..]);
            assert_eq!(
                is_good && state.is_complete(),
                is_text,
                "{bytes:x?} at {cut}"
            );
        }
        (is_text, good)
    }

    #[test]
    fn texts_and_others() {
        for text in [
            "",
            "a",
            "ä",
            "€",
            "𝄞",
            "κόσμε",
            "\u{10ffff}\0\u{7ff}\u{800}",
        ] {
            assert_eq!(judged(text.as_bytes()), (true, text.len()), "{text}");
        }
        for (bytes, good) in [
            // Alone, too long, a surrogate, beyond the last character: known at the first byte that
            // cannot be.
            (&b"a\x80"[..], 1),
            (b"\xc0\xaf", 0),
            (b"\xe0\x80\x80", 1),
            (b"\xed\xa0\x80", 1),
            (b"\xf4\x90\x80\x80", 1),
            (b"\xf5", 0),
            (b"\xe2\x82a", 2),
            // Cut at the end.
            (b"\xe2\x82", 2),
            (b"\xf0\x9d\x84", 3),
        ] {
            assert_eq!(judged(bytes), (false, good), "{bytes:x?}");
        }
    }
}
