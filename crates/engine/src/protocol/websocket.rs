//! WebSocket in a worker: an upgrade, then messages and those that answer them, in order.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use brunt_io::backend::PayloadId;
use brunt_io::transport::Stream;
use brunt_load::{Plan, ReplyMatch, WebSocketExchange};
use brunt_proto::Limits;
use brunt_proto::holes::next_random;
use brunt_proto::messages::Template;
use brunt_proto::websocket::{
    ClientEvent, CloseCode, Kind, MaskKey, Offer, OfferError, Opcode, Settings, WebSocketClient,
    frame_head_bytes, mask, put_frame, put_head,
};
use brunt_record::{Answer, FailureKind, ReplyOutcome, RequestTiming};

use super::exchange::{
    ConnectionNumbers, Exchanged, InFlight, MessageSet, Rendered, answer, connection_numbers,
};
use super::{
    Aside, Broken, ClientProtocol, Closing, ConnectionEnd, EncodeError, Next, Out, PayloadPart,
    ProtocolEvent, Sizes, Taken, TimedOut,
};
use crate::failure;

/// Copies of each constant message, each masked with a key of its own.
const COPIES: usize = 64;
/// Bytes that the copies of all messages have together: of long messages there are fewer.
const COPIES_BYTES_MAX: usize = 16 << 20;
/// Bytes of a message that are kept for a report.
const SAMPLE_BYTES_MAX: usize = 200;
/// Bytes of control frames that may wait behind a send.
const WAITING_BYTES_MAX: usize = 512 * 1024;

/// The upgrade that a plan offers.
pub(crate) fn offer_of(plan: &Plan, exchange: &WebSocketExchange) -> Result<Offer, OfferError> {
    Offer::new(
        &plan.target.path,
        &plan.target.authority,
        exchange.headers.given().map_or(&[][..], Vec::as_slice),
        &exchange.subprotocols,
    )
}

/// What opens each connection, and how many messages answer it.
fn opening_of(exchange: &WebSocketExchange) -> Option<(&Template, u32)> {
    let opening = exchange.opening.as_ref()?;
    Some((opening.message.given()?, opening.replies))
}

/// The messages of a run, encoded once for all workers.
#[derive(Debug)]
pub(crate) struct EncodedWebSocket {
    offer: Offer,
    exchange: WebSocketExchange,
    set: MessageSet,
}

impl EncodedWebSocket {
    /// Encodes what the plan says, of which up to `depth` are to be in flight per connection.
    pub(super) fn new(
        plan: &Plan,
        exchange: &WebSocketExchange,
        depth: u32,
        clock_origin_unix_ns: u64,
    ) -> Result<Self, EncodeError> {
        let offer = offer_of(plan, exchange).map_err(EncodeError::protocol)?;
        let exchanged = Exchanged {
            is_echo: exchange.matching == ReplyMatch::Echo,
            depth,
            seed: exchange.seed,
            clock_origin_unix_ns,
        };
        let check = |name: &str, bytes: &[u8]| {
            if exchange.is_binary || std::str::from_utf8(bytes).is_ok() {
                return Ok(());
            }
            Err(EncodeError::protocol(format!(
                "the message {name} is not UTF-8, as a text has to be; send it with --binary"
            )))
        };
        let copies = |bytes: usize| (COPIES_BYTES_MAX / bytes.max(1)).clamp(1, COPIES) as u32;
        let first = opening_of(exchange).map(|(message, _)| message);
        let set = MessageSet::new(plan, first, exchanged, check, frame_bytes, copies)?;
        Ok(Self {
            offer,
            exchange: exchange.clone(),
            set,
        })
    }

