//! A client's connection: the upgrade and the server's answer (RFC 6455 section 4), then frames;
//! pings and closes are answered.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::frame::{
    ClientError, CloseCode, Fault, HandshakeError, MaskKey, OfferError, Opcode, put_close,
    put_frame,
};
use super::reader::{FrameEvent, Kind, Piece, ReadProgress, Reader, Rules, Side};
use crate::Limits;
use crate::field_value::{is_token_byte, list};
use crate::http1::{Gathered, ReplyError, Request, head_fields, head_status};

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

/// One connection. What it writes is masked with the `key` that the caller gives, which is to be
/// random (RFC 6455 section 5.3).
///
/// Every byte received is accounted for: it is one of a message that was given out, of the
/// [overhead](Self::take_overhead), or [pending](Self::pending_bytes).
#[derive(Debug, Default)]
pub struct WebSocketClient {
    stage: ClientStage,
    reader: Reader,
    /// A Close frame was written.
    has_closed: bool,
    /// Bytes of an answer to the upgrade that is not complete.
    answer_bytes: u64,
    overhead_bytes: u64,
}

#[derive(Debug, Default)]
enum ClientStage {
    #[default]
    Down,
    Offered(Box<Awaited>),
    Open,
    /// The server sends nothing more.
    Closed,
}

