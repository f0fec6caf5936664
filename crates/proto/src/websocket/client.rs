//! A client's connection: the upgrade, then frames; pings and closes are answered.

use super::fault::{ClientError, CloseCode, Fault};
use super::frame::{MaskKey, Opcode, put_close, put_frame};
use super::handshake::{Awaited, Offer};
use super::reader::{Event, Kind, Piece, Reader, Rules, Side};
use crate::Limits;

/// Whether a text is UTF-8 is not looked at: that costs as much as all the rest.
const RULES: Rules = Rules {
    side: Side::Client,
    is_strict: false,
};

/// What all connections of a run share.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The upgrade.
    pub offer: &'a Offer,
    /// How large the answer to the upgrade may be.
    pub limits: &'a Limits,
}

/// What happened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The server agreed: messages may be sent.
    Open,
    /// A message is complete.
    Message {
        /// What it is.
        kind: Kind,
        /// Bytes of its payload.
        payload_bytes: u64,
        /// Bytes on the wire of all its frames, heads included.
        wire_bytes: u64,
    },
    /// A ping came, and the pong is written.
    Ping,
    /// A pong came.
    Pong,
    /// The server sends nothing more. The answer is written, unless this is the answer itself.
    Closed {
        /// Why, where it says so.
        code: Option<CloseCode>,
    },
}

/// What [`Client::receive`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ClientProgress {
    /// Bytes taken. Without an event: all of them.
    pub consumed: usize,
    /// What the last of these bytes completed.
    pub event: Option<ClientEvent>,
}

/// One connection. What it writes is masked with the `key` that the caller gives, which is to be
/// random (RFC 6455 section 5.3).
///
/// Every byte received is accounted for: it is one of a message that was given out, of the
/// [overhead](Self::take_overhead), or [pending](Self::pending_bytes).
#[derive(Debug, Default)]
pub struct Client {
    stage: Stage,
    reader: Reader,
    /// A Close frame was written.
    has_closed: bool,
    /// Bytes of an answer to the upgrade that is not complete.
    answer_bytes: u64,
    overhead_bytes: u64,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Down,
    Offered(Box<Awaited>),
    Open,
    /// The server sends nothing more.
    Closed,
}

impl Client {
    /// The connection was made: writes the upgrade, whose key is made from `nonce`, which is to be
    /// random.
    pub fn open(&mut self, offer: &Offer, nonce: [u8; 16], out: &mut Vec<u8>) {
        *self = Self {
            stage: Stage::Offered(Box::new(offer.put(nonce, out))),
            ..Self::default()
        };
    }

    /// Takes bytes up to the next event; to be called again with the rest. `data` gets the payload
    /// of messages as it comes.
    ///
    /// # Errors
    ///
    /// The server broke the protocol, or refuses it; all of `bytes` are then pending. Where it is a
    /// frame that is refused, a Close frame with the reason is written.
    #[inline]
    pub fn receive(
        &mut self,
        bytes: &[u8],
        settings: Settings<'_>,
        key: MaskKey,
        out: &mut Vec<u8>,
        data: impl FnMut(Piece<'_>),
    ) -> Result<ClientProgress, ClientError> {
        match &mut self.stage {
            Stage::Open => {}
            Stage::Offered(awaited) => {
                let before = self.answer_bytes;
                self.answer_bytes += bytes.len() as u64;
                let (consumed, is_open) =
                    awaited.receive(bytes, settings.offer, settings.limits)?;
                if is_open {
                    self.stage = Stage::Open;
                    self.answer_bytes = 0;
                    self.overhead_bytes += before + consumed as u64;
                }
                return Ok(ClientProgress {
                    consumed,
                    event: is_open.then_some(ClientEvent::Open),
                });
            }
            // Nothing is to come, and what does has no meaning (RFC 6455 section 5.5.1).
            Stage::Down | Stage::Closed => {
                self.overhead_bytes += bytes.len() as u64;
                return Ok(ClientProgress {
                    consumed: bytes.len(),
                    event: None,
                });
            }
        }
        let progress = self
            .reader
            .receive(bytes, RULES, data)
            .map_err(|fault| self.refuse(fault, key, out))?;
        Ok(ClientProgress {
            consumed: progress.consumed,
            event: progress.event.map(|event| self.answer(event, key, out)),
        })
    }

    #[inline]
    fn answer(&mut self, event: Event, key: MaskKey, out: &mut Vec<u8>) -> ClientEvent {
        match event {
            Event::Message {
                kind,
                payload_bytes,
                wire_bytes,
            } => ClientEvent::Message {
                kind,
                payload_bytes,
                wire_bytes,
            },
            Event::Ping { wire_bytes } => {
                self.overhead_bytes += wire_bytes;
                if !self.has_closed {
                    put_frame(out, Opcode::Pong, self.reader.control_payload(), Some(key));
                }
                ClientEvent::Ping
            }
            Event::Pong { wire_bytes } => {
                self.overhead_bytes += wire_bytes;
                ClientEvent::Pong
            }
            Event::Close { code, wire_bytes } => {
                self.overhead_bytes += wire_bytes;
                self.close(code, key, out);
                self.stage = Stage::Closed;
                ClientEvent::Closed { code }
            }
        }
    }

    fn refuse(&mut self, fault: Fault, key: MaskKey, out: &mut Vec<u8>) -> ClientError {
        self.close(Some(fault.close_code()), key, out);
        fault.into()
    }

    /// Writes a Close frame, unless there was one.
    pub fn close(&mut self, code: Option<CloseCode>, key: MaskKey, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_closed, true) {
            put_close(out, code, "", Some(key));
        }
    }

    /// Bytes received since this was last asked that are in no message: the answer to the upgrade,
    /// and control frames.
    #[inline]
    pub fn take_overhead(&mut self) -> u64 {
        std::mem::take(&mut self.overhead_bytes)
    }

    /// Bytes of what is not complete or was refused.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.answer_bytes + self.reader.pending_bytes()
    }

    /// How many of the bytes that come next nobody needs to see, where nobody wants the payload.
    pub fn unread_bytes(&self) -> u64 {
        self.reader.unread_bytes(RULES)
    }

    /// Tells the client that so many bytes came and were thrown away: at most
    /// [`unread_bytes`](Self::unread_bytes).
    pub fn discarded(&mut self, bytes: u64) {
        self.reader.discarded(bytes);
    }

    /// Takes the bytes of what is not complete or was refused: they are in no later event.
    pub fn take_pending(&mut self) -> u64 {
        std::mem::take(&mut self.answer_bytes) + self.reader.take_pending()
    }

    /// Whether messages may be sent: the server agreed, and nobody closed.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open) && !self.has_closed
    }

    /// Whether a message has begun that is not complete.
    #[inline]
    pub fn is_in_message(&self) -> bool {
        self.reader.is_in_message()
    }
}