    fn kind(&self) -> Kind {
        if self.exchange.is_binary {
            Kind::Binary
        } else {
            Kind::Text
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes::of(self.bytes(), self.set.held_bytes())
    }

    /// Bytes of the longest message as a frame.
    fn bytes(&self) -> usize {
        let opening = opening_of(&self.exchange).map(|(message, _)| message.bytes_max());
        let lengths = self.set.lengths().chain(opening);
        lengths.map(frame_bytes).max().unwrap_or(0)
    }

    /// Appends the next message of a connection as a frame. `keeps`: its echo is awaited.
    fn put_template(
        &self,
        connection: &mut WebSocketConnection,
        template: &Template,
        now_ns: u64,
        keeps: bool,
        bytes: &mut Vec<u8>,
    ) {
        let values = self.set.values(&connection.in_flight, now_ns);
        let key = next_key(&mut connection.random);
        let from = bytes.len();
        template.render(&values, bytes);
        let payload_end = bytes.len();
        if keeps {
            connection.in_flight.rendered.push(&bytes[from..]);
        }
        mask(&mut bytes[from..], key);
        let length = (payload_end - from) as u64;
        put_head(bytes, self.kind().opcode(), true, length, Some(key));
        let head_bytes = bytes.len() - payload_end;
        bytes[from..].rotate_right(head_bytes);
    }

    /// The frames of the constant messages, each copy with a mask of its own.
    #[inline]
    fn payload(&self) -> &Arc<[u8]> {
        self.set.payload.get(|put| {
            let (mut frame, mut random) = (Vec::new(), self.exchange.seed);
            for (message, copies) in self.set.constant() {
                for _ in 0..copies.count {
                    let key = next_key(&mut random);
                    frame.clear();
                    put_frame(&mut frame, self.kind().opcode(), message, Some(key));
                    put(&frame);
                }
            }
        })
    }
}

/// Bytes of a message of this length as a frame.
fn frame_bytes(length: usize) -> usize {
    frame_head_bytes(length as u64, true) as usize + length
}

/// The next mask out of a sequence.
fn next_key(random: &mut u64) -> MaskKey {
    let [a, b, c, d, ..] = next_random(random).to_ne_bytes();
    [a, b, c, d]
}

/// WebSocket (RFC 6455), as one worker speaks it.
#[derive(Clone, Debug)]
pub(crate) struct WebSocket {
    pub(super) encoded: Arc<EncodedWebSocket>,
    payload: PayloadId,
    limits: Limits,
    numbers: ConnectionNumbers,
    /// Control frames that answer what is being received.
    answers: Vec<u8>,
    /// The beginning of the first message that answers none, though one was to.
    unmatched: Option<String>,
}

impl WebSocket {
    pub(super) fn new(encoded: EncodedWebSocket) -> Self {
        Self {
            encoded: Arc::new(encoded),
            payload: PayloadId(0),
            limits: Limits::default(),
            numbers: connection_numbers(0, 1),
            answers: Vec::new(),
            unmatched: None,
        }
    }

    /// The oldest message in flight is no more; gives its place.
    #[inline]
    fn leave(&self, connection: &mut WebSocketConnection) -> u32 {
        connection.reply = Reply::default();
        self.encoded.set.leave(&mut connection.in_flight)
    }
}

/// What has come of the reply to the oldest message in flight, in whole messages.
#[derive(Clone, Copy, Debug, Default)]
struct Reply {
    messages: u32,
    head_bytes: u64,
    body_bytes: u64,
}

/// How far a message that comes is the one that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Likeness {
    bytes: usize,
    has_other: bool,
    /// How much of what it has to contain stands at its end, and whether it was seen.
    matched: u16,
    is_found: bool,
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct WebSocketConnection {
    client: WebSocketClient,
    in_flight: InFlight,
    /// Where its masks are in their sequence.
    random: u64,
    reply: Reply,
    likeness: Likeness,
    /// What is being received began when nothing was in flight: it is no reply.
    is_push: bool,
    /// Something came that nobody awaited, or is asked for besides.
    was_pushed_to: bool,
    /// When the first byte of the reply that is being received came.
    first_byte_ns: u64,
    /// When the next ping is due.
    ping_due_ns: u64,
    /// A send is in flight.
    is_sending: bool,
    /// Messages without replies that are in the last send.
    in_send: u32,
    /// Messages that are still to answer what opened it.
    opening_left: u32,
    /// What was not asked for yet by [`ClientProtocol::take_aside`].
    aside: Aside,
    /// A message was given up that was not answered.
    has_abandoned: bool,
}

impl ClientProtocol for WebSocket {
    type Transport = Stream;
    type Connection = WebSocketConnection;

    const IN_ORDER: bool = true;