impl WebSocketClient {
    /// The connection was made: writes the upgrade, whose key is made from `nonce`, which is to be
    /// random.
    pub fn open(&mut self, offer: &Offer, nonce: [u8; 16], out: &mut Vec<u8>) {
        *self = Self {
            stage: ClientStage::Offered(Box::new(offer.put(nonce, out))),
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
    ) -> Result<ReadProgress<ClientEvent>, ClientError> {
        match &mut self.stage {
            ClientStage::Open => {}
            ClientStage::Offered(awaited) => {
                let before = self.answer_bytes;
                self.answer_bytes += bytes.len() as u64;
                let (consumed, is_open) =
                    awaited.receive(bytes, settings.offer, settings.limits)?;
                if is_open {
                    self.stage = ClientStage::Open;
                    self.answer_bytes = 0;
                    self.overhead_bytes += before + consumed as u64;
                }
                return Ok(ReadProgress {
                    consumed,
                    event: is_open.then_some(ClientEvent::Open),
                });
            }
            // Nothing is to come, and what does has no meaning (RFC 6455 section 5.5.1).
            ClientStage::Down | ClientStage::Closed => {
                self.overhead_bytes += bytes.len() as u64;
                return Ok(ReadProgress {
                    consumed: bytes.len(),
                    event: None,
                });
            }
        }
        let progress = self
            .reader
            .receive(bytes, RULES, data)
            .map_err(|fault| self.refuse(fault, key, out))?;
        Ok(ReadProgress {
            consumed: progress.consumed,
            event: progress.event.map(|event| self.answer(event, key, out)),
        })
    }

    #[inline]
    fn answer(&mut self, event: FrameEvent, key: MaskKey, out: &mut Vec<u8>) -> ClientEvent {
        match event {
            FrameEvent::Message {
                kind,
                payload_bytes,
                wire_bytes,
            } => ClientEvent::Message {
                kind,
                payload_bytes,
                wire_bytes,
            },
            FrameEvent::Ping { wire_bytes } => {
                self.overhead_bytes += wire_bytes;
                if !self.has_closed {
                    put_frame(out, Opcode::Pong, self.reader.control_payload(), Some(key));
                }
                ClientEvent::Ping
            }
            FrameEvent::Pong { wire_bytes } => {
                self.overhead_bytes += wire_bytes;
                ClientEvent::Pong
            }
            FrameEvent::Close { code, wire_bytes } => {
                self.overhead_bytes += wire_bytes;
                self.close(code, key, out);
                self.stage = ClientStage::Closed;
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
        matches!(self.stage, ClientStage::Open) && !self.has_closed
    }

    /// Whether a message has begun that is not complete.
    #[inline]
    pub fn is_in_message(&self) -> bool {
        self.reader.is_in_message()
    }
}

/// Bytes of a key: 16 in base64.
const KEY_BYTES: usize = 24;
/// Bytes of what a server makes of a key: 20 in base64.
pub const ACCEPT_BYTES: usize = 28;
/// What a server appends to a key before it takes the SHA-1 of both.
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Most bytes of a server's words that an error repeats.
const WORDS_BYTES_MAX: usize = 200;

/// The fields that an offer sets itself.
const RESERVED: [&str; 7] = [
    "Connection",
    "Upgrade",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Accept",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Protocol",
];

/// An upgrade, encoded once but for its key.
#[derive(Clone, Debug)]
pub struct Offer {
    before_key: Vec<u8>,
    subprotocols: Vec<String>,
}

impl Offer {
    /// Offers an upgrade of `path` with the user's header fields and these subprotocols, which may
    /// be none.
    ///
    /// # Errors
    ///
    /// It is no request, or what the user gave is part of the handshake already.
    pub fn new(
        path: &str,
        host: &str,
        headers: &[(String, String)],
        subprotocols: &[String],
    ) -> Result<Self, OfferError> {
        let is_reserved = |name: &str| {
            RESERVED
                .iter()
                .any(|field| field.eq_ignore_ascii_case(name))
        };
        if let Some((name, _)) = headers.iter().find(|(name, _)| is_reserved(name)) {
            return Err(OfferError::Reserved(name.clone()));
        }
        for (index, name) in subprotocols.iter().enumerate() {
            let is_token = !name.is_empty() && name.bytes().all(is_token_byte);
            if !is_token || subprotocols[..index].contains(name) {
                return Err(OfferError::Subprotocol(name.clone()));
            }
        }
        let mut headers = headers.to_vec();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        add("Connection", "Upgrade");
        add("Upgrade", "websocket");
        if !subprotocols.is_empty() {
            add("Sec-WebSocket-Protocol", &subprotocols.join(", "));
        }
        add("Sec-WebSocket-Version", "13");
        add("Sec-WebSocket-Key", "");
        let request = Request {
            method: "GET",
            path,
            host,
            headers: &headers,
            body: b"",
            close: false,
        };
        let mut before_key = request.encode()?;
        // The two line ends behind the key.
        before_key.truncate(before_key.len() - 4);
        Ok(Self {
            before_key,
            subprotocols: subprotocols.to_vec(),
        })
    }

    /// Bytes of the request.
    pub fn bytes(&self) -> usize {
        self.before_key.len() + KEY_BYTES + 4
    }

    /// Appends the request, with a key made from `nonce`, which is to be random for each
    /// connection; gives what awaits the answer.
    fn put(&self, nonce: [u8; 16], out: &mut Vec<u8>) -> Awaited {
        let mut key = [0; KEY_BYTES];
        let written = BASE64.encode_slice(nonce, &mut key);
        debug_assert_eq!(written, Ok(KEY_BYTES));
        out.extend_from_slice(&self.before_key);
        out.extend_from_slice(&key);
        out.extend_from_slice(b"\r\n\r\n");
        Awaited {
            accept: accept_of(&key),
            gathered: Gathered::default(),
            interim: 0,
        }
    }
}

/// What a server makes of a client's key (RFC 6455 section 4.2.2).
pub fn accept_of(key: &[u8]) -> [u8; ACCEPT_BYTES] {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(ACCEPT_SUFFIX);
    let mut accept = [0; ACCEPT_BYTES];
    let written = BASE64.encode_slice(context.finish().as_ref(), &mut accept);
    debug_assert_eq!(written, Ok(ACCEPT_BYTES));
    accept
}

/// Whether a client may send `key`: 16 bytes in base64.
pub fn is_key(key: &[u8]) -> bool {
    let mut nonce = [0; 18];
    key.len() == KEY_BYTES && BASE64.decode_slice(key, &mut nonce) == Ok(16)
}

/// An upgrade that is not answered yet.
#[derive(Debug)]
struct Awaited {
    accept: [u8; ACCEPT_BYTES],
    gathered: Gathered,
    interim: u16,
}

impl Awaited {
    /// Takes bytes of the answer: how many, and whether they complete it.
    fn receive(
        &mut self,
        bytes: &[u8],
        offer: &Offer,
        limits: &Limits,
    ) -> Result<(usize, bool), HandshakeError> {
        let mut consumed = 0;
        loop {
            let Some(taken) = self.gathered.add_head(&bytes[consumed..], limits)? else {
                return Ok((bytes.len(), false));
            };
            consumed += taken;
            let gathered = std::mem::take(&mut self.gathered);
            match head_status(&gathered.bytes, limits)? {
                101 => {
                    self.check(&gathered.bytes, offer)?;
                    return Ok((consumed, true));
                }
                status if status >= 200 => {
                    let mut fields = head_fields(&gathered.bytes);
                    let location = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"Location"));
                    return Err(HandshakeError::Refused {
                        status,
                        location: location.map(|(_, value)| words(value.trim_ascii())),
                    });
                }
                _ if self.interim >= limits.interim_replies => {
                    return Err(ReplyError::BadInterim.into());
                }
                _ => self.interim += 1,
            }
        }
    }

    fn check(&self, head: &[u8], offer: &Offer) -> Result<(), HandshakeError> {
        let values = |name: &'static str| {
            head_fields(head)
                .filter(move |(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
                .flat_map(|(_, value)| list(value))
                .filter(|item| !item.is_empty())
        };
        let names = |field: &'static str, value: &str| {
            values(field).any(|item| item.eq_ignore_ascii_case(value.as_bytes()))
        };
        if !names("Upgrade", "websocket") || !names("Connection", "upgrade") {
            return Err(HandshakeError::NotUpgraded);
        }
        let mut accepts = values("Sec-WebSocket-Accept");
        if accepts.next() != Some(&self.accept[..]) || accepts.next().is_some() {
            return Err(HandshakeError::WrongAccept);
        }
        if let Some(extension) = values("Sec-WebSocket-Extensions").next() {
            return Err(HandshakeError::Extension(words(extension)));
        }
        let chosen: Vec<&[u8]> = values("Sec-WebSocket-Protocol").collect();
        let is_offered = |name: &[u8]| {
            let mut offered = offer.subprotocols.iter();
            offered.any(|offered| offered.as_bytes() == name)
        };
        match chosen[..] {
            [] if offer.subprotocols.is_empty() => Ok(()),
            [] => Err(HandshakeError::NoSubprotocol),
            [only] if is_offered(only) => Ok(()),
            _ => Err(HandshakeError::OtherSubprotocol(words(
                &chosen.join(&b", "[..]),
            ))),
        }
    }
}

/// A server's words, for an error.
fn words(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(WORDS_BYTES_MAX)];
    String::from_utf8_lossy(shown).into_owned()
}