    fn start(&mut self, worker: u32, workers: u32, add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {
        self.numbers = connection_numbers(worker, workers);
        let payload = self.encoded.payload();
        if !payload.is_empty() {
            self.payload = add(Arc::clone(payload));
        }
    }

    fn connection(&self) -> WebSocketConnection {
        WebSocketConnection::default()
    }

    fn open(&mut self, connection: &mut WebSocketConnection, out: &mut Out, _now_ns: u64) -> bool {
        let number = self.numbers.next().unwrap_or_default();
        let mut random = self.encoded.exchange.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        let mut nonce = [0; 16];
        for half in nonce.chunks_exact_mut(8) {
            half.copy_from_slice(&next_random(&mut random).to_ne_bytes());
        }
        *connection = WebSocketConnection {
            random,
            ping_due_ns: u64::MAX,
            ..WebSocketConnection::default()
        };
        connection.in_flight.number = number;
        let bytes = out.owned(self.encoded.payload());
        connection.client.open(&self.encoded.offer, nonce, bytes);
        false
    }

    fn parts(&self) -> bool {
        true
    }

    /// A server that has not answered all is left without waiting.
    fn part(&mut self, connection: &mut WebSocketConnection, out: &mut Out) -> Closing {
        if !connection.client.is_open() {
            return Closing::AtOnce;
        }
        let (code, closing) = if connection.has_abandoned {
            (CloseCode::GOING_AWAY, Closing::AtOnce)
        } else {
            (CloseCode::NORMAL, Closing::Answered)
        };
        let key = next_key(&mut connection.random);
        let bytes = out.owned(self.encoded.payload());
        connection.client.close(Some(code), key, bytes);
        connection.ping_due_ns = u64::MAX;
        closing
    }

    fn close(&mut self, connection: &mut WebSocketConnection) -> u64 {
        connection.in_flight.rendered = Rendered::default();
        // At the end of a round it goes on.
        connection.client.take_pending()
    }

    #[inline]
    fn request(&mut self, connection: &mut WebSocketConnection, next: Next, out: &mut Out) -> u32 {
        let encoded = &*self.encoded;
        let whole = encoded.payload();
        let message = &encoded.set.messages[next.request.0 as usize];
        let keeps = encoded.set.keeps_rendered;
        if let Some(copies) = message.copies {
            let InFlight {
                number, sequence, ..
            } = connection.in_flight;
            // Of several at once, one copy follows the other.
            let copy = (number.wrapping_add(sequence) % u64::from(copies.count)) as u32;
            let range = copies.copy(copy);
            if connection.is_sending {
                // It waits, with what else is written until that send is taken.
                let frame = &whole[range.start as usize..range.end as usize];
                out.owned(whole).extend_from_slice(frame);
            } else {
                out.append_shared(PayloadPart::of(self.payload, range), whole);
            }
            if keeps {
                let bytes = message.template.as_constant().unwrap_or_default();
                connection.in_flight.rendered.push(bytes);
            }
        } else {
            let bytes = out.owned(whole);
            encoded.put_template(connection, &message.template, next.now_ns, keeps, bytes);
        }
        encoded.set.take(&mut connection.in_flight)
    }

    #[inline]
    fn receive(
        &mut self,
        connection: &mut WebSocketConnection,
        bytes: &[u8],
        received_ns: u64,
        places: &[RequestTiming],
        out: &mut Out,
    ) -> Result<Taken, Broken> {
        let encoded = Arc::clone(&self.encoded);
        let exchange = &encoded.exchange;
        let settings = Settings {
            offer: &encoded.offer,
            limits: &self.limits,
        };
        let mut consumed = 0;
        while consumed < bytes.len() {
            if !connection.client.is_in_message() {
                connection.is_push =
                    exchange.replies == 0 || connection.in_flight.requests.count == 0;
                connection.likeness = Likeness::default();
                if connection.reply.messages == 0 {
                    connection.first_byte_ns = received_ns;
                }
            }
            let wanted = match &exchange.matching {
                ReplyMatch::Containing(pattern) if !connection.is_push => Some(pattern),
                _ => None,
            };
            let expected = match exchange.matching {
                ReplyMatch::Echo if !connection.is_push => {
                    Some(encoded.set.oldest_sent(&connection.in_flight, places))
                }
                _ => None,
            };
            let likeness = &mut connection.likeness;
            let mut random = connection.random;
            let key = next_key(&mut random);
            let received = connection.client.receive(
                &bytes[consumed..],
                settings,
                key,
                &mut self.answers,
                |piece| {
                    if let Some(expected) = expected {
                        let end = likeness.bytes + piece.bytes.len();
                        likeness.has_other |=
                            expected.get(likeness.bytes..end) != Some(piece.bytes);
                        likeness.bytes = end;
                    }
                    if let Some(pattern) = wanted {
                        let matched = &mut likeness.matched;
                        likeness.is_found |= pattern.find_end(matched, piece.bytes).is_some();
                    }
                },
            );
            let likeness = &connection.likeness;
            let is_alike = expected
                .is_none_or(|expected| !likeness.has_other && likeness.bytes == expected.len())
                && (wanted.is_none() || likeness.is_found);
            if !self.answers.is_empty() {
                connection.random = random;
                out.owned(encoded.payload()).append(&mut self.answers);
            }
            let progress = received.map_err(|error| failure::of_websocket(&error))?;
            consumed += progress.consumed;
            let event = match progress.event {
                None => None,
                Some(ClientEvent::Open) => {
                    if let Some(interval_ns) = exchange.ping_interval_ns {
                        connection.ping_due_ns = received_ns.saturating_add(interval_ns);
                        connection.was_pushed_to = true;
                    }
                    if let Some((message, replies)) = opening_of(exchange) {
                        let bytes = out.owned(encoded.payload());
                        encoded.put_template(connection, message, received_ns, false, bytes);
                        connection.opening_left = replies;
                    }
                    (connection.opening_left == 0).then_some(ProtocolEvent::Ready)
                }
                Some(ClientEvent::Message { wire_bytes, .. }) if connection.opening_left > 0 => {
                    connection.opening_left -= 1;
                    connection.aside.overhead_bytes += wire_bytes;
                    (connection.opening_left == 0).then_some(ProtocolEvent::Ready)
                }
                Some(ClientEvent::Closed { .. }) if connection.opening_left > 0 => {
                    return Err(FailureKind::OpeningRefused.into());
                }
                Some(ClientEvent::Message {
                    kind,
                    payload_bytes,
                    wire_bytes,
                }) => {
                    let is_of_kind = expected.is_none() || kind == encoded.kind();
                    if connection.is_push || !is_alike || !is_of_kind {
                        connection.aside.pushes += 1;
                        connection.aside.overhead_bytes += wire_bytes;
                        if self.unmatched.is_none() && exchange.matching != ReplyMatch::Any {
                            // Of what came with it as a single frame.
                            let is_whole = wire_bytes
                                == payload_bytes + frame_head_bytes(payload_bytes, false);
                            let from = consumed.checked_sub(payload_bytes as usize);
                            let from = from.filter(|_| is_whole);
                            self.unmatched = from.map(|from| sample(&bytes[from..consumed]));
                        }
                        connection.was_pushed_to = true;
                        continue;
                    }
                    connection.reply.messages += 1;
                    connection.reply.head_bytes += wire_bytes - payload_bytes;
                    connection.reply.body_bytes += payload_bytes;
                    if connection.reply.messages < exchange.replies {
                        continue;
                    }
                    Some(ProtocolEvent::Done {
                        answer: answer_of(connection.reply, connection.first_byte_ns),
                        closes: false,
                        place: self.leave(connection),
                    })
                }
                Some(ClientEvent::Ping) => {
                    connection.aside.controls.pings_received += 1;
                    connection.was_pushed_to = true;
                    continue;
                }
                Some(ClientEvent::Pong) => {
                    connection.aside.controls.pongs_received += 1;
                    connection.was_pushed_to = true;
                    continue;
                }
                Some(ClientEvent::Closed { code }) => {
                    connection.aside.controls.closes_received += 1;
                    // What comes behind it has no meaning (RFC 6455 section 5.5.1).
                    connection.aside.overhead_bytes += (bytes.len() - consumed) as u64;
                    consumed = bytes.len();
                    Some(ProtocolEvent::Closed(failure::of_close(code)))
                }
            };
            if event.is_some() {
                return Ok(Taken { consumed, event });
            }
        }
        Ok(Taken::without_event(consumed))
    }

    fn unread_bytes(&self, connection: &WebSocketConnection) -> u64 {
        match &self.encoded.exchange.matching {
            ReplyMatch::Any => connection.client.unread_bytes(),
            ReplyMatch::Echo | ReplyMatch::Containing(_) => 0,
        }
    }

    fn discarded(&mut self, connection: &mut WebSocketConnection, bytes: u64) {
        connection.client.discarded(bytes);
    }

    fn ended(&mut self, connection: &mut WebSocketConnection) -> ConnectionEnd {
        let is_begun = connection.reply.messages > 0 || connection.client.pending_bytes() > 0;
        ConnectionEnd::Fails(if is_begun {
            FailureKind::TruncatedReply
        } else {
            FailureKind::ClosedBeforeReply
        })
    }

    fn abandon(&mut self, connection: &mut WebSocketConnection) -> Option<(u32, u64)> {
        if connection.in_flight.requests.count == 0 {
            return None;
        }
        let mut discarded_bytes = connection.reply.head_bytes + connection.reply.body_bytes;
        if !connection.is_push {
            discarded_bytes += connection.client.take_pending();
        }
        connection.has_abandoned = true;
        Some((self.leave(connection), discarded_bytes))
    }

    #[inline]
    fn take_aside(&mut self, connection: &mut WebSocketConnection) -> Aside {
        let mut aside = std::mem::take(&mut connection.aside);
        aside.overhead_bytes += connection.client.take_overhead();
        aside
    }

    fn may_still_hear(&self, connection: &WebSocketConnection) -> bool {
        connection.was_pushed_to
    }

    const WRITES_AHEAD: bool = true;
    const FLOODED: FailureKind = FailureKind::WebSocketError;

    #[inline]
    fn next_timeout_ns(&self, connection: &WebSocketConnection) -> u64 {
        connection.ping_due_ns
    }

    /// A ping that is due is written.
    fn timed_out(
        &mut self,
        connection: &mut WebSocketConnection,
        now_ns: u64,
        _places: &[RequestTiming],
        out: &mut Out,
    ) -> Option<TimedOut> {
        if connection.ping_due_ns <= now_ns
            && let Some(interval_ns) = self.encoded.exchange.ping_interval_ns
        {
            connection.ping_due_ns = now_ns.saturating_add(interval_ns);
            connection.aside.controls.pings_sent += 1;
            let key = next_key(&mut connection.random);
            let bytes = out.owned(self.encoded.payload());
            put_frame(bytes, Opcode::Ping, &[], Some(key));
        }
        None
    }

    #[inline]
    fn resume(&mut self, connection: &mut WebSocketConnection, _out: &mut Out) {
        connection.is_sending = false;
    }

    fn waiting_bytes_max(&self) -> usize {
        WAITING_BYTES_MAX + self.encoded.bytes() * self.encoded.set.exchanged.depth as usize
    }

    fn take_unexpected(&mut self) -> Option<String> {
        self.unmatched.take()
    }

    #[inline]
    fn sending(&mut self, connection: &mut WebSocketConnection) {
        connection.is_sending = true;
        if self.encoded.exchange.replies == 0 {
            connection.in_send = connection.in_flight.requests.count;
        }
    }

    /// A message without a reply is done.
    #[inline]
    fn taken(
        &mut self,
        connection: &mut WebSocketConnection,
        now_ns: u64,
    ) -> Option<(u32, Answer)> {
        connection.in_send = connection.in_send.checked_sub(1)?;
        let answer = answer_of(connection.reply, now_ns);
        Some((self.leave(connection), answer))
    }
}

/// The beginning of a message, for people.
#[cold]
fn sample(message: &[u8]) -> String {
    let beginning = &message[..message.len().min(SAMPLE_BYTES_MAX)];
    let mut text = String::from_utf8_lossy(beginning).into_owned();
    if beginning.len() < message.len() {
        text.push_str("...");
    }
    text
}

#[inline]
fn answer_of(reply: Reply, first_byte_ns: u64) -> Answer {
    let outcome = ReplyOutcome::SUCCESS;
    answer(outcome, reply.head_bytes, reply.body_bytes, first_byte_ns)
}
